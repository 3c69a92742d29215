//! The units of a guard on the target: their names, their removal, and the state in which a killed server has left
//! them.

use std::sync::Arc;
use std::time::Duration;

use crate::file_problems::no_answer;
use crate::files::run_one;
use host_base::problem::{Category, Problem};
use host_base::{Command, Output, Privilege};
use host_capability::Access;
use host_target::Target;

/// The directory of units that are gone after a reboot.
pub(super) const UNITS: &str = "/run/systemd/system";
/// The time for one of the host's own commands.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The units of one change.
pub struct GuardUnits<'a> {
    target: &'a Target,
    /// The name of the timer and the service. The names of the other units add a number to it.
    pub name: String,
    items: usize,
    steps: usize,
}

/// The state of a guard whose server is gone.
#[derive(Debug, PartialEq)]
pub enum GuardState {
    /// The target has no units of the guard.
    Nothing,
    /// The timer or the undo is running: the target undoes the change by itself.
    Armed,
    /// The target has undone the change, and the units are still there.
    Fired,
    /// The units are there and have never run.
    Idle,
}

impl<'a> GuardUnits<'a> {
    /// The units of the change with this id. `items` is the number of the undo's commands, and `steps` the number of
    /// steps.
    pub fn new(target: &'a Target, id: &str, items: usize, steps: usize) -> Self {
        Self { target, name: format!("linux-sysadmin-guard-{id}"), items, steps }
    }

    /// Finds the units that are left of a change with this number of steps.
    pub async fn look(target: &'a Target, id: &str, steps: usize) -> Result<(Self, GuardState), Problem> {
        let mut units = Self::new(target, id, 0, steps);
        let access = Access { privilege: Privilege::Caller, verbs: Vec::new() };
        let names = match target.list_dir(UNITS.to_owned(), &access, Arc::new(|_, _| Ok(()))).await {
            Ok(names) => names,
            Err(problem) if problem.category == Category::NotFound => Vec::new(),
            Err(problem) => return Err(problem),
        };
        let own = names.iter().filter_map(|name| name.strip_prefix(&units.name));
        let own: Vec<&str> = own.filter(|rest| rest.starts_with(['-', '.'])).collect();
        let number = |rest: &&str| rest.strip_prefix('-')?.strip_suffix(".service")?.parse::<usize>().ok();
        units.items = own.iter().filter_map(number).max().map_or(0, |last| last + 1);
        if own.is_empty() {
            return Ok((units, GuardState::Nothing));
        }
        let timer = units.state(&[format!("{}.timer", units.name)]).await?;
        let mut services: Vec<String> = (0..units.items).map(|number| units.item(number)).collect();
        services.push(format!("{}.service", units.name));
        let services = units.state(&services).await?;
        let is_armed = ["SubState=waiting", "SubState=running"].iter().any(|state| timer.contains(state))
            || services.contains("ActiveState=activating\n");
        // A unit that has run stays active or failed until it is removed.
        let has_fired =
            ["ActiveState=active\n", "ActiveState=failed\n"].iter().any(|state| services.contains(state));
        let left = if has_fired { GuardState::Fired } else { GuardState::Idle };
        Ok((units, if is_armed { GuardState::Armed } else { left }))
    }

    async fn state(&self, units: &[String]) -> Result<String, Problem> {
        let show = ["show", "--property=ActiveState,SubState", "--"].into_iter();
        let units = units.iter().map(String::as_str);
        self.ask("systemctl", &show.chain(units).collect::<Vec<_>>()).await
    }

    /// Removes all units and files of the guard.
    pub async fn remove(&self) {
        let units = (0..self.items).map(|number| self.item(number));
        let units = units.chain(["service", "timer"].map(|kind| format!("{}.{kind}", self.name)));
        let units: Vec<String> = units.collect();
        // A unit that has run stays active, and one that has failed stays failed, until it is stopped or reset.
        for verb in ["stop", "reset-failed"] {
            let all = [verb, "--"].into_iter().chain(units.iter().map(String::as_str));
            let _ = self.systemctl(&all.collect::<Vec<_>>()).await;
        }
        let files: Vec<String> = units.iter().map(|unit| format!("{UNITS}/{unit}")).collect();
        let stdin = (0..self.items).map(|number| self.stdin(number));
        let all: Vec<String> =
            ["--force".into(), "--".into()].into_iter().chain(files).chain(stdin).collect();
        let all: Vec<&str> = all.iter().map(String::as_str).collect();
        let _ = self.command("rm", &all, None).await;
        for step in 0..self.steps {
            let _ =
                self.command("rmdir", &["--ignore-fail-on-non-empty", "--", &self.mark(step)], None).await;
        }
        let _ = self.command("rmdir", &["--ignore-fail-on-non-empty", "--", &self.marks()], None).await;
        if let Err(problem) = self.systemctl(&["daemon-reload"]).await {
            tracing::warn!(guard = self.name, %problem, "the service manager still knows units of a guard that was removed");
        }
    }

    /// The directory of the marks of steps that have begun.
    pub fn marks(&self) -> String {
        format!("/run/{}", self.name)
    }

    /// The file that exists once this step has begun.
    pub fn mark(&self, step: usize) -> String {
        format!("{}/{step}", self.marks())
    }

    /// The file with a command's input.
    pub fn stdin(&self, number: usize) -> String {
        format!("{}/stdin-{number}", self.marks())
    }

    /// The name of one command's unit.
    pub fn item(&self, number: usize) -> String {
        format!("{}-{number}.service", self.name)
    }

    /// Runs systemctl as root.
    pub async fn systemctl(&self, args: &[&str]) -> Result<Output, Problem> {
        self.command("systemctl", args, None).await
    }

    /// The output of a command that only looks, run as root. The result is a problem where it fails.
    pub async fn ask(&self, program: &str, args: &[&str]) -> Result<String, Problem> {
        let question = own(program, args, None, Privilege::Root);
        let answer = self.target.run_all(&[question]).await.pop();
        let output = succeeded(program, answer.unwrap_or_else(|| Err(no_answer()))?)?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Runs a command as root. The result is a problem where it fails.
    pub async fn command(
        &self,
        program: &str,
        args: &[&str],
        stdin: Option<Vec<u8>>,
    ) -> Result<Output, Problem> {
        succeeded(program, run_one(self.target, &own(program, args, stdin, Privilege::Root)).await?)
    }
}

fn succeeded(program: &str, output: Output) -> Result<Output, Problem> {
    if output.exit_code == 0 {
        return Ok(output);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let message =
        format!("the guard of a change: {program} ended with {}: {}", output.exit_code, said.trim());
    Err(Problem::new("GUARD_FAILED", Category::Other, message))
}

/// One of the host's own commands.
pub(super) fn own(program: &str, args: &[&str], stdin: Option<Vec<u8>>, privilege: Privilege) -> Command {
    Command { stdin, privilege, ..Command::new(program, args.iter().copied(), TIMEOUT) }
}
