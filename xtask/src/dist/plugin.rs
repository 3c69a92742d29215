//! Has Claude Code check the plugin: `claude plugin validate`.

use super::stage::PLUGIN;
use crate::{cmd, files, workspace};
use anyhow::{Result, ensure};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The package of Claude Code on the npm registry, which is installed below the target directory where there is none.
const CLAUDE: &str = "@anthropic-ai/claude-code@2.1.332";

/// Checks the plugin, where Claude Code is there or can be installed. It gets a home of its own, and reads nobody's settings.
pub(super) fn validate() -> Result<()> {
    let tools = workspace::target_dir()?.join("tools/claude");
    let claude = match claude(&tools) {
        Ok(claude) => claude,
        Err(error) => {
            eprintln!("xtask: the plugin is not checked, since there is no Claude Code: {error:#}");
            return Ok(());
        }
    };
    let home = tools.join("home");
    files::make_dir(&home)?;
    let mut validate = Command::new(claude);
    validate.env("HOME", home).args(["plugin", "validate"]).arg(workspace::root().join(PLUGIN));
    let said = cmd::output(&mut validate)?;
    ensure!(said.contains("Validation passed"), "`{}` says: {said}", cmd::describe(&validate));
    Ok(())
}

fn claude(tools: &Path) -> Result<PathBuf> {
    if let Some(program) = cmd::find_program("claude") {
        return Ok(program);
    }
    let program = tools.join("node_modules/.bin/claude");
    let works = || cmd::succeeds(Command::new(&program).arg("--version"));
    if !works() {
        files::make_dir(tools)?;
        let mut install = Command::new("npm");
        install.args(["install", "--no-audit", "--no-fund", "--prefix"]).arg(tools).arg(CLAUDE);
        cmd::output(&mut install)?;
        // Newer versions of npm run no scripts of packages, and this one puts the program into place.
        let script = tools.join("node_modules/@anthropic-ai/claude-code/install.cjs");
        cmd::output(Command::new("node").arg(script))?;
    }
    ensure!(works(), "{} doesn't start", program.display());
    Ok(program)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;
    use std::fs;

    fn json(file: &str) -> Value {
        let path = workspace::root().join(PLUGIN).join(file);
        serde_json::from_str(&fs::read_to_string(path).expect("the file")).expect("JSON")
    }

    #[test]
    fn the_plugin_has_the_programs_version_and_registers_the_server_under_its_name() {
        let manifest = json(".claude-plugin/plugin.json");
        assert_eq!(manifest["name"], workspace::BINARY);
        assert_eq!(manifest["version"], env!("CARGO_PKG_VERSION"));
        let servers = json(".mcp.json");
        let server = &servers["mcpServers"][workspace::SERVER];
        assert_eq!((&server["command"], &server["args"][0]), (&workspace::BINARY.into(), &"serve".into()));
    }

    #[test]
    fn a_skill_has_the_name_of_its_folder() {
        let folder = workspace::root().join(PLUGIN).join("skills");
        for entry in fs::read_dir(folder).expect("the skills") {
            let path = entry.expect("an entry").path();
            let text = fs::read_to_string(path.join("SKILL.md")).expect("a skill");
            let name = path.file_name().expect("a name").to_string_lossy().into_owned();
            assert!(text.starts_with(&format!("---\nname: {name}\ndescription: ")), "{name}");
        }
    }
}
