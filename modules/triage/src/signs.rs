//! Signs: what lines of logs and programs mean, and the call that goes on from there. They are data in `signs.json`.
//!
//! A sign has a text that its lines hold (`has`), an expression with names for parts of the line, and a cause and arguments
//! with holes for these parts. `dir` is the directory of `path`; `service` and `unit_user` are those of the unit that wrote
//! the line. The first sign in the file that any line has counts, so that the more telling ones come first.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use linux_sysadmin_sdk::knowledge::expression;
use linux_sysadmin_sdk::{prelude::*, text};
use serde_json::{Map, Value};

use crate::call::{Call, Form};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Sign {
    has: String,
    pattern: String,
    cause: String,
    /// The part whose absence is the cause.
    #[serde(default)]
    missing: Option<String>,
    call: Suggested,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Suggested {
    tool: String,
    arguments: Map<String, Value>,
}

static SIGNS: LazyLock<Vec<Sign>> =
    LazyLock::new(|| serde_json::from_str(include_str!("signs.json")).unwrap_or_default());

/// The names of the parts that a pattern may have.
const PARTS: [&str; 9] = ["path", "file", "line", "user", "host", "port", "pid", "text", "from"];

/// The longest part of a line that a cause repeats, in characters.
const LONGEST: usize = 120;

/// What a line means.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Meaning {
    pub(crate) line: String,
    pub(crate) cause: String,
    /// None where a part of the line hasn't the form that its argument must have.
    pub(crate) call: Option<Call>,
    /// A directory that isn't there.
    pub(crate) missing: Option<String>,
    /// The parts of the line by their names.
    pub(crate) parts: BTreeMap<String, String>,
}

/// The meaning of the first sign that any of the lines has. `known` has values for holes that no line gives.
pub(crate) fn meaning(lines: &[String], known: &[(&str, &str)]) -> Option<Meaning> {
    SIGNS.iter().find_map(|sign| lines.iter().rev().find_map(|line| sign.meaning(line, known)))
}

impl Sign {
    fn meaning(&self, line: &str, known: &[(&str, &str)]) -> Option<Meaning> {
        if !line.contains(&self.has) {
            return None;
        }
        let pattern = expression(&self.pattern).ok()?;
        let captures = pattern.captures(line)?;
        let mut parts: BTreeMap<String, String> = PARTS
            .iter()
            .filter_map(|name| Some(((*name).to_owned(), captures.name(name)?.as_str().to_owned())))
            .collect();
        let known = known.iter().filter(|(_, value)| !value.is_empty());
        parts.extend(known.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        let dir = parts.get("path").and_then(|path| path.rsplit_once('/')).map(|(dir, _)| dir.to_owned());
        parts.extend(dir.filter(|dir| !dir.is_empty()).map(|dir| ("dir".to_owned(), dir)));
        Some(Meaning {
            line: line.to_owned(),
            cause: self.cause_of(&parts),
            call: self.call_of(&parts),
            missing: self.missing.as_ref().and_then(|name| parts.get(name)).cloned(),
            parts,
        })
    }

    fn cause_of(&self, parts: &BTreeMap<String, String>) -> String {
        let cause = parts.iter().fold(self.cause.clone(), |cause, (name, value)| {
            cause.replace(&format!("{{{name}}}"), &text::excerpt(value, LONGEST))
        });
        cause.replace("{unit_user}", "its account")
    }

    fn call_of(&self, parts: &BTreeMap<String, String>) -> Option<Call> {
        let mut arguments = Map::new();
        for (name, value) in &self.call.arguments {
            let hole = value.as_str().and_then(|text| text.strip_prefix('{')?.strip_suffix('}'));
            let value = match hole {
                None => value.clone(),
                // An account that isn't known is left out: the call tells less, and is right.
                Some("unit_user") => match parts.get("unit_user").and_then(|user| Form::User.value(user)) {
                    Some(user) => user,
                    None => continue,
                },
                Some(hole) => Form::named(hole)?.value(parts.get(hole)?)?,
            };
            arguments.insert(name.clone(), value);
        }
        Some(Call { tool: self.call.tool.clone(), arguments })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use serde_json::json;

    fn of(line: &str) -> Option<(String, Option<Value>)> {
        let meaning = meaning(&[line.to_owned()], &[("service", "shop"), ("unit_user", "lsa-shop")])?;
        Some((meaning.cause, meaning.call.map(|call| serde_json::to_value(call).unwrap())))
    }

    #[test]
    fn the_data_is_whole() {
        let signs: Vec<Sign> = serde_json::from_str(include_str!("signs.json")).unwrap();
        for sign in &signs {
            let pattern = expression(&sign.pattern).unwrap();
            let named: Vec<&str> = pattern.capture_names().flatten().collect();
            assert!(named.iter().all(|name| PARTS.contains(name)), "{}: {named:?}", sign.pattern);
            let holes =
                sign.call.arguments.values().filter_map(Value::as_str).filter(|text| text.starts_with('{'));
            for hole in holes.map(|text| text.trim_matches(['{', '}'])) {
                let is_known = named.contains(&hole)
                    || ["service", "unit_user"].contains(&hole)
                    || (hole == "dir" && named.contains(&"path"));
                assert!(is_known, "{}: nothing gives {hole}", sign.pattern);
                assert!(hole == "unit_user" || Form::named(hole).is_some(), "{hole} has no form");
            }
        }
    }

    #[test]
    fn lines_of_real_programs_name_their_cause_and_the_next_call() {
        // The lines are those of nginx 1.22, logrotate 3.21, dash 0.5.12, bash 5.2, systemd 252 and sshd 9.2.
        for (line, cause, call) in [
            (
                "nginx: [emerg] open() \"/etc/nginx/snippets/shop-header.conf\" failed (2: No such file or directory) in /etc/nginx/sites-enabled/shop:5",
                "/etc/nginx/sites-enabled/shop:5 names /etc/nginx/snippets/shop-header.conf, which isn't there",
                json!({"tool": "file_list", "arguments": {"path": "/etc/nginx/snippets"}}),
            ),
            (
                "error: /etc/logrotate.d/shop:6 unknown user 'www-date'",
                "/etc/logrotate.d/shop:6 names the account www-date, which doesn't exist",
                json!({"tool": "file_read", "arguments": {"path": "/etc/logrotate.d/shop"}}),
            ),
            (
                "/bin/sh: 1: cannot create /run/shop/state: Directory nonexistent",
                "the directory /run/shop isn't there",
                json!({"tool": "file_search", "arguments": {"path": "/etc", "pattern": "/run/shop", "fixed": true}}),
            ),
            (
                "/bin/sh: line 1: /run/shop/state: No such file or directory",
                "/run/shop/state isn't there, and neither may be the directory /run/shop",
                json!({"tool": "file_search", "arguments": {"path": "/etc", "pattern": "/run/shop", "fixed": true}}),
            ),
            (
                "/bin/sh: 1: cannot create /srv/shop/orders/log: Permission denied",
                "lsa-shop may not use /srv/shop/orders/log",
                json!({"tool": "perms_check", "arguments": {"path": "/srv/shop/orders/log", "user": "lsa-shop"}}),
            ),
            (
                "/bin/bash: line 1: /dev/tcp/db.intern.example/5433: Connection refused",
                "nothing listens at db.intern.example:5433",
                json!({"tool": "net_explain", "arguments": {"target": "db.intern.example", "port": 5433}}),
            ),
            (
                "nginx: [emerg] bind() to 0.0.0.0:80 failed (98: Address already in use)",
                "another process has the port 80",
                json!({"tool": "net_connections", "arguments": {"port": 80, "state": "listening"}}),
            ),
            (
                "(98)Address already in use: AH00072: make_sock: could not bind to address [::]:80",
                "another process has the port 80",
                json!({"tool": "net_connections", "arguments": {"port": 80, "state": "listening"}}),
            ),
            (
                "OSError: [Errno 98] Address already in use",
                "another process has its port",
                json!({"tool": "svc_port_audit", "arguments": {}}),
            ),
            (
                "shop-backup: /run/lock/shop-backup.lock: another backup runs as process 4190000",
                "/run/lock/shop-backup.lock is held for process 4190000, which may have ended without removing it",
                json!({"tool": "proc_info", "arguments": {"pid": 4190000}}),
            ),
            // logrotate 3.21
            (
                "error: shop:6 unknown user 'www-date'",
                "/etc/logrotate.d/shop:6 names the account www-date, which doesn't exist",
                json!({"tool": "file_search", "arguments": {"path": "/etc/logrotate.d", "pattern": "www-date", "fixed": true}}),
            ),
            (
                "User lsa-anna from 127.0.0.1 not allowed because not listed in AllowUsers",
                "AllowUsers of sshd doesn't name lsa-anna",
                json!({"tool": "file_search", "arguments": {"path": "/etc/ssh", "pattern": "AllowUsers"}}),
            ),
            (
                "Authentication refused: bad ownership or modes for directory /home/anna",
                "others may write to /home/anna, so that sshd doesn't trust the keys",
                json!({"tool": "perms_check", "arguments": {"path": "/home/anna"}}),
            ),
            (
                "pam_unix(sshd:account): account lsa-gone has expired (account expired)",
                "the account lsa-gone has expired",
                json!({"tool": "user_info", "arguments": {"user": "lsa-gone"}}),
            ),
            (
                "shop.service: Failed at step EXEC spawning /usr/bin/shop: No such file or directory",
                "the program /usr/bin/shop isn't there",
                json!({"tool": "svc_show", "arguments": {"service": "shop"}}),
            ),
            (
                "2026/11/28 10:15:02 [error] 812#812: *1 connect() failed (111: Connection refused) while connecting to upstream, client: 127.0.0.1, server: , request: \"GET / HTTP/1.1\", upstream: \"http://127.0.0.1:8081/\", host: \"127.0.0.1:8080\"",
                "nothing listens at 127.0.0.1:8081, where it passes requests on to",
                json!({"tool": "net_explain", "arguments": {"target": "127.0.0.1", "port": 8081}}),
            ),
            (
                "/etc/ssh/sshd_config: line 12: Bad configuration option: PermitRootLogn",
                "/etc/ssh/sshd_config:12 is wrong",
                json!({"tool": "file_read", "arguments": {"path": "/etc/ssh/sshd_config"}}),
            ),
        ] {
            assert_eq!(of(line), Some((cause.to_owned(), Some(call))), "{line}");
        }
        assert_eq!(of("Started shop.service - The shop."), None);
    }

    #[test]
    fn a_hostile_line_gives_evidence_and_no_argument() {
        for line in [
            "User -oProxyCommand=id not allowed because account is locked",
            "User a;b not allowed because account is locked",
            "error: /etc/x/../shadow:6 unknown user 'a'",
            "/dev/tcp/$(id)/80: Connection refused",
            "/dev/tcp/db/99999: Connection refused",
            "already running, pid 0",
        ] {
            let (_, call) = of(line).unwrap_or_else(|| panic!("{line} is no sign"));
            assert_eq!(call, None, "{line}");
        }
    }

    #[test]
    fn the_more_telling_sign_counts_wherever_its_line_stands() {
        let lines = [
            "open() \"/a/b\" failed (2: No such file or directory) in /etc/n.conf:3",
            "/x: No such file or directory",
        ];
        let found = meaning(&lines.map(str::to_owned), &[]).unwrap();
        assert_eq!(found.parts.get("file").map(String::as_str), Some("/etc/n.conf"));
    }
}
