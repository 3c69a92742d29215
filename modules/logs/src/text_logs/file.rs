//! A file of a text log, with its rotated files.

use linux_sysadmin_sdk::{Privilege, prelude::*};

use super::path::is_rotated;
use crate::budget::Budget;
use crate::clock::Clock;
use crate::time_range::Range;

/// The time in seconds for which a program may still write to a file after its rotation.
pub(crate) const LATE: i64 = 3600;

/// The compression of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Packing {
    None,
    Gzip,
    Xz,
    Zstd,
    Bzip2,
}

impl Packing {
    pub(super) fn of(name: &str) -> Self {
        match name.rsplit('.').next() {
            Some("gz") => Self::Gzip,
            Some("xz") => Self::Xz,
            Some("zst") => Self::Zstd,
            Some("bz2") => Self::Bzip2,
            _ => Self::None,
        }
    }
}

/// A file of a text log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct File {
    pub(crate) path: String,
    /// The time of the last change, in seconds since the epoch. No line is later.
    pub(crate) modified: i64,
    /// The size in bytes. None where it is unknown, as for a link.
    pub(crate) size: Option<u64>,
    pub(crate) packing: Packing,
}

impl File {
    pub(crate) fn new(path: String, modified: i64, size: u64) -> Self {
        Self { packing: Packing::of(&path), path, modified, size: Some(size) }
    }

    /// A time after which the file has no lines.
    pub(crate) fn near(&self, clock: &Clock<'_>) -> i64 {
        if self.modified == i64::MAX { clock.now() } else { self.modified }
    }
}

/// A file and its rotated files, the newest first. Files without lines in the range are left out.
pub(crate) fn family(cx: &Context, budget: &Budget<'_>, path: &str, range: Range) -> Result<Vec<File>> {
    let cx = &cx.files_as(Privilege::RootIfAvailable);
    let (directory, name) = path.rsplit_once('/').unwrap_or(("", path));
    let beside = budget.waiting(|| cx.list_dir(directory)).unwrap_or_default();
    let rotated = beside.iter().filter(|other| is_rotated(name, other));
    let paths: Vec<_> =
        std::iter::once(path.to_owned()).chain(rotated.map(|other| format!("{directory}/{other}"))).collect();
    let mut metadata = budget.waiting(|| cx.stat_all(&paths)).into_iter();
    let own = metadata.next().transpose()?.flatten();
    if own.as_ref().is_some_and(|own| own.is_dir) {
        let message = format!("{path} is a directory; expected a file");
        return Err(Problem::validation("IS_A_DIRECTORY", message)
            .remedy("log_disk_usage shows which files are in /var/log"));
    }
    let all = std::iter::once(own).chain(metadata.map(|other| other.ok().flatten())).zip(&paths);
    let mut files: Vec<_> = all
        .filter_map(|(metadata, path)| Some((metadata?, path)))
        .filter(|(metadata, _)| !metadata.is_dir)
        .map(|(metadata, path)| File {
            path: path.clone(),
            modified: if metadata.is_symlink { i64::MAX } else { metadata.modified_unix },
            size: (!metadata.is_symlink).then_some(metadata.size),
            packing: Packing::of(path),
        })
        .collect();
    if files.is_empty() {
        return Err(Problem::not_found("FILE_NOT_FOUND", format!("{path}: no such file")));
    }
    files.sort_by(|a, b| b.modified.cmp(&a.modified).then_with(|| (a.path != path).cmp(&(b.path != path))));
    Ok(within(files, range))
}

/// The files that can have lines in the range. A file begins where the one before it ends.
fn within(files: Vec<File>, range: Range) -> Vec<File> {
    let ends: Vec<_> = files.iter().skip(1).map(|file| file.modified).collect();
    let begins = ends.into_iter().map(Some).chain([None]);
    let is_meant = |file: &File, begins: Option<i64>| {
        range.since.is_none_or(|since| file.modified >= since)
            && range.until.zip(begins).is_none_or(|(until, begins)| begins - LATE <= until)
    };
    files
        .into_iter()
        .zip(begins)
        .filter(|(file, begins)| is_meant(file, *begins))
        .map(|(file, _)| file)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cant_hold_lines_of_the_range_isnt_read() {
        let file = |modified: i64| File {
            path: modified.to_string(),
            modified: modified * 86_400,
            size: Some(1),
            packing: Packing::None,
        };
        let days = |since: Option<i64>, until: Option<i64>| -> Vec<i64> {
            let day = |day: Option<i64>| day.map(|day| day * 86_400);
            let files =
                within(vec![file(9), file(6), file(3)], Range { since: day(since), until: day(until) });
            files.iter().map(|file| file.modified / 86_400).collect()
        };
        assert_eq!(days(None, None), [9, 6, 3]);
        assert_eq!(days(Some(7), None), [9]);
        assert_eq!(days(Some(5), None), [9, 6]);
        assert_eq!(days(None, Some(5)), [6, 3]);
        assert_eq!(days(Some(10), None), [] as [i64; 0]);
        assert_eq!(days(Some(4), Some(5)), [6]);
    }
}
