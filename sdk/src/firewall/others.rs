//! Whose tables and chains the kernel has. Programs that run containers write rules of their own, and the ports that they
//! publish pass the firewall's: a packet whose destination was changed goes on to the container, and never comes to `input`.

use serde::Serialize;
use serde_json::Value;

use super::ruleset::{Rule, Ruleset, Table};
use super::text;

/// The beginnings of chains' and tables' names, with the program that writes them.
const WRITERS: [(&str, &str); 15] = [
    ("DOCKER", "docker"),
    ("docker-bridges", "docker"),
    ("NETAVARK", "podman"),
    ("netavark", "podman"),
    ("CNI-", "podman or Kubernetes (CNI)"),
    ("KUBE-", "Kubernetes"),
    ("kube-proxy", "Kubernetes"),
    ("cali-", "Calico"),
    ("LIBVIRT_", "libvirt"),
    ("libvirt_network", "libvirt"),
    ("f2b-", "fail2ban"),
    ("crowdsec", "CrowdSec"),
    ("ts-", "Tailscale"),
    ("ufw-", "ufw"),
    ("firewalld", "firewalld"),
];

/// Those whose published ports pass the firewall.
const CONTAINERS: [&str; 4] = ["docker", "podman", "podman or Kubernetes (CNI)", "Kubernetes"];

/// A port that is sent on to a container or to another machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Published {
    /// The port with its protocol, such as `8080/tcp`; the whole match where it isn't one port.
    pub port: String,
    /// The destination.
    pub to: String,
}

/// The program whose tables or chains have such a name, where it is one that writes rules of its own.
pub fn writer_of(name: &str) -> Option<&'static str> {
    WRITERS.iter().find(|(begin, _)| name.starts_with(begin)).map(|(_, writer)| *writer)
}

impl Ruleset {
    /// The programs whose tables or chains there are, without the one whose tools these are.
    pub fn writers(&self, but: &str) -> Vec<&'static str> {
        let names = self.tables().iter().flat_map(|table| {
            std::iter::once(&table.name).chain(table.chains.iter().map(|chain| &chain.name))
        });
        let mut found: Vec<&'static str> =
            names.filter_map(|name| writer_of(name)).filter(|writer| *writer != but).collect();
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Those of ufw and firewalld whose rules packets come to. ufw leaves empty chains behind where it is switched off.
    pub fn active_firewalls(&self) -> Vec<&'static str> {
        let mut active = Vec::new();
        let is_ufw = |table: &Table| {
            let rules =
                |name: &str| table.chains.iter().find(|chain| chain.name == name).map(|chain| &chain.rules);
            ["ufw-before-input", "ufw6-before-input"].iter().any(|name| {
                let has_rules = rules(name).is_some_and(|rules| !rules.is_empty());
                let bases = table.chains.iter().filter(|chain| chain.hook.is_some());
                let mut jumps = bases
                    .flat_map(|chain| &chain.rules)
                    .flat_map(|rule| &rule.expr)
                    .filter_map(|part| part.get("jump"));
                has_rules && jumps.any(|to| to.get("target").is_some_and(|target| target == name))
            })
        };
        if self.tables().iter().any(is_ufw) {
            active.push("ufw");
        }
        // With its backend iptables, firewalld has no table of its own.
        let is_firewalld = |table: &Table| {
            table.name == "firewalld" || table.chains.iter().any(|chain| chain.name == "INPUT_ZONES")
        };
        if self.tables().iter().any(is_firewalld) {
            active.push("firewalld");
        }
        active
    }

    /// Whether a program that runs containers has written rules.
    pub fn has_containers(&self) -> bool {
        self.writers("").iter().any(|writer| CONTAINERS.contains(writer))
    }

    /// The ports that are sent on.
    pub fn published(&self) -> Vec<Published> {
        let rules = self.tables().iter().flat_map(|table| &table.chains).flat_map(|chain| &chain.rules);
        let mut found: Vec<Published> = Vec::new();
        for published in rules.filter_map(published) {
            if !found.contains(&published) {
                found.push(published);
            }
        }
        found
    }
}

fn published(rule: &Rule) -> Option<Published> {
    let dnat = rule.expr.iter().find(|part| part.get("dnat").is_some())?;
    let to = text::statement(dnat);
    let port = rule.expr.iter().find_map(|part| {
        let body = part.get("match")?;
        let payload = body.get("left")?.get("payload")?;
        if payload.get("field").and_then(Value::as_str) != Some("dport") {
            return None;
        }
        let right = body.get("right")?;
        let only = right.get("set").and_then(Value::as_array).filter(|set| set.len() == 1);
        let right = only.and_then(|set| set.first()).unwrap_or(right);
        Some(format!("{}/{}", text::expression(right), text::expression(payload.get("protocol")?)))
    });
    let matches = || {
        let parts = rule.expr.iter().filter(|part| part.get("match").is_some()).map(text::statement);
        parts.collect::<Vec<_>>().join(" ")
    };
    Some(Published { port: port.unwrap_or_else(matches), to: to.trim_start_matches("dnat to ").to_owned() })
}
