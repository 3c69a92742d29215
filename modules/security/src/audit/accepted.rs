//! Findings that the operator has accepted, in a file on the machine that only root may write.
//!
//! ```yaml
//! - {kind: user-stale, subject: backup-operator, reason: "logs in once a year", until: 2027-06-30}
//! ```

use linux_sysadmin_sdk::accounts::expiry::Expiry;
use linux_sysadmin_sdk::{Category, prelude::*, text};

use crate::finding::{Finding, Found};

const FILE: &str = "/etc/linux-sysadmin/security/accepted.yaml";

pub(super) fn grant() -> PathGrant {
    PathGrant::read(FILE, "which findings the operator has accepted")
}

/// One finding, or all of a kind where there is no subject.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    kind: String,
    subject: Option<String>,
    reason: String,
    /// The day from which it counts again.
    until: String,
}

impl Entry {
    fn is_about(&self, finding: &Finding) -> bool {
        self.kind == finding.kind && self.subject.as_ref().is_none_or(|subject| *subject == finding.subject)
    }
}

/// The accepted findings.
#[derive(Debug, Default)]
pub(super) struct Accepted(Vec<(Entry, Expiry)>);

impl Accepted {
    /// Reads the file. One that others may write to is refused: they would accept what they have planted.
    pub(super) fn read(cx: &Context) -> Result<Self> {
        let Some(found) = cx.stat_all(&[FILE]).remove(0)? else { return Ok(Self::default()) };
        if found.is_symlink || found.is_dir || found.owner != "root" || found.mode & 0o022 != 0 {
            let message =
                format!("{FILE} is refused: expected a file of root's that nobody else may write to");
            return Err(Problem::new("UNTRUSTED_FILE", Category::State, message)
                .remedy(format!("perms_set path={FILE} owner=root mode=0644")));
        }
        Self::parse(&cx.read(FILE)?)
    }

    fn parse(yaml: &str) -> Result<Self> {
        let refused = |why: &str| {
            let message = format!(
                "{FILE}: {}: expected a list of {{kind, subject, reason, until: YYYY-MM-DD}}",
                text::excerpt(why, 200)
            );
            Problem::validation("INVALID_ACCEPTED", message)
        };
        let entries: Vec<Entry> = serde_yaml::from_str(yaml).map_err(|error| refused(&error.to_string()))?;
        let checked = entries.into_iter().map(|entry| match Expiry::read(&entry.until) {
            Ok(Expiry::On(day)) if !entry.reason.trim().is_empty() => Ok((entry, Expiry::On(day))),
            // What is accepted for ever is forgotten.
            Ok(_) => Err(refused(&format!("{} has no reason or no day", entry.kind))),
            Err(problem) => Err(refused(&problem.message)),
        });
        Ok(Self(checked.collect::<Result<_>>()?))
    }

    /// Takes out the findings that are accepted, and returns those whose day has come.
    pub(super) fn apply(&self, found: &mut Found, now: f64) -> Vec<String> {
        let mut over = Vec::new();
        found.findings.retain(|finding| {
            let about: Vec<_> = self.0.iter().filter(|(entry, _)| entry.is_about(finding)).collect();
            if about.iter().any(|(_, until)| !until.is_over(now)) {
                return false;
            }
            if let Some((entry, _)) = about.first() {
                let reason = text::excerpt(&entry.reason, 100);
                over.push(format!("{} {}: {reason} (until {})", finding.kind, finding.subject, entry.until));
            }
            true
        });
        over
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_accepted_without_a_reason_or_a_day_is_refused() {
        for yaml in [
            "nonsense",
            "- {kind: a}",
            "- {kind: a, reason: '', until: 2027-01-01}",
            "- {kind: a, reason: b, until: never}",
            "- {kind: a, reason: b, until: 2027-02-30}",
            "- {kind: a, reason: b, until: 2027-01-01, unknown: 1}",
        ] {
            assert_eq!(Accepted::parse(yaml).unwrap_err().code, "INVALID_ACCEPTED", "{yaml}");
        }
        assert!(Accepted::parse("[]").is_ok());
    }
}
