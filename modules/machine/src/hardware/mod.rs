//! Reads what the kernel shows of the hardware. Each file holds one kind of it: which files it lies in, and what they mean.

pub(crate) mod arm;
pub(crate) mod cpu;
pub(crate) mod cpu_set;
pub(crate) mod dmi;
pub(crate) mod memory;
pub(crate) mod network;
pub(crate) mod pci;
pub(crate) mod storage;
pub(crate) mod system;
pub(crate) mod usb;

use std::collections::BTreeMap;

use linux_sysadmin_sdk::Privilege;
use linux_sysadmin_sdk::prelude::*;
use linux_sysadmin_sdk::text::excerpt;

/// The most bytes of one file that are read. Only `/proc/cpuinfo` of many CPUs is longer, whose first blocks are enough.
const MOST_BYTES: u64 = 64 * 1024;

/// The longest text of a file that is shown.
const LONGEST: usize = 120;

/// The texts of files by path. Files that are missing, unreadable or empty are left out.
pub(crate) struct Files(BTreeMap<String, String>);

impl Files {
    /// Reads the files at the same time.
    pub(crate) fn take(cx: &Context, paths: Vec<String>) -> Self {
        let mut files = Self(BTreeMap::new());
        files.add(cx, paths);
        files
    }

    /// Reads more files at the same time.
    pub(crate) fn add(&mut self, cx: &Context, paths: Vec<String>) {
        if paths.is_empty() {
            return;
        }
        let parts: Vec<_> = paths.iter().map(|path| (path, 0, MOST_BYTES)).collect();
        for (path, contents) in paths.iter().zip(cx.read_parts(&parts)) {
            let Ok(contents) = contents else { continue };
            let text = String::from_utf8_lossy(&contents);
            let text = text.trim_matches(|c: char| c.is_whitespace() || c == '\0');
            if !text.is_empty() {
                self.0.insert(path.clone(), text.to_owned());
            }
        }
    }

    /// Reads more files with root's rights, where these are available.
    pub(crate) fn add_as_root(&mut self, cx: &Context, paths: &[&str]) {
        let cx = cx.files_as(Privilege::RootIfAvailable);
        self.add(&cx, paths.iter().map(|path| (*path).to_owned()).collect());
    }

    pub(crate) fn text(&self, path: &str) -> Option<&str> {
        self.0.get(path).map(String::as_str)
    }

    /// The first line of a file, fit to be shown.
    pub(crate) fn line(&self, path: &str) -> Option<String> {
        self.text(path).map(shown)
    }

    pub(crate) fn number(&self, path: &str) -> Option<u64> {
        self.text(path)?.parse().ok()
    }

    /// The value of a line `KEY=value`, as a `uevent` has it.
    pub(crate) fn variable(&self, path: &str, key: &str) -> Option<&str> {
        let mut lines = self.text(path)?.lines();
        lines.find_map(|line| line.split_once('=').filter(|(name, _)| *name == key)).map(|(_, value)| value)
    }
}

/// The names in directories by path. Directories that are missing or unreadable have no names.
pub(crate) struct Listings(BTreeMap<String, Vec<String>>);

impl Listings {
    /// Lists the directories at the same time.
    pub(crate) fn take(cx: &Context, paths: Vec<String>) -> Self {
        if paths.is_empty() {
            return Self(BTreeMap::new());
        }
        let names = cx.list_all(&paths).into_iter().map(Result::unwrap_or_default);
        Self(paths.iter().cloned().zip(names).collect())
    }

    pub(crate) fn names(&self, path: &str) -> &[String] {
        self.0.get(path).map_or(&[], Vec::as_slice)
    }

    /// The paths of some files of each entry of a directory.
    pub(crate) fn files_of(&self, path: &str, wanted: fn(&str) -> bool, files: &[&str]) -> Vec<String> {
        let names = self.names(path).iter().filter(|name| wanted(name));
        names.flat_map(|name| files.iter().map(move |file| format!("{path}/{name}/{file}"))).collect()
    }
}

/// Makes a text of the machine fit to be shown: one line, single blanks, not too long.
fn shown(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    excerpt(&line.split_whitespace().collect::<Vec<_>>().join(" "), LONGEST)
}

/// The files that the module reads.
pub(crate) fn grants() -> Vec<PathGrant> {
    let tables = [
        (system::FILES, "kernel and uptime"),
        (memory::FILES, "memory"),
        (dmi::FILES, "vendor, product and firmware"),
        (cpu::FILES, "CPUs and whether they are online"),
        (cpu::DIRECTORIES, "which caches, NUMA nodes and weaknesses there are"),
        (cpu::GLOBS, "topology, caches, frequency and weaknesses"),
        (&[pci::DEVICES, usb::DEVICES, storage::BLOCK, network::INTERFACES], "which devices there are"),
        (pci::GLOBS, "PCI devices and their drivers"),
        (usb::GLOBS, "USB devices"),
        (storage::GLOBS, "size and model of disks"),
        (network::GLOBS, "drivers and speed of network cards"),
        (GLOBS_BEHIND_LINKS, "where the links of devices lead"),
    ];
    let looks =
        tables.iter().flat_map(|(globs, reason)| globs.iter().map(|glob| PathGrant::read(glob, reason)));
    let serials = [dmi::SERIALS, dmi::SERIALS_BEHIND_LINKS].concat();
    let serials = serials
        .iter()
        .map(|glob| PathGrant::read(glob, "serial numbers, where they are asked for").as_root_if_available());
    looks.chain(serials).collect()
}

/// The files of devices that are reached through links of `/sys/bus`, `/sys/block` and `/sys/class`.
const GLOBS_BEHIND_LINKS: &[&str] = &[
    "/sys/devices/**/uevent",
    "/sys/devices/**/idVendor",
    "/sys/devices/**/idProduct",
    "/sys/devices/**/product",
    "/sys/devices/**/bDeviceClass",
    "/sys/devices/**/model",
    "/sys/devices/**/block/*/size",
    "/sys/devices/**/block/*/queue/rotational",
    "/sys/devices/**/nvme*/size",
    "/sys/devices/**/nvme*/queue/rotational",
    "/sys/devices/**/net/*/speed",
    "/sys/devices/virtual/dmi/id/*_vendor",
    "/sys/devices/virtual/dmi/id/*_name",
    "/sys/devices/virtual/dmi/id/*_version",
    "/sys/devices/virtual/dmi/id/*_date",
    "/sys/devices/virtual/dmi/id/*_type",
    "/sys/firmware/devicetree/base/model",
];
