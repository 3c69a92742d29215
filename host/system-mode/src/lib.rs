//! System mode: the server runs as an account of its own, so that whoever uses it can't use its rights otherwise.
//!
//! In single-user mode a model that has a shell has it under the server's account: it can use that account's sudo rights
//! directly, approve its own plan, edit the configuration, and write the log anew. In system mode none of these is its
//! own. The account [`ACCOUNT`] alone has configuration, keys, log and sudo rights, and a person may do one thing with
//! it: start the server, by one line of sudoers with exact arguments.
//!
//! [`mode`] is what the server asks. `linux-sysadmin system` sets it up ([`Installation`]), looks whether it holds
//! ([`checks`]), and takes it away ([`Removal`]).
#![forbid(unsafe_code)]

mod account;
mod environment;
mod fragments;
mod groups;
mod install;
mod programs;
mod put;
mod record;
mod remove;
mod rights;
mod session;
mod staged;
mod status;
mod steps;
pub mod sudoers;
mod trust;

pub use environment::settle;
pub use fragments::Configured;
pub use install::{Installation, Request};
pub use remove::Removal;
pub use rights::Rights;
pub use session::leave_terminal;
pub use status::{Check, Status, checks};
pub use steps::{Failed, Step};

use host_base::passwd;
use std::io;
use std::path::{Path, PathBuf};

use host_base::problem::Problem;

/// The account's name.
pub const ACCOUNT: &str = "linux-sysadmin";

/// Whose rights the server has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Those of the account that its client runs as, too.
    SingleUser,
    /// Those of an account that nothing else runs as.
    System {
        /// The account that started it, by sudo's word: the client's. Unknown where root did so without sudo.
        client: Option<u32>,
    },
}

/// The account of system mode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// Its number.
    pub uid: u32,
    /// Its own group's number.
    pub gid: u32,
    /// Where its configuration, log and keys are.
    pub home: PathBuf,
}

/// Whose rights this process has. The kernel's word for the account, and root's for its name: an environment can't claim
/// it. Where it can't be found out, the stricter one.
pub fn mode() -> Mode {
    match running_as() {
        Ok(None) => Mode::SingleUser,
        Ok(Some(_)) => Mode::System { client: client() },
        Err(_) => Mode::System { client: None },
    }
}

/// The account of system mode, where this machine has one.
pub fn account() -> Option<Account> {
    find(&passwd::read().ok()?)
}

/// The account, where this is one of its processes.
fn running_as() -> io::Result<Option<Account>> {
    let own = rustix::process::geteuid().as_raw();
    Ok(find(&passwd::read()?).filter(|account| account.uid == own))
}

/// sudo sets it always, and `settle` lets nothing through that is none.
fn client() -> Option<u32> {
    std::env::var(environment::CLIENT).ok()?.parse().ok()
}

/// Root is never meant, nor who has no home.
fn find(entries: &[passwd::Entry]) -> Option<Account> {
    let entry = entries.iter().find(|entry| entry.name == ACCOUNT)?;
    let passwd::Entry { uid, gid, home, .. } = entry.clone();
    (uid != 0 && home.is_absolute()).then_some(Account { uid, gid, home })
}

/// Why system mode can't be set up, looked at or taken away.
#[derive(Debug, thiserror::Error)]
pub enum SystemError {
    /// It changes what only root may change.
    #[error("this takes root: `sudo linux-sysadmin system {0}`")]
    NotRoot(&'static str),
    /// Something isn't as it must be.
    #[error("{0}")]
    Refused(String),
    /// A file or a directory.
    #[error("{}: {source}", path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A program could not be run.
    #[error(transparent)]
    Problem(#[from] Problem),
    /// A program said no.
    #[error("`{command}` ended with {exit_code}: {said}")]
    Command {
        /// As it was run.
        command: String,
        /// Its own.
        exit_code: i32,
        /// The beginning of it.
        said: String,
    },
}

impl SystemError {
    fn io(path: &Path, source: io::Error) -> Self {
        Self::Io { path: path.to_owned(), source }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_account_is_the_first_of_its_name_and_never_root() {
        for (text, uid) in [
            ("linux-sysadmin:x:998:997::/home:/bin/sh\nlinux-sysadmin:x:5:5::/other:/bin/sh\n", Some(998)),
            ("linux-sysadmin:x:0:0::/root:/bin/sh\n", None),
            ("linux-sysadmin:x:998:997:::/bin/sh\n", None),
            ("linux-sysadmin:x:998:997::relative:/bin/sh\n", None),
            ("linux-sysadmin2:x:998:997::/home:/bin/sh\n", None),
            ("", None),
        ] {
            assert_eq!(find(&passwd::parse(text)).map(|account| account.uid), uid, "{text:?}");
        }
    }

    #[test]
    fn whoever_runs_the_tests_is_not_that_account() {
        assert_eq!(mode(), Mode::SingleUser);
    }
}
