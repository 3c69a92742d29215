//! What folding comes to before it is written: a tree of what is said in each place, and of whom.

use std::io;

use serde::Serialize;
use serde_json::Value;

/// The number of a host: its place among the answers.
pub type Host = usize;

/// A value, and who has it.
pub type ValueOn<'a> = (&'a Value, Vec<Host>);

/// So few hosts are always named.
pub const NAMED: usize = 3;

/// What stands for the host's own name.
pub const OWN_NAME: &str = "$host";

/// What is said in one place of the answer.
pub enum Node<'a> {
    /// Equal on all hosts.
    Same(&'a Value),
    /// Member by member.
    Object {
        /// In order.
        members: Vec<(&'a str, Part<'a>)>,
        /// What there was no room for.
        cut: LeftOut,
    },
    /// Item by item.
    List {
        /// In order.
        items: Vec<Part<'a>>,
        /// Whether that is not every host's order.
        reordered: bool,
        /// What there was no room for.
        cut: LeftOut,
    },
    /// Values with their hosts.
    Differs(Vec<Group<'a>>),
    /// Numbers or times, in short.
    Range(Range<'a>),
    /// Some of many values.
    Examples {
        /// Which.
        some: Vec<Group<'a>>,
        /// How many there are.
        values: usize,
    },
    /// Of a text that there was no room for, so many characters.
    Text(&'a str, usize),
    /// So many bytes that there was no room for.
    Gone(usize),
}

/// Items of a list or members of an object that there was no room for.
#[derive(Default)]
pub struct LeftOut {
    /// How many.
    pub count: usize,
    /// Hosts of which nothing is left here.
    pub nothing_of: Vec<Host>,
}

/// Something that maybe not all hosts have.
pub struct Part<'a> {
    /// What it is.
    pub node: Node<'a>,
    /// Who has it.
    pub who: Who,
}

/// Which hosts of those that it is about.
#[derive(Clone, PartialEq, Eq)]
pub enum Who {
    /// Every one.
    All,
    /// These.
    On(Vec<Host>),
    /// All but these.
    NotOn(Vec<Host>),
}

/// What some hosts have in common.
pub struct Group<'a> {
    /// What they said.
    pub said: Said<'a>,
    /// Who they are.
    pub hosts: Hosts,
}

/// What a group of hosts said.
pub enum Said<'a> {
    /// This.
    Value(Node<'a>),
    /// A text, as a unified diff from the last group's.
    Diff(String),
    /// The host's own name.
    OwnName,
    /// As many other values.
    Further(usize),
}

/// Hosts by name, or how many.
pub enum Hosts {
    /// Named.
    Named(Vec<Host>),
    /// Only counted.
    Counted(usize),
}

/// The ends of numbers or times.
pub struct Range<'a> {
    /// The least, the middle and the greatest.
    pub ends: [&'a Value; 3],
    /// Who has the least, where they are few.
    pub low: Vec<Host>,
    /// Who has the greatest, where they are few.
    pub high: Vec<Host>,
    /// Other values that stand out, with their hosts.
    pub outliers: Vec<ValueOn<'a>>,
    /// Hosts that stand out as well.
    pub further: usize,
}

/// Who of `all` is in `have`. Both are in order.
pub fn who(have: &[Host], all: &[Host]) -> Who {
    if have.len() == all.len() {
        return Who::All;
    }
    // Few have most of what is unlike: that mustn't take as long as looking at all hosts for each of it.
    if have.len() <= all.len() - have.len() {
        return Who::On(have.to_vec());
    }
    let mut having = have.iter().peekable();
    Who::NotOn(all.iter().copied().filter(|host| having.next_if(|next| *next == host).is_none()).collect())
}

/// What was found to be said, by whom.
pub struct Found<'a> {
    /// What.
    pub said: Said<'a>,
    /// By whom; each of them only once in a place.
    pub hosts: Vec<Host>,
    /// Of what was said, in bytes.
    pub length: usize,
}

impl<'a> Found<'a> {
    /// With their names, all of them.
    fn named(self) -> Group<'a> {
        Group { said: self.said, hosts: Hosts::Named(self.hosts) }
    }

    /// With their names where they are few.
    pub fn short(self) -> Group<'a> {
        let hosts = self.hosts.len();
        if hosts > NAMED { Group { said: self.said, hosts: Hosts::Counted(hosts) } } else { self.named() }
    }
}

/// The rarest first. Who isn't named has the last one.
pub fn groups(mut found: Vec<Found<'_>>) -> Vec<Group<'_>> {
    found.sort_by_key(|found| found.hosts.len());
    let common = found.pop();
    found.into_iter().map(Found::named).chain(common.map(Found::short)).collect()
}

/// Items in a row that the same hosts have: who that is, is said once.
pub fn runs<'r, 'a>(items: &'r [Part<'a>]) -> impl Iterator<Item = &'r [Part<'a>]> {
    items.chunk_by(|a, b| a.who == b.who)
}

/// What one host said in this place.
#[derive(Clone, Copy)]
pub struct At<'a> {
    /// Which.
    pub host: Host,
    /// What.
    pub value: &'a Value,
}

/// As compact JSON, in bytes.
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
    // It can't fail: no key is anything but text, and counting takes everything.
    let _ = serde_json::to_writer(&mut count, value);
    count.0
}
