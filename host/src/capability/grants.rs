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
        (_, Privilege::Caller) => true,
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
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::capability::Risk;
    use crate::target::Keep;

    fn command(line: &str) -> Command {
        let mut words = line.split(' ').map(str::to_owned);
        Command {
            program: words.next().unwrap(),
            args: words.collect(),
            env: Vec::new(),
            stdin: None,
            privilege: Privilege::Caller,
            timeout: Duration::from_secs(1),
            keep: Keep::Head,
        }
    }

    fn request(pattern: &str, effect: Effect, privilege: Privilege) -> CommandRequest {
        let (pattern, place, risk) = (pattern.to_owned(), Place::Target, Risk::ReadOnly);
        CommandRequest { pattern, effect, privilege, place, risk, reason: String::new() }
    }

    fn files(glob: &str, privilege: Privilege) -> PathRequest {
        let (glob, place) = (glob.to_owned(), Place::Target);
        PathRequest { glob, write: false, privilege, place, reason: String::new() }
    }

    fn grants() -> Grants {
        let mut grants = Grants::new("test");
        for (pattern, effect, privilege) in [
            ("systemctl show -- <unit>...", Effect::Read, Privilege::Caller),
            ("A=b apt-get --simulate install -- <package>", Effect::DryRun, Privilege::RootIfAvailable),
            ("login --password=<secret> -- <user>", Effect::Read, Privilege::Caller),
            ("sort < stdin", Effect::Read, Privilege::Caller),
            ("tail --lines=<int> -- <path:/var/log/*>...", Effect::Read, Privilege::Caller),
            ("systemctl restart -- <unit>", Effect::Change, Privilege::Root),
        ] {
            grants.command(&request(pattern, effect, privilege)).unwrap();
        }
        for glob in ["/proc/*/stat", "/sys/block/**", "/etc/**"] {
            grants.path(&files(glob, Privilege::Caller)).unwrap();
        }
        grants
    }

    #[test]
    fn without_a_grant_nothing_is_allowed() {
        let none = Grants::new("none");
        assert_eq!(none.may_look(&command("true")).unwrap_err().code, "CAPABILITY_DENIED");
        assert_eq!(
            none.may_read("/proc/stat", "/proc/stat", &Privilege::Caller).unwrap_err().code,
            "CAPABILITY_DENIED"
        );
    }

    #[test]
    fn a_command_needs_a_grant_that_matches_the_whole_of_it() {
        let grants = grants();
        assert!(grants.may_look(&command("systemctl show -- nginx ssh.socket")).is_ok());
        for refused in [
            "systemctl show nginx",
            "systemctl show --",
            "systemctl show -- -Hhost",
            "systemctl show --all -- nginx",
            "systemctl -Hhost show -- nginx",
            "/usr/bin/systemctl show -- nginx",
            "journalctl show -- nginx",
        ] {
            assert_eq!(
                grants.may_look(&command(refused)).unwrap_err().code,
                "CAPABILITY_DENIED",
                "{refused}"
            );
        }
    }

    #[test]
    fn what_the_host_cannot_keep_an_eye_on_is_not_granted() {
        let mut grants = Grants::new("test");
        let mut away = request("id", Effect::Read, Privilege::Caller);
        away.place = Place::Controller;
        assert!(grants.command(&away).unwrap_err().to_string().contains("controller"));
        let mut written = files("/etc/motd", Privilege::Root);
        written.write = true;
        assert!(grants.path(&written).unwrap_err().to_string().contains("written"));
        for user in ["#0", "", "-x", "a b"] {
            let user = || Privilege::User(user.into());
            assert!(grants.command(&request("id", Effect::Read, user())).is_err(), "{:?}", user());
            assert!(grants.path(&files("/etc/passwd", user())).is_err(), "{:?}", user());
        }
    }

    #[test]
    fn a_command_that_is_granted_for_changes_is_none_to_look_by() {
        let mut restart = command("systemctl restart -- nginx");
        restart.privilege = Privilege::Root;
        let refused = grants().may_look(&restart).unwrap_err();
        assert_eq!(refused.code, "CAPABILITY_DENIED");
        assert!(refused.message.contains("step of a plan"), "{}", refused.message);
    }

    #[test]
    fn paths_are_given_to_be_asked_again_for_where_they_lead() {
        let looking = grants().may_look(&command("tail --lines=5 -- /var/log/a /var/log/b")).unwrap();
        let values: Vec<_> = looking.paths.iter().map(|(_, value)| value.as_str()).collect();
        assert_eq!(values, ["/var/log/a", "/var/log/b"]);
        for (hole, value) in &looking.paths {
            assert!(grants().may_lead(hole, value, "/var/log/c").is_ok());
            for outside in ["/etc/shadow", "/var/log/a/b", "/var/log/../log/a", "relative"] {
                let refused = grants().may_lead(hole, value, outside).unwrap_err();
                assert_eq!(refused.code, "CAPABILITY_DENIED");
                assert!(refused.message.contains("expected <path:/var/log/*>"), "{}", refused.message);
            }
        }
    }

    #[test]
    fn a_secret_is_not_shown() {
        let shown = grants().may_look(&command("login --password=hunter2 -- ada")).unwrap().shown;
        assert_eq!(command_line("", &shown), "login '--password=<secret>' -- ada");
    }

    #[test]
    fn what_is_refused_is_told_in_part_only() {
        let mut long = command("systemctl");
        long.args.push("x".repeat(1 << 20));
        assert!(grants().may_look(&long).unwrap_err().message.len() < 600);
        let path = format!("/{}", "x".repeat(1 << 20));
        assert!(grants().may_read(&path, &path, &Privilege::Caller).unwrap_err().message.len() < 600);
    }

    #[test]
    fn a_privilege_is_a_ceiling() {
        let grants = grants();
        for privilege in [Privilege::Root, Privilege::RootIfAvailable, Privilege::User("ada".into())] {
            let mut show = command("systemctl show -- nginx");
            show.privilege = privilege;
            assert!(grants.may_look(&show).is_err());
        }
        let mut simulate = command("apt-get --simulate install -- nginx");
        simulate.env.push(("A".into(), "b".into()));
        assert!(grants.may_look(&simulate).is_ok());
        simulate.privilege = Privilege::RootIfAvailable;
        assert!(grants.may_look(&simulate).is_ok());
        simulate.privilege = Privilege::Root;
        assert!(grants.may_look(&simulate).is_err());
    }

    #[test]
    fn variables_and_stdin_are_only_what_the_pattern_says() {
        let grants = grants();
        let mut simulate = command("apt-get --simulate install -- nginx");
        assert!(grants.may_look(&simulate).is_err());
        simulate.env = vec![("A".into(), "c".into())];
        assert!(grants.may_look(&simulate).is_err());
        simulate.env = vec![("A".into(), "b".into()), ("LD_PRELOAD".into(), "x".into())];
        assert!(grants.may_look(&simulate).is_err());
        let mut show = command("systemctl show -- nginx");
        show.stdin = Some(Vec::new());
        assert!(grants.may_look(&show).is_err());
        let mut sort = command("sort");
        sort.stdin = Some(b"x".to_vec());
        assert!(grants.may_look(&sort).is_ok());
    }

    #[test]
    fn a_path_is_checked_as_asked_and_as_it_is() {
        let grants = grants();
        let check = |asked, real| grants.may_read(asked, real, &Privilege::Caller).is_ok();
        assert!(check("/proc/1/stat", "/proc/1/stat"));
        assert!(check("/sys/block/vda/stat", "/sys/block/vda/stat"));
        assert!(!check("/sys/block/vda/stat", "/sys/devices/virtual/block/vda/stat"));
        assert!(check("/etc/os-release", "/etc/os-release"));
        assert!(!check("/proc/1/environ", "/proc/1/environ"));
        assert!(!check("/etc/../root/x", "/etc/../root/x"));
        assert!(!check("/etc/link", "/root/secret"));
        assert!(!check("/sys/block/vda/stat", "/etc/../root"));
        assert!(!check("relative", "relative"));
    }

    #[test]
    fn a_directory_is_listed_where_what_is_in_it_may_be_read() {
        let grants = grants();
        let check = |path| grants.may_list(path, path, &Privilege::Caller).is_ok();
        assert!(check("/sys/block"));
        assert!(check("/etc"));
        assert!(!check("/root"));
        assert!(grants.may_list("/etc/link", "/root", &Privilege::Caller).is_err());
    }

    #[test]
    fn the_hosts_own_commands_are_those_of_grants_that_cover_the_privilege() {
        let mut grants = Grants::new("test");
        grants.path(&files("/etc/passwd", Privilege::Caller)).unwrap();
        grants.path(&files("/etc/sudoers", Privilege::Root)).unwrap();
        grants.path(&files("/home/ada/**", Privilege::User("ada".into()))).unwrap();
        grants.command(&request("head -- <path:/srv/*>", Effect::Read, Privilege::RootIfAvailable)).unwrap();
        for (privilege, named) in [
            (Privilege::Root, &["/etc/sudoers"][..]),
            (Privilege::RootIfAvailable, &["/etc/sudoers", "/srv/*"]),
            (Privilege::User("ada".into()), &["/home/ada/**"]),
            (Privilege::User("bob".into()), &[]),
        ] {
            let verbs = grants.access(&privilege).verbs;
            for glob in ["/etc/passwd", "/etc/sudoers", "/home/ada/**", "/srv/*"] {
                let hole = format!("<path:{glob}>");
                let found = verbs.iter().any(|verb| verb.text().contains(&hole));
                assert_eq!(found, named.contains(&glob), "{privilege:?} {glob}");
            }
        }
    }

    #[test]
    fn a_secret_is_covered_only_by_a_grant_that_names_it() {
        let mut grants = grants();
        let shadow =
            |grants: &Grants| grants.may_read("/etc/shadow", "/etc/shadow", &Privilege::Caller).is_ok();
        assert!(!shadow(&grants));
        grants.path(&files("/etc/shadow", Privilege::Caller)).unwrap();
        assert!(shadow(&grants));
    }

    #[test]
    fn a_command_line_is_shown_as_a_shell_would_need_it() {
        let mut shown = command("printf %s");
        shown.args.extend(["a b".into(), "it's".into(), String::new()]);
        shown.env.push(("LANG".into(), "C x".into()));
        assert_eq!(command_line("sudo -n ", &shown), "sudo -n LANG='C x' printf %s 'a b' 'it'\\''s' ''");
    }
}
