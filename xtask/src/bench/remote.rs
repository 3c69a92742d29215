//! Measures calls to a machine behind SSH, beside `ssh` over a connection that it keeps open itself (ControlMaster), in the
//! same run and to the same host.

use super::lab::{Hosts, Lab, Peer};
use super::{Row, Server, median};
use crate::build::Built;
use anyhow::{Result, bail};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

const HOST: &str = "bench1";
const CALLS: usize = 200;
/// About as many questions as the server asks to gather facts. Over plain ssh they are asked one after the other.
const QUESTIONS: [&[&str]; 7] = [
    &["cat", "/etc/os-release", "/etc/machine-id", "/proc/1/comm", "/etc/passwd"],
    &["ls", "-l", "-n", "/usr/bin/apt-get", "/usr/bin/dnf", "/usr/sbin/nft"],
    &["readlink", "/etc/localtime"],
    &["uname", "-a"],
    &["id"],
    &["sudo", "-n", "true"],
    &["sudo", "-n", "-l"],
];
/// The files that `perf_overview` reads.
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

/// Gives the figures, or none where there can be no hosts.
pub(super) fn calls(built: &Built) -> Result<Vec<Row>> {
    let names = [HOST.to_owned()];
    let Some(_host) = Hosts::up("debian", &names, built)? else { return Ok(Vec::new()) };
    let lab = Lab::new(&names)?;
    let probe = built.binary.with_file_name("test-modules").join("probe");
    let mut server = lab.serve(&built.binary, &probe, &["--host", HOST])?;
    let echo = ["echo", "--", "nginx"];
    let run = json!({"name": "probe_run", "arguments": {"argv": echo, "root": false}});
    let single = compare(&mut server, &run, one_by_one(&lab, &[&echo])?)?;

    let mut server = lab.serve(&built.binary, &built.modules, &["--host", HOST])?;
    let info = json!({"name": "sysadmin_session_info", "arguments": {"refresh": true}});
    let gathering = compare(&mut server, &info, one_by_one(&lab, &QUESTIONS)?)?;
    let overview = json!({"name": "perf_overview", "arguments": {"sample_ms": 0}});
    let read: Vec<[&str; 2]> = READ.iter().map(|path| ["cat", *path]).collect();
    let read: Vec<&[&str]> = read.iter().map(|argv| argv.as_slice()).collect();
    let read = compare(&mut server, &overview, one_by_one(&lab, &read)?)?;

    let floor_is = "ssh over a ControlMaster";
    let floor_of_several = "the same by ssh over a ControlMaster, one by one";
    let row = |what: &'static str, (ours, floor): (f64, f64), floor_is: &'static str| Row {
        what: what.into(),
        unit: "ms",
        ours,
        floor,
        floor_is: floor_is.into(),
    };
    Ok(vec![
        row("remote call, one command, warm, median", single, floor_is),
        row("remote call, facts gathered anew, median", gathering, floor_of_several),
        row("remote call, perf_overview, median", read, floor_of_several),
    ])
}

/// Gives the medians of both, which ask in turn. The first call connects and isn't counted.
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

/// Starts a shell with ssh that runs these commands one after the other, over a connection that it keeps. The first round
/// connects.
fn one_by_one(lab: &Lab, commands: &[&[&str]]) -> Result<Peer> {
    let socket = lab.path().join("master").display().to_string();
    let ssh = format!(
        "ssh -o BatchMode=yes -o ControlMaster=auto -o ControlPersist=60 -o ControlPath={socket} {HOST}"
    );
    // No word of the commands needs quotes.
    let round: Vec<String> =
        commands.iter().map(|argv| format!("{ssh} {} </dev/null >/dev/null 2>&1", argv.join(" "))).collect();
    lab.peer(&round.join("; "), &format!("{ssh} -O exit 2>/dev/null"))
}
