//! `log_disk_usage`: what logs take, which of them grow, and how much room is left.

use std::collections::BTreeMap;

use linux_sysadmin_sdk::{DurationCategory, Output, Privilege, prelude::*};

use crate::inventory::{self, Found};
use crate::journal::{self, Query};
use crate::moment::{self, Clock, SECOND};

pub(crate) const JOURNAL: CommandLine = CommandLine::new("journalctl --disk-usage --no-pager");
pub(crate) const ROOM: CommandLine =
    CommandLine::new("df --block-size=1 --output=size,used,avail,target -- /var/log");
/// Files that have no name any more, and who has them open.
pub(crate) const DELETED: CommandLine = CommandLine::new("lsof -nP -w +L1 -F pcsn");

/// How many of each are shown.
const SHOWN: usize = 10;
const MIB: f64 = 1_048_576.0;
/// Below that nothing is said of it.
const SMALL: u64 = 64 << 10;
/// From here on a log that nobody rotates is worth a word.
const LARGE: u64 = 100 << 20;
const HUGE: u64 = 1 << 30;
const DAY: f64 = 86_400.0;

#[derive(Serialize)]
pub(crate) struct Usage {
    #[serde(skip_serializing_if = "Option::is_none")]
    filesystem: Option<Room>,
    /// All files in /var/log, the journal's included.
    total_mib: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    journal: Option<Journal>,
    directories: Vec<Directory>,
    /// How many there are, where these aren't all.
    #[serde(skip_serializing_if = "Option::is_none")]
    directories_total: Option<usize>,
    /// Largest first, without the journal's.
    files: Vec<Large>,
    #[serde(skip_serializing_if = "Option::is_none")]
    files_total: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rotated: Option<Rotated>,
    /// Large, and no rotated file beside them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unrotated: Vec<String>,
    /// By what came since the last rotation.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    growing: Vec<Growing>,
    /// Deleted, but still open: their room is taken until their process closes them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    deleted_open: Vec<Deleted>,
    /// What couldn't be told.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    missing: Vec<String>,
}

#[derive(Serialize)]
struct Room {
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
    let said = journald();
    let commands = vec![
        inventory::command(),
        ROOM.command(),
        as_root(JOURNAL.command()),
        as_root(DELETED.command()),
        said.command(Some(21)),
    ];
    let clock = Clock::new(cx);
    let mut answers = clock.beside(commands).into_iter();
    let mut answer = || answers.next().and_then(Result::ok);
    let files = answer();
    let (room, taken, deleted, said) = (answer(), answer(), answer(), answer());
    let (found, truncated) = files.map_or_else(|| inventory::all(cx), inventory::listed)?;
    let mut missing = Vec::new();
    if truncated {
        missing.push("files beyond the first 1 MiB of names".to_owned());
    }
    let room = room.and_then(|output| parse_room(&output.text()));
    if room.is_none() {
        missing.push("free room (df)".to_owned());
    }
    let journal = taken
        .and_then(|output| in_mib(&output.text(), "take up "))
        .map(|taken| Journal { mib: taken, max_mib: said.as_ref().and_then(most) });
    if journal.is_none() {
        missing.push("the journal's size".to_owned());
    }
    // Without lsof nobody knows.
    if deleted.is_none() {
        missing.push("deleted files that are open (lsof)".to_owned());
    }
    let deleted_open = deleted.map(|output| parse_deleted(&output)).unwrap_or_default();
    let usage = usage(&found, &clock, (room, journal, deleted_open, missing));
    let (summary, severity) = meaning(&usage);
    Ok(Analysis { data: usage, summary, severity })
}

/// What journald says of its size when it opens its files.
fn journald() -> Query {
    Query {
        identifiers: vec!["systemd-journald".to_owned()],
        words: vec![" Journal (".to_owned()],
        ..Query::default()
    }
}

/// What journald allows itself, by the latest that it said.
fn most(said: &Output) -> Option<f64> {
    let mut reader = journal::Reader::default();
    let entries = said.stdout.split(|byte| *byte == b'\n').filter_map(|line| reader.entry(line));
    entries.filter_map(|entry| in_mib(&entry.line.message, "max ")).last()
}

/// `8.0M` behind a word, as systemd writes sizes.
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

fn parse_room(text: &str) -> Option<Room> {
    let mut words = text.lines().nth(1)?.split_ascii_whitespace();
    let mut number = || words.next()?.parse::<u64>().ok();
    let (size, used, free) = (number()?, number()?, number()?);
    let mount = words.collect::<Vec<_>>().join(" ");
    let used_pct = 100.0 * used as f64 / (used + free).max(1) as f64;
    Some(Room { mount, size_mib: mib(size), free_mib: mib(free), used_pct: rounded(used_pct) })
}

/// A field a line: process, its name, then of each file its size and its path.
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
    (filesystem, journal, deleted_open, missing): (Option<Room>, Option<Journal>, Vec<Deleted>, Vec<String>),
) -> Usage {
    let is_journal = |found: &Found| found.file.path.starts_with("/var/log/journal/");
    let mut directories: BTreeMap<&str, (u64, usize)> = BTreeMap::new();
    // Of each log its current file and its rotated ones, the latest of them last.
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
            // In less than an hour everything grows fast.
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
        modified: moment::text(found.file.modified * SECOND),
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
    if let Some(room) = &usage.filesystem {
        severity = match room.used_pct {
            95.0.. => Severity::Critical,
            90.0.. => Severity::High,
            80.0.. => Severity::Warning,
            _ => Severity::Info,
        };
        said.push(format!("{} is {} % full, {} MiB are free", room.mount, room.used_pct, room.free_mib));
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
