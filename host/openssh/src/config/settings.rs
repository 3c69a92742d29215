//! The keywords of a configuration and their values, from either source.

use std::time::Duration;

use super::invalid;
use host_base::problem::Problem;
use host_text::visible::excerpt;

/// The source of the settings, which says what is expanded in them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// `ssh -G` printed them. Host names, known_hosts files and the agent are expanded.
    Ssh,
    /// This program read the files. Nothing is expanded.
    Files,
}

/// The settings, in the order of reading.
#[derive(Debug)]
pub(super) struct Settings {
    pub(super) source: Source,
    values: Vec<Value>,
}

#[derive(Debug)]
struct Value {
    /// The keyword in lower case.
    keyword: String,
    text: String,
    /// The place as `file:line`, where it is known.
    place: Option<String>,
}

/// One value of a keyword.
pub(super) struct Setting<'a> {
    /// The keyword as ssh_config(5) writes it.
    pub(super) keyword: &'static str,
    pub(super) value: &'a str,
    place: Option<&'a str>,
}

impl Settings {
    pub(super) fn new(source: Source) -> Self {
        Self { source, values: Vec::new() }
    }

    pub(super) fn add(&mut self, keyword: &str, text: &str, place: Option<&str>) {
        let keyword = keyword.to_ascii_lowercase();
        self.values.push(Value { keyword, text: text.to_owned(), place: place.map(str::to_owned) });
    }

    pub(super) fn has(&self, keyword: &str) -> bool {
        self.values.iter().any(|value| value.keyword.eq_ignore_ascii_case(keyword))
    }

    /// Returns the value that holds.
    pub(super) fn get(&self, keyword: &'static str) -> Option<Setting<'_>> {
        self.all(keyword).next()
    }

    /// Returns every value of a keyword whose values add up.
    pub(super) fn all(&self, keyword: &'static str) -> impl Iterator<Item = Setting<'_>> {
        self.values
            .iter()
            .filter(|value| value.keyword.eq_ignore_ascii_case(keyword))
            .map(move |Value { text, place, .. }| Setting { keyword, value: text, place: place.as_deref() })
    }
}

impl Setting<'_> {
    /// Returns the problem of a wrong value.
    pub(super) fn invalid(&self, why: &str) -> Problem {
        invalid(format!("{} {why}", self.shown()))
    }

    /// Returns keyword and value, with their place where it is known.
    pub(super) fn shown(&self) -> String {
        let value = excerpt(self.value, 200);
        match self.place {
            Some(place) => format!("{place}: {} {value}:", self.keyword),
            None => format!("{} {value}:", self.keyword),
        }
    }

    /// Reads a yes or no. `ssh -G` prints some as yes and no, and others as true and false.
    pub(super) fn is_yes(&self) -> Result<bool, Problem> {
        match self.value {
            "yes" | "true" => Ok(true),
            "no" | "false" => Ok(false),
            _ => Err(self.invalid("expected yes or no")),
        }
    }
}

/// Reads a time as under TIME FORMATS of sshd_config(5): seconds, or numbers with units.
pub(super) fn duration(setting: &Setting) -> Result<Option<Duration>, Problem> {
    if setting.value == "none" {
        return Ok(None);
    }
    let seconds = seconds(setting.value).filter(|seconds| *seconds > 0 && *seconds <= u64::from(u32::MAX));
    let seconds = seconds.ok_or_else(|| setting.invalid("expected a time, as 30 or 1m30s"))?;
    Ok(Some(Duration::from_secs(seconds)))
}

fn seconds(text: &str) -> Option<u64> {
    let mut rest = text;
    let mut sum: u64 = 0;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let number: u64 = rest[..digits].parse().ok()?;
        let mut behind = rest[digits..].chars();
        let unit = match behind.next() {
            None | Some('s' | 'S') => 1,
            Some('m' | 'M') => 60,
            Some('h' | 'H') => 60 * 60,
            Some('d' | 'D') => 24 * 60 * 60,
            Some('w' | 'W') => 7 * 24 * 60 * 60,
            Some(_) => return None,
        };
        sum = sum.checked_add(number.checked_mul(unit)?)?;
        rest = behind.as_str();
    }
    (!text.is_empty()).then_some(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_seconds_or_numbers_with_units() {
        for (text, expected) in [
            ("30", Some(30)),
            ("1m30s", Some(90)),
            ("2H", Some(7200)),
            ("1d", Some(86400)),
            ("1w1", Some(604_801)),
            ("", None),
            ("m", None),
            ("1x", None),
            ("-1", None),
            ("1 m", None),
            ("99999999999999999999", None),
        ] {
            assert_eq!(seconds(text), expected, "{text}");
        }
    }
}
