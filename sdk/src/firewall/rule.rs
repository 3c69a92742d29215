//! The unified rule: what all firewalls have in common. What a firewall's own rule says beyond that is shown as it is.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use super::ruleset::Rule;
use super::unified;

/// What happens to the packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    /// They pass.
    Allow,
    /// They are thrown away.
    Deny,
    /// They are refused with an answer.
    Reject,
}

/// The direction, seen from the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// To the machine.
    In,
    /// From the machine.
    Out,
}

/// A rule in the words that all firewalls share.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FirewallRule {
    /// What happens.
    pub action: Action,
    /// Whose packets.
    pub direction: Direction,
    /// A port or a range `8000:8999`. `None` stands for all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<String>,
    /// `tcp`, `udp` or `any`.
    pub protocol: String,
    /// The source as an address or a network. `None` stands for any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The destination. `None` stands for any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub destination: Option<String>,
    /// What somebody wrote about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
}

/// A rule of a firewall.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Listed {
    /// The rule, where the unified words say all of it.
    #[serde(flatten)]
    pub rule: Option<FirewallRule>,
    /// The firewall's own words, where they say more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raw: Option<String>,
    /// `ipv4` or `ipv6`, where the rule holds for one of them and its addresses don't tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub family: Option<&'static str>,
    /// The zone, or the table and the chain.
    #[serde(rename = "in", skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// The number of the rule in nftables.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub handle: Option<u64>,
    /// `runtime` or `permanent`, where the rule is only there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub only: Option<&'static str>,
}

impl Listed {
    /// A rule that the unified words express.
    pub fn of(rule: FirewallRule) -> Self {
        Self { rule: Some(rule), ..Self::default() }
    }

    /// A rule in the firewall's own words.
    pub fn raw(text: impl Into<String>) -> Self {
        Self { raw: Some(text.into()), ..Self::default() }
    }

    /// Whether it is this rule in both families, whatever its comment is.
    pub fn is(&self, rule: &FirewallRule) -> bool {
        let has_address = rule.source.is_some() || rule.destination.is_some();
        (self.family.is_none() || has_address) && self.rule.as_ref().is_some_and(|own| own.is_same(rule))
    }

    /// The rule in one line.
    pub(super) fn in_words(&self) -> String {
        let mut line = match &self.rule {
            Some(rule) => rule.in_words(),
            None => self.raw.clone().unwrap_or_default(),
        };
        for word in
            [&self.place, &self.family.map(str::to_owned), &self.only.map(|only| format!("{only} only"))]
        {
            line.extend(word.iter().map(|word| format!(" ({word})")));
        }
        line
    }
}

impl FirewallRule {
    /// Whether it is the same rule, whatever the comments are.
    pub fn is_same(&self, other: &Self) -> bool {
        let without = |rule: &Self| Self { comment: None, ..rule.clone() };
        without(self) == without(other)
    }

    /// Whether its addresses are of IPv6. `None` where it has none.
    pub fn is_v6(&self) -> Option<bool> {
        self.source.as_ref().or(self.destination.as_ref()).map(|address| address.contains(':'))
    }

    /// The first address of the source.
    pub fn first_source(&self) -> Option<IpAddr> {
        first_address(self.source.as_deref()?)
    }

    /// The first address of the destination.
    pub(super) fn first_destination(&self) -> Option<IpAddr> {
        first_address(self.destination.as_deref()?)
    }

    /// The rule as nft's JSON would show it in a table of the family `inet`.
    pub fn kernel_rule(&self) -> Rule {
        Rule { expr: unified::expressions(self), comment: self.comment.clone(), ..Rule::default() }
    }

    /// The rule in one line.
    pub fn in_words(&self) -> String {
        let action = match self.action {
            Action::Allow => "allow",
            Action::Deny => "deny",
            Action::Reject => "reject",
        };
        let direction = if self.direction == Direction::In { "in" } else { "out" };
        let mut line = format!("{action} {direction} {}", self.port.as_deref().unwrap_or("any"));
        if self.protocol != "any" {
            line += &format!("/{}", self.protocol);
        }
        for (word, value) in [("from", &self.source), ("to", &self.destination), ("#", &self.comment)] {
            line.extend(value.iter().map(|value| format!(" {word} {value}")));
        }
        line
    }
}

fn first_address(network: &str) -> Option<IpAddr> {
    network.split('/').next()?.parse().ok()
}
