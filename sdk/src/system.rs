//! What only built-in modules may ask of the host.

/// What the host knows of itself and of the target: a JSON object.
#[cfg(target_family = "wasm")]
pub fn session_snapshot() -> String {
    crate::bindings::sysadmin::module::session::snapshot()
}

/// The same, of facts that are gathered anew.
#[cfg(target_family = "wasm")]
pub fn session_refresh() -> crate::Result<String> {
    crate::bindings::sysadmin::module::session::refresh()
}

/// What sudo must allow each module on the target, and nothing beyond it: module and sudoers fragment.
#[cfg(target_family = "wasm")]
pub fn sudoers_reference() -> Vec<(String, String)> {
    crate::bindings::sysadmin::module::session::sudoers_reference()
}

/// Connections to targets behind SSH, as `wit/target-control.wit` says.
#[cfg(target_family = "wasm")]
pub use crate::bindings::sysadmin::module::target_control as targets;

/// Calls that go on though nobody waits for them, as `wit/jobs.wit` says.
#[cfg(target_family = "wasm")]
pub use crate::bindings::sysadmin::module::jobs;
