//! The content of all inventories together: hosts, groups, their members and their variables. It is collected as in
//! `lib/ansible/inventory/data.py`.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use std::sync::Arc;

use super::InventoryError;
use host_text::visible::one_line;

use super::variables::{self, SetValue, Value, Variable, Variables};

/// The most groups that there may be.
const MOST_GROUPS: usize = 5_000;
/// The most times that hosts may be put into groups.
const MOST_MEMBERS: usize = 200_000;

/// The group of every host.
pub(super) const ALL: &str = "all";
/// The group of hosts that are in no other.
pub(super) const UNGROUPED: &str = "ungrouped";

/// The place of a statement in a file.
#[derive(Clone, Debug)]
pub(super) struct Location<'a> {
    pub(super) file: &'a Path,
    /// The line, counted from 1, where it is known.
    pub(super) line: Option<usize>,
}

impl Location<'_> {
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

/// The index of a host.
pub(super) type HostId = usize;
/// The index of a group.
pub(super) type GroupId = usize;

/// The index of the group of every host.
pub(super) const ALL_ID: GroupId = 0;
/// The index of the group of hosts that are in no other.
pub(super) const UNGROUPED_ID: GroupId = 1;

/// The variables that are set for a group or a host.
#[derive(Debug, Default)]
pub(super) struct VariableSets {
    /// Variables that are set in an inventory.
    pub(super) in_inventory: Variables,
    /// Variables that are set in `group_vars` or `host_vars`. They take precedence.
    pub(super) in_vars_files: Variables,
}

#[derive(Debug, Default)]
pub(super) struct Host {
    pub(super) name: String,
    pub(super) said: VariableSets,
    pub(super) groups: BTreeSet<GroupId>,
}

#[derive(Debug)]
pub(super) struct Group {
    pub(super) name: String,
    /// The hosts that are direct members.
    pub(super) hosts: Vec<HostId>,
    pub(super) children: Vec<GroupId>,
    pub(super) said: VariableSets,
    /// Among groups at the same depth, the one with the highest priority takes precedence.
    pub(super) priority: i64,
    /// Whether the group is the configuration's.
    pub(super) is_configured: bool,
}

/// The hosts and groups that were read so far.
#[derive(Debug)]
pub(super) struct Collected {
    pub(super) hosts: Vec<Host>,
    hosts_by_name: HashMap<String, HostId>,
    pub(super) groups: Vec<Group>,
    groups_by_name: HashMap<String, GroupId>,
    /// The number of times that a host or a group was put into a group.
    members: usize,
    /// Variables that aren't followed, by the advice about them, with the place of the first.
    pub(super) ignored_variables: BTreeMap<&'static str, (Vec<String>, Arc<str>)>,
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
            ignored_variables: BTreeMap::new(),
            warnings: Vec::new(),
        };
        // These come in the order of their indices.
        for name in [ALL, UNGROUPED] {
            empty.push_group(name, false);
        }
        empty
    }

    pub(super) fn has_group(&self, name: &str) -> bool {
        self.groups_by_name.contains_key(name)
    }

    /// Returns the names of groups, and those of hosts.
    pub(super) fn names(&self) -> (impl Iterator<Item = &str>, impl Iterator<Item = &str>) {
        (
            self.groups.iter().map(|group| group.name.as_str()),
            self.hosts.iter().map(|host| host.name.as_str()),
        )
    }

    /// Returns the group of this name, and makes it if there is none.
    pub(super) fn group(&mut self, name: &str, location: &Location) -> Result<GroupId, InventoryError> {
        if let Some(&known) = self.groups_by_name.get(name) {
            return Ok(known);
        }
        if self.groups.len() == MOST_GROUPS {
            return Err(location.error(format!("expected at most {MOST_GROUPS} groups")));
        }
        Ok(self.push_group(name, false))
    }

    /// Makes a group of the configuration. Returns none where an inventory has a group of this name.
    pub(super) fn configured_group(&mut self, name: &str) -> Option<GroupId> {
        (!self.has_group(name)).then(|| self.push_group(name, true))
    }

    fn push_group(&mut self, name: &str, is_configured: bool) -> GroupId {
        let id = self.groups.len();
        self.groups.push(Group {
            name: name.to_owned(),
            hosts: Vec::new(),
            children: Vec::new(),
            said: VariableSets::default(),
            priority: 1,
            is_configured,
        });
        self.groups_by_name.insert(name.to_owned(), id);
        id
    }

    /// Puts a new or known host into a group. As for Ansible, the port counts only for a new host.
    pub(super) fn host(
        &mut self,
        name: &str,
        group: GroupId,
        port: Option<u16>,
        location: &Location,
    ) -> Result<(), InventoryError> {
        self.members += 1;
        if self.members > MOST_MEMBERS {
            return Err(
                location.error(format!("expected at most {MOST_MEMBERS} hosts in all groups together"))
            );
        }
        let id = match self.hosts_by_name.get(name) {
            Some(&known) => known,
            None => {
                let mut host = Host { name: name.to_owned(), ..Host::default() };
                if let Some(port) = port {
                    let set = SetValue { value: Value::Number(port.into()), location: location.text() };
                    host.said.in_inventory.insert(Variable::Port, set);
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
        location: &Location,
    ) -> Result<(), InventoryError> {
        self.members += 1;
        if self.members > MOST_MEMBERS {
            return Err(
                location.error(format!("expected at most {MOST_MEMBERS} members of all groups together"))
            );
        }
        if !self.groups[parent].children.contains(&child) {
            self.groups[parent].children.push(child);
        }
        Ok(())
    }

    /// Sets a variable of a group, or of the host of this name where there is no such group. Ansible does the same.
    pub(super) fn set(
        &mut self,
        name: &str,
        variable: &str,
        value: impl FnOnce() -> Value,
        location: &Location,
    ) -> Result<(), InventoryError> {
        let group = self.groups_by_name.get(name).copied();
        if variable == "ansible_group_priority"
            && let Some(group) = group
        {
            self.groups[group].priority = match value() {
                Value::Number(number) => number,
                Value::Text(text) if text.parse::<i64>().is_ok() => text.parse().unwrap_or(1),
                _ => return Err(location.error("expected a whole number for ansible_group_priority")),
            };
            return Ok(());
        }
        let Some(set) = self.take(variable, value, location) else { return Ok(()) };
        let said = match group {
            Some(group) => Some(&mut self.groups[group].said),
            None => self.hosts_by_name.get(name).map(|&host| &mut self.hosts[host].said),
        };
        if let Some(said) = said {
            said.in_inventory.insert(set.0, set.1);
        }
        Ok(())
    }

    /// Sets a variable from `group_vars`.
    pub(super) fn set_group_vars(
        &mut self,
        name: &str,
        variable: &str,
        value: impl FnOnce() -> Value,
        location: &Location,
    ) {
        if let Some((variable, set)) = self.take(variable, value, location)
            && let Some(&group) = self.groups_by_name.get(name)
        {
            self.groups[group].said.in_vars_files.insert(variable, set);
        }
    }

    /// Sets a variable from `host_vars`.
    pub(super) fn set_host_vars(
        &mut self,
        name: &str,
        variable: &str,
        value: impl FnOnce() -> Value,
        location: &Location,
    ) {
        if let Some((variable, set)) = self.take(variable, value, location)
            && let Some(&host) = self.hosts_by_name.get(name)
        {
            self.hosts[host].said.in_vars_files.insert(variable, set);
        }
    }

    /// Returns the variable if it is followed. The value of any other is never looked at.
    fn take(
        &mut self,
        name: &str,
        value: impl FnOnce() -> Value,
        location: &Location,
    ) -> Option<(Variable, SetValue)> {
        if let Some(advice) = variables::ignored_variables(name) {
            let (names, _) =
                self.ignored_variables.entry(advice).or_insert_with(|| (Vec::new(), location.text()));
            if !names.iter().any(|known| known == name) {
                names.push(name.to_owned());
            }
            return None;
        }
        let variable = Variable::named(name)?;
        Some((variable, SetValue { value: value(), location: location.text() }))
    }
}
