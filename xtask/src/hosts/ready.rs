//! Waits until a host is ready: sshd lets us in, systemd says that the host is `running`, and knows what was mounted until then.

use super::state::{self, Host};
use super::{network, processes};
use crate::cmd;
use anyhow::{Result, bail};
use std::fs;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(90);
/// Asks for the state of the host, for the number of mounts that services have made for their credentials, and for those of
/// them that systemd knows. systemd reads the list of mounts a few times in a second at most, so that it may learn of the last ones
/// of a boot a second after its end.
const STATE: &str = "systemctl is-system-running --wait; grep -c ' /run/credentials/' /proc/self/mountinfo; \
                     systemctl list-units --plain --no-legend --type=mount | grep -c '^run-credentials-'";

/// Waits for a host that boots.
pub(crate) fn wait(host: &Host) -> Result<()> {
    let deadline = Instant::now() + PATIENCE;
    let begun = Instant::now();
    loop {
        // Before sshd is up, a refusal comes at once. `timeout` ends the wait for a host that hangs.
        let said = ssh(host, &[STATE]);
        let mut lines = said.lines();
        let state = lines.next().unwrap_or_default();
        let knows_mounts = lines.next().zip(lines.next()).is_some_and(|(mounted, known)| mounted == known);
        match state {
            "running" if knows_mounts => return Ok(()),
            "degraded" => {
                let failed = ssh(host, &["systemctl", "--failed", "--plain", "--no-legend"]);
                bail!("`{}` is up, but units failed:\n{failed}", host.name);
            }
            _ => {}
        }
        // A supervisor needs a moment to take its lock.
        if begun.elapsed() > Duration::from_secs(2) && !host.is_supervised() {
            bail!(
                "`{}` does not run:\n{}{}",
                host.name,
                log(host, "supervisor.log"),
                log(host, "console.log")
            );
        }
        if Instant::now() > deadline {
            bail!(
                "`{}` isn't ready after {} s (systemd said `{}`); `cargo xtask hosts exec {} -- systemctl list-jobs` looks inside\n{}",
                host.name,
                PATIENCE.as_secs(),
                said.lines().collect::<Vec<_>>().join(", "),
                host.name,
                log(host, "console.log")
            );
        }
        sleep(Duration::from_millis(100));
    }
}

/// Reboots a host from within and waits until it is ready again.
pub(crate) fn reboot(host: &Host) -> Result<()> {
    let Some(before) = host.pid() else { bail!("`{}` isn't running", host.name) };
    cmd::output(&mut super::enter::command(before, &["systemctl", "reboot"]))?;
    let deadline = Instant::now() + PATIENCE;
    while host.pid().is_none_or(|pid| pid == before) {
        if Instant::now() > deadline || !host.is_supervised() {
            bail!("`{}` didn't come back from its reboot:\n{}", host.name, log(host, "console.log"));
        }
        sleep(Duration::from_millis(50));
    }
    wait(host)
}

/// The host's PID 1. Where the host is between two boots, this waits for a moment.
pub(crate) fn init_pid(host: &Host) -> Result<u32> {
    let deadline = Instant::now() + Duration::from_secs(15);
    loop {
        if let Some(pid) = host.pid().filter(|pid| processes::is_init(*pid)) {
            return Ok(pid);
        }
        if !host.is_supervised() {
            bail!("`{}` is switched off; `cargo xtask hosts up {}` makes a new one", host.name, host.name);
        }
        if Instant::now() > deadline {
            bail!("`{}` doesn't boot:\n{}", host.name, log(host, "console.log"));
        }
        sleep(Duration::from_millis(50));
    }
}

/// The output of a command over ssh, whatever its exit code.
fn ssh(host: &Host, argv: &[&str]) -> String {
    let config = state::ssh_config();
    let mut command: Command = network::command_in_lab("timeout");
    command.args(["60", "ssh", "-F"]).arg(config).args(["-o", "BatchMode=yes", "-o", "ConnectTimeout=2"]);
    let out = command.arg(&host.name).args(argv).output();
    out.map(|out| String::from_utf8_lossy(&out.stdout).into_owned()).unwrap_or_default()
}

fn log(host: &Host, file: &str) -> String {
    let text = fs::read(host.file(file)).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(20)..].iter().map(|line| format!("    {line}\n")).collect()
}
