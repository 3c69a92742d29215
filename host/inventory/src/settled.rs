//! What was collected, put in order: which groups are in which without end, which of what is set holds for a host, how
//! it is reached by that, and who is left out. Ansible's rules for it are in `lib/ansible/inventory/{data,helpers}.py`
//! and `lib/ansible/vars/manager.py`.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use host_text::visible::{excerpt, one_line};

use super::collected::{ALL, ALL_ID, Collected, Group, GroupId, Host, HostId, UNGROUPED_ID};
use super::variables::{self, Variables};
use super::{Entry, InventoryError};

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
        self.groups[UNGROUPED_ID].hosts = ungrouped;
        for group in &mut self.groups {
            group.hosts = group.hosts.iter().filter_map(|host| numbers[*host]).collect();
        }
        let mut warnings = self.warnings;
        warnings.extend(
            told.into_iter().map(|(reason, (place, hosts))| left_out_warning(&hosts, &reason, place)),
        );
        warnings.extend(self.unfollowed.into_iter().map(|(advice, (names, place))| {
            format!("Not followed in the inventory: {} (first in {place}); {advice}.", names.join(", "))
        }));
        Ok(Settled { entries, groups: self.groups, left_out, warnings })
    }

    /// Those of an inventory: the configuration's own groups change nothing for Ansible.
    fn groups_of<'a>(&'a self, host: &'a Host) -> impl Iterator<Item = GroupId> + 'a {
        host.groups.iter().copied().filter(|group| !self.groups[*group].is_configured)
    }

    /// In an inventory, and there in no group but `all`.
    fn is_ungrouped(&self, host: &Host) -> bool {
        self.groups_of(host).next().is_some()
            && self.groups_of(host).all(|group| [ALL_ID, UNGROUPED_ID].contains(&group))
    }

    /// Every group behind those that it is a child of; a cycle has no such order.
    fn in_order(&self) -> Result<Vec<GroupId>, InventoryError> {
        let mut parents = vec![0_usize; self.groups.len()];
        self.groups.iter().flat_map(|group| &group.children).for_each(|child| parents[*child] += 1);
        // All others are in `all`, said or not.
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
                return way[at..].iter().rev().map(|group| one_line(&self.groups[*group].name)).collect();
            }
            way.push(parent);
        }
        Vec::new()
    }

    /// How far each is from `all`, by the longest way.
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
        let of = self.groups_of(host).flat_map(|group| [ALL_ID, group]);
        let of = of.filter(|group| *group != UNGROUPED_ID).chain(is_ungrouped.then_some(UNGROUPED_ID));
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
