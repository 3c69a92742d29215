//! The hosts that calls may name. Where the configuration lists hosts, these are allowed. Otherwise all hosts are
//! allowed that the user had named to ssh before the server started: in `~/.ssh/config`, by connecting to them
//! (known_hosts), or in the inventory. Later changes of those files don't count, because a model with a shell could
//! make them.

use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;
use std::sync::LazyLock;

use super::{Glob, HostPattern, Inventory, LOCALHOST};
use host_openssh::Alias;
use host_openssh::config::{HostAliases, aliases, known_hosts_files};
use host_openssh::known_hosts::{self, ListedHosts};

/// The hosts that a call's `host` may name.
#[derive(Debug)]
pub struct Allowed {
    by: AllowedBy,
    /// Whether this machine may be named, by any of its names.
    local: bool,
    /// Names of this machine in the inventory.
    local_names: BTreeSet<String>,
    warnings: Vec<String>,
}

#[derive(Debug)]
enum AllowedBy {
    /// The hosts of `ssh.allowed_hosts`, with those of the groups in it.
    List { names: BTreeSet<String>, globs: Vec<Glob> },
    /// All hosts that are known.
    Known { named: BTreeSet<String>, known_hosts: LazyKnownHosts },
}

/// The hosts of known_hosts. The files may have thousands of lines, which most servers never need: they are read at
/// the start and parsed when they are first needed.
type LazyKnownHosts = LazyLock<ListedHosts, Box<dyn FnOnce() -> ListedHosts + Send>>;

impl Allowed {
    /// Reads the allowed hosts as they are now. Where the configuration lists hosts, no other file is read.
    pub fn load(list: Option<&[HostPattern]>, local: bool, inventory: &Inventory) -> Self {
        match list {
            Some(list) => Self::listed(list, local, inventory),
            None => Self::known(aliases(), &known_hosts_files(), local, inventory),
        }
    }

    /// Makes the allowed hosts from a list. A group's name stands for its hosts.
    pub(super) fn listed(list: &[HostPattern], local: bool, inventory: &Inventory) -> Self {
        let mut names = BTreeSet::new();
        let mut globs = Vec::new();
        for pattern in list {
            match pattern {
                HostPattern::Glob(glob) => globs.push(glob.clone()),
                HostPattern::Name(name) => match inventory.members(name) {
                    Some(members) => names.extend(members.into_iter().map(str::to_owned)),
                    None => {
                        names.insert(name.clone());
                    }
                },
            }
        }
        Self {
            by: AllowedBy::List { names, globs },
            local,
            local_names: local_names(inventory),
            warnings: Vec::new(),
        }
    }

    pub(super) fn known(aliases: HostAliases, files: &[PathBuf], local: bool, inventory: &Inventory) -> Self {
        let mut warnings = aliases.warnings;
        let mut bytes = Vec::new();
        for file in files {
            match known_hosts::read(file) {
                Ok(read) => bytes.push(read),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => {
                    warnings.push(format!("No host of {} may be named: {error}.", file.display()));
                }
            }
        }
        let mut named: BTreeSet<String> = aliases.names.into_iter().filter(|name| is_name(name)).collect();
        named.extend(inventory.entries().map(|entry| entry.name.clone()));
        let known_hosts: LazyKnownHosts = LazyLock::new(Box::new(move || ListedHosts::of(&bytes)));
        Self {
            by: AllowedBy::Known { named, known_hosts },
            local,
            local_names: local_names(inventory),
            warnings,
        }
    }

    /// Says whether a call may name the host. Only `ssh.local` allows this machine; a name other than localhost also
    /// has to be among the allowed ones.
    pub fn allows(&self, name: &str) -> bool {
        if name == LOCALHOST {
            return self.local;
        }
        if !is_name(name) || !self.local && self.local_names.contains(name) {
            return false;
        }
        match &self.by {
            AllowedBy::List { names, globs } => {
                names.contains(name) || globs.iter().any(|glob| glob.matches(name))
            }
            AllowedBy::Known { named, known_hosts } => named.contains(name) || known_hosts.has(name),
        }
    }

    /// Returns the allowed hosts whose names are known, sorted within each source. Hashed names of known_hosts are
    /// missing, and so is what else a pattern of the configuration allows.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let known_hosts = match &self.by {
            AllowedBy::List { .. } => None,
            AllowedBy::Known { named, known_hosts } => {
                let new = |name: &&str| is_name(name) && *name != LOCALHOST && !named.contains(*name);
                Some(known_hosts.plain().filter(new))
            }
        };
        self.written_names().chain(known_hosts.into_iter().flatten())
    }

    /// Returns those names that somebody wrote down. The names of known_hosts aren't among them: every connection adds
    /// to it, and it lists a host by several names.
    pub(super) fn written_names(&self) -> impl Iterator<Item = &str> {
        let (AllowedBy::List { names: written_names, .. } | AllowedBy::Known { named: written_names, .. }) =
            &self.by;
        let is_allowed =
            |name: &&String| *name != LOCALHOST && (self.local || !self.local_names.contains(*name));
        let written_names = written_names.iter().filter(is_allowed).map(String::as_str);
        self.local.then_some(LOCALHOST).into_iter().chain(written_names)
    }

    /// Returns the hosts that the configuration lists one by one. There are none where it has no list.
    pub(super) fn configured(&self) -> impl Iterator<Item = &str> {
        let listed = match &self.by {
            AllowedBy::List { names, .. } => Some(names),
            AllowedBy::Known { .. } => None,
        };
        listed.into_iter().flatten().map(String::as_str).filter(|name| self.allows(name))
    }

    /// Says whether the configuration lists the allowed hosts.
    pub(super) fn is_listed(&self) -> bool {
        matches!(self.by, AllowedBy::List { .. })
    }

    /// Says whether any machine besides this one may be named.
    pub fn has_others(&self) -> bool {
        let others = match &self.by {
            AllowedBy::List { globs, .. } => !globs.is_empty(),
            AllowedBy::Known { known_hosts, .. } => !known_hosts.is_empty(),
        };
        others || self.written_names().any(|name| name != LOCALHOST)
    }

    /// Returns a sentence about each file that couldn't be read.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }
}

fn is_name(name: &str) -> bool {
    name.parse::<Alias>().is_ok()
}

fn local_names(inventory: &Inventory) -> BTreeSet<String> {
    inventory.entries().filter(|entry| entry.is_local).map(|entry| entry.name.clone()).collect()
}

#[cfg(test)]
mod tests;
