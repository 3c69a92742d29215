//! MCP clients from the npm registry, each of one version and below the target directory. Tests start the installed server by
//! them, and Claude Code checks the plugin.

use crate::{cmd, files, workspace};
use anyhow::{Result, ensure};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A client's package, with the path of its program below the folder that it is installed into.
struct Client {
    package: &'static str,
    version: &'static str,
    program: &'static str,
    /// A script that puts the program into place, where there is one. Newer versions of npm run no scripts of packages.
    script: Option<&'static str>,
    /// The variable that tells tests where the program is.
    variable: &'static str,
}

const CLAUDE: Client = Client {
    package: "@anthropic-ai/claude-code",
    version: "2.1.332",
    program: "node_modules/.bin/claude",
    script: Some("node_modules/@anthropic-ai/claude-code/install.cjs"),
    variable: "LINUX_SYSADMIN_CLAUDE",
};

const INSPECTOR: Client = Client {
    package: "@modelcontextprotocol/inspector",
    version: "2.12.0",
    program: "node_modules/.bin/mcp-inspector",
    script: None,
    variable: "LINUX_SYSADMIN_INSPECTOR",
};

/// Gives the path of Claude Code, and installs it where it is missing.
pub(super) fn claude() -> Result<PathBuf> {
    CLAUDE.installed()
}

/// Installs all clients. Without the network, or without npm, the tests that need them are skipped.
pub(super) fn install_all() {
    for client in [CLAUDE, INSPECTOR] {
        if let Err(error) = client.installed() {
            eprintln!("xtask: there is no {}: {error:#}", client.package);
        }
    }
}

/// The variables that tell tests where the clients are that are installed.
pub(crate) fn variables() -> Result<Vec<(&'static str, PathBuf)>> {
    let found = [CLAUDE, INSPECTOR].into_iter().map(|client| Ok((client.variable, client.path()?)));
    let found = found.collect::<Result<Vec<_>>>()?;
    Ok(found.into_iter().filter(|(_, program)| program.is_file()).collect())
}

impl Client {
    fn folder(&self) -> Result<PathBuf> {
        let name = format!("{}-{}", self.package.replace(['@', '/'], "."), self.version);
        Ok(workspace::target_dir()?.join("tools/npm").join(name.trim_start_matches('.')))
    }

    fn path(&self) -> Result<PathBuf> {
        Ok(self.folder()?.join(self.program))
    }

    fn installed(&self) -> Result<PathBuf> {
        let (folder, program) = (self.folder()?, self.path()?);
        if !program.is_file() {
            self.install(&folder)?;
        }
        ensure!(program.is_file(), "{} has no {}", self.package, self.program);
        Ok(program)
    }

    fn install(&self, folder: &Path) -> Result<()> {
        files::make_dir(folder)?;
        let mut install = Command::new("npm");
        install.args(["install", "--no-audit", "--no-fund", "--prefix"]).arg(folder);
        cmd::output(install.arg(format!("{}@{}", self.package, self.version)))?;
        if let Some(script) = self.script {
            cmd::output(Command::new("node").arg(folder.join(script)))?;
        }
        Ok(())
    }
}
