//! Logs: the journal, and text files in `/var/log` or where a service's profile says.
#![forbid(unsafe_code)]

mod ask;
mod budget;
mod files;
mod fold;
mod form;
mod inventory;
mod journal;
mod line;
mod mask;
mod moment;
mod pattern;
mod pieces;
mod query;
mod search;
mod service;
mod summary;
mod tail;
mod unit;
mod usage;

use linux_sysadmin_sdk::{DurationCategory, prelude::*};

/// The module.
pub fn module() -> Module {
    Module::new("logs", env!("CARGO_PKG_VERSION"), "logs", "The journal and text logs")
        .license(env!("CARGO_PKG_LICENSE"))
        .command(journal::grant())
        .command(unit::grant())
        .command(ask::grant())
        .command(inventory::grant())
        .command(usage::ROOM.read("how full the filesystem of /var/log is"))
        .command(usage::JOURNAL.read("what the journal takes").as_root_if_available())
        .command(usage::DELETED.read("deleted logs that are still open").as_root_if_available())
        .command(moment::NOW.read("the target's own clock, for `2h ago`"))
        .command(files::XZ.read("rotated logs that xz packed").as_root_if_available())
        .command(files::ZSTD.read("rotated logs that zstd packed").as_root_if_available())
        .command(files::BZIP2.read("rotated logs that bzip2 packed").as_root_if_available())
        .path(PathGrant::read(moment::LOCALTIME, "the target's time zone: most text logs are in local time"))
        .path(PathGrant::read("/usr/share/zoneinfo/**", "where that leads"))
        .path(PathGrant::read("/var/log/**", "text logs").as_root_if_available())
        .tool(Tool::new("log_query", "Lines of the journal or of a log file", query::log_query))
        .tool(
            Tool::new("log_search", "Lines that match, in the journal and log files", search::log_search)
                .duration(DurationCategory::Slow),
        )
        .tool(
            Tool::new(
                "log_summary",
                "Errors and warnings by unit and hour, known faults, what is new, restarts, OOM kills",
                summary::log_summary,
            )
            .duration(DurationCategory::Slow),
        )
        .tool(Tool::new("log_disk_usage", "What logs take on disk, and which grow", usage::log_disk_usage))
        .tool(Tool::new("svc_logs", "What a service wrote lately, from all its logs", service::svc_logs))
}

linux_sysadmin_sdk::export!(module);
