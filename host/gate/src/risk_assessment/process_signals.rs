//! The risk of signals, by the processes that they reach.

use super::{NAMED, RiskAssessment};
use crate::signals::{does, is_own};
use host_base::Risk;
use host_base::problem::Problem;
use host_target::{ProcessSignal, Reach, SeenProcess, SeenProcesses};
use host_text::redact::excerpt;

impl RiskAssessment<'_> {
    /// Assesses a signal by the processes that it reaches.
    pub fn signal(&mut self, signal: &ProcessSignal, seen: &SeenProcesses) -> Result<(), Problem> {
        let Some(does) = does(signal.signal) else { return Ok(()) };
        let reached = |process: &&SeenProcess| matches!(process.reach, Reach::Given | Reach::Descendant);
        // Reasons name accounts and services but no processes: a confirmed plan has to have the same ones a minute later, and
        // trees grow meanwhile.
        let (mut users, mut units) = (Vec::new(), Vec::new());
        for process in seen.processes.iter().filter(reached) {
            if !is_own(process, self.facts()) && !users.contains(&process.user) {
                users.push(process.user.clone());
            }
            units.extend(process.service().filter(|unit| !units.contains(unit)));
        }
        for user in users {
            let user = if user.is_empty() { "accounts that aren't known" } else { &excerpt(&user, NAMED) };
            let why = format!("it {does} processes of {user}");
            self.risks.push((Risk::High, why));
        }
        for unit in units {
            self.signal_to_service(unit, does)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signals::tests::{UID, facts, process, seen, signal};
    use host_knowledge::LazyKnowledge;
    use host_policy::Policy;
    use host_target::{Facts, Overrides, Target};

    #[tokio::test]
    async fn who_ends_others_processes_is_asked() {
        let target = Target::local(Overrides::default());
        let (lazy, own) = (LazyKnowledge::default(), facts());
        let root = Facts { uid: 0, user: "root".to_owned(), ..Facts::default() };
        let given = |uids: [u32; 4]| process(4711, Reach::Given, uids, "");
        let child = |uids: [u32; 4]| process(4712, Reach::Descendant, uids, "");
        let of_unit = |unit: &str| process(4711, Reach::Given, [UID; 4], &format!("/system.slice/{unit}"));
        for (number, all, facts, asks) in [
            (15, vec![given([UID; 4])], &own, false),
            (9, vec![given([UID; 4]), child([UID; 4])], &own, false),
            (15, vec![given([UID; 4]), child([0; 4])], &own, true),
            (15, vec![given([0; 4])], &own, true),
            (19, vec![given([0; 4])], &own, true),
            (34, vec![given([0; 4])], &own, true),
            // A program with its owner's rights has them as its saved id.
            (15, vec![given([UID, UID, 0, UID])], &own, true),
            (15, vec![given([0; 4])], &root, true),
            (15, vec![given([UID; 4])], &root, true),
            (0, vec![given([0; 4])], &own, false),
            (18, vec![given([0; 4])], &own, false),
            (23, vec![given([0; 4])], &root, false),
            // nginx and httpd end their workers then.
            (28, vec![given([0; 4])], &root, true),
            (15, vec![of_unit("lsa-x.service")], &own, false),
            (15, vec![of_unit("ssh.service")], &own, true),
            (15, vec![of_unit("dbus.service")], &own, true),
        ] {
            let mut assessment = RiskAssessment::new(Policy::builtin(), lazy.get(), &target, facts);
            assessment.signal(&signal(number), &seen(all.clone())).unwrap();
            let found = assessment.risks.iter().any(|(risk, _)| *risk >= Risk::High);
            assert_eq!(
                found,
                asks,
                "{number} {all:?}: {:?}",
                assessment.risks.iter().map(|(_, why)| why).collect::<Vec<_>>()
            );
        }
    }
}
