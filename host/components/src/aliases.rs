//! The aliases of a tool, of its arguments and of their values, which older clients use. A description is refused where
//! an alias is ambiguous or leads to nothing.

use std::collections::{BTreeMap, BTreeSet};

use jsonschema::Validator;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::bindings::exports::sysadmin::module::describe;
use super::host_arguments::HOST_ARGUMENTS;

/// The number of aliases of one kind that a tool may have.
const MOST: usize = 100;
/// The number of bytes of the longest alias.
const LONGEST: usize = 64;

/// The aliases of a tool, with their current names.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Aliases {
    /// Aliases of the tool's name.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub tool: BTreeSet<String>,
    /// Aliases of arguments: each alias, and the argument's name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub arguments: BTreeMap<String, String>,
    /// Aliases of values, by the argument's name: each alias, and the value.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub values: BTreeMap<String, BTreeMap<String, String>>,
}

impl Aliases {
    /// Checks the aliases that a module gives a tool with this schema. An error names the alias that can't be used, and
    /// the reason. The caller checks the aliases of the tool's name, since it knows all tools.
    pub(super) fn new(
        said: describe::Aliases,
        schema: &Map<String, Value>,
        validator: &Validator,
    ) -> Result<Self, String> {
        if [said.tool.len(), said.arguments.len(), said.values.len()].iter().any(|count| *count > MOST) {
            return Err(format!("there are more than {MOST} of a kind"));
        }
        let own = schema.get("properties").and_then(Value::as_object);
        let is_argument = |name: &str| own.is_some_and(|own| own.contains_key(name));
        let mut aliases = Self::default();
        for alias in said.tool {
            if let Some(twice) = aliases.tool.replace(alias) {
                return Err(format!("{twice:?} is said twice"));
            }
        }
        for describe::ArgumentAlias { alias, argument } in said.arguments {
            formed(&alias)?;
            if is_argument(&alias) {
                return Err(format!("{alias} is an argument itself"));
            }
            if HOST_ARGUMENTS.contains(&alias.as_str()) {
                return Err(format!("{alias} is an argument of the host's"));
            }
            if !is_argument(&argument) {
                return Err(format!(
                    "{alias} stands for {argument:?}, which is no argument of the tool's own"
                ));
            }
            if aliases.arguments.contains_key(&alias) {
                return Err(format!("{alias} is said twice of arguments"));
            }
            aliases.arguments.insert(alias, argument);
        }
        for describe::ValueAlias { argument, alias, value } in said.values {
            formed(&alias)?;
            formed(&value)?;
            if !is_argument(&argument) {
                return Err(format!(
                    "{alias} is a value of {argument:?}, which is no argument of the tool's own"
                ));
            }
            if !takes(validator, &argument, &value) {
                return Err(format!("{alias} stands for {value}, which {argument} doesn't take"));
            }
            // An alias such as `true` also stands for the truth value.
            let truth = alias.parse::<bool>().ok().map(Value::from);
            if takes(validator, &argument, &alias)
                || truth.is_some_and(|truth| takes_value(validator, &argument, truth))
            {
                return Err(format!("{argument} takes {alias} as it is"));
            }
            let values = aliases.values.entry(argument).or_default();
            if values.contains_key(&alias) {
                return Err(format!("{alias} is said twice of values"));
            }
            values.insert(alias, value);
        }
        Ok(aliases)
    }

    /// The current name of an argument.
    pub fn argument<'a>(&'a self, said: &'a str) -> &'a str {
        self.arguments.get(said).map_or(said, String::as_str)
    }
}

/// Whether an argument takes this text, alone or in a list, apart from the schema's other demands on a call.
fn takes(validator: &Validator, argument: &str, text: &str) -> bool {
    [json!(text), json!([text])].into_iter().any(|value| takes_value(validator, argument, value))
}

fn takes_value(validator: &Validator, argument: &str, value: Value) -> bool {
    let its = format!("/{argument}");
    let call = json!({argument: value});
    let at_fault =
        |at: String| at.strip_prefix(&its).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    !validator.iter_errors(&call).any(|error| at_fault(error.instance_path().to_string()))
}

/// Checks the form of an alias, which notes and errors show as it is.
fn formed(alias: &str) -> Result<(), String> {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"._+-".contains(&byte);
    match (1..=LONGEST).contains(&alias.len()) && alias.bytes().all(fits) {
        true => Ok(()),
        false => {
            let shown: String = alias.chars().take(LONGEST).collect();
            Err(format!("{shown:?} is not of the form [A-Za-z0-9._+-], 1 to {LONGEST} characters"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn described(
        tool: &[&str],
        arguments: &[(&str, &str)],
        values: &[(&str, &str, &str)],
    ) -> Result<Aliases, String> {
        let schema = json!({
            "type": "object",
            "$defs": {"action": {"enum": ["open", "close", "close all"]}},
            "properties": {
                "package": {"type": "array"},
                "action": {"$ref": "#/$defs/action"},
                "actions": {"type": "array", "items": {"$ref": "#/$defs/action"}},
                "text": {"type": "string"},
                "either": {"anyOf": [{"type": "boolean"}, {"enum": ["all"]}]},
            },
            "required": ["package"],
            "additionalProperties": false,
        });
        let owned = |text: &&str| (*text).to_owned();
        let argument = |(alias, argument): &(&str, &str)| describe::ArgumentAlias {
            alias: owned(alias),
            argument: owned(argument),
        };
        let value = |(argument, alias, value): &(&str, &str, &str)| describe::ValueAlias {
            argument: owned(argument),
            alias: owned(alias),
            value: owned(value),
        };
        let said = describe::Aliases {
            tool: tool.iter().map(owned).collect(),
            arguments: arguments.iter().map(argument).collect(),
            values: values.iter().map(value).collect(),
        };
        let validator = jsonschema::validator_for(&schema).unwrap();
        Aliases::new(said, schema.as_object().unwrap(), &validator)
    }

    #[test]
    fn what_is_clear_is_taken_and_the_order_does_not_matter() {
        let arguments = [("packages", "package"), ("pkg", "package")];
        let values =
            [("action", "shut", "close"), ("actions", "shut", "close"), ("action", "unlock", "open")];
        let aliases = described(&["a", "b"], &arguments, &values).unwrap();
        assert_eq!((aliases.argument("pkg"), aliases.argument("text")), ("package", "text"));
        assert_eq!(aliases.values["actions"]["shut"], "close");
        let reversed = |mut all: Vec<_>| {
            all.reverse();
            all
        };
        let (arguments, values) =
            (reversed(arguments.to_vec()), values.into_iter().rev().collect::<Vec<_>>());
        assert_eq!(described(&["b", "a"], &arguments, &values).unwrap(), aliases);
    }

    #[test]
    fn what_is_ambiguous_or_leads_to_nothing_is_refused_by_its_name() {
        let long = "x".repeat(LONGEST + 1);
        for (tool, arguments, values, reason) in [
            (&["a", "a"][..], &[][..], &[][..], "\"a\" is said twice"),
            (&[], &[("text", "package")], &[], "text is an argument itself"),
            (&[], &[("package", "package")], &[], "package is an argument itself"),
            (&[], &[("x", "text"), ("x", "package")], &[], "x is said twice of arguments"),
            (&[], &[("x", "text"), ("x", "text")], &[], "x is said twice of arguments"),
            (&[], &[("x", "gone")], &[], "no argument of the tool's own"),
            // The alias leads to another alias, or to an argument of the host.
            (&[], &[("x", "text"), ("y", "x")], &[], "no argument of the tool's own"),
            (&[], &[("x", "confirmed")], &[], "no argument of the tool's own"),
            (&[], &[("x y", "text")], &[], "not of the form"),
            (&[], &[("x\u{202e}", "text")], &[], "not of the form"),
            (&[], &[("", "text")], &[], "not of the form"),
            (&[], &[(long.as_str(), "text")], &[], "not of the form"),
            (&[], &[], &[("gone", "shut", "close")], "no argument of the tool's own"),
            (&[], &[], &[("action", "shut", "gone")], "which action doesn't take"),
            (&[], &[], &[("package/0", "shut", "close")], "no argument of the tool's own"),
            (&[], &[], &[("action", "open", "close")], "action takes open as it is"),
            (&[], &[], &[("actions", "open", "close")], "actions takes open as it is"),
            (&[], &[], &[("text", "shut", "close")], "text takes shut as it is"),
            (&[], &[], &[("either", "true", "all")], "either takes true as it is"),
            (
                &[],
                &[],
                &[("action", "shut", "close"), ("action", "shut", "open")],
                "shut is said twice of values",
            ),
            (&[], &[], &[("action", "shut\n", "close")], "not of the form"),
            // The argument takes the value, but notes show it beside the alias without quotes.
            (&[], &[], &[("action", "shut", "close all")], "\"close all\" is not of the form"),
        ] {
            let said = described(tool, arguments, values).unwrap_err();
            assert!(said.contains(reason), "{reason} is not in: {said}");
        }
        for common in HOST_ARGUMENTS {
            let said = described(&[], &[(common, "text")], &[]).unwrap_err();
            assert!(said.contains(&format!("{common} is an argument of the host's")), "{said}");
        }
        let many: Vec<String> = (0..=MOST).map(|number| format!("a{number}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert!(described(&many, &[], &[]).unwrap_err().contains("more than 100"));
        assert!(described(&many[1..], &[], &[]).is_ok());
    }
}
