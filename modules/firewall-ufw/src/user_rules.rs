//! The text of `user.rules`, which is input of iptables-restore: what the kernel's chain of ufw's rules would hold if ufw
//! had changed a rule. ufw itself writes the file; this text is evaluated only.

use linux_sysadmin_sdk::firewall::{Action, Direction, FirewallRule, Rule, Ruleset, Table};

use crate::tuple;

/// One of both files.
#[derive(Clone, Copy)]
pub(crate) struct Family {
    /// The family of nft's table.
    pub name: &'static str,
    /// The chain of rules for packets to the machine.
    pub input: &'static str,
    output: &'static str,
}

pub(crate) const IPV4: Family = Family { name: "ip", input: "ufw-user-input", output: "ufw-user-output" };
pub(crate) const IPV6: Family = Family { name: "ip6", input: "ufw6-user-input", output: "ufw6-user-output" };

const END: &str = "### END RULES ###";

/// The text with the rule behind the others.
pub(crate) fn with(text: &str, rule: &FirewallRule, family: Family) -> String {
    let lines = lines(rule, family);
    match text.split_once(END) {
        Some((before, behind)) => format!("{before}{lines}\n{END}{behind}"),
        // The file that the package brings has no such line: its rules end where the file does.
        None => text.replacen("COMMIT", &format!("{lines}COMMIT"), 1),
    }
}

/// The text without the rule. A rule's lines end with an empty one.
pub(crate) fn without(text: &str, rule: &FirewallRule) -> String {
    let mut kept = String::new();
    let mut is_in_it = false;
    for line in text.split_inclusive('\n') {
        if line.starts_with("### tuple ### ") {
            let listed = tuple::rules(line);
            is_in_it = listed.iter().any(|listed| listed.rule.as_ref().is_some_and(|own| own.is_same(rule)));
        }
        if !is_in_it {
            kept.push_str(line);
        }
        is_in_it &= !line.trim().is_empty();
    }
    kept
}

/// The rules of the chain for packets to the machine.
pub(crate) fn input(text: &str, family: Family) -> Option<Vec<Rule>> {
    let mut ruleset = Ruleset::default().with_saved(family.name, text);
    ruleset.chain_mut(family.name, "filter", family.input).map(std::mem::take)
}

/// A table that does to packets what ufw would do with these rules. `policy` is the policy of `/etc/default/ufw`.
pub(crate) fn table(text: &str, family: Family, policy: &str) -> Option<Table> {
    let policy = if policy == "ACCEPT" { "ACCEPT" } else { "DROP" };
    let base = format!("*filter\n:INPUT {policy} [0:0]\n");
    let jump = format!("-A INPUT -j {}\nCOMMIT", family.input);
    let text = text.replacen("*filter\n", &base, 1).replacen("COMMIT", &jump, 1);
    let ruleset = Ruleset::default().with_saved(family.name, &text);
    let mut table = ruleset.table(family.name, "filter").cloned()?;
    // The name of iptables' own table would stand for what the kernel has now.
    table.name = "ufw".to_owned();
    Some(table)
}

/// The lines that ufw writes for the rule.
fn lines(rule: &FirewallRule, family: Family) -> String {
    let chain = if rule.direction == Direction::In { family.input } else { family.output };
    let protocols = match (rule.protocol.as_str(), &rule.port) {
        ("any", Some(_)) => vec!["tcp", "udp"],
        ("any", None) => vec![""],
        (one, _) => vec![one],
    };
    let mut lines = String::new();
    for protocol in protocols {
        lines += &format!("-A {chain}");
        if !protocol.is_empty() {
            lines += &format!(" -p {protocol}");
        }
        if let Some(port) = &rule.port {
            let option = if port.contains(':') { "-m multiport --dports" } else { "--dport" };
            lines += &format!(" {option} {port}");
        }
        for (option, address) in [("-d", &rule.destination), ("-s", &rule.source)] {
            lines.extend(address.iter().map(|address| format!(" {option} {address}")));
        }
        lines += match (rule.action, protocol) {
            (Action::Allow, _) => " -j ACCEPT\n",
            (Action::Deny, _) => " -j DROP\n",
            (Action::Reject, "tcp") => " -j REJECT --reject-with tcp-reset\n",
            (Action::Reject, _) => " -j REJECT\n",
        };
    }
    lines
}
