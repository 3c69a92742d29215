//! A module for the tests: it looks with root's rights, by every form of grant. It also asks for changes, which only its
//! sudoers fragment shows.
#![forbid(unsafe_code)]

use linux_sysadmin_sdk::prelude::*;
use linux_sysadmin_sdk::{Privilege, Risk};

#[derive(Serialize)]
struct Seen {
    text: String,
}

fn seen(text: impl Into<String>) -> Result<Single<Seen>> {
    Ok(Single(Seen { text: text.into() }))
}

#[derive(Deserialize, JsonSchema)]
struct At {
    path: String,
}

fn as_root(command: Command) -> Command {
    let mut command = command;
    command.privilege = Privilege::Root;
    command
}

/// Reads a file by a command with a path.
fn head(args: At, cx: &Context) -> Result<Single<Seen>> {
    let command = Command::new("head").arg("--lines=5").arg("--").arg(&args.path);
    let output = cx.run(as_root(command))?;
    seen(format!("{} {}", output.exit_code, output.text()))
}

/// Reads a file by the host's own verbs.
fn read(args: At, cx: &Context) -> Result<Single<Seen>> {
    seen(cx.files_as(Privilege::Root).read(&args.path)?)
}

fn list(args: At, cx: &Context) -> Result<Single<Seen>> {
    seen(cx.files_as(Privilege::Root).list_dir(&args.path)?.join(" "))
}

#[derive(Deserialize, JsonSchema)]
struct Of {
    unit: String,
}

fn status(args: Of, cx: &Context) -> Result<Single<Seen>> {
    let command =
        Command::new("systemctl").arg("show").arg("--property=ActiveState").arg("--").arg(&args.unit);
    seen(cx.run(as_root(command))?.text())
}

/// Runs a command for longer than it may.
fn wait(_: NoArgs, cx: &Context) -> Result<Single<Seen>> {
    seen(cx.run(as_root(Command::new("sleep").arg("98765")))?.text())
}

/// Runs a command with root's rights, or without them where they are not to be had.
fn whoami(_: NoArgs, cx: &Context) -> Result<Single<Seen>> {
    let mut command = Command::new("whoami");
    command.privilege = Privilege::RootIfAvailable;
    seen(cx.run(command)?.text())
}

/// The module.
pub fn module() -> Module {
    Module::new("rooted", "1.0.0", "rooted", "Looks as root")
        .serves("init_system", &["systemd"])
        .command(
            CommandGrant::read("head --lines=<int> -- <path:/etc/sudoers.d/*>", "to see rules").as_root(),
        )
        .command(
            CommandGrant::read("systemctl show --property=ActiveState -- <unit>...", "to see units")
                .as_root(),
        )
        .command(CommandGrant::read("sleep <int>", "to wait").as_root())
        .command(CommandGrant::read("whoami", "to see who it is").as_root_if_available())
        .command(CommandGrant::change("systemctl (start|stop|restart) -- <unit>", Risk::Moderate, "services"))
        .command(CommandGrant::change(
            "DEBIAN_FRONTEND=noninteractive apt-get install --yes -- <package>...",
            Risk::Moderate,
            "packages",
        ))
        .command(CommandGrant::change("journalctl --vacuum-size=<size> [--unit=<unit>]", Risk::Low, "logs"))
        .path(PathGrant::read("/etc/sudoers.d/*", "rules of sudo").as_root())
        .path(PathGrant::read("/etc/gshadow", "groups without a password").as_root())
        .tool(Tool::new("rooted_head", "", head))
        .tool(Tool::new("rooted_read", "", read))
        .tool(Tool::new("rooted_list", "", list))
        .tool(Tool::new("rooted_status", "", status))
        .tool(Tool::new("rooted_wait", "", wait))
        .tool(Tool::new("rooted_whoami", "", whoami))
}

linux_sysadmin_sdk::export!(module);
