//! Brings hosts up: makes the image, the overlay, the identity and the network, and waits until each host is ready.

use super::state::{self, Host};
use super::{down, network, ready, supervise};
use crate::apt::{self, Need};
use crate::{cmd, files, image, workspace};
use anyhow::{Context, Result, bail};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

const NEEDS: [Need; 7] = [
    Need::new("systemd-nspawn", "systemd-container"),
    Need::new("debootstrap", "debootstrap"),
    Need::new("/usr/share/keyrings/debian-archive-keyring.gpg", "debian-archive-keyring"),
    Need::new("ssh", "openssh-client"),
    Need::new("ip", "iproute2"),
    // A test connects through `nc`, where others connect through a jump host.
    Need::new("nc", "netcat-openbsd"),
    Need::new("nsenter", "util-linux"),
];

/// The machine's limit of inotify instances. Some 25 hosts exhaust its default of 128.
const INOTIFY: &str = "/proc/sys/fs/inotify/max_user_instances";
const INOTIFY_WANTED: u32 = 8192;
/// The options of a host's disk, which is in memory. A host that writes without bounds must not take all of the memory.
const DISK: &str = "size=4g,mode=755";
/// The number of hosts that are waited for at the same time.
const WAITING: usize = 4;

/// Installs the programs that hosts need on this machine.
pub(crate) fn install_needs() -> Result<()> {
    apt::ensure("test hosts", &NEEDS)
}

/// Makes the named hosts of one image. Hosts that run are left as they are.
pub(crate) fn up(image: &str, names: &[String], dist: Option<&Path>) -> Result<()> {
    if !cmd::is_root() {
        bail!(
            "hosts are made of namespaces and mounts, which takes root; run `cargo xtask hosts up` as root"
        );
    }
    let names = if names.is_empty() { vec![format!("{image}1")] } else { names.to_vec() };
    for name in &names {
        state::check_name(name)?;
    }
    install_needs()?;
    let _lock = state::lock()?;
    let base = image::ensure(image)?;
    let in_use: Vec<_> = state::all().into_iter().flat_map(|host| host.layers).collect();
    image::remove_old(&base.layers, &in_use)?;

    down::sweep()?;
    raise_inotify_limit()?;
    make_key()?;
    stage_dist(dist)?;
    network::ensure_lab()?;

    let begun = Instant::now();
    let mut hosts = Vec::new();
    for name in &names {
        hosts.push(match running(name)? {
            Some(host) if host.image != image => {
                bail!("`{name}` is up with the image `{}`; `cargo xtask hosts down {name}` first", host.image)
            }
            Some(host) => host,
            None => create(name, image, &base).with_context(|| format!("`{name}` could not be made"))?,
        });
        publish_ssh_files()?;
        state::publish()?;
    }
    wait_for_all(&hosts)?;
    eprintln!("xtask: {} host(s) up after {:.1} s", hosts.len(), begun.elapsed().as_secs_f32());
    state::publish()
}

/// Waits for a few hosts at a time: to wait means to ask again and again, which slows down the hosts that boot.
fn wait_for_all(hosts: &[Host]) -> Result<()> {
    let next = AtomicUsize::new(0);
    let wait = || {
        while let Some(host) = hosts.get(next.fetch_add(1, Ordering::Relaxed)) {
            ready::wait(host)?;
            eprintln!("xtask: {} is ready at {}", host.name, host.address);
        }
        Ok(())
    };
    thread::scope(|scope| {
        let waiting: Vec<_> = (0..WAITING).map(|_| scope.spawn(wait)).collect();
        waiting
            .into_iter()
            .try_for_each(|one| one.join().unwrap_or_else(|_| bail!("a wait for hosts has panicked")))
    })
}

/// The host, where it runs. Otherwise its remains are removed.
fn running(name: &str) -> Result<Option<Host>> {
    if state::is_supervised(name) {
        return Host::load(name).map(Some);
    }
    if state::dir(name).exists() {
        down::tear_down(name)?;
    }
    Ok(None)
}

fn create(name: &str, image: &str, base: &image::Image) -> Result<Host> {
    let taken: Vec<_> = state::all().iter().map(|host| host.address).collect();
    let host = Host {
        name: name.to_owned(),
        image: image.to_owned(),
        layers: base.layers.clone(),
        address: network::free_address(&taken)?,
        nspawn: base.nspawn.clone(),
    };
    let (disk, root) = (host.file("disk"), host.root());
    files::make_dir(&disk)?;
    files::make_dir(&root)?;
    host.save()?;
    cmd::output(Command::new("mount").args(["-t", "tmpfs", "-o", DISK, "tmpfs"]).arg(&disk))?;
    files::make_dir(&disk.join("upper"))?;
    files::make_dir(&disk.join("work"))?;
    let layers = image::overlay(&host.layers, &disk.join("upper"), &disk.join("work"));
    cmd::output(Command::new("mount").args(["-t", "overlay", "-o", &layers, "overlay"]).arg(&root))?;
    // The folder that hosts see as /opt/linux-sysadmin is mounted here.
    files::make_dir(&root.join("opt/linux-sysadmin"))?;
    identify(&host)?;
    supervise::spawn(&host)?;
    Ok(host)
}

/// Gives the host its identity: names, keys, machine-id.
fn identify(host: &Host) -> Result<()> {
    let etc = host.root().join("etc");
    files::write(&etc.join("hostname"), format!("{}\n", host.name), 0o644)?;
    // Without the host's own name, every sudo complains on stderr.
    let hosts = format!("127.0.0.1 localhost\n127.0.1.1 {}\n::1 localhost ip6-localhost\n", host.name);
    files::write(&etc.join("hosts"), hosts, 0o644)?;
    let uuid = fs::read_to_string("/proc/sys/kernel/random/uuid")?;
    files::write(&etc.join("machine-id"), uuid.replace('-', ""), 0o444)?;
    for kind in ["ed25519", "ecdsa"] {
        let key = etc.join(format!("ssh/ssh_host_{kind}_key"));
        let comment = format!("root@{}", host.name);
        cmd::output(
            Command::new("ssh-keygen").args(["-q", "-N", "", "-C", &comment, "-t", kind, "-f"]).arg(&key),
        )?;
    }
    let public = fs::read(state::key().with_extension("pub")).context("the lab's key is gone")?;
    for home in homes(&host.root())? {
        let owner = fs::metadata(&home)?;
        let ssh = home.join(".ssh");
        files::make_dir(&ssh)?;
        fs::set_permissions(&ssh, fs::Permissions::from_mode(0o700))?;
        files::write(&ssh.join("authorized_keys"), &public, 0o600)?;
        for path in [&ssh, &ssh.join("authorized_keys")] {
            chown(path, Some(owner.uid()), Some(owner.gid()))?;
        }
    }
    Ok(())
}

/// The homes of root and of all accounts that the image has.
fn homes(root: &Path) -> Result<Vec<PathBuf>> {
    let mut homes = vec![root.join("root")];
    for entry in fs::read_dir(root.join("home"))? {
        homes.push(entry?.path());
    }
    Ok(homes)
}

fn raise_inotify_limit() -> Result<()> {
    let saved = down::saved_inotify_limit();
    let now: u32 = fs::read_to_string(INOTIFY)?.trim().parse().context(INOTIFY)?;
    if now < INOTIFY_WANTED {
        if !saved.exists() {
            fs::write(&saved, now.to_string())?;
        }
        fs::write(INOTIFY, INOTIFY_WANTED.to_string()).with_context(|| format!("cannot raise {INOTIFY}"))?;
    }
    Ok(())
}

fn make_key() -> Result<()> {
    let key = state::key();
    if !key.exists() {
        let args = ["-q", "-N", "", "-C", "lab", "-t", "ed25519", "-f"];
        cmd::output(Command::new("ssh-keygen").args(args).arg(&key))?;
    }
    Ok(())
}

/// Copies the binary and its modules to the folder that hosts see. Hosts that run see the change at once.
fn stage_dist(dist: Option<&Path>) -> Result<()> {
    let staged = state::dist();
    files::make_dir(&staged.join("modules"))?;
    let from = match dist {
        Some(dir) => dir.to_owned(),
        None => workspace::target_dir().map(|target| target.join("release")).unwrap_or_default(),
    };
    let binary: PathBuf = from.join(workspace::BINARY);
    if binary.is_file() {
        files::copy(&binary, &staged.join(workspace::BINARY), 0o755)?;
        let modules = from.join("modules");
        if modules.is_dir() {
            files::sync_components(&modules, &staged.join("modules"))?;
        }
    } else if dist.is_some() {
        bail!(
            "no {} in {}; `cargo xtask build` makes it in target/release",
            workspace::BINARY,
            from.display()
        );
    }
    Ok(())
}

/// Writes known_hosts and ssh_config for the tests, which run `ssh -F …/ssh_config NAME` within the lab.
pub(crate) fn publish_ssh_files() -> Result<()> {
    let (mut known, mut config) = (String::new(), String::new());
    for host in state::all() {
        for kind in ["ed25519", "ecdsa"] {
            let key = host.root().join(format!("etc/ssh/ssh_host_{kind}_key.pub"));
            if let Ok(key) = fs::read_to_string(key) {
                known += &format!("{},{} {}\n", host.name, host.address, key.trim());
            }
        }
        config += &format!(
            "Host {}\n  HostName {}\n  User root\n  IdentityFile {}\n  IdentitiesOnly yes\n  UserKnownHostsFile {}\n  StrictHostKeyChecking yes\n",
            host.name,
            host.address,
            state::key().display(),
            state::known_hosts().display()
        );
    }
    files::write(&state::known_hosts(), known, 0o644)?;
    files::write(&state::ssh_config(), config, 0o644)
}
