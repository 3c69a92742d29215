//! Which of two versions is newer, as vercmp(8) says it.

use std::cmp::Ordering;

/// Compares two versions of the form `[epoch:]version[-release]`. A release counts only where both have one.
pub fn compare(a: &str, b: &str) -> Ordering {
    let (a, b) = (Parts::of(a), Parts::of(b));
    let releases = || match (a.release, b.release) {
        (Some(a), Some(b)) => segments(a, b),
        _ => Ordering::Equal,
    };
    segments(a.epoch, b.epoch).then_with(|| segments(a.version, b.version)).then_with(releases)
}

struct Parts<'a> {
    epoch: &'a str,
    version: &'a str,
    release: Option<&'a str>,
}

impl<'a> Parts<'a> {
    fn of(text: &'a str) -> Self {
        let is_number = |epoch: &str| epoch.bytes().all(|byte| byte.is_ascii_digit());
        let (epoch, rest) = text.split_once(':').filter(|(epoch, _)| is_number(epoch)).unwrap_or(("0", text));
        let (version, release) = match rest.rsplit_once('-') {
            Some((version, release)) => (version, Some(release)),
            None => (rest, None),
        };
        Self { epoch: if epoch.is_empty() { "0" } else { epoch }, version, release }
    }
}

/// Compares runs of digits and runs of letters one after the other, as libalpm's rpmvercmp does.
fn segments(mut a: &str, mut b: &str) -> Ordering {
    while !a.is_empty() && !b.is_empty() {
        let (a_rest, b_rest) = (behind_separators(a), behind_separators(b));
        let separators = (a.len() - a_rest.len()).cmp(&(b.len() - b_rest.len()));
        (a, b) = (a_rest, b_rest);
        if a.is_empty() || b.is_empty() {
            break;
        }
        if separators != Ordering::Equal {
            return separators;
        }
        let is_number = a.starts_with(|c: char| c.is_ascii_digit());
        let (a_run, a_rest) = run(a, is_number);
        let (b_run, b_rest) = run(b, is_number);
        let order = match (b_run.is_empty(), is_number) {
            // Digits are newer than letters.
            (true, true) => Ordering::Greater,
            (true, false) => Ordering::Less,
            (false, true) => {
                let (a_run, b_run) = (a_run.trim_start_matches('0'), b_run.trim_start_matches('0'));
                a_run.len().cmp(&b_run.len()).then_with(|| a_run.cmp(b_run))
            }
            (false, false) => a_run.cmp(b_run),
        };
        if order != Ordering::Equal {
            return order;
        }
        (a, b) = (a_rest, b_rest);
    }
    // What goes on with letters is a version before: `1.0rc` is older than `1.0`.
    let is_before = |text: &str| text.starts_with(|c: char| c.is_ascii_alphabetic());
    match (a.is_empty(), b.is_empty()) {
        (true, true) => Ordering::Equal,
        (true, false) if is_before(b) => Ordering::Greater,
        (true, false) => Ordering::Less,
        (false, _) if is_before(a) => Ordering::Less,
        (false, _) => Ordering::Greater,
    }
}

fn behind_separators(text: &str) -> &str {
    text.trim_start_matches(|c: char| !c.is_ascii_alphanumeric())
}

/// The run of digits or of letters at the beginning, and the rest.
fn run(text: &str, is_number: bool) -> (&str, &str) {
    let belongs = |c: char| if is_number { c.is_ascii_digit() } else { c.is_ascii_alphabetic() };
    text.split_at(text.find(|c| !belongs(c)).unwrap_or(text.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What vercmp of pacman 6.0.2 says.
    #[test]
    fn versions_are_compared_as_vercmp_does() {
        let table = [
            ("1.0a", "1.0", Ordering::Less),
            ("1.0", "1.0.1", Ordering::Less),
            ("1.0.a", "1.0", Ordering::Greater),
            ("1.0a", "1.0alpha", Ordering::Less),
            ("1.0b", "1.0beta", Ordering::Less),
            ("1.0beta", "1.0p", Ordering::Less),
            ("1.0rc", "1.0", Ordering::Less),
            ("1.0-1", "1.0-2", Ordering::Less),
            ("1.0", "1.0-2", Ordering::Equal),
            ("1:1.0", "2.0", Ordering::Greater),
            ("2:1.0-1", "1:3.6-1", Ordering::Greater),
            ("1.0_1", "1.0.1", Ordering::Equal),
            ("1.0__1", "1.0.1", Ordering::Greater),
            ("1.001", "1.1", Ordering::Equal),
            ("1.10", "1.9", Ordering::Greater),
            ("r10.abc", "r9.def", Ordering::Greater),
            ("1.0.1", "1.0a", Ordering::Greater),
            ("20240101", "1.0", Ordering::Greater),
            ("1.5.b", "1.5", Ordering::Greater),
            ("1.5.b", "1.5.1", Ordering::Less),
            ("0.1.0.r5", "0.1.0", Ordering::Greater),
            ("1.0+1", "1.0.1", Ordering::Equal),
            ("1.0.", "1.0", Ordering::Greater),
            ("1.0.", "1.0.", Ordering::Equal),
            ("1.0..", "1.0.1", Ordering::Less),
            ("a", "1", Ordering::Less),
        ];
        for (a, b, order) in table {
            assert_eq!(compare(a, b), order, "{a} {b}");
            assert_eq!(compare(b, a), order.reverse(), "{b} {a}");
        }
    }
}
