//! A plan held against the grants and the target: what it would run to the letter, what is there now, how much harm it
//! can do. Nothing has changed yet, and what can't be had ends here.

use std::collections::HashMap;
use std::sync::Arc;

use super::allowed::Allowed;
use super::diff::{FileDiff, diff};
use super::file_problems::changed;
use super::files::Site;
use super::locks::Lock;
use super::looked::Looked;
use super::plan::{Action, Change, FilePath, Step};
use super::weigh::Weighing;
use host_base::Risk;
use host_base::problem::{Category, Problem};
use host_base::{Command, Privilege};
use host_capability::{Granted, Grants, command_line};
use host_knowledge::{Done, Knowledge, graver};
use host_policy::Policy;
use host_target::{Facts, Target};
use host_text::visible::excerpt;

/// Why a plan is grave that isn't shown whole.
const HIDDEN: &str = "not all that it would write or run is shown";
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
    /// What raised it above the tool's own, and what else has to be asked about.
    pub reasons: Vec<String>,
    /// Facts from profiles of the services that it touches, besides those that raised its risk.
    pub warnings: Vec<String>,
    /// Whether somebody has to be asked, whatever the risk.
    pub asks: bool,
    /// Ids of the policy's rules that it meets.
    pub rules: Vec<String>,
}

/// One step, ready.
pub struct Prepared {
    /// What it touches.
    pub doing: Doing,
    /// What it would write to a file, or give a program to read.
    pub diff: Option<FileDiff>,
    /// What the host has seen where a program would be given something else to read: the diff's other side.
    pub before: Option<Arc<[u8]>>,
    /// By what the host has seen that.
    pub looked_by: Option<Command>,
    /// Its undo, in order.
    pub undo: Vec<Allowed>,
}

impl Prepared {
    /// Whether all that this undo gives its program to read stands in the step's diff: it is what was there before.
    pub fn is_in_diff(&self, undo: &Allowed) -> bool {
        let Doing::Run(command) = &self.doing else { return false };
        let without_end = |text: &[u8]| text.strip_suffix(b"\n").unwrap_or(text).to_vec();
        let (before, stdin) = (self.before.as_deref(), undo.command.stdin.as_deref());
        command.line() == undo.line() && before.is_some() && before.map(without_end) == stdin.map(without_end)
    }
}

/// What a step does.
pub enum Doing {
    /// Runs a command.
    Run(Allowed),
    /// Writes, removes or makes what is at this place.
    File(Box<Site>, Option<Allowed>),
}

/// What plans are held against.
#[derive(Clone, Copy)]
pub struct Against<'a> {
    /// What the module may do.
    pub grants: &'a Grants,
    /// Where.
    pub target: &'a Target,
    /// What is known of it.
    pub facts: &'a Facts,
    /// What the rules say.
    pub policy: &'a Policy,
    /// What is known of services.
    pub knowledge: &'a Knowledge,
    /// The tool's own.
    pub tool_risk: Risk,
    /// SHA-256 of each file that the module has read whole in this call, by its path; none where it wasn't there.
    pub seen: &'a HashMap<String, Option<String>>,
    /// What commands said in this call.
    pub looked: &'a Looked,
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
        let mut weighed = |granted: Granted, command: &Command| {
            risks.push((granted.risk, format!("it uses `{}`", excerpt(&granted.pattern, PATTERN))));
            (command.clone(), granted)
        };
        for step in &change.steps {
            let writes = |at: &FilePath| self.grants.may_write(&at.path, &at.path, &at.privilege);
            let main = match &step.action {
                Action::Run(run) => Some(weighed(self.grants.may_change(&run.command)?, &run.command)),
                Action::Write(write) => {
                    writes(&write.at)?;
                    match &write.validate {
                        None => None,
                        Some(validate) => {
                            Some(weighed(self.grants.may_validate(validate, &write.at.path)?, validate))
                        }
                    }
                }
                Action::Remove(at) => writes(at).map(|()| None)?,
                Action::MakeDirectory(directory) => writes(&directory.at).map(|()| None)?,
            };
            let undo = step.undo.iter().map(|undo| Ok(weighed(self.grants.may_change(undo)?, undo)));
            let undo = undo.collect::<Result<Vec<_>, Problem>>()?;
            commands.push((main, undo));
        }
        let after_undo =
            change.after_undo.iter().map(|after| Ok(weighed(self.grants.may_change(after)?, after)));
        let after_undo = after_undo.collect::<Result<Vec<_>, Problem>>()?;
        let dry_run = match &change.dry_run {
            Some(command) => Some(weighed(self.grants.may_simulate(command)?, command)),
            None => None,
        };
        let mut startable = Vec::new();
        for (main, undo) in commands {
            startable.push((self.allowed(main).await?.pop(), self.allowed(undo).await?));
        }
        let mut after_undo = self.allowed(after_undo).await?;
        let mut dry_run = self.allowed(dry_run).await?.pop();

        self.may_lock(&change.locks).await?;

        // Path grants carry no risk of their own.
        if change.steps.iter().any(|step| step.action.path().is_some()) {
            risks.push((Risk::Moderate, "it changes files".to_owned()));
        }
        let is_set_id = |step: &Step| matches!(&step.action, Action::Write(write) if write.mode.is_some_and(|mode| mode & 0o6000 != 0));
        if change.steps.iter().any(is_set_id) {
            risks.push((Risk::High, "it makes a program that runs with its owner's rights".to_owned()));
        }
        let mut weighing = Weighing::new(self.policy, self.knowledge, self.target, self.facts);
        let mut steps = Vec::new();
        let mut learned: Vec<(Risk, String)> = Vec::new();
        for (number, (step, (mut main, mut undo))) in change.steps.iter().zip(startable).enumerate() {
            for command in main.iter_mut().chain(&mut undo) {
                command.leads = command.leads_where_granted(self.target, self.grants).await?;
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
            let (looked_by, before) = match &doing {
                Doing::Run(command) if command.command.stdin.is_some() => {
                    self.looked.before(&command.command).unzip()
                }
                _ => (None, None),
            };
            match &doing {
                Doing::Run(command) => {
                    weighing.command(command, before.as_deref()).await?;
                    let Command { program, args, .. } = &command.command;
                    learned.extend(graver(self.knowledge, &self.facts.family, &Done::Run { program, args }));
                }
                Doing::File(site, validate) => {
                    weighing.file(&step.action, site).await?;
                    let asked = step.action.path().map_or(site.path.as_str(), |at| &at.path);
                    let done = Done::Edit(&[asked, &site.path]);
                    learned.extend(graver(self.knowledge, &self.facts.family, &done));
                    validate.iter().try_for_each(|validate| weighing.harmless(validate))?;
                }
            }
            for undo in &undo {
                weighing.undo(undo, before.as_deref()).await?;
            }
            let diff = compared(&step.action, &doing, before.as_deref());
            let prepared = Prepared { doing, diff, before, looked_by, undo };
            if hides(&step.action, &prepared) {
                risks.push((Risk::High, HIDDEN.to_owned()));
            }
            steps.push(prepared);
        }
        for argv in interrupted(&change) {
            weighing.by_the_way(&argv)?;
        }
        for command in after_undo.iter_mut().chain(&mut dry_run) {
            command.leads = command.leads_where_granted(self.target, self.grants).await?;
        }
        for command in &after_undo {
            weighing.command(command, None).await?;
        }
        dry_run.iter().try_for_each(|command| weighing.harmless(command))?;
        if after_undo.iter().chain(&dry_run).any(|command| !command.is_shown_whole()) {
            risks.push((Risk::High, HIDDEN.to_owned()));
        }
        distinct(&steps)?;
        let Weighing { risks: by_rules, rules, asks, .. } = weighing;
        risks.extend(by_rules);
        risks.extend(learned.iter().cloned());

        let risk = risks.iter().map(|(risk, _)| *risk).max().unwrap_or(Risk::Critical);
        let raised = risks.into_iter().filter(|(of, _)| *of == risk && risk > self.tool_risk);
        let mut reasons: Vec<String> = raised.map(|(_, reason)| reason).collect();
        reasons.extend(asks.iter().cloned());
        reasons.sort();
        reasons.dedup();
        // Profiles' facts matter to the person who decides, whether or not they made the plan graver.
        let mut warnings: Vec<String> = learned.into_iter().map(|(_, warning)| warning).collect();
        warnings.retain(|warning| !reasons.contains(warning));
        warnings.dedup();
        Ok(Plan {
            change,
            steps,
            after_undo,
            dry_run,
            risk,
            reasons,
            warnings,
            asks: !asks.is_empty(),
            rules,
        })
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

    /// Commands as they are started; a problem where one of them can't be.
    async fn allowed(
        &self,
        commands: impl IntoIterator<Item = (Command, Granted)>,
    ) -> Result<Vec<Allowed>, Problem> {
        let mut allowed = Vec::new();
        for (command, granted) in commands {
            let prefix = self.target.prefix(&command, self.facts).await.map_err(|problem| {
                let line = host_text::redact::excerpt(&command_line("", &granted.shown), PATTERN);
                problem.needed_for(&format!("`{line}`"), &command.privilege)
            })?;
            let Granted { shown, free_form, paths, .. } = granted;
            allowed.push(Allowed { command, shown, prefix, free_form, paths, leads: Vec::new() });
        }
        Ok(allowed)
    }

    /// What the module has seen at this place: a plan is made of that, and where it is gone, about something else.
    fn seen(&self, asked: &str, real: &str) -> Option<&Option<String>> {
        self.seen.get(asked).or_else(|| self.seen.get(real))
    }
}

/// What a step would write, against what is there; of what a program is given to read, against what the host has seen.
fn compared(action: &Action, doing: &Doing, before: Option<&[u8]>) -> Option<FileDiff> {
    match (action, doing) {
        (Action::Write(write), Doing::File(site, _)) if !write.sensitive => {
            Some(diff(&site.path, site.before.as_deref(), Some(&write.contents)))
        }
        (Action::Remove(_), Doing::File(site, _)) => Some(diff(&site.path, site.before.as_deref(), None)),
        (Action::Run(run), Doing::Run(_)) => {
            Some(diff("/stdin", before, Some(run.command.stdin.as_deref()?)))
        }
        _ => None,
    }
}

/// Whether whoever sees the plan doesn't see all that it would write or run: a secret, or what looks like one, may be
/// anything.
fn hides(action: &Action, prepared: &Prepared) -> bool {
    let is_whole = || prepared.diff.as_ref().is_some_and(|diff| diff.whole);
    let main = match (action, &prepared.doing) {
        (Action::Write(write), _) if write.sensitive || !is_whole() => return true,
        (Action::Run(run), _) if run.command.stdin.is_some() && !is_whole() => return true,
        (_, Doing::Run(command)) => Some(command),
        (_, Doing::File(_, validate)) => validate.as_ref(),
    };
    let is_hidden = |command: &Allowed| command.hides_arguments();
    let undo =
        |undo: &Allowed| undo.hides_arguments() || !(prepared.is_in_diff(undo) || undo.is_shown_whole());
    main.is_some_and(is_hidden) || prepared.undo.iter().any(undo)
}

/// What a change does to units besides those that its commands name, as if each were a command of its own: a start stops
/// what the unit conflicts with, a restart restarts what depends on it.
fn interrupted(change: &Change) -> Vec<Vec<String>> {
    let commands: Vec<&Command> = change
        .steps
        .iter()
        .filter_map(|step| if let Action::Run(run) = &step.action { Some(&run.command) } else { None })
        .filter(|command| command.program.rsplit('/').next() == Some("systemctl"))
        .collect();
    if commands.is_empty() {
        return Vec::new();
    }
    let says = |word: &str| commands.iter().any(|command| command.args.iter().any(|arg| arg == word));
    let verb = if says("restart") && !says("stop") { "restart" } else { "stop" };
    let others = change.affected_services.iter().filter(|unit| !says(unit));
    others.map(|unit| ["systemctl", verb, "--", unit].map(str::to_owned).to_vec()).collect()
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
