//! The rule set of the kernel, as `nft -j list ruleset` prints it (libnftables-json(5)).

use std::collections::HashMap;

use serde_json::Value;

use crate::{Problem, Result};

/// The families whose tables see the packet: nftables calls them `ip`, `ip6`, `inet` and `netdev`.
pub(super) const FAMILIES: [&str; 4] = ["ip", "ip6", "inet", "netdev"];

/// All tables that see IP packets.
#[derive(Clone, Debug, Default)]
pub struct Ruleset {
    pub(super) tables: Vec<Table>,
}

/// A table with its chains and sets.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// The family: `ip`, `ip6`, `inet` or `netdev`.
    pub family: String,
    /// The name.
    pub name: String,
    /// Whether its chains are switched off. `None` where nft's output doesn't tell.
    pub(super) is_dormant: Option<bool>,
    /// Its chains, in the order of the output.
    pub chains: Vec<Chain>,
    /// The place of each chain among them, since there may be ten thousand.
    pub(super) places: HashMap<String, usize>,
    /// The elements of its named sets and maps; `None` for a set whose elements weren't listed.
    pub(super) sets: HashMap<String, Option<Vec<Value>>>,
}

/// A chain.
#[derive(Clone, Debug, Default)]
pub struct Chain {
    /// The name.
    pub name: String,
    /// The hook, for a base chain.
    pub hook: Option<Hook>,
    /// Its rules in their order.
    pub rules: Vec<Rule>,
}

/// The place in the kernel from which packets come to a base chain.
#[derive(Clone, Debug)]
pub struct Hook {
    /// `filter`, `nat` or `route`.
    pub kind: String,
    /// `prerouting`, `input`, `forward`, `ingress` and others.
    pub name: String,
    /// Its place among the chains of the hook: smaller ones come first.
    pub priority: i64,
    /// Whether packets pass that no rule has decided about.
    pub policy_accepts: bool,
    /// The devices of a chain at the hook `ingress`. Older versions of nft don't print them.
    pub(super) devices: Vec<String>,
}

/// A rule.
#[derive(Clone, Debug, Default)]
pub struct Rule {
    /// The number by which nft deletes it. Rules of iptables-legacy have none.
    pub handle: Option<u64>,
    /// The comment.
    pub comment: Option<String>,
    /// Its expressions and statements, in nft's JSON.
    pub expr: Vec<Value>,
    /// The line of iptables-save, where the rule was made by iptables.
    pub line: Option<String>,
}

impl Table {
    /// A table of the family `inet` with one chain, which filters packets to the machine.
    pub fn of_input(name: &str, rules: Vec<Rule>, policy_accepts: bool) -> Self {
        let hook = Hook {
            kind: "filter".to_owned(),
            name: "input".to_owned(),
            priority: 0,
            policy_accepts,
            devices: Vec::new(),
        };
        let chain = Chain { name: "input".to_owned(), hook: Some(hook), rules };
        Self {
            family: "inet".to_owned(),
            name: name.to_owned(),
            is_dormant: Some(false),
            chains: vec![chain],
            ..Self::default()
        }
    }
}

impl Ruleset {
    /// Reads the output of `nft -j list ruleset`.
    pub fn parse(text: &str) -> Result<Self> {
        let unexpected = || Problem::unexpected("nft -j list ruleset", text);
        let output: Value = serde_json::from_str(text).map_err(|_| unexpected())?;
        let objects = output.get("nftables").and_then(Value::as_array).ok_or_else(unexpected)?;
        let mut ruleset = Self::default();
        for object in objects.iter().filter_map(Value::as_object) {
            for (kind, body) in object {
                ruleset.add(kind, body);
            }
        }
        Ok(ruleset)
    }

    /// The tables that see IP packets, in nft's order.
    pub fn tables(&self) -> &[Table] {
        &self.tables
    }

    /// The table of this family and name.
    pub fn table(&self, family: &str, name: &str) -> Option<&Table> {
        self.tables.iter().find(|table| table.family == family && table.name == name)
    }

    /// The rules of a chain, to change them in a copy of the rule set.
    pub fn chain_mut(&mut self, family: &str, table: &str, chain: &str) -> Option<&mut Vec<Rule>> {
        let table = self.tables.iter_mut().find(|one| one.family == family && one.name == table)?;
        table.chains.iter_mut().find(|one| one.name == chain).map(|chain| &mut chain.rules)
    }

    /// The rule set with a table in place of the one that has its family and name.
    pub fn with_table(mut self, table: Table) -> Self {
        self.tables.retain(|known| known.family != table.family || known.name != table.name);
        self.tables.push(table);
        self
    }

    /// Whether a rule of the family holds what only iptables-save can show.
    pub(super) fn has_hidden(&self, family: &str) -> bool {
        let tables = self.tables.iter().filter(|table| table.family == family);
        let rules = tables.flat_map(|table| &table.chains).flat_map(|chain| &chain.rules);
        rules.flat_map(|rule| &rule.expr).any(|part| part.get("xt").is_some())
    }

    fn add(&mut self, kind: &str, body: &Value) {
        let word = |key: &str| body.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let family = word("family");
        if !FAMILIES.contains(&family.as_str()) {
            return;
        }
        if kind == "table" {
            let name = word("name");
            let is_dormant = dormant(body.get("flags"), &name);
            self.tables.push(Table { family, name, is_dormant, ..Table::default() });
            return;
        }
        let of = word("table");
        let Some(table) = self.tables.iter_mut().find(|table| table.family == family && table.name == of)
        else {
            return;
        };
        match kind {
            "chain" => {
                let hook = body.get("hook").and_then(Value::as_str).map(|name| Hook {
                    kind: word("type"),
                    name: name.to_owned(),
                    priority: body.get("prio").and_then(Value::as_i64).unwrap_or_default(),
                    policy_accepts: word("policy") != "drop",
                    devices: words(body.get("dev")),
                });
                table.places.insert(word("name"), table.chains.len());
                table.chains.push(Chain { name: word("name"), hook, rules: Vec::new() });
            }
            "set" | "map" => {
                // `nft -t` leaves elements out, and so does an empty set, which is read as one without elements.
                let elements = body.get("elem").and_then(Value::as_array).cloned();
                table.sets.insert(word("name"), Some(elements.unwrap_or_default()));
            }
            "rule" => {
                let name = word("chain");
                let rule = Rule {
                    handle: body.get("handle").and_then(Value::as_u64),
                    comment: body.get("comment").and_then(Value::as_str).map(str::to_owned),
                    expr: body.get("expr").and_then(Value::as_array).cloned().unwrap_or_default(),
                    line: None,
                };
                let index = table.places.get(&name).copied();
                if let Some(chain) = index.and_then(|index| table.chains.get_mut(index)) {
                    chain.rules.push(rule);
                }
            }
            _ => {}
        }
    }

    /// Forgets the elements of all sets, for output of `nft -t`, which doesn't list them.
    pub fn without_elements(mut self) -> Self {
        self.tables.iter_mut().flat_map(|table| table.sets.values_mut()).for_each(|set| *set = None);
        self
    }
}

/// nft 1.0.6 prints the table's name in place of a flag's name, so that a flag of another kind looks the same there.
fn dormant(flags: Option<&Value>, table: &str) -> Option<bool> {
    let flags = words(flags);
    if flags.iter().any(|flag| flag == "dormant") {
        return Some(true);
    }
    (!flags.iter().any(|flag| flag == table)).then_some(false)
}

/// A text, or the texts of a list.
fn words(value: Option<&Value>) -> Vec<String> {
    match value {
        Some(Value::String(one)) => vec![one.clone()],
        Some(Value::Array(many)) => many.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        _ => Vec::new(),
    }
}
