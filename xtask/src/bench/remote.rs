//! Calls to a machine behind SSH, beside `ssh` over a connection that it keeps open itself (ControlMaster), in the same
//! run and to the same host.

use super::{Row, Server, median};
use crate::build::Built;
use crate::hosts::{self, down};
use crate::{cmd, files};
use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

const HOST: &str = "bench1";
const CALLS: usize = 200;
/// What facts are gathered by: about as many questions, one after the other, as whoever has only ssh would ask them.
const QUESTIONS: [&[&str]; 7] = [
    &["cat", "/etc/os-release", "/etc/machine-id", "/proc/1/comm", "/etc/passwd"],
    &["ls", "-l", "-n", "/usr/bin/apt-get", "/usr/bin/dnf", "/usr/sbin/nft"],
    &["readlink", "/etc/localtime"],
    &["uname", "-a"],
    &["id"],
    &["sudo", "-n", "true"],
    &["sudo", "-n", "-l"],
];
/// What `perf_overview` reads.
const READ: [&str; 8] = [
    "/proc/stat",
    "/proc/meminfo",
    "/proc/loadavg",
    "/proc/diskstats",
    "/proc/net/dev",
    "/proc/pressure/cpu",
    "/proc/pressure/io",
    "/proc/pressure/memory",
];

/// An account in the network of the hosts, with an SSH configuration of its own.
struct Lab(tempfile::TempDir);

/// Taken down again, however it ends.
struct Host;

impl Drop for Host {
    fn drop(&mut self) {
        if let Err(error) = down(&[HOST.to_owned()]) {
            eprintln!("xtask: {HOST} is left: {error:#}");
        }
    }
}

/// Where hosts can't be had, nothing.
pub(super) fn calls(built: &Built) -> Result<Vec<Row>> {
    if !cmd::is_root() {
        eprintln!("xtask: remote calls are not measured: test hosts need root");
        return Ok(Vec::new());
    }
    hosts::up("debian", &[HOST.to_owned()], built.binary.parent())?;
    let _host = Host;
    let lab = Lab::new()?;
    let probe = built.binary.with_file_name("test-modules").join("probe");
    let mut server = lab.serve(&built.binary, &probe)?;
    let echo = ["echo", "--", "nginx"];
    let run = json!({"name": "probe_run", "arguments": {"argv": echo, "root": false}});
    let single = compare(&mut server, &run, lab.peer(&[&echo])?)?;

    let shipped = built.binary.with_file_name("modules");
    let mut server = lab.serve(&built.binary, &shipped)?;
    let info = json!({"name": "sysadmin_session_info", "arguments": {"refresh": true}});
    let gathering = compare(&mut server, &info, lab.peer(&QUESTIONS)?)?;
    let overview = json!({"name": "perf_overview", "arguments": {"sample_ms": 0}});
    let read: Vec<[&str; 2]> = READ.iter().map(|path| ["cat", *path]).collect();
    let read: Vec<&[&str]> = read.iter().map(|argv| argv.as_slice()).collect();
    let read = compare(&mut server, &overview, lab.peer(&read)?)?;

    let floor_is = "ssh over a ControlMaster";
    let one_by_one = "the same by ssh over a ControlMaster, one by one";
    let row = |what, (ours, floor): (f64, f64), floor_is| Row { what, unit: "ms", ours, floor, floor_is };
    Ok(vec![
        row("remote call, one command, warm, median", single, floor_is),
        row("remote call, facts gathered anew, median", gathering, one_by_one),
        row("remote call, perf_overview, median", read, one_by_one),
    ])
}

/// Medians of both, by turns; the first call connects and isn't counted.
fn compare(server: &mut Server, params: &Value, mut peer: Peer) -> Result<(f64, f64)> {
    let call = |server: &mut Server| -> Result<Duration> {
        let started = Instant::now();
        let answer = server.request("tools/call", params.clone())?;
        if answer["structuredContent"]["status"] != "success" {
            bail!("the measured call failed: {answer}");
        }
        Ok(started.elapsed())
    };
    call(server)?;
    peer.round()?;
    let (mut with, mut bare) = (Vec::new(), Vec::new());
    for _ in 0..CALLS {
        with.push(call(server)?);
        let started = Instant::now();
        peer.round()?;
        bare.push(started.elapsed());
    }
    Ok((median(with, 0.5), median(bare, 0.5)))
}

impl Lab {
    fn new() -> Result<Self> {
        let home = tempfile::tempdir()?;
        let ssh = home.path().join(".ssh");
        files::make_dir(&ssh)?;
        let (key, known) = (ssh.join("key"), hosts::known_hosts());
        files::copy(&hosts::key(), &key, 0o600)?;
        let address = hosts::address(HOST)?;
        let config = format!(
            "Host {HOST}\n  HostName {address}\n  User root\n  IdentityFile {}\n  IdentitiesOnly yes\n  UserKnownHostsFile {}\n",
            key.display(),
            known.display()
        );
        files::write(&ssh.join("config"), config, 0o600)?;
        // ssh looks for its home there, and not in HOME.
        let passwd = format!("root:x:0:0:root:{}:/bin/sh\n", home.path().display());
        files::write(&home.path().join("passwd"), passwd, 0o644)?;
        Ok(Self(home))
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn command(&self, program: &Path) -> Command {
        let script = "mount --bind \"$HOME/passwd\" /etc/passwd && exec \"$@\"";
        let mut command = hosts::command_in_lab("sh");
        command.args(["-c", script, "lab"]).arg(program);
        command.env_clear().env("HOME", self.path()).env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
        command
    }

    /// ssh with a connection of its own that it keeps, for these commands, one after the other. The first round connects.
    fn peer(&self, commands: &[&[&str]]) -> Result<Peer> {
        let socket = self.path().join("master").display().to_string();
        let ssh = format!(
            "ssh -o BatchMode=yes -o ControlMaster=auto -o ControlPersist=60 -o ControlPath={socket} {HOST}"
        );
        // Nothing in them that a shell would read otherwise.
        let round: String = commands
            .iter()
            .map(|argv| format!("{ssh} {} </dev/null >/dev/null 2>&1; ", argv.join(" ")))
            .collect();
        let script = format!("while read -r line; do {round} echo; done; {ssh} -O exit 2>/dev/null");
        let mut command = self.command(Path::new("sh"));
        let mut child = command.args(["-c", &script]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let input = child.stdin.take().context("no stdin")?;
        let output = BufReader::new(child.stdout.take().context("no stdout")?);
        Ok(Peer { child, input: Some(input), output })
    }

    fn serve(&self, binary: &Path, modules: &Path) -> Result<Server> {
        let mut command = self.command(binary);
        command.args(["serve", "--host", HOST, "--modules"]).arg(modules);
        let mut server = Server::start(&mut command)?;
        server.initialize().context("the server in the lab")?;
        Ok(server)
    }
}

/// Somebody who has only ssh, within the network of the hosts: what it takes to come there isn't measured.
struct Peer {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Peer {
    /// All commands once.
    fn round(&mut self) -> Result<()> {
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
