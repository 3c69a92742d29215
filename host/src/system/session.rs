//! A server of the account leaves the terminal of whoever started it: a process may type into the terminal that controls
//! its session, and what is typed there, the person's shell runs.

use std::fs::OpenOptions;
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

/// The kernel opens it for those who have one, and for nobody else.
fn has_terminal() -> bool {
    let opened = OpenOptions::new().read(true).open("/dev/tty");
    // Whatever else it says, it may be there.
    !opened.is_err_and(|error| Errno::from_io_error(&error) == Some(Errno::NXIO))
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::CommandExt;
    use std::process::{Command, Stdio};

    use rustix::process::{getpid, getsid};

    use super::*;

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
