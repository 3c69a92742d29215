//! Names of logical volumes, lvm(8).

use linux_sysadmin_sdk::{Category, prelude::*, text::excerpt};

use super::report::{Group, Lvm};

/// The longest name of a device, which has the names of the group and the volume in it.
const LONGEST: usize = 127;

/// LVM's own volumes are called so.
const PREFIXES: [&str; 2] = ["snapshot", "pvmove"];
const PARTS: [&str; 18] = [
    "_cdata", "_cmeta", "_corig", "_cpool", "_cvol", "_imeta", "_iorig", "_mimage", "_mlog", "_pmspare",
    "_rimage", "_rmeta", "_tdata", "_tmeta", "_vdata", "_vorigin", "_wcorig", "_wcache",
];

/// Refuses a name that LVM doesn't take, or that a volume of the group has.
pub(super) fn must_be_new(name: &str, group: &Group) -> Result<()> {
    let invalid = |expected: &str| {
        let message = format!("{:?} is no name for a volume: expected {expected}", excerpt(name, 60));
        Err(Problem::validation("INVALID_VOLUME_NAME", message))
    };
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "+_.-".contains(c);
    if name.is_empty() || name.starts_with('-') || matches!(name, "." | "..") || !name.chars().all(is_plain) {
        return invalid("letters, digits, `+`, `_`, `.` and `-`, and no `-` first");
    }
    // The device's name doubles each dash, and has one between both names.
    let length = |name: &str| name.len() + name.matches('-').count();
    if length(&group.name) + 1 + length(name) > LONGEST {
        return invalid(
            "a shorter one: with the group's name it has at most 127 characters, where a dash counts twice",
        );
    }
    let taken = PREFIXES.iter().find(|prefix| name.starts_with(**prefix));
    if let Some(part) = taken.or(PARTS.iter().find(|part| name.contains(**part))) {
        return invalid(&format!("one without {part:?}, which LVM uses itself"));
    }
    if let Some(volume) = group.volumes.iter().find(|volume| volume.name == name) {
        let message = format!("{} exists already, with {}", volume.path, crate::size::shown(volume.size));
        return Err(Problem::new("LVM_VOLUME_EXISTS", Category::State, message)
            .remedy(format!("Grow it with lvm_resize lv_path={}, or give another name", volume.path)));
    }
    Ok(())
}

/// The group that a new volume is made in.
pub(super) fn group<'a>(name: &str, lvm: &'a Lvm) -> Result<&'a Group> {
    let group = lvm.group(name)?;
    group.must_be_changeable()?;
    Ok(group)
}
