//! The common parts of the tools that create and edit unit files.

use linux_sysadmin_sdk::prelude::*;

use super::planned_file::{self, PlannedFile, Written};
use super::syntax::{self, Setting};
use crate::systemd::systemctl;
use crate::systemd::unit::Unit;

/// The text of a new service's file. Unless the settings have `WantedBy`, `wanted_by` becomes its value; nothing wants the
/// unit where that is empty.
pub(crate) fn new_service(unit: &str, mut settings: Vec<Setting>, wanted_by: &str) -> Result<String> {
    let of = |key: &str| settings.iter().find(|setting| setting.key == key);
    if of("ExecStart").is_none_or(|setting| setting.values.is_empty()) {
        let message =
            format!("exec_start is missing: expected what {unit} runs, with an absolute path in front");
        return Err(Problem::validation("MISSING_EXEC_START", message));
    }
    if of("WantedBy").is_none() && !wanted_by.is_empty() {
        settings.push(Setting::new("Install", "WantedBy", vec![wanted_by.to_owned()]));
    }
    Ok(syntax::render(&settings))
}

/// The file of an existing unit with changed settings, or with a whole new text.
pub(crate) fn edited(
    unit: &Unit,
    settings: &[Setting],
    whole: Option<&str>,
    cx: &Context,
) -> Result<PlannedFile> {
    if settings.is_empty() && whole.is_none() {
        let message =
            format!("nothing is to be changed of {}: expected a field besides name, or raw_content", unit.id);
        return Err(Problem::validation("NOTHING_TO_CHANGE", message));
    }
    if settings.iter().any(|setting| setting.key == "ExecStart" && setting.values.is_empty()) {
        return Err(Problem::validation(
            "MISSING_EXEC_START",
            "exec_start is empty: expected what the service runs",
        ));
    }
    let mut file = planned_file::existing_file(unit, cx)?;
    file.text = match whole {
        Some(whole) => whole.to_owned(),
        None => {
            file.is_text()?;
            syntax::edit(&file.text, settings)?
        }
    };
    Ok(file)
}

/// The answer where the file already has the settings.
pub(crate) fn unchanged(mut reply: Written, unit: &Unit, mut notes: Vec<String>) -> Noted<Written> {
    reply.instead_of = None;
    reply.active_state = Some(unit.active_state.clone());
    reply.enabled = Some(unit.enabled.clone()).filter(|enabled| !enabled.is_empty());
    notes.push("its file says so already: nothing was written".to_owned());
    Noted { data: reply, notes }
}

/// Notes on drop-ins, and on enabling the unit again after a change of `WantedBy`.
pub(crate) fn notes(unit: &Unit, file: &PlannedFile) -> Vec<String> {
    let mut notes = Vec::new();
    if !unit.drop_ins.is_empty() {
        notes.push(format!(
            "drop-ins come on top of it: {}; svc_show service={} says what they override",
            unit.drop_ins.join(", "),
            unit.short()
        ));
    }
    let wanted_by = |text: &str| syntax::values(text, "Install", "WantedBy");
    let former = file.former.as_deref().map(wanted_by).unwrap_or_default();
    if unit.enabled.starts_with("enabled") && former != wanted_by(&file.text) {
        let name = unit.short();
        notes.push(format!(
            "it stays enabled as before until it is enabled anew: svc_disable service={name}, svc_enable service={name}"
        ));
    }
    notes
}

/// Applies a plan that writes a unit file, with a daemon-reload after it and after its undo.
pub(crate) fn apply(change: Change, cx: &Context) -> Result<Applied> {
    let change = change
        .step(Step::run(systemctl::daemon_reload()).uninterruptible())
        .after_undo(systemctl::daemon_reload())
        .lock(Lock::Systemd);
    Ok(cx.apply(change)?)
}
