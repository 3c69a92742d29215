//! What fills one file system.
//!
//! The walk over its tree says what the names in it take, and the processes say what deleted files take. What is used beyond
//! both is hidden: below mount points, or by the file system itself.

use linux_sysadmin_sdk::prelude::*;

use super::cleaning::{self, Cleaning};
use super::deleted::{DeletedFile, DeletedFiles};
use super::growable::{self, Growable};
use super::growth;
use super::largest::most_telling;
use super::services::{Service, Services};
use super::space::Space;
use super::walk::{self, Changed, Taken, Walk};
use crate::mount_table::{Mount, MountTable};
use crate::size::shown;

/// The number of deleted files that are told.
const DELETED: usize = 5;
/// The number of directories and files that are told.
const TOLD: usize = 8;
/// A directory that consists of at most so many things isn't told.
pub(crate) const FEW: usize = 3;
/// The share of what is used that a directory or file has to take to be told, in percent.
const SHARE: u64 = 3;
/// From this share of the size on, hidden data is told, in percent.
const HIDDEN_SHARE: u64 = 5;
/// Less is never told as hidden, in bytes. xfs keeps space for itself: 20 MB of 320 MB, and smaller shares of larger ones.
const HIDDEN_LEAST: u64 = 1 << 20;
const HIDDEN_LEAST_XFS: u64 = 64 << 20;
/// From this share on, deleted files and hidden data are named as the cause, in percent.
const CAUSE_SHARE: u64 = 20;

/// What is known of the machine, for all file systems.
pub(crate) struct Machine<'a> {
    pub(crate) table: &'a MountTable,
    pub(crate) deleted: &'a DeletedFiles,
    pub(crate) services: &'a Services,
    /// The time for a walk.
    pub(crate) seconds: u32,
}

#[derive(Serialize)]
pub(crate) struct Cause {
    mount: String,
    /// The cause in a sentence, which is in the summary.
    #[serde(skip)]
    pub(crate) why: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    deleted_open: Vec<DeletedFile>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hidden: Option<Hidden>,
    /// Directories end with `/`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    largest: Vec<Large>,
    /// The directories with most files, where inodes are used up.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    most_files: Vec<Crowded>,
    /// The largest files that were changed within a day.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    changed: Vec<Large>,
    /// The services that live there. Those that write there come first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    services: Vec<Service>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    clean: Vec<Cleaning>,
    /// Room on the device that the file system doesn't take.
    #[serde(skip_serializing_if = "Option::is_none")]
    growable: Option<Growable>,
    /// What the walk left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    partial: Option<String>,
}

/// Space that neither names nor open files account for.
#[derive(Serialize)]
struct Hidden {
    size: String,
    #[serde(skip)]
    bytes: u64,
    /// The mount points that can hide it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    below_mounts: Vec<String>,
    /// What shows it.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// A directory or a file.
#[derive(Serialize)]
pub(crate) struct Large {
    pub(crate) path: String,
    size: String,
    /// The unit that writes it, or the service whose profile names it.
    #[serde(skip_serializing_if = "Option::is_none")]
    service: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    changed_within: Option<Changed>,
    /// The growth, as `1.5M/s`.
    #[serde(skip_serializing_if = "Option::is_none")]
    grows: Option<String>,
}

impl Large {
    pub(crate) fn of(taken: &Taken, service: Option<&str>) -> Self {
        Self {
            path: taken.path.clone(),
            size: shown(taken.bytes),
            service: service.map(str::to_owned),
            changed_within: taken.changed,
            grows: None,
        }
    }
}

/// A directory with many files below it.
#[derive(Serialize)]
pub(crate) struct Crowded {
    path: String,
    files: u64,
}

impl Crowded {
    pub(crate) fn of(taken: &Taken) -> Self {
        Self { path: taken.path.clone(), files: taken.inodes }
    }
}

pub(crate) fn of(mount: &Mount, space: &Space, machine: &Machine<'_>, cx: &Context) -> Cause {
    let Machine { table, deleted, services, seconds } = machine;
    let (walk, failed) = match walk::walk(&mount.point, *seconds, cx) {
        Ok(walk) => (Some(walk), None),
        Err(problem) => (None, Some(problem.message)),
    };
    let least = space.used() * SHARE / 100;
    let in_deleted = deleted.bytes_on(mount, table);
    let hidden = walk.as_ref().and_then(|walk| hidden(mount, space, walk, in_deleted, table));
    let mut cause = Cause {
        mount: mount.point.clone(),
        why: String::new(),
        deleted_open: deleted.largest_on(mount, table, DELETED, cx),
        hidden,
        largest: Vec::new(),
        most_files: Vec::new(),
        changed: Vec::new(),
        services: services.on(mount, table),
        clean: Vec::new(),
        growable: growable::of(mount, space, cx),
        partial: failed,
    };
    if let Some(walk) = &walk {
        let all = walk.directories.iter().chain(&walk.files);
        let told = most_telling(all, |taken| taken.bytes, least, FEW).into_iter().take(TOLD);
        cause.largest = told.map(|taken| Large::of(taken, services.of(&taken.path))).collect();
        if space.inodes_used_pct() > space.used_pct() {
            let least = space.inodes_used() * SHARE / 100;
            let told =
                most_telling(walk.crowded.iter(), |taken| taken.inodes, least, 1).into_iter().take(TOLD);
            cause.most_files = told.map(Crowded::of).collect();
        }
        cause.changed = changed(walk, least, services, &mut cause.largest, cx);
        cause.clean = cleaning::of(walk, least, cx);
        cause.partial = walk.left_out();
    }
    cause.why = why(&cause, mount, space, in_deleted);
    cause
}

/// The files that were changed within a day and aren't told as the largest, each with its growth.
fn changed(walk: &Walk, least: u64, services: &Services, largest: &mut [Large], cx: &Context) -> Vec<Large> {
    let rates = growth::rates(&walk.changed, cx);
    for one in largest.iter_mut() {
        one.grows = rates.get(&one.path).cloned();
    }
    let is_told = |path: &str| largest.iter().any(|one| one.path == path);
    let told = walk.changed.iter().filter(|taken| {
        (taken.bytes >= least || rates.contains_key(&taken.path)) && taken.bytes > 0 && !is_told(&taken.path)
    });
    let large = |taken: &Taken| Large {
        grows: rates.get(&taken.path).cloned(),
        ..Large::of(taken, services.of(&taken.path))
    };
    told.take(TOLD).map(large).collect()
}

/// What is used beyond the names and the deleted files. It can be told only where the walk has seen everything.
fn hidden(mount: &Mount, space: &Space, walk: &Walk, in_deleted: u64, table: &MountTable) -> Option<Hidden> {
    let is_whole = mount.root == "/" && walk.is_complete() && !mount.may_hang();
    let bytes = space.used().saturating_sub(walk.bytes).saturating_sub(in_deleted);
    let least = if mount.kind == "xfs" { HIDDEN_LEAST_XFS } else { HIDDEN_LEAST };
    if !is_whole || bytes < space.size / 100 * HIDDEN_SHARE || bytes < least {
        return None;
    }
    let below_mounts: Vec<String> = table.on(&mount.device).into_iter().map(str::to_owned).collect();
    let next = match (mount.kind.as_str(), below_mounts.first()) {
        ("btrfs", _) => Some(format!(
            r#"command_run {{"argv": ["btrfs", "subvolume", "list", "-s", "{}"], "as_root": true}}"#,
            mount.point
        )),
        ("overlay", _) | (_, None) => None,
        (_, Some(_)) => Some(
            "mount_remove with keep_fstab: true for one that can be spared, then disk_usage_top of its path"
                .to_owned(),
        ),
    };
    // Below the mounts of an overlay lies what its layers have, which take space elsewhere.
    (mount.kind != "overlay").then_some(Hidden { size: shown(bytes), bytes, below_mounts, next })
}

/// The cause in a sentence: what takes most, and how much of what is used.
fn why(cause: &Cause, mount: &Mount, space: &Space, in_deleted: u64) -> String {
    let used = shown(space.used());
    let mut said = Vec::new();
    let is_much = |bytes: u64| bytes > 0 && bytes >= space.used() / 100 * CAUSE_SHARE;
    if is_much(in_deleted)
        && let Some(first) = cause.deleted_open.first()
    {
        let unit = first.process.unit.as_deref().unwrap_or("no unit");
        let (pid, next) = (first.process.pid, &first.next);
        said.push(format!(
            "deleted files that are still open take {} of {used}, {} of them {} in PID {pid} ({unit}), which {next} frees",
            shown(in_deleted),
            first.size,
            first.path,
        ));
    }
    if let Some(hidden) = cause.hidden.as_ref().filter(|hidden| is_much(hidden.bytes)) {
        let place = match (mount.kind.as_str(), hidden.below_mounts.as_slice()) {
            ("btrfs", _) => "in other subvolumes, snapshots or metadata".to_owned(),
            (_, []) => "which can be what the file system needs for itself".to_owned(),
            (_, points) => {
                format!("hidden below a mount point: {}", linux_sysadmin_sdk::text::list(points, 5))
            }
        };
        said.push(format!("{} of {used} are in no file that can be seen, {place}", hidden.size));
    }
    if let Some(first) = cause.most_files.first() {
        said.push(format!(
            "{} of {} inodes are used, {} of them below {}",
            space.inodes_used(),
            space.inodes,
            first.files,
            first.path
        ));
    } else if space.reserved_on(mount) > space.available && space.reserved_on(mount) >= space.size / 100 {
        said.push(format!(
            "of the free {}, {} are reserved for root (tune2fs -m sets the share)",
            shown(space.free),
            shown(space.reserved_on(mount))
        ));
    }
    if cause.most_files.is_empty()
        && let Some(first) = cause.largest.first()
    {
        let whose = first.service.as_ref().map(|service| format!(" of {service}")).unwrap_or_default();
        let grows = first.grows.as_ref().map(|rate| format!(" and grows by {rate}")).unwrap_or_default();
        said.push(format!("{}{whose} takes {}{grows}", first.path, first.size));
    }
    if let Some(Growable { more, next }) = &cause.growable {
        said.push(format!("there are {more} more for it, which {next} gives it"));
    }
    if said.is_empty() {
        said.push(cause.partial.clone().unwrap_or_else(|| "many small files".to_owned()));
    }
    said.join("; ")
}
