//! Checks of names, comments, shells and paths in arguments. Each refusal says what is expected.

use linux_sysadmin_sdk::{accounts, prelude::*, text::excerpt};

/// The number of characters of a refused value that an error repeats.
const SHOWN: usize = 60;

/// A value in quotes, as a message repeats it.
pub(crate) fn shown(text: &str) -> String {
    format!("{:?}", excerpt(text, SHOWN))
}

/// Refuses a name for a new account, unless every program accepts it.
pub(crate) fn must_be_new_user(name: &str) -> Result<()> {
    if is_portable(name) {
        return Ok(());
    }
    let message = format!("{} is no name for an account: expected {PORTABLE}", shown(name));
    Err(Problem::validation("INVALID_USER", message))
}

/// Refuses a name for a new group, unless every program accepts it.
pub(crate) fn must_be_new_group(name: &str) -> Result<()> {
    if is_portable(name) {
        return Ok(());
    }
    let message = format!("{} is no name for a group: expected {PORTABLE}", shown(name));
    Err(Problem::validation("INVALID_GROUP", message))
}

const PORTABLE: &str =
    "a small letter or `_`, then small letters, digits, `_`, `-` and `.`, at most 32 in all";

fn is_portable(name: &str) -> bool {
    accounts::is_name(name) && !name.bytes().any(|byte| byte.is_ascii_uppercase())
}

/// Refuses a comment that can't be a field of /etc/passwd.
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

/// Refuses a shell that isn't in /etc/shells, unless it lets nobody log in.
pub(crate) fn must_be_shell(path: &str, shells: &[String]) -> Result<()> {
    if accounts::NO_LOGIN.contains(&path) || shells.iter().any(|shell| shell == path) {
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

/// Refuses a path that isn't absolute, or that has `.`, `..` or `//` in it.
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
