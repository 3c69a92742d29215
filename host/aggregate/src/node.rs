//! The folded answer before it is written: a tree of values and of the hosts that have them.

use std::io;

use serde::Serialize;
use serde_json::Value;

/// A host, by its index among the answers.
pub type Host = usize;

/// A value, and the hosts that have it.
pub type ValueOn<'a> = (&'a Value, Vec<Host>);

/// The number of hosts up to which they are always named and not only counted.
pub const ALWAYS_NAMED: usize = 3;

/// The text that stands for the host's own name.
pub const OWN_NAME: &str = "$host";

/// The value at one place of the answer.
pub enum Node<'a> {
    /// A value that is equal on all hosts.
    Same(&'a Value),
    /// An object, folded member by member.
    Object {
        /// The members in order.
        members: Vec<(&'a str, Part<'a>)>,
        /// The members that were left out for their size.
        cut: Omission,
    },
    /// A list, folded item by item.
    List {
        /// The items in order.
        items: Vec<Part<'a>>,
        /// Whether some host has another order.
        reordered: bool,
        /// The items that were left out for their size.
        cut: Omission,
    },
    /// Values with their hosts.
    Differs(Vec<Group<'a>>),
    /// The summary of numbers or times.
    Range(Range<'a>),
    /// Examples of many values.
    Examples {
        /// The values that are given.
        some: Vec<Group<'a>>,
        /// The number of all values.
        values: usize,
    },
    /// The beginning of a text: at most this number of characters.
    Text(&'a str, usize),
    /// A value of this number of bytes that was left out for its size.
    Gone(usize),
}

/// The items of a list or members of an object that were left out for their size.
#[derive(Default)]
pub struct Omission {
    /// The number of items or members.
    pub count: usize,
    /// The hosts of which nothing is left here.
    pub nothing_of: Vec<Host>,
}

/// A member or an item, which some hosts may lack.
pub struct Part<'a> {
    /// The value.
    pub node: Node<'a>,
    /// The hosts that have it.
    pub who: HostSet,
}

/// A set of hosts, within those that have the enclosing value.
#[derive(Clone, PartialEq, Eq)]
pub enum HostSet {
    /// All of them.
    All,
    /// These hosts and no others.
    On(Vec<Host>),
    /// All except these.
    NotOn(Vec<Host>),
}

/// A group of hosts with the same value.
pub struct Group<'a> {
    /// The value of these hosts.
    pub content: Content<'a>,
    /// The hosts.
    pub hosts: HostList,
}

/// The value of a group of hosts.
pub enum Content<'a> {
    /// The value itself.
    Value(Node<'a>),
    /// A text, as a unified diff from the last group's text.
    Diff(String),
    /// The host's own name.
    OwnName,
    /// A number of further values.
    Further(usize),
}

/// The hosts of a group.
pub enum HostList {
    /// Hosts that are named.
    Named(Vec<Host>),
    /// Hosts that are only counted.
    Counted(usize),
}

/// The summary of numbers or times.
pub struct Range<'a> {
    /// The least, the middle and the greatest value.
    pub ends: [&'a Value; 3],
    /// The hosts with the least value, where they are few.
    pub low: Vec<Host>,
    /// The hosts with the greatest value, where they are few.
    pub high: Vec<Host>,
    /// The other values that stand out, with their hosts.
    pub outliers: Vec<ValueOn<'a>>,
    /// The number of further hosts that stand out.
    pub further: usize,
}

/// Describes the hosts in `have` as a part of `all`. Both are in order.
pub fn host_set(have: &[Host], all: &[Host]) -> HostSet {
    if have.len() == all.len() {
        return HostSet::All;
    }
    // Most values that differ belong to few hosts, so this case must not take a look at all hosts.
    if have.len() <= all.len() - have.len() {
        return HostSet::On(have.to_vec());
    }
    let mut having = have.iter().peekable();
    HostSet::NotOn(
        all.iter().copied().filter(|host| having.next_if(|next| *next == host).is_none()).collect(),
    )
}

/// A group of hosts with the same value, and the length of that value.
pub struct SizedGroup<'a> {
    /// The value of these hosts.
    pub content: Content<'a>,
    /// The hosts. Each host is in one group only.
    pub hosts: Vec<Host>,
    /// The length of the value in bytes.
    pub length: usize,
}

impl<'a> SizedGroup<'a> {
    /// The group with all its hosts named.
    fn named(self) -> Group<'a> {
        Group { content: self.content, hosts: HostList::Named(self.hosts) }
    }

    /// The group with its hosts named where they are few, and counted otherwise.
    pub fn short(self) -> Group<'a> {
        let hosts = self.hosts.len();
        if hosts > ALWAYS_NAMED {
            Group { content: self.content, hosts: HostList::Counted(hosts) }
        } else {
            self.named()
        }
    }
}

/// Sorts the groups, the rarest value first. The hosts that aren't named are those of the last group.
pub fn groups(mut found: Vec<SizedGroup<'_>>) -> Vec<Group<'_>> {
    found.sort_by_key(|found| found.hosts.len());
    let common = found.pop();
    found.into_iter().map(SizedGroup::named).chain(common.map(SizedGroup::short)).collect()
}

/// Splits items into runs that the same hosts have. The hosts are written once for a run.
pub fn runs<'r, 'a>(items: &'r [Part<'a>]) -> impl Iterator<Item = &'r [Part<'a>]> {
    items.chunk_by(|a, b| a.who == b.who)
}

/// The value of one host at the place that is compared.
#[derive(Clone, Copy)]
pub struct HostValue<'a> {
    /// The host.
    pub host: Host,
    /// The host's value.
    pub value: &'a Value,
}

/// The length of a value as compact JSON, in bytes.
pub fn length(value: &impl Serialize) -> usize {
    struct Count(usize);
    impl io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    // This can't fail: every key is text, and the counter accepts every write.
    let _ = serde_json::to_writer(&mut count, value);
    count.0
}
