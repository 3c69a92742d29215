//! The process group of a command, which is ended as a whole.

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

use super::rights::EndMethod;

/// The time between two signals to sudo.
const STEP: Duration = Duration::from_secs(1);
/// The time that the host waits for a killed child. It may hang in the kernel.
const REAPING: Duration = Duration::from_millis(250);
/// The time that the host waits for sudo to end. All signals and sudo's own two seconds take less.
const ENDING: Duration = Duration::from_secs(6);
/// The file by which sudo decides whether to give a command a terminal of its own (`use_pty`).
const TERMINAL: &str = "/dev/tty";

/// A process group that ends when this is dropped. In this way a timeout, a cancellation and a lost client end
/// everything that was started, and what a command leaves behind ends with it.
pub(super) struct ProcessGroup {
    child: Option<Child>,
    leader: Option<Pid>,
    ends: EndMethod,
}

impl ProcessGroup {
    /// Wraps a child that was started as the leader of its own group.
    pub(super) fn of(child: Child, ends: EndMethod) -> Self {
        let leader = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        Self { child: Some(child), leader, ends }
    }

    /// Waits for the leader's end.
    pub(super) async fn wait(&mut self) -> io::Result<ExitStatus> {
        let Some(child) = &mut self.child else { return Err(Errno::CHILD.into()) };
        let status = child.wait().await?;
        if self.ends != EndMethod::Group {
            // From now on another process may have its number.
            self.leader = None;
        }
        Ok(status)
    }

    /// Ends what the leader left behind, after it has ended. Behind sudo those processes are another account's and
    /// stay, because nothing names the group in which their `timeout` was.
    pub(super) fn leader_ended(&mut self) {
        if let (Some(leader), EndMethod::Group) = (self.leader.take(), self.ends) {
            kill(leader);
        }
    }

    /// Ends every process of the group and waits for it. Returns whether any process may be left.
    pub(super) async fn end(&mut self) -> bool {
        let Some(leader) = self.leader else { return false };
        if self.ends == EndMethod::Group {
            self.begin_to_end();
            let _ = timeout(REAPING, self.wait()).await;
            return false;
        }
        let Some(ending) = self.begin_to_end() else { return true };
        if timeout(ENDING, ending).await.is_err() {
            return true;
        }
        // What sudo runs is in sudo's group if it has no terminal of its own. The process is another account's, but
        // the group shows that it exists.
        self.ends.may_leave() && matches!(test_kill_process_group(leader), Ok(()) | Err(Errno::PERM))
    }

    /// Begins to end the group without waiting for sudo. sudo has its first signal when this returns, and gets the
    /// others while the server lives.
    fn begin_to_end(&mut self) -> Option<JoinHandle<()>> {
        let leader = self.leader.take()?;
        if self.ends == EndMethod::Group {
            kill(leader);
            return None;
        }
        let (first, others) = self.ends.signals(File::open(TERMINAL).is_ok()).split_first()?;
        tell(leader, *first);
        let child = self.child.take()?;
        Handle::try_current().ok().map(|runtime| runtime.spawn(until_ended(child, leader, others)))
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        self.begin_to_end();
    }
}

/// The number belongs to the child until someone has waited for it.
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
        // No process is left.
        Ok(()) | Err(Errno::SRCH) => {}
        Err(error) => {
            tracing::warn!(group = leader.as_raw_nonzero(), %error, "processes could not be ended");
        }
    }
}
