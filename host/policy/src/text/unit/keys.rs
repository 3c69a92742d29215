//! What a unit may have by each key: [`keys.yaml`](keys.yaml), which says what its judgements mean.

use std::collections::{BTreeMap, HashMap};
use std::sync::LazyLock;

use serde::Deserialize;

/// The judgement on a key of units.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// Whatever its value.
    Harmless,
    /// Names what runs.
    Command,
    /// Harmless to what has an ordinary account's rights.
    Accounts,
    /// Harmless to what has an ordinary account's rights and can get no others.
    Confined,
    /// Says whose rights that has.
    Account,
    /// Sets variables of it.
    Variables,
    /// Names a file of such.
    File,
    /// Names units that are started.
    Starts,
    /// Names units that are enabled and disabled with it.
    Siblings,
    /// Names units that are stopped.
    Stops,
    /// Names units that may have to wait for it.
    Holds,
    /// Harmless with one of these values.
    Only(Vec<String>),
    /// What it does.
    Asks(String),
}

/// Keys by the part of the manuals that describes them.
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

/// The judgement on a key; none for one that isn't in the table. An unreadable table has none.
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
