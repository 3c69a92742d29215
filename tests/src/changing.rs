//! What the tests of the changing tools that ship have in common: a tool is asked what it would do, does it or refuses,
//! and the host is looked at by other means.

use std::ops::{Deref, DerefMut};

use serde_json::{Value, json};

use crate::{Client, Expected, Machine, Reach, Snapshot};

/// The home whose server is used, and its account.
const HOME: &str = "root";

/// What a server writes for a dry run.
const OF_A_DRY_RUN: &[Expected] = &[
    Expected {
        name: "/var/lib/planner/root/.local/state/linux-sysadmin*",
        why: "every call is put on record",
    },
    Expected { name: "/var/log/journal/*", why: "sudo and crontab log that they were called" },
    Expected { name: "/var/lib/fail2ban/*", why: "fail2ban keeps how far it has read in that" },
];

/// Takes away every account of a test's, whichever: a test's own cleaning is refused where a process of the account still
/// ends. systemd's manager of an account runs on for some seconds after its last session, whether there is the account or
/// not, and the next account that is made gets its number, and so its processes.
const CLEAN_ACCOUNTS: &str = r"
for account in $(getent passwd | cut -d: -f1 | grep '^lsa-'); do
    pkill -KILL -u $account
    userdel --force --remove $account
done
for unit in $(systemctl list-units --plain --no-legend 'user@*.service' | cut -d' ' -f1); do
    uid=${unit#user@}
    getent passwd ${uid%.service} > /dev/null || systemctl stop $unit
done
";

/// Makes units `lsa-…`: one that can do everything, and some that can't.
pub const UNITS: &str = r"
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

/// Removes every unit `lsa-…`. A reload takes the host half a second or more, so there is one where there was a unit.
pub const NO_UNITS: &str = r#"
while mountpoint --quiet /etc/systemd/system; do umount --lazy /etc/systemd/system; done
while mountpoint --quiet /run/lsa-full; do umount --lazy /run/lsa-full; done
cd /etc/systemd/system
there=$(find . /run/systemd/system -name 'lsa-*'; systemctl list-units --all --plain --no-legend 'lsa-*')
units=$(find . -maxdepth 1 ! -type l \( -name 'lsa-*.service' -o -name 'lsa-*.timer' \) -printf '%f ')
test -z "$units" || systemctl stop $units
find . /run/systemd/system -name 'lsa-*' ! -type d -delete
rm -rf lsa-*.d /run/lsa-*
test -z "$there" || { systemctl daemon-reload; systemctl reset-failed; }
userdel --force --remove lsa-plain
"#;

/// What a tool must be given, to look or to say what it would do: nothing is changed. The others need nothing.
pub fn harmless(tool: &str) -> Value {
    match tool {
        "svc_status" | "svc_logs" | "svc_troubleshoot" | "svc_config_validate" | "svc_dependency_impact" => {
            json!({"service": "ssh"})
        }
        "log_search" => json!({"pattern": "lsa-no-such-line"}),
        "cron_validate" | "cron_next_runs" => json!({"expression": "*/5 * * * *"}),
        "svc_start" | "svc_stop" | "svc_restart" | "svc_reload" | "svc_enable" | "svc_disable" => {
            json!({"service": "ssh", "dry_run": true})
        }
        "svc_create_unit" => json!({"name": "lsa-new", "exec_start": "/bin/true", "dry_run": true}),
        "svc_config_check" => json!({"service": "ssh", "contents": "Port 22\n", "dry_run": true}),
        "svc_edit_unit" => json!({"name": "ssh", "description": "Other", "dry_run": true}),
        "timer_create" => json!({"name": "lsa-new", "unit": "ssh", "on_calendar": "daily", "dry_run": true}),
        "timer_modify" => json!({"name": "logrotate", "on_calendar": "weekly", "dry_run": true}),
        "cron_add" => json!({"schedule": "@daily", "command": "/bin/true", "dry_run": true}),
        "cron_remove" => json!({"schedule": "@daily", "command": "lsa-no-such-command", "dry_run": true}),
        "ssh_connect" => json!({"host": "localhost", "dry_run": true}),
        "ssh_test_connection" => json!({"host": "localhost"}),
        "ssh_config_add" => json!({"host": "lsa-new", "hostname": "192.0.2.1", "dry_run": true}),
        "ssh_key_generate" => json!({"name": "lsa-new", "dry_run": true}),
        "ssh_disconnect" | "ssh_copy_id" => json!({"dry_run": true}),
        "job_output" | "job_cancel" => json!({"id": "0123456789abcdef"}),
        "pkg_search" => json!({"query": "procps"}),
        "pkg_info" => json!({"package": "procps"}),
        "pkg_install" => json!({"packages": "procps", "dry_run": true}),
        "pkg_remove" | "pkg_purge" | "pkg_rollback" => json!({"package": "procps", "dry_run": true}),
        "pkg_update" => json!({"refresh_only": true, "dry_run": true}),
        "user_info" => json!({"user": "root"}),
        "user_create" => json!({"user": "lsa-new", "dry_run": true}),
        "user_modify" => json!({"user": "daemon", "comment": "Other", "dry_run": true}),
        "user_delete" => json!({"user": "games", "dry_run": true}),
        "user_lock" => json!({"user": "games", "dry_run": true}),
        "user_unlock" => json!({"user": "games", "dry_run": true}),
        "group_create" => json!({"name": "lsa-new", "dry_run": true}),
        "group_delete" => json!({"name": "lsa-none", "dry_run": true}),
        "perms_check" => json!({"path": "/etc/passwd", "user": "nobody"}),
        "perms_set" => json!({"path": "/etc/hostname", "mode": "0640", "dry_run": true}),
        "sudoers_modify" => {
            json!({"action": "add", "rule": {"user": "games", "commands": ["/usr/bin/id \"\""]}, "dry_run": true})
        }
        _ => json!({}),
    }
}

/// How that ends on a host as it comes: an error's code, or nothing.
pub fn harmless_error(tool: &str) -> &'static str {
    match tool {
        "cron_remove" => "ENTRY_NOT_FOUND",
        "ssh_copy_id" => "NO_KEYS",
        "job_output" | "job_cancel" => "JOB_NOT_FOUND",
        "pkg_rollback" => "VERSION_NOT_AVAILABLE",
        "group_delete" => "GROUP_NOT_FOUND",
        _ => "",
    }
}

/// A host that such tools are tried on. What a test leaves there is removed by a script, before it and after it.
pub struct Changing {
    machine: Machine,
    clean: &'static str,
}

impl Changing {
    /// Where hosts can't be had, the test is counted as skipped.
    pub fn by(reach: Reach, test: &str, prepare: &str, clean: &'static str) -> Option<Self> {
        let changing = Self { machine: Machine::by(reach, test)?, clean };
        changing.clean();
        changing.sh(prepare);
        Some(changing)
    }

    fn clean(&self) {
        let script = format!("{}\n{CLEAN_ACCOUNTS}", self.clean);
        let _ = self.machine.host().command(&["sh", "-c", &script]).output();
    }

    /// A server of root's that is asked only about what is critical.
    pub async fn serve_all_but_critical(&self) -> Client {
        self.configure(HOME, "safety:\n  confirmation_threshold: critical\n");
        self.serve_shipped(HOME, HOME).await
    }

    /// A server of root's as it comes.
    pub async fn serve_default(&self) -> Client {
        self.serve_shipped(HOME, HOME).await
    }

    /// How many changes have begun, by the record of this home.
    pub fn begun(&self, home: &str) -> usize {
        self.audit(home).iter().filter(|event| event["event"] == "change-begun").count()
    }

    /// Dry runs write to no file of the host but these and their own.
    pub async fn dry_runs_touch_only(
        &self,
        client: &mut Client,
        calls: &[(&str, Value)],
        expected: &'static [Expected],
    ) {
        // Once before, so that caches are filled.
        let mut before = None;
        for _ in 0..2 {
            self.host().nobody_is_leaving();
            before = Some(Snapshot::of_all_files(self.host()));
            for (tool, arguments) in calls {
                let mut arguments = arguments.clone();
                arguments["dry_run"] = json!(true);
                let envelope = client.envelope(tool, arguments).await;
                assert_eq!(envelope["dry_run"], true, "{envelope}");
            }
        }
        let after = Snapshot::of_all_files(self.host());
        let differences = before.expect("taken").differences(&after, &[OF_A_DRY_RUN, expected].concat());
        assert!(differences.is_empty(), "{}", differences.join("\n"));
    }

    /// A dry run changes nothing; gives the preview.
    pub async fn shows(&self, client: &mut Client, tool: &str, arguments: &Value) -> Value {
        let mut arguments = arguments.clone();
        arguments["dry_run"] = json!(true);
        let (before, begun) = (self.snapshot(), self.begun(HOME));
        let envelope = client.envelope(tool, arguments).await;
        self.is_still(&before, &format!("a dry run of {tool}"));
        self.nothing_is_left_behind();
        assert_eq!(self.begun(HOME), begun, "{tool}");
        assert_eq!(
            (&envelope["status"], &envelope["dry_run"]),
            (&json!("success"), &json!(true)),
            "{envelope}"
        );
        assert!(envelope["data"]["would"].is_string(), "{envelope}");
        let call = self.recorded(HOME, "call");
        assert_eq!(
            (&call["decision"], call.get("change")),
            (&json!("dry-run"), Some(&Value::Null)),
            "{call}"
        );
        envelope["preview"].clone()
    }

    /// It works, and what ran is what was shown, to the letter; gives the envelope.
    pub async fn does(&self, client: &mut Client, tool: &str, arguments: &Value, preview: &Value) -> Value {
        let envelope = client.envelope(tool, arguments.clone()).await;
        assert_eq!(envelope["status"], "success", "{envelope}");
        assert_eq!(envelope.get("dry_run"), None, "{envelope}");
        self.nothing_is_left_behind();
        let begun = self.recorded(HOME, "change-begun");
        assert_eq!(&begun["plan"], preview, "{tool}: the plan on record is the one that was shown");
        let ended = self.recorded(HOME, "change-ended");
        assert_eq!((&ended["id"], &ended["outcome"]), (&begun["id"], &json!("done")), "{ended}");
        let call = self.recorded(HOME, "call");
        assert_eq!((&call["tool"], &call["change"]), (&json!(tool), &begun["id"]), "{call}");
        assert_eq!(changing_commands(&call), lines(preview), "{tool}: what ran is what was shown");
        envelope
    }

    /// It fails with this code, and the host is as it was; gives the envelope.
    #[track_caller]
    pub fn failed(
        &self,
        envelope: &Value,
        code: &str,
        before: &crate::Snapshot,
        but: &[Expected],
        context: &str,
    ) {
        assert_eq!(
            (&envelope["status"], &envelope["error_code"]),
            (&json!("error"), &json!(code)),
            "{context}: {envelope}"
        );
        self.is_still_but(before, but, context);
        self.nothing_is_left_behind();
        if envelope.get("failed_step").is_some() {
            assert_eq!(envelope["not_undone"], json!([]), "{context}: {envelope}");
            let ended = self.recorded(HOME, "change-ended");
            assert_eq!(ended["outcome"], "undone", "{context}: {ended}");
        }
    }

    /// It is refused with this code before there is a plan.
    pub async fn refuses(&self, client: &mut Client, tool: &str, arguments: &Value, code: &str) -> Value {
        let envelope = client.envelope(tool, arguments.clone()).await;
        let said = (&envelope["status"], &envelope["error_code"]);
        assert_eq!(said, (&json!("error"), &json!(code)), "{tool} {arguments}: {envelope}");
        assert_eq!(envelope.get("failed_step"), None, "{tool} {arguments}: {envelope}");
        envelope
    }

    /// Nothing had to be done: there is a note that says so, and no plan.
    pub async fn holds_already(&self, client: &mut Client, tool: &str, arguments: &Value) {
        let (before, begun) = (self.snapshot(), self.begun(HOME));
        let envelope = client.envelope(tool, arguments.clone()).await;
        self.is_still(&before, tool);
        assert_eq!(envelope["status"], "success", "{envelope}");
        assert!(envelope["notes"].as_array().is_some_and(|notes| !notes.is_empty()), "{envelope}");
        assert_eq!(self.begun(HOME), begun, "{tool} {arguments}: a change has begun");
        let call = self.recorded(HOME, "call");
        assert_eq!(changing_commands(&call), Vec::<String>::new(), "{tool}");
    }

    /// A person has to say yes, and nothing has changed.
    pub async fn asks(&self, client: &mut Client, tool: &str, arguments: &Value, risk: &str) -> Value {
        let (before, begun) = (self.snapshot(), self.begun(HOME));
        let envelope = client.envelope(tool, arguments.clone()).await;
        self.is_still(&before, &format!("{tool} {arguments}"));
        assert_eq!(envelope["status"], "confirmation_required", "{tool} {arguments}: {envelope}");
        assert_eq!(envelope["risk_level"], risk, "{tool} {arguments}: {envelope}");
        assert_eq!(self.begun(HOME), begun, "{tool} {arguments}: a change has begun");
        envelope
    }
}

impl Deref for Changing {
    type Target = Machine;

    fn deref(&self) -> &Machine {
        &self.machine
    }
}

impl DerefMut for Changing {
    fn deref_mut(&mut self) -> &mut Machine {
        &mut self.machine
    }
}

impl Drop for Changing {
    fn drop(&mut self) {
        self.clean();
    }
}

/// The command lines of a preview, in their order.
fn lines(preview: &Value) -> Vec<String> {
    let steps = preview["steps"].as_array().cloned().unwrap_or_default();
    let of_steps = steps.iter().filter_map(|step| step["run"].as_str());
    preview["command"].as_str().into_iter().chain(of_steps).map(str::to_owned).collect()
}

/// What a call ran, by its record, without what only looks.
fn changing_commands(call: &Value) -> Vec<String> {
    const LOOKS: [&str; 16] = [
        "systemctl show ",
        "TZ=UTC systemctl show ",
        "systemd-analyze ",
        "id --",
        "systemctl list-",
        "getent ",
        "TZ=UTC lslogins ",
        "passwd --status ",
        "ps -e ",
        "stat ",
        "find ",
        "readlink ",
        "lsattr ",
        "getfacl ",
        "head ",
        "visudo ",
    ];
    let looks = |line: &str| {
        LOOKS.iter().any(|look| line.starts_with(look))
            || (line.starts_with("crontab ") && line.ends_with(" -l"))
    };
    let commands = call["commands"].as_array().unwrap_or_else(|| panic!("commands: {call}"));
    let lines = commands.iter().map(|command| command["command"].as_str().expect("a line").to_owned());
    lines.filter(|line| !looks(line)).collect()
}
