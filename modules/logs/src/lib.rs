//! Logs: the journal, and text files in `/var/log` or where a service's profile says.
#![forbid(unsafe_code)]

mod budget;
mod files;
mod fold;
mod journal;
mod line;
mod mask;
mod moment;
mod pieces;
mod query;

use linux_sysadmin_sdk::prelude::*;

/// The module.
pub fn module() -> Module {
    Module::new("logs", env!("CARGO_PKG_VERSION"), "logs", "The journal and text logs")
        .license(env!("CARGO_PKG_LICENSE"))
        .command(journal::grant())
        .command(moment::NOW.read("the target's own clock, for `2h ago`"))
        .path(PathGrant::read(moment::LOCALTIME, "the target's time zone: most text logs are in local time"))
        .path(PathGrant::read("/usr/share/zoneinfo/**", "where that leads"))
        .path(PathGrant::read("/var/log/**", "text logs").as_root_if_available())
        .tool(Tool::new(
            "log_query",
            "Lines of the journal or a log file, in order of time",
            query::log_query,
        ))
}

linux_sysadmin_sdk::export!(module);
