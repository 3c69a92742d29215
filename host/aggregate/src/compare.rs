//! Compares what hosts said in one place, and decides how it is told.

use std::cell::Cell;
use std::cmp::Reverse;
use std::collections::HashMap;

use serde_json::{Map, Value};

use super::items::{self, Pairs};
use super::node::{
    At, Found, Group, Host, Hosts, LeftOut, Node, OWN_NAME, Part, Range, Said, ValueOn, Who, groups, length,
    runs, who,
};
use super::{range, text};

/// Up to so many hosts, all is said of each.
const FEW_HOSTS: usize = 5;
/// Values that are given where there are many.
const MOST_VALUES: usize = 10;
/// Of values that have nothing in common.
const EXAMPLES: usize = 3;
/// So many numbers and times aren't summed up, nor are those of which only [`FEW_HOSTS`] are unlike the others.
const FEW_NUMBERS: usize = 3;
/// Deeper than any tool's answer; beyond it values are compared as a whole, so that the answer isn't much deeper.
const DEEPEST: usize = 24;
/// A group but for its value and the hosts' names: `{"value":,"hosts":[]},`.
pub const GROUP: usize = 22;
/// `{"$differs":[]}`
pub const DIFFERS: usize = 15;
/// `{"$examples":[],"values":10}`
pub const EXAMPLES_EMPTY: usize = 28;
/// `{"$range":[,,],"low":[],"high":[],"outliers":[],"further":10}`
pub const RANGE: usize = 62;
/// `{"$not_on":[],"$items":[]}`
pub const PART: usize = 26;

/// How something is told, and how long that is in bytes.
struct Told<'a> {
    node: Node<'a>,
    length: usize,
    /// All hosts' values one after the other.
    whole: usize,
}

struct Fold<'a> {
    names: &'a [&'a str],
    /// How much is still compared line by line.
    budget: Cell<usize>,
}

/// How the answers of the hosts with these names are told.
pub fn tell<'a>(names: &'a [&'a str], answers: &'a [Value]) -> Node<'a> {
    let here: Vec<At<'a>> = answers.iter().enumerate().map(|(host, value)| At { host, value }).collect();
    Fold { names, budget: Cell::new(text::BUDGET) }.tell(&here, 0).node
}

impl<'a> Fold<'a> {
    fn tell(&self, here: &[At<'a>], depth: usize) -> Told<'a> {
        let Some((first, rest)) = here.split_first() else {
            return Told { node: Node::Same(&Value::Null), length: 4, whole: 0 };
        };
        if rest.iter().all(|at| at.value == first.value) {
            let length = length(first.value);
            return Told { node: Node::Same(first.value), length, whole: length * here.len() };
        }
        let objects = each(here, Value::as_object);
        let lists = each(here, Value::as_array);
        match (objects, lists) {
            _ if depth == DEEPEST => self.side_by_side(here),
            (Some(objects), _) => self.shortest(here, self.members(here, &objects, depth)),
            (_, Some(lists)) => self.items(here, &lists, depth),
            _ if here.iter().any(|at| at.value.is_object() || at.value.is_array()) => {
                let kind = |value: &Value| (value.is_object(), value.is_array());
                let told = self.by_kind(here, kind, depth);
                self.shortest(here, told)
            }
            _ => self.scalars(here, depth),
        }
    }

    /// Objects, member by member.
    fn members(&self, here: &[At<'a>], objects: &[&'a Map<String, Value>], depth: usize) -> Told<'a> {
        let mut places: HashMap<&str, usize> = HashMap::new();
        let mut members: Vec<(&'a str, Vec<At<'a>>)> = Vec::new();
        for (at, object) in here.iter().zip(objects) {
            for (name, value) in *object {
                let place = *places.entry(name).or_insert_with(|| {
                    members.push((name, Vec::new()));
                    members.len() - 1
                });
                members[place].1.push(At { host: at.host, value });
            }
        }
        let all = hosts(here);
        let mut told = Told { node: Node::Same(&Value::Null), length: 2, whole: 2 * here.len() };
        let mut parts = Vec::with_capacity(members.len());
        for (name, values) in members {
            let member = self.tell(&values, depth + 1);
            let who = who(&hosts(&values), &all);
            // `"name":,`
            told.length += name.len() + 4 + member.length + self.who_length(&who);
            told.whole += (name.len() + 4) * values.len() + member.whole;
            parts.push((name, Part { node: member.node, who }));
        }
        Told { node: Node::Object { members: parts, cut: LeftOut::default() }, ..told }
    }

    /// Lists, item by item. A list stays one, whatever the hosts said.
    fn items(&self, here: &[At<'a>], lists: &[&'a Vec<Value>], depth: usize) -> Told<'a> {
        let Pairs { rows, order, reordered, paired_by_value } = items::pair(here, lists);
        let all = hosts(here);
        let (mut parts, mut whole) = (Vec::with_capacity(order.len()), 2 * here.len());
        let mut lengths = Vec::with_capacity(order.len());
        for row in order.into_iter().map(|row| &rows[row]) {
            let item = self.tell(row, depth + 1);
            whole += item.whole + row.len();
            lengths.push(item.length + 1);
            parts.push(Part { node: item.node, who: who(&hosts(row), &all) });
        }
        let length = 2
            + lengths.iter().sum::<usize>()
            + runs(&parts).map(|run| self.who_length(&run[0].who)).sum::<usize>();

        // Lines in another order say something else, and where they are the same ones it is all that they say.
        let order_matters = reordered && paired_by_value;
        let same_items = || rows.iter().all(|row| row.len() == here.len());
        if self.whole_length(here, whole) < length
            || order_matters
                && (here.len() <= FEW_HOSTS || same_items() && distinct(here).len() <= MOST_VALUES)
        {
            return self.lists_side_by_side(here, whole);
        }
        Told { node: Node::List { items: parts, reordered, cut: LeftOut::default() }, length, whole }
    }

    /// Each list as it is, as items that only its hosts have.
    fn lists_side_by_side(&self, here: &[At<'a>], whole: usize) -> Told<'a> {
        let all = hosts(here);
        let (mut items, mut length) = (Vec::new(), 2);
        for (list, hosts) in distinct(here) {
            let who = who(&hosts, &all);
            length += self::length(list) + self.who_length(&who);
            let list = list.as_array().map(Vec::as_slice).unwrap_or_default();
            items.extend(list.iter().map(|item| Part { node: Node::Same(item), who: who.clone() }));
        }
        Told { node: Node::List { items, reordered: false, cut: LeftOut::default() }, length, whole }
    }

    /// Values that can't be compared with each other, each kind by itself.
    fn by_kind<K: PartialEq>(&self, here: &[At<'a>], kind: impl Fn(&Value) -> K, depth: usize) -> Told<'a> {
        let mut kinds: Vec<(K, Vec<At<'a>>)> = Vec::new();
        for at in here {
            let kind = kind(at.value);
            match kinds.iter_mut().find(|(known, _)| *known == kind) {
                Some((_, found)) => found.push(*at),
                None => kinds.push((kind, vec![*at])),
            }
        }
        let (mut found, mut whole) = (Vec::new(), 0);
        for (_, here) in kinds {
            let told = self.tell(&here, depth + 1);
            whole += told.whole;
            found.push(Found { said: Said::Value(told.node), hosts: hosts(&here), length: told.length });
        }
        self.differs(found, whole)
    }

    /// Texts, numbers, booleans and null.
    fn scalars(&self, here: &[At<'a>], depth: usize) -> Told<'a> {
        let whole = here.iter().map(|at| length(at.value)).sum();
        let values = distinct(here);
        let most = values.iter().map(|(_, hosts)| hosts.len()).max().unwrap_or_default();
        let is_few = here.len() <= FEW_HOSTS;
        if !is_few
            && values.len() > FEW_NUMBERS
            && here.len() - most > FEW_HOSTS
            && let Some(range) = range::range(here)
        {
            return self.range(range, whole);
        }
        let mut found = if is_few { as_values(values) } else { self.with_own_names(values) };
        let is_many = !is_few && found.len() > MOST_VALUES;
        if text::as_diffs(&mut found, is_many, &self.budget) || !is_many {
            return self.differs(found, whole);
        }
        let numbers = here.iter().filter(|at| at.value.is_number()).count();
        if numbers > 0 && numbers < here.len() {
            return self.by_kind(here, Value::is_number, depth);
        }
        found.sort_by_key(|found| found.hosts.len());
        match found.pop_if(|last| last.hosts.len() * 2 > here.len()) {
            Some(common) => self.outliers(found, common, whole),
            None => self.examples(found, whole),
        }
    }

    fn range(&self, range: Range<'a>, whole: usize) -> Told<'a> {
        let outliers = range.outliers.iter();
        let outliers = outliers.map(|(value, hosts)| GROUP + length(value) + self.names_length(hosts));
        let length = RANGE
            + range.ends.iter().map(length).sum::<usize>()
            + self.names_length(&range.low)
            + self.names_length(&range.high)
            + outliers.sum::<usize>();
        Told { node: Node::Range(range), length, whole }
    }

    /// Each value with its hosts.
    fn differs(&self, found: Vec<Found<'a>>, whole: usize) -> Told<'a> {
        let said = found.iter().map(|found| found.length).sum::<usize>();
        let groups = groups(found);
        let length = DIFFERS + said + self.groups_length(&groups);
        Told { node: Node::Differs(groups), length, whole }
    }

    /// What is unlike most hosts', which all are named, and then that.
    fn outliers(&self, mut found: Vec<Found<'a>>, common: Found<'a>, whole: usize) -> Told<'a> {
        if found.len() > MOST_VALUES {
            let further = found.split_off(MOST_VALUES);
            let said = Said::Further(further.len());
            let mut hosts: Vec<Host> = further.into_iter().flat_map(|found| found.hosts).collect();
            hosts.sort_unstable();
            found.push(Found { said, hosts, length: 8 });
        }
        found.push(common);
        self.differs(found, whole)
    }

    /// The most common values, of many.
    fn examples(&self, mut found: Vec<Found<'a>>, whole: usize) -> Told<'a> {
        let values = found.len();
        found.sort_by_key(|found| Reverse(found.hosts.len()));
        found.truncate(EXAMPLES);
        let said = found.iter().map(|found| found.length).sum::<usize>();
        let some: Vec<Group<'a>> = found.into_iter().map(Found::short).collect();
        let length = EXAMPLES_EMPTY + said + self.groups_length(&some);
        Told { node: Node::Examples { some, values }, length, whole }
    }

    /// Each host's value with its name, where that is shorter.
    fn shortest(&self, here: &[At<'a>], told: Told<'a>) -> Told<'a> {
        if self.whole_length(here, told.whole) < told.length { self.side_by_side(here) } else { told }
    }

    /// Each value as a whole.
    fn side_by_side(&self, here: &[At<'a>]) -> Told<'a> {
        let whole = here.iter().map(|at| length(at.value)).sum();
        self.differs(as_values(distinct(here)), whole)
    }

    /// The hosts that say their own names, as a hostname may be, say the same.
    fn with_own_names(&self, values: Vec<ValueOn<'a>>) -> Vec<Found<'a>> {
        let is_own = |value: &Value, host: Host| value.as_str() == Some(self.names[host]);
        let mut own: Vec<Host> = Vec::new();
        for (value, hosts) in &values {
            own.extend(hosts.iter().filter(|host| is_own(value, **host)));
        }
        if own.len() < 2 || values.iter().any(|(value, _)| value.as_str() == Some(OWN_NAME)) {
            return as_values(values);
        }
        own.sort_unstable();
        let others = values.into_iter().map(|(value, mut hosts)| {
            hosts.retain(|host| !is_own(value, *host));
            (value, hosts)
        });
        let mut found = as_values(others.filter(|(_, hosts)| !hosts.is_empty()).collect());
        found.push(Found { said: Said::OwnName, hosts: own, length: OWN_NAME.len() + 2 });
        found
    }

    /// Of all hosts' values, each with its host.
    fn whole_length(&self, here: &[At<'a>], whole: usize) -> usize {
        whole + here.iter().map(|at| GROUP + self.names[at.host].len() + 3).sum::<usize>()
    }

    fn who_length(&self, who: &Who) -> usize {
        match who {
            Who::All => 0,
            Who::On(hosts) | Who::NotOn(hosts) => PART + self.names_length(hosts),
        }
    }

    /// But for what they say.
    fn groups_length(&self, groups: &[Group<'_>]) -> usize {
        let names = |group: &Group<'_>| match &group.hosts {
            Hosts::Named(hosts) => self.names_length(hosts),
            Hosts::Counted(_) => 0,
        };
        groups.iter().map(|group| GROUP + names(group)).sum()
    }

    fn names_length(&self, hosts: &[Host]) -> usize {
        hosts.iter().map(|host| self.names[*host].len() + 3).sum()
    }
}

fn as_values<'a>(values: Vec<ValueOn<'a>>) -> Vec<Found<'a>> {
    let found = |(value, hosts)| Found { said: Said::Value(Node::Same(value)), hosts, length: length(value) };
    values.into_iter().map(found).collect()
}

/// Different values in the order in which they are found, with their hosts.
fn distinct<'a>(here: &[At<'a>]) -> Vec<ValueOn<'a>> {
    let mut places: HashMap<&Value, usize> = HashMap::new();
    let mut found: Vec<ValueOn<'a>> = Vec::new();
    for at in here {
        let place = *places.entry(at.value).or_insert(found.len());
        match found.get_mut(place) {
            Some((_, hosts)) => hosts.push(at.host),
            None => found.push((at.value, vec![at.host])),
        }
    }
    found
}

fn hosts(here: &[At<'_>]) -> Vec<Host> {
    here.iter().map(|at| at.host).collect()
}

/// Every value as what it has to be, or none.
fn each<'a, T: ?Sized>(here: &[At<'a>], as_kind: impl Fn(&'a Value) -> Option<&'a T>) -> Option<Vec<&'a T>> {
    here.iter().map(|at| as_kind(at.value)).collect()
}
