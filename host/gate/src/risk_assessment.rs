//! The risks of a plan by the policy's rules. It assesses each command and each file, and the command lines in new
//! contents and input that become code.

mod file_steps;
mod jobs;
mod new_volume;
mod own_commands;
mod own_programs;
mod process_signals;
mod unit_effects;
#[cfg(test)]
mod unit_tests;

use std::collections::BTreeSet;

use super::allowed::AllowedCommand;
use super::heap::on_heap;
use super::path_rights::PathRights;
use super::privilege_check::{LoginPath, PrivilegeCheck};
use super::units;
use host_base::Risk;
use host_base::problem::{Category, Problem};
use host_base::{Command, Privilege};
use host_capability::{Grants, command_line};
use host_knowledge::{Knowledge, StepAction, raised_risks};
use host_policy::text::{self, AccountGroup, Code, CommandLine};
use host_policy::{AccountChange, Level, Policy, UNKNOWN_RULE, Verdict, check_only_looks, command_words};
use host_target::{Facts, FileKind, Found, Target};
use host_text::redact::excerpt;
use jobs::removed_crontab;

/// The number of characters of a command line in a reason.
const NAMED: usize = 160;
/// The number of command lines of one text that are named.
const MOST_NAMED: usize = 5;

/// The kinds of reasons, the most telling first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Gravity {
    /// Others than root may change the program.
    OthersProgram,
    Other,
}

/// The findings so far.
pub(super) struct RiskAssessment<'a> {
    policy: &'a Policy,
    target: &'a Target,
    facts: &'a Facts,
    knowledge: &'a Knowledge,
    privileges: PrivilegeCheck<'a>,
    /// The volume or file that an earlier step makes, as long as it is certain that nothing is on it.
    new_volume: Option<String>,
    /// The grants of the module whose plan it is.
    grants: Option<&'a Grants>,
    /// The paths to which earlier steps write programs of the module's own.
    own_programs: BTreeSet<String>,
    /// The number of instances of templates so far.
    instances: usize,
    /// The indirect effects so far. Several ways may lead to the same one.
    side_effects: BTreeSet<Vec<String>>,
    /// The risks, each with its reason.
    pub risks: Vec<(Risk, String)>,
    /// The ids of the rules that the plan meets.
    pub rules: Vec<String>,
    /// The reasons for a confirmation whatever the risk.
    pub asks: Vec<String>,
}

impl<'a> RiskAssessment<'a> {
    /// An assessment without findings.
    pub fn new(policy: &'a Policy, knowledge: &'a Knowledge, target: &'a Target, facts: &'a Facts) -> Self {
        let privileges = PrivilegeCheck::new(target, facts);
        Self {
            policy,
            target,
            facts,
            knowledge,
            privileges,
            new_volume: None,
            grants: None,
            own_programs: BTreeSet::new(),
            instances: 0,
            side_effects: BTreeSet::new(),
            risks: Vec::new(),
            rules: Vec::new(),
            asks: Vec::new(),
        }
    }

    /// The assessment of a plan of the module that has these grants.
    pub fn of_module(self, grants: &'a Grants) -> Self {
        Self { grants: Some(grants), ..self }
    }

    /// Checks that a command only looks, whatever the plan calls it. Such commands run before anybody is asked, or
    /// validate a file.
    pub fn harmless(&mut self, command: &AllowedCommand) -> Result<(), Problem> {
        check_only_looks(self.policy, &command.command, &command.shown)
    }

    /// Assesses a command, and its input where that is code. `before` is the text that the input replaces, as the host
    /// has seen it.
    pub async fn command(&mut self, command: &AllowedCommand, before: Option<&[u8]>) -> Result<(), Problem> {
        // A line without an account is of the account that installs the crontab.
        if let Some(account) = removed_crontab(&command_words(&command.command)) {
            let own = self.own_account(command);
            let account = account.or(own.clone());
            let shown = format!("`{}`", excerpt(&command.line(), NAMED));
            self.takes_jobs(account.as_deref(), own.as_deref(), &shown).await;
        }
        if !command.piped.is_empty() {
            self.pipeline(command)?;
        }
        for piped in &command.piped {
            on_heap(|| self.step_or_undo(piped, None, false)).await?;
        }
        let formatted = new_volume::formatted_by(command);
        let is_on_new_volume = formatted.is_some() && formatted == self.new_volume.as_deref();
        on_heap(|| self.step_or_undo(command, before, is_on_new_volume)).await
    }

    /// Assesses what the commands of a pipeline do together, as the rules read it from a shell's line.
    fn pipeline(&mut self, command: &AllowedCommand) -> Result<(), Problem> {
        let lines: Vec<String> = command.all().map(|each| command_line("", &each.command)).collect();
        let argv = ["sh".to_owned(), "-c".to_owned(), lines.join(" | ")];
        let shown = format!("`{}`", excerpt(&command.line(), NAMED));
        self.apply_verdict(&self.policy.verdict(&argv), &shown)
    }

    /// The account whose rights a command has, where these aren't root's.
    fn own_account(&self, command: &AllowedCommand) -> Option<String> {
        let is_own = command.command.privilege == Privilege::Caller && self.facts.uid != 0;
        is_own.then(|| self.facts.user.clone())
    }

    async fn step_or_undo(
        &mut self,
        command: &AllowedCommand,
        before: Option<&[u8]>,
        is_on_new_volume: bool,
    ) -> Result<(), Problem> {
        let argv = command_words(&command.command);
        let line = excerpt(&command.line(), NAMED);
        let (verdict, what) = match is_on_new_volume {
            true => (self.policy.verdict_on_new_volume(&argv), format!("`{line}`, on what the plan makes,")),
            false => (self.policy.verdict(&argv), format!("`{line}`")),
        };
        self.apply_verdict(&verdict, &what)?;
        // A link may lead to a path with a higher risk, so the command is also judged with the resolved paths.
        for (asked, leads) in command.led() {
            let led = |word: &String| match word.strip_suffix(asked) {
                // The path stands alone, or is the value of an option.
                Some(before) if before.is_empty() || before.ends_with('=') => format!("{before}{leads}"),
                _ => word.clone(),
            };
            let led: Vec<String> = argv.iter().map(led).collect();
            self.apply_verdict(&self.policy.verdict(&led), &format!("`{line}`, where {asked} is {leads},"))?;
        }
        if let Some(rights) = PathRights::of_command(&argv) {
            for path in rights.paths.iter().copied() {
                let found = match command.found_at(path) {
                    Some((leads, found)) => Ok((leads, found.cloned())),
                    None => self.privileges.found(path).await.map(|found| (path, found)),
                };
                if let Ok((leads, _)) = &found {
                    for name in self.other_names(leads).await {
                        let named =
                            argv.iter().map(|word| if word == path { name.clone() } else { word.clone() });
                        let verdict = self.policy.verdict(&named.collect::<Vec<_>>());
                        self.apply_verdict(&verdict, &format!("`{line}`, where {path} is {name} as well,"))?;
                    }
                }
                let why = match found {
                    Ok((leads, found)) => self.gives_away(&rights, leads, found).await,
                    Err(problem) => Some(format!("changes what can't be looked at: {}", problem.message)),
                };
                self.risks.extend(why.map(|why| (Risk::High, format!("`{line}` {why}"))));
            }
        }
        for why in self.given(&argv).await {
            self.risks.push((Risk::High, format!("`{line}` {why}")));
        }
        self.odd_instances(&argv, &line).await;
        self.reaches(&argv, &line).await?;
        let is_own = self.is_own_program(&command.command.program).await?;
        // Where the grant restricts every argument, the operator has decided. Otherwise the rules decide. What a program of the
        // module's own does with any arguments is decided with its contents.
        if command.free_form && verdict.level == Level::Confirm && !is_own {
            self.asks.push(format!("`{line}` {}", verdict.reason_with_rule()));
        }
        // No grant says what such a command is for, and it would have run at once if it only looked.
        if command.is_any_program {
            let takes_root = self.own_account(command).is_none();
            match takes_root.then(|| text::objection(&argv)).flatten() {
                Some(why) => {
                    let why = format!("root would run `{line}`: {why}");
                    self.risks.push((Risk::High, why.clone()));
                    self.asks.push(why);
                }
                None if verdict.level == Level::Safe && !verdict.changes() => {
                    self.asks.push(format!("`{line}` isn't known to show only what the caller may see"));
                }
                None if verdict.level == Level::Safe => {
                    self.asks.push(format!("`{line}` {}", verdict.reason_with_rule()));
                }
                None => {}
            }
        }
        let Some(stdin) = command.command.stdin.as_deref() else { return Ok(()) };
        let Some(code) = text::code_on_stdin(&argv, stdin) else { return Ok(()) };
        // A crontab line without an account runs as the account that installs it.
        let own = self.own_account(command);
        let of_own = |code: Code| code.with_default_user(own.as_deref());
        let former = before.and_then(|before| text::code_on_stdin(&argv, before)).map(of_own);
        if let Some(former) = &former {
            self.jobs_end(former, Some(&of_own(code)), own.as_deref(), &format!("`{line}`")).await;
        }
        // The variables that are there already hold for a new line as well, so nothing else is left out.
        let Some(new) = text::new_code_on_stdin(&argv, stdin, before).map(of_own) else { return Ok(()) };
        self.code(new, None, &format!("what `{line}` would read")).await
    }

    /// Assesses an indirect effect of another command, as if it were a command of its own: by the rules, and by the
    /// profiles of the services that it affects.
    pub async fn side_effect(&mut self, argv: &[String]) -> Result<(), Problem> {
        if !self.side_effects.insert(argv.to_vec()) {
            return Ok(());
        }
        let verdict = self.policy.verdict(argv);
        let line = excerpt(&argv.join(" "), NAMED);
        self.apply_verdict(&verdict, &format!("`{line}`, indirectly,"))?;
        self.odd_instances(argv, &line).await;
        if let Some((program, args)) = argv.split_first() {
            self.risks.extend(raised_risks(
                self.knowledge,
                &self.facts.family,
                &StepAction::Run { program, args },
            ));
        }
        Ok(())
    }

    /// The facts about the target.
    pub fn facts(&self) -> &Facts {
        self.facts
    }

    /// Assesses a signal to processes of a service as a stop of it: by the rules, and by the service's profile.
    pub fn signal_to_service(&mut self, unit: &str, does: &str) -> Result<(), Problem> {
        let argv = ["systemctl", "stop", "--", unit].map(str::to_owned);
        let what = format!("a signal that {does} processes of {}", excerpt(unit, NAMED));
        self.apply_verdict(&self.policy.verdict(&argv), &what)?;
        let done = StepAction::Run { program: &argv[0], args: &argv[1..] };
        self.risks.extend(raised_risks(self.knowledge, &self.facts.family, &done));
        Ok(())
    }

    /// Whether something is mounted at the path itself.
    pub async fn is_mount_point(&mut self, path: &str) -> bool {
        self.privileges.is_mount_point(path).await
    }

    /// The other names that a path has by mounts. Adds a risk where the target doesn't show them.
    pub async fn other_names(&mut self, path: &str) -> Vec<String> {
        let names = self.privileges.other_names(path).await;
        if names.is_none() {
            let why = format!(
                "{} may be another file, since the target doesn't show its mounts",
                excerpt(path, NAMED)
            );
            self.risks.push((Risk::High, why));
        }
        names.unwrap_or_default()
    }

    /// The reason why setting these rights is a higher risk than the rules say. That is the case in home directories, for
    /// files of accounts that are as good as root, and for root's own files in directories for data, which root may run
    /// or keep secret.
    async fn gives_away(
        &mut self,
        rights: &PathRights<'_>,
        path: &str,
        found: Option<Found>,
    ) -> Option<String> {
        let shown = excerpt(path, NAMED);
        let Ok(home) = self.privileges.home(path, found.as_ref()).await else {
            return Some(format!("changes {shown}, and the target doesn't say in whose home it is"));
        };
        if let Some(home) = home {
            for owner in &home.owners {
                if let Some(why) = self.privileges.root_equivalence(owner).await {
                    return Some(format!(
                        "changes {shown}, which is or is in the home of an account that is as good as root: {why}"
                    ));
                }
            }
            let owners = excerpt(&home.owners.join(", "), NAMED);
            if home.is_peoples && rights.owner.is_some_and(|to| home.owners.iter().all(|owner| owner != to)) {
                return Some(format!("gives {shown}, which is in {owners}'s home, to somebody else"));
            }
            if home.is_peoples && home.is_itself && (rights.others_write() || rights.takes & 0o700 != 0) {
                return Some(format!("changes {shown} so that {owners} may no longer be able to log in"));
            }
        }
        let found = found?;
        if found.kind == FileKind::File && found.metadata.links > 1 {
            return Some(format!(
                "changes {shown}, which has other names, and one of them may be the system's"
            ));
        }
        let opens_writing = rights.opens(found.metadata.mode) & 0o022 != 0;
        let changes_owner = rights.owner.is_some() || rights.group.is_some();
        // A shell that is a script has to be readable as well.
        let closes = match found.kind {
            FileKind::Directory => rights.closes(found.metadata.mode),
            _ => rights.takes & found.metadata.mode & 0o555 != 0,
        };
        if closes || opens_writing || changes_owner {
            let id = (found.metadata.device, found.metadata.inode);
            match self.privileges.login_below(path, id).await {
                Ok(None) => {}
                Ok(Some(LoginPath { account, what })) => {
                    let account = excerpt(&account, NAMED);
                    return Some(format!(
                        "changes who may enter or run {shown}, where {account} has the {what}"
                    ));
                }
                Err(()) => {
                    return Some(format!(
                        "changes who may enter or run {shown}, and the target doesn't say whose homes and shells are there"
                    ));
                }
            }
        }
        let Found { kind, metadata } = self.privileges.with_names(found).await;
        let (mode, opened) = (metadata.mode, rights.opens(metadata.mode));
        let new_owner = rights.owner.filter(|to| *to != metadata.owner);
        let new_group = rights.group.filter(|to| *to != metadata.group);
        if metadata.owner != "root" {
            // Fewer rights for others give nobody anything.
            let shuts_out = rights.shuts_owner_out(mode, kind == FileKind::Directory);
            if new_owner.is_none() && new_group.is_none() && opened == 0 && !shuts_out {
                return None;
            }
            let owner = excerpt(&metadata.owner, NAMED);
            if new_owner == Some("root") {
                return Some(format!(
                    "gives {shown}, which {owner} may have written, to root, whose files root's programs trust"
                ));
            }
            let why = self.privileges.owner_power(&metadata.owner).await?;
            return Some(format!("changes the rights on {shown}, which belongs to {owner}: {why}"));
        }
        if new_owner.is_some() || rights.others_write() || new_group.is_some() && mode & 0o020 != 0 {
            return Some(format!(
                "lets others write to {shown}, which is root's own and which root's programs may trust"
            ));
        }
        let everybodys = if kind == FileKind::Directory { 0o005 } else { 0o004 };
        let is_closed = mode & everybodys != everybodys;
        // The bits that the group gets and everybody lacks. Where a file has an access control list, they are what the list
        // gives to others at most.
        let to_group = opened >> 3 & 0o005 & !mode;
        if is_closed && (opened & 0o005 != 0 || new_group.is_some()) || to_group != 0 {
            return Some(format!(
                "opens {shown} to others, which is root's own and not readable by everybody"
            ));
        }
        let is_changed = new_group.is_some() || rights.changes(mode);
        is_changed.then(|| {
            format!("changes the rights on {shown}, which is root's own and which root's programs may run or go by")
        })
    }

    /// The reasons why a change of an account's groups or home is a higher risk on this target than the rules say.
    async fn given(&mut self, argv: &[String]) -> Vec<String> {
        let words: Vec<&str> = argv.iter().map(String::as_str).collect();
        let given = AccountChange::of_command(&words);
        let mut found = Vec::new();
        for group in given.groups {
            if let Some(why) = self.privileges.group_power(&group).await {
                found.push(format!("gives an account the group {}, which {why}", excerpt(&group, NAMED)));
            }
        }
        if let Some(new) = &given.new {
            found.extend(self.privileges.new_account(new).await);
            found.extend(self.privileges.leftovers(new).await);
        }
        // An account's groups, home and comment decide who can log in and what its programs may do.
        if let Some(account) = given.account
            && let Some(why) = self.privileges.root_equivalence(&account).await
        {
            found.push(format!("changes {}, who is as good as root: {why}", excerpt(&account, NAMED)));
        }
        found
    }

    /// Assesses a command that undoes a step.
    pub async fn undo(&mut self, undo: &AllowedCommand, before: Option<&[u8]>) -> Result<(), Problem> {
        match self.removes_what_is_made(undo).await {
            true => Ok(()),
            // It puts back what was there: no job that was there goes by it.
            false => on_heap(|| self.step_or_undo(undo, before, false)).await,
        }
    }

    /// Whether the command only removes files that don't exist now. Then the step itself makes them.
    async fn removes_what_is_made(&self, undo: &AllowedCommand) -> bool {
        let Command { program, args, .. } = &undo.command;
        let Some(("--", paths)) = args.split_first().map(|(first, paths)| (first.as_str(), paths)) else {
            return false;
        };
        if program != "rm" || paths.is_empty() {
            return false;
        }
        for path in paths {
            if !self.privileges.is_absent(path).await {
                return false;
            }
        }
        true
    }

    /// Assesses the new parts of code. Who adds a line to a file isn't asked about the other lines.
    async fn code(&mut self, code: Code, before: Option<Code>, what: &str) -> Result<(), Problem> {
        let before = before.unwrap_or_default();
        let was_there = |line: &CommandLine| {
            before.lines.iter().any(|old| {
                (&old.argv, &old.user, &old.directory) == (&line.argv, &line.user, &line.directory)
            })
        };
        let (mut found, mut objections) = (Vec::new(), Vec::new());
        for (risk, effect) in &code.effects {
            self.risks.push((*risk, excerpt(&format!("{what} {effect}"), 3 * NAMED)));
        }
        for line in code.lines.iter().filter(|line| !was_there(line)) {
            let is_ordinary = match &line.user {
                Some(account) => self.privileges.root_equivalence(account).await.is_none(),
                None => false,
            };
            let verdict = match is_ordinary {
                true => self.policy.certain_verdict(&line.argv, line.directory.as_deref()),
                false => self.policy.verdict_in(&line.argv, line.directory.as_deref()),
            };
            let shown = line.shell.clone().unwrap_or_else(|| line.argv.join(" "));
            let shown = format!("`{}` in {what} ({})", excerpt(&shown, NAMED), line.at);
            self.apply_verdict(&verdict, &shown)?;
            objections.extend(self.objection(line, &shown).await);
        }
        on_heap(|| self.acts(&code.unit_actions, &before.unit_actions, what)).await?;
        let ports: Vec<u16> =
            code.ports.iter().filter(|port| !before.ports.contains(port)).copied().collect();
        if let Some(why) = units::taken(self.target, &ports).await {
            self.risks.push((Risk::High, format!("{what} listens on {why}")));
        }
        for (path, at) in code.files.iter().filter(|file| !before.files.contains(file)) {
            let secret = self.privileges.secrecy(path).await;
            found.extend(
                secret.map(|why| format!("{what} has root read {path} for somebody else ({at}): {why}")),
            );
        }
        for AccountGroup { account, group, at } in &code.groups {
            let is_new = !before.groups.iter().any(|old| (&old.account, &old.group) == (account, group));
            if is_new && let Some(why) = self.privileges.group_beyond(account, group).await {
                found.push(format!("{what} {why} ({at})"));
            }
        }
        found.extend(
            code.power
                .iter()
                // The text shows only the beginning of a long value, so it may hide a difference.
                .filter(|one| one.contains('…') || !before.power.contains(one))
                .map(|power| format!("{what} {power}")),
        );
        for power in &code.account_power {
            let is_new = power.sentence.contains('…') || !before.account_power.contains(power);
            if is_new && let Some(why) = self.privileges.root_equivalence(&power.account).await {
                found.push(format!("{what} {}: {why}", power.sentence));
            }
        }
        found.extend(code.unreadable.map(|why| format!("{what} becomes code, and can't be judged: {why}")));
        objections.extend(found.into_iter().map(|reason| (Gravity::Other, reason)));
        objections.sort_by_key(|(gravity, _)| *gravity);
        let more = objections.len().saturating_sub(MOST_NAMED);
        objections.truncate(MOST_NAMED);
        let reasons = objections.into_iter().map(|(_, reason)| excerpt(&reason, 3 * NAMED));
        let more =
            (more > 0).then(|| format!("{what} has {more} more parts that aren't known to be harmless"));
        self.risks.extend(reasons.chain(more).map(|reason| (Risk::High, reason)));
        Ok(())
    }

    /// The reason why a command line isn't harmless. A line of root has to be known as harmless. A line of another
    /// account is judged like root's where the account is as good as root, or where others may change the program.
    /// Where others may change the program, that comes first among all reasons.
    async fn objection(&mut self, line: &CommandLine, shown: &str) -> Option<(Gravity, String)> {
        let root = match line.user.as_deref() {
            None => Some("root".to_owned()),
            Some(account) => self.privileges.root_equivalence(account).await,
        };
        let account = line
            .user
            .as_deref()
            .map(|account| account.strip_prefix(text::DYNAMIC_USER_PREFIX).unwrap_or(account));
        let is_root = root.is_some();
        let who = match (&root, account) {
            (Some(why), Some(account)) => format!("{account} ({why})"),
            (_, account) => account.unwrap_or("root").to_owned(),
        };
        if let Some(account) = account
            && self.privileges.is_servers(account).await
        {
            let why = "nothing but this server runs as its account, whose messages in the journal vouch for the audit log";
            return Some((Gravity::Other, format!("{who} would run {shown}: {why}")));
        }
        let is_own = is_root && self.runs_own_program(&line.argv).await;
        let listed = if is_root && !is_own { text::objection(&line.argv) } else { None };
        // A bare name is found only in directories that root alone can write to. What a shell of an ordinary account runs
        // is that account's affair.
        let mut others = None;
        for program in text::named_programs(&line.argv) {
            if self.own_programs.contains(&program) {
                // It isn't there yet, or is replaced.
                let found = self.privileges.found(&program).await;
                others = others.or(found.err().map(|problem| problem.message));
            } else if others.is_none() && (is_root || line.argv.first() == Some(&program)) {
                others = self.privileges.program_risk(&program, line.user.as_deref()).await;
            }
        }
        let gravity = if others.is_some() { Gravity::OthersProgram } else { Gravity::Other };
        let why = match (others, listed) {
            (Some(others), Some(listed)) => format!("{others}, and {listed}"),
            (others, listed) => others.or(listed)?,
        };
        Some((gravity, format!("{who} would run {shown}: {why}")))
    }

    fn apply_verdict(&mut self, verdict: &Verdict, what: &str) -> Result<(), Problem> {
        self.rules.extend(
            verdict
                .matched_rules
                .iter()
                .filter(|rule| *rule != UNKNOWN_RULE && !self.rules.contains(rule))
                .cloned()
                .collect::<Vec<_>>(),
        );
        if verdict.level == Level::Block {
            return Err(blocked(verdict, what));
        }
        if let Some(risk) = verdict.risk {
            self.risks.push((risk, format!("{what} {}", verdict.reason_with_rule())));
        }
        Ok(())
    }
}

/// The problem of a plan that the policy forbids. No confirmation changes that.
fn blocked(verdict: &Verdict, what: &str) -> Problem {
    let message =
        format!("the policy forbids {what}: it {}; no confirmation changes that", verdict.reason_with_rule());
    Problem::new("POLICY_BLOCKED", Category::Denied, message)
        .remedy("An operator can see why with `linux-sysadmin policy check COMMAND`")
}

#[cfg(test)]
mod tests {
    use super::*;
    use host_knowledge::LazyKnowledge;
    use host_target::{Metadata, Overrides};

    const UNIT: &str = "/etc/systemd/system/x.service";
    const CRONTAB: &str = "/etc/cron.d/x";

    /// The risks and reasons that the built-in rules find in new contents of a file, on this machine, reached as root.
    async fn weighed(path: &str, before: &str, after: &str) -> (Vec<Risk>, String) {
        let target = Target::local(Overrides::default());
        let facts = Facts { user: "root".to_owned(), ..Facts::default() };
        let lazy = LazyKnowledge::default();
        let mut assessment = RiskAssessment::new(Policy::builtin(), lazy.get(), &target, &facts);
        let new = text::new_code_in_unit(path, after.as_bytes(), &[], Some(before.as_bytes())).unwrap();
        assessment.code(new, None, path).await.unwrap();
        let reasons: Vec<&str> = assessment.risks.iter().map(|(_, reason)| reason.as_str()).collect();
        (assessment.risks.iter().map(|(risk, _)| *risk).collect(), reasons.join("\n"))
    }

    #[tokio::test]
    async fn text_that_root_would_run_is_grave_unless_it_is_known_to_be_harmless() {
        for (path, text, grave) in [
            (UNIT, "[Service]\nExecStart=/bin/echo hello\n", false),
            (UNIT, "[Service]\nExecStart=/usr/sbin/nginx -g 'daemon off;'\n", true),
            (UNIT, "[Service]\nExecStart=/bin/echo hello\nExecStartPost=/bin/systemctl restart x\n", true),
            (UNIT, "[Service]\nExecStart=/bin/true\nEnvironment=LD_PRELOAD=/tmp/x.so\n", true),
            (UNIT, "[Service]\nUser=nobody\nExecStart=/bin/sleep 5\nEnvironment=A=/tmp/x.so\n", false),
            (UNIT, "[Service]\nUser=nobody-knows\nExecStart=/bin/sleep 5\nEnvironment=A=/tmp/x.so\n", true),
            (UNIT, "[Service]\nUser=nobody-knows\nExecStart=/bin/sleep 5\nEnvironment=TZ=UTC\n", false),
            (UNIT, "[Service]\nUser=nobody\nExecStart=!/bin/true\nEnvironment=A=/tmp/x.so\n", true),
            (UNIT, "[Service]\nUser=nobody\nExecStart=/nowhere/x\n", true),
            // A group is an account's own by its number.
            (UNIT, "[Service]\nUser=nobody\nGroup=65534\nExecStart=/bin/sleep 5\n", false),
            (UNIT, "[Service]\nUser=nobody\nGroup=nogroup\nExecStart=/bin/sleep 5\n", false),
            (UNIT, "[Service]\nUser=nobody\nGroup=shadow\nExecStart=/bin/sleep 5\n", true),
            (UNIT, "[Service]\nUser=nobody\nSupplementaryGroups=65534 42\nExecStart=/bin/sleep 5\n", true),
            (UNIT, "[Service]\nUser=nobody\nGroup=nobody-knows\nExecStart=/bin/sleep 5\n", true),
            (UNIT, "[Service]\nUser=nobody-knows\nExecStart=/usr/bin/find /\n", true),
            (CRONTAB, "0 3 * * * root logger -t x y\n", false),
            (CRONTAB, "0 3 * * * root /usr/bin/backup --quiet\n", true),
            (CRONTAB, "0 3 * * * nobody curl -s http://x | sort\n", false),
            ("/etc/cron.daily/x", "anything", true),
            ("/etc/motd.d/x/y", "anything", true),
        ] {
            let (risks, reasons) = weighed(path, "", text).await;
            assert_eq!(risks.iter().any(|risk| *risk >= Risk::High), grave, "{path} {text}: {reasons}");
        }
    }

    #[tokio::test]
    async fn what_only_might_become_grave_counts_for_root_alone() {
        for command in [
            "cp -p /srv/app/ledger.db \"/srv/app/exports/ledger-$(date +%F).db\"",
            "cd ~/notes && /bin/true || echo 'not done'",
            "find /srv/app/x -name \"$(hostname)*\"",
            "rm -f \"$HOME/cache/$NAME\"",
            "echo $(",
        ] {
            for (path, asks) in [
                ("/var/spool/cron/crontabs/nobody", false),
                ("/var/spool/cron/crontabs/root", true),
                ("/var/spool/cron/crontabs/nobody-knows", true),
            ] {
                let (risks, reasons) = weighed(path, "", &format!("0 3 * * * {command}\n")).await;
                assert_eq!(risks.iter().any(|risk| *risk >= Risk::High), asks, "{path} {command}: {reasons}");
            }
        }
        // A certain effect counts for every account.
        let sure = "0 3 * * * cat ~/.ssh/id_rsa /home/nobody/.ssh/id_rsa\n";
        assert!(weighed("/var/spool/cron/crontabs/nobody", "", sure).await.0.contains(&Risk::High));
    }

    #[tokio::test]
    async fn rights_cost_more_on_what_root_may_run_and_in_homes_of_who_is_as_good_as_root() {
        // These are root's own directory, file and program on every machine.
        let target = Target::local(Overrides::default());
        let facts = Facts { user: "nobody-else".to_owned(), ..Facts::default() };
        let lazy = LazyKnowledge::default();
        let mut assessment = RiskAssessment::new(Policy::builtin(), lazy.get(), &target, &facts);
        let nothing = PathRights::default;
        let to = |owner| PathRights { owner: Some(owner), ..PathRights::default() };
        let gives = |gives| PathRights { gives, ..PathRights::default() };
        let (write, read, enter) = (|| gives(0o022), || gives(0o004), || gives(0o001));
        for (path, rights, asks) in [
            ("/usr", to("ada"), true),
            ("/usr", write(), true),
            ("/usr", read(), false),
            ("/etc/passwd", to("ada"), true),
            ("/etc/passwd", write(), true),
            ("/etc/passwd", read(), false),
            ("/root", enter(), true),
            ("/usr", enter(), false),
            ("/etc/shadow", read(), true),
            ("/etc/shadow", to("ada"), true),
            ("/etc/shadow", PathRights { group: Some("ada"), ..PathRights::default() }, true),
            ("/bin/true", write(), true),
            ("/home/root", nothing(), true),
            ("/home/nobody-knows/x", nothing(), true),
            ("/home/nobody/x", write(), false),
            ("/home/nobody/x", to("nobody"), false),
            ("/home/nobody/x", to("ada"), true),
            ("/home/nobody", to("ada"), true),
            ("/home/nobody", write(), true),
            ("/home/nobody", PathRights { takes: 0o200, ..PathRights::default() }, true),
            ("/home/nobody", to("root"), true),
            ("/home/nobody", read(), false),
            ("/nowhere", to("ada"), false),
        ] {
            let found = assessment.privileges.found(path).await.unwrap();
            let why = assessment.gives_away(&rights, path, found).await;
            assert_eq!(why.is_some(), asks, "{path}: {why:?}");
        }
    }

    #[tokio::test]
    async fn rights_go_by_who_owns_what_is_found() {
        let target = Target::local(Overrides::default());
        let facts = Facts { user: "nobody-else".to_owned(), ..Facts::default() };
        let lazy = LazyKnowledge::default();
        let mut assessment = RiskAssessment::new(Policy::builtin(), lazy.get(), &target, &facts);
        let found = |owner: &str, group: &str, mode| {
            let metadata = Metadata {
                size: 0,
                mode,
                owner: owner.to_owned(),
                group: group.to_owned(),
                modified_unix: 0,
                links: 1,
                device: 0,
                inode: 0,
                is_dir: false,
                is_symlink: false,
            };
            Some(Found { kind: FileKind::File, metadata })
        };
        for (owner, group, mode, line, asks) in [
            ("mail", "mail", 0o644, "chown -- nobody:mail /srv/x", true),
            ("mail", "mail", 0o644, "chown -- mail:nogroup /srv/x", true),
            ("mail", "mail", 0o644, "chmod -- 0666 /srv/x", true),
            ("mail", "mail", 0o644, "chmod -- 0600 /srv/x", false),
            ("nobody", "nogroup", 0o600, "chown -- ada:nogroup /srv/x", false),
            ("nobody", "nogroup", 0o600, "chmod -- 0777 /srv/x", false),
            ("4107", "4107", 0o600, "chmod -- 0644 /srv/x", false),
            ("990", "990", 0o600, "chmod -- 0644 /srv/x", true),
            ("root", "ada", 0o600, "chmod -- 0640 /srv/x", true),
            ("root", "ada", 0o644, "chmod -- 0640 /srv/x", true),
            ("root", "root", 0o600, "chmod -- 0640 /srv/x", true),
            ("root", "root", 0o644, "chmod -- 0664 /srv/x", true),
            ("root", "root", 0o755, "chmod -- 0700 /srv/x", true),
            ("root", "root", 0o600, "chown -- root:root /srv/x", false),
            ("mail", "mail", 0o644, "chown -- root /srv/x", true),
            ("nobody", "nogroup", 0o600, "chown -- root /srv/x", true),
            ("1379532800", "1379532800", 0o755, "chown -- ada /srv/x", true),
            ("root", "root", 0o664, "chgrp -- ada /srv/x", true),
            ("root", "root", 0o644, "chgrp -- ada /srv/x", true),
        ] {
            let argv: Vec<String> = line.split(' ').map(str::to_owned).collect();
            let rights = PathRights::of_command(&argv).unwrap();
            let why = assessment.gives_away(&rights, "/srv/x", found(owner, group, mode)).await;
            assert_eq!(why.is_some(), asks, "{owner}:{group} {mode:o} {line}: {why:?}");
        }
    }

    #[tokio::test]
    async fn new_accounts_ask_by_names_and_numbers_that_are_taken() {
        let target = Target::local(Overrides::default());
        let facts = Facts { user: "nobody-else".to_owned(), ..Facts::default() };
        let lazy = LazyKnowledge::default();
        let mut assessment = RiskAssessment::new(Policy::builtin(), lazy.get(), &target, &facts);
        for (line, asks) in [
            ("useradd --create-home -- zoe", false),
            ("useradd --uid=4107 -- zoe", false),
            ("useradd --gid=users -- zoe", false),
            ("useradd --gid=users -- utmp", true),
            ("useradd --gid=users -- docker", true),
            ("useradd --uid=27 -- zoe", true),
            ("useradd --uid=990 -- zoe", true),
            ("useradd --uid=61763 -- zoe", true),
            ("useradd --uid=65534 -- zoe", true),
            ("groupadd -- zoes", false),
            ("groupadd --system -- zoes", false),
            ("groupadd --gid=5200 -- zoes", false),
            ("groupadd --gid=990 -- zoes", true),
            ("groupadd --gid=61763 -- zoes", true),
        ] {
            let argv: Vec<String> = line.split(' ').map(str::to_owned).collect();
            let why = assessment.given(&argv).await;
            assert_eq!(!why.is_empty(), asks, "{line}: {why:?}");
        }
    }

    #[tokio::test]
    async fn only_what_is_new_is_weighed() {
        let old = "0 3 * * * root find / -delete\n";
        let more = |line: &str| format!("{old}{line}");
        assert!(weighed(CRONTAB, old, &more("0 4 * * * root true\n")).await.0.is_empty());
        assert!(!weighed(CRONTAB, old, &more("0 4 * * * root find /srv -delete\n")).await.0.is_empty());
        // A line that stays isn't weighed, whatever it runs, unless the variables above it change.
        let odd = "0 3 * * * root /usr/local/bin/job\n";
        assert!(weighed(CRONTAB, odd, &format!("{odd}0 4 * * * root true\n")).await.0.is_empty());
        assert!(!weighed(CRONTAB, odd, &format!("MAILTO=x\n{odd}")).await.0.is_empty());
        // The same line with other rights is another line.
        assert!(!weighed(CRONTAB, "0 3 * * * nobody find / -delete\n", old).await.0.is_empty());
    }
}
