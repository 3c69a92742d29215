//! The schemas of tools' arguments: as clients see them, with the common arguments that the host adds, and what is said of a
//! call that doesn't fit.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::config::Limit;
use host_base::Risk;
use host_base::problem::{Category, Problem};
use host_components::common::{CONFIRMED, DRY_RUN, HOST, LISTING};
use host_components::{Shape, Tool};

/// Violations that are reported one by one.
const MOST_VIOLATIONS: usize = 20;

/// What of the common arguments a client is to see.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shown {
    /// It confirms in a second call.
    pub two_step: bool,
    /// There are hosts to choose from.
    pub hosts: bool,
}

/// The schema that a client sees: the tool's own, with the common arguments that it doesn't declare itself.
pub fn shown_schema(tool: &Tool, shown: Shown) -> Map<String, Value> {
    let mut schema = schema(tool);
    let mut common = Vec::new();
    let is_own = |name| declares(&schema, name);
    if shown.hosts && !tool.on_controller && !is_own(HOST) {
        common.push((HOST, json!({"type": ["string", "array"]})));
    }
    if shown.two_step && tool.risk > Risk::ReadOnly && !is_own(CONFIRMED) {
        common.push((CONFIRMED, json!({"type": "boolean"})));
    }
    if !common.is_empty()
        && let Value::Object(properties) = schema.entry("properties").or_insert_with(|| json!({}))
    {
        properties.extend(common.into_iter().map(|(name, property)| (name.to_owned(), property)));
    }
    schema
}

/// The schema that arguments are held against.
pub fn schema(tool: &Tool) -> Map<String, Value> {
    let mut schema = tool.input_schema.read();
    let mut common = Vec::new();
    if tool.shape == Shape::Listing {
        common.push((LISTING[0], json!({"type": "integer", "minimum": 1, "maximum": Limit::MOST})));
        common.push((LISTING[1], json!({"type": "string"})));
    }
    if tool.risk > Risk::ReadOnly {
        common.push((DRY_RUN, json!({"type": "boolean"})));
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

/// Whether a schema has an argument of this name.
pub fn declares(schema: &Map<String, Value>, name: &str) -> bool {
    schema.get("properties").is_some_and(|own| own.get(name).is_some())
}

/// What a tool takes, where a call says something else.
pub fn invalid(tool: &Tool, violations: Vec<String>) -> Problem {
    let count = violations.len();
    let shown = violations.into_iter().take(MOST_VIOLATIONS).collect::<Vec<_>>().join("; ");
    let more = if count > MOST_VIOLATIONS {
        format!("; and {} more", count - MOST_VIOLATIONS)
    } else {
        String::new()
    };
    let message = format!("{} doesn't take these arguments: {shown}{more}", tool.name);
    let schema = schema(tool);
    let properties = schema.get("properties").and_then(Value::as_object);
    let names: Vec<&str> =
        properties.into_iter().flat_map(|properties| properties.keys()).map(String::as_str).collect();
    let expected = match names.as_slice() {
        [] => format!("{} takes no arguments", tool.name),
        names => format!("{} takes {}", tool.name, names.join(", ")),
    };
    Problem::new("INVALID_ARGUMENTS", Category::Validation, message).remedy(expected)
}
