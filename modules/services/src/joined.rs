//! A unit's state joined with what its profile says and with the rest of the machine: health, errors, ports, what it runs
//! on that isn't there any more, who depends on it. Asked all at once; what is as it should be takes no room.

use linux_sysadmin_sdk::{knowledge::Profile, prelude::*};

use crate::asked::{Answers, Asked, Questions};
use crate::health::{self, Health};
use crate::ports::{self, Ports};
use crate::properties::{self, Properties};
use crate::recent::{self, Repeated};
use crate::{name, outcome, sockets, stale, systemctl, time};

/// So many restarts, the last of them so many seconds ago, are no accident.
const FLAPPING: (u64, i64) = (3, 600);

/// How many units that depend on it are looked at.
const UNITS: usize = 100;

/// Beside what systemd says of the unit itself.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Joined {
    /// Its id.
    #[serde(skip_serializing_if = "Option::is_none")]
    profile: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    health: Option<Health>,
    /// It is started again and again.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    flapping: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    recent_errors: Vec<Repeated>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ports: Option<Ports>,
    /// Why it still runs by what isn't there any more.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    needs_restart: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    needs_reload: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    dependants: Vec<Dependants>,
}

/// Who depends on it, and runs.
#[derive(Debug, Serialize, PartialEq, Eq)]
pub(crate) struct Dependants {
    pub(crate) who: Vec<String>,
    /// What it is to them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) role: Option<String>,
    pub(crate) if_down: String,
}

/// When and how it runs, as far as the questions depend on it.
struct Now<'a> {
    id: &'a str,
    is_active: bool,
    pid: Option<u64>,
    started: Option<i64>,
    /// The last reload, or the start.
    changed: Option<i64>,
    needing: Vec<String>,
    wanting: Vec<String>,
}

impl<'a> Now<'a> {
    fn of(unit: &Properties<'a>) -> Self {
        let at = |key: &str| unit.text(key).and_then(time::timestamp);
        let is_active = matches!(unit.text("ActiveState"), Some("active" | "reloading" | "refreshing"));
        let started = at("ExecMainStartTimestamp").or_else(|| at("ActiveEnterTimestamp"));
        let others = |keys: &[&str]| -> Vec<String> {
            let names = keys.iter().flat_map(|key| unit.words(key));
            // Targets only say at which stage of a boot it is wanted.
            let mut names: Vec<_> = names
                .filter(|other| !other.ends_with(".target") && !other.ends_with(".slice"))
                .filter(|other| name::full(other).is_ok_and(|full| full == *other))
                .collect();
            names.sort();
            names.dedup();
            names.truncate(UNITS);
            names
        };
        Self {
            id: unit.text("Id").unwrap_or_default(),
            is_active,
            pid: unit.number("MainPID").filter(|pid| is_active && *pid > 1),
            started: started.filter(|_| is_active),
            changed: started.max(at("StateChangeTimestamp")).filter(|_| is_active),
            needing: others(&["RequiredBy", "RequisiteOf", "BoundBy", "ConsistsOf"]),
            wanting: others(&["WantedBy"]),
        }
    }
}

/// One round of questions, and what there is to say besides.
pub(crate) fn look(
    unit: &Properties<'_>,
    profile: Option<&Profile>,
    now: Option<i64>,
    cx: &Context,
) -> (Joined, Vec<String>) {
    let its = Now::of(unit);
    // A socket or a timer beside a service isn't the service.
    let is_service = |profile: &&Profile| {
        its.id.ends_with(".service") || profile.main_unit().is_some_and(|main| main.is(its.id))
    };
    let known = profile.filter(is_service);
    let clock = now.unwrap_or(cx.now() as i64);
    let ended = unit.text("InactiveEnterTimestamp").and_then(time::timestamp);
    let since = recent::since(clock, its.started, ended.filter(|_| !its.is_active));

    let mut questions = Questions::default();
    let checks = known.map(|profile| health::ask(profile, &mut questions)).unwrap_or_default();
    let errors = recent::ask(its.id, known, (clock, since), its.is_active, &mut questions);
    let declares = |profile: &&Profile| profile.ports.iter().any(|port| !port.optional);
    let listening = known.filter(declares).map(|_| questions.ask(sockets::listening()));
    let deleted = its.pid.map(|pid| questions.ask(stale::deleted(pid)));
    let read = its.started.zip(its.changed);
    let newer = known
        .zip(read)
        .and_then(|(profile, (started, _))| stale::newer(profile, started))
        .map(|command| questions.ask(command));
    let around: Vec<&String> = its.needing.iter().chain(&its.wanting).collect();
    let running = (!around.is_empty()).then(|| questions.ask(systemctl::ACTIVE.with(around)));
    let answers = questions.answers(cx);

    let (recent_errors, note) = recent::read(&errors, &answers, known);
    let changed = known
        .zip(read)
        .zip(newer)
        .map(|((profile, (started, changed)), newer)| {
            stale::changed(answers.of(newer), profile, started, changed)
        })
        .unwrap_or_default();
    let joined = Joined {
        profile: profile.map(|profile| profile.id.clone()),
        health: health::judge(&checks, &answers),
        flapping: is_flapping(unit, now, its.started),
        recent_errors,
        ports: known
            .zip(listened(listening, &answers))
            .and_then(|(profile, sockets)| ports::compare(profile, its.pid, its.is_active, &sockets)),
        needs_restart: replaced(deleted, &answers).into_iter().chain(changed.restart).collect(),
        needs_reload: changed.reload,
        dependants: dependants(&its, known, running, &answers),
    };
    (joined, note.into_iter().collect())
}

fn listened(asked: Option<Asked>, answers: &Answers) -> Option<Vec<sockets::Socket>> {
    Some(sockets::parse(&answers.stdout(asked?)?))
}

fn replaced(asked: Option<Asked>, answers: &Answers) -> Vec<String> {
    let maps = asked.and_then(|asked| answers.stdout(asked)).unwrap_or_default();
    let files =
        stale::replaced(&maps).into_iter().map(|file| format!("it runs on {file}, which was replaced"));
    stale::named(files.collect())
}

/// It is started again and again, or was, until systemd gave up.
fn is_flapping(unit: &Properties<'_>, now: Option<i64>, started: Option<i64>) -> bool {
    let (often, lately) = FLAPPING;
    let is_fresh = now.zip(started).is_some_and(|(now, started)| now - started < lately);
    let gave_up = unit.text("ActiveState") == Some("failed");
    unit.text("SubState") == Some("auto-restart")
        || (unit.number("NRestarts").is_some_and(|restarts| restarts >= often) && (is_fresh || gave_up))
        || unit.text("Result") == Some("start-limit-hit")
}

fn dependants(
    its: &Now<'_>,
    profile: Option<&Profile>,
    running: Option<Asked>,
    answers: &Answers,
) -> Vec<Dependants> {
    let shown = running.and_then(|asked| answers.stdout(asked)).unwrap_or_default();
    let units = properties::parse(&shown);
    let active: Vec<&str> = units
        .iter()
        .filter(|unit| !matches!(unit.text("ActiveState"), None | Some("inactive" | "failed")))
        .filter_map(|unit| unit.text("Id"))
        .collect();
    let of = |names: &[String], if_down: &str| {
        let names = names.iter().filter(|name| active.contains(&name.as_str())).cloned().collect::<Vec<_>>();
        (!names.is_empty()).then(|| Dependants {
            who: outcome::shorts(&names),
            role: None,
            if_down: if_down.to_owned(),
        })
    };
    let needing = of(&its.needing, "they stop with it");
    let wanting = of(&its.wanting, "they go on without it");
    needing.into_iter().chain(services(profile)).chain(wanting).collect()
}

/// Active services that a profile says of that they depend on it.
pub(crate) fn services(profile: Option<&Profile>) -> Vec<Dependants> {
    let mut found: Vec<Dependants> = Vec::new();
    let active =
        profile.iter().flat_map(|profile| &profile.dependants).filter(|one| !one.profiles.is_empty());
    for one in active {
        let same = found.iter_mut().find(|known| known.if_down == one.if_down);
        match same {
            Some(known) => known.who.extend(one.profiles.iter().cloned()),
            None => found.push(Dependants {
                who: one.profiles.clone(),
                role: Some(one.role.clone()),
                if_down: one.if_down.clone(),
            }),
        }
    }
    for one in &mut found {
        one.who.sort();
        one.who.dedup();
    }
    found
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
            // Of systemd 252, once it gave up: Result is still that of the last run.
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
