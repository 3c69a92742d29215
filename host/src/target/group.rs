//! A command's process group, ended as a whole.

use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};

/// Kills the group when dropped: that is how a timeout, a cancellation and a lost client all end what they started,
/// and what a command leaves behind ends with it.
pub(super) struct Group {
    leader: Option<Pid>,
    /// The leader is sudo, which hands on the signals that it can.
    by_sudo: bool,
}

impl Group {
    /// Of a child that was started as the leader of its own group.
    pub(super) fn of(child: &tokio::process::Child, by_sudo: bool) -> Self {
        Self { leader: child.id().and_then(|id| Pid::from_raw(id.cast_signed())), by_sudo }
    }

    /// The leader has ended; what it left behind is to end, too.
    pub(super) fn leader_ended(&mut self) {
        self.by_sudo = false;
        self.kill();
    }

    /// Ends every process of the group, now. What runs as another account can't be killed by this one: sudo is asked
    /// to end it instead, and killing sudo would only leave it alone.
    pub(super) fn kill(&mut self) {
        let Some(leader) = self.leader.take() else { return };
        if self.by_sudo {
            if let Err(error) = kill_process(leader, Signal::TERM) {
                tracing::warn!(group = leader.as_raw_nonzero(), %error, "sudo could not be told to end");
            }
            return;
        }
        match kill_process_group(leader, Signal::KILL) {
            // Nobody is left.
            Ok(()) | Err(Errno::SRCH) => {}
            // A child of sudo's belongs to root, whom an ordinary account can't signal.
            Err(error) => {
                tracing::warn!(group = leader.as_raw_nonzero(), %error, "processes could not be ended")
            }
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}
