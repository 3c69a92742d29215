//! A plan held against the grants and the target: what it would run to the letter, what is there now, how much harm it
//! can do. Nothing has changed yet, and what can't be had ends here.

use std::collections::HashMap;

use super::files::{Site, changed};
use super::locks::Lock;
use super::plan::{Action, Change, FilePath};
use crate::capability::{Granted, Grants, HoleType, Risk, command_line};
use crate::problem::{Category, Problem};
use crate::target::{Command, Facts, Privilege, Target};
use crate::visible::excerpt;

/// Characters of a grant that are shown: some name every unit of a kind.
const PATTERN: usize = 120;

/// A plan that could be executed as it stands.
pub struct Plan {
    /// As it was handed over.
    pub change: Change,
    /// One for each of its steps.
    pub steps: Vec<Prepared>,
    /// Run after an undo.
    pub after_undo: Vec<Allowed>,
    /// The program's own simulation.
    pub dry_run: Option<Allowed>,
    /// The highest of all that has a say in it.
    pub risk: Risk,
    /// What raised it above the tool's own.
    pub reasons: Vec<String>,
}

/// One step, ready.
pub struct Prepared {
    /// What it touches.
    pub doing: Doing,
    /// Its undo, in order.
    pub undo: Vec<Allowed>,
}

/// What a step does.
pub enum Doing {
    /// Runs a command.
    Run(Allowed),
    /// Writes, removes or makes what is at this place.
    File(Box<Site>, Option<Allowed>),
}

/// A command that the grants allow.
#[derive(Clone, Debug)]
pub struct Allowed {
    /// What runs.
    pub command: Command,
    /// What of it may be shown.
    pub shown: Command,
    /// How sudo is called for it, if it is.
    pub prefix: String,
    paths: Vec<(HoleType, String)>,
}

impl Allowed {
    /// The whole line, as it may be shown.
    pub fn line(&self) -> String {
        command_line(&self.prefix, &self.shown)
    }

    /// A problem where a path in it leads to where no grant does.
    pub async fn leads_where_granted(&self, target: &Target, grants: &Grants) -> Result<(), Problem> {
        if self.paths.is_empty() {
            return Ok(());
        }
        let asked = self.paths.iter().map(|(_, path)| path.clone()).collect();
        let resolved = target.resolve(asked, &grants.access(&self.command.privilege)).await;
        for ((hole, path), resolved) in self.paths.iter().zip(resolved) {
            grants.may_lead(hole, path, &resolved?.path)?;
        }
        Ok(())
    }
}

/// What plans are held against.
pub struct Against<'a> {
    /// What the module may do.
    pub grants: &'a Grants,
    /// Where.
    pub target: &'a Target,
    /// What is known of it.
    pub facts: &'a Facts,
    /// The tool's own.
    pub tool_risk: Risk,
    /// SHA-256 of each file that the module has read whole in this call, by its path; none where it wasn't there.
    pub seen: &'a HashMap<String, Option<String>>,
}

impl Against<'_> {
    /// The plan, ready; its change's id names the copies.
    pub async fn prepare(&self, id: &str, change: Change) -> Result<Plan, Problem> {
        change.check()?;
        // Every grant first: what is denied isn't looked at.
        let mut risks = vec![(self.tool_risk, String::new())];
        risks.extend(change.risk.map(|risk| (risk, "the module says so of this plan".to_owned())));
        let mut commands = Vec::new();
        // An undo counts as what it undoes does: a plan that is made to break runs it, too.
        let mut weighed = |command: &Command| {
            let granted = self.grants.may_change(command)?;
            risks.push((granted.risk, format!("it uses `{}`", excerpt(&granted.pattern, PATTERN))));
            self.allowed(command, granted)
        };
        for step in &change.steps {
            let writes = |at: &FilePath| self.grants.may_write(&at.path, &at.path, &at.privilege);
            let main = match &step.action {
                Action::Run(run) => Some(weighed(&run.command)?),
                Action::Write(write) => {
                    writes(&write.at)?;
                    let granted = write.validate.as_ref().map(|validate| {
                        let granted = self.grants.may_validate(validate, &write.at.path)?;
                        self.allowed(validate, granted)
                    });
                    granted.transpose()?
                }
                Action::Remove(at) => writes(at).map(|()| None)?,
                Action::MakeDirectory(directory) => writes(&directory.at).map(|()| None)?,
            };
            let undo = step.undo.iter().map(&mut weighed).collect::<Result<Vec<_>, _>>()?;
            commands.push((main, undo));
        }
        let after_undo = change.after_undo.iter().map(&mut weighed).collect::<Result<Vec<_>, _>>()?;
        // Path grants carry no risk of their own.
        if change.steps.iter().any(|step| step.action.path().is_some()) {
            risks.push((Risk::Moderate, "it changes files".to_owned()));
        }
        let dry_run = match &change.dry_run {
            Some(command) => Some(self.allowed(command, self.grants.may_simulate(command)?)?),
            None => None,
        };

        self.may_lock(&change.locks).await?;

        let mut steps = Vec::new();
        for (number, (step, (main, undo))) in change.steps.iter().zip(commands).enumerate() {
            for command in main.iter().chain(&undo) {
                command.leads_where_granted(self.target, self.grants).await?;
            }
            let doing = match (step.action.path(), main) {
                (None, Some(command)) => Doing::Run(command),
                (Some(at), validate) => {
                    let access = self.grants.access(&at.privilege);
                    let permits = |real: &str, is_there: bool| {
                        self.grants.may_write(&at.path, real, &at.privilege)?;
                        match self.seen(&at.path, real) {
                            Some(Some(_)) if !is_there => Err(changed(real)),
                            _ => Ok(()),
                        }
                    };
                    let action = &step.action;
                    let site =
                        Site::survey(self.target, access, &at.path, action, (id, number), permits).await?;
                    if self.seen(&at.path, &site.path).is_some_and(|seen| *seen != site.sha256()) {
                        return Err(changed(&site.path));
                    }
                    Doing::File(Box::new(site), validate)
                }
                (None, None) => {
                    return Err(Problem::new("INVALID_PLAN", Category::Internal, "a step without a command"));
                }
            };
            steps.push(Prepared { doing, undo });
        }
        for command in after_undo.iter().chain(&dry_run) {
            command.leads_where_granted(self.target, self.grants).await?;
        }
        distinct(&steps)?;

        let risk = risks.iter().map(|(risk, _)| *risk).max().unwrap_or(Risk::Critical);
        let raised = risks.into_iter().filter(|(of, _)| *of == risk && risk > self.tool_risk);
        let mut reasons: Vec<String> = raised.map(|(_, reason)| reason).collect();
        reasons.sort();
        reasons.dedup();
        Ok(Plan { change, steps, after_undo, dry_run, risk, reasons })
    }

    /// Who holds a file is told only of what the module may reach anyway. What can't be resolved isn't looked at later
    /// either.
    async fn may_lock(&self, locks: &[Lock]) -> Result<(), Problem> {
        let files =
            locks.iter().filter_map(|lock| if let Lock::File(path) = lock { Some(path) } else { None });
        let files: Vec<String> = files.cloned().collect();
        files.iter().try_for_each(|file| self.grants.may_lock(file, file))?;
        if files.is_empty() {
            return Ok(());
        }
        let resolved = self.target.resolve(files.clone(), &self.grants.access(&Privilege::Caller)).await;
        for (file, resolved) in files.iter().zip(resolved) {
            if let Ok(resolved) = resolved {
                self.grants.may_lock(file, &resolved.path)?;
            }
        }
        Ok(())
    }

    fn allowed(&self, command: &Command, granted: Granted) -> Result<Allowed, Problem> {
        let prefix = self.target.prefix(command, self.facts)?;
        Ok(Allowed { command: command.clone(), shown: granted.shown, prefix, paths: granted.paths })
    }

    /// What the module has seen at this place: a plan is made of that, and where it is gone, about something else.
    fn seen(&self, asked: &str, real: &str) -> Option<&Option<String>> {
        self.seen.get(asked).or_else(|| self.seen.get(real))
    }
}

/// Two names of one place would be kept and put back in each other's way.
fn distinct(steps: &[Prepared]) -> Result<(), Problem> {
    let mut paths: Vec<&str> = Vec::new();
    for step in steps {
        let Doing::File(site, _) = &step.doing else { continue };
        if paths.contains(&site.path.as_str()) {
            let message = format!("the module handed over a plan with two steps for {}", site.path);
            return Err(Problem::new("INVALID_PLAN", Category::Internal, message));
        }
        paths.push(&site.path);
    }
    Ok(())
}
