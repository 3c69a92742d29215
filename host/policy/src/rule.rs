//! The rules as they are written in YAML, and as they are used: checked, with their sets of words expanded.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use serde::de::{Deserializer, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};

use super::glob::{self, PathGlob};
use host_base::Risk;

/// The demand of a rule for a command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Level {
    /// The command may run.
    #[default]
    Safe,
    /// A person has to confirm the command.
    Confirm,
    /// The command is refused.
    Block,
}

/// A file of rules.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Written {
    #[serde(default)]
    sets: BTreeMap<String, Words>,
    rules: Vec<WrittenRule>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenRule {
    id: String,
    level: Level,
    risk_score: u8,
    #[serde(default)]
    risk: Option<Risk>,
    #[serde(default)]
    risk_on_new_volume: Option<Risk>,
    capabilities: Words,
    reason: String,
    #[serde(rename = "match")]
    matches: WrittenMatch,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct WrittenMatch {
    command: Words,
    command_none: Words,
    subcommand_any: Words,
    subcommand_except: Words,
    args_any: Words,
    args_all: Words,
    args_none: Words,
    args_other: Words,
    options_any: Words,
    options_except: Words,
    options_all: Words,
    options_none: Words,
    options_only: Words,
    path: Words,
    path_except: Words,
    path_other: Words,
    step: Steps,
    capabilities_all: Words,
}

/// The action of a command or of a step on a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Step {
    /// The command as a whole runs; this is no step on a file.
    Run,
    Read,
    Write,
    /// A write of which no reader has seen the new contents: by a command, or of a file that is moved there.
    WriteUnread,
    Remove,
    MakeDirectory,
    /// An unknown program names the file.
    Use,
}

impl Step {
    /// Whether a rule for another step is for this one as well.
    pub(super) fn is(self, other: Self) -> bool {
        self == other || self == Self::WriteUnread && other == Self::Write
    }
}

/// A rule.
#[derive(Debug)]
pub(super) struct Rule {
    pub(super) id: String,
    pub(super) level: Level,
    pub(super) risk_score: u8,
    pub(super) risk: Option<Risk>,
    /// The risk on a volume that the same plan makes, where it is another one.
    pub(super) risk_on_new_volume: Option<Risk>,
    pub(super) capabilities: Vec<String>,
    pub(super) reason: String,
    pub(super) conditions: Conditions,
}

/// The conditions of a rule as they are written. They are expanded where a program is first compared with them: of hundreds of
/// rules, few are about the programs that one server runs.
#[derive(Debug, Default)]
pub(super) struct Conditions {
    written: WrittenMatch,
    sets: Arc<Sets>,
    is_safe: bool,
    expanded: OnceLock<Box<Match>>,
}

/// The conditions of a rule. An empty condition always holds.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Match {
    /// Whether the rule is a SAFE one. In doubt, its `options_none` and `args_none` are given and its subcommand isn't: an
    /// abbreviation may mean another word.
    pub(super) is_safe: bool,
    pub(super) commands: Vec<String>,
    pub(super) commands_none: Vec<String>,
    /// The words of each subcommand.
    pub(super) subcommands: Vec<Vec<String>>,
    /// Beginnings of the operands that don't count as one of `subcommands`.
    pub(super) subcommands_except: Vec<Vec<String>>,
    pub(super) args_any: Vec<String>,
    pub(super) args_all: Vec<String>,
    pub(super) args_none: Vec<String>,
    /// The condition holds where an operand is not certainly matched by one of these globs.
    pub(super) args_other: Vec<String>,
    pub(super) options_any: Vec<OptionGlob>,
    /// The values of `options_any` that don't count. Each has a value, and its option is among `options_any`.
    pub(super) options_except: Vec<OptionGlob>,
    pub(super) options_all: Vec<OptionGlob>,
    pub(super) options_none: Vec<OptionGlob>,
    /// The condition holds where every option is one of these by its whole name.
    pub(super) options_only: Vec<OptionGlob>,
    pub(super) paths: Vec<PathGlob>,
    /// The condition holds for a path that none of these globs matches.
    pub(super) paths_except: Vec<PathGlob>,
    /// The condition holds where an operand or a value is no absolute path that one of these globs matches.
    pub(super) paths_other: Vec<PathGlob>,
    pub(super) steps: Vec<Step>,
    /// The capabilities that all programs of a command line have together. Such a rule has no other condition.
    pub(super) capabilities: Vec<Vec<String>>,
}

/// An option, and a glob for its value where the value matters.
#[derive(Debug, PartialEq)]
pub(super) struct OptionGlob {
    pub(super) name: String,
    pub(super) value: Option<String>,
}

/// A fault in a rule. `nth` is the rule's position among the rules with the same id.
pub(super) struct Fault {
    pub(super) id: String,
    pub(super) nth: usize,
    pub(super) reason: String,
}

impl Written {
    /// Checks the rules. `others` are the sets of another file that these rules may name.
    pub(super) fn check(self, others: &Sets) -> Result<Vec<Rule>, Fault> {
        let (rules, _) = self.read(others);
        let mut seen: Vec<&str> = Vec::with_capacity(rules.len());
        for rule in &rules {
            let nth = seen.iter().filter(|id| **id == rule.id).count();
            let fault = |reason| Fault { id: rule.id.clone(), nth, reason };
            if nth > 0 {
                return Err(fault(format!("the id {:?} is there twice", rule.id)));
            }
            seen.push(&rule.id);
            rule.check().map_err(|reason| fault(format!("{}: {reason}", rule.id)))?;
        }
        Ok(rules)
    }

    /// The rules and the sets, of which nothing has been checked.
    pub(super) fn read(self, others: &Sets) -> (Vec<Rule>, Arc<Sets>) {
        let mut sets = others.clone();
        sets.extend(self.sets.into_iter().map(|(name, words)| (name, words.0)));
        let sets = Arc::new(sets);
        (self.rules.into_iter().map(|rule| rule.read(&sets)).collect(), sets)
    }
}

/// Named lists of words.
pub(super) type Sets = BTreeMap<String, Vec<String>>;

impl WrittenRule {
    fn read(self, sets: &Arc<Sets>) -> Rule {
        let is_safe = self.level == Level::Safe;
        Rule {
            id: self.id,
            level: self.level,
            risk_score: self.risk_score,
            risk: self.risk,
            risk_on_new_volume: self.risk_on_new_volume,
            capabilities: self.capabilities.0,
            reason: self.reason.trim().to_owned(),
            conditions: Conditions {
                written: self.matches,
                sets: sets.clone(),
                is_safe,
                ..Conditions::default()
            },
        }
    }
}

impl Rule {
    /// Says what is wrong with it.
    pub(super) fn check(&self) -> Result<(), String> {
        let named = |text: &str| {
            let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '.';
            !text.is_empty() && text.chars().all(fits)
        };
        if !named(&self.id) {
            return Err("expected an id of a-z, 0-9, `-` and `.`".to_owned());
        }
        if self.risk_score > 100 {
            return Err(format!("risk_score {} is not a number from 0 to 100", self.risk_score));
        }
        if [self.risk, self.risk_on_new_volume].contains(&Some(Risk::ReadOnly)) {
            return Err("expected risk low, moderate, high or critical, found read-only".to_owned());
        }
        if self.risk_on_new_volume.is_some_and(|risk| self.risk <= Some(risk)) {
            return Err("risk_on_new_volume: expected a lower risk than risk".to_owned());
        }
        if let Some(capability) = self.capabilities.iter().find(|capability| !named(capability)) {
            return Err(format!("the capability {capability:?}: expected a-z, 0-9, `-` and `.`"));
        }
        if self.capabilities.is_empty() {
            return Err("expected one capability at least".to_owned());
        }
        if self.reason.is_empty() {
            return Err("expected a reason".to_owned());
        }
        self.conditions.expand().map(|_| ())
    }
}

impl Conditions {
    /// The conditions, which are kept.
    pub(super) fn get(&self) -> &Match {
        self.expanded.get_or_init(|| Box::new(self.made()))
    }

    /// The conditions. An operator's were checked when they were read, and a test checks those that come with this program.
    /// Without its conditions a rule could match nothing, and every command would count as safe.
    pub(super) fn made(&self) -> Match {
        self.expand().unwrap_or_else(|reason| panic!("the policy: {reason}"))
    }

    /// Whether they are about commands, and not about steps on files.
    pub(super) fn are_of_commands(&self) -> bool {
        self.written.step.0.is_empty() || self.written.step.0.contains(&Step::Run)
    }

    /// Whether they are about what all programs of a command line have together.
    pub(super) fn are_of_all_together(&self) -> bool {
        !self.written.capabilities_all.0.is_empty()
    }

    /// The names of the programs that they are about.
    pub(super) fn commands(&self) -> Result<Vec<String>, String> {
        self.written.command.with(&self.sets)
    }

    /// Expands and checks all of them.
    fn expand(&self) -> Result<Match, String> {
        Ok(Match { is_safe: self.is_safe, ..self.written.expand(&self.sets)? })
    }
}

impl WrittenMatch {
    fn expand(&self, sets: &Sets) -> Result<Match, String> {
        let words = |words: &Words| words.with(sets);
        let options = |words: &Words| -> Result<Vec<OptionGlob>, String> {
            words.with(sets)?.iter().map(|text| OptionGlob::parse(text)).collect()
        };
        if let Some(name) = self.options_only.0.iter().find(|name| name.contains('=')) {
            return Err(format!("options_only: expected an option without a value, found {name:?}"));
        }
        let paths = |words: &Words| -> Result<Vec<PathGlob>, String> {
            let globs = words.with(sets)?;
            let globs = globs.iter().map(|text| PathGlob::parse(text)).collect::<Result<Vec<_>, _>>();
            Ok(globs?.concat())
        };
        let subcommands = |words: &Words| -> Result<Vec<Vec<String>>, String> {
            let split = |text: &String| text.split_whitespace().map(str::to_owned).collect();
            Ok(words.with(sets)?.iter().map(split).collect())
        };
        let capabilities = self.capabilities_all.0.iter().map(|text| glob::alternatives(text));
        let checked = Match {
            is_safe: false,
            capabilities: capabilities.collect::<Result<_, _>>()?,
            commands: words(&self.command)?,
            commands_none: words(&self.command_none)?,
            subcommands: subcommands(&self.subcommand_any)?,
            subcommands_except: subcommands(&self.subcommand_except)?,
            args_any: words(&self.args_any)?,
            args_all: words(&self.args_all)?,
            args_none: words(&self.args_none)?,
            args_other: words(&self.args_other)?,
            options_any: options(&self.options_any)?,
            options_except: options(&self.options_except)?,
            options_all: options(&self.options_all)?,
            options_none: options(&self.options_none)?,
            options_only: options(&self.options_only)?,
            paths: paths(&self.path)?,
            paths_except: paths(&self.path_except)?,
            paths_other: paths(&self.path_other)?,
            steps: if self.step.0.is_empty() { vec![Step::Run] } else { self.step.0.clone() },
        };
        checked.is_sensible().map(|()| checked)
    }
}

impl Match {
    fn is_sensible(&self) -> Result<(), String> {
        if !self.capabilities.is_empty() {
            let alone =
                Self { capabilities: self.capabilities.clone(), steps: vec![Step::Run], ..Self::default() };
            return match *self == alone {
                true => Ok(()),
                false => Err("expected nothing beside capabilities_all".to_owned()),
            };
        }
        if self.steps.contains(&Step::Run) {
            if self.steps.len() > 1 {
                return Err("expected step run alone: the others are files".to_owned());
            }
            let has = |name: &str| self.options_any.iter().any(|option| option.name == name);
            if let Some(except) =
                self.options_except.iter().find(|except| except.value.is_none() || !has(&except.name))
            {
                let name = &except.name;
                return Err(format!(
                    "options_except: expected {name}=value, with {name} among options_any: nothing else is excepted"
                ));
            }
            if !self.subcommands_except.is_empty() && self.subcommands.is_empty() {
                return Err("subcommand_except: expected subcommand_any beside it".to_owned());
            }
            let globs = self.commands.iter().chain(&self.commands_none);
            if let Some(name) = globs.into_iter().find(|name| name.contains('/') || name.is_empty()) {
                return Err(format!("the command {name:?}: expected a program's name without its path"));
            }
            let everything = self.commands.is_empty() || self.commands.iter().any(|name| name == "*");
            let nothing = self.subcommands.is_empty()
                && self.args_any.is_empty()
                && self.args_all.is_empty()
                && self.options_any.is_empty()
                && self.options_all.is_empty()
                && self.paths.is_empty();
            return match everything && nothing {
                true => Err("the match is empty: every command would meet it".to_owned()),
                false => Ok(()),
            };
        }
        let words = [
            &self.commands,
            &self.commands_none,
            &self.args_any,
            &self.args_all,
            &self.args_none,
            &self.args_other,
        ];
        let options = [
            &self.options_any,
            &self.options_except,
            &self.options_all,
            &self.options_none,
            &self.options_only,
        ];
        let for_commands = words.iter().any(|words| !words.is_empty())
            || options.iter().any(|options| !options.is_empty())
            || !self.subcommands.is_empty()
            || !self.subcommands_except.is_empty()
            || !self.paths_except.is_empty()
            || !self.paths_other.is_empty();
        match for_commands {
            true => Err("expected only `path` beside a step for files".to_owned()),
            false if self.paths.is_empty() => Err("the match is empty: expected a path".to_owned()),
            false => Ok(()),
        }
    }
}

impl OptionGlob {
    fn parse(text: &str) -> Result<Self, String> {
        let (name, value) = match text.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (text, None),
        };
        match name.starts_with(['-', '+']) && name.len() > 1 {
            true => Ok(Self { name: name.to_owned(), value }),
            false => Err(format!("the option {text:?}: expected -x, --name or --name=value")),
        }
    }
}

/// One word or a list of words.
#[derive(Debug, Default)]
struct Words(Vec<String>);

impl Words {
    /// Replaces `$name` by the words of that set, and `{a,b}` by its alternatives.
    fn with(&self, sets: &Sets) -> Result<Vec<String>, String> {
        let mut all = Vec::with_capacity(self.0.len());
        for word in &self.0 {
            let Some(name) = word.strip_prefix('$') else {
                all.extend(glob::alternatives(word)?);
                continue;
            };
            let set = sets.get(name).ok_or_else(|| format!("there is no set {name:?}"))?;
            for word in set {
                all.extend(glob::alternatives(word)?);
            }
        }
        Ok(all)
    }
}

impl<'de> Deserialize<'de> for Words {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OneOrMany;

        impl<'de> Visitor<'de> for OneOrMany {
            type Value = Words;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a word or a list of words")
            }

            fn visit_str<E>(self, word: &str) -> Result<Words, E> {
                Ok(Words(vec![word.to_owned()]))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Words, A::Error> {
                let mut words = Vec::new();
                while let Some(word) = sequence.next_element()? {
                    words.push(word);
                }
                Ok(Words(words))
            }
        }

        deserializer.deserialize_any(OneOrMany)
    }
}

/// One step or a list of steps.
#[derive(Debug, Default)]
struct Steps(Vec<Step>);

impl<'de> Deserialize<'de> for Steps {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let words = Words::deserialize(deserializer)?;
        let step = |word: String| Step::deserialize(serde::de::value::StringDeserializer::new(word));
        words.0.into_iter().map(step).collect::<Result<_, _>>().map(Self)
    }
}
