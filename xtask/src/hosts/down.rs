//! Takes hosts down, also those that hang or have crashed, and leaves the machine as it was.

use super::state::{self, Host};
use super::{network, processes};
use crate::cmd;
use anyhow::{Context, Result, bail};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Takes down the named hosts, or the whole lab.
pub(crate) fn down(names: &[String]) -> Result<()> {
    if !Path::new(state::STATE).exists() {
        eprintln!("xtask: no hosts are up");
        return Ok(());
    }
    if !cmd::is_root() {
        bail!("hosts are taken down by root, as they are brought up by root");
    }
    let _lock = state::lock()?;
    let all = state::names();
    for name in names {
        if !all.contains(name) {
            eprintln!("xtask: no host `{name}` is up");
        }
    }
    let going: Vec<_> = all.iter().filter(|name| names.is_empty() || names.contains(name)).collect();
    for name in &going {
        tear_down(name)?;
    }
    sweep()?;
    if state::names().is_empty() {
        network::remove_lab()?;
        restore_inotify_limit()?;
        // The lock file stays, since another process may hold it open.
        for file in
            [state::key(), state::key().with_extension("pub"), state::known_hosts(), state::ssh_config()]
        {
            fs::remove_file(file).ok();
        }
        fs::remove_file(state::hosts_json()).ok();
        fs::remove_dir_all(state::dist()).ok();
    } else {
        super::up::publish_ssh_files()?;
        state::publish()?;
    }
    eprintln!("xtask: {} host(s) down", going.len());
    Ok(())
}

/// Removes the remains of crashed runs: namespaces and the like of hosts that have no folder any more.
pub(crate) fn sweep() -> Result<()> {
    let known: BTreeSet<String> = state::names().into_iter().collect();
    let mut left: BTreeSet<String> = network::hosts_with_namespaces()?.into_iter().collect();
    left.extend(processes::hosts_with_groups());
    for name in left.difference(&known) {
        eprintln!("xtask: removing the remains of `{name}`");
        tear_down(name)?;
    }
    Ok(())
}

/// Removes a host in any state.
pub(crate) fn tear_down(name: &str) -> Result<()> {
    stop_supervisor(name)?;
    processes::kill_all(name)?;
    network::detach(name, Host::load(name).ok().as_ref());
    let dir = state::dir(name);
    // The root is mounted over the disk, so the last mount goes first.
    for mount in mounts_under(&dir)?.iter().rev() {
        cmd::output(Command::new("umount").arg("--lazy").arg(mount))?;
    }
    processes::remove_groups(name);
    if !mounts_under(&dir)?.is_empty() {
        bail!("something is still mounted under {}; umount it, then try again", dir.display());
    }
    if dir.exists() {
        fs::remove_dir_all(&dir).with_context(|| format!("cannot remove {}", dir.display()))?;
    }
    Ok(())
}

/// The file that keeps the machine's own limit while the limit is raised.
pub(crate) fn saved_inotify_limit() -> PathBuf {
    Path::new(state::STATE).join("inotify.saved")
}

fn restore_inotify_limit() -> Result<()> {
    let saved = saved_inotify_limit();
    if let Ok(limit) = fs::read_to_string(&saved) {
        fs::write("/proc/sys/fs/inotify/max_user_instances", limit.trim())?;
        fs::remove_file(saved)?;
    }
    Ok(())
}

fn stop_supervisor(name: &str) -> Result<()> {
    let deadline = Instant::now() + Duration::from_secs(10);
    while state::is_supervised(name) {
        let pid = fs::read_to_string(state::dir(name).join("supervisor.pid")).unwrap_or_default();
        if let Some(pid) = pid.trim().parse().ok().and_then(rustix::process::Pid::from_raw) {
            // The supervisor kills the host. A supervisor that takes too long is killed, and then the host.
            let late = Instant::now() + Duration::from_secs(5) > deadline;
            let signal = if late { rustix::process::Signal::KILL } else { rustix::process::Signal::TERM };
            rustix::process::kill_process(pid, signal).ok();
        }
        if Instant::now() > deadline {
            bail!("the supervisor of `{name}` (pid {}) doesn't end", pid.trim());
        }
        sleep(Duration::from_millis(50));
    }
    Ok(())
}

fn mounts_under(dir: &Path) -> Result<Vec<PathBuf>> {
    let text = fs::read_to_string("/proc/self/mountinfo").context("cannot read the mounts")?;
    Ok(parse_mounts(&text).into_iter().filter(|mount| mount.starts_with(dir)).collect())
}

/// The mount points of a mountinfo, in the order of mounting (proc_pid_mountinfo(5), field 5). Names of hosts have no
/// characters that are escaped there.
fn parse_mounts(text: &str) -> Vec<PathBuf> {
    text.lines().filter_map(|line| line.split(' ').nth(4)).map(PathBuf::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mount_points_are_the_fifth_field() {
        let text =
            "22 1 0:20 / / rw - ext4 /dev/vda rw\n30 22 0:25 /a /run/x/root rw shared:1 - overlay o rw\n";
        assert_eq!(parse_mounts(text), [PathBuf::from("/"), PathBuf::from("/run/x/root")]);
    }
}
