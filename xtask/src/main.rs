//! `cargo xtask`: everything about this workspace that cargo itself doesn't do.

#![forbid(unsafe_code)]
// This program is meant to print what it does.
#![allow(clippy::print_stdout)]

mod apt;
mod bench;
mod build;
mod cmd;
mod compiler;
mod contract;
mod crates;
mod dist;
mod docs;
mod files;
mod fuzz;
mod hosts;
mod image;
mod install;
mod lint;
mod mirror;
mod new_modules;
mod order;
mod python;
mod run;
mod tally;
mod test;
mod wasm;
mod workspace;

use anyhow::Result;
use build::Profile;
use clap::{Parser, Subcommand};
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

/// Builds, runs, installs and tests linux-sysadmin
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Build the server and its modules (target/release/linux-sysadmin, target/release/modules)
    Build {
        /// Build what the tests use: the server in the dev profile and the tests' own components, under target/debug
        #[arg(long)]
        debug: bool,
    },
    /// Build, show a few calls on this machine, and say how to register the server
    Run,
    /// Build and install the server and its modules
    Install {
        /// The directory of bin/ and lib/ [default: ~/.local]
        #[arg(long, value_name = "DIR")]
        prefix: Option<PathBuf>,
    },
    /// Build what is handed out: a static program with its modules, as a tarball, a .deb and a .rpm (target/dist)
    Dist(dist::Options),
    /// Build and run the tests (as root: on real hosts too), and count them in the last line
    Test(test::Options),
    /// Measure, each figure beside its floor
    Bench {
        /// The parts to measure; all without one
        parts: Vec<bench::Part>,
    },
    /// Measure the tools of this program here, for `bench tools`
    #[command(hide = true)]
    BenchTools { binary: PathBuf, examples: PathBuf },
    /// Record which functions of the program run in everyday calls, so that the linker puts them together
    Order,
    /// Name the functions of a program that run, for `order`
    #[command(hide = true)]
    Trace {
        list: PathBuf,
        program: PathBuf,
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<OsString>,
    },
    /// Print which crate of the host uses which, and check that no modules use each other in a circle
    Crates,
    /// Check formatting and lints
    Lint,
    /// Write the pages that are made from other files, check all links and build the book (target/book), with mdBook, which is
    /// installed where it is missing
    Docs,
    /// Freeze the current version of the contract (wit/X.Y), and keep a component that was built for it
    Freeze,
    /// Fuzz what decides which commands and paths a module may use
    Fuzz {
        /// The number of seconds for which each target is fuzzed
        #[arg(long, value_name = "N", default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..))]
        seconds: u32,
    },
    /// Bring up, enter and take down test hosts
    #[command(subcommand)]
    Hosts(hosts::Hosts),
}

fn main() -> ExitCode {
    let done = match compiler::called_by_cargo().or_else(order::called_by_rustc) {
        Some(error) => Err(error),
        None => run_task(Cli::parse().task),
    };
    done.unwrap_or_else(|error| {
        // There is no backtrace: these errors are about the machine, and say what to do.
        eprintln!("xtask: {error:#}");
        ExitCode::FAILURE
    })
}

fn run_task(task: Task) -> Result<ExitCode> {
    match task {
        Task::Build { debug } => {
            if debug {
                let built = build::with_guests(Profile::Dev)?;
                new_modules::build(Profile::Dev, &built.binary)?;
            } else {
                build::build(Profile::Release)?;
            }
        }
        Task::Run => run::run()?,
        Task::Install { prefix } => install::install(prefix.as_deref())?,
        Task::Dist(options) => dist::dist(&options)?,
        Task::Test(options) => return test::test(&options),
        Task::Bench { parts } => bench::bench(&parts)?,
        Task::BenchTools { binary, examples } => bench::tools_inside(&binary, &examples)?,
        Task::Order => order::record()?,
        Task::Trace { list, program, args } => order::trace(&list, &program, &args)?,
        Task::Crates => crates::crates()?,
        Task::Lint => lint::lint()?,
        Task::Docs => docs::docs()?,
        Task::Freeze => contract::freeze()?,
        Task::Fuzz { seconds } => fuzz::fuzz(seconds)?,
        Task::Hosts(hosts) => hosts::run(hosts)?,
    }
    Ok(ExitCode::SUCCESS)
}
