//! The level of a line, as syslog counts it and as programs spell it.

use linux_sysadmin_sdk::prelude::*;

/// A level as in syslog(3): 0 is the worst.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Level(pub(crate) u8);

impl Level {
    pub(crate) const CRITICAL: Self = Self(2);
    pub(crate) const ERROR: Self = Self(3);
    pub(crate) const WARNING: Self = Self(4);
    pub(crate) const INFO: Self = Self(6);
    const NAMES: [&'static str; 8] = ["emerg", "alert", "crit", "err", "warning", "notice", "info", "debug"];

    pub(crate) fn name(self) -> &'static str {
        Self::NAMES.get(usize::from(self.0)).copied().unwrap_or("debug")
    }

    /// Reads a level as programs spell it, in upper or lower case.
    pub(crate) fn parse(word: &str) -> Option<Self> {
        let lower = word.to_ascii_lowercase();
        Some(Self(match lower.as_str() {
            "emerg" | "emergency" | "panic" | "0" => 0,
            "alert" | "1" => 1,
            "crit" | "critical" | "fatal" | "2" => 2,
            "err" | "error" | "eror" | "severe" | "failure" | "3" => 3,
            "warn" | "warning" | "wrn" | "4" => 4,
            "notice" | "5" => 5,
            "info" | "information" | "inf" | "6" => 6,
            "debug" | "dbg" | "trace" | "verbose" | "7" => 7,
            _ => return None,
        }))
    }
}

/// Reads the priority that a caller gives: `err` stands for `err` and worse.
pub(crate) fn priority(text: Option<&str>) -> Result<Option<Level>> {
    let Some(text) = text else { return Ok(None) };
    Level::parse(text).map(Some).ok_or_else(|| {
        let message = format!("there is no priority {text:?}; expected one of {}", Level::NAMES.join(", "));
        Problem::validation("UNKNOWN_PRIORITY", message)
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_priority_is_a_name_or_a_number_in_any_spelling() {
        for (text, expected) in [("err", 3), ("ERROR", 3), ("3", 3), ("warn", 4), ("emerg", 0), ("debug", 7)]
        {
            assert_eq!(priority(Some(text)).unwrap(), Some(Level(expected)), "{text}");
        }
        for text in ["", "8", "bad", "-1", "err..warning"] {
            let problem = priority(Some(text)).unwrap_err();
            assert_eq!(problem.code, "UNKNOWN_PRIORITY");
            assert!(problem.message.contains("warning"), "{}", problem.message);
        }
        assert_eq!(priority(None).unwrap(), None);
    }
}
