//! firewalld's zones and policies as it tells them on the message bus, see firewalld.dbus(5).
//!
//! firewall-cmd asks there too, and each start of that Python program takes longer than all of these questions. busctl(1) prints
//! JSON since version 240, and firewalld answers them since version 0.9.

use std::collections::BTreeMap;

use linux_sysadmin_sdk::Privilege;
use linux_sysadmin_sdk::prelude::*;
use serde::de::DeserializeOwned;

use crate::Zones;
use crate::zone::Block;

/// A question, which doesn't start firewalld: an object's path behind that of firewalld, and a method.
macro_rules! question {
    ($object:literal, $method:literal) => {
        CommandLine::new(concat!(
            "busctl --json=short --auto-start=no call org.fedoraproject.FirewallD1 /org/fedoraproject/FirewallD1",
            $object,
            " org.fedoraproject.FirewallD1",
            $method
        ))
    };
}

const DEFAULT: CommandLine = question!("", " getDefaultZone");
const ACTIVE: CommandLine = question!("", ".zone getActiveZones");
const ZONE: CommandLine = question!("", ".zone getZoneSettings2 s <text>");
const POLICIES: CommandLine = question!("", ".policy getPolicies");
const POLICY: CommandLine = question!("", ".policy getPolicySettings s <text>");
const PERMANENT_PATH: CommandLine = question!("/config", ".config getZoneByName s <text>");
const PERMANENT: CommandLine = question!("/config/zone/<int>", ".config.zone getSettings2");

pub(crate) fn granted(module: Module) -> Module {
    let lines = [
        (DEFAULT, "the zone that has the rest"),
        (ACTIVE, "the zones with interfaces or sources"),
        (ZONE, "a zone as it is now"),
        (POLICIES, "the policies between zones"),
        (POLICY, "a policy between zones"),
        (PERMANENT_PATH, "where firewalld tells a zone as it will be after a start"),
        (PERMANENT, "a zone as it will be after a start"),
    ];
    module.commands(lines.map(|(line, reason)| line.read(reason).as_root_if_available()))
}

/// A value behind its type.
#[derive(Deserialize, Default)]
struct Typed<T> {
    data: T,
}

/// The settings of a zone or a policy. An empty one may be left out.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Settings {
    target: Typed<String>,
    interfaces: Typed<Vec<String>>,
    sources: Typed<Vec<String>>,
    ingress_zones: Typed<Vec<String>>,
    egress_zones: Typed<Vec<String>>,
    services: Typed<Vec<String>>,
    ports: Typed<Vec<(String, String)>>,
    protocols: Typed<Vec<String>>,
    source_ports: Typed<Vec<(String, String)>>,
    icmp_blocks: Typed<Vec<String>>,
    masquerade: Typed<bool>,
    /// Port, protocol, and the port and address to which packets go.
    forward_ports: Typed<Vec<(String, String, String, String)>>,
    /// A policy has them under the other name.
    #[serde(alias = "rich_rules")]
    rules_str: Typed<Vec<String>>,
}

impl Settings {
    /// The same in the words and the order of firewall-cmd.
    fn block(self, name: &str) -> Block {
        let sorted = |mut words: Vec<String>| {
            words.sort();
            words
        };
        let ports = |ports: Vec<(String, String)>| -> Vec<String> {
            ports.into_iter().map(|(port, protocol)| format!("{port}/{protocol}")).collect()
        };
        let forwards = self.forward_ports.data.into_iter().map(|(port, protocol, to_port, to_address)| {
            format!("port={port}:proto={protocol}:toport={to_port}:toaddr={to_address}")
        });
        let mut rules = self.rules_str.data;
        rules.sort_by_key(|rule| priority(rule));
        let mut block = Block::named(name);
        block.add("target", self.target.data);
        block.add("masquerade", if self.masquerade.data { "yes" } else { "no" }.to_owned());
        for (key, words) in [
            ("interfaces", sorted(self.interfaces.data)),
            ("sources", self.sources.data),
            ("ingress-zones", self.ingress_zones.data),
            ("egress-zones", self.egress_zones.data),
            ("services", sorted(self.services.data)),
            ("ports", ports(self.ports.data)),
            ("protocols", sorted(self.protocols.data)),
            ("source-ports", ports(self.source_ports.data)),
            ("icmp-blocks", self.icmp_blocks.data),
        ] {
            block.add(key, words.join(" "));
        }
        block.add_lines("forward-ports", forwards.collect());
        block.add_lines("rich rules", rules);
        block
    }
}

/// The priority of a rich rule, which comes before its other words.
fn priority(rule: &str) -> i32 {
    let value = rule.strip_prefix("rule priority=\"").and_then(|rest| rest.split('"').next());
    value.and_then(|value| value.parse().ok()).unwrap_or(0)
}

/// Returns the zones in use and the policies. There is None where firewalld doesn't run or doesn't answer, which firewall-cmd
/// has words for.
pub(crate) fn read(cx: &Context) -> Option<Zones> {
    let ask = |commands: Vec<Command>| {
        let as_root = |command: Command| command.privilege(Privilege::RootIfAvailable);
        cx.run_all(commands.into_iter().map(as_root).collect()).into_iter().map(Result::ok)
    };
    let mut answers = ask(vec![DEFAULT.command(), ACTIVE.command(), POLICIES.command()]);
    let default: String = value(answers.next()??)?;
    let active: BTreeMap<String, BTreeMap<String, Vec<String>>> = value(answers.next()??)?;
    let policy_names: Vec<String> = value(answers.next()??)?;

    let mut names: Vec<String> = active.into_keys().collect();
    if !names.contains(&default) {
        names.push(default.clone());
        names.sort();
    }
    let of = |line: CommandLine, names: &[String]| -> Vec<Command> {
        names.iter().map(|name| line.with([name])).collect()
    };
    let questions = [of(ZONE, &names), of(PERMANENT_PATH, &names), of(POLICY, &policy_names)].concat();
    let mut answers = ask(questions);
    let blocks = |names: &[String], answers: &mut dyn Iterator<Item = Option<Output>>| {
        let block = |name: &String| Some(value::<Settings>(answers.next()??)?.block(name));
        names.iter().map(block).collect::<Option<Vec<_>>>()
    };
    let runtime = blocks(&names, &mut answers)?;
    let mut kept = Vec::new();
    let mut numbers = Vec::new();
    for name in names {
        // A zone that was taken away since the start is left in what runs only.
        if let Some(path) = found(answers.next()??)? {
            numbers.push(value::<String>(path)?.rsplit_once('/')?.1.to_owned());
            kept.push(name);
        }
    }
    let policies = blocks(&policy_names, &mut answers)?;
    let mut answers = ask(of(PERMANENT, &numbers));
    let permanent = blocks(&kept, &mut answers)?;
    Some(Zones { is_running: true, default, runtime, permanent, policies })
}

/// The answer about a zone. The inner None says that there is no such zone, and the outer one that the answer says neither.
fn found(output: Output) -> Option<Option<Output>> {
    match output.exit_code {
        0 => Some(Some(output)),
        _ => output.error_text().contains("INVALID_ZONE").then_some(None),
    }
}

/// What a method returned.
fn value<T: DeserializeOwned>(output: Output) -> Option<T> {
    let (value,) = serde_json::from_slice::<Typed<(T,)>>(&output.stdout).ok()?.data;
    (output.exit_code == 0).then_some(value)
}
