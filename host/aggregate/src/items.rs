//! Which item of one host's list is which of another's, and in which order they stand.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet};

use serde_json::{Map, Value};

use super::node::At;

/// What identifies an item, as tools name it; the first that fits counts. Process numbers are not among them: another
/// host's 812 is another process.
const USUAL: [&str; 24] = [
    "name",
    "unit",
    "service",
    "timer",
    "id",
    "device",
    "mountpoint",
    "path",
    "interface",
    "package",
    "module",
    "jail",
    "user",
    "group",
    "host",
    "volume",
    "pool",
    "zone",
    "chain",
    "uid",
    "gid",
    "port",
    "number",
    "core",
];

/// Items of several lists, side by side.
pub struct Pairs<'a> {
    /// The same item on each host that has it.
    pub rows: Vec<Vec<At<'a>>>,
    /// The numbers of the rows, as they are to be shown.
    pub order: Vec<usize>,
    /// Whether that is not every host's order.
    pub reordered: bool,
    /// Whether only equal items are paired.
    pub paired_by_value: bool,
}

/// What an item is known by: some of its members, or itself, and how many of that there were before in its list.
type Key<'a> = (Vec<(&'a str, &'a Value)>, usize);

/// Pairs the items of lists, which are those of the hosts in `here`.
pub fn pair<'a>(here: &[At<'a>], lists: &[&'a Vec<Value>]) -> Pairs<'a> {
    let objects: Option<Vec<Vec<&'a Map<String, Value>>>> =
        lists.iter().map(|list| list.iter().map(Value::as_object).collect()).collect();
    let paired_by_value = objects.is_none() && !are_points(lists);
    let identity = objects.as_deref().and_then(identity);
    let about = |item: &'a Value| -> Vec<(&'a str, &'a Value)> {
        match (identity, item.as_object()) {
            (Some(name), Some(members)) => members.get_key_value(name).map(named).into_iter().collect(),
            (None, Some(members)) if !paired_by_value => texts(members),
            _ if paired_by_value => vec![("", item)],
            // By its position alone.
            _ => Vec::new(),
        }
    };

    let mut places: HashMap<Key<'a>, usize> = HashMap::new();
    let mut rows: Vec<Vec<At<'a>>> = Vec::new();
    let mut sequences = Vec::with_capacity(lists.len());
    for (at, list) in here.iter().zip(lists) {
        let mut times: HashMap<Vec<(&'a str, &'a Value)>, usize> = HashMap::new();
        let mut sequence = Vec::with_capacity(list.len());
        for item in *list {
            let about = about(item);
            let time = times.entry(about.clone()).or_default();
            let place = *places.entry((about, *time)).or_insert(rows.len());
            *time += 1;
            if place == rows.len() {
                rows.push(Vec::new());
            }
            rows[place].push(At { host: at.host, value: item });
            sequence.push(place);
        }
        sequences.push(sequence);
    }
    let (order, reordered) = match common_order(rows.len(), &sequences) {
        Some(order) => (order, false),
        None => (highest_first(rows.len(), &sequences), true),
    };
    Pairs { rows, order, reordered, paired_by_value }
}

/// Whether the lists are as many numbers each, as load averages are.
fn are_points(lists: &[&Vec<Value>]) -> bool {
    let mut all = lists.iter();
    lists.windows(2).all(|pair| pair[0].len() == pair[1].len())
        && all.all(|list| list.iter().all(Value::is_number))
}

/// The member by which the items are told apart, on every host.
fn identity<'a>(lists: &[Vec<&'a Map<String, Value>>]) -> Option<&'a str> {
    let first = *lists.iter().find_map(|list| list.first())?;
    let usual = USUAL.iter().filter_map(|name| first.get_key_value(*name));
    let texts = first.iter().filter(|(_, value)| value.is_string());
    usual.chain(texts).map(|(name, _)| name.as_str()).find(|name| {
        lists.iter().all(|list| {
            let mut seen = HashSet::with_capacity(list.len());
            list.iter()
                .all(|item| item.get(*name).is_some_and(|value| tells(name, value) && seen.insert(value)))
        })
    })
}

fn named<'a>((name, value): (&'a String, &'a Value)) -> (&'a str, &'a Value) {
    (name, value)
}

/// Whether a member can tell items apart.
fn tells(name: &str, value: &Value) -> bool {
    value.is_string() || (value.is_u64() || value.is_i64()) && USUAL.contains(&name)
}

/// Everything in an item that could tell it from others. Its numbers may be another host's.
fn texts(item: &Map<String, Value>) -> Vec<(&str, &Value)> {
    let mut texts: Vec<_> = item.iter().map(named).filter(|(name, value)| tells(name, value)).collect();
    texts.sort_unstable_by_key(|(name, _)| *name);
    texts
}

/// An order that is every host's, where there is one; of what may come next, what was found first.
fn common_order(rows: usize, sequences: &[Vec<usize>]) -> Option<Vec<usize>> {
    let (mut after, mut waits_for) = (vec![Vec::new(); rows], vec![0_usize; rows]);
    for pair in sequences.iter().flat_map(|sequence| sequence.windows(2)) {
        after[pair[0]].push(pair[1]);
        waits_for[pair[1]] += 1;
    }
    let mut ready: BinaryHeap<Reverse<usize>> =
        (0..rows).filter(|row| waits_for[*row] == 0).map(Reverse).collect();
    let mut order = Vec::with_capacity(rows);
    while let Some(Reverse(row)) = ready.pop() {
        order.push(row);
        for next in &after[row] {
            waits_for[*next] -= 1;
            if waits_for[*next] == 0 {
                ready.push(Reverse(*next));
            }
        }
    }
    (order.len() == rows).then_some(order)
}

/// Each as high as it stands on any host: what comes first needs attention there.
fn highest_first(rows: usize, sequences: &[Vec<usize>]) -> Vec<usize> {
    let mut highest = vec![usize::MAX; rows];
    for sequence in sequences {
        for (position, row) in sequence.iter().enumerate() {
            highest[*row] = highest[*row].min(position);
        }
    }
    let mut order: Vec<usize> = (0..rows).collect();
    order.sort_by_key(|row| (highest[*row], *row));
    order
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn identity_of(lists: &Value) -> Option<&str> {
        let lists: Vec<Vec<&Map<String, Value>>> = lists
            .as_array()
            .unwrap()
            .iter()
            .map(|list| list.as_array().unwrap().iter().filter_map(Value::as_object).collect())
            .collect();
        identity(&lists)
    }

    #[test]
    fn an_item_is_known_by_what_no_other_has() {
        let table = [
            (json!([[{"id": "x1", "name": "a"}], [{"id": "y1", "name": "a"}]]), Some("name")),
            (json!([[{"name": "a", "path": "/1"}, {"name": "a", "path": "/2"}], []]), Some("path")),
            (json!([[{"state": "up", "nic": "eth0"}, {"state": "up", "nic": "eth1"}]]), Some("nic")),
            (json!([[{"name": "a"}], [{"name": "a"}, {"name": "a"}]]), None),
            (json!([[{"name": "a"}], [{"title": "a"}]]), None),
            (json!([[{"core": 0, "pct": 1.5}], [{"core": 0, "pct": 2.5}]]), Some("core")),
            (json!([[{"core": 0.5}]]), None),
            (json!([[{"pid": 812, "cpu": 1}], [{"pid": 812, "cpu": 2}]]), None),
            (json!([[], []]), None),
        ];
        for (lists, expected) in table {
            assert_eq!(identity_of(&lists), expected, "{lists}");
        }
    }

    #[test]
    fn an_order_is_every_hosts_where_there_is_one() {
        let table = [
            (vec![vec![0, 1, 2], vec![0, 1, 2]], Some(vec![0, 1, 2])),
            (vec![vec![0, 1], vec![0, 2, 3, 1]], Some(vec![0, 2, 3, 1])),
            (vec![vec![0, 1], vec![2, 3]], Some(vec![0, 1, 2, 3])),
            (vec![vec![0], vec![1], vec![1, 2, 0]], Some(vec![1, 2, 0])),
            (vec![vec![0, 1], vec![1, 0]], None),
            (vec![vec![0, 1], vec![1, 2], vec![2, 0]], None),
            (vec![vec![], vec![]], Some(vec![])),
        ];
        for (sequences, expected) in table {
            let rows = sequences.iter().flatten().max().map_or(0, |last: &usize| last + 1);
            assert_eq!(common_order(rows, &sequences), expected, "{sequences:?}");
        }
    }

    #[test]
    fn without_one_what_is_first_anywhere_comes_early() {
        assert_eq!(highest_first(4, &[vec![0, 1, 2, 3], vec![3, 0, 1, 2]]), [0, 3, 1, 2]);
    }
}
