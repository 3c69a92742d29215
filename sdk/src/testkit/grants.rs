//! Holds commands against the patterns that a module asks for, as far as that goes without the host: the words, the rights,
//! the variables and the standard input count. Of a hole's value only what all holes have in common is checked: that it
//! isn't empty, begins with no `-` and holds no character that can't be seen. Whether it is a unit or a package, and what the
//! policy says of the command, only the host knows; `linux-sysadmin modules test` asks it.

use crate::bindings::exports::sysadmin::module::describe::{CommandGrant, Effect};
use crate::bindings::sysadmin::module::confirm;
use crate::{Category, Command, Privilege, Problem, Result};

/// The command lines that a module asks for.
#[derive(Clone, Debug, Default)]
pub(super) struct Grants(Vec<Granted>);

#[derive(Clone, Debug)]
struct Granted {
    effect: Effect,
    privilege: Privilege,
    variables: Vec<(String, String)>,
    program: String,
    items: Vec<Item>,
    has_stdin: bool,
}

/// A part of a pattern behind its program.
#[derive(Clone, Debug, PartialEq)]
enum Item {
    Token(Vec<Part>),
    Optional(Vec<Item>),
    Alternatives(Vec<Vec<Item>>),
    Repeat(Box<Item>),
}

/// A part of a token.
#[derive(Clone, Debug, PartialEq)]
enum Part {
    Text(String),
    Hole(String),
}

impl Grants {
    pub(super) fn new(requests: &[CommandGrant]) -> Self {
        Self(requests.iter().map(Granted::new).collect())
    }

    /// Refuses a command by which the module may not look.
    pub(super) fn check_look(&self, command: &Command) -> Result<()> {
        self.check(command, |effect| effect != Effect::Change, "to look")
    }

    /// Refuses a plan with a command that no grant allows.
    pub(super) fn check_plan(&self, change: &confirm::Change) -> Result<()> {
        let any = |_| true;
        for step in &change.steps {
            let commands = match &step.action {
                confirm::Action::Run(run) => std::slice::from_ref(&run.command),
                confirm::Action::RunPipeline(run) => run.pipeline.commands.as_slice(),
                _ => &[],
            };
            for command in commands.iter().chain(&step.undo) {
                self.check(command, any, "to change something")?;
            }
        }
        for command in &change.after_undo {
            self.check(command, any, "after an undo")?;
        }
        match &change.dry_run {
            Some(command) => self.check(command, |effect| effect == Effect::DryRun, "to simulate a change"),
            None => Ok(()),
        }
    }

    fn check(&self, command: &Command, may: impl Fn(Effect) -> bool, purpose: &str) -> Result<()> {
        if self.0.iter().any(|granted| may(granted.effect) && granted.allows(command)) {
            return Ok(());
        }
        let argv: Vec<&str> =
            std::iter::once(&command.program).chain(&command.args).map(String::as_str).collect();
        let message = format!("the module asks for no grant to run {argv:?} {purpose}");
        Err(Problem::new("CAPABILITY_DENIED", Category::Denied, message))
    }
}

impl Granted {
    fn new(request: &CommandGrant) -> Self {
        let text = request.pattern.trim_end();
        let without_stdin = text.strip_suffix("stdin").and_then(|text| text.trim_end().strip_suffix('<'));
        let mut items = Reader(without_stdin.unwrap_or(text)).items();
        let is_variable = |item: &Item| matches!(item, Item::Token(parts) if variable(parts).is_some());
        let count = items.iter().take_while(|item| is_variable(item)).count();
        let mut rest = items.split_off(count);
        let variables = items.iter().filter_map(|item| match item {
            Item::Token(parts) => variable(parts),
            _ => None,
        });
        let program = match rest.first() {
            Some(Item::Token(parts)) => parts.iter().map(Part::text).collect(),
            _ => String::new(),
        };
        rest.drain(..rest.len().min(1));
        Self {
            effect: request.effect,
            privilege: request.privilege.clone(),
            variables: variables.collect(),
            program,
            items: rest,
            has_stdin: without_stdin.is_some(),
        }
    }

    fn allows(&self, command: &Command) -> bool {
        let same_variables = command.env.len() == self.variables.len()
            && self.variables.iter().all(|variable| command.env.contains(variable));
        covers(&self.privilege, &command.privilege)
            && command.program == self.program
            && same_variables
            && (self.has_stdin || command.stdin.is_none())
            && matches(&self.items, &command.args, &|left| left.is_empty())
    }
}

/// Whether a grant with these rights allows the rights that a command takes.
fn covers(granted: &Privilege, asked: &Privilege) -> bool {
    match (granted, asked) {
        (Privilege::Caller | Privilege::Root | Privilege::RootIfAvailable, Privilege::Caller)
        | (Privilege::Root, Privilege::Root | Privilege::RootIfAvailable)
        | (Privilege::RootIfAvailable, Privilege::RootIfAvailable) => true,
        (Privilege::User(granted), Privilege::User(asked)) => {
            granted == asked || granted == "*" && asked != "root"
        }
        _ => false,
    }
}

impl Part {
    fn text(&self) -> &str {
        match self {
            Self::Text(text) => text,
            Self::Hole(_) => "",
        }
    }
}

/// The name and the value of `NAME=value`.
fn variable(parts: &[Part]) -> Option<(String, String)> {
    let [Part::Text(text)] = parts else { return None };
    let (name, value) = text.split_once('=')?;
    let is_name = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    (is_name && !name.is_empty()).then(|| (name.to_owned(), value.to_owned()))
}

/// Whether the items match the first arguments, and `then` the others.
fn matches(items: &[Item], args: &[String], then: &dyn Fn(&[String]) -> bool) -> bool {
    let Some((first, others)) = items.split_first() else { return then(args) };
    let go_on = |left: &[String]| matches(others, left, then);
    match first {
        Item::Token(parts) => args.split_first().is_some_and(|(arg, left)| token(parts, arg) && go_on(left)),
        Item::Optional(inner) => matches(inner, args, &go_on) || go_on(args),
        Item::Alternatives(ways) => ways.iter().any(|way| matches(way, args, &go_on)),
        Item::Repeat(inner) => matches(std::slice::from_ref(&**inner), args, &|left: &[String]| {
            let again = || matches(std::slice::from_ref(first), left, &go_on);
            (left.len() < args.len() && again()) || go_on(left)
        }),
    }
}

fn token(parts: &[Part], arg: &str) -> bool {
    match parts {
        [] => arg.is_empty(),
        [Part::Text(text), rest @ ..] => {
            arg.strip_prefix(text.as_str()).is_some_and(|left| token(rest, left))
        }
        [Part::Hole(kind)] => value(kind, arg),
        [Part::Hole(kind), rest @ ..] => {
            arg.char_indices().skip(1).any(|(at, _)| value(kind, &arg[..at]) && token(rest, &arg[at..]))
        }
    }
}

/// Whether a text may stand in a hole, as far as all holes are alike.
fn value(kind: &str, text: &str) -> bool {
    let is_option = text.starts_with('-') && kind != "size";
    kind == "arg" || !text.is_empty() && !is_option && !text.chars().any(char::is_control)
}

/// Reads a pattern from its beginning.
struct Reader<'a>(&'a str);

impl Reader<'_> {
    /// Reads items up to the end of the group that they are in.
    fn items(&mut self) -> Vec<Item> {
        let mut items = Vec::new();
        loop {
            self.0 = self.0.trim_start();
            let item = match self.0.chars().next() {
                None | Some(']' | ')' | '|') => return items,
                Some('[') => {
                    self.skip();
                    let inner = self.items();
                    self.skip();
                    Item::Optional(inner)
                }
                Some('(') => Item::Alternatives(self.alternatives()),
                Some(_) => Item::Token(self.parts()),
            };
            items.push(match self.0.strip_prefix("...") {
                Some(rest) => {
                    self.0 = rest;
                    Item::Repeat(Box::new(item))
                }
                None => item,
            });
        }
    }

    fn alternatives(&mut self) -> Vec<Vec<Item>> {
        let mut ways = Vec::new();
        loop {
            // This is the opening parenthesis or a bar.
            self.skip();
            ways.push(self.items());
            if !self.0.starts_with('|') {
                self.skip();
                return ways;
            }
        }
    }

    /// Skips one character, all of which are ASCII outside of quotes.
    fn skip(&mut self) {
        let mut chars = self.0.chars();
        chars.next();
        self.0 = chars.as_str();
    }

    /// Reads the parts of one token.
    fn parts(&mut self) -> Vec<Part> {
        let mut parts = Vec::new();
        loop {
            let Some(first) = self.0.chars().next() else { return parts };
            let behind = &self.0[first.len_utf8()..];
            match first {
                '\'' => {
                    let (text, rest) = behind.split_once('\'').unwrap_or((behind, ""));
                    add(&mut parts, text);
                    self.0 = rest;
                }
                '<' => {
                    let (hole, rest) = behind.split_once('>').unwrap_or((behind, ""));
                    let kind = hole.split_once(':').map_or(hole, |(kind, _)| kind);
                    parts.push(Part::Hole(kind.to_owned()));
                    self.0 = rest;
                }
                ' ' | '[' | ']' | '(' | ')' | '|' => return parts,
                '.' if self.0.starts_with("...") => return parts,
                _ => {
                    add(&mut parts, &self.0[..first.len_utf8()]);
                    self.0 = behind;
                }
            }
        }
    }
}

/// Adds text to a token. Texts beside each other are one.
fn add(parts: &mut Vec<Part>, text: &str) {
    match parts.last_mut() {
        Some(Part::Text(last)) => last.push_str(text),
        _ => parts.push(Part::Text(text.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Change, CommandGrant as Request, Risk, Step};

    fn grants(requests: impl IntoIterator<Item = Request>) -> Grants {
        let requests: Vec<CommandGrant> = requests.into_iter().map(Request::into_request).collect();
        Grants::new(&requests)
    }

    fn command(words: &[&str]) -> Command {
        Command::new(words[0]).args(words[1..].iter().copied())
    }

    #[test]
    fn a_command_matches_its_pattern_word_by_word() {
        for (pattern, words, is_allowed) in [
            ("toy list", &["toy", "list"][..], true),
            ("toy list", &["toy"], false),
            ("toy list", &["toy", "list", "x"], false),
            ("toy list", &["other", "list"], false),
            ("toy show -- <package>", &["toy", "show", "--", "a"], true),
            ("toy show -- <package>", &["toy", "show", "--", "-a"], false),
            ("toy show -- <package>", &["toy", "show", "--", ""], false),
            ("toy show -- <package>", &["toy", "show", "--", "a\nb"], false),
            ("toy show -- <package>...", &["toy", "show", "--", "a", "b", "c"], true),
            ("toy show -- <package>...", &["toy", "show", "--"], false),
            ("toy [--all] list", &["toy", "list"], true),
            ("toy [--all] list", &["toy", "--all", "list"], true),
            ("toy [--all] list", &["toy", "--all", "--all", "list"], false),
            ("toy [-x <int>]... list", &["toy", "-x", "1", "-x", "2", "list"], true),
            ("toy [-x <int>]... list", &["toy", "list"], true),
            ("toy [-x <int>]... list", &["toy", "-x", "list"], false),
            ("toy (start|stop all) -- <unit>", &["toy", "stop", "all", "--", "u"], true),
            ("toy (start|stop all) -- <unit>", &["toy", "stop", "--", "u"], false),
            ("toy --user=<user>:<group>", &["toy", "--user=a:b"], true),
            ("toy --user=<user>:<group>", &["toy", "--user=a"], false),
            ("toy '%{x} y' ''", &["toy", "%{x} y", ""], true),
            ("toy '%{x} y' ''", &["toy", "%{x} y"], false),
            ("toy -L <size>", &["toy", "-L", "-5G"], true),
            ("toy exec <host> <arg>...", &["toy", "exec", "a", "-x", ""], true),
            ("toy --in=<path:/etc/*>", &["toy", "--in=/etc/x"], true),
        ] {
            let grants = grants([Request::read(pattern, "test")]);
            assert_eq!(grants.check_look(&command(words)).is_ok(), is_allowed, "{pattern}: {words:?}");
        }
    }

    #[test]
    fn rights_variables_input_and_purpose_count() {
        let grants = grants([
            Request::read("LANG=C toy list", "test"),
            Request::read("toy save < stdin", "test"),
            Request::change("toy add -- <package>", Risk::Moderate, "test"),
            Request::dry_run("toy add --try -- <package>", "test"),
        ]);
        let looks = |command: Command| grants.check_look(&command).is_ok();
        assert!(looks(command(&["toy", "list"]).env("LANG", "C")));
        assert!(!looks(command(&["toy", "list"])));
        assert!(!looks(command(&["toy", "list"]).env("LANG", "C").as_root()));
        assert!(looks(command(&["toy", "save"]).stdin("x")));
        assert!(!looks(command(&["toy", "list"]).env("LANG", "C").stdin("x")));
        assert!(!looks(command(&["toy", "add", "--", "a"]).as_root()));
        let plan = |words: &[&str]| Change::new("Add").step(Step::run(command(words).as_root()));
        let allows = |change: Change| grants.check_plan(&change.0).is_ok();
        assert!(allows(plan(&["toy", "add", "--", "a"])));
        assert!(!allows(plan(&["toy", "remove", "--", "a"])));
        assert!(!allows(plan(&["toy", "add", "--", "a"]).after_undo(command(&["toy", "mend"]))));
        let with_dry_run = |words: &[&str]| plan(&["toy", "add", "--", "a"]).dry_run(command(words));
        assert!(allows(with_dry_run(&["toy", "add", "--try", "--", "a"])));
        assert!(!allows(with_dry_run(&["toy", "add", "--", "a"])));
    }
}
