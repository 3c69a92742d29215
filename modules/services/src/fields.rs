//! What a caller may say of a unit file, field by field, and what each becomes in it.
//!
//! A value is one line in systemd's own syntax: `%` starts a specifier and quotes group words, as in a unit file written
//! by hand. What would make it more than that one line is refused.

use linux_sysadmin_sdk::prelude::*;
use schemars::{Schema, SchemaGenerator};

use crate::name;
use crate::unit_file::Setting;

/// Longest value of a field, in bytes.
const LONGEST: usize = 4096;

/// Longest file given as a whole, in bytes.
const LONGEST_FILE: usize = 1 << 18;

/// One text or several.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum Texts {
    One(String),
    Several(Vec<String>),
}

impl JsonSchema for Texts {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Texts".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        schemars::json_schema!({"type": ["string", "array"], "items": {"type": "string"}})
    }
}

impl Texts {
    fn all(&self) -> Vec<&str> {
        match self {
            Self::One(text) => vec![text],
            Self::Several(texts) => texts.iter().map(String::as_str).collect(),
        }
    }
}

/// One line: trimmed, so that what it ends in is what the line ends in.
pub(crate) fn line(field: &str, text: &str) -> Result<String> {
    let value = text.trim();
    let expected = if value.chars().any(char::is_control) {
        "one line without control characters"
    } else if value.ends_with('\\') {
        "a text that doesn't end in a backslash, which would join the next line to it"
    } else if value.len() > LONGEST {
        "at most 4096 bytes"
    } else {
        return Ok(value.to_owned());
    };
    Err(invalid(field, value, expected))
}

fn invalid(field: &str, value: &str, expected: &str) -> Problem {
    let message = format!("{field} is {}: expected {expected}", name::shown(value));
    Problem::validation("INVALID_VALUE", message)
}

/// One setting of a text, where it is given; an empty one has it not set.
pub(crate) fn setting(
    section: &'static str,
    key: &'static str,
    field: &str,
    value: Option<&str>,
    check: impl Fn(&str) -> std::result::Result<(), &'static str>,
) -> Result<Option<Setting>> {
    let Some(value) = value else { return Ok(None) };
    let value = line(field, value)?;
    if value.is_empty() {
        return Ok(Some(Setting::new(section, key, Vec::new())));
    }
    check(&value).map_err(|expected| invalid(field, &value, expected))?;
    Ok(Some(Setting::new(section, key, vec![value])))
}

pub(crate) fn anything(_: &str) -> std::result::Result<(), &'static str> {
    Ok(())
}

/// Names of units with their types, in one assignment. None given is none set.
pub(crate) fn units(
    section: &'static str,
    key: &'static str,
    field: &str,
    value: Option<&Texts>,
) -> Result<Option<Setting>> {
    let Some(value) = value else { return Ok(None) };
    let mut names = Vec::new();
    for text in value.all() {
        for word in line(field, text)?.split_whitespace() {
            // systemd takes a name without its type for none at all.
            if !name::full(word).is_ok_and(|full| full == word) {
                return Err(invalid(field, word, "unit names with their types, as network-online.target"));
            }
            names.push(word.to_owned());
        }
    }
    let values = if names.is_empty() { Vec::new() } else { vec![names.join(" ")] };
    Ok(Some(Setting::new(section, key, values)))
}

/// Calendar expressions, an assignment each; whether they are such is systemd's to say.
pub(crate) fn calendar(value: Option<&Texts>) -> Result<Option<Setting>> {
    let Some(value) = value else { return Ok(None) };
    let mut values = Vec::new();
    for text in value.all() {
        let text = line("on_calendar", text)?;
        if text.starts_with('-') {
            return Err(invalid("on_calendar", &text, "a calendar expression, as in Mon..Fri 08:00"));
        }
        values.push(text);
    }
    values.retain(|value| !value.is_empty());
    Ok(Some(Setting::new("Timer", "OnCalendar", values)))
}

/// What a [Service] section is made of.
#[derive(Default)]
pub(crate) struct Service<'a> {
    pub(crate) service_type: Option<&'a str>,
    pub(crate) exec_start: Option<&'a str>,
    pub(crate) user: Option<&'a str>,
    pub(crate) working_directory: Option<&'a str>,
    pub(crate) restart: Option<&'a str>,
}

impl Service<'_> {
    pub(crate) fn settings(&self) -> Result<Vec<Setting>> {
        let settings = [
            setting("Service", "Type", "type", self.service_type, service_type)?,
            setting("Service", "ExecStart", "exec_start", self.exec_start, command_line)?,
            setting("Service", "User", "user", self.user, user)?,
            setting("Service", "WorkingDirectory", "working_directory", self.working_directory, directory)?,
            setting("Service", "Restart", "restart", self.restart, restart)?,
        ];
        Ok(settings.into_iter().flatten().collect())
    }

    pub(crate) fn is_empty(&self) -> bool {
        [self.service_type, self.exec_start, self.user, self.working_directory, self.restart]
            .iter()
            .all(Option::is_none)
    }
}

fn service_type(value: &str) -> std::result::Result<(), &'static str> {
    const TYPES: [&str; 8] =
        ["simple", "exec", "forking", "oneshot", "dbus", "notify", "notify-reload", "idle"];
    if TYPES.contains(&value) {
        return Ok(());
    }
    Err("simple, exec, forking, oneshot, dbus, notify, notify-reload or idle")
}

fn restart(value: &str) -> std::result::Result<(), &'static str> {
    const POLICIES: [&str; 7] =
        ["no", "always", "on-success", "on-failure", "on-abnormal", "on-abort", "on-watchdog"];
    if POLICIES.contains(&value) {
        return Ok(());
    }
    Err("no, always, on-success, on-failure, on-abnormal, on-abort or on-watchdog")
}

/// systemd.service(5): prefixes, then the program.
fn command_line(value: &str) -> std::result::Result<(), &'static str> {
    let program = value.trim_start_matches(['@', '-', ':', '+', '!', '|']);
    let is_absolute = program.trim_start_matches('"').starts_with('/');
    if is_absolute { Ok(()) } else { Err("an absolute path in front, as in /usr/bin/app --option") }
}

/// systemd's strict rule for user names, or a number.
fn user(value: &str) -> std::result::Result<(), &'static str> {
    let mut bytes = value.bytes();
    let starts = bytes.next().is_some_and(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    let is_name = starts && bytes.all(|byte| byte.is_ascii_alphanumeric() || b"_-.$".contains(&byte));
    if is_name && value.len() <= 64 { Ok(()) } else { Err("an account's name or number") }
}

fn directory(value: &str) -> std::result::Result<(), &'static str> {
    let path = value.strip_prefix('-').unwrap_or(value);
    let is_clean = path.starts_with('/') && !path.split('/').any(|part| part == "..");
    if is_clean || path == "~" { Ok(()) } else { Err("an absolute path without .., or ~") }
}

/// systemd.time(7): `300`, `5min`, `1h 30min`. systemd merely ignores what is none.
pub(crate) fn span(value: &str) -> std::result::Result<(), &'static str> {
    const UNITS: [&str; 29] = [
        "", "us", "usec", "µs", "μs", "ms", "msec", "s", "sec", "second", "seconds", "m", "min", "minute",
        "minutes", "h", "hr", "hour", "hours", "d", "day", "days", "w", "week", "weeks", "M", "month", "months",
        "y",
    ];
    const EXPECTED: &str = "a time span, as 90, 5min or 1h 30min";
    let mut rest = value.trim();
    while !rest.is_empty() {
        let number = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        if number == 0 || rest[..number].parse::<f64>().is_err() {
            return Err(EXPECTED);
        }
        rest = rest[number..].trim_start();
        let unit = rest.find(|c: char| !c.is_alphabetic()).unwrap_or(rest.len());
        if !UNITS.contains(&&rest[..unit]) && !["year", "years"].contains(&&rest[..unit]) {
            return Err(EXPECTED);
        }
        rest = rest[unit..].trim_start();
    }
    Ok(())
}

/// A file given as a whole.
pub(crate) fn whole_file(text: &str) -> Result<&str> {
    let has_section = text.lines().any(|line| line.trim_start_matches('\u{feff}').trim_start().starts_with('['));
    let expected = if text.len() > LONGEST_FILE {
        "at most 256 KiB"
    } else if !has_section {
        "a unit file, with a section such as [Service]"
    } else if text.chars().any(|c| c.is_control() && !"\n\r\t".contains(c)) {
        "no control characters besides tabs and line ends"
    } else {
        return Ok(text);
    };
    Err(invalid("raw_content", text, expected))
}

/// That fields were given which the whole file leaves no room for.
pub(crate) fn ignored(given: &[(&str, bool)]) -> Option<String> {
    let names: Vec<&str> = given.iter().filter(|(_, is_given)| *is_given).map(|(name, _)| *name).collect();
    (!names.is_empty()).then(|| format!("raw_content is the whole file: {} was ignored", names.join(", ")))
}
