//! Replaces other names and other forms in a request by those that the tool takes, before anything else sees them.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use serde_json::{Map, Value};

use super::schema::invalid_arguments;
use super::{Validators, coercion, synonyms, takes_host};
use host_base::problem::Problem;
use host_components::Tool;
use host_components::host_arguments::{AGENT, CONFIRMED, DRY_RUN, HOST};

/// The other names that were replaced in one request, and the values that were read in another form.
#[derive(Clone, Debug, Default)]
pub struct AppliedAliases {
    /// The other name of the tool.
    pub tool: Option<String>,
    /// The other names of arguments, each with the argument's name.
    arguments: Vec<(String, String)>,
    /// Each replacement in words.
    notes: Vec<String>,
}

impl AppliedAliases {
    /// Replaces the other names in a request for the tool, and keeps them. Then reads values of another type where they
    /// can mean one thing only. Two names of one argument, or of one value, are an error: only the caller knows which one
    /// counts.
    pub fn apply(
        &mut self,
        validators: &Validators,
        tool: &Tool,
        name: &mut String,
        arguments: &mut Map<String, Value>,
    ) -> Result<(), Problem> {
        if *name != tool.name {
            let said = std::mem::replace(name, tool.name.clone());
            self.add_note(format!("{said} as {name}"));
            self.tool = Some(said);
        }
        let compiled = validators.get(tool)?;
        let aliases = names(tool, &compiled.schema, arguments);
        let duplicates: Vec<String> = duplicate_names(tool, &aliases, arguments).collect();
        if !duplicates.is_empty() {
            return Err(invalid_arguments(tool, duplicates));
        }
        for (alias, name) in aliases {
            let Some(value) = arguments.remove(&alias) else { continue };
            // Models give null for what they leave out, and may have given the other name.
            if !value.is_null() || !arguments.contains_key(&name) {
                arguments.insert(name.clone(), value);
                self.add_note(format!("{alias} as {name}"));
                self.arguments.push((alias, name));
            }
        }
        for how in coercion::coerce(&compiled.schema, arguments) {
            self.add_note(how);
        }
        for (argument, aliases) in &tool.aliases.values {
            let Some(value) = arguments.get_mut(argument) else { continue };
            if let Value::Bool(said) = *value
                && ![CONFIRMED, DRY_RUN].contains(&argument.as_str())
                && let Some(meant) = aliases.get(&said.to_string())
            {
                *value = meant.clone().into();
                self.add_note(format!("{argument} {said} as {meant}"));
            }
            for said in texts_mut(value) {
                if let Some(value) = aliases.get(said) {
                    self.add_note(format!("{argument} {said} as {value}"));
                    said.clone_from(value);
                }
            }
        }
        Ok(())
    }

    fn add_note(&mut self, note: String) {
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    /// The other name by which the request gave this argument.
    pub fn argument(&self, name: &str) -> Option<&str> {
        let (alias, _) = self.arguments.iter().find(|(_, known)| known == name)?;
        Some(alias)
    }

    /// The note for the caller.
    pub fn note(&self) -> Option<String> {
        (!self.notes.is_empty()).then(|| format!("understood: {}", self.notes.join("; ")))
    }
}

/// The aliases that the tool declares, and the synonyms of its arguments that the request uses, with the arguments'
/// names.
fn names(tool: &Tool, schema: &Value, said: &Map<String, Value>) -> BTreeMap<String, String> {
    let mut aliases = tool.aliases.arguments.clone();
    let own = schema.get("properties").and_then(Value::as_object);
    let is_known = |name: &str| {
        own.is_some_and(|own| own.contains_key(name))
            || tool.aliases.arguments.contains_key(name)
            || [AGENT, CONFIRMED, DRY_RUN, HOST].contains(&name)
    };
    let mut unknown = said.keys().filter(|name| !is_known(name)).peekable();
    if unknown.peek().is_some() {
        let own = own.into_iter().flat_map(Map::keys).map(String::as_str);
        let arguments: Vec<&str> = own.chain(takes_host(tool).then_some(HOST)).collect();
        aliases.extend(synonyms::of_unknown(unknown, &arguments));
    }
    aliases
}

/// Finds arguments and values that a request gives under two names, in words.
fn duplicate_names<'a>(
    tool: &'a Tool,
    aliases: &'a BTreeMap<String, String>,
    arguments: &'a Map<String, Value>,
) -> impl Iterator<Item = String> {
    let names: BTreeSet<&String> = aliases.values().collect();
    let of_names = names.into_iter().filter_map(|name| {
        let all = aliases.iter().filter(|(_, known)| *known == name).map(|(alias, _)| alias);
        let is_said = |said: &&String| arguments.get(*said).is_some_and(|value| !value.is_null());
        several([name].into_iter().chain(all).filter(is_said), "argument", name)
    });
    let of_values = tool.aliases.values.iter().flat_map(move |(argument, of_value)| {
        // The argument may be given under another name.
        let is_it = |name: &String| aliases.get(name).unwrap_or(name) == argument;
        let said = arguments.iter().filter(|(name, _)| is_it(name));
        // A set, because a list may be long: its length is checked later.
        let said: HashSet<&str> = said.flat_map(|(_, value)| texts(value)).collect();
        let values: BTreeSet<&String> = of_value.values().collect();
        let twice = move |value: &String| {
            let all = of_value.iter().filter(|(_, known)| *known == value).map(|(alias, _)| alias);
            let is_said = |text: &&String| said.contains(text.as_str());
            several([value].into_iter().chain(all).filter(is_said), &format!("value of {argument}"), value)
        };
        values.into_iter().filter_map(twice).collect::<Vec<_>>()
    });
    of_names.chain(of_values)
}

fn several<'a>(said: impl Iterator<Item = &'a String>, what: &str, name: &str) -> Option<String> {
    let said: Vec<&str> = said.map(String::as_str).collect();
    (said.len() > 1).then(|| format!("{} are one {what}: say {name} alone", said.join(" and ")))
}

/// The text, or each text of a list.
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
            "first": false,
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

    fn apply(name: &str, arguments: Value) -> (AppliedAliases, String, Value, Result<(), Problem>) {
        let (mut aliases, mut name) = (AppliedAliases::default(), name.to_owned());
        let Value::Object(mut arguments) = arguments else { panic!("no object") };
        let result = aliases.apply(&Validators::default(), &tool(), &mut name, &mut arguments);
        (aliases, name, Value::Object(arguments), result)
    }

    #[test]
    fn an_older_name_becomes_the_real_one_and_nothing_else_changes() {
        for (given, real, note) in [
            (
                json!({"packages": ["a"], "fs": true}),
                json!({"package": ["a"], "fs": true}),
                "packages as package",
            ),
            (json!({"pkg": true}), json!({"package": true}), "pkg as package"),
            (json!({"action": "shut"}), json!({"action": "close"}), "action shut as close"),
            (
                json!({"acts": ["shut", "open", "shut"]}),
                json!({"actions": ["close", "open", "close"]}),
                "acts as actions; actions shut as close",
            ),
            // A null counts as left out.
            (json!({"packages": ["a"], "package": null}), json!({"package": ["a"]}), "packages as package"),
        ] {
            let (aliases, name, arguments, result) = apply("tool", given.clone());
            assert!(result.is_ok(), "{given}");
            assert_eq!((name.as_str(), &arguments), ("tool", &real), "{given}");
            assert_eq!(aliases.note().unwrap(), format!("understood: {note}"), "{given}");
            assert_eq!(aliases.tool, None);
        }
        for real in [
            json!({"package": ["packages", "shut"], "fs": true, "action": "open", "actions": ["close"]}),
            json!({"action": "seal", "unknown": "shut", "Packages": [], "actions": [["shut"], {"shut": "shut"}, null]}),
            json!({"action": null, "actions": "open, close"}),
            json!({}),
        ] {
            let (aliases, name, arguments, result) = apply("tool", real.clone());
            assert!(result.is_ok() && aliases.note().is_none() && aliases.tool.is_none(), "{real}");
            assert_eq!((name.as_str(), &arguments), ("tool", &real));
        }
        let left_out = json!({"package": ["a"], "packages": null});
        assert_eq!(apply("tool", left_out).2, json!({"package": ["a"]}));
    }

    #[test]
    fn the_tools_own_name_takes_the_place_of_an_alias() {
        let (aliases, name, ..) = apply("older", json!({"pkg": "nginx"}));
        assert_eq!((name.as_str(), aliases.tool.as_deref()), ("tool", Some("older")));
        let note = "understood: older as tool; pkg as package; package as a list of one";
        assert_eq!(aliases.note().unwrap(), note);
    }

    #[test]
    fn a_synonym_is_understood_where_it_can_be_one_argument_only() {
        let tool: Tool = serde_json::from_value(json!({
            "name": "tool", "summary": "", "risk": "low", "shape": "listing", "duration": "quick",
            "first": false,
            "input_schema": {
                "type": "object",
                "properties": {
                    "user": {"type": "string"}, "rename": {"type": "string"}, "service": {"type": "string"},
                    "units": {"type": "array", "items": {"type": "string"}},
                    "kind": {"enum": ["people", "all"]},
                },
                "additionalProperties": false,
            },
            "aliases": {
                "arguments": {"include_system": "kind"},
                "values": {"kind": {"true": "all", "false": "people"}},
            },
        }))
        .unwrap();
        let apply = |given: Value| {
            let (mut aliases, mut name) = (AppliedAliases::default(), "tool".to_owned());
            let mut arguments = given.as_object().unwrap().clone();
            let result = aliases.apply(&Validators::default(), &tool, &mut name, &mut arguments);
            result.map(|()| (Value::Object(arguments), aliases.note().unwrap_or_default()))
        };
        for (given, real, note) in [
            (json!({"username": "ann"}), json!({"user": "ann"}), "understood: username as user"),
            // The host's own arguments have synonyms as well.
            (json!({"lines": "5"}), json!({"limit": 5}), "understood: lines as limit; limit as a number"),
            (json!({"target_host": "web1"}), json!({"host": "web1"}), "understood: target_host as host"),
            (
                json!({"include_system": true}),
                json!({"kind": "all"}),
                "understood: include_system as kind; kind true as all",
            ),
            (
                json!({"include_system": "false"}),
                json!({"kind": "people"}),
                "understood: include_system as kind; kind false as people",
            ),
            // It could be the service or the units.
            (json!({"unit": "nginx"}), json!({"unit": "nginx"}), ""),
            (json!({"confirm": true, "dryrun": true}), json!({"confirm": true, "dryrun": true}), ""),
        ] {
            assert_eq!(apply(given.clone()).unwrap(), (real, note.to_owned()), "{given}");
        }
        let problem = apply(json!({"username": "ann", "user": "bob"})).unwrap_err();
        assert!(problem.message.contains("user and username are one argument"), "{}", problem.message);
    }

    #[test]
    fn a_dry_run_is_never_read_otherwise_whatever_a_tool_declares() {
        let tool: Tool = serde_json::from_value(json!({
            "name": "tool", "summary": "", "risk": "low", "shape": "single", "duration": "quick",
            "first": false,
            "input_schema": {"type": "object", "properties": {"dry_run": {"enum": ["plan", "apply"]}}},
            "aliases": {"values": {"dry_run": {"true": "apply"}}},
        }))
        .unwrap();
        let given = json!({"dry_run": true});
        let mut arguments = given.as_object().unwrap().clone();
        AppliedAliases::default()
            .apply(&Validators::default(), &tool, &mut "tool".to_owned(), &mut arguments)
            .unwrap();
        assert_eq!(Value::Object(arguments), given);
    }

    #[test]
    fn two_names_of_one_thing_are_an_error_that_names_both_and_nothing_is_guessed() {
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
            let (_, name, arguments, result) = apply("older", given.clone());
            let problem = result.unwrap_err();
            assert_eq!(problem.code, "INVALID_ARGUMENTS");
            assert!(
                problem.message.starts_with("tool ") && problem.message.contains(said),
                "{}",
                problem.message
            );
            assert_eq!(problem.remediation, ["tool takes package, fs, action, actions"]);
            // The arguments stay as they came, for the record.
            assert_eq!((name.as_str(), arguments), ("tool", given));
        }
        let both = json!({"package": 1, "packages": 2, "fs": true, "resize_fs": true});
        let message = apply("tool", both).3.unwrap_err().message;
        assert!(message.contains("packages") && message.contains("resize_fs"), "all at once: {message}");
    }

    #[test]
    fn what_is_wrong_is_told_by_the_real_name_with_what_was_said() {
        let check = |given: Value| {
            let (aliases, _, arguments, result) = apply("tool", given);
            result.unwrap();
            let arguments = arguments.as_object().unwrap().clone();
            crate::arguments::check(&Default::default(), &tool(), None, arguments, &aliases).unwrap_err()
        };
        let problem = check(json!({"packages": true, "resize_fs": "x", "action": "gone"}));
        for said in ["package (said as packages): true is not", "fs (said as resize_fs): ", "action: "] {
            assert!(problem.message.contains(said), "{said} is not in: {}", problem.message);
        }
        let problem = check(json!({"acts": ["shut", 7]}));
        assert!(problem.message.contains("actions/1 (said as acts): 7 is not"), "{}", problem.message);
        // A misspelt name is not an older name.
        let problem = check(json!({"packag": []}));
        assert_eq!(
            problem.remediation,
            [
                "Say package instead of packag",
                "Call tool package=[]",
                "tool takes package, fs, action, actions"
            ]
        );
    }
}
