//! The fragments that `modules sudoers` prints for the modules that ship allow their changes on a real host, and no
//! more.

use linux_sysadmin_tests::{Changing, Expected, Reach};
use serde_json::{Value, json};

const ACCOUNT: &str = "lsa-plain";
const PROGRAM: &str = "/opt/linux-sysadmin/linux-sysadmin";
/// The longest expression that sudo 1.9 takes, in bytes.
const LONGEST: usize = 1024;

const PREPARE: &str = r"
useradd --create-home lsa-plain
cat > /etc/systemd/system/lsa-works.service <<'END'
[Service]
ExecStart=/bin/sleep infinity

[Install]
WantedBy=multi-user.target
END
systemctl daemon-reload
systemctl start lsa-works
systemctl show --property=MainPID lsa-works > /run/lsa-pid
";

const CLEAN: &str = r"
systemctl disable --now lsa-works.service lsa-new.service lsa-new.timer
rm -f /etc/sudoers.d/linux-sysadmin-* /etc/systemd/system/lsa-* /run/lsa-*
crontab -u root -r
userdel --remove lsa-made; groupdel lsa-team
userdel --remove lsa-plain
systemctl daemon-reload
systemctl reset-failed
";

#[tokio::test]
async fn the_fragments_of_the_modules_that_ship_are_enough_for_their_changes() {
    let test = "the_fragments_of_the_modules_that_ship_are_enough_for_their_changes";
    let Some(machine) = Changing::by(Reach::Inside("debian1"), test, PREPARE, CLEAN) else { return };
    machine.sh(&format!("install -d -m 700 -o {ACCOUNT} -g {ACCOUNT} /var/lib/planner/{ACCOUNT}"));
    machine.host().warm(ACCOUNT, &format!("/home/{ACCOUNT}/.cache"));
    machine.configure(ACCOUNT, "safety:\n  confirmation_threshold: critical\n");
    let restart = json!({"service": "lsa-works"});
    let mut client = machine.serve_shipped(ACCOUNT, ACCOUNT).await;
    let refused = client.envelope("svc_restart", restart.clone()).await;
    assert_eq!(refused["error_code"], "PRIVILEGE_REQUIRED", "{refused}");
    assert_eq!(client.close().await.0.code(), Some(0));

    for module in ["services", "cron", "users"] {
        let printed = machine.host().command_as(ACCOUNT, &[PROGRAM, "modules", "sudoers", module]);
        let printed = { printed }.output().expect("xtask runs");
        assert!(printed.status.success(), "{}", String::from_utf8_lossy(&printed.stderr));
        let fragment = String::from_utf8(printed.stdout).expect("UTF-8");
        assert!(!fragment.contains("NOPASSWD: ALL"), "{fragment}");
        let rules = fragment.lines().filter(|line| !line.starts_with('#'));
        let commands: Vec<&str> = rules.filter(|line| line.contains(" /")).collect();
        assert!(!commands.is_empty(), "{fragment}");
        for line in commands {
            let line = line.trim_end_matches(", \\");
            // A command without arguments needs no expression in sudoers.
            if line.ends_with(" \"\"") {
                continue;
            }
            let expression = line.split_once('^').map_or("", |(_, expression)| expression);
            assert!(
                !expression.is_empty() && expression.len() < LONGEST,
                "{} bytes: {line}",
                expression.len()
            );
        }
        let file = format!("/etc/sudoers.d/linux-sysadmin-{module}");
        machine.host().put(&file, fragment.as_bytes());
        machine.sh(&format!("chmod 0440 {file}; visudo -c > /dev/null"));
    }

    // A server that starts now has the rights of the fragments.
    let mut client = machine.serve_shipped(ACCOUNT, ACCOUNT).await;
    let new = "lsa-new";
    let calls: [(&str, Value, &str); 18] = [
        (
            "svc_restart",
            restart,
            "test \"$(systemctl show --property=MainPID lsa-works)\" != \"$(cat /run/lsa-pid)\"",
        ),
        (
            "svc_create_unit",
            json!({"service": new, "exec_start": "/bin/sleep infinity"}),
            "systemctl cat lsa-new",
        ),
        (
            "svc_edit_unit",
            json!({"service": new, "description": "Other"}),
            "grep Other /etc/systemd/system/lsa-new.service",
        ),
        ("svc_enable", json!({"service": new, "now": true}), "systemctl is-active lsa-new"),
        ("svc_disable", json!({"service": new, "now": true}), "! systemctl is-active lsa-new"),
        ("timer_create", json!({"name": new, "on_calendar": "daily"}), "systemctl is-active lsa-new.timer"),
        (
            "timer_modify",
            json!({"name": new, "on_calendar": "weekly"}),
            "systemctl show --property=TimersCalendar lsa-new.timer | grep Mon",
        ),
        (
            "cron_add",
            json!({"user": "root", "schedule": "@daily", "command": "/bin/true"}),
            "crontab -u root -l | grep --line-regexp '@daily /bin/true'",
        ),
        (
            "cron_add",
            json!({"user": "root", "schedule": "@weekly", "command": "/bin/true"}),
            "crontab -u root -l | grep --line-regexp '@weekly /bin/true'",
        ),
        ("cron_remove", json!({"user": "root", "schedule": "@daily"}), "! crontab -u root -l | grep @daily"),
        ("user_create", json!({"user": "lsa-made", "groups": ["audio"]}), "id -nG lsa-made | grep audio"),
        (
            "user_modify",
            json!({"user": "lsa-made", "comment": "Other"}),
            "getent passwd lsa-made | grep Other",
        ),
        (
            "user_modify",
            json!({"user": "lsa-made", "shell": "/bin/sh"}),
            "getent passwd lsa-made | grep /bin/sh",
        ),
        ("user_lock", json!({"user": "lsa-made"}), "passwd --status lsa-made | grep ' L '"),
        ("user_unlock", json!({"user": "lsa-made"}), "test \"$(chage -l lsa-made | grep -c never)\" -ge 2"),
        ("group_create", json!({"name": "lsa-team"}), "getent group lsa-team"),
        ("group_delete", json!({"name": "lsa-team"}), "! getent group lsa-team"),
        ("user_delete", json!({"user": "lsa-made"}), "! getent passwd lsa-made"),
    ];
    for (tool, mut arguments, holds) in calls {
        let mut done = client.envelope(tool, arguments.clone()).await;
        if done["risk_level"] == "critical" {
            arguments["confirmed"] = true.into();
            done = client.envelope(tool, arguments).await;
        }
        assert_eq!(done["status"], "success", "{tool}: {done}");
        machine.sh(holds);
        machine.nothing_is_left_behind();
    }

    // A change that fails is undone with the same rights.
    let before = machine.snapshot();
    let breaks = json!({
        "name": "lsa-other", "exec_start": "/bin/true", "raw_content": "[Timer]\nOnBootSec=nonsense\n",
    });
    let broken = client.envelope("timer_create", breaks).await;
    assert_eq!(broken["error_code"], "VALIDATION_FAILED", "{broken}");
    assert_eq!((&broken["failed_step"], &broken["not_undone"]), (&json!(1), &json!([])), "{broken}");
    machine.is_still_but(
        &before,
        &[Expected { name: "unit lsa-other.service", why: "systemd remembers what it was asked about" }],
        "undone by an account with the fragments",
    );
    machine.nothing_is_left_behind();
    machine.audit_is_valid(ACCOUNT, ACCOUNT);

    // Everything beyond that is refused.
    for beyond in [
        "systemctl kill -- lsa-works.service",
        "systemctl edit -- lsa-works.service",
        "systemctl restart lsa-works.service",
        "systemctl --host=other restart -- lsa-works.service",
        "systemctl link -- /tmp/evil.service",
        "systemctl enable -- /tmp/evil.service",
        "dd if=/etc/shadow",
        "dd of=/etc/systemd/system/lsa-evil.service oflag=nofollow conv=fsync bs=65536 status=none",
        "rm --force -- /etc/passwd",
        "rm --force -- /etc/systemd/system/../../passwd",
        "mv --no-target-directory -- /etc/systemd/system/lsa-works.service /etc/cron.d/evil",
        "mv --no-target-directory -- /tmp/evil.service /etc/systemd/system/lsa-evil.service",
        "chmod -- 4755 /bin/sh",
        "chmod -R 0777 /etc/systemd/system",
        "cp --attributes-only --preserve=all --no-dereference -- /etc/shadow /etc/systemd/system/lsa-shadow",
        "crontab /tmp/evil",
        "crontab -u root /tmp/evil",
        "crontab -u root -e",
        "sh",
    ] {
        let tried =
            machine.host().command_as(ACCOUNT, &["sh", "-c", &format!("sudo -n -- {beyond} < /dev/null")]);
        let output = { tried }.output().expect("xtask runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.code() == Some(1) && said.contains("sudo: a password is required"),
            "{beyond}: {output:?}"
        );
    }
}
