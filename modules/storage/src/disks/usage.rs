//! `disk_usage`: how full the file systems are, and the cause where one is nearly full.

use linux_sysadmin_sdk::prelude::*;

use super::cause::{self, Cause, Machine};
use super::deleted::DeletedFiles;
use super::place;
use super::services::Services;
use super::space::{self, Space};
use crate::mount_table::{Mount, MountTable};
use crate::size::shown;

const NEARLY_FULL: u64 = 90;
/// A file system in memory that is less full, in percent, is left out.
const MEMORY_TOLD: u64 = 50;
/// The most file systems whose cause is looked for in one call.
const MOST_CAUSES: usize = 4;
/// The time for all walks in seconds.
const WALK_SECONDS: u32 = 24;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct UsageArgs {
    /// Only its file system, and what fills it
    path: Option<String>,
    /// Tell causes from here on; default 90
    #[schemars(range(min = 1, max = 100))]
    nearly_full_pct: Option<u64>,
}

#[derive(Serialize)]
pub(crate) struct Usage {
    /// The fullest comes first.
    filesystems: Vec<FileSystem>,
    /// What fills those that are nearly full.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    causes: Vec<Cause>,
    /// Parts of the answer that could not be found out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    missing: Vec<String>,
}

#[derive(Serialize)]
struct FileSystem {
    mount: String,
    device: String,
    #[serde(rename = "type")]
    kind: String,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    room: Option<Room>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    read_only: bool,
    /// The reason why there are no numbers.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
}

#[derive(Serialize)]
struct Room {
    size: String,
    used: String,
    available: String,
    /// As df computes it.
    used_pct: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    inodes_used_pct: Option<u64>,
    /// What only root may use.
    #[serde(skip_serializing_if = "Option::is_none")]
    reserved: Option<String>,
}

impl Room {
    fn of(mount: &Mount, space: &Space) -> Self {
        let reserved = space.reserved_on(mount);
        Self {
            size: shown(space.size),
            used: shown(space.used()),
            available: shown(space.available),
            used_pct: space.used_pct(),
            inodes_used_pct: (space.inodes > 0).then(|| space.inodes_used_pct()),
            reserved: (reserved > 0).then(|| shown(reserved)),
        }
    }
}

fn fullness(space: &Space) -> u64 {
    space.used_pct().max(space.inodes_used_pct())
}

/// A file system with its numbers, or with the reason why there are none.
type Asked<'a> = (&'a Mount, std::result::Result<Space, String>);

pub(crate) fn usage(args: UsageArgs, cx: &Context) -> Result<Analysis<Usage>> {
    let table = MountTable::read(cx)?;
    let path = args.path.map(|path| place::resolved(&path, cx)).transpose()?;
    let mounts = match &path {
        Some(path) => vec![table.of(path).ok_or_else(|| no_mount(path))?],
        None => table.file_systems(),
    };
    let mut asked: Vec<Asked<'_>> = mounts.iter().copied().zip(space::of(&mounts, cx)).collect();
    if path.is_none() {
        asked.retain(|(mount, space)| match space {
            Ok(space) => space.size > 0 && (!mount.is_in_memory() || fullness(space) >= MEMORY_TOLD),
            Err(_) => true,
        });
    }
    // What gives no numbers comes first: it keeps programs waiting.
    asked.sort_by_key(|(_, space)| std::cmp::Reverse(space.as_ref().map_or(u64::MAX, fullness)));
    let nearly_full = args.nearly_full_pct.unwrap_or(NEARLY_FULL);
    let is_full = |space: &Space| path.is_some() || fullness(space) >= nearly_full;
    let full: Vec<(&Mount, Space)> = asked
        .iter()
        .filter(|(mount, _)| path.is_some() || !mount.is_read_only())
        .filter_map(|(mount, space)| Some((*mount, *space.as_ref().ok().filter(|space| is_full(space))?)))
        .collect();
    let (causes, mut missing) = causes(&full, &table, cx);
    if full.len() > MOST_CAUSES {
        let others: Vec<&str> =
            full.iter().skip(MOST_CAUSES).map(|(mount, _)| mount.point.as_str()).collect();
        missing.push(format!("causes for {}: disk_usage with `path` tells them", others.join(", ")));
    }
    let (summary, severity) = meaning(&asked, &full, &causes);
    let filesystems = asked.into_iter().map(told).collect();
    Ok(Analysis { data: Usage { filesystems, causes, missing }, summary, severity })
}

fn no_mount(path: &str) -> Problem {
    Problem::not_found("NO_FILE_SYSTEM", format!("no mounted file system has {path}"))
}

fn causes(full: &[(&Mount, Space)], table: &MountTable, cx: &Context) -> (Vec<Cause>, Vec<String>) {
    let mut missing = Vec::new();
    if full.is_empty() {
        return (Vec::new(), missing);
    }
    let deleted = DeletedFiles::look(table, cx).unwrap_or_else(|problem| {
        missing.push(format!("deleted files that are open: {}", problem.message));
        DeletedFiles::default()
    });
    if deleted.is_partial {
        missing.push(
            "deleted files that other accounts' processes have open: root's rights are needed".to_owned(),
        );
    }
    let services = Services::look(full, table, cx);
    let machine = Machine { table, deleted: &deleted, services: &services, seconds: seconds(full.len()) };
    let causes = full.iter().take(MOST_CAUSES).map(|(mount, space)| cause::of(mount, space, &machine, cx));
    (causes.collect(), missing)
}

/// The time for the walk over one of so many file systems.
fn seconds(full: usize) -> u32 {
    WALK_SECONDS / u32::try_from(full.clamp(1, MOST_CAUSES)).unwrap_or(1)
}

fn told((mount, space): Asked<'_>) -> FileSystem {
    let (room, problem) = match space {
        Ok(space) => (Some(Room::of(mount, &space)), None),
        Err(why) => (None, Some(why)),
    };
    FileSystem {
        mount: mount.point.clone(),
        device: mount.source.clone(),
        kind: mount.kind.clone(),
        room,
        read_only: mount.is_read_only(),
        problem,
    }
}

fn meaning(asked: &[Asked<'_>], full: &[(&Mount, Space)], causes: &[Cause]) -> (String, Severity) {
    let mut severity = Severity::Info;
    let mut said = Vec::new();
    for (mount, why) in asked.iter().filter_map(|(mount, space)| Some((mount, space.as_ref().err()?))) {
        severity = severity.max(Severity::High);
        said.push(format!("{} ({}, {}): {why}", mount.point, mount.kind, mount.source));
    }
    for (at, (mount, space)) in full.iter().enumerate() {
        let percent = fullness(space);
        severity = severity.max(match percent {
            95.. => Severity::Critical,
            90.. => Severity::High,
            80.. => Severity::Warning,
            _ => Severity::Info,
        });
        let of = if space.inodes_used_pct() > space.used_pct() { "inodes are" } else { "is" };
        let why = causes.get(at).map(|cause| format!(": {}", cause.why)).unwrap_or_default();
        said.push(format!("{} {of} {percent} % full{why}", mount.point));
    }
    if said.is_empty() {
        let fullest = asked.iter().find_map(|(mount, space)| Some((mount, space.as_ref().ok()?)));
        said.push(fullest.map_or("no file system was found".to_owned(), |(mount, space)| {
            format!("the fullest is {} with {} %", mount.point, fullness(space))
        }));
    }
    (said.join("; "), severity)
}
