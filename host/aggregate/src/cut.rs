//! Cuts a folded answer to the size that an answer may have, whatever the hosts gave.
//!
//! Short parts stay whole, and long parts share the room that is left. So no host and no member is left out because another
//! one is long. Lists lose their tails first, the longest lists before others.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::compare::{DIFFERS_SIZE, EXAMPLES_SIZE, GROUP_SIZE, PART_SIZE, RANGE_SIZE};
use super::node::length;
use super::node::{
    ALWAYS_NAMED, Content, Group, Host, HostList, HostSet, Node, OWN_NAME, Omission, Part, SizedGroup,
};
use host_text::visible::excerpt;

/// An item isn't cut to less than this: half an item says little, so fewer items are given instead.
const MIN_ITEM_SIZE: usize = 4 << 10;
/// The least size that a value other than an item is cut to.
const MIN_SIZE: usize = 256;
/// The size of `,{"$cut":{"count":…,"hosts":[…]}}` without the names. The mark behind a text that is cut is shorter.
const CUT_MARK_SIZE: usize = 64;
/// The size of `{"$10":}`, around a set of hosts that has a label.
const LABEL_SIZE: usize = 12;

/// Cuts a node to about this number of bytes of JSON. The exact size is known only when the node is written.
pub fn within<'a>(node: Node<'a>, names: &[&str], room: usize) -> Node<'a> {
    Cutter { names }.within(node, room)
}

/// The approximate length of a node as JSON.
pub fn size(node: &Node<'_>, names: &[&str]) -> usize {
    Cutter { names }.size(node)
}

struct Cutter<'n> {
    names: &'n [&'n str],
}

impl Cutter<'_> {
    fn within<'a>(&self, node: Node<'a>, room: usize) -> Node<'a> {
        let size = self.size(&node);
        if size <= room {
            return node;
        }
        if room < CUT_MARK_SIZE {
            return Node::Gone(size);
        }
        match node {
            Node::Same(Value::String(text)) => Node::Text(text, characters(text, room - CUT_MARK_SIZE)),
            Node::Text(text, _) => Node::Text(text, characters(text, room - CUT_MARK_SIZE)),
            Node::Same(Value::Object(members)) => {
                let members = members.iter().map(|(name, value)| (name.as_str(), of_all(value))).collect();
                self.object(members, Omission::default(), room)
            }
            Node::Same(Value::Array(items)) => {
                self.list(items.iter().map(of_all).collect(), false, Omission::default(), room)
            }
            Node::Object { members, cut } => self.object(members, cut, room),
            Node::List { items, reordered, cut } => self.list(items, reordered, cut, room),
            Node::Differs(groups) => self.differs(groups, size, room),
            Node::Examples { some, values } => {
                let (some, _) = self.groups(some, room.saturating_sub(EXAMPLES_SIZE));
                Node::Examples { some, values }
            }
            Node::Same(_) | Node::Range(_) | Node::Gone(_) => Node::Gone(size),
        }
    }

    fn object<'a>(&self, members: Vec<(&'a str, Part<'a>)>, cut: Omission, room: usize) -> Node<'a> {
        let (names, parts): (Vec<&str>, Vec<Part<'a>>) = members.into_iter().unzip();
        let own = |at: usize, part: &Part<'_>| name_size(names[at]) + self.who_size(&part.who);
        let own: Vec<usize> = parts.iter().enumerate().map(|(at, part)| own(at, part)).collect();
        let (parts, cut) = self.parts(parts, &own, MIN_SIZE, cut, room);
        Node::Object { members: parts.into_iter().map(|(at, part)| (names[at], part)).collect(), cut }
    }

    fn list<'a>(&self, items: Vec<Part<'a>>, reordered: bool, cut: Omission, room: usize) -> Node<'a> {
        // The hosts are written once for a run of items. Only the end of a run may be left out, so no run falls apart.
        let own = |at: usize| match at > 0 && items[at - 1].who == items[at].who {
            true => 1,
            false => 1 + self.who_size(&items[at].who),
        };
        let own: Vec<usize> = (0..items.len()).map(own).collect();
        let (parts, cut) = self.parts(items, &own, MIN_ITEM_SIZE, cut, room);
        Node::List { items: parts.into_iter().map(|(_, part)| part).collect(), reordered, cut }
    }

    /// Keeps as many parts as there is room for, each with its index: each host keeps as many as the others, from the first
    /// on. `own` is the size of each part without its value.
    fn parts<'a>(
        &self,
        parts: Vec<Part<'a>>,
        own: &[usize],
        least: usize,
        mut cut: Omission,
        room: usize,
    ) -> (Vec<(usize, Part<'a>)>, Omission) {
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
        // Of the parts with the next rank, those that still fit are kept, in order. Where not even the first part of each
        // host fits, only some hosts keep theirs.
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
        let kept_sizes: Vec<usize> = (0..parts.len()).filter(is_kept).map(|at| sizes[at]).collect();
        let owned: usize = (0..parts.len()).filter(is_kept).map(|at| own[at]).sum();
        let share = share(&kept_sizes, room.saturating_sub(owned));

        cut.count += parts.len() - kept_sizes.len();
        cut.nothing_of.extend(nothing_of(&parts, &kept));
        cut.nothing_of.sort_unstable();
        cut.nothing_of.dedup();
        let parts = parts.into_iter().enumerate().filter(|(at, _)| kept[*at]);
        let parts = parts.map(|(at, part)| (at, Part { node: self.within(part.node, share), who: part.who }));
        (parts.collect(), cut)
    }

    /// Cuts groups of values. The last group has all hosts that aren't named, so it is left out last. The groups that are left
    /// out are counted.
    fn differs<'a>(&self, mut groups: Vec<Group<'a>>, size: usize, room: usize) -> Node<'a> {
        let room = room.saturating_sub(DIFFERS_SIZE + self.mark_room());
        groups.rotate_right(1);
        let (mut kept, gone) = self.groups(groups, room);
        if kept.is_empty() {
            return Node::Gone(size);
        }
        kept.rotate_left(1);
        if !gone.is_empty() {
            let values =
                gone.iter().map(|group| if let Content::Further(more) = group.content { more } else { 1 });
            let values = values.sum();
            let mut hosts: Vec<Host> = Vec::new();
            for group in &gone {
                if let HostList::Named(named) = &group.hosts {
                    hosts.extend(named);
                }
            }
            hosts.sort_unstable();
            let further = SizedGroup { content: Content::Further(values), hosts, length: 0 }.short();
            kept.insert(kept.len() - 1, further);
        }
        Node::Differs(kept)
    }

    /// Splits groups into those that fit, from the first on, and the others.
    fn groups<'a>(&self, groups: Vec<Group<'a>>, room: usize) -> (Vec<Group<'a>>, Vec<Group<'a>>) {
        let own: Vec<usize> = groups.iter().map(|group| GROUP_SIZE + self.hosts_size(&group.hosts)).collect();
        let content_sizes: Vec<usize> =
            groups.iter().map(|group| self.content_size(&group.content)).collect();
        let (mut count, mut owned, mut cost) = (0, 0, 0);
        for (own, content_size) in own.iter().zip(&content_sizes) {
            cost += own + MIN_SIZE.min(*content_size);
            if cost > room {
                break;
            }
            owned += own;
            count += 1;
        }
        let share = share(&content_sizes[..count], room.saturating_sub(owned));
        let mut kept = groups;
        let gone = kept.split_off(count);
        let cut = |(group, size): (Group<'a>, &usize)| match group.content {
            _ if *size <= share => group,
            Content::Value(node) => Group { content: Content::Value(self.within(node, share)), ..group },
            // Half a diff would lead to another text.
            Content::Diff(_) | Content::OwnName | Content::Further(_) => {
                Group { content: Content::Value(Node::Gone(*size)), ..group }
            }
        };
        (kept.into_iter().zip(&content_sizes).map(cut).collect(), gone)
    }

    fn size(&self, node: &Node<'_>) -> usize {
        match node {
            Node::Same(value) => length(value),
            Node::Text(text, most) => length(&excerpt(text, *most)),
            Node::Gone(_) => CUT_MARK_SIZE,
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
            Node::Differs(groups) => DIFFERS_SIZE + self.groups_size(groups),
            Node::Examples { some, .. } => EXAMPLES_SIZE + self.groups_size(some),
            Node::Range(range) => {
                let outliers = range.outliers.iter();
                let outliers =
                    outliers.map(|(value, hosts)| GROUP_SIZE + length(value) + self.names_size(hosts));
                RANGE_SIZE
                    + range.ends.iter().map(length).sum::<usize>()
                    + self.names_size(&range.low)
                    + self.names_size(&range.high)
                    + outliers.sum::<usize>()
            }
        }
    }

    fn groups_size(&self, groups: &[Group<'_>]) -> usize {
        let size = |group: &Group<'_>| {
            GROUP_SIZE + self.hosts_size(&group.hosts) + self.content_size(&group.content)
        };
        groups.iter().map(size).sum()
    }

    fn content_size(&self, content: &Content<'_>) -> usize {
        match content {
            Content::Value(node) => self.size(node),
            Content::Diff(diff) => length(diff),
            Content::OwnName => OWN_NAME.len() + 2,
            Content::Further(_) => 10,
        }
    }

    fn mark_size(&self, cut: &Omission) -> usize {
        if cut.count == 0 { 0 } else { self.mark_room() }
    }

    /// The room for a `$cut` mark. It names only a few hosts.
    fn mark_room(&self) -> usize {
        CUT_MARK_SIZE + ALWAYS_NAMED * self.names.iter().map(|name| name.len() + 3).max().unwrap_or_default()
    }

    fn who_size(&self, who: &HostSet) -> usize {
        match who {
            HostSet::All => 0,
            HostSet::On(hosts) | HostSet::NotOn(hosts) => PART_SIZE + LABEL_SIZE + self.names_size(hosts),
        }
    }

    fn hosts_size(&self, hosts: &HostList) -> usize {
        match hosts {
            HostList::Named(hosts) => LABEL_SIZE + self.names_size(hosts),
            HostList::Counted(_) => 10,
        }
    }

    fn names_size(&self, hosts: &[Host]) -> usize {
        hosts.iter().map(|host| self.names[*host].len() + 3).sum()
    }
}

fn of_all(value: &Value) -> Part<'_> {
    Part { node: Node::Same(value), who: HostSet::All }
}

/// The size of `"name":,` with one more `$`.
fn name_size(name: &str) -> usize {
    length(&name) + 3
}

/// The number of a text's characters that fit into the room as JSON.
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

/// Ranks each part by the number of parts that its hosts have before it. Keeping low ranks first gives each host as many
/// parts as the others. A part that most hosts have counts for all hosts.
fn ranks(parts: &[Part<'_>]) -> Vec<usize> {
    let (mut of_all, mut own) = (0, HashMap::<Host, usize>::new());
    let rank = |part: &Part<'_>| match &part.who {
        HostSet::All | HostSet::NotOn(_) => {
            of_all += 1;
            of_all - 1
        }
        HostSet::On(hosts) => {
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

/// The hosts that had parts and keep none of them.
fn nothing_of(parts: &[Part<'_>], kept: &[bool]) -> Vec<Host> {
    let (mut with, mut without) = (HashSet::<&Host>::new(), HashSet::<&Host>::new());
    for (part, is_kept) in parts.iter().zip(kept) {
        match &part.who {
            HostSet::On(hosts) if *is_kept => with.extend(hosts),
            HostSet::On(hosts) => without.extend(hosts),
            // The hosts that lack such a part may have nothing either, but they didn't lose it.
            HostSet::All | HostSet::NotOn(_) if *is_kept => return Vec::new(),
            HostSet::All | HostSet::NotOn(_) => {}
        }
    }
    without.into_iter().filter(|host| !with.contains(host)).copied().collect()
}

/// The greatest size that each part may have so that all together fit into the room.
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
