//! A plan is made of what was there, and somebody took a while to say yes to it. So it is made once more, of what is there
//! now: what a module has worked out of a target that changed meanwhile would take away what changed.

use std::collections::HashMap;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde_json::{Value, json};

use super::{Change, Looked};
use host_base::problem::Problem;
use host_text::redact::excerpt;

/// A call that has made a plan, and can make it anew.
pub trait Again: Send + Sync {
    /// The plan as it would be now. Nothing of the first time is known to whoever makes it.
    fn plan(&self) -> BoxFuture<'_, Result<Planned, Problem>>;
}

/// A plan, and what it is made of.
#[derive(Clone)]
pub struct Planned {
    /// The plan.
    pub change: Change,
    /// SHA-256 of each file that its module has read whole; none where it wasn't there.
    pub seen: HashMap<String, Option<String>>,
    /// The outputs of the commands by which its module looked.
    pub looked: Arc<Looked>,
}

/// Differences that are told.
const MOST: usize = 5;
/// Characters of each side that are shown.
const SHOWN: usize = 300;

/// Where two plans differ, as they are shown: a place, what was there, and what would be.
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
