//! The `sec_*` tools: they find what is weak on a machine, and harden its ways in.
//!
//! Each check gives findings of one shape, see [`mod@finding`]. A check knows what a fresh installation of a
//! distribution looks like, and says nothing about that.
#![forbid(unsafe_code)]

mod audit;
mod cert_list;
mod check_listening;
mod check_suid;
mod check_updates;
mod check_users;
mod compliance;
mod fail2ban;
mod finding;
mod mac;
mod ssh;

use linux_sysadmin_sdk::prelude::*;

/// Each adds one tool, with the grants that it needs.
const TOOLS: &[fn(Module) -> Module] = &[
    audit::tool,
    cert_list::tool,
    check_listening::tool,
    check_suid::tool,
    check_updates::tool,
    check_users::tool,
    compliance::tool,
    fail2ban::configure,
    fail2ban::status,
    mac::tool,
    ssh::check,
    ssh::harden,
];

/// The module, with its tools and grants.
pub fn module() -> Module {
    let module = Module::new(
        "security",
        env!("CARGO_PKG_VERSION"),
        "security",
        "Weaknesses, and hardening against them",
    )
    .license(env!("CARGO_PKG_LICENSE"));
    TOOLS.iter().fold(module, |module, add| add(module))
}

linux_sysadmin_sdk::export!(module);
