//! `disk_health`: what disks, arrays and file systems say of their own health.

use linux_sysadmin_sdk::prelude::*;
use serde_json::Value;

use super::block_devices::{self, BlockDevice};
use super::btrfs;
use super::mdstat::{self, Array, MDSTAT};
use super::smart::{self, Smart};
use crate::mount_table::MountTable;

/// The directory in which ext4 tells its counters, by device.
pub(crate) const EXT4: &str = "/sys/fs/ext4";
/// The counter of errors that ext4 has met since the last check.
pub(crate) const EXT4_ERRORS: &str = "/sys/fs/ext4/*/errors_count";

#[derive(Deserialize, JsonSchema)]
pub(crate) struct HealthArgs {
    /// As /dev/sda; default: all
    disk: Option<String>,
}

#[derive(Serialize)]
pub(crate) struct Health {
    disks: Vec<Disk>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    raid: Vec<Raid>,
    /// File systems that have met errors.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    filesystems: Vec<Faulty>,
    /// Parts of the answer that could not be found out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    missing: Vec<String>,
}

#[derive(Serialize)]
struct Disk {
    disk: String,
    /// `ok`, `unknown`, or the severity of the worst finding.
    health: &'static str,
    /// What is wrong, or why nothing is known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    why: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    /// The serial number, by which the disk is found in the machine. Only of one that isn't well.
    #[serde(skip_serializing_if = "Option::is_none")]
    serial: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature_c: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    powered_hours: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    worn_pct: Option<u64>,
    /// Where what lies on it is mounted. Only of one that isn't well.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    mounted: Vec<String>,
    #[serde(skip)]
    severity: Severity,
}

#[derive(Serialize)]
struct Raid {
    array: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    level: Option<String>,
    state: String,
    #[serde(skip)]
    severity: Severity,
}

#[derive(Serialize)]
struct Faulty {
    device: String,
    why: String,
}

pub(crate) fn health(args: HealthArgs, cx: &Context) -> Result<Analysis<Health>> {
    let table = MountTable::read(cx).ok();
    let devices = block_devices::all(table.as_ref(), cx)?;
    let chosen = match &args.disk {
        Some(name) => vec![chosen(name, &devices)?],
        None => devices.iter().filter(|device| is_disk(device)).collect(),
    };
    let mut missing = Vec::new();
    let mut disks = asked(&chosen, &devices, &mut missing, cx);
    disks.sort_by_key(|disk| std::cmp::Reverse(disk.severity));
    let (raid, filesystems) = match args.disk {
        Some(_) => (Vec::new(), Vec::new()),
        None => (raid(cx), faulty(table.as_ref(), &mut missing, cx)),
    };
    let (summary, severity) = meaning(&disks, &raid, &filesystems);
    Ok(Analysis { data: Health { disks, raid, filesystems, missing }, summary, severity })
}

/// Whether it is a disk, and not made of memory, files or the network.
fn is_disk(device: &BlockDevice) -> bool {
    let is_made = ["zram", "ram", "nbd", "loop", "drbd", "fd"];
    device.kind == "disk"
        && device.size > 0
        && !is_made.iter().any(|kind| device.kernel_name.starts_with(kind))
}

/// Whether a hypervisor made it, which has no SMART for it.
fn is_virtual(device: &BlockDevice) -> bool {
    device.transport.as_deref() == Some("virtio")
        || ["vd", "xvd"].iter().any(|kind| device.kernel_name.starts_with(kind))
}

/// The disk of this name, or the one that a partition of this name is on.
fn chosen<'a>(name: &str, devices: &'a [BlockDevice]) -> Result<&'a BlockDevice> {
    let path = if name.starts_with('/') { name.to_owned() } else { format!("/dev/{name}") };
    let find = |path: &str| devices.iter().find(|device| device.path == path);
    let mut device = find(&path);
    // The parents of a device are few, and a circle of them ends here.
    for _ in 0..16 {
        match device {
            Some(found) if is_disk(found) => return Ok(found),
            Some(found) => device = found.parents.first().and_then(|parent| find(parent)),
            None => break,
        }
    }
    let disks: Vec<&str> =
        devices.iter().filter(|device| is_disk(device)).map(|device| device.path.as_str()).collect();
    let shown = linux_sysadmin_sdk::text::excerpt(name, 40);
    let known = if disks.is_empty() {
        "there is none".to_owned()
    } else {
        linux_sysadmin_sdk::text::list(&disks, 20)
    };
    Err(Problem::not_found("DISK_NOT_FOUND", format!("{shown:?} is no disk: expected one of {known}")))
}

/// What the disks say. All are asked at once.
fn asked(
    chosen: &[&BlockDevice],
    devices: &[BlockDevice],
    missing: &mut Vec<String>,
    cx: &Context,
) -> Vec<Disk> {
    let real: Vec<&BlockDevice> = chosen.iter().copied().filter(|device| !is_virtual(device)).collect();
    let answers = answers(&real, smart::ask, cx);
    let behind: Vec<&BlockDevice> = real
        .iter()
        .zip(&answers)
        .filter(|(_, answer)| answer.as_ref().is_ok_and(smart::is_behind_unknown_bridge))
        .map(|(device, _)| *device)
        .collect();
    let mut again = answers_by_path(&behind, cx);
    let mut is_missing = false;
    let mut disks = Vec::new();
    for (device, answer) in real.iter().zip(answers) {
        let answer = again.remove(&device.path).unwrap_or(answer);
        is_missing |= answer.as_ref().is_err_and(|problem| problem.code == "PROGRAM_NOT_FOUND");
        let smart = match answer {
            Ok(answer) => Smart::of(&answer),
            Err(problem) => Smart { findings: vec![(Severity::Info, problem.message)], ..Smart::default() },
        };
        disks.push(disk(device, smart, devices));
    }
    if is_missing {
        missing.push("SMART: pkg_install package=smartmontools brings smartctl".to_owned());
    }
    let made = chosen.iter().filter(|device| is_virtual(device)).map(|device| {
        let why = "virtual: its hypervisor knows its health".to_owned();
        disk(device, Smart { findings: vec![(Severity::Info, why)], ..Smart::default() }, devices)
    });
    disks.extend(made);
    disks
}

type Answer = std::result::Result<Value, Problem>;

fn answers(disks: &[&BlockDevice], ask: fn(&str) -> Command, cx: &Context) -> Vec<Answer> {
    let outputs = cx.run_all(disks.iter().map(|device| ask(&device.path)).collect());
    let read = |output: Result<Output>| {
        let output = output?;
        let said = || Problem::unexpected("smartctl", &format!("{}{}", output.text(), output.error_text()));
        smart::answer(&output).ok_or_else(said)
    };
    outputs.into_iter().map(read).collect()
}

fn answers_by_path(disks: &[&BlockDevice], cx: &Context) -> std::collections::BTreeMap<String, Answer> {
    let answers = answers(disks, smart::ask_behind_bridge, cx);
    disks.iter().map(|device| device.path.clone()).zip(answers).collect()
}

fn disk(device: &BlockDevice, smart: Smart, devices: &[BlockDevice]) -> Disk {
    let severity = smart.findings.first().map_or(Severity::Info, |(severity, _)| *severity);
    let is_well = severity == Severity::Info;
    Disk {
        disk: device.path.clone(),
        health: match severity {
            Severity::Info if smart.is_known => "ok",
            Severity::Info => "unknown",
            severity => severity.name(),
        },
        why: smart.findings.into_iter().map(|(_, why)| why).collect(),
        model: smart.model.or_else(|| device.model.clone()),
        serial: smart.serial.filter(|_| !is_well),
        temperature_c: smart.temperature,
        powered_hours: smart.hours,
        worn_pct: smart.worn_pct,
        mounted: if is_well { Vec::new() } else { mounted(device, devices) },
        severity,
    }
}

/// The mount points of a disk and of all that lies on it.
fn mounted(disk: &BlockDevice, devices: &[BlockDevice]) -> Vec<String> {
    let mut on = vec![disk.path.as_str()];
    let mut points = disk.mounts.clone();
    // A device comes after those that it lies on.
    for device in devices {
        if device.parents.iter().any(|parent| on.contains(&parent.as_str())) {
            on.push(&device.path);
            points.extend(device.mounts.iter().cloned());
        }
    }
    points.dedup();
    points
}

fn raid(cx: &Context) -> Vec<Raid> {
    let arrays = cx.read(MDSTAT).map(|text| mdstat::parse(&text)).unwrap_or_default();
    let told = |array: &Array| Raid {
        array: format!("/dev/{}", array.name),
        level: array.level.clone(),
        state: array.state(),
        severity: match array {
            array if array.is_unprotected() => Severity::Critical,
            array if array.is_degraded() || !array.is_active => Severity::High,
            array if !array.failed.is_empty() => Severity::Warning,
            _ => Severity::Info,
        },
    };
    arrays.iter().map(told).collect()
}

/// The file systems that have met errors: ext4 by its counters, btrfs by those of its devices.
fn faulty(table: Option<&MountTable>, missing: &mut Vec<String>, cx: &Context) -> Vec<Faulty> {
    let names = cx.list_dir(EXT4).unwrap_or_default();
    let names: Vec<&String> = names.iter().filter(|name| *name != "features").collect();
    let paths: Vec<String> = names.iter().map(|name| format!("{EXT4}/{name}/errors_count")).collect();
    let counts = cx.read_all(&paths).into_iter().map(|text| text.ok()?.trim().parse::<u64>().ok());
    let ext4 = names.into_iter().zip(counts).filter_map(|(name, count)| {
        let count = count.filter(|count| *count > 0)?;
        let why = format!(
            "ext4 has met {count} errors since its last check: it needs e2fsck, while it isn't mounted"
        );
        Some(Faulty { device: format!("/dev/{name}"), why })
    });
    let mut found: Vec<Faulty> = ext4.collect();
    let all = table.map(MountTable::file_systems).unwrap_or_default();
    let points: Vec<&str> =
        all.iter().filter(|mount| mount.kind == "btrfs").map(|mount| mount.point.as_str()).collect();
    let outputs = cx.run_all(points.iter().map(|point| btrfs::stats(point)).collect());
    for (point, output) in points.into_iter().zip(outputs) {
        match output.and_then(|output| output.success("btrfs")) {
            Ok(output) => found.extend(btrfs::errors(&output.text()).into_iter().map(|(device, errors)| {
                let why = format!(
                    "btrfs on {point} has counted {errors}: btrfs scrub start {point} checks all data"
                );
                Faulty { device, why }
            })),
            Err(problem) => missing.push(format!("errors of btrfs on {point}: {}", problem.message)),
        }
    }
    found
}

fn meaning(disks: &[Disk], raid: &[Raid], filesystems: &[Faulty]) -> (String, Severity) {
    let mut severity = Severity::Info;
    let mut said = Vec::new();
    for disk in disks.iter().filter(|disk| disk.severity > Severity::Info) {
        severity = severity.max(disk.severity);
        said.push(format!("{}: {}", disk.disk, disk.why.join(", ")));
    }
    for array in raid.iter().filter(|array| array.severity > Severity::Info) {
        severity = severity.max(array.severity);
        said.push(format!("{} is {}", array.array, array.state));
    }
    for one in filesystems {
        severity = severity.max(Severity::High);
        said.push(format!("{}: {}", one.device, one.why));
    }
    let unknown = disks.iter().filter(|disk| disk.health == "unknown").count();
    if said.is_empty() {
        let well = disks.len() - unknown;
        said.push(if well > 0 || disks.is_empty() {
            format!("{well} disks are well")
        } else {
            "no disk tells its health".to_owned()
        });
    }
    if unknown > 0 && unknown < disks.len() {
        said.push(format!("{unknown} tell nothing"));
    }
    (said.join("; "), severity)
}
