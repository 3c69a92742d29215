//! What a plan holds, for a module's own tests: a test reads the plan that a tool handed over.

use super::{Change, Lock, Step, confirm};
use crate::{Command, Risk};

impl Change {
    /// The sentence that a person reads first.
    pub fn summary(&self) -> &str {
        &self.0.summary
    }

    /// The steps in their order.
    pub fn steps(&self) -> Vec<Step> {
        self.0.steps.iter().cloned().map(Step).collect()
    }

    /// The commands that run after every undo, see [`Change::after_undo`].
    pub fn commands_after_undo(&self) -> &[Command] {
        &self.0.after_undo
    }

    /// The seconds of the guard, where the plan has one.
    pub fn guard_seconds(&self) -> Option<u32> {
        self.0.guard.as_ref().map(|guard| guard.seconds)
    }

    /// The seconds within which the machine has to be back, where the plan restarts it.
    pub fn restart_seconds(&self) -> Option<u32> {
        match self.0.power {
            Some(confirm::PowerChange::Restart(seconds)) => Some(seconds),
            Some(confirm::PowerChange::Off) | None => None,
        }
    }

    /// Whether the plan turns the machine off.
    pub fn is_turning_off(&self) -> bool {
        matches!(self.0.power, Some(confirm::PowerChange::Off))
    }

    /// The resources that must be free.
    pub fn locks(&self) -> &[Lock] {
        &self.0.locks
    }

    /// The risk to which the plan raises that of the tool; `None` where the tool's own holds.
    pub fn raised_risk(&self) -> Option<Risk> {
        self.0.risk
    }

    /// The sentences that a person reads before saying yes.
    pub fn warnings(&self) -> &[String] {
        &self.0.warnings
    }

    /// The units that stop or restart.
    pub fn affected_services(&self) -> &[String] {
        &self.0.affected_services
    }

    /// The command of the program's own simulation, see [`Change::dry_run`].
    pub fn simulation(&self) -> Option<&Command> {
        self.0.dry_run.as_ref()
    }
}

impl Step {
    /// The commands that the step runs: one, those of a pipeline, or none.
    pub fn commands(&self) -> &[Command] {
        match &self.0.action {
            confirm::Action::Run(run) => std::slice::from_ref(&run.command),
            confirm::Action::RunPipeline(run) => &run.pipeline.commands,
            _ => &[],
        }
    }

    /// The file or directory that the step changes. `None` for commands and signals.
    pub fn path(&self) -> Option<&str> {
        let at = match &self.0.action {
            confirm::Action::WriteFile(write) => &write.at,
            confirm::Action::RemoveFile(at) | confirm::Action::RemoveDirectory(at) => at,
            confirm::Action::MakeDirectory(directory) => &directory.at,
            confirm::Action::MovePath(moved) => &moved.at,
            confirm::Action::SetAttributes(attributes) => &attributes.at,
            confirm::Action::Run(_)
            | confirm::Action::RunPipeline(_)
            | confirm::Action::SignalProcesses(_) => return None,
        };
        Some(&at.path)
    }

    /// The contents of the file that the step writes.
    pub fn contents(&self) -> Option<&[u8]> {
        match &self.0.action {
            confirm::Action::WriteFile(write) => Some(&write.contents),
            _ => None,
        }
    }

    /// The commands that undo the step.
    pub fn undo_commands(&self) -> &[Command] {
        &self.0.undo
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_test_reads_what_a_plan_was_built_from() {
        let [run, back, look] = ["run", "back", "look"].map(Command::new);
        let change = Change::new("Do it")
            .step(Step::run(run.clone()).undo(back.clone()))
            .step(Step::write("/etc/x", "new"))
            .after_undo(back.clone())
            .guard(30)
            .lock(Lock::Systemd)
            .risk(Risk::High)
            .warning("It may hurt")
            .affects("x.service")
            .dry_run(look.clone());
        assert_eq!((change.summary(), change.guard_seconds()), ("Do it", Some(30)));
        assert_eq!(change.commands_after_undo(), std::slice::from_ref(&back));
        assert_eq!((change.locks().len(), change.raised_risk()), (1, Some(Risk::High)));
        assert_eq!(change.warnings(), ["It may hurt"]);
        assert_eq!(change.affected_services(), ["x.service"]);
        assert_eq!(change.simulation(), Some(&look));
        let steps = change.steps();
        assert_eq!(steps[0].commands(), [run]);
        assert_eq!(steps[0].undo_commands(), [back]);
        assert_eq!((steps[0].path(), steps[0].contents()), (None, None));
        assert_eq!((steps[1].path(), steps[1].contents()), (Some("/etc/x"), Some(&b"new"[..])));
        assert!(steps[1].commands().is_empty() && steps[1].undo_commands().is_empty());
    }

    #[test]
    fn a_plan_restarts_the_machine_or_turns_it_off() {
        let change = || Change::new("Do it");
        let said = |change: Change| (change.restart_seconds(), change.is_turning_off());
        assert_eq!(said(change()), (None, false));
        assert_eq!(said(change().restarts(60)), (Some(60), false));
        assert_eq!(said(change().turns_off()), (None, true));
    }
}
