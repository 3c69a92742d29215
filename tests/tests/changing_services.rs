//! On a real host: what the tools that change units show, do, undo and refuse. Whether they did is asked of systemctl.

use linux_sysadmin_tests::{Changing, Expected, Snapshot};
use serde_json::{Value, json};

/// One that can do everything, and some that can't.
const PREPARE: &str = r"
cd /etc/systemd/system
cat > lsa-works.service <<'END'
# Kept as it is.
[Unit]
Description=Works

[Service]
ExecStart=/bin/sleep infinity
ExecReload=/bin/touch /run/lsa-reloaded

[Install]
WantedBy=multi-user.target
END
cat > lsa-fails.service <<'END'
[Service]
Type=oneshot
ExecStart=/bin/false

[Install]
WantedBy=multi-user.target
END
cat > lsa-absent.service <<'END'
[Service]
Type=exec
ExecStart=/usr/bin/lsa-no-such-program
END
cat > lsa-dies.service <<'END'
[Service]
ExecStart=/bin/false
END
cat > lsa-stuck.service <<'END'
[Service]
ExecStart=/bin/sleep infinity
ExecReload=/bin/false
END
cat > lsa-task.service <<'END'
[Service]
Type=oneshot
ExecStart=/bin/true
END
cat > lsa-task.timer <<'END'
[Timer]
OnCalendar=Mon 04:00

[Install]
WantedBy=timers.target
END
# What a timer of this name would be started as, it refuses.
mkdir lsa-refuses.timer.d
printf '[Unit]\nRefuseManualStart=yes\n' > lsa-refuses.timer.d/refuses.conf
systemctl daemon-reload
systemctl start lsa-stuck
";

const CLEAN: &str = r"
while mountpoint --quiet /etc/systemd/system; do umount --lazy /etc/systemd/system; done
while mountpoint --quiet /run/lsa-full; do umount --lazy /run/lsa-full; done
cd /etc/systemd/system
for unit in lsa-*.service lsa-*.timer; do
    test -L $unit || systemctl disable --now $unit
done
find /etc/systemd/system /run/systemd/system -name 'lsa-*' ! -type d -delete
rm -rf lsa-*.d /run/lsa-*
systemctl daemon-reload
systemctl reset-failed
userdel lsa-plain
";

fn changing(test: &str) -> Option<Changing> {
    Changing::new(test, PREPARE, CLEAN)
}

fn named(name: &'static str, why: &'static str) -> Expected {
    Expected { name, why }
}

/// A change that works.
struct Case {
    tool: &'static str,
    arguments: Value,
    /// Before it, on the host.
    setup: &'static str,
    /// All of the preview that is more than texts: `command` or `steps`, and `after_undo`.
    shown: Value,
    affected: &'static [&'static str],
    /// What holds afterwards, on the host.
    holds: &'static str,
    changed: &'static [&'static str],
}

fn service(name: &str) -> Value {
    json!({"service": name})
}

fn file(name: &str) -> String {
    format!("/etc/systemd/system/{name}")
}

/// A step that writes a unit file. What is there already keeps its mode and its owner.
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
            shown: json!({"steps": [run(start, stop)]}),
            affected: &[],
            holds: is_up,
            changed: &["unit lsa-works.service"],
        },
        Case {
            tool: "svc_stop",
            arguments: service("lsa-works"),
            setup: started,
            shown: json!({"steps": [run(stop, start)]}),
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
                "unit file lsa-works.service",
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
                "unit file lsa-works.service",
                "/etc/systemd/system/multi-user.target.wants/lsa-works.service",
            ],
        },
        Case {
            tool: "svc_create_unit",
            arguments: json!({
                "name": "lsa-new", "exec_start": "/bin/sh -c 'sleep 1; echo $$HOME'", "description": "50%% \"new\"",
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
            changed: &["/etc/systemd/system/lsa-new.service", "unit file lsa-new.service", "unit lsa-new.service"],
        },
        Case {
            tool: "svc_edit_unit",
            arguments: json!({"name": "lsa-works", "exec_start": "/bin/sleep 1000", "after": ["network.target"]}),
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
                "unit file lsa-new.service",
                "unit file lsa-new.timer",
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

/// The hash of a file that is written is that of the file as it is afterwards, which is looked at then.
fn without_hashes(preview: &Value) -> Value {
    let mut shown = json!({});
    for member in ["command", "steps", "after_undo"] {
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
    // Everything has been asked once, so that caches are filled.
    machine.sh("systemctl start lsa-works lsa-task.timer");
    let mut client = machine.serve_all_but_critical().await;
    let mut ask = async |machine: &Changing| {
        for case in cases() {
            let mut arguments = case.arguments;
            arguments["dry_run"] = json!(true);
            let envelope = client.envelope(case.tool, arguments).await;
            assert_eq!(envelope["dry_run"], true, "{envelope}");
            let _ = machine;
        }
    };
    ask(&machine).await;
    let before = Snapshot::of_all_files(machine.host());
    ask(&machine).await;
    let after = Snapshot::of_all_files(machine.host());
    let differences = before.differences(&after, OWN_FILES);
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

/// What a dry run writes, and what a host writes by itself.
const OWN_FILES: &[Expected] = &[Expected {
    name: "/var/lib/planner/root/.local/state/linux-sysadmin*",
    why: "every call is put on record",
}];

#[tokio::test]
async fn what_holds_already_is_a_success_without_a_plan() {
    let Some(machine) = changing("what_holds_already_is_a_success_without_a_plan") else { return };
    let mut client = machine.serve_default().await;
    let works = service("lsa-works");
    for (tool, arguments) in [
        ("svc_stop", works.clone()),
        ("svc_disable", works.clone()),
        ("svc_disable", json!({"service": "lsa-works", "now": true})),
        ("svc_edit_unit", json!({"name": "lsa-works", "description": "Works"})),
        ("timer_modify", json!({"name": "lsa-task", "on_calendar": "Mon 04:00"})),
    ] {
        machine.holds_already(&mut client, tool, &arguments).await;
    }
    machine.sh("systemctl --quiet enable --now lsa-works");
    for (tool, arguments) in [
        ("svc_start", works.clone()),
        ("svc_enable", works.clone()),
        ("svc_enable", json!({"service": "lsa-works", "now": true})),
        // The same in a dry run: there is nothing to show.
        ("svc_start", json!({"service": "lsa-works", "dry_run": true})),
    ] {
        machine.holds_already(&mut client, tool, &arguments).await;
    }
}

#[tokio::test]
async fn what_is_grave_waits_for_a_yes_by_whatever_name() {
    let Some(machine) = changing("what_is_grave_waits_for_a_yes_by_whatever_name") else { return };
    let mut client = machine.serve_default().await;
    let edit = json!({"name": "lsa-works", "description": "Other"});
    let asked = machine.asks(&mut client, "svc_edit_unit", &edit, "high").await;
    assert!(
        asked["preview"]["steps"][0]["diff"].as_str().is_some_and(|diff| diff.contains("+Description=Other")),
        "{asked}"
    );
    let timer = |unit: &str| json!({"name": "lsa-new", "on_calendar": "daily", "unit": unit});
    for (tool, arguments) in [
        ("svc_start", service("debug-shell")),
        ("svc_enable", service("debug-shell.service")),
        ("svc_enable", json!({"service": "debug-shell", "now": true})),
        ("svc_start", service("rescue.target")),
        ("svc_start", service("rescue")),
        ("svc_start", service("runlevel1.target")),
        ("svc_start", service("emergency.target")),
        ("svc_restart", service("emergency.target")),
        ("svc_start", service("ctrl-alt-del.target")),
        ("svc_stop", service("basic.target")),
        ("timer_create", timer("debug-shell.service")),
        ("timer_create", timer("reboot.target")),
        ("timer_modify", json!({"name": "lsa-task", "unit": "debug-shell.service"})),
    ] {
        machine.asks(&mut client, tool, &arguments, "critical").await;
    }
    machine.sh("ln -s /lib/systemd/system/debug-shell.service /etc/systemd/system/lsa-harmless.service
        systemctl daemon-reload");
    for (tool, arguments) in [
        ("svc_start", service("lsa-harmless")),
        ("svc_restart", service("lsa-harmless.service")),
        ("timer_create", timer("lsa-harmless.service")),
        ("timer_modify", json!({"name": "lsa-task", "unit": "lsa-harmless.service"})),
    ] {
        machine.asks(&mut client, tool, &arguments, "critical").await;
    }
    // What has another name by a link in /etc is indirect, says systemd 252.
    machine.refuses(&mut client, "svc_enable", &service("lsa-harmless"), "UNIT_INDIRECT").await;
    for (tool, arguments) in [
        ("svc_stop", service("ssh")),
        ("svc_stop", service("sshd")),
        ("svc_disable", service("sshd.service")),
        ("svc_restart", service("dbus")),
    ] {
        machine.asks(&mut client, tool, &arguments, "high").await;
    }
    assert!(machine.holds(
        "! systemctl is-active --quiet debug-shell && systemctl is-active --quiet basic.target ssh dbus"
    ));
}

#[tokio::test]
async fn a_unit_that_cannot_start_is_told_of_with_its_reason_and_undone() {
    let Some(machine) = changing("a_unit_that_cannot_start_is_told_of_with_its_reason_and_undone") else {
        return;
    };
    let mut client = machine.serve_default().await;
    const FAILED: &str = "systemd keeps that its last start failed, as after any other start";
    for (tool, arguments, code, why, undone, unit) in [
        (
            "svc_start",
            service("lsa-fails"),
            "SERVICE_START_FAILED",
            "exit code 1",
            "",
            "unit lsa-fails.service",
        ),
        (
            "svc_restart",
            service("lsa-fails"),
            "SERVICE_RESTART_FAILED",
            "exit code 1",
            "",
            "unit lsa-fails.service",
        ),
        (
            "svc_enable",
            json!({"service": "lsa-fails", "now": true}),
            "SERVICE_START_FAILED",
            "exit code 1",
            "systemctl disable -- lsa-fails.service",
            "unit lsa-fails.service",
        ),
        (
            "svc_start",
            service("lsa-absent"),
            "SERVICE_START_FAILED",
            "exit code 203",
            "",
            "unit lsa-absent.service",
        ),
        (
            "svc_restart",
            service("lsa-absent"),
            "SERVICE_RESTART_FAILED",
            "exit code 203",
            "",
            "unit lsa-absent.service",
        ),
        ("svc_reload", service("lsa-stuck"), "SERVICE_RELOAD_FAILED", "lsa-stuck", "", ""),
        (
            "timer_create",
            json!({"name": "lsa-refuses", "exec_start": "/bin/true", "on_calendar": "daily"}),
            "SERVICE_START_FAILED",
            "Operation refused",
            "systemctl disable -- lsa-refuses.timer",
            "unit lsa-refuses.timer",
        ),
    ] {
        let before = machine.snapshot();
        let envelope = client.envelope(tool, arguments.clone()).await;
        machine.failed(&envelope, code, &before, &[named(unit, FAILED)], &format!("{tool} {arguments}"));
        assert!(envelope["message"].as_str().is_some_and(|said| said.contains(why)), "{envelope}");
        assert!(envelope["remediation"].as_array().is_some_and(|steps| !steps.is_empty()), "{envelope}");
        let list = envelope["undone"].as_array().expect("a list");
        assert_eq!(
            list.iter().any(|line| line.as_str().is_some_and(|line| line.contains(undone))),
            !undone.is_empty(),
            "{envelope}"
        );
        machine.sh("systemctl reset-failed");
    }
    machine.audit_is_valid("root", "root");
}

/// systemd calls a simple service started once there is a process, so `systemctl start` succeeds, and so does the tool.
#[tokio::test]
async fn a_simple_service_that_dies_at_once_is_told_of() {
    let Some(machine) = changing("a_simple_service_that_dies_at_once_is_told_of") else { return };
    let mut client = machine.serve_default().await;
    for tool in ["svc_start", "svc_restart"] {
        let envelope = client.envelope(tool, service("lsa-dies")).await;
        assert_eq!(envelope["data"]["active_state"], "failed", "{envelope}");
        assert_eq!(envelope["data"]["exit_code"], 1, "{envelope}");
        assert!(envelope["notes"].to_string().contains("ended badly at once"), "{envelope}");
    }
}

#[tokio::test]
async fn an_invalid_unit_file_is_never_written() {
    let Some(machine) = changing("an_invalid_unit_file_is_never_written") else { return };
    let mut client = machine.serve_all_but_critical().await;
    machine.sh("systemctl start lsa-task.timer");
    let service = "[Unit]\nDescription=x\n[Service]\nType=simple\n";
    let create = |raw: &str| json!({"name": "lsa-new", "raw_content": raw});
    let timer = |raw: &str| json!({"name": "lsa-new", "exec_start": "/bin/true", "raw_content": raw});
    // Where there is a number, systemd-analyze found it while the plan ran, at this step.
    for (tool, arguments, code, why, step) in [
        ("svc_create_unit", create("garbage\n"), "INVALID_VALUE", "section", None),
        ("svc_create_unit", create(""), "INVALID_VALUE", "section", None),
        ("svc_create_unit", create(service), "VALIDATION_FAILED", "no ExecStart=", Some(0)),
        (
            "svc_create_unit",
            create("[Service]\nExecStart=relative\n"),
            "VALIDATION_FAILED",
            "relative",
            Some(0),
        ),
        (
            "svc_create_unit",
            create("[Service]\nExecStart=/usr/bin/lsa-none\n"),
            "VALIDATION_FAILED",
            "/usr/bin/lsa-none",
            Some(0),
        ),
        (
            "svc_create_unit",
            json!({"name": "lsa-new", "exec_start": "/usr/bin/lsa-none"}),
            "VALIDATION_FAILED",
            "not executable",
            Some(0),
        ),
        (
            "svc_edit_unit",
            json!({"name": "lsa-works", "raw_content": service}),
            "VALIDATION_FAILED",
            "no ExecStart=",
            Some(0),
        ),
        (
            "svc_edit_unit",
            json!({"name": "lsa-works", "raw_content": "garbage"}),
            "INVALID_VALUE",
            "section",
            None,
        ),
        (
            "svc_edit_unit",
            json!({"name": "lsa-works", "exec_start": "/usr/bin/lsa-none"}),
            "VALIDATION_FAILED",
            "not executable",
            Some(0),
        ),
        // The vendor's file is copied only where the copy is valid.
        (
            "svc_edit_unit",
            json!({"name": "cron", "exec_start": "/usr/bin/lsa-none"}),
            "VALIDATION_FAILED",
            "not executable",
            Some(0),
        ),
        (
            "timer_create",
            json!({"name": "lsa-new", "exec_start": "/usr/bin/lsa-none", "on_calendar": "daily"}),
            "VALIDATION_FAILED",
            "not executable",
            Some(0),
        ),
        // Its service was written already.
        ("timer_create", timer("[Timer]\nOnBootSec=nonsense\n"), "VALIDATION_FAILED", "lacks value", Some(1)),
        ("timer_create", timer("garbage"), "INVALID_VALUE", "section", None),
        (
            "timer_create",
            json!({"name": "lsa-new", "exec_start": "/bin/true", "on_calendar": "nonsense"}),
            "INVALID_CALENDAR",
            "nonsense",
            None,
        ),
        (
            "timer_create",
            json!({"name": "lsa-new", "exec_start": "/bin/true"}),
            "MISSING_SCHEDULE",
            "on_calendar",
            None,
        ),
        (
            "timer_create",
            json!({"name": "lsa-new", "unit": "lsa-none.service", "on_calendar": "daily"}),
            "UNIT_NOT_FOUND",
            "lsa-none",
            None,
        ),
        (
            "timer_modify",
            json!({"name": "lsa-task", "raw_content": "[Timer]\nOnBootSec=nonsense\n"}),
            "VALIDATION_FAILED",
            "lacks value",
            Some(0),
        ),
        (
            "timer_modify",
            json!({"name": "lsa-task", "on_calendar": ""}),
            "MISSING_SCHEDULE",
            "on_calendar",
            None,
        ),
        (
            "timer_modify",
            json!({"name": "lsa-task", "on_calendar": "nonsense"}),
            "INVALID_CALENDAR",
            "nonsense",
            None,
        ),
    ] {
        let before = machine.snapshot();
        let envelope = client.envelope(tool, arguments.clone()).await;
        machine.failed(&envelope, code, &before, &[], &format!("{tool} {arguments}"));
        assert!(envelope["message"].as_str().is_some_and(|said| said.contains(why)), "{envelope}");
        assert_eq!(envelope.get("failed_step").and_then(Value::as_u64), step, "{envelope}");
    }
    // What systemd-analyze itself says of such files, by its exit code: the plan goes by nothing else.
    for (contents, fails) in [
        ("[Service]\\nType=simple\\n", true),
        ("[Service]\\nExecStart=relative\\n", true),
        ("[Service]\\nExecStart=/usr/bin/lsa-none\\n", true),
        ("[Service]\\nExecStart=/bin/true\\nNonsense=1\\n", false),
        ("garbage\\n[Service]\\nExecStart=/bin/true\\n", false),
    ] {
        let verify = format!(
            "printf '{contents}' > /run/lsa-verify.service; systemd-analyze verify --man=no -- /run/lsa-verify.service"
        );
        assert_eq!(machine.holds(&verify), !fails, "{contents}");
    }
    machine.audit_is_valid("root", "root");
}

#[tokio::test]
async fn a_full_disk_leaves_every_unit_file_as_it_was() {
    let Some(machine) = changing("a_full_disk_leaves_every_unit_file_as_it_was") else { return };
    let mut client = machine.serve_all_but_critical().await;
    machine.sh("set -e
        mkdir /run/lsa-full; mount -t tmpfs -o size=256k,mode=755 lsa-full /run/lsa-full
        cp -a /etc/systemd/system/. /run/lsa-full
        mount --bind /run/lsa-full /etc/systemd/system
        systemctl daemon-reload; systemctl start lsa-task.timer
        dd if=/dev/zero of=/run/lsa-full/lsa-filler bs=4k 2>/dev/null || :
        ! sh -c 'echo x > /etc/systemd/system/lsa-probe'; rm -f /etc/systemd/system/lsa-probe");
    for (tool, arguments, step) in [
        ("svc_create_unit", json!({"name": "lsa-new", "exec_start": "/bin/true"}), 0),
        ("svc_edit_unit", json!({"name": "lsa-works", "description": "Other"}), 0),
        ("svc_edit_unit", json!({"name": "cron", "description": "Other"}), 0),
        ("timer_create", json!({"name": "lsa-new", "exec_start": "/bin/true", "on_calendar": "daily"}), 0),
        ("timer_modify", json!({"name": "lsa-task", "on_calendar": "daily"}), 0),
    ] {
        let before = machine.snapshot();
        let envelope = client.envelope(tool, arguments.clone()).await;
        machine.failed(&envelope, "OUT_OF_SPACE", &before, &[], &format!("{tool} {arguments}"));
        assert_eq!(envelope["failed_step"], step, "{envelope}");
    }
    // Room for one file of the two.
    machine.sh("truncate --size=-4096 /run/lsa-full/lsa-filler");
    let before = machine.snapshot();
    let both = json!({"name": "lsa-new", "exec_start": "/bin/true", "on_calendar": "daily"});
    let envelope = client.envelope("timer_create", both).await;
    machine.failed(&envelope, "OUT_OF_SPACE", &before, &[], "the timer has no room");
    assert_eq!(envelope["failed_step"], 1, "{envelope}");
    assert!(envelope["undone"].to_string().contains("lsa-new.service"), "{envelope}");
    machine.audit_is_valid("root", "root");
}

#[tokio::test]
async fn what_would_be_more_than_a_name_or_a_value_is_refused() {
    let Some(machine) = changing("what_would_be_more_than_a_name_or_a_value_is_refused") else { return };
    let mut client = machine.serve_all_but_critical().await;
    let before = machine.snapshot();
    let names = [
        "",
        "-lsa",
        "--now",
        "-Hother",
        "../lsa",
        "/etc/passwd",
        "lsa/../x",
        "a b",
        "a;id",
        "a$(id)",
        "a`id`",
        "a\nb",
        "a\u{0}b",
        "*",
        "lsa-*",
        "a|b",
        "a&b",
        "a>b",
        "'a'",
        "a\u{202e}b",
    ];
    for name in names {
        for tool in ["svc_start", "svc_stop", "svc_restart", "svc_reload", "svc_enable", "svc_disable"] {
            machine.refuses(&mut client, tool, &service(name), "INVALID_UNIT_NAME").await;
        }
        for (tool, more) in [
            ("svc_create_unit", json!({"exec_start": "/bin/true"})),
            ("svc_edit_unit", json!({"description": "x"})),
            ("timer_create", json!({"exec_start": "/bin/true", "on_calendar": "daily"})),
            ("timer_modify", json!({"on_calendar": "daily"})),
        ] {
            let mut arguments = more;
            arguments["name"] = json!(name);
            machine.refuses(&mut client, tool, &arguments, "INVALID_UNIT_NAME").await;
        }
    }
    let line = "x\nExecStartPre=/bin/touch /run/lsa-evil";
    for (field, values) in [
        ("description", &[line, "x\r\ny", "x\\", "x\u{1b}[2J"][..]),
        (
            "exec_start",
            &[
                line,
                "/bin/true\nExecStart=/bin/false",
                "relative",
                "$(id)",
                ";id",
                "-",
                "../bin/true",
                "/bin/true \\",
            ],
        ),
        ("user", &[line, "-root", "root;id", "$(id)", "a b", "../root"]),
        ("working_directory", &[line, "relative", "/srv/../etc", "$(id)"]),
        ("after", &[line, "-x.service", "../x.service", "x", "$(id).service", "a;b.service"]),
        ("wanted_by", &[line, "../../x.target", "-x.target", "x"]),
        ("restart", &[line, "sometimes", "always\nUser=root"]),
        ("type", &[line, "magic"]),
    ] {
        for value in values {
            for tool in ["svc_create_unit", "svc_edit_unit"] {
                let name = if tool == "svc_create_unit" { "lsa-new" } else { "lsa-works" };
                let mut arguments = json!({"name": name, "exec_start": "/bin/true"});
                arguments[field] = json!(value);
                machine.refuses(&mut client, tool, &arguments, "INVALID_VALUE").await;
            }
        }
    }
    for (field, values, code) in [
        ("on_calendar", &["daily\nUnit=debug-shell.service", "-x"][..], "INVALID_VALUE"),
        ("on_calendar", &["$(id)", "daily; id", "../x"], "INVALID_CALENDAR"),
        ("on_boot_sec", &["5min\nUnit=x.service", "-5min", "$(id)", "1;2"], "INVALID_VALUE"),
        ("randomized_delay_sec", &["5min\nUnit=x.service", "nonsense"], "INVALID_VALUE"),
        ("unit", &["-x.service", "../x.service", "a;b", "a\nb"], "INVALID_UNIT_NAME"),
        ("wanted_by", &["timers.target\nAlso=debug-shell.service", "../x.target"], "INVALID_VALUE"),
        ("description", &["x\nDescription=y"], "INVALID_VALUE"),
    ] {
        for value in values {
            for (tool, name) in [("timer_create", "lsa-new"), ("timer_modify", "lsa-task")] {
                let mut arguments = json!({"name": name, "on_calendar": "daily"});
                arguments[field] = json!(value);
                machine.refuses(&mut client, tool, &arguments, code).await;
            }
        }
    }
    machine.is_still(&before, "nothing was let through");
    assert_eq!(machine.begun("root"), 0);
    assert!(!machine.has("/run/lsa-evil"));
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
        client.envelope("svc_create_unit", json!({"name": "lsa-new", "exec_start": "/bin/true"})).await;
    assert_eq!(done["status"], "success", "{done}");
    assert_eq!(machine.sh("stat -c '%a %U:%G' /etc/systemd/system/lsa-new.service"), "644 root:root\n");
    machine.nothing_is_left_behind();
    machine.audit_is_valid("admin", "admin");
}

#[tokio::test]
async fn an_account_without_sudo_is_told_what_it_lacks() {
    let Some(machine) = changing("an_account_without_sudo_is_told_what_it_lacks") else { return };
    machine.sh("useradd lsa-plain");
    let mut client = machine.serve_shipped("lsa-plain", "lsa-plain").await;
    machine.sh("systemctl start lsa-works");
    let before = machine.snapshot();
    for (tool, arguments) in [
        ("svc_restart", service("lsa-works")),
        ("svc_stop", service("lsa-works")),
        ("svc_enable", service("lsa-works")),
        ("svc_create_unit", json!({"name": "lsa-new", "exec_start": "/bin/true"})),
        ("timer_create", json!({"name": "lsa-new", "exec_start": "/bin/true", "on_calendar": "daily"})),
    ] {
        let envelope = client.envelope(tool, arguments.clone()).await;
        machine.is_still(&before, tool);
        assert_eq!(envelope["error_code"], "PRIVILEGE_REQUIRED", "{tool}: {envelope}");
        assert_eq!(envelope["error_category"], "privilege", "{tool}: {envelope}");
        assert!(envelope["remediation"].to_string().contains("modules sudoers"), "{tool}: {envelope}");
    }
    assert_eq!(machine.begun("lsa-plain"), 0);
}
