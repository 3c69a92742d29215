//! A change that could cut the connection undoes itself on the target, unless the host gets through again.
//!
//! Before the first step the undo lies on the target as units of its service manager: one for each command, each with
//! its argv and no shell, chained so that the latest step is undone first, and started by a timer. A step's units do
//! nothing until the step has been marked as begun. Every step starts the timer anew; after the last one the host looks
//! whether the target can be reached by a new connection, and takes the units away.
//!
//! The connection may go in the middle of any of these commands. Each of them says where the target is to be, and not how
//! it gets there, so each may be given again, but for the mark of a step: where it is lost, the step doesn't begin. As long
//! as nobody has heard that the timer is stopped, the target is taken to undo by itself.

mod network;
mod units;

use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

use super::allowed::Allowed;
use super::execution::Execution;
use super::plan::Action;
use super::prepare::Doing;
use host_base::Privilege;
use host_base::problem::{Category, Problem};
use host_base::program::PATH;
use host_target::Target;
use network::Network;
use units::UNITS;
pub use units::{Left, Units};

/// Between two looks at whether the target is reached.
const AGAIN: Duration = Duration::from_millis(500);
/// For the target's own undo to give the way back, and for the host to find it.
const SETTLING: Duration = Duration::from_secs(30);

/// One command of the undo, as the target would run it by itself.
struct Item {
    /// Step that it belongs to; those after the undo belong to none.
    step: Option<usize>,
    argv: Vec<String>,
    env: Vec<(String, String)>,
    stdin: Option<Vec<u8>>,
    user: Option<String>,
    /// A path that must be there.
    needs: Option<String>,
    /// As a person reads it.
    line: String,
}

/// The undo on the target.
pub struct Guard<'a> {
    target: &'a Target,
    units: Units<'a>,
    wait: Duration,
    /// From when the timer is started until it fires.
    runs: Duration,
    /// When it has fired for sure, unless it was stopped.
    due: Mutex<Instant>,
    /// Whether the timer was told to stop.
    stopped: AtomicBool,
    items: Vec<Item>,
    /// Of this machine; of another one a connection tells.
    before: Option<Network>,
}

/// What the guard found.
pub enum Watched {
    /// The target is reached, and nothing is left of the guard.
    Disarmed,
    /// It has undone the change: what, and what not.
    Fired(Vec<String>, Vec<String>),
    /// The target can't be reached. It undoes the change by itself, by then; nobody knows where the timer may have been
    /// stopped.
    Unreached(Option<Timestamp>),
}

impl<'a> Guard<'a> {
    /// Puts the undo on the target, and starts its timer.
    pub async fn arm(execution: &'a Execution, id: &str, wait: Duration) -> Result<Self, Problem> {
        let facts = execution.meant.facts();
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
        let units = Units::new(target, id, items.len(), execution.plan.steps.len());
        // A step's own time beside the wait: the timer is started before the step.
        let steps = execution.plan.change.steps.iter().filter_map(|step| match &step.action {
            Action::Run(run) => Some(run.command.timeout),
            _ => None,
        });
        let runs = wait + steps.max().unwrap_or_default();
        let (due, stopped) = (Mutex::new(Instant::now() + runs), AtomicBool::new(false));
        let guard = Self { target, units, wait, runs, due, stopped, items, before };
        if let Err(problem) = guard.put().await {
            // A timer that stays finds no step begun.
            guard.units.remove().await;
            return Err(before_any_step(problem));
        }
        guard.restarted();
        Ok(guard)
    }

    /// The timer has been started anew, or may have been.
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

    /// A step is about to begin. A problem where the target is undoing already: what came now would stay.
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

    /// A step that failed isn't undone.
    pub async fn has_failed(&self, step: usize) {
        if let Err(problem) = self.units.command("rmdir", &["--", &self.units.mark(step)], None).await {
            tracing::warn!(guard = self.units.name, step, %problem, "the guard still takes a failed step for a begun one");
        }
    }

    /// The steps are through: looks whether the target can be reached anew, until the time is over.
    pub async fn watch(self) -> Watched {
        let until = Instant::now() + self.wait;
        while Instant::now() < until {
            // One that hangs tells nothing.
            let reached = tokio::time::timeout_at(until, self.is_reached()).await.unwrap_or(false);
            if reached {
                match self.disarm().await {
                    Ok(true) => return Watched::Disarmed,
                    Ok(false) => break,
                    Err(problem) => {
                        self.again(&problem);
                        // It may hang for long where a new one is to be had.
                        self.target.leave_connection().await;
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
            None => self.target.is_reached_anew().await.is_ok(),
        }
    }

    /// A step has failed, and the host undoes by itself, unless the target was first.
    pub async fn stand_down(self) -> Watched {
        while Instant::now() < self.due() {
            match self.disarm().await {
                Ok(true) => return Watched::Disarmed,
                Ok(false) => break,
                Err(problem) => self.again(&problem),
            }
            tokio::time::sleep(AGAIN).await;
        }
        self.fires().await
    }

    /// Nobody knows how far a step came: the target undoes it along with all before it.
    pub async fn left_to_target(self) -> Watched {
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

    /// Has it fire, or sees that it has. Where nobody answers, it does so without being told.
    async fn fires(&self) -> Watched {
        // It is due, or is to be: not waiting for the timer's own moment changes nothing but the waiting. The timer stays
        // until that is under way: whichever comes first, the service is started.
        let _ = self.units.systemctl(&["start", "--", &self.service()]).await;
        let until = self.due().max(Instant::now()) + SETTLING;
        while !self.has_settled().await && Instant::now() < until {
            tokio::time::sleep(AGAIN).await;
        }
        if self.has_fired().await.is_err() {
            let is_sure = !self.stopped.load(Ordering::Acquire);
            let left = self.due().saturating_duration_since(Instant::now());
            return Watched::Unreached(is_sure.then(|| Timestamp::now() + left));
        }
        let _ = self.units.systemctl(&["stop", "--", &self.timer()]).await;
        let (mut undone, mut not_undone) = (Vec::new(), Vec::new());
        for (number, item) in self.items.iter().enumerate() {
            let ran = self.show(&self.units.item(number), "Result,ConditionResult,ActiveState").await;
            // What keeps copies is nobody's news.
            if item.line.is_empty() {
                continue;
            }
            let has = |word: &str| ran.as_ref().is_ok_and(|shown| shown.lines().any(|line| line == word));
            if has("ConditionResult=yes") && has("Result=success") && has("ActiveState=active") {
                undone.push(item.line.clone());
            } else if ran.is_err() || has("ConditionResult=yes") || self.is_marked(item.step).await {
                not_undone.push(item.line.clone());
            }
        }
        self.units.remove().await;
        Watched::Fired(undone, not_undone)
    }

    /// Whether the target has undone all that it undoes: the start that was sent may not have come, and the timer's own
    /// is to come then.
    async fn has_settled(&self) -> bool {
        let Ok(true) = self.has_fired().await else {
            // Nothing has begun yet, or nobody answers.
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

    /// Takes the timer and the units away; false where the timer was first.
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

    /// Whether the target has begun to undo: the service waits for each of its parts, so each is looked at.
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
        // Blocks are set apart by empty lines, one for each unit.
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

    fn unit(&self, number: usize, item: &Item) -> String {
        let mut unit = "[Unit]\nDescription=Undo of one step\n".to_owned();
        if number > 0 {
            let _ = writeln!(unit, "After={}", self.units.item(number - 1));
        }
        for path in item.step.map(|step| self.units.mark(step)).iter().chain(&item.needs) {
            let _ = writeln!(unit, "ConditionPathExists={}", escaped(path));
        }
        unit.push_str("\n[Service]\nType=oneshot\nRemainAfterExit=yes\n");
        // As where the host runs it.
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

/// The target has undone the change, or is at it.
pub fn cut() -> Problem {
    let message =
        "the way to the target was cut and didn't come back in time, so the target has undone the change";
    Problem::new("CONNECTION_CUT", Category::Network, message)
}

/// The target can't be reached any more.
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

/// The connection went while the guard was got ready: what the plan is about hasn't begun.
fn before_any_step(problem: Problem) -> Problem {
    if !problem.is_uncertain() {
        return problem;
    }
    let message =
        "the connection was lost while the undo was being put on the target, so the step didn't begin";
    Problem::new("CONNECTION_LOST", Category::Network, message)
}

/// The undo of the latest step first, then what comes after every undo.
async fn items(execution: &Execution) -> Result<Vec<Item>, Problem> {
    let (plan, uid) = (&execution.plan, execution.meant.facts().uid);
    let mut items = Vec::new();
    for (step, prepared) in plan.steps.iter().enumerate().rev() {
        if let Doing::File(site, _) = &prepared.doing {
            let action = &plan.change.steps[step].action;
            let privilege = action.path().map_or(Privilege::Root, |at| at.privilege.clone());
            for (count, (mut argv, needs)) in site.undo_by_target(action).into_iter().enumerate() {
                argv[0] = execution.target.program(&argv[0]).await?;
                // The first one is the undo itself, the others remove what was kept for it.
                let line = if count == 0 { execution.title(step) } else { String::new() };
                let user = user(&privilege, uid);
                items.push(Item { step: Some(step), argv, env: Vec::new(), stdin: None, user, needs, line });
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

async fn item(execution: &Execution, step: Option<usize>, allowed: &Allowed) -> Result<Item, Problem> {
    if allowed.has_secrets() {
        // Units can be read by everybody.
        let message = "a guard's undo holds a secret, which would lie on the target for everybody to read";
        return Err(Problem::new("GUARD_UNAVAILABLE", Category::State, message));
    }
    let command = &allowed.command;
    let mut argv = vec![execution.target.program(&command.program).await?];
    argv.extend(command.args.iter().cloned());
    Ok(Item {
        step,
        argv,
        env: command.env.clone(),
        stdin: command.stdin.clone(),
        user: user(&command.privilege, execution.meant.facts().uid),
        needs: None,
        line: allowed.line(),
    })
}

/// As root where no other account is named: the caller's commands reach no further than root's.
fn user(privilege: &Privilege, caller: u32) -> Option<String> {
    match privilege {
        Privilege::User(name) => Some(name.clone()),
        Privilege::Caller if caller != 0 => Some(caller.to_string()),
        _ => None,
    }
}

/// One word of a command line, systemd.syntax(7) and systemd.service(5): nothing in it is expanded.
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

/// A path that isn't split at blanks.
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
