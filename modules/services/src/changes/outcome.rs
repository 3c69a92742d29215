//! The answer of a tool that changes a unit's state: how the unit is after the plan succeeded or failed.

use std::time::Duration;

use linux_sysadmin_sdk::{Output, prelude::*};

use crate::excerpt;
use crate::systemd::exit_status::{exit_status, has_failed};
use crate::systemd::journal;
use crate::systemd::properties::{self, Properties};
use crate::systemd::systemctl;
use crate::systemd::unit::{self, Unit};
use crate::systemd::verb::Verb;

/// The time after which a started process is looked at. systemd calls a service of type simple started as soon as there
/// is a process, and a process that fails at once needs this time to end.
const SETTLING: Duration = Duration::from_millis(500);

/// The number of systemctl's messages that are passed on.
const MOST_MESSAGES: usize = 5;

/// The answer of the tools that start, stop, enable and so on. Where there was nothing to do, and in a dry run, the
/// states are the current ones.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Outcome {
    pub(crate) service: String,
    /// The action in a dry run: `stop`, `enable and start`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) would: Option<String>,
    #[serde(flatten)]
    pub(crate) state: State,
    /// The failure of the last run, in words. It is `success` where the unit was started and has run to its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) result: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) exit_code: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) exit_signal: Option<String>,
    /// The last lines that the unit wrote, where it was started and failed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) last_output: Vec<String>,
    /// Running units that stop or restart along with the unit.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) along: Vec<String>,
    /// The state before the change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) before: Option<State>,
}

/// A unit's state, as `systemctl show` prints it.
#[derive(Clone, Debug, Default, Serialize, PartialEq, Eq)]
pub(crate) struct State {
    pub(crate) active_state: String,
    pub(crate) sub_state: String,
    /// The unit file's state. It is left out where there is no unit file.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) enabled: String,
}

impl State {
    pub(crate) fn of(unit: &Unit) -> Self {
        Self {
            active_state: unit.active_state.clone(),
            sub_state: unit.sub_state.clone(),
            enabled: unit.enabled.clone(),
        }
    }
}

impl Outcome {
    /// The outcome for a unit that has not been changed.
    pub(crate) fn unchanged(unit: &Unit) -> Self {
        Self { service: unit.short().to_owned(), state: State::of(unit), ..Self::default() }
    }
}

/// The answer where nothing had to change.
pub(crate) fn holds(unit: &Unit, why: String) -> Noted<Outcome> {
    Noted { data: Outcome::unchanged(unit), notes: vec![why] }
}

/// The answer after a plan that succeeded. It is a success even where the unit can't be looked at afterwards.
pub(crate) fn after(unit: &Unit, verbs: &[Verb], applied: &Applied, cx: &Context) -> Noted<Outcome> {
    let mut notes = messages(&applied.outputs);
    let started = verbs.iter().any(|verb| matches!(verb, Verb::Start | Verb::Restart));
    let dies_unnoticed = matches!(unit.service_type.as_deref(), Some("simple" | "exec" | "idle"));
    if started && dies_unnoticed {
        cx.sleep(SETTLING);
    }
    let mut outcome = Outcome::unchanged(unit);
    outcome.before = Some(std::mem::take(&mut outcome.state));
    let (shown, printed) = look(unit, started && dies_unnoticed, cx);
    let shown = shown.and_then(|text| match properties::parse(&text).as_slice() {
        [found] => {
            fill(&mut outcome, found);
            Ok(if started { of_start(&mut outcome, found, &printed) } else { None })
        }
        _ => Err(Problem::unexpected("systemctl show", &text)),
    });
    match shown {
        Ok(remark) => notes.extend(remark),
        Err(problem) => {
            outcome.state.active_state = "unknown".to_owned();
            let why = problem.message.replace('\n', "; ");
            notes.push(format!("the change was made, but the state afterwards could not be read: {why}"));
        }
    }
    Noted { data: outcome, notes }
}

/// The unit's properties, and its journal where it is wanted.
fn look(unit: &Unit, wants_journal: bool, cx: &Context) -> (Result<String>, String) {
    let shown = systemctl::AFTERWARDS.with([unit.id.as_str()]);
    if !wants_journal {
        return (systemctl::answer(cx.run(shown)), String::new());
    }
    let journal = journal::command(std::slice::from_ref(&unit.id), false, None);
    let [shown, printed] = cx.run_each([shown, journal]);
    (systemctl::answer(shown), journal::printed(&printed))
}

/// Fills in the state.
fn fill(outcome: &mut Outcome, found: &Properties<'_>) {
    let string = |key: &str| found.string(key).unwrap_or_default();
    outcome.state = State {
        active_state: string("ActiveState"),
        sub_state: string("SubState"),
        enabled: string("UnitFileState"),
    };
    outcome.result = found.string("Result").filter(|result| result != "success");
    (outcome.exit_code, outcome.exit_signal) = exit_status(found);
}

/// Adds how a run ended that was just started. Returns a remark where the unit doesn't run as it should.
fn of_start(outcome: &mut Outcome, found: &Properties<'_>, printed: &str) -> Option<String> {
    let service = &outcome.service;
    let see = format!("see svc_status service={service}");
    let is_ended = outcome.state.active_state == "inactive";
    if has_failed(found) {
        let id = found.text("Id").unwrap_or_default();
        outcome.last_output = journal::last_output(printed, id, found.text("InvocationID"));
        let see = if outcome.last_output.is_empty() { format!(": {see}") } else { String::new() };
        return Some(format!("{service} was started and ended badly at once{see}"));
    }
    if is_ended && found.text("ConditionTimestamp").is_some() && found.text("ConditionResult") == Some("no") {
        return Some(format!("{service} was not started: a condition of its unit file isn't met; {see}"));
    }
    if is_ended && found.text("Type") == Some("oneshot") {
        // systemd forgets at once how a unit ended that nothing needs.
        let is_known = found.yes("ConditionResult");
        outcome.result = found.string("Result").filter(|_| is_known);
        let unknown = format!("{service} has run to its end, or a condition of its unit file isn't met");
        return (!is_known).then_some(unknown);
    }
    (is_ended && service_has_processes(found)).then(|| format!(
        "{service} was started and is inactive: it has ended already, or a condition of its unit file isn't met; {see}"
    ))
}

fn service_has_processes(found: &Properties<'_>) -> bool {
    found.text("Id").is_some_and(|id| id.ends_with(".service"))
}

fn how(outcome: &Outcome) -> String {
    let code = outcome.exit_code.map(|code| format!("exit code {code}"));
    let parts = [outcome.result.clone(), code, outcome.exit_signal.clone()];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    if parts.is_empty() { String::new() } else { format!(" ({})", parts.join(", ")) }
}

/// The lines that systemctl printed, without the usual ones about the links that it made.
fn messages(outputs: &[Output]) -> Vec<String> {
    const USUAL: [&str; 5] =
        ["Created symlink", "Removed ", "Synchronizing state of ", "Executing: ", "Running in chroot"];
    let lines: Vec<String> = outputs.iter().map(Output::error_text).collect();
    let lines = lines.iter().flat_map(|text| text.lines()).map(str::trim);
    let lines = lines.filter(|line| !line.is_empty() && !USUAL.iter().any(|usual| line.starts_with(usual)));
    lines.take(MOST_MESSAGES).map(|line| format!("systemctl: {}", excerpt::of_text(line))).collect()
}

/// The problem of a plan that failed at a verb, with the state of the unit.
pub(crate) fn failed(unit: &Unit, verb: Verb, failure: Failure, cx: &Context) -> Problem {
    // Only what systemctl itself refused is explained here. The host explains what was cancelled, cut off or denied.
    let output = failure.outputs.last().filter(|output| output.exit_code != 0);
    let Some(output) = output.filter(|_| failure.problem.code == "COMMAND_FAILED" && !failure.uncertain)
    else {
        return failure.problem;
    };
    let mut outcome = Outcome::unchanged(unit);
    let runs = verb.runs();
    let (shown, printed) = look(unit, runs, cx);
    let mut lines = Vec::new();
    if let [found] = properties::parse(&shown.unwrap_or_default()).as_slice() {
        fill(&mut outcome, found);
        lines = journal::last_output(&printed, &unit.id, found.text("InvocationID"));
    }
    let (name, how) = (verb.name(), how(&outcome));
    let said = output.error_text();
    let said: Vec<&str> = said.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let telling: Vec<&str> = said.iter().copied().filter(|line| !is_usual(line)).collect();
    let is_told = !(telling.is_empty() && lines.is_empty() && how.is_empty());
    let said = excerpt::of_text(&if is_told { telling } else { said }.join("; "));
    let why: Vec<String> = Some(said).filter(|said| !said.is_empty()).into_iter().chain(lines).collect();
    let why = if why.is_empty() { String::new() } else { format!(": {}", why.join("; ")) };
    let message = format!("systemctl {name} {} failed{how}{why}", unit.id);
    let short = unit.short();
    let problem = unit::state(&format!("SERVICE_{}_FAILED", name.to_ascii_uppercase()), message)
        .remedy(format!("Look at its state: svc_status service={short}"));
    if !runs {
        return problem;
    }
    problem
        .remedy(format!("Find out why: svc_troubleshoot service={short}"))
        .remedy(format!("Read its log: svc_logs service={short}"))
}

/// True for what systemctl says of every job that failed. The unit's result says it too, except that there were too many
/// starts.
fn is_usual(line: &str) -> bool {
    let is_of_job = line.starts_with("Job for ") && line.contains(" failed") && !line.contains(" too often");
    is_of_job || line.starts_with("See \"systemctl status ")
}
