//! Checks the arguments of the tools that write unit files, and converts them to settings.
//!
//! A value is one line in systemd's own syntax: `%` starts a specifier and quotes group words, as in a unit file written
//! by hand. A value that would become more than one line is refused.

use linux_sysadmin_sdk::prelude::*;
use schemars::{Schema, SchemaGenerator};

use super::syntax::Setting;
use crate::systemd::unit_name;

/// The longest value of a field, in bytes.
const LONGEST: usize = 4096;

/// The longest whole file, in bytes.
const LONGEST_FILE: usize = 1 << 18;

/// One text or several texts.
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

/// Checks that a value is one line. It is trimmed first, because a backslash before blanks would end the line as well.
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
    let message = format!("{field} is {}: expected {expected}", unit_name::shown(value));
    Problem::validation("INVALID_VALUE", message)
}

/// The setting of a field, where the caller gives it. An empty value removes the setting.
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

/// A setting of unit names with their types, in one assignment. An empty list removes the setting.
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
            // systemd ignores a name without a type.
            if !unit_name::full(word).is_ok_and(|full| full == word) {
                return Err(invalid(field, word, "unit names with their types, as network-online.target"));
            }
            names.push(word.to_owned());
        }
    }
    let values = if names.is_empty() { Vec::new() } else { vec![names.join(" ")] };
    Ok(Some(Setting::new(section, key, values)))
}

/// A setting of calendar expressions, with one assignment for each. systemd checks the expressions later.
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

/// The fields of a [Service] section.
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

/// A command line as in systemd.service(5): prefixes, then the program.
fn command_line(value: &str) -> std::result::Result<(), &'static str> {
    let program = value.trim_start_matches(['@', '-', ':', '+', '!', '|']);
    let is_absolute = program.trim_start_matches('"').starts_with('/');
    if is_absolute { Ok(()) } else { Err("an absolute path in front, as in /usr/bin/app --option") }
}

/// A user's name by systemd's strict rule, or a number.
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

/// Checks a time span as in systemd.time(7): `300`, `5min`, `1h 30min`. systemd would merely ignore an invalid one.
pub(crate) fn span(value: &str) -> std::result::Result<(), &'static str> {
    const UNITS: [&str; 29] = [
        "", "us", "usec", "µs", "μs", "ms", "msec", "s", "sec", "second", "seconds", "m", "min", "minute",
        "minutes", "h", "hr", "hour", "hours", "d", "day", "days", "w", "week", "weeks", "M", "month",
        "months", "y",
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

/// Checks a unit file that the caller gives as a whole.
pub(crate) fn whole_file(text: &str) -> Result<&str> {
    let has_section =
        text.lines().any(|line| line.trim_start_matches('\u{feff}').trim_start().starts_with('['));
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

/// A note on the fields that are ignored because the caller gives the whole file.
pub(crate) fn ignored(given: &[(&str, bool)]) -> Option<String> {
    let names: Vec<&str> = given.iter().filter(|(_, is_given)| *is_given).map(|(name, _)| *name).collect();
    (!names.is_empty()).then(|| format!("raw_content is the whole file: {} was ignored", names.join(", ")))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn service(key: &str, value: &str) -> Result<Vec<Setting>> {
        let value = Some(value);
        let none = Service::default();
        match key {
            "type" => Service { service_type: value, ..none },
            "exec_start" => Service { exec_start: value, ..none },
            "user" => Service { user: value, ..none },
            "working_directory" => Service { working_directory: value, ..none },
            _ => Service { restart: value, ..none },
        }
        .settings()
    }

    #[test]
    fn a_value_is_one_line_of_what_its_key_takes() {
        let table = [
            ("type", "notify"),
            ("exec_start", "/usr/bin/app --option %n"),
            ("exec_start", "-@/usr/bin/app app"),
            ("exec_start", "+\"/opt/my app/run\""),
            ("user", "www-data"),
            ("user", "1000"),
            ("working_directory", "/srv/app"),
            ("working_directory", "-/srv/app"),
            ("working_directory", "~"),
            ("restart", "on-failure"),
        ];
        for (key, value) in table {
            assert_eq!(service(key, &format!(" {value} ")).unwrap()[0].values, [value], "{key}");
        }
        assert_eq!(service("user", " ").unwrap()[0].values, [""; 0], "an empty one is none");
    }

    #[test]
    fn what_would_be_more_than_one_line_or_another_thing_is_refused() {
        let long = format!("/bin/{}", "a".repeat(LONGEST));
        let table = [
            ("exec_start", "/bin/a\nUser=root"),
            ("exec_start", "/bin/a\rUser=root"),
            ("exec_start", "/bin/a \\"),
            ("exec_start", "/bin/a \\ "),
            ("exec_start", "/bin/a\0"),
            ("exec_start", "/bin/a\u{85}b"),
            ("exec_start", "app --option"),
            ("exec_start", "-app"),
            ("exec_start", "./app"),
            ("exec_start", long.as_str()),
            ("user", "-root"),
            ("user", "a b"),
            ("user", "a\n[Service]"),
            ("user", "a/b"),
            ("working_directory", "srv"),
            ("working_directory", "/srv/../etc"),
            ("type", "onshot"),
            ("type", "simple\nUser=root"),
            ("restart", "yes"),
        ];
        for (key, value) in table {
            let problem = service(key, value).unwrap_err();
            assert_eq!(problem.code, "INVALID_VALUE", "{key} {value:?}");
            assert!(problem.message.starts_with(&format!("{key} is ")), "{}", problem.message);
            assert!(
                problem.message.contains(": expected ") && problem.message.len() < 300,
                "{}",
                problem.message
            );
            assert!(!problem.message.contains(char::is_control), "{}", problem.message);
        }
    }

    #[test]
    fn units_are_named_in_full_apart_by_blanks_or_as_a_list() {
        let of =
            |texts: Texts| units("Unit", "After", "after", Some(&texts)).map(|found| found.unwrap().values);
        let several = |names: &[&str]| Texts::Several(names.iter().map(|name| name.to_string()).collect());
        let expected = ["a.service network-online.target"];
        assert_eq!(of(Texts::One("a.service  network-online.target".into())).unwrap(), expected);
        assert_eq!(of(several(&["a.service", "network-online.target"])).unwrap(), expected);
        assert_eq!(of(several(&[])).unwrap(), [""; 0]);
        for refused in ["network", "a.service\nExecStart=/bin/x", "a.service \\", "-.mount", "../x.service"] {
            assert_eq!(of(Texts::One(refused.into())).unwrap_err().code, "INVALID_VALUE", "{refused:?}");
        }
    }

    #[test]
    fn a_span_is_numbers_with_units_of_time() {
        for taken in ["300", "5min", "1h 30min", "1h30min", "2.5 days", "500ms", "1M 2w", "1year"] {
            assert_eq!(span(taken), Ok(()), "{taken}");
        }
        for refused in ["min", "5 parsecs", "-5min", "5min,", "1..2s", "infinity", "daily"] {
            assert!(span(refused).is_err(), "{refused}");
        }
    }

    #[test]
    fn a_whole_file_is_text_with_a_section() {
        assert!(whole_file("# x\r\n[Unit]\r\n\tDescription=x").is_ok());
        let huge = format!("[Unit]\n#{}", "x".repeat(LONGEST_FILE));
        for refused in ["", "ExecStart=/bin/a\n", "[Unit]\n\u{1b}[2J", "[Unit]\n\0", huge.as_str()] {
            let problem = whole_file(refused).unwrap_err();
            assert_eq!(problem.code, "INVALID_VALUE");
            assert!(problem.message.len() < 300);
        }
    }

    #[test]
    fn a_calendar_expression_is_never_an_option() {
        let of = |text: &str| calendar(Some(&Texts::One(text.into())));
        assert_eq!(of("--help").unwrap_err().code, "INVALID_VALUE");
        assert_eq!(of("daily\nUnit=rescue.target").unwrap_err().code, "INVALID_VALUE");
        assert_eq!(of("Mon..Fri 08:00").unwrap().unwrap().values, ["Mon..Fri 08:00"]);
    }
}
