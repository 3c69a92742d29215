//! Makes a plan once more, from the current state of the target. The confirmation of a plan may take long, and a plan
//! from the former state would undo what others have changed meanwhile.

use std::collections::HashMap;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde_json::{Value, json};

use super::{Change, ObservedOutputs};
use host_base::problem::Problem;
use host_text::redact::excerpt;

/// A call that has made a plan, and can make it once more.
pub trait Replan: Send + Sync {
    /// Makes the plan from the current state. The module knows nothing of the first time.
    fn plan(&self) -> BoxFuture<'_, Result<PlannedChange, Problem>>;
}

/// A plan, and the observations that it was made from.
#[derive(Clone)]
pub struct PlannedChange {
    /// The plan.
    pub change: Change,
    /// The SHA-256 of each file that the module has read whole. None stands for a file that did not exist.
    pub file_hashes: HashMap<String, Option<String>>,
    /// The outputs of the commands by which the module looked.
    pub observed: Arc<ObservedOutputs>,
}

/// The number of differences that are reported.
const MOST: usize = 5;
/// The number of characters of each side that are shown.
const SHOWN: usize = 300;

/// The differences between two previews: the place, the value that was shown, and the value now.
pub(super) fn differences(shown: &Value, now: &Value) -> Value {
    let mut found = Vec::new();
    compare(shown, now, &mut String::new(), &mut found);
    found.into()
}

fn compare(shown: &Value, now: &Value, at: &mut String, found: &mut Vec<Value>) {
    if shown == now || found.len() >= MOST {
        return;
    }
    let mut within = |name: &str, shown: Option<&Value>, now: Option<&Value>| {
        let length = at.len();
        at.push_str(&format!("/{name}"));
        compare(shown.unwrap_or(&Value::Null), now.unwrap_or(&Value::Null), at, found);
        at.truncate(length);
    };
    match (shown, now) {
        (Value::Object(one), Value::Object(other)) => {
            let added = other.keys().filter(|name| !one.contains_key(*name));
            one.keys().chain(added).for_each(|name| within(name, one.get(name), other.get(name)));
        }
        (Value::Array(one), Value::Array(other)) => {
            let longest = one.len().max(other.len());
            (0..longest).for_each(|number| within(&number.to_string(), one.get(number), other.get(number)));
        }
        _ => {
            let text = |value: &Value| match value {
                Value::Null => Value::Null,
                Value::String(text) => excerpt(text, SHOWN).into(),
                other => excerpt(&other.to_string(), SHOWN).into(),
            };
            found.push(json!({"at": at, "shown": text(shown), "now": text(now)}));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_place_where_plans_differ_is_told_with_both_sides() {
        let shown = json!({"steps": [{"run": "a"}, {"run": "b"}], "description": "x", "guard": "30 s"});
        let now =
            json!({"steps": [{"run": "a"}, {"run": "c", "stdin": "d"}, {"run": "e"}], "description": "x"});
        assert_eq!(
            differences(&shown, &now),
            json!([
                {"at": "/steps/1/run", "shown": "b", "now": "c"},
                {"at": "/steps/1/stdin", "shown": null, "now": "d"},
                {"at": "/steps/2", "shown": null, "now": "{\"run\":\"e\"}"},
                {"at": "/guard", "shown": "30 s", "now": null},
            ])
        );
        assert_eq!(differences(&shown, &shown), json!([]));
    }

    #[test]
    fn few_differences_are_told() {
        let numbers = |from: u32| Value::from((from..from + 1000).collect::<Vec<_>>());
        assert_eq!(differences(&numbers(0), &numbers(1)).as_array().map(Vec::len), Some(MOST));
    }
}
