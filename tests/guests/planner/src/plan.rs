//! A plan as JSON with the members of the contract. The defaults are what most tests want: root's rights, 120 s.

use std::collections::BTreeMap;

use linux_sysadmin_sdk::{Change, DurationCategory, Privilege, prelude::*};

/// `"root"`, `"caller"`, `"root-if-available"` or `{"user": "admin"}`.
#[derive(Clone, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Rights {
    Caller,
    #[default]
    Root,
    RootIfAvailable,
    User(String),
}

impl From<Rights> for Privilege {
    fn from(rights: Rights) -> Self {
        match rights {
            Rights::Caller => Self::Caller,
            Rights::Root => Self::Root,
            Rights::RootIfAvailable => Self::RootIfAvailable,
            Rights::User(name) => Self::User(name),
        }
    }
}

#[derive(Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Patience {
    Instant,
    Quick,
    #[default]
    Normal,
    Slow,
    LongRunning,
}

impl From<Patience> for DurationCategory {
    fn from(patience: Patience) -> Self {
        match patience {
            Patience::Instant => Self::Instant,
            Patience::Quick => Self::Quick,
            Patience::Normal => Self::Normal,
            Patience::Slow => Self::Slow,
            Patience::LongRunning => Self::LongRunning,
        }
    }
}

#[derive(Deserialize, JsonSchema)]
struct Line {
    program: String,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    stdin: Option<String>,
    #[serde(default)]
    privilege: Rights,
    #[serde(default)]
    duration: Patience,
}

impl From<Line> for Command {
    fn from(line: Line) -> Self {
        let mut command = Self::new(&line.program).args(line.args);
        command.env = line.env.into_iter().collect();
        command.stdin = line.stdin.map(String::into_bytes);
        command.privilege(line.privilege.into()).duration(line.duration.into())
    }
}

#[derive(Deserialize, JsonSchema)]
struct RunStep {
    #[serde(flatten)]
    line: Line,
    #[serde(default)]
    success: Vec<i32>,
    #[serde(default = "yes")]
    interruptible: bool,
}

fn yes() -> bool {
    true
}

#[derive(Deserialize, JsonSchema)]
struct WriteStep {
    path: String,
    contents: String,
    mode: Option<u32>,
    /// Owner and group.
    owner: Option<(String, String)>,
    #[serde(default)]
    sensitive: bool,
    validate: Option<Line>,
    #[serde(default)]
    privilege: Rights,
}

#[derive(Deserialize, JsonSchema)]
struct RemoveStep {
    path: String,
    #[serde(default)]
    privilege: Rights,
}

#[derive(Deserialize, JsonSchema)]
struct DirectoryStep {
    path: String,
    mode: u32,
    /// Owner and group.
    owner: Option<(String, String)>,
    #[serde(default)]
    privilege: Rights,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Action {
    Run(RunStep),
    Write(WriteStep),
    Remove(RemoveStep),
    MakeDirectory(DirectoryStep),
}

#[derive(Deserialize, JsonSchema)]
struct StepOf {
    #[serde(flatten)]
    action: Action,
    #[serde(default)]
    undo: Vec<Line>,
}

impl From<StepOf> for Step {
    fn from(step: StepOf) -> Self {
        let action = match step.action {
            Action::Run(run) => {
                let step = Step::run(run.line.into()).success(&run.success);
                if run.interruptible { step } else { step.uninterruptible() }
            }
            Action::Write(write) => {
                let mut step = Step::write(write.path, write.contents).files_as(write.privilege.into());
                if let Some(mode) = write.mode {
                    step = step.mode(mode);
                }
                if let Some(validate) = write.validate {
                    step = step.validate(validate.into());
                }
                if write.sensitive {
                    step = step.sensitive();
                }
                owned(step, write.owner)
            }
            Action::Remove(remove) => Step::remove(remove.path).files_as(remove.privilege.into()),
            Action::MakeDirectory(directory) => {
                let step = Step::make_directory(directory.path, directory.mode);
                owned(step.files_as(directory.privilege.into()), directory.owner)
            }
        };
        step.undo.into_iter().fold(action, |step, line| step.undo(line.into()))
    }
}

fn owned(step: Step, owner: Option<(String, String)>) -> Step {
    match owner {
        Some((owner, group)) => step.owner(owner, group),
        None => step,
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum LockOf {
    PackageDatabase,
    Systemd,
    Lvm,
    File(String),
    Named(String),
}

impl From<LockOf> for Lock {
    fn from(lock: LockOf) -> Self {
        match lock {
            LockOf::PackageDatabase => Self::PackageDatabase,
            LockOf::Systemd => Self::Systemd,
            LockOf::Lvm => Self::Lvm,
            LockOf::File(path) => Self::File(path),
            LockOf::Named(name) => Self::Named(name),
        }
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum RiskOf {
    ReadOnly,
    Low,
    Moderate,
    High,
    Critical,
}

impl From<RiskOf> for Risk {
    fn from(risk: RiskOf) -> Self {
        match risk {
            RiskOf::ReadOnly => Self::ReadOnly,
            RiskOf::Low => Self::Low,
            RiskOf::Moderate => Self::Moderate,
            RiskOf::High => Self::High,
            RiskOf::Critical => Self::Critical,
        }
    }
}

/// A plan.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct Plan {
    summary: String,
    steps: Vec<StepOf>,
    #[serde(default)]
    after_undo: Vec<Line>,
    /// Seconds.
    guard: Option<u32>,
    #[serde(default)]
    locks: Vec<LockOf>,
    risk: Option<RiskOf>,
    #[serde(default)]
    warnings: Vec<String>,
    #[serde(default)]
    affected_services: Vec<String>,
    dry_run: Option<Line>,
}

impl From<Plan> for Change {
    fn from(plan: Plan) -> Self {
        let mut change = Self::new(plan.summary);
        change = plan.steps.into_iter().fold(change, |change, step| change.step(step.into()));
        change = plan.after_undo.into_iter().fold(change, |change, line| change.after_undo(line.into()));
        change = plan.locks.into_iter().fold(change, |change, lock| change.lock(lock.into()));
        change = plan.warnings.into_iter().fold(change, Self::warning);
        change = plan.affected_services.into_iter().fold(change, Self::affects);
        if let Some(seconds) = plan.guard {
            change = change.guard(seconds);
        }
        if let Some(risk) = plan.risk {
            change = change.risk(risk.into());
        }
        if let Some(line) = plan.dry_run {
            change = change.dry_run(line.into());
        }
        change
    }
}

#[cfg(test)]
mod tests {
    use linux_sysadmin_sdk::{Lock, Privilege, Risk, Step, prelude::*};

    use super::Plan;

    #[test]
    fn every_part_of_a_plan_arrives_as_it_was_written() {
        let plan: Plan = serde_json::from_value(serde_json::json!({
            "summary": "All of it",
            "steps": [
                {
                    "run": {
                        "program": "tee", "args": ["--", "/srv/plan/a"], "stdin": "x", "env": {"A": "b"},
                        "privilege": "caller", "duration": "slow", "success": [0, 1], "interruptible": false,
                    },
                    "undo": [{"program": "rm", "args": ["--", "/srv/plan/a"]}],
                },
                {"write": {
                    "path": "/srv/planner/a", "contents": "b", "mode": 0o600, "owner": ["admin", "adm"],
                    "sensitive": true, "validate": {"program": "test", "args": ["-s", "{}"]},
                    "privilege": {"user": "admin"},
                }},
                {"write": {"path": "/srv/planner/b", "contents": ""}},
                {"remove": {"path": "/srv/planner/c", "privilege": "root-if-available"}},
                {"make_directory": {"path": "/srv/plan/d", "mode": 0o755}},
            ],
            "after_undo": [{"program": "systemctl", "args": ["daemon-reload"]}],
            "guard": 5,
            "locks": ["package-database", {"file": "/srv/plan/lock"}],
            "risk": "high",
            "warnings": ["careful"],
            "affected_services": ["nginx.service"],
            "dry_run": {"program": "echo", "args": ["would"]},
        }))
        .unwrap();
        let normal = linux_sysadmin_sdk::DurationCategory::Normal;
        let line = |program: &str, args: &[&str]| {
            Command::new(program).args(args.iter().copied()).as_root().duration(normal)
        };
        let tee = Command::new("tee").args(["--", "/srv/plan/a"]).env("A", "b").stdin("x");
        let tee = tee.duration(linux_sysadmin_sdk::DurationCategory::Slow);
        let expected = Change::new("All of it")
            .step(Step::run(tee).success(&[0, 1]).uninterruptible().undo(line("rm", &["--", "/srv/plan/a"])))
            .step(
                Step::write("/srv/planner/a", "b")
                    .mode(0o600)
                    .owner("admin", "adm")
                    .sensitive()
                    .validate(line("test", &["-s", "{}"]))
                    .files_as(Privilege::User("admin".into())),
            )
            .step(Step::write("/srv/planner/b", ""))
            .step(Step::remove("/srv/planner/c").files_as(Privilege::RootIfAvailable))
            .step(Step::make_directory("/srv/plan/d", 0o755))
            .after_undo(line("systemctl", &["daemon-reload"]))
            .guard(5)
            .lock(Lock::PackageDatabase)
            .lock(Lock::File("/srv/plan/lock".into()))
            .risk(Risk::High)
            .warning("careful")
            .affects("nginx.service")
            .dry_run(line("echo", &["would"]));
        assert!(Change::from(plan) == expected);
    }
}
