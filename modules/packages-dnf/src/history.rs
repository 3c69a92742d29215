//! The history of dnf, by `dnf history`: each transaction with its packages, as dnf 4 and dnf 5 print it.

use linux_sysadmin_sdk::packages::{Operation, Transaction, Verb, nevra};
use linux_sysadmin_sdk::prelude::*;

use crate::command::{TRANSACTION, TRANSACTIONS, look};
use crate::problem;

/// The number of transactions that are read where no package is named, and where one is.
const MOST: usize = 100;
const MOST_OF_PACKAGE: usize = 1000;
/// The number of bytes that are read at once, and in all.
const PIECE: u32 = 1 << 18;
const MOST_BYTES: usize = 16 << 20;

pub fn history(package: Option<&str>, cx: &Context) -> Result<Vec<Transaction>> {
    let list = problem::success(cx.run(look(TRANSACTIONS.command()))?)?;
    let mut ids = ids(&list.text());
    ids.truncate(if package.is_some() { MOST_OF_PACKAGE } else { MOST });
    if ids.is_empty() {
        // dnf 4 fails with a traceback where it gets no number.
        return Ok(Vec::new());
    }
    let ids = ids.iter().map(u64::to_string);
    let mut stream = cx.open(look(TRANSACTION.with(ids)))?;
    let mut text = Vec::new();
    loop {
        let piece = stream.read(PIECE)?;
        text.extend_from_slice(&piece);
        if piece.is_empty() || text.len() > MOST_BYTES {
            break;
        }
    }
    let mut past = parse(&String::from_utf8_lossy(&text));
    if past.is_empty() {
        return Err(Problem::unexpected("dnf history info", &String::from_utf8_lossy(&text)));
    }
    past.sort_by_key(|past| std::cmp::Reverse(past.id.as_ref().and_then(|id| id.parse::<u64>().ok())));
    Ok(past)
}

/// The numbers in the first column, the latest first.
fn ids(text: &str) -> Vec<u64> {
    let mut ids: Vec<u64> =
        text.lines().filter_map(|line| line.split_whitespace().next()?.parse().ok()).collect();
    ids.sort_unstable_by(|a, b| b.cmp(a));
    ids.dedup();
    ids
}

/// The part of the output that a line belongs to.
#[derive(PartialEq)]
enum Part {
    Head,
    Packages,
    Other,
}

/// Parses all transactions.
fn parse(text: &str) -> Vec<Transaction> {
    let mut past: Vec<(Transaction, Vec<Line>)> = Vec::new();
    let mut part = Part::Other;
    for line in text.lines() {
        let field = line.split_once(':').filter(|_| !line.starts_with(' '));
        if let Some((key, value)) = field {
            let (key, value) = (key.trim(), value.trim());
            if key == "Transaction ID" {
                let id = Some(value.to_owned()).filter(|id| id.bytes().all(|byte| byte.is_ascii_digit()));
                past.push((Transaction { id, ..Transaction::default() }, Vec::new()));
                part = Part::Head;
            } else if let Some((transaction, _)) = past.last_mut()
                && part == Part::Head
            {
                match key {
                    "Packages Altered" | "Packages altered" => part = Part::Packages,
                    _ => fill(transaction, key, value),
                }
            } else {
                part = Part::Other;
            }
        } else if part == Part::Packages
            && let Some((_, lines)) = past.last_mut()
        {
            lines.extend(Line::parse(line));
        }
    }
    past.into_iter().map(|(transaction, lines)| with_operations(transaction, lines)).collect()
}

fn fill(transaction: &mut Transaction, key: &str, value: &str) {
    let said = || Some(value.to_owned()).filter(|value| !value.is_empty());
    match key {
        "Begin time" => transaction.at = moment(value),
        // `System <unset>` stands for nobody who was logged in.
        "User" => transaction.by = said().filter(|by| !by.ends_with("<unset>")),
        "Command Line" => transaction.command = said(),
        // In dnf 5 the description is the command line with the program.
        "Description" => transaction.command = said(),
        "Return-Code" | "Status" if !["Success", "Ok", "OK"].contains(&value) => transaction.error = said(),
        _ => {}
    }
}

/// Parses `Sun Nov 22 20:18:52 2026` or `2026-11-22 20:18:52`. The times are in UTC, because the command sets the time
/// zone.
fn moment(text: &str) -> String {
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let words: Vec<_> = text.split_whitespace().collect();
    match words[..] {
        [_, month, day, time, year] => match MONTHS.iter().position(|known| *known == month) {
            Some(month) => format!("{year}-{:02}-{day:0>2}T{time}Z", month + 1),
            None => text.to_owned(),
        },
        [date, time] if date.len() == 10 && time.len() == 8 => format!("{date}T{time}Z"),
        _ => text.to_owned(),
    }
}

/// A package in a transaction.
struct Line {
    action: String,
    name: String,
    version: String,
    arch: String,
}

impl Line {
    /// Parses `    Upgrade  lab-conf-2.0-1.noarch  @lab`. A failed operation has ` ** ` before it.
    fn parse(line: &str) -> Option<Self> {
        let line = line.trim_start_matches(|c: char| !c.is_ascii_alphabetic());
        let words: Vec<_> = line.split_whitespace().collect();
        let action = *words.first()?;
        let package = nevra::parse(words.get(1)?)?;
        let [name, version, arch] = [package.name, package.version, package.arch].map(str::to_owned);
        Some(Self { action: action.to_owned(), name, version, arch })
    }
}

/// Joins the new and the old version of a package into one operation.
fn with_operations(mut transaction: Transaction, lines: Vec<Line>) -> Transaction {
    let from = |of: &Line| {
        let replaced = ["Upgraded", "Downgraded", "Replaced"];
        let mut others = lines.iter().filter(|line| replaced.contains(&line.action.as_str()));
        let found = others.find(|line| line.name == of.name && (line.arch == of.arch || of.arch == "noarch"));
        found.map(|line| line.version.clone()).unwrap_or_default()
    };
    let operations = lines.iter().filter_map(|line| {
        let (verb, from, to) = match line.action.as_str() {
            "Install" | "Dep-Install" | "True-Install" => {
                (Verb::Install, String::new(), line.version.clone())
            }
            "Upgrade" | "Update" => (Verb::Upgrade, from(line), line.version.clone()),
            "Downgrade" => (Verb::Downgrade, from(line), line.version.clone()),
            "Reinstall" => (Verb::Reinstall, line.version.clone(), line.version.clone()),
            "Removed" | "Remove" | "Erase" | "Obsoleted" => {
                (Verb::Remove, line.version.clone(), String::new())
            }
            // In dnf 5, a package of another name replaced this one.
            "Replaced"
                if !lines.iter().any(|other| other.name == line.name && other.action != "Replaced") =>
            {
                (Verb::Remove, line.version.clone(), String::new())
            }
            _ => return None,
        };
        Some(Operation { verb, name: line.name.clone(), from, to })
    });
    transaction.operations = operations.collect();
    transaction
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_told_in_utc_or_as_it_stands() {
        let table = [
            ("Sun Nov 22 20:18:52 2026", "2026-11-22T20:18:52Z"),
            ("Sun Nov  2 20:18:52 2026", "2026-11-02T20:18:52Z"),
            ("2026-11-22 20:18:52", "2026-11-22T20:18:52Z"),
            ("So 22 Nov 2026 20:18:52 CET", "So 22 Nov 2026 20:18:52 CET"),
            ("", ""),
        ];
        for (text, expected) in table {
            assert_eq!(moment(text), expected, "{text}");
        }
    }

    /// The text has the form of libdnf5-cli/output/transactioninfo.cpp, dnf 5.2.
    #[test]
    fn a_transaction_of_dnf_5_is_read_like_one_of_dnf_4() {
        let text = "Transaction ID : 7\nBegin time     : 2026-11-22 20:18:48\nBegin rpmdb    : 1\n\
            End time       : 2026-11-22 20:18:48\nEnd rpmdb      : 2\nUser           : 1000 Ada <ada>\n\
            Status         : Ok\nReleasever     : 41\nDescription    : dnf upgrade\nComment        : \n\
            Packages altered:\n  Action   Package                        Reason          Repository\n\
            \x20 Upgrade  bash-0:5.2.37-1.fc41.x86_64    User            updates\n\
            \x20 Replaced bash-0:5.2.32-1.fc41.x86_64    User            @System\n\
            \x20 Install  wget2-0:2.1.0-1.fc41.x86_64    Weak Dependency fedora\n\
            \x20 Replaced wget-0:1.24.5-2.fc41.x86_64    User            @System\n\n";
        let past = parse(text);
        let [transaction] = &past[..] else { panic!("{past:?}") };
        assert_eq!(transaction.id.as_deref(), Some("7"));
        assert_eq!(transaction.at, "2026-11-22T20:18:48Z");
        assert_eq!(transaction.by.as_deref(), Some("1000 Ada <ada>"));
        assert_eq!(transaction.command.as_deref(), Some("dnf upgrade"));
        assert_eq!(transaction.error, None);
        let operations = [
            Operation::new(Verb::Upgrade, "bash", "5.2.32-1.fc41", "5.2.37-1.fc41"),
            Operation::new(Verb::Install, "wget2", "", "2.1.0-1.fc41"),
            Operation::new(Verb::Remove, "wget", "1.24.5-2.fc41", ""),
        ];
        assert_eq!(transaction.operations, operations);
    }

    #[test]
    fn what_is_no_history_is_none() {
        assert!(ids("ID     | Command line\n-----\n").is_empty());
        assert!(ids("Traceback (most recent call last):\n  File \"/usr/bin/dnf\", line 62\n").is_empty());
        assert!(parse("").is_empty());
        assert!(parse("Packages Altered:\n    Install a-1-1.noarch @lab\n").is_empty());
    }
}
