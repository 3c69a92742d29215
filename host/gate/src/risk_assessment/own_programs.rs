//! A module's own programs in plans: a step writes one, runs one, or writes a text by which root runs one.

use std::time::Duration;

use super::{NAMED, RiskAssessment};
use crate::own_programs::check_own_program;
use host_base::problem::Problem;
use host_base::{Command, Privilege, Risk, sha256};
use host_text::redact::excerpt;

impl RiskAssessment<'_> {
    /// Notes contents that a step writes to a path. True where they are those of a program of the module's own, about which
    /// the operator has decided.
    pub(super) fn writes_own_program(&mut self, path: &str, contents: &[u8]) -> bool {
        let granted = self.grants.and_then(|grants| grants.own_program_at(path));
        let is_own = granted.is_some_and(|granted| sha256::of(contents) == granted);
        match is_own {
            true => self.own_programs.insert(path.to_owned()),
            false => self.own_programs.remove(path),
        };
        is_own
    }

    /// Whether the module has a program of its own at the path. An error where another file is there, and no earlier step
    /// puts the program there.
    pub(super) async fn is_own_program(&self, path: &str) -> Result<bool, Problem> {
        let Some(grants) = self.grants.filter(|grants| grants.own_program_at(path).is_some()) else {
            return Ok(false);
        };
        if !self.own_programs.contains(path) {
            check_own_program(self.target, grants, path).await?;
        }
        Ok(true)
    }

    /// Whether a line that root would run is one that the module may run itself: a program of its own, with arguments that
    /// a grant of the module names. The risk is that of the grant.
    pub(super) async fn runs_own_program(&mut self, argv: &[String]) -> bool {
        let (Some(grants), Some((program, args))) = (self.grants, argv.split_first()) else { return false };
        if !self.is_own_program(program).await.unwrap_or(false) {
            return false;
        }
        let command = Command::new(program, args.to_vec(), Duration::from_secs(1));
        let command = Command { privilege: Privilege::Root, ..command };
        match grants.may_change(&command) {
            Ok(granted) if !granted.is_any_program => {
                let pattern = excerpt(&granted.pattern, NAMED);
                self.risks.push((granted.risk.max(Risk::Moderate), format!("root would run `{pattern}`")));
                true
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use host_capability::{CommandRequest, Effect, Grants, OwnProgramRequest, Place};
    use host_knowledge::LazyKnowledge;
    use host_policy::{Policy, text};
    use host_target::{Facts, Overrides, Target};

    const PATH: &str = "/usr/local/lib/linux-sysadmin/lsa-test-copy";
    const PROGRAM: &[u8] = b"#!/bin/sh\nexec cp -a -- \"$@\"\n";

    fn grants() -> Grants {
        let mut grants = Grants::new("test");
        let (path, reason) = (PATH.to_owned(), String::new());
        grants.own_program(&OwnProgramRequest { path, sha256: sha256::of(PROGRAM), reason }).unwrap();
        let command = CommandRequest {
            pattern: format!("{PATH} create -- <path:/srv/**>"),
            effect: Effect::Change,
            privilege: Privilege::Root,
            place: Place::Target,
            risk: Risk::Moderate,
            reason: String::new(),
        };
        grants.command(&command).unwrap();
        grants
    }

    /// The risks of a unit that runs this line, after a step that writes these contents to the program's path.
    async fn weighed(grants: &Grants, contents: &[u8], line: &str) -> (bool, Vec<(Risk, String)>) {
        let target = Target::local(Overrides::default());
        let facts = Facts { user: "root".to_owned(), ..Facts::default() };
        let lazy = LazyKnowledge::default();
        let assessment = RiskAssessment::new(Policy::builtin(), lazy.get(), &target, &facts);
        let mut assessment = assessment.of_module(grants);
        let is_own = assessment.writes_own_program(PATH, contents);
        let unit = format!("[Service]\nExecStart={line}\n");
        let path = "/etc/systemd/system/x.service";
        let code = text::new_code_in_unit(path, unit.as_bytes(), &[], None).unwrap();
        assessment.code(code, None, path).await.unwrap();
        (is_own, assessment.risks)
    }

    #[tokio::test]
    async fn a_unit_runs_the_modules_program_as_its_grant_allows() {
        let run = |arguments: &str| format!("{PATH} {arguments}");
        let others = Grants::new("other");
        for (grants, contents, line, is_grave) in [
            (&grants(), PROGRAM, run("create -- /srv/x"), false),
            (&grants(), PROGRAM, run("create -- /etc/shadow"), true),
            (&grants(), PROGRAM, run("remove -- /srv/x"), true),
            (&grants(), PROGRAM, format!("/bin/sh -c '{PATH} create -- /srv/x; id'"), true),
            (&grants(), &PROGRAM[1..], run("create -- /srv/x"), true),
            (&others, PROGRAM, run("create -- /srv/x"), true),
        ] {
            let (is_own, risks) = weighed(grants, contents, &line).await;
            assert_eq!(is_own, contents == PROGRAM && grants.own_program_at(PATH).is_some());
            assert_eq!(risks.iter().any(|(risk, _)| *risk >= Risk::High), is_grave, "{line}: {risks:?}");
        }
        let (_, risks) = weighed(&grants(), PROGRAM, &run("create -- /srv/x")).await;
        let told = format!("root would run `{PATH} create -- <path:/srv/**>`");
        assert_eq!(risks, [(Risk::Moderate, told)]);
    }

    #[tokio::test]
    async fn a_file_with_other_contents_is_no_program_of_the_module() {
        let target = Target::local(Overrides::default());
        let problem = check_own_program(&target, &grants(), PATH).await.unwrap_err();
        assert_eq!(problem.category, host_base::problem::Category::NotFound, "{problem:?}");
        check_own_program(&target, &grants(), "/usr/bin/true").await.unwrap();
    }
}
