//! What is wrong with fstab, or will be at the next start.

use linux_sysadmin_sdk::prelude::*;
use linux_sysadmin_sdk::text::{excerpt, list};

use super::devices::{Device, Devices, is_unstable};
use super::fstab::{Entry, Table};
use super::place::Place;
use super::verify::Said;
use super::{kinds, options};
use crate::mount_table::is_within;

/// A finding about fstab.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Finding {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) line: Option<usize>,
    pub(crate) severity: Severity,
    pub(crate) message: String,
    /// What helps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) help: Option<String>,
}

/// What the checks go by.
pub(crate) struct Facts<'a> {
    pub(crate) table: &'a Table,
    pub(crate) devices: &'a Devices,
    /// What is at the path of each entry that [`place_of`] tells.
    pub(crate) places: &'a [Place],
    /// The devices that the source of each entry stands for, as [`Devices::resolved`] says.
    pub(crate) sources: &'a [Option<Vec<&'a Device>>],
}

/// Findings while they are collected.
#[derive(Default)]
struct Findings(Vec<Finding>);

impl Findings {
    fn add(&mut self, line: usize, severity: Severity, message: impl Into<String>, help: impl Into<String>) {
        let help = Some(help.into()).filter(|help| !help.is_empty());
        self.0.push(Finding { line: Some(line), severity, message: message.into(), help });
    }
}

/// All findings, the gravest first. `said` is what findmnt found: what only it knows is added.
pub(crate) fn all(facts: &Facts, said: &[Said]) -> Vec<Finding> {
    let mut found = Findings::default();
    let entries = &facts.table.entries;
    for line in &facts.table.broken {
        let message = "the line has fewer than three fields, and is ignored";
        found.add(*line, Severity::High, message, "expected: device mount-point type options dump pass");
    }
    for (index, entry) in entries.iter().enumerate() {
        fields(entry, &mut found);
        source(entry, facts, index, &mut found);
        if entry.is_swap() {
            file(entry, facts.places.get(index), &mut found);
        } else {
            point(entry, facts.places.get(index), &mut found);
            network(entry, facts, index, &mut found);
        }
        twice(entry, &entries[..index], &mut found);
        order(entry, &entries[..index], &mut found);
    }
    loops(entries, &mut found);
    findmnt(entries, said, &mut found);
    found.0.sort_by_key(|finding| (std::cmp::Reverse(finding.severity), finding.line));
    found.0
}

fn fields(entry: &Entry, found: &mut Findings) {
    let secrets = options::secrets(&entry.options);
    if !secrets.is_empty() {
        let message =
            format!("options hold a secret ({}), and every account can read fstab", secrets.join(", "));
        found.add(
            entry.line,
            Severity::High,
            message,
            "move it to a file with mode 0600 and say credentials=FILE",
        );
    }
    let pass = entry.pass.parse::<u8>();
    let is_root = entry.mount_point == "/";
    match pass {
        Err(_) => {
            let message = format!("the pass number {:?} is no number", excerpt(&entry.pass, 40));
            found.add(entry.line, Severity::High, message, "expected 0, 1 or 2 in the sixth field");
        }
        Ok(0) => {}
        Ok(_) if kinds::is_unchecked(&entry.fs_type) => {
            let message = format!("pass {} has fsck check {}, which it can't", entry.pass, entry.fs_type);
            found.add(entry.line, Severity::Warning, message, "pass 0");
        }
        Ok(1) if !is_root => {
            found.add(entry.line, Severity::Info, "pass 1 is for the root file system", "pass 2");
        }
        Ok(_) => {}
    }
}

fn source(entry: &Entry, facts: &Facts, index: usize, found: &mut Findings) {
    let Some(devices) = facts.sources.get(index).and_then(Option::as_ref) else { return };
    let shown = excerpt(&entry.source, 120);
    match devices[..] {
        [] if !facts.devices.could_tell(&entry.source) => {}
        [] if entry.is_swap() => {
            // `nofail` lets the start go on without the area, and doesn't shorten the wait: systemd.swap(5).
            let waits = !entry.has("noauto") && !entry.has("x-systemd.device-timeout");
            let (then, or) = match waits {
                true => (": the start waits 90 s for it", ", or the option x-systemd.device-timeout=10s"),
                false => ("", ""),
            };
            let message = format!("no device {shown} is there{then}");
            found.add(entry.line, Severity::Warning, message, format!("swap_remove path={shown}{or}"));
        }
        [] if entry.is_optional() => {
            found.add(entry.line, Severity::Warning, format!("no device {shown} is there now"), "");
        }
        [] => {
            let message = format!("no device {shown} is there: the next start stops in emergency mode");
            found.add(entry.line, Severity::High, message, "correct it, or add nofail to its options");
        }
        [device] => {
            if let Some(kind) = device.fs_type.as_deref()
                && !entry.is_swap()
                && !kinds::mounts(&entry.fs_type, kind)
            {
                let message = format!("the type is {}, and {} has {kind}", entry.fs_type, device.name);
                found.add(entry.line, Severity::High, message, format!("type {kind}"));
            }
            if is_unstable(&entry.source) {
                let help = device.uuid().map(|uuid| format!("UUID={uuid}")).unwrap_or_default();
                let message = format!("{shown} may be another device after a start");
                found.add(entry.line, Severity::Warning, message, help);
            }
        }
        _ => {
            let names: Vec<_> = devices.iter().map(|device| device.name.as_str()).collect();
            let message = format!("{} are all {shown}: any of them may be taken", names.join(", "));
            found.add(entry.line, Severity::High, message, "give one of them another UUID or label");
        }
    }
}

/// The path of an entry that can be looked at: its mount point, or its swap file.
pub(crate) fn place_of(entry: &Entry) -> Option<&str> {
    let path = if entry.is_swap() { &entry.source } else { &entry.mount_point };
    Some(path.as_str()).filter(|path| path.starts_with('/') && !path.starts_with("/dev/"))
}

fn file(entry: &Entry, place: Option<&Place>, found: &mut Findings) {
    if place == Some(&Place::Missing) {
        let shown = excerpt(&entry.source, 120);
        let message = format!("no swap file {shown} is there");
        found.add(entry.line, Severity::Warning, message, format!("swap_remove path={shown}"));
    }
}

fn point(entry: &Entry, place: Option<&Place>, found: &mut Findings) {
    let shown = excerpt(&entry.mount_point, 120);
    if !entry.mount_point.starts_with('/') {
        if entry.mount_point != "none" {
            let message = format!("the mount point {shown:?} is no absolute path");
            found.add(entry.line, Severity::High, message, "");
        }
        return;
    }
    match place {
        Some(Place::Missing) => {
            let message = format!("{shown} isn't there: systemd makes it at the start, and mount doesn't");
            found.add(entry.line, Severity::Warning, message, format!("file_mkdir path={shown}"));
        }
        Some(Place::Symlink(target)) => {
            let message = format!("{shown} leads through a symlink to {}", excerpt(target, 120));
            found.add(entry.line, Severity::Warning, message, format!("mount point {target}"));
        }
        Some(Place::Other(kind)) if !options::has(&entry.options, "bind") => {
            found.add(entry.line, Severity::High, format!("{shown} is a {kind}, no directory"), "");
        }
        Some(Place::Unknown(reason)) => {
            let message = format!("{shown} can't be looked at: {}", excerpt(reason, 200));
            found.add(entry.line, Severity::Warning, message, "");
        }
        _ => {}
    }
}

/// What may be away at the start should not stop it.
fn network(entry: &Entry, facts: &Facts, index: usize, found: &mut Findings) {
    if entry.is_optional() {
        return;
    }
    let devices = facts.sources.get(index).and_then(Option::as_ref);
    if kinds::is_network(&entry.fs_type, &entry.options) {
        let message =
            "without nofail, services wait for the network's file system, and stay away where it fails";
        found.add(
            entry.line,
            Severity::Warning,
            message,
            "nofail, or x-systemd.automount to mount it on use",
        );
    } else if devices.is_some_and(|devices| devices.iter().any(|device| device.is_removable)) {
        let message = "the device is removable: without nofail, a start without it stops in emergency mode";
        found.add(entry.line, Severity::Warning, message, "nofail");
    }
}

fn twice(entry: &Entry, before: &[Entry], found: &mut Findings) {
    let first = before.iter().find(|other| match entry.is_swap() {
        true => other.is_swap() && other.source == entry.source,
        false => !other.is_swap() && other.mount_point == entry.mount_point && entry.mount_point != "none",
    });
    if let Some(first) = first {
        let what = if entry.is_swap() { &entry.source } else { &entry.mount_point };
        let message = format!("{} stands in line {} already", excerpt(what, 120), first.line);
        found.add(entry.line, Severity::High, message, "remove one of both lines");
    }
}

/// `mount -a` goes from the first line to the last one.
fn order(entry: &Entry, before: &[Entry], found: &mut Findings) {
    if entry.is_swap() || !entry.mount_point.starts_with('/') {
        return;
    }
    let is_covered = |other: &&Entry| {
        !other.is_swap()
            && other.mount_point != entry.mount_point
            && is_within(&other.mount_point, &entry.mount_point)
    };
    let lines: Vec<String> = before.iter().filter(is_covered).map(|other| other.line.to_string()).collect();
    if let Some(first) = lines.first() {
        let shown = excerpt(&entry.mount_point, 120);
        let message =
            format!("`mount -a` mounts {shown} over what line {} mounted below it", list(&lines, 10));
        found.add(entry.line, Severity::Warning, message, format!("move it in front of line {first}"));
    }
}

/// Finds entries that need each other: the source or the mount point of each lies below the mount point of the next.
fn loops(entries: &[Entry], found: &mut Findings) {
    let needs = |entry: &Entry, other: &Entry| {
        let is_below = |path: &str| {
            path.starts_with('/') && !path.starts_with("/dev/") && is_within(path, &other.mount_point)
        };
        !other.is_swap()
            && !std::ptr::eq(entry, other)
            && other.mount_point.starts_with('/')
            && (is_below(&entry.source)
                || !entry.is_swap() && other.mount_point != entry.mount_point && is_below(&entry.mount_point))
    };
    // What needs nothing that is left is no part of a loop, and neither is what nothing left needs.
    let mut left: Vec<&Entry> = entries.iter().collect();
    loop {
        let before = left.len();
        let all = left.clone();
        left.retain(|entry| {
            all.iter().any(|other| needs(entry, other)) && all.iter().any(|other| needs(other, entry))
        });
        if left.len() == before {
            break;
        }
    }
    if let [first, others @ ..] = &left[..] {
        let lines: Vec<String> = others.iter().map(|entry| entry.line.to_string()).collect();
        let message = format!("needs a mount that needs this one: a loop with line {}", lines.join(", "));
        found.add(first.line, Severity::High, message, "");
    }
}

/// The beginnings of findings of findmnt that the checks here tell themselves, with more care: findmnt takes a device that
/// isn't there for an error even with `nofail`.
const KNOWN: [&str; 7] = [
    "unreachable",
    "target specified more than once",
    "wrong order",
    "cannot detect on-disk filesystem type",
    "target is not a directory",
    "non-canonical target path",
    "required pseudo",
];

fn findmnt(entries: &[Entry], said: &[Said], found: &mut Findings) {
    let mut rest = entries.iter().peekable();
    for said in said {
        let is_known = KNOWN.iter().any(|known| said.message.starts_with(known))
            || said.message.contains("does not match with on-disk");
        // findmnt prints its findings in the order of the file.
        while !said.target.is_empty() && rest.peek().is_some_and(|entry| entry.mount_point != said.target) {
            rest.next();
        }
        if !is_known {
            let line = rest.peek().filter(|_| !said.target.is_empty()).map(|entry| entry.line);
            let severity = if said.is_error { Severity::High } else { Severity::Warning };
            let help = said
                .target
                .is_empty()
                .then(|| "command_run argv=[\"systemctl\",\"daemon-reload\"] as_root=true".to_owned());
            found.0.push(Finding { line, severity, message: said.message.clone(), help });
        }
    }
}
