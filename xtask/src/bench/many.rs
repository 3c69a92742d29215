//! Measures one call on many machines, beside ssh and Ansible, which ask the same hosts the same in the same run. The hosts
//! share this machine with the programs that ask, so every figure contains the time that hosts take to answer.

use super::ansible::{ANEW, Ansible, KEPT};
use super::lab::{Hosts, Lab};
use super::{Row, Server, median};
use crate::build::Built;
use crate::{cmd, hosts};
use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

const HOSTS: usize = 50;
/// The name of the group of all hosts.
const GROUP: &str = "fleet";
/// The rounds of each figure. They are few, since a round takes Ansible a minute.
const ROUNDS: usize = 3;
const COMMAND: &str = "echo -- nginx";

/// Tools whose answers are weighed: some are the same on all hosts, some have numbers that differ everywhere, and some are
/// listings.
const WEIGHED: [(&str, &str); 4] = [
    ("answer of 50 hosts, cron_list", "cron_list"),
    ("answer of 50 hosts, sysadmin_session_info", "sysadmin_session_info"),
    ("answer of 50 hosts, perf_overview", "perf_overview"),
    ("answer of 50 hosts, svc_list", "svc_list"),
];

/// Hosts with Python, without which most of Ansible's modules don't work.
struct Fleet<'a> {
    built: &'a Built,
    names: Vec<String>,
    lab: Lab,
    ansible: Option<Ansible>,
    _hosts: Hosts,
}

/// Another program that asks the same.
struct Peer<'a> {
    is: &'static str,
    ask: Box<dyn FnMut() -> Result<Duration> + 'a>,
}

/// Gives the figures, or none where there can be no hosts.
pub(super) fn calls(built: &Built) -> Result<Vec<Row>> {
    let names: Vec<String> = (1..=HOSTS).map(|number| format!("many{number:02}")).collect();
    let Some(hosts) = Hosts::up("debian", &names, built)? else { return Ok(Vec::new()) };
    let lab = Lab::new(&names)?;
    lab.configure(&format!("hosts: {{{GROUP}: [{}]}}\n", names.join(", ")))?;
    let ansible = Ansible::new(&lab, &names)
        .inspect_err(|error| eprintln!("xtask: not compared with Ansible: {error:#}"))
        .ok();
    let fleet = Fleet { built, names, lab, ansible, _hosts: hosts };
    let mut rows = fleet.one_command()?;
    let all_answer = rows[0].ours;
    rows.extend(fleet.facts_and_a_service()?);
    rows.extend(fleet.answers()?);
    // This comes last, since it takes two of the hosts away.
    rows.extend(fleet.some_missing(all_answer)?);
    Ok(rows)
}

impl Fleet<'_> {
    /// Starts a server that has only the module that runs one command.
    fn serve_probe(&self) -> Result<Server> {
        let probe = self.built.binary.with_file_name("test-modules").join("probe");
        self.lab.serve(&self.built.binary, &probe, &[])
    }

    fn serve_shipped(&self) -> Result<Server> {
        self.lab.serve(&self.built.binary, &self.built.modules, &[])
    }

    fn one_command(&self) -> Result<Vec<Row>> {
        // The first start compiles the module, which isn't measured here.
        drop(self.serve_probe()?);
        let ours = || {
            let started = Instant::now();
            ask(&mut self.serve_probe()?, &run(), HOSTS)?;
            Ok(started.elapsed())
        };
        let mut peers = vec![self.ssh("ssh to each, all at once", "-o ControlMaster=no")?];
        peers.extend(self.ansible("ansible -m raw", ("raw", COMMAND), ANEW));
        peers.extend(self.ansible("ansible -m command", ("command", COMMAND), ANEW));
        let mut rows = compare("50 hosts, one command, from the start", ours, peers)?;

        let mut server = self.serve_probe()?;
        let mut ours = || ask(&mut server, &run(), HOSTS);
        let socket = self.lab.path().join("master-%n").display().to_string();
        let keep = format!("-o ControlMaster=auto -o ControlPersist=60 -o ControlPath={socket}");
        let mut peers = vec![self.ssh("ssh over ControlMasters, all at once", &keep)?];
        peers.extend(self.ansible("ansible -m raw, connections kept", ("raw", COMMAND), KEPT));
        peers.extend(self.ansible("ansible -m command, connections kept", ("command", COMMAND), KEPT));
        connect(&mut ours, &mut peers)?;
        rows.extend(compare("50 hosts, one command, warm", ours, peers)?);
        Ok(rows)
    }

    /// Measures questions for which Ansible has modules as well, over connections that are there.
    fn facts_and_a_service(&self) -> Result<Vec<Row>> {
        let mut server = self.serve_shipped()?;
        let mut rows = Vec::new();
        let questions = [
            (
                "50 hosts, facts anew, warm",
                call("sysadmin_session_info", json!({"refresh": true})),
                "ansible -m setup, the least subset, kept",
                ("setup", "gather_subset=!all"),
            ),
            (
                "50 hosts, svc_status, warm",
                call("svc_status", json!({"service": "ssh"})),
                "ansible -m systemd_service, connections kept",
                ("systemd_service", "name=ssh"),
            ),
        ];
        for (what, params, floor_is, module) in questions {
            let mut ours = || ask(&mut server, &params, HOSTS);
            let mut peers: Vec<_> = self.ansible(floor_is, module, KEPT).into_iter().collect();
            connect(&mut ours, &mut peers)?;
            rows.extend(compare(what, ours, peers)?);
        }
        Ok(rows)
    }

    /// Weighs one answer about all hosts, beside one answer of each host, and measures the memory that it takes.
    fn answers(&self) -> Result<Vec<Row>> {
        let mut server = self.serve_shipped()?;
        weigh(&mut server, "sysadmin_session_info", &self.names[0])?;
        let of_one = server.peak()?;
        let (mut rows, floor_is) = (Vec::new(), "the sum of 50 answers of one host each");
        for (what, tool) in WEIGHED {
            let ours = weigh(&mut server, tool, GROUP)?;
            let mut floor = 0.0;
            for name in &self.names {
                floor += weigh(&mut server, tool, name)?;
            }
            rows.push(Row { what: what.into(), unit: "kB", ours, floor, floor_is: floor_is.into() });
        }
        let (what, floor_is) = ("peak memory with 50 connections", "with one");
        rows.push(Row {
            what: what.into(),
            unit: "MB",
            ours: server.peak()?,
            floor: of_one,
            floor_is: floor_is.into(),
        });
        Ok(rows)
    }

    /// Measures the time from the start to the answer of all others, where one host's sshd says nothing and one host is gone.
    /// `all_answer` is the time where no host is missing.
    fn some_missing(&self, all_answer: f64) -> Result<Vec<Row>> {
        let [.., hangs, gone] = self.names.as_slice() else { bail!("two hosts are needed") };
        let stop = ["systemctl", "kill", "--kill-whom=main", "--signal=STOP", "ssh.service"];
        cmd::output(&mut hosts::command(hangs, &stop)?)?;
        hosts::down(std::slice::from_ref(gone))?;
        let started = Instant::now();
        ask(&mut self.serve_probe()?, &run(), HOSTS - 2)?;
        let ours = started.elapsed().as_secs_f64();
        let what = "50 hosts, one command, one hangs, one is gone";
        let mut rows = vec![Row {
            what: what.into(),
            unit: "s",
            ours,
            floor: all_answer,
            floor_is: "all answer".into(),
        }];
        if let Some(ansible) = &self.ansible {
            let (took, answered) = ansible.ask(&self.lab, ("raw", COMMAND), ANEW)?;
            if answered != HOSTS - 2 {
                bail!("{answered} hosts answered Ansible");
            }
            let floor_is = "ansible -m raw, which waits 10 s for a host";
            rows.push(Row {
                what: what.into(),
                unit: "s",
                ours,
                floor: took.as_secs_f64(),
                floor_is: floor_is.into(),
            });
        }
        Ok(rows)
    }

    /// Starts a shell that runs ssh with these options to all hosts side by side.
    fn ssh(&self, is: &'static str, options: &str) -> Result<Peer<'_>> {
        let on_each = |command: &str| {
            let names = self.names.join(" ");
            format!(
                "printf '%s\\n' {names} | xargs -P {HOSTS} -I {{}} ssh -o BatchMode=yes {options} {command}"
            )
        };
        let round = format!("{} >/dev/null 2>&1 || exit", on_each(&format!("{{}} {COMMAND}")));
        let end = format!("{} >/dev/null 2>&1", on_each("-O exit {}"));
        let mut peer = self.lab.peer(&round, &end)?;
        let ask = move || {
            let started = Instant::now();
            peer.round()?;
            Ok(started.elapsed())
        };
        Ok(Peer { is, ask: Box::new(ask) })
    }

    fn ansible(
        &self,
        is: &'static str,
        module: (&'static str, &'static str),
        ssh: &'static str,
    ) -> Option<Peer<'_>> {
        let ansible = self.ansible.as_ref()?;
        let ask = move || match ansible.ask(&self.lab, module, ssh)? {
            (took, HOSTS) => Ok(took),
            (_, answered) => bail!("{answered} hosts answered Ansible"),
        };
        Some(Peer { is, ask: Box::new(ask) })
    }
}

/// Has each program ask once, so that all have their connections.
fn connect(ours: &mut impl FnMut() -> Result<Duration>, peers: &mut [Peer]) -> Result<()> {
    ours()?;
    peers.iter_mut().try_for_each(|peer| (peer.ask)().map(drop))
}

/// Gives the medians of our times and of each other program's. The programs ask in turn.
fn compare(
    what: &'static str,
    mut ours: impl FnMut() -> Result<Duration>,
    mut peers: Vec<Peer>,
) -> Result<Vec<Row>> {
    let mut with = Vec::new();
    let mut without = vec![Vec::new(); peers.len()];
    for _ in 0..ROUNDS {
        with.push(ours()?);
        for (peer, times) in peers.iter_mut().zip(&mut without) {
            times.push((peer.ask)()?);
        }
    }
    let seconds = |times| median(times, 0.5) / 1000.0;
    let ours = seconds(with);
    let row = |(peer, times): (Peer, _)| Row {
        what: what.into(),
        unit: "s",
        ours,
        floor: seconds(times),
        floor_is: peer.is.into(),
    };
    Ok(peers.into_iter().zip(without).map(row).collect())
}

fn run() -> Value {
    let argv: Vec<&str> = COMMAND.split(' ').collect();
    call("probe_run", json!({"argv": argv, "root": false}))
}

/// The parameters of a call on all hosts.
fn call(tool: &str, mut arguments: Value) -> Value {
    arguments["host"] = GROUP.into();
    json!({"name": tool, "arguments": arguments})
}

/// Gives the time until this number of hosts has answered and the others are given up.
fn ask(server: &mut Server, params: &Value, answered: usize) -> Result<Duration> {
    let started = Instant::now();
    let answer = server.request("tools/call", params.clone())?;
    let took = started.elapsed();
    let envelope = &answer["structuredContent"];
    if envelope["hosts"]["succeeded"] != answered || envelope["hosts"]["total"] != HOSTS {
        bail!("expected answers of {answered} of {HOSTS} hosts: {envelope}");
    }
    Ok(took)
}

/// Gives the kilobytes of a result as the client gets it. It holds the answer twice: as text for reading and as an object.
fn weigh(server: &mut Server, tool: &str, host: &str) -> Result<f64> {
    let result = server.request("tools/call", json!({"name": tool, "arguments": {"host": host}}))?;
    if result["structuredContent"]["status"] != "success" {
        bail!("{tool} on {host} failed: {result}");
    }
    let sent = serde_json::to_string(&result).context("a result is JSON")?;
    Ok(sent.len() as f64 / 1000.0)
}
