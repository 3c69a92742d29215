//! `perf_overview`: shows the main figures of the machine.

use linux_sysadmin_sdk::prelude::*;

use crate::machine::Machine;
use crate::rounding::{is_zero, mib, tenth};
use crate::sample::SampleArgs;
use crate::sources::cpu::Usage;
use crate::sources::process::{ShownProcess, Sort};
use crate::tools::bottleneck::{findings, severity, summary};

/// The number of disks and processes in the answer.
const SHOWN: usize = 3;

/// The answer.
#[derive(Serialize)]
pub(crate) struct Overview {
    cpu: Usage,
    memory: Memory,
    /// The load averages over 1, 5 and 15 minutes.
    #[serde(skip_serializing_if = "Option::is_none")]
    load_average: Option<[f64; 3]>,
    /// The disks that were active, the busiest first.
    disks: Vec<DiskInShort>,
    /// The percentage of the last 10 s in which some task waited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pressure_pct: Option<PressureInShort>,
    /// The processes with the most CPU time.
    top: Vec<ShownProcess>,
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
struct Memory {
    total_mb: f64,
    available_mb: f64,
    /// The total without the available memory.
    used_pct: f64,
    /// The size of the swap. It is left out where there is none.
    #[serde(skip_serializing_if = "is_zero")]
    swap_total_mb: f64,
    #[serde(skip_serializing_if = "is_zero")]
    swap_used_mb: f64,
}

#[derive(Serialize)]
struct DiskInShort {
    device: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    read_kb_s: f64,
    write_kb_s: f64,
    util_pct: f64,
}

#[derive(Serialize)]
struct PressureInShort {
    #[serde(skip_serializing_if = "Option::is_none")]
    cpu: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    memory: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    io: Option<f64>,
}

pub(crate) fn overview(args: SampleArgs, cx: &Context) -> Result<Analysis<Overview>> {
    let mut machine = Machine::watch(cx, args.sample_ms)?;
    let top = machine.top(cx, Sort::Cpu, SHOWN);
    let findings = findings(&machine);
    let summary = summary(&machine, &findings, top.first());
    let disks = machine.disks.into_iter().filter(|disk| disk.throughput() > 0.0 || disk.util_pct > 0.0);
    let data = Overview {
        cpu: machine.cpu,
        memory: Memory {
            total_mb: mib(machine.memory.total),
            available_mb: mib(machine.memory.available),
            used_pct: tenth(machine.memory.used_pct()),
            swap_total_mb: mib(machine.memory.swap_total()),
            swap_used_mb: mib(machine.memory.swap_used()),
        },
        load_average: machine.load.map(|load| load.averages),
        disks: disks
            .take(SHOWN)
            .map(|disk| DiskInShort {
                device: disk.device,
                name: disk.name,
                read_kb_s: disk.read_kb_s,
                write_kb_s: disk.write_kb_s,
                util_pct: disk.util_pct,
            })
            .collect(),
        pressure_pct: machine.pressure.map(|pressure| PressureInShort {
            cpu: pressure.cpu.map(|cpu| cpu.some_now()),
            memory: pressure.memory.map(|memory| memory.some_now()),
            io: pressure.io.map(|io| io.some_now()),
        }),
        top,
        over_s: machine.over_s,
        cpu_within_pct: machine.cpu_within_pct,
        missing: machine.missing,
    };
    Ok(Analysis { data, summary, severity: severity(&findings) })
}
