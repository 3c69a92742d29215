//! The units of a guard on the target: what they are called, how they are taken away, and what a server that was killed
//! has left of them.

use std::sync::Arc;
use std::time::Duration;

use crate::file_problems::no_answer;
use crate::files::run_one;
use host_base::problem::{Category, Problem};
use host_base::{Command, Keep, Output, Privilege};
use host_capability::Access;
use host_target::Target;

/// Where units live that are gone after a boot.
pub(super) const UNITS: &str = "/run/systemd/system";
/// For one of the host's own commands.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The units of one change.
pub struct Units<'a> {
    target: &'a Target,
    /// Of the timer and the service; the others have a number behind it.
    pub name: String,
    items: usize,
    steps: usize,
}

/// What is there of the guard of a change that nobody makes any more.
#[derive(Debug, PartialEq)]
pub enum Left {
    /// Nothing.
    Nothing,
    /// Its timer runs, or what the timer has started: the target undoes the change by itself.
    Armed,
    /// It has undone the change; its units are still there.
    Fired,
    /// Units that never did anything.
    Idle,
}

impl<'a> Units<'a> {
    /// Of the change with this id, which has so many commands for its undo, and so many steps.
    pub fn new(target: &'a Target, id: &str, items: usize, steps: usize) -> Self {
        Self { target, name: format!("linux-sysadmin-guard-{id}"), items, steps }
    }

    /// Those that are there of a change of so many steps.
    pub async fn look(target: &'a Target, id: &str, steps: usize) -> Result<(Self, Left), Problem> {
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
            return Ok((units, Left::Nothing));
        }
        let timer = units.state(&[format!("{}.timer", units.name)]).await?;
        let mut services: Vec<String> = (0..units.items).map(|number| units.item(number)).collect();
        services.push(format!("{}.service", units.name));
        let services = units.state(&services).await?;
        let is_armed = ["SubState=waiting", "SubState=running"].iter().any(|state| timer.contains(state))
            || services.contains("ActiveState=activating\n");
        // What has run stays active or failed until it is removed.
        let has_fired =
            ["ActiveState=active\n", "ActiveState=failed\n"].iter().any(|state| services.contains(state));
        let left = if has_fired { Left::Fired } else { Left::Idle };
        Ok((units, if is_armed { Left::Armed } else { left }))
    }

    async fn state(&self, units: &[String]) -> Result<String, Problem> {
        let show = ["show", "--property=ActiveState,SubState", "--"].into_iter();
        let units = units.iter().map(String::as_str);
        self.ask("systemctl", &show.chain(units).collect::<Vec<_>>()).await
    }

    /// Takes everything of it away.
    pub async fn remove(&self) {
        let units = (0..self.items).map(|number| self.item(number));
        let units = units.chain(["service", "timer"].map(|kind| format!("{}.{kind}", self.name)));
        let units: Vec<String> = units.collect();
        // What has run stays active, and what has failed stays failed, until it is told otherwise.
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
            tracing::warn!(guard = self.name, %problem, "what is left of a guard is still known to the service manager");
        }
    }

    /// The directory of the marks.
    pub fn marks(&self) -> String {
        format!("/run/{}", self.name)
    }

    /// Is there once this step has begun.
    pub fn mark(&self, step: usize) -> String {
        format!("{}/{step}", self.marks())
    }

    /// What a command reads.
    pub fn stdin(&self, number: usize) -> String {
        format!("{}/stdin-{number}", self.marks())
    }

    /// The unit of one command.
    pub fn item(&self, number: usize) -> String {
        format!("{}-{number}.service", self.name)
    }

    /// Asks the service manager, as root.
    pub async fn systemctl(&self, args: &[&str]) -> Result<Output, Problem> {
        self.command("systemctl", args, None).await
    }

    /// What a command says as root that only looks; a problem where it fails.
    pub async fn ask(&self, program: &str, args: &[&str]) -> Result<String, Problem> {
        let question = own(program, args, None, Privilege::Root);
        let answer = self.target.run_all(&[question]).await.pop();
        let output = succeeded(program, answer.unwrap_or_else(|| Err(no_answer()))?)?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Runs a command as root; a problem where it fails.
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
    Command {
        program: program.to_owned(),
        args: args.iter().map(|arg| (*arg).to_owned()).collect(),
        env: Vec::new(),
        stdin,
        privilege,
        timeout: TIMEOUT,
        keep: Keep::Head,
        heard: None,
    }
}
