//! The description that a module gives of itself. All of it is checked before any of it is used.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use super::aliases::Aliases;
use super::bindings::exports::sysadmin::module::describe;
use super::bindings::sysadmin::module::types;
use super::config::{ConfiguredPaths, is_module_name};
use super::convert;
use super::guest::Said;
use super::json::Json;
use super::surface::World;
use host_base::Risk;
use host_capability::{
    AnyProgramRequest, CommandRequest, Grants, OwnProgramRequest, Requests, SignalRequest,
};
use host_target::Facts;
use host_text::visible::{make_visible, visible};

/// The number of errors that one tool helps with.
const MOST_HELPS: usize = 32;
/// The number of characters of a step that helps.
const MOST_STEP: usize = 200;
/// The number of bytes of a tool's summary. Summaries are in the context of every client.
const MOST_SUMMARY: usize = 1000;
/// The number of bytes of a tool's schema, which is in the context of every client as well.
const MOST_SCHEMA: usize = 32 << 10;
/// The number of tools of one module.
const MOST_TOOLS: usize = 200;

/// The shape of a tool's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Shape {
    /// One object.
    Single,
    /// An array.
    Listing,
    /// One object, with a summary and a severity beside it.
    Analysis,
}

/// The category of the time that a tool's looking may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Duration {
    Instant,
    Quick,
    Normal,
    Slow,
    LongRunning,
}

impl Duration {
    fn category(self) -> types::DurationCategory {
        match self {
            Self::Instant => types::DurationCategory::Instant,
            Self::Quick => types::DurationCategory::Quick,
            Self::Normal => types::DurationCategory::Normal,
            Self::Slow => types::DurationCategory::Slow,
            Self::LongRunning => types::DurationCategory::LongRunning,
        }
    }

    /// The time for the whole looking part of a call.
    pub(super) fn wall_time(self) -> std::time::Duration {
        convert::command_time(self.category())
    }

    /// The time that the guest itself may compute in it.
    pub(super) fn guest_time(self) -> std::time::Duration {
        convert::guest_time(self.category())
    }

    /// The category's name in messages.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Instant => "instant",
            Self::Quick => "quick",
            Self::Normal => "normal",
            Self::Slow => "slow",
            Self::LongRunning => "long_running",
        }
    }
}

/// One tool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tool {
    /// The name, of the form [a-z0-9_] with at most 64 characters.
    pub name: String,
    /// A summary for the model.
    pub summary: String,
    /// The JSON Schema of the tool's own arguments.
    pub input_schema: Json<Map<String, Value>>,
    /// The lowest risk that a call of the tool has.
    pub risk: Risk,
    /// The shape of the answer.
    pub shape: Shape,
    /// True where the tool works on the controller, whatever the target is.
    #[serde(default)]
    pub on_controller: bool,
    /// The aliases. The member is required, so that a description which was kept before there were aliases is made
    /// anew.
    pub aliases: Aliases,
    /// True where no call of the tool loses anything that couldn't be had again.
    #[serde(default)]
    pub loses_nothing: bool,
    /// True where the same call again changes nothing more.
    #[serde(default)]
    pub idempotent: bool,
    /// The errors of other calls that the tool helps with.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub helps: Vec<Help>,
    pub(super) duration: Duration,
    /// True where a list of tools that is kept short begins with this one. The member is required, as the aliases are.
    pub first: bool,
}

/// A step that names a tool, and helps with errors of other calls.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Help {
    /// The code of the errors.
    pub code: String,
    /// The step as a sentence.
    pub step: String,
}

impl Tool {
    /// The name of the tool's duration category.
    pub fn duration_category(&self) -> &'static str {
        self.duration.name()
    }

    /// A name that both tools answer to, where it is an alias of at least one of them.
    pub(super) fn shares_name_with<'a>(&'a self, other: &'a Self) -> Option<&'a str> {
        let (own, theirs) = (&self.aliases.tool, &other.aliases.tool);
        let names = own.get(&other.name).or_else(|| theirs.get(&self.name));
        names.or_else(|| own.intersection(theirs).next()).map(String::as_str)
    }

    /// Whether both tools look the same to clients.
    pub(super) fn is_same_to_clients(&self, other: &Self) -> bool {
        let seen =
            |tool: &Self| (tool.shape, tool.risk, tool.on_controller, tool.loses_nothing, tool.idempotent);
        seen(self) == seen(other)
            && (&self.input_schema, &self.aliases) == (&other.input_schema, &other.aliases)
    }
}

/// A condition on the targets of a module: a fact has one of these values.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Condition {
    /// The name of a field of the distro context.
    pub fact: String,
    /// The values, of which one is enough.
    pub any_of: Vec<String>,
}

/// The description of a module, as it is kept in the cache.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Description {
    /// The name, of the form [a-z0-9-] with at most 63 characters.
    pub name: String,
    /// The semantic version.
    pub version: String,
    /// One sentence about the module.
    pub summary: String,
    /// The address of the module's own site.
    pub homepage: Option<String>,
    /// The license, as an SPDX expression.
    pub license: Option<String>,
    /// The subject of its tools.
    pub domain: String,
    /// The conditions on targets, all of which must hold.
    pub serves: Vec<Condition>,
    /// The tools.
    pub tools: Vec<Tool>,
    /// The interfaces that the component imports, as read from its bytes.
    pub imports: Vec<String>,
    /// The commands and files that the module asks for.
    pub requests: Json<Requests>,
    /// The SHA-256 of the whole description, word for word.
    pub sha256: String,
}

/// The reason why a description, and with it the module, is refused.
#[derive(Debug, thiserror::Error)]
pub enum DescriptionError {
    /// A name has the wrong form.
    #[error("{what} {name:?} is not of the form {form}")]
    Name {
        /// The kind of name.
        what: &'static str,
        /// The name.
        name: String,
        /// The form that it should have.
        form: &'static str,
    },
    /// A tool is described twice.
    #[error("tool {0} is described twice")]
    Twice(String),
    /// A schema can't be used.
    #[error("the input schema of tool {tool} is no JSON Schema of an object: {reason}")]
    Schema {
        /// The tool that has the schema.
        tool: String,
        /// The reason.
        reason: String,
    },
    /// An alias is ambiguous, or leads to nothing.
    #[error("an alias of tool {tool} can't be used: {reason}")]
    Alias {
        /// The tool that has the alias.
        tool: String,
        /// The alias, and the reason.
        reason: String,
    },
    /// A hint is about no tool of the module, or has a form that can't be shown.
    #[error("a hint about tool {tool} can't be used: {reason}")]
    Hint {
        /// The tool that the hint is about.
        tool: String,
        /// The reason.
        reason: &'static str,
    },
    /// A condition names a fact that doesn't exist.
    #[error("there is no fact {0:?} to serve by; there are {facts}", facts = Facts::NAMES.join(", "))]
    Fact(String),
    /// The module asks to call a tool of its own.
    #[error("it asks to call {0}, which is a tool of its own; it may ask for other modules' tools")]
    OwnTool(String),
    /// The module asks for something that this host can't grant.
    #[error("{0}, which this version of the host can't grant")]
    Ungrantable(&'static str),
    /// The description can't be written as JSON.
    #[error("its description can't be kept as JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// A request is invalid.
    #[error(transparent)]
    Grant(#[from] host_capability::GrantError),
}

impl Description {
    /// Checks the description that a component gave of itself.
    pub(super) fn new(said: Said, imports: Vec<String>) -> Result<Self, DescriptionError> {
        let sha256 = hex::encode(Sha256::digest(said.json));
        let said = said.description;
        let capabilities = said.capabilities;
        let mut tools: Vec<Tool> = said.tools.into_iter().map(tool).collect::<Result<_, _>>()?;
        add_hints(&mut tools, said.hints)?;
        let shown = |text: String| visible(&text).into_owned();
        let condition = |said: describe::Condition| Condition { fact: said.fact, any_of: said.any_of };
        let description = Self {
            name: said.name,
            version: said.version,
            summary: shown(said.summary),
            homepage: said.homepage.map(shown),
            license: said.license.map(shown),
            domain: said.domain,
            serves: said.serves.into_iter().map(condition).collect(),
            tools,
            imports,
            requests: Json::new(&Requests {
                commands: capabilities.commands.into_iter().map(convert::command_request).collect(),
                paths: capabilities.paths.into_iter().map(convert::path_request).collect(),
                any_program: capabilities.any_program.into_iter().map(convert::any_program_request).collect(),
                signals: capabilities.signals.into_iter().map(convert::signal_request).collect(),
                own_programs: capabilities
                    .own_programs
                    .into_iter()
                    .map(convert::own_program_request)
                    .collect(),
                tools: capabilities.tools,
            })?,
            sha256,
        };
        description.check()?;
        Ok(description)
    }

    /// Refuses tools that only a module that comes with the host may have. The operator of another module has agreed to
    /// its work on targets only.
    pub(super) fn check_for(&self, world: World) -> Result<(), DescriptionError> {
        match world == World::Tool && self.tools.iter().any(|tool| tool.on_controller) {
            false => Ok(()),
            true => Err(DescriptionError::Ungrantable("it has a tool whose place is the controller")),
        }
    }

    fn check(&self) -> Result<(), DescriptionError> {
        if !is_module_name(&self.name) {
            let (what, form) = ("module", "[a-z0-9-], 1 to 63 characters, a letter or digit first");
            return Err(DescriptionError::Name { what, name: self.name.chars().take(64).collect(), form });
        }
        named("domain", &self.domain, "[a-z0-9-], 1 to 64 characters", |byte| byte == b'-')?;
        let form = "[0-9A-Za-z.+-], 1 to 64 characters";
        if self.version.is_empty() || self.version.len() > 64 || !self.version.bytes().all(is_version) {
            return Err(DescriptionError::Name { what: "version", name: self.version.clone(), form });
        }
        if self.tools.len() > MOST_TOOLS {
            return Err(DescriptionError::Ungrantable("it has more than 200 tools"));
        }
        let mut names = BTreeSet::new();
        for tool in &self.tools {
            if !names.insert(&tool.name) {
                return Err(DescriptionError::Twice(tool.name.clone()));
            }
        }
        for tool in &self.tools {
            for alias in &tool.aliases.tool {
                named("alias", alias, "[a-z0-9_], 1 to 64 characters", |byte| byte == b'_')?;
                if !names.insert(alias) {
                    let reason = format!("{alias} is the name or an alias of a tool of this module");
                    return Err(DescriptionError::Alias { tool: tool.name.clone(), reason });
                }
            }
        }
        let is_own = |name: &&String| self.tools.iter().any(|tool| tool.name == **name);
        if let Some(own) = self.requests.tools.iter().find(is_own) {
            return Err(DescriptionError::OwnTool(own.clone()));
        }
        for condition in &self.serves {
            let fits = |value: &String| value.len() <= 64 && !value.is_empty() && value.bytes().all(is_fact);
            if let Some(value) = condition.any_of.iter().find(|value| !fits(value)) {
                let (what, form) = ("condition", "[A-Za-z0-9._+-], 1 to 64 characters");
                return Err(DescriptionError::Name { what, name: value.chars().take(64).collect(), form });
            }
            if !Facts::NAMES.contains(&condition.fact.as_str()) {
                return Err(DescriptionError::Fact(condition.fact.clone()));
            }
        }
        self.grants(None, None).map(|_| ())
    }

    /// The grants of the module: all its requests, or those that the operator accepted of a third party's module.
    pub(super) fn grants(
        &self,
        accepted: Option<&Requests>,
        paths: Option<&ConfiguredPaths>,
    ) -> Result<Grants, DescriptionError> {
        let mut grants = Grants::new(&self.name);
        // A third party's module has an operator's word for its requests. The host's own modules need none, and their
        // answers lose their secrets later.
        if accepted.is_some() {
            grants = grants.with_wildcards_looked_through();
        }
        let mut requests = self.requests.read();
        requests.paths.retain(|request| accepted.is_none_or(|all| all.paths.contains(request)));
        if let Some(paths) = paths {
            paths.apply(&mut requests);
        }
        let is_accepted =
            |request: &CommandRequest| accepted.is_none_or(|all| all.commands.contains(request));
        for command in self.requests.commands.iter().filter(|request| is_accepted(request)) {
            grants.command(command)?;
        }
        for path in &requests.paths {
            grants.path(path)?;
        }
        let is_accepted =
            |request: &AnyProgramRequest| accepted.is_none_or(|all| all.any_program.contains(request));
        for request in self.requests.any_program.iter().filter(|request| is_accepted(request)) {
            grants.any_program(request)?;
        }
        let is_accepted = |request: &SignalRequest| accepted.is_none_or(|all| all.signals.contains(request));
        for request in self.requests.signals.iter().filter(|request| is_accepted(request)) {
            grants.signals(request)?;
        }
        let is_accepted =
            |request: &OwnProgramRequest| accepted.is_none_or(|all| all.own_programs.contains(request));
        for request in self.requests.own_programs.iter().filter(|request| is_accepted(request)) {
            grants.own_program(request)?;
        }
        for tool in
            self.requests.tools.iter().filter(|tool| accepted.is_none_or(|all| all.tools.contains(tool)))
        {
            grants.tool(tool)?;
        }
        Ok(grants)
    }

    /// The reason why the module doesn't serve a target. None where it does.
    pub fn refuses(&self, facts: &Facts) -> Option<String> {
        self.serves.iter().find_map(|condition| {
            let found = facts.get(&condition.fact).unwrap_or("unknown");
            let holds = condition.any_of.iter().any(|value| value == found);
            let wanted = condition.any_of.join(" or ");
            (!holds).then(|| format!("it needs {} to be {wanted}, and here it is {found}", condition.fact))
        })
    }

    /// Whether no target can be served by both modules.
    pub(super) fn excludes(&self, other: &Self) -> bool {
        self.serves.iter().any(|mine| {
            let theirs = other.serves.iter().filter(|theirs| theirs.fact == mine.fact);
            theirs.into_iter().any(|theirs| !mine.any_of.iter().any(|value| theirs.any_of.contains(value)))
        })
    }
}

/// Adds what the module says further of its tools. Steps are shown to callers as they are.
fn add_hints(tools: &mut [Tool], said: Vec<describe::Hint>) -> Result<(), DescriptionError> {
    let mut seen = BTreeSet::new();
    for hint in said {
        let wrong = |reason| {
            let tool = hint.tool.chars().take(64).collect();
            Err(DescriptionError::Hint { tool, reason })
        };
        let Some(tool) = tools.iter_mut().find(|tool| tool.name == hint.tool) else {
            return wrong("the module has no such tool");
        };
        if !seen.insert(hint.tool.clone()) {
            return wrong("there are two");
        }
        if hint.helps.len() > MOST_HELPS {
            return wrong("it has more than 32 steps");
        }
        for help in &hint.helps {
            let is_code = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
            if !(1..=64).contains(&help.code.len()) || !help.code.bytes().all(is_code) {
                return wrong("a code is not of the form [A-Z0-9_], 1 to 64 characters");
            }
            let is_visible = visible(&help.step) == help.step && !help.step.contains('\n');
            if help.step.chars().count() > MOST_STEP || !is_visible || !help.step.contains(&tool.name) {
                return wrong("a step is one visible line of at most 200 characters that names the tool");
            }
        }
        let help = |help: &describe::Help| Help { code: help.code.clone(), step: help.step.clone() };
        tool.loses_nothing = hint.loses_nothing;
        tool.idempotent = hint.idempotent;
        tool.first = hint.first;
        tool.helps = hint.helps.iter().map(help).collect();
    }
    Ok(())
}

fn tool(said: describe::Tool) -> Result<Tool, DescriptionError> {
    named("tool", &said.name, "[a-z0-9_], 1 to 64 characters", |byte| byte == b'_')?;
    let wrong = |reason: String| DescriptionError::Schema { tool: said.name.clone(), reason };
    if said.summary.len() > MOST_SUMMARY || said.input_schema.len() > MOST_SCHEMA {
        return Err(wrong(format!(
            "with its summary it is larger than {MOST_SUMMARY} and {MOST_SCHEMA} bytes"
        )));
    }
    let input_schema: Map<String, Value> =
        serde_json::from_str(&said.input_schema).map_err(|error| wrong(error.to_string()))?;
    let mut shown = Value::Object(input_schema.clone());
    make_visible(&mut shown);
    if shown != Value::Object(input_schema.clone()) {
        return Err(wrong("it holds characters that can't be seen".to_owned()));
    }
    if input_schema.get("type").and_then(Value::as_str) != Some("object") {
        return Err(wrong("its type is not object".to_owned()));
    }
    let on_controller = matches!(said.place, types::Place::Controller);
    let risk = convert::risk(said.risk);
    let own_host = input_schema.get("properties").is_some_and(|own| own.get("host").is_some());
    if own_host && !on_controller && risk > Risk::ReadOnly {
        return Err(wrong(
            "host is where the change is made: another name is needed for what is its own".to_owned(),
        ));
    }
    let schema = Value::Object(input_schema.clone());
    check_size(&schema).map_err(wrong)?;
    jsonschema::meta::validate(&schema).map_err(|error| wrong(error.to_string()))?;
    let validator = jsonschema::validator_for(&schema).map_err(|error| wrong(error.to_string()))?;
    let aliases = Aliases::new(said.aliases, &input_schema, &validator)
        .map_err(|reason| DescriptionError::Alias { tool: said.name.clone(), reason })?;
    Ok(Tool {
        summary: visible(&said.summary).into_owned(),
        input_schema: Json::new(&input_schema)?,
        risk,
        on_controller,
        aliases,
        loses_nothing: false,
        idempotent: false,
        helps: Vec::new(),
        shape: match said.shape {
            describe::Shape::Single => Shape::Single,
            describe::Shape::Listing => Shape::Listing,
            describe::Shape::Analysis => Shape::Analysis,
        },
        duration: match said.duration {
            types::DurationCategory::Instant => Duration::Instant,
            types::DurationCategory::Quick => Duration::Quick,
            types::DurationCategory::Normal => Duration::Normal,
            types::DurationCategory::Slow => Duration::Slow,
            types::DurationCategory::LongRunning => Duration::LongRunning,
        },
        first: false,
        name: said.name,
    })
}

/// Checks the size of a schema. The host validates arguments by it, outside the guest's limits. References multiply:
/// twenty definitions that each refer to the next one twice amount to a million schemas. A reference must therefore
/// lead to one of the schema's own definitions and never in a cycle, and the size after following all references is
/// limited.
fn check_size(schema: &Value) -> Result<(), String> {
    const MOST: u64 = 10_000;
    let mut known = BTreeMap::new();
    match nodes(schema, schema, &mut known, &mut Vec::new())? {
        ..=MOST => Ok(()),
        more => {
            Err(format!("with its references followed it has {more} parts or more; at most {MOST} are taken"))
        }
    }
}

fn nodes<'a>(
    root: &'a Value,
    value: &'a Value,
    known: &mut BTreeMap<&'a str, u64>,
    within: &mut Vec<&'a str>,
) -> Result<u64, String> {
    let mut sum = 1_u64;
    match value {
        Value::Array(items) => {
            for item in items {
                sum = sum.saturating_add(nodes(root, item, known, within)?);
            }
        }
        Value::Object(members) => {
            for (name, member) in members {
                let counted = match (name.as_str(), member) {
                    // Definitions are counted where something refers to them.
                    ("$defs" | "definitions", Value::Object(_)) => 0,
                    ("$ref", Value::String(to)) => referred(root, to, known, within)?,
                    ("$dynamicRef" | "$recursiveRef" | "$dynamicAnchor" | "$anchor" | "$id", _) => {
                        return Err(format!("{name} is not taken; $ref with #/$defs/NAME is"));
                    }
                    _ => nodes(root, member, known, within)?,
                };
                sum = sum.saturating_add(counted);
            }
        }
        _ => {}
    }
    Ok(sum)
}

fn referred<'a>(
    root: &'a Value,
    to: &'a str,
    known: &mut BTreeMap<&'a str, u64>,
    within: &mut Vec<&'a str>,
) -> Result<u64, String> {
    if let Some(counted) = known.get(to) {
        return Ok(*counted);
    }
    if within.contains(&to) {
        return Err(format!("{to} refers to itself"));
    }
    let pointed = to.strip_prefix('#').filter(|pointer| pointer.starts_with('/'));
    let found = pointed.and_then(|pointer| root.pointer(pointer));
    let Some(found) = found else { return Err(format!("{to:?} is none of its own definitions")) };
    within.push(to);
    let counted = nodes(root, found, known, within)?;
    within.pop();
    known.insert(to, counted);
    Ok(counted)
}

fn named(
    what: &'static str,
    name: &str,
    form: &'static str,
    also: impl Fn(u8) -> bool,
) -> Result<(), DescriptionError> {
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || also(byte);
    if (1..=64).contains(&name.len()) && name.bytes().all(fits) {
        return Ok(());
    }
    Err(DescriptionError::Name { what, name: name.chars().take(64).collect(), form })
}

fn is_fact(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"._+-".contains(&byte)
}

fn is_version(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b".+-".contains(&byte)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn described(name: &str, aliases: &[&str]) -> describe::Tool {
        describe::Tool {
            name: name.to_owned(),
            summary: String::new(),
            input_schema: r#"{"type": "object", "properties": {"name": {"type": "string"}}}"#.to_owned(),
            risk: types::Risk::ReadOnly,
            duration: types::DurationCategory::Quick,
            shape: describe::Shape::Single,
            place: types::Place::Target,
            aliases: describe::Aliases {
                tool: aliases.iter().map(|alias| (*alias).to_owned()).collect(),
                arguments: Vec::new(),
                values: Vec::new(),
            },
        }
    }

    fn module(tools: Vec<describe::Tool>) -> Result<Description, DescriptionError> {
        described_as(&[], tools, Vec::new())
    }

    fn module_that_calls(
        called: &[&str],
        tools: Vec<describe::Tool>,
    ) -> Result<Description, DescriptionError> {
        described_as(called, tools, Vec::new())
    }

    fn with_hints(
        tools: Vec<describe::Tool>,
        hints: Vec<describe::Hint>,
    ) -> Result<Description, DescriptionError> {
        described_as(&[], tools, hints)
    }

    fn described_as(
        called: &[&str],
        tools: Vec<describe::Tool>,
        hints: Vec<describe::Hint>,
    ) -> Result<Description, DescriptionError> {
        let capabilities = describe::Capabilities {
            commands: Vec::new(),
            paths: Vec::new(),
            tools: called.iter().map(|tool| (*tool).to_owned()).collect(),
            any_program: Vec::new(),
            signals: Vec::new(),
            own_programs: Vec::new(),
        };
        let said = describe::Description {
            name: "test".to_owned(),
            version: "1.0.0".to_owned(),
            summary: String::new(),
            homepage: None,
            license: None,
            domain: "test".to_owned(),
            serves: Vec::new(),
            tools,
            capabilities,
            hints,
        };
        let json = serde_json::to_vec(&said).unwrap();
        Description::new(Said { json, description: said }, Vec::new())
    }

    #[test]
    fn within_a_module_a_name_means_one_tool() {
        assert!(module(vec![described("one", &["uno", "un"]), described("two", &["due"])]).is_ok());
        for (one, two, said) in [
            (&["one"][..], &[][..], "alias of tool one can't be used: one is"),
            (&["two"], &[], "alias of tool one can't be used: two is"),
            (&[], &["one"], "alias of tool two can't be used: one is"),
            (&["same"], &["same"], "alias of tool two can't be used: same is"),
            (&["same", "same"], &[], "alias of tool one can't be used: \"same\" is said twice"),
            (&["No Name"], &[], "\"No Name\" is not of the form"),
        ] {
            let error = module(vec![described("one", one), described("two", two)]).unwrap_err().to_string();
            assert!(error.contains(said), "{said} is not in: {error}");
        }
        let mut tool = described("one", &[]);
        let (alias, argument) = ("older".to_owned(), "gone".to_owned());
        tool.aliases.arguments.push(describe::ArgumentAlias { alias, argument });
        let error = module(vec![tool]).unwrap_err().to_string();
        assert!(error.contains("alias of tool one") && error.contains("\"gone\""), "{error}");
    }

    #[test]
    fn a_module_calls_tools_of_others_that_the_operator_has_accepted() {
        let description = module_that_calls(&["two", "three"], vec![described("one", &[])]).unwrap();
        let all = description.grants(None, None).unwrap();
        let accepted = Requests { tools: vec!["three".to_owned(), "four".to_owned()], ..Requests::default() };
        let some = description.grants(Some(&accepted), None).unwrap();
        for (tool, in_all, in_some) in
            [("one", false, false), ("two", true, false), ("three", true, true), ("four", false, false)]
        {
            assert_eq!(
                (all.may_call(tool).is_ok(), some.may_call(tool).is_ok()),
                (in_all, in_some),
                "{tool}"
            );
        }
    }

    #[test]
    fn a_module_asks_for_tools_of_others_by_names_and_never_for_its_own() {
        for (called, said) in [
            ("one", "it asks to call one, which is a tool of its own"),
            ("two*", "`two*`: it is to call a tool whose name isn't [a-z0-9_]"),
            ("", "a tool whose name isn't"),
        ] {
            let described = module_that_calls(&["other", called], vec![described("one", &[])]);
            let error = described.unwrap_err().to_string();
            assert!(error.contains(said), "{said} is not in: {error}");
        }
    }

    #[test]
    fn a_hint_is_about_a_tool_of_the_module_and_its_steps_name_it() {
        let help = |code: &str, step: &str| describe::Help { code: code.to_owned(), step: step.to_owned() };
        let hint = |tool: &str, helps: Vec<describe::Help>| describe::Hint {
            tool: tool.to_owned(),
            loses_nothing: true,
            idempotent: true,
            helps,
            first: tool == "two",
        };
        let tools = || vec![described("one", &[]), described("two", &[])];
        let good = with_hints(tools(), vec![hint("two", vec![help("OUT_OF_SPACE", "See it: two")])]).unwrap();
        let [one, two] = good.tools.as_slice() else { panic!("{good:?}") };
        assert!(!one.loses_nothing && !one.idempotent && one.helps.is_empty());
        assert!(two.loses_nothing && two.idempotent);
        assert_eq!((one.first, two.first), (false, true));
        assert_eq!(two.helps, [Help { code: "OUT_OF_SPACE".to_owned(), step: "See it: two".to_owned() }]);
        assert!(!one.is_same_to_clients(&Tool { name: "one".to_owned(), ..two.clone() }));
        for (hints, said) in [
            (vec![hint("gone", Vec::new())], "has no such tool"),
            (vec![hint("one", Vec::new()), hint("one", Vec::new())], "there are two"),
            (vec![hint("one", vec![help("out_of", "Call one")])], "a code is not of the form"),
            (vec![hint("one", vec![help("", "Call one")])], "a code is not of the form"),
            (vec![hint("one", vec![help("X", "Call two")])], "names the tool"),
            (vec![hint("one", vec![help("X", "Call one\nand more")])], "one visible line"),
            (vec![hint("one", vec![help("X", "Call one\u{202e}")])], "one visible line"),
            (vec![hint("one", vec![help("X", &format!("Call one {}", "x".repeat(200)))])], "at most 200"),
            (vec![hint("one", vec![help("X", "Call one"); 33])], "more than 32"),
        ] {
            let error = with_hints(tools(), hints).unwrap_err().to_string();
            assert!(error.contains(said), "{said} is not in: {error}");
        }
    }

    #[test]
    fn two_tools_share_a_name_where_it_is_an_alias_of_one_of_them() {
        let tool = |name: &str, aliases: &[&str]| super::tool(described(name, aliases)).unwrap();
        for (one, other, shared) in [
            (tool("one", &["x"]), tool("two", &["y"]), None),
            (tool("one", &["two"]), tool("two", &[]), Some("two")),
            (tool("one", &[]), tool("two", &["one"]), Some("one")),
            (tool("one", &["x", "y"]), tool("two", &["y", "z"]), Some("y")),
        ] {
            assert_eq!(one.shares_name_with(&other), shared, "{one:?} {other:?}");
        }
    }

    #[test]
    fn modules_that_have_a_tool_in_common_agree_on_its_aliases() {
        let tool = |said: describe::Tool| super::tool(said).unwrap();
        let plain = tool(described("one", &["x", "y"]));
        assert!(plain.is_same_to_clients(&tool(described("one", &["y", "x"]))));
        assert!(!plain.is_same_to_clients(&tool(described("one", &["x"]))));
        let mut other = described("one", &["x", "y"]);
        let (alias, argument) = ("older".to_owned(), "name".to_owned());
        other.aliases.arguments.push(describe::ArgumentAlias { alias, argument });
        assert!(!plain.is_same_to_clients(&tool(other)));
    }

    #[test]
    fn a_schema_is_bounded_with_its_references_followed() {
        let names = |count: usize| -> Map<String, Value> {
            let next = |at: usize| json!({"$ref": format!("#/$defs/d{}", at + 1)});
            let mut defs: Map<String, Value> =
                (0..count).map(|at| (format!("d{at}"), json!({"allOf": [next(at), next(at)]}))).collect();
            defs.insert(format!("d{count}"), json!({"type": "object"}));
            defs
        };
        let schema =
            |count| json!({"type": "object", "$defs": names(count), "allOf": [{"$ref": "#/$defs/d0"}]});
        assert_eq!(check_size(&schema(5)), Ok(()));
        for many in [12, 40, 100] {
            assert!(check_size(&schema(many)).unwrap_err().contains("at most 10000"), "{many}");
        }
        for (wrong, word) in [
            (json!({"$ref": "#"}), "none of its own"),
            (json!({"$ref": "https://example.org/x"}), "none of its own"),
            (json!({"$ref": "#/$defs/none"}), "none of its own"),
            (
                json!({"$defs": {"a": {"items": {"$ref": "#/$defs/a"}}}, "items": {"$ref": "#/$defs/a"}}),
                "itself",
            ),
            (json!({"$dynamicRef": "#x"}), "not taken"),
            (json!({"properties": {"a": {"$id": "x"}}}), "not taken"),
        ] {
            assert!(check_size(&wrong).unwrap_err().contains(word), "{wrong}");
        }
        let plain = json!({"properties": {"a": {"$ref": "#/$defs/a"}, "b": {"$ref": "#/$defs/a"}},
                           "$defs": {"a": {"enum": [1, 2, 3]}}});
        assert_eq!(check_size(&plain), Ok(()));
    }
}
