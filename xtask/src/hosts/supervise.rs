//! Keeps one host running: starts it, notes its PID 1, and starts it again when it reboots.
//!
//! A supervisor runs in the background as `xtask hosts supervise NAME`, one for each host, and holds the host's lock for as
//! long as it lives. It starts the host through `xtask hosts nspawn NAME`, which moves into the host's control group and
//! then becomes systemd-nspawn. The supervisor itself stays outside of the group, which is killed as a whole.

use super::state::{self, Host};
use super::{network, processes};
use anyhow::{Context, Result, bail};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, sleep};
use std::time::Duration;

/// The exit code of nspawn when the host asks for a reboot.
const REBOOT: i32 = 133;

/// Starts the supervisor of a host in the background.
pub(crate) fn spawn(host: &Host) -> Result<()> {
    let log = File::create(host.file("supervisor.log"))?;
    // The path of the program isn't used, since cargo may have replaced the file.
    Command::new("/proc/self/exe")
        .arg0("xtask")
        .args(["hosts", "supervise", &host.name])
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        .spawn()
        .context("cannot start the host's supervisor")?;
    Ok(())
}

/// Runs the supervisor. It ends when the host is switched off, or on SIGTERM, and then kills the host.
pub(crate) fn run(name: &str) -> Result<()> {
    // In a session of its own, no Ctrl-C of a terminal reaches the host.
    rustix::process::setsid().ok();
    let host = Host::load(name)?;
    let lock = File::create(host.file("supervisor.lock"))?;
    if lock.try_lock().is_err() {
        bail!("`{name}` has a supervisor already");
    }
    fs::write(host.file("supervisor.pid"), std::process::id().to_string())?;
    let stopping = kill_on_signal(name)?;
    loop {
        network::attach(&host)?;
        let mut nspawn = start(&host)?;
        if stopping.load(Ordering::SeqCst) {
            // nspawn may not have entered its control group yet.
            nspawn.kill()?;
            processes::kill_all(name)?;
        }
        note_init(&host, &mut nspawn)?;
        let status = nspawn.wait()?;
        fs::remove_file(host.file("pid")).ok();
        let mut exits = OpenOptions::new().create(true).append(true).open(host.file("exits"))?;
        writeln!(exits, "{status}")?;
        state::publish()?;
        if stopping.load(Ordering::SeqCst) || status.code() != Some(REBOOT) {
            return Ok(());
        }
    }
}

/// Moves into the host's control group and becomes its systemd-nspawn.
pub(crate) fn become_nspawn(name: &str) -> Result<()> {
    let host = Host::load(name)?;
    processes::enter_group(name)?;
    let error = Command::new("systemd-nspawn")
        .env("SYSTEMD_NSPAWN_UNIFIED_HIERARCHY", "1")
        // The host may write /proc/sys/net, which is its namespace's own. The rest of /proc/sys is the machine's.
        .env("SYSTEMD_NSPAWN_API_VFS_WRITABLE", "network")
        .args(["--quiet", "--boot", "--register=no", "--keep-unit", "--console=read-only"])
        .args(["--resolv-conf=off", "--timezone=off", "--link-journal=no"])
        .arg(format!("--machine={name}"))
        .arg(format!("--directory={}", host.root().display()))
        .arg(format!("--network-namespace-path=/run/netns/{}", host.netns()))
        // Without this capability no firewall works, and nspawn adds it only for --private-network.
        .arg("--capability=CAP_NET_ADMIN")
        .arg(format!("--bind-ro={}:/opt/linux-sysadmin", state::dist().display()))
        .args(&host.nspawn)
        .exec();
    Err(error).context("cannot start systemd-nspawn")
}

fn start(host: &Host) -> Result<Child> {
    let console = OpenOptions::new().create(true).append(true).open(host.file("console.log"))?;
    Command::new("/proc/self/exe")
        .arg0("xtask")
        .args(["hosts", "nspawn", &host.name])
        .stdin(Stdio::null())
        .stdout(console.try_clone()?)
        .stderr(console)
        .spawn()
        .context("cannot start the host")
}

/// Waits until the host's PID 1 is there, or the host has failed to start, and writes the PID down.
fn note_init(host: &Host, nspawn: &mut Child) -> Result<()> {
    loop {
        if let Some(pid) = processes::init_of(nspawn.id()) {
            crate::files::write(&host.file("pid"), pid.to_string(), 0o644)?;
            return state::publish();
        }
        if nspawn.try_wait()?.is_some() {
            return Ok(());
        }
        sleep(Duration::from_millis(20));
    }
}

fn kill_on_signal(name: &str) -> Result<Arc<AtomicBool>> {
    let stopping = Arc::new(AtomicBool::new(false));
    let mut signals = Signals::new([SIGTERM, SIGINT, SIGHUP])?;
    let (flag, name) = (stopping.clone(), name.to_owned());
    thread::spawn(move || {
        for _ in signals.forever() {
            flag.store(true, Ordering::SeqCst);
            if let Err(error) = processes::kill_all(&name) {
                eprintln!("xtask: {error:#}");
            }
        }
    });
    Ok(stopping)
}
