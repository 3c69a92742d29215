//! Which hosts a call's `host` may name: those of the configuration's own groups, and those of Ansible's inventories.
//! All of it is read once, when the server starts, and is as it was then from there on, whatever becomes of the files:
//! a model with a shell could change them. Nothing of it asks the network or starts a program.
//!
//! What Ansible itself couldn't read is an error, and so is what would be a group that isn't whole. A host that Ansible
//! reaches in a way that isn't followed here is left out, and a warning says so.
#![forbid(unsafe_code)]

mod allowed;
mod collected;
mod expand;
mod glob;
mod groups;
mod ini;
mod range;
mod settled;
mod sources;
mod variables;
mod words;
mod yaml;

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::{Path, PathBuf};

pub use allowed::Allowed;
use collected::{ALL, Collected, Group, Place, UNGROUPED};
pub use glob::{Glob, HostPattern};
pub use groups::{Groups, Source};

/// A host, and how it is reached: by what its alias says, where nothing else is said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    /// By which a call names it.
    pub name: String,
    /// A name or an address, where it isn't the name.
    pub hostname: Option<String>,
    /// Never 0.
    pub port: Option<u16>,
    /// The account there.
    pub user: Option<String>,
    /// Absolute, or below `~/`.
    pub identity_file: Option<String>,
    /// Whether it is this machine.
    pub is_local: bool,
}

/// Why there is no inventory. Shown to the operator; the process ends.
#[derive(Debug, thiserror::Error)]
pub enum InventoryError {
    /// A file or directory can't be read.
    #[error("the inventory {} can't be read", path.display())]
    Unreadable {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file says what can't be.
    #[error("{}{}: {reason}", path.display(), line.map_or_else(String::new, |line| format!(", line {line}")))]
    Invalid {
        /// Which.
        path: PathBuf,
        /// Counted from 1, where it is known.
        line: Option<usize>,
        /// What was expected.
        reason: String,
    },
    /// A dynamic inventory.
    #[error(
        "the inventory {} is executable: a program that prints an inventory is never started here. Save what it prints \
         with `ansible-inventory --list --yaml`, or take the right to execute it from a file that is none",
        path.display()
    )]
    Executable {
        /// Which.
        path: PathBuf,
    },
    /// Groups that are in themselves.
    #[error("groups are in each other, which has no end: {}", groups.join(" > "))]
    Cycle {
        /// Each is in the one before; the first is the last.
        groups: Vec<String>,
    },
    /// One word for two things.
    #[error(
        "{name} is the name of a host and of a group that has other hosts: expected one word for one of them, so that \
         nobody takes many hosts for one"
    )]
    Ambiguous {
        /// It.
        name: String,
    },
    /// A group of the configuration that an inventory has as well.
    #[error(
        "the configuration and an inventory have a group {name}: expected its hosts to be in one of them"
    )]
    Twice {
        /// It.
        name: String,
    },
}

/// The hosts and groups that there are.
#[derive(Debug, Default)]
pub struct Inventory {
    entries: Vec<Entry>,
    by_name: HashMap<String, usize>,
    groups: Vec<Group>,
    groups_by_name: HashMap<String, usize>,
    /// Hosts that can't be reached as an inventory says, and why.
    left_out: BTreeMap<String, String>,
    warnings: Vec<String>,
}

impl Inventory {
    /// Reads all inventories, and adds the configuration's groups. A group's member is a group where there is one of
    /// that name, and else a host.
    pub fn load(groups: &Groups, sources: &[Source]) -> Result<Self, InventoryError> {
        let mut paths = Vec::new();
        for source in sources {
            paths.push(source.path().map_err(|reason| InventoryError::Invalid {
                path: source.as_str().into(),
                line: None,
                reason,
            })?);
        }
        Self::read(groups, &paths)
    }

    fn read(groups: &Groups, paths: &[PathBuf]) -> Result<Self, InventoryError> {
        let mut collected = Collected::new();
        for path in paths {
            sources::read(path, &mut collected)?;
        }
        // Those that lie beside one inventory hold for the hosts of all.
        for path in paths {
            sources::read_variables(path, &mut collected)?;
        }
        let place = Place { file: Path::new("hosts of the configuration"), line: None };
        let mut configured = Vec::new();
        for (name, members) in groups.iter() {
            let Some(id) = collected.configured_group(name) else {
                return Err(InventoryError::Twice { name: name.to_owned() });
            };
            configured.push((id, members));
        }
        for (id, members) in configured {
            for member in members {
                match collected.has_group(member) {
                    true => {
                        let child = collected.group(member, &place)?;
                        collected.child(id, child, &place)?;
                    }
                    false => collected.host(member, id, None, &place)?,
                }
            }
        }
        Self::of(collected)
    }

    fn of(collected: Collected) -> Result<Self, InventoryError> {
        let settled = collected.settle()?;
        let by_name = settled.entries.iter().enumerate();
        let by_name = by_name.map(|(id, entry)| (entry.name.clone(), id)).collect();
        let mut inventory = Self {
            entries: settled.entries,
            by_name,
            groups: settled.groups,
            groups_by_name: HashMap::new(),
            left_out: settled.left_out,
            warnings: settled.warnings,
        };
        for (id, group) in inventory.groups.iter().enumerate() {
            if group.name == UNGROUPED && group.hosts.is_empty() {
                continue;
            }
            match group.name.parse::<host_openssh::Alias>() {
                Ok(_) => drop(inventory.groups_by_name.insert(group.name.clone(), id)),
                Err(_) => inventory.warnings.push(format!(
                    "The group {:?} can't be named: expected letters, digits, `-`, `.`, `_` and `:`.",
                    host_text::visible::excerpt(&group.name, 60)
                )),
            }
        }
        inventory.check_names()?;
        Ok(inventory)
    }

    /// No word for a host and for others. Where the group is that host alone, both are the same.
    fn check_names(&self) -> Result<(), InventoryError> {
        for (name, &group) in &self.groups_by_name {
            let is_host =
                name == LOCALHOST || self.by_name.contains_key(name) || self.left_out.contains_key(name);
            let members = || settled::members(&self.groups, group);
            let is_it = || matches!(members()[..], [only] if self.entries[only].name == *name);
            if is_host && !is_it() {
                return Err(InventoryError::Ambiguous { name: name.clone() });
            }
        }
        Ok(())
    }

    /// The host of this name. One of whom nothing is said here may be a host all the same, see [`Allowed`].
    pub fn entry(&self, name: &str) -> Option<&Entry> {
        self.by_name.get(name).map(|id| &self.entries[*id])
    }

    /// Every host, in the order of the inventories.
    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter()
    }

    /// Every group that can be named but `all`, sorted, with the names of its hosts and of those in its groups.
    pub fn groups(&self) -> impl Iterator<Item = (&str, Vec<&str>)> {
        let mut names: Vec<&str> = self.groups_by_name.keys().map(String::as_str).collect();
        names.sort_unstable();
        let members = |name| self.members(name).map(|members| (name, members));
        names.into_iter().filter(|name| *name != ALL).filter_map(members)
    }

    /// The hosts of a group, each once; none where there is no such group.
    pub fn members(&self, group: &str) -> Option<Vec<&str>> {
        let id = *self.groups_by_name.get(group)?;
        let members = match group {
            ALL => (0..self.entries.len()).collect(),
            _ => settled::members(&self.groups, id),
        };
        Some(members.into_iter().map(|host| self.entries[host].name.as_str()).collect())
    }

    /// What isn't followed, a sentence each.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }
}

/// This machine.
pub const LOCALHOST: &str = "localhost";

#[cfg(test)]
mod tests;
