//! Calls to a machine behind SSH, beside `ssh` over a connection that it keeps open itself (ControlMaster), in the same
//! run and to the same host.

use super::{Row, Server, median};
use crate::build::Built;
use crate::hosts::{self, down};
use crate::{cmd, files};
use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use std::path::Path;
use std::process::{Command, Stdio};
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
    // The connection that ssh keeps.
    cmd::output(&mut lab.on_host(&["true"]))?;

    let probe = built.binary.with_file_name("test-modules").join("probe");
    let mut server = lab.serve(&built.binary, &probe)?;
    let echo = ["echo", "--", "nginx"];
    let run = json!({"name": "probe_run", "arguments": {"argv": echo, "root": false}});
    let single = compare(&mut server, &run, || cmd::output(&mut lab.on_host(&echo)).map(drop))?;

    let shipped = built.binary.with_file_name("modules");
    let mut server = lab.serve(&built.binary, &shipped)?;
    let info = json!({"name": "sysadmin_session_info", "arguments": {"refresh": true}});
    let gathering = compare(&mut server, &info, || {
        // Where sudo isn't, it says so, and that is an answer.
        QUESTIONS.iter().try_for_each(|argv| cmd::status(lab.on_host(argv).stdout(Stdio::null())).map(drop))
    })?;
    let overview = json!({"name": "perf_overview", "arguments": {"sample_ms": 0}});
    let read = compare(&mut server, &overview, || {
        READ.iter().try_for_each(|path| {
            cmd::status(lab.on_host(&["cat", path]).stdout(Stdio::null()).stderr(Stdio::null())).map(drop)
        })
    })?;

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
fn compare(server: &mut Server, params: &Value, floor: impl Fn() -> Result<()>) -> Result<(f64, f64)> {
    let call = |server: &mut Server| -> Result<Duration> {
        let started = Instant::now();
        let answer = server.request("tools/call", params.clone())?;
        if answer["structuredContent"]["status"] != "success" {
            bail!("the measured call failed: {answer}");
        }
        Ok(started.elapsed())
    };
    call(server)?;
    let (mut with, mut bare) = (Vec::new(), Vec::new());
    for _ in 0..CALLS {
        with.push(call(server)?);
        let started = Instant::now();
        floor()?;
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

    fn ssh(&self, argv: &[&str]) -> Command {
        let mut command = self.command(Path::new("ssh"));
        let socket = format!("ControlPath={}", self.path().join("master").display());
        command.args(["-o", "BatchMode=yes", "-o", "ControlMaster=auto", "-o", "ControlPersist=60", "-o"]);
        command.arg(socket).args(argv).stdin(Stdio::null());
        command
    }

    fn on_host(&self, argv: &[&str]) -> Command {
        self.ssh(&[&[HOST], argv].concat())
    }

    fn serve(&self, binary: &Path, modules: &Path) -> Result<Server> {
        let mut command = self.command(binary);
        command.args(["serve", "--host", HOST, "--modules"]).arg(modules);
        let mut server = Server::start(&mut command)?;
        server.initialize().context("the server in the lab")?;
        Ok(server)
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        cmd::succeeds(&mut self.ssh(&["-O", "exit", HOST]));
    }
}
