//! A tool that can't or may not change a unit of a real host says why, and leaves the host as it was.

use linux_sysadmin_tests::{Changing, Expected, NO_UNITS, UNITS, way};
use serde_json::{Value, json};

fn changing(test: &str) -> Option<Changing> {
    Changing::by(way(), test, UNITS, NO_UNITS)
}

fn named(name: &'static str, why: &'static str) -> Expected {
    Expected { name, why }
}

fn service(name: &str) -> Value {
    json!({"service": name})
}

#[tokio::test]
async fn what_is_grave_waits_for_a_yes_by_whatever_name() {
    let Some(machine) = changing("what_is_grave_waits_for_a_yes_by_whatever_name") else { return };
    let mut client = machine.serve_default().await;
    let edit = json!({"service": "lsa-works", "description": "Other"});
    let asked = machine.asks(&mut client, "svc_edit_unit", &edit, "high").await;
    assert!(
        asked["preview"]["steps"][0]["diff"].as_str().is_some_and(|diff| diff.contains("+Description=Other")),
        "{asked}"
    );
    let timer = |unit: &str| json!({"name": "lsa-new", "on_calendar": "daily", "service": unit});
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
        ("timer_modify", json!({"name": "lsa-task", "service": "debug-shell.service"})),
    ] {
        machine.asks(&mut client, tool, &arguments, "critical").await;
    }
    machine.sh("ln -s /lib/systemd/system/debug-shell.service /etc/systemd/system/lsa-harmless.service
        systemctl daemon-reload");
    for (tool, arguments) in [
        ("svc_start", service("lsa-harmless")),
        ("svc_restart", service("lsa-harmless.service")),
        ("timer_create", timer("lsa-harmless.service")),
        ("timer_modify", json!({"name": "lsa-task", "service": "lsa-harmless.service"})),
    ] {
        machine.asks(&mut client, tool, &arguments, "critical").await;
    }
    // systemd 252 calls a unit indirect that has another name by a link in /etc.
    machine.refuses(&mut client, "svc_enable", &service("lsa-harmless"), "UNIT_INDIRECT").await;
    for (tool, arguments) in [
        ("svc_stop", service("ssh")),
        ("svc_stop", service("sshd")),
        ("svc_disable", service("sshd.service")),
    ] {
        // The policy's rules say high, and the service's profile makes it graver.
        machine.asks(&mut client, tool, &arguments, "critical").await;
    }
    machine.asks(&mut client, "svc_restart", &service("dbus"), "high").await;
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

/// A simple service has started for systemd once it has a process, so `systemctl start` succeeds, and so does the tool.
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
    let create = |raw: &str| json!({"service": "lsa-new", "raw_content": raw});
    let timer = |raw: &str| json!({"name": "lsa-new", "exec_start": "/bin/true", "raw_content": raw});
    // Where there is a number, systemd-analyze finds the fault while the plan runs, at this step.
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
            json!({"service": "lsa-new", "exec_start": "/usr/bin/lsa-none"}),
            "VALIDATION_FAILED",
            "not executable",
            Some(0),
        ),
        (
            "svc_edit_unit",
            json!({"service": "lsa-works", "raw_content": service}),
            "VALIDATION_FAILED",
            "no ExecStart=",
            Some(0),
        ),
        (
            "svc_edit_unit",
            json!({"service": "lsa-works", "raw_content": "garbage"}),
            "INVALID_VALUE",
            "section",
            None,
        ),
        (
            "svc_edit_unit",
            json!({"service": "lsa-works", "exec_start": "/usr/bin/lsa-none"}),
            "VALIDATION_FAILED",
            "not executable",
            Some(0),
        ),
        // The copy of the vendor's file must be valid.
        (
            "svc_edit_unit",
            json!({"service": "cron", "exec_start": "/usr/bin/lsa-none"}),
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
        // At this step the service is written already.
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
            json!({"name": "lsa-new", "service": "lsa-none.service", "on_calendar": "daily"}),
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
    // The plan goes by the exit code of systemd-analyze alone, so the test looks at it for such files.
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
        ("svc_create_unit", json!({"service": "lsa-new", "exec_start": "/bin/true"}), 0),
        ("svc_edit_unit", json!({"service": "lsa-works", "description": "Other"}), 0),
        ("svc_edit_unit", json!({"service": "cron", "description": "Other"}), 0),
        ("timer_create", json!({"name": "lsa-new", "exec_start": "/bin/true", "on_calendar": "daily"}), 0),
        ("timer_modify", json!({"name": "lsa-task", "on_calendar": "daily"}), 0),
    ] {
        let before = machine.snapshot();
        let envelope = client.envelope(tool, arguments.clone()).await;
        machine.failed(&envelope, "OUT_OF_SPACE", &before, &[], &format!("{tool} {arguments}"));
        assert_eq!(envelope["failed_step"], step, "{envelope}");
    }
    // There is room for one of the two files.
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
            arguments[if tool.starts_with("svc_") { "service" } else { "name" }] = json!(name);
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
                let mut arguments = json!({"service": name, "exec_start": "/bin/true"});
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
        ("service", &["-x.service", "../x.service", "a;b", "a\nb"], "INVALID_UNIT_NAME"),
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
        ("svc_create_unit", json!({"service": "lsa-new", "exec_start": "/bin/true"})),
        ("timer_create", json!({"name": "lsa-new", "exec_start": "/bin/true", "on_calendar": "daily"})),
    ] {
        let envelope = client.envelope(tool, arguments.clone()).await;
        machine.is_still(&before, tool);
        assert_eq!(envelope["error_code"], "PRIVILEGE_REQUIRED", "{tool}: {envelope}");
        assert_eq!(envelope["error_category"], "privilege", "{tool}: {envelope}");
        assert!(
            envelope["message"].as_str().is_some_and(|said| said.contains(" as root: ")),
            "{tool}: {envelope}"
        );
        let fragment = "modules sudoers services --account lsa-plain";
        assert!(envelope["remediation"].to_string().contains(fragment), "{tool}: {envelope}");
    }
    assert_eq!(machine.begun("lsa-plain"), 0);
}
