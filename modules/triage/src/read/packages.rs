//! Packages: a broken or locked database, repositories that can't be read, updates, and a restart that is due.

use linux_sysadmin_sdk::{Problem, Severity, text};
use serde_json::json;

use crate::call::{Call, Form};
use crate::envelope::{Envelope, is, raw, said, short, strings};
use crate::finding::{Finding, Kind};
use crate::moment;
use crate::notebook::Notebook;

/// The codes of a package manager that can't work, with what that means and the tool that mends it.
const BROKEN: &[(&str, &str, &str)] = &[
    ("PACKAGES_INTERRUPTED", "a change of packages was interrupted", "pkg_repair"),
    ("DEPENDENCIES_BROKEN", "packages lack what they need", "pkg_repair"),
    ("DEPENDENCY_CONFLICT", "packages lack what they need", "pkg_repair"),
    ("PACKAGE_SCRIPT_FAILED", "the script of a package failed", "pkg_repair"),
    ("OUT_OF_SPACE", "there is no room for packages", "disk_usage"),
    ("REPOSITORY_UNREACHABLE", "a repository can't be reached", "repo_list"),
    ("REPOSITORY_UNTRUSTED", "a repository isn't signed by a key that is trusted", "repo_list"),
];

/// Reads a problem of `pkg_check_updates`: where the package manager can't tell the updates, it often is what's broken.
pub(crate) fn failed(problem: &Problem, _: &str, notebook: &mut Notebook<'_>) -> bool {
    let Some((_, what, tool)) = BROKEN.iter().find(|(code, ..)| *code == problem.code) else { return false };
    let finding = Finding::new(Kind::Packages, Severity::High, *what)
        .evidence(short(&problem.message))
        .call([Some(Call::new(tool))]);
    notebook.add(finding);
    true
}

/// Reads `pkg_check_updates`.
pub(crate) fn updates(envelope: Envelope<'_>, _: &str, notebook: &mut Notebook<'_>) {
    let all: Vec<_> = envelope.items().collect();
    let name = |item: &&serde_json::Value| said(item, "name");
    let security: Vec<String> =
        all.iter().copied().filter(|item| is(item, "security")).filter_map(|item| name(&item)).collect();
    if !security.is_empty() {
        let what = format!("{} security updates wait", security.len());
        let finding = Finding::new(Kind::Packages, Severity::Warning, what)
            .evidence(text::list(&security, 5))
            .call([Some(Call::new("sec_update_check"))]);
        notebook.add(finding);
    }
    for note in envelope.notes().filter(|note| note.contains("days ago")).take(1) {
        let refresh = Call::new("pkg_update").with("refresh_only", json!(true));
        let what = "the repositories weren't read for long";
        notebook
            .add(Finding::new(Kind::Packages, Severity::Warning, what).evidence(note).call([Some(refresh)]));
    }
}

/// Reads `pkg_list_installed`: packages with a state are those that aren't installed completely.
pub(crate) fn installed(envelope: Envelope<'_>, _: &str, notebook: &mut Notebook<'_>) {
    let broken: Vec<String> = crate::envelope::list(envelope.0, "data")
        .filter_map(|item| Some(format!("{} ({})", said(item, "name")?, said(item, "state")?)))
        .collect();
    if !broken.is_empty() {
        let finding = Finding::new(Kind::Packages, Severity::High, "packages aren't installed completely")
            .evidence(text::list(&broken, 5))
            .cause("a change of packages was interrupted, or a package's script failed")
            .call([Some(Call::new("pkg_repair"))]);
        notebook.add(finding);
    }
}

/// Reads `repo_list`.
pub(crate) fn repositories(envelope: Envelope<'_>, _: &str, notebook: &mut Notebook<'_>) {
    for item in envelope.items().filter(|item| item["enabled"].as_bool() != Some(false)) {
        let unread = strings(item, "warnings").find(|warning| warning.contains("never read"));
        let (Some(_), Some(id)) = (unread, said(item, "id")) else { continue };
        let at = said(item, "at").unwrap_or_default();
        let url = strings(item, "urls").next().unwrap_or_default();
        let refresh = Call::new("pkg_update").with("refresh_only", json!(true));
        let finding =
            Finding::new(Kind::Packages, Severity::High, format!("the repository {id} was never read"))
                .evidence(at.clone())
                .cause(format!("nothing can be had from {url}"))
                .name(at.split(':').next().unwrap_or_default())
                .call([Some(refresh)]);
        notebook.add(finding);
    }
    for note in envelope.notes().take(2) {
        let finding =
            Finding::new(Kind::Packages, Severity::High, "a definition of a repository can't be read")
                .evidence(note)
                .call([Some(Call::new("repo_list"))]);
        notebook.add(finding);
    }
}

/// Reads `proc_list` of those who have the lock of the package database open.
pub(crate) fn lock(envelope: Envelope<'_>, _: &str, notebook: &mut Notebook<'_>) {
    let Some(holder) = envelope.items().next() else { return };
    let pid = holder["pid"].as_u64().unwrap_or_default().to_string();
    let command = text::excerpt(raw(holder, "command").unwrap_or_default(), 80);
    let unit = said(holder, "unit").map(|unit| format!(" of {unit}")).unwrap_or_default();
    let since = raw(holder, "started").and_then(|time| moment::parse(time, notebook.is_utc));
    let finding = Finding::new(Kind::Packages, Severity::Warning, "the package database is locked")
        .cause(format!("{command} (PID {pid}{unit}) works on it"))
        .since(since)
        .call([Call::new("proc_info").of("pid", Form::Pid, &pid)]);
    notebook.add(finding);
}
