//! A module for the tests: it waits, computes for ever, eats memory, traps, and asks for what it wasn't granted.
#![forbid(unsafe_code)]

use std::time::Duration;

use linux_sysadmin_sdk::prelude::*;
use linux_sysadmin_sdk::{DurationCategory, Privilege};

/// What a tool saw.
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

/// Through `xargs`, so that there is a child with a child of its own.
fn sleep(args: Sleep, cx: &Context) -> Result<Single<Seen>> {
    let mut command = Command::new("xargs").arg("sleep").duration(DurationCategory::Normal);
    command.stdin = Some(args.seconds.into_bytes());
    let output = cx.run(command)?;
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

fn spin(_: NoArgs, _: &Context) -> Result<Single<Seen>> {
    let mut number = 0_u64;
    loop {
        number = std::hint::black_box(number.wrapping_add(1));
    }
}

fn memory(_: NoArgs, _: &Context) -> Result<Single<Seen>> {
    let mut all = Vec::new();
    loop {
        all.push(std::hint::black_box(vec![1_u8; 1 << 20]));
    }
}

fn trap(_: NoArgs, _: &Context) -> Result<Single<Seen>> {
    panic!("on purpose")
}

fn calls(_: NoArgs, cx: &Context) -> Result<Single<Seen>> {
    loop {
        let _ = cx.distro();
    }
}

/// More than one call may hand over.
fn huge(_: NoArgs, cx: &Context) -> Result<Single<Seen>> {
    seen(cx.read(&"x".repeat(20 << 20)).err().map(|problem| problem.code).unwrap_or_default())
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

#[expect(clippy::print_stdout, reason = "to see where it goes")]
fn environment(_: NoArgs, _: &Context) -> Result<Single<Seen>> {
    println!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"from a guest\"}}");
    eprintln!("from a guest");
    let root = std::fs::read_dir("/").map_or_else(|error| error.to_string(), |_| "readable".to_owned());
    seen(format!("{} variables, root: {root}", std::env::vars().count()))
}

fn hostile_text(_: NoArgs, _: &Context) -> Result<Single<Seen>> {
    seen("\u{1b}[2J\u{202e}evil\u{200b}")
}

/// The module.
pub fn module() -> Module {
    Module::new("probe", env!("CARGO_PKG_VERSION"), "probe", "For the tests")
        .command(CommandGrant::read("xargs sleep < stdin", "to wait"))
        .command(CommandGrant::read("echo -- <unit>...", "to be refused whatever is no unit"))
        .path(PathGrant::read("/etc/hostname", "to read"))
        .tool(Tool::new("probe_sleep", "", sleep).duration(DurationCategory::Normal))
        .tool(Tool::new("probe_wait", "", wait).instant())
        .tool(Tool::new("probe_spin", "", spin).instant())
        .tool(Tool::new("probe_memory", "", memory))
        .tool(Tool::new("probe_trap", "", trap))
        .tool(Tool::new("probe_calls", "", calls))
        .tool(Tool::new("probe_huge", "", huge))
        .tool(Tool::new("probe_run", "", run))
        .tool(Tool::new("probe_read", "", read))
        .tool(Tool::new("probe_environment", "", environment))
        .tool(Tool::new("probe_hostile_text", "", hostile_text))
}

linux_sysadmin_sdk::export!(module);
