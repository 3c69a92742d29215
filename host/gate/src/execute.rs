//! Runs a plan's steps in order. Where one fails, the steps before it are undone, the latest first.

use super::allowed::AllowedCommand;
use super::execution::Execution;
use super::expected_target::STALE;
use super::files::run_one;
use super::guard::Guard;
use super::plan::{Action, Run};
use super::prepare::{PreparedAction, PreparedStep};
use super::signals;
use host_base::Output;
use host_base::faults;
use host_base::problem::{COMMAND_KILLED, Category, Problem};
use host_text::redact::excerpt;

/// The number of characters of a command's output that a problem quotes.
const SAID: usize = 2000;

/// The result of an execution so far.
#[derive(Debug, Default)]
pub struct ExecutionReport {
    /// The output of each command among the steps that ran, including the one that failed.
    pub outputs: Vec<Output>,
    /// The number of steps that succeeded.
    pub done: usize,
    /// The problem that stopped the execution, if one did.
    pub failure: Option<Problem>,
    /// The things that were put back.
    pub undone: Vec<String>,
    /// The things that could not be put back, with the reasons.
    pub not_undone: Vec<String>,
    /// True where the effect of a step or of its undo isn't known, because the connection was lost or another process
    /// ended the command.
    pub uncertain: bool,
    /// True where another process ended the command of the step that failed. The step may be half-done, so it is undone
    /// as well.
    pub is_killed: bool,
}

impl ExecutionReport {
    fn not_undone(&mut self, what: &str, why: &Problem) {
        self.uncertain |= why.is_connection_failure() || why.code == STALE;
        self.not_undone.push(format!("{what}: {why}"));
    }
}

impl Execution {
    /// Runs the steps until one fails. It undoes nothing.
    pub async fn steps(&self, guard: Option<&Guard<'_>>, report: &mut ExecutionReport) {
        let count = self.plan.steps.len();
        for (number, prepared) in self.plan.steps.iter().enumerate() {
            (self.progress)(Some(number as f32 / count as f32), &self.title(number));
            let step = async {
                faults::pass(format_args!("before-step-{number}"))?;
                if self.cancelled.is_cancelled() {
                    return Err(interrupted());
                }
                self.check_target().await?;
                if let Some(guard) = guard {
                    guard.begins(number).await?;
                }
                self.step(number, prepared, &mut report.outputs).await
            };
            let stepped = step.await;
            match (&stepped, guard) {
                (Ok(()), _) => report.done += 1,
                // The step may have begun, so the guard's mark of it stays.
                (Err(problem), _) if problem.is_uncertain() => report.uncertain = true,
                (Err(problem), None) if problem.code == COMMAND_KILLED => report.is_killed = true,
                (Err(_), Some(guard)) => guard.has_failed(number).await,
                (Err(_), None) => {}
            }
            if let Err(problem) = stepped.and_then(|()| faults::pass(format_args!("after-step-{number}"))) {
                report.failure = Some(problem);
                return;
            }
        }
        // A cancellation after the last step leaves nothing half-done, so it is ignored.
    }

    async fn step(
        &self,
        number: usize,
        prepared: &PreparedStep,
        outputs: &mut Vec<Output>,
    ) -> Result<(), Problem> {
        let action = &self.plan.change.steps[number].action;
        match (&prepared.action, action) {
            (PreparedAction::Run(command), Action::Run(run)) => self.run(command, run, outputs).await,
            (PreparedAction::File(site, validate), action) => {
                if let Some(validate) = validate {
                    validate.leads_where_granted(&self.target, &self.grants).await?;
                }
                let validate = validate.as_ref().map(|validate| &validate.command);
                site.apply(&self.target, action, validate, &self.expected).await
            }
            (PreparedAction::Signal(prepared), Action::Signal(signal)) => {
                outputs.push(signals::send(signal, prepared, &self.target, &self.command_log).await?);
                Ok(())
            }
            (PreparedAction::Run(_) | PreparedAction::Signal(_), _) => Ok(()),
        }
    }

    async fn run(
        &self,
        allowed: &AllowedCommand,
        run: &Run,
        outputs: &mut Vec<Output>,
    ) -> Result<(), Problem> {
        // The paths are resolved again, because an earlier step may have changed where one leads.
        allowed.leads_where_granted(&self.target, &self.grants).await?;
        let numbers: Vec<_> =
            allowed.all().map(|each| self.command_log.push(&each.prefix, &each.shown)).collect();
        let commands: Vec<_> = allowed
            .all()
            .map(|each| {
                let command = self.command_log.with_output_recorded(&each.command);
                let timeout = if run.interruptible { command.timeout } else { std::time::Duration::MAX };
                host_base::Command { timeout, ..command }
            })
            .collect();
        let acted = match run.interruptible {
            true => self.target.act_pipeline_unless(&commands, &self.cancelled).await,
            false => self.target.act_pipeline(&commands).await,
        };
        let printed = acted.map_err(|problem| match problem.code.as_str() {
            "CANCELLED" => interrupted(),
            _ => problem,
        })?;
        let succeeded = |output: &Output| match run.success.as_slice() {
            _ if run.any_exit => true,
            [] => output.exit_code == 0,
            codes => codes.contains(&output.exit_code),
        };
        let mut failure = None;
        for ((number, each), output) in numbers.into_iter().zip(allowed.all()).zip(printed) {
            self.command_log.ended(number, output.exit_code);
            if !succeeded(&output) {
                failure.get_or_insert_with(|| match signal(&output) {
                    Some(signal) => killed(each, signal),
                    None => failed(each, &output),
                });
            }
            outputs.push(output);
        }
        failure.map_or(Ok(()), Err)
    }

    /// Undoes nothing. A step whose end isn't known may still be running.
    pub fn leave(&self, report: &mut ExecutionReport) {
        report.not_undone.extend((0..report.done).rev().map(|number| self.title(number)));
    }

    /// Undoes the steps that succeeded, the latest first.
    pub async fn undo(&self, report: &mut ExecutionReport) {
        // A change that stays half-done is worse than two plans that run at the same time, so the undo runs without the
        // lock too.
        if let Err(problem) = self.target_lock.renew(&self.target).await {
            tracing::warn!(%problem, "a plan is undone without the lock on the target");
        }
        let mut away = None;
        for number in (0..report.done + usize::from(report.is_killed)).rev() {
            let prepared = &self.plan.steps[number];
            (self.progress)(None, &format!("undoing: {}", self.title(number)));
            let begun = async {
                faults::pass(format_args!("before-undo-{number}"))?;
                self.answers(&mut away).await
            };
            if let Err(problem) = begun.await {
                report.not_undone(&self.title(number), &problem);
                continue;
            }
            match &prepared.action {
                PreparedAction::Signal(signalled) => {
                    let title = self.title(number);
                    let Action::Signal(signal) = &self.plan.change.steps[number].action else { continue };
                    match signals::reverse(signal) {
                        None => report.not_undone.push(format!("{title}: a signal can't be taken back")),
                        Some(undo) => {
                            match signals::send(&undo, signalled, &self.target, &self.command_log).await {
                                Ok(_) => report.undone.push(title),
                                Err(problem) => report.not_undone(&title, &problem),
                            }
                        }
                    }
                    self.commands(&prepared.undo, report).await;
                }
                PreparedAction::File(site, _) => {
                    let undone = site.undo(&self.target, &self.plan.change.steps[number].action).await;
                    let title = self.title(number);
                    match undone {
                        Ok(()) => report.undone.push(title),
                        Err(problem) => report.not_undone(&title, &problem),
                    }
                    self.commands(&prepared.undo, report).await;
                }
                // Some commands, such as `systemctl daemon-reload`, are undone by running them once more after the
                // undo.
                PreparedAction::Run(command)
                    if prepared.undo.is_empty()
                        && self.plan.after_undo.iter().any(|after| after.is(command)) => {}
                PreparedAction::Run(command) if prepared.undo.is_empty() => {
                    report.not_undone.push(format!("{}: the plan has nothing to undo it by", command.line()));
                }
                PreparedAction::Run(_) => self.commands(&prepared.undo, report).await,
            }
        }
        for command in &self.plan.after_undo {
            let ran_it = async {
                faults::pass(format_args!("before-after-undo"))?;
                self.answers(&mut away).await?;
                self.command(command).await
            };
            if let Err(problem) = ran_it.await {
                report.not_undone(&format!("after the undo, {}", command.line()), &problem);
            }
        }
        // The undo of a half-done step may leave something of it.
        report.uncertain |= report.is_killed;
    }

    /// Checks that the expected target answers. Where it could not be reached with all retries, the later steps of the
    /// undo don't try again.
    async fn answers(&self, away: &mut Option<Problem>) -> Result<(), Problem> {
        if let Some(problem) = away {
            return Err(problem.clone());
        }
        let answers = self.expected.check(&self.target).await;
        *away = answers.as_ref().err().filter(|problem| problem.code == "CONNECTION_FAILED").cloned();
        answers
    }

    async fn commands(&self, commands: &[AllowedCommand], report: &mut ExecutionReport) {
        for command in commands {
            match self.command(command).await {
                Ok(()) => report.undone.push(command.line()),
                Err(problem) => report.not_undone(&command.line(), &problem),
            }
        }
    }

    async fn command(&self, allowed: &AllowedCommand) -> Result<(), Problem> {
        allowed.leads_where_granted(&self.target, &self.grants).await?;
        let number = self.command_log.push(&allowed.prefix, &allowed.shown);
        let output = run_one(&self.target, &allowed.command).await?;
        self.command_log.ended(number, output.exit_code);
        if output.exit_code == 0 { Ok(()) } else { Err(failed(allowed, &output)) }
    }

    /// Removes the copies of files. The result has a sentence for each copy that could not be removed.
    pub async fn tidy(&self) -> Vec<String> {
        let mut left = Vec::new();
        for prepared in &self.plan.steps {
            if let PreparedAction::File(site, _) = &prepared.action
                && let Err(problem) = site.tidy(&self.target).await
            {
                left.push(format!("{} is left over: {problem}", site.leftover()));
            }
        }
        left
    }
}

/// The problem of a call that was cancelled, or whose caller has gone.
pub fn interrupted() -> Problem {
    Problem::new("CANCELLED", Category::Other, "the call was cancelled, so what the plan had done was undone")
}

/// The signal that ended a command, by the exit code that shells give it. The host's own signals, at a time-out or a
/// cancellation, are reported as other problems.
fn signal(output: &Output) -> Option<i32> {
    (129..=159).contains(&output.exit_code).then_some(output.exit_code - 128)
}

fn killed(allowed: &AllowedCommand, signal: i32) -> Problem {
    let message = format!(
        "{} was ended by signal {signal} from elsewhere: it isn't known how far it came",
        allowed.line()
    );
    Problem::new(COMMAND_KILLED, Category::Other, message)
}

fn failed(allowed: &AllowedCommand, output: &Output) -> Problem {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    let (stderr, stdout) = (text(&output.stderr), text(&output.stdout));
    let said = excerpt(if stderr.is_empty() { &stdout } else { &stderr }, SAID);
    let message = format!("{} ended with exit code {}: {said}", allowed.line(), output.exit_code);
    Problem::new("COMMAND_FAILED", Category::Other, message)
}
