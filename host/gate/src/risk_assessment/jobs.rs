//! The risks of jobs that end: those of a crontab, and those that a timer starts. A job of root's, such as a backup, may be what
//! keeps the machine.

use host_base::Risk;
use host_policy::text::{Code, CommandLine, Schedule, TRIGGER};
use host_text::redact::excerpt;

use super::own_commands::{code_of, file_of};
use super::{NAMED, RiskAssessment};
use crate::{unit_reach, units};

impl RiskAssessment<'_> {
    /// Adds a risk where a crontab no longer has jobs of accounts that are as good as root, or may no longer run them. Without a
    /// new text, all of its jobs end.
    pub(super) async fn jobs_end(
        &mut self,
        former: &Code,
        now: Option<&Code>,
        own: Option<&str>,
        what: &str,
    ) {
        let goes_on = |old: &CommandLine, new: &CommandLine| {
            let may_end =
                new.schedule.as_ref().zip(old.schedule.as_ref()).is_some_and(|(new, old)| new.may_end(old));
            (&new.argv, &new.shell, &new.user) == (&old.argv, &old.shell, &old.user) && !may_end
        };
        let ends = |old: &&CommandLine| {
            let lines = now.map(|now| &*now.lines).unwrap_or_default();
            old.schedule.is_some() && !lines.iter().any(|new| goes_on(old, new))
        };
        let mut whose: Vec<Option<&str>> = Vec::new();
        for old in former.lines.iter().filter(ends) {
            // A job that anybody could add may go as well.
            if !whose.contains(&old.user.as_deref()) && self.objection(old, what).await.is_some() {
                whose.push(old.user.as_deref());
            }
        }
        for account in whose {
            self.takes_jobs(account, own, what).await;
        }
    }

    /// Adds a risk where an account that is as good as root loses a job. No account is root. With its own rights, an account may
    /// do that to itself.
    pub(super) async fn takes_jobs(&mut self, account: Option<&str>, own: Option<&str>, what: &str) {
        if own.is_some() && account == own {
            return;
        }
        let why = match account {
            None => Some("root's jobs keep the machine".to_owned()),
            Some(account) => self.privileges.root_equivalence(account).await,
        };
        if let Some(why) = why {
            let account = excerpt(account.unwrap_or("root"), NAMED);
            self.risks.push((Risk::High, format!("{what} takes away a job of {account}: {why}")));
        }
    }

    /// Adds a risk where a timer with a new text may no longer start a job of root's. Without a text, it starts nothing.
    pub(super) async fn timer_ends(
        &mut self,
        timer: &str,
        former: Option<&Code>,
        now: Option<&Code>,
        what: &str,
    ) {
        let none = Schedule { is_regular: false, settings: String::new() };
        let schedule = |code: &Code| code.schedule.clone().unwrap_or_else(|| none.clone());
        let former = former.map_or_else(|| none.clone(), schedule);
        let may_end = now.is_none_or(|now| schedule(now).may_end(&former));
        let starts = |code: &Code| {
            let acts = code.unit_actions.iter().filter(|act| act.verb == TRIGGER);
            acts.map(|act| act.unit.clone()).collect::<Vec<_>>()
        };
        // A drop-in need not name what the timer starts.
        let starts = now.map(starts).unwrap_or_default();
        let lost = |unit: &str| may_end || !starts.is_empty() && !starts.iter().any(|name| name == unit);
        self.started_no_more(&[timer], lost, what).await;
    }

    /// Adds a risk where timers among these units no longer start a job of root's.
    pub(super) async fn timers_end(&mut self, units: &[&str], what: &str) {
        let timers: Vec<&str> = units.iter().copied().filter(|unit| unit.ends_with(".timer")).collect();
        self.started_no_more(&timers, |_| true, what).await;
    }

    async fn started_no_more(&mut self, timers: &[&str], lost: impl Fn(&str) -> bool, what: &str) {
        if timers.is_empty() {
            return;
        }
        let Some(started) = unit_reach::started_by(self.target, timers).await else {
            let timers = excerpt(&timers.join(", "), NAMED);
            let why = format!("{what} changes {timers}, and the target doesn't say what that starts");
            self.risks.push((Risk::High, why));
            return;
        };
        for unit in started.iter().filter(|unit| lost(unit)) {
            if self.is_job_of_root(unit).await {
                let unit = excerpt(unit, NAMED);
                let why = format!("{what} may end {unit}, a job of root's: root's jobs keep the machine");
                self.risks.push((Risk::High, why));
            }
        }
    }

    /// Whether a unit runs something as root, or as who is as good as root, that not anybody could have it run. True where the
    /// target doesn't show what it runs.
    async fn is_job_of_root(&mut self, unit: &str) -> bool {
        let text = units::texts(self.target, &[unit]).await.pop().flatten();
        let Some(code) = text.and_then(|text| code_of(unit, &text)) else { return true };
        let assessed = self.privileges.unit.replace(file_of(unit));
        let mut is_one = false;
        for line in &code.lines {
            is_one |= self.is_roots(line).await && self.objection(line, unit).await.is_some();
        }
        self.privileges.unit = assessed;
        is_one
    }
}

/// The account whose crontab a command removes, if it does; none within it for the account that runs the command.
pub(super) fn removed_crontab(argv: &[String]) -> Option<Option<String>> {
    let (program, words) = argv.split_first()?;
    if program.rsplit('/').next() != Some("crontab") || !words.iter().any(|word| word == "-r") {
        return None;
    }
    let after = words.iter().position(|word| word == "-u").and_then(|at| words.get(at + 1));
    let attached = words.iter().find_map(|word| word.strip_prefix("-u").filter(|name| !name.is_empty()));
    Some(after.map(String::as_str).or(attached).map(str::to_owned))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whose_crontab_is_removed_is_read_from_the_command() {
        for (line, expected) in [
            ("crontab -u ada -r", Some(Some("ada"))),
            ("/usr/bin/crontab -r -uada", Some(Some("ada"))),
            ("crontab -r", Some(None)),
            ("crontab -u ada -", None),
            ("crontab -l", None),
            ("rm -r -u x", None),
        ] {
            let argv: Vec<String> = line.split(' ').map(str::to_owned).collect();
            let expected = expected.map(|account: Option<&str>| account.map(str::to_owned));
            assert_eq!(removed_crontab(&argv), expected, "{line}");
        }
    }
}
