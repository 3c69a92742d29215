//! Checks what a plan needs: its steps, its simulation, its files and the commands that validate them.

use super::{CommandGrant, Grants, covers, without_certain_secrets, without_likely_secrets};
use super::{MAX_QUOTED, command_line};
use crate::hole::HoleType;
use crate::path::{Glob, PathText, secret_below};
use crate::pattern::Match;
use crate::request::Effect;
use crate::staging::Staging;
use host_base::Risk;
use host_base::problem::{Category, Problem};
use host_base::{Command, Privilege};
use host_text::visible::excerpt;

/// The text that stands for the file in the command that validates it.
const FILE: &str = "{}";

/// The reason for a refusal: whose rights a change takes must be certain before it runs, and must not depend on sudo.
const UNCERTAIN: &str =
    "expected caller, root or user:NAME, since it must be certain whose rights a change takes";

/// A command that a plan may run.
#[derive(Clone, Debug)]
pub struct GrantedStep {
    /// The command as it may be shown: without standard input, with `<secret>` for its secrets, and exact in everything
    /// else.
    pub shown: Command,
    /// The values of its holes for paths. They were checked as text. The caller checks with [`Grants::may_lead`] where
    /// they lead on the target.
    pub paths: Vec<(HoleType, String)>,
    /// The highest risk of all grants that allow the command.
    pub risk: Risk,
    /// The pattern of the grant with this risk, as the module requested it.
    pub pattern: String,
    /// Whether every grant that allows the command has an `<arg>`, so that no grant fixes all of its arguments.
    pub free_form: bool,
    /// Whether no grant names the command, and the module may run any program.
    pub is_any_program: bool,
}

impl Grants {
    /// Whether a plan may run this command as a step, or to undo one.
    pub fn may_change(&self, command: &Command) -> Result<GrantedStep, Problem> {
        if command.privilege == Privilege::RootIfAvailable {
            return Err(self.may_not_run(command, UNCERTAIN));
        }
        self.granted(command, &[Effect::Read, Effect::DryRun, Effect::Change], "")
    }

    /// Whether a plan may run this command as its simulation.
    pub fn may_simulate(&self, command: &Command) -> Result<GrantedStep, Problem> {
        self.granted(command, &[Effect::DryRun], "expected a grant with the effect dry-run")
    }

    /// Whether a plan may run this command to validate a file before it takes its place. One argument is `{}`, or ends
    /// in `={}`: it stands for the new file, and is matched as the file's own path. Without exactly one such argument
    /// the error is `INVALID_VALIDATION`. A grant for changes doesn't allow a validation.
    pub fn may_validate(&self, command: &Command, file: &str) -> Result<GrantedStep, Problem> {
        let holds = |text: &String| text.contains(FILE);
        let elsewhere =
            holds(&command.program) || command.env.iter().any(|(name, value)| holds(name) || holds(value));
        let found: Vec<(usize, &String)> =
            command.args.iter().enumerate().filter(|(_, arg)| holds(arg)).collect();
        let stands = match found[..] {
            [(at, arg)] if !elsewhere => arg.strip_suffix(FILE).map(|head| (at, head)),
            _ => None,
        };
        let Some((at, head)) =
            stands.filter(|(_, head)| (head.is_empty() || head.ends_with('=')) && !head.contains(FILE))
        else {
            return Err(self.invalid_validation(command));
        };
        let mut matched = command.clone();
        matched.args[at] = format!("{head}{file}");
        let why = "expected a grant with the effect read or dry-run, since a validation changes nothing";
        let mut granted = self.granted(&matched, &[Effect::Read, Effect::DryRun], why)?;
        if let Some(head) = granted.shown.args[at].strip_suffix(file) {
            granted.shown.args[at] = format!("{head}{FILE}");
        }
        Ok(granted)
    }

    /// Whether a plan may write, make, change or remove the path, both as it was given and as it is after symlinks.
    pub fn may_write(&self, asked: &str, real: &str, privilege: &Privilege) -> Result<(), Problem> {
        let refused = |why| Err(self.may_not_reach("write", asked, real, why));
        if *privilege == Privilege::RootIfAvailable {
            return refused(UNCERTAIN);
        }
        if asked.ends_with('/') || real.ends_with('/') {
            return refused("expected a path without a slash at its end");
        }
        let covering = |path: &str| -> Vec<&Staging> {
            let path = PathText::new(path);
            let all = self.paths.iter().filter(|grant| covers(&grant.request.privilege, privilege));
            all.filter(|grant| grant.glob.admits_text(&path))
                .filter_map(|grant| grant.staging.as_ref())
                .collect()
        };
        let (of_asked, of_real) = (covering(asked), covering(real));
        if of_asked.is_empty() || of_real.is_empty() {
            return refused("none of its grants to write covers it");
        }
        if !of_real.iter().any(|staging| staging.is_possible_for(real)) {
            return refused(
                "expected a path that leaves room for copies beside it, and a name other than .previous",
            );
        }
        Ok(())
    }

    /// Whether a plan may move a file or a directory between two paths that it may write. What has to stay secret must not
    /// become readable by a new name. Of a directory, that is also what lies below it.
    pub fn may_move(&self, from: &str, to: &str, is_directory: bool) -> Result<(), Problem> {
        let is_denied = |glob: &Glob| {
            let may_be_below =
                || Glob::parse(&format!("{from}/**")).map_or(true, |below| glob.may_meet(&below));
            glob.matches(from) || is_directory && !stays_denied(glob, from) && may_be_below()
        };
        if self.denied.iter().any(|glob| is_denied(glob)) {
            return Err(self.may_not_reach("move", from, from, "a service keeps secrets there"));
        }
        match secret_below(from, to).filter(|_| is_directory) {
            Some(reason) => {
                let why = format!("{reason} may be below it, which nobody would recognize as that in {to}");
                Err(self.may_not_reach("move", from, from, &why))
            }
            None => Ok(()),
        }
    }

    /// The command by the gravest of the grants that match it and have one of the effects. `why` says what was expected
    /// where only grants with other effects match.
    fn granted(&self, command: &Command, effects: &[Effect], why: &str) -> Result<GrantedStep, Problem> {
        let matching: Vec<(&CommandGrant, Match)> = self.matching(command).collect();
        let mut free_form = true;
        let mut gravest: Option<&(&CommandGrant, Match)> = None;
        for found in matching.iter().filter(|(grant, _)| effects.contains(&grant.request.effect)) {
            free_form &= found.0.pattern.holes().any(|hole| *hole == HoleType::Arg);
            if gravest.is_none_or(|(grant, _)| found.0.request.risk > grant.request.risk) {
                gravest = Some(found);
            }
        }
        let Some((grant, matched)) = gravest else {
            if effects.contains(&Effect::Change) && self.may_run_any(command) {
                return Ok(GrantedStep {
                    shown: Command { stdin: None, ..command.clone() },
                    paths: Vec::new(),
                    risk: Risk::ReadOnly,
                    pattern: "any program".to_owned(),
                    free_form: true,
                    is_any_program: true,
                });
            }
            return Err(match matching.is_empty() {
                true => self.matches_none(command),
                false => self.may_not_run(command, why),
            });
        };
        let matches: Vec<&Match> = matching.iter().map(|(_, matched)| matched).collect();
        Ok(GrantedStep {
            shown: without_certain_secrets(command, &matches),
            paths: matched.paths().cloned().collect(),
            risk: grant.request.risk,
            pattern: grant.pattern.text().to_owned(),
            free_form,
            is_any_program: false,
        })
    }

    fn invalid_validation(&self, command: &Command) -> Problem {
        let shown = without_likely_secrets(command, self.commands.iter().map(|grant| &grant.pattern));
        let line = excerpt(&command_line("", &shown), MAX_QUOTED);
        let message = format!(
            "module {} may not validate a file by `{line}`: expected exactly one argument that is `{{}}` or ends in \
             `={{}}`, and no other `{{}}`",
            self.module
        );
        Problem::new("INVALID_VALIDATION", Category::Validation, message)
    }
}

/// Whether what a glob denies below a directory is still denied once the directory has another path: the glob holds at any
/// depth, and none of its own directories is the one that moves.
fn stays_denied(glob: &Glob, from: &str) -> bool {
    let name = from.rsplit('/').next().unwrap_or_default();
    let mut directories = glob.text().strip_prefix("/**/").map(|rest| rest.split('/').rev().skip(1));
    directories.as_mut().is_some_and(|all| all.all(|one| one != name && !one.contains('*')))
}

#[cfg(test)]
mod tests;
