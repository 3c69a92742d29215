//! `sec_mac_status`: AppArmor or SELinux, its mode, and what it has denied of late, folded.
//!
//! Denials are no weakness: they show a rule at work. What weakens the system is a mode that doesn't enforce.

mod denial;
mod hints;

use linux_sysadmin_sdk::{Category, DurationCategory, Privilege, prelude::*, text, time};
use serde_json::json;

use crate::finding::{Entry, Finding, Found, Mend};
use denial::{Denial, Folded};

const AUDIT_LOG: &str = "/var/log/audit/audit.log";
const APPARMOR_PROFILES: &str = "/sys/kernel/security/apparmor/profiles";
const APPARMOR_FILES: &str = "/etc/apparmor.d";
const SELINUX_CONFIG: &str = "/etc/selinux/config";

/// The most bytes of the end of the audit log that are read.
const MOST_BYTES: u64 = 1 << 20;
/// The most kinds of denials in an answer.
const MOST: usize = 25;

/// Prints what the kernel has logged of denials within a week. Without auditd they are in the journal.
const JOURNAL: CommandLine = CommandLine::new(
    "journalctl --quiet --no-pager --output=cat --since=-7d --lines=2500 '--grep=apparmor=\"DENIED\"|avc: *denied' _TRANSPORT=kernel + _TRANSPORT=audit",
);

pub(crate) fn tool(module: Module) -> Module {
    module.grants(grants).tool(Tool::new(
        "sec_mac_status",
        "AppArmor or SELinux: mode, recent denials, what would allow them",
        sec_mac_status,
    ))
}

fn grants(module: Module) -> Module {
    module
        .command(JOURNAL.read("what AppArmor or SELinux has denied").as_root_if_available())
        .path(PathGrant::read(AUDIT_LOG, "what they have denied, where auditd runs").as_root())
        .path(PathGrant::read(APPARMOR_PROFILES, "the modes of AppArmor's profiles").as_root())
        .path(PathGrant::read("/etc/apparmor.d", "which files profiles are in"))
        .path(PathGrant::read(SELINUX_CONFIG, "SELinux's mode after the next start"))
}

/// The answer.
#[derive(Debug, Serialize)]
pub(crate) struct Status {
    /// `apparmor`, `selinux` or `none`.
    system: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    mode: Option<String>,
    /// The numbers of AppArmor's profiles by mode.
    #[serde(skip_serializing_if = "Option::is_none")]
    profiles: Option<String>,
    /// What was denied, the most frequent first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    denials: Vec<Denied>,
    /// The number of kinds of denials that are left out.
    #[serde(skip_serializing_if = "is_zero")]
    more: usize,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    findings: Vec<Entry>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unseen: Vec<String>,
}

/// Denials of one kind.
#[derive(Debug, Serialize)]
struct Denied {
    count: usize,
    /// The profile of AppArmor, or the domain of SELinux.
    subject: String,
    what: String,
    /// The latest one.
    #[serde(skip_serializing_if = "Option::is_none")]
    last: Option<String>,
    /// What explains or allows it: a boolean, a port's type, a label, the file of a profile.
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mend: Option<Mend>,
}

fn is_zero(number: &usize) -> bool {
    *number == 0
}

fn sec_mac_status(_: NoArgs, cx: &Context) -> Result<Analysis<Status>> {
    let distro = cx.distro();
    let mut found = find(cx)?;
    let profiles = (distro.mac_system == "apparmor").then(|| profiles(cx)).and_then(Result::ok);
    let (denials, unseen) = denials(cx);
    found.unseen.extend(unseen);
    let count: usize = denials.iter().map(|folded| folded.count).sum();
    let more = denials.len().saturating_sub(MOST);
    let files = cx.list_dir(APPARMOR_FILES).unwrap_or_default();
    let denials: Vec<Denied> = denials.into_iter().take(MOST).map(|folded| denied(folded, &files)).collect();
    let severity = found.severity();
    let mode = distro.mac_mode.map(|mode| format!(" {mode}")).unwrap_or_default();
    let weak = if found.findings.is_empty() { "" } else { ": something weakens it" };
    let summary = format!("{}{mode}{weak}; {count} denials within a week", distro.mac_system);
    let report = found.report();
    let data = Status {
        system: distro.mac_system,
        mode: Some(mode.trim().to_owned()).filter(|mode| !mode.is_empty()),
        profiles,
        denials,
        more,
        findings: report.findings,
        unseen: report.unseen,
    };
    Ok(Analysis { data, summary, severity })
}

/// The check as `sec_audit` runs it: whether a system of mandatory access control is there and enforces.
pub(crate) fn find(cx: &Context) -> Result<Found> {
    let distro = cx.distro();
    let mut found = Found::default();
    let mode = distro.mac_mode.as_deref().unwrap_or_default();
    let virtualization = distro.extra.iter().find(|(name, _)| name == "virtualization");
    // In a container the kernel is another machine's, which may well confine it.
    let is_container = virtualization.is_some_and(|(_, kind)| is_container(kind));
    match (distro.mac_system.as_str(), mode) {
        ("none", _) if is_container => {}
        ("none", _) | (_, "disabled") => found.push(Finding::new(
            Severity::Warning,
            "mac-off",
            if distro.mac_system == "none" { "the kernel" } else { &distro.mac_system },
            "neither AppArmor nor SELinux confines services",
        )),
        ("selinux", "permissive") => found.push(
            Finding::new(Severity::High, "mac-permissive", "selinux", "denies nothing, and only logs")
                .mend("command_run", json!({"argv": ["setenforce", "1"], "as_root": true})),
        ),
        _ => {}
    }
    if distro.mac_system == "selinux"
        && mode == "enforcing"
        && let Ok(config) = cx.read(SELINUX_CONFIG)
        && let Some(later) =
            config.lines().filter_map(|line| line.trim().strip_prefix("SELINUX=")).next_back()
        && later.trim() != "enforcing"
    {
        let evidence =
            format!("SELINUX={}: after the next start it doesn't enforce", text::excerpt(later.trim(), 40));
        found.push(Finding::new(Severity::High, "mac-off-at-boot", SELINUX_CONFIG, evidence));
    }
    Ok(found)
}

/// True if systemd-detect-virt means a container by this word.
fn is_container(kind: &str) -> bool {
    let known = [
        "systemd-nspawn",
        "lxc",
        "lxc-libvirt",
        "docker",
        "podman",
        "openvz",
        "wsl",
        "proot",
        "rkt",
        "pouch",
    ];
    known.contains(&kind) || kind.starts_with("container")
}

/// The numbers of profiles by their mode: `38 enforce, 2 complain`.
fn profiles(cx: &Context) -> Result<String> {
    let text = cx.files_as(Privilege::Root).read(APPARMOR_PROFILES)?;
    let of = |mode: &str| text.lines().filter(|line| line.ends_with(&format!("({mode})"))).count();
    let modes = ["enforce", "complain", "kill", "unconfined", "prompt"].map(|mode| (of(mode), mode));
    let modes = modes.iter().filter(|(count, _)| *count > 0).map(|(count, mode)| format!("{count} {mode}"));
    Ok(modes.collect::<Vec<_>>().join(", "))
}

/// The denials of the audit log and of the journal, folded, the most frequent first. A denial is in one of the two or
/// in both.
fn denials(cx: &Context) -> (Vec<Folded>, Vec<String>) {
    let mut unseen = Vec::new();
    let mut lines: Vec<String> = Vec::new();
    let end = [(AUDIT_LOG, -i64::try_from(MOST_BYTES).unwrap_or(i64::MAX), MOST_BYTES)];
    match cx.files_as(Privilege::Root).read_parts(&end).remove(0) {
        Ok(bytes) => {
            if bytes.len() as u64 == MOST_BYTES {
                unseen.push(format!("denials before the last {MOST_BYTES} bytes of {AUDIT_LOG}"));
            }
            lines.extend(String::from_utf8_lossy(&bytes).lines().map(str::to_owned));
        }
        Err(problem) if problem.category == Category::NotFound => {}
        Err(problem) => unseen.push(format!("{AUDIT_LOG}: {}", text::of_line(&problem.message))),
    }
    let journal = JOURNAL.command().privilege(Privilege::RootIfAvailable).duration(DurationCategory::Quick);
    match cx.run(journal) {
        Ok(output) => {
            // 1 says that no line matches, and then nothing more is said.
            if output.exit_code != 0 && !output.error_text().is_empty() {
                unseen.push(format!("the journal: {}", text::of_line(&output.error_text())));
            }
            if output.truncated {
                unseen.push("the journal: more than is kept of what it prints".to_owned());
            }
            lines.extend(output.text().lines().map(str::to_owned));
        }
        Err(problem) => unseen.push(format!("the journal: {}", text::of_line(&problem.message))),
    }
    let denials = lines.iter().filter_map(|line| Denial::parse(line)).collect();
    (denial::folded(denials), unseen)
}

fn denied(folded: Folded, files: &[String]) -> Denied {
    let Folded { first, count, last } = folded;
    let (hint, mend) = hints::of(&first, files);
    let what = first.what();
    let hint = hint.map(|hint| text::of_line(&hint));
    let subject = text::of_line(&first.subject);
    Denied { count, what, last: last.map(time::rfc3339), hint, mend, subject }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
