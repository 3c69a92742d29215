//! Holds what `machine_info` says of a real host against lscpu, lsblk, hostnamectl, systemd-detect-virt and `/proc`.

use linux_sysadmin_tests::{Changing, way};
use serde_json::{Value, json};

#[tokio::test]
async fn the_machine_is_as_other_programs_say() {
    let test = "the_machine_is_as_other_programs_say";
    let Some(machine) = Changing::by(way(), test, "", "") else { return };
    let mut client = machine.serve_default().await;
    let envelope = client.envelope("machine_info", json!({})).await;
    let data = &envelope["data"];
    let said = |script: &str| machine.sh(script).trim().to_owned();

    let lscpu: Value = serde_json::from_str(&said("LC_ALL=C lscpu --json")).expect("JSON");
    let of_lscpu = |field: &str| {
        // Newer versions of lscpu nest their fields.
        fn find(fields: &Value, field: &str) -> Option<String> {
            fields.as_array()?.iter().find_map(|entry| {
                let is_it = entry["field"] == format!("{field}:");
                is_it
                    .then(|| entry["data"].as_str().map(str::to_owned))
                    .flatten()
                    .or_else(|| find(&entry["children"], field))
            })
        }
        find(&lscpu["lscpu"], field).unwrap_or_else(|| panic!("{field}: {lscpu}"))
    };
    for (member, field) in [
        ("cpus", "CPU(s)"),
        ("sockets", "Socket(s)"),
        ("cores_per_socket", "Core(s) per socket"),
        ("threads_per_core", "Thread(s) per core"),
    ] {
        assert_eq!(data["cpu"][member].to_string(), of_lscpu(field), "{field}: {envelope}");
    }
    assert_eq!(data["cpu"]["vendor"], of_lscpu("Vendor ID"));
    assert_eq!(data["cpu"]["model"], of_lscpu("Model name"));
    let vulnerable = said("cd /sys/devices/system/cpu/vulnerabilities && grep -l ^Vulnerable *; true");
    let named: Vec<&str> = data["cpu"]["vulnerable"]
        .as_object()
        .map(|all| all.keys().map(String::as_str).collect())
        .unwrap_or_default();
    assert_eq!(named, vulnerable.lines().collect::<Vec<_>>());

    let system = &data["system"];
    assert_eq!(system["hostname"], said("uname -n"));
    assert_eq!(system["kernel"], said("uname -r"));
    assert_eq!(system["architecture"], said("uname -m"));
    let kind = said("systemd-detect-virt; true");
    assert_eq!(system["virtualization"].as_str().unwrap_or("none"), kind);
    let total = said("awk '/^MemTotal/ { print int($2 / 1024) }' /proc/meminfo");
    assert_eq!(data["memory"]["total_mb"].to_string(), total);
    let lsblk = said("lsblk --bytes --nodeps --noheadings --output NAME,SIZE");
    for disk in data["disks"].as_array().into_iter().flatten() {
        let mut lines = lsblk.lines().filter_map(|line| line.split_once(char::is_whitespace));
        let (_, bytes) =
            lines.find(|(name, _)| disk["name"] == *name).unwrap_or_else(|| panic!("{disk}: {lsblk}"));
        let gib = bytes.trim().parse::<f64>().expect("a number") / f64::from(1 << 30);
        assert_eq!(disk["size_gb"], json!((gib * 10.0).round() / 10.0), "{disk}");
    }
    assert!(!envelope.to_string().contains(&said("cat /etc/machine-id")), "the machine id is confidential");

    let full = client.envelope("machine_info", json!({"sections": ["system", "pci"]})).await;
    assert_eq!(full["data"]["system"]["boot_id"], said("cat /proc/sys/kernel/random/boot_id"));
    let devices = said("ls /sys/bus/pci/devices 2>/dev/null | wc -l");
    assert_eq!(full["data"]["pci"].as_array().map_or(0, Vec::len).to_string(), devices);
}
