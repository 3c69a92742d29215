//! `log_disk_usage`: shows what logs take on disk, which of them grow, and how much space is left.

use std::collections::BTreeMap;

use linux_sysadmin_sdk::{DurationCategory, Output, Privilege, prelude::*};

use crate::clock::{self, Clock, SECOND};
use crate::journal::{self, Query};
use crate::text_logs::inventory::{self, Found};

pub(crate) const JOURNAL: CommandLine = CommandLine::new("journalctl --disk-usage --no-pager");
pub(crate) const FREE_SPACE: CommandLine =
    CommandLine::new("df --block-size=1 --output=size,used,avail,target -- /var/log");
/// Prints deleted files that are still open, and the processes that have them open.
pub(crate) const DELETED: CommandLine = CommandLine::new("lsof -nP -w +L1 -F pcsn");

/// The number of files and directories in the answer.
const SHOWN: usize = 10;
const MIB: f64 = 1_048_576.0;
/// Smaller files and directories are left out, in bytes.
const SMALL: u64 = 64 << 10;
/// A log of this size in bytes should be rotated.
const LARGE: u64 = 100 << 20;
/// A log of this size in bytes without rotation is a warning.
const HUGE: u64 = 1 << 30;
const DAY: f64 = 86_400.0;

#[derive(Serialize)]
pub(crate) struct Usage {
    #[serde(skip_serializing_if = "Option::is_none")]
    filesystem: Option<Filesystem>,
    /// The size of all files in /var/log, with those of the journal.
    total_mib: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    journal: Option<Journal>,
    directories: Vec<Directory>,
    /// The number of directories, where some are left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    directories_total: Option<usize>,
    /// The largest files first, without those of the journal.
    files: Vec<Large>,
    #[serde(skip_serializing_if = "Option::is_none")]
    files_total: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rotated: Option<Rotated>,
    /// Large files without rotated files beside them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unrotated: Vec<String>,
    /// Logs that grow, by their size since the last rotation.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    growing: Vec<Growing>,
    /// Deleted files that are still open. They take space until their process closes them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    deleted_open: Vec<Deleted>,
    /// Parts of the answer that could not be read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    missing: Vec<String>,
}

#[derive(Serialize)]
struct Filesystem {
    mount: String,
    size_mib: f64,
    free_mib: f64,
    used_pct: f64,
}

#[derive(Serialize)]
struct Journal {
    mib: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_mib: Option<f64>,
}

#[derive(Serialize)]
struct Directory {
    path: String,
    mib: f64,
    files: usize,
}

#[derive(Serialize)]
struct Large {
    path: String,
    mib: f64,
    modified: String,
}

#[derive(Serialize)]
struct Rotated {
    files: usize,
    mib: f64,
}

#[derive(Serialize)]
struct Growing {
    path: String,
    mib_per_day: f64,
}

#[derive(Serialize)]
struct Deleted {
    path: String,
    mib: f64,
    process: String,
    pid: u32,
}

fn mib(bytes: u64) -> f64 {
    rounded(bytes as f64 / MIB)
}

fn rounded(number: f64) -> f64 {
    (number * 10.0).round() / 10.0
}

pub(crate) fn log_disk_usage(_: NoArgs, cx: &Context) -> Result<Analysis<Usage>> {
    let as_root =
        |command: Command| command.privilege(Privilege::RootIfAvailable).duration(DurationCategory::Quick);
    let limit = journald_limit();
    let commands = vec![
        inventory::command(),
        FREE_SPACE.command(),
        as_root(JOURNAL.command()),
        as_root(DELETED.command()),
        limit.command(Some(21)),
    ];
    let clock = Clock::new(cx);
    let mut answers = clock.beside(commands).into_iter();
    let mut answer = || answers.next().and_then(Result::ok);
    let files = answer();
    let (filesystem, taken, deleted, limit) = (answer(), answer(), answer(), answer());
    let (found, truncated) = files.map_or_else(|| inventory::all(cx), inventory::listed)?;
    let mut missing = Vec::new();
    if truncated {
        missing.push("files beyond the first 1 MiB of names".to_owned());
    }
    let filesystem = filesystem.and_then(|output| parse_filesystem(&output.text()));
    if filesystem.is_none() {
        missing.push("free room (df)".to_owned());
    }
    let journal = taken
        .and_then(|output| in_mib(&output.text(), "take up "))
        .map(|taken| Journal { mib: taken, max_mib: limit.as_ref().and_then(max_mib) });
    if journal.is_none() {
        missing.push("the journal's size".to_owned());
    }
    // Only lsof shows deleted files that are open.
    if deleted.is_none() {
        missing.push("deleted files that are open (lsof)".to_owned());
    }
    let deleted_open = deleted.map(|output| parse_deleted(&output)).unwrap_or_default();
    let usage = usage(&found, &clock, (filesystem, journal, deleted_open, missing));
    let (summary, severity) = meaning(&usage);
    Ok(Analysis { data: usage, summary, severity })
}

/// The messages in which journald states its size and limit when it opens its files.
fn journald_limit() -> Query {
    Query {
        identifiers: vec!["systemd-journald".to_owned()],
        words: vec![" Journal (".to_owned()],
        ..Query::default()
    }
}

/// The largest size of the journal, by journald's latest message.
fn max_mib(output: &Output) -> Option<f64> {
    let mut reader = journal::EntryReader::default();
    let entries = output.stdout.split(|byte| *byte == b'\n').filter_map(|line| reader.entry(line));
    entries.filter_map(|entry| in_mib(&entry.line.message, "max ")).last()
}

/// Reads a size such as `8.0M` after a word, as systemd writes it.
fn in_mib(text: &str, before: &str) -> Option<f64> {
    let (_, rest) = text.split_once(before)?;
    let end = rest.find(|letter: char| !letter.is_ascii_digit() && letter != '.')?;
    let number: f64 = rest[..end].parse().ok()?;
    let factor = match rest[end..].chars().next()? {
        'B' => 1.0 / MIB,
        'K' => 1.0 / 1024.0,
        'M' => 1.0,
        'G' => 1024.0,
        'T' => MIB,
        _ => return None,
    };
    Some(rounded(number * factor))
}

fn parse_filesystem(text: &str) -> Option<Filesystem> {
    let mut words = text.lines().nth(1)?.split_ascii_whitespace();
    let mut number = || words.next()?.parse::<u64>().ok();
    let (size, used, free) = (number()?, number()?, number()?);
    let mount = words.collect::<Vec<_>>().join(" ");
    let used_pct = 100.0 * used as f64 / (used + free).max(1) as f64;
    Some(Filesystem { mount, size_mib: mib(size), free_mib: mib(free), used_pct: rounded(used_pct) })
}

/// Reads the output of lsof, which has one field in each line: the process, its name, and the size and path of each file.
fn parse_deleted(output: &Output) -> Vec<Deleted> {
    let (mut pid, mut process, mut size) = (0, String::new(), 0_u64);
    let mut found: BTreeMap<(String, u32), Deleted> = BTreeMap::new();
    for line in output.text().lines() {
        let Some(kind) = line.chars().next() else { continue };
        let value = &line[kind.len_utf8()..];
        match kind {
            'p' => pid = value.parse().unwrap_or(0),
            'c' => value.clone_into(&mut process),
            'f' => size = 0,
            's' => size = value.parse().unwrap_or(0),
            'n' => {
                let path = value.strip_suffix(" (deleted)").unwrap_or(value);
                if path.starts_with(inventory::EVERYWHERE) {
                    let deleted =
                        Deleted { path: path.to_owned(), mib: mib(size), process: process.clone(), pid };
                    found.insert((path.to_owned(), pid), deleted);
                }
            }
            _ => {}
        }
    }
    let mut found: Vec<_> = found.into_values().collect();
    found.sort_by(|a, b| b.mib.total_cmp(&a.mib));
    found.truncate(SHOWN);
    found
}

fn usage(
    found: &[Found],
    clock: &Clock<'_>,
    (filesystem, journal, deleted_open, missing): (
        Option<Filesystem>,
        Option<Journal>,
        Vec<Deleted>,
        Vec<String>,
    ),
) -> Usage {
    let is_journal = |found: &Found| found.file.path.starts_with("/var/log/journal/");
    let mut directories: BTreeMap<&str, (u64, usize)> = BTreeMap::new();
    // The files of each log, which are sorted below so that the current file comes last.
    let mut logs: BTreeMap<(&str, &str), Vec<&Found>> = BTreeMap::new();
    for one in found {
        let (folder, name) = one.file.path.rsplit_once('/').unwrap_or_default();
        let below = folder.strip_prefix("/var/log/").and_then(|below| below.split('/').next());
        let shown = below.map_or("/var/log", |below| &folder[..inventory::EVERYWHERE.len() + below.len()]);
        let directory = directories.entry(shown).or_default();
        *directory = (directory.0 + one.bytes, directory.1 + 1);
        if !is_journal(one) {
            logs.entry((folder, inventory::stem(name))).or_default().push(one);
        }
    }
    let (mut rotated, mut unrotated, mut growing) = (Vec::new(), Vec::new(), Vec::new());
    for files in logs.values_mut() {
        files.sort_by_key(|found| (found.file.modified, std::cmp::Reverse(found.file.path.len())));
        let Some((current, others)) = files.split_last() else { continue };
        rotated.extend(others.iter().copied());
        if let Some(last) = others.last() {
            let days = (clock.now() - last.file.modified) as f64 / DAY;
            let size = current.file.size.unwrap_or(0);
            // The rate is not meaningful in the first hour after a rotation.
            if days > 0.04 && size > 1 << 20 {
                growing.push(Growing {
                    path: current.file.path.clone(),
                    mib_per_day: rounded(size as f64 / MIB / days),
                });
            }
        } else if current.bytes >= LARGE {
            unrotated.push((current.bytes, current.file.path.clone()));
        }
    }
    growing.sort_by(|a, b| b.mib_per_day.total_cmp(&a.mib_per_day));
    growing.truncate(5);
    unrotated.sort_by(|a, b| b.cmp(a));
    let mut directories: Vec<_> = directories
        .into_iter()
        .filter(|(_, (bytes, _))| *bytes >= SMALL)
        .map(|(path, (bytes, files))| (bytes, Directory { path: path.to_owned(), mib: mib(bytes), files }))
        .collect();
    directories.sort_by(|(a, one), (b, other)| b.cmp(a).then_with(|| one.path.cmp(&other.path)));
    let mut files: Vec<_> = found.iter().filter(|found| !is_journal(found) && found.bytes >= SMALL).collect();
    files.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.file.path.cmp(&b.file.path)));
    let large = |found: &&Found| Large {
        path: found.file.path.clone(),
        mib: mib(found.bytes),
        modified: clock::text(found.file.modified * SECOND),
    };
    Usage {
        filesystem,
        total_mib: mib(found.iter().map(|found| found.bytes).sum()),
        journal,
        directories_total: (directories.len() > SHOWN).then_some(directories.len()),
        files_total: (files.len() > SHOWN).then_some(files.len()),
        directories: directories.into_iter().take(SHOWN).map(|(_, directory)| directory).collect(),
        files: files.iter().take(SHOWN).map(large).collect(),
        rotated: (!rotated.is_empty()).then(|| Rotated {
            files: rotated.len(),
            mib: mib(rotated.iter().map(|found| found.bytes).sum()),
        }),
        unrotated: unrotated.into_iter().take(SHOWN).map(|(_, path)| path).collect(),
        growing,
        deleted_open,
        missing,
    }
}

fn meaning(usage: &Usage) -> (String, Severity) {
    let mut severity = Severity::Info;
    let mut said = vec![format!("logs take {} MiB", usage.total_mib)];
    if let Some(filesystem) = &usage.filesystem {
        severity = match filesystem.used_pct {
            95.0.. => Severity::Critical,
            90.0.. => Severity::High,
            80.0.. => Severity::Warning,
            _ => Severity::Info,
        };
        let Filesystem { mount, used_pct, free_mib, .. } = filesystem;
        said.push(format!("{mount} is {used_pct} % full, {free_mib} MiB are free"));
    }
    if let Some(largest) = usage.files.first() {
        said.push(format!("the largest file is {} ({} MiB)", largest.path, largest.mib));
    }
    if let Some(path) = usage.unrotated.first() {
        let is_huge = usage.files.iter().any(|file| file.path == *path && file.mib * MIB >= HUGE as f64);
        severity = severity.max(if is_huge { Severity::Warning } else { Severity::Info });
        said.push(format!("{path} isn't rotated"));
    }
    let deleted: f64 = usage.deleted_open.iter().map(|deleted| deleted.mib).sum();
    if deleted >= 1.0 {
        severity =
            severity.max(if deleted * MIB >= LARGE as f64 { Severity::Warning } else { Severity::Info });
        said.push(format!("deleted files that are open take {} MiB", rounded(deleted)));
    }
    (said.join("; "), severity)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_systemd_writes_them() {
        let taken = "Archived and active journals take up 8.0M in the file system.\n";
        assert_eq!(in_mib(taken, "take up "), Some(8.0));
        let journald = "System Journal (/var/log/journal/b6) is 8.0M, max 1.5G, 1.4G free.";
        assert_eq!(in_mib(journald, "max "), Some(1536.0));
        assert_eq!(in_mib("take up 0B in", "take up "), Some(0.0));
        assert_eq!(in_mib("nothing", "take up "), None);
    }
}
