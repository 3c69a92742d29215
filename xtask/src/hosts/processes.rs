//! Finds a host's processes from outside, by its PID 1 and its control groups, and kills all of them.
//!
//! Each host has a control group of its own directly below the root. Otherwise hosts that one parent starts would share a
//! group, and systemd in each of them would see the other's processes and fail to kill them.

use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

const CGROUP: &str = "/sys/fs/cgroup";
const PREFIX: &str = "linux-sysadmin-host-";

/// The group of a host in every hierarchy that systemd uses. There is one on a machine with cgroup v2 only, and two where
/// v1 and v2 are side by side. The group of v2 comes first.
fn groups(name: &str) -> Vec<PathBuf> {
    hierarchies().iter().map(|root| root.join(format!("{PREFIX}{name}"))).collect()
}

fn hierarchies() -> Vec<PathBuf> {
    let root = Path::new(CGROUP);
    if root.join("cgroup.controllers").exists() {
        return vec![root.to_owned()];
    }
    ["unified", "systemd"]
        .map(|dir| root.join(dir))
        .into_iter()
        .filter(|dir| dir.join("cgroup.procs").exists())
        .collect()
}

/// Moves this process into the host's group, and makes the group where it is missing.
pub(crate) fn enter_group(name: &str) -> Result<()> {
    let groups = groups(name);
    if groups.is_empty() {
        bail!(
            "{CGROUP} has neither cgroup v2 nor a systemd hierarchy mounted; mount -t cgroup2 cgroup2 {CGROUP}"
        );
    }
    for group in groups {
        move_into(&group)?;
    }
    Ok(())
}

/// Moves this process beside the host's services, where the host's systemd may see it.
pub(crate) fn enter_payload(name: &str) -> Result<()> {
    // nspawn puts the host into `payload`, and only groups without groups below them may hold processes.
    match groups(name).first().map(|group| group.join("payload")) {
        Some(payload) if payload.is_dir() => move_into(&payload.join("lab-exec.scope")),
        _ => Ok(()),
    }
}

fn move_into(group: &Path) -> Result<()> {
    fs::create_dir_all(group)
        .and_then(|()| fs::write(group.join("cgroup.procs"), "0"))
        .with_context(|| format!("cannot enter the control group {}", group.display()))
}

/// Kills every process in the host's groups and waits until all are gone. A PID 1 that hangs cannot prevent this. SIGTERM to
/// nspawn may be ignored for ever, and SIGKILL to nspawn would leave its PID 1 behind.
pub(crate) fn kill_all(name: &str) -> Result<()> {
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        let pids: Vec<i32> = groups(name).iter().flat_map(|group| members(group)).collect();
        if pids.is_empty() {
            return Ok(());
        }
        if Instant::now() > deadline {
            bail!("processes of `{name}` survive SIGKILL: {pids:?}");
        }
        for pid in pids {
            if let Some(pid) = rustix::process::Pid::from_raw(pid) {
                rustix::process::kill_process(pid, rustix::process::Signal::KILL).ok();
            }
        }
        sleep(Duration::from_millis(20));
    }
}

/// Removes the host's empty groups.
pub(crate) fn remove_groups(name: &str) {
    for group in groups(name) {
        remove_group(&group);
    }
}

/// The names of all hosts that have groups, also of hosts that crashed runs have left.
pub(crate) fn hosts_with_groups() -> Vec<String> {
    let entries = hierarchies().into_iter().filter_map(|root| fs::read_dir(root).ok()).flatten();
    let mut names: Vec<_> = entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.strip_prefix(PREFIX).map(str::to_owned))
        .collect();
    names.sort();
    names.dedup();
    names
}

fn remove_group(group: &Path) {
    for child in children(group) {
        remove_group(&child);
    }
    fs::remove_dir(group).ok();
}

fn members(group: &Path) -> Vec<i32> {
    let text = fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
    let own = text.lines().filter_map(|line| line.parse().ok()).filter(|pid| *pid != 0);
    own.chain(children(group).iter().flat_map(|child| members(child))).collect()
}

fn children(group: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(group) else { return Vec::new() };
    entries
        .flatten()
        .filter(|entry| entry.file_type().is_ok_and(|t| t.is_dir()))
        .map(|entry| entry.path())
        .collect()
}

/// The host's PID 1, once it is systemd. Before that, the host's mounts aren't in place.
pub(crate) fn init_of(nspawn: u32) -> Option<u32> {
    let entries = fs::read_dir("/proc").ok()?;
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .find(|pid| is_init(*pid) && parent(*pid) == Some(nspawn))
}

/// Whether the process is the PID 1 of a namespace below ours and runs systemd.
pub(crate) fn is_init(pid: u32) -> bool {
    let Ok(status) = fs::read_to_string(format!("/proc/{pid}/status")) else { return false };
    let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    let nested = field("NSpid:").map(|pids| pids.split_whitespace().collect::<Vec<_>>()).unwrap_or_default();
    field("Name:") == Some("systemd") && nested.len() > 1 && nested.last() == Some(&"1")
}

fn parent(pid: u32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim().parse().ok()
}
