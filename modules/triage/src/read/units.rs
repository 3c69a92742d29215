//! Services: those that have failed or are restarted again and again, and those that the complaint names.

use linux_sysadmin_sdk::Severity;
use linux_sysadmin_sdk::knowledge::ConfigFile;
use serde_json::{Value, json};

use crate::call::{Call, Form};
use crate::envelope::{Envelope, count, is, list, log_line, number, raw, said, severity, strings};
use crate::finding::{Finding, Kind};
use crate::moment;
use crate::notebook::{Notebook, Unit};
use crate::signs;

/// Reads `svc_list`.
pub(crate) fn listed(envelope: Envelope<'_>, _: &str, notebook: &mut Notebook<'_>) {
    let unit = |item: &Value| {
        let text = |name: &str| raw(item, name).unwrap_or_default().to_owned();
        Some(Unit {
            name: raw(item, "service")?.to_owned(),
            active: text("active_state"),
            sub: text("sub_state"),
            enabled: text("enabled"),
            result: said(item, "result"),
            exit_code: item["exit_code"].as_u64(),
            restarts: count(item, "restarts"),
            command: None,
            is_told: false,
        })
    };
    notebook.units = envelope.items().filter_map(unit).collect();
}

/// Reads `svc_status` of one unit.
pub(crate) fn status(envelope: Envelope<'_>, subject: &str, notebook: &mut Notebook<'_>) {
    let data = envelope.data();
    for unit in notebook.units.iter_mut().filter(|unit| unit.name == subject) {
        unit.is_told = true;
        unit.command = said(data, "exec_start");
    }
    let state = raw(data, "active_state").unwrap_or_default();
    let is_flapping = is(data, "flapping") || raw(data, "sub_state") == Some("auto-restart");
    let health = || list(&data["health"], "sick");
    let errors = || list(data, "recent_errors");
    let (mut grade, what) = match state {
        _ if is_flapping => (Severity::High, format!("{subject} is restarted again and again")),
        "failed" => (Severity::High, format!("{subject} has failed{}", how(data))),
        "inactive" if raw(data, "load_state") == Some("masked") => {
            (Severity::High, format!("{subject} is masked, and can't be started"))
        }
        "inactive" => (Severity::Warning, format!("{subject} doesn't run{}", conditions(data))),
        _ if health().next().is_some() || errors().next().is_some() => {
            (Severity::Warning, format!("{subject} runs, and isn't well"))
        }
        _ => return,
    };
    // What runs and isn't well may be critical all the same.
    let worst = health().chain(errors()).map(|one| severity(raw(one, "severity"))).max();
    grade = grade.max(worst.unwrap_or(Severity::Info));
    let sick: Vec<String> = health().filter_map(|one| said(one, "evidence")).collect();
    let messages: Vec<String> = errors().filter_map(|error| said(error, "message")).collect();
    let output: Vec<String> = strings(data, "last_output").collect();
    let lines: Vec<String> = sick.iter().chain(&messages).chain(&output).cloned().collect();
    let meant = health().chain(errors()).find_map(|one| said(one, "means"));
    let held = strings(&data["ports"], "held_by_others").next();
    let since = ["stopped_at", "state_since"].into_iter().find_map(|name| raw(data, name));
    let mut finding = Finding::new(Kind::Service, grade, what)
        .unit(subject)
        .since(since.and_then(|since| moment::parse(since, notebook.is_utc)))
        .call([further(subject, notebook)]);
    if state == "inactive" {
        let tool = if raw(data, "load_state") == Some("masked") { "svc_unmask" } else { "svc_start" };
        finding = finding.call([Call::new(tool).of("service", Form::Unit, subject)]);
    }
    let user = raw(data, "user").unwrap_or_default();
    finding = match signs::meaning(&lines, &[("service", subject), ("unit_user", user)]) {
        Some(meaning) => {
            notebook.meanings.push((subject.to_owned(), meaning.clone()));
            finding.meaning(meaning)
        }
        None => {
            finding.cause = said(data, "load_error").or(held.clone()).or(meant).or_else(|| ended(data));
            let last = lines.last().cloned().unwrap_or_default();
            finding.evidence(last)
        }
    };
    if let Some(held) = held {
        finding = finding.evidence(held);
    }
    notebook.add(fitting(finding, subject, notebook));
}

/// Adds the kinds of complaint that trouble with this unit fits.
fn fitting(mut finding: Finding, unit: &str, notebook: &Notebook<'_>) -> Finding {
    if let Some(profile) = notebook.profile_of(unit) {
        finding.fits.extend(Notebook::kind_of(profile));
        finding.names.extend([profile.id.clone(), profile.name.clone()]);
        finding.names.extend(profile.config.iter().filter_map(place));
    }
    let (categories, units) = notebook.complaint.services();
    let is_meant = units.contains(&unit)
        || notebook.profile_of(unit).is_some_and(|profile| categories.contains(&profile.category.as_str()));
    if is_meant { finding.weight(crate::rank::MEANT) } else { finding }
}

/// Where the configuration of a service is: the directory of its main file and of those that a glob names, and otherwise the
/// file itself, since directories such as `/etc/default` are those of many services.
fn place(file: &ConfigFile) -> Option<String> {
    let fixed = file.path.split('*').next().unwrap_or_default();
    if !file.main && fixed == file.path {
        return Some(file.path.clone());
    }
    let directory = fixed.rsplit_once('/')?.0;
    (directory.matches('/').count() > 1).then(|| directory.to_owned())
}

/// The call that goes on where no line says more. Of a profile without symptoms there is nothing to check.
fn further(unit: &str, notebook: &Notebook<'_>) -> Option<Call> {
    let is_checked = notebook.profile_of(unit).is_none_or(|profile| !profile.symptoms.is_empty());
    let call = Call::new(if is_checked { "svc_troubleshoot" } else { "svc_logs" });
    call.of("service", Form::Unit, unit)
}

/// How the last run ended: ` (exit code 1)`.
fn how(data: &Value) -> String {
    match (data["exit_code"].as_u64(), raw(data, "exit_signal"), raw(data, "result")) {
        (Some(code), _, _) if code > 0 => format!(" (exit code {code})"),
        (_, Some(signal), _) => format!(" ({signal})"),
        (_, _, Some(result)) => format!(" ({result})"),
        _ => String::new(),
    }
}

/// Why the last run ended, where systemd's word or code for it says so. systemd's message with the path of a program that it
/// couldn't run isn't in the unit's journal where journald took it in after the process had ended. What has written something
/// was run, and the code is its own.
fn ended(data: &Value) -> Option<String> {
    let has_said = strings(data, "last_output").next().is_some();
    if let Some(means) = raw(data, "exit_code_means").filter(|_| !has_said) {
        let starts = said(data, "exec_start").map(|command| format!("; it starts {command}"));
        return Some(format!("{means}{}", starts.unwrap_or_default()));
    }
    Some(match raw(data, "result")? {
        "oom-kill" => {
            let limit = number(data, "memory_limit_mb").map(|limit| format!("; it may use {limit:.0} MiB"));
            format!("the kernel killed it for want of memory{}", limit.unwrap_or_default())
        }
        "timeout" => "it took longer than its unit file allows".to_owned(),
        "watchdog" => "it didn't answer its watchdog in time".to_owned(),
        _ => return None,
    })
}

fn conditions(data: &Value) -> String {
    let not = |name: &str| data[name].as_bool() == Some(false);
    match (not("condition_met"), not("assertion_met"), raw(data, "enabled")) {
        (true, _, _) | (_, true, _) => ": a condition of its unit file isn't met".to_owned(),
        (_, _, Some("disabled")) => ", and isn't started at boot".to_owned(),
        _ => ", without a failure on record".to_owned(),
    }
}

/// A failed unit by what `svc_list` says alone.
pub(crate) fn in_short(unit: &Unit, notebook: &Notebook<'_>) -> Finding {
    let Unit { name, sub, result, exit_code, restarts, .. } = unit;
    let what = match sub.as_str() {
        "auto-restart" => format!("{name} is restarted again and again ({restarts} times)"),
        _ => format!("{name} has failed"),
    };
    let evidence = match (exit_code, result) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(result)) => result.clone(),
        (None, None) => String::new(),
    };
    let finding = Finding::new(Kind::Service, Severity::High, what)
        .evidence(evidence)
        .unit(name)
        .call([Call::new("svc_status").of("service", Form::Unit, name)]);
    fitting(finding, name, notebook)
}

/// Reads `svc_troubleshoot`. The subject is the service, and behind a blank the symptom where the complaint names one.
pub(crate) fn trouble(envelope: Envelope<'_>, subject: &str, notebook: &mut Notebook<'_>) {
    let data = envelope.data();
    let (service, symptom) = subject.split_once(' ').unwrap_or((subject, ""));
    let state = raw(data, "active_state").unwrap_or_default();
    let is_down = matches!(state, "failed" | "inactive" | "activating");
    let Some(first) = list(data, "causes").next().filter(|_| is_down || !symptom.is_empty()) else { return };
    let main = notebook.profile_of(service).and_then(|profile| profile.main_unit());
    let unit = main.map_or(service, |unit| unit.name.as_str()).trim_end_matches(".service").to_owned();
    let evidence: Vec<String> = list(first, "evidence").filter_map(|one| said(one, "line")).collect();
    let (grade, what) = match symptom {
        "" if state == "failed" => (Severity::High, format!("{unit} has failed")),
        "" => (Severity::High, format!("{unit} doesn't run")),
        symptom => (Severity::High, format!("{unit}: {}", symptom.replace('-', " "))),
    };
    let mut call = Call::new("svc_troubleshoot").of("service", Form::Unit, service);
    if !symptom.is_empty() {
        call = call.map(|call| call.with("symptom", json!(symptom)));
    }
    let mut finding = Finding::new(Kind::Service, grade, what).unit(&unit).call([call]);
    finding.cause = said(first, "cause");
    finding = match signs::meaning(&evidence, &[("service", &unit)]) {
        Some(meaning) => {
            notebook.meanings.push((unit.clone(), meaning.clone()));
            finding.meaning(meaning)
        }
        None => finding.evidence(evidence.first().cloned().unwrap_or_default()),
    };
    // The complaint's own words name the symptom.
    if !symptom.is_empty() {
        finding = finding.weight(crate::rank::MEANT);
    }
    for taken in strings(data, "ports_taken").take(1) {
        finding = finding.evidence(taken);
    }
    notebook.add(fitting(finding, &unit, notebook));
}

/// Reads what systemd-tmpfiles said: files and directories that it couldn't make are missed by services.
pub(crate) fn tmpfiles(envelope: Envelope<'_>, _: &str, notebook: &mut Notebook<'_>) {
    let lines: Vec<String> =
        strings(envelope.data(), "lines").map(|line| log_line(&line).1.to_owned()).collect();
    for line in lines {
        let Some(meaning) = signs::meaning(&[line], &[]) else { continue };
        if notebook.tmpfiles.iter().any(|known| known.cause == meaning.cause) {
            continue;
        }
        let file = meaning.parts.get("file").cloned().unwrap_or_default();
        notebook.tmpfiles.push(meaning.clone());
        let what = "systemd-tmpfiles couldn't make a file or directory";
        notebook.add(Finding::new(Kind::Service, Severity::Warning, what).name(file).meaning(meaning));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_in_a_directory_of_many_services_stands_for_itself() {
        let file = |path: &str, main| ConfigFile {
            path: path.to_owned(),
            what: String::new(),
            main,
            optional: false,
            generated: false,
            apply: None,
        };
        for (path, main, expected) in [
            ("/etc/nginx/nginx.conf", true, Some("/etc/nginx")),
            ("/etc/nginx/sites-enabled/*", false, Some("/etc/nginx/sites-enabled")),
            ("/etc/logrotate.d/nginx", false, Some("/etc/logrotate.d/nginx")),
            ("/etc/shop.conf", true, None),
        ] {
            assert_eq!(place(&file(path, main)).as_deref(), expected, "{path}");
        }
    }
}
