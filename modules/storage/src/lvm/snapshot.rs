//! `lvm_snapshot`: the state of a volume as it is now.

use linux_sysadmin_sdk::{Category, prelude::*};

use super::commands::{SNAPSHOT, THIN_SNAPSHOT, UPTIME, WRITTEN};
use super::names;
use super::report::{Group, Kind, Lvm, Volume};
use super::uses::Uses;
use crate::size::{Amount, Of, Size, shown};

/// The part of its origin that a snapshot gets, in percent. It is the part that may change until the snapshot is full.
const DEFAULT: u64 = 20;

/// A pool this full has no room for what changes, in percent.
const FULL: f64 = 95.0;
const NEARLY_FULL: f64 = 80.0;

#[derive(Deserialize, JsonSchema)]
pub(super) struct SnapshotArgs {
    /// As /dev/vg0/data
    lv_path: String,
    /// Default: a free one
    snapshot_name: Option<String>,
    /// For changes; default 20%ORIGIN
    size: Option<String>,
}

#[derive(Serialize)]
pub(super) struct Snapshot {
    path: String,
    /// The changes that it can hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<String>,
    /// When it is full.
    full: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    group_free: Option<String>,
    /// How it is read.
    mount: String,
    /// The command that sets the origin back to it.
    merge: String,
    remove: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    would: Option<&'static str>,
}

pub(super) fn snapshot(args: SnapshotArgs, cx: &Context) -> Result<Noted<Snapshot>> {
    let asked = args.size.as_deref().map(Size::absolute).transpose()?;
    let lvm = Lvm::read(cx)?;
    let (group, origin) = lvm.volume(&args.lv_path)?;
    let uses = Uses::read(cx)?;
    must_be_origin(origin, &uses)?;
    let name = match args.snapshot_name {
        Some(name) => name,
        None => free_name(origin, group),
    };
    names::must_be_new(&name, group)?;
    let full_name = format!("{}/{name}", group.name);
    let is_thin = origin.kind() == Kind::Thin;
    let mut notes = Vec::new();
    let mut change =
        Change::new(format!("Make the snapshot /dev/{full_name} of {}", origin.path)).lock(Lock::Lvm);
    let (command, extents, full) = if is_thin {
        if asked.is_some() {
            notes.push("a thin snapshot has no size of its own: `size` wasn't used".to_owned());
        }
        let (full, warning) = pool_room(origin, group)?;
        change = warning.into_iter().fold(change, Change::warning);
        (THIN_SNAPSHOT.with([&name, &origin.full_name()]), 0, full)
    } else {
        let extents = extents(asked, origin, group)?;
        if extents > group.usable_extents() {
            return Err(lvm.no_room(group, group.bytes(extents)).remedy(
                "A snapshot may be smaller, such as size=5%ORIGIN: it is lost once more than that has changed",
            ));
        }
        let full = full_in(origin, group.bytes(extents), cx);
        (SNAPSHOT.with([&extents.to_string(), &name, &origin.full_name()]), extents, full)
    };
    let others = group.volumes.iter().filter(|volume| volume.origin.as_ref() == Some(&origin.name)).count();
    if origin.kind() == Kind::Origin && others > 0 {
        change = change
            .warning(format!("it has {others} snapshots already, and what is written is copied for each"));
    }
    // The plan has one step, which leaves nothing where it fails. So nothing would ever be undone.
    let applied = cx.apply(change.step(Step::run(command.as_root()).uninterruptible()))?;
    let is_xfs = uses.kind(origin) == Some("xfs");
    let options = if is_xfs { "ro,nouuid" } else { "ro" };
    let activate = if is_thin {
        format!("lvchange --activate y --ignoreactivationskip {full_name}, then ")
    } else {
        String::new()
    };
    let data = Snapshot {
        size: (!is_thin).then(|| shown(group.bytes(extents))),
        full,
        group_free: (!is_thin).then(|| shown(group.bytes(group.free_extents.saturating_sub(extents)))),
        mount: format!("{activate}mount -o {options} /dev/{full_name} DIRECTORY"),
        merge: merge(origin, &full_name, &uses),
        remove: format!("command_run argv=[lvremove,--yes,{full_name}] as_root=true"),
        path: format!("/dev/{full_name}"),
        would: applied.dry_run.then_some("make"),
    };
    Ok(Noted { data, notes })
}

/// How the origin gets back what the snapshot has.
fn merge(origin: &Volume, full_name: &str, uses: &Uses) -> String {
    let command = format!("command_run argv=[lvconvert,--merge,{full_name}] as_root=true");
    match uses.mounts(origin).first() {
        Some(mount) => format!("{command}; it begins once {} is unmounted and activated anew", mount.point),
        None => command,
    }
}

fn must_be_origin(volume: &Volume, uses: &Uses) -> Result<()> {
    let path = &volume.path;
    let why = match volume.kind() {
        Kind::Snapshot => "is a snapshot itself, and LVM makes none of a snapshot",
        Kind::ThinPool => "is a pool: make snapshots of the volumes in it",
        Kind::Other => "is a kind of volume that this tool makes no snapshot of",
        _ if uses.is_swap(volume) => "is swap, which holds nothing to keep",
        _ => return Ok(()),
    };
    Err(Problem::new("LVM_NOT_SUPPORTED", Category::State, format!("{path} {why}")))
}

/// The first of `data_snap`, `data_snap2`, … that is free. It depends on nothing but the group, so that a plan that is made
/// again is the same.
fn free_name(origin: &Volume, group: &Group) -> String {
    let is_free = |name: &String| group.volumes.iter().all(|volume| volume.name != *name);
    let base = format!("{}_snap", origin.name);
    let numbered = (2..=group.volumes.len() + 2).map(|number| format!("{base}{number}"));
    std::iter::once(base.clone()).chain(numbered).find(is_free).unwrap_or(base)
}

/// More than the whole origin is never used: LVM takes as much as that needs.
fn extents(asked: Option<Amount>, origin: &Volume, group: &Group) -> Result<u64> {
    let part = |of: u64, percent: u64| of.saturating_mul(percent) / 100;
    let whole = group.extents_for(origin.size);
    let extents = match asked.unwrap_or(Amount::Percent(DEFAULT, Of::Origin)) {
        Amount::Bytes(bytes) => group.extents_for(bytes),
        Amount::Percent(percent, Of::Free) => part(group.usable_extents(), percent),
        Amount::Percent(percent, Of::Group) => part(group.extents, percent),
        Amount::Percent(percent, Of::Origin) => part(whole, percent),
    };
    Ok(extents.max(1))
}

/// When a snapshot is full, by what was written to its origin since the boot.
fn full_in(origin: &Volume, bytes: u64, cx: &Context) -> String {
    let holds = format!("after {} of the origin have changed; it is lost then", shown(bytes));
    let Some(number) = origin.number else { return holds };
    let texts = cx.read_all(&[WRITTEN.replace('*', &number.to_string()), UPTIME.to_owned()]);
    let [Ok(stat), Ok(uptime)] = texts.as_slice() else { return holds };
    let sectors = stat.split_whitespace().nth(6).and_then(|number| number.parse::<f64>().ok());
    let seconds = uptime.split(' ').next().and_then(|number| number.parse::<f64>().ok());
    match sectors.zip(seconds) {
        Some((sectors, seconds)) if sectors > 0.0 && seconds > 0.0 => {
            let hours = bytes as f64 / (sectors * 512.0 / seconds) / 3600.0;
            let when = match hours {
                hours if hours < 48.0 => format!("{} hours", hours.max(1.0).round()),
                hours => format!("{} days", (hours / 24.0).round()),
            };
            format!("{holds}. At the rate since the boot that is in about {when} at the earliest")
        }
        _ => holds,
    }
}

/// When the pool of a thin snapshot is full, and what to know of it.
fn pool_room(origin: &Volume, group: &Group) -> Result<(String, Option<String>)> {
    let name = origin.pool.as_deref().unwrap_or_default();
    let Some(pool) = group.volumes.iter().find(|volume| volume.name == name) else {
        return Ok((format!("with its pool {name}"), None));
    };
    let most = |percent: Option<f64>| percent.unwrap_or_default();
    let (data, metadata) = (most(pool.data_percent), most(pool.metadata_percent));
    let told = format!("{} has {data}% of its data and {metadata}% of its metadata in use", pool.full_name());
    if data >= FULL || metadata >= FULL {
        return Err(Problem::new(
            "LVM_POOL_FULL",
            Category::Resource,
            format!("{told}: once it is full, writing fails"),
        )
        .remedy(format!("Grow the pool first: lvm_resize lv_path={} size=+10G", pool.full_name())));
    }
    let warning = (data >= NEARLY_FULL || metadata >= NEARLY_FULL).then(|| told.clone());
    Ok((format!("with its pool: {told}"), warning))
}
