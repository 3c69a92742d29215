//! The firewall with firewalld: its zones in use, with what runs and what is kept for the next start.
#![forbid(unsafe_code)]

mod bus;
mod changes;
mod element;
mod rich_rule;
mod service;
mod zone;

use std::collections::BTreeMap;

use linux_sysadmin_sdk::firewall::{
    self, Backend, FirewallRule, Kernel, Listed, Proposal, Rules, Standing, Zone,
};
use linux_sysadmin_sdk::prelude::*;
use linux_sysadmin_sdk::{Privilege, text};

const RUNTIME: CommandLine = CommandLine::new("firewall-cmd --list-all-zones");
const PERMANENT: CommandLine = CommandLine::new("firewall-cmd --permanent --list-all-zones");
const POLICIES: CommandLine = CommandLine::new("firewall-cmd --list-all-policies");
const DEFAULT: CommandLine = CommandLine::new("firewall-cmd --get-default-zone");
const OFFLINE: CommandLine = CommandLine::new("firewall-offline-cmd --list-all-zones");
const OFFLINE_DEFAULT: CommandLine = CommandLine::new("firewall-offline-cmd --get-default-zone");

/// The exit codes of firewall-cmd where the daemon doesn't run, and where the message bus doesn't either.
const NOT_RUNNING: [i32; 2] = [252, 36];

/// The module.
pub fn module() -> Module {
    firewall::module(|| Firewalld)
}

linux_sysadmin_sdk::export!(module);

struct Firewalld;

/// Asks for what shows zones where the message bus doesn't. firewalld tells nothing to accounts without rights.
fn granted(module: Module) -> Module {
    let lines = [
        (RUNTIME, "the zones as they are now"),
        (PERMANENT, "the zones as they will be after a start"),
        (POLICIES, "the policies between zones"),
        (DEFAULT, "the zone that has the rest"),
        (OFFLINE, "the zones where firewalld doesn't run"),
        (OFFLINE_DEFAULT, "the zone that has the rest, where firewalld doesn't run"),
    ];
    module.commands(lines.map(|(line, reason)| line.read(reason).as_root_if_available())).paths([
        PathGrant::read("/usr/lib/firewalld/services/*.xml", "the ports of services").as_root_if_available(),
        PathGrant::read("/etc/firewalld/services/*.xml", "the ports of the administrator's own services")
            .as_root_if_available(),
    ])
}

/// What firewalld says of itself.
struct Zones {
    is_running: bool,
    default: String,
    runtime: Vec<zone::Block>,
    permanent: Vec<zone::Block>,
    policies: Vec<zone::Block>,
}

fn read(cx: &Context) -> Result<Zones> {
    bus::read(cx).map_or_else(|| read_by_programs(cx), Ok)
}

/// Reads the zones by firewalld's own programs. A process of Python takes a while, and therefore the first one says whether
/// firewalld runs.
fn read_by_programs(cx: &Context) -> Result<Zones> {
    let as_root = |line: CommandLine| line.command().privilege(Privilege::RootIfAvailable);
    let default = cx.run(as_root(DEFAULT))?;
    if NOT_RUNNING.contains(&default.exit_code) {
        let [zones, default] = cx.run_each([OFFLINE, OFFLINE_DEFAULT].map(as_root));
        return Ok(Zones {
            is_running: false,
            default: default?.success("firewall-offline-cmd")?.text().trim().to_owned(),
            runtime: Vec::new(),
            permanent: zone::blocks(&zones?.success("firewall-offline-cmd")?.text()),
            policies: Vec::new(),
        });
    }
    let default = allowed(default)?.text().trim().to_owned();
    let [runtime, permanent, policies] = cx.run_each([RUNTIME, PERMANENT, POLICIES].map(as_root));
    Ok(Zones {
        is_running: true,
        default,
        runtime: zone::blocks(&allowed(runtime?)?.text()),
        permanent: zone::blocks(&allowed(permanent?)?.text()),
        // firewalld has policies since 0.9.
        policies: policies
            .ok()
            .filter(|output| output.exit_code == 0)
            .map_or_else(Vec::new, |output| zone::blocks(&output.text())),
    })
}

fn allowed(output: Output) -> Result<Output> {
    if output.exit_code != 0 && format!("{}{}", output.text(), output.error_text()).contains("uthoriz") {
        let message = "firewalld shows its zones to root only";
        return Err(Problem::new("PRIVILEGE_REQUIRED", linux_sysadmin_sdk::Category::Privilege, message));
    }
    output.success("firewall-cmd")
}

impl Zones {
    /// The names of the zones that packets may come to: those with an interface or a source, and the default one.
    fn in_use(&self) -> Vec<&str> {
        let all = if self.is_running { &self.runtime } else { &self.permanent };
        let is_used = |block: &&zone::Block| {
            block.name == self.default
                || !block.words("interfaces").is_empty()
                || !block.words("sources").is_empty()
        };
        all.iter().filter(is_used).map(|block| block.name.as_str()).collect()
    }

    fn standing(&self, cx: &Context) -> Result<Standing> {
        let unit = firewall::unit("firewalld.service", cx)?;
        let all = if self.is_running { &self.runtime } else { &self.permanent };
        let of_default = zone::find(all, &self.default);
        let mut notes = Vec::new();
        if !self.is_running {
            notes.push("firewalld doesn't run: the zones are those of its next start".to_owned());
        }
        let shown = self.in_use().into_iter().filter_map(|name| zone::find(all, name)).map(|block| Zone {
            name: block.name.clone(),
            default: block.name == self.default,
            target: block.value("target").to_owned(),
            interfaces: block.words("interfaces"),
            sources: block.words("sources"),
        });
        Ok(Standing {
            active: self.is_running,
            at_boot: Some(unit.is_enabled),
            incoming: of_default.map(|block| action(block.value("target")).to_owned()),
            zones: shown.collect(),
            notes,
            ..Standing::default()
        })
    }

    fn rules(&self, cx: &Context) -> Rules {
        let used = self.in_use();
        let ports = service_ports(self, &used, cx);
        let mut rules = Rules::default();
        let mut differing = Vec::new();
        for name in used {
            let of = |blocks: &[zone::Block]| {
                zone::find(blocks, name).map_or_else(Vec::new, |block| block_rules(block, &ports))
            };
            let (runtime, permanent) = (of(&self.runtime), of(&self.permanent));
            let merged = joined(if self.is_running { merged(runtime, permanent) } else { permanent });
            if merged.iter().any(|rule| rule.only.is_some()) {
                differing.push(name);
            }
            rules.items.extend(merged);
        }
        if !differing.is_empty() {
            rules.notes.push(format!(
                "what runs and what is permanent differ in {}: a reload drops what is `runtime` only",
                text::list(&differing, 6)
            ));
        }
        // firewalld's own policy lets IPv6 find its neighbours.
        let policies = self.policies.iter().filter(|policy| policy.name != "allow-host-ipv6");
        for policy in policies.filter(|policy| !policy.words("ingress-zones").is_empty()) {
            rules.items.extend(joined(block_rules(policy, &ports)));
        }
        rules
    }
}

impl Backend for Firewalld {
    fn name(&self) -> &'static str {
        "firewalld"
    }

    fn module(&self) -> Module {
        Module::new(
            "firewall-firewalld",
            env!("CARGO_PKG_VERSION"),
            "firewall",
            "The firewall with firewalld",
        )
        .license(env!("CARGO_PKG_LICENSE"))
        .serves("firewall_backend", &["firewalld"])
        .grants(bus::granted)
        .grants(granted)
        .grants(changes::granted)
    }

    fn standing(&self, _: &Kernel, cx: &Context) -> Result<Standing> {
        read(cx)?.standing(cx)
    }

    fn rules(&self, _: &Kernel, cx: &Context) -> Result<Rules> {
        Ok(read(cx)?.rules(cx))
    }

    fn standing_and_rules(&self, _: &Kernel, cx: &Context) -> Result<(Standing, Rules)> {
        let zones = read(cx)?;
        Ok((zones.standing(cx)?, zones.rules(cx)))
    }

    fn adding(&self, rule: &FirewallRule, kernel: &Kernel, cx: &Context) -> Result<Proposal> {
        changes::adding(rule, kernel, cx)
    }

    fn removing(&self, rule: &FirewallRule, kernel: &Kernel, cx: &Context) -> Result<Proposal> {
        changes::removing(rule, kernel, cx)
    }

    fn enabling(&self, kernel: &Kernel, cx: &Context) -> Result<Proposal> {
        changes::enabling(kernel, cx)
    }

    fn disabling(&self, kernel: &Kernel, cx: &Context) -> Result<Proposal> {
        changes::disabling(kernel, cx)
    }
}

/// The ports of the services that these zones name.
fn service_ports(zones: &Zones, used: &[&str], cx: &Context) -> Ports {
    let mut services: Vec<String> = Vec::new();
    for block in
        zones.runtime.iter().chain(&zones.permanent).filter(|block| used.contains(&block.name.as_str()))
    {
        services.extend(block.words("services"));
        services.extend(block.lines("rich rules").iter().filter_map(|rule| rich_rule::service(rule)));
    }
    service::ports(services, cx)
}

/// The rules with two that differ only in the protocols TCP and UDP as one of any protocol.
fn joined(rules: Vec<Listed>) -> Vec<Listed> {
    let with = |listed: &Listed, protocol: &str| {
        let rule = listed.rule.clone().map(|rule| FirewallRule { protocol: protocol.to_owned(), ..rule });
        Listed { rule, ..listed.clone() }
    };
    let mut left = rules;
    let mut joined = Vec::new();
    while !left.is_empty() {
        let first = left.remove(0);
        let other = match first.rule.as_ref().filter(|rule| rule.port.is_some()) {
            Some(rule) if rule.protocol == "tcp" => Some("udp"),
            Some(rule) if rule.protocol == "udp" => Some("tcp"),
            _ => None,
        };
        let pair = other.map(|other| with(&first, other));
        match left.iter().position(|later| Some(later) == pair.as_ref()) {
            Some(at) => {
                left.remove(at);
                joined.push(with(&first, "any"));
            }
            None => joined.push(first),
        }
    }
    joined
}

/// What happens to packets that no rule of the zone concerns.
fn action(target: &str) -> &str {
    match target {
        "ACCEPT" => "allow",
        "DROP" => "deny",
        // The default refuses, but for some kinds of ICMP.
        "default" | "%%REJECT%%" | "REJECT" => "reject",
        other => other,
    }
}

/// The rules that run, and those that are permanent only.
fn merged(runtime: Vec<Listed>, mut permanent: Vec<Listed>) -> Vec<Listed> {
    let mut all = Vec::new();
    for mut rule in runtime {
        match permanent.iter().position(|other| *other == rule) {
            Some(same) => drop(permanent.remove(same)),
            None => rule.only = Some("runtime"),
        }
        all.push(rule);
    }
    all.extend(permanent.into_iter().map(|rule| Listed { only: Some("permanent"), ..rule }));
    all
}

type Ports = BTreeMap<String, Option<Vec<(String, String)>>>;

fn block_rules(block: &zone::Block, ports: &Ports) -> Vec<Listed> {
    let place = match (block.words("ingress-zones"), block.words("egress-zones")) {
        (from, to) if from.is_empty() && to.is_empty() => block.name.clone(),
        (from, to) => format!("policy {}: {} to {}", block.name, from.join(" "), to.join(" ")),
    };
    let mut rules = Vec::new();
    for service in block.words("services") {
        match ports.get(&service).and_then(Option::as_ref) {
            Some(known) => rules.extend(known.iter().map(|(port, protocol)| {
                let rule = rich_rule::allowed(port, protocol);
                Listed::of(firewall::FirewallRule { comment: Some(format!("service {service}")), ..rule })
            })),
            None => rules.push(Listed::raw(format!("service {service}"))),
        }
    }
    for port in block.words("ports") {
        rules.push(match port.split_once('/') {
            Some((port, protocol @ ("tcp" | "udp"))) => Listed::of(rich_rule::allowed(port, protocol)),
            _ => Listed::raw(format!("port {port}")),
        });
    }
    for (key, word) in
        [("protocols", "protocol"), ("source-ports", "source-port"), ("icmp-blocks", "icmp-block")]
    {
        rules.extend(block.words(key).into_iter().map(|value| Listed::raw(format!("{word} {value}"))));
    }
    if block.value("masquerade") == "yes" {
        rules.push(Listed::raw("masquerade"));
    }
    rules.extend(block.lines("forward-ports").iter().map(|line| Listed::raw(format!("forward-port {line}"))));
    for line in block.lines("rich rules") {
        rules.extend(rich_rule::listed(line, ports));
    }
    for rule in &mut rules {
        rule.place = Some(place.clone());
    }
    rules
}
