//! A machine whose tools answer as recorded. The envelopes have the shapes that the modules' own tests assert; they are written
//! by hand, except for lines of programs, which are as the programs print them.

use linux_sysadmin_sdk::bindings::exports::sysadmin::module::tools::Reply;
use linux_sysadmin_sdk::knowledge::{Cause, ConfigFile, Profile, Symptom, Unit};
use linux_sysadmin_sdk::prelude::*;
use linux_sysadmin_sdk::testkit::{FakeTarget, profile};
use serde_json::{Value, json};

use crate::looks::{FIRST, When};

/// 2026-11-28T15:00:00Z
pub(super) const NOW: f64 = 1_795_878_000.0;

pub(super) struct Machine {
    target: FakeTarget,
    /// The answers of the first round's looks, by what is looked at.
    first: Vec<(&'static str, Result<Value>)>,
}

/// The envelope of an answer that succeeded.
pub(super) fn envelope(data: Value) -> Value {
    json!({"status": "success", "data": data})
}

impl Machine {
    /// A machine on which all is well.
    pub(super) fn new() -> Self {
        let mut target = FakeTarget::new().at(NOW);
        target.distro.extra.push(("timezone".into(), "Etc/UTC".into()));
        Self { target, first: Vec::new() }
    }

    pub(super) fn with(mut self, profile: Profile) -> Self {
        self.target = self.target.profile(profile);
        self
    }

    /// Sets the data of a look of the first round.
    pub(super) fn says(self, what: &'static str, data: Value) -> Self {
        self.gives(what, Ok(envelope(data)))
    }

    pub(super) fn gives(mut self, what: &'static str, result: Result<Value>) -> Self {
        assert!(FIRST.iter().any(|look| look.what == what), "nobody looks at {what}");
        self.first.push((what, result));
        self
    }

    /// Sets the data of a call with these arguments.
    pub(super) fn told(mut self, tool: &str, arguments: Value, data: Value) -> Self {
        self.target = self.target.tool(tool, arguments, Ok(envelope(data)));
        self
    }

    pub(super) fn refuses(mut self, tool: &str, arguments: Value, problem: Problem) -> Self {
        self.target = self.target.tool(tool, arguments, Err(problem));
        self
    }

    /// Calls the tool.
    pub(super) fn asked(self, complaint: &str) -> (Value, Reply) {
        let Self { mut target, first } = self;
        for look in FIRST {
            let (When::Always(arguments) | When::About(_, arguments) | When::Saying(_, arguments)) =
                look.when
            else {
                continue;
            };
            let own = first.iter().find(|(what, _)| *what == look.what).map(|(_, result)| result.clone());
            let arguments = serde_json::from_str(arguments).unwrap();
            target = target.tool(look.tool, arguments, own.unwrap_or_else(|| Ok(well(look.what))));
        }
        let target = target
            .tool(
                "net_test",
                json!({"test": "dns", "target": "fake"}),
                Ok(envelope(json!({"servers": [{"server": "192.0.2.53", "status": "NXDOMAIN"}]}))),
            )
            .tool(
                "net_explain",
                json!({"target": "192.0.2.1"}),
                Ok(envelope(
                    json!({"reached": true, "steps": [{"step": "route", "ok": true, "found": "x"}]}),
                )),
            );
        target.call(&crate::module(), "triage", json!({"complaint": complaint})).unwrap()
    }

    /// The first finding.
    pub(super) fn first(self, complaint: &str) -> Value {
        let (data, _) = self.asked(complaint);
        data["findings"][0].clone()
    }
}

/// The answer of a tool on a machine on which all is well.
fn well(what: &str) -> Value {
    envelope(match what {
        "units" => json!([
            {"service": "cron", "active_state": "active", "sub_state": "running", "enabled": "enabled"},
            {"service": "ssh", "active_state": "active", "sub_state": "running", "enabled": "enabled", "aliases": ["sshd"]},
        ]),
        "space" => json!({"filesystems": [
            {"mount": "/", "device": "/dev/sda1", "type": "ext4", "size": "20G", "used": "5G", "available": "15G",
             "used_pct": 26, "inodes_used_pct": 5}
        ]}),
        "load" => {
            json!({"bottleneck": "none", "findings": [], "cores": 2, "cpu_usage_pct": 3.0, "over_s": 0.2})
        }
        "kernel" | "tmpfiles" => json!({"lines": []}),
        "refused logins" => json!({"matches": 0, "lines": [], "sources": {}}),
        "ports" => json!({"services": 2, "sockets": 3}),
        "name servers" => {
            json!({"resolv_conf": {"owner": "nobody", "set_in": "the file itself", "servers": ["192.0.2.53"]}})
        }
        "routes" => {
            json!([{"to": "default", "via": "192.0.2.1", "dev": "eth0"}, {"to": "192.0.2.0/24", "dev": "eth0"}])
        }
        "clock" => json!({"time": "2026-11-28T15:00:00Z", "time_zone": "Etc/UTC", "synchronized": true}),
        "restarts" => {
            json!({"system": {"hostname": "fake", "booted_at": "2026-11-01T00:00:00Z", "uptime_s": 2_000_000}})
        }
        "memory" => json!({"total_mb": 2000.0, "oom_kills": 0}),
        "disks" => json!({"disks": [{"disk": "/dev/sda", "health": "ok"}]}),
        _ => json!([]),
    })
}

pub(super) fn failed(name: &str) -> Value {
    json!({"service": name, "active_state": "failed", "sub_state": "failed", "enabled": "enabled", "result": "exit-code",
           "exit_code": 1})
}

pub(super) fn running(name: &str) -> Value {
    json!({"service": name, "active_state": "active", "sub_state": "running", "enabled": "enabled"})
}

/// `svc_status` of a unit that has failed, with the last lines that it wrote.
pub(super) fn status(name: &str, lines: &[&str]) -> Value {
    json!({"service": name, "active_state": "failed", "sub_state": "failed", "load_state": "loaded", "result": "exit-code",
           "exit_code": 1, "stopped_at": "2026-11-28T14:50:00Z", "last_output": lines})
}

/// The profile of a service with its unit, its configuration, and a symptom.
pub(super) fn service(id: &str, category: &str, config: &str, symptom: &str) -> Profile {
    let unit = Unit {
        name: format!("{id}.service"),
        aliases: Vec::new(),
        main: true,
        reload: true,
        optional: false,
        what: None,
    };
    let file = ConfigFile {
        path: config.to_owned(),
        what: "its configuration".to_owned(),
        main: true,
        optional: false,
        generated: false,
        apply: None,
    };
    let symptom = Symptom {
        id: symptom.to_owned(),
        symptom: "it doesn't work".to_owned(),
        checks: Vec::new(),
        causes: vec![Cause { id: "x".to_owned(), cause: "a cause".to_owned(), fix: "a fix".to_owned() }],
    };
    Profile {
        category: category.to_owned(),
        units: vec![unit],
        config: vec![file],
        symptoms: vec![symptom],
        ..profile(id)
    }
}
