//! Holds the CPUs of recorded machines against what lscpu says of the same trees, value by value. `fixtures/README.md` says
//! where both come from.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::path::Path;

use linux_sysadmin_sdk::testkit::FakeTarget;
use module_machine::module;
use serde_json::{Value, json};

fn fixture(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    std::fs::read_to_string(folder.join(name)).unwrap()
}

fn cpu(machine: &str) -> Value {
    let target = FakeTarget::new().recording(&fixture(&format!("{machine}.txt")));
    let (data, _) = target.call(&module(), "machine_info", json!({"sections": ["cpu"]})).unwrap();
    data["cpu"].clone()
}

/// lscpu's lines. A key stands in several lines where the CPUs differ.
fn lscpu(machine: &str) -> Vec<(String, String)> {
    let text = fixture(&format!("{machine}.lscpu"));
    let pairs = text.lines().filter_map(|line| line.split_once(':'));
    pairs.map(|(key, value)| (key.to_owned(), value.trim().to_owned())).collect()
}

/// `1.5 MiB (48 instances)` of lscpu and `32K x48` of the tool, in KiB.
fn size_of_all(text: &str) -> u64 {
    let (size, unit, count) = match text.split_once(" x") {
        Some((size, count)) => {
            (size.trim_end_matches('K').parse::<f64>().unwrap(), 1.0, count.parse().unwrap())
        }
        None => {
            let words: Vec<_> = text.split(' ').collect();
            let unit = if words[1] == "MiB" { 1024.0 } else { 1.0 };
            (words[0].parse().unwrap(), unit, 1.0)
        }
    };
    (size * unit * count) as u64
}

fn agrees(machine: &str, at_least: usize) {
    let cpu = cpu(machine);
    let mut compared = 0;
    for (key, value) in lscpu(machine) {
        let number = || json!(value.parse::<f64>().unwrap() as u64);
        let (found, expected) = match key.as_str() {
            "CPU(s)" => (cpu["cpus"].clone(), number()),
            "Off-line CPU(s) list" => (cpu["offline"].clone(), json!(value)),
            "Vendor ID" => (cpu["vendor"].clone(), json!(value)),
            // lscpu has no name for a mainframe. The tool leaves out the blanks that pad a name.
            "Model name" if value != "-" => {
                let words: Vec<_> = value.split_whitespace().collect();
                (cpu["model"].clone(), json!(words.join(" ")))
            }
            "Machine type" => (cpu["model"].clone(), json!(format!("machine type {value}"))),
            "Thread(s) per core" => (cpu["threads_per_core"].clone(), number()),
            "Core(s) per socket" => (cpu["cores_per_socket"].clone(), number()),
            "Socket(s)" => (cpu["sockets"].clone(), number()),
            "CPU max MHz" => (cpu["max_mhz"].clone(), number()),
            "CPU min MHz" => (cpu["min_mhz"].clone(), number()),
            "Virtualization" => (cpu["runs_vms_by"].clone(), json!(value)),
            "NUMA node(s)" if value == "1" => (cpu["numa_nodes"].clone(), Value::Null),
            "NUMA node(s)" => (json!(cpu["numa_nodes"].as_object().unwrap().len()), number()),
            _ if key.ends_with(" cache") => {
                let found = cpu["caches"][key.trim_end_matches(" cache")].as_str().unwrap();
                assert!(
                    value.contains(&format!("({} instance", found.split_once(" x").unwrap().1)),
                    "{machine}: {key}"
                );
                (json!(size_of_all(found)), json!(size_of_all(&value)))
            }
            _ if key.starts_with("NUMA node") && !cpu["numa_nodes"].is_null() => {
                let node = key.trim_start_matches("NUMA node").trim_end_matches(" CPU(s)");
                (cpu["numa_nodes"][node].clone(), json!(value))
            }
            _ => continue,
        };
        assert_eq!(found, expected, "{machine}: {key}: {cpu}");
        compared += 1;
    }
    assert!(compared >= at_least, "{machine}: only {compared} values were compared");
}

#[test]
fn machines_of_one_kind_of_cpu_agree_with_lscpu_value_by_value() {
    let table = [
        ("x86_64-epyc_7451", 21),
        ("x86_64-64cpu", 17),
        ("x86_64-dell_e4310", 13),
        ("vmware_fpe", 17),
        ("armv7", 8),
        ("ppc64-POWER7", 8),
        ("rv64-visionfive2", 9),
    ];
    for (machine, at_least) in table {
        agrees(machine, at_least);
    }
}

#[test]
fn cpus_that_are_offline_are_named_as_lscpu_names_them() {
    let cpu = cpu("s390-lpar");
    let lscpu: BTreeMap<_, _> = lscpu("s390-lpar").into_iter().collect();
    assert_eq!(cpu["offline"], lscpu["Off-line CPU(s) list"]);
    assert_eq!(cpu["cpus"].to_string(), lscpu["CPU(s)"]);
    assert_eq!(cpu["vendor"], lscpu["Vendor ID"]);
    assert_eq!(cpu["model"], format!("machine type {}", lscpu["Machine type"]));
}

#[test]
fn different_cpus_of_one_machine_are_counted_by_model_as_lscpu_does() {
    let cpu = cpu("arm-A510-A710-A715-X3");
    let lines = lscpu("arm-A510-A710-A715-X3");
    let all = |wanted: &str| {
        let values = lines.iter().filter(|(key, _)| key == wanted);
        values.map(|(_, value)| value.clone()).collect::<Vec<_>>()
    };
    let cores = all("Core(s) per socket").into_iter().map(|cores| json!(cores.parse::<u64>().unwrap()));
    let expected: serde_json::Map<_, _> = all("Model name").into_iter().zip(cores).collect();
    assert_eq!(cpu["model"], json!(expected));
    // Older kernels call the clusters of one chip sockets.
    assert_eq!((&cpu["sockets"], &cpu["cores_per_socket"]), (&Value::Null, &Value::Null));
    let mhz =
        |key: &str| all(key).into_iter().map(|mhz| mhz.parse::<f64>().unwrap() as u64).collect::<Vec<_>>();
    assert_eq!(cpu["max_mhz"], json!(mhz("CPU max MHz").into_iter().max()));
    assert_eq!(cpu["min_mhz"], json!(mhz("CPU min MHz").into_iter().min()));
    assert_eq!(cpu["vulnerable"], json!({"spectre_v2": "Unprivileged eBPF enabled"}));
}
