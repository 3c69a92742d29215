//! A host for the tests of the tools that change something: a tool shows what it would do, does it or refuses, and the test
//! looks at the host by other means.

use std::ops::{Deref, DerefMut};

use serde_json::{Value, json};

use crate::shipped::looks;
use crate::{Client, Expected, Machine, Reach, Snapshot};

/// The name of the server's home, and of its account.
const HOME: &str = "root";

/// The files that a server writes for a dry run.
const OF_A_DRY_RUN: &[Expected] = &[
    Expected {
        name: "/var/lib/planner/root/.local/state/linux-sysadmin*",
        why: "every call is put on record",
    },
    Expected { name: "/var/log/journal/*", why: "sudo and crontab log that they were called" },
    Expected { name: "/var/lib/fail2ban/*", why: "fail2ban keeps how far it has read in that" },
];

/// Removes the accounts of all tests. A test's own script can't remove an account while a process of the account still runs.
/// systemd's manager of an account runs on for some seconds after the last session, even where the account is gone, and the
/// next account gets its number, and with it its processes.
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

/// Makes units `lsa-…`. One of them can be started, reloaded, stopped and enabled, and each of the others fails somewhere.
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

/// Removes every unit `lsa-…`. systemd is reloaded only where there was such a unit, since that takes half a second or more.
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

/// A host on which such tools are tried. A script removes what a test leaves there, before the test and after it.
pub struct Changing {
    machine: Machine,
    clean: String,
}

impl Changing {
    /// Takes a host and runs these scripts on it. Where there can be no hosts, the test is counted as skipped.
    pub fn by(reach: Reach, test: &str, prepare: &str, clean: &str) -> Option<Self> {
        let changing = Self { machine: Machine::by(reach, test)?, clean: clean.to_owned() };
        changing.configure(HOME, "{}\n");
        changing.clean();
        changing.sh(prepare);
        Some(changing)
    }

    fn clean(&self) {
        let script = format!("{}\n{CLEAN_ACCOUNTS}", self.clean);
        let _ = self.machine.host().command(&["sh", "-c", &script]).output();
    }

    /// Starts a server as root that asks only about critical changes.
    pub async fn serve_all_but_critical(&self) -> Client {
        self.configure(HOME, "safety:\n  confirmation_threshold: critical\n");
        self.serve_shipped(HOME, HOME).await
    }

    /// Starts a server as root with the default configuration.
    pub async fn serve_default(&self) -> Client {
        self.serve_shipped(HOME, HOME).await
    }

    /// The number of changes that have begun, by the record of this home.
    pub fn begun(&self, home: &str) -> usize {
        self.audit(home).iter().filter(|event| event["event"] == "change-begun").count()
    }

    /// Asserts that dry runs write to no other files of the host than these and the server's own.
    pub async fn dry_runs_touch_only(
        &self,
        client: &mut Client,
        calls: &[(&str, Value)],
        expected: &'static [Expected],
    ) {
        // The first round fills caches.
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

    /// Makes a dry run, which must change nothing; gives the preview.
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

    /// Makes a change, which must run exactly the commands of the preview; gives the envelope.
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

    /// Asserts that a call failed with this code and left the host as it was.
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

    /// Makes a call that must be refused with this code before there is a plan; gives the envelope.
    pub async fn refuses(&self, client: &mut Client, tool: &str, arguments: &Value, code: &str) -> Value {
        let envelope = client.envelope(tool, arguments.clone()).await;
        let said = (&envelope["status"], &envelope["error_code"]);
        assert_eq!(said, (&json!("error"), &json!(code)), "{tool} {arguments}: {envelope}");
        assert_eq!(envelope.get("failed_step"), None, "{tool} {arguments}: {envelope}");
        envelope
    }

    /// Makes a call that has nothing to do: the answer must have a note that says so, and no change may begin.
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

    /// Makes a call that a person has to confirm, at this risk. Nothing may change; gives the envelope.
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

/// The command lines of a call, by its record, without those that a module is granted to look by.
fn changing_commands(call: &Value) -> Vec<String> {
    let commands = call["commands"].as_array().unwrap_or_else(|| panic!("commands: {call}"));
    let lines = commands.iter().map(|command| command["command"].as_str().expect("a line").to_owned());
    lines.filter(|line| !looks(line)).collect()
}
