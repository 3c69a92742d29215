//! The `hosts` subcommands: throw-away systemd machines for the tests.

mod down;
mod enter;
mod network;
mod processes;
mod ready;
mod state;
mod supervise;
mod up;

pub(crate) use down::down;
pub(crate) use network::command_in_lab;
pub(crate) use state::{hosts_json, is_supervised, key, known_hosts};
pub(crate) use up::{install_needs, up};

use anyhow::Result;
use clap::Subcommand;
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub(crate) enum Hosts {
    /// Make hosts and wait until they are ready (needs root); those that run are left alone
    Up {
        /// The image that they are made of: a folder of xtask/images
        #[arg(long, default_value = "debian")]
        image: String,
        /// Folder with linux-sysadmin and modules/, shown to hosts as /opt/linux-sysadmin
        /// [default: the release build, if there is one]
        #[arg(long, value_name = "DIR")]
        dist: Option<PathBuf>,
        /// Their names [default: the image's name and 1]
        names: Vec<String>,
    },
    /// Take hosts down, all of them if none is named
    Down { names: Vec<String> },
    /// Show the hosts there are
    List {
        /// Print JSON, as the tests read it
        #[arg(long)]
        json: bool,
    },
    /// Open a root session over ssh
    Shell { name: String },
    /// Run a command as root without the network; stdin, stdout and the exit code pass through
    Exec {
        name: String,
        #[arg(last = true, required = true, value_name = "COMMAND")]
        argv: Vec<String>,
    },
    /// Reboot a host and wait until it is ready again
    Reboot { name: String },
    /// Wait until hosts are ready, all of them if none is named
    Wait { names: Vec<String> },
    #[command(hide = true)]
    BuildImage { name: String },
    #[command(hide = true)]
    Supervise { name: String },
    #[command(hide = true)]
    Nspawn { name: String },
}

/// The address of a host in the lab's network.
pub(crate) fn address(name: &str) -> Result<std::net::Ipv4Addr> {
    Ok(state::Host::load(name)?.address)
}

/// A command on a host, as root.
pub(crate) fn command(name: &str, argv: &[&str]) -> Result<std::process::Command> {
    Ok(enter::command(ready::init_pid(&state::Host::load(name)?)?, argv))
}

pub(crate) fn run(hosts: Hosts) -> Result<()> {
    match hosts {
        Hosts::Up { image, dist, names } => up(&image, &names, dist.as_deref()),
        Hosts::Down { names } => down(&names),
        Hosts::List { json } => list(json),
        Hosts::Shell { name } => enter::shell(&name),
        Hosts::Exec { name, argv } => enter::exec(&name, &argv),
        Hosts::Reboot { name } => ready::reboot(&state::Host::load(&name)?),
        Hosts::Wait { names } => {
            let names = if names.is_empty() { state::names() } else { names };
            names.iter().try_for_each(|name| ready::wait(&state::Host::load(name)?))
        }
        Hosts::BuildImage { name } => crate::image::build_one(&name),
        Hosts::Supervise { name } => supervise::run(&name),
        Hosts::Nspawn { name } => supervise::become_nspawn(&name),
    }
}

fn list(json: bool) -> Result<()> {
    if json {
        print!("{}", state::listing()?);
        return Ok(());
    }
    let hosts = state::all();
    if hosts.is_empty() {
        println!("no hosts are up; `cargo xtask hosts up` makes one");
    }
    for host in hosts {
        let state = match (host.is_supervised(), host.pid()) {
            (true, Some(pid)) => format!("running, pid {pid}"),
            (true, None) => "booting".to_owned(),
            (false, _) => "off".to_owned(),
        };
        println!("{:<16} {:<10} {:<14} {state}", host.name, host.image, host.address);
    }
    Ok(())
}
