//! `sec_audit`: all checks at once, ranked. Commands that don't wait for another answer run at the same time. Findings that the
//! operator has accepted stay out until a date, and an earlier run can be compared with.

mod accepted;
mod compare;
#[cfg(test)]
mod tests;

use linux_sysadmin_sdk::{DurationCategory, prelude::*, text};

use crate::finding::{Found, Report, bounded};
use crate::{cert_list, check_listening, check_suid, check_updates, check_users, compliance, mac, ssh};
use accepted::Accepted;
use compare::{Compared, Earlier};

/// A check that gives findings.
struct Check {
    /// The tool that runs it alone.
    name: &'static str,
    /// The commands that don't wait for another one. Those of all checks run at the same time.
    ahead: fn(&Context) -> Vec<Command>,
    find: fn(&Context) -> Result<Found>,
}

/// The checks, but for the search for programs that give rights, which takes longest and begins first.
const CHECKS: &[Check] = &[
    Check { name: "sec_check_users", ahead: check_users::ahead, find: check_users::find },
    Check { name: "sec_check_listening", ahead: check_listening::ahead, find: check_listening::find },
    Check { name: "sec_check_ssh", ahead: ssh::ahead, find: ssh::find },
    Check { name: "sec_update_check", ahead: check_updates::ahead, find: check_updates::find },
    Check { name: "sec_mac_status", ahead: |_| Vec::new(), find: mac::find },
    Check { name: "cert_list", ahead: cert_list::ahead, find: cert_list::find },
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
    /// Findings of an earlier answer, to compare
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
    let search = check_suid::begin(cx);
    let checks = compliance::Checks::read(cx);
    let ahead = CHECKS.iter().flat_map(|check| (check.ahead)(cx));
    let ahead = ahead.chain(search.iter().flat_map(check_suid::Search::ahead));
    let ahead = ahead.chain(checks.iter().flat_map(compliance::Checks::ahead));
    let cx = &cx.ahead(ahead.collect());
    let mut outcomes: Vec<_> = CHECKS.iter().map(|check| (check.name, (check.find)(cx))).collect();
    outcomes.push(("sec_check_suid", search.and_then(|search| check_suid::finish(search, cx))));
    let mut found = Found::default();
    let (of, mut done) = (outcomes.len(), 0);
    for (name, outcome) in outcomes {
        match outcome {
            Ok(one) => {
                done += 1;
                found.findings.extend(one.findings);
                found.unseen.extend(one.unseen);
            }
            // A check that fails hides nothing of the others.
            Err(problem) => found.unseen.push(format!("{name}: {}", text::of_line(&problem.message))),
        }
    }
    let compliance = match checks.map(|checks| checks.judged(cx)) {
        Ok(outcome) => {
            if !outcome.refused.is_empty() {
                found
                    .unseen
                    .push("own checks that aren't in the form: sec_compliance tells which".to_owned());
            }
            let (passed, failed) = (outcome.passed, outcome.failed.len());
            Some(format!("{passed} passed, {failed} failed: sec_compliance tells which"))
        }
        Err(problem) => {
            found.unseen.push(format!("sec_compliance: {}", text::of_line(&problem.message)));
            None
        }
    };
    let all = found.findings.len();
    let mut no_longer_accepted = accepted.apply(&mut found, cx.now());
    bounded(&mut no_longer_accepted);
    let left_out = all - found.findings.len();
    let severity = found.severity();
    let report = found.report();
    let mut compared = args.before.map(|before| compare::with(&before, &report));
    let summary = summary(&report, (done, of), compared.as_ref());
    compared.iter_mut().for_each(Compared::shorten);
    Ok(Analysis {
        data: Audit { report, compliance, accepted: left_out, no_longer_accepted, compared },
        summary,
        severity,
    })
}

fn summary(report: &Report, (done, of): (usize, usize), compared: Option<&Compared>) -> String {
    let count =
        |severity: Severity| report.findings.iter().filter(|entry| entry.severity == severity).count();
    let counts = [Severity::Critical, Severity::High, Severity::Warning, Severity::Info];
    let counts = counts.map(|severity| (count(severity), severity.name()));
    let counts = counts.iter().filter(|(count, _)| *count > 0).map(|(count, name)| format!("{count} {name}"));
    let counts: Vec<String> = counts.collect();
    let found = if counts.is_empty() {
        "nothing weak".to_owned()
    } else {
        format!("kinds of weakness: {}", counts.join(", "))
    };
    let compared = compared.map(|compared| format!("; {}", compared.summary())).unwrap_or_default();
    format!("{done} of {of} checks: {found}{compared}")
}
