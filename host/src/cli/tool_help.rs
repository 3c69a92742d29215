//! The help about one tool: what it does, its arguments with types, bounds and defaults, and an example. All of it comes from
//! the tool's description and schema.

use anyhow::bail;
use serde_json::{Map, Value};
use textwrap::core::display_width;

use super::screen::{HEADING, Screen, risk_style};
use super::text::risk_name;
use crate::arguments::schema::{SchemaOptions, client_schema, declares};
use crate::dispatcher::Dispatcher;
use host_base::Risk;
use host_components::host_arguments::{DRY_RUN, HOST, LISTING};
use host_components::{Module, Registry, Shape, Tool};
use host_text::suggestion::closest;
use host_text::visible::one_line;

/// The width of a list of values beside the name of an argument. A longer one stands with the remarks.
const MOST_VALUES: usize = 24;
/// The width of an argument with its type. Behind a longer one the remarks begin on the next line.
const MOST_ARGUMENT: usize = 28;
/// The number of names that are suggested for an unknown one.
const MOST_SUGGESTED: usize = 5;

/// The help about the tool with this name.
pub(super) async fn text(dispatcher: &Dispatcher, name: &str, screen: Screen) -> anyhow::Result<String> {
    let modules = dispatcher.modules().await;
    let registry = &modules.registry;
    let tool = find(registry, name)?;
    let options = SchemaOptions { two_step: false, hosts: dispatcher.targets().offers_hosts() };
    let has_it = |module: &&Module| module.description.tools.iter().any(|one| one.name == tool.name);
    let owners: Vec<&Module> = registry.modules().iter().map(|module| &**module).filter(has_it).collect();
    let owner = |module: &&Module| format!("{} {}", module.description.name, module.description.version);
    let owners = owners.iter().map(owner).collect::<Vec<_>>().join(", ");
    Ok(help(tool, &owners, &client_schema(tool, options), screen))
}

/// The tool with this name or alias. Names that are similar to an unknown one are suggested.
pub(super) fn find<'a>(registry: &'a Registry, name: &str) -> anyhow::Result<&'a Tool> {
    if let Some(tool) = registry.tool(name) {
        return Ok(tool);
    }
    let similar = closest(name, registry.tools().map(|tool| tool.name.as_str()));
    let similar: Vec<&str> = similar.into_iter().take(MOST_SUGGESTED).collect();
    let meant = match similar.as_slice() {
        [] => String::new(),
        similar => format!("; similar: {}", similar.join(", ")),
    };
    bail!("there is no tool {}: `linux-sysadmin tools` lists those that there are{meant}", one_line(name))
}

/// The help about a tool. `owners` are the modules that have it, and `schema` is what a client sees.
fn help(tool: &Tool, owners: &str, schema: &Map<String, Value>, screen: Screen) -> String {
    let mut text = String::new();
    let name = screen.paint(HEADING, &tool.name);
    let wrapped = screen.wrap(&one_line(&tool.summary), &format!("{}: ", tool.name), "  ");
    let behind = wrapped.strip_prefix(&tool.name).unwrap_or_default();
    text.push_str(&format!("{name}{behind}\n\n"));
    let effect = match tool.risk {
        Risk::ReadOnly => "none: it only looks".to_owned(),
        risk => {
            let risk = screen.paint(risk_style(risk), risk_name(risk));
            format!("{risk} or higher: it changes something")
        }
    };
    let answer = match tool.shape {
        Shape::Single => "an object",
        Shape::Listing => "a list",
        Shape::Analysis => "an object, with a summary and a severity",
    };
    let place = if tool.on_controller { "this machine, whatever the target is" } else { "the target" };
    for (name, value) in [("Module", owners), ("Risk", effect.as_str()), ("Answer", answer), ("Place", place)]
    {
        text.push_str(&format!("{}\n", screen.wrap(value, &format!("  {name:8}"), &" ".repeat(10))));
    }
    let required: Vec<&str> = schema
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let properties: Vec<(&String, &Value)> =
        schema.get("properties").and_then(Value::as_object).into_iter().flatten().collect();
    let (own, common): (Vec<_>, Vec<_>) =
        properties.iter().partition(|(name, _)| declares(&tool.input_schema, name));
    for (heading, arguments) in [("Arguments:", &own), ("Common arguments:", &common)] {
        if arguments.is_empty() {
            continue;
        }
        text.push_str(&format!("\n{}\n", screen.paint(HEADING, heading)));
        let is_common = heading != "Arguments:";
        let values = |name: &str, property: &Value| match is_common && name == HOST {
            true => "HOST".to_owned(),
            false => kind(property),
        };
        let shown: Vec<String> = arguments
            .iter()
            .map(|(name, property)| format!("{}={}", one_line(name), values(name, property)))
            .collect();
        let widths = shown.iter().map(|shown| display_width(shown)).filter(|width| *width <= MOST_ARGUMENT);
        let width = widths.max().unwrap_or_default().min(screen.columns() / 2);
        for ((name, property), shown) in arguments.iter().zip(&shown) {
            let remarks = remarks(name, property, required.contains(&name.as_str()), is_common);
            text.push_str(&argument(shown, &remarks, width, screen));
        }
    }
    text.push_str(&format!("\n{}\n", screen.paint(HEADING, "Example:")));
    for line in examples(tool, &properties, &required) {
        text.push_str(&format!("{}\n", screen.wrap(&line, "  ", "    ")));
    }
    text
}

/// An argument with its remarks beside it, or below it where it is too long.
fn argument(shown: &str, remarks: &str, width: usize, screen: Screen) -> String {
    let then = " ".repeat(width + 4);
    let blanks = " ".repeat(width.saturating_sub(display_width(shown)));
    match (remarks, display_width(shown) <= width) {
        ("", _) => format!("{}\n", screen.wrap(shown, "  ", "    ")),
        (remarks, true) => format!("{}\n", screen.wrap(remarks, &format!("  {shown}{blanks}  "), &then)),
        (remarks, false) => {
            format!("{}\n{}\n", screen.wrap(shown, "  ", "    "), screen.wrap(remarks, &then, &then))
        }
    }
}

/// The values that an argument takes, as they stand behind its name.
fn kind(property: &Value) -> String {
    let is_short = |values: &String| display_width(values) <= MOST_VALUES;
    if let Some(values) = values_of(property).map(|values| values.join("|")) {
        return if is_short(&values) { values } else { "WORD".to_owned() };
    }
    let of_type = |name: &str| match name {
        "string" => "TEXT".to_owned(),
        "integer" | "number" => "NUMBER".to_owned(),
        "boolean" => "true|false".to_owned(),
        "object" => "JSON".to_owned(),
        "array" => format!("{}...", property.get("items").map_or_else(|| "VALUE".to_owned(), kind)),
        _ => "VALUE".to_owned(),
    };
    let kinds: Vec<String> = match (property.get("type"), variants(property)) {
        (Some(Value::String(name)), _) => vec![of_type(name)],
        (Some(Value::Array(names)), _) => names.iter().filter_map(Value::as_str).map(of_type).collect(),
        (_, Some(variants)) => variants.iter().map(kind).collect(),
        _ => Vec::new(),
    };
    match kinds.as_slice() {
        [] => "VALUE".to_owned(),
        kinds => kinds.join("|"),
    }
}

fn variants(property: &Value) -> Option<&Vec<Value>> {
    ["anyOf", "oneOf"].iter().find_map(|name| property.get(*name)?.as_array())
}

/// The values of an enumeration.
pub(super) fn values_of(property: &Value) -> Option<Vec<String>> {
    if let Some(only) = property.get("const") {
        return Some(vec![as_word(only)]);
    }
    Some(property.get("enum")?.as_array()?.iter().map(as_word).collect())
}

/// A value as it is written behind `=`.
fn as_word(value: &Value) -> String {
    match value {
        Value::String(text) => one_line(text),
        other => one_line(&other.to_string()),
    }
}

/// The sentence beside an argument: what it is for, its bounds, its default, and whether it has to be given.
fn remarks(name: &str, property: &Value, is_required: bool, is_common: bool) -> String {
    let items = property.get("items").unwrap_or(property);
    let mut remarks = Vec::new();
    // The schema's words about common arguments are few, because each model reads them for each tool.
    if let Some(meaning) = common(name).filter(|_| is_common) {
        remarks.push(meaning.to_owned());
    } else if let Some(description) = property.get("description").and_then(Value::as_str) {
        remarks.push(one_line(description));
    }
    let values = values_of(items).map(|values| values.join(", "));
    remarks.extend(
        values.filter(|values| display_width(values) > MOST_VALUES).map(|all| format!("one of {all}")),
    );
    let bound = |name: &str| items.get(name).filter(|bound| bound.is_number()).map(Value::to_string);
    match (bound("minimum"), bound("maximum")) {
        (Some(least), Some(most)) => remarks.push(format!("{least} to {most}")),
        // Every count begins at 0.
        (Some(least), None) if least != "0" => remarks.push(format!("at least {least}")),
        (None, Some(most)) => remarks.push(format!("at most {most}")),
        _ => {}
    }
    if let Some(members) = items.get("properties").and_then(Value::as_object) {
        let members: Vec<String> = members.keys().map(|name| one_line(name)).collect();
        remarks.push(format!("with {}", members.join(", ")));
    }
    if let Some(default) = property.get("default") {
        remarks.push(format!("default {}", as_word(default)));
    }
    if is_required {
        remarks.push("required".to_owned());
    }
    remarks.join("; ")
}

/// The meaning of a common argument, which the host adds to the tool's own.
fn common(name: &str) -> Option<&'static str> {
    [
        (HOST, "the target: a host, a group, a glob such as web*, or several of them with commas between"),
        (DRY_RUN, "show the plan, and change nothing"),
        (LISTING[0], "the number of items at most"),
        (LISTING[1], "only the items with this text in any of their values"),
    ]
    .into_iter()
    .find_map(|(known, meaning)| (known == name).then_some(meaning))
}

/// Calls with everything that has to be given. A change is shown first.
fn examples(tool: &Tool, properties: &[(&String, &Value)], required: &[&str]) -> Vec<String> {
    let mut given: Map<String, Value> = properties
        .iter()
        .filter(|(name, _)| required.contains(&name.as_str()))
        .map(|(name, property)| ((*name).clone(), example(name, property)))
        .collect();
    if tool.risk > Risk::ReadOnly && !declares(&tool.input_schema, DRY_RUN) {
        given.insert(DRY_RUN.to_owned(), Value::Bool(true));
    }
    let call = format!("linux-sysadmin call {}", tool.name);
    if given.is_empty() {
        return vec![call];
    }
    let pairs: Vec<String> =
        given.iter().map(|(name, value)| quoted(&format!("{name}={}", as_argument(value)))).collect();
    let object = Value::Object(given).to_string();
    vec![format!("{call} {}", pairs.join(" ")), format!("{call} --args {}", quoted(&object))]
}

/// A value that the argument takes, as far as its schema tells.
fn example(name: &str, property: &Value) -> Value {
    let first = |name: &str| property.get(name)?.as_array()?.first().cloned();
    let known = first("examples").or_else(|| property.get("default").cloned());
    if let Some(known) = known.or_else(|| property.get("const").cloned()).or_else(|| first("enum")) {
        return known;
    }
    let kind = match property.get("type") {
        Some(Value::String(kind)) => kind.as_str(),
        Some(Value::Array(kinds)) => kinds.first().and_then(Value::as_str).unwrap_or_default(),
        _ => match variants(property).and_then(|variants| variants.first()) {
            Some(variant) => return example(name, variant),
            None => "string",
        },
    };
    match kind {
        "integer" | "number" => property.get("minimum").cloned().unwrap_or_else(|| 1.into()),
        "boolean" => Value::Bool(true),
        "array" => {
            Value::Array(property.get("items").map(|items| example(name, items)).into_iter().collect())
        }
        "object" => {
            let required = property.get("required").and_then(Value::as_array).into_iter().flatten();
            let member =
                |name: &str| Some((name.to_owned(), example(name, property.get("properties")?.get(name)?)));
            Value::Object(required.filter_map(Value::as_str).filter_map(member).collect())
        }
        _ => Value::from(name.to_uppercase()),
    }
}

/// A value as `call` reads it behind `=`. A list of one item is given as the item.
fn as_argument(value: &Value) -> String {
    match value {
        Value::Array(items) => match items.as_slice() {
            [Value::String(only)] => only.clone(),
            _ => value.to_string(),
        },
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// The word as a shell takes it.
fn quoted(word: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./:=@%+,".contains(&byte);
    match word.bytes().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", one_line(word).replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tool(risk: &str, shape: &str, properties: Value, required: Value) -> Tool {
        let input_schema = json!({
            "type": "object", "properties": properties, "required": required, "additionalProperties": false
        });
        let tool = json!({
            "name": "web_restart", "summary": "Restart a site, or start it", "risk": risk, "shape": shape,
            "duration": "quick", "first": false, "aliases": {}, "input_schema": input_schema,
        });
        serde_json::from_value(tool).unwrap()
    }

    fn shown(tool: &Tool, width: usize) -> String {
        let schema = client_schema(tool, SchemaOptions { two_step: false, hosts: true });
        help(tool, "web 0.1.0", &schema, Screen::plain(width))
    }

    #[test]
    fn the_help_has_types_bounds_defaults_and_an_example() {
        let properties = json!({
            "site": {"type": "string", "description": "The site's name"},
            "ports": {"type": "array", "items": {"type": "integer", "minimum": 1, "maximum": 65535}},
            "how": {"type": "string", "enum": ["gently", "at once"], "default": "gently"},
        });
        assert_eq!(
            shown(&tool("moderate", "single", properties, json!(["site"])), 80),
            "web_restart: Restart a site, or start it\n\
             \n  Module  web 0.1.0\n  Risk    moderate or higher: it changes something\n  Answer  an object\n  \
             Place   the target\n\
             \nArguments:\n  site=TEXT           The site's name; required\n  ports=NUMBER...     1 to 65535\n  \
             how=gently|at once  default gently\n\
             \nCommon arguments:\n  dry_run=true|false  show the plan, and change nothing\n  \
             host=HOST           the target: a host, a group, a glob such as web*, or\n                      \
             several of them with commas between\n\
             \nExample:\n  linux-sysadmin call web_restart site=SITE dry_run=true\n  \
             linux-sysadmin call web_restart --args '{\"site\":\"SITE\",\"dry_run\":true}'\n"
        );
        let looks = shown(&tool("read-only", "listing", json!({}), json!([])), 80);
        assert!(looks.contains("none: it only looks") && !looks.contains("\nArguments:"), "{looks}");
        assert!(
            looks.contains("limit=NUMBER") && looks.ends_with("  linux-sysadmin call web_restart\n"),
            "{looks}"
        );
    }

    #[test]
    fn a_type_is_written_as_what_stands_behind_the_name() {
        for (property, expected) in [
            (json!({"type": "string"}), "TEXT"),
            (json!({"type": "number"}), "NUMBER"),
            (json!({"type": "boolean"}), "true|false"),
            (json!({"type": "object"}), "JSON"),
            (json!({"type": "array", "items": {"enum": ["a", "b"]}}), "a|b..."),
            (json!({"type": ["string", "integer"]}), "TEXT|NUMBER"),
            (
                json!({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}),
                "TEXT|TEXT...",
            ),
            (json!({"const": "only"}), "only"),
            (json!({"enum": ["a rather long value", "and another one"]}), "WORD"),
            (json!({}), "VALUE"),
        ] {
            assert_eq!(kind(&property), expected, "{property}");
        }
        let long = json!({"enum": ["a rather long value", "and another one"]});
        assert_eq!(remarks("x", &long, true, false), "one of a rather long value, and another one; required");
        let members = json!({"type": "array", "items": {"type": "object", "properties": {"a": {}, "b": {}}}});
        assert_eq!(remarks("x", &members, false, false), "with a, b");
        for (property, expected) in [
            (json!({"minimum": 0}), ""),
            (json!({"minimum": 2}), "at least 2"),
            (json!({"maximum": 9, "default": 5}), "at most 9; default 5"),
        ] {
            assert_eq!(remarks("x", &property, false, false), expected, "{property}");
        }
    }

    #[test]
    fn an_example_is_a_call_that_a_shell_takes() {
        for (property, expected) in [
            (json!({"type": "string"}), "x=X"),
            (json!({"type": "string", "examples": ["a b"]}), "'x=a b'"),
            (json!({"type": "string", "default": "it's"}), r"'x=it'\''s'"),
            (json!({"type": "integer", "minimum": 3}), "x=3"),
            (json!({"type": "array", "items": {"type": "string"}}), "x=X"),
            (json!({"type": "array", "items": {"type": "integer"}}), "'x=[1]'"),
            (
                json!({"type": "object", "properties": {"a": {"type": "boolean"}}, "required": ["a"]}),
                "'x={\"a\":true}'",
            ),
        ] {
            assert_eq!(
                quoted(&format!("x={}", as_argument(&example("x", &property)))),
                expected,
                "{property}"
            );
        }
    }

    #[test]
    fn no_line_is_longer_than_the_screen_and_nothing_hidden_is_shown() {
        let evil = format!("x\u{1b}[2J\n{}", "word ".repeat(30));
        let properties = json!({
            "a_name_as_long_as_no_tool_has_one": {"enum": [evil], "description": evil, "default": evil},
            "site": {"type": "string", "description": evil},
        });
        let tool = tool("high", "analysis", properties, json!(["a_name_as_long_as_no_tool_has_one"]));
        for width in [20, 40, 80, 132] {
            let shown = shown(&tool, width);
            assert!(shown.lines().all(|line| display_width(line) <= width), "{width}: {shown}");
            assert!(!shown.chars().any(|c| c != '\n' && host_text::characters::is_hidden(c)), "{shown:?}");
        }
    }
}
