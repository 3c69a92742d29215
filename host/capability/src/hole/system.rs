//! Validators of units, packages, disks and volumes.

use super::{all_digits, all_of, begins_with_alphanumeric, ends_with_alphanumeric};
use crate::path::is_lexically_safe;

/// systemd.unit(5): letters, digits, `:`, `-`, `_`, `.`, `\` and, for templates, `@`; 255 with the suffix.
/// No unit begins with a dot: systemd escapes it (`\x2esnapshots.mount`).
pub(super) fn is_unit(value: &str) -> bool {
    value.len() <= 255 && !value.starts_with(['.', '@']) && all_of(value, r":_.\@-")
}

/// Real names that end in `++`. They are listed one by one because apt-get takes `x++`, where no package
/// has that name, for the regular expression `x+` with the order to install whatever matches, even in
/// `apt-get remove`.
#[rustfmt::skip]
const PLUS_PLUS: &[&str] = &[
    "aewm++", "afl++", "aspectc++", "bison++", "bisonc++", "bonnie++", "compat-libstdc++", "fact++",
    "flexc++", "freefem++", "g++", "gcc-c++", "gcc-objc++", "gobjc++", "libdb5.3++", "libfreefem++",
    "libgetfem5++", "libsigc++", "libstdc++", "libxml++", "magics++", "python3-getfem++", "python3-magics++",
    "swish++", "tintin++", "vera++", "voro++", "wayland-scanner++", "xgalaga++",
];

/// Endings of names that apt-get, dnf, zypper or pacman take for a file in the working directory.
const FILES: &[&str] = &[".deb", ".udeb", ".ddeb", ".dsc", ".changes", ".rpm", ".apk", ".zst", ".xz", ".gz"];

/// deb-src-control(5), and the names that RPM packages have. The last character is a letter or a digit: apt-get takes `-`
/// and `+` there for "remove" and "install" (apt-get(8)), and a dot for a regular expression.
pub(super) fn is_package(value: &str) -> bool {
    let lower = value.to_ascii_lowercase();
    value.len() <= 255
        && begins_with_alphanumeric(value)
        && all_of(value, "+._-")
        && (ends_with_alphanumeric(value) || PLUS_PLUS.contains(&value))
        && !value.contains("..")
        && !FILES.iter().any(|suffix| lower.ends_with(suffix))
}

/// deb-version(7) and rpm-version(7). A version doesn't end in `-` or `+`: in `name=1.0-`, apt-get reads the last dash as
/// "remove".
pub(super) fn is_version(value: &str) -> bool {
    value.len() <= 255
        && begins_with_alphanumeric(value)
        && all_of(value, ".+:~^_-")
        && !value.ends_with(['-', '+'])
}

/// The beginnings of the names of the kernel's block devices. Letters and a partition follow on sd, vd, xvd and hd; numbers
/// follow on the others.
#[rustfmt::skip]
const DISKS: &[&str] = &[
    "bcache", "dasd", "dm-", "drbd", "hd", "loop", "md", "mmcblk", "nbd", "nvme", "pmem", "rbd", "sd", "sr",
    "vd", "xvd", "zd", "zram",
];

/// Directories below `/dev` without disks. Any other directory may be a volume group (`/dev/vg0/root`).
#[rustfmt::skip]
const NO_DISKS: &[&str] = &[
    "bsg", "bus", "char", "cpu", "dma_heap", "dri", "fd", "hugepages", "infiniband", "input", "mqueue", "net",
    "pts", "shm", "snd", "usb", "vfio",
];

/// A name that udev gives to a block device. Only the target can tell whether it is one. The names of memory, terminals,
/// shared memory and standard streams are refused here.
pub(super) fn is_disk(value: &str) -> bool {
    let Some(name) = value.strip_prefix("/dev/") else { return false };
    if value.len() > 255 || value.ends_with('/') || !is_lexically_safe(value) || !all_of(value, r"/_.:+@=\-")
    {
        return false;
    }
    match name.split('/').collect::<Vec<_>>()[..] {
        [device] => DISKS.iter().any(|prefix| {
            device.strip_prefix(prefix).is_some_and(|rest| {
                !rest.is_empty()
                    && rest.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
            })
        }),
        ["mapper", "control"] | ["disk", _] => false,
        ["block", numbers] => {
            numbers.split_once(':').is_some_and(|(major, minor)| all_digits(major) && all_digits(minor))
        }
        ["disk", by, _] => by.starts_with("by-"),
        ["zvol" | "drbd" | "rbd", ..] => true,
        [directory, _] => !directory.starts_with(['-', '.']) && !NO_DISKS.contains(&directory),
        _ => false,
    }
}

/// lvm(8): letters, digits, `+`, `_`, `.` and `-`, but no `-` first, and at most 127 characters.
pub(super) fn is_volume(value: &str) -> bool {
    let is_name = |name: &str| {
        !name.is_empty()
            && name.len() <= 127
            && !matches!(name, "." | "..")
            && !name.starts_with('-')
            && all_of(name, "+_.-")
    };
    match value.split_once('/') {
        Some((group, volume)) => is_name(group) && is_name(volume),
        None => is_name(value),
    }
}
