//! A tool: its name, its schema, its risk, and the function that it runs.

use crate::bindings::exports::sysadmin::module::describe;
use crate::bindings::exports::sysadmin::module::tools::Reply;
use crate::reply::IntoReply;
use crate::{Category, Context, DurationCategory, Place, Problem, Risk, schema};

type Run = Box<dyn Fn(&str, &Context) -> Result<Reply, Problem>>;

/// A tool. Unless its methods say otherwise, it only looks, and it may take 30 s.
pub struct Tool {
    pub(crate) name: &'static str,
    summary: &'static str,
    /// Makes the schema. It is a function, because a module is built for every call and seldom needs its schemas.
    schema: fn() -> String,
    risk: Risk,
    duration: DurationCategory,
    shape: describe::Shape,
    place: Place,
    pub(crate) first: bool,
    aliases: Vec<&'static str>,
    /// Pairs of an alias and the argument's name.
    argument_aliases: Vec<(&'static str, &'static str)>,
    /// Triples of an argument, an alias and the value.
    value_aliases: Vec<(&'static str, &'static str, &'static str)>,
    loses_nothing: bool,
    idempotent: bool,
    /// Pairs of an error's code and the step that helps.
    helps: Vec<(&'static str, &'static str)>,
    pub(crate) run: Run,
}

impl Tool {
    /// Makes a tool that calls `run`. `summary` is in the context of every model that may call the tool, so that it should
    /// say in few words what the name doesn't say.
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
            let answer = run(arguments, context)?;
            match (context.limit(), context.filter()) {
                (Some(limit), None) => answer.limited(limit),
                _ => answer,
            }
            .into_reply()
        };
        Self {
            name,
            summary,
            schema: schema::of::<A>,
            risk: Risk::ReadOnly,
            duration: DurationCategory::Quick,
            shape: R::SHAPE,
            place: Place::Target,
            first: false,
            aliases: Vec::new(),
            argument_aliases: Vec::new(),
            value_aliases: Vec::new(),
            loses_nothing: false,
            idempotent: false,
            helps: Vec::new(),
            run: Box::new(run),
        }
    }

    pub(crate) fn description(&self) -> describe::Tool {
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

    /// What else is known of the tool. None where the tool says nothing of it.
    pub(crate) fn hint(&self) -> Option<describe::Hint> {
        let help = |(code, step): &(&str, &str)| describe::Help {
            code: (*code).to_owned(),
            step: (*step).to_owned(),
        };
        let says_something = self.loses_nothing || self.idempotent || self.first || !self.helps.is_empty();
        says_something.then(|| describe::Hint {
            tool: self.name.to_owned(),
            loses_nothing: self.loses_nothing,
            idempotent: self.idempotent,
            helps: self.helps.iter().map(help).collect(),
            first: self.first,
        })
    }

    /// Says that no call of the tool loses anything that couldn't be had again. Clients are told so. Where a tool removes or
    /// overwrites data, or ends what runs, this isn't so.
    pub fn loses_nothing(mut self) -> Self {
        self.loses_nothing = true;
        self
    }

    /// Says that the same call again changes nothing more. Clients are told so.
    pub fn idempotent(mut self) -> Self {
        self.idempotent = true;
        self
    }

    /// Says that the tool helps with errors of this code, whatever tool they come from. The step is a sentence in the
    /// imperative that names the tool. The host adds it to such an error, for modules that come with it.
    ///
    /// ```
    /// # use linux_sysadmin_sdk::prelude::*;
    /// # fn usage(_: NoArgs, _: &Context) -> Result<Single<()>> { Ok(Single(())) }
    /// Tool::new("doc_usage", "", usage).helps("OUT_OF_SPACE", "See which file system is full: doc_usage");
    /// ```
    pub fn helps(mut self, code: &'static str, step: &'static str) -> Self {
        self.helps.push((code, step));
        self
    }

    /// Sets the least risk of any call. A tool without a risk may only look.
    pub fn risk(mut self, risk: Risk) -> Self {
        self.risk = risk;
        self
    }

    /// Sets how long the tool may look, without the execution of its plan.
    pub fn duration(mut self, duration: DurationCategory) -> Self {
        self.duration = duration;
        self
    }

    /// Lets the tool work on the machine that the server runs on, whatever the target is.
    pub fn on_controller(mut self) -> Self {
        self.place = Place::Controller;
        self
    }

    /// Marks a tool with which much work begins. Where the operator keeps the list of tools short, clients have it from the
    /// start, and ask for others as they need them.
    pub fn first(mut self) -> Self {
        self.first = true;
        self
    }

    /// Limits the tool to 10 s.
    pub fn instant(self) -> Self {
        self.duration(DurationCategory::Instant)
    }

    /// Adds an older name of the tool. Clients may call the tool by it, and no list shows it.
    ///
    /// The host replaces older names of tools, arguments and values before anything else sees the call. So the function,
    /// plans, confirmations and the audit log have the current names only, and the answer has a note about the replacement.
    /// No schema shows older names. A call that gives one argument under two names is an error. The host refuses a module in
    /// which an alias is ambiguous or stands for something that doesn't exist.
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

    /// Adds an older name (`from`) of an argument (`to`). See [`Tool::alias`].
    ///
    /// The alias only replaces the name. Where the older argument had another meaning, the tool itself has to read it: for
    /// example, where `destination` became `target_path` and another argument is called `destination` now.
    pub fn argument_alias(mut self, from: &'static str, to: &'static str) -> Self {
        self.argument_aliases.push((from, to));
        self
    }

    /// Adds an older value (`from`) for a value (`to`) of an argument, which takes one such value or a list of them. The
    /// argument's type must enumerate its values, as an enum does. Both values consist of at most 64 letters, digits, `.`,
    /// `_`, `+` and `-`. See [`Tool::alias`].
    pub fn value_alias(mut self, argument: &'static str, from: &'static str, to: &'static str) -> Self {
        self.value_aliases.push((argument, from, to));
        self
    }
}
