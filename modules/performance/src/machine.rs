//! The state of the whole machine over one sample, for the tools that analyze it.

use linux_sysadmin_sdk::{prelude::*, processes};

use crate::rounding::hundredth;
use crate::sample::Interval;
use crate::sources::cpu::{LOADAVG, Load, STAT, Stat, Usage};
use crate::sources::disk::{self, DISKSTATS, Disk};
use crate::sources::memory::{MEMINFO, Meminfo, VMSTAT, Vmstat};
use crate::sources::network::{self, Interface, NET_DEV};
use crate::sources::pressure::{self, Pressures};
use crate::sources::process::{self, Process, ShownProcess, Sort};

/// The state of a machine over a sample. Parts that a kernel or a container doesn't show are empty, and are named in
/// `missing`. Missing CPU or memory figures are an error.
pub(crate) struct Machine {
    pub(crate) cpu: Usage,
    /// The number of processes that now wait for a disk.
    pub(crate) blocked: u64,
    pub(crate) memory: Meminfo,
    pub(crate) load: Option<Load>,
    pub(crate) swapping: Swapping,
    pub(crate) pressure: Option<Pressures>,
    /// The disks. The busiest comes first.
    pub(crate) disks: Vec<Disk>,
    /// The interfaces. The busiest comes first.
    pub(crate) interfaces: Vec<Interface>,
    /// The processes, in no particular order.
    pub(crate) processes: Vec<Process>,
    /// The length of the sample or the time since boot, in seconds.
    pub(crate) over_s: f64,
    /// The resolution of CPU shares, in percent of one core. None for averages since boot.
    pub(crate) cpu_within_pct: Option<f64>,
    /// True where rates are averages since boot, which must not be mixed with figures of the present.
    pub(crate) since_boot: bool,
    pub(crate) missing: Vec<String>,
}

/// Swapping over the sample.
#[derive(Clone, Copy, Default)]
pub(crate) struct Swapping {
    pub(crate) pages_in_s: f64,
    pub(crate) pages_out_s: f64,
    /// The number of OOM kills within the sample.
    pub(crate) oom_kills: u64,
}

impl Machine {
    pub(crate) fn watch(cx: &Context, sample_ms: Option<u32>) -> Result<Self> {
        let interval = Interval::take(cx, sample_ms, || {
            let files = [
                STAT,
                MEMINFO,
                LOADAVG,
                VMSTAT,
                DISKSTATS,
                NET_DEV,
                pressure::CPU,
                pressure::MEMORY,
                pressure::IO,
            ];
            let mut paths = files.map(str::to_owned).to_vec();
            // Where `/proc` can't be listed, only the processes are missing.
            paths.extend(processes::stat_paths(cx).unwrap_or_default());
            Ok(paths)
        })?;
        let (before, after) = interval.both(STAT, Stat::parse)?;
        let memory = Meminfo::parse(interval.after.text(MEMINFO)?)?;
        let mut missing = Vec::new();
        let load = kept(interval.after.text(LOADAVG).and_then(Load::parse), &mut missing);
        let swapping = kept(swapping(&interval), &mut missing).unwrap_or_default();
        let disks = kept(disk::disks(&interval, disk::listed(cx).as_ref()), &mut missing);
        let mut disks = disks.map(|(disks, _)| disks).unwrap_or_default();
        disk::name(cx, &mut disks);
        let interfaces = kept(network::interfaces(&interval, cx), &mut missing).unwrap_or_default();
        Ok(Self {
            cpu: Usage::between(before.as_ref(), &after),
            blocked: after.blocked.unwrap_or(0),
            memory,
            load,
            swapping,
            pressure: Pressures::of(&interval.after),
            disks,
            interfaces,
            processes: process::processes(&interval),
            over_s: hundredth(interval.seconds),
            cpu_within_pct: interval.cpu_within_pct(),
            since_boot: interval.before.is_none(),
            missing,
        })
    }

    /// The period of the rates as text. Empty for a sample.
    pub(crate) fn period(&self) -> &'static str {
        if self.since_boot { " on average since boot" } else { "" }
    }

    /// The CPU time of programs and of the kernel on their behalf, where 100 is one core. Interrupts and steal are left out,
    /// because they belong to no process.
    pub(crate) fn used_by_programs(&self) -> f64 {
        (self.cpu.user_pct + self.cpu.nice_pct + self.cpu.system_pct) * self.cpu.cores as f64
    }

    /// The first processes by CPU or memory.
    pub(crate) fn top(&mut self, cx: &Context, sort: Sort, count: usize) -> Vec<ShownProcess> {
        process::sort(&mut self.processes, sort);
        let first = self.processes.iter().take(count).cloned().collect();
        process::look_up(cx, first)
    }
}

fn swapping(interval: &Interval) -> Result<Swapping> {
    let (before, after) = interval.both(VMSTAT, Vmstat::parse)?;
    let oom_kills = match &before {
        Some(before) => after.oom_kills.unwrap_or(0).saturating_sub(before.oom_kills.unwrap_or(0)),
        None => 0,
    };
    let before = before.unwrap_or_default();
    Ok(Swapping {
        pages_in_s: interval.rate(before.swapped_in, after.swapped_in),
        pages_out_s: interval.rate(before.swapped_out, after.swapped_out),
        oom_kills,
    })
}

fn kept<T>(part: Result<T>, missing: &mut Vec<String>) -> Option<T> {
    part.map_err(|problem| missing.push(problem.message)).ok()
}
