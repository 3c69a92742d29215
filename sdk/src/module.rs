//! A module: a list of tools, its grants, the targets it serves.

use std::fmt::Write as _;

use crate::bindings::exports::sysadmin::module::describe;
use crate::bindings::exports::sysadmin::module::tools::Reply;
use crate::reply::IntoReply;
use crate::{Category, Context, DurationCategory, Place, Privilege, Problem, Risk, schema};

/// What a component is made of. Build it with the methods; [`crate::export!`] does the rest.
pub struct Module {
    name: &'static str,
    version: &'static str,
    domain: &'static str,
    summary: &'static str,
    homepage: Option<&'static str>,
    license: Option<&'static str>,
    serves: Vec<describe::Condition>,
    commands: Vec<CommandGrant>,
    paths: Vec<PathGrant>,
    pub(crate) tools: Vec<Tool>,
}

impl Module {
    /// `version` is usually `env!("CARGO_PKG_VERSION")`, `domain` what the tools belong to, as `packages`.
    pub fn new(
        name: &'static str,
        version: &'static str,
        domain: &'static str,
        summary: &'static str,
    ) -> Self {
        Self {
            name,
            version,
            domain,
            summary,
            homepage: None,
            license: None,
            serves: Vec::new(),
            commands: Vec::new(),
            paths: Vec::new(),
            tools: Vec::new(),
        }
    }

    /// Address of the module's own site.
    pub fn homepage(mut self, address: &'static str) -> Self {
        self.homepage = Some(address);
        self
    }

    /// SPDX expression, usually `env!("CARGO_PKG_LICENSE")`.
    pub fn license(mut self, expression: &'static str) -> Self {
        self.license = Some(expression);
        self
    }

    /// Serves only targets whose `fact` (a field of [`crate::Distro`], as `package_manager`) has one of the values.
    pub fn serves(mut self, fact: &str, any_of: &[&str]) -> Self {
        let any_of = any_of.iter().map(|value| value.to_string()).collect();
        self.serves.push(describe::Condition { fact: fact.to_owned(), any_of });
        self
    }

    /// Asks for a command line.
    pub fn command(mut self, grant: CommandGrant) -> Self {
        self.commands.push(grant);
        self
    }

    /// Asks for files.
    pub fn path(mut self, grant: PathGrant) -> Self {
        self.paths.push(grant);
        self
    }

    /// Adds a tool.
    pub fn tool(mut self, tool: Tool) -> Self {
        self.tools.push(tool);
        self
    }

    /// As the contract wants it.
    pub fn description(&self) -> describe::Description {
        describe::Description {
            name: self.name.to_owned(),
            version: self.version.to_owned(),
            summary: self.summary.to_owned(),
            homepage: self.homepage.map(str::to_owned),
            license: self.license.map(str::to_owned),
            domain: self.domain.to_owned(),
            serves: self.serves.clone(),
            tools: self.tools.iter().map(Tool::description).collect(),
            capabilities: describe::Capabilities {
                commands: self.commands.iter().map(|grant| grant.0.clone()).collect(),
                paths: self.paths.iter().map(|grant| grant.0.clone()).collect(),
                tools: Vec::new(),
            },
        }
    }
}

type Run = Box<dyn Fn(&str, &Context) -> Result<Reply, Problem>>;

/// One tool: read-only and quick (30 s) unless said otherwise.
pub struct Tool {
    pub(crate) name: &'static str,
    summary: &'static str,
    /// Made only where it is asked for: a module is built for every call.
    schema: fn() -> String,
    risk: Risk,
    duration: DurationCategory,
    shape: describe::Shape,
    place: Place,
    aliases: Vec<&'static str>,
    /// Each with the argument's name.
    argument_aliases: Vec<(&'static str, &'static str)>,
    /// Of an argument, each with the value.
    value_aliases: Vec<(&'static str, &'static str, &'static str)>,
    pub(crate) run: Run,
}

impl Tool {
    /// `summary` is in the context of every model that may call the tool: say what the name doesn't, in few words.
    pub fn new<A, R>(
        name: &'static str,
        summary: &'static str,
        run: impl Fn(A, &Context) -> Result<R, Problem> + 'static,
    ) -> Self
    where
        A: serde::de::DeserializeOwned + schemars::JsonSchema,
        R: IntoReply,
    {
        let run = move |arguments: &str, context: &Context| {
            let arguments = serde_json::from_str(arguments).map_err(|error| {
                Problem::new("INVALID_ARGUMENTS", Category::Validation, format!("{name}: {error}"))
            })?;
            run(arguments, context)?.into_reply()
        };
        Self {
            name,
            summary,
            schema: schema::of::<A>,
            risk: Risk::ReadOnly,
            duration: DurationCategory::Quick,
            shape: R::SHAPE,
            place: Place::Target,
            aliases: Vec::new(),
            argument_aliases: Vec::new(),
            value_aliases: Vec::new(),
            run: Box::new(run),
        }
    }

    fn description(&self) -> describe::Tool {
        let argument = |(alias, argument): &(&str, &str)| describe::ArgumentAlias {
            alias: (*alias).to_owned(),
            argument: (*argument).to_owned(),
        };
        let value = |(argument, alias, value): &(&str, &str, &str)| describe::ValueAlias {
            argument: (*argument).to_owned(),
            alias: (*alias).to_owned(),
            value: (*value).to_owned(),
        };
        describe::Tool {
            name: self.name.to_owned(),
            summary: self.summary.to_owned(),
            input_schema: (self.schema)(),
            risk: self.risk,
            duration: self.duration,
            shape: self.shape,
            place: self.place,
            aliases: describe::Aliases {
                tool: self.aliases.iter().map(|alias| (*alias).to_owned()).collect(),
                arguments: self.argument_aliases.iter().map(argument).collect(),
                values: self.value_aliases.iter().map(value).collect(),
            },
        }
    }

    /// The least risk of any call.
    pub fn risk(mut self, risk: Risk) -> Self {
        self.risk = risk;
        self
    }

    /// How long looking may take.
    pub fn duration(mut self, duration: DurationCategory) -> Self {
        self.duration = duration;
        self
    }

    /// Works on the machine that the server runs on, whatever the target is.
    pub fn on_controller(mut self) -> Self {
        self.place = Place::Controller;
        self
    }

    /// 10 s.
    pub fn instant(self) -> Self {
        self.duration(DurationCategory::Instant)
    }

    /// What older clients call the tool. It answers to that as well, and isn't listed under it.
    ///
    /// This and the other older spellings are put right by the host before anything else sees the call: the function is
    /// told real names and values only, and so are plans, confirmations and the audit log; the answer says once what was
    /// understood how. No schema shows them, and they cost nothing. One call says each argument in one spelling: two are
    /// an error, whatever they say. A module is refused where an alias is ambiguous or leads to nothing.
    ///
    /// ```
    /// # use linux_sysadmin_sdk::prelude::*;
    /// # #[derive(Deserialize, JsonSchema)]
    /// # #[serde(rename_all = "snake_case")]
    /// # enum Action { DisableX11Forwarding }
    /// # #[derive(Deserialize, JsonSchema)]
    /// # struct Args { package: String, actions: Vec<Action> }
    /// # #[derive(Serialize)]
    /// # struct Answer {}
    /// # fn history(_: Args, _: &Context) -> Result<Single<Answer>> { Ok(Single(Answer {})) }
    /// Tool::new("doc_log", "", history)
    ///     .alias("doc_history")
    ///     .argument_alias("packages", "package")
    ///     .value_alias("actions", "disable_x11", "disable_x11_forwarding");
    /// ```
    pub fn alias(mut self, name: &'static str) -> Self {
        self.aliases.push(name);
        self
    }

    /// What older clients call an argument, and its name. See [`Tool::alias`].
    ///
    /// It stands for that one name, whatever else is said. Where that isn't all, the tool reads it itself: an older
    /// `destination` that is `target_path` now, while `destination` is an argument too; a path without a
    /// scheme that means `local://`.
    pub fn argument_alias(mut self, from: &'static str, to: &'static str) -> Self {
        self.argument_aliases.push((from, to));
        self
    }

    /// What older clients say for a text that an argument takes, alone or in a list. The argument's type has to say which
    /// texts it takes, as an enum does. Both are of letters, digits, `.`, `_`, `+` and `-`, 64 at most: a value with a blank
    /// or a slash can have none. See [`Tool::alias`].
    pub fn value_alias(mut self, argument: &'static str, from: &'static str, to: &'static str) -> Self {
        self.value_aliases.push((argument, from, to));
        self
    }
}

/// A command line that the module may use.
#[derive(Clone)]
pub struct CommandGrant(describe::CommandGrant);

impl CommandGrant {
    /// To look, as the account that the target is reached as.
    pub fn read(pattern: &str, reason: &str) -> Self {
        Self(describe::CommandGrant {
            pattern: pattern.to_owned(),
            effect: describe::Effect::Read,
            privilege: Privilege::Caller,
            place: Place::Target,
            risk: Risk::ReadOnly,
            reason: reason.to_owned(),
        })
    }

    /// A program's own simulation of a change.
    pub fn dry_run(pattern: &str, reason: &str) -> Self {
        let mut grant = Self::read(pattern, reason);
        grant.0.effect = describe::Effect::DryRun;
        grant
    }

    /// A step of a plan, with the least risk of such a plan.
    pub fn change(pattern: &str, risk: Risk, reason: &str) -> Self {
        let mut grant = Self::read(pattern, reason);
        grant.0.effect = describe::Effect::Change;
        grant.0.privilege = Privilege::Root;
        grant.0.risk = risk;
        grant
    }

    /// With root's rights at most.
    pub fn as_root(mut self) -> Self {
        self.0.privilege = Privilege::Root;
        self
    }

    /// With root's rights where they can be had.
    pub fn as_root_if_available(mut self) -> Self {
        self.0.privilege = Privilege::RootIfAvailable;
        self
    }

    /// With the caller's rights only.
    pub fn as_caller(mut self) -> Self {
        self.0.privilege = Privilege::Caller;
        self
    }

    /// With the rights of this account.
    pub fn as_user(mut self, name: &str) -> Self {
        self.0.privilege = Privilege::User(name.to_owned());
        self
    }
}

/// Files that the module may read, or write too.
#[derive(Clone)]
pub struct PathGrant(describe::PathGrant);

impl PathGrant {
    /// To read, as the account that the target is reached as.
    pub fn read(glob: &str, reason: &str) -> Self {
        Self(describe::PathGrant {
            glob: glob.to_owned(),
            write: false,
            privilege: Privilege::Caller,
            place: Place::Target,
            reason: reason.to_owned(),
        })
    }

    /// For plans to write and remove, and to read, with root's rights.
    pub fn write(glob: &str, reason: &str) -> Self {
        let mut grant = Self::read(glob, reason);
        grant.0.write = true;
        grant.0.privilege = Privilege::Root;
        grant
    }

    /// A whole directory of data on the machine that the server runs on, as `/usr/share/zoneinfo/**`. It is read by
    /// `std::fs`, not through the [`Context`].
    pub fn data(glob: &str, reason: &str) -> Self {
        let mut grant = Self::read(glob, reason);
        grant.0.place = Place::Controller;
        grant
    }

    /// With the caller's rights only.
    pub fn as_caller(mut self) -> Self {
        self.0.privilege = Privilege::Caller;
        self
    }

    /// With root's rights at most.
    pub fn as_root(mut self) -> Self {
        self.0.privilege = Privilege::Root;
        self
    }

    /// With root's rights where they can be had. Only to read: whose rights a change takes must be certain, and the host
    /// refuses a module that would write so.
    pub fn as_root_if_available(mut self) -> Self {
        self.0.privilege = Privilege::RootIfAvailable;
        self
    }

    /// With the rights of this account: for what is in its home.
    pub fn as_user(mut self, name: &str) -> Self {
        self.0.privilege = Privilege::User(name.to_owned());
        self
    }
}

/// What an unknown output looked like, shortened for a message.
pub(crate) fn excerpt(text: &str) -> String {
    let mut short: String = text.chars().take(120).collect();
    if short.len() < text.len() {
        let _ = write!(short, "… ({} bytes)", text.len());
    }
    short
}
