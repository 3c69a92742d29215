//! The rules as iptables-save(8) prints them, which are command lines of iptables(8).

use super::{Action, Chains, Packet, Rule, is_in, is_interface};

pub(super) fn chains(text: &str, packet: &Packet<'_>) -> Option<Chains> {
    let mut chains = Chains::new();
    let mut table = "";
    for line in text.lines() {
        if let Some(name) = line.strip_prefix('*') {
            table = name;
        } else if let Some(chain) = line.strip_prefix(':') {
            let mut words = chain.split(' ');
            let name = words.next()?;
            let entry = chains.entry(format!("table {table} chain {name}")).or_default();
            entry.is_base = name == "OUTPUT" && table != "nat" || name == "POSTROUTING" && table == "mangle";
            entry.drops_by_policy = words.next() == Some("DROP");
        } else if let Some(rule) = line.strip_prefix("-A ") {
            let words = words(rule);
            let (chain, rest) = words.split_first()?;
            let rule = read(rest, table, line, packet);
            chains.entry(format!("table {table} chain {chain}")).or_default().rules.push(rule);
        }
    }
    Some(chains)
}

/// Splits at blanks outside of quotes, in which a backslash takes the next character as it is.
fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut is_quoted = false;
    let mut characters = line.chars();
    while let Some(c) = characters.next() {
        let last = words.last_mut();
        match c {
            '"' => is_quoted = !is_quoted,
            '\\' if is_quoted => last.into_iter().for_each(|word| word.extend(characters.next())),
            ' ' if !is_quoted => words.push(String::new()),
            _ => last.into_iter().for_each(|word| word.push(c)),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

fn read(words: &[String], table: &str, line: &str, packet: &Packet<'_>) -> Rule {
    let mut fits = Some(true);
    let mut action = Action::Nothing;
    let mut is_negated = false;
    let mut words = words.iter().map(String::as_str);
    while let Some(option) = words.next() {
        if option == "!" {
            is_negated = true;
            continue;
        }
        let mut value = || words.next().unwrap_or_default();
        let holds = match option {
            "-d" | "--destination" => is_in(packet.to, value()),
            "-s" | "--source" => {
                let network = value();
                packet.from.and_then(|from| is_in(from, network))
            }
            "-p" => Some(matches!(value(), "tcp" | "6" | "all")),
            "-o" => {
                let name = value();
                packet.out.map(|out| is_interface(out, name))
            }
            // Nothing comes in by an interface.
            "-i" => {
                value();
                Some(false)
            }
            "--dport" => is_port(value(), packet.port),
            "--dports" => {
                let each: Vec<_> = value().split(',').map(|port| is_port(port, packet.port)).collect();
                if each.contains(&Some(true)) {
                    Some(true)
                } else if each.contains(&None) {
                    None
                } else {
                    Some(false)
                }
            }
            "--ctstate" | "--state" => Some(value().split(',').any(|state| state == "NEW")),
            "-m" | "--comment" | "--set-counters" => {
                value();
                continue;
            }
            "-j" | "-g" => {
                let target = value();
                let chain = || format!("table {table} chain {target}");
                action = match target {
                    "ACCEPT" => Action::Accept,
                    "DROP" | "REJECT" => Action::Block,
                    "RETURN" => Action::Return,
                    _ if option == "-g" => Action::Goto(chain()),
                    _ => Action::Jump(chain()),
                };
                // What follows are options of the target.
                break;
            }
            _ => {
                // An option that isn't known leaves it open, and so do its values.
                None
            }
        };
        let holds = if is_negated { holds.map(|holds| !holds) } else { holds };
        is_negated = false;
        fits = match (fits, holds) {
            (Some(false), _) | (_, Some(false)) => Some(false),
            (Some(true), Some(true)) => Some(true),
            _ => None,
        };
    }
    Rule { fits, action, text: format!("{table}: {line}") }
}

fn is_port(value: &str, port: Option<u16>) -> Option<bool> {
    let port = port?;
    match value.split_once(':') {
        Some((first, last)) => Some((first.parse().ok()?..=last.parse().ok()?).contains(&port)),
        None => Some(value.parse::<u16>().ok()? == port),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::firewall::{Verdict, judge};

    fn verdict(text: &str) -> Verdict {
        let packet = Packet {
            to: [198, 51, 100, 20].into(),
            from: Some([192, 0, 2, 10].into()),
            port: Some(8080),
            out: Some("eth0"),
        };
        judge(&chains(text, &packet).unwrap())
    }

    #[test]
    fn rules_are_gone_through_as_the_kernel_does() {
        let table = |policy: &str, rules: &str| {
            format!(
                "# Generated by iptables-save v1.8.9\n*filter\n:INPUT DROP [0:0]\n:OUTPUT {policy} [0:0]\n:web - [0:0]\n{rules}COMMIT\n"
            )
        };
        let blocked = |rule: &str| Verdict::Blocked(format!("filter: {rule}"));
        for (rule, is_blocked) in [
            (
                "-A OUTPUT -d 198.51.100.20/32 -p tcp -m tcp --dport 8080 -j REJECT --reject-with icmp-port-unreachable",
                true,
            ),
            ("-A OUTPUT -d 198.51.100.21/32 -p tcp -m tcp --dport 8080 -j DROP", false),
            ("-A OUTPUT ! -d 198.51.100.21/32 -j DROP", true),
            ("-A OUTPUT -p udp -j DROP", false),
            (
                "-A OUTPUT -p tcp -m tcp --dport 8000:9000 -m comment --comment \"no -j ACCEPT \\\" here\" -j DROP",
                true,
            ),
            ("-A OUTPUT -p tcp -m multiport --dports 80,8080 -j DROP", true),
            ("-A OUTPUT -p tcp -m multiport --dports 80,443 -j DROP", false),
            ("-A OUTPUT -o eth+ -m conntrack --ctstate NEW -j DROP", true),
            ("-A OUTPUT -m conntrack --ctstate RELATED,ESTABLISHED -j DROP", false),
            ("-A OUTPUT -s 10.0.0.0/8 -j DROP", false),
            ("-A INPUT -j DROP", false),
        ] {
            let expected = if is_blocked { blocked(rule) } else { Verdict::Passes };
            assert_eq!(verdict(&table("ACCEPT", &format!("{rule}\n"))), expected, "{rule}");
        }
        let of_user = "-A OUTPUT -m owner --uid-owner 1000 -j DROP";
        assert_eq!(
            verdict(&table("ACCEPT", &format!("{of_user}\n"))),
            Verdict::MayBeBlocked(format!("filter: {of_user}"))
        );
        let policy = Verdict::Blocked("the policy of table filter chain OUTPUT is drop".to_owned());
        assert_eq!(verdict(&table("DROP", "")), policy);
        assert_eq!(
            verdict(&table("DROP", "-A OUTPUT -j web\n-A web -d 198.51.100.0/24 -j ACCEPT\n")),
            Verdict::Passes
        );
        assert_eq!(verdict(&table("DROP", "-A OUTPUT -j web\n-A web -j RETURN\n-A web -j ACCEPT\n")), policy);
        assert_eq!(verdict(&table("DROP", "-A OUTPUT -g web\n-A OUTPUT -j ACCEPT\n")), policy);
        assert_eq!(verdict(""), Verdict::Passes);
    }
}
