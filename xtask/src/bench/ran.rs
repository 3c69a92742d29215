//! Names the functions of the program that run in everyday calls: each tool that only looks is called on this machine, and then
//! on a host with systemd and a package manager behind SSH.

use super::lab::{self, Hosts, Lab};
use super::{Server, examples, say};
use crate::build::{self, Built};
use crate::cmd;
use anyhow::{Context, Result};
use std::fs;
use std::path::Path;
use std::process::Command;

const HOST: &str = "bench1";
/// The first calls of a tool load its module, and later ones use what is there.
const ROUNDS: usize = 3;

/// The symbols of the functions, in the order of their first run.
pub(crate) fn functions_that_run(built: &Built) -> Result<Vec<String>> {
    lab::watch_for_signals()?;
    let folder = tempfile::tempdir()?;
    let ran = folder.path().join("ran");
    let tracer = std::env::current_exe().context("this program has no path")?;
    // What compiles modules isn't to be among the functions.
    build::warm(&built.binary, None)?;
    say("calls on this machine");
    let mut here = Command::new(&tracer);
    here.arg("trace").args([&ran, &built.binary]).arg("serve");
    play(&mut here)?;

    let names = [HOST.to_owned()];
    let host = Hosts::up("debian", &names, built)?;
    let _host = host.context("calls over SSH need a test host, and this machine can have none")?;
    let lab = Lab::new(&names)?;
    let mut tools = lab.command(&built.binary);
    cmd::output(tools.args(["tools", "--json"]))?;
    say("calls over SSH");
    let mut there = lab.command(&tracer);
    there.arg("trace").args([&ran, &built.binary]).args(["serve", "--host", HOST]);
    play(&mut there)?;
    lines(&ran)
}

fn play(server: &mut Command) -> Result<()> {
    let mut server = Server::start(server)?;
    let tools = examples::looking(&mut server, examples::of_modules()?)?;
    for tool in (1..ROUNDS).flat_map(|_| &tools) {
        server.request("tools/call", tool.call())?;
    }
    Ok(())
}

fn lines(path: &Path) -> Result<Vec<String>> {
    let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(text.lines().map(str::to_owned).collect())
}
