//! The schedule of a timer and the unit that it activates: the arguments of the timer tools, and checks of a timer's
//! file.

use linux_sysadmin_sdk::prelude::*;

use super::arguments::{self, Texts};
use super::syntax::{self, Setting};
use crate::systemd::calendar::{self, Elapses};
use crate::systemd::verb::Verb;
use crate::systemd::{unit, unit_name};

/// The arguments that describe a timer.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct Schedule {
    /// As Mon..Fri 08:00
    pub(crate) on_calendar: Option<Texts>,
    /// After boot, as 5min
    pub(crate) on_boot_sec: Option<String>,
    /// After its last start
    pub(crate) on_unit_active_sec: Option<String>,
    /// After its last end
    pub(crate) on_unit_inactive_sec: Option<String>,
    /// Make up for missed runs
    pub(crate) persistent: Option<bool>,
    /// Random delay
    pub(crate) randomized_delay_sec: Option<String>,
    /// In words
    pub(crate) description: Option<String>,
    /// What it starts
    pub(crate) service: Option<String>,
    /// Default timers.target
    pub(crate) wanted_by: Option<Texts>,
    /// Whole file instead
    pub(crate) raw_content: Option<String>,
}

impl Schedule {
    /// A note on the fields that are ignored because the caller gives the whole file.
    pub(crate) fn ignored(&self) -> Option<String> {
        arguments::ignored(&[
            ("on_calendar", self.on_calendar.is_some()),
            ("on_boot_sec", self.on_boot_sec.is_some()),
            ("on_unit_active_sec", self.on_unit_active_sec.is_some()),
            ("on_unit_inactive_sec", self.on_unit_inactive_sec.is_some()),
            ("persistent", self.persistent.is_some()),
            ("randomized_delay_sec", self.randomized_delay_sec.is_some()),
            ("description", self.description.is_some()),
            ("service", self.service.is_some()),
            ("wanted_by", self.wanted_by.is_some()),
        ])
    }

    /// The settings, in the order in which a file has them.
    pub(crate) fn settings(&self, timer: &str) -> Result<Vec<Setting>> {
        let span = |key: &'static str, field: &str, value: &Option<String>| {
            arguments::setting("Timer", key, field, value.as_deref(), arguments::span)
        };
        let persistent = self.persistent.map(|is| if is { "true" } else { "false" });
        let unit = match &self.service {
            Some(unit) => Some(activated(unit, timer)?),
            None => None,
        };
        let description = self.description.as_deref();
        let settings = [
            arguments::setting("Unit", "Description", "description", description, arguments::anything)?,
            arguments::calendar(self.on_calendar.as_ref())?,
            span("OnBootSec", "on_boot_sec", &self.on_boot_sec)?,
            span("OnUnitActiveSec", "on_unit_active_sec", &self.on_unit_active_sec)?,
            span("OnUnitInactiveSec", "on_unit_inactive_sec", &self.on_unit_inactive_sec)?,
            span("RandomizedDelaySec", "randomized_delay_sec", &self.randomized_delay_sec)?,
            arguments::setting("Timer", "Persistent", "persistent", persistent, arguments::anything)?,
            arguments::setting("Timer", "Unit", "service", unit.as_deref(), arguments::anything)?,
            arguments::units("Install", "WantedBy", "wanted_by", self.wanted_by.as_ref())?,
        ];
        Ok(settings.into_iter().flatten().collect())
    }
}

/// The full name of the unit that a timer activates.
fn activated(unit: &str, timer: &str) -> Result<String> {
    let unit = unit_name::full(unit)?;
    if unit == timer {
        return Err(Problem::validation(
            "INVALID_VALUE",
            "service is the timer itself: expected what it is to activate",
        ));
    }
    Ok(unit)
}

/// The keys of which a timer needs one.
const TRIGGERS: [&str; 7] = [
    "OnCalendar",
    "OnBootSec",
    "OnStartupSec",
    "OnActiveSec",
    "OnUnitActiveSec",
    "OnUnitInactiveSec",
    "OnClockChange",
];

fn has_trigger(text: &str, keys: &[&str]) -> bool {
    keys.iter().any(|key| syntax::values(text, "Timer", key).iter().any(|value| !value.is_empty()))
}

/// Refuses a timer that never elapses.
pub(crate) fn must_elapse(text: &str) -> Result<()> {
    if has_trigger(text, &TRIGGERS) || has_trigger(text, &["OnTimezoneChange"]) {
        return Ok(());
    }
    let message = "the timer would never elapse: expected on_calendar, on_boot_sec, on_unit_active_sec or \
                   on_unit_inactive_sec";
    Err(Problem::validation("MISSING_SCHEDULE", message))
}

/// The unit that a timer file activates.
pub(crate) fn activates(text: &str, own_service: &str) -> String {
    let last = syntax::values(text, "Timer", "Unit").pop().filter(|unit| !unit.is_empty());
    last.unwrap_or_else(|| own_service.to_owned())
}

/// The times at which a timer file's calendar expressions elapse. An invalid expression is an error before anything is
/// written.
pub(crate) fn elapses(text: &str, cx: &Context) -> Result<Elapses> {
    let mut expressions = syntax::values(text, "Timer", "OnCalendar");
    // An empty assignment resets the ones before it.
    let from = expressions.iter().rposition(String::is_empty).map_or(0, |empty| empty + 1);
    expressions.drain(..from);
    expressions.dedup();
    if expressions.iter().any(|expression| expression.contains('%')) {
        return Ok(Elapses::default());
    }
    let mut elapses = calendar::elapses(&expressions, cx)?;
    if has_trigger(text, &["Persistent"]) && expressions.is_empty() {
        elapses.notes.push("persistent has no effect without on_calendar".to_owned());
    }
    Ok(elapses)
}

/// Refuses a timer whose unit doesn't exist or can't be started.
pub(crate) fn check_activated_unit(activates: &str, cx: &Context) -> Result<()> {
    let target = unit::known(activates, cx).map_err(|problem| {
        if problem.code != "UNIT_NOT_FOUND" {
            return problem;
        }
        problem.remedy("Or have the timer create it: timer_create with exec_start")
    })?;
    target.check(Verb::Start)
}

/// Adds a warning where the timer may run at once.
pub(crate) fn with_warning_of_run_at_once(change: Change, text: &str) -> Change {
    if has_trigger(text, &["OnBootSec", "OnStartupSec"]) {
        return change.warning("where the time since boot (OnBootSec) has passed already, it runs at once");
    }
    change
}
