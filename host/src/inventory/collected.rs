//! What all inventories say together: hosts, groups, which is in which, and what is set for them. Ansible's rules for
//! it are in `lib/ansible/inventory/{data,group,helpers}.py` and `lib/ansible/vars/manager.py`.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use crate::visible::excerpt;

use super::variables::{self, Set, Value, Variable, Variables};
use super::{Entry, InventoryError};

/// So many groups are the most that there may be.
const MOST_GROUPS: usize = 5_000;
/// So many times may hosts be put into groups.
const MOST_MEMBERS: usize = 200_000;

/// The group of every host.
pub(super) const ALL: &str = "all";
/// The group of hosts that are in no other.
pub(super) const UNGROUPED: &str = "ungrouped";

/// Where something is said.
#[derive(Clone, Debug)]
pub(super) struct Place<'a> {
    pub(super) file: &'a Path,
    /// Counted from 1, where it is known.
    pub(super) line: Option<usize>,
}

impl Place<'_> {
    pub(super) fn error(&self, reason: impl Into<String>) -> InventoryError {
        InventoryError::Invalid { path: self.file.to_owned(), line: self.line, reason: reason.into() }
    }

    fn text(&self) -> Arc<str> {
        match self.line {
            Some(line) => format!("{}:{line}", self.file.display()).into(),
            None => self.file.to_string_lossy().into(),
        }
    }
}

/// A host by its number.
pub(super) type HostId = usize;
/// A group by its number.
pub(super) type GroupId = usize;

/// Of groups, and of hosts.
#[derive(Debug, Default)]
struct Said {
    /// In an inventory.
    inside: Variables,
    /// In `group_vars` or `host_vars`, which go before.
    beside: Variables,
}

#[derive(Debug, Default)]
struct Host {
    name: String,
    said: Said,
    groups: BTreeSet<GroupId>,
}

#[derive(Debug)]
pub(super) struct Group {
    pub(super) name: String,
    /// Those that are in it themselves.
    pub(super) hosts: Vec<HostId>,
    pub(super) children: Vec<GroupId>,
    said: Said,
    /// Of several at the same depth, the one with the highest goes first.
    priority: i64,
    /// Whether it is of the configuration.
    is_configured: bool,
}

/// What was read so far.
#[derive(Debug)]
pub(super) struct Collected {
    hosts: Vec<Host>,
    hosts_by_name: HashMap<String, HostId>,
    groups: Vec<Group>,
    groups_by_name: HashMap<String, GroupId>,
    members: usize,
    /// Variables that aren't followed, with where each was first seen.
    unfollowed: BTreeMap<&'static str, (String, Arc<str>)>,
    pub(super) warnings: Vec<String>,
}

/// All of it, put in order.
pub(super) struct Settled {
    pub(super) entries: Vec<Entry>,
    /// Without hosts that are left out; those of `all` are all entries, and it isn't here.
    pub(super) groups: Vec<Group>,
    /// Hosts that can't be reached as the inventory says, and why.
    pub(super) left_out: BTreeMap<String, String>,
    pub(super) warnings: Vec<String>,
}

impl Collected {
    pub(super) fn new() -> Self {
        let mut empty = Self {
            hosts: Vec::new(),
            hosts_by_name: HashMap::new(),
            groups: Vec::new(),
            groups_by_name: HashMap::new(),
            members: 0,
            unfollowed: BTreeMap::new(),
            warnings: Vec::new(),
        };
        for name in [ALL, UNGROUPED] {
            empty.push_group(name, false);
        }
        empty
    }

    pub(super) fn has_group(&self, name: &str) -> bool {
        self.groups_by_name.contains_key(name)
    }

    pub(super) fn names(&self) -> (impl Iterator<Item = &str>, impl Iterator<Item = &str>) {
        (
            self.groups.iter().map(|group| group.name.as_str()),
            self.hosts.iter().map(|host| host.name.as_str()),
        )
    }

    /// The group of this name, made where there is none.
    pub(super) fn group(&mut self, name: &str, place: &Place) -> Result<GroupId, InventoryError> {
        if let Some(&known) = self.groups_by_name.get(name) {
            return Ok(known);
        }
        if self.groups.len() == MOST_GROUPS {
            return Err(place.error(format!("expected at most {MOST_GROUPS} groups")));
        }
        Ok(self.push_group(name, false))
    }

    /// A group of the configuration. None where an inventory has one of this name.
    pub(super) fn configured_group(&mut self, name: &str) -> Option<GroupId> {
        (!self.has_group(name)).then(|| self.push_group(name, true))
    }

    fn push_group(&mut self, name: &str, is_configured: bool) -> GroupId {
        let id = self.groups.len();
        self.groups.push(Group {
            name: name.to_owned(),
            hosts: Vec::new(),
            children: Vec::new(),
            said: Said::default(),
            priority: 1,
            is_configured,
        });
        self.groups_by_name.insert(name.to_owned(), id);
        id
    }

    /// Puts a host into a group, new or known. The port counts where the host is new, as for Ansible.
    pub(super) fn host(
        &mut self,
        name: &str,
        group: GroupId,
        port: Option<u16>,
        place: &Place,
    ) -> Result<(), InventoryError> {
        self.members += 1;
        if self.members > MOST_MEMBERS {
            return Err(place.error(format!("expected at most {MOST_MEMBERS} hosts in all groups together")));
        }
        let id = match self.hosts_by_name.get(name) {
            Some(&known) => known,
            None => {
                let mut host = Host { name: name.to_owned(), ..Host::default() };
                if let Some(port) = port {
                    let set = Set { value: Value::Number(port.into()), place: place.text() };
                    host.said.inside.insert(Variable::Port, set);
                }
                self.hosts.push(host);
                self.hosts_by_name.insert(name.to_owned(), self.hosts.len() - 1);
                self.hosts.len() - 1
            }
        };
        if self.hosts[id].groups.insert(group) {
            self.groups[group].hosts.push(id);
        }
        Ok(())
    }

    pub(super) fn child(
        &mut self,
        parent: GroupId,
        child: GroupId,
        place: &Place,
    ) -> Result<(), InventoryError> {
        self.members += 1;
        if self.members > MOST_MEMBERS {
            return Err(
                place.error(format!("expected at most {MOST_MEMBERS} members of all groups together"))
            );
        }
        if !self.groups[parent].children.contains(&child) {
            self.groups[parent].children.push(child);
        }
        Ok(())
    }

    /// Sets a variable of a group, or of the host of this name where there is no such group, as Ansible does.
    pub(super) fn set(
        &mut self,
        name: &str,
        variable: &str,
        value: impl FnOnce() -> Value,
        place: &Place,
    ) -> Result<(), InventoryError> {
        let group = self.groups_by_name.get(name).copied();
        if variable == "ansible_group_priority"
            && let Some(group) = group
        {
            self.groups[group].priority = match value() {
                Value::Number(number) => number,
                Value::Text(text) if text.parse::<i64>().is_ok() => text.parse().unwrap_or(1),
                _ => return Err(place.error("expected a whole number for ansible_group_priority")),
            };
            return Ok(());
        }
        let Some(set) = self.take(variable, value, place) else { return Ok(()) };
        let said = match group {
            Some(group) => Some(&mut self.groups[group].said),
            None => self.hosts_by_name.get(name).map(|&host| &mut self.hosts[host].said),
        };
        if let Some(said) = said {
            said.inside.insert(set.0, set.1);
        }
        Ok(())
    }

    /// Sets a variable in `group_vars`.
    pub(super) fn set_beside_group(
        &mut self,
        name: &str,
        variable: &str,
        value: impl FnOnce() -> Value,
        place: &Place,
    ) {
        if let Some((variable, set)) = self.take(variable, value, place)
            && let Some(&group) = self.groups_by_name.get(name)
        {
            self.groups[group].said.beside.insert(variable, set);
        }
    }

    /// Sets a variable in `host_vars`.
    pub(super) fn set_beside_host(
        &mut self,
        name: &str,
        variable: &str,
        value: impl FnOnce() -> Value,
        place: &Place,
    ) {
        if let Some((variable, set)) = self.take(variable, value, place)
            && let Some(&host) = self.hosts_by_name.get(name)
        {
            self.hosts[host].said.beside.insert(variable, set);
        }
    }

    /// What is followed. No other value is as much as looked at.
    fn take(&mut self, name: &str, value: impl FnOnce() -> Value, place: &Place) -> Option<(Variable, Set)> {
        if let Some(advice) = variables::unfollowed(name) {
            self.unfollowed.entry(advice).or_insert_with(|| (String::new(), place.text()));
            let names = &mut self.unfollowed.get_mut(advice)?.0;
            if !names.split(", ").any(|known| known == name) {
                let comma = if names.is_empty() { "" } else { ", " };
                names.push_str(&format!("{comma}{name}"));
            }
            return None;
        }
        let variable = Variable::named(name)?;
        Some((variable, Set { value: value(), place: place.text() }))
    }

    /// How each host is reached, and which are in which group.
    pub(super) fn settle(mut self) -> Result<Settled, InventoryError> {
        let order = self.in_order()?;
        let depths = self.depths(&order);
        let speaking = self.speaking(&order);
        let mut entries = Vec::new();
        let mut left_out = BTreeMap::new();
        let mut told: BTreeMap<String, (Option<Arc<str>>, Vec<String>)> = BTreeMap::new();
        let mut numbers = vec![None; self.hosts.len()];
        for (id, host) in self.hosts.iter().enumerate() {
            match variables::entry(&host.name, &self.variables(host, &speaking, &depths)) {
                Ok(entry) => {
                    numbers[id] = Some(entries.len());
                    entries.push(entry);
                }
                Err((reason, place)) => {
                    left_out.insert(host.name.clone(), reason.clone());
                    told.entry(reason).or_insert((place, Vec::new())).1.push(host.name.clone());
                }
            }
        }
        let ungrouped: Vec<_> =
            (0..self.hosts.len()).filter(|host| self.is_ungrouped(&self.hosts[*host])).collect();
        self.groups[1].hosts = ungrouped;
        for group in &mut self.groups {
            group.hosts = group.hosts.iter().filter_map(|host| numbers[*host]).collect();
        }
        let mut warnings = self.warnings;
        warnings.extend(
            told.into_iter().map(|(reason, (place, hosts))| left_out_warning(&hosts, &reason, place)),
        );
        warnings.extend(self.unfollowed.into_iter().map(|(advice, (names, place))| {
            format!("Not followed in the inventory: {names} (first in {place}); {advice}.")
        }));
        Ok(Settled { entries, groups: self.groups, left_out, warnings })
    }

    /// Those of an inventory: the configuration's own groups change nothing for Ansible.
    fn groups_of<'a>(&'a self, host: &'a Host) -> impl Iterator<Item = GroupId> + 'a {
        host.groups.iter().copied().filter(|group| !self.groups[*group].is_configured)
    }

    /// In an inventory, and there in no group but `all`.
    fn is_ungrouped(&self, host: &Host) -> bool {
        self.groups_of(host).next().is_some() && self.groups_of(host).all(|group| group <= 1)
    }

    /// Every group behind those that it is a child of; a cycle has no such order.
    fn in_order(&self) -> Result<Vec<GroupId>, InventoryError> {
        let mut parents = vec![0_usize; self.groups.len()];
        self.groups.iter().flat_map(|group| &group.children).for_each(|child| parents[*child] += 1);
        // All others are in `all`, said or not.
        if parents[0] > 0 {
            let parent = self.groups.iter().find(|group| group.children.contains(&0));
            let parent = parent.map_or_else(String::new, |group| group.name.clone());
            return Err(InventoryError::Cycle { groups: vec![ALL.to_owned(), parent, ALL.to_owned()] });
        }
        let mut order: Vec<GroupId> = (0..self.groups.len()).filter(|group| parents[*group] == 0).collect();
        let mut next = 0;
        while let Some(&group) = order.get(next) {
            next += 1;
            for &child in &self.groups[group].children {
                parents[child] -= 1;
                if parents[child] == 0 {
                    order.push(child);
                }
            }
        }
        match parents.iter().position(|parents| *parents > 0) {
            None => Ok(order),
            Some(_) => Err(InventoryError::Cycle { groups: self.cycle(&parents) }),
        }
    }

    /// Among groups that each have a parent among them.
    fn cycle(&self, parents: &[usize]) -> Vec<String> {
        let parent_of = |child: GroupId| {
            let is_parent =
                |group: &GroupId| parents[*group] > 0 && self.groups[*group].children.contains(&child);
            (0..self.groups.len()).find(is_parent)
        };
        let mut way: Vec<GroupId> = parents.iter().position(|parents| *parents > 0).into_iter().collect();
        while let Some(parent) = way.last().and_then(|group| parent_of(*group)) {
            if let Some(at) = way.iter().position(|group| *group == parent) {
                way.push(parent);
                return way[at..].iter().rev().map(|group| self.groups[*group].name.clone()).collect();
            }
            way.push(parent);
        }
        Vec::new()
    }

    /// How far each is from `all`, by the longest way.
    fn depths(&self, order: &[GroupId]) -> Vec<usize> {
        let mut depths = vec![1; self.groups.len()];
        depths[0] = 0;
        for &group in order.iter().filter(|group| !self.groups[**group].is_configured) {
            for &child in &self.groups[group].children {
                depths[child] = depths[child].max(depths[group] + 1);
            }
        }
        depths
    }

    /// Of each group itself and all that it is in: those that set anything.
    fn speaking(&self, order: &[GroupId]) -> Vec<BTreeSet<GroupId>> {
        let mut speaking: Vec<BTreeSet<GroupId>> = vec![BTreeSet::new(); self.groups.len()];
        for &group in order {
            let said = &self.groups[group].said;
            if !said.inside.is_empty() || !said.beside.is_empty() {
                speaking[group].insert(group);
            }
            if speaking[group].is_empty() {
                continue;
            }
            for &child in &self.groups[group].children {
                let inherited = speaking[group].clone();
                speaking[child].extend(inherited);
            }
        }
        speaking
    }

    /// All that is set for a host: the inventory's groups, then `group_vars`, then the host's own, then `host_vars`.
    /// Deeper groups go before those that they are in, and names later in the alphabet before earlier ones.
    fn variables(&self, host: &Host, speaking: &[BTreeSet<GroupId>], depths: &[usize]) -> Variables {
        let is_ungrouped = self.is_ungrouped(host);
        // Whoever is in another group isn't in `ungrouped`, whatever is said; and who is in any is in `all`.
        let of = self.groups_of(host).flat_map(|group| [0, group]);
        let of = of.filter(|group| *group != 1).chain(is_ungrouped.then_some(1));
        let groups: BTreeSet<GroupId> = of.flat_map(|group| speaking[group].iter().copied()).collect();
        let mut groups: Vec<GroupId> = groups.into_iter().collect();
        groups.sort_by_key(|&group| (depths[group], self.groups[group].priority, &self.groups[group].name));
        let said = || groups.iter().map(|group| &self.groups[*group].said);
        let mut all = Variables::new();
        for variables in said()
            .map(|said| &said.inside)
            .chain(said().map(|said| &said.beside))
            .chain([&host.said.inside, &host.said.beside])
        {
            all.extend(variables.iter().map(|(variable, set)| (*variable, set.clone())));
        }
        all
    }
}

/// The hosts of a group and of all groups in it, each once: those of the group itself first.
pub(super) fn members(groups: &[Group], group: GroupId) -> Vec<HostId> {
    let mut hosts = Vec::new();
    let mut seen_hosts = HashSet::new();
    let mut seen = HashSet::new();
    let mut waiting = vec![group];
    while let Some(group) = waiting.pop() {
        if seen.insert(group) {
            hosts.extend(groups[group].hosts.iter().copied().filter(|host| seen_hosts.insert(*host)));
            waiting.extend(groups[group].children.iter().rev());
        }
    }
    hosts
}

fn left_out_warning(hosts: &[String], reason: &str, place: Option<Arc<str>>) -> String {
    const SHOWN: usize = 5;
    let names: Vec<_> = hosts.iter().take(SHOWN).map(|name| excerpt(name, 60)).collect();
    let names = names.join(", ");
    let more = match hosts.len().saturating_sub(SHOWN) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let place = place.map(|place| format!(" ({place})")).unwrap_or_default();
    let are = if hosts.len() == 1 { "is" } else { "are" };
    format!("{names}{more} {are} left out of the inventory: {reason}{place}.")
}
