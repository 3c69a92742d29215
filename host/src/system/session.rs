//! A server of the account leaves the terminal of whoever started it: a process may type into the terminal that controls
//! its session, and what is typed there, the person's shell runs.

use std::io;

use rustix::io::Errno;
use rustix::process::{getpgid, getppid, setpgid, setsid};

/// Begins a session of its own, which no terminal controls. An error where this process still has one after that: then
/// it must not go on.
pub fn leave_terminal() -> io::Result<()> {
    match own_session() {
        Ok(()) => Ok(()),
        // Whoever begins a session, as clients do for what they start, has none where nobody gave it one.
        Err(_) if !has_terminal() => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn own_session() -> rustix::io::Result<()> {
    match setsid() {
        // The first of a group may not; in its parent's group it is one of many.
        Err(Errno::PERM) => {
            setpgid(None, Some(getpgid(getppid())?))?;
            setsid().map(drop)
        }
        other => other.map(drop),
    }
}

/// By what the kernel says of this process: /dev/tty isn't everywhere, and where it is missing the terminal isn't.
fn has_terminal() -> bool {
    let terminal = std::fs::read_to_string("/proc/self/stat").ok().and_then(|stat| terminal_of(&stat));
    // Whatever else it says, it may be there.
    terminal != Some(0)
}

/// The fifth field after the program's name, which is in parentheses and may hold any character: the terminal's device,
/// and 0 for none (proc_pid_stat(5)).
fn terminal_of(stat: &str) -> Option<i32> {
    stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(4)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::CommandExt;
    use std::process::{Command, Stdio};

    use rustix::process::{getpid, getsid};

    use super::*;

    #[test]
    fn a_terminal_is_found_whatever_the_program_is_called() {
        // Debian 12, procfs of Linux 6.1.
        let stat = |name| format!("1234 ({name}) S 1200 1234 1200 34816 1234 4194304 112 0 0 0");
        for name in ["bash", "a b", ") S 1 1 1 0 1"] {
            assert_eq!(terminal_of(&stat(name)), Some(34816));
        }
        assert_eq!(terminal_of("77 (cron) S 1 77 77 0 -1 4194560"), Some(0));
        assert_eq!([terminal_of(""), terminal_of("1 (x) S 1 1")], [None, None]);
    }

    /// Set for the process that is to leave its session.
    const LEAVES: &str = "LINUX_SYSADMIN_TEST_LEAVES";

    /// In a process of its own: whoever runs the tests stays where they are.
    #[test]
    fn a_server_begins_a_session_whether_it_leads_a_group_or_not() {
        if std::env::var_os(LEAVES).is_some() {
            assert_ne!(getsid(None).unwrap(), getpid());
            leave_terminal().unwrap();
            assert_eq!((getsid(None).unwrap(), has_terminal()), (getpid(), false));
            // Once is enough, and twice does no harm.
            leave_terminal().unwrap();
            return;
        }
        let name = "system::session::tests::a_server_begins_a_session_whether_it_leads_a_group_or_not";
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
