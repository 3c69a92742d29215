//! Values of the kernel: those that run, below `/proc/sys`, and those that systemd sets at the start, as sysctl.d(5) says.

pub(crate) mod config;
pub(crate) mod key;
pub(crate) mod running;
pub(crate) mod value;

use linux_sysadmin_sdk::prelude::*;

/// Sets a value of the running kernel.
const SET: CommandLine = CommandLine::new("sysctl -w <text>=<text>");
/// Sets an empty value, as a list without entries has it.
const SET_EMPTY: CommandLine = CommandLine::new("sysctl -w <text>=");
const SET_NEGATIVE: CommandLine = CommandLine::new("sysctl -w <text>=-<int>");

/// The command that sets a value of the running kernel.
pub(crate) fn set(key: &key::Key, value: &str) -> Command {
    match value.strip_prefix('-') {
        Some(number) => SET_NEGATIVE.with([key.name(), number.to_owned()]),
        None if value.is_empty() => SET_EMPTY.with([key.name()]),
        None => SET.with([key.name(), value.to_owned()]),
    }
    .as_root()
}

pub(crate) fn grants(module: Module) -> Module {
    let directories = config::DIRECTORIES
        .into_iter()
        .flat_map(|directory| [directory.to_owned(), format!("{directory}/*.conf")])
        .map(|path| PathGrant::read(&path, "which values are set at the start"));
    module
        .paths(directories)
        .path(PathGrant::read(config::OLD, "a link in sysctl.d leads there"))
        .path(PathGrant::read("/dev/null", "a link to it takes the place of a file that isn't applied"))
        .path(PathGrant::read("/proc/sys", "which values there are"))
        .path(PathGrant::read("/proc/sys/**", "the values that run"))
        .path(PathGrant::read(running::MOUNTS, "whether values can be set in this container"))
        .path(PathGrant::read("/proc/*/mounts", "the link of all mounts leads there"))
        .path(PathGrant::write(config::OURS, "the values that the tool keeps for the next start"))
        .command(SET.change(Risk::Moderate, "set a value of the kernel"))
        .command(SET_EMPTY.change(Risk::Moderate, "empty a value of the kernel"))
        .command(SET_NEGATIVE.change(Risk::Moderate, "set a value of the kernel below zero"))
}
