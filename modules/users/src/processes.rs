//! The processes that run as an account.

use linux_sysadmin_sdk::{Privilege, prelude::*};

/// Lists processes with root's rights, because some machines hide the processes of others. It lists them by their real
/// user: for a moment, sudo takes the effective uid of the first ordinary account to read its rules, and is no process of
/// that account.
pub(crate) const PROCESSES: CommandLine = CommandLine::new("ps -e --no-headers -o ruid -o pid -o comm");

/// The most processes that are named.
const MOST: usize = 10;

/// The processes of one account.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Processes {
    pub(crate) count: usize,
    /// Some of the processes, as `bash (1234)`.
    pub(crate) some: Vec<String>,
}

impl Processes {
    /// Reads the processes of an account.
    pub(crate) fn of(uid: u32, cx: &Context) -> Result<Self> {
        Self::of_output(uid, cx.run(Self::command()))
    }

    /// The command of [`Processes::of`], for a tool that runs it together with others.
    pub(crate) fn command() -> Command {
        PROCESSES.command().privilege(Privilege::RootIfAvailable)
    }

    /// Reads the output of [`Processes::command`].
    pub(crate) fn of_output(uid: u32, output: Result<Output>) -> Result<Self> {
        let output = output?.success("ps")?;
        let text = output.text();
        let own = text.lines().filter_map(process).filter(|(owner, ..)| *owner == uid);
        let names: Vec<String> = own.map(|(_, pid, name)| format!("{name} ({pid})")).collect();
        Ok(Self { count: names.len(), some: names.into_iter().take(MOST).collect() })
    }
}

fn process(line: &str) -> Option<(u32, u32, &str)> {
    let line = line.trim_start();
    let (uid, rest) = line.split_once(char::is_whitespace)?;
    let (pid, name) = rest.trim_start().split_once(char::is_whitespace)?;
    Some((uid.parse().ok()?, pid.parse().ok()?, name.trim()))
}

#[cfg(test)]
mod tests {
    use super::process;

    #[test]
    fn a_name_may_have_blanks_in_it() {
        // ps from procps-ng 4.0.2
        assert_eq!(process("    0     123 kworker/0:1-events"), Some((0, 123, "kworker/0:1-events")));
        assert_eq!(process(" 1000    4242 tmux: server"), Some((1000, 4242, "tmux: server")));
        assert_eq!(process("garbage"), None);
    }
}
