//! The `proc_*` tools: they show which processes run, what one of them is, uses and waits for, and they end processes or send
//! them signals.
//!
//! What the kernel tells of processes is read from `/proc`, of all of them at once. Which files a process has open is
//! asked of `find`, since links can't be read as files. Signals are sent by the host.
#![forbid(unsafe_code)]

mod limits;
mod links;
mod sockets;
mod state;
mod tools;

use linux_sysadmin_sdk::processes::replaced_files;
use linux_sysadmin_sdk::{SignalGrant, accounts, listening, prelude::*, processes};

/// The module, with its tools and grants.
pub fn module() -> Module {
    Module::new("processes", env!("CARGO_PKG_VERSION"), "processes", "What runs, and what a process is")
        .license(env!("CARGO_PKG_LICENSE"))
        .grants(looking)
        .grants(signals)
        .tool(
            Tool::new("proc_list", "Processes, most memory first", tools::list::list)
                .argument_alias("unit", "service")
                .argument_alias("program", "name")
                .argument_alias("path", "file"),
        )
        .tool(
            Tool::new(
                "proc_info",
                "One process: state, unit, parents, files, ports, limits",
                tools::info::info,
            )
            .helps("RESOURCE_LOCKED", "See what the process that holds it does: proc_info pid=<pid>"),
        )
        .tool(
            Tool::new(
                "proc_signal",
                "End processes (SIGTERM, then SIGKILL), or send a signal",
                tools::signal::proc_signal,
            )
            .risk(Risk::Moderate),
        )
}

fn looking(module: Module) -> Module {
    module
        .paths(processes::grants())
        .paths(tools::info::grants())
        .commands(links::grants())
        .command(listening::grant())
        .command(listening::unix_grant())
        .command(replaced_files::grant())
        .command(tools::list::UNIT_ID.read("the name under which systemd keeps a unit"))
        .command(accounts::GETENT_PASSWD.read("whether there is an account whose processes are asked for"))
}

fn signals(module: Module) -> Module {
    module
        .signals(SignalGrant::new("end processes, stop them, and let them go on"))
        .command(tools::signal::MAIN_PROCESSES.read("main process of a unit, which is for systemd to end"))
}

linux_sysadmin_sdk::export!(module);
