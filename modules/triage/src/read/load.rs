//! What makes the machine slow, and the process that does.

use linux_sysadmin_sdk::Severity;
use serde_json::{Value, json};

use crate::call::{Call, Form};
use crate::envelope::{Envelope, count, list, number, raw, said, severity, strings};
use crate::finding::{Finding, Kind};
use crate::moment;
use crate::notebook::Notebook;

/// A process that takes this share of one core is told where nothing else is wrong, in percent.
const RUNAWAY: f64 = 90.0;

/// Swap that is full to this share is told, in percent.
const SWAP_FULL: f64 = 90.0;

/// Reads `perf_bottleneck`.
pub(crate) fn bottleneck(envelope: Envelope<'_>, _: &str, notebook: &mut Notebook<'_>) {
    let data = envelope.data();
    let top = &data["top_process"];
    let mut is_first = true;
    for found in list(data, "findings") {
        let Some(resource) = raw(found, "resource") else { continue };
        let (what, call) = match resource {
            "cpu" => {
                ("the CPU is the bottleneck", Call::new("perf_top_processes").with("sort", json!("cpu")))
            }
            "memory" => ("memory is short", Call::new("perf_top_processes").with("sort", json!("memory"))),
            "disk_io" => ("the disks are the bottleneck", Call::new("perf_disk_io")),
            "network" => ("the network is the bottleneck", Call::new("perf_network_io")),
            "steal" => ("the hypervisor gives the CPU to others", Call::new("perf_overview")),
            _ => continue,
        };
        let mut finding = Finding::new(Kind::Slow, severity(raw(found, "severity")), what).call([Some(call)]);
        if resource == "network" {
            finding = finding.fits(&[Kind::Network]);
        }
        for line in strings(found, "evidence").take(2) {
            finding = finding.evidence(line);
        }
        // The process is that of the worst resource only.
        if is_first && let Some(process) = process(top) {
            finding = by(finding, top, notebook).cause(format!("most of it by {process}"));
        }
        is_first = false;
        notebook.add(finding);
    }
    if is_first
        && number(top, "cpu_pct").is_some_and(|share| share >= RUNAWAY)
        && let Some(process) = process(top)
    {
        let finding =
            Finding::new(Kind::Slow, Severity::Warning, "a process takes a whole core").evidence(process);
        notebook.add(by(finding, top, notebook));
    }
}

/// Adds the names of a process, its start, and the call that shows it.
fn by(mut finding: Finding, top: &Value, notebook: &Notebook<'_>) -> Finding {
    finding.names.extend(["unit", "user"].into_iter().filter_map(|name| said(top, name)));
    let shows = Call::new("proc_info").of("pid", Form::Pid, &count(top, "pid").to_string());
    finding.call = shows.or(finding.call);
    let started = raw(top, "started").and_then(|time| moment::parse(time, notebook.is_utc));
    finding.since(started)
}

/// A process in a few words: its command, number, unit, account and CPU share.
fn process(top: &Value) -> Option<String> {
    let command = linux_sysadmin_sdk::text::excerpt(raw(top, "command")?, 80);
    let whose: Vec<String> = ["unit", "user"].into_iter().filter_map(|name| said(top, name)).collect();
    let share = number(top, "cpu_pct").map(|share| format!(", {share:.0} % of a core")).unwrap_or_default();
    Some(format!("{command} (PID {}, {}{share})", count(top, "pid"), whose.join(", ")))
}

/// Reads `perf_memory`.
pub(crate) fn memory(envelope: Envelope<'_>, _: &str, notebook: &mut Notebook<'_>) {
    let data = envelope.data();
    let kills = count(data, "oom_kills");
    if kills > 0 {
        let what = format!("{kills} processes were killed for want of memory since the start of the machine");
        let finding = Finding::new(Kind::Slow, Severity::Warning, what).call([Some(
            Call::new("log_search").with("pattern", json!("Killed process")).with("since", json!("7d")),
        )]);
        notebook.add(finding);
    }
    let swap = &data["swap"];
    if let (Some(total), Some(used)) = (number(swap, "total_mb"), number(swap, "used_mb"))
        && total > 0.0
        && used / total * 100.0 >= SWAP_FULL
    {
        let finding = Finding::new(Kind::Slow, Severity::Warning, "swap is full")
            .evidence(format!("{used:.0} of {total:.0} MiB are used"))
            .call([Some(Call::new("swap_list"))]);
        notebook.add(finding);
    }
}
