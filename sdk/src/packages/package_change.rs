//! The common part of all tools that change packages. It lets the manager simulate the change, judges its risk, hands
//! over a plan of one command, and reads from the package database what was done.

use serde_json::{Value, json};

use super::outcome::{difference, is_done};
use super::report::{by_verb, changes_text, dry_run_answer, past_participle, simulation_extras, summary};
use super::risk::assess;
use super::types::{Installed, Operation, Request, Simulated, State, Verb};
use super::{Backend, not_found};
use crate::{Category, Change, Context, Failure, Lock, Noted, Problem, Result, Step};

/// The answer of a tool that changes packages.
pub(super) type Answer = Noted<Value>;

/// Refuses names of which the repositories have no package.
pub(super) fn check_known<B: Backend>(backend: &B, names: &[String], cx: &Context) -> Result<()> {
    if names.is_empty() {
        return Ok(());
    }
    let unknown_names = backend.unknown(names, cx)?;
    if unknown_names.is_empty() { Ok(()) } else { Err(not_found(backend, &unknown_names, cx)) }
}

/// Whether the package is installed, whole or broken.
pub(super) fn is_installed(installed: &[Installed], name: &str) -> bool {
    installed.iter().any(|package| package.name == name && package.state != State::ConfigFiles)
}

/// The package, where it is installed as a whole.
pub(super) fn installed_whole<'a>(installed: &'a [Installed], name: &str) -> Option<&'a Installed> {
    installed.iter().find(|package| package.name == name && package.state == State::Installed)
}

/// A change of packages that a tool was asked for.
pub(super) struct PackageChange<'a, B> {
    pub(super) backend: &'a B,
    pub(super) cx: &'a Context,
    pub(super) request: Request,
    /// The package database before the change.
    pub(super) before: Vec<Installed>,
    pub(super) notes: Vec<String>,
}

impl<B: Backend> PackageChange<'_, B> {
    pub(super) fn apply(self) -> Result<Answer> {
        self.apply_where(|_| Ok(()))
    }

    /// Applies the change where the check finds nothing wrong with its simulation.
    pub(super) fn apply_where(mut self, check: impl FnOnce(&Simulated) -> Result<()>) -> Result<Answer> {
        let simulated = self.backend.simulate(&self.request, self.cx)?;
        self.check_named_packages(&simulated)?;
        check(&simulated)?;
        self.notes.extend(simulated.notes.iter().cloned());
        if simulated.operations.is_empty() {
            self.check_nothing_broken()?;
        }
        // Where the manager can't do it at all, its simulation may well be empty.
        let command = self.backend.command(&self.request, self.cx);
        let command = command.ok_or_else(|| not_supported(&self.request))?;
        if simulated.operations.is_empty() {
            self.notes.push("nothing has to be done".to_owned());
            let data = Value::Object(simulation_extras(&simulated).into_iter().collect());
            return Ok(Noted { data, notes: self.notes });
        }
        let assessment = assess(&self.request, &simulated, &self.before, &self.cx.distro().kernel);
        let mut change = Change::new(summary(&self.request, &simulated))
            .step(Step::run(command).success(self.backend.success_codes()).uninterruptible())
            .lock(Lock::PackageDatabase);
        change = assessment.risk.into_iter().fold(change, Change::risk);
        change = assessment.warnings.into_iter().fold(change, Change::warning);
        let simulation = self.backend.dry_run_command(&self.request, self.cx);
        change = simulation.into_iter().fold(change, Change::dry_run);
        match self.cx.apply(change) {
            Ok(applied) if applied.dry_run => {
                Ok(Noted { data: dry_run_answer(&self.request, &simulated), notes: self.notes })
            }
            Ok(applied) => self.report_done(&simulated, applied.outputs.first()),
            Err(failure) => Err(self.report_failure(failure, &simulated)),
        }
    }

    /// Refuses a simulation that installs other packages in place of a named one: a manager also takes the name of something
    /// that a package provides.
    fn check_named_packages(&self, simulated: &Simulated) -> Result<()> {
        let (Request::Install(names) | Request::Reinstall(names)) = &self.request else { return Ok(()) };
        let is_touched = |name: &String| simulated.operations.iter().any(|operation| operation.name == *name);
        let Some(name) = names.iter().find(|name| !is_touched(name) && !is_installed(&self.before, name))
        else {
            return Ok(());
        };
        let mut message = format!("no package that is called {name} would be installed");
        let instead = simulated.operations.iter().filter(|operation| operation.verb == Verb::Install);
        let instead: Vec<_> = instead.map(Operation::versions).collect();
        if !instead.is_empty() {
            message += &format!(", but {}", instead.join(", "));
        }
        let problem = Problem::new("PACKAGE_NOT_FOUND", Category::NotFound, message);
        Err(problem.remedy("Name the package itself that is to be installed"))
    }

    /// Refuses to do nothing where a package is broken and no repository has it to install it again.
    fn check_nothing_broken(&self) -> Result<()> {
        let Request::Reinstall(names) = &self.request else { return Ok(()) };
        let broken = self.before.iter().filter(|package| names.contains(&package.name));
        let broken = broken.filter_map(|package| match &package.state {
            State::Broken(state) => Some(format!("{} {} is {state}", package.name, package.version)),
            _ => None,
        });
        let broken: Vec<_> = broken.collect();
        if broken.is_empty() {
            return Ok(());
        }
        let message = format!("{}, and the package manager can't install it anew", broken.join(", "));
        Err(Problem::new("PACKAGES_INTERRUPTED", Category::State, message))
    }

    /// The answer after the command succeeded. What was done is read from the package database.
    fn report_done(mut self, simulated: &Simulated, output: Option<&crate::Output>) -> Result<Answer> {
        let after = match self.backend.installed(self.cx) {
            Ok(after) => after,
            // The change is made, so that this is no failure.
            Err(problem) => {
                let note = format!(
                    "the package manager has succeeded, but its database couldn't be read: {}",
                    problem.message
                );
                self.notes.push(note);
                return Ok(Noted { data: json!({}), notes: self.notes });
            }
        };
        let operations = difference(&self.before, &after, simulated);
        let is_done = |wanted: &&Operation| is_done(wanted, &simulated.operations, &self.before, &after);
        let left: Vec<_> = simulated.operations.iter().filter(|wanted| !is_done(wanted)).collect();
        if !left.is_empty() {
            let left = left.iter().map(|wanted| format!("{} {}", wanted.verb.name(), wanted.versions()));
            let message = format!(
                "the package manager says that it has succeeded, but this isn't done: {}{}",
                left.collect::<Vec<_>>().join(", "),
                changes_text(&operations)
            );
            return Err(Problem::new("TRANSACTION_INCOMPLETE", Category::Other, message));
        }
        let remarks = output.map(|output| self.backend.remarks(output, self.cx)).unwrap_or_default();
        let aftermath = self.backend.aftermath(self.cx);
        self.notes.extend(remarks.notes.into_iter().chain(aftermath.notes));
        let lists = [
            ("kept_config_files", remarks.kept_config_files),
            ("reboot_required_by", aftermath.reboot_required_by),
            ("services_to_restart", aftermath.services_to_restart),
        ];
        let lists = lists.into_iter().filter(|(_, list)| !list.is_empty());
        let mut data = by_verb(&operations, past_participle);
        data.extend(lists.map(|(key, list)| (key.to_owned(), json!(list))));
        data.extend(simulation_extras(simulated));
        Ok(Noted { data: Value::Object(data), notes: self.notes })
    }

    /// The problem of a failed change, with what was done before it failed.
    fn report_failure(&self, failure: Failure, simulated: &Simulated) -> Problem {
        let uncertain = failure.uncertain;
        let mut problem = explained(self.backend, failure, self.cx);
        if !uncertain && let Ok(after) = self.backend.installed(self.cx) {
            problem.message += &changes_text(&difference(&self.before, &after, simulated));
        }
        problem
    }
}

/// The failure's problem, or the backend's explanation of it where the manager's own output says what went wrong.
pub(super) fn explained<B: Backend>(backend: &B, failure: Failure, cx: &Context) -> Problem {
    let is_its_own = failure.problem.code == "COMMAND_FAILED" && !failure.uncertain;
    let said = failure.outputs.last().filter(|_| is_its_own);
    said.and_then(|output| backend.explain(output, cx)).unwrap_or(failure.problem)
}

pub(super) fn not_supported(request: &Request) -> Problem {
    let message = format!("this package manager has no command for it: {request:?}");
    Problem::new("NOT_SUPPORTED", Category::State, message)
}
