//! Cuts what was found to what an answer may hold, whatever hosts said.
//!
//! What is short stays whole, and what is long shares the room that is left: no host and no member is left out for the
//! length of another one. Of lists the tails go first, those of the longest before others.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::compare::{DIFFERS, EXAMPLES_EMPTY, GROUP, PART, RANGE};
use super::node::length;
use super::node::{Found, Group, Host, Hosts, LeftOut, NAMED, Node, OWN_NAME, Part, Said, Who};
use host_text::visible::excerpt;

/// An item isn't cut to less than this, as half of it says little: rather fewer are given.
const LEAST_OF_ITEM: usize = 4 << 10;
/// Nor is anything else.
const LEAST: usize = 256;
/// `,{"$cut":{"count":…,"hosts":[…]}}` but for the names, and what stands behind a text that is cut.
const MARK: usize = 64;
/// `{"$10":}` of a set of hosts that has a label.
const LABEL: usize = 12;

/// To about so many bytes of JSON: how a node is written isn't known to the byte.
pub fn within<'a>(node: Node<'a>, names: &[&str], room: usize) -> Node<'a> {
    Cut { names }.within(node, room)
}

/// About how long it is as JSON.
pub fn size(node: &Node<'_>, names: &[&str]) -> usize {
    Cut { names }.size(node)
}

struct Cut<'n> {
    names: &'n [&'n str],
}

impl Cut<'_> {
    fn within<'a>(&self, node: Node<'a>, room: usize) -> Node<'a> {
        let size = self.size(&node);
        if size <= room {
            return node;
        }
        if room < MARK {
            return Node::Gone(size);
        }
        match node {
            Node::Same(Value::String(text)) => Node::Text(text, characters(text, room - MARK)),
            Node::Text(text, _) => Node::Text(text, characters(text, room - MARK)),
            Node::Same(Value::Object(members)) => {
                let members = members.iter().map(|(name, value)| (name.as_str(), of_all(value))).collect();
                self.object(members, LeftOut::default(), room)
            }
            Node::Same(Value::Array(items)) => {
                self.list(items.iter().map(of_all).collect(), false, LeftOut::default(), room)
            }
            Node::Object { members, cut } => self.object(members, cut, room),
            Node::List { items, reordered, cut } => self.list(items, reordered, cut, room),
            Node::Differs(groups) => self.differs(groups, size, room),
            Node::Examples { some, values } => {
                let (some, _) = self.groups(some, room.saturating_sub(EXAMPLES_EMPTY));
                Node::Examples { some, values }
            }
            Node::Same(_) | Node::Range(_) | Node::Gone(_) => Node::Gone(size),
        }
    }

    fn object<'a>(&self, members: Vec<(&'a str, Part<'a>)>, cut: LeftOut, room: usize) -> Node<'a> {
        let (names, parts): (Vec<&str>, Vec<Part<'a>>) = members.into_iter().unzip();
        let own = |at: usize, part: &Part<'_>| name_size(names[at]) + self.who_size(&part.who);
        let own: Vec<usize> = parts.iter().enumerate().map(|(at, part)| own(at, part)).collect();
        let (parts, cut) = self.parts(parts, &own, LEAST, cut, room);
        Node::Object { members: parts.into_iter().map(|(at, part)| (names[at], part)).collect(), cut }
    }

    fn list<'a>(&self, items: Vec<Part<'a>>, reordered: bool, cut: LeftOut, room: usize) -> Node<'a> {
        // Who it is, is said once for items in a row. Some may be left out between them, but not within such a row: what
        // of it goes is its end.
        let own = |at: usize| match at > 0 && items[at - 1].who == items[at].who {
            true => 1,
            false => 1 + self.who_size(&items[at].who),
        };
        let own: Vec<usize> = (0..items.len()).map(own).collect();
        let (parts, cut) = self.parts(items, &own, LEAST_OF_ITEM, cut, room);
        Node::List { items: parts.into_iter().map(|(_, part)| part).collect(), reordered, cut }
    }

    /// As many as there is room for, each with its number: of each host as many as of the others, from the first on.
    /// `own` is what a part takes besides what is said in it.
    fn parts<'a>(
        &self,
        parts: Vec<Part<'a>>,
        own: &[usize],
        least: usize,
        mut cut: LeftOut,
        room: usize,
    ) -> (Vec<(usize, Part<'a>)>, LeftOut) {
        let room = room.saturating_sub(self.mark_room());
        let sizes: Vec<usize> = parts.iter().map(|part| self.size(&part.node)).collect();
        let ranks = ranks(&parts);
        let costs: Vec<usize> = own.iter().zip(&sizes).map(|(own, size)| own + least.min(*size)).collect();
        let cost = |most: usize| -> usize {
            costs.iter().zip(&ranks).filter(|(_, rank)| **rank < most).map(|(cost, _)| cost).sum()
        };
        let (mut most, mut too_many) = (0, ranks.iter().max().map_or(0, |last| last + 1) + 1);
        while most + 1 < too_many {
            let middle = most.midpoint(too_many);
            if cost(middle) <= room { most = middle } else { too_many = middle }
        }
        // Of the next ones those that still fit, in order: where not even the first of each host does, it's some hosts'.
        let mut left = room - cost(most);
        let mut is_full = false;
        let mut is_kept = |at: usize| {
            if ranks[at] == most && !is_full {
                is_full = costs[at] > left;
                left = left.saturating_sub(costs[at]);
                return !is_full;
            }
            ranks[at] < most
        };
        let kept: Vec<bool> = (0..parts.len()).map(&mut is_kept).collect();
        let is_kept = |at: &usize| kept[*at];
        let said: Vec<usize> = (0..parts.len()).filter(is_kept).map(|at| sizes[at]).collect();
        let owned: usize = (0..parts.len()).filter(is_kept).map(|at| own[at]).sum();
        let share = share(&said, room.saturating_sub(owned));

        cut.count += parts.len() - said.len();
        cut.nothing_of.extend(nothing_of(&parts, &kept));
        cut.nothing_of.sort_unstable();
        cut.nothing_of.dedup();
        let parts = parts.into_iter().enumerate().filter(|(at, _)| kept[*at]);
        let parts = parts.map(|(at, part)| (at, Part { node: self.within(part.node, share), who: part.who }));
        (parts.collect(), cut)
    }

    /// The last one is what all have who aren't named, so it is the last to go. What goes is counted.
    fn differs<'a>(&self, mut groups: Vec<Group<'a>>, size: usize, room: usize) -> Node<'a> {
        let room = room.saturating_sub(DIFFERS + self.mark_room());
        groups.rotate_right(1);
        let (mut kept, gone) = self.groups(groups, room);
        if kept.is_empty() {
            return Node::Gone(size);
        }
        kept.rotate_left(1);
        if !gone.is_empty() {
            let values = gone.iter().map(|group| if let Said::Further(more) = group.said { more } else { 1 });
            let values = values.sum();
            let mut hosts: Vec<Host> = Vec::new();
            for group in &gone {
                if let Hosts::Named(named) = &group.hosts {
                    hosts.extend(named);
                }
            }
            hosts.sort_unstable();
            let further = Found { said: Said::Further(values), hosts, length: 0 }.short();
            kept.insert(kept.len() - 1, further);
        }
        Node::Differs(kept)
    }

    /// As many from the first on as there is room for, and those that there is none for.
    fn groups<'a>(&self, groups: Vec<Group<'a>>, room: usize) -> (Vec<Group<'a>>, Vec<Group<'a>>) {
        let own: Vec<usize> = groups.iter().map(|group| GROUP + self.hosts_size(&group.hosts)).collect();
        let said: Vec<usize> = groups.iter().map(|group| self.said_size(&group.said)).collect();
        let (mut count, mut owned, mut cost) = (0, 0, 0);
        for (own, said) in own.iter().zip(&said) {
            cost += own + LEAST.min(*said);
            if cost > room {
                break;
            }
            owned += own;
            count += 1;
        }
        let share = share(&said[..count], room.saturating_sub(owned));
        let mut kept = groups;
        let gone = kept.split_off(count);
        let cut = |(group, size): (Group<'a>, &usize)| match group.said {
            _ if *size <= share => group,
            Said::Value(node) => Group { said: Said::Value(self.within(node, share)), ..group },
            // Half of how to get there leads elsewhere.
            Said::Diff(_) | Said::OwnName | Said::Further(_) => {
                Group { said: Said::Value(Node::Gone(*size)), ..group }
            }
        };
        (kept.into_iter().zip(&said).map(cut).collect(), gone)
    }

    fn size(&self, node: &Node<'_>) -> usize {
        match node {
            Node::Same(value) => length(value),
            Node::Text(text, most) => length(&excerpt(text, *most)),
            Node::Gone(_) => MARK,
            Node::Object { members, cut } => {
                let members = members
                    .iter()
                    .map(|(name, part)| name_size(name) + self.who_size(&part.who) + self.size(&part.node));
                2 + members.sum::<usize>() + self.mark_size(cut)
            }
            Node::List { items, cut, .. } => {
                let runs = super::node::runs(items).map(|run| self.who_size(&run[0].who));
                let items = items.iter().map(|part| 1 + self.size(&part.node));
                2 + items.sum::<usize>() + runs.sum::<usize>() + self.mark_size(cut)
            }
            Node::Differs(groups) => DIFFERS + self.groups_size(groups),
            Node::Examples { some, .. } => EXAMPLES_EMPTY + self.groups_size(some),
            Node::Range(range) => {
                let outliers = range.outliers.iter();
                let outliers = outliers.map(|(value, hosts)| GROUP + length(value) + self.names_size(hosts));
                RANGE
                    + range.ends.iter().map(length).sum::<usize>()
                    + self.names_size(&range.low)
                    + self.names_size(&range.high)
                    + outliers.sum::<usize>()
            }
        }
    }

    fn groups_size(&self, groups: &[Group<'_>]) -> usize {
        let size = |group: &Group<'_>| GROUP + self.hosts_size(&group.hosts) + self.said_size(&group.said);
        groups.iter().map(size).sum()
    }

    fn said_size(&self, said: &Said<'_>) -> usize {
        match said {
            Said::Value(node) => self.size(node),
            Said::Diff(diff) => length(diff),
            Said::OwnName => OWN_NAME.len() + 2,
            Said::Further(_) => 10,
        }
    }

    fn mark_size(&self, cut: &LeftOut) -> usize {
        if cut.count == 0 { 0 } else { self.mark_room() }
    }

    /// Few hosts are named in it.
    fn mark_room(&self) -> usize {
        MARK + NAMED * self.names.iter().map(|name| name.len() + 3).max().unwrap_or_default()
    }

    fn who_size(&self, who: &Who) -> usize {
        match who {
            Who::All => 0,
            Who::On(hosts) | Who::NotOn(hosts) => PART + LABEL + self.names_size(hosts),
        }
    }

    fn hosts_size(&self, hosts: &Hosts) -> usize {
        match hosts {
            Hosts::Named(hosts) => LABEL + self.names_size(hosts),
            Hosts::Counted(_) => 10,
        }
    }

    fn names_size(&self, hosts: &[Host]) -> usize {
        hosts.iter().map(|host| self.names[*host].len() + 3).sum()
    }
}

fn of_all(value: &Value) -> Part<'_> {
    Part { node: Node::Same(value), who: Who::All }
}

/// `"name":,` with one more `$`.
fn name_size(name: &str) -> usize {
    length(&name) + 3
}

/// How many characters of a text have room as JSON.
fn characters(text: &str, room: usize) -> usize {
    let mut used = 0;
    let fits = |character: &char| {
        used += match character {
            '"' | '\\' | '\n' | '\t' => 2,
            character if character.is_control() => 6,
            character => character.len_utf8(),
        };
        used <= room
    };
    text.chars().take_while(fits).count()
}

/// How many each host has before its next one, so that of all hosts as many are given. What most have counts for all.
fn ranks(parts: &[Part<'_>]) -> Vec<usize> {
    let (mut of_all, mut own) = (0, HashMap::<Host, usize>::new());
    let rank = |part: &Part<'_>| match &part.who {
        Who::All | Who::NotOn(_) => {
            of_all += 1;
            of_all - 1
        }
        Who::On(hosts) => {
            let mut least = usize::MAX;
            for host in hosts {
                let own = own.entry(*host).or_default();
                least = least.min(*own);
                *own += 1;
            }
            of_all + if hosts.is_empty() { 0 } else { least }
        }
    };
    parts.iter().map(rank).collect()
}

/// Hosts that had something and have nothing any more.
fn nothing_of(parts: &[Part<'_>], kept: &[bool]) -> Vec<Host> {
    let (mut with, mut without) = (HashSet::<&Host>::new(), HashSet::<&Host>::new());
    for (part, is_kept) in parts.iter().zip(kept) {
        match &part.who {
            Who::On(hosts) if *is_kept => with.extend(hosts),
            Who::On(hosts) => without.extend(hosts),
            // Those that it isn't on may have nothing, too, but they haven't lost it.
            Who::All | Who::NotOn(_) if *is_kept => return Vec::new(),
            Who::All | Who::NotOn(_) => {}
        }
    }
    without.into_iter().filter(|host| !with.contains(host)).copied().collect()
}

/// The most that each may take, so that all together take no more than there is room for.
fn share(sizes: &[usize], room: usize) -> usize {
    let mut sizes = sizes.to_vec();
    sizes.sort_unstable();
    let mut left = room;
    for (at, size) in sizes.iter().enumerate() {
        let rest = sizes.len() - at;
        if size.saturating_mul(rest) > left {
            return left / rest;
        }
        left -= size;
    }
    usize::MAX
}
