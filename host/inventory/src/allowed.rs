//! Which hosts may be named at all. Where the configuration lists them, those; else all that the user has named to ssh
//! before the server started: in `~/.ssh/config`, by connecting to them (known_hosts), or in the inventory. It is as it
//! was at the start from there on: a model with a shell could add lines to those files.

use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;
use std::sync::LazyLock;

use super::{Glob, HostPattern, Inventory, LOCALHOST};
use host_openssh::Alias;
use host_openssh::config::{Aliases, aliases, known_hosts_files};
use host_openssh::known_hosts::{self, Listed};

/// What a call's `host` may name.
#[derive(Debug)]
pub struct Allowed {
    by: By,
    /// This machine, by whatever name.
    local: bool,
    /// Names of this machine that the inventory has.
    local_names: BTreeSet<String>,
    warnings: Vec<String>,
}

#[derive(Debug)]
enum By {
    /// `ssh.allowed_hosts`, with the hosts of groups in it.
    List { names: BTreeSet<String>, globs: Vec<Glob> },
    /// Whatever is known.
    Known { named: BTreeSet<String>, known_hosts: Known },
}

/// Thousands of lines, perhaps, which most servers never need: read at the start, taken apart when they are first
/// asked about.
type Known = LazyLock<Listed, Box<dyn FnOnce() -> Listed + Send>>;

impl Allowed {
    /// As it is now. Where the configuration lists hosts, no other file is read.
    pub fn load(list: Option<&[HostPattern]>, local: bool, inventory: &Inventory) -> Self {
        match list {
            Some(list) => Self::listed(list, local, inventory),
            None => Self::known(aliases(), &known_hosts_files(), local, inventory),
        }
    }

    /// A group's name means its hosts, as they were then.
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
            by: By::List { names, globs },
            local,
            local_names: local_names(inventory),
            warnings: Vec::new(),
        }
    }

    pub(super) fn known(aliases: Aliases, files: &[PathBuf], local: bool, inventory: &Inventory) -> Self {
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
        let known_hosts: Known = LazyLock::new(Box::new(move || Listed::of(&bytes)));
        Self { by: By::Known { named, known_hosts }, local, local_names: local_names(inventory), warnings }
    }

    /// Whether a call may name the host. This machine is nobody's but `ssh.local`'s to allow; by another name than
    /// localhost it has to be among the allowed ones, too.
    pub fn allows(&self, name: &str) -> bool {
        if name == LOCALHOST {
            return self.local;
        }
        if !is_name(name) || !self.local && self.local_names.contains(name) {
            return false;
        }
        match &self.by {
            By::List { names, globs } => names.contains(name) || globs.iter().any(|glob| glob.matches(name)),
            By::Known { named, known_hosts } => named.contains(name) || known_hosts.has(name),
        }
    }

    /// The allowed hosts whose names are known, sorted where they come from the same place. Hidden ones of known_hosts
    /// are missing, and whatever else a pattern of the configuration allows.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let known_hosts = match &self.by {
            By::List { .. } => None,
            By::Known { named, known_hosts } => {
                let new = |name: &&str| is_name(name) && *name != LOCALHOST && !named.contains(*name);
                Some(known_hosts.plain().filter(new))
            }
        };
        self.given().chain(known_hosts.into_iter().flatten())
    }

    /// Those of the names that somebody wrote down for a host, which known_hosts is not: every connection adds to it,
    /// and a host is in it by several names.
    pub(super) fn given(&self) -> impl Iterator<Item = &str> {
        let (By::List { names: given, .. } | By::Known { named: given, .. }) = &self.by;
        let is_allowed =
            |name: &&String| *name != LOCALHOST && (self.local || !self.local_names.contains(*name));
        let given = given.iter().filter(is_allowed).map(String::as_str);
        self.local.then_some(LOCALHOST).into_iter().chain(given)
    }

    /// The hosts that the configuration lists one by one; nothing where it lists none.
    pub(super) fn configured(&self) -> impl Iterator<Item = &str> {
        let listed = match &self.by {
            By::List { names, .. } => Some(names),
            By::Known { .. } => None,
        };
        listed.into_iter().flatten().map(String::as_str).filter(|name| self.allows(name))
    }

    /// Whether the configuration lists what is allowed.
    pub(super) fn is_listed(&self) -> bool {
        matches!(self.by, By::List { .. })
    }

    /// Whether any machine but this one may be named.
    pub fn has_others(&self) -> bool {
        let others = match &self.by {
            By::List { globs, .. } => !globs.is_empty(),
            By::Known { known_hosts, .. } => !known_hosts.is_empty(),
        };
        others || self.given().any(|name| name != LOCALHOST)
    }

    /// What couldn't be read, a sentence each.
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
