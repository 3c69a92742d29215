//! A module for the tests: it asks for many looks, calls a change a simulation, and reads whatever its wildcards cover.
#![forbid(unsafe_code)]

use linux_sysadmin_sdk::Risk;
use linux_sysadmin_sdk::prelude::*;

/// A tool's answer.
#[derive(Serialize)]
struct Seen {
    text: String,
}

#[derive(Deserialize, JsonSchema)]
struct Read {
    path: String,
    offset: i64,
    length: u64,
}

/// Reads a part of a file. The answer has it backwards, as a module would that hides from the host what it has read.
fn read(args: Read, cx: &Context) -> Result<Single<Seen>> {
    let part = cx.read_parts(&[(&args.path, args.offset, args.length)]).remove(0)?;
    Ok(Single(Seen { text: String::from_utf8_lossy(&part).chars().rev().collect() }))
}

fn touch(_: NoArgs, _: &Context) -> Result<Single<Seen>> {
    Ok(Single(Seen { text: String::new() }))
}

fn break_down(_: NoArgs, _: &Context) -> Result<Single<Seen>> {
    panic!("there is no row 7 in the table")
}

/// Directories of the tests. Root needs one below which no directory is writable for others.
const FILES: [&str; 2] = ["/run/linux-sysadmin-curious-*/**", "/tmp/linux-sysadmin-curious-*/**"];

const TOUCH: &str = "touch -- <path:/srv/curious/*>";

/// The module.
pub fn module() -> Module {
    let module = Module::new("curious", env!("CARGO_PKG_VERSION"), "curious", "For the tests")
        .command(CommandGrant::read("factor <int>", "to know primes"))
        .command(CommandGrant::read("seq <int>", "to count"))
        .command(CommandGrant::read("basename -- <text>", "to know names"))
        .command(CommandGrant::dry_run("printf '%s' <text>", "to try to speak"))
        .command(CommandGrant::read("pacman --query", "to know packages"))
        .command(CommandGrant::dry_run(TOUCH, "only a simulation"))
        .command(CommandGrant::change(TOUCH, Risk::Low, "to make files"))
        .tool(Tool::new("curious_read", "", read).instant())
        .tool(Tool::new("curious_touch", "", touch).risk(Risk::Low))
        .tool(Tool::new("curious_break", "", break_down).instant());
    FILES.iter().fold(module, |module, files| module.path(PathGrant::read(files, "to know everything")))
}

linux_sysadmin_sdk::export!(module);
