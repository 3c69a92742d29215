//! A module for the tests: a program of the target repeats words, and the module tells every byte that comes back.
#![forbid(unsafe_code)]

use linux_sysadmin_sdk::Privilege;
use linux_sysadmin_sdk::prelude::*;

#[derive(Deserialize, JsonSchema)]
struct Repeat {
    /// The words of each command.
    commands: Vec<Vec<String>>,
    /// Whether the commands run with root's rights.
    #[serde(default)]
    root: bool,
}

#[derive(Serialize)]
struct Repeated {
    /// Each command's stdout in hexadecimal, since words may hold characters that no answer shows.
    stdout: Vec<String>,
    /// The stderr of all commands.
    stderr: String,
}

fn repeat(args: Repeat, cx: &Context) -> Result<Single<Repeated>> {
    let privilege = if args.root { Privilege::Root } else { Privilege::Caller };
    let command = |words| Command::new("printf").arg("%s\\0").args(words).privilege(privilege.clone());
    let commands: Vec<Command> = args.commands.into_iter().map(command).collect();
    let (mut stdout, mut stderr) = (Vec::new(), String::new());
    for output in cx.run_all(commands) {
        let output = output?;
        stdout.push(output.stdout.iter().map(|byte| format!("{byte:02x}")).collect());
        stderr += &String::from_utf8_lossy(&output.stderr);
    }
    Ok(Single(Repeated { stdout, stderr }))
}

#[derive(Deserialize, JsonSchema)]
struct Read {
    path: String,
}

#[derive(Serialize)]
struct Contents {
    text: String,
}

fn read(args: Read, cx: &Context) -> Result<Single<Contents>> {
    Ok(Single(Contents { text: cx.read(&args.path)? }))
}

/// The module.
pub fn module() -> Module {
    // The format is a hole of its own. Otherwise the words might be options.
    let grant = || CommandGrant::read("printf <text> <arg>...", "to have words repeated");
    Module::new("parrot", "1.0.0", "parrot", "Has words repeated")
        .command(grant())
        .command(grant().as_root())
        .path(PathGrant::read("/etc/hostname", "to know where it is"))
        .tool(Tool::new("parrot_repeat", "", repeat))
        .tool(Tool::new("parrot_read", "", read).alias("parrot_cat").argument_alias("file", "path"))
}

linux_sysadmin_sdk::export!(module);
