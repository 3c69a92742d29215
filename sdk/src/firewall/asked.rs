//! The arguments of a rule, checked and brought into the one form in which rules are listed.

use std::net::IpAddr;

use schemars::JsonSchema;
use serde::Deserialize;

use super::rule::{self, FirewallRule};
use crate::{CommandLine, Context, Module, Problem, Result, text};

const SERVICE: CommandLine = CommandLine::new("getent services <text>");

/// The longest comment in bytes that all firewalls keep: the kernel has 128 for it, with its end.
const LONGEST_COMMENT: usize = 120;

/// Asks for the command that knows the ports of services.
pub(super) fn granted(module: Module) -> Module {
    module.command(SERVICE.read("the port of a service that is named"))
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct RuleArgs {
    /// What to do
    action: Action,
    /// Seen from this machine
    direction: Direction,
    /// 443, 8000:8999, https or any
    port: Port,
    /// Default: any
    protocol: Option<Protocol>,
    /// CIDR it comes from
    source: Option<String>,
    /// CIDR it goes to
    destination: Option<String>,
    /// Text beside it
    comment: Option<String>,
}

// The words of the schema, without the descriptions that the rule's own types have.
#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Action {
    Allow,
    Deny,
    Reject,
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Direction {
    In,
    Out,
}

#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
enum Port {
    Number(i64),
    Text(String),
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Protocol {
    Tcp,
    Udp,
    Any,
}

impl RuleArgs {
    /// The same without the comment, which tells no rule from another one.
    pub(super) fn without_comment(self) -> Self {
        Self { comment: None, ..self }
    }

    /// The rule that was asked for.
    pub(super) fn checked(self, cx: &Context) -> Result<FirewallRule> {
        let source = network("source", self.source.as_deref())?;
        let destination = network("destination", self.destination.as_deref())?;
        if let (Some(source), Some(destination)) = (&source, &destination)
            && source.contains(':') != destination.contains(':')
        {
            let message = format!(
                "{source} and {destination} are of different families: expected two of IPv4 or two of IPv6"
            );
            return Err(Problem::validation("MIXED_FAMILIES", message));
        }
        let asked = match self.protocol {
            Some(Protocol::Tcp) => "tcp",
            Some(Protocol::Udp) => "udp",
            Some(Protocol::Any) | None => "any",
        };
        let (port, protocol) = match self.port {
            Port::Number(number) => (Some(port(&number.to_string())?.to_string()), asked.to_owned()),
            Port::Text(text) => ports(&text, asked, cx)?,
        };
        let action = match self.action {
            Action::Allow => rule::Action::Allow,
            Action::Deny => rule::Action::Deny,
            Action::Reject => rule::Action::Reject,
        };
        let direction = match self.direction {
            Direction::In => rule::Direction::In,
            Direction::Out => rule::Direction::Out,
        };
        let comment = self.comment.map(checked_comment).transpose()?.filter(|comment| !comment.is_empty());
        Ok(FirewallRule { action, direction, port, protocol, source, destination, comment })
    }
}

/// The port or the range as rules are listed, and the protocol.
fn ports(text: &str, protocol: &str, cx: &Context) -> Result<(Option<String>, String)> {
    let as_asked = |port: Option<String>| Ok((port, protocol.to_owned()));
    if text == "any" {
        return as_asked(None);
    }
    if let Some((first, last)) = text.split_once([':', '-']).filter(|(first, _)| is_number(first)) {
        let (first, last) = (port(first)?, port(last)?);
        return match first.cmp(&last) {
            std::cmp::Ordering::Less => as_asked(Some(format!("{first}:{last}"))),
            std::cmp::Ordering::Equal => as_asked(Some(first.to_string())),
            std::cmp::Ordering::Greater => Err(Problem::validation(
                "INVALID_PORT",
                format!("the range {first}:{last} is reversed: expected {last}:{first}"),
            )),
        };
    }
    let is_name = text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.len() <= 40
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.+".contains(&byte));
    if is_name {
        return service(text, protocol, cx);
    }
    as_asked(Some(port(text)?.to_string()))
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn port(text: &str) -> Result<u16> {
    let number = text.parse().ok().filter(|number| *number > 0 && is_number(text));
    number.ok_or_else(|| {
        let shown = text::excerpt(text, 60);
        let message = format!(
            "{shown:?} is no port: expected 1 to 65535, a range such as 8000:8999, a service's name, or any"
        );
        Problem::validation("INVALID_PORT", message)
    })
}

/// `getent services ssh` prints `ssh                   22/tcp`, and names behind it.
fn service(name: &str, protocol: &str, cx: &Context) -> Result<(Option<String>, String)> {
    let key = if protocol == "any" { name.to_owned() } else { format!("{name}/{protocol}") };
    let output = cx.run(SERVICE.with([key]))?;
    let text = output.text();
    let found = text.split_whitespace().nth(1).and_then(|word| word.split_once('/'));
    match found.filter(|(_, protocol)| ["tcp", "udp"].contains(protocol)) {
        Some((number, protocol)) => Ok((Some(port(number)?.to_string()), protocol.to_owned())),
        None => {
            let with = if protocol == "any" { String::new() } else { format!(" with {protocol}") };
            let message = format!("/etc/services has no {name}{with}: expected its port's number");
            Err(Problem::validation("UNKNOWN_SERVICE", message))
        }
    }
}

/// An address or a network in its usual form. A network of one address is that address.
fn network(name: &str, text: Option<&str>) -> Result<Option<String>> {
    let Some(text) = text.filter(|text| *text != "any") else { return Ok(None) };
    let invalid = |why: String| Err(Problem::validation("INVALID_ADDRESS", format!("{name}: {why}")));
    let (address, length) = match text.split_once('/') {
        Some((address, length)) => (address, Some(length)),
        None => (text, None),
    };
    let most = |address: &IpAddr| if address.is_ipv6() { 128u32 } else { 32 };
    let parsed = address.parse::<IpAddr>().ok();
    let length = match (&parsed, length) {
        (Some(address), None) => Some(most(address)),
        (Some(address), Some(length)) => {
            length.parse().ok().filter(|number| is_number(length) && *number <= most(address))
        }
        (None, _) => None,
    };
    let (Some(address), Some(length)) = (parsed, length) else {
        let shown = text::excerpt(text, 60);
        return invalid(format!(
            "{shown:?} is no address and no network: expected 192.0.2.7, 192.0.2.0/24, or such of IPv6"
        ));
    };
    if address != address.to_canonical() {
        return invalid(format!("{address} stands for {}: expected that", address.to_canonical()));
    }
    if length == 0 {
        return invalid(format!("{text} is every address of one family: leave it out for every address"));
    }
    let base = masked(address, length);
    if base != address {
        return invalid(format!(
            "{address}/{length} has bits behind the network's: expected {base}/{length}, or {address} alone"
        ));
    }
    Ok(Some(if length == most(&address) { address.to_string() } else { format!("{address}/{length}") }))
}

fn masked(address: IpAddr, length: u32) -> IpAddr {
    match address {
        IpAddr::V4(address) => {
            let mask = u32::MAX.checked_shl(32 - length).unwrap_or(0);
            IpAddr::from((address.to_bits() & mask).to_be_bytes())
        }
        IpAddr::V6(address) => {
            let mask = u128::MAX.checked_shl(128 - length).unwrap_or(0);
            IpAddr::from((address.to_bits() & mask).to_be_bytes())
        }
    }
}

fn checked_comment(comment: String) -> Result<String> {
    let invalid = |why: &str| Err(Problem::validation("INVALID_COMMENT", format!("comment: {why}")));
    if text::has_hidden(&comment) {
        return invalid("expected one line without control characters");
    }
    // ufw takes no ', nft no ", and both end where a backslash stands.
    if comment.contains(['\'', '"', '\\']) || comment.starts_with('-') {
        return invalid("expected a text without quotes and backslashes that doesn't begin with -");
    }
    if comment.len() > LONGEST_COMMENT {
        return invalid(&format!("{} bytes are too many: expected at most {LONGEST_COMMENT}", comment.len()));
    }
    Ok(comment.trim().to_owned())
}
