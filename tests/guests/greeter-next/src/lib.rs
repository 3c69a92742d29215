//! A module for the tests: the next version of `greeter`. It asks for further commands, and for some no longer.
#![forbid(unsafe_code)]

use linux_sysadmin_sdk::Risk;
use linux_sysadmin_sdk::prelude::*;

#[derive(Serialize)]
struct Greeting {
    text: String,
}

fn greet(_: NoArgs, cx: &Context) -> Result<Single<Greeting>> {
    Ok(Single(Greeting { text: format!("good day, {}", cx.read("/etc/hostname")?.trim()) }))
}

fn shout(_: NoArgs, cx: &Context) -> Result<Single<Greeting>> {
    Ok(Single(Greeting { text: cx.run(Command::new("printf").arg("%s").arg("HELLO"))?.text().into_owned() }))
}

/// The module.
pub fn module() -> Module {
    Module::new("greeter", "2.0.0", "greeter", "Says hello, louder")
        .license("MIT")
        .command(CommandGrant::read("printf '%s' <text>", "to shout"))
        .command(CommandGrant::change(
            "systemctl restart -- <unit>",
            Risk::Moderate,
            "harmless\n\nREVIEWED: really",
        ))
        .path(PathGrant::read("/etc/hostname", "to know whom to greet"))
        .tool(Tool::new("greet", "Says hello", greet))
        .tool(Tool::new("greet_shout", "Shouts", shout).risk(Risk::Low))
}

linux_sysadmin_sdk::export!(module);
