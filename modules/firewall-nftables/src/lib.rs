//! The firewall with nftables alone: the rules of all tables, as the kernel has them, and a table of the tools' own.
#![forbid(unsafe_code)]

mod changes;
mod own_table;

use linux_sysadmin_sdk::firewall::{
    self, Backend, Chain, Direction, FirewallRule, Hook, Kernel, Listed, Proposal, Rules, Standing, Table,
    unified, writer_of,
};
use linux_sysadmin_sdk::prelude::*;

/// The module.
pub fn module() -> Module {
    firewall::module(|| Nftables)
}

linux_sysadmin_sdk::export!(module);

struct Nftables;

impl Backend for Nftables {
    fn name(&self) -> &'static str {
        "nftables"
    }

    fn module(&self) -> Module {
        Module::new("firewall-nftables", env!("CARGO_PKG_VERSION"), "firewall", "The firewall with nftables")
            .license(env!("CARGO_PKG_LICENSE"))
            .serves("firewall_backend", &["nftables"])
            .grants(changes::granted)
    }

    fn standing(&self, kernel: &Kernel, cx: &Context) -> Result<Standing> {
        let unit = firewall::unit("nftables.service", cx)?;
        let incoming = policy(kernel, "input");
        let mut notes = Vec::new();
        if incoming.is_none() {
            notes.push("no table filters packets to this machine".to_owned());
        } else if !unit.is_enabled {
            notes.push(
                "nftables.service isn't enabled: the rules are gone after a boot, unless another program loads them"
                    .to_owned(),
            );
        }
        Ok(Standing {
            active: incoming.is_some(),
            at_boot: Some(unit.is_enabled),
            outgoing: policy(kernel, "output"),
            forwarded: policy(kernel, "forward"),
            incoming,
            notes,
            ..Standing::default()
        })
    }

    fn rules(&self, kernel: &Kernel, cx: &Context) -> Result<Rules> {
        let mut rules = Rules::default();
        let mut left_out: Vec<&str> = Vec::new();
        for table in kernel.ruleset.tables() {
            for chain in &table.chains {
                match writer_of(&table.name).or_else(|| writer_of(&chain.name)) {
                    Some(writer) if !chain.rules.is_empty() => left_out.push(writer),
                    Some(_) => {}
                    None => rules.items.extend(chain.rules.iter().map(|rule| listed(table, chain, rule))),
                }
            }
        }
        left_out.sort_unstable();
        left_out.dedup();
        if !left_out.is_empty() {
            rules.notes.push(format!("the rules of {} aren't listed", left_out.join(", ")));
        }
        // A machine may have nft without the files of nftables.service.
        let kept = changes::Files::read(cx).map_or_else(|_| Vec::new(), |files| files.rules);
        if own_table::in_kernel(kernel).is_none() {
            if !kept.is_empty() {
                rules.notes.push("`permanent` rules are kept, and hold from fw_enable on".to_owned());
            }
            let listed = kept.into_iter().map(|rule| Listed {
                place: Some(changes::place(&rule)),
                only: Some("permanent"),
                ..Listed::of(rule)
            });
            rules.items.extend(listed);
        }
        Ok(rules)
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

    fn is_on(&self, kernel: &Kernel, _: &Context) -> Result<bool> {
        Ok(own_table::in_kernel(kernel).is_some())
    }
}

/// What happens to a packet that no rule decides about. A drop in one table counts, whatever the others do.
fn policy(kernel: &Kernel, hook: &str) -> Option<String> {
    let chains = kernel.ruleset.tables().iter().flat_map(|table| &table.chains);
    let hooks = chains.filter_map(|chain| chain.hook.as_ref());
    let of_it: Vec<&Hook> = hooks.filter(|found| found.name == hook && found.kind == "filter").collect();
    let drops = of_it.iter().any(|hook| !hook.policy_accepts);
    (!of_it.is_empty()).then(|| if drops { "deny" } else { "allow" }.to_owned())
}

fn listed(table: &Table, chain: &Chain, rule: &firewall::Rule) -> Listed {
    let direction = chain.hook.as_ref().and_then(|hook| match hook.name.as_str() {
        "input" => Some(Direction::In),
        "output" => Some(Direction::Out),
        _ => None,
    });
    let unified = direction.and_then(|direction| unified(rule, direction));
    let family = match (table.family.as_str(), &unified) {
        ("ip", Some(rule)) if rule.source.is_none() && rule.destination.is_none() => Some("ipv4"),
        ("ip6", Some(rule)) if rule.source.is_none() && rule.destination.is_none() => Some("ipv6"),
        _ => None,
    };
    let mut listed = match unified {
        Some(rule) => Listed::of(rule),
        None => {
            let comment = rule.comment.iter().filter(|_| rule.line.is_none());
            let comment: String = comment.map(|comment| format!(" comment {comment:?}")).collect();
            Listed::raw(firewall::rule_in_words(rule) + &comment)
        }
    };
    listed.family = family;
    listed.handle = rule.handle;
    listed.place = Some(format!("{} {} {}", table.family, table.name, chain.name));
    listed
}
