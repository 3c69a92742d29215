//! `svc_status`: one unit, with what an administrator asks next. What is known of the service beyond systemd is [`joined`].

use linux_sysadmin_sdk::{knowledge::Profile, prelude::*, time::rfc3339};

use crate::joined::{self, Joined};
use crate::properties::{self, Properties};
use crate::{meant, name, systemctl, time};

#[derive(Deserialize, JsonSchema)]
pub(crate) struct StatusArgs {
    /// As nginx, ssh.socket or getty@tty1
    service: String,
}

/// What a unit doesn't have, and what systemd doesn't know of it, is left out.
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
    /// Of a service: `simple`, `oneshot` and so on.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    service_type: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pid: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    user: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status_text: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    started_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    uptime_hours: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stopped_at: Option<String>,
    /// Of a unit on its way from one state to another.
    #[serde(skip_serializing_if = "Option::is_none")]
    state_since: Option<String>,
    /// How the last run went, where not well.
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_signal: Option<String>,
    /// False where a condition of the unit file kept it from being started.
    #[serde(skip_serializing_if = "Option::is_none")]
    condition_met: Option<bool>,
    /// False where an assertion of the unit file did.
    #[serde(skip_serializing_if = "Option::is_none")]
    assertion_met: Option<bool>,
    /// The policy.
    #[serde(skip_serializing_if = "Option::is_none")]
    restart: Option<String>,
    /// By that policy, since it was last started by other means.
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
    /// What the unit file was generated from, as `/etc/fstab`.
    #[serde(skip_serializing_if = "Option::is_none")]
    generated_from: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    drop_ins: Vec<String>,
    /// The files have changed since systemd read them.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    needs_daemon_reload: bool,
    #[serde(flatten)]
    joined: Joined,
}

pub(crate) fn svc_status(args: StatusArgs, cx: &Context) -> Result<Noted<Status>> {
    let meant = meant::meant(&args.service, cx)?;
    let unit = &meant.unit;
    let [shown, now] = cx.run_each([systemctl::STATUS.with([unit.as_str()]), systemctl::CLOCK.command()]);
    let (shown, now) = (systemctl::answer(shown)?, systemctl::clock(now));
    let units = properties::parse(&shown);
    let [properties] = units.as_slice() else {
        return Err(Problem::unexpected("systemctl show", &shown));
    };
    let mut status = status(properties, now).ok_or_else(|| Problem::unexpected("systemctl show", &shown))?;
    if status.load_state == "not-found" && status.active_state == "inactive" {
        let problem = unknown(unit, cx);
        // A service may be a template, which has as many units as it has instances.
        let main = meant.profile.as_ref().and_then(Profile::main_unit);
        let template = main.and_then(|main| main.name.split_once("@."));
        return Err(match template {
            Some((template, _)) => problem.remedy(format!("Name an instance, as in {template}@INSTANCE")),
            None => problem,
        });
    }
    // What was asked for may be another name of it, one that no profile has.
    let own_name = || properties.text("Id").filter(|id| id != unit).and_then(|id| cx.profile(id));
    let profile = meant.profile.or_else(own_name);
    let (joined, notes) = joined::look(properties, profile.as_ref(), now, cx);
    status.joined = joined;
    Ok(Noted { data: status, notes })
}

/// Asks what there is only now, when it helps, and only what is answered at once.
pub(crate) fn unknown(unit: &str, cx: &Context) -> Problem {
    let [file, loaded] = cx.run_each([systemctl::UNIT_FILE.with([unit]), systemctl::LOADED_UNITS.command()]);
    let files = systemctl::answer(file).and_then(|text| systemctl::unit_files(&text)).unwrap_or_default();
    if files.iter().any(|file| file.name == unit && file.state == "bad") {
        let message = format!(
            "systemd has no unit {unit}: its unit file is there but can't be read (state bad; a dangling symlink?)"
        );
        return Problem::not_found("UNIT_NOT_FOUND", message)
            .remedy(format!("Repair or remove {unit} in the unit path, such as /etc/systemd/system"));
    }
    let loaded = systemctl::answer(loaded).unwrap_or_default();
    let similar = name::similar(unit, &systemctl::loaded_units(&loaded));
    let mut problem = Problem::not_found("UNIT_NOT_FOUND", format!("there is no unit {unit}"));
    if !similar.is_empty() {
        problem = problem.remedy(format!("Similar units: {}", similar.join(", ")));
    }
    problem.remedy("List what there is: svc_list for services, timer_list for timers; filter narrows them")
}

/// None where it isn't the properties of a unit.
fn status(unit: &Properties<'_>, now: Option<i64>) -> Option<Status> {
    let id = unit.text("Id")?;
    let active_state = unit.text("ActiveState")?;
    let is_active = matches!(active_state, "active" | "reloading" | "refreshing");
    let at = |key: &str| unit.text(key).and_then(time::timestamp);
    let started = at("ActiveEnterTimestamp").filter(|_| is_active);
    let stopped = at("InactiveEnterTimestamp").filter(|_| !is_active);
    let changed =
        at("StateChangeTimestamp").filter(|_| !matches!(active_state, "active" | "inactive" | "failed"));
    // A verdict without a time is that of a unit that nobody has tried to start.
    let verdict =
        |result: &str, time: &str| (!is_active && at(time).is_some() && !unit.yes(result)).then_some(false);
    let (exit_code, exit_signal) = exit(unit);
    Some(Status {
        service: name::short(id).to_owned(),
        description: unit.string("Description").filter(|description| description != id),
        active_state: active_state.to_owned(),
        sub_state: unit.string("SubState").unwrap_or_default(),
        enabled: unit.string("UnitFileState"),
        load_state: unit.text("LoadState").unwrap_or("loaded").to_owned(),
        load_error: unit.text("LoadError").and_then(load_error),
        aliases: unit
            .words("Names")
            .iter()
            .filter(|alias| *alias != id)
            .map(|alias| name::short(alias).into())
            .collect(),
        // That of a mount is its file system's.
        service_type: unit.string("Type").filter(|_| id.ends_with(".service")),
        pid: unit.number("MainPID").filter(|pid| *pid > 0),
        user: unit.string("User"),
        status_text: unit.string("StatusText").filter(|_| is_active),
        started_at: started.map(rfc3339),
        uptime_hours: started.zip(now).map(|(started, now)| time::hours((now - started).max(0))),
        stopped_at: stopped.map(rfc3339),
        state_since: changed.map(rfc3339),
        result: unit.string("Result").filter(|result| result != "success"),
        exit_code,
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
        joined: Joined::default(),
    })
}

/// Of a main process that ended badly. The codes are waitid(2)'s `si_code`: 1 exited, 2 killed, 3 dumped.
pub(crate) fn exit(unit: &Properties<'_>) -> (Option<u64>, Option<String>) {
    const SIGNALS: [(u64, &str); 11] = [
        (1, "SIGHUP"),
        (2, "SIGINT"),
        (3, "SIGQUIT"),
        (4, "SIGILL"),
        (6, "SIGABRT"),
        (7, "SIGBUS"),
        (8, "SIGFPE"),
        (9, "SIGKILL"),
        (11, "SIGSEGV"),
        (13, "SIGPIPE"),
        (15, "SIGTERM"),
    ];
    let status = unit.number("ExecMainStatus").filter(|status| *status != 0);
    match (unit.number("ExecMainCode"), status) {
        (Some(1), status) => (status, None),
        (Some(2 | 3), Some(signal)) => {
            let name = SIGNALS.iter().find(|(number, _)| *number == signal).map(|(_, name)| name.to_string());
            (None, Some(name.unwrap_or_else(|| format!("signal {signal}"))))
        }
        _ => (None, None),
    }
}

/// `org.freedesktop.systemd1.BadUnitSetting "Unit x has a bad unit file setting."`: the sentence.
pub(crate) fn load_error(text: &str) -> Option<String> {
    let sentence = text.split_once(' ').map_or(text, |(_, sentence)| sentence).trim().trim_matches('"');
    (!sentence.is_empty()).then(|| sentence.to_owned())
}

/// As `systemctl status` counts them, to one digit.
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
    fn how_a_process_ended_is_a_code_or_a_signal() {
        let table = [
            ("ExecMainCode=1\nExecMainStatus=203", Some(203), None),
            ("ExecMainCode=1\nExecMainStatus=0", None, None),
            ("ExecMainCode=2\nExecMainStatus=11", None, Some("SIGSEGV")),
            ("ExecMainCode=3\nExecMainStatus=6", None, Some("SIGABRT")),
            ("ExecMainCode=2\nExecMainStatus=34", None, Some("signal 34")),
            ("ExecMainCode=0\nExecMainStatus=0", None, None),
            ("ExecMainCode=exited", None, None),
            ("", None, None),
        ];
        for (text, code, signal) in table {
            let text = format!("Id=a.service\n{text}");
            assert_eq!(exit(&properties::parse(&text)[0]), (code, signal.map(str::to_owned)), "{text}");
        }
    }

    #[test]
    fn what_is_not_a_unit_is_none() {
        for text in ["Version=252", "Id=a.service", "ActiveState=active"] {
            assert!(status(&properties::parse(text)[0], None).is_none(), "{text}");
        }
    }
}
