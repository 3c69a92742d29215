//! Plans: everything that a tool changes, handed to the host as a whole before its first step.
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
//! The host shows it, asks where it must, executes it, and undoes what had succeeded where a step fails. So a tool
//! looks first, then applies one plan, then says what has become of it.

use crate::bindings::sysadmin::module::confirm;
use crate::{Command, Output, Place, Privilege, Problem, Risk};

pub use crate::bindings::sysadmin::module::confirm::{Failure, Lock};

/// A plan. Build it with the methods, hand it to [`crate::Context::apply`].
#[derive(Clone, Debug, PartialEq)]
pub struct Change(pub(crate) confirm::Change);

impl Change {
    /// `summary` is one sentence in the imperative: "Restart the nginx service".
    pub fn new(summary: impl Into<String>) -> Self {
        Self(confirm::Change {
            summary: summary.into(),
            steps: Vec::new(),
            after_undo: Vec::new(),
            guard: None,
            locks: Vec::new(),
            risk: None,
            warnings: Vec::new(),
            affected_services: Vec::new(),
            dry_run: None,
        })
    }

    /// Adds a step; they run in the order of adding.
    pub fn step(mut self, step: Step) -> Self {
        self.0.steps.push(step.0);
        self
    }

    /// Adds a command that runs after an undo, whatever failed, as `systemctl daemon-reload`.
    pub fn after_undo(mut self, command: Command) -> Self {
        self.0.after_undo.push(command);
        self
    }

    /// The change undoes itself on the target, unless the host reaches the target anew within so many seconds after the
    /// last step. For what could cut the connection.
    pub fn guard(mut self, seconds: u32) -> Self {
        self.0.guard = Some(confirm::Guard { seconds });
        self
    }

    /// Adds a resource whose holder is looked for before the first step.
    pub fn lock(mut self, lock: Lock) -> Self {
        self.0.locks.push(lock);
        self
    }

    /// Raises the tool's own risk for this call. Never lowers it.
    pub fn risk(mut self, risk: Risk) -> Self {
        self.0.risk = Some(self.0.risk.map_or(risk, |known| known.max(risk)));
        self
    }

    /// Adds what a person should know before saying yes.
    pub fn warning(mut self, warning: impl Into<String>) -> Self {
        self.0.warnings.push(warning.into());
        self
    }

    /// Adds a unit that stops or restarts.
    pub fn affects(mut self, unit: impl Into<String>) -> Self {
        self.0.affected_services.push(unit.into());
        self
    }

    /// The program's own simulation; needs a `dry-run` grant.
    pub fn dry_run(mut self, command: Command) -> Self {
        self.0.dry_run = Some(command);
        self
    }
}

/// One step of a plan.
#[derive(Clone, Debug, PartialEq)]
pub struct Step(pub(crate) confirm::Step);

impl Step {
    /// A command that succeeds with exit code 0.
    pub fn run(command: Command) -> Self {
        let run = confirm::RunCommand { command, success: Vec::new(), interruptible: true };
        Self::of(confirm::Action::Run(run))
    }

    /// Replaces or creates a file, all of it or nothing, with root's rights. What isn't said of mode, owner and group
    /// stays as it is; of a new file they are 0644 and root's.
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

    /// Removes a file, with root's rights.
    pub fn remove(path: impl Into<String>) -> Self {
        Self::of(confirm::Action::RemoveFile(at(path)))
    }

    /// Creates a directory that isn't there, with root's rights.
    pub fn make_directory(path: impl Into<String>, mode: u32) -> Self {
        let directory = confirm::Directory { at: at(path), mode, owner: None, group: None };
        Self::of(confirm::Action::MakeDirectory(directory))
    }

    fn of(action: confirm::Action) -> Self {
        Self(confirm::Step { action, undo: Vec::new() })
    }

    /// Adds a command that undoes this step. It runs only where the step had succeeded. Files and directories need none.
    pub fn undo(mut self, command: Command) -> Self {
        self.0.undo.push(command);
        self
    }

    /// Of a command: which exit codes are success.
    pub fn success(mut self, codes: &[i32]) -> Self {
        if let confirm::Action::Run(run) = &mut self.0.action {
            run.success = codes.to_vec();
        }
        self
    }

    /// Of a command: never killed once started, whatever is cancelled, and without a time limit.
    pub fn uninterruptible(mut self) -> Self {
        if let confirm::Action::Run(run) = &mut self.0.action {
            run.interruptible = false;
        }
        self
    }

    /// Of a file or directory: permission bits.
    pub fn mode(mut self, bits: u32) -> Self {
        match &mut self.0.action {
            confirm::Action::WriteFile(write) => write.mode = Some(bits),
            confirm::Action::MakeDirectory(directory) => directory.mode = bits,
            _ => {}
        }
        self
    }

    /// Of a file or directory: whose it is.
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

    /// Of a file: left out of previews and of the audit log, but for its hash.
    pub fn sensitive(mut self) -> Self {
        if let confirm::Action::WriteFile(write) = &mut self.0.action {
            write.sensitive = true;
        }
        self
    }

    /// Of a file: run before it goes live. One whole argument `{}`, or `--option={}`, stands for the staged copy, which
    /// has the file's own name. Matched against the grants as if the file itself stood there.
    pub fn validate(mut self, command: Command) -> Self {
        if let confirm::Action::WriteFile(write) = &mut self.0.action {
            write.validate = Some(command);
        }
        self
    }

    /// Of a file or directory: whose rights touch it, where those aren't root's.
    pub fn files_as(mut self, privilege: Privilege) -> Self {
        match &mut self.0.action {
            confirm::Action::WriteFile(write) => write.at.privilege = privilege,
            confirm::Action::RemoveFile(path) => path.privilege = privilege,
            confirm::Action::MakeDirectory(directory) => directory.at.privilege = privilege,
            confirm::Action::Run(_) => {}
        }
        self
    }
}

fn at(path: impl Into<String>) -> confirm::FilePath {
    confirm::FilePath { path: path.into(), privilege: Privilege::Root, place: Place::Target }
}

/// A plan that ran, or would have.
#[derive(Clone, Debug)]
pub struct Applied {
    /// One per step that is a command, in order. Of a dry run: the native dry run's, where the plan has one.
    pub outputs: Vec<Output>,
    /// Nothing was changed: say what would have been.
    pub dry_run: bool,
}

impl From<confirm::Applied> for Applied {
    fn from(applied: confirm::Applied) -> Self {
        Self { outputs: applied.outputs, dry_run: applied.dry_run }
    }
}

/// What was undone and what wasn't is in the envelope: the host puts it there.
impl From<Failure> for Problem {
    fn from(failure: Failure) -> Self {
        failure.problem
    }
}
