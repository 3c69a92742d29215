//! What runs as an account.

use linux_sysadmin_sdk::{Privilege, prelude::*};

/// With root's rights, since some machines hide others' processes. By the real user: sudo takes the first ordinary account's
/// effective one for a moment, to read its rules where root may not, and is no process of that account.
pub(crate) const PROCESSES: CommandLine = CommandLine::new("ps -e --no-headers -o ruid -o pid -o comm");

/// Names that are told.
const MOST: usize = 10;

/// Processes of one account.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Processes {
    pub(crate) count: usize,
    /// `bash (1234)`, some of them.
    pub(crate) some: Vec<String>,
}

impl Processes {
    /// None where they can't be told.
    pub(crate) fn of(uid: u32, cx: &Context) -> Result<Self> {
        Self::of_output(uid, cx.run(Self::command()))
    }

    /// What [`Processes::of`] runs, for a tool that runs it at once with other commands.
    pub(crate) fn command() -> Command {
        PROCESSES.command().privilege(Privilege::RootIfAvailable)
    }

    /// What [`Processes::command`] says.
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
