//! A command's process group, ended as a whole.

use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process_group};

/// Kills the group when dropped: that is how a timeout, a cancellation and a lost client all end what they started,
/// and what a command leaves behind ends with it.
pub(super) struct Group(Option<Pid>);

impl Group {
    /// Of a child that was started as the leader of its own group.
    pub(super) fn of(child: &tokio::process::Child) -> Self {
        Self(child.id().and_then(|id| Pid::from_raw(id.cast_signed())))
    }

    /// Ends every process of the group, now.
    pub(super) fn kill(&mut self) {
        let Some(leader) = self.0.take() else { return };
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
