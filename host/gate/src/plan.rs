//! A plan as a module hands it over: data, complete before its first step.

use std::time::Duration;

use super::locks::Lock;
use host_base::Risk;
use host_base::problem::{Category, Problem};
use host_base::{Command, Privilege};

/// Steps of one plan.
const STEPS: usize = 64;
/// Commands of one kind beside them: of one step's undo, or after the undo.
const COMMANDS: usize = 16;
/// Warnings, affected services, locks.
const TEXTS: usize = 50;
/// Contents of all files together, and what commands read.
const BYTES: usize = 8 << 20;
/// A guard that waits longer is none.
const LONGEST_GUARD: Duration = Duration::from_secs(600);

/// A change to a target.
#[derive(Clone, Debug)]
pub struct Change {
    /// One sentence.
    pub summary: String,
    /// In order.
    pub steps: Vec<Step>,
    /// Run after an undo, whatever failed.
    pub after_undo: Vec<Command>,
    /// How long the target waits for the host after the last step, before it undoes the change by itself.
    pub guard: Option<Duration>,
    /// What must not be held by somebody else.
    pub locks: Vec<Lock>,
    /// At least.
    pub risk: Option<Risk>,
    /// For whoever decides.
    pub warnings: Vec<String>,
    /// Units that stop or restart.
    pub affected_services: Vec<String>,
    /// The program's own simulation.
    pub dry_run: Option<Command>,
}

/// One step.
#[derive(Clone, Debug)]
pub struct Step {
    /// What it does.
    pub action: Action,
    /// Run where the step had succeeded and a later one failed.
    pub undo: Vec<Command>,
}

/// What a step does.
#[derive(Clone, Debug)]
pub enum Action {
    /// Runs a command.
    Run(Run),
    /// Writes a file.
    Write(Write),
    /// Removes a file.
    Remove(FilePath),
    /// Creates a directory.
    MakeDirectory(Directory),
}

/// A command.
#[derive(Clone, Debug)]
pub struct Run {
    /// What runs.
    pub command: Command,
    /// Exit codes that are success.
    pub success: Vec<i32>,
    /// Whether it may be killed once it has started.
    pub interruptible: bool,
}

/// A file or directory, and whose rights touch it.
#[derive(Clone, Debug)]
pub struct FilePath {
    /// As it was asked for.
    pub path: String,
    /// Never `RootIfAvailable`: the grants refuse it.
    pub privilege: Privilege,
}

/// A file's new contents.
#[derive(Clone, Debug)]
pub struct Write {
    /// Where.
    pub at: FilePath,
    /// All of them.
    pub contents: Vec<u8>,
    /// Permission bits.
    pub mode: Option<u32>,
    /// Whose.
    pub owner: Option<String>,
    /// Whose.
    pub group: Option<String>,
    /// Not shown, but for its hash.
    pub sensitive: bool,
    /// With `{}` for the staged copy.
    pub validate: Option<Command>,
}

/// A directory that isn't there yet.
#[derive(Clone, Debug)]
pub struct Directory {
    /// Where.
    pub at: FilePath,
    /// Permission bits.
    pub mode: u32,
    /// Whose.
    pub owner: Option<String>,
    /// Whose.
    pub group: Option<String>,
}

impl Action {
    /// The file or directory that it touches, if it isn't a command.
    pub fn path(&self) -> Option<&FilePath> {
        match self {
            Self::Run(_) => None,
            Self::Write(write) => Some(&write.at),
            Self::Remove(at) => Some(at),
            Self::MakeDirectory(directory) => Some(&directory.at),
        }
    }
}

impl Change {
    /// A problem where it is no plan that could be shown and executed.
    pub fn check(&self) -> Result<(), Problem> {
        let within = |what: &str, count: usize, most: usize| match count > most {
            true => Err(invalid(format!("{count} {what}; at most {most} are taken"))),
            false => Ok(()),
        };
        if self.steps.is_empty() {
            return Err(invalid("no step; a plan that changes nothing isn't handed over"));
        }
        within("steps", self.steps.len(), STEPS)?;
        within("commands after the undo", self.after_undo.len(), COMMANDS)?;
        within("warnings", self.warnings.len(), TEXTS)?;
        within("affected services", self.affected_services.len(), TEXTS)?;
        within("locks", self.locks.len(), TEXTS)?;
        if self.guard.is_some_and(|guard| guard.is_zero() || guard > LONGEST_GUARD) {
            let most = LONGEST_GUARD.as_secs();
            return Err(invalid(format!("a guard of another time than 1 to {most} s")));
        }
        let others = self.after_undo.iter().chain(&self.dry_run);
        let mut bytes = others.map(stdin).sum::<usize>();
        let mut paths: Vec<&str> = Vec::new();
        for step in &self.steps {
            within("commands to undo a step", step.undo.len(), COMMANDS)?;
            bytes += step.undo.iter().map(stdin).sum::<usize>();
            bytes += match &step.action {
                Action::Run(run) => stdin(&run.command),
                Action::Write(write) => write.contents.len() + write.validate.as_ref().map_or(0, stdin),
                Action::Remove(_) | Action::MakeDirectory(_) => 0,
            };
            if let Some(FilePath { path, .. }) = step.action.path() {
                if paths.contains(&path.as_str()) {
                    return Err(invalid(format!(
                        "two steps for {path}; its last state is all that one needs"
                    )));
                }
                paths.push(path);
            }
            let modes = match &step.action {
                Action::Write(write) => write.mode,
                Action::MakeDirectory(directory) => Some(directory.mode),
                _ => None,
            };
            if modes.is_some_and(|mode| mode > 0o7777) {
                return Err(invalid("a mode that isn't one of permission bits, 0 to 0o7777"));
            }
        }
        within("bytes of contents", bytes, BYTES)
    }
}

fn stdin(command: &Command) -> usize {
    command.stdin.as_ref().map_or(0, Vec::len)
}

fn invalid(found: impl Into<String>) -> Problem {
    let message = format!("the module handed over a plan with {}", found.into());
    Problem::new("INVALID_PLAN", Category::Internal, message)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use host_base::Keep;

    /// As the caller, within 10 s.
    pub fn command(argv: &[&str]) -> Command {
        Command {
            program: argv[0].to_owned(),
            args: argv[1..].iter().map(|arg| (*arg).to_owned()).collect(),
            env: Vec::new(),
            stdin: None,
            privilege: Privilege::Caller,
            timeout: Duration::from_secs(10),
            keep: Keep::Head,
            heard: None,
        }
    }

    pub fn run(argv: &[&str]) -> Step {
        let run = Run { command: command(argv), success: Vec::new(), interruptible: true };
        Step { action: Action::Run(run), undo: Vec::new() }
    }

    pub fn at(path: &str) -> FilePath {
        FilePath { path: path.to_owned(), privilege: Privilege::Caller }
    }

    pub fn write(path: &str, contents: &str) -> Step {
        let write = Write {
            at: at(path),
            contents: contents.into(),
            mode: None,
            owner: None,
            group: None,
            sensitive: false,
            validate: None,
        };
        Step { action: Action::Write(write), undo: Vec::new() }
    }

    pub fn change(steps: Vec<Step>) -> Change {
        Change {
            summary: "Do it".into(),
            steps,
            after_undo: Vec::new(),
            guard: None,
            locks: Vec::new(),
            risk: None,
            warnings: Vec::new(),
            affected_services: Vec::new(),
            dry_run: None,
        }
    }

    #[test]
    fn what_could_not_be_shown_or_executed_is_no_plan() {
        let mut guarded = change(vec![run(&["true"])]);
        guarded.guard = Some(Duration::from_secs(601));
        let mut suid = write("/a", "");
        if let Action::Write(write) = &mut suid.action {
            write.mode = Some(0o10000);
        }
        for (change, word) in [
            (change(Vec::new()), "no step"),
            (change(vec![run(&["true"]); STEPS + 1]), "65 steps"),
            (change(vec![write("/a", "1"), write("/a", "2")]), "two steps for /a"),
            (change(vec![write("/a", &"x".repeat(BYTES + 1))]), "bytes"),
            (change(vec![suid]), "mode"),
            (guarded, "guard"),
        ] {
            let problem = change.check().unwrap_err();
            assert_eq!(problem.code, "INVALID_PLAN");
            assert!(problem.message.contains(word), "{}", problem.message);
        }
        assert!(change(vec![write("/a", "1"), write("/b", "2"), run(&["true"])]).check().is_ok());
    }
}
