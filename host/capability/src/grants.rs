//! A module's grants. Every check of them is made here.

use std::sync::Arc;

use super::data_directory::DataDirectory;
use super::hole::HoleType;
use super::path::{Glob, PathText, is_secret};
use super::pattern::{Match, Pattern, PatternError};
use super::request::{
    AnyProgramRequest, CommandRequest, Effect, OwnProgramRequest, PathRequest, Place, SignalRequest,
};
use super::staging::Staging;
use super::verbs::{
    Verb, verbs_beside, verbs_for_any_program, verbs_for_command, verbs_for_moves, verbs_for_validation_of,
};
use crate::access::Access;
use host_base::problem::{Category, Problem};
use host_base::{Command, Privilege};
use host_text::visible::excerpt;

mod change;
mod closest;
mod redaction;

pub use change::GrantedStep;
pub use redaction::command_line;
use redaction::{without_certain_secrets, without_likely_secrets, without_secrets};

/// The greatest length of a quotation in a message.
const MAX_QUOTED: usize = 300;
/// The greatest number of requests of one module. Each command is compared with each path.
const MAX_REQUESTS: usize = 500;
/// The greatest number of the host's own commands for one module.
const MAX_VERBS: usize = 4000;

/// The greatest length of a tool's name.
const MAX_TOOL_NAME: usize = 64;

/// The directory of the modules' own programs. No other program looks there for files.
const OWN_PROGRAMS: &str = "/usr/local/lib/linux-sysadmin/";

/// A granted command line.
#[derive(Clone, Debug)]
struct CommandGrant {
    pattern: Pattern,
    request: CommandRequest,
}

/// Granted files.
#[derive(Clone, Debug)]
struct PathGrant {
    glob: Glob,
    /// The globs of the copies that the host makes beside files that plans may write.
    staging: Option<Staging>,
    request: PathRequest,
}

/// A command by which a module may look.
#[derive(Clone, Debug)]
pub struct GrantedLook {
    /// The command as it may be shown: without secrets.
    pub shown: Command,
    /// The values of its holes for paths. They were checked as text. The caller checks with [`Grants::may_lead`] where
    /// they lead on the target.
    pub paths: Vec<(HoleType, String)>,
    /// True where no grant names the command, and the module may run any program. Then the policy alone decides whether
    /// the command looks.
    pub is_any_program: bool,
    /// Whether its output is to be looked through for secrets before the module gets it: it reads files that only a wildcard
    /// names.
    pub is_looked_through: bool,
}

/// The reason why a request can't be granted. The host refuses the module that makes it.
#[derive(Debug, thiserror::Error)]
pub enum GrantError {
    /// The pattern of a command can't be parsed.
    #[error("command grant `{0}`: {1}")]
    Pattern(String, super::pattern::PatternError),
    /// The request is understood, but the host grants no such thing.
    #[error("grant `{0}`: {1}, which this version of the host can't grant")]
    Ungrantable(String, &'static str),
    /// The name of an account is not valid.
    #[error("{0:?} is no user's name")]
    User(String),
    /// The glob of a path can't be parsed.
    #[error("path grant `{0}`: {1}")]
    Glob(String, super::path::GlobError),
    /// A directory on the controller is not one of data.
    #[error("path grant `{0}` on the controller: {1}")]
    Directory(String, String),
    /// The paths are too long for the host's own commands that look at them.
    #[error("grant `{0}`: expected paths short enough for the commands that look at them: {1}")]
    Verbs(String, PatternError),
    /// The module has too many requests.
    #[error(
        "expected at most {MAX_REQUESTS} grants, and paths in them for which {MAX_VERBS} commands are enough"
    )]
    TooMany,
}

/// The grants of one module. Empty grants allow nothing. A call that gets profiles of services has grants of its own,
/// which share the patterns.
#[derive(Clone, Debug, Default)]
pub struct Grants {
    module: String,
    commands: Vec<Arc<CommandGrant>>,
    paths: Vec<Arc<PathGrant>>,
    directories: Vec<DataDirectory>,
    /// The most rights with which the module may run any program.
    any_program: Vec<Privilege>,
    /// The most rights with which the module may send signals.
    signals: Vec<Privilege>,
    /// The module's own programs.
    own_programs: Vec<OwnProgramRequest>,
    /// The names of other modules' tools that the module may call.
    tools: Vec<String>,
    /// The host's own commands for the granted paths, each with the most rights that it may take.
    verbs: Vec<(Privilege, Arc<Verb>)>,
    /// Files that may never be read, whatever else covers them.
    denied: Vec<Arc<Glob>>,
    /// True where what only a wildcard covers is looked through for secrets.
    looks_through_wildcards: bool,
}

impl Grants {
    /// Makes empty grants for the module of this name.
    pub fn new(module: &str) -> Self {
        Self { module: module.to_owned(), ..Self::default() }
    }

    /// Grants a command line.
    pub fn command(&mut self, request: &CommandRequest) -> Result<(), GrantError> {
        let text = &request.pattern;
        let pattern = Pattern::parse(text).map_err(|error| GrantError::Pattern(text.clone(), error))?;
        if request.place != Place::Target {
            return Err(GrantError::Ungrantable(text.clone(), "it is to run on the controller"));
        }
        check_user(&request.privilege)?;
        let of_staging =
            |hole: &HoleType| matches!(hole, HoleType::Path(Some(glob)) if glob.mentions_staging());
        if pattern.holes().any(of_staging) {
            return Err(GrantError::Ungrantable(text.clone(), OF_STAGING));
        }
        self.add_verbs(text, &request.privilege, verbs_for_command(&pattern, &request.privilege))?;
        let of_files = |grant: &Arc<PathGrant>| {
            let PathGrant { glob, staging, request: files } = grant.as_ref();
            let verbs = verbs_for_validation_of(request, &pattern, files, glob, staging.as_ref());
            (files.privilege.clone(), verbs)
        };
        for (privilege, verbs) in self.paths.iter().map(of_files).collect::<Vec<_>>() {
            self.add_verbs(text, &privilege, verbs)?;
        }
        self.commands.push(Arc::new(CommandGrant { pattern, request: request.clone() }));
        self.check_count()
    }

    /// Grants files.
    pub fn path(&mut self, request: &PathRequest) -> Result<(), GrantError> {
        let text = &request.glob;
        let glob = Glob::parse(text).map_err(|error| GrantError::Glob(text.clone(), error))?;
        check_user(&request.privilege)?;
        let ungrantable = |why| Err(GrantError::Ungrantable(text.clone(), why));
        if glob.mentions_staging() {
            return ungrantable(OF_STAGING);
        }
        if request.write && request.place == Place::Controller {
            return ungrantable("it is on the controller, to be written to");
        }
        if request.write && request.privilege == Privilege::RootIfAvailable {
            return ungrantable(
                "it is to be written to as root-if-available and not as caller, root or user:NAME",
            );
        }
        let staging = match request.write {
            true => Staging::beside(&glob).map_err(|error| GrantError::Glob(text.clone(), error))?,
            false => None,
        };
        if request.write && staging.is_none() {
            return ungrantable("it is the root directory, to be written to");
        }
        if request.place == Place::Controller {
            if request.privilege != Privilege::Caller {
                return ungrantable("it is on the controller, with other rights");
            }
            let wrong = |expected| GrantError::Directory(text.clone(), expected);
            self.directories.push(DataDirectory::parse(text).map_err(wrong)?);
            return self.check_count();
        }
        self.add_verbs(text, &request.privilege, verbs_beside(request, staging.as_ref()))?;
        let of_command = |grant: &Arc<CommandGrant>| {
            verbs_for_validation_of(&grant.request, &grant.pattern, request, &glob, staging.as_ref())
        };
        for verbs in self.commands.iter().map(of_command).collect::<Vec<_>>() {
            self.add_verbs(text, &request.privilege, verbs)?;
        }
        self.paths.push(Arc::new(PathGrant { glob, staging, request: request.clone() }));
        let between = |grant: &Arc<PathGrant>| verbs_for_moves(&grant.request, request);
        for verbs in self.paths.iter().map(between).collect::<Vec<_>>() {
            self.add_verbs(text, &request.privilege, verbs)?;
        }
        self.check_count()
    }

    /// Grants any program.
    pub fn any_program(&mut self, request: &AnyProgramRequest) -> Result<(), GrantError> {
        if request.place != Place::Target {
            let why = "it is to run on the controller";
            return Err(GrantError::Ungrantable("any program".to_owned(), why));
        }
        check_user(&request.privilege)?;
        self.any_program.push(request.privilege.clone());
        self.add_verbs("any program", &request.privilege, verbs_for_any_program(&request.privilege))?;
        self.check_count()
    }

    /// Grants signals to processes.
    pub fn signals(&mut self, request: &SignalRequest) -> Result<(), GrantError> {
        let ungrantable = |why| Err(GrantError::Ungrantable("signals".to_owned(), why));
        if request.place != Place::Target {
            return ungrantable("they are for the controller");
        }
        if request.privilege == Privilege::RootIfAvailable {
            return ungrantable("they are root-if-available and not caller, root or user:NAME");
        }
        check_user(&request.privilege)?;
        self.signals.push(request.privilege.clone());
        self.check_count()
    }

    /// Grants a program of the module's own.
    pub fn own_program(&mut self, request: &OwnProgramRequest) -> Result<(), GrantError> {
        let ungrantable = |why| Err(GrantError::Ungrantable(request.path.clone(), why));
        let is_letter = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-');
        let name = request.path.strip_prefix(OWN_PROGRAMS);
        if !name.is_some_and(|name| !name.is_empty() && name.bytes().all(is_letter)) {
            return ungrantable("a module's own program isn't /usr/local/lib/linux-sysadmin/NAME");
        }
        let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        if request.sha256.len() != 64 || !request.sha256.bytes().all(is_digit) {
            return ungrantable("its SHA-256 isn't 64 hexadecimal digits in lower case");
        }
        self.own_programs.push(request.clone());
        self.check_count()
    }

    /// Grants calls of another module's tool. Only its exact name counts.
    pub fn tool(&mut self, name: &str) -> Result<(), GrantError> {
        let is_letter = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_');
        if !(1..=MAX_TOOL_NAME).contains(&name.len()) || !name.bytes().all(is_letter) {
            let why = "it is to call a tool whose name isn't [a-z0-9_], 1 to 64 characters";
            return Err(GrantError::Ungrantable(name.chars().take(MAX_TOOL_NAME).collect(), why));
        }
        self.tools.push(name.to_owned());
        self.check_count()
    }

    /// Denies reading these files, whatever else covers them.
    pub fn deny(&mut self, text: &str) -> Result<(), GrantError> {
        let glob = Glob::parse(text).map_err(|error| GrantError::Glob(text.to_owned(), error))?;
        self.denied.push(Arc::new(glob));
        Ok(())
    }

    /// Has what the module reads looked through for secrets where only a wildcard grants it: the contents of files, and the
    /// output of commands with such paths.
    #[must_use]
    pub fn with_wildcards_looked_through(mut self) -> Self {
        self.looks_through_wildcards = true;
        self
    }

    /// Whether the contents of a file are to be looked through for secrets before the module gets them. They are not where
    /// a grant names the file without a wildcard, or where plans may write it: a plan needs the whole contents to change a
    /// part of them, and the operator is asked about each such grant.
    pub fn is_looked_through(&self, path: &str, privilege: &Privilege) -> bool {
        let path = PathText::new(path);
        let mut covering = self
            .paths
            .iter()
            .filter(|grant| covers(&grant.request.privilege, privilege) && grant.glob.admits_text(&path));
        self.looks_through_wildcards
            && covering.all(|grant| !grant.request.write && grant.glob.text().contains('*'))
    }

    /// These grants together with others. What any of them denies stays denied.
    pub fn with<'a>(&self, others: impl IntoIterator<Item = &'a Self>) -> Self {
        let mut all = self.clone();
        for other in others {
            all.commands.extend_from_slice(&other.commands);
            all.paths.extend_from_slice(&other.paths);
            all.any_program.extend_from_slice(&other.any_program);
            all.signals.extend_from_slice(&other.signals);
            all.own_programs.extend_from_slice(&other.own_programs);
            all.tools.extend_from_slice(&other.tools);
            all.verbs.extend_from_slice(&other.verbs);
            all.denied.extend_from_slice(&other.denied);
        }
        all
    }

    /// The directories that the module reads by itself, on the machine that the server runs on.
    pub fn directories(&self) -> &[DataDirectory] {
        &self.directories
    }

    fn add_verbs(
        &mut self,
        grant: &str,
        privilege: &Privilege,
        verbs: Result<Vec<Verb>, PatternError>,
    ) -> Result<(), GrantError> {
        let verbs = verbs.map_err(|error| GrantError::Verbs(grant.to_owned(), error))?;
        self.verbs.extend(verbs.into_iter().map(|verb| (privilege.clone(), Arc::new(verb))));
        self.check_count()
    }

    fn check_count(&self) -> Result<(), GrantError> {
        let requests = self.commands.len()
            + self.paths.len()
            + self.directories.len()
            + self.any_program.len()
            + self.signals.len()
            + self.own_programs.len()
            + self.tools.len();
        if requests > MAX_REQUESTS || self.verbs.len() > MAX_VERBS {
            Err(GrantError::TooMany)
        } else {
            Ok(())
        }
    }

    /// Returns the way to access paths with these rights.
    pub fn access(&self, privilege: &Privilege) -> Access {
        let granted = self.verbs.iter().filter(|(granted, _)| covers(granted, privilege));
        Access { privilege: privilege.clone(), verbs: granted.map(|(_, verb)| verb.clone()).collect() }
    }

    /// Whether the module may look by this command.
    pub fn may_look(&self, command: &Command) -> Result<GrantedLook, Problem> {
        let mut only_for_changes = false;
        for (grant, matched) in self.matching(command) {
            if grant.request.effect != Effect::Change {
                let paths: Vec<_> = matched.paths().cloned().collect();
                let shown = without_secrets(command, &matched);
                let is_open = |(hole, _): &(HoleType, String)| match hole {
                    HoleType::Path(Some(glob)) => glob.text().contains('*'),
                    _ => true,
                };
                let is_looked_through = self.looks_through_wildcards && paths.iter().any(is_open);
                return Ok(GrantedLook { shown, paths, is_any_program: false, is_looked_through });
            }
            only_for_changes = true;
        }
        if self.may_run_any(command) {
            let shown = Command { stdin: None, ..command.clone() };
            let (is_any_program, is_looked_through) = (true, false);
            return Ok(GrantedLook { shown, paths: Vec::new(), is_any_program, is_looked_through });
        }
        Err(match only_for_changes {
            true => self.may_not_run(command, "it changes something, so it runs only as a step of a plan"),
            false => self.matches_none(command),
        })
    }

    /// The problem of a command that no grant matches.
    fn matches_none(&self, command: &Command) -> Problem {
        self.may_not_run(command, &format!("none of its grants matches{}", self.closest(command)))
    }

    /// The grants that match the command, with the values of their holes.
    fn matching(&self, command: &Command) -> impl Iterator<Item = (&CommandGrant, Match)> {
        let covering =
            self.commands.iter().filter(|grant| covers(&grant.request.privilege, &command.privilege));
        covering.filter_map(|grant| {
            let (args, env, stdin) = (&command.args, &command.env, command.stdin.is_some());
            Some((grant.as_ref(), grant.pattern.allows(&command.program, args, env, stdin)?))
        })
    }

    /// Whether the module may run any program with the rights that the command takes.
    fn may_run_any(&self, command: &Command) -> bool {
        self.any_program.iter().any(|granted| covers(granted, &command.privilege))
    }

    /// Whether a plan may send signals to processes with these rights.
    pub fn may_signal(&self, privilege: &Privilege) -> Result<(), Problem> {
        let is_certain = *privilege != Privilege::RootIfAvailable;
        match is_certain && self.signals.iter().any(|granted| covers(granted, privilege)) {
            true => Ok(()),
            false => Err(denied(format!(
                "module {} may not send signals as {}: none of its grants covers it",
                self.module,
                String::from(privilege.clone())
            ))),
        }
    }

    /// Whether the module may call this tool of another module.
    pub fn may_call(&self, tool: &str) -> Result<(), Problem> {
        match self.tools.iter().any(|granted| granted == tool) {
            true => Ok(()),
            false => Err(denied(format!(
                "module {} may not call {}: none of its grants names that tool",
                self.module,
                excerpt(tool, MAX_QUOTED)
            ))),
        }
    }

    /// Whether the path is the directory of the modules' own programs, and the module has one.
    pub fn is_for_own_programs(&self, path: &str) -> bool {
        OWN_PROGRAMS.strip_suffix('/') == Some(path) && !self.own_programs.is_empty()
    }

    /// The SHA-256 of the module's own program at a path, if one may be there.
    pub fn own_program_at(&self, path: &str) -> Option<&str> {
        self.own_programs.iter().find(|own| own.path == path).map(|own| own.sha256.as_str())
    }

    fn may_not_run(&self, command: &Command, why: &str) -> Problem {
        let patterns = self.commands.iter().map(|grant| &grant.pattern);
        let shown = without_likely_secrets(command, patterns);
        let line = excerpt(&command_line("", &shown), MAX_QUOTED);
        denied(format!("module {} may not run `{line}`: {why}", self.module))
    }

    /// The patterns of the command grants for this program, as the module requested them.
    pub fn patterns_of(&self, program: &str) -> Vec<&str> {
        let of_program = self.commands.iter().filter(|grant| grant.pattern.program() == program);
        of_program.map(|grant| grant.pattern.text()).collect()
    }

    /// Whether the module may read the path, both as it was given and as it is after symlinks.
    pub fn may_read(&self, asked: &str, real: &str, privilege: &Privilege) -> Result<(), Problem> {
        self.may_reach("read", Glob::admits_text, asked, real, privilege)
    }

    /// Refuses a path that is, by this other name, a file that holds secrets. A mount gives a file such a name.
    pub fn may_be(&self, asked: &str, other: &str) -> Result<(), Problem> {
        let text = PathText::new(other);
        let is_granted = || self.paths.iter().any(|grant| grant.glob.admits_text(&text));
        let is_denied = self.denied.iter().any(|glob| glob.matches_text(&text));
        match is_denied || is_secret(other) && !is_granted() {
            true => Err(self.may_not_reach("use", asked, other, "secrets are kept there")),
            false => Ok(()),
        }
    }

    /// Whether the module may list the directory, both as it was given and as it is after symlinks.
    pub fn may_list(&self, asked: &str, real: &str, privilege: &Privilege) -> Result<(), Problem> {
        self.may_reach("list", Glob::covers_listing, asked, real, privilege)
    }

    /// Whether the module may ask who holds the file, both as it was given and as it is after symlinks. A grant to read
    /// or write the file with any rights is enough. For any other file the module isn't told whether somebody uses it.
    pub fn may_lock(&self, asked: &str, real: &str) -> Result<(), Problem> {
        let granted = |path: &str| {
            let path = PathText::new(path);
            self.paths.iter().any(|grant| grant.glob.admits_text(&path))
        };
        match granted(asked) && (asked == real || granted(real)) {
            true => Ok(()),
            false => Err(self.may_not_reach("ask who holds", asked, real, "none of its grants covers it")),
        }
    }

    /// Whether the value of a path hole may lead to this path on the target.
    pub fn may_lead(&self, hole: &HoleType, asked: &str, real: &str) -> Result<(), Problem> {
        if hole.accepts(real) {
            return Ok(());
        }
        let (asked, real) = (excerpt(asked, MAX_QUOTED), excerpt(real, MAX_QUOTED));
        Err(denied(format!(
            "module {} may not use {asked}, which leads to {real}: expected <{hole}>",
            self.module
        )))
    }

    fn may_reach(
        &self,
        verb: &str,
        grants: impl Fn(&Glob, &PathText<'_>) -> bool,
        asked: &str,
        real: &str,
        privilege: &Privilege,
    ) -> Result<(), Problem> {
        let is_denied = |path: &PathText<'_>| self.denied.iter().any(|glob| glob.matches_text(path));
        let is_granted = |path: &PathText<'_>| {
            let mut paths = self.paths.iter();
            paths.any(|grant| covers(&grant.request.privilege, privilege) && grants(&grant.glob, path))
        };
        let [asked_text, real_text] = [asked, real].map(PathText::new);
        let is_other = asked != real;
        if is_denied(&asked_text) || is_other && is_denied(&real_text) {
            return Err(self.may_not_reach(verb, asked, real, "a service keeps secrets there"));
        }
        if is_granted(&asked_text) && (!is_other || is_granted(&real_text)) {
            return Ok(());
        }
        Err(self.may_not_reach(verb, asked, real, "none of its grants covers it"))
    }

    fn may_not_reach(&self, verb: &str, asked: &str, real: &str, why: &str) -> Problem {
        let (asked, real) = (excerpt(asked, MAX_QUOTED), excerpt(real, MAX_QUOTED));
        let led = if asked == real { String::new() } else { format!(", which leads to {real}") };
        denied(format!("module {} may not {verb} {asked}{led}: {why}", self.module))
    }
}

const OF_STAGING: &str = "it names the directories that the host keeps its own copies in";

/// Checks an account's name. `#0` and the like are other spellings of accounts, including root.
fn check_user(privilege: &Privilege) -> Result<(), GrantError> {
    match privilege {
        Privilege::User(name) if name != ANY_USER && !HoleType::User.accepts(name) => {
            Err(GrantError::User(name.clone()))
        }
        _ => Ok(()),
    }
}

/// The account in a grant that stands for any account except root.
pub const ANY_USER: &str = "*";

/// Whether a grant with these rights allows the rights that are asked for.
fn covers(granted: &Privilege, asked: &Privilege) -> bool {
    match (granted, asked) {
        // An account's rights don't include the caller's, so `User` isn't in this row.
        (Privilege::Caller | Privilege::Root | Privilege::RootIfAvailable, Privilege::Caller) => true,
        (Privilege::Root, Privilege::Root | Privilege::RootIfAvailable) => true,
        (Privilege::RootIfAvailable, Privilege::RootIfAvailable) => true,
        (Privilege::User(granted), Privilege::User(asked)) if granted == ANY_USER => {
            asked != "root" && HoleType::User.accepts(asked)
        }
        (Privilege::User(granted), Privilege::User(asked)) => granted == asked && asked != ANY_USER,
        _ => false,
    }
}

fn denied(message: String) -> Problem {
    Problem::new("CAPABILITY_DENIED", Category::Denied, message)
}

#[cfg(test)]
mod tests;
