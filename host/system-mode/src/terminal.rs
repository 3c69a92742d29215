//! Lets a server of the account leave the terminal of the person who started it. A process may type into the terminal
//! that controls its session, and the person's shell runs what is typed there.

use std::io;

use rustix::io::Errno;
use rustix::process::{Pid, getpid, getppid, setpgid, setsid};

/// Begins a session that no terminal controls. Returns an error where this process still has a terminal after that;
/// the process must not go on then.
pub fn leave_terminal() -> io::Result<()> {
    match own_session() {
        Ok(()) => Ok(()),
        // A client may have begun a session for the server, which then has no terminal.
        Err(_) if !has_terminal() => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn own_session() -> rustix::io::Result<()> {
    match setsid() {
        // The leader of a group may not begin a session; in its parent's group it is a member like others.
        Err(Errno::PERM) => {
            setpgid(None, Some(group_of_parent().ok_or(Errno::PERM)?))?;
            setsid().map(drop)
        }
        other => other.map(drop),
    }
}

/// Returns the parent's group. None where the group is outside of the container of this process: the kernel has no
/// number for it there and reports 0, which the library's own functions take for a number.
fn group_of_parent() -> Option<Pid> {
    let stat = stat(getppid()?)?;
    Pid::from_raw(stat.group)
}

/// Says whether a terminal controls this process, as the kernel reports it. /dev/tty isn't everywhere, and may be
/// missing where there is a terminal.
fn has_terminal() -> bool {
    // Where the kernel's report can't be read, there may be a terminal.
    stat(getpid()).is_none_or(|stat| stat.terminal != 0)
}

/// The kernel's report on a process.
#[derive(Debug, PartialEq, Eq)]
struct ProcessStat {
    group: i32,
    session: i32,
    /// The number of the terminal's device, or 0 for none.
    terminal: i32,
}

fn stat(process: Pid) -> Option<ProcessStat> {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", process.as_raw_nonzero())).ok()?;
    ProcessStat::read(&stat)
}

impl ProcessStat {
    /// Reads the third field and the next two after the program's name, which is in parentheses and may hold any
    /// character, proc_pid_stat(5).
    fn read(stat: &str) -> Option<Self> {
        let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace().skip(2);
        let mut next = || fields.next()?.parse().ok();
        Some(Self { group: next()?, session: next()?, terminal: next()? })
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::CommandExt;
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_terminal_is_found_whatever_the_program_is_called() {
        // Debian 12, procfs of Linux 6.1.
        let stat = |name| format!("1234 ({name}) S 1200 1234 1201 34816 1234 4194304 112 0 0 0");
        for name in ["bash", "a b", ") S 1 1 1 0 1"] {
            let found = ProcessStat { group: 1234, session: 1201, terminal: 34816 };
            assert_eq!(ProcessStat::read(&stat(name)), Some(found));
        }
        // In a container whose processes were begun outside, unshare(1) of util-linux 2.38.1.
        let outside = ProcessStat { group: 0, session: 0, terminal: 0 };
        assert_eq!(ProcessStat::read("7 (cron) S 1 0 0 0 -1 4194560"), Some(outside));
        assert_eq!([ProcessStat::read(""), ProcessStat::read("1 (x) S 1 1 1")], [None, None]);
    }

    /// Set for the process that has to leave its session.
    const LEAVES: &str = "LINUX_SYSADMIN_TEST_LEAVES";

    /// This runs in a process of its own, so that the tests keep their session.
    #[test]
    fn a_server_begins_a_session_whether_it_leads_a_group_or_not() {
        if std::env::var_os(LEAVES).is_some() {
            let (own, own_stat) = (getpid().as_raw_nonzero().get(), || stat(getpid()).unwrap());
            let before = own_stat();
            assert_ne!(before.session, own);
            // It leads a group, and there is no other group to join.
            if before.group == own && group_of_parent().is_none() {
                assert_eq!(leave_terminal().is_ok(), before.terminal == 0);
                return;
            }
            leave_terminal().unwrap();
            assert_eq!((own_stat().session, has_terminal()), (own, false));
            // A second call does no harm.
            leave_terminal().unwrap();
            return;
        }
        let name = "terminal::tests::a_server_begins_a_session_whether_it_leads_a_group_or_not";
        for leads in [false, true] {
            let mut again = Command::new(std::env::current_exe().unwrap());
            again.args(["--exact", name]).env(LEAVES, "1").stdin(Stdio::null());
            if leads {
                again.process_group(0);
            }
            let output = again.output().unwrap();
            let said = String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success() && said.contains("1 passed"), "leads: {leads}: {said}");
        }
    }
}
