//! Prepares a plan: checks it against the grants and the target, finds what is there now, and assesses the risk. It
//! changes nothing. A plan that can't run as it stands is refused here.

use std::collections::HashMap;
use std::sync::Arc;

use super::allowed::AllowedCommand;
use super::diff::{FileDiff, diff};
use super::file_problems::changed;
use super::files::Site;
use super::heap::on_heap;
use super::observed_output::ObservedOutputs;
use super::plan::{Action, Change, FilePath, Step};
use super::resource_locks::ResourceLock;
use super::risk_assessment::RiskAssessment;
use super::signals::PreparedSignal;
use host_base::Risk;
use host_base::problem::{Category, Problem};
use host_base::{Command, Privilege, sha256};
use host_capability::{GrantedStep, Grants, command_line};
use host_knowledge::{Knowledge, StepAction, raised_risks};
use host_policy::Policy;
use host_target::{Facts, Target};
use host_text::visible::excerpt;

/// The reason for a high risk where the plan can't be shown whole.
const HIDDEN: &str = "not all that it would write or run is shown";
/// The number of removals in one plan of which the contents are shown.
const MOST_REMOVED_SHOWN: usize = 20;
/// The number of characters of a grant that are shown. Some grants name every unit of a kind.
const PATTERN: usize = 120;

/// A plan that can be executed as it stands.
pub struct PreparedPlan {
    /// The plan as the module handed it over.
    pub change: Change,
    /// The prepared steps, one for each step of the plan.
    pub steps: Vec<PreparedStep>,
    /// Commands that run after every undo.
    pub after_undo: Vec<AllowedCommand>,
    /// The command by which the program itself simulates the change.
    pub dry_run: Option<AllowedCommand>,
    /// The highest risk of the tool, the plan, the grants, the policy and the profiles.
    pub risk: Risk,
    /// Whether the risk is above the tool's own.
    pub is_raised: bool,
    /// The reasons for a risk above the tool's own, for a confirmation, and grave findings, the gravest first.
    pub reasons: Vec<String>,
    /// Facts from the profiles of affected services, apart from those that raised the risk.
    pub warnings: Vec<String>,
    /// True where the plan needs a confirmation whatever its risk.
    pub asks: bool,
    /// The ids of the policy's rules that the plan meets.
    pub rules: Vec<String>,
}

/// One prepared step.
pub struct PreparedStep {
    /// The prepared action.
    pub action: PreparedAction,
    /// The change of the file's contents, or of the program's input.
    pub diff: Option<FileDiff>,
    /// The text that a program's new input replaces, as the host has seen it. It is the old side of the diff.
    pub before: Option<Arc<[u8]>>,
    /// The command by which the host has seen that text.
    pub looked_by: Option<Command>,
    /// The commands that undo the step, in order.
    pub undo: Vec<AllowedCommand>,
}

impl PreparedStep {
    /// Whether the step's diff shows all of this undo's input, because the undo puts the former text back.
    pub fn is_in_diff(&self, undo: &AllowedCommand) -> bool {
        let PreparedAction::Run(command) = &self.action else { return false };
        let without_end = |text: &[u8]| text.strip_suffix(b"\n").unwrap_or(text).to_vec();
        let (before, stdin) = (self.before.as_deref(), undo.command.stdin.as_deref());
        command.line() == undo.line() && before.is_some() && before.map(without_end) == stdin.map(without_end)
    }
}

/// The action of a prepared step.
pub enum PreparedAction {
    /// Runs a command.
    Run(AllowedCommand),
    /// Writes or removes a file, or makes a directory. The command validates a new file.
    File(Box<Site>, Option<AllowedCommand>),
    /// Sends a signal to processes.
    Signal(Box<PreparedSignal>),
}

/// All that a plan is checked against.
#[derive(Clone, Copy)]
pub struct PlanContext<'a> {
    /// The grants of the module.
    pub grants: &'a Grants,
    /// The machine that the plan changes.
    pub target: &'a Target,
    /// The facts about the target.
    pub facts: &'a Facts,
    /// The policy's rules.
    pub policy: &'a Policy,
    /// The profiles of services.
    pub knowledge: &'a Knowledge,
    /// The risk that the tool's description names.
    pub tool_risk: Risk,
    /// The SHA-256 of each file that the module has read whole in this call, by its path. None stands for a file that
    /// did not exist.
    pub file_hashes: &'a HashMap<String, Option<String>>,
    /// The outputs of the commands by which the module looked.
    pub observed: &'a ObservedOutputs,
}

impl PlanContext<'_> {
    /// Prepares the plan. The id of the change becomes part of the copies' names.
    pub async fn prepare(&self, id: &str, change: Change) -> Result<PreparedPlan, Problem> {
        change.check()?;
        // All grants are checked first: the host doesn't look at what is denied.
        let mut risks = vec![(self.tool_risk, String::new())];
        risks.extend(change.risk.map(|risk| (risk, "the module says so of this plan".to_owned())));
        let mut commands = Vec::new();
        // The commands of an undo raise the risk like those of a step. A plan could be made to fail so that its undo
        // runs.
        let mut weighed = |granted: GrantedStep, command: &Command| {
            risks.push((granted.risk, format!("it uses `{}`", excerpt(&granted.pattern, PATTERN))));
            (command.clone(), granted)
        };
        for step in &change.steps {
            let writes = |at: &FilePath| self.grants.may_write(&at.path, &at.path, &at.privilege);
            let mut piped = Vec::new();
            let main = match &step.action {
                Action::Run(run) => {
                    for command in &run.piped {
                        piped.push(weighed(self.grants.may_change(command)?, command));
                    }
                    Some(weighed(self.grants.may_change(&run.command)?, &run.command))
                }
                Action::Write(write) => {
                    writes(&write.at)?;
                    match &write.validate {
                        None => None,
                        Some(validate) => {
                            Some(weighed(self.grants.may_validate(validate, &write.at.path)?, validate))
                        }
                    }
                }
                Action::Move(moved) => {
                    writes(&moved.from)?;
                    self.grants.may_write(&moved.to, &moved.to, &moved.from.privilege).map(|()| None)?
                }
                Action::SetAttributes(attributes) => writes(&attributes.at).map(|()| None)?,
                Action::Remove(at) | Action::RemoveDirectory(at) => writes(at).map(|()| None)?,
                Action::MakeDirectory(directory) => writes(&directory.at).map(|()| None)?,
                Action::Signal(signal) => self.grants.may_signal(&signal.privilege).map(|()| None)?,
            };
            let undo = step.undo.iter().map(|undo| Ok(weighed(self.grants.may_change(undo)?, undo)));
            let undo = undo.collect::<Result<Vec<_>, Problem>>()?;
            commands.push((main, piped, undo));
        }
        let after_undo =
            change.after_undo.iter().map(|after| Ok(weighed(self.grants.may_change(after)?, after)));
        let after_undo = after_undo.collect::<Result<Vec<_>, Problem>>()?;
        let dry_run = match &change.dry_run {
            Some(command) => Some(weighed(self.grants.may_simulate(command)?, command)),
            None => None,
        };
        let mut startable = Vec::new();
        // The programs of the module's own that the steps so far put in their places.
        let mut brought: Vec<&str> = Vec::new();
        for (step, (main, piped, undo)) in change.steps.iter().zip(commands) {
            let mut main = self.allowed(main, &brought).await?.pop();
            if let Some(main) = &mut main {
                main.piped = self.allowed(piped, &brought).await?;
            }
            startable.push((main, self.allowed(undo, &brought).await?));
            if let Action::Write(write) = &step.action {
                brought.extend(self.grants.own_program_at(&write.at.path).map(|_| write.at.path.as_str()));
            }
        }
        let mut after_undo = self.allowed(after_undo, &brought).await?;
        let mut dry_run = self.allowed(dry_run, &[]).await?.pop();

        self.may_lock(&change.locks).await?;

        // Grants of paths have no risk of their own.
        if change.steps.iter().any(|step| step.action.path().is_some()) {
            risks.push((Risk::Moderate, "it changes files".to_owned()));
        }
        let is_set_id = |step: &Step| {
            let mode = match &step.action {
                Action::Write(write) => write.mode,
                Action::SetAttributes(attributes) => attributes.mode,
                _ => None,
            };
            mode.is_some_and(|mode| mode & 0o6000 != 0)
        };
        if change.steps.iter().any(is_set_id) {
            risks.push((Risk::High, "it makes a program that runs with its owner's rights".to_owned()));
        }
        let mut assessment =
            RiskAssessment::new(self.policy, self.knowledge, self.target, self.facts).of_module(self.grants);
        let mut steps = Vec::new();
        // The paths that the steps so far remove, each with whether it is a directory that goes only after the plan.
        let mut removed: Vec<(String, bool)> = Vec::new();
        let mut learned: Vec<(Risk, String)> = Vec::new();
        for (number, (step, (mut main, mut undo))) in change.steps.iter().zip(startable).enumerate() {
            for command in main.iter_mut().chain(&mut undo) {
                command.follow_paths(self.target, self.grants).await?;
            }
            let action = match (step.action.path(), main) {
                (None, Some(command)) => PreparedAction::Run(command),
                (Some(at), validate) => {
                    let access = self.grants.access(&at.privilege);
                    let permits = |asked: &str, real: &str, is_there: bool| {
                        self.grants.may_write(asked, real, &at.privilege)?;
                        match self.file_hashes(asked, real) {
                            Some(Some(_)) if !is_there => Err(changed(real)),
                            _ => Ok(()),
                        }
                    };
                    let action = &step.action;
                    let mut site =
                        Site::survey(self.target, access, &at.path, action, (id, number), permits).await?;
                    for path in std::iter::once(&site.path).chain(&site.to) {
                        for name in assessment.other_names(path).await {
                            self.grants.may_be(path, &name)?;
                        }
                    }
                    let takes_place = matches!(action, Action::Write(_) | Action::Remove(_));
                    if takes_place && site.found.is_some() && assessment.is_mount_point(&site.path).await {
                        return Err(mount_point(&site.path));
                    }
                    if let Action::RemoveDirectory(_) = action {
                        site.check_emptied(self.target, &removed).await?;
                    }
                    if let Action::Remove(_) | Action::RemoveDirectory(_) = action {
                        removed.push((site.path.clone(), site.emptied.is_some()));
                    }
                    if let Some(to) = &site.to {
                        self.grants.may_move(&site.path, to, site.is_directory())?;
                    }
                    // Attributes don't depend on the contents.
                    if !matches!(action, Action::SetAttributes(_))
                        && self
                            .file_hashes(&at.path, &site.path)
                            .is_some_and(|file_hashes| *file_hashes != site.sha256())
                    {
                        return Err(changed(&site.path));
                    }
                    PreparedAction::File(Box::new(site), validate)
                }
                (None, None) => match &step.action {
                    Action::Signal(signal) => {
                        let prepared = PreparedSignal::of(signal, self.target, self.facts).await?;
                        PreparedAction::Signal(Box::new(prepared))
                    }
                    _ => {
                        let message = "a step without a command";
                        return Err(Problem::new("INVALID_PLAN", Category::Internal, message));
                    }
                },
            };
            let (looked_by, before) = match &action {
                PreparedAction::Run(command) if command.command.stdin.is_some() => {
                    self.observed.before(&command.command).unzip()
                }
                _ => (None, None),
            };
            match &action {
                PreparedAction::Run(command) => {
                    on_heap(|| assessment.command(command, before.as_deref())).await?;
                    for command in command.all() {
                        let Command { program, args, .. } = &command.command;
                        learned.extend(raised_risks(
                            self.knowledge,
                            &self.facts.family,
                            &StepAction::Run { program, args },
                        ));
                    }
                }
                PreparedAction::File(site, validate) => {
                    on_heap(|| assessment.file(&step.action, site)).await?;
                    let asked = step.action.path().map_or(site.path.as_str(), |at| &at.path);
                    let to = step.action.to().into_iter().chain(site.to.as_deref());
                    let mut others = assessment.other_names(&site.path).await;
                    if let Some(to) = &site.to {
                        others.extend(assessment.other_names(to).await);
                    }
                    let others = others.iter().map(String::as_str);
                    let edited: Vec<&str> = [asked, &site.path].into_iter().chain(to).chain(others).collect();
                    let done = StepAction::Edit(&edited);
                    learned.extend(raised_risks(self.knowledge, &self.facts.family, &done));
                    validate.iter().try_for_each(|validate| assessment.harmless(validate))?;
                }
                PreparedAction::Signal(_) => {}
            }
            if let (Action::Signal(signal), PreparedAction::Signal(prepared)) = (&step.action, &action) {
                assessment.signal(signal, &prepared.seen)?;
            }
            for undo in &undo {
                on_heap(|| assessment.undo(undo, before.as_deref())).await?;
            }
            let command = match &action {
                PreparedAction::Run(command) => Some(command),
                _ => None,
            };
            assessment.ends_step(command).await;
            let diff = match &action {
                PreparedAction::File(site, _) if removed.len() > MOST_REMOVED_SHOWN => {
                    compared_briefly(&step.action, site)
                }
                _ => None,
            };
            let diff = diff.or_else(|| self.accepted(&step.action, &action));
            let diff = diff.or_else(|| compared(&step.action, &action, before.as_deref()));
            let prepared = PreparedStep { action, diff, before, looked_by, undo };
            if hides(&step.action, &prepared) {
                risks.push((Risk::High, HIDDEN.to_owned()));
            }
            steps.push(prepared);
        }
        for argv in interrupted(&change) {
            on_heap(|| assessment.side_effect(&argv)).await?;
        }
        for command in after_undo.iter_mut().chain(&mut dry_run) {
            command.follow_paths(self.target, self.grants).await?;
        }
        for command in &after_undo {
            on_heap(|| assessment.command(command, None)).await?;
        }
        dry_run.iter().try_for_each(|command| assessment.harmless(command))?;
        if after_undo.iter().chain(&dry_run).any(|command| !command.is_shown_whole()) {
            risks.push((Risk::High, HIDDEN.to_owned()));
        }
        distinct(&change, &steps)?;
        let RiskAssessment { risks: by_rules, rules, asks, .. } = assessment;
        risks.extend(learned.iter().cloned());

        let all = risks.iter().chain(&by_rules);
        let risk = all.map(|(risk, _)| *risk).max().unwrap_or(Risk::Critical);
        let is_raised = risk > self.tool_risk;
        risks.retain(|(of, _)| *of == risk && is_raised);
        // Grave findings about what would be done are told even where the tool has that risk anyway.
        risks.extend(by_rules.into_iter().filter(|(of, _)| *of == risk && is_raised || *of >= Risk::High));
        risks.sort_by_key(|(of, _)| std::cmp::Reverse(*of));
        let mut reasons: Vec<String> = Vec::new();
        for reason in risks.into_iter().map(|(_, reason)| reason).chain(asks.iter().cloned()) {
            if !reasons.contains(&reason) {
                reasons.push(reason);
            }
        }
        // A person who decides needs the facts of profiles, whether or not they raised the risk.
        let mut warnings: Vec<String> = learned.into_iter().map(|(_, warning)| warning).collect();
        warnings.retain(|warning| !reasons.contains(warning));
        warnings.dedup();
        Ok(PreparedPlan {
            change,
            steps,
            after_undo,
            dry_run,
            risk,
            is_raised,
            reasons,
            warnings,
            asks: !asks.is_empty(),
            rules,
        })
    }

    /// What is shown of a new program of the module's own, whose text an operator has accepted. Where another file is there,
    /// its text is compared.
    fn accepted(&self, action: &Action, prepared: &PreparedAction) -> Option<FileDiff> {
        let (Action::Write(write), PreparedAction::File(site, _)) = (action, prepared) else { return None };
        let granted = self.grants.own_program_at(&site.path)?;
        if site.before.is_some() || sha256::of(&write.contents) != granted {
            return None;
        }
        let note = format!("the module's own program, accepted with the module by its SHA-256 {granted}");
        Some(FileDiff { note: Some(note), whole: true, ..FileDiff::default() })
    }

    /// Checks that the module may reach the files whose locks it names, since the answer tells who holds them. A file
    /// that can't be resolved isn't looked at later either.
    async fn may_lock(&self, locks: &[ResourceLock]) -> Result<(), Problem> {
        let files = locks
            .iter()
            .filter_map(|lock| if let ResourceLock::File(path) = lock { Some(path) } else { None });
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

    /// The commands as they are started. The result is a problem where one of them can't be started. Programs that earlier
    /// steps bring needn't be there yet.
    async fn allowed(
        &self,
        commands: impl IntoIterator<Item = (Command, GrantedStep)>,
        brought: &[&str],
    ) -> Result<Vec<AllowedCommand>, Problem> {
        let mut allowed = Vec::new();
        for (command, granted) in commands {
            let prefix = match brought.contains(&command.program.as_str()) {
                true => self.target.prefix_of_missing(&command, self.facts).await,
                false => self.target.prefix(&command, self.facts).await,
            };
            let prefix = prefix.map_err(|problem| {
                let line = host_text::redact::excerpt(&command_line("", &granted.shown), PATTERN);
                problem.needed_for(&format!("`{line}`"), &command.privilege)
            })?;
            let GrantedStep { shown, free_form, is_any_program, paths, .. } = granted;
            allowed.push(AllowedCommand {
                command,
                shown,
                prefix,
                free_form,
                is_any_program,
                piped: Vec::new(),
                paths,
                leads: Vec::new(),
                found: Vec::new(),
            });
        }
        Ok(allowed)
    }

    /// The hash of the file as the module has read it. A plan is made from that, so it is stale once the file differs.
    fn file_hashes(&self, asked: &str, real: &str) -> Option<&Option<String>> {
        self.file_hashes.get(asked).or_else(|| self.file_hashes.get(real))
    }
}

/// The problem of a file that can neither be removed nor be replaced, because it is another one mounted there.
fn mount_point(path: &str) -> Problem {
    let message = format!("something is mounted at {path}, so that no step can take or fill its place");
    Problem::new("MOUNT_POINT", Category::State, message)
        .remedy(format!("Unmount it first, or change what is mounted there: findmnt {path} names it"))
}

/// The size of a removed file. In a plan that removes many, nobody reads them all.
fn compared_briefly(action: &Action, site: &Site) -> Option<FileDiff> {
    let Action::Remove(_) = action else { return None };
    let before = site.before.as_ref().filter(|_| site.link_target().is_none())?;
    let note = format!("what is in it, which is {} bytes", before.len());
    Some(FileDiff { note: Some(note), ..FileDiff::default() })
}

/// The diff of a step: new contents against the file that is there, or a program's new input against the text that the
/// host has seen.
fn compared(action: &Action, prepared: &PreparedAction, before: Option<&[u8]>) -> Option<FileDiff> {
    match (action, prepared) {
        (Action::Write(write), PreparedAction::File(site, _)) if !write.sensitive => {
            Some(diff(&site.path, site.before.as_deref(), Some(&write.contents)))
        }
        (Action::Remove(_), PreparedAction::File(site, _)) if site.link_target().is_none() => {
            Some(diff(&site.path, site.before.as_deref(), None))
        }
        (Action::Run(run), PreparedAction::Run(_)) => {
            Some(diff("/stdin", before, Some(run.command.stdin.as_deref()?)))
        }
        _ => None,
    }
}

/// Whether the preview leaves out something that the plan would write or run. A secret, or what looks like one, may be
/// anything.
fn hides(action: &Action, prepared: &PreparedStep) -> bool {
    let is_whole = || prepared.diff.as_ref().is_some_and(|diff| diff.whole);
    let main = match (action, &prepared.action) {
        (Action::Write(write), _) if write.sensitive || !is_whole() => return true,
        (Action::Run(run), _) if run.command.stdin.is_some() && !is_whole() => return true,
        (_, PreparedAction::Run(command)) => Some(command),
        (_, PreparedAction::File(_, validate)) => validate.as_ref(),
        (_, PreparedAction::Signal(_)) => None,
    };
    let is_hidden = |command: &AllowedCommand| command.hides_arguments();
    let undo = |undo: &AllowedCommand| {
        undo.hides_arguments() || !(prepared.is_in_diff(undo) || undo.is_shown_whole())
    };
    main.is_some_and(is_hidden) || prepared.undo.iter().any(undo)
}

/// The effects of a change on units that its commands don't name, each as a command of its own. A start stops the units
/// that conflict with the started one, and a restart restarts the units that depend on it.
fn interrupted(change: &Change) -> Vec<Vec<String>> {
    let commands: Vec<&Command> = change
        .steps
        .iter()
        .filter_map(|step| if let Action::Run(run) = &step.action { Some(run) } else { None })
        .flat_map(|run| std::iter::once(&run.command).chain(&run.piped))
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

/// Refuses two steps on one file under two names: each would overwrite the other one's copy and undo. It also refuses a step
/// below a directory that another step moves or removes: what the host has seen there is elsewhere by then. Only a removal
/// may come before that of the directory.
fn distinct(change: &Change, steps: &[PreparedStep]) -> Result<(), Problem> {
    let touched = change.steps.iter().zip(steps).filter_map(|(step, prepared)| match &prepared.action {
        PreparedAction::Run(_) | PreparedAction::Signal(_) => None,
        PreparedAction::File(site, _) => Some((&step.action, std::iter::once(&site.path).chain(&site.to))),
    });
    let mut paths: Vec<(usize, &str, &Action)> = Vec::new();
    let takes_along = |action: &Action| matches!(action, Action::Move(_) | Action::RemoveDirectory(_));
    let is_removal = |action: &Action| matches!(action, Action::Remove(_) | Action::RemoveDirectory(_));
    for (number, (action, touched)) in touched.enumerate() {
        for path in touched.map(String::as_str) {
            let is_within = |path: &str, directory: &str| {
                path.strip_prefix(directory).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            };
            let is_taken = |(other_number, other, before): &(usize, &str, &Action)| {
                let empties = is_removal(before) && is_removal(action);
                *other_number != number
                    && (path == *other
                        || takes_along(before) && is_within(path, other)
                        || takes_along(action) && !empties && is_within(other, path))
            };
            if let Some((_, other, _)) = paths.iter().find(|other| is_taken(other)) {
                let message = match path == *other {
                    true => format!("the module handed over a plan with two steps for {path}"),
                    false => format!(
                        "the module handed over a plan with a step for {path} and one for {other}: one of them moves or \
                         removes a directory that the other one works in"
                    ),
                };
                return Err(Problem::new("INVALID_PLAN", Category::Internal, message));
            }
            paths.push((number, path, action));
        }
    }
    Ok(())
}
