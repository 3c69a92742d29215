//! Finds the differences between two answers to the same call. Entries that give a reason say which differences are
//! allowed.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::Value;

use crate::Difference;

/// Members that tell the items of a list apart.
const NAMES: [&str; 8] = ["service", "timer", "device", "interface", "id", "pid", "name", "resource"];

/// The differences that are allowed.
pub struct MayDiffer(Vec<Entry>);

struct Entry {
    /// `*` for all.
    tool: String,
    difference: Difference,
    /// Whether an answer had such a part.
    seen: AtomicBool,
}

impl MayDiffer {
    /// Takes the name of a tool, or `*` for every tool, with what may differ in its answers.
    pub fn new<'a>(allowed: impl IntoIterator<Item = (&'a str, Difference)>) -> Self {
        let entry = |(tool, difference): (&str, Difference)| {
            for why in [Some(&difference.reason), difference.sometimes.as_ref()].into_iter().flatten() {
                assert!(why.split_whitespace().count() >= 3, "{tool}: {difference:?}: why?");
            }
            Entry { tool: tool.to_owned(), difference, seen: AtomicBool::default() }
        };
        Self(allowed.into_iter().map(entry).collect())
    }

    /// The differences of two answers of this tool that are not allowed, a line each. A part that may differ is of the same
    /// kind in both answers, where both have it.
    pub fn others(&self, tool: &str, one: &Value, other: &Value) -> Vec<String> {
        let mut all = Vec::new();
        self.compare(tool, "", Some(one), Some(other), &mut all);
        all
    }

    /// The entries that no answer has a part for, without those of which not every run sees one.
    pub fn never_seen(&self) -> Vec<String> {
        let is_unseen =
            |entry: &&Entry| entry.difference.sometimes.is_none() && !entry.seen.load(Ordering::Relaxed);
        self.0
            .iter()
            .filter(is_unseen)
            .map(|entry| format!("{}: {}", entry.tool, entry.difference.path))
            .collect()
    }

    fn allows(&self, tool: &str, path: &str) -> bool {
        let covers =
            |entry: &&Entry| (entry.tool == "*" || entry.tool == tool) && fits(&entry.difference.path, path);
        // Every entry that covers the path counts as seen.
        let covering: Vec<_> = self.0.iter().filter(covers).collect();
        covering.iter().for_each(|entry| entry.seen.store(true, Ordering::Relaxed));
        !covering.is_empty()
    }

    fn compare(
        &self,
        tool: &str,
        path: &str,
        one: Option<&Value>,
        other: Option<&Value>,
        all: &mut Vec<String>,
    ) {
        let told = |value: Option<&Value>| value.map_or("not there".to_owned(), Value::to_string);
        if self.allows(tool, path) {
            if let (Some(one), Some(other)) = (one, other)
                && kind(one) != kind(other)
            {
                all.push(format!("{path} is of another kind: {one} and {other}"));
            }
            return;
        }
        match (one, other) {
            (Some(Value::Object(one)), Some(Value::Object(other))) => {
                let mut names: Vec<_> = one.keys().chain(other.keys()).collect();
                names.sort();
                names.dedup();
                for name in names {
                    let beneath = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                    self.compare(tool, &beneath, one.get(name), other.get(name), all);
                }
            }
            (Some(Value::Array(one)), Some(Value::Array(other))) => {
                let (one, other) = (items(one), items(other));
                let mut names: Vec<_> = one.keys().chain(other.keys()).collect();
                names.sort();
                names.dedup();
                for name in names {
                    let beneath = format!("{path}[{name}]");
                    self.compare(tool, &beneath, one.get(name).copied(), other.get(name).copied(), all);
                }
            }
            (one, other) if one != other => all.push(format!("{path}: {} and {}", told(one), told(other))),
            _ => {}
        }
    }
}

/// The items of a list by their names, or by their numbers where not every item has a name of its own.
fn items(list: &[Value]) -> BTreeMap<String, &Value> {
    let name = |item: &Value| {
        let value = NAMES.iter().find_map(|name| item.get(name))?;
        Some(value.as_str().map_or_else(|| value.to_string(), str::to_owned))
    };
    let named: Option<BTreeMap<_, _>> = list.iter().map(|item| Some((name(item)?, item))).collect();
    match named {
        Some(named) if named.len() == list.len() => named,
        _ => list.iter().enumerate().map(|(number, item)| (format!("{number:04}"), item)).collect(),
    }
}

/// Tells a text from a number, a list and so on.
fn kind(value: &Value) -> std::mem::Discriminant<Value> {
    std::mem::discriminant(value)
}

/// Whether the pattern is this path. A path beneath one that fits is never asked about.
fn fits(pattern: &str, path: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| path.strip_prefix(first)) else { return false };
    let parts: Vec<_> = parts.collect();
    let Some((last, middle)) = parts.split_last() else { return rest.is_empty() };
    for part in middle {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn allowed() -> MayDiffer {
        let entry = |tool, path: &str, sometimes: Option<&str>| {
            let reason = "a test of this list".to_owned();
            (tool, Difference { path: path.to_owned(), reason, sometimes: sometimes.map(str::to_owned) })
        };
        MayDiffer::new([
            entry("*", "at", None),
            entry("list", "data[a*].since", None),
            entry("list", "data[gone]", None),
            entry("list", "busy", Some("something has to be")),
        ])
    }

    #[test]
    fn what_is_not_listed_may_not_differ() {
        let list = allowed();
        let one = json!({"at": 1, "data": [{"name": "ab", "since": 1}, {"name": "gone"}], "same": [1, 2]});
        let other = json!({"at": 2, "data": [{"name": "ab", "since": 2}], "same": [1, 2]});
        assert_eq!(list.others("list", &one, &other), Vec::<String>::new());
        assert_eq!(list.never_seen(), Vec::<String>::new());
        let others = allowed().others("other", &one, &other);
        assert_eq!(others, ["data[ab].since: 1 and 2", "data[gone]: {\"name\":\"gone\"} and not there"]);
    }

    #[test]
    fn what_may_differ_is_of_one_kind() {
        let list = allowed();
        assert_eq!(list.others("x", &json!({"at": 1}), &json!({"at": 2})), Vec::<String>::new());
        assert_eq!(list.others("x", &json!({}), &json!({"at": 2})), Vec::<String>::new());
        assert_eq!(
            list.others("x", &json!({"at": 1}), &json!({"at": "2"})),
            ["at is of another kind: 1 and \"2\""]
        );
    }

    #[test]
    fn an_entry_that_no_answer_is_like_is_told() {
        let list = allowed();
        list.others("x", &json!({"at": 1}), &json!({"at": 1}));
        assert_eq!(list.never_seen(), ["list: data[a*].since", "list: data[gone]"]);
    }

    #[test]
    fn order_counts_where_items_have_no_names() {
        let list = allowed();
        let others = list.others("x", &json!({"of": [1, 2]}), &json!({"of": [2, 1]}));
        assert_eq!(others, ["of[0000]: 1 and 2", "of[0001]: 2 and 1"]);
    }
}
