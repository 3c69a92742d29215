//! The services whose configuration a plan changes: their own checkers, and what makes the change take effect.
//!
//! A checker that reads a whole file checks the new one beside the service's own files, before anything is in place. Any
//! other checker checks the live configuration once the new files are in place; where it refuses them, the plan fails and
//! the host puts the former files back. In both cases that happens before anything reloads the configuration.

use linux_sysadmin_sdk::knowledge::config_checks::{Mistake, checked};
use linux_sysadmin_sdk::knowledge::config_paths::covers;
use linux_sysadmin_sdk::knowledge::{self, ApplyBy, Candidate, ConfigFile, Profile, Status, Validator};
use linux_sysadmin_sdk::prelude::*;

use crate::original::LARGEST;
use crate::owner;

/// A file of a plan.
pub(crate) struct ChangedFile<'a> {
    pub(crate) path: &'a str,
    /// The new contents, where the plan writes a whole file.
    pub(crate) contents: Option<&'a [u8]>,
}

/// A service, and the files of its configuration that a plan changes.
pub(crate) struct Service {
    profile: Profile,
    paths: Vec<String>,
    checks: Vec<Check>,
    unknown: Vec<String>,
}

/// A checker that the plan runs.
struct Check {
    /// The number of the profile's validator.
    validator: usize,
    /// The text of the whole file, for a checker that takes one, and the exit code of a correct configuration.
    candidate: Option<Vec<u8>>,
    /// The exit code that lets the plan go on. None where the configuration was refused before, so that no verdict stops the plan.
    success: Option<i32>,
}

/// The answer about a service.
#[derive(Debug, Serialize)]
pub(crate) struct Told {
    profile: String,
    /// The checker's verdict. None where no checker could tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    valid: Option<bool>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    checkers: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    errors: Vec<Mistake>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unknown: Vec<String>,
    /// The calls that make the change take effect.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    next: Vec<String>,
    /// Other files of the service that differ from those of their package.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    differs_from_package: Vec<String>,
}

/// All exit codes: the verdict doesn't stop the plan.
const ANY: std::ops::RangeInclusive<i32> = 0..=255;

/// The services of these files, and which of their checkers can be used. It runs each checker once on what is there now.
pub(crate) fn join(files: &[ChangedFile<'_>], cx: &Context) -> Vec<Service> {
    let mut services: Vec<Service> = Vec::new();
    for profile in cx.detected() {
        let own = |file: &&ChangedFile<'_>| entry(&profile, file.path).is_some();
        let own: Vec<&ChangedFile<'_>> = files.iter().filter(own).collect();
        if profile.status == Status::Absent || own.is_empty() {
            continue;
        }
        let paths = own.iter().map(|file| file.path.to_owned()).collect();
        let mut service = Service { paths, checks: Vec::new(), unknown: Vec::new(), profile };
        service.find_checks(&own, cx);
        services.push(service);
    }
    services
}

/// The profile's entry for a file.
pub(crate) fn entry<'a>(profile: &'a Profile, path: &str) -> Option<&'a ConfigFile> {
    profile.config.iter().find(|file| covers(&file.path, path))
}

/// The ids of the profiles that name a file as configuration.
pub(crate) fn profiles(path: &str, cx: &Context) -> Vec<String> {
    let named = cx.detected().into_iter().filter(|profile| entry(profile, path).is_some());
    named.map(|profile| profile.id).collect()
}

impl Service {
    fn find_checks(&mut self, own: &[&ChangedFile<'_>], cx: &Context) {
        let reads = |one: &Validator| {
            one.covers.is_empty()
                || one.covers.iter().any(|glob| own.iter().any(|file| covers(glob, file.path)))
        };
        let wanted: Vec<usize> = (0..self.profile.validators.len())
            .filter(|number| reads(&self.profile.validators[*number]))
            .collect();
        let command = |number: &usize| {
            let one = &self.profile.validators[*number];
            knowledge::command(&one.argv, one.root)
        };
        let outputs = cx.run_all(wanted.iter().map(command).collect());
        for (validator, output) in wanted.into_iter().zip(outputs) {
            let one = &self.profile.validators[validator];
            let before = checked(one, &one.argv, one.root, &output);
            if let (None, Err(problem)) = (before.valid, &output) {
                self.unknown.push(format!("{}: {}", one.argv.join(" "), problem.message));
                continue;
            }
            let success = output.ok().filter(|_| before.valid == Some(true)).map(|output| output.exit_code);
            let candidate = self.candidate(one, own).map(<[u8]>::to_vec);
            self.checks.push(Check { validator, candidate, success });
        }
    }

    /// The text that a checker of whole files checks: that of the main file, where nothing else of the service changes.
    fn candidate<'a>(&self, validator: &Validator, own: &[&ChangedFile<'a>]) -> Option<&'a [u8]> {
        let [file] = own else { return None };
        let beside = validator.candidate.as_ref()?.path.rsplit_once('/')?.0;
        let is_main =
            entry(&self.profile, file.path).is_some_and(|entry| entry.main && entry.path == file.path);
        let is_beside = file.path.rsplit_once('/').is_some_and(|(directory, _)| directory == beside);
        // The plan would hold the text twice.
        let fits = |text: &&[u8]| 2 * text.len() as u64 <= LARGEST;
        file.contents.filter(|_| is_main && is_beside).filter(fits)
    }

    /// Adds the checks that come before the new files are in place.
    pub(crate) fn before(&self, mut change: Change) -> Change {
        for check in &self.checks {
            let (Some(text), Some(candidate)) = (&check.candidate, self.candidate_of(check)) else {
                continue;
            };
            let checker = Step::run(knowledge::command(&candidate.argv, false).as_root());
            change = change
                .step(Step::write(&candidate.path, text.clone()).mode(0o600))
                .step(checker.success(&check.codes()))
                .step(Step::run(Command::new("rm").args(["--", &candidate.path]).as_root()));
        }
        self.warned(change)
    }

    /// The number of steps that [`Service::before`] adds.
    pub(crate) fn steps_before(&self) -> usize {
        3 * self.checks.iter().filter(|check| check.candidate.is_some()).count()
    }

    /// Adds the checks of the live configuration.
    pub(crate) fn after(&self, mut change: Change) -> Change {
        for check in self.checks.iter().filter(|check| check.candidate.is_none()) {
            let argv = &self.profile.validators[check.validator].argv;
            let checker = Step::run(knowledge::command(argv, false).as_root());
            change = change.step(checker.success(&check.codes()));
        }
        change
    }

    fn warned(&self, change: Change) -> Change {
        if self.checks.is_empty() {
            return change;
        }
        let name = &self.profile.name;
        change.warning(format!(
            "With root's rights, the checker of {name} may load, run or read what the text names"
        ))
    }

    fn candidate_of(&self, check: &Check) -> Option<&Candidate> {
        self.profile.validators[check.validator].candidate.as_ref()
    }

    /// Takes the outputs of the checks before the files are in place from the outputs of the plan.
    pub(crate) fn outputs_before<'a>(
        &self,
        outputs: &mut impl Iterator<Item = &'a Output>,
    ) -> Vec<Option<&'a Output>> {
        let mut take = |check: &Check| {
            check.candidate.as_ref()?;
            let output = outputs.next();
            // The file is removed by a command.
            outputs.next();
            output
        };
        self.checks.iter().map(&mut take).collect()
    }

    /// Takes the outputs of the checks of the live configuration.
    pub(crate) fn outputs_after<'a>(
        &self,
        before: Vec<Option<&'a Output>>,
        outputs: &mut impl Iterator<Item = &'a Output>,
    ) -> Vec<Option<&'a Output>> {
        let both = self.checks.iter().zip(before);
        both.map(|(check, before)| if check.candidate.is_some() { before } else { outputs.next() }).collect()
    }

    /// The answer, from the output of each check. `outputs` is empty after a dry run.
    pub(crate) fn told(&self, outputs: &[Option<&Output>], cx: &Context) -> Told {
        let mut told = Told {
            profile: self.profile.id.clone(),
            valid: None,
            checkers: Vec::new(),
            errors: Vec::new(),
            unknown: self.unknown.clone(),
            next: self.next(),
            differs_from_package: Vec::new(),
        };
        for (number, check) in self.checks.iter().enumerate() {
            told.checkers.push(self.profile.validators[check.validator].argv.join(" "));
            let Some(Some(output)) = outputs.get(number) else { continue };
            let verdict = self.verdict(check, output);
            told.valid = match (told.valid, verdict.valid) {
                (Some(false), _) | (_, Some(false)) => Some(false),
                (known, found) => found.or(known),
            };
            told.errors.extend(verdict.errors);
            told.unknown.extend(verdict.unknown);
        }
        if told.valid == Some(false) {
            told.next.insert(0, format!("svc_config_validate service={}", self.profile.id));
        }
        let is_others = |path: &String| entry(&self.profile, path).is_some() && !self.paths.contains(path);
        told.differs_from_package = owner::differing(&self.paths, cx).into_iter().filter(is_others).collect();
        told
    }

    fn verdict(&self, check: &Check, output: &Output) -> knowledge::config_checks::Checked {
        let one = &self.profile.validators[check.validator];
        let mut verdict = checked(one, &one.argv, false, &Ok(output.clone()));
        if let (Some(candidate), [path]) = (self.candidate_of(check), &self.paths[..]) {
            for mistake in &mut verdict.errors {
                mistake.file = mistake.file.take().map(|file| file.replace(&candidate.path, path));
                mistake.message = mistake.message.replace(&candidate.path, path);
            }
        }
        verdict
    }

    /// The problem of a plan that one of the checks has stopped. `output` is that of the check.
    pub(crate) fn refusal(&self, step: &Output) -> Option<Problem> {
        let check =
            self.checks.iter().find(|check| check.success.is_some_and(|code| code != step.exit_code))?;
        let verdict = self.verdict(check, step);
        let said: Vec<String> = verdict.errors.iter().map(Mistake::shown).collect();
        let said = if said.is_empty() { step.error_text() } else { said.join("; ") };
        let message =
            format!("{} refuses the new configuration, so nothing stays changed: {said}", verdict.command);
        Some(Problem::validation("CONFIGURATION_REFUSED", message))
    }

    /// The calls that make a change of the files take effect, where the service runs. A service that has failed may start
    /// with them.
    fn next(&self) -> Vec<String> {
        let service = self.profile.main_unit().map_or(self.profile.id.as_str(), |unit| {
            unit.name.strip_suffix(".service").unwrap_or(&unit.name)
        });
        match self.profile.status {
            Status::Active => {}
            Status::Failed => return vec![format!("svc_start service={service}")],
            _ => return Vec::new(),
        }
        let reloads = self.profile.main_unit().is_some_and(|unit| unit.reload);
        let mut calls: Vec<String> = Vec::new();
        for entry in self.paths.iter().filter_map(|path| entry(&self.profile, path)) {
            let call = match &entry.apply {
                Some(ApplyBy::Reload) => format!("svc_reload service={service}"),
                Some(ApplyBy::Restart) => format!("svc_restart service={service}"),
                Some(ApplyBy::AtOnce) => continue,
                Some(ApplyBy::Command(argv)) => format!("run: {}", argv.join(" ")),
                None if reloads => format!("svc_reload service={service}"),
                None => format!("svc_restart service={service}"),
            };
            if !calls.contains(&call) {
                calls.push(call);
            }
        }
        // A restart reads everything anew.
        if calls.iter().any(|call| call.starts_with("svc_restart")) {
            calls.retain(|call| !call.starts_with("svc_reload"));
        }
        calls
    }
}

impl Told {
    /// Whether the entry tells more than the service's name.
    pub(crate) fn says_something(&self) -> bool {
        let Self { profile: _, valid, checkers, errors, unknown, next, differs_from_package } = self;
        let nothing = valid.is_none() && checkers.is_empty() && errors.is_empty() && unknown.is_empty();
        !nothing || !next.is_empty() || !differs_from_package.is_empty()
    }
}

impl Check {
    fn codes(&self) -> Vec<i32> {
        self.success.map_or_else(|| ANY.collect(), |code| vec![code])
    }
}
