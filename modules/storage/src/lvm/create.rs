//! `lvm_create_lv`: a new logical volume, with a file system on it.

use linux_sysadmin_sdk::{DurationCategory, prelude::*};

use super::commands::{CREATE, CREATE_WIPED, MAKE_BTRFS, MAKE_EXT4, MAKE_XFS, REMOVE};
use super::names;
use super::report::{Group, Lvm};
use crate::size::{Amount, Of, Size, shown};

#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(super) enum FileSystem {
    #[default]
    Ext4,
    Xfs,
    Btrfs,
    None,
}

impl FileSystem {
    fn name(self) -> Option<&'static str> {
        match self {
            Self::Ext4 => Some("ext4"),
            Self::Xfs => Some("xfs"),
            Self::Btrfs => Some("btrfs"),
            Self::None => None,
        }
    }

    fn make(self, path: &str) -> Option<Command> {
        let line = match self {
            Self::Ext4 => MAKE_EXT4,
            Self::Xfs => MAKE_XFS,
            Self::Btrfs => MAKE_BTRFS,
            Self::None => return None,
        };
        Some(line.with([path]).as_root())
    }

    /// The least size that its mkfs takes: xfsprogs 6.0 and btrfs-progs 5.0 and later.
    fn least(self) -> u64 {
        match self {
            Self::Xfs => 300 << 20,
            Self::Btrfs => 114_294_784,
            Self::Ext4 => 1 << 20,
            Self::None => 0,
        }
    }
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct CreateArgs {
    /// Volume group
    vg_name: String,
    /// New volume
    lv_name: String,
    /// As 10G, 100%FREE
    size: String,
    /// Default ext4
    filesystem: Option<FileSystem>,
    /// Wipe old signatures
    wipe: Option<bool>,
}

#[derive(Serialize)]
pub(super) struct Created {
    path: String,
    size: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    filesystem: Option<&'static str>,
    /// What the group has left.
    group_free: String,
    /// The call that is usually next.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    would: Option<&'static str>,
}

/// The number of extents that are asked for.
fn extents(amount: Amount, group: &Group) -> Result<u64> {
    let part = |of: u64, percent: u64| of.saturating_mul(percent) / 100;
    Ok(match amount {
        Amount::Bytes(bytes) => group.extents_for(bytes),
        Amount::Percent(percent, Of::Free) => part(group.usable_extents(), percent),
        Amount::Percent(percent, Of::Group) => part(group.extents, percent),
        Amount::Percent(_, Of::Origin) => {
            let message = "a new volume has no origin: expected a size such as 10G, 100%FREE or 10%VG";
            return Err(Problem::validation("INVALID_SIZE", message));
        }
    })
}

pub(super) fn create(args: CreateArgs, cx: &Context) -> Result<Noted<Created>> {
    let amount = Size::absolute(&args.size)?;
    let lvm = Lvm::read(cx)?;
    let group = names::group(&args.vg_name, &lvm)?;
    names::must_be_new(&args.lv_name, group)?;
    let extents = extents(amount, group)?;
    if extents == 0 || extents > group.usable_extents() {
        return Err(lvm.no_room(group, group.bytes(extents.max(1))));
    }
    let bytes = group.bytes(extents);
    let kind = args.filesystem.unwrap_or_default();
    let (filesystem, size) = (kind.name(), shown(bytes));
    if bytes < kind.least() {
        let name = filesystem.unwrap_or_default();
        let message = format!("{size} is too small: {name} needs {}", shown(kind.least()));
        return Err(Problem::validation("VOLUME_TOO_SMALL", message));
    }
    let full_name = format!("{}/{}", group.name, args.lv_name);
    let path = format!("/dev/{full_name}");
    let wipes = args.wipe.unwrap_or_default();
    let line = if wipes { CREATE_WIPED } else { CREATE };
    let count = extents.to_string();
    let step = Step::run(line.with([&count, &args.lv_name, &group.name]).as_root())
        .undo(REMOVE.with([&full_name]).as_root())
        .uninterruptible();
    let with = filesystem.map(|kind| format!(" with {kind}")).unwrap_or_default();
    let mut change =
        Change::new(format!("Create the volume {path} of {size}{with}")).lock(Lock::Lvm).step(step);
    if let Some(command) = kind.make(&path) {
        change = change.step(Step::run(command.duration(DurationCategory::Slow)).uninterruptible());
    }
    if wipes {
        change = change.warning("signatures that a removed volume left in the space are wiped");
    }
    let applied = cx.apply(change).map_err(|failure| explained(failure.into()))?;
    let left = group.bytes(group.free_extents.saturating_sub(extents));
    let next = filesystem.map(|kind| {
        format!("mount_add device={path} fs_type={kind} options=nofail,nosuid,nodev mount_point=…")
    });
    let data = Created {
        path,
        size,
        filesystem,
        group_free: shown(left),
        next,
        would: applied.dry_run.then_some("create"),
    };
    Ok(Noted { data, notes: Vec::new() })
}

/// Adds what helps to the failures that are known.
fn explained(problem: Problem) -> Problem {
    // The message has the command as well, with its `--wipesignatures`.
    if ["Aborted wiping", "left on the device"].iter().any(|sign| problem.message.contains(sign)) {
        return problem.remedy(
            "The space still holds what a removed volume left there. Where nobody needs it any more, call this again with \
             wipe=true",
        );
    }
    if problem.message.contains("contiguous") || problem.message.contains("suitable allocatable") {
        return problem
            .remedy("The free space lies on several disks: lvm_list tells how much each has; ask for less");
    }
    problem
}
