//! The machine's power state: what hinders a shutdown, what would hinder the start after it, and what the start brought.

pub(crate) mod hindrance;
pub(crate) mod schedule;
pub(crate) mod start;
pub(crate) mod units;

use linux_sysadmin_sdk::prelude::*;

/// Adds the grants of everything about the power state.
pub(crate) fn grants(module: Module) -> Module {
    module
        .path(PathGrant::read(hindrance::INHIBITORS, "what delays or blocks a shutdown"))
        .path(PathGrant::read("/run/systemd/inhibit/*", "what delays or blocks a shutdown"))
        .path(PathGrant::read(schedule::SCHEDULED, "the shutdown that is planned"))
        .path(PathGrant::read(hindrance::FSTAB_FILE, "which file systems the start doesn't wait for"))
        .path(PathGrant::read(start::BOOT_ID, "whether the machine has restarted"))
        .path(PathGrant::read(start::RESTART_REQUIRED, "what needs a restart"))
        .path(PathGrant::read(start::KERNELS, "whether a kernel is newer than the one that runs"))
        .command(units::STATES.read("which units run, before and after a restart"))
        .command(start::STATE.read("waits until all units have started that start at boot"))
        .command(hindrance::FSTAB.read("whether the file systems can be mounted at the next start"))
        .command(hindrance::SSHD.read("whether sshd can start again").as_root_if_available())
        .commands(
            [
                (schedule::RESTART, "restart the machine"),
                (schedule::RESTART_TOLD, "restart the machine, and tell who is logged in why"),
                (schedule::TURN_OFF, "turn the machine off"),
                (schedule::TURN_OFF_TOLD, "turn the machine off, and tell who is logged in why"),
            ]
            .map(|(line, reason)| line.change(Risk::Critical, reason)),
        )
        .command(schedule::CANCEL.change(Risk::Moderate, "cancel a planned shutdown"))
}
