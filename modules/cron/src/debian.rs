//! A field as Debian's cron 3.0pl1 reads it: `get_list` of its entry.c.
//!
//! Debian's cron reads from the left. Where it expects a value and can't read one, it refuses the field; anywhere else it
//! skips up to the next blank. A range that runs backwards is accepted and matches nothing.

use crate::expression::{Element, Field, Unit};

/// The result of reading a field.
pub(crate) enum Reading {
    /// cron acts as if only this had been written.
    Takes(Field),
    /// crontab names the field and refuses the file.
    Refuses,
    /// The field has a number that C's `atoi` doesn't define.
    Unknown,
}

impl Reading {
    /// The field that was read, if cron accepts it.
    pub(crate) fn taken(self) -> Option<Field> {
        match self {
            Self::Takes(field) => Some(field),
            Self::Refuses | Self::Unknown => None,
        }
    }
}

/// The name of the field in crontab's message: `bad minute`.
pub(crate) fn complaint(unit: Unit) -> String {
    format!("bad {}", unit.name().replace(' ', "-"))
}

/// Reads a field, which has no blanks.
pub(crate) fn read(unit: Unit, text: &str) -> Reading {
    let mut elements = Vec::new();
    let mut rest = text;
    loop {
        match element(unit, &mut rest) {
            Ok(element) => elements.push(element),
            Err(reading) => return reading,
        }
        match rest.strip_prefix(',') {
            Some(next) => rest = next,
            None => return Reading::Takes(Field::new(unit, &text[..text.len() - rest.len()], elements)),
        }
    }
}

/// Reads an element as `get_range` does.
fn element(unit: Unit, rest: &mut &str) -> Result<Element, Reading> {
    let (low, high) = if eat(rest, '*') {
        (unit.first(), unit.last())
    } else {
        let low = number(unit.names(), unit.first(), rest)?;
        if !eat(rest, '-') {
            // A step after a single value is refused.
            return if rest.starts_with('/') {
                Err(Reading::Refuses)
            } else {
                Ok(Element::Value(in_range(unit, low)?))
            };
        }
        let high = number(unit.names(), unit.first(), rest)?;
        (in_range(unit, low)?, in_range(unit, high)?)
    };
    let step = if eat(rest, '/') { number(&[], 0, rest)? } else { 1 };
    if step == 0 {
        return Err(Reading::Refuses);
    }
    Ok(Element::Range { low, high, step })
}

fn eat(rest: &mut &str, c: char) -> bool {
    let after = rest.strip_prefix(c);
    *rest = after.unwrap_or(rest);
    after.is_some()
}

fn in_range(unit: Unit, value: u32) -> Result<u8, Reading> {
    let value = u8::try_from(value).map_err(|_| Reading::Refuses)?;
    if (unit.first()..=unit.last()).contains(&value) { Ok(value) } else { Err(Reading::Refuses) }
}

/// Reads letters and digits as `get_number` does.
fn number(names: &[&str], first: u8, rest: &mut &str) -> Result<u32, Reading> {
    let end = rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(rest.len());
    let word;
    (word, *rest) = rest.split_at(end);
    if let Some(index) = names.iter().position(|name| name.eq_ignore_ascii_case(word)) {
        return Ok(u32::from(first) + index as u32);
    }
    if word.is_empty() || !word.bytes().all(|b| b.is_ascii_digit()) {
        return Err(Reading::Refuses);
    }
    word.parse::<i32>().map(i32::unsigned_abs).map_err(|_| Reading::Unknown)
}

#[cfg(test)]
mod tests {
    use super::{Reading, complaint, read};
    use crate::expression::Unit;

    #[test]
    fn a_field_is_read_as_debians_cron_was_seen_to() {
        let mut lines = 0;
        let recorded = include_str!("../tests/data/debian-fields.txt").lines();
        for line in recorded.filter(|line| !line.starts_with('#')) {
            let parts: Vec<&str> = line.split('|').map(str::trim).collect();
            let [name, text, seen] = parts[..] else { panic!("{line}") };
            let unit = Unit::ALL.into_iter().find(|unit| unit.name() == name);
            let unit = unit.unwrap_or_else(|| panic!("{line}"));
            let told = match read(unit, text) {
                Reading::Takes(field) => {
                    field.values.iter().map(|value| value.to_string()).collect::<Vec<_>>().join(" ")
                }
                Reading::Refuses => complaint(unit),
                Reading::Unknown => panic!("{line}"),
            };
            assert_eq!(told, seen, "{line}");
            lines += 1;
        }
        assert!(lines > 250, "{lines}");
    }

    #[test]
    fn a_number_beyond_an_int_is_read_as_nobody_knows_what() {
        for text in ["99999999999", "*/99999999999", "1-4294967297"] {
            assert!(matches!(read(Unit::Minute, text), Reading::Unknown), "{text}");
        }
    }
}
