//! A plan as a module hands it over: data that is complete before its first step.

use std::time::Duration;

use super::resource_locks::ResourceLock;
use super::signals;
use host_base::Risk;
use host_base::problem::{Category, Problem};
use host_base::{Command, Privilege};
use host_target::ProcessSignal;

/// The largest number of steps of a plan. The names of the copies' directories have room for as many.
const STEPS: usize = 256;
/// The largest number of commands in one step's undo, and of commands after the undo.
const COMMANDS: usize = 16;
/// The largest number of warnings, of affected services, and of locks.
const TEXTS: usize = 50;
/// The largest number of bytes of all files' contents and all commands' input together.
const BYTES: usize = 8 << 20;
/// The longest time to wait for a machine that restarts.
const LONGEST_RESTART: Duration = Duration::from_secs(1800);
/// The longest time that a guard may wait.
const LONGEST_GUARD: Duration = Duration::from_secs(600);

/// A change to a target.
#[derive(Clone, Debug)]
pub struct Change {
    /// One sentence about the change.
    pub summary: String,
    /// The steps, in order.
    pub steps: Vec<Step>,
    /// Commands that run after every undo, whichever step failed.
    pub after_undo: Vec<Command>,
    /// The time that the target waits for the host after the last step, before it undoes the change by itself.
    pub guard: Option<Duration>,
    /// The effect of the last step on the whole machine.
    pub power: Option<PowerChange>,
    /// The resources that nobody else may hold.
    pub locks: Vec<ResourceLock>,
    /// The lowest risk that the module gives this plan.
    pub risk: Option<Risk>,
    /// Warnings for the person who decides.
    pub warnings: Vec<String>,
    /// The units that stop or restart.
    pub affected_services: Vec<String>,
    /// The command by which the program itself simulates the change.
    pub dry_run: Option<Command>,
}

/// The effect of a plan's last step on the whole machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PowerChange {
    /// The machine restarts. The host waits so long for it, where it reaches it over the network.
    Restart(Duration),
    /// The machine is turned off.
    Off,
}

/// One step of a plan.
#[derive(Clone, Debug)]
pub struct Step {
    /// The action of the step.
    pub action: Action,
    /// The commands that undo the step. They run where the step succeeded and a later one failed.
    pub undo: Vec<Command>,
}

/// The action of a step.
#[derive(Clone, Debug)]
pub enum Action {
    /// Runs a command.
    Run(Run),
    /// Writes a file.
    Write(Write),
    /// Removes a file, or a symbolic link itself.
    Remove(FilePath),
    /// Creates a directory.
    MakeDirectory(Directory),
    /// Moves a file or a directory to a place where nothing is.
    Move(Move),
    /// Sets mode, owner and group of a file or a directory.
    SetAttributes(Attributes),
    /// Removes a directory that is empty, or that earlier steps have emptied.
    RemoveDirectory(FilePath),
    /// Sends a signal to processes.
    Signal(ProcessSignal),
}

/// A command of a plan.
#[derive(Clone, Debug)]
pub struct Run {
    /// The command.
    pub command: Command,
    /// Further commands, each of which reads what the one before it prints.
    pub piped: Vec<Command>,
    /// True where any exit code counts as success, because the caller is told it.
    pub any_exit: bool,
    /// The exit codes that mean success. An empty list stands for 0.
    pub success: Vec<i32>,
    /// True where the command may be killed once it has started.
    pub interruptible: bool,
}

/// A file or directory, and the rights that it is reached with.
#[derive(Clone, Debug)]
pub struct FilePath {
    /// The path as the module gave it.
    pub path: String,
    /// The rights. They are never `RootIfAvailable`: the grants refuse it.
    pub privilege: Privilege,
}

/// A file's new contents.
#[derive(Clone, Debug)]
pub struct Write {
    /// The file.
    pub at: FilePath,
    /// The whole contents.
    pub contents: Vec<u8>,
    /// The permission bits. None keeps those of the former file.
    pub mode: Option<u32>,
    /// The owner's name. None keeps the former owner.
    pub owner: Option<String>,
    /// The group's name. None keeps the former group.
    pub group: Option<String>,
    /// True where only the hash of the contents may be shown.
    pub sensitive: bool,
    /// A command that validates the file, with `{}` for the path of the new file.
    pub validate: Option<Command>,
}

/// A new directory.
#[derive(Clone, Debug)]
pub struct Directory {
    /// The directory.
    pub at: FilePath,
    /// The permission bits.
    pub mode: u32,
    /// The owner's name.
    pub owner: Option<String>,
    /// The group's name.
    pub group: Option<String>,
}

/// A move of a file or a directory within one file system.
#[derive(Clone, Debug)]
pub struct Move {
    /// The file or directory.
    pub from: FilePath,
    /// The path that it gets, with the same rights.
    pub to: String,
}

/// The attributes that an existing file or directory gets. At least one is named.
#[derive(Clone, Debug)]
pub struct Attributes {
    /// The file or directory.
    pub at: FilePath,
    /// The permission bits. None keeps them, except that a file with a new owner or group loses its set-id bits.
    pub mode: Option<u32>,
    /// The owner's name. None keeps the owner.
    pub owner: Option<String>,
    /// The group's name. None keeps the group.
    pub group: Option<String>,
}

impl Action {
    /// The file or directory that the action works on. None for a command or a signal.
    pub fn path(&self) -> Option<&FilePath> {
        match self {
            Self::Run(_) | Self::Signal(_) => None,
            Self::Write(write) => Some(&write.at),
            Self::Remove(at) | Self::RemoveDirectory(at) => Some(at),
            Self::MakeDirectory(directory) => Some(&directory.at),
            Self::Move(moved) => Some(&moved.from),
            Self::SetAttributes(attributes) => Some(&attributes.at),
        }
    }

    /// The path that the file or directory is moved to.
    pub fn to(&self) -> Option<&str> {
        match self {
            Self::Move(moved) => Some(&moved.to),
            _ => None,
        }
    }
}

impl Change {
    /// Checks that the plan can be shown and executed.
    pub fn check(&self) -> Result<(), Problem> {
        let within = |what: &str, count: usize, most: usize| match count > most {
            true => Err(invalid(format!("{count} {what}; at most {most} are taken"))),
            false => Ok(()),
        };
        if self.steps.is_empty() {
            return Err(invalid("no step; a plan must change something"));
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
        match self.power {
            Some(PowerChange::Restart(wait)) if wait.is_zero() || wait > LONGEST_RESTART => {
                let most = LONGEST_RESTART.as_secs();
                return Err(invalid(format!("a wait for a restart of another time than 1 to {most} s")));
            }
            Some(_) if !matches!(self.steps.last(), Some(Step { action: Action::Run(_), .. })) => {
                return Err(invalid(
                    "a last step that is no command, though the machine restarts or is turned off",
                ));
            }
            Some(_) if self.guard.is_some() => {
                return Err(invalid("a guard, though the machine restarts or is turned off"));
            }
            _ => {}
        }
        let others = self.after_undo.iter().chain(&self.dry_run);
        let mut bytes = others.map(stdin).sum::<usize>();
        let mut paths: Vec<&str> = Vec::new();
        for step in &self.steps {
            within("commands to undo a step", step.undo.len(), COMMANDS)?;
            bytes += step.undo.iter().map(stdin).sum::<usize>();
            bytes += match &step.action {
                Action::Run(run) => run.piped.iter().chain([&run.command]).map(stdin).sum::<usize>(),
                Action::Write(write) => write.contents.len() + write.validate.as_ref().map_or(0, stdin),
                _ => 0,
            };
            let touched = step.action.path().map(|at| at.path.as_str());
            for path in touched.into_iter().chain(step.action.to()) {
                if paths.contains(&path) {
                    return Err(invalid(format!(
                        "two steps for {path}; one step with its last state is enough"
                    )));
                }
                paths.push(path);
            }
            let modes = match &step.action {
                Action::Write(write) => write.mode,
                Action::MakeDirectory(directory) => Some(directory.mode),
                Action::SetAttributes(attributes) => attributes.mode,
                _ => None,
            };
            if modes.is_some_and(|mode| mode > 0o7777) {
                return Err(invalid("a mode that isn't one of permission bits, 0 to 0o7777"));
            }
            if let Action::Signal(signal) = &step.action {
                if let Some(mistake) = signals::mistake(signal) {
                    return Err(invalid(mistake));
                }
                if self.guard.is_some() {
                    return Err(invalid("a guard of a signal, which the target can't take back by itself"));
                }
            }
            if let Action::SetAttributes(Attributes { mode: None, owner: None, group: None, at }) =
                &step.action
            {
                return Err(invalid(format!("no attribute to set for {}", at.path)));
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

    /// A command with the caller's rights and a time of 10 s.
    pub fn command(argv: &[&str]) -> Command {
        Command::new(argv[0], argv[1..].iter().copied(), Duration::from_secs(10))
    }

    pub fn run(argv: &[&str]) -> Step {
        let run = Run {
            command: command(argv),
            piped: Vec::new(),
            any_exit: false,
            success: Vec::new(),
            interruptible: true,
        };
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

    pub fn moving(from: &str, to: &str) -> Step {
        let moved = Move { from: at(from), to: to.to_owned() };
        Step { action: Action::Move(moved), undo: Vec::new() }
    }

    pub fn setting(path: &str, mode: Option<u32>, owner: Option<&str>, group: Option<&str>) -> Step {
        let (owner, group) = (owner.map(str::to_owned), group.map(str::to_owned));
        let attributes = Attributes { at: at(path), mode, owner, group };
        Step { action: Action::SetAttributes(attributes), undo: Vec::new() }
    }

    pub fn removing(path: &str) -> Step {
        Step { action: Action::Remove(at(path)), undo: Vec::new() }
    }

    pub fn removing_directory(path: &str) -> Step {
        Step { action: Action::RemoveDirectory(at(path)), undo: Vec::new() }
    }

    pub fn change(steps: Vec<Step>) -> Change {
        Change {
            summary: "Do it".into(),
            steps,
            after_undo: Vec::new(),
            guard: None,
            power: None,
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
        let powered = |power, guard| Change { power: Some(power), guard, ..change(vec![run(&["true"])]) };
        let forever = powered(PowerChange::Restart(Duration::from_secs(1801)), None);
        let guarded_end = powered(PowerChange::Off, Some(Duration::from_secs(10)));
        let file_ends = Change { power: Some(PowerChange::Off), ..change(vec![write("/a", "1")]) };
        let mut suid = write("/a", "");
        if let Action::Write(write) = &mut suid.action {
            write.mode = Some(0o10000);
        }
        for (change, word) in [
            (change(Vec::new()), "no step"),
            (change(vec![run(&["true"]); STEPS + 1]), "257 steps"),
            (change(vec![write("/a", "1"), write("/a", "2")]), "two steps for /a"),
            (change(vec![write("/a", &"x".repeat(BYTES + 1))]), "bytes"),
            (change(vec![suid]), "mode"),
            (change(vec![setting("/a", Some(0o10000), None, None)]), "mode"),
            (change(vec![setting("/a", None, None, None)]), "no attribute to set for /a"),
            (change(vec![write("/b", "1"), moving("/a", "/b")]), "two steps for /b"),
            (change(vec![moving("/a", "/a")]), "two steps for /a"),
            (change(vec![removing_directory("/a"), setting("/a", Some(0), None, None)]), "two steps for /a"),
            (guarded, "guard"),
            (forever, "1 to 1800 s"),
            (guarded_end, "restarts or is turned off"),
            (file_ends, "no command"),
        ] {
            let problem = change.check().unwrap_err();
            assert_eq!(problem.code, "INVALID_PLAN");
            assert!(problem.message.contains(word), "{}", problem.message);
        }
        assert!(change(vec![write("/a", "1"), write("/b", "2"), run(&["true"])]).check().is_ok());
    }
}
