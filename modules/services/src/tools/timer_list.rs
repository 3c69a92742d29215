//! `timer_list`: lists every timer, those in the manager's memory and those that are only installed.

use std::collections::{BTreeMap, BTreeSet};

use linux_sysadmin_sdk::{Output, prelude::*, time::rfc3339};

use crate::systemd::properties::{self, Properties};
use crate::systemd::{systemctl, time, unit_name};

/// A timer in the list.
#[derive(Debug, Serialize)]
pub(crate) struct Timer {
    timer: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    activates: Option<String>,
    /// True where no file defines the unit that it activates.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    activates_missing: bool,
    /// The failure of that unit's last run, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_result: Option<String>,
    /// The settings as in the unit file, normalized: `OnCalendar=*-*-* 06:00:00`, `OnBootSec=15min`.
    schedule: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_in_seconds: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last: Option<String>,
    active_state: String,
    sub_state: String,
    /// The load state, where it isn't `loaded` and `enabled` doesn't say it.
    #[serde(skip_serializing_if = "Option::is_none")]
    load_state: Option<String>,
    /// The unit file's state, as `systemctl list-unit-files` gives it.
    #[serde(skip_serializing_if = "Option::is_none")]
    enabled: Option<String>,
    /// True where a run that was missed while the machine was off is made up for.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    persistent: bool,
    /// The longest random delay. `next` includes the delay.
    #[serde(skip_serializing_if = "Option::is_none")]
    random_delay: Option<String>,
    /// The timer's own result, where it isn't `success`.
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<String>,
}

pub(crate) fn timer_list(_: NoArgs, cx: &Context) -> Result<Listing<Timer>> {
    let lines = [systemctl::LOADED_TIMERS, systemctl::ELAPSES, systemctl::CLOCK, systemctl::TIMER_FILES];
    let [loaded, elapses_next, now, files] = cx.run_each(lines.map(CommandLine::command));
    let loaded = systemctl::answer(loaded)?;
    let (installed, note) = systemctl::installed(files);
    let mut notes: Vec<String> = note.into_iter().collect();
    let (elapses, now) = (elapses(elapses_next), systemctl::clock(now));

    let mut units = properties::parse_units(&loaded)?;
    let is_new = |name: &str| !units.iter().any(|unit| unit.text("Id") == Some(name));
    let others: Vec<&str> = installed
        .iter()
        .filter(|file| !file.is_template_or_alias())
        .map(|file| file.name.as_str())
        .filter(|name| is_new(name))
        .collect();
    let read;
    if !others.is_empty() {
        read = systemctl::answer(cx.run(systemctl::TIMERS.with(others)))?;
        units.extend(properties::parse_units(&read)?);
    }
    let mut items = timers(&units, elapses.as_ref(), now);
    if let Err(problem) = add_last_results(&mut items, cx) {
        let why = problem.message.replace('\n', "; ");
        notes.push(format!("how the last runs went is missing: {why}"));
    }
    Ok(Listing { items, total: None, notes })
}

/// Adds the results of the units that the timers activate. The timers themselves don't have them.
fn add_last_results(timers: &mut [Timer], cx: &Context) -> Result<()> {
    let names = timers.iter().filter_map(|timer| timer.activates.as_deref());
    // systemctl would refuse the whole command for one name that isn't valid.
    let names: BTreeSet<String> = names
        .filter(|name| unit_name::full(name).is_ok_and(|full| full == *name))
        .map(str::to_owned)
        .collect();
    if names.is_empty() {
        return Ok(());
    }
    let text = systemctl::answer(cx.run(systemctl::ACTIVATED.with(&names)))?;
    let units = properties::parse_units(&text)?;
    if units.len() != names.len() {
        return Err(Problem::unexpected("systemctl show", &text));
    }
    // systemctl answers in the order of the names, and an alias by the unit's own name.
    let units: BTreeMap<&str, &Properties<'_>> = names.iter().map(String::as_str).zip(&units).collect();
    for timer in timers {
        let Some(unit) = timer.activates.as_deref().and_then(|name| units.get(name)) else { continue };
        timer.activates_missing = unit.text("LoadState") == Some("not-found");
        timer.last_result = unit.string("Result").filter(|result| result != "success");
    }
    Ok(())
}

/// The time at which each timer elapses next, in seconds since the epoch. None where this systemctl prints no JSON.
fn elapses(output: Result<Output>) -> Option<BTreeMap<String, i64>> {
    #[derive(Deserialize)]
    struct Row {
        unit: String,
        next: Option<u64>,
    }
    let text = systemctl::answer(output).ok()?;
    let rows: Vec<Row> = serde_json::from_str(&text).ok()?;
    let micros = |next: Option<u64>| next.filter(|next| (1..u64::MAX).contains(next));
    Some(rows.into_iter().filter_map(|row| Some((row.unit, seconds(micros(row.next)?)))).collect())
}

/// All timers, in the order in which they elapse. Those that don't elapse come last.
fn timers(units: &[Properties<'_>], elapses: Option<&BTreeMap<String, i64>>, now: Option<i64>) -> Vec<Timer> {
    let booted = booted(units);
    let mut timers = units
        .iter()
        .filter_map(|unit| {
            let id = unit.text("Id").filter(|id| id.ends_with(".timer"))?;
            if unit.text("LoadState") == Some("not-found") && unit.text("ActiveState") == Some("inactive") {
                return None;
            }
            let next = match elapses {
                Some(elapses) => elapses.get(id).copied(),
                None => computed(unit, booted),
            };
            Some((next, timer(id, unit, next, now)))
        })
        .collect::<Vec<_>>();
    timers.sort_by(|(a, first), (b, second)| {
        (a.is_none(), a, &first.timer).cmp(&(b.is_none(), b, &second.timer))
    });
    timers.into_iter().map(|(_, timer)| timer).collect()
}

fn timer(id: &str, unit: &Properties<'_>, next: Option<i64>, now: Option<i64>) -> Timer {
    let specification = |text: &str| {
        let inner = text.trim_start_matches("{ ");
        let inner = inner.split(" ; next_elapse=").next().unwrap_or(inner);
        // systemd's D-Bus interface calls a time span `USec`, the unit file calls it `Sec`.
        inner.replacen("USec=", "Sec=", 1)
    };
    let changes = ["OnClockChange", "OnTimezoneChange"].into_iter().filter(|key| unit.yes(key));
    Timer {
        timer: id.to_owned(),
        activates: unit.string("Unit"),
        activates_missing: false,
        last_result: None,
        schedule: (unit.all("TimersCalendar").chain(unit.all("TimersMonotonic")).map(specification))
            .chain(changes.map(|key| format!("{key}=yes")))
            .collect(),
        next: next.map(rfc3339),
        next_in_seconds: next.zip(now).map(|(next, now)| next - now),
        last: unit.text("LastTriggerUSec").and_then(time::timestamp).map(rfc3339),
        active_state: unit.text("ActiveState").unwrap_or("unknown").to_owned(),
        sub_state: unit.text("SubState").unwrap_or("unknown").to_owned(),
        load_state: unit.string("LoadState").filter(|state| !matches!(state.as_str(), "loaded" | "masked")),
        enabled: unit.string("UnitFileState"),
        persistent: unit.yes("Persistent"),
        random_delay: unit.string("RandomizedDelayUSec").filter(|delay| delay != "0"),
        result: unit.string("Result").filter(|result| result != "success"),
    }
}

/// The next time for a systemctl without JSON: the earlier one of the time by the calendar and the time since the boot.
fn computed(unit: &Properties<'_>, booted: Option<i64>) -> Option<i64> {
    let by_calendar = unit.text("NextElapseUSecRealtime").and_then(time::timestamp);
    let since_boot = unit.text("NextElapseUSecMonotonic").and_then(time::span).filter(|span| *span > 0);
    let by_boot = booted.zip(since_boot).map(|(booted, span)| booted + seconds(span));
    by_calendar.into_iter().chain(by_boot).min()
}

/// The time at which the monotonic clock began. Each change of state is recorded by both clocks. The latest change is
/// used, because it comes after the most corrections of the time of day.
fn booted(units: &[Properties<'_>]) -> Option<i64> {
    let both = units.iter().filter_map(|unit| {
        let since_boot = unit.number("StateChangeTimestampMonotonic").filter(|since_boot| *since_boot > 0)?;
        Some((since_boot, time::timestamp(unit.text("StateChangeTimestamp")?)?))
    });
    both.max().map(|(since_boot, unix)| unix - seconds(since_boot))
}

/// Converts microseconds to seconds. The result is at most `u64::MAX / 1e6`, which an `i64` holds.
fn seconds(microseconds: u64) -> i64 {
    i64::try_from(microseconds / 1_000_000).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use linux_sysadmin_sdk::testkit;

    #[test]
    fn without_json_the_next_run_is_the_earlier_one_of_both_clocks() {
        let text = "Id=old.timer\nStateChangeTimestamp=Thu 1970-01-01 00:00:05 UTC\nStateChangeTimestampMonotonic=5000000\n\n\
            Id=both.timer\nNextElapseUSecRealtime=Mon 2026-11-23 08:00:00 UTC\nNextElapseUSecMonotonic=2d 23min 51.968179s\n\
            StateChangeTimestamp=Fri 2026-11-20 16:21:28 UTC\nStateChangeTimestampMonotonic=1504784505\n\n\
            Id=calendar.timer\nNextElapseUSecRealtime=Sat 2026-11-21 05:57:13 UTC\nNextElapseUSecMonotonic=0\n\n\
            Id=never.timer\nNextElapseUSecRealtime=\nNextElapseUSecMonotonic=infinity\n";
        let listed: Vec<_> = timers(&properties::parse(text), None, None)
            .into_iter()
            .map(|timer| (timer.timer, timer.next))
            .collect();
        let expected = [
            ("calendar.timer", Some("2026-11-21T05:57:13Z")),
            ("both.timer", Some("2026-11-22T16:20:15Z")),
            ("never.timer", None),
            ("old.timer", None),
        ];
        assert_eq!(listed, expected.map(|(timer, next)| (timer.to_owned(), next.map(str::to_owned))));
    }

    #[test]
    fn a_table_or_a_failure_is_no_json() {
        let output = |exit_code, stdout: &str| Ok(testkit::output(exit_code, stdout, ""));
        let table = "Fri 2026-11-20 17:22:02 CET 33s left - - app-minutely.timer app-mono.service\n";
        for output in [output(0, table), output(0, "[{\"next\":"), output(1, "[]"), output(0, "")] {
            assert_eq!(elapses(output), None);
        }
        let json = r#"[{"next":1795191722316051,"left":1,"last":0,"unit":"a.timer","activates":"b"},
            {"next":null,"unit":"b.timer"},{"next":0,"unit":"c.timer"}]"#;
        assert_eq!(elapses(output(0, json)), Some(BTreeMap::from([("a.timer".to_owned(), 1_795_191_722)])));
    }

    #[test]
    fn schedules_are_as_in_the_unit_file() {
        let text = "Id=a.timer\nTimersMonotonic={ OnUnitActiveUSec=1d ; next_elapse=0 }\n\
            TimersMonotonic={ OnBootUSec=15min ; next_elapse=38min 51.968179s }\nOnClockChange=no\nOnTimezoneChange=yes\n\
            TimersCalendar={ OnCalendar=Mon..Fri *-*-* 03:00:00 America/New_York ; next_elapse=(null) }\n";
        let expected = [
            "OnCalendar=Mon..Fri *-*-* 03:00:00 America/New_York",
            "OnUnitActiveSec=1d",
            "OnBootSec=15min",
            "OnTimezoneChange=yes",
        ];
        assert_eq!(timers(&properties::parse(text), None, None)[0].schedule, expected);
    }

    #[test]
    fn no_timers_are_an_empty_list() {
        assert!(timers(&properties::parse(""), None, None).is_empty());
        assert!(timers(&properties::parse("Id=a.service\n"), None, None).is_empty());
    }
}
