//! Has Ansible ask the same hosts: ad hoc, with a fork for each host, and as fast as its settings make it.

use super::lab::Lab;
use crate::{cmd, files, python, workspace};
use anyhow::{Context, Result, bail};
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

/// The package on PyPI that is installed where the PATH has no Ansible and XTASK_ANSIBLE names none.
const PACKAGE: &str = "ansible-core==2.19.14";
/// Arguments of ssh that make a new connection for each call.
pub(super) const ANEW: &str = "-C -o ControlMaster=no";
/// Arguments of ssh that keep connections, as Ansible does by default.
pub(super) const KEPT: &str = "-C -o ControlMaster=auto -o ControlPersist=60s";

pub(super) struct Ansible {
    program: PathBuf,
    inventory: PathBuf,
    forks: String,
}

impl Ansible {
    /// Makes an inventory of these hosts.
    pub(super) fn new(lab: &Lab, names: &[String]) -> Result<Self> {
        let program = program()?;
        let said = cmd::output(Command::new(&program).arg("--version").env("LC_ALL", "C.UTF-8"))?;
        eprintln!("xtask: comparing with {}", said.lines().next().unwrap_or_default());
        let inventory = lab.path().join("inventory");
        files::write(&inventory, names.join("\n") + "\n", 0o644)?;
        Ok(Self { program, inventory, forks: names.len().to_string() })
    }

    /// Asks all hosts with this module and its arguments; gives the time that it took and the number of hosts that answered.
    pub(super) fn ask(
        &self,
        lab: &Lab,
        (module, args): (&str, &str),
        ssh: &str,
    ) -> Result<(Duration, usize)> {
        let mut command = lab.command(&self.program);
        command.args(["all", "--forks", &self.forks, "--inventory"]).arg(&self.inventory);
        command.args(["--module-name", module, "--args", args]);
        command.env("LC_ALL", "C.UTF-8").env("ANSIBLE_SSH_ARGS", ssh);
        // Ansible has neither by default: it sends a module in one piece, and doesn't look for an interpreter first.
        command.env("ANSIBLE_PIPELINING", "True").env("ANSIBLE_PYTHON_INTERPRETER", "/usr/bin/python3");
        let started = Instant::now();
        let out = command.output()?;
        let took = started.elapsed();
        let said = String::from_utf8_lossy(&out.stdout);
        let answered =
            said.lines().filter(|line| line.contains(" | CHANGED |") || line.contains(" | SUCCESS ")).count();
        if answered == 0 {
            bail!("Ansible had no answer: {said}{}", String::from_utf8_lossy(&out.stderr));
        }
        Ok((took, answered))
    }
}

fn program() -> Result<PathBuf> {
    if let Some(named) = std::env::var_os("XTASK_ANSIBLE").map(PathBuf::from) {
        return named.canonicalize().with_context(|| format!("XTASK_ANSIBLE={}", named.display()));
    }
    if let Some(found) = cmd::find_program("ansible") {
        return Ok(found);
    }
    let venv = workspace::target_dir()?.join("ansible");
    python::install(&venv, PACKAGE)?;
    Ok(venv.join("bin/ansible"))
}
