//! Changes of a zone's rules: what runs and what is permanent are changed alike, so that no reload is needed, which would drop
//! what others have added for now.

use linux_sysadmin_sdk::firewall::{
    self, After, Direction, FirewallRule, Kernel, Listed, Proposal, Rule, Ruleset, Table,
};
use linux_sysadmin_sdk::prelude::*;
use linux_sysadmin_sdk::{Category, DurationCategory, Privilege, text};
use serde_json::json;

use crate::element::{self, Element};
use crate::{Ports, Zones, block_rules, read, service_ports, zone};

/// What follows the program and `--permanent`.
macro_rules! change_pattern {
    ($program:literal) => {
        concat!(
            $program,
            " --zone=<text> (--add-rich-rule=<text>|--remove-rich-rule=<text>\
             |--add-port=<port>/<protocol>|--add-port=<port>-<port>/<protocol>\
             |--remove-port=<port>/<protocol>|--remove-port=<port>-<port>/<protocol>\
             |--add-service=<text>|--remove-service=<text>\
             |--remove-service-from-zone=<text>)"
        )
    };
}

const ENABLE: CommandLine = CommandLine::new("systemctl enable -- firewalld.service");
const DISABLE: CommandLine = CommandLine::new("systemctl disable -- firewalld.service");
const START: CommandLine = CommandLine::new("systemctl start -- firewalld.service");
const STOP: CommandLine = CommandLine::new("systemctl stop -- firewalld.service");

const ZONES: &str = "/etc/firewalld/zones";
const ZONES_OF_PACKAGE: &str = "/usr/lib/firewalld/zones";

/// Asks for firewalld's commands, and for the zones' files, whose copies put them back byte for byte.
pub(crate) fn granted(module: Module) -> Module {
    let change = |pattern: &str, reason: &str| CommandGrant::change(pattern, Risk::High, reason);
    module
        .command(change(change_pattern!("firewall-cmd"), "change a zone's rules for now"))
        .command(change(change_pattern!("firewall-cmd --permanent"), "change a zone's rules for each start"))
        .command(change(
            change_pattern!("firewall-offline-cmd"),
            "change a zone's rules where firewalld doesn't run",
        ))
        .command(ENABLE.change(Risk::Critical, "have firewalld at each start"))
        .command(DISABLE.change(Risk::Critical, "have no firewalld at the next start"))
        .command(START.change(Risk::Critical, "start firewalld"))
        .command(STOP.change(Risk::Critical, "stop firewalld"))
        .path(PathGrant::write("/etc/firewalld/zones/*.xml", "a zone's rules, which an undo puts back"))
        .path(PathGrant::read("/etc/firewalld/zones/*.xml", "a zone's rules").as_root_if_available())
        .path(
            PathGrant::read("/usr/lib/firewalld/zones/*.xml", "the zones that the package brings")
                .as_root_if_available(),
        )
}

/// The way by which a command changes rules.
#[derive(Clone, Copy, PartialEq)]
enum Way {
    Now,
    Permanent,
    /// Where firewalld doesn't run.
    Offline,
}

impl Way {
    fn command(self, zone: &str, option: String) -> Command {
        let (program, permanent) = match self {
            Self::Now => ("firewall-cmd", None),
            Self::Permanent => ("firewall-cmd", Some("--permanent")),
            Self::Offline => ("firewall-offline-cmd", None),
        };
        let command = Command::new(program).args(permanent).args([format!("--zone={zone}"), option]);
        command.as_root().duration(DurationCategory::Quick)
    }

    fn step(self, zone: &str, element: &Element, adds: bool) -> Step {
        let command = |adds: bool| self.command(zone, element.option(adds, self == Self::Offline));
        Step::run(command(adds)).undo(command(!adds)).uninterruptible()
    }
}

/// The ways that there are, each with its zones.
fn ways(zones: &Zones) -> Vec<(Way, &[zone::Block])> {
    match zones.is_running {
        true => vec![(Way::Now, &zones.runtime), (Way::Permanent, &zones.permanent)],
        false => vec![(Way::Offline, &zones.permanent)],
    }
}

pub(crate) fn adding(rule: &FirewallRule, kernel: &Kernel, cx: &Context) -> Result<Proposal> {
    if rule.direction == Direction::Out {
        let message = "firewalld's zones filter what comes in: expected direction in";
        return Err(Problem::validation("DIRECTION_NOT_SUPPORTED", message)
            .remedy("A policy from HOST to a zone filters what goes out (firewall-cmd --new-policy)"));
    }
    let parts = element::parts(rule)?;
    let zones = read(cx)?;
    let (zone, interface) = zone_of(rule, &zones, cx);
    let ports = service_ports(&zones, &[&zone], cx);
    let (mut steps, mut new) = (Vec::new(), Vec::new());
    for (way, blocks) in ways(&zones) {
        let listed = zone::find(blocks, &zone).map_or_else(Vec::new, |block| block_rules(block, &ports));
        for part in parts.iter().filter(|part| !listed.iter().any(|known| known.is(part))) {
            steps.push(way.step(&zone, &Element::Rich(element::rich_rule(part)), true));
            if way == Way::Now {
                new.push(part.kernel_rule());
            }
        }
    }
    let mut notes = Vec::new();
    if rule.comment.is_some() {
        notes.push("firewalld keeps no comments: this one is left out".to_owned());
    }
    let others: Vec<&str> = zones.in_use().into_iter().filter(|name| *name != zone).collect();
    if !others.is_empty() {
        notes.push(format!("the rule is one of zone {zone}; also in use: {}", text::list(&others, 6)));
    }
    let after = if zones.is_running {
        let chain = chain(&zone, rule);
        changed(kernel, &chain, |rules| {
            rules.extend(new);
            Some(())
        })
    } else {
        After::Same
    };
    Ok(Proposal {
        steps,
        kept: kept(&zone, cx)?,
        place: Some(zone.clone()),
        interface,
        notes,
        ..Proposal::new(format!("Add `{}` to zone {zone}", rule.in_words()), after)
    })
}

pub(crate) fn removing(rule: &FirewallRule, kernel: &Kernel, cx: &Context) -> Result<Proposal> {
    let parts = element::parts(rule)?;
    let zones = read(cx)?;
    let used = zones.in_use();
    let ports = service_ports(&zones, &used, cx);
    let has_it = |name: &&&str| {
        ways(&zones).into_iter().any(|(_, blocks)| {
            let listed = zone::find(blocks, name).map_or_else(Vec::new, |block| block_rules(block, &ports));
            parts.iter().all(|part| listed.iter().any(|known| known.is(part)))
        })
    };
    let having: Vec<&str> = used.iter().filter(has_it).copied().collect();
    let (likely, interface) = zone_of(rule, &zones, cx);
    let zone = match having[..] {
        [] => return Ok(Proposal::new("", After::Same)),
        [only] => only.to_owned(),
        _ if having.contains(&likely.as_str()) => likely,
        _ => {
            let message = format!("several zones have that rule: {}", text::list(&having, 6));
            return Err(Problem::new("AMBIGUOUS_ZONE", Category::State, message));
        }
    };
    let (mut steps, mut gone) = (Vec::new(), Vec::new());
    for (way, blocks) in ways(&zones) {
        let Some(block) = zone::find(blocks, &zone) else { continue };
        for part in &parts {
            for element in element::elements(block, part, &ports)? {
                steps.push(way.step(&zone, &element, false));
                if way == Way::Now {
                    gone.push(part.clone());
                }
            }
        }
    }
    let after = match zones.is_running {
        true => changed(kernel, &chain(&zone, rule), |rules| {
            gone.iter().try_for_each(|gone| {
                let is_it = |rule: &Rule| {
                    firewall::unified(rule, Direction::In).is_some_and(|known| known.is_same(gone))
                };
                let at = rules.iter().position(is_it)?;
                rules.remove(at);
                Some(())
            })
        }),
        false => After::Same,
    };
    Ok(Proposal {
        steps,
        kept: kept(&zone, cx)?,
        place: Some(zone.clone()),
        interface,
        ..Proposal::new(format!("Remove `{}` from zone {zone}", rule.in_words()), after)
    })
}

/// The kernel's chain that rich rules without a priority come to.
fn chain(zone: &str, rule: &FirewallRule) -> String {
    let kind = if rule.action == firewall::Action::Allow { "allow" } else { "deny" };
    format!("filter_IN_{zone}_{kind}")
}

/// The kernel's rules with a changed chain. With firewalld's backend iptables there is no such chain.
fn changed(kernel: &Kernel, chain: &str, change: impl FnOnce(&mut Vec<Rule>) -> Option<()>) -> After {
    let mut ruleset = kernel.ruleset.clone();
    let done = ruleset.chain_mut("inet", "firewalld", chain).and_then(change);
    done.map_or(After::Unknown, |()| After::Rules(ruleset))
}

/// The zone that packets of the rule come to, with the interface at which they arrive: the one that has the source, or the
/// interface of the route to it.
fn zone_of(rule: &FirewallRule, zones: &Zones, cx: &Context) -> (String, Option<String>) {
    let all = if zones.is_running { &zones.runtime } else { &zones.permanent };
    let interface = firewall::interface_towards(rule.first_source(), cx);
    let of_source = all
        .iter()
        .find(|block| rule.source.as_ref().is_some_and(|source| block.words("sources").contains(source)));
    let of_interface = || {
        all.iter()
            .find(|block| interface.as_ref().is_some_and(|name| block.words("interfaces").contains(name)))
    };
    let zone = of_source.or_else(of_interface).map_or(&zones.default, |block| &block.name);
    (zone.clone(), interface)
}

/// A step that writes the zone's file as it is; where there is none so far, as the package has it, which means the same.
fn kept(zone: &str, cx: &Context) -> Result<Vec<Step>> {
    if zone.contains('/') {
        return Ok(Vec::new());
    }
    let path = format!("{ZONES}/{zone}.xml");
    let as_root = cx.files_as(Privilege::RootIfAvailable);
    let texts = as_root.read_all(&[path.clone(), format!("{ZONES_OF_PACKAGE}/{zone}.xml")]);
    for text in texts {
        match text {
            Ok(text) => return Ok(vec![Step::write(path, text)]),
            Err(problem) if problem.code == "FILE_NOT_FOUND" => {}
            Err(problem) => return Err(problem),
        }
    }
    Ok(Vec::new())
}

pub(crate) fn enabling(kernel: &Kernel, cx: &Context) -> Result<Proposal> {
    let zones = read(cx)?;
    let unit = firewall::unit("firewalld.service", cx)?;
    let mut steps = Vec::new();
    if !unit.is_enabled {
        steps.push(Step::run(ENABLE.command().as_root()).undo(DISABLE.command().as_root()));
    }
    let mut after = After::Same;
    if !zones.is_running {
        let start = START.command().as_root().duration(DurationCategory::Slow);
        steps.push(Step::run(start).undo(STOP.command().as_root()).uninterruptible());
        let used = zones.in_use();
        let ports = service_ports(&zones, &used, cx);
        let blocks = used.iter().filter_map(|name| zone::find(&zones.permanent, name));
        let tables = blocks.map(|block| table(block, &ports));
        after = After::Rules(tables.fold(kernel.ruleset.clone(), Ruleset::with_table));
    }
    Ok(Proposal { steps, ..Proposal::new("Start firewalld, now and at each start", after) })
}

pub(crate) fn disabling(_: &Kernel, cx: &Context) -> Result<Proposal> {
    let zones = read(cx)?;
    let unit = firewall::unit("firewalld.service", cx)?;
    let mut steps = Vec::new();
    if zones.is_running {
        let stop = STOP.command().as_root().duration(DurationCategory::Slow);
        steps.push(Step::run(stop).undo(START.command().as_root()).uninterruptible());
    }
    if unit.is_enabled {
        steps.push(Step::run(DISABLE.command().as_root()).undo(ENABLE.command().as_root()));
    }
    Ok(Proposal {
        steps,
        ..Proposal::new("Stop firewalld, now and at each start: every packet passes it", After::Unknown)
    })
}

/// A table that does to packets what the zone would do. Where several zones are in use, a packet has to pass all of their
/// tables: which zone it comes to isn't known before firewalld runs.
fn table(block: &zone::Block, ports: &Ports) -> Table {
    let listed = block_rules(block, ports);
    let is_deny =
        |listed: &&Listed| listed.rule.as_ref().is_none_or(|rule| rule.action != firewall::Action::Allow);
    let (deny, allow): (Vec<_>, Vec<_>) = listed.iter().partition(is_deny);
    let rule = |listed: &&Listed| match (&listed.rule, listed.family) {
        (Some(rule), None) => Some(rule.kernel_rule()),
        // What the common words can't say may drop the packet.
        _ if listed.raw.as_ref().is_some_and(|raw| !raw.starts_with("rule ")) => None,
        _ => Some(Rule { expr: vec![json!({"xt": null}), json!({"drop": null})], ..Rule::default() }),
    };
    let rules = deny.iter().chain(&allow).filter_map(rule).collect();
    Table::of_input(&format!("zone {}", block.name), rules, block.value("target") == "ACCEPT")
}
