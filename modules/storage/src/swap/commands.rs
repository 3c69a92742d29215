//! Turning swap areas on and off. A file and a device are told apart, since the rights to name them differ.

use linux_sysadmin_sdk::{DurationCategory, prelude::*};

const ON_FILE: CommandLine = CommandLine::new("swapon -- <path>");
const ON_FILE_FIRST: CommandLine = CommandLine::new("swapon --priority=<int> -- <path>");
const ON_DEVICE: CommandLine = CommandLine::new("swapon -- <disk>");
const ON_DEVICE_FIRST: CommandLine = CommandLine::new("swapon --priority=<int> -- <disk>");
const OFF_FILE: CommandLine = CommandLine::new("swapoff -- <path>");
const OFF_DEVICE: CommandLine = CommandLine::new("swapoff -- <disk>");

pub(crate) fn grants(module: Module) -> Module {
    let on = [ON_FILE, ON_FILE_FIRST, ON_DEVICE, ON_DEVICE_FIRST];
    module
        .commands(on.map(|line| line.change(Risk::Moderate, "use a swap area")))
        .commands([OFF_FILE, OFF_DEVICE].map(|line| line.change(Risk::High, "no longer use a swap area")))
}

/// Uses an area. Without a priority, the kernel gives one below all others.
pub(crate) fn on(path: &str, priority: Option<u16>) -> Command {
    let is_device = path.starts_with("/dev/");
    let command = match (is_device, priority.map(|priority| priority.to_string())) {
        (false, None) => ON_FILE.with([path]),
        (false, Some(priority)) => ON_FILE_FIRST.with([priority.as_str(), path]),
        (true, None) => ON_DEVICE.with([path]),
        (true, Some(priority)) => ON_DEVICE_FIRST.with([priority.as_str(), path]),
    };
    command.as_root()
}

/// Reads an area back into memory, which takes long where much is in use.
pub(crate) fn off(path: &str) -> Command {
    let line = if path.starts_with("/dev/") { OFF_DEVICE } else { OFF_FILE };
    line.with([path]).as_root().duration(DurationCategory::LongRunning)
}
