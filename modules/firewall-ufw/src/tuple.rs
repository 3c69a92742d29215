//! ufw's rules in its own file, where a comment stands before the lines of each rule:
//! `### tuple ### ACTION PROTOCOL PORT DESTINATION PORT SOURCE [PROFILE PROFILE] DIRECTION [comment=HEX]`.

use linux_sysadmin_sdk::firewall::{Action, Direction, FirewallRule, Listed};

/// The rules in the text of `user.rules` or `user6.rules`.
pub(crate) fn rules(text: &str) -> Vec<Listed> {
    text.lines().filter_map(|line| line.strip_prefix("### tuple ### ")).filter_map(listed).collect()
}

/// A rule as ufw keeps it.
struct Tuple<'a> {
    action: &'a str,
    /// `log` or `log-all`.
    log: Option<&'a str>,
    is_route: bool,
    protocol: &'a str,
    port: &'a str,
    destination: Option<&'a str>,
    source_port: &'a str,
    source: Option<&'a str>,
    /// The profiles of the destination and of the source.
    profiles: [Option<String>; 2],
    /// `in`, `out`, `in_eth0` or `in_eth0!out_eth1`.
    direction: &'a str,
}

fn listed(line: &str) -> Option<Listed> {
    let (line, comment) = match line.split_once(" comment=") {
        Some((line, comment)) => (line, Some(decoded(comment.trim()))),
        None => (line, None),
    };
    let words: Vec<&str> = line.split_whitespace().collect();
    let (first, rest) = words.split_first()?;
    let &[protocol, port, destination, source_port, source, ref rest @ ..] = rest else { return None };
    let (profiles, direction) = match rest {
        [] => ([None, None], "in"),
        [direction] => ([None, None], *direction),
        [to, from] => ([profile(to), profile(from)], "in"),
        [to, from, direction] => ([profile(to), profile(from)], *direction),
        _ => return None,
    };
    let (is_route, action) = match first.strip_prefix("route:") {
        Some(action) => (true, action),
        None => (false, *first),
    };
    let (action, log) = match action.split_once('_') {
        Some((action, log)) => (action, Some(log)),
        None => (action, None),
    };
    let tuple = Tuple {
        action,
        log,
        is_route,
        protocol,
        port,
        destination: address(destination),
        source_port,
        source: address(source),
        profiles,
        direction,
    };
    Some(match tuple.unified(comment.clone()) {
        Some(rule) => Listed::of(rule),
        None => Listed::raw(tuple.command(comment)),
    })
}

impl Tuple<'_> {
    /// The rule in unified words, where they say all of it.
    fn unified(&self, comment: Option<String>) -> Option<FirewallRule> {
        let action = match self.action {
            "allow" => Action::Allow,
            "deny" => Action::Deny,
            "reject" => Action::Reject,
            _ => return None,
        };
        let direction = match self.direction {
            "in" => Direction::In,
            "out" => Direction::Out,
            _ => return None,
        };
        let is_more = self.is_route
            || self.log.is_some()
            || self.source_port != "any"
            || self.port.contains(',')
            || self.profiles.iter().any(Option::is_some)
            || !["tcp", "udp", "any"].contains(&self.protocol);
        (!is_more).then(|| FirewallRule {
            action,
            direction,
            port: (self.port != "any").then(|| self.port.to_owned()),
            protocol: self.protocol.to_owned(),
            source: self.source.map(str::to_owned),
            destination: self.destination.map(str::to_owned),
            comment,
        })
    }

    /// The rule as ufw's command line takes it.
    fn command(&self, comment: Option<String>) -> String {
        let mut words = String::new();
        if self.is_route {
            words += "route ";
        }
        words += self.action;
        for way in self.direction.split('!') {
            words += &match way.split_once('_') {
                Some((direction, interface)) => format!(" {direction} on {interface}"),
                None => format!(" {way}"),
            };
        }
        words.extend(self.log.map(|log| format!(" {log}")));
        if self.protocol != "any" && self.profiles.iter().all(Option::is_none) {
            words += &format!(" proto {}", self.protocol);
        }
        let [to, from] = &self.profiles;
        for (word, address, port, profile) in
            [("from", self.source, self.source_port, from), ("to", self.destination, self.port, to)]
        {
            words += &format!(" {word} {}", address.unwrap_or("any"));
            match profile {
                Some(name) => words += &format!(" app {name:?}"),
                None if port != "any" => words += &format!(" port {port}"),
                None => {}
            }
        }
        words.extend(comment.map(|comment| format!(" comment {comment:?}")));
        words
    }
}

/// True if a command line names an address, which tells the family.
pub(crate) fn has_address(command: &str) -> bool {
    !(command.contains(" from any") && command.contains(" to any"))
}

fn address(text: &str) -> Option<&str> {
    (!["0.0.0.0/0", "::/0", "any"].contains(&text)).then_some(text)
}

/// `-` stands for none, and `%20` for a blank.
fn profile(text: &str) -> Option<String> {
    (text != "-").then(|| text.replace("%20", " "))
}

/// A comment is kept as the digits of its bytes.
fn decoded(digits: &str) -> String {
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    let bytes: Option<Vec<u8>> = digits.as_bytes().chunks(2).map(byte).collect();
    match bytes {
        Some(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        None => digits.to_owned(),
    }
}
