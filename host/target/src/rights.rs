//! Whose rights a command takes: what is called before it for that, and how the whole is ended.
//!
//! Another account's processes can't be killed by this one; sudo hands on the signals that it can. Where sudo allows
//! everything, timeout(1) runs between it and the command, with the command's own rights, and ends all of it: when it is
//! told to, and by itself a little after our own time limit, if nobody is left to tell it. Where sudo allows certain
//! commands only, nothing can stand between.

pub(super) use rustix::process::Signal;

use std::time::Duration;

use crate::ending::no_root;
use host_base::problem::Problem;
use host_base::{Command, Privilege};

/// How timeout(1) is called. It kills nobody before it was told twice: by `CONT`, which does nothing to a command, and a
/// tenth of a second later by its own clock. Told by a signal that ends the command itself, it would end with it, and
/// leave to themselves those children that ignore the signal.
const TIMED: [&str; 2] = ["--signal=CONT", "--kill-after=0.1"];

/// How long after our own time limit `timeout` ends a command by itself.
const BACKSTOP: Duration = Duration::from_secs(2);

/// What this account may do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Rights {
    /// Root's rights can be had, be it directly.
    pub(super) available: bool,
    /// Certain commands only.
    pub(super) limited: bool,
    /// The account is root itself.
    pub(super) root: bool,
}

impl Rights {
    pub(super) const NONE: Self = Self { available: false, limited: false, root: false };

    /// Whether sudo stands before a command of this privilege.
    pub(super) fn takes_sudo(self, privilege: &Privilege) -> bool {
        match privilege {
            Privilege::Caller => false,
            Privilege::User(_) => true,
            Privilege::Root => !self.root,
            Privilege::RootIfAvailable => !self.root && self.available,
        }
    }
}

/// What stands between the environment and the program, and how the whole is ended.
#[derive(Debug, PartialEq)]
pub(super) struct Head {
    pub(super) argv: Vec<String>,
    /// As it is shown: `sudo -n `, or nothing. `timeout` isn't: what runs is the command, that is only its time limit.
    pub(super) shown: String,
    pub(super) ends: Ends,
}

/// How a command is ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ends {
    /// `KILL` to the process group.
    Group,
    /// This signal to the leader, which is sudo; see [`Self::signals`] for what follows.
    Sudo(Signal),
}

impl Ends {
    /// What sudo is sent, one after the other, each a second after the one before it and until it has ended.
    ///
    /// The first one may be too early, with `timeout` not there yet, so it is sent again. Then `TERM`: that of uutils
    /// knows no other. Last `ALRM`: with it sudo ends what it runs by itself (`HUP`, `TERM`, and `KILL` two seconds
    /// later), but for the children. Where it gave the command a terminal of its own, `CONT` doesn't reach it, and `ALRM`
    /// reaches the children, too.
    pub(super) fn signals(self, has_terminal: bool) -> &'static [Signal] {
        match self {
            Self::Group => &[],
            Self::Sudo(Signal::CONT) if has_terminal => &[Signal::CONT, Signal::CONT, Signal::ALARM],
            Self::Sudo(Signal::CONT) => &[Signal::CONT, Signal::CONT, Signal::TERM, Signal::ALARM],
            Self::Sudo(_) => &[Signal::ALARM],
        }
    }

    /// Whether a command ended so because `timeout` was there before us, which is when we were held up: it ends by itself
    /// with 124, and is killed with the whole group otherwise.
    pub(super) fn was_backstop(self, exit_code: i32) -> bool {
        self == Self::Sudo(Signal::CONT) && matches!(exit_code, 124 | 137)
    }

    /// Whether the command's children may be left.
    pub(super) fn may_leave(self) -> bool {
        !matches!(self, Self::Group | Self::Sudo(Signal::CONT))
    }
}

/// For this command. `find` gives a program's absolute path.
pub(super) fn head(
    command: &Command,
    rights: Rights,
    find: impl Fn(&str) -> Result<String, Problem>,
) -> Result<Head, Problem> {
    if !rights.takes_sudo(&command.privilege) {
        return Ok(Head { argv: Vec::new(), shown: String::new(), ends: Ends::Group });
    }
    if !rights.available {
        return Err(no_root());
    }
    let account = match &command.privilege {
        Privilege::User(name) => Some(name),
        _ => None,
    };
    let mut options = vec!["-n".to_owned()];
    options.extend(account.into_iter().flat_map(|name| ["-u".to_owned(), name.clone()]));
    let shown = format!("sudo {} ", options.join(" "));

    let mut argv = vec![find("sudo")?];
    argv.append(&mut options);
    // Where sudo allows everything, it takes variables here and nowhere else. Where it allows certain commands, it sets
    // their variables by itself: the fragment names a file with them.
    if !rights.limited {
        argv.extend(command.env.iter().map(|(name, value)| format!("{name}={value}")));
    }
    argv.push("--".to_owned());
    // What has no limit is nobody's to end.
    let has_limit = command.timeout != Duration::MAX;
    // Where it isn't installed, it is done without.
    let timeout = (has_limit && !rights.limited).then(|| find("timeout").ok()).flatten();
    let ends = Ends::Sudo(if timeout.is_some() { Signal::CONT } else { Signal::ALARM });
    if let Some(timeout) = timeout {
        let seconds = command.timeout.saturating_add(BACKSTOP).as_secs().to_string();
        argv.push(timeout);
        argv.extend(TIMED.map(str::to_owned));
        argv.push(seconds);
    }
    Ok(Head { argv, shown, ends })
}

#[cfg(test)]
mod tests;
