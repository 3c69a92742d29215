//! `sec_compliance`: checks that are data, each against what the machine shows, with the call that mends it.
//!
//! The program brings thirty. A file on the machine, which only root may write, adds an administrator's own.

mod check;
mod looks;
#[cfg(test)]
mod tests;

use linux_sysadmin_sdk::{Category, mounts, prelude::*};
use serde_json::json;

use crate::finding::Mend;
use check::{Check, Rule};
use looks::Looks;

/// The file with the checks of the machine's administrator.
const OWN: &str = "/etc/linux-sysadmin/security/checks.yaml";

/// The most own checks that are made.
const MOST_OWN: usize = 200;
/// The most own checks of which an answer says why they are refused.
const REFUSED: usize = 20;

const BUILT_IN: &str = include_str!("compliance/checks.yaml");

pub(crate) fn tool(module: Module) -> Module {
    module.grants(grants).tool(Tool::new(
        "sec_compliance",
        "Thirty checks of a hardening guide, and your own: what fails, what mends it",
        sec_compliance,
    ))
}

fn grants(module: Module) -> Module {
    module
        .path(PathGrant::read(OWN, "the administrator's own checks"))
        .path(PathGrant::read("/proc/sys/**", "values of the kernel"))
        .paths(mounts::grants())
        .commands(looks::grants())
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct ComplianceArgs {
    /// Name the passed checks too
    #[serde(default)]
    all: bool,
}

/// The outcome of all checks.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Compliance {
    /// The number of checks that passed.
    pub(crate) passed: usize,
    /// The checks that failed, the most severe first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) failed: Vec<Failed>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    passed_ids: Vec<String>,
    /// Checks of what the machine doesn't have.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    not_applicable: Vec<String>,
    /// Checks whose subject couldn't be looked at.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) unseen: Vec<String>,
    /// Own checks that aren't in the form, so that they weren't made.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) refused: Vec<String>,
}

/// A check that failed.
#[derive(Debug, Serialize)]
pub(crate) struct Failed {
    id: String,
    severity: Severity,
    found: String,
    expected: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    reference: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mend: Option<Mend>,
}

/// The outcome of one check.
#[derive(Debug, PartialEq)]
enum Outcome {
    Passed,
    /// What was found instead.
    Failed(String),
    NotApplicable,
    /// The reason why it isn't known.
    Unseen(String),
}

fn sec_compliance(args: ComplianceArgs, cx: &Context) -> Result<Analysis<Compliance>> {
    let mut data = Checks::read(cx)?.judged(cx);
    if !args.all {
        data.passed_ids.clear();
    }
    let severity = data.failed.iter().map(|failed| failed.severity).max().unwrap_or(Severity::Info);
    let unseen = match data.unseen.len() {
        0 => String::new(),
        count => format!(", {count} unseen"),
    };
    let refused = if data.refused.is_empty() { "" } else { "; own checks are refused" };
    let summary = format!("{} checks passed, {} failed{unseen}{refused}", data.passed, data.failed.len());
    Ok(Analysis { data, summary, severity })
}

/// All checks that can be made.
pub(crate) struct Checks {
    all: Vec<Check>,
    refused: Vec<String>,
}

impl Checks {
    /// The checks that come with the program, and the administrator's own.
    pub(crate) fn read(cx: &Context) -> Result<Self> {
        let (mut all, broken) = check::parse(BUILT_IN);
        if !broken.is_empty() {
            return Err(Problem::new("BROKEN_MODULE", Category::Internal, broken.join("; ")));
        }
        let (mut own, mut refused) = check::parse(&own(cx)?);
        let beyond = own.len().saturating_sub(MOST_OWN);
        if beyond > 0 {
            own.truncate(MOST_OWN);
            refused.insert(0, format!("{beyond} checks are beyond the first {MOST_OWN}"));
        }
        for check in own {
            match all.iter().any(|known| known.id == check.id) {
                true => refused.push(format!("{} is the id of another check", check.id)),
                false => all.push(check),
            }
        }
        let more = refused.len().saturating_sub(REFUSED);
        refused.truncate(REFUSED);
        if more > 0 {
            refused.push(format!("and {more} more"));
        }
        if !refused.is_empty() {
            refused.push(format!("{OWN}: {}", check::FORM));
        }
        Ok(Self { all, refused })
    }

    /// The commands that don't wait for another one.
    pub(crate) fn ahead(&self) -> Vec<Command> {
        looks::commands(&self.all).into()
    }

    /// The outcome of all checks.
    pub(crate) fn judged(self, cx: &Context) -> Compliance {
        let looks = Looks::gather(&self.all, cx);
        let mut data = Compliance { refused: self.refused, ..Compliance::default() };
        for check in &self.all {
            match looks.judge(&check.rule) {
                Outcome::Passed => {
                    data.passed += 1;
                    data.passed_ids.push(check.id.clone());
                }
                Outcome::Failed(found) => data.failed.push(Failed {
                    id: check.id.clone(),
                    severity: check.severity.into(),
                    found,
                    expected: check.rule.expected(),
                    reference: check.reference.clone(),
                    mend: mend(check, &looks),
                }),
                Outcome::NotApplicable => data.not_applicable.push(check.id.clone()),
                Outcome::Unseen(why) => data.unseen.push(format!("{}: {why}", check.id)),
            }
        }
        data.failed.sort_by_key(|failed| std::cmp::Reverse(failed.severity));
        data
    }
}

/// The administrator's own checks as they are written. A file that others may write to is refused.
fn own(cx: &Context) -> Result<String> {
    let found = cx.stat_all(&[OWN]).remove(0)?;
    let Some(found) = found else { return Ok(String::new()) };
    if found.is_symlink || found.is_dir || found.owner != "root" || found.mode & 0o022 != 0 {
        let message = format!("{OWN} is refused: expected a file of root's that nobody else may write to");
        return Err(Problem::new("UNTRUSTED_FILE", Category::State, message)
            .remedy(format!("perms_set path={OWN} owner=root mode=0644")));
    }
    cx.read(OWN)
}

/// The call that mends what a check found.
fn mend(check: &Check, looks: &Looks) -> Option<Mend> {
    let call = |tool: &str, arguments| Some(Mend { tool: tool.to_owned(), arguments });
    match &check.rule {
        Rule::File { file, mode, owner, groups } => {
            let group = groups.first();
            call("perms_set", json!({"path": file, "mode": mode, "owner": owner, "group": group}))
        }
        Rule::Sysctl { sysctl, values } => {
            call("sysctl_set", json!({"set": {sysctl.as_str(): values.first()}}))
        }
        Rule::Mount { .. } => None,
        Rule::Absent { absent } => call("pkg_purge", json!({"package": looks.there(absent)})),
        Rule::Off { off } => call("svc_mask", json!({"service": looks.on(off).first()?, "now": true})),
        Rule::Sshd { harden, .. } => call("sec_harden_ssh", json!({"actions": [harden.as_ref()?]})),
    }
}
