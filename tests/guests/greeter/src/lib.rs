//! A module for the tests: a harmless one of a third party. `greeter-next` is its next version.
#![forbid(unsafe_code)]

use linux_sysadmin_sdk::prelude::*;

#[derive(Serialize)]
struct Greeting {
    text: String,
}

fn greet(_: NoArgs, cx: &Context) -> Result<Single<Greeting>> {
    Ok(Single(Greeting { text: format!("hello, {}", cx.read("/etc/hostname")?.trim()) }))
}

fn users(_: NoArgs, cx: &Context) -> Result<Single<Greeting>> {
    Ok(Single(Greeting { text: cx.run(Command::new("uptime"))?.text().into_owned() }))
}

/// The module.
pub fn module() -> Module {
    Module::new("greeter", "1.0.0", "greeter", "Says hello")
        .license("MIT")
        .command(CommandGrant::read("uptime", "to see who is there"))
        .path(PathGrant::read("/etc/hostname", "to know whom to greet"))
        // The host never shows this step, since it is about an error of other modules.
        .tool(Tool::new("greet", "Says hello", greet).helps("FILE_NOT_FOUND", "Say hello instead: greet"))
        .tool(Tool::new("greet_users", "Says who is there", users))
}

linux_sysadmin_sdk::export!(module);
