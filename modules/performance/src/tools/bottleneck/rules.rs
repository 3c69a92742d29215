//! The thresholds. One sign is enough, and the worst sign decides how short a resource is. Pressure stall information is
//! the best sign, because it measures the time that was lost and not the use. Where the other figures are averages since
//! boot, figures of the present (pressure, load, processes waiting for a disk) are no evidence.
//!
//! | resource | sign | warning | high | critical |
//! |---|---|---|---|---|
//! | steal | steal, % of CPU time | 10 | 25 | 50 |
//! | memory | available below, % and MiB both | 10, 4096 | 5, 2048 | 2, 1024 |
//! | | pages swapped in, per second | 100 | 1000 | |
//! | | pressure: some, % of 10 s | 10 | 30 | |
//! | | pressure: full, % of 10 s | 5 | 15 | 40 |
//! | | a process killed for want of memory | | | any |
//! | disk I/O | iowait, % of CPU time | 10 | 25 | 50 |
//! | | busiest disk, % of the time and ms per request | 90, 20 | 95, 100 | |
//! | | pressure: some, % of 10 s | 20 | 50 | |
//! | | pressure: full, % of 10 s | 10 | 30 | 70 |
//! | CPU | usage, % | 80 | 90 | |
//! | | usage at least 90 %, and load per core | | | 4 |
//! | | pressure: some, % of 10 s | 40 | 80 | |
//! | network | % of an interface's speed | 70 | 90 | |
//! | | lost, % of its packets, and 10 at least | 1 | 5 | |

use std::cmp::Reverse;

use linux_sysadmin_sdk::Severity;

use super::{Finding, Resource};
use crate::machine::Machine;
use crate::rounding::{mib, percent};
use crate::sources::pressure::Pressures;

/// A threshold that nothing reaches.
const NEVER: f64 = f64::INFINITY;

/// The values from which on a sign is a warning, high, and critical.
type Steps = [f64; 3];

fn grade(value: f64, [warning, high, critical]: Steps) -> Option<Severity> {
    match value {
        _ if value >= critical => Some(Severity::Critical),
        _ if value >= high => Some(Severity::High),
        _ if value >= warning => Some(Severity::Warning),
        _ => None,
    }
}

/// The signs of one resource.
struct Signs {
    resource: Resource,
    severity: Option<Severity>,
    evidence: Vec<String>,
}

impl Signs {
    fn of(resource: Resource) -> Self {
        Self { resource, severity: None, evidence: Vec::new() }
    }

    fn sign(mut self, severity: Option<Severity>, says: impl FnOnce() -> String) -> Self {
        if severity.is_some() {
            self.severity = self.severity.max(severity);
            self.evidence.push(says());
        }
        self
    }

    fn finding(self) -> Option<Finding> {
        Some(Finding { resource: self.resource, severity: self.severity?, evidence: self.evidence })
    }
}

/// The resources that are short, the worst first.
pub(crate) fn findings(machine: &Machine) -> Vec<Finding> {
    let mut found = [steal(machine), memory(machine), disk_io(machine), cpu(machine), network(machine)]
        .into_iter()
        .filter_map(Signs::finding)
        .collect::<Vec<_>>();
    found.sort_by_key(|finding| (Reverse(finding.severity), finding.resource));
    found
}

/// The pressure, where it counts as evidence. It always covers the last 10 s, and so it doesn't for averages since boot.
fn evident(machine: &Machine) -> Option<Pressures> {
    machine.pressure.filter(|_| !machine.since_boot)
}

fn steal(machine: &Machine) -> Signs {
    let steal = machine.cpu.steal_pct;
    Signs::of(Resource::Steal).sign(grade(steal, [10.0, 25.0, 50.0]), || {
        format!("{steal}% of CPU time was given to others{}", machine.period())
    })
}

fn memory(machine: &Machine) -> Signs {
    let (available_pct, available_mb) = (machine.memory.available_pct(), mib(machine.memory.available));
    let below = |pct, mb| available_pct < pct && available_mb < mb;
    let low = match () {
        _ if below(2.0, 1024.0) => Some(Severity::Critical),
        _ if below(5.0, 2048.0) => Some(Severity::High),
        _ if below(10.0, 4096.0) => Some(Severity::Warning),
        _ => None,
    };
    let (pages_in, pages_out) = (machine.swapping.pages_in_s, machine.swapping.pages_out_s);
    let kills = machine.swapping.oom_kills;
    let period = machine.period();
    let pressure = evident(machine).and_then(|pressure| pressure.memory);
    let (some, full) = pressure.map_or((0.0, 0.0), |pressure| (pressure.some_now(), pressure.full_now()));
    Signs::of(Resource::Memory)
        .sign(low, || format!("{available_pct:.1}% ({available_mb:.0} MiB) of memory is available"))
        .sign(grade(pages_in, [100.0, 1000.0, NEVER]), || {
            format!("{pages_in:.0} pages/s are read back from swap, {pages_out:.0} written{period}")
        })
        .sign(grade(full, [5.0, 15.0, 40.0]), || {
            format!("everything waited for memory {full}% of the last 10 s")
        })
        .sign(grade(some, [10.0, 30.0, NEVER]), || {
            format!("something waited for memory {some}% of the last 10 s")
        })
        .sign((kills > 0).then_some(Severity::Critical), || {
            format!("the kernel killed {kills} within the sample for want of memory")
        })
}

fn disk_io(machine: &Machine) -> Signs {
    let iowait = machine.cpu.iowait_pct;
    let period = machine.period();
    let pressure = evident(machine).and_then(|pressure| pressure.io);
    let (some, full) = pressure.map_or((0.0, 0.0), |pressure| (pressure.some_now(), pressure.full_now()));
    let mut signs = Signs::of(Resource::DiskIo)
        .sign(grade(iowait, [10.0, 25.0, 50.0]), || {
            format!("CPUs were idle for I/O {iowait}% of the time{period}")
        })
        .sign(grade(full, [10.0, 30.0, 70.0]), || {
            format!("everything waited for I/O {full}% of the last 10 s")
        })
        .sign(grade(some, [20.0, 50.0, NEVER]), || {
            format!("something waited for I/O {some}% of the last 10 s")
        });
    if let Some(disk) = machine.disks.first() {
        let (util, wait) = (disk.util_pct, disk.await_ms());
        let slow = match () {
            _ if util >= 95.0 && wait >= 100.0 => Some(Severity::High),
            _ if util >= 90.0 && wait >= 20.0 => Some(Severity::Warning),
            _ => None,
        };
        signs = signs.sign(slow, || {
            format!("{} was busy {util}% of the time, {wait} ms a request{period}", disk.device)
        });
    }
    let blocked = machine.blocked;
    if signs.severity.is_some() && blocked > 0 && !machine.since_boot {
        signs.evidence.push(format!("processes waiting for a disk: {blocked}"));
    }
    signs
}

fn cpu(machine: &Machine) -> Signs {
    let usage = machine.cpu.usage_pct;
    let load = machine.load.as_ref().map_or(0.0, |load| load.averages[0]) / machine.cpu.cores as f64;
    let period = machine.period();
    let queue = (usage >= 90.0 && !machine.since_boot).then(|| grade(load, [NEVER, NEVER, 4.0])).flatten();
    let some = evident(machine).and_then(|pressure| pressure.cpu).map_or(0.0, |pressure| pressure.some_now());
    Signs::of(Resource::Cpu)
        .sign(grade(usage, [80.0, 90.0, NEVER]), || format!("CPU usage is {usage}%{period}"))
        .sign(queue, || format!("the load is {load:.1} per core"))
        .sign(grade(some, [40.0, 80.0, NEVER]), || {
            format!("something waited for CPU {some}% of the last 10 s")
        })
}

fn network(machine: &Machine) -> Signs {
    let period = machine.period();
    let since = if machine.since_boot { " since boot" } else { "" };
    machine.interfaces.iter().fold(Signs::of(Resource::Network), |signs, found| {
        let (name, util) = (&found.interface, found.util_pct.unwrap_or(0.0));
        let losses = found.new_losses;
        let lost = percent(losses as f64, found.packets.saturating_add(losses) as f64);
        let lossy = (losses >= 10).then(|| grade(lost, [1.0, 5.0, NEVER])).flatten();
        signs
            .sign(grade(util, [70.0, 90.0, NEVER]), || format!("{name} is at {util}% of its speed{period}"))
            .sign(lossy, || format!("{name} lost {lost:.1}% of its packets ({losses}){since}"))
    })
}
