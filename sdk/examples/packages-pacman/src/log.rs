//! What pacman has done, by its log.

use linux_sysadmin_sdk::packages::{Operation, Transaction, Verb};
use linux_sysadmin_sdk::prelude::*;
use linux_sysadmin_sdk::time;

/// pacman's log, unless its configuration has another one.
pub const LOG: &str = "/var/log/pacman.log";

/// The most of a read, by the contract.
const PART: u64 = 1 << 20;

/// The most of the log's end that is read. It has years of a usual machine.
const MOST: u64 = 4 << 20;

/// The transactions, the latest first.
pub fn transactions(cx: &Context) -> Result<Vec<Transaction>> {
    let mut transactions = read(&end(MOST, cx)?);
    transactions.reverse();
    Ok(transactions)
}

/// The time in seconds since the epoch at which pacman last began to fetch the lists of the repositories.
pub fn refreshed(cx: &Context) -> Result<Option<f64>> {
    let log = end(PART, cx)?;
    let line = log.lines().rev().find(|line| line.ends_with("] synchronizing package lists"));
    Ok(line.and_then(parts).and_then(|(at, ..)| seconds(at)))
}

/// The end of the log, from the beginning of a line. Empty where there is no log yet.
fn end(most: u64, cx: &Context) -> Result<String> {
    let Some(metadata) = cx.stat_all(&[LOG]).remove(0)? else { return Ok(String::new()) };
    let from = metadata.size.saturating_sub(most);
    let mut parts: Vec<(&str, i64, u64)> = Vec::new();
    let mut at = from;
    while at < metadata.size {
        parts.push((LOG, i64::try_from(at).unwrap_or(i64::MAX), PART));
        at += PART;
    }
    let mut log = Vec::new();
    for part in cx.read_parts(&parts) {
        log.extend(part?);
    }
    let log = String::from_utf8_lossy(&log).into_owned();
    Ok(match log.split_once('\n') {
        Some((_cut, rest)) if from > 0 => rest.to_owned(),
        _ => log,
    })
}

/// Splits `[2026-11-29T07:37:21+0000] [ALPM] installed lab-dep (1.0-1)` into its time, its part of pacman, and its text.
fn parts(line: &str) -> Option<(&str, &str, &str)> {
    let (at, rest) = line.strip_prefix('[')?.split_once("] [")?;
    let (part, text) = rest.split_once("] ")?;
    Some((at, part, text))
}

/// The transactions of a log, in its order. pacman says when one begins, and how it ends.
fn read(log: &str) -> Vec<Transaction> {
    let mut transactions: Vec<Transaction> = Vec::new();
    let mut command: Option<String> = None;
    let mut is_open = false;
    for (at, part, text) in log.lines().filter_map(parts) {
        match (part, text) {
            ("PACMAN", text) => {
                if let Some(said) = text.strip_prefix("Running '").and_then(|rest| rest.strip_suffix('\'')) {
                    close(&mut transactions, &mut is_open, Some("it was cut off"));
                    command = Some(said.to_owned());
                }
            }
            ("ALPM", "transaction started") => {
                close(&mut transactions, &mut is_open, Some("it was cut off"));
                is_open = true;
                transactions.push(Transaction {
                    at: at.to_owned(),
                    command: command.clone(),
                    ..Transaction::default()
                });
            }
            ("ALPM", "transaction completed") => close(&mut transactions, &mut is_open, None),
            ("ALPM", "transaction failed") => close(&mut transactions, &mut is_open, Some("it failed")),
            ("ALPM", "transaction interrupted") => {
                close(&mut transactions, &mut is_open, Some("it was interrupted"));
            }
            ("ALPM", text) if is_open => {
                if let Some(transaction) = transactions.last_mut() {
                    transaction.operations.extend(operation(text));
                }
            }
            _ => {}
        }
    }
    transactions
}

/// Ends the transaction that is open, if one is.
fn close(transactions: &mut [Transaction], is_open: &mut bool, error: Option<&str>) {
    if std::mem::take(is_open)
        && let Some(transaction) = transactions.last_mut()
    {
        transaction.error = error.map(str::to_owned);
    }
}

/// Reads `upgraded lab-hello (1.0-1 -> 2.0-1)`. Other lines are about files, hooks and scripts.
fn operation(text: &str) -> Option<Operation> {
    let (verb, rest) = text.split_once(' ')?;
    let (name, versions) = rest.strip_suffix(')')?.split_once(" (")?;
    let (from, to) = versions.split_once(" -> ").unwrap_or((versions, versions));
    Some(match verb {
        "installed" => Operation::new(Verb::Install, name, "", to),
        "reinstalled" => Operation::new(Verb::Reinstall, name, from, to),
        "upgraded" => Operation::new(Verb::Upgrade, name, from, to),
        "downgraded" => Operation::new(Verb::Downgrade, name, from, to),
        "removed" => Operation::new(Verb::Remove, name, from, ""),
        _ => return None,
    })
}

/// Reads `2026-11-29T07:37:21+0000`. Older logs have no seconds and no zone, and tell no time for certain.
fn seconds(at: &str) -> Option<f64> {
    let number = |from: usize, to: usize| at.get(from..to)?.parse::<i64>().ok();
    let date = [number(0, 4)?, number(5, 7)?, number(8, 10)?];
    let unix = time::unix(date, [number(11, 13)?, number(14, 16)?, number(17, 19)?])?;
    let zone = number(20, 22)? * 3600 + number(22, 24)? * 60;
    let unix = match at.get(19..20)? {
        "+" => unix - zone,
        "-" => unix + zone,
        _ => return None,
    };
    Some(unix as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transaction_that_did_not_end_well_says_so() {
        let log = "[2026-11-29T07:37:21+0000] [PACMAN] Running 'pacman -S a'\n\
            [2026-11-29T07:37:21+0000] [ALPM] transaction started\n\
            [2026-11-29T07:37:21+0000] [ALPM] installed a (1-1)\n\
            [2026-11-29T07:37:22+0000] [ALPM] transaction failed\n\
            [2026-11-29T07:38:21+0000] [PACMAN] Running 'pacman -S b'\n\
            [2026-11-29T07:38:21+0000] [ALPM] transaction started\n\
            [2026-11-29T07:38:22+0000] [ALPM] installed b (1-1)\n\
            [2026-11-29T07:39:21+0000] [PACMAN] Running 'pacman -Q'\n\
            [2026-11-29T07:39:21+0000] [ALPM-SCRIPTLET] installed c (1-1)\n";
        let read = read(log);
        let errors: Vec<_> = read.iter().map(|past| past.error.as_deref()).collect();
        assert_eq!(errors, [Some("it failed"), Some("it was cut off")]);
        assert_eq!(read[1].operations, [Operation::new(Verb::Install, "b", "", "1-1")]);
        assert_eq!(read[1].command.as_deref(), Some("pacman -S b"));
    }

    #[test]
    fn a_time_is_told_with_its_zone_alone() {
        assert_eq!(seconds("1970-01-01T01:00:01+0100"), Some(1.0));
        assert_eq!(seconds("1969-12-31T23:00:00-0100"), Some(0.0));
        for other in ["2012-05-04 12:00", "", "2026-11-29T07:37:21", "2026-11-29T07:37:21 0000"] {
            assert_eq!(seconds(other), None, "{other}");
        }
    }
}
