//! What changed on the machine lately: its start, packages, and files in `/etc`.

use linux_sysadmin_sdk::{Severity, text};
use serde_json::json;

use crate::call::{Call, Form};
use crate::envelope::{Envelope, is, raw, said, short, strings};
use crate::finding::{Finding, Kind};
use crate::moment;
use crate::notebook::{Change, Notebook};

/// Older edits are left out, in seconds.
const LATELY: i64 = 7 * 86_400;

/// A file whose time is so near to a change of packages was written by it, in seconds.
const BY_PACKAGES: i64 = 120;

/// Files in `/etc` that programs write by themselves.
const OWN: [&str; 10] = [
    ".pwd.lock",
    ".updated",
    "adjtime",
    "hostid",
    "ld.so.cache",
    "locale.conf",
    "localtime",
    "machine-id",
    "mtab",
    "resolv.conf",
];

/// Endings of files that editors and programs leave.
const LEFT: [&str; 9] = ["-", "~", ".bak", ".lock", ".old", ".swp", ".tmp", ".cache", ".O"];

/// Reads `machine_info` of the system.
pub(crate) fn system(envelope: Envelope<'_>, _: &str, notebook: &mut Notebook<'_>) {
    let system = &envelope.data()["system"];
    if let Some(at) = raw(system, "booted_at").and_then(|at| moment::parse(at, true)) {
        notebook.changes.push(Change {
            at,
            what: "the start of the machine".to_owned(),
            path: None,
            packages: Vec::new(),
            call: Some(Call::new("perf_uptime")),
        });
    }
    if is(system, "reboot_required") {
        let what = "a restart of the machine is due";
        let finding = Finding::new(Kind::Packages, Severity::Info, what)
            .evidence("updates aren't in use until then")
            .call([Some(Call::new("machine_reboot").with("dry_run", json!(true)))]);
        notebook.add(finding);
    }
}

/// Reads `pkg_history`.
pub(crate) fn packages(envelope: Envelope<'_>, _: &str, notebook: &mut Notebook<'_>) {
    for item in envelope.items() {
        let operations: Vec<String> = strings(item, "operations").collect();
        let at = raw(item, "at").and_then(|at| moment::parse(at, notebook.is_utc));
        let by = said(item, "by").map(|by| format!(" by {by}")).unwrap_or_default();
        let names = operations.iter().filter_map(|operation| Some(operation.split(' ').nth(1)?.to_owned()));
        let names: Vec<String> = names.collect();
        let call = names.first().and_then(|name| Call::new("pkg_history").of("package", Form::Package, name));
        if let Some(error) = said(item, "error") {
            let finding =
                Finding::new(Kind::Packages, Severity::Warning, "a change of packages ended with an error")
                    .evidence(error)
                    .since(at)
                    .call([Some(Call::new("pkg_repair").with("dry_run", json!(true)))]);
            notebook.add(finding);
        }
        let Some(at) = at.filter(|at| notebook.now - at < LATELY) else { continue };
        let what = format!("{}{by}", text::list(&operations, 2));
        notebook.changes.push(Change { at, what, path: None, packages: names, call });
    }
}

/// Reads `file_list` of `/etc`, the files that were changed last first.
pub(crate) fn edits(envelope: Envelope<'_>, _: &str, notebook: &mut Notebook<'_>) {
    let installs: Vec<i64> = notebook
        .changes
        .iter()
        .filter(|change| !change.packages.is_empty())
        .map(|change| change.at)
        .collect();
    for item in envelope.items() {
        let (Some(name), Some(time)) = (raw(item, "path"), raw(item, "modified")) else { continue };
        let last = name.rsplit('/').next().unwrap_or(name);
        let is_own =
            OWN.contains(&name) || LEFT.iter().any(|ending| last.ends_with(ending)) || last.starts_with(".#");
        let Some(at) = moment::parse(time, true).filter(|at| (0..LATELY).contains(&(notebook.now - at)))
        else {
            continue;
        };
        // Only plain files have no type.
        if is_own
            || !item["type"].is_null()
            || installs.iter().any(|install| (at - install).abs() <= BY_PACKAGES)
        {
            continue;
        }
        let path = format!("/etc/{name}");
        notebook.changes.push(Change {
            at,
            what: format!("an edit of {}", short(&path)),
            packages: Vec::new(),
            call: Call::new("file_read").of("path", Form::Path, &path),
            path: Some(path),
        });
    }
}
