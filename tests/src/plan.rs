//! Plans in the form that `tests/guests/planner` takes.

use serde_json::{Value, json};

/// A plan, as an argument of `planner_apply`.
#[derive(Clone, Debug)]
pub struct Plan(Value);

/// A step of a plan.
#[derive(Clone, Debug)]
pub struct Step(Value);

/// A command that runs with root's rights.
pub fn line(argv: &[&str]) -> Value {
    let (program, args) = argv.split_first().expect("a program");
    json!({"program": program, "args": args})
}

impl Plan {
    /// A plan without steps.
    pub fn new(summary: &str) -> Self {
        Self(json!({"summary": summary, "steps": [], "after_undo": [], "locks": []}))
    }

    /// A plan with these steps.
    pub fn of(steps: impl IntoIterator<Item = Step>) -> Self {
        steps.into_iter().fold(Self::new("Try it"), Self::step)
    }

    /// Adds a step.
    pub fn step(self, step: Step) -> Self {
        self.add("steps", step.0)
    }

    /// Adds a command that runs after an undo.
    pub fn after_undo(self, argv: &[&str]) -> Self {
        self.add("after_undo", line(argv))
    }

    /// Adds a resource whose holder the host looks for.
    pub fn lock(self, lock: Value) -> Self {
        self.add("locks", lock)
    }

    /// Sets any other member, as `guard` or `risk`.
    pub fn with(mut self, member: &str, value: impl Into<Value>) -> Self {
        self.0[member] = value.into();
        self
    }

    fn add(mut self, list: &str, item: Value) -> Self {
        self.0[list].as_array_mut().expect("a list").push(item);
        self
    }

    /// The plan as JSON.
    pub fn json(&self) -> Value {
        self.0.clone()
    }

    /// The arguments of a call that applies it.
    pub fn apply(&self) -> Value {
        json!({"plan": self.0})
    }

    /// The arguments of a call that only shows it.
    pub fn dry_run(&self) -> Value {
        json!({"plan": self.0, "dry_run": true})
    }
}

impl Step {
    /// A step that runs a command with root's rights. Exit code 0 is success.
    pub fn run(argv: &[&str]) -> Self {
        Self::of("run", line(argv))
    }

    /// A step in which root writes a file with these contents.
    pub fn write(path: &str, contents: &str) -> Self {
        Self::of("write", json!({"path": path, "contents": contents}))
    }

    /// A step in which root removes a file.
    pub fn remove(path: &str) -> Self {
        Self::of("remove", json!({"path": path}))
    }

    /// A step in which root makes a directory.
    pub fn make_directory(path: &str, mode: u32) -> Self {
        Self::of("make_directory", json!({"path": path, "mode": mode}))
    }

    fn of(kind: &str, action: Value) -> Self {
        Self(json!({kind: action, "undo": []}))
    }

    /// Sets any other member of the step, as `stdin`, `mode`, `owner`, `validate` or `privilege`.
    pub fn with(mut self, member: &str, value: impl Into<Value>) -> Self {
        let members = self.0.as_object_mut().expect("an object");
        let (_, action) = members.iter_mut().find(|(kind, _)| *kind != "undo").expect("an action");
        action[member] = value.into();
        self
    }

    /// Says that the step may not be killed once it has started.
    pub fn uninterruptible(self) -> Self {
        self.with("interruptible", false)
    }

    /// Adds a command that undoes the step.
    pub fn undo(self, argv: &[&str]) -> Self {
        self.undo_by(line(argv))
    }

    /// Adds a command with all its members that undoes the step.
    pub fn undo_by(mut self, command: Value) -> Self {
        self.0["undo"].as_array_mut().expect("a list").push(command);
        self
    }
}
