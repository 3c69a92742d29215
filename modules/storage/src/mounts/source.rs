//! What is to be mounted: a block device, another machine's directory, a directory or an image of this one, or memory.

use linux_sysadmin_sdk::{Category, prelude::*, text};

use super::devices::{Device, Devices, is_unstable};
use super::fstab::Table;
use super::place::kind;
use super::{kinds, options};
use crate::mount_table::{Mount, MountTable};

/// The most devices that a message names.
const MOST: usize = 6;

/// A source that can be mounted.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Source {
    /// The source as fstab gets it.
    pub(crate) written: String,
    pub(crate) fs_type: String,
    pub(crate) device: Option<Device>,
    pub(crate) is_network: bool,
    pub(crate) notes: Vec<String>,
    pub(crate) warnings: Vec<String>,
}

impl Source {
    /// Whether this is what is mounted there.
    pub(crate) fn is(&self, mount: &Mount) -> bool {
        mount.source == self.written
            || self
                .device
                .as_ref()
                .is_some_and(|device| device.name == mount.source || device.number == mount.device)
    }
}

/// What the caller asks for.
pub(crate) struct Asked<'a> {
    pub(crate) device: &'a str,
    pub(crate) mount_point: &'a str,
    pub(crate) fs_type: &'a str,
    pub(crate) options: &'a str,
}

/// Finds out what the source is, and refuses what can't be mounted.
pub(crate) fn find(
    asked: &Asked,
    devices: &Devices,
    mounts: &MountTable,
    table: &Table,
    cx: &Context,
) -> Result<Source> {
    check_type(asked.fs_type)?;
    let device = asked.device;
    if device.is_empty() || device.starts_with('-') || device.chars().any(char::is_control) {
        return Err(invalid(device));
    }
    let source =
        Source { written: device.to_owned(), fs_type: asked.fs_type.to_owned(), ..Source::default() };
    if options::has(asked.options, "bind") || options::has(asked.options, "rbind") {
        return match kind(device, cx).as_deref() {
            _ if !device.starts_with('/') => Err(invalid(device)),
            Some(_) => Ok(Source { fs_type: "none".to_owned(), ..source }),
            None => Err(Problem::not_found("SOURCE_NOT_FOUND", format!("there is no {device} to bind"))),
        };
    }
    if kinds::is_network(asked.fs_type, "") {
        return network(source, cx);
    }
    if asked.fs_type == "tmpfs" {
        return Ok(source);
    }
    match devices.resolved(device, cx) {
        Some(found) => block(source, &found, asked, devices, mounts, table),
        None if device.starts_with('/') => match kind(device, cx).as_deref() {
            Some("regular file") => Ok(source),
            Some("directory") => Err(Problem::validation(
                "INVALID_DEVICE",
                format!("{device} is a directory: expected a device, or bind among the options"),
            )),
            Some(kind) => Err(Problem::validation("INVALID_DEVICE", format!("{device} is a {kind}"))),
            None => Err(not_found(device, devices, mounts)),
        },
        None => Err(invalid(device)),
    }
}

fn check_type(fs_type: &str) -> Result<()> {
    let is_name = !fs_type.is_empty()
        && fs_type.len() <= 64
        && fs_type.starts_with(|first: char| first.is_ascii_alphanumeric())
        && fs_type.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte));
    if !is_name {
        return Err(Problem::validation(
            "INVALID_FS_TYPE",
            "expected a type of file system, such as ext4, xfs, nfs",
        ));
    }
    if fs_type == "swap" {
        return Err(
            Problem::validation("INVALID_FS_TYPE", "swap has no mount point").remedy("swap_add device=…")
        );
    }
    if fs_type == "fuse" || fs_type.starts_with("fuse.") {
        let message =
            format!("{fs_type} has mount start a program of that name as root, which this tool doesn't");
        return Err(Problem::validation("FS_TYPE_NOT_SUPPORTED", message));
    }
    Ok(())
}

fn invalid(device: &str) -> Problem {
    let message = format!(
        "{:?} is no source of a mount: expected a device such as /dev/sdb1, UUID=…, LABEL=…, host:/path for nfs, or //host/share \
         for cifs",
        text::excerpt(device, 120)
    );
    Problem::validation("INVALID_DEVICE", message)
}

fn network(source: Source, cx: &Context) -> Result<Source> {
    let device = &source.written;
    let is_share = device.strip_prefix("//").is_some_and(|rest| rest.contains('/') && !rest.starts_with('/'));
    let is_export = device.split_once(":/").is_some_and(|(host, _)| !host.is_empty() && !host.contains('/'));
    let is_right = match source.fs_type.as_str() {
        "nfs" | "nfs4" => is_export,
        "cifs" | "smb3" => is_share,
        _ => true,
    };
    if !is_right {
        return Err(invalid(device));
    }
    if let Some((program, package)) = kinds::helper(&source.fs_type, &cx.distro().family)
        && ["/usr/sbin", "/sbin"]
            .iter()
            .all(|directory| kind(&format!("{directory}/{program}"), cx).is_none())
    {
        let message = format!("{program}, which mounts {}, isn't installed", source.fs_type);
        return Err(Problem::new("HELPER_MISSING", Category::State, message)
            .remedy(format!("pkg_install package={package}")));
    }
    Ok(Source { is_network: true, ..source })
}

fn block(
    source: Source,
    found: &[&Device],
    asked: &Asked,
    devices: &Devices,
    mounts: &MountTable,
    table: &Table,
) -> Result<Source> {
    let device = match found {
        [] => return Err(not_found(asked.device, devices, mounts)),
        [device] => *device,
        several => {
            let names: Vec<&str> = several.iter().map(|device| device.name.as_str()).collect();
            let message = format!("{} is on several devices: {}", asked.device, text::list(&names, MOST));
            let problem = Problem::new("DEVICE_AMBIGUOUS", Category::State, message);
            let told = |device: &&Device| Some(format!("{} ({})", own_tag(device, devices)?, device.name));
            let tags: Vec<String> = several.iter().filter_map(told).collect();
            return Err(match tags.is_empty() {
                true => problem.remedy("Give one of them another UUID (tune2fs -U, xfs_admin -U, btrfstune -u) or name the device below /dev"),
                false => problem.remedy(format!("device= one of {}", text::list(&tags, MOST))),
            });
        }
    };
    let fs_type = checked_type(device, asked, devices)?;
    check_unused(device, &fs_type, asked, devices, mounts, table)?;
    let mut source = Source { fs_type, device: Some(device.clone()), ..source };
    if is_unstable(asked.device) {
        match own_tag(device, devices) {
            Some(tag) => {
                source
                    .notes
                    .push(format!("fstab gets {tag}, which stays with {} when names change", asked.device));
                source.written = tag;
            }
            None => source.warnings.push(format!(
                "{} has no UUID of its own, and another device may have its name after a start",
                asked.device
            )),
        }
    }
    if device.is_read_only && !options::has(asked.options, "ro") {
        source.warnings.push(format!("{} is read-only, and so will be the mount", device.name));
    }
    Ok(source)
}

/// The device's UUID as fstab names it, where no other device has it.
fn own_tag(device: &Device, devices: &Devices) -> Option<String> {
    let tag = device.uuid().map(|uuid| format!("UUID={uuid}"));
    tag.filter(|tag| devices.named(tag).is_some_and(|same| same.len() == 1))
}

/// The type of the file system on the device.
fn checked_type(device: &Device, asked: &Asked, devices: &Devices) -> Result<String> {
    let name = &device.name;
    let Some(found) = device.fs_type.as_deref() else {
        return Err(no_file_system(device, asked.fs_type, devices));
    };
    if let Some((what, help)) = kinds::not_mountable(found) {
        let message = format!("{name} is {what}, no file system");
        return Err(Problem::new("NO_FILE_SYSTEM", Category::State, message).remedy(help));
    }
    if !kinds::mounts(asked.fs_type, found) {
        let message = format!("{name} has {found}, not {}", asked.fs_type);
        return Err(Problem::validation("FS_TYPE_MISMATCH", message).remedy(format!("fs_type={found}")));
    }
    Ok(if asked.fs_type == "auto" { found } else { asked.fs_type }.to_owned())
}

/// Says what there is in place of a file system. Making one is advised only where it is certain that nothing is there.
fn no_file_system(device: &Device, asked: &str, devices: &Devices) -> Problem {
    let name = &device.name;
    let problem = |message: String| Problem::new("NO_FILE_SYSTEM", Category::State, message);
    let parts: Vec<&str> =
        devices.0.iter().filter(|other| other.is_part_of(device)).map(|part| part.name.as_str()).collect();
    if !parts.is_empty() {
        return problem(format!("{name} has partitions or volumes on it: {}", text::list(&parts, MOST)));
    }
    if device.size == 0 {
        return problem(format!("{name} has no medium in it, or is gone"))
            .remedy("disk_list tells which devices there are");
    }
    let problem = problem(format!("{name} has no file system that blkid knows"));
    if device.has_table || !devices.could_tell("UUID=") {
        return problem.remedy("disk_list tells what is on it, with root's rights");
    }
    problem.remedy(format!(
        "Where nothing on it is needed: command_run argv=[\"mkfs.{asked}\",\"{name}\"] as_root=true makes one"
    ))
}

/// Refuses a device that is mounted elsewhere, or that fstab has for another mount point. Subvolumes are mounted each by
/// itself.
fn check_unused(
    device: &Device,
    fs_type: &str,
    asked: &Asked,
    devices: &Devices,
    mounts: &MountTable,
    table: &Table,
) -> Result<()> {
    let is_subvolume = options::has(asked.options, "subvol") || options::has(asked.options, "subvolid");
    if fs_type == "btrfs" && is_subvolume {
        return Ok(());
    }
    let is_elsewhere = |point: &str| point != asked.mount_point;
    let is_it = |mount: &&Mount| mount.source == device.name || mount.device == device.number;
    if let Some(mount) = mounts.all().iter().filter(is_it).find(|mount| is_elsewhere(&mount.point)) {
        let message = format!("{} is mounted at {} already", device.name, mount.point);
        return Err(Problem::new("DEVICE_MOUNTED", Category::State, message)
            .remedy(format!("mount_remove mount_point={}", mount.point))
            .remedy(format!(
                "Or device={} fs_type=none options=bind shows it at a second place",
                mount.point
            )));
    }
    let same = |source: &str| devices.named(source).is_some_and(|named| named.contains(&device));
    let entry = table.entries.iter().find(|entry| is_elsewhere(&entry.mount_point) && same(&entry.source));
    match entry {
        Some(entry) => {
            let message =
                format!("{} is for {} in line {} of fstab", device.name, entry.mount_point, entry.line);
            Err(Problem::new("DEVICE_IN_FSTAB", Category::State, message)
                .remedy(format!("mount_remove mount_point={}", entry.mount_point)))
        }
        None => Ok(()),
    }
}

/// Names the devices that could be meant.
fn not_found(device: &str, devices: &Devices, mounts: &MountTable) -> Problem {
    let problem =
        Problem::not_found("DEVICE_NOT_FOUND", format!("there is no device {}", text::excerpt(device, 120)));
    let is_free = |device: &&Device| {
        let kind = device.fs_type.as_deref();
        kind.is_some_and(|kind| kinds::not_mountable(kind).is_none())
            && mounts.all().iter().all(|mount| mount.device != device.number && mount.source != device.name)
    };
    let name = |device: &Device| {
        let label = device.label().map(|label| format!(", label {label}")).unwrap_or_default();
        format!("{} ({}{label})", device.name, device.fs_type.as_deref().unwrap_or_default())
    };
    let free: Vec<String> = devices.0.iter().filter(is_free).map(name).collect();
    if !devices.could_tell(device) {
        return problem
            .remedy("Without root's rights and without udev, no UUID is known: name the device below /dev");
    }
    match free.is_empty() {
        true => problem.remedy("disk_list tells which devices there are"),
        false => problem.remedy(format!("Not mounted: {}", text::list(&free, MOST))),
    }
}
