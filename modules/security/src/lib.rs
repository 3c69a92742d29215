//! The `sec_*` tools: they find what is weak on a machine, and harden its ways in.
//!
//! Each check gives findings of one shape, see [`mod@finding`]. A check knows what a fresh installation of a distribution
//! looks like, and says nothing about that.
#![forbid(unsafe_code)]

mod fail2ban;
mod finding;
mod ssh;

use linux_sysadmin_sdk::prelude::*;

/// Each adds one tool, with the grants that it needs.
const TOOLS: [fn(Module) -> Module; 4] = [ssh::check, ssh::harden, fail2ban::status, fail2ban::configure];

/// The module, with its tools and grants.
pub fn module() -> Module {
    let module = Module::new(
        "security",
        env!("CARGO_PKG_VERSION"),
        "security",
        "Weaknesses, and hardening against them",
    )
    .license(env!("CARGO_PKG_LICENSE"));
    TOOLS.into_iter().fold(module, |module, add| add(module))
}

linux_sysadmin_sdk::export!(module);
