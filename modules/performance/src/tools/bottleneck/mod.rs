//! `perf_bottleneck`: names the resource that limits the machine.
//!
//! Each resource is compared with the thresholds of [`rules`], and the worst one is the bottleneck. Counters don't show
//! locks or slow services elsewhere, and so these are never named.

mod rules;
mod summary_text;

use linux_sysadmin_sdk::prelude::*;

use crate::machine::Machine;
use crate::rounding::{mib, tenth};
use crate::sample::SampleArgs;
use crate::sources::disk::Disk;
use crate::sources::network::Interface;
use crate::sources::pressure::Pressures;
use crate::sources::process::{self, ShownProcess, Sort};

pub(crate) use rules::findings;
pub(crate) use summary_text::summary;

/// The resources that can be short. Where two are equally bad, the first in this order is named, because it may cause the
/// other.
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

/// A resource that is short, with the severity and the evidence.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Finding {
    pub(crate) resource: Resource,
    pub(crate) severity: Severity,
    pub(crate) evidence: Vec<String>,
}

/// The severity of the worst finding, which comes first.
pub(crate) fn severity(findings: &[Finding]) -> Severity {
    findings.first().map_or(Severity::Info, |finding| finding.severity)
}

/// A process with a smaller CPU share is not named.
const LEAST_BLAMED_PCT: f64 = 1.0;

/// The number of processes waiting for a disk that are named.
const BLOCKED_SHOWN: usize = 5;

/// The answer.
#[derive(Serialize)]
pub(crate) struct Report {
    /// The worst resource, or `none` where nothing is short.
    bottleneck: Bottleneck,
    /// All resources that are short, the worst first.
    findings: Vec<Finding>,
    cores: u64,
    cpu_usage_pct: f64,
    steal_pct: f64,
    disk_io_wait_pct: f64,
    memory_available_mb: f64,
    memory_available_pct: f64,
    /// The load averages over 1, 5 and 15 minutes.
    #[serde(skip_serializing_if = "Option::is_none")]
    load_average: Option<[f64; 3]>,
    /// The process with the most CPU time, from 1% on and not for averages since boot. Where memory is short, it is the
    /// process with the most memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    top_process: Option<ShownProcess>,
    #[serde(skip_serializing_if = "Option::is_none")]
    busiest_disk: Option<Disk>,
    #[serde(skip_serializing_if = "Option::is_none")]
    busiest_interface: Option<Interface>,
    /// The first processes that now wait for a disk.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    waiting_for_disk: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pressure: Option<Pressures>,
    /// The length of the sample, in seconds.
    over_s: f64,
    /// The resolution of CPU shares: the percentage of one core that one clock tick of the sample stands for.
    #[serde(skip_serializing_if = "Option::is_none")]
    cpu_within_pct: Option<f64>,
    /// The parts that couldn't be read, with the reasons.
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
    // An idle process isn't the cause. Neither is one with a high average over its own life, for averages since boot.
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
