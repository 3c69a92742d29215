//! A module for the tests: it asks for more than it needs, gives a caller's text to a program as it is, and takes for granted
//! that the program prints something. `modules test` has to find all of that.
#![forbid(unsafe_code)]

use linux_sysadmin_sdk::prelude::*;

#[derive(Deserialize, JsonSchema)]
struct LookArgs {
    /// What to look up
    name: String,
}

#[derive(Serialize)]
struct Found {
    first: String,
}

fn look(args: LookArgs, cx: &Context) -> Result<Single<Found>> {
    let output = cx.run(Command::new("lookup").arg("example.org").arg(args.name))?;
    let text = output.text();
    let lines: Vec<&str> = text.lines().collect();
    // Where nothing was printed, this ends the component.
    Ok(Single(Found { first: lines[0].to_owned() }))
}

/// The module.
pub fn module() -> Module {
    Module::new("careless", "1.0.0", "careless", "Looks things up")
        .command(CommandGrant::read("lookup <host> <arg>...", "to look it up"))
        .command(CommandGrant::read("lookup --never", "for nothing"))
        .tool(Tool::new("careless_look", "Look a name up", look))
}

linux_sysadmin_sdk::export!(module);
