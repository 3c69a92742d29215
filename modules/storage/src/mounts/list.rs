//! `mount_list`: what is mounted beside what fstab says, those first that differ.

use linux_sysadmin_sdk::{prelude::*, text};

use super::devices::{Device, Devices};
use super::fstab::{Entry, Table};
use super::{options, place, units};
use crate::mount_table::{Mount, MountTable};

#[derive(Deserialize, JsonSchema)]
pub(crate) struct ListArgs {
    /// Pseudo file systems too
    all: Option<bool>,
}

/// What there is to say of a mount. The gravest state comes first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum State {
    Failed,
    NotMounted,
    OtherSource,
    Hidden,
    OptionsDiffer,
    NotInFstab,
    Noauto,
}

#[derive(Serialize)]
pub(crate) struct Item {
    mount_point: String,
    source: String,
    fs_type: String,
    options: String,
    /// The directory that a bind mount or a subvolume shows.
    #[serde(skip_serializing_if = "Option::is_none")]
    root: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fstab_line: Option<usize>,
    /// None where it is mounted as fstab says.
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<State>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

pub(crate) fn list(args: ListArgs, cx: &Context) -> Result<Listing<Item>> {
    let mounts = MountTable::read(cx)?;
    let table = Table::read(cx)?;
    let devices = Devices::read(cx);
    let mut items: Vec<Item> = Vec::new();
    for mount in mounts.all() {
        let entry = table.at(&mount.point).into_iter().next();
        // systemd's own automount stands for the mount below it.
        if args.all == Some(true) || mount.is_lasting() || (entry.is_some() && !mount.is_automount()) {
            items.push(mounted(mount, entry, &mounts, &devices, cx));
        }
    }
    let is_missing = |entry: &&Entry| !entry.is_swap() && mounts.at(&entry.mount_point).is_none();
    let missing: Vec<&Entry> =
        table.entries.iter().filter(is_missing).filter(|entry| entry.mount_point != "none").collect();
    items.extend(not_mounted(&missing, &mounts, &devices, cx));
    items.sort_by_key(|item| item.state.map_or(State::Noauto as u8 + 1, |state| state as u8));
    let is_away = |item: &Item| matches!(item.state, Some(State::Failed | State::NotMounted));
    let note = items.iter().any(is_away).then(|| {
        "mount_add with what fstab has for a mount point mounts it now, and changes nothing else".to_owned()
    });
    Ok(Listing { items, total: None, notes: note.into_iter().collect() })
}

fn mounted(
    mount: &Mount,
    entry: Option<&Entry>,
    mounts: &MountTable,
    devices: &Devices,
    cx: &Context,
) -> Item {
    let (state, reason) = match (mounts.hiding(mount), entry) {
        (Some(over), _) => {
            let reason = format!("{} is mounted over it, at {}", over.source, over.point);
            (Some(State::Hidden), Some(reason))
        }
        (None, None) => ((mount.is_lasting() && mount.point != "/").then_some(State::NotInFstab), None),
        (None, Some(entry)) => compared(mount, entry, devices, cx),
    };
    Item {
        mount_point: mount.point.clone(),
        source: mount.source.clone(),
        fs_type: mount.kind.clone(),
        options: mount.options.clone(),
        root: (mount.root != "/").then(|| mount.root.clone()),
        fstab_line: entry.map(|entry| entry.line),
        state,
        reason,
    }
}

fn compared(
    mount: &Mount,
    entry: &Entry,
    devices: &Devices,
    cx: &Context,
) -> (Option<State>, Option<String>) {
    let named = devices.resolved(&entry.source, cx);
    let is_it = |device: &&Device| device.name == mount.source || device.number == mount.device;
    let is_other = named.as_ref().is_some_and(|named| {
        // Another member of a btrfs file system may give the name.
        mount.kind != "btrfs"
            && mount.source.starts_with("/dev/")
            && !named.is_empty()
            && !named.iter().any(is_it)
    });
    if is_other {
        return (Some(State::OtherSource), Some(format!("fstab names {}", entry.source)));
    }
    let differences = options::differences(&entry.options, &mount.options);
    match differences.is_empty() {
        true => (None, None),
        false => (Some(State::OptionsDiffer), Some(differences.join("; "))),
    }
}

/// The entries that aren't mounted, each with its reason: what is missing, or what the unit said when it failed.
fn not_mounted(entries: &[&Entry], mounts: &MountTable, devices: &Devices, cx: &Context) -> Vec<Item> {
    let points: Vec<&str> = entries.iter().map(|entry| entry.mount_point.as_str()).collect();
    let places = place::all(&points, cx);
    let failures = units::failures(&points, cx);
    let item = |((entry, place), failure): ((&&Entry, place::Place), Option<String>)| {
        let named = devices.resolved(&entry.source, cx);
        let is_gone = named.as_ref().is_some_and(Vec::is_empty) && devices.could_tell(&entry.source);
        let reason = match place {
            _ if is_gone => Some(format!("there is no device {}", text::excerpt(&entry.source, 120))),
            place::Place::Missing => Some(format!("{} isn't there", entry.mount_point)),
            place::Place::Symlink(target) => {
                Some(format!("{} leads through a symlink to {target}", entry.mount_point))
            }
            _ if mounts.has_automount(&entry.mount_point) => Some("it is mounted when it is used".to_owned()),
            _ => None,
        };
        let state = match &failure {
            Some(_) => State::Failed,
            None if entry.has("noauto") || mounts.has_automount(&entry.mount_point) => State::Noauto,
            None => State::NotMounted,
        };
        let is_failure = failure.as_ref().is_some_and(|said| !said.is_empty());
        Item {
            mount_point: entry.mount_point.clone(),
            source: entry.source.clone(),
            fs_type: entry.fs_type.clone(),
            options: options::shown(&entry.options),
            root: None,
            fstab_line: Some(entry.line),
            state: Some(state),
            reason: reason.or(failure.filter(|_| is_failure)),
        }
    };
    entries.iter().zip(places).zip(failures).map(item).collect()
}
