//! The tools for logs: the journal, and text files in `/var/log` or where a service's profile says.
#![forbid(unsafe_code)]

mod budget;
mod clock;
mod fold;
mod journal;
mod level;
mod line;
mod line_format;
mod mask;
mod pattern;
mod redaction;
mod service_sources;
mod text_logs;
mod time_range;
mod tools;
mod unit_names;

use linux_sysadmin_sdk::{DurationCategory, prelude::*};

use text_logs::{grep, inventory, read};
use tools::{disk_usage, query, search, service_logs, summary};

/// The module, with its tools and grants.
pub fn module() -> Module {
    Module::new("logs", env!("CARGO_PKG_VERSION"), "logs", "The journal and text logs")
        .license(env!("CARGO_PKG_LICENSE"))
        .grants(grants)
        .tool(leveled(
            Tool::new("log_query", "Lines of the journal or of a log file", query::log_query)
                .argument_alias("service", "units"),
        ))
        .tool(
            leveled(Tool::new(
                "log_search",
                "Lines that match, in the journal and log files",
                search::log_search,
            ))
            .duration(DurationCategory::Slow)
            .first(),
        )
        .tool(
            Tool::new(
                "log_summary",
                "Errors and warnings by unit and hour, known faults, what is new, restarts, OOM kills",
                summary::log_summary,
            )
            .duration(DurationCategory::Slow),
        )
        .tool(
            Tool::new("log_disk_usage", "What logs take on disk, and which grow", disk_usage::log_disk_usage)
                .helps("OUT_OF_SPACE", "See what logs take: log_disk_usage"),
        )
        .tool(leveled(
            Tool::new("svc_logs", "A service's latest lines, from all its logs", service_logs::svc_logs)
                .argument_alias("name", "service"),
        ))
}

/// The tools with a priority take it by its other names too.
fn leveled(tool: Tool) -> Tool {
    tool.argument_alias("level", "priority").argument_alias("severity", "priority")
}

fn grants(module: Module) -> Module {
    module
        .command(journal::grant())
        .command(unit_names::grant())
        .command(grep::grant())
        .command(inventory::grant())
        .command(disk_usage::FREE_SPACE.read("how full the filesystem of /var/log is"))
        .command(disk_usage::JOURNAL.read("what the journal takes").as_root_if_available())
        .command(disk_usage::DELETED.read("deleted logs that are still open").as_root_if_available())
        .command(clock::NOW.read("the target's own clock, for `2h ago`"))
        .command(read::XZ.read("rotated logs that xz packed").as_root_if_available())
        .command(read::ZSTD.read("rotated logs that zstd packed").as_root_if_available())
        .command(read::BZIP2.read("rotated logs that bzip2 packed").as_root_if_available())
        .path(PathGrant::read(clock::LOCALTIME, "the target's time zone: most text logs are in local time"))
        .path(PathGrant::read("/usr/share/zoneinfo/**", "where that leads"))
        .path(PathGrant::read("/var/log/**", "text logs").as_root_if_available())
}

linux_sysadmin_sdk::export!(module);
