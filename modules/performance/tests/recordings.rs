//! Compares the answers of the tools with recorded `/proc` and `/sys` trees, value by value. `fixtures/README.md` says where
//! the recordings come from and how the expected values were computed.
#![allow(clippy::unwrap_used)]

use std::path::Path;

use linux_sysadmin_sdk::testkit::FakeTarget;
use module_performance::module;
use serde_json::{Value, json};

/// Calls a tool. A call without a sample sees the machine as at the end of the recording.
fn recorded(machine: &str, arguments: &Value) -> FakeTarget {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(machine);
    let read = |name| std::fs::read_to_string(folder.join(name)).ok();
    let (first, later) = (read("0.txt").unwrap(), read("1.txt").unwrap_or_default());
    if arguments["sample_ms"].as_u64().unwrap_or(0) == 0 {
        return FakeTarget::new().recording(&format!("{first}\n{later}"));
    }
    FakeTarget::new().recording(&first).recording(&later)
}

fn expected(machine: &str) -> Vec<Value> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(machine);
    serde_json::from_str(&std::fs::read_to_string(folder.join("expected.json")).unwrap()).unwrap()
}

/// All differences between two values, with their paths.
fn differences(place: &str, expected: &Value, found: &Value, all: &mut Vec<String>) {
    match (expected, found) {
        (Value::Object(expected), Value::Object(found)) => {
            let names = expected.keys().chain(found.keys()).collect::<std::collections::BTreeSet<_>>();
            for name in names {
                let value =
                    |of: &serde_json::Map<String, Value>| of.get(name).cloned().unwrap_or(json!("left out"));
                differences(&format!("{place}.{name}"), &value(expected), &value(found), all);
            }
        }
        (Value::Array(expected), Value::Array(found)) if expected.len() == found.len() => {
            for (n, (expected, found)) in expected.iter().zip(found).enumerate() {
                differences(&format!("{place}[{n}]"), expected, found, all);
            }
        }
        // Both values are rounded, and so only the last bit of the binary fraction may differ.
        (Value::Number(expected), Value::Number(found))
            if (expected.as_f64().unwrap() - found.as_f64().unwrap()).abs() < 1e-9 => {}
        _ if expected == found => {}
        _ => all.push(format!("{place}: expected {expected}, found {found}")),
    }
}

fn agrees(machine: &str) {
    let mut all = Vec::new();
    for call in expected(machine) {
        let tool = call["tool"].as_str().unwrap();
        let (mut data, _) =
            recorded(machine, &call["arguments"]).call(&module(), tool, call["arguments"].clone()).unwrap();
        if tool == "perf_bottleneck" {
            // These members are judgements. Another test checks them.
            let report = data.as_object_mut().unwrap();
            assert!(report.remove("bottleneck").is_some() && report.remove("findings").is_some());
        }
        differences(&format!("{tool}({})", call["arguments"]), &call["data"], &data, &mut all);
    }
    assert!(all.is_empty(), "{machine}:\n{}", all.join("\n"));
}

#[test]
fn a_small_virtual_machine_agrees_value_by_value() {
    agrees("small-vm");
}

#[test]
fn an_arm_board_agrees_value_by_value() {
    agrees("arm-board");
}

#[test]
fn a_machine_of_32_cpus_agrees_value_by_value() {
    agrees("many-cores");
}

#[test]
fn a_server_of_24_cpus_agrees_value_by_value() {
    agrees("server-24");
}

#[test]
fn disks_of_a_current_kernel_agree_value_by_value() {
    agrees("nvme-workstation");
}

#[test]
fn disks_of_an_old_kernel_agree_value_by_value() {
    agrees("database-2012");
}

#[test]
fn every_tool_was_compared_on_the_three_kinds_of_machine() {
    let tools = module().description().tools.into_iter().map(|tool| tool.name).collect::<Vec<_>>();
    let compared = |machine| {
        let names = expected(machine)
            .iter()
            .map(|call| call["tool"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>();
        tools.iter().filter(|tool| !names.contains(tool)).cloned().collect::<Vec<_>>()
    };
    assert_eq!(compared("small-vm"), Vec::<String>::new());
    assert_eq!(compared("arm-board"), Vec::<String>::new());
    // The recording of this machine has no disks and no processes.
    assert_eq!(compared("many-cores"), ["perf_top_processes", "perf_disk_io"]);
}

#[test]
fn the_judgement_on_each_machine_is_as_a_person_would_make_it() {
    // Each row has the machine, the sample, the bottleneck, the severity, and the beginning and end of the summary.
    let table = [
        (
            "small-vm",
            1220,
            "cpu",
            "high",
            "CPU is the primary bottleneck at 99.2% of 2 cores, most of all by python3 (PID 7365, 80.3% of one core).",
            "Load average 1.60 is 0.80 per core and rising over the last 15 minutes.",
        ),
        (
            "small-vm",
            0,
            "none",
            "info",
            "No bottleneck: CPU usage is 44.4% on average since boot, 96% of memory is available, the busiest disk is at 2.3% on average since boot.",
            "Load average 1.60 is 0.80 per core and rising over the last 15 minutes.",
        ),
        (
            "arm-board",
            0,
            "cpu",
            "high",
            "CPU is the primary bottleneck at 97% of 2 cores on average since boot. Memory, disk I/O and network are healthy.",
            "Load average 7.48 is 3.74 per core and steady.",
        ),
        (
            "many-cores",
            0,
            "none",
            "info",
            "No bottleneck: CPU usage is 0.7% on average since boot, 91% of memory is available.",
            "Load average 0.33 is 0.01 per core and steady.",
        ),
        (
            "server-24",
            1000,
            "none",
            "info",
            "No bottleneck: CPU usage is 4.5%, 83% of memory is available.",
            "Load average 13.37 is 0.56 per core and steady.",
        ),
    ];
    for (machine, sample_ms, bottleneck, severity, first, last) in table {
        let arguments = json!({"sample_ms": sample_ms});
        let (data, reply) =
            recorded(machine, &arguments).call(&module(), "perf_bottleneck", arguments.clone()).unwrap();
        assert_eq!(data["bottleneck"], bottleneck, "{machine}");
        assert_eq!(reply.severity.as_deref(), Some(severity), "{machine}");
        let summary = reply.summary.unwrap();
        assert!(summary.starts_with(first) && summary.ends_with(last), "{machine}: {summary}");
        let (_, overview) =
            recorded(machine, &arguments).call(&module(), "perf_overview", arguments).unwrap();
        assert_eq!(overview.severity.as_deref(), Some(severity), "{machine}");
        assert_eq!(overview.summary.unwrap(), summary, "{machine}");
    }
}
