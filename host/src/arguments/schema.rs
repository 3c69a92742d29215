//! The schemas of tools' arguments, with the common arguments that the host adds, and the error for arguments that don't
//! fit.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::config::ListingLimit;
use host_base::Risk;
use host_base::problem::{Category, Problem};
use host_components::host_arguments::{CONFIRMED, DRY_RUN, HOST, LISTING};
use host_components::{Shape, Tool};

/// The number of violations that are reported one by one.
const MAX_VIOLATIONS: usize = 20;

/// The common arguments that a client sees.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SchemaOptions {
    /// True where the client confirms a call by making it a second time: it sees `confirmed`.
    pub two_step: bool,
    /// True where there are hosts to choose from: the client sees `host`.
    pub hosts: bool,
}

/// The schema that a client sees: that of the tool, with the common arguments that it does not declare itself.
pub fn client_schema(tool: &Tool, options: SchemaOptions) -> Map<String, Value> {
    let mut schema = argument_schema(tool);
    // A client that checks a call itself would refuse the other names of arguments, which the host understands.
    if schema.get("additionalProperties") == Some(&Value::Bool(false)) {
        schema.remove("additionalProperties");
    }
    // Its bounds are told where a call is beyond them: they would be in the list for each listing.
    if !declares(&tool.input_schema, LISTING[0])
        && let Some(Value::Object(limit)) =
            schema.get_mut("properties").and_then(|all| all.get_mut(LISTING[0]))
    {
        limit.retain(|keyword, _| !["minimum", "maximum"].contains(&keyword.as_str()));
    }
    let mut common = Vec::new();
    let is_own = |name| declares(&schema, name);
    if options.hosts && !tool.on_controller && !is_own(HOST) {
        let description = "Host, group or glob, or a list";
        common.push((HOST, json!({"type": ["string", "array"], "description": description})));
    }
    if options.two_step && tool.risk > Risk::ReadOnly && !is_own(CONFIRMED) {
        common.push((CONFIRMED, json!({"type": "boolean", "description": "A person said yes"})));
    }
    if !common.is_empty()
        && let Value::Object(properties) = schema.entry("properties").or_insert_with(|| json!({}))
    {
        properties.extend(common.into_iter().map(|(name, property)| (name.to_owned(), property)));
    }
    schema
}

/// The schema that arguments are checked against.
pub fn argument_schema(tool: &Tool) -> Map<String, Value> {
    let mut schema = tool.input_schema.read();
    let mut common = Vec::new();
    if tool.shape == Shape::Listing {
        let (least, most) = (1, ListingLimit::MOST);
        common.push((
            LISTING[0],
            json!({"type": "integer", "minimum": least, "maximum": most, "description": "Most items"}),
        ));
        common.push((LISTING[1], json!({"type": "string", "description": "Text in items"})));
    }
    if tool.risk > Risk::ReadOnly {
        common.push((DRY_RUN, json!({"type": "boolean", "description": "Plan only"})));
    }
    if !common.is_empty()
        && let Value::Object(properties) = schema.entry("properties").or_insert_with(|| json!({}))
    {
        for (name, property) in common {
            properties.entry(name).or_insert(property);
        }
    }
    schema
}

/// Whether the schema has an argument of this name.
pub fn declares(schema: &Map<String, Value>, name: &str) -> bool {
    schema.get("properties").is_some_and(|own| own.get(name).is_some())
}

/// The error for arguments that don't fit, with the names of those that the tool takes.
pub fn invalid_arguments(tool: &Tool, violations: Vec<String>) -> Problem {
    let count = violations.len();
    let shown = violations.into_iter().take(MAX_VIOLATIONS).collect::<Vec<_>>().join("; ");
    let more =
        if count > MAX_VIOLATIONS { format!("; and {} more", count - MAX_VIOLATIONS) } else { String::new() };
    let message = format!("{} doesn't take these arguments: {shown}{more}", tool.name);
    let schema = argument_schema(tool);
    let properties = schema.get("properties").and_then(Value::as_object);
    let names: Vec<&str> =
        properties.into_iter().flat_map(|properties| properties.keys()).map(String::as_str).collect();
    let expected = match names.as_slice() {
        [] => format!("{} takes no arguments", tool.name),
        names => format!("{} takes {}", tool.name, names.join(", ")),
    };
    Problem::new("INVALID_ARGUMENTS", Category::Validation, message).remedy(expected)
}
