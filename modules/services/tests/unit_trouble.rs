//! Tests `svc_troubleshoot` of units that no profile knows. The outputs have the form of systemd 252 and coreutils 9.1; they were
//! written by hand.
#![allow(clippy::unwrap_used)]

use linux_sysadmin_sdk::Problem;
use linux_sysadmin_sdk::testkit::FakeTarget;
use module_services::module;
use serde_json::{Value, json};

const SOCKETS: &[&str] = &["ss", "-Hltunp"];

/// The unit's properties that all these cases have.
const COMMON: &str = "Id=app.service\nLoadState=loaded\nFragmentPath=/etc/systemd/system/app.service\nUser=app\nMainPID=0\n\
    ExecStart={ path=/opt/app/run ; argv[]=/opt/app/run --password=hunter2 ; ignore_errors=no ; start_time=[n/a] ; pid=0 }\n\
    Requires=system.slice postgresql.service\nAfter=network.target postgresql.service\nInvocationID=1\n";

/// The command line of a grant that holds this text, with the unit in it.
fn argv(part: &str, unit: &str) -> Vec<String> {
    let commands = module().description().capabilities.commands;
    let grant = commands.iter().find(|grant| grant.pattern.contains(part)).unwrap();
    let line = grant.pattern.trim_start_matches("TZ=UTC ").replace("<unit>...", unit).replace("<unit>", unit);
    line.split(' ').map(str::to_owned).collect()
}

fn journal() -> Vec<String> {
    let fields = "MESSAGE,PRIORITY,_SYSTEMD_UNIT,UNIT,_SYSTEMD_INVOCATION_ID,INVOCATION_ID,JOB_RESULT";
    let fields = format!("--output-fields={fields}");
    let words = [
        "journalctl",
        "--no-pager",
        "--quiet",
        "--reverse",
        "--output=json",
        &fields,
        "--priority=debug",
        "--lines=300",
        "--unit=app.service",
    ];
    words.map(str::to_owned).to_vec()
}

/// A message of the unit's last run.
fn said(second: u64, message: &str) -> String {
    format!(
        "{{\"__REALTIME_TIMESTAMP\":\"{second}000000\",\"_SYSTEMD_UNIT\":\"app.service\",\"PRIORITY\":\"6\",\
         \"_SYSTEMD_INVOCATION_ID\":\"1\",\"MESSAGE\":{message:?}}}\n"
    )
}

/// A target with the unit in this state, and with these lines in its journal, the latest first.
fn target(properties: &str, lines: &[&str]) -> FakeTarget {
    target_beside("active", properties, lines)
}

/// The same, with the unit that it needs in this state.
fn target_beside(needed: &str, properties: &str, lines: &[&str]) -> FakeTarget {
    let printed: String =
        lines.iter().enumerate().map(|(index, line)| said(1000 - index as u64, line)).collect();
    let answer = |target: FakeTarget, argv: &[String], stdout: &str| {
        let argv: Vec<&str> = argv.iter().map(String::as_str).collect();
        target.answer(&argv, 0, stdout, "")
    };
    let target = FakeTarget::new().answer(&["id", "--groups", "--name", "--", "app"], 0, "app\n", "");
    let shown = format!("{COMMON}{properties}");
    let target = answer(
        target,
        &argv("Id,LoadState,LoadError,ActiveState,SubState,FragmentPath", "app.service"),
        &shown,
    );
    let around = argv("--property=Id,ActiveState", "postgresql.service");
    let target = answer(target, &around, &format!("Id=postgresql.service\nActiveState={needed}\n"));
    answer(target, &journal(), &printed)
}

fn free(target: FakeTarget) -> FakeTarget {
    target.answer(SOCKETS, 0, "", "")
}

/// Adds what stat prints of a path and of the directories above it.
fn with_path(target: FakeTarget, path: &[&str], stdout: &str, stderr: &str) -> FakeTarget {
    let argv: Vec<&str> =
        ["stat", "--format=%a|%U|%G|%F|%n", "--"].into_iter().chain(path.iter().copied()).collect();
    target.answer(&argv, i32::from(!stderr.is_empty()), stdout, stderr)
}

const FAILED: &str = "ActiveState=failed\nSubState=failed\nResult=exit-code\nExecMainCode=1\n";

fn trouble(target: FakeTarget) -> Result<(Value, String, String), Problem> {
    let (data, reply) = target.call(&module(), "svc_troubleshoot", json!({"service": "app"}))?;
    Ok((data, reply.summary.unwrap(), reply.severity.unwrap()))
}

fn causes(data: &Value) -> Vec<(String, String)> {
    let text = |cause: &Value, key: &str| cause[key].as_str().unwrap().to_owned();
    let causes = data["causes"].as_array().cloned().unwrap_or_default();
    causes.iter().map(|cause| (text(cause, "cause"), text(cause, "next"))).collect()
}

fn pair(cause: &str, next: &str) -> (String, String) {
    (cause.to_owned(), next.to_owned())
}

const CONF: [&str; 3] = ["/srv", "/srv/app", "/srv/app/conf"];
const DENIED: &str = "open /srv/app/conf: permission denied";

#[test]
fn a_file_that_the_account_cannot_read_is_the_cause_as_long_as_it_cannot() {
    let failed = format!("{FAILED}ExecMainStatus=1\nNRestarts=5\n");
    let closed = "755|root|root|directory|/srv\n755|root|root|directory|/srv/app\n600|root|root|regular file|/srv/app/conf\n";
    let (data, summary, severity) =
        trouble(free(with_path(target(&failed, &[DENIED, "starting"]), &CONF, closed, ""))).unwrap();
    assert_eq!(
        causes(&data),
        [
            pair("it is restarted again and again", "svc_logs service=app"),
            pair("app can't use /srv/app/conf", "perms_check path=/srv/app/conf user=app"),
        ]
    );
    assert_eq!(data["causes"][1]["evidence"], "app may not read it: /srv/app/conf is root:root 0600");
    assert_eq!((severity.as_str(), data["restarts"].as_u64()), ("critical", Some(5)));
    assert!(summary.starts_with("app has failed: "), "{summary}");
    // The command line has no secret.
    assert!(!data.to_string().contains("hunter2"), "{data}");
    assert!(data["exec_start"].as_str().unwrap().starts_with("/opt/app/run"), "{data}");

    // The file has been repaired since.
    let open = closed.replace("600|root|root", "660|root|app");
    let failed = format!("{FAILED}ExecMainStatus=1\n");
    let (data, summary, severity) =
        trouble(free(with_path(target(&failed, &[DENIED]), &CONF, &open, ""))).unwrap();
    assert!(data["causes"].is_null(), "{data}");
    assert_eq!(data["mended"], json!(["/srv/app/conf is there now, and app can use it"]));
    assert!(summary.contains("start it again"), "{summary}");
    assert_eq!(severity, "high");

    // It may be read, and not be written to.
    let read_only = closed.replace("600|root|root", "640|root|app");
    let (data, ..) = trouble(free(with_path(target(&failed, &[DENIED]), &CONF, &read_only, ""))).unwrap();
    assert_eq!(causes(&data)[0].0, "app may read /srv/app/conf and not write to it");
}

#[test]
fn a_file_that_is_not_there_is_told_and_one_that_is_there_again_is_not() {
    let failed = format!("{FAILED}ExecMainStatus=1\n");
    let line = "ENOENT: no such file or directory, open '/srv/app/conf'";
    let head = "755|root|root|directory|/srv\n755|root|root|directory|/srv/app\n";
    let stderr = "stat: cannot statx '/srv/app/conf': No such file or directory\n";
    let (data, ..) = trouble(free(with_path(target(&failed, &[line]), &CONF, head, stderr))).unwrap();
    assert_eq!(causes(&data), [pair("there is no /srv/app/conf", "file_stat path=/srv/app/conf")]);
    let there = format!("{head}644|root|root|regular file|/srv/app/conf\n");
    let (data, ..) = trouble(free(with_path(target(&failed, &[line]), &CONF, &there, ""))).unwrap();
    assert!(data["causes"].is_null() && data["mended"].is_array(), "{data}");
}

#[test]
fn a_port_is_blamed_only_while_another_program_has_it() {
    let failed = format!("{FAILED}ExecMainStatus=1\n");
    let line = "listen tcp :9000: bind: address already in use";
    let ss = "tcp LISTEN 0 1 0.0.0.0:9000 *:* users:((\"other\",pid=7,fd=3))\n";
    let held = target(&failed, &[line])
        .answer(SOCKETS, 0, ss, "")
        .file("/proc/stat", "btime 1700000000\n")
        .file("/etc/passwd", "root:x:0:0::/root:/bin/sh\n")
        .file("/proc/7/stat", "7 (other) S 1 1 1 0 -1 0 0 0 0 0 5 0 9 9 20 0 3 0 12300 4096 25 1 1\n")
        .file("/proc/7/status", "Name:\tother\nUid:\t0\t0\t0\t0\n")
        .file("/proc/7/cgroup", "0::/system.slice/other.service\n")
        .file("/proc/7/cmdline", "other\0--serve\0");
    let (data, ..) = trouble(held).unwrap();
    assert_eq!(causes(&data), [pair("another program has port 9000", "net_connections port=9000")]);
    let evidence = data["causes"][0]["evidence"].as_str().unwrap();
    assert!(evidence.starts_with("PID 7 (other --serve, started "), "{evidence}");
    assert!(evidence.ends_with("other.service, root) on 0.0.0.0:9000"), "{evidence}");
    // It has tried twice.
    let (data, ..) = trouble(free(target(&failed, &[line, line]))).unwrap();
    assert_eq!((&data["causes"], &data["mended"]), (&Value::Null, &json!(["port 9000 is free now"])));
}

#[test]
fn a_program_that_cannot_be_run_is_looked_at() {
    let failed = format!("{FAILED}ExecMainStatus=203\n");
    let path = ["/opt", "/opt/app", "/opt/app/run"];
    let head = "755|root|root|directory|/opt\n755|root|root|directory|/opt/app\n";
    let stderr = "stat: cannot statx '/opt/app/run': No such file or directory\n";
    let (data, ..) = trouble(free(with_path(target(&failed, &[]), &path, head, stderr))).unwrap();
    assert_eq!(causes(&data)[0].0, "its program isn't there");
    let plain = format!("{head}644|root|root|regular file|/opt/app/run\n");
    let (data, ..) = trouble(free(with_path(target(&failed, &[]), &path, &plain, ""))).unwrap();
    assert_eq!(causes(&data)[0].0, "its program isn't executable");
    let good = format!("{head}755|root|root|regular file|/opt/app/run\n");
    let (data, ..) = trouble(free(with_path(target(&failed, &[]), &path, &good, ""))).unwrap();
    assert!(data["causes"].is_null() && data["mended"].is_array(), "{data}");
}

#[test]
fn what_it_needs_and_what_it_waits_for_is_told_with_the_call_that_helps() {
    for (state, cause) in [
        ("failed", "it needs postgresql, which has failed"),
        ("activating", "it waits until postgresql is up"),
    ] {
        let waiting = target_beside(state, "ActiveState=inactive\nSubState=dead\n", &[]);
        let (data, ..) = trouble(free(waiting)).unwrap();
        assert_eq!(causes(&data), [pair(cause, "svc_troubleshoot service=postgresql")], "{state}");
    }
}

#[test]
fn a_unit_that_runs_is_not_blamed_for_what_its_log_says_of_before() {
    let runs = "ActiveState=active\nSubState=running\nMemoryCurrent=990000000\nMemoryMax=1000000000\n";
    let (data, summary, severity) = trouble(free(target(runs, &[DENIED, DENIED]))).unwrap();
    let next = "svc_set_limits service=app memory_max=<size>";
    assert_eq!(causes(&data), [pair("its memory is nearly used up", next)]);
    assert_eq!(data["last_lines"], json!([{"message": DENIED, "last": "1970-01-01T00:16:40Z", "count": 2}]));
    assert!(summary.starts_with("app is active: "), "{summary}");
    assert_eq!(severity, "warning");
    let quiet = "ActiveState=active\nSubState=running\n";
    assert_eq!(trouble(free(target(quiet, &[]))).unwrap().2, "info");
}

#[test]
fn a_unit_that_is_not_there_is_an_error() {
    let absent = FakeTarget::new();
    let argv = argv("Id,LoadState,LoadError,ActiveState,SubState,FragmentPath", "app.service");
    let argv: Vec<&str> = argv.iter().map(String::as_str).collect();
    let absent = absent.answer(&argv, 0, "Id=app.service\nLoadState=not-found\nActiveState=inactive\n", "");
    assert_eq!(trouble(absent).unwrap_err().code, "UNIT_NOT_FOUND");
}
