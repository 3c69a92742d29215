//! `fstab_validate`: everything that is wrong with fstab, in one answer.

use linux_sysadmin_sdk::prelude::*;

use super::checks::{self, Facts, Finding};
use super::devices::{Device, Devices};
use super::fstab::{self, Table};
use super::{place, verify};
use crate::mount_table::MountTable;

#[derive(Serialize)]
pub(crate) struct Validated {
    entries: usize,
    findings: Vec<Finding>,
}

pub(crate) fn validate(_: NoArgs, cx: &Context) -> Result<Analysis<Validated>> {
    let table = Table::read(cx)?;
    let findings = findings(&table, cx);
    let count = |severity| findings.iter().filter(|finding| finding.severity == severity).count();
    let (errors, warnings) = (count(Severity::High), count(Severity::Warning));
    let summary = match (errors, warnings) {
        (0, 0) => format!("{} has no errors", fstab::PATH),
        _ => format!("{errors} errors and {warnings} warnings in {}", fstab::PATH),
    };
    let severity = findings.first().map_or(Severity::Info, |finding| finding.severity);
    Ok(Analysis { data: Validated { entries: table.entries.len(), findings }, summary, severity })
}

/// What is wrong with a table on this machine.
pub(crate) fn findings(table: &Table, cx: &Context) -> Vec<Finding> {
    let [lsblk, blkid] = Devices::commands();
    let [lsblk, blkid, verified] = cx.run_each([lsblk, blkid, verify::command()]);
    let devices = Devices::of([lsblk, blkid]);
    let mounts = MountTable::read(cx).unwrap_or_default();
    // What is mounted is a directory without symlinks. It isn't looked at, since it may hang.
    let path = |entry| checks::place_of(entry).filter(|path| mounts.at(path).is_none());
    let paths: Vec<Option<&str>> = table.entries.iter().map(path).collect();
    let mut looked = place::all(&paths.iter().flatten().collect::<Vec<_>>(), cx).into_iter();
    // Of what can't be looked at, only the text is judged.
    let place = |path: &Option<&str>| path.and_then(|_| looked.next()).unwrap_or(place::Place::Directory);
    let places: Vec<_> = paths.iter().map(place).collect();
    let sources: Vec<Option<Vec<&Device>>> =
        table.entries.iter().map(|entry| devices.resolved(&entry.source, cx)).collect();
    let said = verified.map(|output| verify::said(&output)).unwrap_or_default();
    checks::all(&Facts { table, devices: &devices, places: &places, sources: &sources }, &said)
}
