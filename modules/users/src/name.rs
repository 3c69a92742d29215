//! What callers may give for names, comments, shells, homes and dates. Whatever is refused is told with what was expected.

use linux_sysadmin_sdk::{prelude::*, time};

/// Characters of a refused value that an error repeats.
const SHOWN: usize = 60;

/// Programs that let nobody in. They needn't be in /etc/shells.
pub(crate) const NO_LOGIN: [&str; 8] = [
    "/usr/sbin/nologin",
    "/sbin/nologin",
    "/usr/bin/nologin",
    "/bin/nologin",
    "/usr/bin/false",
    "/bin/false",
    "/usr/bin/true",
    "/bin/sync",
];

/// A value as an error repeats it.
pub(crate) fn shown(text: &str) -> String {
    let mut short: String = text.chars().take(SHOWN).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    format!("{short:?}")
}

/// Of an account that there may be, as the grants' hole takes it.
pub(crate) fn must_be_user(name: &str) -> Result<()> {
    if is_name(name) {
        return Ok(());
    }
    Err(Problem::validation("INVALID_USER", format!("{} is no account's name: expected {NAME}", shown(name))))
}

/// Of a group that there may be.
pub(crate) fn must_be_group(name: &str) -> Result<()> {
    if is_name(name) {
        return Ok(());
    }
    Err(Problem::validation("INVALID_GROUP", format!("{} is no group's name: expected {NAME}", shown(name))))
}

/// Of an account that is to be: what every program takes, which is less than some have let in.
pub(crate) fn must_be_new_user(name: &str) -> Result<()> {
    if is_portable(name) {
        return Ok(());
    }
    let message = format!("{} is no name for an account: expected {PORTABLE}", shown(name));
    Err(Problem::validation("INVALID_USER", message))
}

/// Of a group that is to be.
pub(crate) fn must_be_new_group(name: &str) -> Result<()> {
    if is_portable(name) {
        return Ok(());
    }
    let message = format!("{} is no name for a group: expected {PORTABLE}", shown(name));
    Err(Problem::validation("INVALID_GROUP", message))
}

const NAME: &str = "letters, digits, `_`, `.` and `-`, at most 32, a letter or `_` first";
const PORTABLE: &str =
    "a small letter or `_`, then small letters, digits, `_`, `-` and `.`, at most 32 in all";

fn is_name(name: &str) -> bool {
    let mut bytes = name.bytes();
    name.len() <= 32
        && bytes.next().is_some_and(|first| first.is_ascii_alphabetic() || first == b'_')
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte))
        && !name.ends_with('.')
}

fn is_portable(name: &str) -> bool {
    is_name(name) && !name.bytes().any(|byte| byte.is_ascii_uppercase())
}

/// A field of /etc/passwd, which ends at a colon.
pub(crate) fn must_be_comment(text: &str) -> Result<()> {
    let is_one_field = !text.starts_with('-') && !text.contains(':') && !text.chars().any(char::is_control);
    if is_one_field && text.len() <= 255 {
        return Ok(());
    }
    let message = format!(
        "{} is no comment: expected one line of at most 255 bytes without `:`, and no `-` first",
        shown(text)
    );
    Err(Problem::validation("INVALID_COMMENT", message))
}

/// One that logs in, or keeps somebody from it.
pub(crate) fn must_be_shell(path: &str, shells: &[String]) -> Result<()> {
    if NO_LOGIN.contains(&path) || shells.iter().any(|shell| shell == path) {
        return Ok(());
    }
    let message =
        format!("{} is no login shell here: expected one of /etc/shells, nologin or false", shown(path));
    let problem = Problem::validation("INVALID_SHELL", message);
    Err(match shells {
        [] => problem,
        known => problem.remedy(format!("There are {}", known.join(", "))),
    })
}

/// The paths in /etc/shells.
pub(crate) fn shells(text: &str) -> Vec<String> {
    let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
    lines.filter(|line| line.starts_with('/')).map(str::to_owned).collect()
}

/// An absolute path that means the same to everyone.
pub(crate) fn must_be_path(path: &str) -> Result<()> {
    let is_plain = path.len() <= 4095
        && path.starts_with('/')
        && (path == "/" || path.split('/').skip(1).all(|name| !matches!(name, "" | "." | "..")))
        && !path.chars().any(char::is_control);
    if is_plain {
        return Ok(());
    }
    let message = format!(
        "{} is no path that can be taken: expected an absolute one without `.`, `..`, `//` and a slash at the end",
        shown(path)
    );
    Err(Problem::validation("INVALID_PATH", message))
}

/// When an account ends: a day, or never.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Expiry {
    Never,
    /// `2027-01-31`: the first day on which nobody logs in.
    On(String),
}

impl Expiry {
    pub(crate) fn read(text: &str) -> Result<Self> {
        if text == "never" {
            return Ok(Self::Never);
        }
        match day(text) {
            Some(_) => Ok(Self::On(text.to_owned())),
            None => {
                let message = format!("{} is no day: expected YYYY-MM-DD, or never", shown(text));
                Err(Problem::validation("INVALID_DATE", message))
            }
        }
    }

    /// As `usermod --expiredate=` takes it: nothing is never.
    pub(crate) fn argument(&self) -> String {
        match self {
            Self::Never => "--expiredate=".to_owned(),
            Self::On(day) => format!("--expiredate={day}"),
        }
    }

    /// Whether nobody logs in any more at this time.
    pub(crate) fn is_over(&self, now: f64) -> bool {
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

/// Seconds since the epoch at a day's beginning; only of days that are in the calendar.
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
mod tests {
    use super::*;

    #[test]
    fn a_new_name_is_one_that_every_program_takes() {
        for name in ["ada", "_apt", "a", "www-data", "a.b", "x2", &"a".repeat(32)] {
            assert!(must_be_new_user(name).is_ok() && must_be_new_group(name).is_ok(), "{name}");
        }
        for name in [
            "",
            "-x",
            "a b",
            &"a".repeat(33),
            &"a".repeat(40),
            "ädä",
            "123",
            "1a",
            "Ada",
            "a.",
            "a:b",
            "a\n",
            "a/b",
            "$(id)",
            "a$",
            ".",
            "ALL",
        ] {
            assert_eq!(must_be_new_user(name).unwrap_err().code, "INVALID_USER", "{name}");
            assert_eq!(must_be_new_group(name).unwrap_err().code, "INVALID_GROUP", "{name}");
        }
    }

    #[test]
    fn what_is_there_may_have_capitals_and_still_no_number() {
        assert!(must_be_user("Ada").is_ok() && must_be_group("Domain.Users").is_ok());
        for name in ["", "0", "1000", "-x", "a b", "ä", "root\n", "%sudo", "#0", "a,b"] {
            assert_eq!(must_be_user(name).unwrap_err().code, "INVALID_USER", "{name}");
            assert_eq!(must_be_group(name).unwrap_err().code, "INVALID_GROUP", "{name}");
        }
    }

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

    #[test]
    fn a_comment_is_one_field_and_a_path_means_the_same_to_everyone() {
        assert!(must_be_comment("Ada Lovelace,Room 1,é").is_ok() && must_be_comment("").is_ok());
        for text in ["a:b", "a\nb", "-a", "a\u{0}", &"a".repeat(256)] {
            assert_eq!(must_be_comment(text).unwrap_err().code, "INVALID_COMMENT", "{text}");
        }
        assert!(must_be_path("/").is_ok() && must_be_path("/srv/a b").is_ok());
        for path in ["", "srv", "/srv/", "//srv", "/srv/../etc", "/./srv", "/a\nb", "~"] {
            assert_eq!(must_be_path(path).unwrap_err().code, "INVALID_PATH", "{path}");
        }
    }

    #[test]
    fn a_shell_is_one_of_those_that_are_listed_or_lets_nobody_in() {
        let known = shells("# /etc/shells: valid login shells\n/bin/sh\n/bin/bash # usual\n\ntmux\n");
        assert_eq!(known, ["/bin/sh", "/bin/bash"]);
        for path in ["/bin/bash", "/usr/sbin/nologin", "/bin/false"] {
            assert!(must_be_shell(path, &known).is_ok(), "{path}");
        }
        for path in ["/bin/zsh", "bash", "", "/usr/bin/python3", "/bin/bash "] {
            let problem = must_be_shell(path, &known).unwrap_err();
            assert_eq!((problem.code.as_str(), problem.remediation.len()), ("INVALID_SHELL", 1), "{path}");
        }
    }
}
