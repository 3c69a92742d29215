//! A module for the tests: one that runs a command, reads a file, asks for facts and hands over a plan. A component of it is kept of
//! each frozen version of the contract, in `tests/data/contract`, and this is the one of the current version.
#![forbid(unsafe_code)]

use linux_sysadmin_sdk::prelude::*;

const UNAME: CommandLine = CommandLine::new("uname -s");
const SYSTEM: &str = "/proc/sys/kernel/ostype";
const TOUCH: CommandLine = CommandLine::new("touch -- /run/linux-sysadmin-kept");

#[derive(Serialize)]
struct Told {
    told: String,
}

#[derive(Serialize)]
struct Made {
    dry_run: bool,
}

fn told(what: &str) -> Result<Single<Told>> {
    Ok(Single(Told { told: what.trim().to_owned() }))
}

fn runs(_: NoArgs, cx: &Context) -> Result<Single<Told>> {
    told(&cx.run(UNAME.command())?.success("uname")?.text())
}

fn reads(_: NoArgs, cx: &Context) -> Result<Single<Told>> {
    told(&cx.read(SYSTEM)?)
}

fn facts(_: NoArgs, cx: &Context) -> Result<Single<Told>> {
    told(&cx.distro().family)
}

/// The answer says whether it was a dry run.
fn changes(_: NoArgs, cx: &Context) -> Result<Single<Made>> {
    let applied = cx.apply(Change::new("Make a file").step(Step::run(TOUCH.command())))?;
    Ok(Single(Made { dry_run: applied.dry_run }))
}

/// The module.
pub fn module() -> Module {
    Module::new("kept", "0.1.0", "kept", "A module that was built for one version of the contract")
        .license("Apache-2.0")
        .command(UNAME.read("to tell the system"))
        .path(PathGrant::read(SYSTEM, "to tell the system"))
        .command(TOUCH.change(Risk::Low, "to make a file there").as_caller())
        .tool(Tool::new("kept_runs", "Runs uname", runs))
        .tool(Tool::new("kept_reads", "Reads the name of the system", reads))
        .tool(Tool::new("kept_facts", "Tells the family", facts))
        .tool(Tool::new("kept_changes", "Makes a file", changes).risk(Risk::Low))
}

linux_sysadmin_sdk::export!(module);
