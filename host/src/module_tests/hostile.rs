//! Arguments that somebody could give a tool to make it do something else.

use serde_json::{Map, Value, json};

use super::stage::TriedAnswer;
use host_text::visible::excerpt;

/// The characters of a value that a reason quotes.
const QUOTED: usize = 60;
/// An argument that no tool has.
const UNKNOWN: &str = "no_such_argument";
/// The bytes of a text that is longer than a whole call may be.
const TOO_LONG: usize = 2 << 20;

/// The values to give in place of a text.
fn values() -> Vec<String> {
    serde_yaml::from_str(include_str!("hostile.yaml")).unwrap_or_default()
}

/// A call with hostile arguments.
pub struct HostileCall {
    /// The call in words.
    pub what: String,
    /// The arguments.
    pub arguments: Map<String, Value>,
    /// The value that must not become an option.
    value: Option<String>,
    /// Whether the host has to refuse the call before the module sees it.
    is_refused: bool,
}

/// Calls that each have one hostile argument in place of one of these, or beside them.
pub fn calls(schema: &Map<String, Value>, arguments: &Map<String, Value>) -> Vec<HostileCall> {
    let mut calls = Vec::new();
    let properties = schema.get("properties").and_then(Value::as_object);
    for (name, property) in properties.into_iter().flatten() {
        let with = |value: Value| {
            let mut arguments = arguments.clone();
            arguments.insert(name.clone(), value);
            arguments
        };
        let Some(place) = Place::of(property) else { continue };
        for value in values() {
            calls.push(HostileCall {
                what: format!("{name}={:?}", excerpt(&value, QUOTED)),
                arguments: with(place.put(value.clone())),
                value: Some(value),
                is_refused: false,
            });
        }
        calls.push(HostileCall {
            what: format!("{name} of {TOO_LONG} bytes"),
            arguments: with(place.put("x".repeat(TOO_LONG))),
            value: None,
            is_refused: property.get("maxLength").is_none(),
        });
        calls.push(HostileCall {
            what: format!("an object as {name}"),
            arguments: with(json!({"a": 1})),
            value: None,
            is_refused: property.get("type").is_some() && !is(property, "object"),
        });
    }
    let mut with_unknown = arguments.clone();
    with_unknown.insert(UNKNOWN.to_owned(), json!("x"));
    calls.push(HostileCall {
        what: format!("an argument {UNKNOWN} that its schema doesn't have"),
        arguments: with_unknown,
        value: None,
        is_refused: true,
    });
    calls
}

/// Whether a property takes values of this type.
fn is(property: &Value, kind: &str) -> bool {
    match property.get("type") {
        Some(Value::String(only)) => only == kind,
        Some(Value::Array(several)) => several.iter().any(|one| one == kind),
        _ => false,
    }
}

/// The place of a text in an argument.
#[derive(Clone, Copy)]
enum Place {
    Text,
    List,
}

impl Place {
    fn of(property: &Value) -> Option<Self> {
        // The schema refuses every text but those of the list.
        if property.get("enum").is_some() {
            return None;
        }
        if is(property, "string") {
            return Some(Self::Text);
        }
        let items = property.get("items").filter(|items| is(items, "string") && items.get("enum").is_none());
        (is(property, "array") && items.is_some()).then_some(Self::List)
    }

    fn put(self, value: String) -> Value {
        match self {
            Self::Text => Value::String(value),
            Self::List => json!([value]),
        }
    }
}

impl HostileCall {
    /// What is wrong with the answer, in a sentence. None where the call did no harm.
    pub fn fault(&self, answer: &TriedAnswer) -> Option<String> {
        let what = &self.what;
        if let Some(fault) = fault(answer) {
            return Some(format!("{what}: {fault}"));
        }
        if self.is_refused && answer.error().is_none() {
            return Some(format!("{what}: it was taken, and it should be refused"));
        }
        if answer.has_changed() {
            return Some(format!("{what}: a dry run changed something"));
        }
        let line = |argv: &[String]| excerpt(&argv.join(" "), 200);
        answer.asked.ran.iter().find_map(|ran| {
            let is_option = |word: &String| word.starts_with('-') && self.value.as_ref() == Some(word);
            if ran.argv.iter().skip(1).take_while(|word| *word != "--").any(is_option) {
                return Some(format!("{what}: it became an option of `{}`", line(&ran.argv)));
            }
            let is_hidden = |word: &String| word.chars().any(host_text::characters::is_hidden);
            let is_given = self.value.as_ref().is_some_and(is_hidden);
            let hidden = is_given && ran.argv.iter().any(is_hidden);
            hidden.then(|| format!("{what}: it became an argument of `{}`", line(&ran.argv)))
        })
    }
}

/// Codes of the host for what only a defect of the module causes. All that begin with `MODULE_` are such codes as well.
const FAULTS: [&str; 7] = [
    "INTERNAL_ERROR",
    "INVALID_PIPELINE",
    "INVALID_PLAN",
    "READ_ONLY_TOOL",
    "REPLY_TOO_LARGE",
    "SECOND_PLAN",
    "TOOL_TIMEOUT",
];

/// The defect of the module that an answer shows, in a sentence.
pub fn fault(answer: &TriedAnswer) -> Option<String> {
    let code = answer.error()?;
    (code.starts_with("MODULE_") || FAULTS.contains(&code)).then(|| answer.message())
}

#[cfg(test)]
mod tests {
    use super::*;
    use host_target::recorded::{Asked, RanCommand};

    fn object(value: Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    fn answer(envelope: Value, ran: &[(&[&str], bool)]) -> TriedAnswer {
        let ran = ran.iter().map(|(argv, changes)| RanCommand {
            argv: argv.iter().map(|word| (*word).to_owned()).collect(),
            changes: *changes,
        });
        TriedAnswer { envelope: object(envelope), asked: Asked { ran: ran.collect(), ..Asked::default() } }
    }

    #[test]
    fn each_text_argument_gets_each_hostile_value() {
        let schema = object(json!({"properties": {
            "name": {"type": "string"},
            "names": {"type": ["string", "array"], "items": {"type": "string"}},
            "paths": {"type": "array", "items": {"type": "string"}},
            "kind": {"type": "string", "enum": ["a", "b"]},
            "count": {"type": "integer"},
        }}));
        let values = values().len();
        assert!(values > 10);
        let calls = calls(&schema, &object(json!({"name": "a", "count": 1})));
        assert_eq!(calls.len(), 3 * (values + 2) + 1);
        let hostile = |name: &str| {
            let is_it = |call: &&HostileCall| {
                call.arguments.get(name) == Some(&json!("--hostile"))
                    || call.arguments.get(name) == Some(&json!(["--hostile"]))
            };
            calls.iter().filter(is_it).count()
        };
        assert_eq!(["name", "names", "paths", "kind"].map(hostile), [1, 1, 1, 0]);
        // The other arguments stay as they are.
        assert!(calls.iter().all(|call| call.arguments["count"] == 1));
    }

    #[test]
    fn what_becomes_an_option_or_breaks_the_module_is_a_fault() {
        let call = |value: &str, is_refused| HostileCall {
            what: "name".to_owned(),
            arguments: Map::new(),
            value: Some(value.to_owned()),
            is_refused,
        };
        let good = json!({"status": "success"});
        let refused = json!({"status": "error", "error_code": "INVALID_ARGUMENTS", "message": "no"});
        let trapped = json!({"status": "error", "error_code": "MODULE_TRAPPED", "message": "unreachable"});
        for (value, is_refused, envelope, ran, fault) in [
            ("-x", false, &refused, &[][..], None),
            ("-x", false, &good, &[(&["a", "--", "-x"][..], false)], None),
            ("-x", false, &good, &[(&["a", "--name=-x"][..], false)], None),
            ("-x", false, &good, &[(&["a", "-x"][..], false)], Some("became an option of `a -x`")),
            ("a\nb", false, &good, &[(&["a", "--", "a\nb"][..], false)], Some("became an argument")),
            ("a", true, &good, &[], Some("should be refused")),
            ("a", false, &good, &[(&["a"][..], true)], Some("changed something")),
            ("a", false, &trapped, &[], Some("MODULE_TRAPPED: unreachable")),
        ] {
            let found = call(value, is_refused).fault(&answer(envelope.clone(), ran));
            match fault {
                None => assert_eq!(found, None, "{value:?}"),
                Some(fault) => {
                    assert!(found.as_ref().is_some_and(|found| found.contains(fault)), "{found:?}")
                }
            }
        }
    }
}
