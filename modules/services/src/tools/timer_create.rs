//! `timer_create`: creates a timer, and with `exec_start` also the service that it starts.

use linux_sysadmin_sdk::prelude::*;

use crate::changes::plan;
use crate::systemd::systemctl;
use crate::systemd::unit::Unit;
use crate::systemd::verb::Verb;
use crate::unit_files::planned_file::{self, PlannedFile, Written};
use crate::unit_files::syntax::{self, Setting};
use crate::unit_files::timer_schedule::{self, Schedule};
use crate::unit_files::{arguments, edit};

#[derive(Deserialize, JsonSchema)]
pub(crate) struct CreateArgs {
    /// Without .timer
    name: String,
    /// New service's command
    exec_start: Option<String>,
    /// Service's account
    user: Option<String>,
    /// Service's directory
    working_directory: Option<String>,
    /// Default true
    enable: Option<bool>,
    #[serde(flatten)]
    schedule: Schedule,
}

pub(crate) fn timer_create(args: CreateArgs, cx: &Context) -> Result<Noted<Written>> {
    let timer = planned_file::file_name(&args.name, ".timer")?;
    let own_service = format!("{}.service", timer.trim_end_matches(".timer"));
    let mut notes = Vec::new();
    let text = match &args.schedule.raw_content {
        Some(whole) => {
            notes.extend(args.schedule.ignored());
            arguments::whole_file(whole)?.to_owned()
        }
        None => new_timer(args.schedule.settings(&timer)?, &own_service)?,
    };
    let service_text = new_service(&args, &own_service)?;
    let activates = timer_schedule::activates(&text, &own_service);
    let elapses = timer_schedule::elapses(&text, cx)?;
    let file = planned_file::new_file(&timer, text, cx)?;
    let service = match service_text {
        Some(_) if activates != own_service => {
            let message =
                format!("the timer activates {activates}, and exec_start would create {own_service}");
            return Err(
                Problem::validation("TWO_SERVICES", message).remedy("Give either service or exec_start")
            );
        }
        Some(text) => Some(planned_file::new_file(&own_service, text, cx)?),
        None => None,
    };
    let mut change = Change::new(format!("Create the timer {timer}")).lock(Lock::Systemd);
    // The service comes first, because a timer of a missing unit can't be verified.
    match &service {
        Some(service) => change = service.write(change),
        None => timer_schedule::check_activated_unit(&activates, cx)?,
    }
    change = file.write(change).step(Step::run(systemctl::daemon_reload()).uninterruptible());
    let unit = Unit::to_be(&timer);
    let mut verbs = Vec::new();
    if args.enable.unwrap_or(true) {
        let is_wanted = !syntax::values(&file.text, "Install", "WantedBy").is_empty();
        verbs.extend(is_wanted.then_some(Verb::Enable));
        verbs.push(Verb::Start);
        if !is_wanted {
            notes.push(
                "nothing wants it (wanted_by): it is started, and will not be at the next boot".to_owned(),
            );
        }
        change = timer_schedule::with_warning_of_run_at_once(change, &file.text);
    }
    let first = 2 + usize::from(service.is_some());
    for verb in &verbs {
        change = change.step(plan::step(&unit, *verb));
    }
    let steps: Vec<_> = verbs.iter().enumerate().map(|(index, verb)| (first + index, &unit, *verb)).collect();
    let change = change.after_undo(systemctl::daemon_reload());
    let applied = cx.apply(change).map_err(|failure| planned_file::failed(failure, &steps, cx))?;
    let mut reply = Written { activates: Some(activates), next: elapses.next, ..file.reply() };
    notes.extend(elapses.notes);
    if applied.dry_run {
        reply.would = Some("create");
    } else {
        let files: Vec<&PlannedFile> = service.iter().chain([&file]).collect();
        notes.extend(planned_file::look_again(&mut reply, &files, cx));
        if verbs.is_empty() {
            notes.push(format!("it is neither started nor enabled: svc_enable service={timer} now=true"));
        }
    }
    Ok(Noted { data: reply, notes })
}

/// The text of the new timer's file.
fn new_timer(mut settings: Vec<Setting>, own_service: &str) -> Result<String> {
    settings.retain(|setting| setting.key != "Unit" || setting.values != [own_service]);
    if !settings.iter().any(|setting| setting.key == "WantedBy") {
        settings.push(Setting::new("Install", "WantedBy", vec!["timers.target".to_owned()]));
    }
    let text = syntax::render(&settings);
    timer_schedule::must_elapse(&text)?;
    Ok(text)
}

/// The text of the new service's file. None where the arguments describe no service.
fn new_service(args: &CreateArgs, unit: &str) -> Result<Option<String>> {
    let service = arguments::Service {
        exec_start: args.exec_start.as_deref(),
        user: args.user.as_deref(),
        working_directory: args.working_directory.as_deref(),
        ..arguments::Service::default()
    };
    if service.is_empty() {
        return Ok(None);
    }
    let mut settings = Vec::new();
    let description = args.schedule.description.as_deref().filter(|_| args.schedule.raw_content.is_none());
    settings.extend(arguments::setting(
        "Unit",
        "Description",
        "description",
        description,
        arguments::anything,
    )?);
    // The type oneshot suits a program that ends: while it runs, the timer doesn't start it again.
    settings.push(Setting::new("Service", "Type", vec!["oneshot".to_owned()]));
    settings.extend(service.settings()?);
    edit::new_service(unit, settings, "").map(Some)
}
