//! The size that a file system has by its own account. It differs from the device's where the device was made larger, and from
//! what statfs(2) counts, since ext and xfs leave out what they need for themselves.

use linux_sysadmin_sdk::prelude::*;

const EXT: CommandLine = CommandLine::new("dumpe2fs -h -- <disk>");
const XFS: CommandLine = CommandLine::new("xfs_info -- <path>");
const BTRFS: CommandLine = CommandLine::new("btrfs filesystem show --raw -- <path>");

pub(crate) fn grants() -> [CommandGrant; 3] {
    let size = "how large the file system is";
    [
        EXT.read(size).as_root(),
        XFS.read(size).as_root(),
        BTRFS.read("how large the file system is, and the number of its device").as_root(),
    ]
}

/// The number of blocks of an ext file system, and the size of a block.
pub(crate) fn ext_blocks(device: &str, cx: &Context) -> Result<(u64, u64)> {
    let output = cx.run(EXT.with([device]).as_root())?.success("dumpe2fs")?;
    let text = output.text();
    let value = |key: &str| text.lines().find_map(|line| line.strip_prefix(key)?.trim().parse::<u64>().ok());
    value("Block count:").zip(value("Block size:")).ok_or_else(|| Problem::unexpected("dumpe2fs", &text))
}

/// The size of an ext file system in bytes.
pub(crate) fn ext(device: &str, cx: &Context) -> Option<u64> {
    ext_blocks(device, cx).ok().map(|(count, block)| count.saturating_mul(block))
}

/// The size of an xfs file system in bytes, by the line `data = bsize=4096 blocks=102400, imaxpct=25`.
pub(crate) fn xfs(point: &str, cx: &Context) -> Option<u64> {
    let output = cx.run(XFS.with([point]).as_root()).ok()?.success("xfs_info").ok()?;
    let text = output.text();
    let line = text.lines().find(|line| line.starts_with("data "))?;
    let words: Vec<_> = line.split([' ', ',']).collect();
    let value = |key: &str| words.iter().find_map(|word| word.strip_prefix(key)?.parse::<u64>().ok());
    value("bsize=")?.checked_mul(value("blocks=")?)
}

/// The number of a device among those of a btrfs file system, and the size in bytes that it has there.
pub(crate) fn btrfs(point: &str, is_called: impl Fn(&str) -> bool, cx: &Context) -> Result<(String, u64)> {
    let output = cx.run(BTRFS.with([point]).as_root())?.success("btrfs")?;
    let text = output.text();
    let device = |line: &str| {
        let rest = line.trim().strip_prefix("devid")?.trim_start();
        let (number, rest) = rest.split_once(" size ")?;
        let (size, rest) = rest.split_once(' ')?;
        let (_, path) = rest.split_once(" path ")?;
        is_called(path.trim()).then(|| Some((number.trim().to_owned(), size.parse().ok()?)))?
    };
    text.lines().find_map(device).ok_or_else(|| Problem::unexpected("btrfs filesystem show", &text))
}
