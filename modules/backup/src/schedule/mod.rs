//! Schedules: the file that says what one backs up, and the timer or cron job that starts it.

pub(crate) mod config;
pub(crate) mod start;
pub(crate) mod when;

use linux_sysadmin_sdk::prelude::*;

/// The grants to read, write and start schedules.
pub(crate) fn grants(module: Module) -> Module {
    let module = module
        // The password of a repository lies there too, and only the script reads it.
        .path(PathGrant::write("/etc/linux-sysadmin/backup/*.conf", "the schedules"))
        .path(PathGrant::read("/etc/linux-sysadmin/backup/*.conf", "the schedules").as_root_if_available())
        .path(PathGrant::read(config::DIRECTORY, "which schedules there are").as_root_if_available());
    let module = ["/etc/linux-sysadmin", config::DIRECTORY].into_iter().fold(module, |module, path| {
        module
            .path(PathGrant::write(path, "the directory of the schedules"))
            .path(PathGrant::read(path, "whether the directory of the schedules is there"))
    });
    start::grants(module)
}
