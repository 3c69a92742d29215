//! The commands by which a module looks. The grants have to allow each command as it is written, and also the paths
//! that its paths lead to on the target.

use super::any_program;
use super::bindings::sysadmin::module::types;
use super::convert;
use super::store::{Call, on_target};
use super::wildcard_reads::mask_output;
use host_base::problem::{Category, Problem};
use host_base::{Command, Output, Privilege};
use host_capability::{GrantedLook, HoleType, command_line};
use host_gate::{CommandNumber, check_own_program};
use host_policy::check_only_looks;
use host_text::redact::excerpt;

/// The number of grants that the log names with a refused command.
const NAMED: usize = 10;
/// The number of characters of a command line in a problem.
const SHOWN: usize = 300;

/// A command that the grants allow, ready to start.
#[derive(Debug)]
pub(super) struct AllowedLook {
    pub(super) command: Command,
    /// Its number in the log of the call's commands.
    pub(super) number: CommandNumber,
    /// Whether its output is looked through for secrets.
    pub(super) is_looked_through: bool,
}

impl Call {
    /// Checks the commands and makes them ready to start. `how` is `run` where the module waits for all of them, and
    /// `open` where it reads from them.
    pub(super) async fn allowed(
        &self,
        how: &str,
        commands: Vec<types::Command>,
    ) -> Vec<Result<AllowedLook, Problem>> {
        let mut looking: Vec<_> = commands.into_iter().map(|command| self.may_look(command)).collect();
        let mut paths = self.lead_where_granted(&looking).await;
        // Where sudo doesn't allow resolving the paths, the commands run without sudo.
        let mut again = false;
        for (looking, paths) in looking.iter_mut().zip(&paths) {
            let Ok((command, _)) = looking else { continue };
            let refused = paths.as_ref().is_err_and(|problem| problem.category == Category::Privilege);
            if refused && command.privilege == Privilege::RootIfAvailable {
                command.privilege = Privilege::Caller;
                again = true;
            }
        }
        if again {
            paths = self.lead_where_granted(&looking).await;
        }
        let mut ready = Vec::with_capacity(looking.len());
        for (looking, paths) in looking.into_iter().zip(paths) {
            ready.push(self.ready(looking, paths).await);
        }
        // Commands that run at the same time are logged in one line.
        self.log.looks(how, || {
            let ready = ready.iter().flatten();
            ready.map(|(_, looking, prefix)| command_line(prefix, &looking.shown)).collect()
        });
        let noted = ready.into_iter().map(|ready| {
            let (command, looking, prefix) = ready?;
            // The log cuts a long line.
            let number = self.command_log.push(&prefix, &looking.shown);
            let command = self.command_log.with_output_recorded(&command);
            Ok(AllowedLook { command, number, is_looked_through: looking.is_looked_through })
        });
        noted.collect()
    }

    /// Checks a pipeline, and runs it.
    pub(super) async fn run_pipeline(&self, pipeline: types::Pipeline) -> Result<Vec<Output>, Problem> {
        let timed = convert::pipeline(pipeline.clone(), self.time_limits)?;
        any_program::check_together(self.gate.policy(), &timed)?;
        let is_by_any_program =
            |command| self.grants().may_look(command).is_ok_and(|look| look.is_any_program);
        let is_chosen_by_caller = timed.iter().any(is_by_any_program);
        let checked = self.allowed("run", pipeline.commands).await;
        let (mut commands, mut numbers) = (Vec::new(), Vec::new());
        let mut are_looked_through = false;
        for (checked, timed) in checked.into_iter().zip(timed) {
            let AllowedLook { command, number, is_looked_through } = checked?;
            commands.push(Command { timeout: timed.timeout, ..command });
            numbers.push(number);
            // What one command of the pipeline reads may come out of any that follows it.
            are_looked_through |= is_looked_through;
        }
        let _look = is_chosen_by_caller.then(|| self.command_log.begin_look_of_caller());
        let mut outputs = self.target.run_pipeline(&commands).await?;
        for (number, output) in numbers.into_iter().zip(&outputs) {
            self.command_log.ended(number, output.exit_code);
        }
        if are_looked_through {
            outputs.iter_mut().for_each(mask_output);
        }
        Ok(outputs)
    }

    /// The command, once its paths are allowed, with the words that call sudo.
    async fn ready(
        &self,
        looking: Result<(Command, GrantedLook), Problem>,
        paths: Result<(), Problem>,
    ) -> Result<(Command, GrantedLook, String), Problem> {
        let (command, looking) = looking?;
        paths?;
        check_own_program(&self.target, &self.grants(), &command.program).await?;
        let prefix = self.target.prefix(&command, &self.facts).await.map_err(|problem| {
            let line = command_line("", &looking.shown);
            problem.needed_for(&format!("`{}`", excerpt(&line, SHOWN)), &command.privilege)
        })?;
        Ok((command, looking, prefix))
    }

    fn may_look(&self, command: types::Command) -> Result<(Command, GrantedLook), Problem> {
        on_target(command.place)?;
        let command = convert::command(command, self.time_limits);
        let grants = self.grants();
        let looking = grants.may_look(&command).inspect_err(|problem| {
            let mut granted = grants.patterns_of(&command.program);
            granted.truncate(NAMED);
            self.log.refused(problem, &granted);
        })?;
        if looking.is_any_program {
            let paths = any_program::check(self.gate.policy(), &command)?;
            return Ok((command, GrantedLook { paths, ..looking }));
        }
        check_only_looks(self.gate.policy(), &command, &looking.shown)
            .inspect_err(|problem| self.log.refused(problem, &[]))?;
        Ok((command, looking))
    }

    /// Resolves the paths of all commands together, and checks each resolved path.
    async fn lead_where_granted(
        &self,
        looking: &[Result<(Command, GrantedLook), Problem>],
    ) -> Vec<Result<(), Problem>> {
        let mut verdicts: Vec<_> = looking.iter().map(|_| Ok(())).collect();
        for (privilege, paths) in paths_by_privilege(looking) {
            let has_more_rights = self.facts.uid == 0 || *privilege != Privilege::Caller;
            let asked = paths.iter().map(|(_, _, path)| (*path).clone()).collect();
            let grants = self.grants();
            let resolved = self.target.resolve(asked, &grants.access(privilege)).await;
            for ((command, hole, path), resolved) in paths.into_iter().zip(resolved) {
                let as_any_program = match &looking[command] {
                    Ok((asked, granted)) if granted.is_any_program => Some(asked),
                    _ => None,
                };
                let verdict = match (as_any_program, resolved) {
                    (Some(asked), Ok(leads)) => {
                        let names = self.mounts().await.map(|mounts| mounts.other_names(&leads.path));
                        any_program::check_resolved(
                            asked,
                            (hole, path.as_str()),
                            &leads,
                            names,
                            has_more_rights,
                        )
                    }
                    (Some(asked), Err(problem)) => any_program::check_unresolved(asked, problem),
                    (None, resolved) => resolved.and_then(|leads| {
                        let led = grants.may_lead(hole, path, &leads.path);
                        led.inspect_err(|problem| self.log.refused(problem, &[]))
                    }),
                };
                if verdicts[command].is_ok() {
                    verdicts[command] = verdict;
                }
            }
        }
        verdicts
    }
}

/// Paths, each with the number of its command and with its hole. Nearly all commands have the same rights.
type Paths<'a> = Vec<(usize, &'a HoleType, &'a String)>;

fn paths_by_privilege(looking: &[Result<(Command, GrantedLook), Problem>]) -> Vec<(&Privilege, Paths<'_>)> {
    let mut all: Vec<(&Privilege, Paths)> = Vec::new();
    for (number, looking) in looking.iter().enumerate() {
        let Ok((command, looking)) = looking else { continue };
        for (hole, path) in &looking.paths {
            let path = (number, hole, path);
            match all.iter_mut().find(|(privilege, _)| **privilege == command.privilege) {
                Some((_, paths)) => paths.push(path),
                None => all.push((&command.privilege, vec![path])),
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::sync::Arc;

    use super::*;
    use crate::store::CallContext;
    use host_base::Risk;
    use host_capability::{AnyProgramRequest, CommandRequest, Effect, Grants, Place};
    use host_target::{Overrides, Target};

    /// A directory that root's rights may pass where the tests run as root.
    fn directory() -> tempfile::TempDir {
        match rustix::process::geteuid().is_root() {
            true => tempfile::tempdir_in("/run"),
            false => tempfile::tempdir(),
        }
        .unwrap()
    }

    async fn call(patterns: &[&str]) -> Call {
        let mut grants = Grants::new("test");
        for pattern in patterns {
            let request = CommandRequest {
                pattern: (*pattern).to_owned(),
                effect: Effect::Read,
                privilege: Privilege::Root,
                place: Place::Target,
                risk: Risk::ReadOnly,
                reason: String::new(),
            };
            grants.command(&request).unwrap();
        }
        call_by(grants).await
    }

    async fn call_by(grants: Grants) -> Call {
        let target = Arc::new(Target::local(Overrides::default()));
        let context = CallContext {
            facts: target.facts().await.unwrap(),
            target,
            grants: Arc::new(grants),
            ..CallContext::of_a_test()
        };
        Call::new(context, &Arc::from("test"))
    }

    fn cat(path: &str) -> types::Command {
        types::Command {
            program: "cat".into(),
            args: vec!["--".into(), path.into()],
            env: Vec::new(),
            stdin: None,
            privilege: types::Privilege::Caller,
            place: types::Place::Target,
            duration: types::DurationCategory::Instant,
            keep: types::Keep::Head,
        }
    }

    #[tokio::test]
    async fn a_path_in_a_command_is_asked_about_again_for_where_it_leads() {
        let kept = directory();
        let directory = kept.path().canonicalize().unwrap();
        let at = |name: &str| directory.join("granted").join(name).to_str().unwrap().to_owned();
        std::fs::create_dir(directory.join("granted")).unwrap();
        std::fs::write(at("file"), "").unwrap();
        symlink("file", at("inside")).unwrap();
        symlink("..", at("up")).unwrap();
        symlink("/etc/shadow", at("shadow")).unwrap();
        symlink("nothing", at("dangling")).unwrap();
        let call = call(&[&format!("cat -- <path:{}/**>", at("").trim_end_matches('/'))]).await;
        let names = ["file", "shadow", "inside", "up/granted/file", "up/x", "none/x", "dangling", "../x"];
        let answers = call.allowed("run", names.iter().map(|name| cat(&at(name))).collect()).await;
        let codes: Vec<_> =
            answers.iter().map(|answer| answer.as_ref().err().map_or("", |p| &p.code)).collect();
        let denied = "CAPABILITY_DENIED";
        assert_eq!(codes, ["", denied, "", "", denied, "", "UNRESOLVABLE_PATH", denied]);
        let refused = answers[1].as_ref().unwrap_err();
        assert!(refused.message.contains("leads to /etc/shadow: expected <path:/"), "{refused}");
        // A refused command did not run.
        assert_eq!(call.command_log.shown().unwrap(), "multiple (cat)");
    }

    #[tokio::test]
    async fn where_any_program_may_run_a_look_is_judged_by_where_its_words_lead() {
        let kept = directory();
        let directory = kept.path().canonicalize().unwrap();
        let at = |name: &str| directory.join(name).to_str().unwrap().to_owned();
        std::fs::create_dir(at(".ssh")).unwrap();
        std::fs::write(at(".ssh/id_ed25519"), "").unwrap();
        std::fs::write(at("file"), "").unwrap();
        std::fs::write(at("private"), "").unwrap();
        std::fs::set_permissions(at("private"), std::fs::Permissions::from_mode(0o640)).unwrap();
        for (leads, name) in
            [("file", "link"), (".ssh/id_ed25519", "key"), (".ssh", "keys"), ("nothing", "dangling")]
        {
            symlink(leads, at(name)).unwrap();
        }
        let mut grants = Grants::new("test");
        let (privilege, place) = (Privilege::Root, Place::Target);
        let request = AnyProgramRequest { privilege, place, reason: String::new() };
        grants.any_program(&request).unwrap();
        let call = call_by(grants).await;
        for (name, expected) in [
            ("file", ""),
            ("link", ""),
            ("none", ""),
            ("private", "NEEDS_PLAN"),
            ("/dev/zero", "NEEDS_PLAN"),
            (".ssh/id_ed25519", "NEEDS_PLAN"),
            ("key", "NEEDS_PLAN"),
            ("keys/id_ed25519", "NEEDS_PLAN"),
            ("keys", "NEEDS_PLAN"),
            ("dangling", "NEEDS_PLAN"),
        ] {
            let absolute = types::Command { args: vec![at(name)], ..cat("") };
            let chdir = format!("--chdir={}", directory.display());
            let args = vec![chdir, "cat".to_owned(), name.to_owned()];
            let relative = types::Command { program: "env".to_owned(), args, ..cat("") };
            for answer in call.allowed("run", vec![absolute, relative]).await {
                assert_eq!(answer.err().map_or(String::new(), |problem| problem.code), expected, "{name}");
            }
        }
    }

    #[tokio::test]
    async fn as_root_a_path_through_a_directory_for_everybody_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let shared = directory.path().canonicalize().unwrap();
        std::fs::set_permissions(&shared, std::fs::Permissions::from_mode(0o777)).unwrap();
        std::fs::write(shared.join("file"), "").unwrap();
        let call = call(&["cat -- <path>"]).await;
        let answer = call.allowed("run", vec![cat(shared.join("file").to_str().unwrap())]).await.remove(0);
        match rustix::process::geteuid().is_root() {
            true => assert_eq!(answer.unwrap_err().code, "UNTRUSTED_DIRECTORY"),
            false => assert!(answer.is_ok()),
        }
    }

    #[tokio::test]
    async fn rights_that_cannot_be_had_are_told_with_what_needs_them() {
        let mut call = call(&[]).await;
        let mut grants = Grants::new("test");
        let privilege = Privilege::User("nobody".into());
        let request = CommandRequest {
            pattern: "echo <text>".into(),
            effect: Effect::Read,
            privilege,
            place: Place::Target,
            risk: Risk::ReadOnly,
            reason: String::new(),
        };
        grants.command(&request).unwrap();
        call.context.grants = Arc::new(grants);
        call.context.facts = Arc::new(host_target::Facts { uid: 1000, ..Default::default() });
        let echo = types::Command {
            program: "echo".into(),
            args: vec!["hello".into()],
            privilege: types::Privilege::User("nobody".into()),
            ..cat("")
        };
        let problem = call.allowed("run", vec![echo]).await.remove(0).unwrap_err();
        assert_eq!(problem.code, "PRIVILEGE_REQUIRED");
        assert!(problem.message.starts_with("`echo hello` as nobody: this needs"), "{problem}");
        // The caller knows the module and the account, and adds what sudo has to allow.
        assert!(problem.remediation.is_empty());
    }

    #[tokio::test]
    async fn one_of_several_paths_that_leads_out_is_enough_to_refuse_the_command() {
        let call = call(&["cat -- <path:/etc/*>..."]).await;
        let mut both = cat("/etc/passwd");
        both.args.push("/etc/shadow".into());
        assert_eq!(call.allowed("run", vec![both]).await[0].as_ref().unwrap_err().code, "CAPABILITY_DENIED");
        assert!(call.allowed("run", vec![cat("/etc/passwd")]).await[0].is_ok());
    }
}
