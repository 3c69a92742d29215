//! Keeps the journal from writing messages to terminals.
//!
//! By default journald writes a message of the highest priority to the terminal of everybody who is logged in, with its
//! escape sequences. Every account may log one. It could so write over a plan while root reads it at a terminal, and root
//! would approve what is not shown.

use std::path::Path;

/// The file with journald's setting.
pub(super) const FILE: &str = "/etc/systemd/journald.conf.d/linux-sysadmin.conf";

/// The file's text.
pub(super) const TEXT: &str = "\
# Written by `linux-sysadmin system install`. Any account can log a message that journald would write to all terminals, and
# so over the plan that root reads before approving it.
[Journal]
ForwardToWall=no
";

/// Journald's unit.
pub(super) const UNIT: &str = "systemd-journald.service";

/// Whether the machine has a journal.
pub(super) fn is_needed() -> bool {
    Path::new("/run/systemd/journal").is_dir()
}
