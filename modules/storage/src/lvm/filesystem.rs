//! What is on a volume, and how it follows the volume's size.

use linux_sysadmin_sdk::{Category, DurationCategory, prelude::*};

use super::commands::{BTRFS_FILL, EXT_CHECK, EXT_FILL, EXT_LEAST, EXT_RESIZE, PROBE, XFS_FILL};
use super::report::Volume;
use super::uses::Uses;
use crate::file_system_size;
use crate::mount_table::Mount;
use crate::size::shown;

/// What the signatures on a volume say.
#[derive(Debug, PartialEq)]
pub(super) enum Content {
    Nothing,
    /// ext2, ext3 or ext4.
    Ext(String),
    Xfs,
    Btrfs,
    /// Swap, encryption, a partition table, and every other file system.
    Other(String),
}

impl Content {
    pub(super) fn name(&self) -> Option<&str> {
        match self {
            Self::Nothing => None,
            Self::Xfs => Some("xfs"),
            Self::Btrfs => Some("btrfs"),
            Self::Ext(name) | Self::Other(name) => Some(name),
        }
    }
}

/// Reads the signatures on an active volume.
pub(super) fn probe(volume: &Volume, cx: &Context) -> Result<Content> {
    if !volume.is_active() {
        let name = volume.full_name();
        let message = format!("{name} isn't active, so that nobody can tell what is on it");
        return Err(Problem::new("LVM_VOLUME_INACTIVE", Category::State, message).remedy(format!(
            "command_run argv=[lvchange,--activate,y,{name}] as_root=true, then call this again"
        )));
    }
    let output = cx.run(PROBE.with([&volume.path]).as_root())?;
    let text = output.text().into_owned();
    let value = |key: &str| text.lines().find_map(|line| line.strip_prefix(key)).map(str::to_owned);
    Ok(match (output.exit_code, value("TYPE=")) {
        (0, Some(kind)) => match kind.as_str() {
            "ext2" | "ext3" | "ext4" => Content::Ext(kind),
            "xfs" => Content::Xfs,
            "btrfs" => Content::Btrfs,
            _ => Content::Other(kind),
        },
        (0, None) => Content::Other(match value("PTTYPE=") {
            Some(kind) => format!("a partition table ({kind})"),
            None => "something unknown".to_owned(),
        }),
        (2, _) => Content::Nothing,
        // Several signatures, none of which is certain.
        (8, _) => Content::Other("several signatures".to_owned()),
        _ => {
            return Err(output.success("blkid").err().unwrap_or_else(|| Problem::unexpected("blkid", &text)));
        }
    })
}

/// A file system that can follow its volume, with what the steps need.
pub(super) struct Growth<'a> {
    /// A check that has to come before the volume is touched.
    pub(super) before: Option<Step>,
    pub(super) fill: Step,
    /// The size of the file system in bytes, where it is known.
    pub(super) size: Option<u64>,
    pub(super) mount: Option<&'a Mount>,
}

/// How the file system fills its volume once that has grown. A file system that can't follow is refused.
pub(super) fn growth<'a>(
    volume: &Volume,
    content: &Content,
    uses: &'a Uses,
    cx: &Context,
) -> Result<Growth<'a>> {
    let mount = uses.mounts(volume).into_iter().next();
    if let Some(mount) = mount.filter(|mount| mount.is_read_only()) {
        let message = format!("{} is mounted read-only, so that its file system can't grow", mount.point);
        return Err(Problem::new("FILESYSTEM_READ_ONLY", Category::State, message)
            .remedy(format!("command_run argv=[mount,-o,'remount,rw',{}] as_root=true", mount.point))
            .remedy(
                "Where the kernel made it read-only after an error, log_search of its messages tells why",
            ));
    }
    let path = &volume.path;
    let step = |command: Command| Step::run(command.as_root()).uninterruptible();
    match (content, mount) {
        (Content::Ext(_), Some(_)) => {
            let size = file_system_size::ext(path, cx);
            Ok(Growth { before: None, fill: step(EXT_FILL.with([path])), size, mount })
        }
        (Content::Ext(_), None) => {
            not_open(volume)?;
            let size = file_system_size::ext(path, cx);
            Ok(Growth { before: Some(check(path)), fill: step(EXT_FILL.with([path])), size, mount })
        }
        (Content::Xfs, Some(Mount { point, .. })) => {
            let size = file_system_size::xfs(point, cx);
            Ok(Growth { before: None, fill: step(XFS_FILL.with([point])), size, mount })
        }
        (Content::Btrfs, Some(Mount { point, .. })) => {
            let (device, size) = file_system_size::btrfs(point, |path| volume.is_called(path), cx)?;
            let fill = step(BTRFS_FILL.with([&device, point]));
            Ok(Growth { before: None, fill, size: Some(size), mount })
        }
        (Content::Xfs | Content::Btrfs, None) => {
            let kind = content.name().unwrap_or_default();
            let message = format!("{kind} grows only while it is mounted, and {path} isn't");
            Err(Problem::new("FILESYSTEM_NOT_MOUNTED", Category::State, message).remedy(format!(
                "Mount it with mount_add device={path}, or grow the volume alone with resize_filesystem=false and the file \
                 system later by the same call"
            )))
        }
        (Content::Other(kind), _) => Err(unknown(volume, kind)),
        (Content::Nothing, _) => Err(unknown(volume, "nothing")),
    }
}

/// The problem of a volume whose content this module can't resize.
fn unknown(volume: &Volume, kind: &str) -> Problem {
    let path = &volume.path;
    let message = format!("{path} holds {kind}, which doesn't follow the volume's size by this tool");
    let problem = Problem::new("FILESYSTEM_UNSUPPORTED", Category::State, message);
    let alone = "lvm_resize with resize_filesystem=false changes the volume alone";
    match kind {
        "swap" => problem.remedy(format!("swap_remove {path}, {alone}, then swap_add {path} makes it anew")),
        "crypto_LUKS" => {
            problem.remedy(format!("{alone}; then cryptsetup resize, and the file system inside"))
        }
        "LVM2_member" => problem.remedy(format!("{alone}; then pvresize {path}")),
        _ => problem.remedy(alone),
    }
}

/// Refuses a volume that somebody has open, though this machine shows no mount of it.
pub(super) fn not_open(volume: &Volume) -> Result<()> {
    if !volume.is_open() {
        return Ok(());
    }
    let path = &volume.path;
    let message = format!(
        "{path} is in use, though it isn't mounted here: by a container, a virtual machine, or a mapping"
    );
    let look = format!(
        "command_run argv=[lsblk,{path}] shows what lies on it; proc_list file={path} who has it open"
    );
    Err(Problem::new("VOLUME_IN_USE", Category::State, message).remedy(look))
}

fn check(path: &str) -> Step {
    // 1: errors were corrected.
    Step::run(EXT_CHECK.with([path]).as_root()).success(&[0, 1]).uninterruptible()
}

/// The steps that make an ext file system smaller, which isn't mounted. The second one is undone by growing it again.
pub(super) fn shrink_ext(path: &str, before: u64, bytes: u64) -> [Step; 2] {
    let resize = |bytes: u64| EXT_RESIZE.with([path.to_owned(), (bytes >> 10).to_string()]).as_root();
    [check(path), Step::run(resize(bytes)).undo(resize(before)).uninterruptible()]
}

/// Refuses a size into which the files of an ext file system don't fit. A file system that needs a check first has no
/// estimate; then resize2fs refuses it, and nothing has changed.
pub(super) fn must_fit(path: &str, bytes: u64, block: u64, cx: &Context) -> Result<()> {
    let command = EXT_LEAST.with([path]).as_root().duration(DurationCategory::Quick);
    let Some(output) = cx.run(command).ok().filter(|output| output.exit_code == 0) else { return Ok(()) };
    let text = output.text();
    let Some(least) = text.rsplit(": ").next().and_then(|number| number.trim().parse::<u64>().ok()) else {
        return Ok(());
    };
    let least = least.saturating_mul(block);
    if least <= bytes {
        return Ok(());
    }
    let message = format!("the files on {path} need {}: {} is too small", shown(least), shown(bytes));
    Err(Problem::validation("VOLUME_TOO_SMALL", message)
        .remedy(format!("Ask for more than {}, or remove files first", shown(least))))
}
