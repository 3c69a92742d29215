//! The history of apt and dpkg: the transactions of apt's `history.log`, and those of dpkg's log that were made without
//! apt. Rotated logs are read too, compressed or not. Times are in the target's own time zone, as the logs have them.

use std::io::Read;

use flate2::read::MultiGzDecoder;
use linux_sysadmin_sdk::packages::{Operation, Transaction, Verb};
use linux_sysadmin_sdk::prelude::*;
use linux_sysadmin_sdk::text::lossy_string;

/// The most bytes that are read of one log, uncompressed. Older transactions aren't reported.
const MOST_BYTES: usize = 4 << 20;
/// The number of transactions after which no older log is read, where no package is named.
const ENOUGH: usize = 300;

pub(crate) fn read(package: Option<&str>, cx: &Context) -> Result<Vec<Transaction>> {
    let is_enough = |found: usize| package.is_none() && found >= ENOUGH;
    let of_apt = latest("/var/log/apt", "history.log", cx, is_enough, of_apt)?;
    let of_dpkg = latest("/var/log", "dpkg.log", cx, is_enough, of_dpkg)?;
    let is_by_itself = |dpkg: &Entry| !of_apt.iter().any(|apt| apt.has(dpkg));
    let by_itself: Vec<_> = of_dpkg.into_iter().filter(is_by_itself).collect();
    let mut all: Vec<_> = of_apt.into_iter().chain(by_itself).map(|entry| entry.past).collect();
    all.sort_by(|a, b| b.at.cmp(&a.at));
    Ok(all)
}

/// A transaction, and the time of its end.
struct Entry {
    past: Transaction,
    end: String,
}

impl Entry {
    /// Whether the other transaction is a part of this one.
    fn has(&self, other: &Entry) -> bool {
        self.past.at <= other.past.at && other.past.at <= self.end
    }
}

/// Reads a log and its rotated files, the latest first, until there is enough.
fn latest(
    directory: &str,
    name: &str,
    cx: &Context,
    is_enough: impl Fn(usize) -> bool,
    parse: fn(&str) -> Vec<Entry>,
) -> Result<Vec<Entry>> {
    let mut found: Vec<Entry> = Vec::new();
    for file in files(directory, name, cx)? {
        let text = text(&format!("{directory}/{file}"), cx)?;
        let mut entries = parse(&text);
        entries.reverse();
        found.extend(entries);
        if is_enough(found.len()) {
            break;
        }
    }
    Ok(found)
}

/// The existing files of a log: `history.log`, `history.log.1.gz`, `history.log.2.gz` ….
fn files(directory: &str, name: &str, cx: &Context) -> Result<Vec<String>> {
    let names = match cx.list_dir(directory) {
        Ok(names) => names,
        Err(problem) if problem.code == "FILE_NOT_FOUND" => return Ok(Vec::new()),
        Err(problem) => return Err(problem),
    };
    let age = |file: &str| {
        let rest = file.strip_prefix(name)?;
        let rest = rest.strip_suffix(".gz").unwrap_or(rest);
        if rest.is_empty() { Some(0) } else { rest.strip_prefix('.')?.parse::<u32>().ok() }
    };
    let mut files: Vec<_> = names.into_iter().filter_map(|file| Some((age(&file)?, file))).collect();
    files.sort();
    Ok(files.into_iter().map(|(_, file)| file).collect())
}

/// The text of a log. Of a large file only its end is read, from the first whole line on.
fn text(path: &str, cx: &Context) -> Result<String> {
    const PART: u64 = 1 << 20;
    let mut bytes = Vec::new();
    let size = cx.stat_all(&[path]).remove(0)?.map_or(0, |found| found.size);
    let is_packed = path.ends_with(".gz");
    let from = if is_packed { 0 } else { size.saturating_sub(MOST_BYTES as u64) };
    let parts: Vec<_> = (from..size.min(from + MOST_BYTES as u64))
        .step_by(PART as usize)
        .map(|at| (path, at as i64, PART))
        .collect();
    for part in cx.read_parts(&parts) {
        bytes.extend(part?);
    }
    let mut is_cut = from > 0;
    if is_packed {
        (bytes, is_cut) = tail(MultiGzDecoder::new(bytes.as_slice()));
    }
    let text = lossy_string(bytes);
    Ok(if is_cut { text.split_once('\n').map_or(String::new(), |(_, rest)| rest.to_owned()) } else { text })
}

/// Reads the last part of a stream without keeping the rest, and says whether there was more before it. A stream that
/// breaks off ends there.
fn tail(mut reader: impl Read) -> (Vec<u8>, bool) {
    let (mut kept, mut piece, mut is_cut) = (Vec::new(), vec![0; 1 << 16], false);
    loop {
        let read = reader.read(&mut piece).unwrap_or(0);
        kept.extend_from_slice(&piece[..read]);
        if kept.len() > 2 * MOST_BYTES || read == 0 && kept.len() > MOST_BYTES {
            kept.drain(..kept.len() - MOST_BYTES);
            is_cut = true;
        }
        if read == 0 {
            return (kept, is_cut);
        }
    }
}

/// Parses paragraphs of `Field: value` from `Start-Date` to `End-Date`. A paragraph has no `End-Date` where apt was
/// killed.
fn of_apt(text: &str) -> Vec<Entry> {
    text.split("\n\n").filter_map(paragraph).collect()
}

fn paragraph(text: &str) -> Option<Entry> {
    let mut past = Transaction::default();
    let mut end = String::new();
    for line in text.lines() {
        let Some((field, value)) = line.split_once(": ") else { continue };
        let verb = match field {
            "Start-Date" => {
                past.at = value.split_whitespace().collect::<Vec<_>>().join(" ");
                continue;
            }
            "End-Date" => {
                end = value.split_whitespace().collect::<Vec<_>>().join(" ");
                continue;
            }
            "Commandline" => {
                past.command = Some(value.to_owned());
                continue;
            }
            "Requested-By" => {
                past.by = Some(value.split(' ').next().unwrap_or(value).to_owned());
                continue;
            }
            "Error" => {
                past.error = Some(value.to_owned());
                continue;
            }
            "Install" => Verb::Install,
            "Upgrade" => Verb::Upgrade,
            "Downgrade" => Verb::Downgrade,
            "Reinstall" => Verb::Reinstall,
            "Remove" => Verb::Remove,
            "Purge" => Verb::Purge,
            _ => continue,
        };
        past.operations.extend(items(verb, value));
    }
    if past.at.is_empty() {
        return None;
    }
    if end.is_empty() {
        past.error.get_or_insert_with(|| "it didn't finish".to_owned());
        end.clone_from(&past.at);
    }
    Some(Entry { past, end })
}

/// Parses `lab-hello:amd64 (1.0, 2.0), lab-dep:amd64 (1.0, automatic)`.
fn items(verb: Verb, text: &str) -> Vec<Operation> {
    let items = text.split("), ").filter_map(|item| {
        let (name, rest) = item.split_once(" (")?;
        let name = name.split_once(':').map_or(name, |(name, _arch)| name);
        let mut versions = rest.trim_end_matches(')').split(", ").filter(|word| *word != "automatic");
        let first = versions.next().unwrap_or_default();
        let (from, to) = match verb {
            Verb::Install | Verb::Reinstall => ("", first),
            Verb::Remove | Verb::Purge => (first, ""),
            Verb::Upgrade | Verb::Downgrade => (first, versions.next().unwrap_or_default()),
        };
        Some(Operation::new(verb, name, from, to))
    });
    items.collect()
}

/// Parses lines such as `2026-11-22 20:13:12 upgrade lab-hello:all 1.0 2.0`. A line `startup` begins a run of dpkg. apt
/// may run dpkg several times for one transaction; each of these runs is an entry here.
fn of_dpkg(text: &str) -> Vec<Entry> {
    let mut entries: Vec<Entry> = Vec::new();
    let mut begins = true;
    for line in text.lines() {
        // Most lines are of other actions. All begin with a time of 19 bytes.
        let Some((at, rest)) = line.split_at_checked(19) else { continue };
        let mut words = rest.split(' ').skip(1);
        let verb = match words.next().unwrap_or_default() {
            "startup" => {
                begins = true;
                continue;
            }
            "install" => Verb::Install,
            "upgrade" => Verb::Upgrade,
            "remove" => Verb::Remove,
            "purge" => Verb::Purge,
            _ => continue,
        };
        let (Some(name), Some(from), to) = (words.next(), words.next(), words.next()) else { continue };
        let name = name.split_once(':').map_or(name, |(name, _arch)| name);
        let version =
            |text: Option<&str>| text.filter(|text| *text != "<none>").unwrap_or_default().to_owned();
        let at = at.to_owned();
        if begins {
            let past =
                Transaction { at: at.clone(), command: Some("dpkg".to_owned()), ..Transaction::default() };
            entries.push(Entry { past, end: at.clone() });
            begins = false;
        }
        let Some(entry) = entries.last_mut() else { continue };
        entry.end = at;
        // A package of which only configuration was left has a former version in the log.
        let from = if verb == Verb::Install { String::new() } else { version(Some(from)) };
        let to = if matches!(verb, Verb::Remove | Verb::Purge) { String::new() } else { version(to) };
        entry.past.operations.push(Operation::new(verb, name, from, to));
    }
    entries
}
