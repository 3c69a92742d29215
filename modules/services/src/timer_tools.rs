//! `timer_create` and `timer_modify`: when something runs, and where there is none yet, the service that it is.

use linux_sysadmin_sdk::prelude::*;

use crate::calendar::{self, Elapses};
use crate::control;
use crate::fields::{self, Texts};
use crate::installed::{self, Written};
use crate::power::{self, Verb};
use crate::unit::{self, Unit};
use crate::unit_file::{self, Setting};
use crate::unit_tools;

/// What a timer is made of.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct Schedule {
    /// As Mon..Fri 08:00
    on_calendar: Option<Texts>,
    on_boot_sec: Option<String>,
    on_unit_active_sec: Option<String>,
    on_unit_inactive_sec: Option<String>,
    /// Make up for runs missed while off
    persistent: Option<bool>,
    randomized_delay_sec: Option<String>,
    description: Option<String>,
    /// What it activates; by default the service of its name
    unit: Option<String>,
    wanted_by: Option<Texts>,
    /// The whole timer file instead
    raw_content: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct CreateArgs {
    name: String,
    /// Creates the service too
    exec_start: Option<String>,
    user: Option<String>,
    working_directory: Option<String>,
    /// Enable and start it; default true
    enable: Option<bool>,
    #[serde(flatten)]
    schedule: Schedule,
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct ModifyArgs {
    name: String,
    #[serde(flatten)]
    schedule: Schedule,
}

impl Schedule {
    fn ignored(&self) -> Option<String> {
        fields::ignored(&[
            ("on_calendar", self.on_calendar.is_some()),
            ("on_boot_sec", self.on_boot_sec.is_some()),
            ("on_unit_active_sec", self.on_unit_active_sec.is_some()),
            ("on_unit_inactive_sec", self.on_unit_inactive_sec.is_some()),
            ("persistent", self.persistent.is_some()),
            ("randomized_delay_sec", self.randomized_delay_sec.is_some()),
            ("description", self.description.is_some()),
            ("unit", self.unit.is_some()),
            ("wanted_by", self.wanted_by.is_some()),
        ])
    }

    /// In the order in which a file has them.
    fn settings(&self, timer: &str) -> Result<Vec<Setting>> {
        let span = |key: &'static str, field: &str, value: &Option<String>| {
            fields::setting("Timer", key, field, value.as_deref(), fields::span)
        };
        let persistent = self.persistent.map(|is| if is { "true" } else { "false" });
        let unit = match &self.unit {
            Some(unit) => Some(activated(unit, timer)?),
            None => None,
        };
        let description = self.description.as_deref();
        let settings = [
            fields::setting("Unit", "Description", "description", description, fields::anything)?,
            fields::calendar(self.on_calendar.as_ref())?,
            span("OnBootSec", "on_boot_sec", &self.on_boot_sec)?,
            span("OnUnitActiveSec", "on_unit_active_sec", &self.on_unit_active_sec)?,
            span("OnUnitInactiveSec", "on_unit_inactive_sec", &self.on_unit_inactive_sec)?,
            span("RandomizedDelaySec", "randomized_delay_sec", &self.randomized_delay_sec)?,
            fields::setting("Timer", "Persistent", "persistent", persistent, fields::anything)?,
            fields::setting("Timer", "Unit", "unit", unit.as_deref(), fields::anything)?,
            fields::units("Install", "WantedBy", "wanted_by", self.wanted_by.as_ref())?,
        ];
        Ok(settings.into_iter().flatten().collect())
    }
}

/// The unit that a timer is to activate, in full.
fn activated(unit: &str, timer: &str) -> Result<String> {
    let unit = crate::name::full(unit)?;
    if unit == timer {
        return Err(Problem::validation(
            "INVALID_VALUE",
            "unit is the timer itself: expected what it is to activate",
        ));
    }
    Ok(unit)
}

pub(crate) fn timer_create(args: CreateArgs, cx: &Context) -> Result<Noted<Written>> {
    let timer = installed::file_name(&args.name, ".timer")?;
    let own_service = format!("{}.service", timer.trim_end_matches(".timer"));
    let mut notes = Vec::new();
    let text = match &args.schedule.raw_content {
        Some(whole) => {
            notes.extend(args.schedule.ignored());
            fields::whole_file(whole)?.to_owned()
        }
        None => new_timer(args.schedule.settings(&timer)?, &own_service)?,
    };
    let service_text = new_service(&args, &own_service)?;
    let activates = activates(&text, &own_service);
    let elapses = schedule(&text, cx)?;
    let file = installed::new_file(&timer, text, cx)?;
    let service = match service_text {
        Some(_) if activates != own_service => {
            let message =
                format!("the timer activates {activates}, and exec_start would create {own_service}");
            return Err(Problem::validation("TWO_SERVICES", message).remedy("Give either unit or exec_start"));
        }
        Some(text) => Some(installed::new_file(&own_service, text, cx)?),
        None => None,
    };
    let mut change = Change::new(format!("Create the timer {timer}")).lock(Lock::Systemd);
    // First the service: a timer of what isn't there doesn't verify.
    match &service {
        Some(service) => change = service.write(change),
        None => change = of_existing(change, &activates, cx)?,
    }
    change = file.write(change).step(Step::run(installed::daemon_reload()).uninterruptible());
    let unit = Unit::to_be(&timer);
    let mut verbs = Vec::new();
    if args.enable.unwrap_or(true) {
        let is_wanted = !unit_file::values(&file.text, "Install", "WantedBy").is_empty();
        verbs.extend(is_wanted.then_some(Verb::Enable));
        verbs.push(Verb::Start);
        if !is_wanted {
            notes.push(
                "nothing wants it (wanted_by): it is started, and will not be at the next boot".to_owned(),
            );
        }
        change = runs_at_once(change, &file.text);
    }
    let first = 2 + usize::from(service.is_some());
    for verb in &verbs {
        change = change.step(control::step(&unit, *verb)).risk(power::risk(*verb, &timer));
    }
    let steps: Vec<_> = verbs.iter().enumerate().map(|(index, verb)| (first + index, &unit, *verb)).collect();
    let change = change.after_undo(installed::daemon_reload());
    let applied = cx.apply(change).map_err(|failure| installed::failed(failure, &steps, cx))?;
    let mut reply = Written { activates: Some(activates), next: elapses.next, ..file.reply() };
    notes.extend(elapses.notes);
    if applied.dry_run {
        reply.would = Some("create");
    } else {
        let files: Vec<&installed::File> = service.iter().chain([&file]).collect();
        notes.extend(installed::look_again(&mut reply, &files, cx));
        if verbs.is_empty() {
            notes.push(format!("it is neither started nor enabled: svc_enable service={timer} now=true"));
        }
    }
    Ok(Noted { data: reply, notes })
}

pub(crate) fn timer_modify(args: ModifyArgs, cx: &Context) -> Result<Noted<Written>> {
    let name = installed::file_name(&args.name, ".timer")?;
    let whole = args.schedule.raw_content.as_deref();
    let mut notes = Vec::new();
    let settings = match whole {
        Some(whole) => {
            notes.extend(args.schedule.ignored());
            fields::whole_file(whole)?;
            Vec::new()
        }
        None => args.schedule.settings(&name)?,
    };
    let unit = unit::known(&name, cx)?;
    let file = unit_tools::edited(&unit, &settings, whole, cx)?;
    let own_service = format!("{}.service", unit.id.trim_end_matches(".timer"));
    let activates = activates(&file.text, &own_service);
    let mut reply = Written { activates: Some(activates.clone()), ..file.reply() };
    if file.is_unchanged() {
        return Ok(unit_tools::unchanged(reply, &unit, notes));
    }
    must_elapse(&file.text)?;
    let elapses = schedule(&file.text, cx)?;
    let mut change = Change::new(format!("Modify the timer {}", unit.id)).lock(Lock::Systemd);
    if file.former.as_deref().map(|former| self::activates(former, &own_service)) != Some(activates.clone()) {
        change = of_existing(change, &activates, cx)?;
    }
    change = file
        .write(change)
        .step(Step::run(installed::daemon_reload()).uninterruptible())
        .after_undo(installed::daemon_reload());
    if unit.is_running() {
        // The former schedule holds again only once the former file is read, so its restart is no step's undo.
        let restart = || control::command(Verb::Restart, &unit.id);
        change = runs_at_once(change, &file.text)
            .step(Step::run(restart()).uninterruptible())
            .after_undo(restart())
            .risk(power::risk(Verb::Restart, &unit.id));
    }
    let applied =
        cx.apply(change).map_err(|failure| installed::failed(failure, &[(2, &unit, Verb::Restart)], cx))?;
    reply.next = elapses.next;
    notes.extend(elapses.notes);
    if applied.dry_run {
        reply.would = Some("edit");
    } else {
        notes.extend(installed::look_again(&mut reply, &[&file], cx));
        if !unit.is_running() {
            notes.push(format!("it isn't active: svc_enable service={} now=true", unit.id));
        }
    }
    notes.extend(unit_tools::beside(&unit, &file));
    Ok(Noted { data: reply, notes })
}

fn new_timer(mut settings: Vec<Setting>, own_service: &str) -> Result<String> {
    settings.retain(|setting| setting.key != "Unit" || setting.values != [own_service]);
    if !settings.iter().any(|setting| setting.key == "WantedBy") {
        settings.push(Setting::new("Install", "WantedBy", vec!["timers.target".to_owned()]));
    }
    let text = unit_file::render(&settings);
    must_elapse(&text)?;
    Ok(text)
}

/// The service that the arguments describe, where they do.
fn new_service(args: &CreateArgs, unit: &str) -> Result<Option<String>> {
    let service = fields::Service {
        exec_start: args.exec_start.as_deref(),
        user: args.user.as_deref(),
        working_directory: args.working_directory.as_deref(),
        ..fields::Service::default()
    };
    if service.is_empty() {
        return Ok(None);
    }
    let mut settings = Vec::new();
    let description = args.schedule.description.as_deref().filter(|_| args.schedule.raw_content.is_none());
    settings.extend(fields::setting("Unit", "Description", "description", description, fields::anything)?);
    // What a timer runs is over at some time; while a oneshot runs it isn't started again.
    settings.push(Setting::new("Service", "Type", vec!["oneshot".to_owned()]));
    settings.extend(service.settings()?);
    unit_tools::new_service(unit, settings, "").map(Some)
}

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
    keys.iter().any(|key| unit_file::values(text, "Timer", key).iter().any(|value| !value.is_empty()))
}

fn must_elapse(text: &str) -> Result<()> {
    if has_trigger(text, &TRIGGERS) || has_trigger(text, &["OnTimezoneChange"]) {
        return Ok(());
    }
    let message = "the timer would never elapse: expected on_calendar, on_boot_sec, on_unit_active_sec or \
                   on_unit_inactive_sec";
    Err(Problem::validation("MISSING_SCHEDULE", message))
}

fn activates(text: &str, own_service: &str) -> String {
    let last = unit_file::values(text, "Timer", "Unit").pop().filter(|unit| !unit.is_empty());
    last.unwrap_or_else(|| own_service.to_owned())
}

/// When the file's calendar expressions elapse; what isn't one is a problem before anything is written.
fn schedule(text: &str, cx: &Context) -> Result<Elapses> {
    let mut expressions = unit_file::values(text, "Timer", "OnCalendar");
    // An empty assignment takes back those before it.
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

/// What the timer is to activate must be there, and may cost more than a service.
fn of_existing(change: Change, activates: &str, cx: &Context) -> Result<Change> {
    let target = unit::known(activates, cx).map_err(|problem| {
        if problem.code != "UNIT_NOT_FOUND" {
            return problem;
        }
        problem.remedy("Or have the timer create it: timer_create with exec_start")
    })?;
    target.check(Verb::Start)?;
    let change = change.risk(power::risk(Verb::Start, &target.id));
    Ok(power::warnings(Verb::Start, &target.id).into_iter().fold(change, Change::warning))
}

fn runs_at_once(change: Change, text: &str) -> Change {
    if has_trigger(text, &["OnBootSec", "OnStartupSec"]) {
        return change.warning("where the time since boot (OnBootSec) has passed already, it runs at once");
    }
    change
}
