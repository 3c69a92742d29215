//! The part of `svc_status` that systemd doesn't know of: health, recent errors, ports, what needs a restart, and
//! dependants. All commands run at the same time. The report leaves out what is as it should be.

use linux_sysadmin_sdk::processes::replaced_files;
use linux_sysadmin_sdk::{knowledge::Profile, listening, prelude::*};

use super::command_batch::{CommandBatch, CommandIndex, Outputs};
use super::dependants::{self, Dependants};
use super::health_checks::{self, Health};
use super::needs_restart;
use super::recent_errors::{self, RepeatedMessage};
use crate::ports::declared::{self, Ports};
use crate::systemd::properties::{self, Properties};
use crate::systemd::{exit_status, journal, systemctl, time, unit_name};

/// A service flaps where it had this many restarts, the last of them at most this many seconds ago.
const FLAPPING: (u64, i64) = (3, 600);

/// The number of dependent units that are looked at.
const UNITS: usize = 100;

/// The report on one unit.
#[derive(Debug, Default, Serialize)]
pub(crate) struct ServiceReport {
    /// The profile's id.
    #[serde(skip_serializing_if = "Option::is_none")]
    profile: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    health: Option<Health>,
    /// True where the service is restarted again and again.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    flapping: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    recent_errors: Vec<RepeatedMessage>,
    /// The last lines that a unit wrote before it failed, without those that the answer has already.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    last_output: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ports: Option<Ports>,
    /// The files that it still uses in an older state, and that a restart would read again.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    needs_restart: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    needs_reload: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    dependants: Vec<Dependants>,
}

/// The state of the unit, as far as the commands depend on it.
struct UnitState<'a> {
    id: &'a str,
    is_active: bool,
    has_failed: bool,
    /// The id of the last run.
    invocation: Option<&'a str>,
    pid: Option<u64>,
    started: Option<i64>,
    /// The time of the last reload or, without one, of the start.
    changed: Option<i64>,
    /// Units that stop with this one.
    needing: Vec<String>,
    /// Units that go on without this one.
    wanting: Vec<String>,
}

impl<'a> UnitState<'a> {
    fn of(unit: &Properties<'a>) -> Self {
        let at = |key: &str| unit.text(key).and_then(time::timestamp);
        let is_active = matches!(unit.text("ActiveState"), Some("active" | "reloading" | "refreshing"));
        let started = at("ExecMainStartTimestamp").or_else(|| at("ActiveEnterTimestamp"));
        let others = |keys: &[&str]| -> Vec<String> {
            let names = keys.iter().flat_map(|key| unit.words(key));
            // Targets are left out: they only say at which stage of a boot the unit is wanted.
            let mut names: Vec<_> = names
                .filter(|other| !other.ends_with(".target") && !other.ends_with(".slice"))
                .filter(|other| unit_name::full(other).is_ok_and(|full| full == *other))
                .collect();
            names.sort();
            names.dedup();
            names.truncate(UNITS);
            names
        };
        Self {
            id: unit.text("Id").unwrap_or_default(),
            is_active,
            has_failed: exit_status::has_failed(unit),
            invocation: unit.text("InvocationID"),
            pid: unit.number("MainPID").filter(|pid| is_active && *pid > 1),
            started: started.filter(|_| is_active),
            changed: started.max(at("StateChangeTimestamp")).filter(|_| is_active),
            needing: others(&["RequiredBy", "RequisiteOf", "BoundBy", "ConsistsOf"]),
            wanting: others(&["WantedBy"]),
        }
    }
}

/// Runs the commands, and makes the report and its notes.
pub(crate) fn report(
    unit: &Properties<'_>,
    profile: Option<&Profile>,
    now: Option<i64>,
    cx: &Context,
) -> (ServiceReport, Vec<String>) {
    let state = UnitState::of(unit);
    // A profile's socket or timer is not the service itself.
    let is_service = |profile: &&Profile| {
        state.id.ends_with(".service") || profile.main_unit().is_some_and(|main| main.is(state.id))
    };
    let known = profile.filter(is_service);
    let clock = now.unwrap_or(cx.now() as i64);
    let ended = unit.text("InactiveEnterTimestamp").and_then(time::timestamp);
    let since = recent_errors::since(clock, state.started, ended.filter(|_| !state.is_active));

    let mut batch = CommandBatch::default();
    let checks = known.map(|profile| health_checks::add(profile, &mut batch)).unwrap_or_default();
    let errors = recent_errors::add(state.id, known, (clock, since), state.is_active, &mut batch);
    let declares = |profile: &&Profile| profile.ports.iter().any(|port| !port.optional);
    let listening = known.filter(declares).map(|_| batch.add(listening::command()));
    let deleted = state.pid.map(|pid| batch.add(replaced_files::command(pid)));
    let read = state.started.zip(state.changed);
    let newer = known
        .zip(read)
        .and_then(|(profile, (started, _))| needs_restart::newer(profile, started))
        .map(|command| batch.add(command));
    let around: Vec<&String> = state.needing.iter().chain(&state.wanting).collect();
    let running = (!around.is_empty()).then(|| batch.add(systemctl::ACTIVE.with(around)));
    let outputs = batch.run(cx);

    let failed = state.has_failed.then_some(state.id);
    let (recent_errors, note) = recent_errors::read(&errors, &outputs, known, failed);
    let health = health_checks::judge(&checks, &outputs);
    let mut last_output = failed
        .map(|unit| {
            journal::last_output(&journal::printed(outputs.of(errors.journal)), unit, state.invocation)
        })
        .unwrap_or_default();
    last_output.retain(|line| {
        !recent_errors.iter().any(|error| error.says(line))
            && !health.as_ref().is_some_and(|health| health.says(line))
    });
    let changed = known
        .zip(read)
        .zip(newer)
        .map(|((profile, (started, changed)), newer)| {
            needs_restart::changed(outputs.of(newer), profile, started, changed)
        })
        .unwrap_or_default();
    let report = ServiceReport {
        profile: profile.map(|profile| profile.id.clone()),
        health,
        flapping: is_flapping(unit, now, state.started),
        recent_errors,
        last_output,
        ports: known.zip(sockets(listening, &outputs)).and_then(|(profile, sockets)| {
            declared::compare(profile, state.pid, state.is_active, &sockets, cx)
        }),
        needs_restart: replaced(deleted, &outputs).into_iter().chain(changed.restart).collect(),
        needs_reload: changed.reload,
        dependants: dependants(&state, known, running, &outputs),
    };
    (report, note.into_iter().collect())
}

fn sockets(command: Option<CommandIndex>, outputs: &Outputs) -> Option<Vec<listening::Socket>> {
    Some(listening::parse(&outputs.stdout(command?)?))
}

fn replaced(command: Option<CommandIndex>, outputs: &Outputs) -> Vec<String> {
    let maps = command.and_then(|command| outputs.stdout(command)).unwrap_or_default();
    let files =
        replaced_files::of(&maps).into_iter().map(|file| format!("it runs on {file}, which was replaced"));
    needs_restart::named(files.collect())
}

/// True where the unit is restarted again and again, and where it was until systemd gave up.
fn is_flapping(unit: &Properties<'_>, now: Option<i64>, started: Option<i64>) -> bool {
    let (often, lately) = FLAPPING;
    let is_fresh = now.zip(started).is_some_and(|(now, started)| now - started < lately);
    let gave_up = unit.text("ActiveState") == Some("failed");
    unit.text("SubState") == Some("auto-restart")
        || (unit.number("NRestarts").is_some_and(|restarts| restarts >= often) && (is_fresh || gave_up))
        || unit.text("Result") == Some("start-limit-hit")
}

fn dependants(
    state: &UnitState<'_>,
    profile: Option<&Profile>,
    running: Option<CommandIndex>,
    outputs: &Outputs,
) -> Vec<Dependants> {
    let shown = running.and_then(|command| outputs.stdout(command)).unwrap_or_default();
    let units = properties::parse(&shown);
    let active: Vec<&str> = units
        .iter()
        .filter(|unit| !matches!(unit.text("ActiveState"), None | Some("inactive" | "failed")))
        .filter_map(|unit| unit.text("Id"))
        .collect();
    let of = |names: &[String], if_down: &str| {
        let names = names.iter().filter(|name| active.contains(&name.as_str())).cloned().collect::<Vec<_>>();
        (!names.is_empty()).then(|| Dependants {
            who: unit_name::shorts(&names),
            role: None,
            if_down: if_down.to_owned(),
        })
    };
    let needing = of(&state.needing, "they stop with it");
    let wanting = of(&state.wanting, "they go on without it");
    needing.into_iter().chain(dependants::of_profile(profile)).chain(wanting).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_started_again_and_again_flaps() {
        let table = [
            ("ActiveState=activating\nSubState=auto-restart\nNRestarts=1", None, true),
            ("ActiveState=active\nSubState=running\nNRestarts=3", Some(9_900), true),
            ("ActiveState=active\nSubState=running\nNRestarts=3", Some(1_000), false),
            ("ActiveState=active\nSubState=running\nNRestarts=1", Some(9_900), false),
            // When systemd 252 gave up, Result is still that of the last run.
            ("ActiveState=failed\nSubState=failed\nNRestarts=5\nResult=exit-code", None, true),
            ("ActiveState=failed\nSubState=failed\nNRestarts=0\nResult=exit-code", None, false),
            ("ActiveState=failed\nSubState=failed\nResult=start-limit-hit", None, true),
        ];
        for (text, started, expected) in table {
            let unit = properties::parse(text);
            assert_eq!(is_flapping(&unit[0], Some(10_000), started), expected, "{text}");
        }
    }
}
