//! A command's process group, ended as a whole.

use std::fs::File;
use std::io;
use std::process::ExitStatus;
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process, kill_process_group, test_kill_process_group};
use tokio::process::Child;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::rights::Ends;

/// Between one signal to sudo and the next.
const STEP: Duration = Duration::from_secs(1);
/// How long it is waited for that a killed child is gone: it may hang in the kernel.
const REAPING: Duration = Duration::from_millis(250);
/// How long it is waited for that sudo has ended: longer than all signals, and sudo's own two seconds, take.
const ENDING: Duration = Duration::from_secs(6);
/// What sudo looks at when it gives a command a terminal of its own (`use_pty`).
const TERMINAL: &str = "/dev/tty";

/// Ends the group when dropped: that is how a timeout, a cancellation and a lost client all end what they started,
/// and what a command leaves behind ends with it.
pub(super) struct Group {
    child: Option<Child>,
    leader: Option<Pid>,
    ends: Ends,
}

impl Group {
    /// Of a child that was started as the leader of its own group.
    pub(super) fn of(child: Child, ends: Ends) -> Self {
        let leader = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        Self { child: Some(child), leader, ends }
    }

    /// For the leader's end.
    pub(super) async fn wait(&mut self) -> io::Result<ExitStatus> {
        let Some(child) = &mut self.child else { return Err(Errno::CHILD.into()) };
        let status = child.wait().await?;
        if self.ends != Ends::Group {
            // Its number may be another's from now on.
            self.leader = None;
        }
        Ok(status)
    }

    /// The leader has ended; what it left behind is to end, too. Behind sudo that is another account's, and stays: its
    /// `timeout` was in a group that nobody can name any more.
    pub(super) fn leader_ended(&mut self) {
        if let (Some(leader), Ends::Group) = (self.leader.take(), self.ends) {
            kill(leader);
        }
    }

    /// Ends every process of the group, and waits until that is done; gives whether any may be left.
    pub(super) async fn end(&mut self) -> bool {
        let Some(leader) = self.leader else { return false };
        if self.ends == Ends::Group {
            self.begin_to_end();
            let _ = timeout(REAPING, self.wait()).await;
            return false;
        }
        let Some(ending) = self.begin_to_end() else { return true };
        if timeout(ENDING, ending).await.is_err() {
            return true;
        }
        // What sudo runs is in its group, if it has no terminal of its own; another account's, but it can be seen there.
        self.ends.may_leave() && matches!(test_kill_process_group(leader), Ok(()) | Err(Errno::PERM))
    }

    /// Nobody waits for sudo here: it has its first signal when this returns, and the others while the server lives.
    fn begin_to_end(&mut self) -> Option<JoinHandle<()>> {
        let leader = self.leader.take()?;
        if self.ends == Ends::Group {
            kill(leader);
            return None;
        }
        let (first, others) = self.ends.signals(File::open(TERMINAL).is_ok()).split_first()?;
        tell(leader, *first);
        let child = self.child.take()?;
        Handle::try_current().ok().map(|runtime| runtime.spawn(until_ended(child, leader, others)))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.begin_to_end();
    }
}

/// The number is the child's for as long as nobody has waited for it.
async fn until_ended(mut child: Child, leader: Pid, signals: &[Signal]) {
    for signal in signals {
        if timeout(STEP, child.wait()).await.is_ok() {
            return;
        }
        tell(leader, *signal);
    }
    let _ = child.wait().await;
}

fn tell(sudo: Pid, signal: Signal) {
    match kill_process(sudo, signal) {
        Ok(()) | Err(Errno::SRCH) => {}
        Err(error) => tracing::warn!(sudo = sudo.as_raw_nonzero(), %error, "sudo could not be told to end"),
    }
}

fn kill(leader: Pid) {
    match kill_process_group(leader, Signal::KILL) {
        // Nobody is left.
        Ok(()) | Err(Errno::SRCH) => {}
        Err(error) => {
            tracing::warn!(group = leader.as_raw_nonzero(), %error, "processes could not be ended");
        }
    }
}
