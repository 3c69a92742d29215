//! `sec_audit`: all checks at once, ranked. Findings that the operator has accepted stay out until a date, and an
//! earlier run can be compared with.

mod accepted;
mod compare;
#[cfg(test)]
mod tests;

use linux_sysadmin_sdk::{DurationCategory, prelude::*, text};

use crate::finding::{Found, Report};
use crate::{cert_list, check_listening, check_suid, check_updates, check_users, compliance, mac, ssh};
use accepted::Accepted;
use compare::{Compared, Earlier};

/// What looks for findings.
type Check = fn(&Context) -> Result<Found>;

/// The checks, by the tool that runs each alone.
const CHECKS: &[(&str, Check)] = &[
    ("sec_check_users", check_users::find),
    ("sec_check_suid", check_suid::find),
    ("sec_check_listening", check_listening::find),
    ("sec_check_ssh", ssh::find),
    ("sec_update_check", check_updates::find),
    ("sec_mac_status", mac::find),
    ("cert_list", cert_list::find),
];

pub(crate) fn tool(module: Module) -> Module {
    module.grants(|module| module.path(accepted::grant())).tool(
        Tool::new(
            "sec_audit",
            "All security checks at once, ranked, with what mends each finding",
            sec_audit,
        )
        .duration(DurationCategory::Slow)
        .first(),
    )
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct AuditArgs {
    /// The findings of an earlier answer: tells what is new and what is gone
    #[serde(default)]
    before: Option<Vec<Earlier>>,
}

/// The answer.
#[derive(Debug, Serialize)]
pub(crate) struct Audit {
    #[serde(flatten)]
    report: Report,
    /// Checks of `sec_compliance` that passed and that failed: `24 passed, 6 failed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    compliance: Option<String>,
    /// The number of findings that the operator has accepted.
    #[serde(skip_serializing_if = "is_zero")]
    accepted: usize,
    /// Accepted findings whose date has come, and that count again.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    no_longer_accepted: Vec<String>,
    #[serde(flatten)]
    compared: Option<Compared>,
}

fn is_zero(number: &usize) -> bool {
    *number == 0
}

fn sec_audit(args: AuditArgs, cx: &Context) -> Result<Analysis<Audit>> {
    let accepted = Accepted::read(cx)?;
    let mut found = Found::default();
    let mut done = 0;
    for (name, check) in CHECKS {
        match check(cx) {
            Ok(one) => {
                done += 1;
                found.findings.extend(one.findings);
                found.unseen.extend(one.unseen);
            }
            // A check that fails hides nothing of the others.
            Err(problem) => found.unseen.push(format!("{name}: {}", text::of_line(&problem.message))),
        }
    }
    let compliance = match compliance::look(cx) {
        Ok(outcome) => Some(format!(
            "{} passed, {} failed: sec_compliance tells which",
            outcome.passed,
            outcome.failed.len()
        )),
        Err(problem) => {
            found.unseen.push(format!("sec_compliance: {}", text::of_line(&problem.message)));
            None
        }
    };
    let all = found.findings.len();
    let no_longer_accepted = accepted.apply(&mut found, cx.now());
    let left_out = all - found.findings.len();
    let severity = found.severity();
    let report = found.report();
    let compared = args.before.map(|before| compare::with(&before, &report));
    let summary = summary(&report, done, compared.as_ref());
    Ok(Analysis {
        data: Audit { report, compliance, accepted: left_out, no_longer_accepted, compared },
        summary,
        severity,
    })
}

fn summary(report: &Report, done: usize, compared: Option<&Compared>) -> String {
    let of = |severity: Severity| report.findings.iter().filter(|entry| entry.severity == severity).count();
    let counts = [Severity::Critical, Severity::High, Severity::Warning, Severity::Info];
    let counts = counts.map(|severity| (of(severity), severity.name()));
    let counts = counts.iter().filter(|(count, _)| *count > 0).map(|(count, name)| format!("{count} {name}"));
    let counts: Vec<String> = counts.collect();
    let found = if counts.is_empty() {
        "nothing weak".to_owned()
    } else {
        format!("kinds of weakness: {}", counts.join(", "))
    };
    let compared = compared.map(|compared| format!("; {}", compared.summary())).unwrap_or_default();
    format!("{done} of {} checks: {found}{compared}", CHECKS.len())
}
