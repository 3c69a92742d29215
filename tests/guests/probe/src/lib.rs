//! A module for the tests: it waits, runs and reads as it is told. Modules that attack are in `tests/hostile`.
#![forbid(unsafe_code)]

use std::time::Duration;

use linux_sysadmin_sdk::prelude::*;
use linux_sysadmin_sdk::{DurationCategory, Privilege};

/// A tool's answer.
#[derive(Serialize)]
struct Seen {
    text: String,
}

fn seen(text: impl Into<String>) -> Result<Single<Seen>> {
    Ok(Single(Seen { text: text.into() }))
}

#[derive(Deserialize, JsonSchema)]
struct Sleep {
    seconds: String,
}

/// Runs `sleep` through `timeout`, so that there is a child with a child of its own.
fn sleep(args: Sleep, cx: &Context) -> Result<Single<Seen>> {
    let command = Command::new("timeout").args(["100000", "sleep", &args.seconds]);
    let output = cx.run(command.duration(DurationCategory::Normal))?;
    seen(output.exit_code.to_string())
}

#[derive(Deserialize, JsonSchema)]
struct Wait {
    seconds: u64,
}

fn wait(args: Wait, cx: &Context) -> Result<Single<Seen>> {
    for second in 0..args.seconds {
        cx.progress(Some(second as f32 / args.seconds as f32), "waiting");
        cx.sleep(Duration::from_secs(1));
    }
    seen("waited")
}

#[derive(Deserialize, JsonSchema)]
struct Run {
    argv: Vec<String>,
    root: bool,
}

fn run(args: Run, cx: &Context) -> Result<Single<Seen>> {
    let mut argv = args.argv.into_iter();
    let mut command = Command::new(&argv.next().unwrap_or_default()).args(argv);
    if args.root {
        command.privilege = Privilege::Root;
    }
    seen(cx.run(command)?.text())
}

#[derive(Deserialize, JsonSchema)]
struct Read {
    path: String,
}

fn read(args: Read, cx: &Context) -> Result<Single<Seen>> {
    seen(cx.read(&args.path)?)
}

fn hostile_text(_: NoArgs, _: &Context) -> Result<Single<Seen>> {
    seen("\u{1b}[2J\u{202e}evil\u{200b}")
}

/// The module.
pub fn module() -> Module {
    Module::new("probe", env!("CARGO_PKG_VERSION"), "probe", "For the tests")
        .command(CommandGrant::read("timeout 100000 sleep <text>", "to wait"))
        .command(CommandGrant::read("echo -- <unit>...", "to be refused whatever is no unit"))
        .path(PathGrant::read("/etc/hostname", "to read"))
        .tool(Tool::new("probe_sleep", "", sleep).duration(DurationCategory::Normal))
        .tool(Tool::new("probe_wait", "", wait).instant())
        .tool(Tool::new("probe_run", "", run))
        .tool(Tool::new("probe_read", "", read))
        .tool(Tool::new("probe_hostile_text", "", hostile_text))
}

linux_sysadmin_sdk::export!(module);
