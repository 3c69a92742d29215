//! Accounts and groups of a target: which names they have, and their entries as the name service gives them.
//!
//! Grants give a module access to accounts by the hole `<user>`. The host refuses a value for it that [`is_name`] refuses.

pub mod expiry;
pub mod logins;

use crate::text::excerpt;
use crate::{CommandLine, Context, Problem, Result};

/// The command line that [`find`] runs. A module that calls it needs this grant.
pub const GETENT_PASSWD: CommandLine = CommandLine::new("getent passwd -- <user>");

/// The exit code of `getent` where there is no such key.
pub const GETENT_NOT_FOUND: i32 = 2;

const EXPECTED: &str = "letters, digits, `_`, `.` and `-`, at most 32, a letter or `_` first";

/// The number of characters of a refused name that a message repeats.
const SHOWN: usize = 60;

/// Shells that let nobody log in. They needn't be in /etc/shells.
pub const NO_LOGIN: [&str; 8] = [
    "/usr/sbin/nologin",
    "/sbin/nologin",
    "/usr/bin/nologin",
    "/bin/nologin",
    "/usr/bin/false",
    "/bin/false",
    "/usr/bin/true",
    "/bin/sync",
];

/// The value of a setting in login.defs(5). The last one counts.
pub fn login_setting<'a>(login_defs: &'a str, key: &str) -> Option<&'a str> {
    let settings = login_defs.lines().rev().map(str::split_whitespace);
    let mut of_key =
        settings.filter_map(|mut words| words.next().filter(|word| *word == key).and(words.next()));
    of_key.next()
}

/// Whether a text can be the name of an account or a group: ASCII letters, digits, `_`, `.` and `-`, at most 32, a letter
/// or `_` first.
///
/// A number is no name, since programs would take it for a uid. A dot at the end is refused, because chown(1) reads it as
/// "and the login group".
pub fn is_name(text: &str) -> bool {
    let mut bytes = text.bytes();
    text.len() <= 32
        && bytes.next().is_some_and(|first| first.is_ascii_alphabetic() || first == b'_')
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte))
        && !text.ends_with('.')
}

/// Refuses what can't be the name of an account, with the code `INVALID_USER`.
pub fn check_user(name: &str) -> Result<()> {
    check(name, "INVALID_USER", "account")
}

/// Refuses what can't be the name of a group, with the code `INVALID_GROUP`.
pub fn check_group(name: &str) -> Result<()> {
    check(name, "INVALID_GROUP", "group")
}

fn check(name: &str, code: &str, what: &str) -> Result<()> {
    if is_name(name) {
        return Ok(());
    }
    let message = format!("{:?} is no {what}'s name: expected {EXPECTED}", excerpt(name, SHOWN));
    Err(Problem::validation(code, message))
}

/// An account as passwd(5) describes it, without its password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// The login name.
    pub name: String,
    /// The number of the account.
    pub uid: u32,
    /// The number of the primary group.
    pub gid: u32,
    /// The full name and other remarks (GECOS).
    pub comment: String,
    /// The path of the home directory.
    pub home: String,
    /// The path of the login shell. An empty one means `/bin/sh`.
    pub shell: String,
}

impl User {
    /// Whether the account's shell lets somebody log in. An empty shell means /bin/sh.
    pub fn has_login_shell(&self) -> bool {
        !NO_LOGIN.contains(&self.shell.as_str())
    }

    /// Reads a line of passwd(5), as `getent passwd` prints it. `None` where it has another form.
    pub fn parse(line: &str) -> Option<Self> {
        let [name, _, uid, gid, comment, home, shell] = line.split(':').collect::<Vec<_>>()[..] else {
            return None;
        };
        let (uid, gid) = (uid.parse().ok()?, gid.parse().ok()?);
        let [name, comment, home, shell] = [name, comment, home, shell].map(str::to_owned);
        (!name.is_empty()).then_some(Self { name, uid, gid, comment, home, shell })
    }
}

/// A group as group(5) describes it, without its password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// The name of the group.
    pub name: String,
    /// The number of the group.
    pub gid: u32,
    /// The accounts that are in it besides those whose primary group it is.
    pub members: Vec<String>,
}

impl Group {
    /// Reads a line of group(5), as `getent group` prints it. `None` where it has another form.
    pub fn parse(line: &str) -> Option<Self> {
        let [name, _, gid, members] = line.split(':').collect::<Vec<_>>()[..] else { return None };
        let members = members.split(',').filter(|member| !member.is_empty()).map(str::to_owned).collect();
        (!name.is_empty()).then_some(Self { name: name.to_owned(), gid: gid.parse().ok()?, members })
    }
}

/// Asks the name service for one account, also one that a directory doesn't list.
///
/// Problems: `INVALID_USER` for what can't be a name, `USER_NOT_FOUND` where there is no such account.
pub fn find(name: &str, cx: &Context) -> Result<User> {
    check_user(name)?;
    let output = cx.run(GETENT_PASSWD.with([name]))?;
    if output.exit_code == GETENT_NOT_FOUND {
        return Err(Problem::not_found("USER_NOT_FOUND", format!("there is no account {name}")));
    }
    let text = output.success("getent passwd")?.text().into_owned();
    let user = text.lines().next().and_then(User::parse).filter(|user| user.name == name);
    user.ok_or_else(|| Problem::unexpected("getent passwd", &text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_have_capitals_and_is_no_number() {
        for name in ["ada", "_apt", "a", "www-data", "a.b", "x2", "Ada", "Domain.Users", &"a".repeat(32)] {
            assert!(check_user(name).is_ok() && check_group(name).is_ok(), "{name}");
        }
        for name in [
            "",
            "0",
            "1000",
            "-x",
            "a b",
            "ä",
            "root\n",
            "%sudo",
            "#0",
            "a,b",
            "a.",
            ".",
            "a:b",
            "a/b",
            "a$",
            "$(id)",
            &"a".repeat(33),
        ] {
            assert_eq!(check_user(name).unwrap_err().code, "INVALID_USER", "{name}");
            assert_eq!(check_group(name).unwrap_err().code, "INVALID_GROUP", "{name}");
        }
    }

    #[test]
    fn a_setting_is_no_comment_and_the_last_one_counts() {
        let text = "#UID_MIN 5\nUID_MIN\t\t 1000\nUMASK\nUID_MIN 500 # more\nUID_MINUTE 1\n";
        assert_eq!(login_setting(text, "UID_MIN"), Some("500"));
        assert_eq!((login_setting(text, "UMASK"), login_setting("", "UID_MIN")), (None, None));
    }

    #[test]
    fn a_line_that_is_no_account_is_none() {
        let ada = User::parse("ada:$6$hash:1000:1000:Ada,,,:/home/ada:/bin/bash").unwrap();
        assert_eq!((ada.uid, ada.comment.as_str(), ada.shell.as_str()), (1000, "Ada,,,", "/bin/bash"));
        assert!(!format!("{ada:?}").contains("hash"));
        for line in
            ["", "ada", "ada:x:1000:1000::/home/ada", ":x:1:1:::", "ada:x:-1:1:::", "a:x:1:1:::::", "+::::::"]
        {
            assert_eq!(User::parse(line), None, "{line}");
        }
        let sudo = Group::parse("sudo:x:27:ada,bob").unwrap();
        assert_eq!(sudo.members, ["ada", "bob"]);
        assert_eq!(Group::parse("audio:x:29:").unwrap().members.len(), 0);
        for line in ["", "sudo", "sudo:x:27", "sudo:x:many:ada", ":x:1:"] {
            assert_eq!(Group::parse(line), None, "{line}");
        }
    }
}
