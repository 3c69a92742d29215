//! Has Claude Code check the plugin: `claude plugin validate`.

use super::clients;
use super::stage::PLUGIN;
use crate::{cmd, workspace};
use anyhow::{Result, ensure};
use std::process::Command;

/// Checks the plugin, where Claude Code is there or can be installed. It gets a home of its own, and reads nobody's settings.
pub(super) fn validate() -> Result<()> {
    let claude = match clients::claude() {
        Ok(claude) => claude,
        Err(error) => {
            eprintln!("xtask: the plugin is not checked, since there is no Claude Code: {error:#}");
            return Ok(());
        }
    };
    let home = tempfile::tempdir()?;
    let mut validate = Command::new(claude);
    validate.env("HOME", home.path()).args(["plugin", "validate"]).arg(workspace::root().join(PLUGIN));
    let said = cmd::output(&mut validate)?;
    ensure!(said.contains("Validation passed"), "`{}` says: {said}", cmd::describe(&validate));
    Ok(())
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
