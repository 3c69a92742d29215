//! A module's grants, and the one place where they are asked.

use std::fmt::Write as _;
use std::sync::Arc;

use super::directory::DataDirectory;
use super::hole::HoleType;
use super::path::Glob;
use super::pattern::{Match, Pattern, PatternError};
use super::request::{CommandRequest, Effect, PathRequest, Place};
use super::verbs::{verbs_for, verbs_for_command};
use crate::problem::{Category, Problem};
use crate::target::{Access, Command, Privilege};
use crate::visible::excerpt;

/// What a message holds of what was refused.
const SHOWN: usize = 300;

/// A command line that the module may use.
#[derive(Clone, Debug)]
struct CommandGrant {
    pattern: Pattern,
    effect: Effect,
    /// At most whose rights.
    privilege: Privilege,
}

/// Files that the module may read.
#[derive(Clone, Debug)]
struct PathGrant {
    glob: Glob,
    /// At most whose rights.
    privilege: Privilege,
}

/// A command that a module may look by.
#[derive(Clone, Debug)]
pub struct Looking {
    /// As it may be shown: without its secrets.
    pub shown: Command,
    /// What it put into holes for paths. They were checked as text, and are to be asked again with
    /// [`Grants::may_lead`] for where they lead on the target.
    pub paths: Vec<(HoleType, String)>,
}

/// A grant that can't be understood. The module that asks for it is refused.
#[derive(Debug, thiserror::Error)]
pub enum GrantError {
    /// In a command grant.
    #[error("command grant `{0}`: {1}")]
    Pattern(String, super::pattern::PatternError),
    /// Understood, but not to be had.
    #[error("grant `{0}`: {1}, which this version of the host can't grant")]
    Ungrantable(String, &'static str),
    /// Of a user that is none.
    #[error("{0:?} is no user's name")]
    User(String),
    /// In a path grant.
    #[error("path grant `{0}`: {1}")]
    Glob(String, super::path::GlobError),
    /// In a path grant of the controller.
    #[error("path grant `{0}` on the controller: {1}")]
    Directory(String, String),
    /// Of a path that takes the host's own commands to reach.
    #[error("grant `{0}`: expected paths short enough for the commands that look at them: {1}")]
    Verbs(String, PatternError),
}

/// Everything that one module may do. Empty grants allow nothing.
#[derive(Clone, Debug, Default)]
pub struct Grants {
    module: String,
    commands: Vec<CommandGrant>,
    paths: Vec<PathGrant>,
    directories: Vec<DataDirectory>,
    /// The host's own commands for these paths, and at most whose rights they take.
    verbs: Vec<(Privilege, Arc<Pattern>)>,
}

impl Grants {
    /// Of the module of this name.
    pub fn new(module: &str) -> Self {
        Self { module: module.to_owned(), ..Self::default() }
    }

    /// Adds a command line.
    pub fn command(&mut self, request: &CommandRequest) -> Result<(), GrantError> {
        let text = &request.pattern;
        let pattern = Pattern::parse(text).map_err(|error| GrantError::Pattern(text.clone(), error))?;
        if request.place != Place::Target {
            return Err(GrantError::Ungrantable(text.clone(), "it is to run on the controller"));
        }
        known_user(&request.privilege)?;
        let (effect, privilege) = (request.effect, request.privilege.clone());
        let verbs = verbs_for_command(&pattern, &privilege);
        self.add_verbs(text, &privilege, verbs)?;
        self.commands.push(CommandGrant { pattern, effect, privilege });
        Ok(())
    }

    /// Adds files.
    pub fn path(&mut self, request: &PathRequest) -> Result<(), GrantError> {
        let text = &request.glob;
        let glob = Glob::parse(text).map_err(|error| GrantError::Glob(text.clone(), error))?;
        if request.write {
            return Err(GrantError::Ungrantable(text.clone(), "it is to be written to"));
        }
        known_user(&request.privilege)?;
        if request.place == Place::Controller {
            if request.privilege != Privilege::Caller {
                return Err(GrantError::Ungrantable(
                    text.clone(),
                    "it is on the controller, with other rights",
                ));
            }
            let wrong = |expected| GrantError::Directory(text.clone(), expected);
            self.directories.push(DataDirectory::parse(text).map_err(wrong)?);
            return Ok(());
        }
        self.add_verbs(text, &request.privilege, verbs_for(request))?;
        self.paths.push(PathGrant { glob, privilege: request.privilege.clone() });
        Ok(())
    }

    /// What it reads by itself, on the machine that the server runs on.
    pub fn directories(&self) -> &[DataDirectory] {
        &self.directories
    }

    fn add_verbs(
        &mut self,
        grant: &str,
        privilege: &Privilege,
        verbs: Result<Vec<Pattern>, PatternError>,
    ) -> Result<(), GrantError> {
        let verbs = verbs.map_err(|error| GrantError::Verbs(grant.to_owned(), error))?;
        self.verbs.extend(verbs.into_iter().map(|verb| (privilege.clone(), Arc::new(verb))));
        Ok(())
    }

    /// How paths are reached with these rights.
    pub fn access(&self, privilege: &Privilege) -> Access {
        let granted = self.verbs.iter().filter(|(granted, _)| covers(granted, privilege));
        Access { privilege: privilege.clone(), verbs: granted.map(|(_, verb)| verb.clone()).collect() }
    }

    /// Whether the module may look by this command.
    pub fn may_look(&self, command: &Command) -> Result<Looking, Problem> {
        let stdin = command.stdin.is_some();
        let mut only_for_changes = false;
        for grant in self.commands.iter().filter(|grant| covers(&grant.privilege, &command.privilege)) {
            let bound = grant.pattern.allows(&command.program, &command.args, &command.env, stdin);
            match bound {
                Some(bound) if grant.effect != Effect::Change => {
                    let paths = bound.paths().cloned().collect();
                    return Ok(Looking { shown: without_secrets(command, &bound), paths });
                }
                Some(_) => only_for_changes = true,
                None => {}
            }
        }
        let line = excerpt(&command_line("", command), SHOWN);
        let why = match only_for_changes {
            true => "it changes something, so it runs only as a step of a plan",
            false => "none of its grants matches",
        };
        Err(denied(format!("module {} may not run `{line}`: {why}", self.module)))
    }

    /// The patterns of the command grants for this program, as they were asked for.
    pub fn patterns_of(&self, program: &str) -> Vec<&str> {
        let of_program = self.commands.iter().filter(|grant| grant.pattern.program() == program);
        of_program.map(|grant| grant.pattern.text()).collect()
    }

    /// Whether the module may read the path, as it was asked for and as it is after symlinks.
    pub fn may_read(&self, asked: &str, real: &str, privilege: &Privilege) -> Result<(), Problem> {
        self.may_reach("read", Glob::admits, asked, real, privilege)
    }

    /// Whether the module may list the directory, as it was asked for and as it is after symlinks.
    pub fn may_list(&self, asked: &str, real: &str, privilege: &Privilege) -> Result<(), Problem> {
        self.may_reach("list", Glob::covers_listing, asked, real, privilege)
    }

    /// Whether a command may be given a path that leads here on the target.
    pub fn may_lead(&self, hole: &HoleType, asked: &str, real: &str) -> Result<(), Problem> {
        if hole.accepts(real) {
            return Ok(());
        }
        let (asked, real) = (excerpt(asked, SHOWN), excerpt(real, SHOWN));
        Err(denied(format!(
            "module {} may not use {asked}, which leads to {real}: expected <{hole}>",
            self.module
        )))
    }

    fn may_reach(
        &self,
        verb: &str,
        grants: impl Fn(&Glob, &str) -> bool,
        asked: &str,
        real: &str,
        privilege: &Privilege,
    ) -> Result<(), Problem> {
        let granted = |path: &str| {
            self.paths.iter().any(|grant| covers(&grant.privilege, privilege) && grants(&grant.glob, path))
        };
        if granted(asked) && (asked == real || granted(real)) {
            return Ok(());
        }
        let (asked, real) = (excerpt(asked, SHOWN), excerpt(real, SHOWN));
        let led = if asked == real { String::new() } else { format!(", which leads to {real}") };
        Err(denied(format!(
            "module {} may not {verb} {asked}{led}: none of its grants covers it",
            self.module
        )))
    }
}

/// `#0` and the like are other spellings of users, root's among them.
fn known_user(privilege: &Privilege) -> Result<(), GrantError> {
    match privilege {
        Privilege::User(name) if !HoleType::User.accepts(name) => Err(GrantError::User(name.clone())),
        _ => Ok(()),
    }
}

/// A grant's privilege is a ceiling.
fn covers(granted: &Privilege, asked: &Privilege) -> bool {
    match (granted, asked) {
        // Another account's rights aren't more than the caller's, but others.
        (Privilege::Caller | Privilege::Root | Privilege::RootIfAvailable, Privilege::Caller) => true,
        (Privilege::Root, Privilege::Root | Privilege::RootIfAvailable) => true,
        (Privilege::RootIfAvailable, Privilege::RootIfAvailable) => true,
        (Privilege::User(granted), Privilege::User(asked)) => granted == asked,
        _ => false,
    }
}

fn denied(message: String) -> Problem {
    Problem::new("CAPABILITY_DENIED", Category::Denied, message)
}

/// Its arguments with what a `<secret>` took replaced, wherever it stands.
fn without_secrets(command: &Command, bound: &Match) -> Command {
    let mut shown = Command { stdin: None, ..command.clone() };
    let secrets = bound.holes.iter().filter(|(hole, value)| *hole == HoleType::Secret && !value.is_empty());
    for (_, secret) in secrets {
        for arg in &mut shown.args {
            *arg = arg.replace(secret, "<secret>");
        }
    }
    shown
}

/// For people: what it runs as, variables, tokens quoted where a shell would need it.
pub fn command_line(prefix: &str, command: &Command) -> String {
    let mut line = prefix.to_owned();
    for (name, value) in &command.env {
        let _ = write!(line, "{name}={} ", quoted(value));
    }
    line.push_str(&quoted(&command.program));
    for arg in &command.args {
        line.push(' ');
        line.push_str(&quoted(arg));
    }
    line
}

fn quoted(token: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_=+,.:/@%".contains(&byte);
    if !token.is_empty() && token.bytes().all(plain) {
        return token.to_owned();
    }
    format!("'{}'", token.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests;
pub struct Granted {
    pub shown: Command,
    pub paths: Vec<(HoleType, String)>,
    pub risk: super::Risk,
    pub pattern: String,
}
impl Grants {
    pub fn may_change(&self, _: &Command) -> Result<Granted, Problem> {
        Err(denied("".into()))
    }
    pub fn may_simulate(&self, _: &Command) -> Result<Granted, Problem> {
        Err(denied("".into()))
    }
    pub fn may_validate(&self, _: &Command, _: &str) -> Result<Granted, Problem> {
        Err(denied("".into()))
    }
    pub fn may_write(&self, _: &str, _: &str, _: &Privilege) -> Result<(), Problem> {
        Err(denied("".into()))
    }
}
