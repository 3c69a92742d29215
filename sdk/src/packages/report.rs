//! Operations in answers, in messages, and in the summary of a plan.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::types::{Operation, Request, Simulated, Verb};
use crate::text;

/// The end of a message that says what has changed; empty where nothing has.
pub(super) fn changes_text(operations: &[Operation]) -> String {
    if operations.is_empty() {
        return String::new();
    }
    let done: Vec<_> =
        operations.iter().map(|done| format!("{} {}", past_participle(done.verb), done.versions())).collect();
    format!("; changes in the package database: {}", done.join(", "))
}

/// The plan's summary, one sentence in the imperative.
pub(super) fn summary(request: &Request, simulated: &Simulated) -> String {
    let count = |verb: Verb| simulated.operations.iter().filter(|operation| operation.verb == verb).count();
    let named = |names: &[String]| {
        let versions: Vec<_> = names
            .iter()
            .map(|name| {
                let found = simulated.operations.iter().find(|operation| operation.name == *name);
                found.map_or(name.clone(), Operation::versions)
            })
            .collect();
        text::list(&versions, 10)
    };
    let (head, asked) = match request {
        Request::Install(names) => (format!("Install {}", named(names)), names.len()),
        Request::Reinstall(names) => (format!("Install anew {}", named(names)), names.len()),
        Request::Remove(names) => (format!("Remove {}", named(names)), names.len()),
        Request::Purge(names) => (format!("Purge {}", named(names)), names.len()),
        Request::Update(names) => (format!("Update {}", named(names)), names.len()),
        Request::UpdateAll => (format!("Update {} packages", count(Verb::Upgrade)), count(Verb::Upgrade)),
        Request::Refresh => ("Read the package repositories anew".to_owned(), 0),
        Request::Version(name, version) => {
            let found = simulated.operations.iter().find(|operation| operation.name == *name);
            let from = found.map_or("", |operation| operation.from.as_str());
            (format!("Take {name} from {from} to {version}"), 1)
        }
        Request::Undo(id) => (format!("Undo transaction {id} of the package manager"), 0),
    };
    let others = simulated.operations.len().saturating_sub(asked);
    let verbs = [Verb::Install, Verb::Upgrade, Verb::Downgrade, Verb::Reinstall, Verb::Remove, Verb::Purge];
    if others == 0 {
        return head;
    }
    let counts = verbs.map(|verb| (verb.name(), count(verb))).into_iter().filter(|(_, count)| *count > 0);
    let counts: Vec<_> = counts.map(|(verb, count)| format!("{verb} {count}")).collect();
    format!("{head} (packages in all: {})", counts.join(", "))
}

/// The data of a dry run's answer.
pub(super) fn dry_run_answer(request: &Request, simulated: &Simulated) -> Value {
    let mut data = by_verb(&simulated.operations, |verb| match verb {
        Verb::Install => "would_install",
        Verb::Upgrade => "would_upgrade",
        Verb::Downgrade => "would_downgrade",
        Verb::Reinstall => "would_reinstall",
        Verb::Remove => "would_remove",
        Verb::Purge => "would_purge",
    });
    // A few bytes less are no minus zero.
    let mb = |bytes: f64| json!((bytes / 1e4).round() / 100.0 + 0.0);
    let brings = simulated.operations.iter().any(|operation| !operation.is_removal());
    if let Some(bytes) = simulated.download_bytes.filter(|_| brings) {
        data.insert("would_download_mb".to_owned(), mb(bytes as f64));
    }
    if let Some(bytes) = simulated.disk_bytes {
        data.insert("would_require_disk_mb".to_owned(), mb(bytes as f64));
    }
    if let Request::Install(names) | Request::Reinstall(names) = request {
        let is_dependency =
            |operation: &&Operation| !operation.is_removal() && !names.contains(&operation.name);
        let count = simulated.operations.iter().filter(is_dependency).count();
        data.insert("dependency_count".to_owned(), json!(count));
    }
    data.extend(simulation_extras(simulated));
    Value::Object(data)
}

/// The lists that a simulation gives besides its operations, by the keys of the answer.
pub(super) fn simulation_extras(simulated: &Simulated) -> Vec<(String, Value)> {
    let lists = [("held_back", &simulated.held_back), ("no_longer_needed", &simulated.no_longer_needed)];
    let lists = lists.into_iter().filter(|(_, list)| !list.is_empty());
    lists.map(|(key, list)| (key.to_owned(), json!(list))).collect()
}

/// Operations grouped by their verbs, as `{"upgraded": [{"name": "lab-hello", "from": "1.0", "version": "2.0"}]}`.
pub(super) fn by_verb(operations: &[Operation], word: fn(Verb) -> &'static str) -> Map<String, Value> {
    let mut groups: BTreeMap<Verb, Vec<Value>> = BTreeMap::new();
    for operation in operations {
        let mut item = Map::new();
        item.insert("name".to_owned(), json!(operation.name));
        let (from, to) = (operation.from.as_str(), operation.to.as_str());
        let (from, version) = if to.is_empty() { ("", from) } else { (from, to) };
        if !from.is_empty() && from != version {
            item.insert("from".to_owned(), json!(from));
        }
        if !version.is_empty() {
            item.insert("version".to_owned(), json!(version));
        }
        groups.entry(operation.verb).or_default().push(Value::Object(item));
    }
    groups.into_iter().map(|(verb, items)| (word(verb).to_owned(), Value::Array(items))).collect()
}

pub(super) fn past_participle(verb: Verb) -> &'static str {
    match verb {
        Verb::Install => "installed",
        Verb::Upgrade => "upgraded",
        Verb::Downgrade => "downgraded",
        Verb::Reinstall => "reinstalled",
        Verb::Remove => "removed",
        Verb::Purge => "purged",
    }
}
