//! Resolves what was collected: the order of the groups, the variables that hold for each host, how each host is
//! reached by them, and which hosts are left out. Ansible's rules are in `lib/ansible/inventory/{data,helpers}.py` and
//! `lib/ansible/vars/manager.py`.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use host_text::visible::{excerpt, one_line};

use super::collected::{ALL, ALL_ID, Collected, Group, GroupId, Host, HostId, UNGROUPED_ID};
use super::variables::{self, Variables};
use super::{Entry, InventoryError};

/// The resolved hosts and groups.
pub(super) struct Resolved {
    pub(super) entries: Vec<Entry>,
    /// The groups, without hosts that are left out. `all` isn't here, because its hosts are all entries.
    pub(super) groups: Vec<Group>,
    /// Hosts that can't be reached as the inventory says, with the reasons.
    pub(super) left_out: BTreeMap<String, String>,
    pub(super) warnings: Vec<String>,
}

impl Collected {
    /// Resolves how each host is reached, and the members of each group.
    pub(super) fn resolve(mut self) -> Result<Resolved, InventoryError> {
        let order = self.in_order()?;
        let depths = self.depths(&order);
        let groups_with_variables = self.groups_with_variables(&order);
        let mut entries = Vec::new();
        let mut left_out = BTreeMap::new();
        let mut told: BTreeMap<String, (Option<Arc<str>>, Vec<String>)> = BTreeMap::new();
        let mut numbers = vec![None; self.hosts.len()];
        for (id, host) in self.hosts.iter().enumerate() {
            match variables::entry(&host.name, &self.variables(host, &groups_with_variables, &depths)) {
                Ok(entry) => {
                    numbers[id] = Some(entries.len());
                    entries.push(entry);
                }
                Err((reason, location)) => {
                    left_out.insert(host.name.clone(), reason.clone());
                    told.entry(reason).or_insert((location, Vec::new())).1.push(host.name.clone());
                }
            }
        }
        let ungrouped: Vec<_> =
            (0..self.hosts.len()).filter(|host| self.is_ungrouped(&self.hosts[*host])).collect();
        self.groups[UNGROUPED_ID].hosts = ungrouped;
        for group in &mut self.groups {
            group.hosts = group.hosts.iter().filter_map(|host| numbers[*host]).collect();
        }
        let mut warnings = self.warnings;
        warnings.extend(
            told.into_iter().map(|(reason, (location, hosts))| left_out_warning(&hosts, &reason, location)),
        );
        warnings.extend(self.ignored_variables.into_iter().map(|(advice, (names, location))| {
            format!("Not followed in the inventory: {} (first in {location}); {advice}.", names.join(", "))
        }));
        Ok(Resolved { entries, groups: self.groups, left_out, warnings })
    }

    /// Returns the groups of a host that an inventory has. The configuration's own groups change nothing for Ansible.
    fn groups_of<'a>(&'a self, host: &'a Host) -> impl Iterator<Item = GroupId> + 'a {
        host.groups.iter().copied().filter(|group| !self.groups[*group].is_configured)
    }

    /// Says whether a host is in an inventory, and there in no group but `all`.
    fn is_ungrouped(&self, host: &Host) -> bool {
        self.groups_of(host).next().is_some()
            && self.groups_of(host).all(|group| [ALL_ID, UNGROUPED_ID].contains(&group))
    }

    /// Orders the groups so that each comes after those that it is a child of. A cycle has no such order.
    fn in_order(&self) -> Result<Vec<GroupId>, InventoryError> {
        let mut parents = vec![0_usize; self.groups.len()];
        self.groups.iter().flat_map(|group| &group.children).for_each(|child| parents[*child] += 1);
        // All other groups are in `all`, whether an inventory says it or not.
        if parents[ALL_ID] > 0 {
            let parent = self.groups.iter().find(|group| group.children.contains(&ALL_ID));
            let parent = parent.map_or_else(String::new, |group| one_line(&group.name));
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

    /// Finds a cycle among groups that each have a parent among them.
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
                return way[at..].iter().rev().map(|group| one_line(&self.groups[*group].name)).collect();
            }
            way.push(parent);
        }
        Vec::new()
    }

    /// Returns how far each group is from `all`, by the longest way.
    fn depths(&self, order: &[GroupId]) -> Vec<usize> {
        let mut depths = vec![1; self.groups.len()];
        depths[ALL_ID] = 0;
        for &group in order.iter().filter(|group| !self.groups[**group].is_configured) {
            for &child in &self.groups[group].children {
                depths[child] = depths[child].max(depths[group] + 1);
            }
        }
        depths
    }

    /// Returns for each group those groups that set any variable, among itself and the groups that it is in.
    fn groups_with_variables(&self, order: &[GroupId]) -> Vec<BTreeSet<GroupId>> {
        let mut groups_with_variables: Vec<BTreeSet<GroupId>> = vec![BTreeSet::new(); self.groups.len()];
        for &group in order {
            let said = &self.groups[group].said;
            if !said.in_inventory.is_empty() || !said.in_vars_files.is_empty() {
                groups_with_variables[group].insert(group);
            }
            if groups_with_variables[group].is_empty() {
                continue;
            }
            for &child in &self.groups[group].children {
                let inherited = groups_with_variables[group].clone();
                groups_with_variables[child].extend(inherited);
            }
        }
        groups_with_variables
    }

    /// Returns all variables of a host. In rising precedence they come from the inventory's groups, from `group_vars`,
    /// from the host itself, and from `host_vars`. Deeper groups take precedence over those that they are in, and
    /// later names over earlier ones in the alphabet.
    fn variables(
        &self,
        host: &Host,
        groups_with_variables: &[BTreeSet<GroupId>],
        depths: &[usize],
    ) -> Variables {
        let is_ungrouped = self.is_ungrouped(host);
        // A host in another group isn't in `ungrouped`, whatever the inventory says; and a host in any group is in
        // `all`.
        let of = self.groups_of(host).flat_map(|group| [ALL_ID, group]);
        let of = of.filter(|group| *group != UNGROUPED_ID).chain(is_ungrouped.then_some(UNGROUPED_ID));
        let groups: BTreeSet<GroupId> =
            of.flat_map(|group| groups_with_variables[group].iter().copied()).collect();
        let mut groups: Vec<GroupId> = groups.into_iter().collect();
        groups.sort_by_key(|&group| (depths[group], self.groups[group].priority, &self.groups[group].name));
        let said = || groups.iter().map(|group| &self.groups[*group].said);
        let mut all = Variables::new();
        for variables in said()
            .map(|said| &said.in_inventory)
            .chain(said().map(|said| &said.in_vars_files))
            .chain([&host.said.in_inventory, &host.said.in_vars_files])
        {
            all.extend(variables.iter().map(|(variable, set)| (*variable, set.clone())));
        }
        all
    }
}

/// Returns the hosts of a group and of all groups in it, each once. Those of the group itself come first.
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

fn left_out_warning(hosts: &[String], reason: &str, location: Option<Arc<str>>) -> String {
    const SHOWN: usize = 5;
    let names: Vec<_> = hosts.iter().take(SHOWN).map(|name| excerpt(name, 60)).collect();
    let names = names.join(", ");
    let more = match hosts.len().saturating_sub(SHOWN) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let location = location.map(|location| format!(" ({location})")).unwrap_or_default();
    let are = if hosts.len() == 1 { "is" } else { "are" };
    format!("{names}{more} {are} left out of the inventory: {reason}{location}.")
}
