//! The history of apt and dpkg: the transactions of apt's `history.log`, and those of dpkg's log that were made without
//! apt. Rotated logs are read too, compressed or not. Times are in the target's own time zone, as the logs have them.

use linux_sysadmin_sdk::packages::{Operation, Transaction, Verb};
use linux_sysadmin_sdk::prelude::*;

use crate::log_files::{self, Log};

/// The number of transactions after which no older log is read, where no package is named.
const ENOUGH: usize = 300;

pub(crate) fn read(package: Option<&str>, cx: &Context) -> Result<Vec<Transaction>> {
    let is_enough = |found: usize| package.is_none() && found >= ENOUGH;
    let logs = [Log::new("/var/log/apt", "history.log", of_apt), Log::new("/var/log", "dpkg.log", of_dpkg)];
    let [of_apt, of_dpkg] = log_files::latest(logs, is_enough, cx)?;
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
