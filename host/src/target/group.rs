//! A command's process group, ended as a whole.

use rustix::process::{Pid, Signal, kill_process_group};

/// Kills the group when dropped, unless it has ended by itself: that is how a timeout, a cancellation and a lost
/// client all end what they started.
pub(super) struct Group(Option<Pid>);

impl Group {
    /// Of a child that was started as the leader of its own group.
    pub(super) fn of(child: &tokio::process::Child) -> Self {
        Self(child.id().and_then(|id| Pid::from_raw(id.cast_signed())))
    }

    /// Once nobody of the group is left: its number may soon be another's.
    pub(super) fn has_ended(&mut self) {
        self.0 = None;
    }

    /// Ends every process of the group, now.
    pub(super) fn kill(&mut self) {
        if let Some(leader) = self.0.take() {
            // An error means that nobody is left, which is what was wanted.
            let _ = kill_process_group(leader, Signal::KILL);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}
