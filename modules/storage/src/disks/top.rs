//! `disk_usage_top`: the largest directories and files below a path.

use linux_sysadmin_sdk::prelude::*;

use super::cause::{Crowded, FEW, Large};
use super::cleaning::{self, Cleaning};
use super::largest::most_telling;
use super::owners::Owners;
use super::place;
use super::space::{self, Space};
use super::walk::walk;
use crate::mount_table::{Mount, MountTable};
use crate::size::shown;

const COUNT: usize = 15;
const SECONDS: u32 = 20;
/// What takes a smaller share of the whole is left out, in percent.
const SHARE: u64 = 1;
/// A directory with a smaller share of all files is left out, in percent.
const CROWDED_SHARE: u64 = 10;
/// A tree with fewer files doesn't say where they are.
const MANY_FILES: u64 = 10_000;
const MOST_CROWDED: usize = 5;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct TopArgs {
    /// Default: the fullest
    path: Option<String>,
    /// Default 15
    #[schemars(range(min = 1, max = 100))]
    count: Option<usize>,
    /// Default 20
    #[schemars(range(min = 1, max = 100))]
    seconds: Option<u32>,
}

#[derive(Serialize)]
pub(crate) struct Top {
    path: String,
    size: String,
    files: u64,
    /// Directories end with `/`. A directory is left out where what is told below it takes most of it.
    largest: Vec<Large>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    most_files: Vec<Crowded>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    clean: Vec<Cleaning>,
}

pub(crate) fn top(args: TopArgs, cx: &Context) -> Result<Noted<Top>> {
    let path = match args.path {
        Some(path) => place::resolved(&path, cx)?,
        None => fullest(cx)?,
    };
    let walk = walk(&path, args.seconds.unwrap_or(SECONDS), cx)?;
    let owners = Owners::look(cx);
    let all = walk.directories.iter().chain(&walk.files);
    let largest = most_telling(all, |taken| taken.bytes, walk.bytes * SHARE / 100, FEW);
    let crowded = match walk.inodes {
        MANY_FILES.. => {
            most_telling(walk.crowded.iter(), |taken| taken.inodes, walk.inodes * CROWDED_SHARE / 100, 1)
        }
        _ => Vec::new(),
    };
    let data = Top {
        size: shown(walk.bytes),
        files: walk.inodes,
        largest: largest
            .iter()
            .take(args.count.unwrap_or(COUNT))
            .map(|taken| Large::of(taken, owners.of(&taken.path)))
            .collect(),
        most_files: crowded.into_iter().take(MOST_CROWDED).map(Crowded::of).collect(),
        clean: cleaning::of(&walk, walk.bytes / 100, cx),
        path,
    };
    Ok(Noted { data, notes: walk.left_out().into_iter().collect() })
}

/// The mount point of the fullest file system on a disk that can be written.
fn fullest(cx: &Context) -> Result<String> {
    let table = MountTable::read(cx)?;
    let is_meant = |mount: &&Mount| !mount.may_hang() && !mount.is_in_memory() && !mount.is_read_only();
    let mounts: Vec<&Mount> = table.file_systems().into_iter().filter(is_meant).collect();
    let spaces = space::of(&mounts, cx);
    let known = mounts.iter().zip(spaces).filter_map(|(mount, space)| Some((space.ok()?, mount)));
    let fullest = known.max_by_key(|(space, _): &(Space, _)| space.used_pct());
    Ok(fullest.map_or_else(|| "/".to_owned(), |(_, mount)| mount.point.clone()))
}
