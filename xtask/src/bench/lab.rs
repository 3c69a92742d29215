//! An account in the network of the test hosts, with an SSH configuration of its own. Servers start there, and so do the
//! shells with ssh with which they are compared.

use super::Server;
use crate::build::Built;
use crate::hosts::{self, down};
use crate::{cmd, files};
use anyhow::{Context, Result, bail};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread;

/// The hosts that are up. A signal takes them down.
static UP: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Hosts that are taken down when this is dropped.
pub(super) struct Hosts(Vec<String>);

/// Makes a signal take the hosts down before it ends this process.
pub(super) fn watch_for_signals() -> Result<()> {
    let mut signals = Signals::new([SIGHUP, SIGINT, SIGTERM])?;
    thread::spawn(move || {
        if signals.forever().next().is_some() {
            let names = UP.lock().unwrap_or_else(PoisonError::into_inner).clone();
            take_down(&names);
            std::process::exit(130);
        }
    });
    Ok(())
}

impl Hosts {
    /// Brings hosts up and waits until they are ready; gives none where there can be no hosts.
    pub(super) fn up(image: &str, names: &[String], built: &Built) -> Result<Option<Self>> {
        if !cmd::is_root() {
            eprintln!("xtask: calls to {} aren't measured: test hosts need root", names.join(", "));
            return Ok(None);
        }
        let up = Self(names.to_vec());
        UP.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(names);
        hosts::up(image, names, built.binary.parent())?;
        Ok(Some(up))
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        take_down(&self.0);
        UP.lock().unwrap_or_else(PoisonError::into_inner).retain(|name| !self.0.contains(name));
    }
}

fn take_down(names: &[String]) {
    // Without names, every host of the machine would be taken down.
    if !names.is_empty()
        && let Err(error) = down(names)
    {
        eprintln!("xtask: hosts are left: {error:#}");
    }
}

/// The account's home.
pub(super) struct Lab(tempfile::TempDir);

impl Lab {
    /// Makes an account that reaches these hosts by their names, as root.
    pub(super) fn new(names: &[String]) -> Result<Self> {
        let home = tempfile::tempdir()?;
        let ssh = home.path().join(".ssh");
        files::make_dir(&ssh)?;
        let (key, known) = (ssh.join("key"), hosts::known_hosts());
        files::copy(&hosts::key(), &key, 0o600)?;
        let mut config = String::new();
        for name in names {
            config += &format!("Host {name}\n  HostName {}\n", hosts::address(name)?);
        }
        config += &format!(
            "Host *\n  User root\n  IdentityFile {}\n  IdentitiesOnly yes\n  UserKnownHostsFile {}\n",
            key.display(),
            known.display()
        );
        files::write(&ssh.join("config"), config, 0o600)?;
        // ssh takes its home from there and not from HOME.
        let passwd = format!("root:x:0:0:root:{}:/bin/sh\n", home.path().display());
        files::write(&home.path().join("passwd"), passwd, 0o644)?;
        Ok(Self(home))
    }

    /// Writes the program's own configuration.
    pub(super) fn configure(&self, yaml: &str) -> Result<()> {
        let directory = self.path().join(".config/linux-sysadmin");
        files::make_dir(&directory)?;
        files::write(&directory.join("config.yaml"), yaml, 0o600)
    }

    pub(super) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(super) fn command(&self, program: &Path) -> Command {
        let script = "mount --bind \"$HOME/passwd\" /etc/passwd && exec \"$@\"";
        let mut command = hosts::command_in_lab("sh");
        command.args(["-c", script, "lab"]).arg(program);
        command.env_clear().env("HOME", self.path()).env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
        command
    }

    /// Starts a server with these modules and further arguments.
    pub(super) fn serve(&self, binary: &Path, modules: &Path, args: &[&str]) -> Result<Server> {
        let mut command = self.command(binary);
        command.args(["serve", "--modules"]).arg(modules).args(args);
        let mut server = Server::start(&mut command)?;
        server.initialize().context("the server in the lab")?;
        Ok(server)
    }

    /// Starts a shell with ssh and nothing else. `round` is a line of sh, and so is `end`, which runs at its end.
    pub(super) fn peer(&self, round: &str, end: &str) -> Result<Peer> {
        let script = format!("while read -r line; do {round}; echo; done; {end}");
        let mut command = self.command(Path::new("sh"));
        let mut child = command.args(["-c", &script]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let input = child.stdin.take().context("no stdin")?;
        let output = BufReader::new(child.stdout.take().context("no stdout")?);
        Ok(Peer { child, input: Some(input), output })
    }
}

/// A shell within the network of the hosts, so that its start isn't measured.
pub(super) struct Peer {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Peer {
    /// Runs all commands once.
    pub(super) fn round(&mut self) -> Result<()> {
        self.input.as_mut().context("no stdin")?.write_all(b"\n")?;
        match self.output.read_line(&mut String::new())? {
            0 => bail!("ssh ended"),
            _ => Ok(()),
        }
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        drop(self.input.take());
        self.child.wait().ok();
    }
}
