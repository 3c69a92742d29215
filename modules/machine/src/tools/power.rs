//! `machine_reboot` and `machine_shutdown`.

use linux_sysadmin_sdk::{Category, DurationCategory, Privilege, prelude::*};

use crate::power::hindrance::{self, of_the_next_start};
use crate::power::schedule::{self, Scheduled};
use crate::power::start::{self, Started};
use crate::power::units::{NotUp, Units, states};

#[derive(Deserialize, JsonSchema)]
struct RebootArgs {
    #[serde(flatten)]
    shutdown: ShutdownArgs,
    /// Over SSH: wait until it is back
    #[serde(default = "default_wait")]
    #[schemars(range(min = 10, max = 1800))]
    wait_seconds: u32,
}

#[derive(Deserialize, JsonSchema)]
struct ShutdownArgs {
    /// now, +MINUTES or HH:MM
    at: Option<String>,
    /// Cancels what is planned
    #[serde(default)]
    cancel: bool,
    /// For those logged in
    message: Option<String>,
    /// Though somebody blocks it
    #[serde(default)]
    force: bool,
}

fn default_wait() -> u32 {
    300
}

/// The state that the machine is in now.
#[derive(Serialize)]
struct Answer {
    /// The change that a dry run would make.
    #[serde(skip_serializing_if = "Option::is_none")]
    would: Option<&'static str>,
    /// `scheduled`, `cancelled`, `going_down`, or `up` after a restart.
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<&'static str>,
    /// The time that is planned, or that was cancelled.
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<String>,
    /// The reasons for the restart.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    required_by: Vec<String>,
    #[serde(flatten)]
    started: Option<Started>,
}

impl Answer {
    fn of(state: &'static str) -> Self {
        Self { would: None, state: Some(state), at: None, required_by: Vec::new(), started: None }
    }

    fn would(what: &'static str) -> Self {
        Self { would: Some(what), state: None, ..Self::of("") }
    }
}

/// A restart, or turning the machine off.
struct Request {
    at: Option<String>,
    message: Option<String>,
    force: bool,
    /// The seconds to wait for a restart. None where the machine is turned off.
    wait_seconds: Option<u32>,
}

fn reboot(args: RebootArgs, cx: &Context) -> Result<Noted<Answer>> {
    ordered(args.shutdown, Some(args.wait_seconds), cx)
}

fn shutdown(args: ShutdownArgs, cx: &Context) -> Result<Noted<Answer>> {
    ordered(args, None, cx)
}

fn ordered(args: ShutdownArgs, wait_seconds: Option<u32>, cx: &Context) -> Result<Noted<Answer>> {
    let ShutdownArgs { at, cancel, message, force } = args;
    match cancel {
        true => cancelled(at.is_some() || message.is_some(), cx),
        false => goes_down(&Request { at, message, force, wait_seconds }, cx),
    }
}

fn cancelled(has_more: bool, cx: &Context) -> Result<Noted<Answer>> {
    if has_more {
        let message = "cancel=true takes neither `at` nor `message`: it cancels what is planned";
        return Err(Problem::validation("INVALID_ARGUMENTS", message));
    }
    let Some(Scheduled { mode, at }) = schedule::scheduled(cx.read(schedule::SCHEDULED)) else {
        return Err(Problem::new("NOT_SCHEDULED", Category::State, "no restart or shutdown is planned"));
    };
    let step = Step::run(schedule::CANCEL.command().as_root());
    let applied = cx.apply(Change::new(format!("Cancel the {mode} that is planned for {at}")).step(step))?;
    let data = match applied.dry_run {
        true => Answer { at: Some(at), ..Answer::would("cancel") },
        false => Answer { at: Some(at), ..Answer::of("cancelled") },
    };
    Ok(Noted { data, notes: Vec::new() })
}

fn goes_down(request: &Request, cx: &Context) -> Result<Noted<Answer>> {
    let time = schedule::time(request.at.as_deref())?;
    if let Some(message) = &request.message {
        schedule::message(message)?;
    }
    let is_now = time == "now";
    let blocking = hindrance::inhibitors(cx);
    if is_now && !request.force && !blocking.is_empty() {
        return Err(hindrance::inhibited(&blocking));
    }
    let [boot, planned, table] =
        [start::BOOT_ID, schedule::SCHEDULED, hindrance::FSTAB_FILE].map(|path| cx.read(path));
    let sshd = hindrance::SSHD.command().privilege(Privilege::RootIfAvailable);
    let [units, fstab, sshd] = cx.run_each([states(), hindrance::FSTAB.command(), sshd]);
    let (before, required_by) = (Units::read(units), start::required_by(cx));
    let mut change = plan(request, &time);
    // Who confirms has to know whose work ends, or what a planned shutdown may wait for.
    for blocking in blocking {
        let how =
            if is_now { "force goes down all the same" } else { "it may be at the planned time as well" };
        change = change.warning(format!("{blocking}; {how}"));
    }
    let optional = hindrance::optional_mounts(&table.unwrap_or_default());
    for warning in of_the_next_start(&before, fstab, &optional, sshd) {
        change = change.warning(warning);
    }
    if let Some(Scheduled { mode, at }) = schedule::scheduled(planned) {
        change = change.warning(format!("this takes the place of the {mode} that is planned for {at}"));
    }
    let applied = cx.apply(change)?;
    if applied.dry_run {
        let data = Answer {
            required_by,
            ..Answer::would(if request.wait_seconds.is_some() { "restart" } else { "turn off" })
        };
        return Ok(Noted { data, notes: Vec::new() });
    }
    if !is_now {
        let at = schedule::scheduled(cx.read(schedule::SCHEDULED)).map(|planned| planned.at);
        let notes = vec!["cancel=true cancels it".to_owned()];
        return Ok(Noted { data: Answer { at, required_by, ..Answer::of("scheduled") }, notes });
    }
    // The host returns while the machine goes down where the server runs on it, and once it is back where it doesn't.
    let is_back = request.wait_seconds.is_some() && is_another(boot, cx.read(start::BOOT_ID));
    if !is_back {
        return Ok(Noted { data: Answer::of("going_down"), notes: Vec::new() });
    }
    let started = start::look(&before, cx);
    let notes = started.not_up.iter().find_map(NotUp::advice).into_iter().collect();
    Ok(Noted { data: Answer { started: Some(started), ..Answer::of("up") }, notes })
}

fn is_another(before: Result<String>, now: Result<String>) -> bool {
    before.is_ok_and(|before| now.is_ok_and(|now| now != before))
}

fn summary(request: &Request, time: &str) -> String {
    let verb = if request.wait_seconds.is_some() { "Restart the machine" } else { "Turn the machine off" };
    match (time, time.strip_prefix('+')) {
        ("now", _) => format!("{verb} now"),
        (_, Some(minutes)) => format!("{verb} in {minutes} minutes"),
        _ => format!("{verb} at {time}"),
    }
}

fn plan(request: &Request, time: &str) -> Change {
    let (line, told) = match request.wait_seconds {
        Some(_) => (schedule::RESTART, schedule::RESTART_TOLD),
        None => (schedule::TURN_OFF, schedule::TURN_OFF_TOLD),
    };
    let command = match &request.message {
        Some(message) => told.with([time, message]),
        None => line.with([time]),
    };
    // Nobody ends a command that may be half-way to a shutdown.
    let step = Step::run(command.as_root()).uninterruptible();
    let change = Change::new(summary(request, time)).lock(Lock::PackageDatabase);
    match (time, request.wait_seconds) {
        ("now", Some(seconds)) => change.step(step).restarts(seconds),
        ("now", None) => change.step(step).turns_off(),
        _ => change.step(step.undo(schedule::CANCEL.command().as_root())),
    }
}

/// Adds the tools.
pub(crate) fn tools(module: Module) -> Module {
    let slow = |tool: Tool| tool.risk(Risk::Critical).duration(DurationCategory::Slow);
    module
        .tool(slow(Tool::new("machine_reboot", "Restart the machine, and say what didn't come up", reboot)))
        .tool(slow(Tool::new("machine_shutdown", "Turn the machine off", shutdown)))
}
