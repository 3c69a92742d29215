//! A module for the tests: with any account's rights it runs a program of the test, which has children and ignores the signal
//! to end.
#![forbid(unsafe_code)]

use linux_sysadmin_sdk::Privilege;
use linux_sysadmin_sdk::prelude::*;

#[derive(Deserialize, JsonSchema)]
struct Run {
    /// The program's behaviour.
    kind: String,
    /// A number by which the test finds the process.
    seconds: u32,
    /// An account instead of root.
    account: Option<String>,
}

#[derive(Serialize)]
struct Ended {
    exit_code: i32,
    stdout: String,
}

fn command(args: &Run) -> Command {
    let mut command = Command::new("lingering").arg(&args.kind).arg(args.seconds.to_string());
    command.privilege = args.account.clone().map_or(Privilege::Root, Privilege::User);
    command
}

fn run(args: Run, cx: &Context) -> Result<Single<Ended>> {
    let output = cx.run(command(&args))?;
    Ok(Single(Ended { exit_code: output.exit_code, stdout: output.text().into_owned() }))
}

/// The module.
pub fn module() -> Module {
    let grant = || {
        CommandGrant::read(
            "lingering (stubborn|scattered|alone|leaving|failing|killed) <int>",
            "to see it end",
        )
    };
    Module::new("lingering", "1.0.0", "lingering", "Runs what won't end")
        .command(grant().as_root())
        .command(grant().as_user("nobody"))
        .tool(Tool::new("lingering_run", "", run))
}

linux_sysadmin_sdk::export!(module);
