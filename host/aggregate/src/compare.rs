//! Compares the values of hosts at one place, and decides in which form they are given.

use std::cell::Cell;
use std::cmp::Reverse;
use std::collections::HashMap;

use serde_json::{Map, Value};

use super::node::{
    Content, Group, Host, HostList, HostSet, HostValue, Node, OWN_NAME, Omission, Part, Range, SizedGroup,
    ValueOn, groups, host_set, length, runs,
};
use super::pairing::{self, PairedItems};
use super::{range, text_diff};

/// The number of hosts up to which every value is given.
const FEW_HOSTS: usize = 5;
/// The number of values that are given where there are many.
const MAX_VALUES: usize = 10;
/// The number of examples that are given where no value is common.
const MAX_EXAMPLES: usize = 3;
/// The number of hosts up to which different numbers and times aren't summed up, nor where at most [`FEW_HOSTS`] differ
/// from the others.
const FEW_NUMBERS: usize = 3;
/// The greatest depth to which values are folded, deeper than any tool's answer. Below it, values are compared as a whole.
const MAX_DEPTH: usize = 24;
/// The size of a group without its value and the hosts' names: `{"value":,"hosts":[]},`.
pub const GROUP_SIZE: usize = 22;
/// The size of `{"$differs":[]}`.
pub const DIFFERS_SIZE: usize = 15;
/// The size of `{"$examples":[],"values":10}`.
pub const EXAMPLES_SIZE: usize = 28;
/// The size of `{"$range":[,,],"low":[],"high":[],"outliers":[],"further":10}`.
pub const RANGE_SIZE: usize = 62;
/// The size of `{"$not_on":[],"$items":[]}`.
pub const PART_SIZE: usize = 26;

/// A node, and its length in bytes.
struct SizedNode<'a> {
    node: Node<'a>,
    length: usize,
    /// The length of all hosts' values one after the other.
    whole: usize,
}

struct Comparison<'a> {
    names: &'a [&'a str],
    /// The number of comparisons of lines that are left.
    budget: Cell<usize>,
}

/// Folds the answers of the hosts with these names.
pub fn compare<'a>(names: &'a [&'a str], answers: &'a [Value]) -> Node<'a> {
    let here: Vec<HostValue<'a>> =
        answers.iter().enumerate().map(|(host, value)| HostValue { host, value }).collect();
    Comparison { names, budget: Cell::new(text_diff::BUDGET) }.compare(&here, 0).node
}

impl<'a> Comparison<'a> {
    fn compare(&self, here: &[HostValue<'a>], depth: usize) -> SizedNode<'a> {
        let Some((first, rest)) = here.split_first() else {
            return SizedNode { node: Node::Same(&Value::Null), length: 4, whole: 0 };
        };
        if rest.iter().all(|at| at.value == first.value) {
            let length = length(first.value);
            return SizedNode { node: Node::Same(first.value), length, whole: length * here.len() };
        }
        let objects = each(here, Value::as_object);
        let lists = each(here, Value::as_array);
        match (objects, lists) {
            _ if depth == MAX_DEPTH => self.side_by_side(here),
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

    /// Folds objects member by member.
    fn members(
        &self,
        here: &[HostValue<'a>],
        objects: &[&'a Map<String, Value>],
        depth: usize,
    ) -> SizedNode<'a> {
        let mut places: HashMap<&str, usize> = HashMap::new();
        let mut members: Vec<(&'a str, Vec<HostValue<'a>>)> = Vec::new();
        for (at, object) in here.iter().zip(objects) {
            for (name, value) in *object {
                let place = *places.entry(name).or_insert_with(|| {
                    members.push((name, Vec::new()));
                    members.len() - 1
                });
                members[place].1.push(HostValue { host: at.host, value });
            }
        }
        let all = hosts(here);
        let mut told = SizedNode { node: Node::Same(&Value::Null), length: 2, whole: 2 * here.len() };
        let mut parts = Vec::with_capacity(members.len());
        for (name, values) in members {
            let member = self.compare(&values, depth + 1);
            let who = host_set(&hosts(&values), &all);
            // `"name":,`
            told.length += name.len() + 4 + member.length + self.who_length(&who);
            told.whole += (name.len() + 4) * values.len() + member.whole;
            parts.push((name, Part { node: member.node, who }));
        }
        SizedNode { node: Node::Object { members: parts, cut: Omission::default() }, ..told }
    }

    /// Folds lists item by item. The result is always a list.
    fn items(&self, here: &[HostValue<'a>], lists: &[&'a Vec<Value>], depth: usize) -> SizedNode<'a> {
        let PairedItems { rows, order, reordered, paired_by_value } = pairing::pair(here, lists);
        let all = hosts(here);
        let (mut parts, mut whole) = (Vec::with_capacity(order.len()), 2 * here.len());
        let mut lengths = Vec::with_capacity(order.len());
        for row in order.into_iter().map(|row| &rows[row]) {
            let item = self.compare(row, depth + 1);
            whole += item.whole + row.len();
            lengths.push(item.length + 1);
            parts.push(Part { node: item.node, who: host_set(&hosts(row), &all) });
        }
        let length = 2
            + lengths.iter().sum::<usize>()
            + runs(&parts).map(|run| self.who_length(&run[0].who)).sum::<usize>();

        // The order of lines can matter. Where the lines are the same, the order is all that differs.
        let order_matters = reordered && paired_by_value;
        let same_items = || rows.iter().all(|row| row.len() == here.len());
        if self.whole_length(here, whole) < length
            || order_matters
                && (here.len() <= FEW_HOSTS || same_items() && distinct(here).len() <= MAX_VALUES)
        {
            return self.lists_side_by_side(here, whole);
        }
        SizedNode { node: Node::List { items: parts, reordered, cut: Omission::default() }, length, whole }
    }

    /// Gives each list as it is, as items that only its hosts have.
    fn lists_side_by_side(&self, here: &[HostValue<'a>], whole: usize) -> SizedNode<'a> {
        let all = hosts(here);
        let (mut items, mut length) = (Vec::new(), 2);
        for (list, hosts) in distinct(here) {
            let who = host_set(&hosts, &all);
            length += self::length(list) + self.who_length(&who);
            let list = list.as_array().map(Vec::as_slice).unwrap_or_default();
            items.extend(list.iter().map(|item| Part { node: Node::Same(item), who: who.clone() }));
        }
        SizedNode { node: Node::List { items, reordered: false, cut: Omission::default() }, length, whole }
    }

    /// Folds values that can't be compared with each other, each kind by itself.
    fn by_kind<K: PartialEq>(
        &self,
        here: &[HostValue<'a>],
        kind: impl Fn(&Value) -> K,
        depth: usize,
    ) -> SizedNode<'a> {
        let mut kinds: Vec<(K, Vec<HostValue<'a>>)> = Vec::new();
        for at in here {
            let kind = kind(at.value);
            match kinds.iter_mut().find(|(known, _)| *known == kind) {
                Some((_, found)) => found.push(*at),
                None => kinds.push((kind, vec![*at])),
            }
        }
        let (mut found, mut whole) = (Vec::new(), 0);
        for (_, here) in kinds {
            let told = self.compare(&here, depth + 1);
            whole += told.whole;
            found.push(SizedGroup {
                content: Content::Value(told.node),
                hosts: hosts(&here),
                length: told.length,
            });
        }
        self.differs(found, whole)
    }

    /// Folds texts, numbers, booleans and null.
    fn scalars(&self, here: &[HostValue<'a>], depth: usize) -> SizedNode<'a> {
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
        let is_many = !is_few && found.len() > MAX_VALUES;
        if text_diff::as_diffs(&mut found, is_many, &self.budget) || !is_many {
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

    fn range(&self, range: Range<'a>, whole: usize) -> SizedNode<'a> {
        let outliers = range.outliers.iter();
        let outliers = outliers.map(|(value, hosts)| GROUP_SIZE + length(value) + self.names_length(hosts));
        let length = RANGE_SIZE
            + range.ends.iter().map(length).sum::<usize>()
            + self.names_length(&range.low)
            + self.names_length(&range.high)
            + outliers.sum::<usize>();
        SizedNode { node: Node::Range(range), length, whole }
    }

    /// Gives each value with its hosts.
    fn differs(&self, found: Vec<SizedGroup<'a>>, whole: usize) -> SizedNode<'a> {
        let content_length = found.iter().map(|found| found.length).sum::<usize>();
        let groups = groups(found);
        let length = DIFFERS_SIZE + content_length + self.groups_length(&groups);
        SizedNode { node: Node::Differs(groups), length, whole }
    }

    /// Gives the values that differ from the common one, with the names of all their hosts, and then the common one.
    fn outliers(
        &self,
        mut found: Vec<SizedGroup<'a>>,
        common: SizedGroup<'a>,
        whole: usize,
    ) -> SizedNode<'a> {
        if found.len() > MAX_VALUES {
            let further = found.split_off(MAX_VALUES);
            let content = Content::Further(further.len());
            let mut hosts: Vec<Host> = further.into_iter().flat_map(|found| found.hosts).collect();
            hosts.sort_unstable();
            found.push(SizedGroup { content, hosts, length: 8 });
        }
        found.push(common);
        self.differs(found, whole)
    }

    /// Gives the most common of many values as examples.
    fn examples(&self, mut found: Vec<SizedGroup<'a>>, whole: usize) -> SizedNode<'a> {
        let values = found.len();
        found.sort_by_key(|found| Reverse(found.hosts.len()));
        found.truncate(MAX_EXAMPLES);
        let content_length = found.iter().map(|found| found.length).sum::<usize>();
        let some: Vec<Group<'a>> = found.into_iter().map(SizedGroup::short).collect();
        let length = EXAMPLES_SIZE + content_length + self.groups_length(&some);
        SizedNode { node: Node::Examples { some, values }, length, whole }
    }

    /// Gives each value as a whole where that is shorter than the folded form.
    fn shortest(&self, here: &[HostValue<'a>], told: SizedNode<'a>) -> SizedNode<'a> {
        if self.whole_length(here, told.whole) < told.length { self.side_by_side(here) } else { told }
    }

    /// Gives each value as a whole, with its hosts.
    fn side_by_side(&self, here: &[HostValue<'a>]) -> SizedNode<'a> {
        let whole = here.iter().map(|at| length(at.value)).sum();
        self.differs(as_values(distinct(here)), whole)
    }

    /// Groups the values, and treats hosts that each give their own name, as a hostname may be, as one group.
    fn with_own_names(&self, values: Vec<ValueOn<'a>>) -> Vec<SizedGroup<'a>> {
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
        found.push(SizedGroup { content: Content::OwnName, hosts: own, length: OWN_NAME.len() + 2 });
        found
    }

    /// The length of all hosts' values, each with the name of its host.
    fn whole_length(&self, here: &[HostValue<'a>], whole: usize) -> usize {
        whole + here.iter().map(|at| GROUP_SIZE + self.names[at.host].len() + 3).sum::<usize>()
    }

    fn who_length(&self, who: &HostSet) -> usize {
        match who {
            HostSet::All => 0,
            HostSet::On(hosts) | HostSet::NotOn(hosts) => PART_SIZE + self.names_length(hosts),
        }
    }

    /// The length of the groups without their values.
    fn groups_length(&self, groups: &[Group<'_>]) -> usize {
        let names = |group: &Group<'_>| match &group.hosts {
            HostList::Named(hosts) => self.names_length(hosts),
            HostList::Counted(_) => 0,
        };
        groups.iter().map(|group| GROUP_SIZE + names(group)).sum()
    }

    fn names_length(&self, hosts: &[Host]) -> usize {
        hosts.iter().map(|host| self.names[*host].len() + 3).sum()
    }
}

fn as_values<'a>(values: Vec<ValueOn<'a>>) -> Vec<SizedGroup<'a>> {
    let found = |(value, hosts)| SizedGroup {
        content: Content::Value(Node::Same(value)),
        hosts,
        length: length(value),
    };
    values.into_iter().map(found).collect()
}

/// The different values with their hosts, in the order in which they occur.
fn distinct<'a>(here: &[HostValue<'a>]) -> Vec<ValueOn<'a>> {
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

fn hosts(here: &[HostValue<'_>]) -> Vec<Host> {
    here.iter().map(|at| at.host).collect()
}

/// All values as one kind; none where a value is of another kind.
fn each<'a, T: ?Sized>(
    here: &[HostValue<'a>],
    as_kind: impl Fn(&'a Value) -> Option<&'a T>,
) -> Option<Vec<&'a T>> {
    here.iter().map(|at| as_kind(at.value)).collect()
}
