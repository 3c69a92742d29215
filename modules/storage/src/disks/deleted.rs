//! Deleted files that are still open. They take space until the last process closes them, and no directory shows them.

use std::collections::BTreeMap;

use linux_sysadmin_sdk::processes::links::{self, DELETED, Link};
use linux_sysadmin_sdk::processes::{self, Process, Stat};
use linux_sysadmin_sdk::{Privilege, prelude::*};

use crate::mount_table::{Mount, MountTable};
use crate::size::shown;

/// Prints the descriptors of deleted files. Reading the links asks no file system, so that it can't block.
const LINKS: CommandLine = CommandLine::new(
    "find /proc -mindepth 1 -maxdepth 3 '(' -path '/proc/[!1-9]*' -o -path '/proc/*/task' -o -path '/proc/*/net' \
     -o -path '/proc/*/attr' -o -path '/proc/*/ns' -o -path '/proc/*/fdinfo' -o -path '/proc/*/map_files' ')' -prune \
     -o -type l -path '/proc/*/fd/*' -lname '* (deleted)' -printf '%p\\t%l\\0'",
);

/// Prints device, inode, links and blocks of open files.
const FILES: CommandLine =
    CommandLine::new("stat --dereference --printf '%d %i %h %b %n\\0' -- /proc/<int>/fd/<int>...");

/// The most descriptors that are looked at. They have to fit on one command line.
const MOST: usize = 2000;
/// The unit of `%b` in bytes, which stat(1) calls `%B`.
const BLOCK: u64 = 512;

pub(crate) fn grants() -> [CommandGrant; 2] {
    [
        LINKS.read("deleted files that processes have open").as_root_if_available(),
        FILES.read("sizes of deleted files that processes have open").as_root_if_available(),
    ]
}

/// A deleted file that processes have open.
#[derive(Serialize)]
pub(crate) struct DeletedFile {
    /// The path that the file had.
    pub(crate) path: String,
    pub(crate) size: String,
    #[serde(flatten)]
    pub(crate) process: Process,
    /// The number of other processes that have the file open.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) more_processes: Option<usize>,
    /// The call that frees the space.
    pub(crate) next: String,
}

/// The deleted files that were found on all file systems.
#[derive(Default)]
pub(crate) struct DeletedFiles {
    found: Vec<Found>,
    /// Whether processes of other accounts couldn't be looked at.
    pub(crate) is_partial: bool,
}

struct Found {
    device: u64,
    path: String,
    bytes: u64,
    /// The lowest number first, which is the parent of the others more often than not.
    pids: Vec<u32>,
}

impl DeletedFiles {
    pub(crate) fn look(table: &MountTable, cx: &Context) -> Result<Self> {
        let output = cx.run(LINKS.command().privilege(Privilege::RootIfAvailable))?;
        let mut links = links::parse(&output);
        // A file system that may hang isn't asked.
        links.retain(|link| {
            table.of(&link.target).is_none_or(|mount| !mount.may_hang()) && !is_of_memory(&link.target)
        });
        links.truncate(MOST);
        let is_partial = links::is_partial(&output, "/proc/");
        if links.is_empty() {
            return Ok(Self { found: Vec::new(), is_partial });
        }
        let paths = links.iter().map(|link| format!("/proc/{}/{}", link.pid, link.name));
        let files = cx.run(FILES.with(paths).privilege(Privilege::RootIfAvailable))?;
        Ok(Self { found: by_file(&links, &files.text()), is_partial })
    }

    /// The bytes that deleted files take on a file system.
    pub(crate) fn bytes_on(&self, mount: &Mount, table: &MountTable) -> u64 {
        self.on(mount, table).map(|found| found.bytes).sum()
    }

    /// The largest deleted files on a file system, with the processes that have them open.
    pub(crate) fn largest_on(
        &self,
        mount: &Mount,
        table: &MountTable,
        most: usize,
        cx: &Context,
    ) -> Vec<DeletedFile> {
        let mut found: Vec<&Found> = self.on(mount, table).filter(|found| found.bytes >= 1 << 20).collect();
        found.sort_by_key(|found| std::cmp::Reverse(found.bytes));
        found.truncate(most);
        let paths: Vec<String> =
            found.iter().filter_map(|found| Some(format!("/proc/{}/stat", found.pids.first()?))).collect();
        let texts = cx.read_all(&paths);
        let stats: Vec<Stat> = texts.iter().filter_map(|text| Stat::parse(text.as_ref().ok()?)).collect();
        let of: BTreeMap<u32, Process> = processes::look_up(cx, &stats)
            .into_iter()
            .map(|found| (found.process.pid, found.process))
            .collect();
        let told = |found: &Found| {
            let pid = *found.pids.first()?;
            let process = of.get(&pid)?.clone();
            let others = found.pids.len() - 1;
            Some(DeletedFile {
                path: found.path.clone(),
                size: shown(found.bytes),
                next: next(&process),
                process,
                more_processes: (others > 0).then_some(others),
            })
        };
        found.into_iter().filter_map(told).collect()
    }

    fn on<'a>(&'a self, mount: &'a Mount, table: &'a MountTable) -> impl Iterator<Item = &'a Found> {
        let device = number(&mount.device);
        self.found.iter().filter(move |found| {
            let is_known = table.all().iter().any(|other| number(&other.device) == Some(found.device));
            // A subvolume of btrfs, and the overlay of a container, have devices that the table doesn't name.
            let is_by_path =
                || !is_known && table.of(&found.path).is_some_and(|of| of.device == mount.device);
            device == Some(found.device) || is_by_path()
        })
    }
}

/// Memory that programs share has the form of deleted files.
pub(crate) fn is_of_memory(target: &str) -> bool {
    ["/memfd:", "/dev/zero", "/SYSV", "/[aio]", "/anon_hugepage", "/i915", "/drm"]
        .iter()
        .any(|prefix| target.starts_with(prefix))
}

/// A device as stat(1) prints it, from `major:minor` (makedev(3)).
fn number(device: &str) -> Option<u64> {
    let (major, minor) = device.split_once(':')?;
    let (major, minor): (u64, u64) = (major.parse().ok()?, minor.parse().ok()?);
    Some((minor & 0xff) | ((major & 0xfff) << 8) | ((minor & !0xff) << 12) | ((major & !0xfff) << 32))
}

/// The files behind the links, each once with all its processes.
fn by_file(links: &[Link], text: &str) -> Vec<Found> {
    let mut files: BTreeMap<(u64, u64), Found> = BTreeMap::new();
    let by_path: BTreeMap<String, &Link> =
        links.iter().map(|link| (format!("/proc/{}/{}", link.pid, link.name), link)).collect();
    for line in text.split('\0') {
        let mut words = line.splitn(5, ' ');
        let mut number = || words.next()?.parse::<u64>().ok();
        let (Some(device), Some(inode), Some(names), Some(blocks)) = (number(), number(), number(), number())
        else {
            continue;
        };
        let Some(link) = words.next().and_then(|path| by_path.get(path)) else { continue };
        // A file whose own name ends like that has a name, and so does one that was deleted by one of its names only.
        if names > 0 {
            continue;
        }
        let path = link.target.strip_suffix(DELETED).unwrap_or(&link.target).to_owned();
        let bytes = blocks.saturating_mul(BLOCK);
        let file = files.entry((device, inode)).or_insert(Found { device, path, bytes, pids: Vec::new() });
        file.pids.push(link.pid);
    }
    let mut found: Vec<Found> = files.into_values().collect();
    for file in &mut found {
        file.pids.sort_unstable();
        file.pids.dedup();
    }
    found
}

/// The call that has the process close the file.
fn next(process: &Process) -> String {
    let unit = process.unit.as_deref();
    match unit.filter(|unit| unit.ends_with(".service") && !unit.starts_with("user@")) {
        Some(unit) => format!("svc_restart {{\"service\": \"{unit}\"}}"),
        None => format!("proc_signal {{\"pid\": {}}}", process.pid),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_told_once_with_all_its_processes_and_one_that_has_a_name_isnt() {
        let link = |pid, name: &str, target: &str| Link { pid, name: name.into(), target: target.into() };
        let links = [
            link(9, "fd/3", "/srv/x\ny (deleted)"),
            link(7, "fd/3", "/srv/x\ny (deleted)"),
            link(7, "fd/4", "/srv/x\ny (deleted)"),
            link(7, "fd/5", "/srv/named (deleted)"),
        ];
        let said = "2049 5 0 16 /proc/9/fd/3\x002049 5 0 16 /proc/7/fd/3\x002049 5 0 16 /proc/7/fd/4\x00\
            2049 6 1 8 /proc/7/fd/5\0garbage\x002049 5 0 16 /proc/8/fd/1\0";
        let found = by_file(&links, said);
        assert_eq!(found.len(), 1);
        assert_eq!(
            (found[0].path.as_str(), found[0].bytes, &found[0].pids[..]),
            ("/srv/x\ny", 8192, &[7, 9][..])
        );
    }

    #[test]
    fn devices_have_the_number_that_stat_prints() {
        for (device, expected) in [("8:1", 2049), ("0:50", 50), ("254:0", 65024), ("259:300", 1_114_924)] {
            assert_eq!(number(device), Some(expected), "{device}");
        }
        assert_eq!(number("8"), None);
    }
}
