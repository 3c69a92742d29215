//! The judgements on the keys of units. [`keys.yaml`](keys.yaml) has them, and says what they mean.

use std::collections::{BTreeMap, HashMap};
use std::sync::LazyLock;

use serde::Deserialize;

/// The judgement on a key of units.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// The key is harmless with any value.
    Harmless,
    /// The value is a command.
    Command,
    /// The key is harmless where the commands have an ordinary account's rights.
    Accounts,
    /// The key is harmless where the commands have an ordinary account's rights and can't get others.
    Confined,
    /// The value is the account or group of the commands.
    Account,
    /// The value sets variables of the commands.
    Variables,
    /// The value is a file with variables.
    File,
    /// The value names units that are started.
    Starts,
    /// The value names units that are enabled and disabled with this one.
    Siblings,
    /// The value names the slice that the commands run in.
    Slice,
    /// The value names units that are stopped.
    Stops,
    /// The value names units that may have to wait for this one.
    Holds,
    /// The key is harmless with one of these values.
    Only(Vec<String>),
    /// The key gives power; the text says what it does.
    Asks(String),
}

/// Keys by the part of the manual that describes them.
type ByPart = BTreeMap<String, Vec<String>>;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    harmless: ByPart,
    commands: ByPart,
    accounts: ByPart,
    confined: ByPart,
    account: ByPart,
    variables: ByPart,
    file: ByPart,
    starts: ByPart,
    siblings: ByPart,
    slice: ByPart,
    stops: ByPart,
    holds: ByPart,
    only: BTreeMap<String, Vec<String>>,
    asks: BTreeMap<String, Vec<String>>,
}

static KEYS: LazyLock<Result<HashMap<String, Judgement>, String>> = LazyLock::new(|| {
    let table: Table = serde_yaml::from_str(include_str!("keys.yaml")).map_err(|error| error.to_string())?;
    let by_part = [
        (table.harmless, Judgement::Harmless),
        (table.commands, Judgement::Command),
        (table.accounts, Judgement::Accounts),
        (table.confined, Judgement::Confined),
        (table.account, Judgement::Account),
        (table.variables, Judgement::Variables),
        (table.file, Judgement::File),
        (table.starts, Judgement::Starts),
        (table.siblings, Judgement::Siblings),
        (table.slice, Judgement::Slice),
        (table.stops, Judgement::Stops),
        (table.holds, Judgement::Holds),
    ];
    let by_part = by_part.into_iter().flat_map(|(parts, judgement)| {
        parts.into_values().flatten().map(move |key| (key, judgement.clone()))
    });
    let only = table.only.into_iter().map(|(key, values)| (key, Judgement::Only(values)));
    let asks = table
        .asks
        .into_iter()
        .flat_map(|(does, keys)| keys.into_iter().map(move |key| (key, Judgement::Asks(does.clone()))));
    let mut keys = HashMap::new();
    for (key, judgement) in by_part.chain(only).chain(asks) {
        if keys.insert(key.clone(), judgement).is_some() {
            return Err(format!("{key} has two judgements"));
        }
    }
    Ok(keys)
});

/// The judgement on a key; `None` where the table lacks it or can't be read.
pub fn judgement(key: &str) -> Option<&'static Judgement> {
    KEYS.as_ref().ok()?.get(key)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn each_key_has_one_judgement() {
        let keys = KEYS.as_ref().unwrap();
        assert!(keys.len() >= 500, "{}", keys.len());
        for (key, judgement) in keys {
            assert!(key.bytes().all(|byte| byte.is_ascii_alphanumeric()), "{key}");
            assert_ne!(*judgement, Judgement::Only(Vec::new()), "{key}");
        }
    }
}
