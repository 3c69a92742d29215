//! What holds the machine up, and the tool `perf_bottleneck`.
//!
//! Each resource is held against thresholds, see [`rules`]; the worst one is the bottleneck. What can't be told from
//! counters (locks, a slow service elsewhere) is none here.

mod rules;
mod wording;

use linux_sysadmin_sdk::prelude::*;

use crate::disk::Disk;
use crate::machine::{Machine, Top};
use crate::network::Interface;
use crate::number::{mib, tenth};
use crate::pressure::Pressures;
use crate::process::{self, Sort};
use crate::sample::SampleArgs;

pub(crate) use rules::findings;
pub(crate) use wording::summary;

/// What a program can be short of. Of two that are as bad, the first is named: it may be what causes the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Resource {
    /// CPU that the hypervisor gave to others.
    Steal,
    Memory,
    DiskIo,
    Cpu,
    Network,
}

/// A resource that is short, how badly, and by which signs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Finding {
    pub(crate) resource: Resource,
    pub(crate) severity: Severity,
    pub(crate) evidence: Vec<String>,
}

/// The worst one's; findings come worst first.
pub(crate) fn severity(findings: &[Finding]) -> Severity {
    findings.first().map_or(Severity::Info, |finding| finding.severity)
}

/// A process that takes less of a core isn't named.
const LEAST_BLAMED_PCT: f64 = 1.0;

/// How many of the processes that wait for a disk are named.
const BLOCKED_SHOWN: usize = 5;

/// The answer.
#[derive(Serialize)]
pub(crate) struct Report {
    /// `none` where nothing is short.
    bottleneck: Bottleneck,
    /// All that is short, the worst first.
    findings: Vec<Finding>,
    cores: u64,
    cpu_usage_pct: f64,
    steal_pct: f64,
    disk_io_wait_pct: f64,
    memory_available_mb: f64,
    memory_available_pct: f64,
    /// Over 1, 5 and 15 minutes.
    #[serde(skip_serializing_if = "Option::is_none")]
    load_average: Option<[f64; 3]>,
    /// By CPU, from 1% on and not since boot; by memory, where that is short.
    #[serde(skip_serializing_if = "Option::is_none")]
    top_process: Option<Top>,
    #[serde(skip_serializing_if = "Option::is_none")]
    busiest_disk: Option<Disk>,
    #[serde(skip_serializing_if = "Option::is_none")]
    busiest_interface: Option<Interface>,
    /// The first of those that wait for a disk, now.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    waiting_for_disk: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pressure: Option<Pressures>,
    /// How long the sample was, in seconds.
    over_s: f64,
    /// The resolution of CPU shares: so many percent of one core are one clock tick of the sample.
    #[serde(skip_serializing_if = "Option::is_none")]
    cpu_within_pct: Option<f64>,
    /// What couldn't be read, and why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    missing: Vec<String>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Bottleneck {
    None(&'static str),
    Resource(Resource),
}

pub(crate) fn bottleneck(args: SampleArgs, cx: &Context) -> Result<Analysis<Report>> {
    let mut machine = Machine::watch(cx, args.sample_ms)?;
    let findings = findings(&machine);
    let worst = findings.first().map(|finding| finding.resource);
    let sort = if worst == Some(Resource::Memory) { Sort::Memory } else { Sort::Cpu };
    let top_process = machine.top(cx, sort, 1).pop();
    let summary = summary(&machine, &findings, top_process.as_ref());
    let severity = severity(&findings);
    // Who did nothing isn't to blame, and who did much in its life isn't for the time since boot.
    let top_process = top_process
        .filter(|top| sort == Sort::Memory || (!machine.since_boot && top.cpu_pct >= LEAST_BLAMED_PCT));
    let mut waiting_for_disk = process::blocked(&machine.processes);
    waiting_for_disk.truncate(BLOCKED_SHOWN);
    let data = Report {
        bottleneck: worst.map_or(Bottleneck::None("none"), Bottleneck::Resource),
        findings,
        cores: machine.cpu.cores,
        cpu_usage_pct: machine.cpu.usage_pct,
        steal_pct: machine.cpu.steal_pct,
        disk_io_wait_pct: machine.cpu.iowait_pct,
        memory_available_mb: mib(machine.memory.available),
        memory_available_pct: tenth(machine.memory.available_pct()),
        load_average: machine.load.map(|load| load.averages),
        top_process,
        busiest_disk: machine.disks.into_iter().next().filter(|disk| disk.throughput() > 0.0),
        busiest_interface: machine.interfaces.into_iter().next().filter(|found| found.traffic() > 0.0),
        waiting_for_disk,
        pressure: machine.pressure,
        over_s: machine.over_s,
        cpu_within_pct: machine.cpu_within_pct,
        missing: machine.missing,
    };
    Ok(Analysis { data, summary, severity })
}
