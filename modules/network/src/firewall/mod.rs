//! Whether this machine's own packet filter lets a packet out: its rules are gone through as the kernel does.
//!
//! What can't be told from the rules alone, such as a match on the user, makes an answer uncertain, and never certain.

mod iptables;
mod nftables;

use std::collections::BTreeMap;
use std::net::IpAddr;

use linux_sysadmin_sdk::{Output, Privilege, prelude::*};

use crate::probe::PROGRAM_NOT_FOUND;

const NFT: CommandLine = CommandLine::new("nft --json list ruleset");
const SAVE_4: CommandLine = CommandLine::new("iptables-save");
const SAVE_6: CommandLine = CommandLine::new("ip6tables-save");

/// Chains may call each other. The kernel allows 16 levels.
const DEEPEST: u8 = 16;

/// The first packet of a connection over TCP.
pub(crate) struct Packet<'a> {
    pub(crate) to: IpAddr,
    pub(crate) from: Option<IpAddr>,
    pub(crate) port: Option<u16>,
    pub(crate) out: Option<&'a str>,
}

/// What becomes of a packet.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Verdict {
    /// No rule stops it.
    Passes,
    /// This rule stops it.
    Blocked(String),
    /// This rule may stop it, and it can't be told from the rules alone.
    MayBeBlocked(String),
    /// The reason why the rules aren't known.
    Unknown(String),
}

/// What a rule does with the packets that it matches.
#[derive(Clone, Debug, PartialEq)]
enum Action {
    Accept,
    Block,
    Jump(String),
    Goto(String),
    Return,
    /// It counts or logs them, and the next rule is asked.
    Nothing,
}

struct Rule {
    /// Whether it matches the packet. None where that can't be told.
    fits: Option<bool>,
    action: Action,
    text: String,
}

#[derive(Default)]
struct Chain {
    /// The kernel asks it about every packet that leaves.
    is_base: bool,
    drops_by_policy: bool,
    rules: Vec<Rule>,
}

/// The chains by their names, which are those of their tables and their own.
type Chains = BTreeMap<String, Chain>;

pub(crate) fn grants() -> [CommandGrant; 3] {
    [NFT, SAVE_4, SAVE_6]
        .map(|line| line.read("whether a rule of this machine stops a packet").as_root_if_available())
}

/// Goes through the rules of nftables and of iptables. Those of iptables are read by themselves, because nft doesn't show what
/// their extensions match.
pub(crate) fn verdict(packet: &Packet<'_>, cx: &Context) -> Verdict {
    let save = if packet.to.is_ipv4() { SAVE_4 } else { SAVE_6 };
    let [nft, save] =
        cx.run_each([NFT, save].map(|line| line.command().privilege(Privilege::RootIfAvailable)));
    let mut verdicts = Vec::new();
    let mut unread = Vec::new();
    for (name, output, parse) in [
        ("nft", nft, nftables::chains as fn(&str, &Packet<'_>) -> Option<Chains>),
        ("iptables", save, iptables::chains),
    ] {
        match read(output, |text| parse(text, packet)) {
            Ok(chains) => verdicts.push(judge(&chains)),
            Err(Some(reason)) => unread.push(format!("{name}: {reason}")),
            Err(None) => {}
        }
    }
    let blocked = verdicts.iter().position(|verdict| matches!(verdict, Verdict::Blocked(_)));
    let maybe = || verdicts.iter().position(|verdict| matches!(verdict, Verdict::MayBeBlocked(_)));
    match blocked.or_else(maybe) {
        Some(at) => verdicts.swap_remove(at),
        None if !unread.is_empty() => Verdict::Unknown(unread.join("; ")),
        None => Verdict::Passes,
    }
}

/// The chains in an output, or the reason why they aren't known. A program that isn't there has no rules.
fn read(
    output: Result<Output>,
    parse: impl Fn(&str) -> Option<Chains>,
) -> std::result::Result<Chains, Option<String>> {
    let output = match output {
        Ok(output) => output,
        Err(problem) if problem.code == PROGRAM_NOT_FOUND => return Err(None),
        Err(problem) => return Err(Some(problem.message)),
    };
    let output = output.success("the program").map_err(|problem| {
        let is_refused = ["not permitted", "Permission denied", "must be root"]
            .iter()
            .any(|words| problem.message.contains(words));
        Some(if is_refused { "only root can read the rules".to_owned() } else { problem.message })
    })?;
    parse(&output.text()).ok_or_else(|| Some("its rules aren't in the expected form".to_owned()))
}

/// Asks each chain that the kernel asks. A packet has to pass all of them.
fn judge(chains: &Chains) -> Verdict {
    let mut possible = None;
    for (name, chain) in chains.iter().filter(|(_, chain)| chain.is_base) {
        let mut walk = Walk { chains, possible: None, may_be_accepted: false };
        let end = walk.through(chain, 0);
        let blocked_by = match end {
            End::Blocked(text) => Some(text),
            End::Through if chain.drops_by_policy => Some(format!("the policy of {name} is drop")),
            _ => None,
        };
        match blocked_by {
            Some(text) if !walk.may_be_accepted => return Verdict::Blocked(text),
            Some(text) => possible = possible.or(Some(text)),
            None => possible = possible.or(walk.possible),
        }
    }
    possible.map_or(Verdict::Passes, Verdict::MayBeBlocked)
}

enum End {
    Accepted,
    Blocked(String),
    Through,
}

struct Walk<'a> {
    chains: &'a Chains,
    /// A rule that blocks the packet if it matches.
    possible: Option<String>,
    /// A rule that may match would have let it pass.
    may_be_accepted: bool,
}

impl Walk<'_> {
    fn through(&mut self, chain: &Chain, depth: u8) -> End {
        if depth > DEEPEST {
            return End::Through;
        }
        for rule in &chain.rules {
            let is_certain = match rule.fits {
                Some(false) => continue,
                Some(true) => true,
                None => false,
            };
            match &rule.action {
                Action::Nothing => {}
                Action::Accept if is_certain => return End::Accepted,
                Action::Accept => self.may_be_accepted = true,
                Action::Block if is_certain => return End::Blocked(rule.text.clone()),
                Action::Block => self.possible = self.possible.take().or_else(|| Some(rule.text.clone())),
                Action::Return if is_certain => return End::Through,
                Action::Return => self.may_be_accepted = true,
                Action::Jump(name) | Action::Goto(name) => {
                    let Some(next) = self.chains.get(name) else { continue };
                    let chains = self.chains;
                    let end = Walk { chains, possible: None, may_be_accepted: false };
                    let (end, inner) = end.into_end(next, depth);
                    self.may_be_accepted |=
                        inner.may_be_accepted || !is_certain && matches!(end, End::Accepted);
                    self.possible = self.possible.take().or(inner.possible);
                    match end {
                        End::Through if is_certain && matches!(rule.action, Action::Goto(_)) => {
                            return End::Through;
                        }
                        End::Through => {}
                        end if is_certain => return end,
                        End::Blocked(text) => self.possible = self.possible.take().or(Some(text)),
                        End::Accepted => {}
                    }
                }
            }
        }
        End::Through
    }

    fn into_end(mut self, chain: &Chain, depth: u8) -> (End, Self) {
        let end = self.through(chain, depth + 1);
        (end, self)
    }
}

/// Says whether an address is in a network, given as `192.0.2.0/24` or as an address. None where it can't be read.
fn is_in(address: IpAddr, network: &str) -> Option<bool> {
    let (base, length) =
        network.split_once('/').map_or((network, None), |(base, length)| (base, Some(length)));
    let base: IpAddr = base.parse().ok()?;
    let (own, base, width) = match (address, base) {
        (IpAddr::V4(own), IpAddr::V4(base)) => (u128::from(own.to_bits()), u128::from(base.to_bits()), 32),
        (IpAddr::V6(own), IpAddr::V6(base)) => (own.to_bits(), base.to_bits(), 128),
        _ => return Some(false),
    };
    let length: u32 = length.map_or(Some(width), |length| length.parse().ok())?;
    let shift = width.checked_sub(length)?;
    Some(own.checked_shr(shift).unwrap_or(0) == base.checked_shr(shift).unwrap_or(0))
}

/// Says whether an interface has this name, in which a `*` or a `+` at the end stands for any rest.
fn is_interface(own: &str, pattern: &str) -> bool {
    match pattern.strip_suffix(['*', '+']) {
        Some(begin) => own.starts_with(begin),
        None => own == pattern,
    }
}
