//! Plans: a tool hands everything that it changes to the host as a whole, before the first step.
//!
//! ```
//! use linux_sysadmin_sdk::prelude::*;
//!
//! const RESTART: CommandLine = CommandLine::new("systemctl restart -- <unit>");
//!
//! fn restart(unit: &str, cx: &Context) -> Result<Applied> {
//!     let change = Change::new(format!("Restart {unit}"))
//!         .step(Step::run(RESTART.with([unit]).as_root()).uninterruptible())
//!         .affects(unit);
//!     Ok(cx.apply(change)?)
//! }
//! ```
//!
//! The host shows the plan, asks for a confirmation where one is needed, and executes the steps. Where a step fails, it
//! undoes those that had succeeded. So a tool looks first, then applies one plan, and then reports the outcome.

#[cfg(not(target_family = "wasm"))]
mod accessors;

use crate::bindings::sysadmin::module::confirm;
use crate::{Command, Output, Pipeline, Place, Privilege, Problem, Risk};

pub use crate::bindings::sysadmin::module::confirm::{Failure, Lock, Process as SignalTarget, ProcessSignal};

/// A plan. Build it with its methods and hand it to [`crate::Context::apply`].
#[derive(Clone, Debug, PartialEq)]
pub struct Change(pub(crate) confirm::Change);

impl Change {
    /// Makes a plan without steps. `summary` is one sentence in the imperative: "Restart the nginx service".
    pub fn new(summary: impl Into<String>) -> Self {
        Self(confirm::Change {
            summary: summary.into(),
            steps: Vec::new(),
            after_undo: Vec::new(),
            guard: None,
            power: None,
            locks: Vec::new(),
            risk: None,
            warnings: Vec::new(),
            affected_services: Vec::new(),
            dry_run: None,
        })
    }

    /// Adds a step. Steps run in the order in which they are added.
    pub fn step(mut self, step: Step) -> Self {
        self.0.steps.push(step.0);
        self
    }

    /// Adds a command that runs after every undo, such as `systemctl daemon-reload`.
    pub fn after_undo(mut self, command: Command) -> Self {
        self.0.after_undo.push(command);
        self
    }

    /// Sets a guard: the target undoes the change by itself, unless the host reaches it by a new connection within this many
    /// seconds after the last step. Use it for a change that could cut the connection.
    pub fn guard(mut self, seconds: u32) -> Self {
        self.0.guard = Some(confirm::Guard { seconds });
        self
    }

    /// Says that the last step restarts the machine. Over the network, the host waits at most this many seconds until the
    /// machine answers again, and only then does the plan end.
    pub fn restarts(mut self, seconds: u32) -> Self {
        self.0.power = Some(confirm::PowerChange::Restart(seconds));
        self
    }

    /// Says that the last step turns the machine off.
    pub fn turns_off(mut self) -> Self {
        self.0.power = Some(confirm::PowerChange::Off);
        self
    }

    /// Adds a resource that must be free. The host looks for its holder before the first step.
    pub fn lock(mut self, lock: Lock) -> Self {
        self.0.locks.push(lock);
        self
    }

    /// Raises the risk of this call above the tool's own. It never lowers the risk.
    pub fn risk(mut self, risk: Risk) -> Self {
        self.0.risk = Some(self.0.risk.map_or(risk, |known| known.max(risk)));
        self
    }

    /// Adds a sentence that a person should read before saying yes.
    pub fn warning(mut self, warning: impl Into<String>) -> Self {
        self.0.warnings.push(warning.into());
        self
    }

    /// Adds a unit that the change stops or restarts.
    pub fn affects(mut self, unit: impl Into<String>) -> Self {
        self.0.affected_services.push(unit.into());
        self
    }

    /// Sets the program's own simulation of the change. It needs a grant by
    /// [`CommandLine::dry_run`](crate::CommandLine::dry_run).
    pub fn dry_run(mut self, command: Command) -> Self {
        self.0.dry_run = Some(command);
        self
    }
}

/// One step of a plan.
#[derive(Clone, Debug, PartialEq)]
pub struct Step(pub(crate) confirm::Step);

impl Step {
    /// Runs a command. It succeeds with exit code 0, unless [`Step::success`] says otherwise.
    pub fn run(command: Command) -> Self {
        let run = confirm::RunCommand { command, success: Vec::new(), interruptible: true };
        Self::of(confirm::Action::Run(run))
    }

    /// Replaces or creates a file atomically, with root's rights. A file that exists keeps its mode, owner and group, unless
    /// other methods set them; a new file gets mode 0644 and belongs to root.
    pub fn write(path: impl Into<String>, contents: impl Into<Vec<u8>>) -> Self {
        Self::of(confirm::Action::WriteFile(confirm::FileWrite {
            at: at(path),
            contents: contents.into(),
            mode: None,
            owner: None,
            group: None,
            sensitive: false,
            validate: None,
        }))
    }

    /// Removes a file, or a symlink itself, with root's rights.
    pub fn remove(path: impl Into<String>) -> Self {
        Self::of(confirm::Action::RemoveFile(at(path)))
    }

    /// Creates a directory that doesn't exist yet, with root's rights.
    pub fn make_directory(path: impl Into<String>, mode: u32) -> Self {
        let directory = confirm::Directory { at: at(path), mode, owner: None, group: None };
        Self::of(confirm::Action::MakeDirectory(directory))
    }

    /// Removes a directory that is empty, or whose whole content earlier steps remove, with root's rights.
    pub fn remove_directory(path: impl Into<String>) -> Self {
        Self::of(confirm::Action::RemoveDirectory(at(path)))
    }

    /// Moves a file or a directory to a path where nothing is, within its file system, with root's rights.
    pub fn move_to(from: impl Into<String>, to: impl Into<String>) -> Self {
        Self::of(confirm::Action::MovePath(confirm::PathMove { at: at(from), to: to.into() }))
    }

    /// Sets the mode, the owner or the group of a file or a directory that exists, with root's rights. `None` leaves it as it
    /// is.
    pub fn attributes(
        path: impl Into<String>,
        mode: Option<u32>,
        owner: Option<String>,
        group: Option<String>,
    ) -> Self {
        Self::of(confirm::Action::SetAttributes(confirm::Attributes { at: at(path), mode, owner, group }))
    }

    /// Runs a pipeline. Any exit code counts as success, unless [`Step::success`] is told that only 0 does.
    pub fn run_pipeline(pipeline: Pipeline) -> Self {
        Self::of(confirm::Action::RunPipeline(confirm::RunPipeline { pipeline, any_exit: true }))
    }

    /// Sends a signal to processes. It needs a [`SignalGrant`](crate::SignalGrant). Its output has a line for each process:
    /// the process id, the start, and what has become of it.
    pub fn signal(signal: ProcessSignal) -> Self {
        Self::of(confirm::Action::SignalProcesses(signal))
    }

    fn of(action: confirm::Action) -> Self {
        Self(confirm::Step { action, undo: Vec::new() })
    }

    /// Adds a command that undoes this step. It runs only if the step had succeeded. Steps with files and directories need
    /// none: the host undoes them.
    pub fn undo(mut self, command: Command) -> Self {
        self.0.undo.push(command);
        self
    }

    /// Sets the exit codes with which the command succeeds.
    pub fn success(mut self, codes: &[i32]) -> Self {
        match &mut self.0.action {
            confirm::Action::Run(run) => run.success = codes.to_vec(),
            confirm::Action::RunPipeline(run) => run.any_exit = codes != [0],
            _ => {}
        }
        self
    }

    /// Lets the command run to its end: it is not killed when the call is cancelled, and it has no time limit.
    pub fn uninterruptible(mut self) -> Self {
        if let confirm::Action::Run(run) = &mut self.0.action {
            run.interruptible = false;
        }
        self
    }

    /// Sets the permission bits of the file or directory.
    pub fn mode(mut self, bits: u32) -> Self {
        match &mut self.0.action {
            confirm::Action::WriteFile(write) => write.mode = Some(bits),
            confirm::Action::MakeDirectory(directory) => directory.mode = bits,
            _ => {}
        }
        self
    }

    /// Sets the owner and the group of the file or directory.
    pub fn owner(mut self, owner: impl Into<String>, group: impl Into<String>) -> Self {
        let (new_owner, new_group) = (Some(owner.into()), Some(group.into()));
        match &mut self.0.action {
            confirm::Action::WriteFile(write) => (write.owner, write.group) = (new_owner, new_group),
            confirm::Action::MakeDirectory(directory) => {
                (directory.owner, directory.group) = (new_owner, new_group);
            }
            _ => {}
        }
        self
    }

    /// Keeps the file's contents out of previews and of the audit log, which get its hash only.
    pub fn sensitive(mut self) -> Self {
        if let confirm::Action::WriteFile(write) = &mut self.0.action {
            write.sensitive = true;
        }
        self
    }

    /// Sets a command that checks the new file before it takes the old one's place. One whole argument `{}`, or
    /// `--option={}`, stands for the staged copy, which has the file's own name. The host matches the command against the
    /// grants with the file's real path in it.
    pub fn validate(mut self, command: Command) -> Self {
        if let confirm::Action::WriteFile(write) = &mut self.0.action {
            write.validate = Some(command);
        }
        self
    }

    /// Sets the account whose rights write or remove the file or directory. The default is root.
    pub fn files_as(mut self, privilege: Privilege) -> Self {
        match &mut self.0.action {
            confirm::Action::WriteFile(write) => write.at.privilege = privilege,
            confirm::Action::RemoveFile(path) | confirm::Action::RemoveDirectory(path) => {
                path.privilege = privilege;
            }
            confirm::Action::MakeDirectory(directory) => directory.at.privilege = privilege,
            confirm::Action::MovePath(moved) => moved.at.privilege = privilege,
            confirm::Action::SetAttributes(attributes) => attributes.at.privilege = privilege,
            confirm::Action::Run(_)
            | confirm::Action::RunPipeline(_)
            | confirm::Action::SignalProcesses(_) => {}
        }
        self
    }
}

fn at(path: impl Into<String>) -> confirm::FilePath {
    confirm::FilePath { path: path.into(), privilege: Privilege::Root, place: Place::Target }
}

/// The outcome of a plan that ran, or of a dry run.
#[derive(Clone, Debug)]
pub struct Applied {
    /// The output of each step that is a command or a signal, in order. After a dry run: the output of the program's own simulation,
    /// where the plan has one.
    pub outputs: Vec<Output>,
    /// True where nothing was changed. The answer then says what the tool would have changed.
    pub dry_run: bool,
}

impl From<confirm::Applied> for Applied {
    fn from(applied: confirm::Applied) -> Self {
        Self { outputs: applied.outputs, dry_run: applied.dry_run }
    }
}

/// Keeps the problem only: the host itself reports in the envelope which steps it undid.
impl From<Failure> for Problem {
    fn from(failure: Failure) -> Self {
        failure.problem
    }
}
