//! Every tool answers the same inside the host and over SSH, as root and as an account with sudo, on each distribution;
//! what may differ is in a file, with the reason.

use std::collections::BTreeSet;

use linux_sysadmin_tests::{Changing, Client, MayDiffer, NO_UNITS, Reach, UNITS, host};
use serde_json::{Value, json};

const MAY_DIFFER: &str = include_str!("../../data/may_differ.yaml");

/// An account's crontab, and nothing of what a call leaves there.
const CRONTAB: &str = r"
for user in root admin; do crontab -u $user -r 2>/dev/null; done
echo '0 3 * * * /bin/true nightly' | crontab -u admin -
";

/// What would run by its timer between two calls that are compared, 15 minutes after the host was booted.
const PREPARE: &str = "systemctl stop systemd-tmpfiles-clean.timer systemd-tmpfiles-clean.service";

const CLEAN: &str = "
for user in root admin; do crontab -u $user -r; done
systemctl start systemd-tmpfiles-clean.timer
";

/// These are about the server's own connections, calls, keys and configuration, wherever other calls work.
const OF_THE_SERVER: [&str; 11] = [
    "job_cancel",
    "job_list",
    "job_output",
    "ssh_config_add",
    "ssh_config_list",
    "ssh_connect",
    "ssh_copy_id",
    "ssh_disconnect",
    "ssh_key_generate",
    "ssh_key_list",
    "ssh_test_connection",
];

/// A key that nobody has.
const KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIFr0nJxMpU0Vg3Xo4nHhOMVHJ2ZrYVbKXGJyPWYPlM5S nobody's";

/// Nobody can be asked here, and the same yes would be needed in both.
const ASK_SELDOM: &str = "safety:\n  confirmation_threshold: critical\n";

/// Looking, being refused, showing and doing: in this order, on a host with the units of [`UNITS`].
fn calls() -> Vec<(&'static str, Vec<Value>)> {
    let unit = |name: &str| json!({"service": name});
    let package = |name: &str| json!({"package": name});
    let shown = |mut arguments: Value| {
        arguments["dry_run"] = json!(true);
        arguments
    };
    let shown_and_done = |arguments: Value| vec![shown(arguments.clone()), arguments];
    let control = |name: &str| {
        let mut calls = shown_and_done(unit(name));
        // So that it holds already, or is as it was; and what there is none of, and what is no name.
        calls.extend([unit(name), unit("lsa-none"), unit("--now"), unit("lsa-fails"), json!({})]);
        calls
    };
    let new_unit = json!({"name": "lsa-new", "exec_start": "/bin/true", "description": "50%% \"new\" é", "user": "admin"});
    let edited = json!({"name": "lsa-works", "exec_start": "/bin/sleep 1000", "after": ["network.target"]});
    let new_timer = json!({"name": "lsa-timed", "exec_start": "/bin/true", "on_calendar": "Sun 05:00"});
    let modified = json!({"name": "lsa-task", "on_calendar": "Tue 06:30", "randomized_delay_sec": "1min"});
    let with = |first: Vec<Value>, rest: &[Value]| [&first[..], rest].concat();
    vec![
        ("sysadmin_session_info", vec![json!({}), json!({"show_sudoers_reference": true}), json!({"x": 1})]),
        ("perf_overview", vec![json!({"sample_ms": 100}), json!({"sample_ms": -1})]),
        ("perf_bottleneck", vec![json!({"sample_ms": 100}), json!({"sample_ms": "long"})]),
        ("perf_memory", vec![json!({}), json!({"unit": "kb"})]),
        ("perf_uptime", vec![json!({}), json!({"unit": "s"})]),
        (
            "perf_disk_io",
            vec![json!({"sample_ms": 0}), json!({"filter": "no-such-disk"}), json!({"limit": 0})],
        ),
        ("perf_network_io", vec![json!({"sample_ms": 0}), json!({"filter": "lo", "sample_ms": 100})]),
        (
            "perf_top_processes",
            vec![
                json!({"sample_ms": 0, "filter": "sshd", "sort": "memory"}),
                json!({"sample_ms": 100, "limit": 3}),
                json!({"filter": "no-such-process"}),
                json!({"sort": "size"}),
            ],
        ),
        (
            "svc_list",
            vec![
                json!({"limit": 10000}),
                json!({"filter": "lsa-"}),
                json!({"filter": "failed"}),
                // Of units that the test alone changes: the first of all are those on their way, as a session that ends.
                json!({"filter": "lsa-", "limit": 2}),
            ],
        ),
        (
            "svc_status",
            vec![
                // Not of sshd: it logs as an error that it gives no more sessions, and who asks over it makes it do so.
                unit("cron"),
                unit("lsa-works"),
                unit("lsa-stuck"),
                unit("dbus.socket"),
                unit("lsa-none"),
                unit("../x"),
            ],
        ),
        (
            "svc_troubleshoot",
            vec![unit("lsa-none"), json!({"service": "ssh", "symptom": "no-such"}), unit("-x")],
        ),
        ("svc_config_validate", vec![unit("ssh"), unit("sshd.service"), unit("lsa-works")]),
        (
            "svc_config_check",
            vec![
                json!({"service": "ssh", "contents": "Port 22\n", "dry_run": true}),
                json!({"service": "ssh", "contents": "Port 22\n"}),
                json!({"service": "ssh", "contents": "Prt 22\n", "confirmed": true}),
                json!({"service": "cron", "contents": ""}),
            ],
        ),
        ("svc_dependency_impact", vec![unit("ssh"), unit("lsa-works"), unit("lsa-none"), unit("getty@")]),
        ("svc_port_audit", vec![json!({}), json!({"x": 1})]),
        // Of what was written before there was a way in: logins are logged as well.
        (
            "log_query",
            vec![
                json!({"path": "/var/log/alternatives.log", "limit": 5}),
                json!({"path": "/var/log/dpkg.log", "order": "oldest", "limit": 5}),
                json!({"path": "/var/log/wtmp"}),
                json!({"path": "/etc/passwd"}),
                json!({"units": ["lsa-none"], "until": "@1"}),
            ],
        ),
        (
            "log_search",
            vec![
                json!({"pattern": "status installed [a-c]", "path": "/var/log/dpkg.log", "limit": 5}),
                json!({"pattern": "(?=a)"}),
            ],
        ),
        ("log_summary", vec![json!({"since": "@1", "until": "@2"})]),
        ("log_disk_usage", vec![json!({})]),
        ("svc_logs", vec![json!({"service": "lsa-none"}), json!({"service": "../x"})]),
        ("timer_list", vec![json!({"limit": 10000}), json!({"filter": "lsa-"}), json!({"limit": 1})]),
        ("svc_start", control("lsa-works")),
        ("svc_reload", with(control("lsa-works"), &[unit("lsa-stuck")])),
        ("svc_restart", control("lsa-works")),
        ("svc_stop", control("lsa-works")),
        ("svc_enable", with(control("lsa-works"), &[json!({"service": "lsa-fails", "now": true})])),
        ("svc_disable", with(control("lsa-works"), &[json!({"service": "cron", "dry_run": true})])),
        (
            "svc_create_unit",
            with(
                shown_and_done(new_unit),
                &[
                    json!({"name": "lsa-new", "exec_start": "/bin/true"}),
                    json!({"name": "lsa-bad", "exec_start": "/usr/bin/lsa-none"}),
                    json!({"name": "lsa-bad", "raw_content": "garbage\n"}),
                ],
            ),
        ),
        (
            "svc_edit_unit",
            with(
                shown_and_done(edited),
                &[
                    json!({"name": "cron", "exec_start": "/usr/bin/lsa-none"}),
                    json!({"name": "lsa-none", "user": "admin"}),
                ],
            ),
        ),
        (
            "timer_create",
            with(
                shown_and_done(new_timer),
                &[json!({"name": "lsa-bad", "unit": "lsa-none.service", "on_calendar": "daily"})],
            ),
        ),
        (
            "timer_modify",
            with(shown_and_done(modified), &[json!({"name": "lsa-task", "on_calendar": "nonsense"})]),
        ),
        (
            "cron_list",
            vec![json!({}), json!({"user": "admin"}), json!({"user": "root"}), json!({"user": "lsa-none"})],
        ),
        (
            "cron_add",
            with(
                shown_and_done(
                    json!({"user": "root", "schedule": "@daily", "command": "/bin/true 'a b' \\% é"}),
                ),
                &[
                    json!({"user": "admin", "schedule": "5 4 * * *", "command": "/bin/false", "comment": "why"}),
                    json!({"user": "admin", "schedule": "5 4 * * *", "command": "/bin/false"}),
                    json!({"user": "lsa-none", "schedule": "@daily", "command": "/bin/true"}),
                    json!({"schedule": "61 * * * *", "command": "/bin/true"}),
                ],
            ),
        ),
        (
            "cron_remove",
            with(
                shown_and_done(json!({"user": "admin", "schedule": "5 4 * * *"})),
                &[
                    json!({"user": "root", "schedule": "@daily"}),
                    json!({"user": "root", "schedule": "@daily"}),
                    json!({"id": "$(id)"}),
                ],
            ),
        ),
        ("pkg_list_installed", vec![json!({"limit": 3}), json!({"filter": "procps"})]),
        ("pkg_search", vec![json!({"query": "lab hello"}), json!({"query": "-x"})]),
        ("pkg_info", vec![package("lab-hello"), package("procps"), package("lab-none"), package("x=1")]),
        ("pkg_check_updates", vec![json!({}), json!({"security_only": true})]),
        // Of what no call here changes: the rest is on record when the same is asked again.
        ("pkg_history", vec![package("procps"), package("procps-ng"), package("lab-none")]),
        (
            "pkg_install",
            with(
                shown_and_done(json!({"packages": "lab-dep"})),
                &[json!({"packages": ["lab-none", "lab-helo"]})],
            ),
        ),
        ("pkg_update", vec![json!({"packages": "lab-none"}), json!({"refresh_only": true, "dry_run": true})]),
        (
            "pkg_rollback",
            vec![json!({"package": "lab-hello", "version": "1.0", "dry_run": true}), package("lab-none")],
        ),
        ("pkg_remove", with(shown_and_done(package("lab-hello")), &[package("lab-none")])),
        ("pkg_purge", vec![json!({"package": "lab-hello", "dry_run": true}), package("lab-clash")]),
        (
            "user_list",
            vec![json!({"kind": "people"}), json!({"kind": "nobody"}), json!({"filter": "daemon"})],
        ),
        ("user_info", vec![json!({"user": "daemon"}), json!({"user": "lsa-none"}), json!({"user": "-x"})]),
        (
            "user_create",
            vec![
                json!({"user": "lsa-new", "dry_run": true}),
                json!({"user": "daemon", "shell": "/bin/sh"}),
                json!({"user": "123"}),
            ],
        ),
        (
            "user_modify",
            vec![
                json!({"user": "games", "shell": "/bin/sh", "dry_run": true}),
                json!({"user": "games", "shell": "/bin/lsa-none"}),
            ],
        ),
        (
            "user_delete",
            vec![
                json!({"user": "games", "dry_run": true}),
                json!({"user": "root"}),
                json!({"user": "lsa-none"}),
            ],
        ),
        (
            "user_lock",
            with(
                shown_and_done(json!({"user": "games"})),
                &[json!({"user": "games"}), json!({"user": "root"})],
            ),
        ),
        ("user_unlock", with(shown_and_done(json!({"user": "games"})), &[json!({"user": "games"})])),
        ("group_list", vec![json!({}), json!({"user": "daemon"})]),
        (
            "group_create",
            vec![json!({"name": "lsa-new", "dry_run": true}), json!({"name": "adm"}), json!({"name": "1"})],
        ),
        (
            "group_delete",
            vec![json!({"name": "games", "dry_run": true}), json!({"name": "root"}), json!({"name": "adm"})],
        ),
        (
            "perms_check",
            vec![
                json!({"path": ["/etc/shadow", "/bin/sh", "/lsa-none"], "user": "nobody"}),
                json!({"path": "etc"}),
            ],
        ),
        (
            "perms_set",
            vec![
                json!({"path": "/etc/hostname", "mode": "0640", "owner": "games", "dry_run": true}),
                json!({"path": "/etc", "mode": "0755", "recursive": true}),
                json!({"path": "/etc/shadow", "mode": "0666"}),
                json!({"path": "/etc/hostname", "mode": "9999"}),
            ],
        ),
        ("sudoers_list", vec![json!({}), json!({"user": "admin"}), json!({"user": "lsa-none"})]),
        (
            "sudoers_modify",
            vec![
                json!({"action": "add", "rule": {"user": "games", "commands": ["/usr/bin/id"]}, "dry_run": true}),
                json!({"action": "remove", "rule": {"user": "games"}}),
                json!({"action": "add", "target_file": "/etc/sudoers", "rule": {"user": "games", "commands": ["ALL"]}}),
            ],
        ),
        ("ssh_session_info", vec![json!({"x": 1})]),
        (
            "ssh_authorized_keys",
            vec![
                json!({}),
                json!({"user": "admin"}),
                json!({"user": "lsa-none"}),
                json!({"user": "admin", "action": "add", "key": KEY, "dry_run": true}),
                json!({"user": "admin", "action": "remove", "key": KEY, "dry_run": true}),
                json!({"user": "admin", "action": "add", "key": "command=\"id\" none"}),
            ],
        ),
        (
            "cron_validate",
            vec![json!({"expression": "*/5 1-3 * * mon"}), json!({"expression": "61 * * * *"})],
        ),
        (
            "cron_next_runs",
            // Years ago, so that how long ago it was tells no hours, which may be others when it is asked again.
            vec![
                json!({"expression": "@hourly", "after": "2020-01-02T03:04:05Z", "count": 3, "timezone": "UTC"}),
                json!({"expression": "0 3 * * *", "after": "2020-01-02T03:04:05Z"}),
                json!({"expression": "0 3 * * *", "timezone": "Mars/Olympus"}),
            ],
        ),
    ]
}

/// All answers, from a host that is as it always is before.
async fn answers(machine: &mut Changing, reach: Reach, account: &str, home: &str) -> Vec<Value> {
    let _ = machine.holds(NO_UNITS);
    machine.sh(UNITS);
    machine.sh(CRONTAB);
    machine.now(reach, "same answers");
    // The home is made before its configuration is written.
    drop(machine.serve_shipped(account, home).await);
    machine.configure(home, ASK_SELDOM);
    let mut client = machine.serve_shipped(account, home).await;
    is_complete(&mut client).await;
    let mut all = Vec::new();
    for (tool, calls) in calls() {
        for arguments in calls {
            all.push(client.envelope(tool, arguments).await);
        }
    }
    machine.nothing_is_left_behind();
    all
}

/// There are calls of every tool, and of no other.
async fn is_complete(client: &mut Client) {
    let listed = client.request("tools/list", json!({})).await;
    let listed = listed["result"]["tools"].as_array().expect("a list").clone();
    let tools = listed.iter().map(|tool| tool["name"].as_str().expect("a name"));
    let tools: BTreeSet<_> = tools.filter(|tool| !OF_THE_SERVER.contains(tool)).collect();
    assert_eq!(calls().iter().map(|(tool, _)| *tool).collect::<BTreeSet<_>>(), tools);
}

/// What differs on this host and may not, a line each.
async fn differences(test: &str, host: &'static str, may_differ: &MayDiffer) -> Vec<String> {
    let mut differences = Vec::new();
    for account in ["root", "admin"] {
        let mut machine = Changing::by(Reach::Inside(host), test, PREPARE, CLEAN).expect("the hosts are up");
        let inside = answers(&mut machine, Reach::Inside(host), account, account).await;
        let over_ssh = answers(&mut machine, Reach::OverSsh(host), account, account).await;
        let _ = machine.holds(NO_UNITS);
        let of_calls =
            calls().into_iter().flat_map(|(tool, calls)| calls.into_iter().map(move |call| (tool, call)));
        for (((tool, arguments), inside), over_ssh) in of_calls.zip(inside).zip(over_ssh) {
            let others = may_differ.others(tool, &inside, &over_ssh);
            differences
                .extend(others.iter().map(|line| format!("{host} {account} {tool} {arguments}: {line}")));
        }
    }
    differences
}

#[test]
fn every_tool_answers_the_same_inside_the_host_and_over_ssh() {
    let test = "every_tool_answers_the_same_inside_the_host_and_over_ssh";
    if host(test, "debian1").is_none() {
        return;
    }
    let may_differ = MayDiffer::read(MAY_DIFFER);
    let on = |host| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(differences(test, host, &may_differ))
    };
    let differences = std::thread::scope(|scope| {
        let hosts = ["debian1", "rhel1"].map(|host| scope.spawn(move || on(host)));
        hosts.map(|host| host.join().expect("compared")).concat()
    });
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    assert_eq!(may_differ.never_seen(), Vec::<String>::new(), "no answer has these");
}
