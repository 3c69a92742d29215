//! The tools that change units do on a real host exactly what they show. systemctl says what they have done.

use linux_sysadmin_tests::{Changing, Expected, NO_UNITS, UNITS, way};
use serde_json::{Value, json};

fn changing(test: &str) -> Option<Changing> {
    Changing::by(way(), test, UNITS, NO_UNITS)
}

fn named(name: &'static str, why: &'static str) -> Expected {
    Expected { name, why }
}

/// A change that works.
struct Case {
    tool: &'static str,
    arguments: Value,
    /// A script that runs on the host before the change.
    setup: &'static str,
    /// The members of the preview that are not only texts: `command` or `steps`, and `after_undo`.
    shown: Value,
    affected: &'static [&'static str],
    /// A script that succeeds on the host afterwards.
    holds: &'static str,
    changed: &'static [&'static str],
}

fn service(name: &str) -> Value {
    json!({"service": name})
}

fn file(name: &str) -> String {
    format!("/etc/systemd/system/{name}")
}

/// The preview of a step that writes a unit file. A file that exists keeps its mode and its owner.
fn written(name: &str, diff: &str, sha256: &str, is_new: bool) -> Value {
    let path = file(name);
    let from = if is_new { "/dev/null".to_owned() } else { format!("a{path}") };
    let mut step = json!({
        "write": path,
        "diff": format!("--- {from}\n+++ b{path}\n{diff}"),
        "sha256": sha256,
        "validate": "systemd-analyze verify --man=no -- '{}'",
    });
    if is_new {
        (step["mode"], step["owner"], step["group"]) = ("0644".into(), "root".into(), "root".into());
    }
    step
}

fn run(line: &str, undo: &str) -> Value {
    if undo.is_empty() { json!({"run": line}) } else { json!({"run": line, "undo": [undo]}) }
}

fn cases() -> Vec<Case> {
    let started = "systemctl start lsa-works";
    let (start, stop) = ("systemctl start -- lsa-works.service", "systemctl stop -- lsa-works.service");
    let (enable, disable) =
        ("systemctl enable -- lsa-works.service", "systemctl disable -- lsa-works.service");
    let reload = "systemctl daemon-reload";
    let works = &["lsa-works.service"];
    let is_up = "systemctl is-active --quiet lsa-works";
    vec![
        Case {
            tool: "svc_start",
            arguments: service("lsa-works"),
            setup: "",
            shown: json!({"command": start, "undo": [stop]}),
            affected: &[],
            holds: is_up,
            changed: &["unit lsa-works.service"],
        },
        Case {
            tool: "svc_stop",
            arguments: service("lsa-works"),
            setup: started,
            shown: json!({"command": stop, "undo": [start]}),
            affected: works,
            holds: "! systemctl is-active --quiet lsa-works",
            changed: &["unit lsa-works.service"],
        },
        Case {
            tool: "svc_restart",
            arguments: service("lsa-works"),
            setup: "systemctl start lsa-works; systemctl show --property=MainPID lsa-works > /run/lsa-pid",
            shown: json!({"command": "systemctl restart -- lsa-works.service"}),
            affected: works,
            holds: "systemctl is-active --quiet lsa-works
                test \"$(systemctl show --property=MainPID lsa-works)\" != \"$(cat /run/lsa-pid)\"",
            changed: &[],
        },
        Case {
            tool: "svc_reload",
            arguments: service("lsa-works.service"),
            setup: started,
            shown: json!({"command": "systemctl reload -- lsa-works.service"}),
            affected: &[],
            holds: "test -e /run/lsa-reloaded && systemctl is-active --quiet lsa-works",
            changed: &[],
        },
        Case {
            tool: "svc_enable",
            arguments: json!({"service": "lsa-works", "now": true}),
            setup: "",
            shown: json!({"steps": [run(enable, disable), run(start, stop)]}),
            affected: &[],
            holds: "systemctl is-active --quiet lsa-works && test $(systemctl is-enabled lsa-works) = enabled",
            changed: &[
                "unit lsa-works.service",
                "/etc/systemd/system/multi-user.target.wants/lsa-works.service",
            ],
        },
        Case {
            tool: "svc_disable",
            arguments: json!({"service": "lsa-works", "now": true}),
            setup: "systemctl --quiet enable --now lsa-works",
            shown: json!({"steps": [run(disable, enable), run(stop, start)]}),
            affected: works,
            holds: "! systemctl is-active --quiet lsa-works && test $(systemctl is-enabled lsa-works) = disabled",
            changed: &[
                "unit lsa-works.service",
                "/etc/systemd/system/multi-user.target.wants/lsa-works.service",
            ],
        },
        Case {
            tool: "svc_create_unit",
            arguments: json!({
                "service": "lsa-new", "exec_start": "/bin/sh -c 'sleep 1; echo $$HOME'", "description": "50%% \"new\"",
                "after": ["network.target", "lsa-works.service"], "restart": "on-failure", "user": "admin",
            }),
            setup: "",
            shown: json!({"steps": [
                written("lsa-new.service", "@@ -0,0 +1,11 @@\n+[Unit]\n+Description=50%% \"new\"\n\
                     +After=network.target lsa-works.service\n+\n+[Service]\n\
                     +ExecStart=/bin/sh -c 'sleep 1; echo $$HOME'\n+User=admin\n+Restart=on-failure\n+\n+[Install]\n\
                     +WantedBy=multi-user.target\n",
                    "", true),
                run(reload, ""),
            ], "after_undo": [reload]}),
            affected: &[],
            holds: "test \"$(systemctl show --value --property=User lsa-new)\" = admin
                test \"$(stat -c '%a %U:%G' /etc/systemd/system/lsa-new.service)\" = '644 root:root'
                test \"$(sed -n 2p /etc/systemd/system/lsa-new.service)\" = 'Description=50%% \"new\"'
                test \"$(systemctl show --value --property=Description lsa-new)\" = '50% \"new\"'",
            changed: &["/etc/systemd/system/lsa-new.service", "unit lsa-new.service"],
        },
        Case {
            tool: "svc_edit_unit",
            arguments: json!({"service": "lsa-works", "exec_start": "/bin/sleep 1000", "after": ["network.target"]}),
            setup: "chmod 640 /etc/systemd/system/lsa-works.service; chown root:adm /etc/systemd/system/lsa-works.service",
            shown: json!({"steps": [
                written("lsa-works.service", "@@ -1,9 +1,10 @@\n # Kept as it is.\n [Unit]\n Description=Works\n\
                     +After=network.target\n \n [Service]\n-ExecStart=/bin/sleep infinity\n+ExecStart=/bin/sleep 1000\n \
                     ExecReload=/bin/touch /run/lsa-reloaded\n \n [Install]\n",
                    "", false),
                run(reload, ""),
            ], "after_undo": [reload]}),
            affected: &[],
            holds: "systemctl cat lsa-works | grep --quiet --line-regexp 'ExecStart=/bin/sleep 1000'
                systemctl cat lsa-works | grep --quiet --line-regexp '# Kept as it is.'
                test \"$(stat -c '%a %U:%G' /etc/systemd/system/lsa-works.service)\" = '640 root:adm'",
            changed: &["/etc/systemd/system/lsa-works.service"],
        },
        Case {
            tool: "timer_create",
            arguments: json!({"name": "lsa-new", "exec_start": "/bin/true", "on_calendar": "Sun 05:00", "persistent": true}),
            setup: "",
            shown: json!({"steps": [
                written("lsa-new.service", "@@ -0,0 +1,3 @@\n+[Service]\n+Type=oneshot\n+ExecStart=/bin/true\n", "", true),
                written("lsa-new.timer", "@@ -0,0 +1,6 @@\n+[Timer]\n+OnCalendar=Sun 05:00\n+Persistent=true\n+\n\
                     +[Install]\n+WantedBy=timers.target\n", "", true),
                run(reload, ""),
                run("systemctl enable -- lsa-new.timer", "systemctl disable -- lsa-new.timer"),
                run("systemctl start -- lsa-new.timer", "systemctl stop -- lsa-new.timer"),
            ], "after_undo": [reload]}),
            affected: &[],
            holds: "systemctl is-active --quiet lsa-new.timer && systemctl is-enabled --quiet lsa-new.timer
                systemctl list-timers --all --no-legend lsa-new.timer | grep --quiet 'Sun .* 05:00:00 .*lsa-new.service'
                test \"$(systemctl show --value --property=Persistent lsa-new.timer)\" = yes",
            changed: &[
                "/etc/systemd/system/lsa-new.service",
                "/etc/systemd/system/lsa-new.timer",
                "/etc/systemd/system/timers.target.wants/lsa-new.timer",
                "unit lsa-new.service",
                "unit lsa-new.timer",
                "timer lsa-new.timer",
            ],
        },
        Case {
            tool: "timer_modify",
            arguments: json!({"name": "lsa-task", "on_calendar": ["Tue 06:30"], "randomized_delay_sec": "1min"}),
            setup: "systemctl start lsa-task.timer",
            shown: json!({"steps": [
                written("lsa-task.timer", "@@ -1,5 +1,6 @@\n [Timer]\n-OnCalendar=Mon 04:00\n+OnCalendar=Tue 06:30\n\
                     +RandomizedDelaySec=1min\n \n [Install]\n WantedBy=timers.target\n", "", false),
                run(reload, ""),
                run("systemctl restart -- lsa-task.timer", ""),
            ], "after_undo": [reload, "systemctl restart -- lsa-task.timer"]}),
            affected: &[],
            holds: "systemctl show --property=TimersCalendar lsa-task.timer | grep --quiet 'OnCalendar=Tue .*06:30:00'
                systemctl is-active --quiet lsa-task.timer",
            changed: &["/etc/systemd/system/lsa-task.timer"],
        },
    ]
}

/// Takes the hashes of written files out of a preview. They are compared with the files afterwards.
fn without_hashes(preview: &Value) -> Value {
    let mut shown = json!({});
    for member in ["command", "undo", "steps", "after_undo"] {
        if let Some(value) = preview.get(member) {
            shown[member] = value.clone();
        }
    }
    for step in shown["steps"].as_array_mut().into_iter().flatten() {
        if let Some(sha256) = step.get_mut("sha256") {
            *sha256 = json!("");
        }
    }
    if shown["steps"].is_null() {
        shown.as_object_mut().expect("an object").remove("steps");
    }
    shown
}

#[tokio::test]
async fn every_tool_shows_without_changing_anything_exactly_what_it_then_does() {
    let test = "every_tool_shows_without_changing_anything_exactly_what_it_then_does";
    for case in cases() {
        let Some(machine) = changing(test) else { return };
        let tool = case.tool;
        machine.sh(case.setup);
        let mut client = machine.serve_all_but_critical().await;
        let preview = machine.shows(&mut client, tool, &case.arguments).await;
        assert_eq!(without_hashes(&preview), case.shown, "{tool}");
        assert_eq!(preview["affected_services"], json!(case.affected), "{tool}: {preview}");

        let before = machine.snapshot();
        machine.does(&mut client, tool, &case.arguments, &preview).await;
        for step in preview["steps"].as_array().into_iter().flatten() {
            if let (Some(path), Some(sha256)) = (step["write"].as_str(), step["sha256"].as_str()) {
                assert!(
                    machine.sh(&format!("sha256sum {path}")).starts_with(sha256),
                    "{path} is what was shown"
                );
            }
        }
        machine.sh(&format!("set -ex\n{}", case.holds));
        let changed: Vec<_> =
            case.changed.iter().map(|name| named(name, "it is the tool's to change")).collect();
        machine.is_still_but(&before, &changed, tool);
        machine.audit_is_valid("root", "root");
    }
}

#[tokio::test]
async fn a_dry_run_touches_no_file_but_the_programs_own() {
    let Some(machine) = changing("a_dry_run_touches_no_file_but_the_programs_own") else { return };
    machine.sh("systemctl start lsa-works lsa-task.timer");
    let mut client = machine.serve_all_but_critical().await;
    let calls: Vec<_> = cases().into_iter().map(|case| (case.tool, case.arguments)).collect();
    machine.dry_runs_touch_only(&mut client, &calls, &[]).await;
}

#[tokio::test]
async fn what_holds_already_is_a_success_without_a_plan() {
    let Some(machine) = changing("what_holds_already_is_a_success_without_a_plan") else { return };
    let mut client = machine.serve_default().await;
    let works = service("lsa-works");
    for (tool, arguments) in [
        ("svc_stop", works.clone()),
        ("svc_disable", works.clone()),
        ("svc_disable", json!({"service": "lsa-works", "now": true})),
        ("svc_edit_unit", json!({"service": "lsa-works", "description": "Works"})),
        ("timer_modify", json!({"name": "lsa-task", "on_calendar": "Mon 04:00"})),
    ] {
        machine.holds_already(&mut client, tool, &arguments).await;
    }
    machine.sh("systemctl --quiet enable --now lsa-works");
    for (tool, arguments) in [
        ("svc_start", works.clone()),
        ("svc_enable", works.clone()),
        ("svc_enable", json!({"service": "lsa-works", "now": true})),
        // A dry run has nothing to show either.
        ("svc_start", json!({"service": "lsa-works", "dry_run": true})),
    ] {
        machine.holds_already(&mut client, tool, &arguments).await;
    }
}

#[tokio::test]
async fn an_account_with_sudo_changes_what_root_changes() {
    let Some(machine) = changing("an_account_with_sudo_changes_what_root_changes") else { return };
    machine.sh("systemctl start lsa-works; systemctl show --property=MainPID lsa-works > /run/lsa-pid");
    let mut client = machine.serve_shipped("admin", "admin").await;
    let shown = client.envelope("svc_restart", json!({"service": "lsa-works", "dry_run": true})).await;
    assert_eq!(shown["preview"]["command"], "sudo -n systemctl restart -- lsa-works.service", "{shown}");
    let done = client.envelope("svc_restart", service("lsa-works")).await;
    assert_eq!(done["status"], "success", "{done}");
    machine.sh("set -e; systemctl is-active lsa-works
        test \"$(systemctl show --property=MainPID lsa-works)\" != \"$(cat /run/lsa-pid)\"");
    let done =
        client.envelope("svc_create_unit", json!({"service": "lsa-new", "exec_start": "/bin/true"})).await;
    assert_eq!(done["status"], "success", "{done}");
    assert_eq!(machine.sh("stat -c '%a %U:%G' /etc/systemd/system/lsa-new.service"), "644 root:root\n");
    machine.nothing_is_left_behind();
    machine.audit_is_valid("admin", "admin");
}
