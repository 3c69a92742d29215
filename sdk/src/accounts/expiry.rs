//! The day on which an account expires.

use crate::text::excerpt;
use crate::{Problem, Result, time};

/// The number of characters of a refused value that a message repeats.
const SHOWN: usize = 60;

/// The day on which an account expires, or never.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expiry {
    /// The account doesn't expire.
    Never,
    /// The first day on which nobody can log in: `2027-01-31`.
    On(String),
}

impl Expiry {
    /// Reads a day, or `never`. Problem: `INVALID_DATE`.
    pub fn read(text: &str) -> Result<Self> {
        if text == "never" {
            return Ok(Self::Never);
        }
        match day(text) {
            Some(_) => Ok(Self::On(text.to_owned())),
            None => {
                let message = format!("{:?} is no day: expected YYYY-MM-DD, or never", excerpt(text, SHOWN));
                Err(Problem::validation("INVALID_DATE", message))
            }
        }
    }

    /// The option of `usermod`. An empty value means never.
    pub fn argument(&self) -> String {
        match self {
            Self::Never => "--expiredate=".to_owned(),
            Self::On(day) => format!("--expiredate={day}"),
        }
    }

    /// Whether the account has expired at this time.
    pub fn is_over(&self, now: f64) -> bool {
        match self {
            Self::Never => false,
            Self::On(text) => day(text).is_some_and(|day| day as f64 <= now),
        }
    }
}

impl std::fmt::Display for Expiry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Never => f.write_str("never"),
            Self::On(day) => f.write_str(day),
        }
    }
}

/// The beginning of a day in seconds since the epoch. `None` where the calendar has no such day.
fn day(text: &str) -> Option<i64> {
    let is_form = text.len() == 10
        && text.bytes().enumerate().all(|(at, byte)| match at {
            4 | 7 => byte == b'-',
            _ => byte.is_ascii_digit(),
        });
    if !is_form {
        return None;
    }
    let number = |range: std::ops::Range<usize>| text[range].parse().ok();
    let begin = time::unix([number(0..4)?, number(5..7)?, number(8..10)?], [0, 0, 0])?;
    time::rfc3339(begin).starts_with(text).then_some(begin)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_day_is_one_of_the_calendar() {
        for (text, is_over) in
            [("2027-01-31", false), ("2024-02-29", true), ("1970-01-02", true), ("never", false)]
        {
            assert_eq!(Expiry::read(text).unwrap().is_over(1_795_191_721.0), is_over, "{text}");
        }
        for text in [
            "",
            "2027-02-30",
            "2027-13-01",
            "31.01.2027",
            "2027-1-1",
            "1",
            "-1",
            "tomorrow",
            "2027-01-01 ",
            "２027-01-01",
        ] {
            assert_eq!(Expiry::read(text).unwrap_err().code, "INVALID_DATE", "{text}");
        }
    }
}
