//! Judges commands and steps on files by rules that an operator can read and replace.
//!
//! [`rules.yaml`](rules.yaml) says what its parts mean. `programs.yaml` says how programs' command lines are read, and
//! which programs start others: the rules judge each of those as well. Grants say what a module may do at all; the rules say
//! which of that a person has to see first.
#![forbid(unsafe_code)]

mod account_change;
mod argv;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod decisions;
mod glob;
mod index;
mod judge;
mod load;
mod matching;
mod path;
mod patterns;
mod programs;
mod read_only;
mod refused_grants;
mod rule;
mod script;
mod shell;
#[cfg(test)]
mod tests;
pub mod text;
mod unasked_looks;

use std::sync::{Arc, LazyLock};

use serde::Serialize;

pub use account_change::{AccountChange, NewAccount};
use glob::Met;
use index::Index;
use judge::Judge;
pub use load::{PolicyError, PolicyFile};
pub use read_only::{
    NEEDS_PLAN, check_is_known_to_look, check_only_looks, command_words, needs_plan, split_variables,
};
pub use refused_grants::{RefusedGrant, refused_grants};
pub use rule::Level;
use rule::{Rule, Step};
pub use unasked_looks::{Look, Shows, unasked_look};

use host_base::Risk;

/// Rules that judge commands and steps on files.
pub struct Policy {
    rules: Vec<Rule>,
    index: Index,
}

/// The judgement of the rules.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Verdict {
    /// The highest level of the rules that match. Where no rule knows the program, a person has to confirm the command.
    pub level: Level,
    /// The highest score of the rules that match, from 0 to 100.
    pub risk_score: u8,
    /// The highest risk of the rules that match, if one of them has a risk.
    pub risk: Option<Risk>,
    /// The effects that the command can have: a family and a kind, such as `network.mutate`. The kind is `read` where
    /// nothing changes.
    pub capabilities: Vec<String>,
    /// The ids of all rules that match, the gravest first.
    pub matched_rules: Vec<String>,
    /// The reason of the gravest rule.
    pub reason: String,
}

/// A step of a plan on a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileStep {
    /// Creates the file, or replaces its contents. A [reader](text) judges the new contents beside the rules.
    Write,
    /// Moves a file or a directory to the path.
    MoveTo,
    /// Removes a file or a directory.
    Remove,
    /// Creates a directory.
    MakeDirectory,
}

/// The rule id in the verdict on a program that no rule knows. A grant with the exact command line has decided about it
/// already.
pub const UNKNOWN_RULE: &str = UNKNOWN.id;

/// A finding of the engine itself, which needs no rule: it can't tell what the command does.
struct EngineFinding {
    id: &'static str,
    score: u8,
    capability: &'static str,
    reason: &'static str,
}

const UNCLEAR: EngineFinding = EngineFinding {
    id: "code.shell",
    score: 80,
    capability: "code.shell",
    reason: "what a shell would run can't be told from the text",
};

const NESTED: EngineFinding = EngineFinding {
    id: "code.nested",
    score: 90,
    capability: "code.nested",
    reason: "too many programs start one another to see what is run in the end",
};

const UNKNOWN: EngineFinding = EngineFinding {
    id: "unknown",
    score: 30,
    capability: "unknown.read",
    reason: "does what no rule says anything of",
};

static BUILTIN: LazyLock<Policy> = LazyLock::new(|| Policy::of(load::builtin()));

impl Verdict {
    /// Whether the command may change something: whether one of its capabilities is no `read`.
    pub fn changes(&self) -> bool {
        self.capabilities.iter().any(|capability| capability != "read" && !capability.ends_with(".read"))
    }

    /// The reason, with the id of its rule.
    pub fn reason_with_rule(&self) -> String {
        let rule = self.matched_rules.first().map_or("", String::as_str);
        format!("{} (rule {rule})", self.reason)
    }

    fn add(
        &mut self,
        level: Level,
        score: u8,
        risk: Option<Risk>,
        capabilities: impl Iterator<Item = String>,
    ) {
        self.level = self.level.max(level);
        self.risk_score = self.risk_score.max(score);
        self.risk = self.risk.max(risk);
        for capability in capabilities {
            if !self.capabilities.contains(&capability) {
                self.capabilities.push(capability);
            }
        }
    }
}

impl Policy {
    /// The rules that come with this program. They are read on first use.
    pub fn builtin() -> &'static Self {
        &BUILTIN
    }

    /// The rules that the configuration names. `None` where only the rules that come with this program hold; those are not
    /// read for it.
    pub fn load(config: &PolicyFile) -> Result<Option<Arc<Self>>, PolicyError> {
        Ok(load::rules(config)?.map(|rules| Arc::new(Self::of(rules))))
    }

    fn of(mut rules: Vec<Rule>) -> Self {
        let index = Index::new(rules.iter_mut().map(|rule| std::mem::take(&mut rule.conditions)).collect());
        Self { rules, index }
    }

    /// Judges a command. The program comes first, with or without its path.
    pub fn verdict<S: AsRef<str>>(&self, argv: &[S]) -> Verdict {
        self.verdict_in(argv, None)
    }

    /// Judges a command whose relative paths begin in this directory.
    pub fn verdict_in<S: AsRef<str>>(&self, argv: &[S], directory: Option<&str>) -> Verdict {
        self.conclude(&self.judged(argv, directory))
    }

    /// Judges a command that works on a volume that the step before it makes, which holds nothing yet.
    pub fn verdict_on_new_volume<S: AsRef<str>>(&self, argv: &[S]) -> Verdict {
        self.conclude_by(&self.judged(argv, None), |rule| rule.risk_on_new_volume.or(rule.risk))
    }

    fn judged<S: AsRef<str>>(&self, argv: &[S], directory: Option<&str>) -> Judge<'_> {
        let words: Vec<&str> = argv.iter().map(AsRef::as_ref).collect();
        let mut judge = Judge::new(&self.index, self.rules.len());
        judge.argv(&words, directory);
        judge
    }

    /// Judges a command that runs with the rights of an ordinary account. Only rules that match for certain count, not those
    /// that match if an expansion becomes a certain word: the command could do no more than the account.
    pub fn certain_verdict<S: AsRef<str>>(&self, argv: &[S], directory: Option<&str>) -> Verdict {
        let mut judge = self.judged(argv, directory);
        judge.keep_certain();
        self.conclude(&judge)
    }

    /// Judges a step on a file.
    pub fn file_verdict(&self, step: FileStep, path: &str) -> Verdict {
        let step = match step {
            FileStep::Write => Step::Write,
            FileStep::MoveTo => Step::WriteUnread,
            FileStep::Remove => Step::Remove,
            FileStep::MakeDirectory => Step::MakeDirectory,
        };
        let mut judge = Judge::new(&self.index, self.rules.len());
        judge.file(step, path);
        self.conclude(&judge)
    }

    /// One line for each rule: its id, level, score, risk and reason.
    pub fn rules(&self) -> impl Iterator<Item = String> {
        self.rules.iter().map(|Rule { id, level, risk, risk_score, reason, .. }| {
            let level = match level {
                Level::Safe => "SAFE",
                Level::Confirm => "CONFIRM",
                Level::Block => "BLOCK",
            };
            let risk = serde_json::to_value(risk).unwrap_or_default();
            format!("{id:<32} {level:<8} {risk_score:>3} {:<9} {reason}", risk.as_str().unwrap_or("-"))
        })
    }

    fn conclude(&self, judge: &Judge<'_>) -> Verdict {
        self.conclude_by(judge, |rule| rule.risk)
    }

    fn conclude_by(&self, judge: &Judge<'_>, risk: impl Fn(&Rule) -> Option<Risk>) -> Verdict {
        let mut verdict = Verdict::default();
        let mut gravity = Vec::new();
        for (rule, met) in self.rules.iter().zip(&judge.met).filter(|(_, met)| **met != Met::No) {
            // A rule that only may match asks, and never refuses.
            let level = if *met == Met::Maybe { rule.level.min(Level::Confirm) } else { rule.level };
            verdict.add(level, rule.risk_score, risk(rule), rule.capabilities.iter().cloned());
            gravity.push((level, risk(rule), rule.risk_score, rule.id.as_str(), rule.reason.as_str()));
        }
        let findings = [(judge.is_unclear, UNCLEAR), (judge.is_nested, NESTED)];
        let findings = findings.into_iter().chain([(judge.is_unknown, UNKNOWN)]);
        for (_, EngineFinding { id, score, capability, reason }) in findings.filter(|(found, _)| *found) {
            // An unknown program needs a confirmation, but has no risk of its own.
            let (level, risk) = (Level::Confirm, (id != UNKNOWN.id).then_some(Risk::High));
            verdict.add(level, score, risk, std::iter::once(capability.to_owned()));
            gravity.push((level, risk, score, id, reason));
        }
        let certain: Vec<&String> = self
            .rules
            .iter()
            .zip(&judge.met)
            .filter(|(_, met)| **met == Met::Yes)
            .flat_map(|(rule, _)| &rule.capabilities)
            .collect();
        for number in self.index.together() {
            let rule = &self.rules[number];
            let has_all = |has: &dyn Fn(&String) -> bool| {
                self.index.matches(number).capabilities.iter().all(|any| any.iter().any(has))
            };
            if !has_all(&|capability| verdict.capabilities.contains(capability)) {
                continue;
            }
            let is_certain = has_all(&|capability| certain.contains(&capability));
            let level = if is_certain { rule.level } else { rule.level.min(Level::Confirm) };
            verdict.add(level, rule.risk_score, rule.risk, rule.capabilities.iter().cloned());
            gravity.push((level, rule.risk, rule.risk_score, rule.id.as_str(), rule.reason.as_str()));
        }
        // The sort is stable: equally grave rules stay in the order of the file.
        gravity.sort_by_key(|(level, risk, score, ..)| std::cmp::Reverse((*level, *risk, *score)));
        verdict.reason = gravity.first().map(|(.., reason)| (*reason).to_owned()).unwrap_or_default();
        if let [_, others @ ..] = &gravity[..]
            && !others.is_empty()
        {
            let others: Vec<&str> = others.iter().map(|(.., id, _)| *id).collect();
            verdict.reason.push_str(&format!(" (also {})", others.join(", ")));
        }
        verdict.matched_rules = gravity.into_iter().map(|(.., id, _)| id.to_owned()).collect();
        verdict
    }
}
