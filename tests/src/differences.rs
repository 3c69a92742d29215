//! Where two answers to the same call differ, and which of that is allowed, by a file that says why.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::Value;

/// What tells the items of a list apart.
const NAMES: [&str; 8] = ["service", "timer", "device", "interface", "id", "pid", "name", "resource"];

/// What may differ.
pub struct MayDiffer(Vec<Entry>);

struct Entry {
    /// `*` for all.
    tool: String,
    /// As in `data[ssh.service].pid`; a `*` stands for anything, and what is beneath a path is part of it.
    path: String,
    /// Not all runs see an answer with such a field.
    is_rare: bool,
    /// Whether an answer had such a field.
    seen: AtomicBool,
}

impl MayDiffer {
    /// Reads the list, which says why of each; `sometimes` says when answers have such a field, where not all runs see it.
    pub fn read(yaml: &str) -> Self {
        let entries: Vec<BTreeMap<String, String>> = serde_yaml::from_str(yaml).expect("a list of entries");
        let entry = |entry: BTreeMap<String, String>| {
            let names: Vec<_> = entry.keys().map(String::as_str).collect();
            let is_rare = entry.contains_key("sometimes");
            let known: &[&str] =
                if is_rare { &["path", "reason", "sometimes", "tool"] } else { &["path", "reason", "tool"] };
            assert_eq!(names, known, "{entry:?}");
            for why in ["reason", "sometimes"] {
                let is_said = |text: &String| text.split_whitespace().count() >= 3;
                assert!(entry.get(why).is_none_or(is_said), "{entry:?}: why?");
            }
            let (tool, path) = (entry["tool"].clone(), entry["path"].clone());
            Entry { tool, path, is_rare, seen: AtomicBool::default() }
        };
        Self(entries.into_iter().map(entry).collect())
    }

    /// What differs in two answers of this tool and may not, a line each. What may differ is of the same kind in both,
    /// where both have it.
    pub fn others(&self, tool: &str, one: &Value, other: &Value) -> Vec<String> {
        let mut all = Vec::new();
        self.compare(tool, "", Some(one), Some(other), &mut all);
        all
    }

    /// The entries that no answer had a field for.
    pub fn never_seen(&self) -> Vec<String> {
        let unseen = self.0.iter().filter(|entry| !entry.is_rare && !entry.seen.load(Ordering::Relaxed));
        unseen.map(|entry| format!("{}: {}", entry.tool, entry.path)).collect()
    }

    fn allows(&self, tool: &str, path: &str) -> bool {
        let covers = |entry: &&Entry| (entry.tool == "*" || entry.tool == tool) && fits(&entry.path, path);
        // All of them: who is covered twice is used by either.
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

/// The items of a list by what they are called, or else by their number.
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

/// Whether it is a text, a number, a list …
fn kind(value: &Value) -> std::mem::Discriminant<Value> {
    std::mem::discriminant(value)
}

/// Whether the pattern is this path. What is beneath is asked about only where it isn't.
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

    const LIST: &str = "
- {tool: '*', path: at, reason: it is a time}
- {tool: list, path: 'data[a*].since', reason: it began another time}
- {tool: list, path: 'data[gone]', reason: it comes and goes}
- {tool: list, path: busy, sometimes: something has to be, reason: it comes and goes}
";

    #[test]
    fn what_is_not_listed_may_not_differ() {
        let list = MayDiffer::read(LIST);
        let one = json!({"at": 1, "data": [{"name": "ab", "since": 1}, {"name": "gone"}], "same": [1, 2]});
        let other = json!({"at": 2, "data": [{"name": "ab", "since": 2}], "same": [1, 2]});
        assert_eq!(list.others("list", &one, &other), Vec::<String>::new());
        assert_eq!(list.never_seen(), Vec::<String>::new());
        let others = MayDiffer::read(LIST).others("other", &one, &other);
        assert_eq!(others, ["data[ab].since: 1 and 2", "data[gone]: {\"name\":\"gone\"} and not there"]);
    }

    #[test]
    fn what_may_differ_is_of_one_kind() {
        let list = MayDiffer::read(LIST);
        assert_eq!(list.others("x", &json!({"at": 1}), &json!({"at": 2})), Vec::<String>::new());
        assert_eq!(list.others("x", &json!({}), &json!({"at": 2})), Vec::<String>::new());
        assert_eq!(
            list.others("x", &json!({"at": 1}), &json!({"at": "2"})),
            ["at is of another kind: 1 and \"2\""]
        );
    }

    #[test]
    fn an_entry_that_nothing_is_like_is_told() {
        let list = MayDiffer::read(LIST);
        list.others("x", &json!({"at": 1}), &json!({"at": 1}));
        assert_eq!(list.never_seen(), ["list: data[a*].since", "list: data[gone]"]);
    }

    #[test]
    fn order_counts_where_items_have_no_names() {
        let list = MayDiffer::read(LIST);
        let others = list.others("x", &json!({"of": [1, 2]}), &json!({"of": [2, 1]}));
        assert_eq!(others, ["of[0000]: 1 and 2", "of[0001]: 2 and 1"]);
    }
}
