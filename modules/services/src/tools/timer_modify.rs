//! `timer_modify`: changes settings of a timer, or replaces its whole file.

use linux_sysadmin_sdk::prelude::*;

use crate::systemd::verb::Verb;
use crate::systemd::{systemctl, unit};
use crate::unit_files::planned_file::{self, Written};
use crate::unit_files::timer_schedule::{self, Schedule};
use crate::unit_files::{arguments, edit};

#[derive(Deserialize, JsonSchema)]
pub(crate) struct ModifyArgs {
    /// Timer, as logrotate
    name: String,
    #[serde(flatten)]
    schedule: Schedule,
}

pub(crate) fn timer_modify(args: ModifyArgs, cx: &Context) -> Result<Noted<Written>> {
    let name = planned_file::file_name(&args.name, ".timer")?;
    let whole = args.schedule.raw_content.as_deref();
    let mut notes = Vec::new();
    let settings = match whole {
        Some(whole) => {
            notes.extend(args.schedule.ignored());
            arguments::whole_file(whole)?;
            Vec::new()
        }
        None => args.schedule.settings(&name)?,
    };
    let unit = unit::known(&name, cx)?;
    let file = edit::edited(&unit, &settings, whole, cx)?;
    let own_service = format!("{}.service", unit.id.trim_end_matches(".timer"));
    let activates = timer_schedule::activates(&file.text, &own_service);
    let mut reply = Written { activates: Some(activates.clone()), ..file.reply() };
    if file.is_unchanged() {
        return Ok(edit::unchanged(reply, &unit, notes));
    }
    timer_schedule::must_elapse(&file.text)?;
    let elapses = timer_schedule::elapses(&file.text, cx)?;
    let mut change = Change::new(format!("Modify the timer {}", unit.id)).lock(Lock::Systemd);
    if file.former.as_deref().map(|former| timer_schedule::activates(former, &own_service))
        != Some(activates.clone())
    {
        timer_schedule::check_activated_unit(&activates, cx)?;
    }
    change = file
        .write(change)
        .step(Step::run(systemctl::daemon_reload()).uninterruptible())
        .after_undo(systemctl::daemon_reload());
    if unit.is_running() {
        // The former schedule takes effect only after systemd has read the former file: the restart that undoes this one
        // must follow the daemon-reload.
        let restart = || Verb::Restart.command(&unit.id);
        change = timer_schedule::with_warning_of_run_at_once(change, &file.text)
            .step(Step::run(restart()).uninterruptible())
            .after_undo(restart());
    }
    let applied = cx
        .apply(change)
        .map_err(|failure| planned_file::failed(failure, &[(2, &unit, Verb::Restart)], cx))?;
    reply.next = elapses.next;
    notes.extend(elapses.notes);
    if applied.dry_run {
        reply.would = Some("edit");
    } else {
        notes.extend(planned_file::look_again(&mut reply, &[&file], cx));
        if !unit.is_running() {
            notes.push(format!("it isn't active: svc_enable service={} now=true", unit.id));
        }
    }
    notes.extend(edit::notes(&unit, &file));
    Ok(Noted { data: reply, notes })
}
