//! The module {{name}}: a tool that looks by a command and a file, and one that changes something by a plan. Put your own
//! tools in their place.
#![forbid(unsafe_code)]

use linux_sysadmin_sdk::prelude::*;

/// A command line is written once, and used twice: for the grant, and for the command that it allows.
const KERNEL: CommandLine = CommandLine::new("uname --kernel-release");
const RESTART: CommandLine = CommandLine::new("systemctl restart -- <unit>");

const UPTIME: &str = "/proc/uptime";

/// The module: what it may do, each with the reason that the operator reads, and its tools.
pub fn module() -> Module {
    Module::new("{{name}}", env!("CARGO_PKG_VERSION"), "{{name}}", env!("CARGO_PKG_DESCRIPTION"))
        .license(env!("CARGO_PKG_LICENSE"))
        .command(KERNEL.read("which kernel runs"))
        .path(PathGrant::read(UPTIME, "for how long it has run"))
        .command(RESTART.change(Risk::Moderate, "to restart the unit that the caller names"))
        .tool(Tool::new("{{identifier}}_kernel", "The running kernel", kernel).instant())
        .tool(Tool::new("{{identifier}}_restart", "Restart a unit", restart).risk(Risk::Moderate))
}

linux_sysadmin_sdk::export!(module);

#[derive(Serialize)]
struct Kernel {
    release: String,
    up_seconds: u64,
}

fn kernel(_: NoArgs, cx: &Context) -> Result<Single<Kernel>> {
    let said = cx.run(KERNEL.command())?.success("uname")?;
    let uptime = cx.read(UPTIME)?;
    let whole = uptime.split('.').next().and_then(|seconds| seconds.parse().ok());
    Ok(Single(Kernel {
        release: said.text().trim().to_owned(),
        up_seconds: whole.ok_or_else(|| Problem::unexpected(UPTIME, &uptime))?,
    }))
}

#[derive(Deserialize, JsonSchema)]
struct RestartArgs {
    /// The unit's name
    service: String,
}

#[derive(Serialize)]
struct Restarted {
    /// False where it was a dry run.
    restarted: bool,
}

fn restart(args: RestartArgs, cx: &Context) -> Result<Single<Restarted>> {
    let step = Step::run(RESTART.with([&args.service]).as_root()).uninterruptible();
    let change = Change::new(format!("Restart {}", args.service)).step(step).affects(args.service);
    let applied = cx.apply(change)?;
    Ok(Single(Restarted { restarted: !applied.dry_run }))
}
