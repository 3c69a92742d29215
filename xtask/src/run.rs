//! Shows on this machine what the server does, by a few calls that only look.

use crate::build::{self, Profile};
use crate::{cmd, workspace};
use anyhow::{Context, Result, bail};
use std::process::Command;

/// A call, a text that says what it shows, and the exit codes that count as an answer.
struct Show {
    heading: &'static str,
    arguments: &'static [&'static str],
    answers: &'static [i32],
}

const SHOWS: [Show; 3] = [
    Show {
        heading: "Who and where we are, and what this session may do",
        arguments: &["sysadmin_session_info"],
        answers: &[0],
    },
    Show { heading: "How the machine is doing", arguments: &["perf_overview"], answers: &[0] },
    Show {
        heading: "Its services (a machine without systemd says so instead)",
        arguments: &["svc_list", "limit=10"],
        answers: &[0, 1],
    },
];

/// Builds, fills the cache of compiled modules, makes the calls, and prints how to register the server.
pub(crate) fn run() -> Result<()> {
    let built = build::build(Profile::Release)?;
    build::warm(&built.binary, None)?;
    let mut failed = Vec::new();
    for show in SHOWS {
        let mut call = Command::new(&built.binary);
        call.arg("call").args(show.arguments);
        println!("\n=== {}\n    $ {} call {}\n", show.heading, workspace::BINARY, show.arguments.join(" "));
        let status = cmd::status(&mut call)?;
        if !status.code().is_some_and(|code| show.answers.contains(&code)) {
            failed.push(format!("`{}` ended with {status}", cmd::describe(&call)));
        }
    }
    let binary = built.binary.canonicalize().context("the binary is gone")?;
    println!("\n=== Use it\n\n{}", workspace::registration(&binary));
    if !failed.is_empty() {
        bail!("{}", failed.join("\n"));
    }
    Ok(())
}
