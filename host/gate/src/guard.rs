//! A guard undoes a change on the target by itself, unless the host can still reach the target after the last step.
//!
//! Before the first step, the host puts the undo on the target as systemd units: one unit for each command, with its
//! argument vector and no shell. The units are ordered so that the latest step is undone first, and a timer starts
//! them. The units of a step do nothing until the step is marked as begun. Each step restarts the timer. After the last
//! step the host tries a new connection to the target; where it succeeds, the host removes the units.
//!
//! The connection may be lost during any of these commands. Each command says which state the target has to be in
//! afterwards, so that it can be repeated. The mark of a step is the exception: where the connection is lost during it,
//! the step doesn't begin. Until the target has confirmed that the timer is stopped, the host assumes that the target
//! undoes the change.

mod network;
mod units;

use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

use super::allowed::AllowedCommand;
use super::execution::Execution;
use super::plan::Action;
use super::prepare::PreparedAction;
use host_base::Privilege;
use host_base::problem::{Category, Problem};
use host_base::program::PATH;
use host_target::Target;
use network::Network;
use units::UNITS;
pub use units::{GuardState, GuardUnits};

/// The time between two attempts to reach the target.
const AGAIN: Duration = Duration::from_millis(500);
/// The time in which the target's undo restores the connection and the host reconnects.
const SETTLING: Duration = Duration::from_secs(30);

/// One command of the undo, as the target would run it.
struct UndoUnit {
    /// The number of the step that it belongs to. None for the commands that run after every undo.
    step: Option<usize>,
    argv: Vec<String>,
    env: Vec<(String, String)>,
    stdin: Option<Vec<u8>>,
    user: Option<String>,
    /// A path that must exist for the command to run.
    needs: Option<String>,
    /// The command line as it is shown. It is empty for a command that only removes copies.
    line: String,
}

/// The undo of one change on the target.
pub struct Guard<'a> {
    target: &'a Target,
    units: GuardUnits<'a>,
    wait: Duration,
    /// The time from a start of the timer until it fires.
    runs: Duration,
    /// The moment at which the timer has certainly fired, unless it was stopped.
    due: Mutex<Instant>,
    /// True once the host has told the timer to stop.
    stopped: AtomicBool,
    items: Vec<UndoUnit>,
    /// The network of this machine before the change. A remote target has none: the connection itself tells whether it
    /// can be reached.
    before: Option<Network>,
}

/// The result of a guard.
pub enum GuardOutcome {
    /// The target can be reached, and the guard's units are removed.
    Disarmed,
    /// The target has undone the change. The lists name what was undone and what was not.
    Fired(Vec<String>, Vec<String>),
    /// The target can't be reached, and undoes the change by itself at this time. The time is none where the timer may
    /// have been stopped.
    Unreached(Option<Timestamp>),
}

impl<'a> Guard<'a> {
    /// Puts the undo on the target, and starts the timer.
    pub async fn arm(execution: &'a Execution, id: &str, wait: Duration) -> Result<Self, Problem> {
        let facts = execution.expected.facts();
        let unavailable = |why: &str| {
            let message =
                format!("this change could cut the connection, and can't undo itself on the target: {why}");
            Problem::new("GUARD_UNAVAILABLE", Category::State, message)
        };
        if facts.init_system != "systemd" {
            return Err(unavailable("there is no systemd"));
        }
        if !facts.root_available() || facts.sudo_limited {
            return Err(unavailable("that takes root's rights, and sudo doesn't allow everything"));
        }
        let target = &*execution.target;
        let before = match target.is_remote() {
            true => None,
            false => Some(Network::of(target).await?),
        };
        let items = items(execution).await?;
        let units = GuardUnits::new(target, id, items.len(), execution.plan.steps.len());
        // The timer starts before a step, so it has to allow for the step's own time as well.
        let steps = execution.plan.change.steps.iter().filter_map(|step| match &step.action {
            Action::Run(run) => Some(run.command.timeout),
            _ => None,
        });
        let runs = wait + steps.max().unwrap_or_default();
        let (due, stopped) = (Mutex::new(Instant::now() + runs), AtomicBool::new(false));
        let guard = Self { target, units, wait, runs, due, stopped, items, before };
        if let Err(problem) = guard.put().await {
            // A timer that could not be removed does nothing, since no step is marked as begun.
            guard.units.remove().await;
            return Err(before_any_step(problem));
        }
        guard.restarted();
        Ok(guard)
    }

    /// Notes that the timer has been restarted, or may have been.
    fn restarted(&self) {
        *self.due.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now() + self.runs;
    }

    fn due(&self) -> Instant {
        *self.due.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn put(&self) -> Result<(), Problem> {
        self.units.command("mkdir", &["--mode=0700", "--", &self.units.marks()], None).await?;
        for (number, item) in self.items.iter().enumerate() {
            if let Some(stdin) = &item.stdin {
                self.write(&self.units.stdin(number), stdin.clone(), "0600").await?;
            }
            let unit = self.unit(number, item);
            self.write(&format!("{UNITS}/{}", self.units.item(number)), unit.into_bytes(), "0644").await?;
        }
        let all: Vec<String> = (0..self.items.len()).map(|number| self.units.item(number)).collect();
        let service = format!(
            "[Unit]\nDescription=Undo of a change that cut the way to this machine\nWants={all}\nAfter={all}\n\n\
             [Service]\nType=oneshot\nExecStart={}\n",
            self.target.program("true").await?,
            all = all.join(" "),
        );
        self.write(&format!("{UNITS}/{}", self.service()), service.into_bytes(), "0644").await?;
        let seconds = self.runs.as_secs();
        let timer = format!(
            "[Unit]\nDescription=Undo of a change unless the way to this machine holds\nStartLimitIntervalSec=0\n\n\
             [Timer]\nOnActiveSec={seconds}\nAccuracySec=1s\n"
        );
        self.write(&format!("{UNITS}/{}", self.timer()), timer.into_bytes(), "0644").await?;
        self.units.systemctl(&["daemon-reload"]).await?;
        self.units.systemctl(&["start", "--", &self.timer()]).await?;
        Ok(())
    }

    /// Marks a step as begun. The result is a problem where the target already undoes the change, because it would not
    /// undo this step.
    pub async fn begins(&self, step: usize) -> Result<(), Problem> {
        let begun = async {
            self.units.command("mkdir", &["--", &self.units.mark(step)], None).await?;
            self.units.systemctl(&["restart", "--", &self.timer()]).await?;
            self.has_fired().await
        };
        let begun = begun.await;
        self.restarted();
        match begun.map_err(before_any_step)? {
            true => Err(cut()),
            false => Ok(()),
        }
    }

    /// Removes the mark of a step that failed, so that the target doesn't undo it.
    pub async fn has_failed(&self, step: usize) {
        if let Err(problem) = self.units.command("rmdir", &["--", &self.units.mark(step)], None).await {
            tracing::warn!(guard = self.units.name, step, %problem, "the guard still takes a failed step for a begun one");
        }
    }

    /// Tries to reach the target by a new connection after the last step, until the time is over.
    pub async fn watch(self) -> GuardOutcome {
        let until = Instant::now() + self.wait;
        while Instant::now() < until {
            // An attempt that hangs counts as one that failed.
            let reached = tokio::time::timeout_at(until, self.is_reached()).await.unwrap_or(false);
            if reached {
                match self.disarm().await {
                    Ok(true) => return GuardOutcome::Disarmed,
                    Ok(false) => break,
                    Err(problem) => {
                        self.again(&problem);
                        // The old connection may hang for long although a new one works.
                        self.target.drop_connection().await;
                    }
                }
            }
            tokio::time::sleep(AGAIN).await;
        }
        self.fires().await
    }

    async fn is_reached(&self) -> bool {
        match &self.before {
            Some(before) => before.still_holds(self.target).await,
            None => self.target.check_new_connection().await.is_ok(),
        }
    }

    /// Removes the guard after a step has failed, so that the host undoes the change, unless the target has begun to.
    pub async fn stand_down(self) -> GuardOutcome {
        while Instant::now() < self.due() {
            match self.disarm().await {
                Ok(true) => return GuardOutcome::Disarmed,
                Ok(false) => break,
                Err(problem) => self.again(&problem),
            }
            tokio::time::sleep(AGAIN).await;
        }
        self.fires().await
    }

    /// Leaves the undo to the target, because the host doesn't know how far a step came.
    pub async fn left_to_target(self) -> GuardOutcome {
        while Instant::now() < self.due()
            && let Err(problem) = self.has_fired().await
        {
            self.again(&problem);
            tokio::time::sleep(AGAIN).await;
        }
        self.fires().await
    }

    fn again(&self, problem: &Problem) {
        tracing::info!(guard = self.units.name, %problem, "the target didn't answer; it is asked again");
    }

    /// Starts the undo on the target, or waits until the timer does. The timer needs no connection.
    async fn fires(&self) -> GuardOutcome {
        // The undo is started now instead of at the timer's own time. The timer stays until the service has started, so
        // that the service is started in either case.
        let _ = self.units.systemctl(&["start", "--", &self.service()]).await;
        let until = self.due().max(Instant::now()) + SETTLING;
        while !self.has_settled().await && Instant::now() < until {
            tokio::time::sleep(AGAIN).await;
        }
        if self.has_fired().await.is_err() {
            let is_sure = !self.stopped.load(Ordering::Acquire);
            let left = self.due().saturating_duration_since(Instant::now());
            return GuardOutcome::Unreached(is_sure.then(|| Timestamp::now() + left));
        }
        let _ = self.units.systemctl(&["stop", "--", &self.timer()]).await;
        let mut ended: Vec<(Option<usize>, &String, bool)> = Vec::new();
        for (number, item) in self.items.iter().enumerate() {
            let state = self.show(&self.units.item(number), "Result,ConditionResult,ActiveState").await;
            // A command that only removes copies isn't reported.
            if item.line.is_empty() {
                continue;
            }
            let has = |word: &str| state.as_ref().is_ok_and(|shown| shown.lines().any(|line| line == word));
            let is_undone = has("ConditionResult=yes") && has("Result=success") && has("ActiveState=active");
            let was_begun =
                || async { state.is_err() || has("ConditionResult=yes") || self.is_marked(item.step).await };
            match ended.last_mut() {
                // A step that takes several commands is undone where all of them have succeeded.
                Some((step, line, all)) if (*step, *line) == (item.step, &item.line) => *all &= is_undone,
                _ if is_undone || was_begun().await => ended.push((item.step, &item.line, is_undone)),
                _ => {}
            }
        }
        self.units.remove().await;
        let (undone, not_undone): (Vec<_>, Vec<_>) =
            ended.into_iter().partition(|(.., is_undone)| *is_undone);
        let lines = |all: Vec<(_, &String, _)>| all.into_iter().map(|(_, line, _)| line.clone()).collect();
        GuardOutcome::Fired(lines(undone), lines(not_undone))
    }

    /// Whether the target has finished its undo. The start that the host sent may have been lost; then the timer starts
    /// the undo.
    async fn has_settled(&self) -> bool {
        let Ok(true) = self.has_fired().await else {
            // The undo has not begun, or the target doesn't answer.
            let _ = self.units.systemctl(&["start", "--", &self.service()]).await;
            return matches!(self.has_fired().await, Ok(true)) && self.is_at_rest().await;
        };
        self.is_at_rest().await
    }

    async fn is_at_rest(&self) -> bool {
        let shown = self.show(&self.service(), "ActiveState,Job").await;
        shown.is_ok_and(|shown| {
            shown.lines().all(|line| !matches!(line, "ActiveState=activating"))
                && shown.lines().all(|line| !line.starts_with("Job=") || matches!(line, "Job=" | "Job=0"))
        })
    }

    /// Removes the timer and the units. The result is false where the timer has fired already.
    async fn disarm(&self) -> Result<bool, Problem> {
        let stopped = self.units.systemctl(&["stop", "--", &self.timer()]).await;
        if stopped.as_ref().map_or_else(Problem::is_uncertain, |_| true) {
            self.stopped.store(true, Ordering::Release);
        }
        stopped?;
        let waits = !self.has_fired().await?;
        if waits {
            self.units.remove().await;
        }
        Ok(waits)
    }

    fn timer(&self) -> String {
        format!("{}.timer", self.units.name)
    }

    fn service(&self) -> String {
        format!("{}.service", self.units.name)
    }

    /// Whether the target has begun the undo. The service waits for each of its units, so each unit is checked.
    async fn has_fired(&self) -> Result<bool, Problem> {
        let units = std::iter::once(self.service())
            .chain((0..self.items.len()).map(|number| self.units.item(number)));
        let units: Vec<String> = units.collect();
        let args = ["show", "--property=ActiveState,Job,ExecMainStartTimestampMonotonic", "--"];
        let args: Vec<&str> = args.into_iter().chain(units.iter().map(String::as_str)).collect();
        let shown = self.units.ask("systemctl", &args).await?;
        let waits = |block: &str| {
            let has = |word: &str| block.lines().any(|line| line == word);
            let started = block.lines().any(|line| {
                line.strip_prefix("ExecMainStartTimestampMonotonic=")
                    .is_some_and(|time| !matches!(time, "" | "0"))
            });
            let queued = block
                .lines()
                .any(|line| line.strip_prefix("Job=").is_some_and(|job| !matches!(job, "" | "0")));
            has("ActiveState=inactive") && !started && !queued
        };
        // systemctl prints one block for each unit, with empty lines between them.
        let blocks: Vec<&str> = shown.trim().split("\n\n").collect();
        Ok(blocks.len() != units.len() || !blocks.into_iter().all(waits))
    }

    async fn show(&self, unit: &str, properties: &str) -> Result<String, Problem> {
        self.units.ask("systemctl", &["show", &format!("--property={properties}"), "--", unit]).await
    }

    async fn is_marked(&self, step: Option<usize>) -> bool {
        match step {
            Some(step) => self.units.ask("stat", &["--", &self.units.mark(step)]).await.is_ok(),
            None => true,
        }
    }

    fn unit(&self, number: usize, item: &UndoUnit) -> String {
        let mut unit = "[Unit]\nDescription=Undo of one step\n".to_owned();
        if number > 0 {
            let _ = writeln!(unit, "After={}", self.units.item(number - 1));
        }
        for path in item.step.map(|step| self.units.mark(step)).iter().chain(&item.needs) {
            let _ = writeln!(unit, "ConditionPathExists={}", escaped(path));
        }
        unit.push_str("\n[Service]\nType=oneshot\nRemainAfterExit=yes\n");
        // The environment is the same as for commands that the host runs.
        for (name, value) in [("PATH", PATH), ("LC_ALL", "C.UTF-8")] {
            let _ = writeln!(unit, "Environment={name}={value}");
        }
        for (name, value) in &item.env {
            let _ = writeln!(unit, "Environment={}", quoted(&format!("{name}={value}"), false));
        }
        if let Some(user) = &item.user {
            let _ = writeln!(unit, "User={user}");
        }
        if item.stdin.is_some() {
            let _ = writeln!(unit, "StandardInput=file:{}", self.units.stdin(number));
        }
        let argv: Vec<String> = item.argv.iter().map(|word| quoted(word, true)).collect();
        let _ = writeln!(unit, "ExecStart={}", argv.join(" "));
        unit
    }

    async fn write(&self, path: &str, contents: Vec<u8>, mode: &str) -> Result<(), Problem> {
        let to = format!("of={path}");
        self.units.command("dd", &[&to, "oflag=nofollow", "bs=65536", "status=none"], Some(contents)).await?;
        self.units.command("chmod", &["--", mode, path], None).await.map(drop)
    }
}

/// The problem where the target has undone the change, or is undoing it.
pub fn cut() -> Problem {
    let message =
        "the way to the target was cut and didn't come back in time, so the target has undone the change";
    Problem::new("CONNECTION_CUT", Category::Network, message)
}

/// The problem where the target can't be reached any more.
pub fn unreached(name: &str, due: Option<Timestamp>) -> Problem {
    let message = match due {
        Some(due) => format!(
            "the way to {name} was cut and it can't be reached: it undoes the change by itself, by {due:.0} at the latest"
        ),
        None => format!(
            "the way to {name} was cut while its guard was taken away: whether it undoes the change isn't known"
        ),
    };
    Problem::new("CONNECTION_CUT", Category::Network, message)
        .remedy(format!("Look at {name} after that, by another way where there is one"))
}

/// The problem where the connection was lost before the plan's first step.
fn before_any_step(problem: Problem) -> Problem {
    if !problem.is_uncertain() {
        return problem;
    }
    let message =
        "the connection was lost while the undo was being put on the target, so the step didn't begin";
    Problem::new("CONNECTION_LOST", Category::Network, message)
}

/// The commands of the undo: those of the latest step first, then those that run after every undo.
async fn items(execution: &Execution) -> Result<Vec<UndoUnit>, Problem> {
    let (plan, uid) = (&execution.plan, execution.expected.facts().uid);
    let mut items = Vec::new();
    for (step, prepared) in plan.steps.iter().enumerate().rev() {
        if let PreparedAction::File(site, _) = &prepared.action {
            let action = &plan.change.steps[step].action;
            let privilege = action.path().map_or(Privilege::Root, |at| at.privilege.clone());
            let selinux = execution.expected.facts().mac_system == "selinux";
            for (count, (mut argv, needs)) in site.undo_by_target(action, selinux).into_iter().enumerate() {
                argv[0] = execution.target.program(&argv[0]).await?;
                // For files that are written or removed, only the first command is the undo itself. The others remove
                // its copies.
                let is_tidying = count > 0 && matches!(action, Action::Write(_) | Action::Remove(_));
                let line = if is_tidying { String::new() } else { execution.title(step) };
                let user = user(&privilege, uid);
                items.push(UndoUnit {
                    step: Some(step),
                    argv,
                    env: Vec::new(),
                    stdin: None,
                    user,
                    needs,
                    line,
                });
            }
        }
        for command in &prepared.undo {
            items.push(item(execution, Some(step), command).await?);
        }
    }
    for command in &plan.after_undo {
        items.push(item(execution, None, command).await?);
    }
    Ok(items)
}

async fn item(
    execution: &Execution,
    step: Option<usize>,
    allowed: &AllowedCommand,
) -> Result<UndoUnit, Problem> {
    if allowed.has_secrets() {
        // Every account can read units.
        let message = "a guard's undo holds a secret, which would lie on the target for everybody to read";
        return Err(Problem::new("GUARD_UNAVAILABLE", Category::State, message));
    }
    let command = &allowed.command;
    let mut argv = vec![execution.target.program(&command.program).await?];
    argv.extend(command.args.iter().cloned());
    Ok(UndoUnit {
        step,
        argv,
        env: command.env.clone(),
        stdin: command.stdin.clone(),
        user: user(&command.privilege, execution.expected.facts().uid),
        needs: None,
        line: allowed.line(),
    })
}

/// The account that a command runs as. Without another account's name that is root: the caller's commands need no more
/// rights than root has.
fn user(privilege: &Privilege, caller: u32) -> Option<String> {
    match privilege {
        Privilege::User(name) => Some(name.clone()),
        Privilege::Caller if caller != 0 => Some(caller.to_string()),
        _ => None,
    }
}

/// One word of a command line in a unit, so that systemd expands nothing in it, see systemd.syntax(7) and
/// systemd.service(5).
fn quoted(word: &str, is_argument: bool) -> String {
    let mut quoted = "\"".to_owned();
    for character in word.chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            '%' => quoted.push_str("%%"),
            '$' if is_argument => quoted.push_str("$$"),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}

/// A path in a unit, with its blanks escaped.
fn escaped(path: &str) -> String {
    path.replace('%', "%%")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_means_itself_to_the_service_manager() {
        for (word, expected) in [
            ("plain", r#""plain""#),
            ("a b", r#""a b""#),
            ("50%", r#""50%%""#),
            ("$HOME", r#""$$HOME""#),
            (r#"a"b\c"#, r#""a\"b\\c""#),
            ("a\nb", r#""a\nb""#),
            ("", r#""""#),
        ] {
            assert_eq!(quoted(word, true), expected);
        }
        assert_eq!(quoted("A=$x", false), r#""A=$x""#);
    }
}
