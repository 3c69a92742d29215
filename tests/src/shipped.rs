//! The modules that ship, as `linux-sysadmin modules list` shows them.

use std::sync::LazyLock;

use host_capability::{Effect, Pattern, Requests, STAGING};
use serde::Deserialize;

use crate::{Home, modules};

/// A module that ships.
#[derive(Deserialize)]
pub struct Shipped {
    /// The module's name.
    pub name: String,
    /// The names of its tools.
    pub tools: Vec<String>,
    /// The commands and files that it is granted.
    pub granted: Requests,
}

/// All modules that ship.
pub fn shipped() -> &'static [Shipped] {
    static SHIPPED: LazyLock<Vec<Shipped>> = LazyLock::new(|| {
        let output = Home::new().run(&modules(), &["modules", "list", "--json"]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).expect("a list of modules")
    });
    &SHIPPED
}

/// Whether a command line, as the record has it, is one that a module is granted to look by.
pub(crate) fn looks(line: &str) -> bool {
    static LOOKS: LazyLock<Vec<Pattern>> = LazyLock::new(|| {
        let granted = shipped().iter().flat_map(|module| &module.granted.commands);
        let looking = granted.filter(|request| request.effect != Effect::Change);
        looking.map(|request| Pattern::parse(&request.pattern).expect("a pattern")).collect()
    });
    let Ok(words) = shell_words::split(line) else { return false };
    let variables = words.iter().map_while(|word| word.split_once('='));
    let variables: Vec<_> = variables.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    let Some((program, args)) = words[variables.len()..].split_first() else { return false };
    let args: Vec<_> = args.iter().map(|arg| final_path(arg)).collect();
    LOOKS.iter().any(|pattern| pattern.allows(program, &args, &variables, false).is_some())
}

/// The path that a new file will have, for a command that checks the file in the directory where the host makes it.
fn final_path(arg: &str) -> String {
    let names: Vec<_> = arg.split('/').filter(|name| !name.starts_with(STAGING)).collect();
    names.join("/")
}
