//! Pairs the items of one host's list with those of another's, and finds an order for them.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet};

use serde_json::{Map, Value};

use super::node::HostValue;

/// The members that identify an item in tools' answers; the first that fits counts. Process numbers are not among them,
/// because process 812 of another host is another process.
const IDENTIFYING_MEMBERS: [&str; 24] = [
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

/// The paired items of several lists.
pub struct PairedItems<'a> {
    /// One row per item: the item on each host that has it.
    pub rows: Vec<Vec<HostValue<'a>>>,
    /// The indexes of the rows in the order in which they are shown.
    pub order: Vec<usize>,
    /// Whether some host has another order.
    pub reordered: bool,
    /// Whether only equal items are paired.
    pub paired_by_value: bool,
}

/// The identity of an item: some of its members, or the item itself, and the number of equal ones before it in its list.
type Key<'a> = (Vec<(&'a str, &'a Value)>, usize);

/// Pairs the items of the lists of the hosts in `here`.
pub fn pair<'a>(here: &[HostValue<'a>], lists: &[&'a Vec<Value>]) -> PairedItems<'a> {
    let objects: Option<Vec<Vec<&'a Map<String, Value>>>> =
        lists.iter().map(|list| list.iter().map(Value::as_object).collect()).collect();
    let paired_by_value = objects.is_none() && !are_points(lists);
    let identity = objects.as_deref().and_then(identity);
    let about = |item: &'a Value| -> Vec<(&'a str, &'a Value)> {
        match (identity, item.as_object()) {
            (Some(name), Some(members)) => members.get_key_value(name).map(named).into_iter().collect(),
            (None, Some(members)) if !paired_by_value => texts(members),
            _ if paired_by_value => vec![("", item)],
            // The item has only its position.
            _ => Vec::new(),
        }
    };

    let mut places: HashMap<Key<'a>, usize> = HashMap::new();
    let mut rows: Vec<Vec<HostValue<'a>>> = Vec::new();
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
            rows[place].push(HostValue { host: at.host, value: item });
            sequence.push(place);
        }
        sequences.push(sequence);
    }
    let (order, reordered) = match common_order(rows.len(), &sequences) {
        Some(order) => (order, false),
        None => (highest_first(rows.len(), &sequences), true),
    };
    PairedItems { rows, order, reordered, paired_by_value }
}

/// Whether the lists all hold equally many numbers, as load averages do.
fn are_points(lists: &[&Vec<Value>]) -> bool {
    let mut all = lists.iter();
    lists.windows(2).all(|pair| pair[0].len() == pair[1].len())
        && all.all(|list| list.iter().all(Value::is_number))
}

/// The member that identifies the items on every host.
fn identity<'a>(lists: &[Vec<&'a Map<String, Value>>]) -> Option<&'a str> {
    let first = *lists.iter().find_map(|list| list.first())?;
    let usual = IDENTIFYING_MEMBERS.iter().filter_map(|name| first.get_key_value(*name));
    let texts = first.iter().filter(|(_, value)| value.is_string());
    usual.chain(texts).map(|(name, _)| name.as_str()).find(|name| {
        lists.iter().all(|list| {
            let mut seen = HashSet::with_capacity(list.len());
            list.iter().all(|item| {
                item.get(*name).is_some_and(|value| identifies(name, value) && seen.insert(value))
            })
        })
    })
}

fn named<'a>((name, value): (&'a String, &'a Value)) -> (&'a str, &'a Value) {
    (name, value)
}

/// Whether a member can identify items.
fn identifies(name: &str, value: &Value) -> bool {
    value.is_string() || (value.is_u64() || value.is_i64()) && IDENTIFYING_MEMBERS.contains(&name)
}

/// All members of an item that could identify it, mostly its texts. Other numbers may be equal by chance.
fn texts(item: &Map<String, Value>) -> Vec<(&str, &Value)> {
    let mut texts: Vec<_> = item.iter().map(named).filter(|(name, value)| identifies(name, value)).collect();
    texts.sort_unstable_by_key(|(name, _)| *name);
    texts
}

/// An order that agrees with every host's order, where there is one. Among the rows that may come next, it takes the one
/// that was found first.
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

/// An order in which each row is as high as on any host, because what stands first on a host needs attention there.
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
