//! The looks: which tool answers what, for which complaints, and who reads the answer. Everything that is looked at stands in
//! this table.

use std::collections::BTreeSet;

use linux_sysadmin_sdk::{Category, Problem, ToolCall};
use serde_json::{Value, json};

use crate::envelope::Envelope;
use crate::finding::Kind::{self, Disk, Login, Network, Packages, Service, Slow};
use crate::notebook::Notebook;
use crate::read::{
    certificates, changes, clock, disks, dns, kernel, load, login, mounts, packages, ports, routes, schedule,
    units,
};

/// Reads an answer, and writes down what was found. The subject is what the call is about, where the call names something.
pub(crate) type Read = fn(Envelope<'_>, subject: &str, &mut Notebook<'_>);

/// Reads a problem. False where it only says that nothing could be looked at.
pub(crate) type Failed = fn(&Problem, subject: &str, &mut Notebook<'_>) -> bool;

pub(crate) struct Look {
    /// What is looked at, as answers name it.
    pub(crate) what: &'static str,
    pub(crate) tool: &'static str,
    pub(crate) when: When,
    pub(crate) read: Read,
    pub(crate) failed: Option<Failed>,
}

/// When a call is made, and with which arguments as JSON.
pub(crate) enum When {
    Always(&'static str),
    /// For complaints of these kinds.
    About(&'static [Kind], &'static str),
    /// For complaints with one of these words.
    Saying(&'static [&'static str], &'static str),
    /// For something that the complaint or another answer names: see [`crate::follow`].
    Named,
}

use When::{About, Always, Named, Saying};

const fn look(what: &'static str, tool: &'static str, when: When, read: Read) -> Look {
    Look { what, tool, when, read, failed: None }
}

impl Look {
    const fn failing(self, failed: Failed) -> Self {
        Self { failed: Some(failed), ..self }
    }
}

/// What isn't there can't be the trouble.
fn absent(problem: &Problem, _: &str, _: &mut Notebook<'_>) -> bool {
    problem.category == Category::NotFound
}

/// Messages of sshd and PAM that say why somebody wasn't let in.
const REFUSED: &str = r#"{"pattern": "not allowed because|Authentication refused|[Aa]ccount .*has expired|expired password|Invalid user|User .* not allowed|maximum authentication attempts|account is locked|nologin|Could not open user|no matching (key exchange|host key|cipher)|Permission denied for", "service": "sshd", "since": "24h", "limit": 20}"#;

/// The looks of the first round.
pub(crate) const FIRST: &[Look] = &[
    look("units", "svc_list", Always(r#"{"limit": 1000}"#), units::listed),
    look("space", "disk_usage", Always("{}"), disks::usage),
    look("mounts", "mount_list", Always("{}"), mounts::listed),
    look("load", "perf_bottleneck", Always("{}"), load::bottleneck),
    look(
        "kernel",
        "log_query",
        Always(r#"{"fields": ["_TRANSPORT=kernel"], "priority": "warning", "since": "24h", "limit": 100}"#),
        kernel::messages,
    ),
    look("ports", "svc_port_audit", Always("{}"), ports::audited),
    look("name servers", "net_dns_show", Always("{}"), dns::shown),
    look("routes", "net_routes_show", Always("{}"), routes::shown),
    look("clock", "machine_time", Always("{}"), clock::shown),
    look("timers", "timer_list", Always(r#"{"limit": 200}"#), schedule::timers),
    look("cron", "cron_list", Always(r#"{"limit": 500}"#), schedule::cron),
    look("certificates", "cert_list", Always("{}"), certificates::listed),
    look("restarts", "machine_info", Always(r#"{"sections": ["system"]}"#), changes::system),
    look("package changes", "pkg_history", Always(r#"{"limit": 5}"#), changes::packages),
    look(
        "edits in /etc",
        "file_list",
        Always(r#"{"path": "/etc", "depth": 4, "sort": "modified", "limit": 60}"#),
        changes::edits,
    ),
    look(
        "tmpfiles",
        "log_query",
        About(&[Service], r#"{"identifier": "systemd-tmpfiles", "since": "7d", "limit": 20}"#),
        units::tmpfiles,
    ),
    look(
        "listeners",
        "net_connections",
        About(&[Service, Network], r#"{"state": "listening", "limit": 300}"#),
        ports::listening,
    ),
    look("memory", "perf_memory", About(&[Slow], "{}"), load::memory),
    look("disks", "disk_health", About(&[Disk, Slow], "{}"), disks::health),
    look("accounts", "user_list", About(&[Login], r#"{"limit": 1000}"#), login::accounts),
    look("refused logins", "log_search", About(&[Login], REFUSED), login::refused),
    look("bans", "sec_fail2ban_status", About(&[Login], "{}"), login::bans).failing(absent),
    look("updates", "pkg_check_updates", About(&[Packages], r#"{"limit": 200}"#), packages::updates)
        .failing(packages::failed),
    look(
        "package database",
        "pkg_list_installed",
        About(&[Packages], r#"{"limit": 10000}"#),
        packages::installed,
    ),
    look("repositories", "repo_list", About(&[Packages], "{}"), packages::repositories),
    look(
        "forwarding",
        "sysctl_get",
        Saying(
            &["vpn", "forward", "any further", "router", "routing", "tunnel"],
            r#"{"keys": ["net.ipv4.ip_forward"]}"#,
        ),
        routes::forwarding,
    ),
    look("backups", "bak_destinations", Saying(&["backup", "backed up"], "{}"), schedule::backups),
];

/// The looks at something that has a name.
pub(crate) const UNIT: Look = look("units", "svc_status", Named, units::status).failing(absent);
pub(crate) const TROUBLE: Look =
    look("known faults", "svc_troubleshoot", Named, units::trouble).failing(absent);
pub(crate) const HOST: Look = look("names", "net_test", Named, dns::host).failing(dns::failed);
pub(crate) const RESOLVERS: Look = look("resolvers", "net_test", Named, dns::resolvers);
pub(crate) const WAY: Look = look("ways", "net_explain", Named, routes::way);
pub(crate) const USER: Look = look("accounts", "user_info", Named, login::user).failing(absent);
pub(crate) const KEYS: Look = look("authorized keys", "perms_check", Named, login::keys).failing(absent);
pub(crate) const HOLDER: Look = look("listeners", "net_connections", Named, ports::holder);
pub(crate) const LOCK: Look = look("package lock", "proc_list", Named, packages::lock);

const NAMED: &[&Look] = &[&UNIT, &TROUBLE, &HOST, &RESOLVERS, &WAY, &USER, &KEYS, &HOLDER, &LOCK];

/// A call that is to be made, with the look that it belongs to.
pub(crate) struct Planned {
    pub(crate) look: &'static Look,
    pub(crate) call: ToolCall,
    /// What the call is about.
    pub(crate) subject: String,
}

impl Planned {
    pub(crate) fn new(look: &'static Look, arguments: Value, subject: impl Into<String>) -> Self {
        Self { look, call: ToolCall::new(look.tool, arguments), subject: subject.into() }
    }
}

/// All tools that the module calls.
pub(crate) fn tools() -> BTreeSet<&'static str> {
    FIRST.iter().chain(NAMED.iter().copied()).map(|look| look.tool).collect()
}

/// The calls of the first round.
pub(crate) fn first(notebook: &Notebook<'_>) -> Vec<Planned> {
    let complaint = &notebook.complaint;
    let chosen = FIRST.iter().filter_map(|look| {
        let arguments = match look.when {
            Always(arguments) => Some(arguments),
            About(kinds, arguments) => {
                kinds.iter().any(|kind| complaint.is_about(*kind)).then_some(arguments)
            }
            Saying(words, arguments) => complaint.says(words).then_some(arguments),
            Named => None,
        };
        let arguments = serde_json::from_str(arguments?).unwrap_or_else(|_| json!({}));
        Some(Planned::new(look, arguments, ""))
    });
    let (always, about): (Vec<Planned>, Vec<Planned>) =
        chosen.partition(|planned| matches!(planned.look.when, Always(_)));
    // What the complaint names comes before what its kinds add.
    always.into_iter().chain(crate::follow::first(notebook)).chain(about).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn all_arguments_are_objects_of_json() {
        for look in FIRST {
            let (Always(arguments) | About(_, arguments) | Saying(_, arguments)) = look.when else {
                panic!("{} is no look of the first round", look.what)
            };
            let arguments: Value = serde_json::from_str(arguments).unwrap();
            assert!(arguments.is_object(), "{}", look.what);
        }
        assert!(NAMED.iter().all(|look| matches!(look.when, Named)));
    }
}
