//! What a call says in an older spelling, put right before anything else sees it: from then on there are real names only.

use std::collections::{BTreeSet, HashSet};

use serde_json::{Map, Value};

use crate::schema::invalid;
use host_base::problem::Problem;
use host_components::Tool;

/// What a call said in an older spelling.
#[derive(Clone, Debug, Default)]
pub struct Older {
    /// What it called the tool.
    pub tool: Option<String>,
    /// What it called arguments, and their names.
    arguments: Vec<(String, String)>,
    /// What was put right, in words.
    notes: Vec<String>,
}

impl Older {
    /// Puts a call of the tool right, and keeps what it had said. Two spellings of one argument, or of one value, are an
    /// error: which one counts is not for anybody but the caller to say.
    pub fn put_right(
        &mut self,
        tool: &Tool,
        name: &mut String,
        arguments: &mut Map<String, Value>,
    ) -> Result<(), Problem> {
        if *name != tool.name {
            let said = std::mem::replace(name, tool.name.clone());
            self.tell(format!("{said} is now {name}"));
            self.tool = Some(said);
        }
        let twice: Vec<String> = said_twice(tool, arguments).collect();
        if !twice.is_empty() {
            return Err(invalid(tool, twice));
        }
        for (alias, name) in &tool.aliases.arguments {
            let Some(value) = arguments.remove(alias) else { continue };
            // Models say null for what they leave out, and may have said the other one.
            if !value.is_null() || !arguments.contains_key(name) {
                arguments.insert(name.clone(), value);
                self.tell(format!("argument {alias} is now {name}"));
                self.arguments.push((alias.clone(), name.clone()));
            }
        }
        for (argument, aliases) in &tool.aliases.values {
            for said in arguments.get_mut(argument).into_iter().flat_map(texts_mut) {
                if let Some(value) = aliases.get(said) {
                    self.tell(format!("{argument} {said} is now {value}"));
                    said.clone_from(value);
                }
            }
        }
        Ok(())
    }

    fn tell(&mut self, note: String) {
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    /// What an argument was called, where that is an alias.
    pub fn argument(&self, name: &str) -> Option<&str> {
        let (alias, _) = self.arguments.iter().find(|(_, known)| known == name)?;
        Some(alias)
    }

    /// For whoever called, once.
    pub fn note(&self) -> Option<String> {
        (!self.notes.is_empty()).then(|| format!("older names were understood: {}", self.notes.join("; ")))
    }
}

/// What says one thing in two spellings, in words.
fn said_twice(tool: &Tool, arguments: &Map<String, Value>) -> impl Iterator<Item = String> {
    let aliases = &tool.aliases.arguments;
    let names: BTreeSet<&String> = aliases.values().collect();
    let of_names = names.into_iter().filter_map(|name| {
        let all = aliases.iter().filter(|(_, known)| *known == name).map(|(alias, _)| alias);
        let is_said = |said: &&String| arguments.get(*said).is_some_and(|value| !value.is_null());
        several([name].into_iter().chain(all).filter(is_said), "argument", name)
    });
    let of_values = tool.aliases.values.iter().flat_map(|(argument, aliases)| {
        // By its alias, it is said under another name.
        let said = arguments.iter().filter(|(name, _)| tool.aliases.argument(name) == argument);
        // A list may be long: how much is taken is seen to later.
        let said: HashSet<&str> = said.flat_map(|(_, value)| texts(value)).collect();
        let values: BTreeSet<&String> = aliases.values().collect();
        let of_value = move |value: &String| {
            let all = aliases.iter().filter(|(_, known)| *known == value).map(|(alias, _)| alias);
            let is_said = |text: &&String| said.contains(text.as_str());
            several([value].into_iter().chain(all).filter(is_said), &format!("value of {argument}"), value)
        };
        values.into_iter().filter_map(of_value).collect::<Vec<_>>()
    });
    of_names.chain(of_values)
}

fn several<'a>(said: impl Iterator<Item = &'a String>, what: &str, name: &str) -> Option<String> {
    let said: Vec<&str> = said.map(String::as_str).collect();
    (said.len() > 1).then(|| format!("{} are one {what}: say {name} alone", said.join(" and ")))
}

/// The text, or each one of a list.
fn texts(value: &Value) -> impl Iterator<Item = &str> {
    let items = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
    items.iter().filter_map(Value::as_str)
}

fn texts_mut(value: &mut Value) -> impl Iterator<Item = &mut String> {
    let items = match value {
        Value::Array(items) => items.as_mut_slice(),
        one => std::slice::from_mut(one),
    };
    items.iter_mut().filter_map(|item| match item {
        Value::String(text) => Some(text),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tool() -> Tool {
        let action = json!({"enum": ["open", "close"]});
        serde_json::from_value(json!({
            "name": "tool", "summary": "", "risk": "read-only", "shape": "single", "duration": "quick",
            "input_schema": {
                "type": "object",
                "properties": {
                    "package": {"type": "array"}, "fs": {"type": "boolean"}, "action": action,
                    "actions": {"type": "array", "items": action},
                },
                "additionalProperties": false,
            },
            "aliases": {
                "tool": ["older"],
                "arguments": {"packages": "package", "pkg": "package", "resize_fs": "fs", "acts": "actions"},
                "values": {"action": {"shut": "close"}, "actions": {"shut": "close", "seal": "close"}},
            },
        }))
        .unwrap()
    }

    fn put_right(name: &str, arguments: Value) -> (Older, String, Value, Result<(), Problem>) {
        let (mut older, mut name) = (Older::default(), name.to_owned());
        let Value::Object(mut arguments) = arguments else { panic!("no object") };
        let result = older.put_right(&tool(), &mut name, &mut arguments);
        (older, name, Value::Object(arguments), result)
    }

    #[test]
    fn an_older_spelling_becomes_the_real_one_and_nothing_else_changes() {
        for (given, real, note) in [
            (
                json!({"packages": ["a"], "fs": true}),
                json!({"package": ["a"], "fs": true}),
                "argument packages is now package",
            ),
            (json!({"pkg": 7}), json!({"package": 7}), "argument pkg is now package"),
            (json!({"action": "shut"}), json!({"action": "close"}), "action shut is now close"),
            (
                json!({"acts": ["shut", "open", "shut"]}),
                json!({"actions": ["close", "open", "close"]}),
                "argument acts is now actions; actions shut is now close",
            ),
            // Null is what is left out.
            (
                json!({"packages": ["a"], "package": null}),
                json!({"package": ["a"]}),
                "argument packages is now package",
            ),
        ] {
            let (older, name, arguments, result) = put_right("tool", given.clone());
            assert!(result.is_ok(), "{given}");
            assert_eq!((name.as_str(), &arguments), ("tool", &real), "{given}");
            assert_eq!(older.note().unwrap(), format!("older names were understood: {note}"), "{given}");
            assert_eq!(older.tool, None);
        }
        for real in [
            json!({"package": ["packages", "shut"], "fs": true, "action": "open", "actions": ["close"]}),
            json!({"action": "seal", "unknown": "shut", "Packages": [], "actions": [["shut"], {"shut": "shut"}, null]}),
            json!({"action": null, "actions": "open"}),
            json!({}),
        ] {
            let (older, name, arguments, result) = put_right("tool", real.clone());
            assert!(result.is_ok() && older.note().is_none() && older.tool.is_none(), "{real}");
            assert_eq!((name.as_str(), &arguments), ("tool", &real));
        }
        let left_out = json!({"package": ["a"], "packages": null});
        assert_eq!(put_right("tool", left_out).2, json!({"package": ["a"]}));
    }

    #[test]
    fn the_tools_own_name_takes_the_place_of_an_alias() {
        let (older, name, ..) = put_right("older", json!({"pkg": []}));
        assert_eq!((name.as_str(), older.tool.as_deref()), ("tool", Some("older")));
        let note = "older names were understood: older is now tool; argument pkg is now package";
        assert_eq!(older.note().unwrap(), note);
    }

    #[test]
    fn two_spellings_of_one_thing_are_an_error_that_names_both_and_nothing_is_guessed() {
        for (given, said) in [
            (
                json!({"package": ["a"], "packages": ["b"]}),
                "package and packages are one argument: say package alone",
            ),
            (
                json!({"package": ["a"], "packages": ["a"]}),
                "package and packages are one argument: say package alone",
            ),
            (json!({"pkg": 1, "packages": 1}), "packages and pkg are one argument: say package alone"),
            (
                json!({"actions": ["shut", "close"]}),
                "close and shut are one value of actions: say close alone",
            ),
            (json!({"acts": ["shut", "seal"]}), "seal and shut are one value of actions: say close alone"),
        ] {
            let (_, name, arguments, result) = put_right("older", given.clone());
            let problem = result.unwrap_err();
            assert_eq!(problem.code, "INVALID_ARGUMENTS");
            assert!(
                problem.message.starts_with("tool ") && problem.message.contains(said),
                "{}",
                problem.message
            );
            assert_eq!(problem.remediation, ["tool takes package, fs, action, actions"]);
            // As they came, for the record.
            assert_eq!((name.as_str(), arguments), ("tool", given));
        }
        let both = json!({"package": 1, "packages": 2, "fs": true, "resize_fs": true});
        let message = put_right("tool", both).3.unwrap_err().message;
        assert!(message.contains("packages") && message.contains("resize_fs"), "all at once: {message}");
    }

    #[test]
    fn what_is_wrong_is_told_by_the_real_name_with_what_was_said() {
        let check = |given: Value| {
            let (older, _, arguments, result) = put_right("tool", given);
            result.unwrap();
            let arguments = arguments.as_object().unwrap().clone();
            crate::arguments::check(&Default::default(), &tool(), arguments, &older).unwrap_err()
        };
        let problem = check(json!({"packages": 7, "resize_fs": "x", "action": "gone"}));
        for said in ["package (said as packages): 7 is not", "fs (said as resize_fs): ", "action: "] {
            assert!(problem.message.contains(said), "{said} is not in: {}", problem.message);
        }
        let problem = check(json!({"acts": ["shut", 7]}));
        assert!(problem.message.contains("actions/1 (said as acts): 7 is not"), "{}", problem.message);
        // What nobody ever said is no older spelling.
        let problem = check(json!({"packag": []}));
        assert_eq!(
            problem.remediation,
            ["Say package instead of packag", "tool takes package, fs, action, actions"]
        );
    }
}
