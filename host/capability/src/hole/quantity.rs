//! Validators of numbers, sizes, times and modes.

use super::all_digits;

/// 19 digits fit every 64-bit counter. A leading zero would be octal to strtol(3) with base 0.
pub(super) fn is_int(value: &str) -> bool {
    value.len() <= 19 && all_digits(value) && (value == "0" || !value.starts_with('0'))
}

/// The units of a size in lower case. lvcreate(8) has LVM's percentages.
const SIZE_UNITS: &[&str] = &["", "b", "s", "%", "%free", "%vg", "%pvs", "%lv", "%origin"];

/// `[+-]digits[.digits]` and a unit: `K` to `E` with `i`, `B` or both, LVM's and parted's `s` and `b`, or a
/// percentage.
pub(super) fn is_size(value: &str) -> bool {
    let unsigned = value.strip_prefix(['+', '-']).unwrap_or(value);
    let (number, unit) =
        unsigned.split_at(unsigned.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(unsigned.len()));
    let is_number = match number.split_once('.') {
        Some((whole, fraction)) => all_digits(whole) && all_digits(fraction),
        None => all_digits(number),
    };
    let unit = unit.to_ascii_lowercase();
    let is_unit = SIZE_UNITS.contains(&unit.as_str())
        || unit
            .strip_prefix(['k', 'm', 'g', 't', 'p', 'e'])
            .is_some_and(|rest| matches!(rest, "" | "b" | "i" | "ib"));
    number.len() <= 24 && is_number && is_unit
}

/// Every word that a time may hold, in lower case. It is a list and not a class of characters, because at(1), ausearch(8)
/// and date(1) know many more words, none of which is needed here.
#[rustfmt::skip]
const TIME_WORDS: &[&str] = &[
    // spans, systemd.time(7)
    "us", "usec", "ms", "msec", "s", "sec", "second", "seconds", "m", "min", "minute", "minutes", "h", "hr",
    "hour", "hours", "d", "day", "days", "w", "week", "weeks", "month", "months", "y", "year", "years",
    // points
    "now", "today", "yesterday", "tomorrow", "midnight", "noon", "ago", "last", "next", "this", "left",
    "recent", "boot",
    // dates and zones
    "t", "z", "utc", "gmt", "am", "pm", "mon", "tue", "wed", "thu", "fri", "sat", "sun", "monday", "tuesday",
    "wednesday", "thursday", "friday", "saturday", "sunday", "jan", "feb", "mar", "apr", "may", "jun", "jul",
    "aug", "sep", "oct", "nov", "dec", "january", "february", "march", "april", "june", "july", "august",
    "september", "october", "november", "december",
];

/// Numbers, the words above, and `-`, `:`, `.`, `+`, `@` and single blanks between them; 64 bytes at most.
pub(super) fn is_time(value: &str) -> bool {
    value.len() <= 64
        && value.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '@' || c == '+')
        && value.ends_with(|c: char| c.is_ascii_alphanumeric())
        && !value.contains("  ")
        && value.bytes().all(|b| b.is_ascii_alphanumeric() || b"-:.+@ ".contains(&b))
        && value
            .split(|c: char| !c.is_ascii_alphabetic())
            .all(|word| word.is_empty() || TIME_WORDS.contains(&word.to_ascii_lowercase().as_str()))
}

/// chmod(1): three or four octal digits, or clauses such as `u+rwX` and `go=`, each of which names whose mode it changes.
pub(super) fn is_mode(value: &str) -> bool {
    let is_octal = (3..=4).contains(&value.len()) && value.bytes().all(|b| (b'0'..=b'7').contains(&b));
    is_octal || (value.len() <= 64 && value.split(',').all(is_mode_clause))
}

fn is_mode_clause(clause: &str) -> bool {
    let Some(operator) = clause.find(['+', '-', '=']) else { return false };
    let (who, change) = clause.split_at(operator);
    let permissions = &change[1..];
    let is_permissions =
        permissions.bytes().all(|b| b"rwxXst".contains(&b)) || matches!(permissions, "u" | "g" | "o");
    !who.is_empty()
        && who.bytes().all(|b| b"ugoa".contains(&b))
        && is_permissions
        && (change.starts_with('=') || !permissions.is_empty())
}
