//! System mode: the server runs as an account of its own, so that its users have no other access to its rights.
//!
//! In single-user mode, a model with a shell has it under the server's account. It can use that account's sudo rights
//! directly, approve its own plan, edit the configuration, and rewrite the log. In system mode it can do none of
//! these. Only the account [`ACCOUNT`] has configuration, keys, log and sudo rights, and a person may do one thing
//! with it: start the server, by one line of sudoers with exact arguments.
//!
//! The server asks [`mode`]. `linux-sysadmin system` sets system mode up ([`Installation`]), checks whether it holds
//! ([`checks`]), and removes it ([`Removal`]).
#![forbid(unsafe_code)]

mod account;
mod atomic_file;
mod environment;
mod fragments;
mod groups;
mod install;
mod install_record;
mod module_copy;
mod programs;
mod remove;
mod serve_rights;
mod status;
mod steps;
pub mod sudoers;
mod terminal;
mod trust;
mod wall;

pub use environment::enforce_clean_environment;
pub use fragments::ModuleConfigReader;
pub use install::{InstallRequest, Installation};
pub use remove::Removal;
pub use serve_rights::ServeRights;
pub use status::{Check, Status, checks};
pub use steps::{Step, StepsFailed};
pub use terminal::leave_terminal;

use host_base::passwd;
use std::io;
use std::path::{Path, PathBuf};

use host_base::problem::Problem;

/// The account's name.
pub const ACCOUNT: &str = host_base::account::SERVER;

/// The account whose rights the server has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// The server has the rights of the account that its client runs as, too.
    SingleUser,
    /// The server has the rights of an account that nothing else runs as.
    System {
        /// The account of the client, which started the server, as sudo reports it. Unknown where root started the
        /// server without sudo.
        client: Option<u32>,
    },
}

/// The account of system mode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// The numeric user id.
    pub uid: u32,
    /// The numeric id of its own group.
    pub gid: u32,
    /// The home directory, with configuration, log and keys.
    pub home: PathBuf,
}

/// Returns a sentence for each reason why a plan that root reads at a terminal may not be what stands there: others could write
/// over it. Without system mode nobody but the caller's own account may approve, and there are none.
pub fn unsafe_terminal() -> io::Result<Vec<String>> {
    let is_for_others = rustix::process::geteuid().is_root() && account().is_some();
    if is_for_others { wall::ways_to_terminals() } else { Ok(Vec::new()) }
}

/// Returns whose rights this process has. The kernel tells the account's number and root's tables its name, and so an
/// environment can't claim it. Where it can't be found out, this is system mode, which is the stricter one.
pub fn mode() -> Mode {
    match running_as() {
        Ok(None) => Mode::SingleUser,
        Ok(Some(_)) => Mode::System { client: client() },
        Err(_) => Mode::System { client: None },
    }
}

/// Returns the account of system mode, where this machine has one.
pub fn account() -> Option<Account> {
    find(&passwd::read().ok()?)
}

/// Returns the account, where this is one of its processes.
fn running_as() -> io::Result<Option<Account>> {
    let own = rustix::process::geteuid().as_raw();
    Ok(find(&passwd::read()?).filter(|account| account.uid == own))
}

/// Returns the caller's number. sudo always sets it, and [`clean_environment`] lets nothing else through.
fn client() -> Option<u32> {
    std::env::var(environment::CLIENT).ok()?.parse().ok()
}

/// Finds the account. Root never counts, and neither does an account without a home.
fn find(entries: &[passwd::Entry]) -> Option<Account> {
    let entry = entries.iter().find(|entry| entry.name == ACCOUNT)?;
    let passwd::Entry { uid, gid, home, .. } = entry.clone();
    (uid != 0 && home.is_absolute()).then_some(Account { uid, gid, home })
}

/// The reason why system mode can't be set up, checked or removed.
#[derive(Debug, thiserror::Error)]
pub enum SystemError {
    /// Another account than root asked for a change that only root may make.
    #[error("this takes root: `sudo linux-sysadmin system {0}`")]
    NotRoot(&'static str),
    /// A condition of system mode doesn't hold.
    #[error("{0}")]
    Refused(String),
    /// A file or a directory can't be read or changed.
    #[error("{}: {source}", path.display())]
    Io {
        /// The path.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A program couldn't be run.
    #[error(transparent)]
    Problem(#[from] Problem),
    /// A program failed.
    #[error("`{command}` ended with {exit_code}: {said}")]
    Command {
        /// The command as it was run.
        command: String,
        /// The exit code of the program.
        exit_code: i32,
        /// The beginning of its output.
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
