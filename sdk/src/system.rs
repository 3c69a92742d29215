//! Functions of the host that only modules which come with the program may call.

/// A JSON object with what the host knows of itself and of the target.
#[cfg(target_family = "wasm")]
pub fn session_snapshot() -> String {
    crate::bindings::sysadmin::module::session::snapshot()
}

/// The same as [`session_snapshot`], after the host has gathered the target's facts again.
#[cfg(target_family = "wasm")]
pub fn session_refresh() -> crate::Result<String> {
    crate::bindings::sysadmin::module::session::refresh()
}

/// A tool as clients see it.
#[cfg(target_family = "wasm")]
pub use crate::bindings::sysadmin::module::session::ListedTool;

/// All tools, in the order of their names.
#[cfg(target_family = "wasm")]
pub fn tools() -> Vec<ListedTool> {
    crate::bindings::sysadmin::module::session::tools()
}

/// Adds tools to the calling client's list. Returns the names of those that were not in it.
#[cfg(target_family = "wasm")]
pub fn list_tools(names: &[String]) -> Vec<String> {
    crate::bindings::sysadmin::module::session::list_tools(names)
}

/// The sudoers fragment of a module: the rules that it needs on the target. None where there is no such module.
#[cfg(target_family = "wasm")]
pub fn sudoers_reference(module: &str) -> Option<String> {
    crate::bindings::sysadmin::module::session::sudoers_reference(module)
}

/// Connections to targets over SSH, see `wit/target-control.wit`.
#[cfg(target_family = "wasm")]
pub use crate::bindings::sysadmin::module::target_control as targets;

/// Jobs, which are calls that go on by themselves, see `wit/jobs.wit`.
#[cfg(target_family = "wasm")]
pub use crate::bindings::sysadmin::module::jobs;
