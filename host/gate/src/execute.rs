//! A plan's steps, in order; and where one of them fails, what had succeeded before it is undone, the latest first.

use super::allowed::Allowed;
use super::execution::Execution;
use super::files::run_one;
use super::guard::Guard;
use super::meant::STALE;
use super::plan::{Action, Run};
use super::prepare::{Doing, Prepared};
use host_base::Output;
use host_base::faults;
use host_base::problem::{Category, Problem};
use host_text::redact::excerpt;

/// Characters of what a command said that are in a problem.
const SAID: usize = 2000;

/// How it went.
#[derive(Debug, Default)]
pub struct Ran {
    /// One for each command among the steps that ran, the one that failed as well.
    pub outputs: Vec<Output>,
    /// Steps that succeeded.
    pub done: usize,
    /// Why it broke, if it did.
    pub broke: Option<Problem>,
    /// What was put back.
    pub undone: Vec<String>,
    /// What could not be put back, and why.
    pub not_undone: Vec<String>,
    /// Nobody knows what became of a step, or of its undo: the connection went, or somebody else ended it.
    pub uncertain: bool,
    /// The step that broke was ended by somebody else, so that it may be half-done: it is undone like those before it.
    pub is_killed: bool,
}

impl Ran {
    fn not_undone(&mut self, what: &str, why: &Problem) {
        self.uncertain |= why.is_of_the_line() || why.code == STALE;
        self.not_undone.push(format!("{what}: {why}"));
    }
}

impl Execution {
    /// All steps, or as many as go well. Nothing is undone here.
    pub async fn steps(&self, guard: Option<&Guard<'_>>, ran: &mut Ran) {
        let count = self.plan.steps.len();
        for (number, prepared) in self.plan.steps.iter().enumerate() {
            (self.telling)(Some(number as f32 / count as f32), &self.title(number));
            let step = async {
                faults::pass(format_args!("before-step-{number}"))?;
                if self.cancelled.is_cancelled() {
                    return Err(interrupted());
                }
                self.still().await?;
                if let Some(guard) = guard {
                    guard.begins(number).await?;
                }
                self.step(number, prepared, &mut ran.outputs).await
            };
            let stepped = step.await;
            match (&stepped, guard) {
                (Ok(()), _) => ran.done += 1,
                // It counts as begun.
                (Err(problem), _) if problem.is_uncertain() => ran.uncertain = true,
                (Err(problem), None) if problem.code == KILLED => ran.is_killed = true,
                (Err(_), Some(guard)) => guard.has_failed(number).await,
                (Err(_), None) => {}
            }
            if let Err(problem) = stepped.and_then(|()| faults::pass(format_args!("after-step-{number}"))) {
                ran.broke = Some(problem);
                return;
            }
        }
        // What came after the last step came too late to leave anything half-done.
    }

    async fn step(
        &self,
        number: usize,
        prepared: &Prepared,
        outputs: &mut Vec<Output>,
    ) -> Result<(), Problem> {
        let action = &self.plan.change.steps[number].action;
        match (&prepared.doing, action) {
            (Doing::Run(command), Action::Run(run)) => self.run(command, run, outputs).await,
            (Doing::File(site, validate), action) => {
                if let Some(validate) = validate {
                    validate.leads_where_granted(&self.target, &self.grants).await?;
                }
                let validate = validate.as_ref().map(|validate| &validate.command);
                site.apply(&self.target, action, validate, &self.meant).await
            }
            (Doing::Run(_), _) => Ok(()),
        }
    }

    async fn run(&self, allowed: &Allowed, run: &Run, outputs: &mut Vec<Output>) -> Result<(), Problem> {
        // Again: an earlier step may have changed where a path leads.
        allowed.leads_where_granted(&self.target, &self.grants).await?;
        let number = self.executed.push(&allowed.prefix, &allowed.shown);
        let command = self.executed.listening(&allowed.command);
        let output = match run.interruptible {
            true => {
                let acted = self.target.act_unless(&command, &self.cancelled).await;
                acted.map_err(|problem| match problem.code.as_str() {
                    "CANCELLED" => interrupted(),
                    _ => problem,
                })?
            }
            false => {
                let command = host_base::Command { timeout: std::time::Duration::MAX, ..command };
                run_one(&self.target, &command).await?
            }
        };
        self.executed.ended(number, output.exit_code);
        let succeeded = match run.success.as_slice() {
            [] => output.exit_code == 0,
            codes => codes.contains(&output.exit_code),
        };
        let failed = (!succeeded).then(|| match signal(&output) {
            Some(signal) => killed(allowed, signal),
            None => failed(allowed, &output),
        });
        outputs.push(output);
        failed.map_or(Ok(()), Err)
    }

    /// Leaves everything as it is: what nobody knows the end of may still be running.
    pub fn leave(&self, ran: &mut Ran) {
        ran.not_undone.extend((0..ran.done).rev().map(|number| self.title(number)));
    }

    /// Undoes the steps that had succeeded, the latest first.
    pub async fn undo(&self, ran: &mut Ran) {
        // Half-done is worse than two at once.
        if let Err(problem) = self.turn.keep(&self.target).await {
            tracing::warn!(%problem, "a plan is undone out of its turn");
        }
        let mut away = None;
        for number in (0..ran.done + usize::from(ran.is_killed)).rev() {
            let prepared = &self.plan.steps[number];
            (self.telling)(None, &format!("undoing: {}", self.title(number)));
            let begun = async {
                faults::pass(format_args!("before-undo-{number}"))?;
                self.answers(&mut away).await
            };
            if let Err(problem) = begun.await {
                ran.not_undone(&self.title(number), &problem);
                continue;
            }
            match &prepared.doing {
                Doing::File(site, _) => {
                    let undone = site.undo(&self.target, &self.plan.change.steps[number].action).await;
                    let title = self.title(number);
                    match undone {
                        Ok(()) => ran.undone.push(title),
                        Err(problem) => ran.not_undone(&title, &problem),
                    }
                    self.commands(&prepared.undo, ran).await;
                }
                // Such as `systemctl daemon-reload`: taken back by running it once more.
                Doing::Run(command)
                    if prepared.undo.is_empty()
                        && self.plan.after_undo.iter().any(|after| after.is(command)) => {}
                Doing::Run(command) if prepared.undo.is_empty() => {
                    ran.not_undone.push(format!("{}: the plan has nothing to undo it by", command.line()));
                }
                Doing::Run(_) => self.commands(&prepared.undo, ran).await,
            }
        }
        for command in &self.plan.after_undo {
            let ran_it = async {
                faults::pass(format_args!("before-after-undo"))?;
                self.answers(&mut away).await?;
                self.command(command).await
            };
            if let Err(problem) = ran_it.await {
                ran.not_undone(&format!("after the undo, {}", command.line()), &problem);
            }
        }
        // Nobody knows either whether the undo of a half-done step leaves nothing of it.
        ran.uncertain |= ran.is_killed;
    }

    /// Whether there is anything to be undone on: who couldn't be reached with all patience isn't tried for each step.
    async fn answers(&self, away: &mut Option<Problem>) -> Result<(), Problem> {
        if let Some(problem) = away {
            return Err(problem.clone());
        }
        let answers = self.meant.answers(&self.target).await;
        *away = answers.as_ref().err().filter(|problem| problem.code == "CONNECTION_FAILED").cloned();
        answers
    }

    async fn commands(&self, commands: &[Allowed], ran: &mut Ran) {
        for command in commands {
            match self.command(command).await {
                Ok(()) => ran.undone.push(command.line()),
                Err(problem) => ran.not_undone(&command.line(), &problem),
            }
        }
    }

    async fn command(&self, allowed: &Allowed) -> Result<(), Problem> {
        allowed.leads_where_granted(&self.target, &self.grants).await?;
        let number = self.executed.push(&allowed.prefix, &allowed.shown);
        let output = run_one(&self.target, &allowed.command).await?;
        self.executed.ended(number, output.exit_code);
        if output.exit_code == 0 { Ok(()) } else { Err(failed(allowed, &output)) }
    }

    /// Removes the copies of what stays as it is now.
    pub async fn tidy(&self) -> Vec<String> {
        let mut left = Vec::new();
        for prepared in &self.plan.steps {
            if let Doing::File(site, _) = &prepared.doing
                && let Err(problem) = site.tidy(&self.target).await
            {
                left.push(format!("{} is left over: {problem}", site.staging));
            }
        }
        left
    }
}

/// The call was cancelled, or there is nobody to answer to.
pub fn interrupted() -> Problem {
    Problem::new("CANCELLED", Category::Other, "the call was cancelled, so what the plan had done was undone")
}

/// The signal that a command was ended by, as shells tell it. The host's own are told otherwise: by a time-out, or where the
/// call is cancelled.
fn signal(output: &Output) -> Option<i32> {
    (129..=159).contains(&output.exit_code).then_some(output.exit_code - 128)
}

/// A command that somebody else has ended.
pub const KILLED: &str = "COMMAND_KILLED";

fn killed(allowed: &Allowed, signal: i32) -> Problem {
    let message = format!(
        "{} was ended by signal {signal} from elsewhere: nobody knows how far it came",
        allowed.line()
    );
    Problem::new(KILLED, Category::Other, message)
}

fn failed(allowed: &Allowed, output: &Output) -> Problem {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    let (stderr, stdout) = (text(&output.stderr), text(&output.stdout));
    let said = excerpt(if stderr.is_empty() { &stdout } else { &stderr }, SAID);
    let message = format!("{} ended with exit code {}: {said}", allowed.line(), output.exit_code);
    Problem::new("COMMAND_FAILED", Category::Other, message)
}
