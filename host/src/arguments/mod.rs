//! A call's arguments. The host takes out the common ones that it adds to every tool, and checks all others against the
//! tool's schema.

pub mod aliases;
mod coercion;
mod corrections;
pub mod schema;
mod synonyms;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use jsonschema::Validator;
use jsonschema::error::ValidationErrorKind;
use serde_json::{Map, Value};

use crate::config::ListingLimit;
use aliases::AppliedAliases;
use host_base::Risk;
use host_base::problem::{Category, Problem};
use host_components::host_arguments::{AGENT, CONFIRMED, DRY_RUN, HOST, LISTING};
use host_components::{Shape, Tool};
use host_text::visible::excerpt;
use schema::{argument_schema, declares, invalid_arguments};

/// The number of bytes of one call's arguments as JSON, without the texts for which the tool's schema has a `maxLength`.
const MAX_BYTES: usize = 1 << 20;

/// The number of characters of `agent_id`.
pub const MAX_AGENT_ID: usize = 64;

/// Takes out the hosts that the call names; `None` where it names none.
pub fn take_host(tool: &Tool, arguments: &mut Map<String, Value>) -> Result<Option<Vec<String>>, Problem> {
    if !takes_host(tool) {
        return Ok(None);
    }
    let wrong = || {
        let expected = "expected a host's name, a group, a glob such as web*, or a list of them";
        invalid_arguments(tool, vec![format!("{HOST}: {expected}")])
    };
    match arguments.remove(HOST) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(said)) => Ok(Some(vec![said])),
        Some(Value::Array(said)) if !said.is_empty() => {
            let text = |said: Value| said.as_str().map(str::to_owned).ok_or_else(wrong);
            said.into_iter().map(text).collect::<Result<_, _>>().map(Some)
        }
        Some(_) => Err(wrong()),
    }
}

/// Whether `host` is the common argument. A tool that declares an argument of this name keeps it.
fn takes_host(tool: &Tool) -> bool {
    !tool.on_controller && !declares(&tool.input_schema, HOST)
}

/// Takes out the agent that calls, unless the tool declares an argument of this name. An agent may call itself anything.
pub fn take_agent(tool: &Tool, arguments: &mut Map<String, Value>) -> Option<String> {
    match arguments.get(AGENT) {
        Some(Value::String(said)) if !declares(&tool.input_schema, AGENT) => {
            let said = excerpt(said, MAX_AGENT_ID);
            arguments.remove(AGENT);
            Some(said)
        }
        _ => None,
    }
}

/// Whether the call is a dry run.
pub fn is_dry_run(tool: &Tool, arguments: &Map<String, Value>) -> bool {
    !declares(&tool.input_schema, DRY_RUN) && arguments.get(DRY_RUN) == Some(&Value::Bool(true))
}

/// Takes out whether the client says that the call is confirmed. This is an error where it doesn't count: the caller would
/// believe that it did.
pub fn take_confirmed(
    tool: &Tool,
    arguments: &mut Map<String, Value>,
    two_step: bool,
) -> Result<bool, Problem> {
    if !takes_confirmed(tool) {
        return Ok(false);
    }
    match arguments.remove(CONFIRMED) {
        None | Some(Value::Null) => Ok(false),
        Some(Value::Bool(confirmed)) if two_step => Ok(confirmed),
        Some(_) if two_step => {
            Err(invalid_arguments(tool, vec![format!("{CONFIRMED}: expected true or false")]))
        }
        Some(_) => {
            let why = "a person confirms it in another way, and is asked where that is needed";
            Err(invalid_arguments(tool, vec![format!("{CONFIRMED} is not taken here: {why}")]))
        }
    }
}

/// Whether `confirmed` is the common argument. A tool that declares an argument of this name keeps it.
fn takes_confirmed(tool: &Tool) -> bool {
    tool.risk > Risk::ReadOnly && !declares(&tool.input_schema, CONFIRMED)
}

/// The arguments of a call, split into the tool's own and the host's.
#[derive(Clone, Debug)]
pub struct Arguments {
    /// The tool's own, as JSON.
    pub own: String,
    /// The number of items that a listing returns at most.
    pub limit: Option<u32>,
    /// The text that the items of a listing must contain.
    pub filter: Option<String>,
    /// Whether the call is a dry run.
    pub dry_run: bool,
}

/// The compiled schemas by tool. A schema is compiled at the tool's first call, because compiling takes longer than checking.
#[derive(Default)]
pub struct Validators(Mutex<HashMap<String, Arc<Compiled>>>);

#[derive(Debug)]
struct Compiled {
    schema: Value,
    validator: Validator,
}

impl Validators {
    fn get(&self, tool: &Tool) -> Result<Arc<Compiled>, Problem> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(compiled) = known.get(&tool.name) {
            return Ok(compiled.clone());
        }
        let schema = Value::Object(argument_schema(tool));
        let validator = jsonschema::validator_for(&schema).map_err(|error| {
            Problem::new(
                "INVALID_SCHEMA",
                Category::Internal,
                format!("the schema of {}: {error}", tool.name),
            )
        })?;
        let compiled = Arc::new(Compiled { schema, validator });
        known.insert(tool.name.clone(), compiled.clone());
        Ok(compiled)
    }
}

/// The call of a tool that another tool's arguments amount to, written out. None where that can't be told.
pub fn written_out(validators: &Validators, tool: &Tool, arguments: &Map<String, Value>) -> Option<String> {
    let (mut name, mut arguments) = (tool.name.clone(), arguments.clone());
    AppliedAliases::default().apply(validators, tool, &mut name, &mut arguments).ok()?;
    let hosts = take_host(tool, &mut arguments).ok()?;
    let is_own = |name: &str| declares(&tool.input_schema, name);
    arguments.retain(|name, _| is_own(name) || ![AGENT, CONFIRMED, HOST].contains(&name.as_str()));
    let compiled = validators.get(tool).ok()?;
    let begin = corrections::begin(&tool.name, hosts.as_deref());
    corrections::right_call(&begin, &compiled.schema, &compiled.validator, &Value::Object(arguments))
}

/// Checks all arguments, then takes the common ones out. Other names have been replaced before; `aliases` has them for the
/// messages about violations, and `hosts` is what the call names as its hosts.
pub fn check(
    validators: &Validators,
    tool: &Tool,
    hosts: Option<&[String]>,
    arguments: Map<String, Value>,
    aliases: &AppliedAliases,
) -> Result<Arguments, Problem> {
    let size = size(tool, &arguments);
    if size > MAX_BYTES {
        let message = format!("the arguments are {size} bytes as JSON; at most {MAX_BYTES} are taken");
        return Err(Problem::new("ARGUMENTS_TOO_LARGE", Category::Validation, message));
    }
    let (compiled, mut arguments) = (validators.get(tool)?, arguments);
    let Compiled { schema, validator } = &*compiled;
    let has = |part: &str, name: &str| match schema.get(part) {
        Some(Value::Object(members)) => members.contains_key(name),
        Some(Value::Array(names)) => names.iter().any(|known| known == name),
        _ => false,
    };
    // Models give null for what they leave out.
    arguments.retain(|name, value| !value.is_null() || !has("properties", name) || has("required", name));
    let instance = Value::Object(arguments);
    let violations: Vec<String> =
        validator.iter_errors(&instance).map(|error| violation(&error, aliases)).collect();
    if !violations.is_empty() {
        let mut problem = invalid_arguments(tool, violations);
        let begin = corrections::begin(&tool.name, hosts);
        problem.remediation.splice(0..0, corrections::steps(&begin, schema, validator, &instance));
        return Err(problem);
    }
    let Value::Object(mut arguments) = instance else { return Err(invalid_arguments(tool, violations)) };
    let declared = |name: &str| declares(&tool.input_schema, name);
    let mut common = |name: &str| match tool.shape == Shape::Listing && !declared(name) {
        true => arguments.remove(name),
        false => None,
    };
    let limit = match declared(LISTING[0]) {
        // The tool has its own `limit` and cuts its answer itself. The host only bounds the answer.
        true => Some(ListingLimit::MOST),
        false => common(LISTING[0]).and_then(|value| u32::try_from(value.as_u64()?).ok()),
    };
    let filter = common(LISTING[1]).and_then(|value| Some(value.as_str()?.to_owned()));
    let changes = tool.risk > Risk::ReadOnly && !declared(DRY_RUN);
    let dry_run = changes && arguments.remove(DRY_RUN) == Some(Value::Bool(true));
    Ok(Arguments { own: Value::Object(arguments).to_string(), limit, filter, dry_run })
}

/// The size of the arguments as JSON in bytes. A text for which the tool says how long it may be, such as a whole file, is
/// bounded by that and by the longest message, and doesn't count.
fn size(tool: &Tool, arguments: &Map<String, Value>) -> usize {
    let is_bounded = |name: &str| {
        let declared = tool.input_schema.get("properties").and_then(|properties| properties.get(name));
        declared.is_some_and(|property| property.get("maxLength").is_some())
    };
    let counted = arguments.iter().filter(|(name, value)| !(value.is_string() && is_bounded(name)));
    let sizes = counted.map(|(name, value)| {
        name.len() + serde_json::to_vec(value).map_or(usize::MAX >> 1, |text| text.len())
    });
    sizes.fold(0, usize::saturating_add)
}

/// Says what is wrong with which argument, without the whole of a value that may be large.
fn violation(error: &jsonschema::ValidationError, aliases: &AppliedAliases) -> String {
    let at = error.instance_path().to_string();
    let name = at.trim_start_matches('/');
    let message = match error.kind() {
        ValidationErrorKind::MaxLength { limit } => {
            format!("the text is longer than {limit} characters, which is the most that is taken")
        }
        _ => excerpt(&error.to_string(), 300),
    };
    if name.is_empty() {
        return message;
    }
    let argument = name.split_once('/').map_or(name, |(argument, _)| argument);
    let said = aliases.argument(argument).map(|alias| format!(" (said as {alias})")).unwrap_or_default();
    format!("{}{said}: {message}", excerpt(name, 100))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(tool: &Tool, arguments: Map<String, Value>) -> Result<Arguments, Problem> {
        super::check(&Validators::default(), tool, None, arguments, &AppliedAliases::default())
    }

    fn tool(shape: &str, properties: Value) -> Tool {
        serde_json::from_value(json!({
            "name": "t", "summary": "s", "risk": "read-only", "shape": shape, "duration": "quick",
            "first": false, "aliases": {},
            "input_schema": {
                "type": "object", "properties": properties, "required": ["unit"], "additionalProperties": false
            }
        }))
        .unwrap()
    }

    fn arguments(value: Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn every_violation_is_reported_at_once() {
        let tool =
            tool("single", json!({"unit": {"type": "string"}, "count": {"type": "integer", "maximum": 9}}));
        let problem = check(&tool, arguments(json!({"count": 10, "extra": 1, "other": 2}))).unwrap_err();
        assert_eq!(problem.code, "INVALID_ARGUMENTS");
        for word in ["unit", "count", "9", "extra", "other"] {
            assert!(problem.message.contains(word), "{word} is not in: {}", problem.message);
        }
        let expected = ["count: say at most 9", "Call t unit=<unit> count=9", "t takes unit, count"];
        assert_eq!(problem.remediation, expected);
    }

    #[test]
    fn what_is_nearly_right_gets_a_suggestion() {
        let tool = tool(
            "single",
            json!({"unit": {"type": "string"}, "state": {"enum": ["active", "failed"]}, "count": {"minimum": 1}}),
        );
        for (given, correction, call) in [
            (
                json!({"unit": "a", "stat": "failed"}),
                Some("Say state instead of stat"),
                "unit=a state=failed",
            ),
            (json!({"unti": "a"}), Some("Say unit instead of unti"), "unit=a"),
            (json!({"unit": "a", "state": "faild"}), Some("state: say failed"), "unit=a state=failed"),
            (json!({"unit": "a", "state": "Active"}), Some("state: say active"), "unit=a state=active"),
            (json!({"unit": "a", "count": 0}), Some("count: say at least 1"), "unit=a count=1"),
            (json!({"unit": "a", "state": "gone"}), None, "unit=a state=<active|failed>"),
            (json!({"unit": "a", "colour": 1}), None, "unit=a"),
        ] {
            let remediation = check(&tool, arguments(given.clone())).unwrap_err().remediation;
            let call = format!("Call t {call}");
            let expected = correction.into_iter().chain([call.as_str(), "t takes unit, state, count"]);
            assert_eq!(remediation, expected.collect::<Vec<_>>(), "{given}");
        }
    }

    #[test]
    fn the_right_call_is_one_on_the_same_hosts() {
        let looking = tool("single", json!({"unit": {"type": "string"}}));
        for (hosts, call) in [
            (&[][..], "Call t unit=<unit>"),
            (&["web1"], "Call t host=web1 unit=<unit>"),
            (&["web1", "db*"], r#"Call t host=["web1","db*"] unit=<unit>"#),
        ] {
            let hosts: Vec<String> = hosts.iter().map(|host| (*host).to_owned()).collect();
            let hosts = (!hosts.is_empty()).then_some(&*hosts);
            let aliases = AppliedAliases::default();
            let problem = super::check(&Validators::default(), &looking, hosts, Map::new(), &aliases);
            assert_eq!(problem.unwrap_err().remediation[0], call);
        }
        let called = |given: Value| written_out(&Validators::default(), &looking, &arguments(given));
        let given = json!({"unit": "a", "host": "web1", "confirmed": true, "agent_id": "x"});
        assert_eq!(called(given).as_deref(), Some("Call t host=web1 unit=a"));
        // Without its host, the call could be made on another one.
        assert_eq!(called(json!({"unit": "a", "host": 7})), None);
        let mut own = tool("single", json!({"unit": {"type": "string"}, "host": {"type": "string"}}));
        own.on_controller = true;
        let given = arguments(json!({"unit": "a", "host": "web1"}));
        let called = written_out(&Validators::default(), &own, &given);
        assert_eq!(called.as_deref(), Some("Call t unit=a host=web1"));
    }

    #[test]
    fn a_wrong_type_is_named_with_what_was_expected() {
        let tool = tool("single", json!({"unit": {"type": "string"}}));
        let problem = check(&tool, arguments(json!({"unit": 7}))).unwrap_err();
        assert!(problem.message.contains("unit: 7 is not of type \"string\""), "{}", problem.message);
    }

    #[test]
    fn a_listing_takes_limit_and_filter_and_they_are_not_the_tools() {
        let tool = tool("listing", json!({"unit": {"type": "string"}}));
        let checked = check(&tool, arguments(json!({"unit": "a", "limit": 3, "filter": "x"}))).unwrap();
        assert_eq!(
            (checked.own.as_str(), checked.limit, checked.filter.as_deref()),
            (r#"{"unit":"a"}"#, Some(3), Some("x"))
        );
        for bad in [
            json!({"unit": "a", "limit": 0}),
            json!({"unit": "a", "limit": 10001}),
            json!({"unit": "a", "limit": "x"}),
        ] {
            assert_eq!(check(&tool, arguments(bad)).unwrap_err().code, "INVALID_ARGUMENTS");
        }
    }

    #[test]
    fn only_a_tool_that_changes_something_takes_dry_run_and_it_is_not_the_tools() {
        let looking = tool("single", json!({"unit": {"type": "string"}}));
        assert!(check(&looking, arguments(json!({"unit": "a", "dry_run": true}))).is_err());
        let mut changing = looking;
        changing.risk = Risk::Low;
        for (given, dry_run) in [(json!(true), true), (json!(false), false), (json!(null), false)] {
            let checked = check(&changing, arguments(json!({"unit": "a", "dry_run": given}))).unwrap();
            assert_eq!((checked.own.as_str(), checked.dry_run), (r#"{"unit":"a"}"#, dry_run));
        }
        assert!(check(&changing, arguments(json!({"unit": "a", "dry_run": "yes"}))).is_err());
        let own = json!({"unit": {"type": "string"}, "dry_run": {"type": "string"}});
        let mut own = tool("single", own);
        own.risk = Risk::Low;
        let checked = check(&own, arguments(json!({"unit": "a", "dry_run": "x"}))).unwrap();
        assert_eq!((checked.own.as_str(), checked.dry_run), (r#"{"unit":"a","dry_run":"x"}"#, false));
    }

    #[test]
    fn a_tool_that_declares_a_common_name_keeps_it() {
        let own = tool("listing", json!({"unit": {"type": "string"}, "filter": {"type": "integer"}}));
        let checked = check(&own, arguments(json!({"unit": "a", "filter": 3}))).unwrap();
        assert_eq!(checked.own, r#"{"unit":"a","filter":3}"#);
        assert!(checked.filter.is_none());
        let single = tool("single", json!({"unit": {"type": "string"}}));
        assert_eq!(
            check(&single, arguments(json!({"unit": "a", "limit": 3}))).unwrap_err().code,
            "INVALID_ARGUMENTS"
        );
    }

    #[test]
    fn a_null_is_an_argument_left_out_unless_it_must_be_given() {
        let tool = tool("listing", json!({"unit": {"type": "string"}, "count": {"type": "integer"}}));
        let checked = check(&tool, arguments(json!({"unit": "a", "count": null, "limit": null}))).unwrap();
        assert_eq!((checked.own.as_str(), checked.limit), (r#"{"unit":"a"}"#, None));
        assert!(check(&tool, arguments(json!({"unit": null}))).is_err());
        assert!(check(&tool, arguments(json!({"unit": "a", "unknown": null}))).is_err());
    }

    #[test]
    fn a_text_is_as_long_as_the_tool_says() {
        let tool = tool("single", json!({"unit": {"type": "string", "maxLength": 3 << 20}, "other": {}}));
        assert!(check(&tool, arguments(json!({"unit": "x".repeat(3 << 20)}))).is_ok());
        let problem = check(&tool, arguments(json!({"unit": "x".repeat((3 << 20) + 1)}))).unwrap_err();
        assert_eq!(problem.code, "INVALID_ARGUMENTS");
        assert!(problem.message.contains("3145728") && problem.message.len() < 1000, "{}", problem.message);
        // What the tool says of one argument is not for others, and not for values of another kind.
        for given in
            [json!({"unit": "x", "other": "x".repeat(2 << 20)}), json!({"unit": ["x".repeat(2 << 20)]})]
        {
            assert_eq!(check(&tool, arguments(given)).unwrap_err().code, "ARGUMENTS_TOO_LARGE");
        }
    }

    #[test]
    fn a_huge_argument_is_refused_by_its_size_and_not_repeated() {
        let tool = tool("single", json!({"unit": {"type": "string"}}));
        let problem = check(&tool, arguments(json!({"unit": "x".repeat(10 << 20)}))).unwrap_err();
        assert_eq!(problem.code, "ARGUMENTS_TOO_LARGE");
        let problem = check(&tool, arguments(json!({"unit": ["x".repeat(900_000)]}))).unwrap_err();
        assert_eq!(problem.code, "INVALID_ARGUMENTS");
        assert!(problem.message.len() < 1000);
    }
}
