//! What all inventories say together: hosts, groups, which is in which, and what is set for them, as
//! `lib/ansible/inventory/data.py` collects it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use std::sync::Arc;

use super::InventoryError;
use host_text::visible::one_line;

use super::variables::{self, Set, Value, Variable, Variables};

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
        InventoryError::Invalid {
            path: self.file.to_owned(),
            line: self.line,
            reason: one_line(&reason.into()),
        }
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

/// The number of the group of every host.
pub(super) const ALL_ID: GroupId = 0;
/// The number of the group of hosts that are in no other.
pub(super) const UNGROUPED_ID: GroupId = 1;

/// What is set for a group or a host.
#[derive(Debug, Default)]
pub(super) struct Said {
    /// In an inventory.
    pub(super) inside: Variables,
    /// In `group_vars` or `host_vars`, which go before.
    pub(super) beside: Variables,
}

#[derive(Debug, Default)]
pub(super) struct Host {
    pub(super) name: String,
    pub(super) said: Said,
    pub(super) groups: BTreeSet<GroupId>,
}

#[derive(Debug)]
pub(super) struct Group {
    pub(super) name: String,
    /// Those that are in it themselves.
    pub(super) hosts: Vec<HostId>,
    pub(super) children: Vec<GroupId>,
    pub(super) said: Said,
    /// Of several at the same depth, the one with the highest goes first.
    pub(super) priority: i64,
    /// Whether it is of the configuration.
    pub(super) is_configured: bool,
}

/// What was read so far.
#[derive(Debug)]
pub(super) struct Collected {
    pub(super) hosts: Vec<Host>,
    hosts_by_name: HashMap<String, HostId>,
    pub(super) groups: Vec<Group>,
    groups_by_name: HashMap<String, GroupId>,
    /// How often a host or a group was put into one.
    members: usize,
    /// Variables that aren't followed, by what is said of them, with where one was first seen.
    pub(super) unfollowed: BTreeMap<&'static str, (Vec<String>, Arc<str>)>,
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
        // In the order of their numbers.
        for name in [ALL, UNGROUPED] {
            empty.push_group(name, false);
        }
        empty
    }

    pub(super) fn has_group(&self, name: &str) -> bool {
        self.groups_by_name.contains_key(name)
    }

    /// Of groups, and of hosts.
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
            let (names, _) = self.unfollowed.entry(advice).or_insert_with(|| (Vec::new(), place.text()));
            if !names.iter().any(|known| known == name) {
                names.push(name.to_owned());
            }
            return None;
        }
        let variable = Variable::named(name)?;
        Some((variable, Set { value: value(), place: place.text() }))
    }
}
