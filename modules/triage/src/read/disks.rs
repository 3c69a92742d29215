//! File systems that are full or don't answer, and disks that aren't well.

use linux_sysadmin_sdk::{Severity, text};
use serde_json::Value;

use crate::call::{Call, Form};
use crate::envelope::{Envelope, count, list, raw, said, severity, short, strings};
use crate::finding::{Finding, Kind};
use crate::notebook::Notebook;

/// From here on a file system is told, in percent.
const FULL: u64 = 90;
const CRITICAL: u64 = 95;

/// The longest cause, in characters.
const CAUSE: usize = 260;

/// Reads `disk_usage`.
pub(crate) fn usage(envelope: Envelope<'_>, _: &str, notebook: &mut Notebook<'_>) {
    let data = envelope.data();
    for item in list(data, "filesystems") {
        let Some(mount) = raw(item, "mount") else { continue };
        if let Some(problem) = said(item, "problem") {
            let finding =
                Finding::new(Kind::Disk, Severity::High, format!("{} doesn't answer", short(mount)))
                    .fits(&[Kind::Slow])
                    .evidence(problem)
                    .name(mount)
                    .call([Some(Call::new("mount_list"))]);
            notebook.add(finding);
            continue;
        }
        let (bytes, inodes) = (count(item, "used_pct"), count(item, "inodes_used_pct"));
        let fullest = bytes.max(inodes);
        let is_read_only = item["read_only"].as_bool() == Some(true);
        if fullest < FULL || is_read_only {
            continue;
        }
        let grade = if fullest >= CRITICAL { Severity::Critical } else { Severity::High };
        let of = if inodes > bytes { "of its inodes are used" } else { "full" };
        let cause = list(data, "causes").find(|cause| raw(cause, "mount") == Some(mount));
        let why = why(envelope.summary(), mount);
        let is_deleted = why.as_ref().is_some_and(|why| why.starts_with("deleted files"));
        let frees = frees(cause).filter(|_| is_deleted);
        let mut finding = Finding::new(Kind::Disk, grade, format!("{}: {fullest} % {of}", short(mount)))
            .fits(&[Kind::Service, Kind::Packages, Kind::Mail])
            .evidence(room(item))
            .name(mount)
            .call([frees, top(cause, mount), Some(Call::new("disk_usage"))]);
        finding.cause = why.or_else(|| largest(cause));
        for service in cause.into_iter().flat_map(|cause| list(cause, "services")) {
            finding.names.extend(said(service, "unit").or_else(|| said(service, "profile")));
        }
        notebook.add(finding);
    }
}

fn room(item: &Value) -> String {
    let text = |name: &str| said(item, name).unwrap_or_default();
    format!(
        "{} of {} used, {} available on {}",
        text("used"),
        text("size"),
        text("available"),
        text("device")
    )
}

/// The cause as the summary says it: `/var is 97 % full: /var/log/shop takes 3 GiB; /srv is …`.
fn why(summary: &str, mount: &str) -> Option<String> {
    let behind =
        summary.split("; ").skip_while(|part| !part.starts_with(&format!("{mount} "))).collect::<Vec<_>>();
    let first = behind.first()?.split_once(" full: ")?.1;
    // The parts behind it that begin with a path are about other file systems.
    let more = behind.iter().skip(1).take_while(|part| !is_of_another(part)).copied();
    let all: Vec<&str> = std::iter::once(first).chain(more).collect();
    Some(text::excerpt(&short(&all.join("; ")), CAUSE))
}

fn is_of_another(part: &str) -> bool {
    part.starts_with('/') && part.contains(" % full")
}

fn largest(cause: Option<&Value>) -> Option<String> {
    let first = list(cause?, "largest").next()?;
    Some(format!("{} takes {}", said(first, "path")?, said(first, "size")?))
}

/// The restart of the unit that has most of the space in deleted files.
fn frees(cause: Option<&Value>) -> Option<Call> {
    let first = list(cause?, "deleted_open").next()?;
    let unit = raw(first, "unit").and_then(|unit| Call::new("svc_restart").of("service", Form::Unit, unit));
    let pid = || Call::new("proc_info").of("pid", Form::Pid, &first["pid"].as_u64()?.to_string());
    unit.or_else(pid)
}

/// The call that shows more of the largest directory.
fn top(cause: Option<&Value>, mount: &str) -> Option<Call> {
    let first = cause.and_then(|cause| list(cause, "largest").next()).and_then(|first| raw(first, "path"));
    let directory = first.filter(|path| path.ends_with('/')).map(|path| path.trim_end_matches('/'));
    let path = directory.filter(|path| !path.is_empty()).unwrap_or(mount);
    Call::new("disk_usage_top").of("path", Form::Path, path)
}

/// Reads `disk_health`.
pub(crate) fn health(envelope: Envelope<'_>, _: &str, notebook: &mut Notebook<'_>) {
    let data = envelope.data();
    for disk in list(data, "disks") {
        let grade = severity(raw(disk, "health"));
        let Some(name) = said(disk, "disk").filter(|_| grade > Severity::Info) else { continue };
        let finding = Finding::new(Kind::Disk, grade, format!("{name} isn't well"))
            .fits(&[Kind::Slow])
            .evidence(strings(disk, "why").next().unwrap_or_default())
            .name(name)
            .call([Some(Call::new("disk_health"))]);
        notebook.add(finding);
    }
    for array in list(data, "raid") {
        let (Some(name), Some(state)) = (said(array, "array"), said(array, "state")) else { continue };
        if ["degraded", "failed", "missing", "inactive"].iter().any(|word| state.contains(word)) {
            let finding = Finding::new(Kind::Disk, Severity::High, format!("the array {name} isn't whole"))
                .fits(&[Kind::Slow])
                .evidence(state)
                .call([Some(Call::new("disk_health"))]);
            notebook.add(finding);
        }
    }
    for faulty in list(data, "filesystems") {
        let Some(device) = said(faulty, "device") else { continue };
        let finding =
            Finding::new(Kind::Disk, Severity::High, format!("the file system on {device} has errors"))
                .evidence(said(faulty, "why").unwrap_or_default())
                .call([Some(Call::new("disk_health"))]);
        notebook.add(finding);
    }
}
