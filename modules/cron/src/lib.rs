//! Cron: expressions, whether one is right, what it means, and when its job runs next; and the jobs of the target,
//! listed, added, changed and removed.
//!
//! Answers are those of Debian's cron and of cronie, daylight saving included: see [`mod@parse`] for the dialect
//! and [`schedule`] for the clock. What is about expressions asks for nothing of the target.
//!
//! Jobs of accounts' own crontabs are changed through `crontab` itself, which has its own syntax check and its own rules
//! about who may (`/etc/cron.allow`). Those of `/etc/crontab` and `/etc/cron.d` are changed in the file. A crontab is
//! replaced as a whole, every line but one kept byte for
//! byte; somebody who edits it in the same second isn't noticed. What Debian's `crontab -l` leaves out or rewrites
//! (three comment lines at the top, which it puts there itself; carriage returns) can't be kept: see `crontab_update.rs`.
#![forbid(unsafe_code)]

mod add;
mod crontab;
mod crontab_command;
mod crontab_place;
mod crontab_update;
mod debian;
pub mod describe;
mod entry;
pub mod expression;
mod field;
mod line;
mod list;
mod modify;
mod next_runs;
pub mod parse;
pub mod problem;
mod programs;
mod remove;
pub mod schedule;
mod system_jobs;
mod validate;
pub mod zone;

use linux_sysadmin_sdk::prelude::*;

use crate::parse::Dialect;

/// The dialect of the target's cron.
fn dialect(cx: &Context) -> Dialect {
    if cx.distro().family == "debian" { Dialect::Debian } else { Dialect::Any }
}

fn invalid(problems: &[problem::Problem]) -> Problem {
    let messages: Vec<String> = problems.iter().map(ToString::to_string).collect();
    let message = format!("not a cron expression: {}", messages.join("; "));
    Problem::validation("INVALID_CRON_EXPRESSION", message)
        .remedy("Correct the expression; cron_validate checks it")
}

/// The module.
pub fn module() -> Module {
    Module::new("cron", env!("CARGO_PKG_VERSION"), "cron", "Cron expressions and cron jobs")
        .license(env!("CARGO_PKG_LICENSE"))
        .grants(grants)
        .tool(Tool::new("cron_list", "Cron jobs of one user or all", list::cron_list))
        .tool(
            Tool::new("cron_add", "Add a crontab entry", add::cron_add)
                .loses_nothing()
                .idempotent()
                .risk(Risk::Moderate),
        )
        .tool(
            Tool::new("cron_modify", "Change the schedule or command of one entry", modify::cron_modify)
                .risk(Risk::Moderate),
        )
        .tool(Tool::new("cron_remove", "Remove one crontab entry", remove::cron_remove).risk(Risk::Moderate))
        .tool(
            Tool::new("cron_validate", "Check and explain a cron expression", validate::cron_validate)
                .instant(),
        )
        .tool(
            Tool::new("cron_next_runs", "Next run times of a cron expression", next_runs::cron_next_runs)
                .instant(),
        )
}

fn grants(module: Module) -> Module {
    module
        .command(crontab_command::LIST_OF.read("jobs of each account").as_root_if_available())
        .command(crontab_command::LIST.read("jobs of the account in use"))
        .command(CommandGrant::change(
            crontab_command::INSTALL_OF,
            Risk::Moderate,
            "to add or remove a line of a crontab",
        ))
        .command(crontab_command::DELETE_OF.change(Risk::Moderate, "to undo that where there was no crontab"))
        .command(
            CommandGrant::change(crontab_command::INSTALL, Risk::Moderate, "the same for the account in use")
                .as_caller(),
        )
        .command(
            crontab_command::DELETE.change(Risk::Moderate, "the same for the account in use").as_caller(),
        )
        .path(PathGrant::read(crontab_command::PASSWD, "accounts that may have crontabs"))
        .path(PathGrant::read(system_jobs::SYSTEM, "the system's jobs").as_root_if_available())
        .path(PathGrant::write(system_jobs::SYSTEM, "to change the system's jobs"))
        .path(PathGrant::write(&format!("{}/*", system_jobs::DIRECTORY), "the same"))
        .path(PathGrant::read(system_jobs::ANACRON, "jobs that anacron makes up for").as_root_if_available())
        .paths(
            crontab_command::spools()
                .map(|spool| PathGrant::read(spool, "which accounts have a crontab").as_root_if_available()),
        )
        .paths(system_jobs::directories().map(|directory| {
            // The host lists names only where a grant covers everything below the directory.
            PathGrant::read(&format!("{directory}/**"), "the system's jobs").as_root_if_available()
        }))
        .paths(programs::grants())
}

linux_sysadmin_sdk::export!(module);
