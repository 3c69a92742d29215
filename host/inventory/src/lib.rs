//! The hosts that a call's `host` may name: those of the configuration's own groups, and those of Ansible's
//! inventories. All of it is read once, when the server starts. Later changes of the files don't count, because a
//! model with a shell could make them. Reading asks no network and starts no program.
//!
//! What Ansible itself couldn't read is an error, and so is what would make an incomplete group. A host that Ansible
//! reaches in a way that isn't followed here is left out, and a warning says so.
#![forbid(unsafe_code)]

mod allowed;
mod collected;
mod expand;
mod glob;
mod groups;
mod ini;
mod range;
mod resolved;
mod shlex;
mod sources;
mod variables;
mod yaml;

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::{Path, PathBuf};

pub use allowed::Allowed;
use collected::{ALL, Collected, Group, Location, UNGROUPED};
pub use glob::{Glob, HostPattern};
pub use groups::{Groups, InventoryPath};

/// A host, and how it is reached. What isn't set here comes from its alias.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    /// The name that calls use.
    pub name: String,
    /// The name or address to connect to, where it isn't `name`.
    pub hostname: Option<String>,
    /// The port, which is never 0.
    pub port: Option<u16>,
    /// The account there.
    pub user: Option<String>,
    /// The identity file: an absolute path, or one below `~/`.
    pub identity_file: Option<String>,
    /// Whether the host is this machine.
    pub is_local: bool,
}

/// The reason why there is no inventory. The operator sees it, and the process ends.
#[derive(Debug, thiserror::Error)]
pub enum InventoryError {
    /// A file or directory can't be read.
    #[error("the inventory {} can't be read", path.display())]
    Unreadable {
        /// The path of the file or directory.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A file holds something that isn't allowed.
    #[error("{}{}: {reason}", path.display(), line.map_or_else(String::new, |line| format!(", line {line}")))]
    Invalid {
        /// The path of the file.
        path: PathBuf,
        /// The line, counted from 1, where it is known.
        line: Option<usize>,
        /// The form that was expected.
        reason: String,
    },
    /// The inventory is a program.
    #[error(
        "the inventory {} is executable: a program that prints an inventory is never started here. Save what it prints \
         with `ansible-inventory --list --yaml`, or take the right to execute it from a file that is none",
        path.display()
    )]
    Executable {
        /// The path of the program.
        path: PathBuf,
    },
    /// Groups are in themselves.
    #[error("groups are in each other, which has no end: {}", groups.join(" > "))]
    Cycle {
        /// The names of the groups. Each is in the one before it, and the last is the first.
        groups: Vec<String>,
    },
    /// One name stands for a host and for a group.
    #[error(
        "{name} is the name of a host and of a group that has other hosts: expected one word for one of them, so that \
         nobody takes many hosts for one"
    )]
    Ambiguous {
        /// The name.
        name: String,
    },
    /// An inventory has a group of the same name as one of the configuration's.
    #[error(
        "the configuration and an inventory have a group {name}: expected its hosts to be in one of them"
    )]
    Twice {
        /// The name of the group.
        name: String,
    },
}

/// All hosts and groups.
#[derive(Debug, Default)]
pub struct Inventory {
    entries: Vec<Entry>,
    by_name: HashMap<String, usize>,
    groups: Vec<Group>,
    groups_by_name: HashMap<String, usize>,
    /// Hosts that can't be reached as an inventory says, with the reasons.
    left_out: BTreeMap<String, String>,
    warnings: Vec<String>,
}

impl Inventory {
    /// Reads all inventories, and adds the configuration's groups. A member of these is a group where there is one of
    /// that name, and otherwise a host.
    pub fn load(groups: &Groups, sources: &[InventoryPath]) -> Result<Self, InventoryError> {
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
        // The variables beside one inventory hold for the hosts of all.
        for path in paths {
            sources::read_variables(path, &mut collected)?;
        }
        let location = Location { file: Path::new("hosts of the configuration"), line: None };
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
                        let child = collected.group(member, &location)?;
                        collected.child(id, child, &location)?;
                    }
                    false => collected.host(member, id, None, &location)?,
                }
            }
        }
        Self::of(collected)
    }

    fn of(collected: Collected) -> Result<Self, InventoryError> {
        let resolved = collected.resolve()?;
        let by_name = resolved.entries.iter().enumerate();
        let by_name = by_name.map(|(id, entry)| (entry.name.clone(), id)).collect();
        let mut inventory = Self {
            entries: resolved.entries,
            by_name,
            groups: resolved.groups,
            groups_by_name: HashMap::new(),
            left_out: resolved.left_out,
            warnings: resolved.warnings,
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

    /// Checks that no name stands for a host and for others. A group that consists of the host alone may have its
    /// name.
    fn check_names(&self) -> Result<(), InventoryError> {
        for (name, &group) in &self.groups_by_name {
            let is_host =
                name == LOCALHOST || self.by_name.contains_key(name) || self.left_out.contains_key(name);
            let members = || resolved::members(&self.groups, group);
            let is_it = || matches!(members()[..], [only] if self.entries[only].name == *name);
            if is_host && !is_it() {
                return Err(InventoryError::Ambiguous { name: name.clone() });
            }
        }
        Ok(())
    }

    /// Returns the host of this name. A name without an entry may still be a host, see [`Allowed`].
    pub fn entry(&self, name: &str) -> Option<&Entry> {
        self.by_name.get(name).map(|id| &self.entries[*id])
    }

    /// Returns every host, in the order of the inventories.
    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter()
    }

    /// Returns every group that can be named, except `all`, sorted. Each comes with the names of its hosts and of
    /// those in its groups.
    pub fn groups(&self) -> impl Iterator<Item = (&str, Vec<&str>)> {
        let mut names: Vec<&str> = self.groups_by_name.keys().map(String::as_str).collect();
        names.sort_unstable();
        let members = |name| self.members(name).map(|members| (name, members));
        names.into_iter().filter(|name| *name != ALL).filter_map(members)
    }

    /// Returns the hosts of a group, each once. None where there is no such group.
    pub fn members(&self, group: &str) -> Option<Vec<&str>> {
        let id = *self.groups_by_name.get(group)?;
        let members = match group {
            ALL => (0..self.entries.len()).collect(),
            _ => resolved::members(&self.groups, id),
        };
        Some(members.into_iter().map(|host| self.entries[host].name.as_str()).collect())
    }

    /// Returns a sentence about each setting that isn't followed.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }
}

/// The name of this machine.
pub const LOCALHOST: &str = "localhost";

#[cfg(test)]
mod tests;
