//! `lvm_list`: volume groups, what is in them, what it is used for, and what needs doing.

use std::collections::HashMap;

use linux_sysadmin_sdk::{prelude::*, text};

use super::commands::DF;
use super::report::{Group, Kind, Lvm, Pv, Volume};
use super::uses::Uses;
use crate::size::shown;

/// The most volumes in an answer.
const MOST: usize = 200;
/// The most mount points of a volume that an answer has.
const MOUNTS: usize = 3;
/// The most findings in an answer.
const FINDINGS: usize = 20;

#[derive(Deserialize, JsonSchema)]
pub(super) struct ListArgs {
    /// Only this volume group
    vg_name: Option<String>,
}

#[derive(Serialize)]
pub(super) struct Answer {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    findings: Vec<Finding>,
    groups: Vec<GroupItem>,
    /// Physical volumes that no group has.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unused_pvs: Vec<PvItem>,
    /// What LVM says beside that.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    lvm_says: Vec<String>,
}

#[derive(Serialize)]
struct Finding {
    what: String,
    next: String,
    #[serde(skip)]
    severity: Severity,
}

#[derive(Serialize)]
struct GroupItem {
    name: String,
    /// Only where several groups have the name.
    #[serde(skip_serializing_if = "Option::is_none")]
    uuid: Option<String>,
    size: String,
    free: String,
    pvs: Vec<PvItem>,
    volumes: Vec<VolumeItem>,
    /// The number of volumes that the answer has no room for.
    #[serde(skip_serializing_if = "Option::is_none")]
    more_volumes: Option<usize>,
}

#[derive(Serialize)]
struct PvItem {
    name: String,
    size: String,
    free: String,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    missing: bool,
}

#[derive(Serialize)]
struct VolumeItem {
    path: String,
    size: String,
    /// The kind, unless it is a linear volume.
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    origin: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pool: Option<String>,
    /// How full a snapshot or a pool is.
    #[serde(skip_serializing_if = "Option::is_none")]
    data_percent: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata_percent: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    filesystem: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    mounted: Vec<String>,
    /// How full the file system is, as df counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    used_percent: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<&'static str>,
}

pub(super) fn list(args: ListArgs, cx: &Context) -> Result<Analysis<Answer>> {
    let mut lvm = match Lvm::read(cx) {
        Ok(lvm) => lvm,
        Err(problem) if problem.code == "PROGRAM_NOT_FOUND" && args.vg_name.is_none() => {
            return Ok(without_lvm());
        }
        Err(problem) => return Err(problem),
    };
    if let Some(name) = &args.vg_name {
        if !lvm.is_ambiguous(name) {
            lvm.group(name)?;
        }
        lvm.groups.retain(|group| group.name == *name);
    }
    let uses = Uses::read(cx)?;
    let usage = usage(&lvm, &uses, cx);
    let mut findings = Vec::new();
    let mut room = MOST;
    let mut groups = Vec::new();
    for group in &lvm.groups {
        let items: Vec<_> = group.volumes.iter().map(|volume| item(volume, &uses, &usage)).collect();
        findings.extend(of_group(group, &lvm));
        findings.extend(
            group.volumes.iter().zip(&items).filter_map(|(volume, item)| finding(volume, item, group)),
        );
        let more = items.len().saturating_sub(room);
        let volumes: Vec<_> = items.into_iter().take(room).collect();
        room -= volumes.len();
        groups.push(GroupItem {
            name: group.name.clone(),
            uuid: lvm.is_ambiguous(&group.name).then(|| group.uuid.clone()),
            size: shown(group.bytes(group.extents)),
            free: shown(group.free()),
            pvs: group.pvs.iter().map(pv).collect(),
            volumes,
            more_volumes: Some(more).filter(|more| *more > 0),
        });
    }
    findings.sort_by_key(|finding: &Finding| std::cmp::Reverse(finding.severity));
    let severity = findings.first().map_or(Severity::Info, |worst| worst.severity);
    let summary = summary(&groups, &findings);
    findings.truncate(FINDINGS);
    let unused_pvs = lvm.unused.iter().map(pv).collect();
    let data = Answer { findings, groups, unused_pvs, lvm_says: lvm.remarks };
    Ok(Analysis { data, summary, severity })
}

/// The answer of a machine where LVM isn't installed, which isn't a failure: there is nothing to list.
fn without_lvm() -> Analysis<Answer> {
    let data =
        Answer { findings: Vec::new(), groups: Vec::new(), unused_pvs: Vec::new(), lvm_says: Vec::new() };
    let summary =
        "LVM isn't installed, so this machine uses no logical volumes; pkg_install package=[lvm2] brings it"
            .to_owned();
    Analysis { data, summary, severity: Severity::Info }
}

fn summary(groups: &[GroupItem], findings: &[Finding]) -> String {
    if groups.is_empty() {
        return "LVM is installed, and no volume group is there".to_owned();
    }
    let free: Vec<_> = groups.iter().map(|group| format!("{} has {} free", group.name, group.free)).collect();
    let worst: Vec<_> = findings.iter().take(3).map(|finding| finding.what.as_str()).collect();
    let free = text::list(&free, 5);
    if worst.is_empty() { free } else { format!("{}; {free}", worst.join("; ")) }
}

/// The used and available bytes by mount point.
fn usage(lvm: &Lvm, uses: &Uses, cx: &Context) -> HashMap<String, (u64, u64)> {
    // df would wait for a suspended volume.
    let volumes = lvm.groups.iter().flat_map(|group| &group.volumes).filter(|volume| volume.is_active());
    let points: Vec<_> = volumes
        .filter_map(|volume| uses.mounts(volume).first().map(|mount| mount.point.clone()))
        .take(MOST)
        .collect();
    if points.is_empty() {
        return HashMap::new();
    }
    // Without an answer in time the list goes without.
    let Ok(output) = cx.run(DF.with(points)) else { return HashMap::new() };
    let row = |line: &str| {
        let (used, rest) = line.trim_start().split_once(' ')?;
        let (available, point) = rest.trim_start().split_once(' ')?;
        Some((point.trim_start().to_owned(), (used.parse().ok()?, available.parse().ok()?)))
    };
    output.text().lines().skip(1).filter_map(row).collect()
}

fn pv(pv: &Pv) -> PvItem {
    PvItem { name: pv.name.clone(), size: shown(pv.size), free: shown(pv.free), missing: pv.is_missing }
}

fn item(volume: &Volume, uses: &Uses, usage: &HashMap<String, (u64, u64)>) -> VolumeItem {
    let mounts = uses.mounts(volume);
    let kind = match volume.kind() {
        Kind::Plain if volume.layout == "linear" => None,
        Kind::Snapshot => Some("snapshot".to_owned()),
        Kind::Origin => None,
        Kind::Thin => Some("thin".to_owned()),
        Kind::ThinPool => Some("thin pool".to_owned()),
        Kind::Plain | Kind::Other => Some(volume.layout.clone()),
    };
    let used = mounts.first().and_then(|mount| usage.get(&mount.point));
    let percent = used.map(|(used, available)| (used * 100).div_ceil((used + available).max(1)));
    let swap = uses.is_swap(volume).then(|| "swap".to_owned());
    VolumeItem {
        path: volume.path.clone(),
        size: shown(volume.size),
        kind,
        origin: volume.origin.clone(),
        pool: volume.pool.clone(),
        data_percent: volume.data_percent,
        metadata_percent: volume.metadata_percent,
        filesystem: swap.or_else(|| uses.kind(volume).map(str::to_owned)),
        mounted: mounts.into_iter().take(MOUNTS).map(|mount| mount.point.clone()).collect(),
        used_percent: percent,
        state: volume.trouble(),
    }
}

fn of_group(group: &Group, lvm: &Lvm) -> Vec<Finding> {
    let mut found = Vec::new();
    if lvm.is_ambiguous(&group.name) {
        found.push(Finding {
            what: format!("several groups are called {}: {}", group.name, group.uuid),
            next: format!("command_run argv=[vgrename,{},NEW_NAME] as_root=true", group.uuid),
            severity: Severity::Warning,
        });
    }
    if let Err(problem) = group.must_be_changeable() {
        let severity = if group.missing > 0 { Severity::Critical } else { Severity::Warning };
        let next = problem.remediation.into_iter().next().unwrap_or_default();
        found.push(Finding { what: problem.message, next, severity });
    }
    found
}

/// What a volume needs, and the call for it.
fn finding(volume: &Volume, item: &VolumeItem, group: &Group) -> Option<Finding> {
    let path = &volume.path;
    let data = volume.data_percent.unwrap_or_default();
    let metadata = volume.metadata_percent.unwrap_or_default();
    let grow = || match more(volume, group) {
        Some(more) => format!("lvm_resize lv_path={path} size=+{}", shown(more)),
        None => {
            format!("{} has no free space: vgextend adds a disk, or remove what isn't needed", group.name)
        }
    };
    let name = volume.full_name();
    let (what, next, severity) = match volume.kind() {
        Kind::Snapshot if item.state.is_some_and(|state| state.starts_with("invalid")) => {
            let next = format!("command_run argv=[lvremove,--yes,{name}] as_root=true");
            (format!("the snapshot {path} was full and is lost"), next, Severity::Warning)
        }
        Kind::Snapshot if data >= 80.0 => {
            (format!("the snapshot {path} is {data}% full, and lost once it is full"), grow(), Severity::High)
        }
        Kind::ThinPool if data >= 80.0 => {
            let severity = if data >= 95.0 { Severity::Critical } else { Severity::Warning };
            (
                format!("the pool {path} is {data}% full: once it is full, writing fails in its volumes"),
                grow(),
                severity,
            )
        }
        Kind::ThinPool if metadata >= 80.0 => {
            let next = format!("command_run argv=[lvextend,--poolmetadatasize,+256M,{name}] as_root=true");
            (format!("the metadata of the pool {path} is {metadata}% full"), next, Severity::High)
        }
        _ => {
            let used = item.used_percent.unwrap_or_default();
            let point = item.mounted.first().map(String::as_str).unwrap_or_default();
            match item.state {
                Some(state) if state != "inactive" => {
                    let next = format!("log_search of the kernel's messages; lvs -a -o+devices {name}");
                    (format!("{path}: {state}"), next, Severity::High)
                }
                _ if used >= 90 => {
                    let severity = if used >= 98 { Severity::High } else { Severity::Warning };
                    (format!("{point} is {used}% full, on {path}"), grow(), severity)
                }
                _ => return None,
            }
        }
    };
    Some(Finding { what, next, severity })
}

/// What a full volume may grow by: a fifth, in whole extents, as far as there is room.
fn more(volume: &Volume, group: &Group) -> Option<u64> {
    let fifth = group.extents_for(volume.size / 5).max(1);
    let extents = if volume.kind() == Kind::Thin { fifth } else { fifth.min(group.usable_extents()) };
    Some(group.bytes(extents)).filter(|bytes| *bytes > 0)
}
