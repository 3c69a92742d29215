//! The tools' own table `inet linux_sysadmin`, and the file that holds it. The file has the rules also while the table isn't
//! in the kernel: above each rule stands a comment with the rule in unified words.

use std::fmt::Write as _;

use linux_sysadmin_sdk::firewall::{Action, Direction, FirewallRule, Kernel, Table, unified};
use linux_sysadmin_sdk::prelude::*;

/// The family of the table.
pub(crate) const FAMILY: &str = "inet";
/// The name of the table.
pub(crate) const NAME: &str = "linux_sysadmin";

/// What every machine needs: itself, answers, ICMP with IPv6's neighbours, and an address by DHCP.
const INPUT: [&str; 6] = [
    "iif \"lo\" accept",
    "ct state established,related accept",
    "ct state invalid drop",
    "meta l4proto { icmp, ipv6-icmp } accept",
    "udp sport 67 udp dport 68 accept",
    "udp sport 547 udp dport 546 accept",
];
const OUTPUT: [&str; 3] =
    ["oif \"lo\" accept", "ct state established,related accept", "meta l4proto ipv6-icmp accept"];

/// The text of the file with these rules. Loading it replaces the table as a whole, or changes nothing.
pub(crate) fn text(rules: &[FirewallRule]) -> String {
    let mut text = format!(
        "#!/usr/sbin/nft -f\n\
         # The rules that fw_add_rule of linux-sysadmin adds. Its tools write this file anew at each change.\n\n\
         table {FAMILY} {NAME}\ndelete table {FAMILY} {NAME}\n\ntable {FAMILY} {NAME} {{\n"
    );
    for (name, direction, policy, base) in
        [("input", Direction::In, "drop", &INPUT[..]), ("output", Direction::Out, "accept", &OUTPUT)]
    {
        let _ = writeln!(
            text,
            "\tchain {name} {{\n\t\ttype filter hook {name} priority filter; policy {policy};"
        );
        base.iter().for_each(|line| text += &format!("\t\t{line}\n"));
        for rule in rules.iter().filter(|rule| rule.direction == direction) {
            let words = serde_json::to_string(rule).unwrap_or_default();
            let _ = writeln!(text, "\t\t# {words}\n\t\t{}", statement(rule));
        }
        text += "\t}\n";
    }
    text + "}\n"
}

/// The rules in the text of the file.
pub(crate) fn rules(text: &str) -> Vec<FirewallRule> {
    let words = text.lines().filter_map(|line| line.trim_start().strip_prefix("# "));
    words.filter_map(|words| serde_json::from_str(words).ok()).collect()
}

/// The rule in nft's words. Its values were checked: none of them holds a quote or ends the line.
fn statement(rule: &FirewallRule) -> String {
    let mut parts = Vec::new();
    for (field, address) in [("saddr", &rule.source), ("daddr", &rule.destination)] {
        let family = |address: &str| if address.contains(':') { "ip6" } else { "ip" };
        parts.extend(address.iter().map(|address| format!("{} {field} {address}", family(address))));
    }
    let port = rule.port.as_ref().map(|port| port.replace(':', "-"));
    parts.extend(match (rule.protocol.as_str(), port) {
        ("any", Some(port)) => Some(format!("meta l4proto {{ tcp, udp }} th dport {port}")),
        (protocol, Some(port)) => Some(format!("{protocol} dport {port}")),
        ("any", None) => None,
        (protocol, None) => Some(format!("meta l4proto {protocol}")),
    });
    let verdict = match rule.action {
        Action::Allow => "accept",
        Action::Deny => "drop",
        Action::Reject => "reject",
    };
    parts.push(verdict.to_owned());
    parts.extend(rule.comment.iter().map(|comment| format!("comment \"{comment}\"")));
    parts.join(" ")
}

/// The table as the kernel has it.
pub(crate) fn in_kernel(kernel: &Kernel) -> Option<&Table> {
    kernel.ruleset.table(FAMILY, NAME)
}

/// True if the kernel's table is what the file says.
pub(crate) fn is_as_kept(table: &Table, kept: &[FirewallRule]) -> bool {
    let is_same = |name: &str, direction: Direction, base: usize| {
        let Some(chain) = table.chains.iter().find(|chain| chain.name == name) else { return false };
        let Some(own) = chain.rules.get(base..) else { return false };
        let own = own.iter().map(|rule| unified(rule, direction));
        own.eq(kept.iter().filter(|rule| rule.direction == direction).cloned().map(Some))
    };
    table.chains.len() == 2
        && is_same("input", Direction::In, INPUT.len())
        && is_same("output", Direction::Out, OUTPUT.len())
}

/// The table with these rules, for the evaluation.
pub(crate) fn table(rules: &[FirewallRule]) -> Table {
    let input = rules.iter().filter(|rule| rule.direction == Direction::In);
    Table::of_input(NAME, input.map(FirewallRule::kernel_rule).collect(), false)
}

/// The problem where somebody has edited the table's file, which `config` can include beside others.
pub(crate) fn edited(path: &str, config: &str) -> Problem {
    let message = format!(
        "{path} isn't as these tools write it: somebody has edited it, and a change by this tool would lose that"
    );
    Problem::new("FILE_EDITED", linux_sysadmin_sdk::Category::State, message)
        .remedy(format!("Move what was edited to a table of its own in another file that {config} includes"))
}

/// The problem where somebody has changed the table without the file.
pub(crate) fn differs(path: &str) -> Problem {
    let message = format!(
        "the kernel's table {FAMILY} {NAME} isn't what {path} says: somebody has changed one of them, and a change by this \
         tool would lose that"
    );
    Problem::new("TABLE_DIFFERS", linux_sysadmin_sdk::Category::State, message)
        .remedy(format!("`nft -f {path}` makes the table as the file says"))
}
