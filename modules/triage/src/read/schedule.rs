//! Jobs that didn't run: timers, cron, and backups.

use linux_sysadmin_sdk::Severity;
use serde_json::json;

use crate::call::{Call, Form};
use crate::envelope::{Envelope, raw, said, strings};
use crate::finding::{Finding, Kind};
use crate::moment;
use crate::notebook::Notebook;

/// A timer that should have elapsed so many seconds ago is late.
const LATE: i64 = 300;

/// The services that run crontabs.
const DAEMONS: [&str; 2] = ["cron", "crond"];

/// Reads `timer_list`.
pub(crate) fn timers(envelope: Envelope<'_>, _: &str, notebook: &mut Notebook<'_>) {
    for item in envelope.items() {
        let Some(timer) = said(item, "timer") else { continue };
        let last = raw(item, "last").and_then(|last| moment::parse(last, notebook.is_utc));
        let activates = raw(item, "activates").unwrap_or_default();
        let unit = activates.trim_end_matches(".service");
        let is_on = raw(item, "active_state") == Some("active");
        let (grade, what) = if item["activates_missing"].as_bool() == Some(true) {
            (Severity::High, format!("{timer} starts a unit that isn't there"))
        } else if item["next_in_seconds"].as_i64().is_some_and(|left| left < -LATE) {
            (Severity::High, format!("{timer} should have run, and didn't"))
        } else if !is_on && raw(item, "enabled") == Some("enabled") {
            (Severity::Warning, format!("{timer} is enabled, and doesn't run"))
        } else if let Some(result) = said(item, "last_result") {
            let finding = Finding::new(Kind::Service, Severity::High, format!("{unit} has failed"))
                .fits(&[Kind::Schedule])
                .evidence(format!("the last run by {timer}: {result}"))
                .since(last)
                .unit(unit)
                .call([Call::new("svc_status").of("service", Form::Unit, unit)]);
            notebook.add(finding);
            continue;
        } else {
            continue;
        };
        let start = Call::new("svc_start").of("service", Form::Unit, &timer);
        let finding = Finding::new(Kind::Schedule, grade, what)
            .evidence(strings(item, "schedule").next().unwrap_or_default())
            .evidence(said(item, "last").map(|last| format!("last run {last}")).unwrap_or_default())
            .name(timer.trim_end_matches(".timer"))
            .call([start.filter(|_| !is_on), Call::new("svc_status").of("service", Form::Unit, &timer)]);
        notebook.add(finding);
    }
}

/// Reads `cron_list`.
pub(crate) fn cron(envelope: Envelope<'_>, _: &str, notebook: &mut Notebook<'_>) {
    let mut has_jobs = false;
    for item in envelope.items() {
        let Some(error) = said(item, "error") else {
            has_jobs = true;
            continue;
        };
        let source = raw(item, "source").unwrap_or_default();
        let command = raw(item, "command").unwrap_or_default();
        // A script of a directory is named by its own path.
        let place = if command.starts_with(source) && source.starts_with('/') { command } else { source };
        let shown = linux_sysadmin_sdk::text::excerpt(place, 120);
        let read = Call::new("file_read").of("path", Form::Path, place);
        let finding = Finding::new(Kind::Schedule, Severity::High, format!("cron doesn't run {shown}"))
            .cause(error)
            .evidence(said(item, "schedule").map(|when| format!("at {when}")).unwrap_or_default())
            .name(place)
            .name(linux_sysadmin_sdk::text::excerpt(command, 120))
            .call([renamed(item, place), read, Some(Call::new("cron_list"))]);
        notebook.add(finding);
    }
    let daemon = notebook.units.iter().find(|unit| DAEMONS.contains(&unit.name.as_str())).cloned();
    if let Some(daemon) = daemon.filter(|daemon| has_jobs && daemon.active == "inactive") {
        let finding = Finding::new(
            Kind::Schedule,
            Severity::High,
            format!("{} doesn't run, and there are jobs", daemon.name),
        )
        .unit(&daemon.name)
        .call([Call::new("svc_start").of("service", Form::Unit, &daemon.name)]);
        notebook.add(finding);
    }
}

/// The move of a file that cron ignores for its name, to the name that `cron_list` suggests.
fn renamed(item: &serde_json::Value, path: &str) -> Option<Call> {
    let name = raw(item, "better_name")?;
    let is_name = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
    let (directory, _) = path.rsplit_once('/')?;
    let call = Call::new("file_move").of("path", Form::Path, path)?;
    call.of("to", Form::Path, &format!("{directory}/{name}")).filter(|_| is_name && !name.is_empty())
}

/// Reads `bak_destinations`.
pub(crate) fn backups(envelope: Envelope<'_>, _: &str, notebook: &mut Notebook<'_>) {
    for item in envelope.items() {
        let (Some(schedule), Some(problem)) = (said(item, "schedule"), strings(item, "problems").next())
        else {
            continue;
        };
        let last = raw(item, "last").and_then(|last| moment::parse(last, notebook.is_utc));
        let list = Call::new("bak_list").with("limit", json!(5));
        let finding =
            Finding::new(Kind::Schedule, Severity::High, format!("the backup {schedule} has a problem"))
                .cause(problem)
                .since(last)
                .name(schedule.clone())
                .call([
                    list.of("destination", Form::Literal, &schedule),
                    Some(Call::new("bak_destinations")),
                ]);
        notebook.add(finding);
    }
}
