//! An account of the target: its home, and the rights with which its files are read and written.

use linux_sysadmin_sdk::{Category, Privilege, accounts, prelude::*};

/// Prints the type of a home. Every account may ask that.
pub(crate) const HOME: CommandLine = CommandLine::new("stat --format=%F -- <path>");

/// An account of the target, with the rights by which its files are read.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Account {
    pub(crate) name: String,
    pub(crate) uid: u32,
    /// The absolute path of the home, without a slash at its end.
    pub(crate) home: String,
    /// The rights for files in the home: those of the account itself.
    pub(crate) privilege: Privilege,
    /// True for the account that the target is reached as, also under another name.
    pub(crate) is_own: bool,
}

impl Account {
    /// The account that the target is reached as.
    pub(crate) fn own(cx: &Context) -> Result<Self> {
        let name = cx.account()?;
        let (uid, home) = look_up(&name, cx)?;
        Ok(Self { name, uid, home, privilege: Privilege::Caller, is_own: true })
    }

    /// The account of this name, or the one that the target is reached as.
    pub(crate) fn find(name: Option<&str>, cx: &Context) -> Result<Self> {
        name.map_or(Ok(()), accounts::check_user)?;
        let own = Self::own(cx)?;
        let Some(name) = name.filter(|name| *name != own.name) else { return Ok(own) };
        let (uid, home) = look_up(name, cx)?;
        let privilege = if name == "root" { Privilege::Root } else { Privilege::User(name.to_owned()) };
        if uid == 0 && name != "root" && own.uid != 0 {
            let message = format!("{name} is another name of root's");
            return Err(Problem::new("INVALID_USER", Category::Denied, message).remedy("Name root"));
        }
        let is_own = uid == own.uid || home == own.home;
        let privilege = if uid == own.uid { Privilege::Caller } else { privilege };
        Ok(Self { name: name.to_owned(), uid, home, privilege, is_own })
    }

    /// The directory of the account's keys and SSH configuration.
    pub(crate) fn directory(&self) -> String {
        format!("{}/.ssh", self.home)
    }

    /// A path with `~` in place of the home.
    pub(crate) fn short(&self, path: &str) -> String {
        match path.strip_prefix(&self.home) {
            Some(below) if below.starts_with('/') => format!("~{below}"),
            _ => path.to_owned(),
        }
    }

    /// Refuses a home that isn't a directory. A link could lead to another account's files.
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

/// The problem of a path that is a symlink.
pub(crate) fn link(path: &str, what: &str) -> Problem {
    let message = format!("{what}, {path}, is a symlink: it isn't followed, expected no link");
    Problem::new("SYMLINK", Category::Denied, message)
        .remedy("Change what it leads to by hand, or put a file or directory in its place")
}

fn no_home(name: &str) -> Problem {
    Problem::new("NO_HOME", Category::State, format!("{name} has no home directory, so no keys of its own"))
}

/// The number and the home of an account.
fn look_up(name: &str, cx: &Context) -> Result<(u32, String)> {
    let user = accounts::find(name, cx)?;
    let home = user.home.trim_end_matches('/');
    let is_plain =
        home.starts_with('/') && home.split('/').skip(1).all(|name| !matches!(name, "" | "." | ".."));
    if is_plain { Ok((user.uid, home.to_owned())) } else { Err(no_home(name)) }
}
