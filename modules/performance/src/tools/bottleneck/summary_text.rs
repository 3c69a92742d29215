//! The text of the summary: which resource is short and which process causes that, which resources are not short, and
//! whether the load rises or falls.

use linux_sysadmin_sdk::Severity;

use super::{Finding, Resource};
use crate::machine::Machine;
use crate::rounding::percent;
use crate::sources::process::ShownProcess;

/// The usage from which on a core counts as full.
const FULL_CORE_PCT: f64 = 95.0;

/// The summary, in a few sentences. `top` is the process that may be the cause.
pub(crate) fn summary(machine: &Machine, findings: &[Finding], top: Option<&ShownProcess>) -> String {
    let mut sentences = Vec::new();
    let period = machine.period();
    match findings.split_first() {
        None => sentences.push(format!(
            "No bottleneck: CPU usage is {}%{period}, {:.0}% of memory is available{}.",
            machine.cpu.usage_pct,
            machine.memory.available_pct(),
            machine
                .disks
                .first()
                .map_or(String::new(), |disk| format!(", the busiest disk is at {}%{period}", disk.util_pct)),
        )),
        Some((worst, others)) => {
            sentences.push(blame(machine, worst, top));
            if !others.is_empty() {
                let also = others
                    .iter()
                    .map(|finding| format!("{} ({})", name(finding.resource), finding.evidence.join(", ")));
                sentences.push(format!("Also short: {}.", also.collect::<Vec<_>>().join("; ")));
            }
            sentences.extend(healthy(findings));
        }
    }
    let cpu_is_short =
        findings.iter().any(|finding| matches!(finding.resource, Resource::Cpu | Resource::Steal));
    if let (Some(core), false) =
        (machine.cpu.busiest_core.filter(|core| core.usage_pct >= FULL_CORE_PCT), cpu_is_short)
    {
        sentences.push(format!(
            "Core {} alone is full ({}%{period}): one thread may be at its limit.",
            core.core, core.usage_pct
        ));
    }
    sentences.extend(unseen(machine));
    sentences.extend(at_present(machine));
    if let Some(load) = &machine.load {
        let [one, ..] = load.averages;
        let per_core = one / machine.cpu.cores as f64;
        sentences
            .push(format!("Load average {one:.2} is {per_core:.2} per core and {}.", trend(load.averages)));
    }
    sentences.join(" ")
}

fn blame(machine: &Machine, worst: &Finding, top: Option<&ShownProcess>) -> String {
    let evidence = worst.evidence.join(", ");
    let degree = if worst.severity == Severity::Warning { "likely" } else { "primary" };
    match worst.resource {
        Resource::Cpu => {
            let cores = machine.cpu.cores;
            // The average over a process's life says nothing about the time since boot.
            let culprit = top.filter(|_| !machine.since_boot).and_then(|top| {
                let used = machine.cpu.usage_pct * cores as f64;
                let how = match top.cpu_pct / used {
                    part if part >= 0.8 => "driven almost entirely by",
                    part if part >= 0.5 => "driven mostly by",
                    part if part >= 0.1 => "most of all by",
                    // Short-lived or hidden processes use the CPU, and none can be named.
                    _ => return None,
                };
                Some(format!(", {how} {} (PID {}, {}% of one core)", top.name, top.process.pid, top.cpu_pct))
            });
            format!(
                "CPU is the {degree} bottleneck at {}% of {cores} core{}{}{}{}.",
                machine.cpu.usage_pct,
                if cores == 1 { "" } else { "s" },
                machine.period(),
                // The finding comes from waiting tasks and not from the usage.
                if machine.cpu.usage_pct < 80.0 { format!(" ({evidence})") } else { String::new() },
                culprit.unwrap_or_default()
            )
        }
        Resource::Steal => format!("The hypervisor is the {degree} bottleneck: {evidence}."),
        Resource::Memory => {
            let culprit = top.and_then(|top| {
                Some(format!(
                    " The largest process is {} (PID {}, {} MiB).",
                    top.name, top.process.pid, top.memory_mb?
                ))
            });
            format!("Memory is the {degree} bottleneck: {evidence}.{}", culprit.unwrap_or_default())
        }
        Resource::DiskIo => format!("Disk I/O is the {degree} bottleneck: {evidence}."),
        Resource::Network => format!("The network is the {degree} bottleneck: {evidence}."),
    }
}

/// A sentence on CPU time that no visible process accounts for. Less than half a core may be chance, and is not mentioned.
fn unseen(machine: &Machine) -> Option<String> {
    let used = machine.used_by_programs();
    let seen = machine.processes.iter().map(|process| process.cpu_pct).sum::<f64>();
    (!machine.since_boot && used >= 50.0 && seen < used / 2.0).then(|| {
        format!(
            "Visible processes account for only {:.0}% of the CPU time used; the rest is of short-lived ones or of ones outside this container.",
            percent(seen, used)
        )
    })
}

/// A sentence on the present pressure, where all other figures are averages since boot.
fn at_present(machine: &Machine) -> Option<String> {
    let pressures = machine.pressure.filter(|_| machine.since_boot)?;
    let all = [("CPU", pressures.cpu), ("memory", pressures.memory), ("I/O", pressures.io)];
    let waits = all
        .into_iter()
        .filter_map(|(of, pressure)| Some((of, pressure?.some_now())))
        .filter(|(_, some)| *some >= 10.0)
        .map(|(of, some)| format!("for {of} {some}%"))
        .collect::<Vec<_>>();
    (!waits.is_empty())
        .then(|| format!("At present, something waited {} of the last 10 s.", waits.join(", ")))
}

fn name(resource: Resource) -> &'static str {
    match resource {
        Resource::Steal => "CPU given to others",
        Resource::Memory => "memory",
        Resource::DiskIo => "disk I/O",
        Resource::Cpu => "CPU",
        Resource::Network => "network",
    }
}

fn healthy(findings: &[Finding]) -> Option<String> {
    let all = [Resource::Cpu, Resource::Memory, Resource::DiskIo, Resource::Network];
    let well =
        all.into_iter().filter(|resource| findings.iter().all(|finding| finding.resource != *resource));
    let names = well.map(name).collect::<Vec<_>>();
    let (last, first) = names.split_last()?;
    let sentence = match first {
        [] => format!("{last} is healthy."),
        first => format!("{} and {last} are healthy.", first.join(", ")),
    };
    let mut letters = sentence.chars();
    Some(letters.next()?.to_uppercase().chain(letters).collect())
}

/// The trend of the load, from its averages over 1, 5 and 15 minutes. A difference below 0.3 is noise.
fn trend([one, five, fifteen]: [f64; 3]) -> &'static str {
    let rises = |from: f64, to: f64, by: f64| to >= from * by && to - from >= 0.3;
    match () {
        _ if one >= five && five >= fifteen && rises(fifteen, one, 1.25) => "rising over the last 15 minutes",
        _ if one <= five && five <= fifteen && rises(one, fifteen, 1.25) => {
            "falling over the last 15 minutes"
        }
        _ if rises(five, one, 1.5) => "rising in the last minutes",
        _ if rises(one, five, 1.5) => "falling in the last minutes",
        _ => "steady",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_trend_is_that_of_the_averages() {
        let table = [
            ([8.7, 6.2, 4.1], "rising over the last 15 minutes"),
            ([4.1, 6.2, 8.7], "falling over the last 15 minutes"),
            ([13.37, 15.82, 16.64], "steady"),
            ([7.48, 7.13, 6.82], "steady"),
            ([9.0, 3.0, 5.0], "rising in the last minutes"),
            ([1.0, 6.0, 5.0], "falling in the last minutes"),
            ([0.2, 0.1, 0.05], "steady"),
            ([0.0, 0.0, 0.0], "steady"),
        ];
        for (averages, expected) in table {
            assert_eq!(trend(averages), expected, "{averages:?}");
        }
    }
}
