//! Logins and passwords of accounts, by lslogins and passwd. Neither of them shows a hash.

use serde::Serialize;

use super::expiry::Expiry;
use crate::{Command, CommandGrant, CommandLine, Context, Output, Privilege, Result};

macro_rules! lslogins {
    ($which:literal) => {
        concat!(
            "TZ=UTC lslogins --export --notruncate --time-format=iso ",
            "--output=USER,PWD-EMPTY,PWD-WARN,PWD-CHANGE,PWD-MIN,PWD-MAX,PWD-EXPIR,LAST-LOGIN,LAST-TTY,LAST-HOSTNAME,FAILED-LOGIN",
            $which
        )
    };
}

const ALL: CommandLine = CommandLine::new(lslogins!(""));
const ONE: CommandLine = CommandLine::new(lslogins!(" --logins=<user>"));
/// Prints the states of all passwords. Some versions of passwd have no `--all`.
const PASSWORDS: CommandLine = CommandLine::new("passwd --status --all");
const PASSWORD: CommandLine = CommandLine::new("passwd --status -- <user>");

/// The grants for the commands of this module, with root's rights where the target allows them.
pub fn grants() -> [CommandGrant; 4] {
    [
        ALL.read("last logins and expiry, without any password"),
        ONE.read("the same of one account"),
        PASSWORDS.read("whether passwords are locked, not what they are"),
        PASSWORD.read("the same of one account"),
    ]
    .map(CommandGrant::as_root_if_available)
}

/// The logins of one account. Unknown values are `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Login {
    /// The name of the account.
    pub user: String,
    /// Whether the shadow entry could be read.
    pub is_known: bool,
    /// True where there is a password hash, even a locked one.
    pub has_hash: bool,
    /// The day on which the account expires.
    pub expires: Option<Expiry>,
    /// The day on which the password was set, as `2026-11-22`.
    pub changed: Option<String>,
    /// The days after which a password may be changed again.
    pub days_min: Option<u32>,
    /// The days after which a password has to be changed; 99999 means never.
    pub days_max: Option<u32>,
    /// The days before that on which a login is warned.
    pub days_warn: Option<u32>,
    /// The time of the last login, as RFC 3339.
    pub last: Option<String>,
    /// The host that it came from.
    pub last_from: Option<String>,
    /// The terminal that it was on.
    pub last_tty: Option<String>,
    /// The time of the last login that failed.
    pub failed: Option<String>,
}

/// The state of a password.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Password {
    /// A password opens the account.
    Set,
    /// No password opens the account.
    Locked,
    /// The account is opened without a password.
    None,
}

/// The logins of all accounts, or of one.
#[derive(Clone, Debug, Default)]
pub struct Logins {
    all: Vec<Login>,
    /// The reason why the logins aren't known.
    pub missing: Option<String>,
}

impl Logins {
    /// Reads the logins, with root's rights where the target allows them.
    pub fn look(user: Option<&str>, cx: &Context) -> Self {
        Self::of_output(cx.run(Self::command(user)))
    }

    /// The command of [`Logins::look`], for a tool that runs it together with others.
    pub fn command(user: Option<&str>) -> Command {
        let command = user.map_or_else(|| ALL.command(), |user| ONE.with([user]));
        command.privilege(Privilege::RootIfAvailable)
    }

    /// Reads the output of [`Logins::command`].
    pub fn of_output(output: Result<Output>) -> Self {
        match output.and_then(|output| output.success("lslogins")) {
            Ok(output) => Self { all: read(&output.text()), missing: None },
            Err(problem) => Self { all: Vec::new(), missing: Some(problem.message) },
        }
    }

    /// The logins of this account; all values are unknown where there are none.
    pub fn of(&self, user: &str) -> Login {
        self.all.iter().find(|login| login.user == user).cloned().unwrap_or_default()
    }

    /// Whether any shadow entry could be read.
    pub fn has_shadow(&self) -> bool {
        self.all.iter().any(|login| login.is_known)
    }

    /// Accounts that have expired.
    pub fn ended(&self, now: f64) -> Vec<String> {
        let is_over = |login: &&Login| login.expires.as_ref().is_some_and(|expires| expires.is_over(now));
        self.all.iter().filter(is_over).map(|login| login.user.clone()).collect()
    }
}

fn read(text: &str) -> Vec<Login> {
    text.lines().filter_map(|line| login(&pairs(line))).collect()
}

fn login(pairs: &[(String, String)]) -> Option<Login> {
    // Some versions write the names of columns like variables of a shell.
    let value = |key: &str| {
        let found = pairs.iter().find(|(name, _)| name.replace('_', "-") == key);
        found.map(|(_, value)| value.clone()).filter(|value| !value.is_empty())
    };
    let number = |key: &str| value(key).and_then(|value| value.parse().ok());
    let is_known = ["PWD-CHANGE", "PWD-WARN", "PWD-MAX"].iter().any(|key| value(key).is_some());
    let expires = value("PWD-EXPIR").map_or(Some(Expiry::Never), |day| Expiry::read(&day).ok());
    Some(Login {
        user: value("USER")?,
        is_known,
        has_hash: is_known && value("PWD-EMPTY").as_deref() == Some("0"),
        expires: expires.filter(|_| is_known),
        changed: value("PWD-CHANGE"),
        days_min: number("PWD-MIN"),
        days_max: number("PWD-MAX"),
        days_warn: number("PWD-WARN"),
        last: value("LAST-LOGIN"),
        last_from: value("LAST-HOSTNAME"),
        last_tty: value("LAST-TTY"),
        failed: value("FAILED-LOGIN"),
    })
}

/// Splits `NAME="value" …`. Values have special characters as `\x22`.
fn pairs(line: &str) -> Vec<(String, String)> {
    let mut pairs = Vec::new();
    let mut rest = line;
    while let Some((name, behind)) = rest.split_once("=\"") {
        let Some((value, behind)) = behind.split_once('"') else { break };
        pairs.push((name.trim().to_owned(), unescaped(value)));
        rest = behind;
    }
    pairs
}

fn unescaped(value: &str) -> String {
    let mut bytes = Vec::with_capacity(value.len());
    let mut rest = value;
    while let Some((before, behind)) = rest.split_once("\\x") {
        bytes.extend_from_slice(before.as_bytes());
        match behind.get(..2).and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &behind[2..];
            }
            None => {
                bytes.extend_from_slice(b"\\x");
                rest = behind;
            }
        }
    }
    bytes.extend_from_slice(rest.as_bytes());
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The state of an account's password, `None` where it isn't known.
pub fn password(user: &str, cx: &Context) -> Option<Password> {
    let said = statuses(cx.run(status_of(user)));
    said.into_iter().find(|(name, _)| name == user).map(|(_, password)| password)
}

/// Asks passwd for one account.
pub fn status_of(user: &str) -> Command {
    PASSWORD.with([user]).privilege(Privilege::RootIfAvailable)
}

/// Asks passwd for all accounts.
pub fn status_of_all() -> Command {
    PASSWORDS.command().privilege(Privilege::RootIfAvailable)
}

/// The accounts that no password opens.
pub fn locked(users: Vec<String>, cx: &Context) -> Vec<String> {
    let answers = cx.run_all(users.iter().map(|user| status_of(user)).collect());
    let is_locked =
        |answer| statuses(answer).first().is_some_and(|(_, password)| *password == Password::Locked);
    let answers = users.into_iter().zip(answers);
    answers.filter_map(|(user, answer)| is_locked(answer).then_some(user)).collect()
}

/// The states of the passwords; empty where passwd failed.
pub fn statuses(output: Result<Output>) -> Vec<(String, Password)> {
    let output = output.and_then(|output| output.success("passwd"));
    output.map(|output| output.text().lines().filter_map(status).collect()).unwrap_or_default()
}

/// Parses `ada P 2026-11-22 0 99999 7 -1`. Red Hat's own passwd prints PS, LK and NP.
fn status(line: &str) -> Option<(String, Password)> {
    let mut words = line.split_whitespace();
    let name = words.next()?.to_owned();
    let password = match words.next()? {
        "P" | "PS" => Password::Set,
        "L" | "LK" => Password::Locked,
        "NP" => Password::None,
        _ => return None,
    };
    Some((name, password))
}

#[cfg(test)]
mod tests;
