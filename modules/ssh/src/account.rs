//! An account of the target: where its home is, and with whose rights it is worked in.

use linux_sysadmin_sdk::{Category, Privilege, prelude::*};

/// One account, wherever the target knows it from.
pub(crate) const PASSWD: CommandLine = CommandLine::new("getent passwd -- <user>");
/// What a home is; everyone may ask that.
pub(crate) const HOME: CommandLine = CommandLine::new("stat --format=%F -- <path>");

/// `getent` for a key that isn't there.
const NO_SUCH: i32 = 2;

/// One account.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Account {
    pub(crate) name: String,
    pub(crate) uid: u32,
    /// Absolute, without a slash at its end.
    pub(crate) home: String,
    /// Inside a home nobody works but the account itself.
    pub(crate) privilege: Privilege,
    /// The account that the target is reached as, be it under another name.
    pub(crate) is_own: bool,
}

impl Account {
    /// The account that the target is reached as.
    pub(crate) fn own(cx: &Context) -> Result<Self> {
        let name = cx.account()?;
        must_be_name(&name)?;
        let (uid, home) = look(&name, cx)?;
        Ok(Self { name, uid, home, privilege: Privilege::Caller, is_own: true })
    }

    /// The named one, or the one that the target is reached as.
    pub(crate) fn find(name: Option<&str>, cx: &Context) -> Result<Self> {
        name.map_or(Ok(()), must_be_name)?;
        let own = Self::own(cx)?;
        let Some(name) = name.filter(|name| *name != own.name) else { return Ok(own) };
        let (uid, home) = look(name, cx)?;
        let privilege = if name == "root" { Privilege::Root } else { Privilege::User(name.to_owned()) };
        if uid == 0 && name != "root" && own.uid != 0 {
            let message = format!("{name} is another name of root's");
            return Err(Problem::new("INVALID_USER", Category::Denied, message).remedy("Name root"));
        }
        let is_own = uid == own.uid || home == own.home;
        let privilege = if uid == own.uid { Privilege::Caller } else { privilege };
        Ok(Self { name: name.to_owned(), uid, home, privilege, is_own })
    }

    /// Where its keys and its configuration are.
    pub(crate) fn directory(&self) -> String {
        format!("{}/.ssh", self.home)
    }

    /// A path below its home as its owner would say it.
    pub(crate) fn short(&self, path: &str) -> String {
        match path.strip_prefix(&self.home) {
            Some(below) if below.starts_with('/') => format!("~{below}"),
            _ => path.to_owned(),
        }
    }

    /// A problem where the home isn't a directory: what a link leads to may be anybody's.
    pub(crate) fn must_have_home(&self, cx: &Context) -> Result<()> {
        let output = cx.run(HOME.with([&self.home]))?;
        let kind = output.text().trim().to_owned();
        let (name, home) = (&self.name, &self.home);
        match kind.as_str() {
            "directory" => Ok(()),
            "symbolic link" => Err(link(home, &format!("{name}'s home"))),
            _ if output.exit_code != 0 && output.error_text().contains("No such file") => {
                let message = format!("{name}'s home, {home}, isn't there");
                Err(Problem::new("NO_HOME", Category::State, message))
            }
            _ if output.exit_code != 0 => Err(output.success("stat").err().unwrap_or_else(|| no_home(name))),
            _ => Err(no_home(name)),
        }
    }
}

/// A path that is a symlink.
pub(crate) fn link(path: &str, what: &str) -> Problem {
    let message = format!("{what}, {path}, is a symlink: it isn't followed, expected no link");
    Problem::new("SYMLINK", Category::Denied, message)
        .remedy("Change what it leads to by hand, or put a file or directory in its place")
}

fn no_home(name: &str) -> Problem {
    Problem::new("NO_HOME", Category::State, format!("{name} has no home directory, so no keys of its own"))
}

/// Number and home.
fn look(name: &str, cx: &Context) -> Result<(u32, String)> {
    let output = cx.run(PASSWD.with([name]))?;
    if output.exit_code == NO_SUCH {
        return Err(Problem::not_found("USER_NOT_FOUND", format!("there is no account {name}")));
    }
    let text = output.success("getent")?.text().into_owned();
    let unexpected = || Problem::unexpected("getent passwd", &text);
    let line = text.lines().next().ok_or_else(unexpected)?;
    let [known, _, uid, _, _, home, _] = line.split(':').collect::<Vec<_>>()[..] else {
        return Err(unexpected());
    };
    let uid = uid.parse().map_err(|_| unexpected())?;
    if known != name {
        return Err(unexpected());
    }
    let home = home.trim_end_matches('/');
    let is_plain =
        home.starts_with('/') && home.split('/').skip(1).all(|name| !matches!(name, "" | "." | ".."));
    if is_plain { Ok((uid, home.to_owned())) } else { Err(no_home(name)) }
}

/// As the grants' hole takes it.
fn must_be_name(name: &str) -> Result<()> {
    let mut bytes = name.bytes();
    let is_name = name.len() <= 32
        && bytes.next().is_some_and(|first| first.is_ascii_alphabetic() || first == b'_')
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte))
        && !name.ends_with('.');
    if is_name {
        return Ok(());
    }
    let shown: String = name.chars().take(60).collect();
    let message = format!(
        "{shown:?} is no account's name: expected letters, digits, `_`, `.` and `-`, at most 32, a letter or `_` first"
    );
    Err(Problem::validation("INVALID_USER", message))
}
