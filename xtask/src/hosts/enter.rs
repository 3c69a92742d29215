//! The ways into a host: `exec` goes through its namespaces, which no firewall can close, and `shell` goes over ssh.

use super::state::{self, Host};
use super::{network, processes, ready};
use anyhow::{Context, Result};
use std::ffi::OsStr;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Replaces this process by the command in the host. Stdin, stdout, stderr and the exit code are the command's own.
pub(crate) fn exec(name: &str, argv: &[String]) -> Result<()> {
    let host = Host::load(name)?;
    let pid = ready::init_pid(&host)?;
    processes::enter_payload(name)?;
    let error = command(pid, argv).exec();
    Err(error).context("cannot start nsenter")
}

/// Replaces this process by an ssh session of root.
pub(crate) fn shell(name: &str) -> Result<()> {
    let host = Host::load(name)?;
    let error = network::command_in_lab("ssh").arg("-F").arg(state::ssh_config()).arg(&host.name).exec();
    Err(error).context("cannot start ssh")
}

/// A command as root in all namespaces of the host whose PID 1 is given, with a plain environment.
pub(crate) fn command(pid: u32, argv: &[impl AsRef<OsStr>]) -> Command {
    let mut command = Command::new("nsenter");
    command.args([
        "--target",
        &pid.to_string(),
        "--mount",
        "--uts",
        "--ipc",
        "--net",
        "--pid",
        "--cgroup",
        "--",
    ]);
    command.args(argv).env_clear().envs([
        ("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"),
        ("HOME", "/root"),
        ("USER", "root"),
        ("LOGNAME", "root"),
        ("SHELL", "/bin/bash"),
        ("LANG", "C.UTF-8"),
    ]);
    if let Some(term) = std::env::var_os("TERM") {
        command.env("TERM", term);
    }
    command
}
