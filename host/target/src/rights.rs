//! The rights that a command takes: the words before it that get them, and the way to end it.
//!
//! This account can't kill another account's processes, but sudo passes on the signals that it can. Where sudo allows
//! everything, timeout(1) runs between sudo and the command, with the command's rights. It ends the command and its
//! group when it is told to, and by itself a little after the host's own time limit, if no host is left to tell it.
//! Where sudo allows certain commands only, nothing can stand between.

pub(super) use rustix::process::Signal;

use std::time::Duration;

use crate::command_problem::no_root;
use host_base::problem::Problem;
use host_base::{Command, Privilege};

/// The options of timeout(1). It kills only after a second signal: first comes `CONT`, which does nothing to a
/// command, and a tenth of a second later its own `KILL`. With a signal that ends the command itself, timeout would
/// end together with it, and leave those children behind that ignore the signal.
const TIMED: [&str; 2] = ["--signal=CONT", "--kill-after=0.1"];

/// The time between the host's time limit and the one at which `timeout` ends a command by itself.
const BACKSTOP: Duration = Duration::from_secs(2);

/// The rights of this account.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Rights {
    /// Whether root's rights are available, directly or by sudo.
    pub(super) available: bool,
    /// Whether sudo allows certain commands only.
    pub(super) limited: bool,
    /// Whether the account is root itself.
    pub(super) root: bool,
}

impl Rights {
    pub(super) const NONE: Self = Self { available: false, limited: false, root: false };

    /// Says whether sudo stands before a command with this privilege.
    pub(super) fn takes_sudo(self, privilege: &Privilege) -> bool {
        match privilege {
            Privilege::Caller => false,
            Privilege::User(_) => true,
            Privilege::Root => !self.root,
            Privilege::RootIfAvailable => !self.root && self.available,
        }
    }
}

/// The words between the environment and the program, and the way to end the command.
#[derive(Debug, PartialEq)]
pub(super) struct CommandPrefix {
    pub(super) argv: Vec<String>,
    /// The words that are shown: `sudo -n `, or nothing. `timeout` isn't shown, because it is only the command's time
    /// limit.
    pub(super) shown: String,
    pub(super) ends: EndMethod,
}

/// The way in which a command is ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EndMethod {
    /// `KILL` goes to the process group.
    Group,
    /// This signal goes to the leader, which is sudo; [`Self::signals`] tells what follows.
    Sudo(Signal),
    /// This signal and what follows go to the process group, in which sudo is among others.
    SudoAmongOthers(Signal),
}

impl EndMethod {
    /// Returns the way in which several commands in one process group are ended. sudo has the same signals for each of
    /// them, because they have one time limit.
    pub(super) fn of_all(methods: &[Self]) -> Self {
        match methods {
            [method] => *method,
            several => {
                let signal = several.iter().find_map(|method| method.first_signal());
                signal.map_or(Self::Group, Self::SudoAmongOthers)
            }
        }
    }

    fn first_signal(self) -> Option<Signal> {
        match self {
            Self::Group => None,
            Self::Sudo(signal) | Self::SudoAmongOthers(signal) => Some(signal),
        }
    }

    /// Returns the signals that sudo is sent, a second apart, until it has ended.
    ///
    /// The first signal may come before `timeout` has started, and so it is sent again. Then comes `TERM`, because
    /// uutils' timeout knows no other. The last one is `ALRM`, with which sudo itself ends what it runs (`HUP`,
    /// `TERM`, and `KILL` two seconds later), but not the children. Where sudo gave the command a terminal of its own,
    /// `CONT` doesn't reach it, and `ALRM` reaches the children, too.
    pub(super) fn signals(self, has_terminal: bool) -> &'static [Signal] {
        match self.first_signal() {
            None => &[],
            Some(Signal::CONT) if has_terminal => &[Signal::CONT, Signal::CONT, Signal::ALARM],
            Some(Signal::CONT) => &[Signal::CONT, Signal::CONT, Signal::TERM, Signal::ALARM],
            Some(_) => &[Signal::ALARM],
        }
    }

    /// Says whether `timeout` ended the command before the host did, which happens when the host is held up. timeout
    /// ends by itself with 124, and is killed with the whole group otherwise.
    pub(super) fn was_backstop(self, exit_code: i32) -> bool {
        self.first_signal() == Some(Signal::CONT) && matches!(exit_code, 124 | 137)
    }

    /// Says whether the command's children may be left.
    pub(super) fn may_leave(self) -> bool {
        !matches!(self.first_signal(), None | Some(Signal::CONT))
    }
}

/// Returns the prefix of this command, which runs for `limit` at most. `find` returns a program's absolute path.
pub(super) fn command_prefix(
    command: &Command,
    limit: Duration,
    rights: Rights,
    find: impl Fn(&str) -> Result<String, Problem>,
) -> Result<CommandPrefix, Problem> {
    if !rights.takes_sudo(&command.privilege) {
        return Ok(CommandPrefix { argv: Vec::new(), shown: String::new(), ends: EndMethod::Group });
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
    // Where sudo allows everything, it takes variables here and nowhere else. Where it allows certain commands, it
    // sets their variables by itself, from a file that the fragment names.
    if !rights.limited {
        argv.extend(command.env.iter().map(|(name, value)| format!("{name}={value}")));
    }
    argv.push("--".to_owned());
    // A command without a time limit needs no `timeout`.
    let has_limit = limit != Duration::MAX;
    // Where timeout(1) isn't installed, the command runs without it.
    let timeout = (has_limit && !rights.limited).then(|| find("timeout").ok()).flatten();
    let ends = EndMethod::Sudo(if timeout.is_some() { Signal::CONT } else { Signal::ALARM });
    if let Some(timeout) = timeout {
        let seconds = limit.saturating_add(BACKSTOP).as_secs().to_string();
        argv.push(timeout);
        argv.extend(TIMED.map(str::to_owned));
        argv.push(seconds);
    }
    Ok(CommandPrefix { argv, shown, ends })
}

#[cfg(test)]
mod tests;
