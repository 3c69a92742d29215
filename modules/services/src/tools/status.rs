//! `svc_status`: the state of one unit, with a [`ServiceReport`] on what systemd doesn't know of it.

use linux_sysadmin_sdk::{knowledge::Profile, prelude::*, time::rfc3339};

use crate::profile::service_lookup;
use crate::profile::service_report::{self, ServiceReport};
use crate::systemd::exit_status::{exit_code_means, exit_status};
use crate::systemd::properties::{self, Properties};
use crate::systemd::{systemctl, time, unit, unit_name};
use crate::unit_trouble;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct StatusArgs {
    /// Unit, as ssh.socket
    service: String,
}

/// The answer. It leaves out what a unit doesn't have and what systemd doesn't know.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Status {
    service: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    active_state: String,
    sub_state: String,
    /// The unit file's state, as `systemctl list-unit-files` gives it.
    #[serde(skip_serializing_if = "Option::is_none")]
    enabled: Option<String>,
    load_state: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    load_error: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    aliases: Vec<String>,
    /// A service's type, such as `simple` or `oneshot`.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    service_type: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pid: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    user: Option<String>,
    /// The command that it starts, without secrets.
    #[serde(skip_serializing_if = "Option::is_none")]
    exec_start: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status_text: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    started_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    uptime_hours: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stopped_at: Option<String>,
    /// The time of the last change of state, for a unit that is starting, stopping or reloading.
    #[serde(skip_serializing_if = "Option::is_none")]
    state_since: Option<String>,
    /// The failure of the last run, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<u64>,
    /// What systemd means by this exit code: it couldn't start the program. A program that runs may end with the same code.
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code_means: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_signal: Option<String>,
    /// False where a condition of the unit file prevented the start.
    #[serde(skip_serializing_if = "Option::is_none")]
    condition_met: Option<bool>,
    /// False where an assertion of the unit file prevented the start.
    #[serde(skip_serializing_if = "Option::is_none")]
    assertion_met: Option<bool>,
    /// The restart policy.
    #[serde(skip_serializing_if = "Option::is_none")]
    restart: Option<String>,
    /// The number of restarts by that policy since the unit was last started by other means.
    #[serde(skip_serializing_if = "Option::is_none")]
    restarts: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    memory_mb: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    memory_peak_mb: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    memory_limit_mb: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tasks: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cpu_seconds: Option<f64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    listens: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mounts: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mounted_at: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    triggers: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    triggered_by: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    unit_file: Option<String>,
    /// The file that the unit file was generated from, such as `/etc/fstab`.
    #[serde(skip_serializing_if = "Option::is_none")]
    generated_from: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    drop_ins: Vec<String>,
    /// True where the unit's files have changed since systemd read them.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    needs_daemon_reload: bool,
    #[serde(flatten)]
    report: ServiceReport,
}

pub(crate) fn svc_status(args: StatusArgs, cx: &Context) -> Result<Noted<Status>> {
    let service = service_lookup::service(&args.service, cx)?;
    let unit = &service.unit;
    let [shown, now] = cx.run_each([systemctl::STATUS.with([unit.as_str()]), systemctl::CLOCK.command()]);
    let (shown, now) = (systemctl::answer(shown)?, systemctl::clock(now));
    let units = properties::parse(&shown);
    let [properties] = units.as_slice() else {
        return Err(Problem::unexpected("systemctl show", &shown));
    };
    let mut status = status(properties, now).ok_or_else(|| Problem::unexpected("systemctl show", &shown))?;
    if status.load_state == "not-found" && status.active_state == "inactive" {
        let problem = unit::unknown(unit, cx);
        // The service may be a template, and only its instances are units.
        let main = service.profile.as_ref().and_then(Profile::main_unit);
        let template = main.and_then(|main| main.name.split_once("@."));
        return Err(match template {
            Some((template, _)) => problem.remedy(format!("Name an instance, as in {template}@INSTANCE")),
            None => problem,
        });
    }
    // The caller may have given an alias, which no profile names.
    let own_name = || properties.text("Id").filter(|id| id != unit).and_then(|id| cx.profile(id));
    let profile = service.profile.or_else(own_name);
    let (report, mut notes) = service_report::report(properties, profile.as_ref(), now, cx);
    status.report = report;
    if status.needs_daemon_reload && status.load_state != "masked" {
        let service = &status.service;
        notes.push(format!("systemd has loaded older files of it: svc_show service={service} says which"));
    }
    Ok(Noted { data: status, notes })
}

/// The answer without the report. None where the properties aren't those of a unit.
fn status(unit: &Properties<'_>, now: Option<i64>) -> Option<Status> {
    let id = unit.text("Id")?;
    let active_state = unit.text("ActiveState")?;
    let is_active = matches!(active_state, "active" | "reloading" | "refreshing");
    let at = |key: &str| unit.text(key).and_then(time::timestamp);
    let started = at("ActiveEnterTimestamp").filter(|_| is_active);
    let stopped = at("InactiveEnterTimestamp").filter(|_| !is_active);
    let changed =
        at("StateChangeTimestamp").filter(|_| !matches!(active_state, "active" | "inactive" | "failed"));
    // systemd prints a verdict without a time for a unit that nobody has tried to start.
    let verdict =
        |result: &str, time: &str| (!is_active && at(time).is_some() && !unit.yes(result)).then_some(false);
    let (exit_code, exit_signal) = exit_status(unit);
    Some(Status {
        service: unit_name::short(id).to_owned(),
        description: unit.string("Description").filter(|description| description != id),
        active_state: active_state.to_owned(),
        sub_state: unit.string("SubState").unwrap_or_default(),
        enabled: unit.string("UnitFileState"),
        load_state: unit.text("LoadState").unwrap_or("loaded").to_owned(),
        load_error: unit.load_error(),
        aliases: unit
            .words("Names")
            .iter()
            .filter(|alias| *alias != id)
            .map(|alias| unit_name::short(alias).into())
            .collect(),
        // A mount's type is its file system.
        service_type: unit.string("Type").filter(|_| id.ends_with(".service")),
        pid: unit.number("MainPID").filter(|pid| *pid > 0),
        user: unit.string("User"),
        exec_start: unit_trouble::exec_start(unit),
        status_text: unit.string("StatusText").filter(|_| is_active),
        started_at: started.map(rfc3339),
        uptime_hours: started.zip(now).map(|(started, now)| time::hours((now - started).max(0))),
        stopped_at: stopped.map(rfc3339),
        state_since: changed.map(rfc3339),
        result: unit.string("Result").filter(|result| result != "success"),
        exit_code,
        exit_code_means: exit_code.and_then(exit_code_means),
        exit_signal,
        condition_met: verdict("ConditionResult", "ConditionTimestamp"),
        assertion_met: verdict("AssertResult", "AssertTimestamp"),
        restart: unit.string("Restart").filter(|policy| policy != "no"),
        restarts: unit.number("NRestarts").filter(|count| *count > 0),
        memory_mb: unit.number("MemoryCurrent").map(mebibytes),
        memory_peak_mb: unit.number("MemoryPeak").map(mebibytes),
        memory_limit_mb: unit.number("MemoryMax").map(mebibytes),
        tasks: unit.number("TasksCurrent"),
        cpu_seconds: unit.number("CPUUsageNSec").map(|nanoseconds| (nanoseconds as f64 / 1e6).round() / 1e3),
        listens: unit.all("Listen").map(str::to_owned).collect(),
        mounts: unit.string("What"),
        mounted_at: unit.string("Where"),
        triggers: unit.words("Triggers"),
        triggered_by: unit.words("TriggeredBy"),
        unit_file: unit.string("FragmentPath"),
        generated_from: unit.string("SourcePath"),
        drop_ins: unit.words("DropInPaths"),
        needs_daemon_reload: unit.yes("NeedDaemonReload"),
        report: ServiceReport::default(),
    })
}

/// Mebibytes with one decimal, as in `systemctl status`.
fn mebibytes(bytes: u64) -> f64 {
    (bytes as f64 / f64::from(1 << 20) * 10.0).round() / 10.0
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn status_of(text: &str, now: i64) -> serde_json::Value {
        let units = properties::parse(text);
        serde_json::to_value(status(&units[0], Some(now)).unwrap()).unwrap()
    }

    #[test]
    fn a_running_service_has_the_seeds_members() {
        let text = "Id=nginx.service\nActiveState=active\nSubState=running\nLoadState=loaded\nUnitFileState=enabled\n\
            Type=notify\nStateChangeTimestamp=Sat 2025-02-15 08:30:00 UTC\nMainPID=12034\nMemoryCurrent=50541363\nMemoryPeak=60000000\nMemoryMax=infinity\nTasksCurrent=3\n\
            CPUUsageNSec=18145000\nActiveEnterTimestamp=Sat 2025-02-15 08:30:00 UTC\n\
            InactiveEnterTimestamp=Sat 2025-02-15 08:29:59 UTC\nResult=success\nExecMainCode=0\nExecMainStatus=0\n";
        let expected = serde_json::json!({
            "service": "nginx", "active_state": "active", "sub_state": "running", "load_state": "loaded",
            "enabled": "enabled", "type": "notify", "pid": 12034, "memory_mb": 48.2, "memory_peak_mb": 57.2,
            "tasks": 3, "cpu_seconds": 0.018, "started_at": "2025-02-15T08:30:00Z", "uptime_hours": 30.1,
        });
        assert_eq!(status_of(text, 1_739_608_200 + 108_360), expected);
    }

    #[test]
    fn a_clock_that_was_set_back_gives_no_negative_time() {
        let text = "Id=a.service\nActiveState=active\nActiveEnterTimestamp=Sat 2025-02-15 08:30:00 UTC";
        assert_eq!(status_of(text, 0)["uptime_hours"], 0.0);
    }

    #[test]
    fn a_unit_on_its_way_says_since_when() {
        let table = [
            ("activating", true),
            ("deactivating", true),
            ("reloading", true),
            ("active", false),
            ("failed", false),
        ];
        for (state, is_said) in table {
            let text = format!(
                "Id=a.mount\nType=ext4\nActiveState={state}\nStateChangeTimestamp=Sat 2025-02-15 08:30:00 UTC"
            );
            let status = status_of(&text, 0);
            assert_eq!(status["state_since"].as_str(), is_said.then_some("2025-02-15T08:30:00Z"), "{state}");
            assert!(status["type"].is_null(), "that of a mount is another");
        }
    }

    #[test]
    fn what_is_not_a_unit_is_none() {
        for text in ["Version=252", "Id=a.service", "ActiveState=active"] {
            assert!(status(&properties::parse(text)[0], None).is_none(), "{text}");
        }
    }
}
