//! What a call with wrong arguments may have meant: a correction of each argument, and the right call written out.

use jsonschema::error::ValidationErrorKind;
use jsonschema::{ValidationError, Validator};
use serde_json::{Map, Value, json};

use super::synonyms;
use host_components::host_arguments::{DRY_RUN, HOST};
use host_text::redact;
use host_text::suggestion::closest;
use host_text::visible::excerpt;

/// The number of corrections that are suggested.
const MAX_CORRECTIONS: usize = 5;
/// The longest call that is written out, in characters.
const LONGEST_CALL: usize = 500;
/// The longest text that is repeated in a call, in characters.
const LONGEST_TEXT: usize = 100;
/// The number of values that are named where one of them is to be chosen.
const MOST_VALUES: usize = 10;

/// The beginning of a call: the tool, and the hosts that the call names. Without them, it could be made on another host.
pub(super) fn begin(tool: &str, hosts: Option<&[String]>) -> String {
    match hosts {
        None => tool.to_owned(),
        Some([one]) => format!("{tool} {HOST}={}", shown(&json!(one))),
        Some(hosts) => format!("{tool} {HOST}={}", shown(&json!(hosts))),
    }
}

/// The corrections of a call that doesn't fit, and then the call as it should be, where that can be told. `begin` is the
/// beginning of the call.
pub(super) fn steps(begin: &str, schema: &Value, validator: &Validator, instance: &Value) -> Vec<String> {
    let mut steps: Vec<String> =
        validator.iter_errors(instance).flat_map(|error| suggestions(&error, schema)).collect();
    steps.truncate(MAX_CORRECTIONS);
    steps.extend(right_call(begin, schema, validator, instance));
    steps
}

/// Suggests what may be meant.
fn suggestions(error: &ValidationError, schema: &Value) -> Vec<String> {
    let at = error.instance_path().to_string();
    let name = excerpt(at.trim_start_matches('/'), 100);
    match error.kind() {
        ValidationErrorKind::AdditionalProperties { unexpected } if name.is_empty() => {
            let instead = |said: &String| {
                let meant = meanings(said, unexpected, error.instance(), schema);
                (!meant.is_empty())
                    .then(|| format!("Say {} instead of {}", meant.join(" or "), excerpt(said, 64)))
            };
            unexpected.iter().filter_map(instead).collect()
        }
        ValidationErrorKind::Enum { options } => closest_value(error.instance(), options)
            .map(|meant| format!("{name}: say {meant}"))
            .into_iter()
            .collect(),
        ValidationErrorKind::Maximum { limit } => vec![format!("{name}: say at most {limit}")],
        ValidationErrorKind::Minimum { limit } => vec![format!("{name}: say at least {limit}")],
        ValidationErrorKind::Type { .. } => match items(error.instance(), property(schema, &name)) {
            Some(items) => {
                vec![format!("{name} is a list: say {}", redact::excerpt(&items.to_string(), 200))]
            }
            None => Vec::new(),
        },
        _ => Vec::new(),
    }
}

/// The arguments that an unknown name may stand for.
fn meanings<'a>(said: &str, unexpected: &[String], instance: &Value, schema: &'a Value) -> Vec<&'a str> {
    let names: Vec<&str> = properties(schema).into_iter().flat_map(Map::keys).map(String::as_str).collect();
    // A required argument that is missing is what the caller meant by the one unknown argument.
    let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
    let missing: Vec<&str> =
        required.filter_map(Value::as_str).filter(|name| instance.get(*name).is_none()).collect();
    let synonyms = synonyms::meanings(said, &names);
    let mut close = closest(said, names);
    close.truncate(1);
    match (&missing[..], unexpected) {
        // A name that is close to another argument, such as `dryrun`, doesn't mean the missing one.
        ([missing], [_]) if close.first().is_none_or(|close| close == missing) => vec![*missing],
        _ if synonyms.is_empty() => close,
        _ => synonyms,
    }
}

fn properties(schema: &Value) -> Option<&Map<String, Value>> {
    schema.get("properties").and_then(Value::as_object)
}

fn property<'a>(schema: &'a Value, name: &str) -> Option<&'a Value> {
    properties(schema)?.get(name)
}

fn closest_value<'a>(said: &Value, options: &'a Value) -> Option<&'a str> {
    let options = options.as_array().into_iter().flatten().filter_map(Value::as_str);
    closest(said.as_str().unwrap_or_default(), options).first().copied()
}

/// The items of a text that should be a list.
fn items(said: &Value, property: Option<&Value>) -> Option<Value> {
    let is_list = property?.get("type").and_then(Value::as_str) == Some("array");
    let text = said.as_str().filter(|_| is_list)?;
    let is_between = |character: char| character.is_whitespace() || character == ',';
    let items: Vec<&str> = text.split(is_between).filter(|item| !item.is_empty()).collect();
    (!items.is_empty()).then(|| json!(items))
}

/// The truth value that a text should be.
fn truth(said: &Value, property: Option<&Value>) -> Option<Value> {
    let is_truth = property?.get("type").and_then(Value::as_str) == Some("boolean");
    match said.as_str().filter(|_| is_truth)? {
        "true" => Some(true.into()),
        "false" => Some(false.into()),
        _ => None,
    }
}

/// The call as it should be. What only the caller knows stands in angle brackets.
///
/// An argument that the tool doesn't have is left out. It may have been there for safety, so a call that changes something
/// is then written as a dry run.
pub(super) fn right_call(
    begin: &str,
    schema: &Value,
    validator: &Validator,
    instance: &Value,
) -> Option<String> {
    let mut arguments = instance.as_object()?.clone();
    let mut open = Vec::new();
    for error in validator.iter_errors(instance) {
        let at = error.instance_path().to_string();
        let name = at.trim_start_matches('/');
        match error.kind() {
            ValidationErrorKind::AdditionalProperties { unexpected } if name.is_empty() => {
                for said in unexpected {
                    let value = arguments.remove(said);
                    match meanings(said, unexpected, instance, schema)[..] {
                        [meant] if !arguments.contains_key(meant) => {
                            arguments.insert(meant.to_owned(), value.unwrap_or_default());
                        }
                        _ => {
                            if property(schema, DRY_RUN).is_some() {
                                arguments.insert(DRY_RUN.to_owned(), true.into());
                            }
                        }
                    }
                }
            }
            ValidationErrorKind::Required { property } if name.is_empty() => {
                open.push(property.as_str()?.to_owned());
            }
            // What is wrong within a value can't be told apart here.
            _ if name.is_empty() || name.contains('/') => return None,
            ValidationErrorKind::Maximum { limit } | ValidationErrorKind::Minimum { limit } => {
                arguments.insert(name.to_owned(), limit.clone());
            }
            kind => {
                let value = match kind {
                    ValidationErrorKind::Enum { options } => {
                        closest_value(error.instance(), options).map(Value::from)
                    }
                    ValidationErrorKind::Type { .. } => items(error.instance(), property(schema, name))
                        .or_else(|| truth(error.instance(), property(schema, name))),
                    _ => None,
                };
                match value {
                    Some(value) => _ = arguments.insert(name.to_owned(), value),
                    None => {
                        arguments.remove(name);
                        open.push(name.to_owned());
                    }
                }
            }
        }
    }
    open.retain(|name| !arguments.contains_key(name));
    // A correction may be wrong in its turn.
    let is_open = |error: ValidationError| match error.kind() {
        ValidationErrorKind::Required { property } => {
            property.as_str().is_some_and(|name| open.iter().any(|open| open == name))
        }
        _ => false,
    };
    if !validator.iter_errors(&Value::Object(arguments.clone())).all(is_open) {
        return None;
    }
    let said =
        properties(schema).into_iter().flatten().filter_map(|(name, property)| match arguments.get(name) {
            Some(value) => Some(format!("{name}={}", shown(value))),
            None => open.contains(name).then(|| format!("{name}=<{}>", choice(name, property))),
        });
    let call: Vec<String> = std::iter::once(begin.to_owned()).chain(said).collect();
    let call = call.join(" ");
    (call.chars().count() <= LONGEST_CALL).then(|| format!("Call {}", redact::excerpt(&call, LONGEST_CALL)))
}

/// The values of which the caller chooses one, or the argument's name.
fn choice(name: &str, property: &Value) -> String {
    let values = property.get("enum").and_then(Value::as_array).into_iter().flatten();
    let values: Vec<&str> = values.filter_map(Value::as_str).collect();
    if (1..=MOST_VALUES).contains(&values.len()) { values.join("|") } else { name.to_owned() }
}

/// A value as it is written behind an argument's name.
fn shown(value: &Value) -> String {
    let is_plain = |text: &str| {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"._/:@%+*~^-".contains(&byte);
        !text.is_empty() && text.bytes().all(fits)
    };
    match value {
        Value::String(text) if is_plain(text) && text.len() <= LONGEST_TEXT => text.clone(),
        value => {
            let text = value.to_string();
            if text.chars().count() > LONGEST_TEXT { "…".to_owned() } else { text }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps_of(given: Value) -> Vec<String> {
        let schema = json!({
            "type": "object",
            "properties": {
                "service": {"type": "string"},
                "state": {"enum": ["active", "failed"]},
                "count": {"type": "integer", "minimum": 1, "maximum": 9},
                "argv": {"type": "array", "items": {"type": "string"}},
                "user": {"type": "string"},
                "units": {"type": "array", "items": {"type": "string"}},
                "dry_run": {"type": "boolean"},
            },
            "required": ["service"],
            "additionalProperties": false,
        });
        let validator = jsonschema::validator_for(&schema).unwrap();
        steps("t", &schema, &validator, &given)
    }

    #[test]
    fn the_right_call_is_written_out() {
        for (given, expected) in [
            (json!({}), &["Call t service=<service>"][..]),
            (json!({"sevice": "nginx"}), &["Say service instead of sevice", "Call t service=nginx"]),
            // The only argument that is missing is meant, whatever it was called.
            (json!({"thing": "nginx"}), &["Say service instead of thing", "Call t service=nginx"]),
            (
                json!({"service": "nginx", "count": 10}),
                &["count: say at most 9", "Call t service=nginx count=9"],
            ),
            (
                json!({"service": "nginx", "state": "faild"}),
                &["state: say failed", "Call t service=nginx state=failed"],
            ),
            (json!({"service": "nginx", "state": "gone"}), &["Call t service=nginx state=<active|failed>"]),
            (
                json!({"service": "nginx", "argv": "df -h"}),
                &["argv is a list: say [\"df\",\"-h\"]", "Call t service=nginx argv=[\"df\",\"-h\"]"],
            ),
            (json!({"service": ["a", "b"]}), &["Call t service=<service>"]),
            (
                json!({"service": "two words", "count": 0}),
                &["count: say at least 1", "Call t service=\"two words\" count=1"],
            ),
            (
                json!({"service": "nginx", "count": 0, "user": "x".repeat(200)}),
                &["count: say at least 1", "Call t service=nginx count=1 user=…"],
            ),
            // What is close to another argument isn't the missing one.
            (
                json!({"dryrun": true}),
                &["Say dry_run instead of dryrun", "Call t service=<service> dry_run=true"],
            ),
            (json!({"dryrun": "yes"}), &["Say dry_run instead of dryrun"]),
            // It is never read as it isn't said, but it is told how it is said.
            (json!({"service": "nginx", "dry_run": "true"}), &["Call t service=nginx dry_run=true"]),
            (json!({"service": "nginx", "dry_run": "yes"}), &["Call t service=nginx dry_run=<dry_run>"]),
            (json!({"service": "nginx"}), &["Call t service=nginx"]),
            // An argument that isn't there may have been for safety.
            (json!({"service": "nginx", "simulate": true}), &["Call t service=nginx dry_run=true"]),
            (
                json!({"service": "nginx", "unit": "a"}),
                &["Say service or units instead of unit", "Call t service=nginx dry_run=true"],
            ),
        ] {
            assert_eq!(steps_of(given.clone()), expected, "{given}");
        }
    }

    #[test]
    fn what_cannot_be_told_is_not_written_as_a_call() {
        for given in [
            // What is wrong lies within a value.
            json!({"service": "nginx", "argv": [["df"]]}),
            json!(7),
        ] {
            assert!(steps_of(given.clone()).iter().all(|step| !step.starts_with("Call ")), "{given}");
        }
    }

    #[test]
    fn a_call_repeats_no_secret() {
        let steps = steps_of(json!({"service": "nginx", "count": 0, "user": "password=hunter2secret"}));
        assert!(!steps.concat().contains("hunter2secret"), "{steps:?}");
    }
}
