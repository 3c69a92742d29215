//! Rules of iptables, as `iptables-save` and `ip6tables-save` print them, in the form of nft's JSON. nft shows that such a
//! rule has a match of iptables' own, but not what it compares.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::ruleset::{Chain, Hook, Rule, Ruleset, Table};

/// A table of iptables-save: its name, the policies of its chains, and their rules.
struct Saved {
    name: String,
    /// Names of chains with `ACCEPT`, `DROP`, or `-` for a chain that isn't a base chain.
    chains: Vec<(String, String)>,
    /// The lines of each chain's rules.
    rules: HashMap<String, Vec<String>>,
}

impl Ruleset {
    /// Adds what iptables-save (for `ip`) or ip6tables-save (for `ip6`) says. Rules that nft shows in part are completed, and
    /// tables of iptables-legacy, which nft doesn't show at all, are added.
    pub fn with_saved(mut self, family: &str, text: &str) -> Self {
        // The newer programs work on nft's tables, and say so in the first line of each.
        let is_nft = text.lines().any(|line| line.starts_with('#') && line.contains("(nf_tables)"));
        for saved in saved(text) {
            let of_it = |table: &Table| is_nft && table.family == family && table.name == saved.name;
            let known = self.tables.iter().position(of_it);
            match known.and_then(|index| self.tables.get_mut(index)) {
                Some(known) => known.complete(&saved, family),
                // Without nft, iptables-save alone shows the table.
                None => self.tables.push(table(family, &saved)),
            }
        }
        self
    }
}

impl Table {
    fn complete(&mut self, saved: &Saved, family: &str) {
        for chain in &mut self.chains {
            let Some(lines) = saved.rules.get(&chain.name) else { continue };
            // A rule that was added in between would be taken for another one.
            if lines.len() != chain.rules.len() {
                continue;
            }
            for (rule, line) in chain.rules.iter_mut().zip(lines) {
                let read = read(line, family, saved);
                rule.expr = read.expr;
                rule.comment = rule.comment.take().or(read.comment);
                rule.line = read.line;
            }
        }
    }
}

fn table(family: &str, saved: &Saved) -> Table {
    let chain = |(name, policy): &(String, String)| Chain {
        name: name.clone(),
        hook: hook(&saved.name, name, policy),
        rules: saved.rules.get(name).into_iter().flatten().map(|line| read(line, family, saved)).collect(),
    };
    Table {
        family: family.to_owned(),
        name: saved.name.clone(),
        is_dormant: Some(false),
        chains: saved.chains.iter().map(chain).collect(),
        ..Table::default()
    }
}

/// The hooks of iptables' tables are fixed.
fn hook(table: &str, chain: &str, policy: &str) -> Option<Hook> {
    let is_late = ["INPUT", "POSTROUTING"].contains(&chain);
    let (kind, priority) = match table {
        "raw" => ("filter", -300),
        "mangle" => ("filter", -150),
        "nat" => ("nat", if is_late { 100 } else { -100 }),
        "security" => ("filter", 50),
        _ => ("filter", 0),
    };
    (policy != "-").then(|| Hook {
        kind: kind.to_owned(),
        name: chain.to_lowercase(),
        priority,
        policy_accepts: policy != "DROP",
        devices: Vec::new(),
    })
}

fn saved(text: &str) -> Vec<Saved> {
    let mut tables: Vec<Saved> = Vec::new();
    for line in text.lines() {
        if let Some(name) = line.strip_prefix('*') {
            tables.push(Saved { name: name.to_owned(), chains: Vec::new(), rules: HashMap::new() });
            continue;
        }
        let Some(table) = tables.last_mut() else { continue };
        let mut words = line.split(' ');
        if let Some(chain) = line.strip_prefix(':') {
            let (name, rest) = chain.split_once(' ').unwrap_or((chain, "-"));
            let policy = rest.split(' ').next().unwrap_or("-");
            table.chains.push((name.to_owned(), policy.to_owned()));
            table.rules.entry(name.to_owned()).or_default();
        } else if let (Some("-A"), Some(chain)) = (words.next(), words.next()) {
            table.rules.entry(chain.to_owned()).or_default().push(line.to_owned());
        }
    }
    tables
}

/// Splits a line as iptables-restore does: quotes hold blanks, and `\` keeps the next character.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let (mut is_quoted, mut is_escaped) = (false, false);
    for c in line.chars() {
        if is_escaped {
            word.get_or_insert_default().push(c);
            is_escaped = false;
        } else if c == '\\' {
            is_escaped = true;
        } else if c == '"' {
            is_quoted = !is_quoted;
            word.get_or_insert_default();
        } else if c == ' ' && !is_quoted {
            words.extend(word.take());
        } else {
            word.get_or_insert_default().push(c);
        }
    }
    words.extend(word);
    words
}

/// An option with its values, and whether a `!` stands in front of it.
struct Opt<'a> {
    name: &'a str,
    values: Vec<&'a str>,
    is_negated: bool,
}

impl Opt<'_> {
    fn value(&self) -> &str {
        self.values.first().copied().unwrap_or_default()
    }
}

fn options(words: &[String]) -> Vec<Opt<'_>> {
    let mut options: Vec<Opt> = Vec::new();
    let mut is_negated = false;
    for word in words {
        let takes_values =
            options.last().is_some_and(|last| last.name == "--comment" && last.values.is_empty());
        if word == "!" && !takes_values {
            is_negated = true;
        } else if word.starts_with('-') && word.len() > 1 && !takes_values {
            options.push(Opt { name: word, values: Vec::new(), is_negated });
            is_negated = false;
        } else if let Some(last) = options.last_mut() {
            last.values.push(word);
        }
    }
    options
}

/// Reads the line of a rule.
fn read(line: &str, family: &str, table: &Saved) -> Rule {
    let words = words(line);
    let options = options(&words);
    let mut rule = Rule { line: Some(line.to_owned()), ..Rule::default() };
    let mut protocol = "th".to_owned();
    let mut module = "";
    // Options of one module that have no translation are one match.
    let mut hidden: Vec<(&str, String)> = Vec::new();
    let mut target: Option<&Opt> = None;
    for option in &options {
        if target.is_some() {
            break;
        }
        match option.name {
            "-A" => {}
            "-j" | "-g" => target = Some(option),
            "-m" => {
                module = option.value();
                match module {
                    // Such a packet has the header, which an ordinary first packet hasn't.
                    "rt" | "frag" | "ah" | "hbh" | "dst" | "mh" => {
                        rule.expr.push(match_of(json!({"exthdr": {"name": module}}), json!(true), false))
                    }
                    // Its options only make it stricter.
                    "rpfilter" => {
                        let is_inverted = options.iter().any(|option| option.name == "--invert");
                        let fib = json!({"fib": {"result": "oif", "flags": ["saddr", "iif"]}});
                        rule.expr.push(match_of(fib, json!(!is_inverted), false));
                    }
                    _ => {}
                }
            }
            "--comment" => rule.comment = Some(option.value().to_owned()),
            _ if ["rt", "frag", "ah", "hbh", "dst", "mh", "rpfilter"].contains(&module) => {}
            _ => {
                if option.name == "-p" && !option.is_negated {
                    protocol = option.value().to_owned();
                }
                match translated(option, module, &protocol, family) {
                    Some(found) => rule.expr.push(found),
                    None => {
                        let sign = if option.is_negated { "! " } else { "" };
                        let text = format!("{sign}{} {}", option.name, option.values.join(" "));
                        match hidden.last_mut().filter(|(of, _)| *of == module) {
                            Some((_, known)) => *known = format!("{known} {}", text.trim()),
                            None => hidden.push((module, format!("-m {module} {}", text.trim()))),
                        }
                    }
                }
            }
        }
    }
    rule.expr.extend(hidden.into_iter().map(|(_, text)| json!({"xt": {"type": "match", "text": text}})));
    // A module without options, such as `-m socket`, matches by itself.
    let alone = |option: &&Opt, next: Option<&Opt>| {
        option.name == "-m"
            && ["socket", "cluster", "u32", "policy"].contains(&option.value())
            && next.is_none_or(|next| ["-j", "-g", "-m"].contains(&next.name))
    };
    for (index, option) in options.iter().enumerate() {
        if alone(&option, options.get(index + 1)) {
            rule.expr.push(json!({"xt": {"type": "match", "text": format!("-m {}", option.value())}}));
        }
    }
    if let Some(target) = target {
        let rest = options.iter().skip_while(|option| !std::ptr::eq(*option, target)).skip(1);
        rule.expr.push(verdict(target, &rest.collect::<Vec<_>>(), table));
    }
    rule
}

fn match_of(left: Value, right: Value, is_negated: bool) -> Value {
    json!({"match": {"op": if is_negated { "!=" } else { "==" }, "left": left, "right": right}})
}

fn translated(option: &Opt, module: &str, protocol: &str, family: &str) -> Option<Value> {
    let payload = |protocol: &str, field: &str| json!({"payload": {"protocol": protocol, "field": field}});
    let of = |left: Value, right: Value| Some(match_of(left, right, option.is_negated));
    let value = option.value();
    let ports = |field: &str| {
        let parts = value.split(',').map(port).collect::<Option<Vec<Value>>>()?;
        match parts.as_slice() {
            [one] => of(payload(protocol, field), one.clone()),
            many => of(payload(protocol, field), json!({"set": many})),
        }
    };
    match (option.name, module) {
        ("-s" | "-d", _) => {
            let field = if option.name == "-s" { "saddr" } else { "daddr" };
            of(payload(family, field), prefix(value)?)
        }
        ("-i" | "-o", _) => {
            let name = match value.strip_suffix('+') {
                Some(begin) => format!("{begin}*"),
                None => value.to_owned(),
            };
            of(json!({"meta": {"key": if option.name == "-i" { "iifname" } else { "oifname" }}}), json!(name))
        }
        ("-p", _) => of(json!({"meta": {"key": "l4proto"}}), json!(value)),
        ("--dport" | "--dports" | "--destination-ports", _) => ports("dport"),
        ("--sport" | "--sports" | "--source-ports", _) => ports("sport"),
        ("--tcp-flags", _) => {
            let [mask, flags] = option.values.as_slice() else { return None };
            let list = |text: &str| -> Value {
                text.to_lowercase().split(',').filter(|flag| *flag != "none").map(Value::from).collect()
            };
            let mask =
                if *mask == "ALL" { json!(["fin", "syn", "rst", "psh", "ack", "urg"]) } else { list(mask) };
            let flags =
                if *flags == "ALL" { json!(["fin", "syn", "rst", "psh", "ack", "urg"]) } else { list(flags) };
            of(json!({"&": [payload("tcp", "flags"), mask]}), json!({"|": flags}))
        }
        ("--icmp-type" | "--icmpv6-type", _) => {
            let kind = value.split('/').next().unwrap_or_default();
            let number: u64 = kind.parse().ok()?;
            // 255 stands for any type.
            let is_any = number == 255 && option.name == "--icmp-type";
            let field = payload(if option.name == "--icmp-type" { "icmp" } else { "icmpv6" }, "type");
            of(field, if is_any { json!({"range": [0, 255]}) } else { json!(number) })
        }
        ("--ctstate" | "--state", _) => {
            let states: Vec<Value> = value.to_lowercase().split(',').map(Value::from).collect();
            let is_known = |state: &Value| {
                ["new", "established", "related", "invalid", "untracked"].iter().any(|known| state == known)
            };
            let is_all = states.iter().all(is_known);
            is_all.then(|| of(json!({"ct": {"key": "state"}}), json!({"set": states})))?
        }
        ("--ctdir", _) => of(json!({"ct": {"key": "direction"}}), json!(value.to_lowercase())),
        ("--ctorigdstport", _) => {
            of(json!({"ct": {"key": "proto-dst", "dir": "original"}}), json!({"set": [port(value)?]}))
        }
        ("--ctorigdst" | "--ctorigsrc", _) => {
            let key = if option.name == "--ctorigdst" { "daddr" } else { "saddr" };
            of(json!({"ct": {"key": key, "dir": "original"}}), prefix(value)?)
        }
        ("--dst-type" | "--src-type", "addrtype") => {
            let flag = if option.name == "--dst-type" { "daddr" } else { "saddr" };
            let kinds: Vec<Value> = value.to_lowercase().split(',').map(Value::from).collect();
            // For IPv6, some kinds are asked for all at once, and `UNICAST` holds for the machine's own addresses as well.
            let is_one_of_ipv6 = kinds.len() == 1 && ["LOCAL", "MULTICAST"].contains(&value);
            if family == "ip6" && !is_one_of_ipv6 {
                return None;
            }
            of(json!({"fib": {"result": "type", "flags": [flag]}}), json!({"set": kinds}))
        }
        ("--mark", "mark" | "connmark") => {
            let key = if module == "mark" {
                json!({"meta": {"key": "mark"}})
            } else {
                json!({"ct": {"key": "mark"}})
            };
            match value.split_once('/') {
                Some((mark, mask)) => of(json!({"&": [key, hex(mask)?]}), json!(hex(mark)?)),
                None => of(key, json!(hex(value)?)),
            }
        }
        ("--src-range" | "--dst-range", "iprange") => {
            let (first, last) = value.split_once('-')?;
            let field = if option.name == "--src-range" { "saddr" } else { "daddr" };
            of(payload(family, field), json!({"range": [first, last]}))
        }
        ("--pkt-type", _) => {
            let kind = if value == "unicast" { "host" } else { value };
            of(json!({"meta": {"key": "pkttype"}}), json!(kind))
        }
        _ => None,
    }
}

/// `10.0.0.0/8`, `10.0.0.1/32` or an address alone.
fn prefix(text: &str) -> Option<Value> {
    let Some((address, length)) = text.split_once('/') else { return Some(json!(text)) };
    match length.parse::<u64>() {
        Ok(length) => Some(json!({"prefix": {"addr": address, "len": length}})),
        // A mask in dots, whose ones must be in front.
        Err(_) => {
            let mask = u32::from(length.parse::<std::net::Ipv4Addr>().ok()?);
            let is_prefix = mask.leading_ones() + mask.trailing_zeros() >= 32;
            is_prefix.then(|| json!({"prefix": {"addr": address, "len": mask.leading_ones()}}))
        }
    }
}

fn port(text: &str) -> Option<Value> {
    let number = |text: &str| text.parse::<u16>().ok();
    match text.split_once(':') {
        Some((first, last)) => {
            let (first, last) = (number(if first.is_empty() { "0" } else { first })?, number(last)?);
            Some(json!({"range": [first, last]}))
        }
        None => number(text).map(|port| json!(port)),
    }
}

fn hex(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

fn verdict(target: &Opt, options: &[&Opt], table: &Saved) -> Value {
    let name = target.value();
    if target.name == "-g" {
        return json!({"goto": {"target": name}});
    }
    if table.rules.contains_key(name) {
        return json!({"jump": {"target": name}});
    }
    let option = |name: &str| options.iter().find(|option| option.name == name).map(|option| option.value());
    let hidden = || json!({"xt": {"type": "target", "name": name}});
    match name {
        "ACCEPT" => json!({"accept": null}),
        "DROP" => json!({"drop": null}),
        "RETURN" => json!({"return": null}),
        "REJECT" => json!({"reject": {}}),
        "LOG" | "NFLOG" | "ULOG" | "AUDIT" | "TRACE" | "TEE" | "CHECKSUM" | "TCPMSS" | "TCPOPTSTRIP"
        | "CLASSIFY" | "DSCP" | "TOS" | "TTL" | "HL" | "SECMARK" | "CONNSECMARK" | "SET" | "RATEEST"
        | "LED" | "IDLETIMER" => {
            json!({"log": null})
        }
        "NOTRACK" => json!({"notrack": null}),
        "CT" if options.iter().any(|option| option.name == "--notrack") => json!({"notrack": null}),
        "CT" => json!({"log": null}),
        "MARK" => {
            let mark = option("--set-xmark").and_then(|value| value.split_once('/'));
            let known = mark.filter(|(_, mask)| *mask == "0xffffffff").and_then(|(mark, _)| hex(mark));
            let value = known.map_or(json!({"xt": "mark"}), |mark| json!(mark));
            json!({"mangle": {"key": {"meta": {"key": "mark"}}, "value": value}})
        }
        "CONNMARK" => {
            let key =
                if options.iter().any(|option| option.name == "--restore-mark") { "meta" } else { "ct" };
            json!({"mangle": {"key": {(key): {"key": "mark"}}, "value": {"xt": "mark"}}})
        }
        "SNAT" | "MASQUERADE" => json!({"masquerade": null}),
        "REDIRECT" => match option("--to-ports").map(|port| port.parse::<u16>()) {
            Some(Ok(port)) => json!({"redirect": {"port": port}}),
            None => json!({"redirect": {}}),
            Some(Err(_)) => hidden(),
        },
        "DNAT" => option("--to-destination").and_then(destination).unwrap_or_else(hidden),
        "NFQUEUE" | "QUEUE" => json!({"queue": {}}),
        _ => hidden(),
    }
}

/// `10.0.0.2`, `10.0.0.2:80`, `[2001:db8::1]:80` or `:80`.
fn destination(text: &str) -> Option<Value> {
    if text.parse::<std::net::IpAddr>().is_ok() {
        return Some(json!({"dnat": {"addr": text}}));
    }
    let (address, port) = match text.rsplit_once(':') {
        Some((address, port)) => (address.trim_matches(['[', ']']), Some(port.parse::<u16>().ok()?)),
        None => (text.trim_matches(['[', ']']), None),
    };
    let mut to = json!({});
    if !address.is_empty() {
        address.parse::<std::net::IpAddr>().ok()?;
        to["addr"] = json!(address);
    }
    if let Some(port) = port {
        to["port"] = json!(port);
    }
    Some(json!({"dnat": to}))
}
