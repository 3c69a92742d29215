//! Which way a packet takes through all tables: the kernel's walk over base chains, chains and rules. Where a match can't
//! be decided, the walk takes both ways, so that it matters only where they end differently.
//!
//! Whatever accepts a packet in one table, the base chains behind it see the packet as well; what drops it is final.

use serde::Serialize;
use serde_json::Value;

use super::expression::{self, State};
use super::packet::Packet;
use super::ruleset::{Chain, Hook, Rule, Ruleset, Table};
use super::text;
use super::value::{Subject, Truth};

/// The rules that one question may take. The largest rule sets of clusters have some ten thousand.
const MOST_RULES: usize = 200_000;
/// The kernel allows 16 chains within each other.
const MOST_JUMPS: usize = 20;
/// The ways that are followed at once where packets are sent to different destinations.
const MOST_WAYS: usize = 16;

/// The fate of the packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// It reaches the socket, or goes on to another machine.
    Accepted,
    /// It is thrown away without an answer.
    Dropped,
    /// It is refused with an answer.
    Rejected,
    /// A match decides that can't be evaluated.
    Unknown,
}

/// The rule, or the policy of a chain, that has decided.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Decision {
    /// The table with its family: `inet filter`.
    pub table: String,
    /// The chain.
    pub chain: String,
    /// The number of the rule in its chain's table. A policy has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub handle: Option<u64>,
    /// The rule, in nft's or iptables' words.
    pub rule: String,
}

impl Decision {
    fn is_policy(&self) -> bool {
        self.handle.is_none() && self.rule.starts_with("policy ")
    }
}

/// One possible end of the packet's way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct End {
    /// The packet's fate.
    pub verdict: Verdict,
    /// The last rule that decided; `None` where no base chain is in the way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<Decision>,
    /// The new destination, where a rule has changed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sent_to: Option<String>,
    /// The matches under which it comes to this end, which can't be evaluated. Empty for the end that is left otherwise.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub when: Vec<String>,
}

/// The answer to whether a packet gets in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The fate, or `Unknown` where the ends differ.
    pub verdict: Verdict,
    /// The ends, one for each fate and rule.
    pub ends: Vec<End>,
}

impl Ruleset {
    /// Evaluates the packet at the hooks `ingress`, `prerouting`, and `input` or, where its destination was changed to another
    /// machine, `forward`.
    pub fn evaluate(&self, packet: &Packet) -> Answer {
        let mut walk = Walk { ruleset: self, left: MOST_RULES, is_cut: false };
        let mut ends = Vec::new();
        let mut ways = vec![Way { state: State::new(packet), by: None, when: Vec::new() }];
        for hook in ["ingress", "prerouting", "input"] {
            ways = walk.hook(hook, ways, &mut ends);
        }
        let accepted = ways.into_iter().map(|way| way.ended(Verdict::Accepted));
        ends.extend(accepted.collect::<Vec<_>>());
        let mut kept: Vec<End> = Vec::new();
        for end in ends {
            let is_same = |known: &&mut End| {
                known.verdict == end.verdict && known.by == end.by && known.sent_to == end.sent_to
            };
            match kept.iter_mut().find(is_same) {
                Some(known) if known.when.len() > end.when.len() => known.when = end.when,
                Some(_) => {}
                None => kept.push(end),
            }
        }
        let passes = |end: &End| match end.verdict {
            Verdict::Accepted => Some(true),
            Verdict::Dropped | Verdict::Rejected => Some(false),
            Verdict::Unknown => None,
        };
        let first = kept.first().and_then(passes);
        let verdict = match first {
            Some(_) if kept.iter().all(|end| passes(end) == first) => {
                kept.first().map_or(Verdict::Unknown, |end| end.verdict)
            }
            _ => Verdict::Unknown,
        };
        let verdict = if walk.is_cut { Verdict::Unknown } else { verdict };
        Answer { verdict, ends: kept }
    }
}

/// A packet on its way, with the rule that accepted it last.
#[derive(Clone)]
struct Way {
    state: State,
    by: Option<Decision>,
    when: Vec<String>,
}

impl Way {
    fn ended(self, verdict: Verdict) -> End {
        let Self { state, by, when } = self;
        let sent_to = state.is_redirected.then(|| {
            let port = state.packet.port;
            match state.packet.destination {
                Some(std::net::IpAddr::V6(address)) => format!("[{address}]:{port}"),
                Some(address) => format!("{address}:{port}"),
                None => format!(":{port}"),
            }
        });
        End { verdict, by, sent_to, when }
    }
}

struct Walk<'a> {
    ruleset: &'a Ruleset,
    /// The number of rules that may still be followed.
    left: usize,
    /// Whether there were more ways than are followed.
    is_cut: bool,
}

/// A chain on the way, and how many chains have called it.
#[derive(Clone, Copy)]
struct At<'a> {
    table: &'a Table,
    chain: &'a Chain,
    depth: usize,
}

/// What the rules of a chain have led to so far.
#[derive(Default)]
struct Found {
    ends: Vec<(ChainEnd, Way)>,
    /// The state in which the packet may have left the chain for the one that called it.
    returned: Option<State>,
}

/// What may come of a chain.
struct Outcome {
    ends: Vec<(ChainEnd, Way)>,
    /// The state in which the packet may come back to the rule behind the jump.
    falls_through: Option<State>,
}

#[derive(Clone, Copy, PartialEq)]
enum ChainEnd {
    Accept,
    Final(Verdict),
}

/// A base chain with its table.
struct Base<'a> {
    table: &'a Table,
    chain: &'a Chain,
    hook: &'a Hook,
}

impl Base<'_> {
    /// The kernel calls all chains of type `nat` at a place of their own.
    fn place(&self) -> (i64, i64) {
        let place = match (self.hook.kind.as_str(), self.hook.name.as_str()) {
            ("nat", "prerouting") => -100,
            ("nat", "input") => 100,
            _ => self.hook.priority,
        };
        (place, self.hook.priority)
    }
}

impl<'a> Walk<'a> {
    fn hook(&mut self, name: &str, ways: Vec<Way>, ends: &mut Vec<End>) -> Vec<Way> {
        let mut passed: Vec<Way> = Vec::new();
        for way in ways {
            // A new destination is known behind the hook `prerouting`.
            let name = if name == "input" && way.state.is_forwarded { "forward" } else { name };
            let bases = self.bases(name, way.state.packet.is_v6);
            self.base_chains(&bases, way, ends, &mut passed);
        }
        passed
    }

    fn bases(&self, hook_name: &str, is_v6: bool) -> Vec<Base<'a>> {
        let family = if is_v6 { "ip6" } else { "ip" };
        let mut bases: Vec<Base<'a>> = Vec::new();
        for table in &self.ruleset.tables {
            let sees = [family, "inet"].contains(&table.family.as_str())
                || (table.family == "netdev" && hook_name == "ingress");
            if !sees || table.is_dormant == Some(true) {
                continue;
            }
            for chain in &table.chains {
                let hook = chain.hook.as_ref().filter(|hook| hook.name == hook_name);
                bases.extend(hook.map(|hook| Base { table, chain, hook }));
            }
        }
        bases.sort_by_key(Base::place);
        bases
    }

    fn base_chains(&mut self, bases: &[Base<'a>], way: Way, ends: &mut Vec<End>, passed: &mut Vec<Way>) {
        let Some((base, rest)) = bases.split_first() else {
            passed.push(way);
            return;
        };
        let mut ways = Vec::new();
        // What the machine sends to itself is tracked already when it arrives.
        let is_from_itself = way.state.packet.interface.as_deref() == Some("lo");
        // Only the first chain that changes the destination counts, and only where the connection is tracked.
        let is_done = base.hook.kind == "nat"
            && (way.state.is_tracked == Some(false)
                || (base.hook.name == "prerouting" && (way.state.is_redirected || is_from_itself)));
        let uncertain = self.uncertain(base, &way.state);
        if is_done || uncertain == Some(Truth::No) {
            ways.push(way);
        } else {
            let mut state = way.state.clone();
            state.is_before_tracking =
                !is_from_itself && (base.hook.name == "ingress" || base.place().0 < -200);
            let Outcome { ends: found, falls_through } =
                self.chain(At { table: base.table, chain: base.chain, depth: 0 }, state);
            let doubt = uncertain.map(|_| match base.hook.name.as_str() {
                "ingress" => format!("chain {} is one of the packet's interface", base.chain.name),
                _ => format!("table {} {} isn't dormant", base.table.family, base.table.name),
            });
            let policy = falls_through.map(|state| {
                let by = Decision {
                    table: table_name(base.table),
                    chain: base.chain.name.clone(),
                    handle: None,
                    rule: format!("policy {}", if base.hook.policy_accepts { "accept" } else { "drop" }),
                };
                let end = match base.hook.policy_accepts {
                    true => ChainEnd::Accept,
                    false => ChainEnd::Final(Verdict::Dropped),
                };
                (end, Way { state, by: Some(by), when: Vec::new() })
            });
            for (end, mut one) in found.into_iter().chain(policy) {
                one.when = way.when.iter().chain(&doubt).cloned().chain(one.when).collect();
                one.when.dedup();
                match end {
                    ChainEnd::Final(verdict) => ends.push(one.ended(verdict)),
                    ChainEnd::Accept => {
                        // A rule that accepted says more than a later policy, and a later rule more than an earlier one.
                        let filters = base.hook.kind == "filter"
                            && ["input", "forward"].contains(&base.hook.name.as_str());
                        let is_known = way.by.as_ref().is_some_and(|by| !by.is_policy());
                        if !filters || (is_known && one.by.as_ref().is_some_and(Decision::is_policy)) {
                            one.by.clone_from(&way.by);
                        }
                        self.is_cut |= !add_way(&mut ways, one);
                    }
                }
            }
            if doubt.is_some() {
                self.is_cut |= !add_way(&mut ways, way);
            }
        }
        for way in ways {
            self.base_chains(rest, way, ends, passed);
        }
    }

    /// Whether the chain concerns the packet, where that isn't certain.
    fn uncertain(&self, base: &Base, state: &State) -> Option<Truth> {
        if base.table.is_dormant.is_none() {
            return Some(Truth::Maybe);
        }
        if base.hook.name != "ingress" {
            return None;
        }
        match &state.packet.interface {
            Some(interface) if base.hook.devices.contains(interface) => None,
            Some(_) if !base.hook.devices.is_empty() => Some(Truth::No),
            _ => Some(Truth::Maybe),
        }
    }

    fn chain(&mut self, at: At<'a>, mut state: State) -> Outcome {
        let mut found = Found::default();
        let mut is_alive = true;
        for rule in &at.chain.rules {
            self.left = self.left.saturating_sub(1);
            if self.left == 0 || at.depth > MOST_JUMPS {
                let by = decision(at, rule);
                let when = vec!["there are more rules than are followed".to_owned()];
                let way = Way { state: state.clone(), by: Some(by), when };
                found.ends.push((ChainEnd::Final(Verdict::Unknown), way));
                is_alive = false;
                break;
            }
            if self.rule(at, rule, &mut state, &mut found) == Flow::Stop {
                is_alive = false;
                break;
            }
        }
        let falls_through = match (is_alive, found.returned) {
            (true, Some(other)) => {
                state.merge(&other);
                Some(state)
            }
            (true, None) => Some(state),
            (false, returned) => returned,
        };
        Outcome { ends: found.ends, falls_through }
    }

    fn rule(&mut self, at: At<'a>, rule: &'a Rule, state: &mut State, found: &mut Found) -> Flow {
        let mut doubts: Vec<String> = Vec::new();
        // What the rule itself changes holds behind it only where all of its matches hold.
        let mut changed = state.clone();
        let mut flow = Flow::Next;
        for part in &rule.expr {
            let verdicts = match effect(part, &changed, at.table) {
                Effect::Nothing => continue,
                Effect::Match(Truth::Yes) => continue,
                Effect::Match(Truth::No) => break,
                Effect::Match(Truth::Maybe) => {
                    doubts.push(text::statement(part));
                    continue;
                }
                Effect::Change(new) => {
                    changed = *new;
                    continue;
                }
                Effect::Verdicts(verdicts) => verdicts,
            };
            for Choice { truth, verdict, label } in verdicts {
                let mut when = doubts.clone();
                if truth == Truth::Maybe {
                    when.extend(label);
                }
                let is_certain = when.is_empty();
                let way = |state: State| Way { state, by: Some(decision(at, rule)), when: when.clone() };
                let stops = match verdict {
                    Chosen::Next => false,
                    Chosen::Accept(new) => {
                        found.ends.push((ChainEnd::Accept, way(*new)));
                        true
                    }
                    Chosen::Final(verdict) => {
                        found.ends.push((ChainEnd::Final(verdict), way(changed.clone())));
                        true
                    }
                    Chosen::Return => {
                        merge_into(&mut found.returned, &changed);
                        true
                    }
                    Chosen::Jump(target, is_goto) => {
                        let Some(chain) = at.table.chains.iter().find(|chain| chain.name == target) else {
                            continue;
                        };
                        let inner = self.chain(At { chain, depth: at.depth + 1, ..at }, changed.clone());
                        for (end, mut inside) in inner.ends {
                            inside.when.splice(0..0, when.iter().cloned());
                            found.ends.push((end, inside));
                        }
                        match inner.falls_through {
                            Some(behind) if is_goto => {
                                merge_into(&mut found.returned, &behind);
                                true
                            }
                            Some(behind) => {
                                match is_certain {
                                    true => changed = behind,
                                    false => changed.merge(&behind),
                                }
                                false
                            }
                            None => true,
                        }
                    }
                };
                if is_certain {
                    if stops {
                        flow = Flow::Stop;
                    }
                    break;
                }
            }
            break;
        }
        match doubts.is_empty() {
            true => *state = changed,
            false => state.merge(&changed),
        }
        flow
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Flow {
    Next,
    Stop,
}

/// What a part of a rule does.
enum Effect {
    Nothing,
    Match(Truth),
    Change(Box<State>),
    /// Verdicts, of which the first one that holds is taken.
    Verdicts(Vec<Choice>),
}

struct Choice {
    truth: Truth,
    verdict: Chosen,
    /// The condition in words, where it isn't certain.
    label: Option<String>,
}

enum Chosen {
    Next,
    Accept(Box<State>),
    Final(Verdict),
    Return,
    Jump(String, bool),
}

fn effect(part: &Value, state: &State, table: &Table) -> Effect {
    let Some((kind, body)) = part.as_object().and_then(|part| part.iter().next()) else {
        return Effect::Match(Truth::Maybe);
    };
    let certain = |verdict| Effect::Verdicts(vec![Choice { truth: Truth::Yes, verdict, label: None }]);
    match kind.as_str() {
        "match" => Effect::Match(expression::matches(body, state, table)),
        "vmap" => vmap(part, body, state, table),
        "mangle" => mangle(body, state, table),
        // Behind the tracking, it comes too late.
        "notrack" if !state.is_before_tracking => Effect::Nothing,
        "notrack" => changed(state, |new| new.is_tracked = Some(false)),
        "counter" | "log" | "last" | "ct helper" | "ct timeout" | "ct expectation" | "secmark" | "flow"
        | "dup" | "reset" | "tproxy" | "objref" => Effect::Nothing,
        // A statement that fills a set stops the rule where one that limits stands in it.
        "set" | "map" | "meter" => match body.get("stmt") {
            None => Effect::Nothing,
            Some(Value::Array(inner)) if inner.iter().all(is_counter) => Effect::Nothing,
            Some(_) => Effect::Match(Truth::Maybe),
        },
        "reject" => certain(Chosen::Final(Verdict::Rejected)),
        "dnat" | "redirect" => match translated(kind, body, state, table) {
            Some(new) => certain(Chosen::Accept(Box::new(new))),
            None => elsewhere(part),
        },
        "snat" | "masquerade" => certain(Chosen::Accept(Box::new(state.clone()))),
        // Another program decides, a proxy of the kernel answers, or nft doesn't show which target it is.
        "queue" | "synproxy" | "fwd" => elsewhere(part),
        "xt" if body.get("type").and_then(Value::as_str) != Some("match") => elsewhere(part),
        _ => match verdict(kind, body, state) {
            Some(chosen) => certain(chosen),
            None => Effect::Match(Truth::Maybe),
        },
    }
}

/// An end that is decided by something that isn't in the rule set.
fn elsewhere(part: &Value) -> Effect {
    let label = Some(text::statement(part));
    Effect::Verdicts(vec![Choice { truth: Truth::Maybe, verdict: Chosen::Final(Verdict::Unknown), label }])
}

fn is_counter(part: &Value) -> bool {
    ["counter", "last"].iter().any(|kind| part.get(kind).is_some()) || part.as_str() == Some("counter")
}

fn verdict(kind: &str, body: &Value, state: &State) -> Option<Chosen> {
    let target = || body.get("target").and_then(Value::as_str).unwrap_or_default().to_owned();
    Some(match kind {
        "accept" => Chosen::Accept(Box::new(state.clone())),
        "drop" => Chosen::Final(Verdict::Dropped),
        "continue" => Chosen::Next,
        "return" => Chosen::Return,
        "jump" => Chosen::Jump(target(), false),
        "goto" => Chosen::Jump(target(), true),
        _ => return None,
    })
}

/// The verdicts of a map: those of all keys that the packet may have.
fn vmap(part: &Value, body: &Value, state: &State, table: &Table) -> Effect {
    let null = Value::Null;
    let [key, data] = ["key", "data"].map(|name| body.get(name).unwrap_or(&null));
    let subject = expression::subject(key, state, table);
    if subject == Subject::Absent {
        return Effect::Match(Truth::No);
    }
    let Some(Some(pairs)) = expression::elements(data, table) else {
        // Without the elements, any verdict may come, or none.
        return elsewhere(part);
    };
    let mut choices = Vec::new();
    let mut default = None;
    for pair in pairs {
        let Some([known, value]) = pair.as_array().map(Vec::as_slice) else { continue };
        let Some((kind, body)) = value.as_object().and_then(|value| value.iter().next()) else { continue };
        let Some(verdict) = verdict(kind, body, state) else { continue };
        let truth = subject.is_in(known);
        if known.as_str() == Some("*") {
            default = Some(verdict);
        } else if truth != Truth::No {
            let label = Some(format!("{} {}", text::expression(key), text::expression(known)));
            choices.push(Choice { truth, verdict, label });
        }
    }
    choices.sort_by_key(|choice| choice.truth == Truth::Yes);
    choices.extend(default.map(|verdict| Choice { truth: Truth::Yes, verdict, label: None }));
    match choices.is_empty() {
        true => Effect::Match(Truth::No),
        false => Effect::Verdicts(choices),
    }
}

fn changed(state: &State, change: impl FnOnce(&mut State)) -> Effect {
    let mut new = state.clone();
    change(&mut new);
    Effect::Change(Box::new(new))
}

/// Marks are followed; what else a rule changes of a packet decides about no first packet.
fn mangle(body: &Value, state: &State, table: &Table) -> Effect {
    let Some(key) = body.get("key") else { return Effect::Nothing };
    let value = body.get("value").map_or(Subject::Unknown, |value| match value {
        Value::Object(_) => expression::subject(value, state, table),
        _ => expression::constant(value),
    });
    if value == Subject::Absent {
        return Effect::Match(Truth::No);
    }
    let is_mark =
        |of: &str| key.get(of).and_then(|key| key.get("key")).and_then(Value::as_str) == Some("mark");
    if is_mark("meta") {
        changed(state, |new| new.mark = value.exact())
    } else if is_mark("ct") && !state.is_before_tracking {
        changed(state, |new| new.ct_mark = value.exact())
    } else {
        Effect::Nothing
    }
}

/// The packet with its new destination. `None` where that depends.
fn translated(kind: &str, body: &Value, state: &State, table: &Table) -> Option<State> {
    let value = |key: &str| {
        body.get(key).map(|value| match value {
            Value::Object(_) => expression::subject(value, state, table),
            _ => expression::constant(value),
        })
    };
    let mut new = state.clone();
    new.is_redirected = true;
    // Ports and addresses may be ranges, and what comes out then depends on the kernel.
    if let Some(port) = value("port") {
        new.packet.port = u16::try_from(port.exact()?).ok()?;
    }
    if kind == "redirect" {
        return Some(new);
    }
    let Some(address) = value("addr") else { return Some(new) };
    let number = address.exact()?;
    let address: std::net::IpAddr = match address {
        Subject::Numbers(super::value::Kind::Ipv6, ..) => std::net::Ipv6Addr::from(number).into(),
        Subject::Numbers(super::value::Kind::Ipv4, ..) => {
            std::net::Ipv4Addr::from(u32::try_from(number).ok()?).into()
        }
        _ => return None,
    };
    new.is_forwarded = !new.packet.is_own(address);
    new.packet.destination = Some(address);
    Some(new)
}

fn table_name(table: &Table) -> String {
    format!("{} {}", table.family, table.name)
}

fn decision(at: At, rule: &Rule) -> Decision {
    Decision {
        table: table_name(at.table),
        chain: at.chain.name.clone(),
        handle: rule.handle,
        rule: text::rule(rule),
    }
}

fn merge_into(kept: &mut Option<State>, other: &State) {
    match kept {
        Some(kept) => kept.merge(other),
        None => *kept = Some(other.clone()),
    }
}

/// Adds a way, unless there are too many. Ways on which the packet is the same go on as one.
fn add_way(ways: &mut Vec<Way>, one: Way) -> bool {
    let is_same = |known: &Way| {
        known.state.packet == one.state.packet && known.state.is_redirected == one.state.is_redirected
    };
    let Some(index) = ways.iter().position(is_same) else {
        if ways.len() < MOST_WAYS {
            ways.push(one);
            return true;
        }
        return false;
    };
    // The way with the fewest conditions stays: it is taken where the others aren't.
    if let Some(known) = ways.get_mut(index) {
        known.state.merge(&one.state);
        if known.when.len() > one.when.len() {
            (known.by, known.when) = (one.by, one.when);
        }
    }
    true
}
