//! A host's processes as seen from outside: its PID 1, its control groups, and how all of them are killed.
//!
//! Each host has a control group of its own directly below the root. Without one, hosts started by the same
//! parent share a group, and systemd in each of them sees and fails to kill the other's processes.

use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

const CGROUP: &str = "/sys/fs/cgroup";
const PREFIX: &str = "linux-sysadmin-host-";

/// The group of one host in every hierarchy that systemd uses: one on a machine with cgroup v2 only, two
/// where v1 and v2 are side by side. The first is the v2 one.
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

/// Moves this very process into the host's group, which is made if need be.
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

/// Moves this very process beside the host's services, as a process that the host's systemd may see.
pub(crate) fn enter_payload(name: &str) -> Result<()> {
    // nspawn puts the host into `payload`; only leaves may hold processes.
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

/// Kills everything in the host's groups and waits until it is gone. A wedged PID 1 cannot evade this,
/// while SIGTERM to nspawn can be ignored for ever, and SIGKILL to nspawn would orphan its PID 1.
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

/// The names of all hosts that have groups, those of crashed runs included.
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

/// The host's PID 1, once it is systemd: before, its mounts aren't in place.
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
