//! The services that live on a file system: their processes have files there open for writing, their state directory lies
//! there, or their profile names data or logs there.

use std::collections::{BTreeMap, BTreeSet};

use linux_sysadmin_sdk::processes::cgroup;
use linux_sysadmin_sdk::processes::links::{self, DELETED, Link};
use linux_sysadmin_sdk::{DurationCategory, Privilege, prelude::*};

use super::deleted::is_of_memory;
use super::owners::Owners;
use crate::mount_table::{Mount, MountTable};

/// Prints the descriptors of files that are open for writing. The mode of the link says so. Reading the links asks no file
/// system, so that it can't block.
const WRITTEN: CommandLine = CommandLine::new(
    "find /proc -mindepth 1 -maxdepth 3 '(' -path '/proc/[!1-9]*' -o -path '/proc/*/task' -o -path '/proc/*/net' \
     -o -path '/proc/*/attr' -o -path '/proc/*/ns' -o -path '/proc/*/fdinfo' -o -path '/proc/*/map_files' ')' -prune \
     -o -type l -path '/proc/*/fd/*' -perm /0200 -lname '/*' '!' -lname '/dev/*' -printf '%p\\t%l\\0'",
);

/// Tells the directories that systemd makes for services, below the directory of each kind. See systemd.exec(5).
const DIRECTORIES: CommandLine = CommandLine::new(
    "systemctl show --type=service --state=active --property=Id,StateDirectory,LogsDirectory,CacheDirectory -- '*'",
);

/// The parent directory of each kind of directory.
const PARENTS: [(&str, &str); 3] =
    [("StateDirectory", "/var/lib"), ("LogsDirectory", "/var/log"), ("CacheDirectory", "/var/cache")];

/// The most services that are told.
const TOLD: usize = 8;
/// The most processes whose units are looked up.
const PROCESSES: usize = 500;

pub(crate) fn grants() -> [CommandGrant; 2] {
    [
        WRITTEN.read("which services write to a file system that is nearly full").as_root_if_available(),
        DIRECTORIES.read("which services keep their data on a file system that is nearly full"),
    ]
}

/// A service that lives on a file system.
#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct Service {
    #[serde(skip_serializing_if = "Option::is_none")]
    unit: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    profile: Option<String>,
    /// A file that it has open for writing.
    #[serde(skip_serializing_if = "Option::is_none")]
    writes: Option<String>,
    /// A directory or file that is its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    owns: Option<String>,
}

/// What was found out on the machine about its services.
#[derive(Default)]
pub(crate) struct Services {
    owners: Owners,
    /// The files that are open for writing, each with the unit of the process.
    written: Vec<(String, String)>,
    /// The directories that systemd made, each with its unit.
    directories: Vec<(String, String)>,
}

impl Services {
    /// Looks for the services on these file systems.
    pub(crate) fn look(full: &[(&Mount, super::space::Space)], table: &MountTable, cx: &Context) -> Self {
        let devices: BTreeSet<&str> = full.iter().map(|(mount, _)| mount.device.as_str()).collect();
        let [written, directories] = cx.run_each([
            WRITTEN.command().privilege(Privilege::RootIfAvailable),
            DIRECTORIES.command().duration(DurationCategory::Quick),
        ]);
        let mut links = written.map(|output| links::parse(&output)).unwrap_or_default();
        links.retain(|link| {
            let is_there =
                || table.of(&link.target).is_some_and(|mount| devices.contains(mount.device.as_str()));
            !is_of_memory(&link.target) && is_there()
        });
        let directories = directories.map(|output| directories_in(&output.text())).unwrap_or_default();
        Self { owners: Owners::look(cx), written: with_units(links, cx), directories }
    }

    /// The service that a path belongs to: the unit that writes it, or else the one whose profile covers most of it.
    pub(crate) fn of(&self, path: &str) -> Option<&str> {
        let writer = self.written.iter().find(|(written, _)| written == path).map(|(_, unit)| unit.as_str());
        writer.or_else(|| self.owners.of(path))
    }

    /// The services on a file system. Those that write there come first.
    pub(crate) fn on(&self, mount: &Mount, table: &MountTable) -> Vec<Service> {
        let is_there = |path: &str| table.of(path).is_some_and(|of| of.device == mount.device);
        let mut found: Vec<Service> = Vec::new();
        for (path, unit) in self.written.iter().filter(|(path, _)| is_there(path)) {
            let service = by_unit(&mut found, unit);
            service.writes.get_or_insert_with(|| path.clone());
        }
        for (path, owner) in self.owners.on(is_there) {
            let service = match &owner.unit {
                Some(unit) => by_unit(&mut found, unit),
                None => by_profile(&mut found, &owner.id),
            };
            service.profile = Some(owner.id.clone());
            service.owns = Some(path.to_owned());
        }
        for (path, unit) in self.directories.iter().filter(|(path, _)| is_there(path)) {
            let service = by_unit(&mut found, unit);
            service.owns.get_or_insert_with(|| path.clone());
        }
        found.truncate(TOLD);
        found
    }
}

fn by_unit<'a>(found: &'a mut Vec<Service>, unit: &str) -> &'a mut Service {
    let at = found.iter().position(|service| service.unit.as_deref() == Some(unit));
    at_or_new(found, at, Service { unit: Some(unit.to_owned()), profile: None, writes: None, owns: None })
}

fn by_profile<'a>(found: &'a mut Vec<Service>, id: &str) -> &'a mut Service {
    let at = found.iter().position(|service| service.profile.as_deref() == Some(id));
    at_or_new(found, at, Service { unit: None, profile: Some(id.to_owned()), writes: None, owns: None })
}

fn at_or_new(found: &mut Vec<Service>, at: Option<usize>, new: Service) -> &mut Service {
    let at = at.unwrap_or(found.len());
    if at == found.len() {
        found.push(new);
    }
    &mut found[at]
}

/// The files behind the links, each with its unit. Those of processes outside of every unit are left out.
fn with_units(links: Vec<Link>, cx: &Context) -> Vec<(String, String)> {
    let pids: BTreeSet<u32> = links.iter().map(|link| link.pid).collect();
    let pids: Vec<u32> = pids.into_iter().take(PROCESSES).collect();
    let texts = cx.read_all(&pids.iter().map(|pid| format!("/proc/{pid}/cgroup")).collect::<Vec<_>>());
    let unit = |text: &Result<String>| cgroup::unit(text.as_ref().ok()?).map(str::to_owned);
    let units: BTreeMap<u32, String> =
        pids.iter().zip(&texts).filter_map(|(pid, text)| Some((*pid, unit(text)?))).collect();
    let path = |link: &Link| link.target.strip_suffix(DELETED).unwrap_or(&link.target).to_owned();
    links.iter().filter_map(|link| Some((path(link), units.get(&link.pid)?.clone()))).collect()
}

/// The directories in what systemctl printed, each with its unit.
fn directories_in(text: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for block in text.split("\n\n") {
        let value = |key: &str| block.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
        let Some(unit) = value("Id") else { continue };
        for (kind, parent) in PARENTS {
            // A name may be followed by the name of a symlink, behind a colon.
            let names =
                value(kind).unwrap_or_default().split_whitespace().filter_map(|name| name.split(':').next());
            found.extend(names.map(|name| (format!("{parent}/{name}"), unit.to_owned())));
        }
    }
    found
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn directories_lie_where_systemd_makes_them() {
        // systemd 252
        let text = "Id=a.service\nStateDirectory=a a/b\nCacheDirectory=\nLogsDirectory=a\n\nId=b.service\nStateDirectory=\n\n\
            StateDirectory=x\n";
        let found = directories_in(text);
        let shown: Vec<_> = found.iter().map(|(path, unit)| (path.as_str(), unit.as_str())).collect();
        let a = "a.service";
        assert_eq!(shown, [("/var/lib/a", a), ("/var/lib/a/b", a), ("/var/log/a", a)]);
        assert!(directories_in("").is_empty() && directories_in("garbage").is_empty());
    }
}
