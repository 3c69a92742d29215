//! What a command, or a step on a file, may do to the machine, by rules that an operator can read and replace.
//!
//! [`rules.yaml`](rules.yaml) says what its parts mean. `programs.yaml` says how programs' command lines are read, and
//! which programs start others: the rules are asked about each of those as well. Grants say what a module may do at all;
//! the rules say which of that a person has to see first.
#![forbid(unsafe_code)]

mod accounts;
mod argv;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod decisions;
mod glob;
mod index;
mod judge;
mod load;
mod looks;
mod matching;
mod path;
mod programs;
mod rule;
mod script;
mod shell;
#[cfg(test)]
mod tests;
pub mod text;

use std::sync::{Arc, LazyLock};

use serde::Serialize;

pub use accounts::Given;
use glob::Met;
use index::Index;
use judge::Judge;
pub use load::{PolicyError, PolicyFile};
pub use looks::{only_looks, words};
pub use rule::Level;
use rule::{Rule, Step};

use host_base::Risk;

/// Rules, ready to be asked.
pub struct Policy {
    rules: Vec<Rule>,
    index: Index,
}

/// What the rules say.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Verdict {
    /// The highest of the rules that are met. Where none says what a program does, somebody is to confirm it.
    pub level: Level,
    /// 0 to 100, the highest.
    pub risk_score: u8,
    /// The highest, where a rule has one.
    pub risk: Option<Risk>,
    /// What the command is able to do: a family, a dot, and `read` where it changes nothing.
    pub capabilities: Vec<String>,
    /// The ids of all rules that are met, the gravest first.
    pub matched_rules: Vec<String>,
    /// Of the gravest.
    pub reason: String,
}

/// What a plan's step does with a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileStep {
    /// Makes it, or gives it other contents.
    Write,
    /// Removes it, be it a file or a directory.
    Remove,
    /// Makes a directory.
    MakeDirectory,
}

/// The id of the verdict on a program that no rule says anything of. A grant that allows its very words has decided already.
pub const UNKNOWN_RULE: &str = UNKNOWN.id;

/// Of what the engine itself can't see, whatever the rules.
struct Beyond {
    id: &'static str,
    score: u8,
    capability: &'static str,
    reason: &'static str,
}

const UNCLEAR: Beyond = Beyond {
    id: "code.shell",
    score: 80,
    capability: "code.shell",
    reason: "what a shell would run can't be told from the text",
};

const NESTED: Beyond = Beyond {
    id: "code.nested",
    score: 90,
    capability: "code.nested",
    reason: "too many programs start one another to see what is run in the end",
};

const UNKNOWN: Beyond = Beyond {
    id: "unknown",
    score: 30,
    capability: "unknown.read",
    reason: "does what no rule says anything of",
};

static BUILTIN: LazyLock<Policy> = LazyLock::new(|| Policy::of(load::builtin()));

impl Verdict {
    /// Whether a rule that is met means a change: a capability that doesn't end in `read`.
    pub fn changes(&self) -> bool {
        self.capabilities.iter().any(|capability| capability != "read" && !capability.ends_with(".read"))
    }

    /// The reason, with the rule that it comes from.
    pub fn because(&self) -> String {
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
    /// The rules that come with this program, read when they are first asked for.
    pub fn builtin() -> &'static Self {
        &BUILTIN
    }

    /// The rules that the configuration names; none where those hold that come with this program, which aren't read for
    /// it.
    pub fn load(config: &PolicyFile) -> Result<Option<Arc<Self>>, PolicyError> {
        Ok(load::rules(config)?.map(|rules| Arc::new(Self::of(rules))))
    }

    fn of(mut rules: Vec<Rule>) -> Self {
        let index = Index::new(rules.iter_mut().map(|rule| std::mem::take(&mut rule.matches)).collect());
        Self { rules, index }
    }

    /// What the rules say of a command; the program first, with or without its path.
    pub fn verdict<S: AsRef<str>>(&self, argv: &[S]) -> Verdict {
        self.verdict_in(argv, None)
    }

    /// The same of a command whose relative paths begin in a directory.
    pub fn verdict_in<S: AsRef<str>>(&self, argv: &[S], directory: Option<&str>) -> Verdict {
        self.conclude(&self.judged(argv, directory))
    }

    fn judged<S: AsRef<str>>(&self, argv: &[S], directory: Option<&str>) -> Judge<'_> {
        let words: Vec<&str> = argv.iter().map(AsRef::as_ref).collect();
        let mut judge = Judge::new(&self.index, self.rules.len());
        judge.argv(&words, directory);
        judge
    }

    /// The same of what runs with an ordinary account's rights, which are all that it could use: what only might become
    /// what a rule means, as a name that is made up when it runs, isn't counted.
    pub fn certain<S: AsRef<str>>(&self, argv: &[S], directory: Option<&str>) -> Verdict {
        let mut judge = self.judged(argv, directory);
        judge.only_certain();
        self.conclude(&judge)
    }

    /// What the rules say of a step on a file.
    pub fn of_file(&self, step: FileStep, path: &str) -> Verdict {
        let step = match step {
            FileStep::Write => Step::Write,
            FileStep::Remove => Step::Remove,
            FileStep::MakeDirectory => Step::MakeDirectory,
        };
        let mut judge = Judge::new(&self.index, self.rules.len());
        judge.file(step, path);
        self.conclude(&judge)
    }

    /// A line for each rule: its id, its level, and the reason.
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
        let mut verdict = Verdict::default();
        let mut gravity = Vec::new();
        for (rule, met) in self.rules.iter().zip(&judge.met).filter(|(_, met)| **met != Met::No) {
            // What may only become what the rule means isn't refused, but asked about.
            let level = if *met == Met::Maybe { rule.level.min(Level::Confirm) } else { rule.level };
            verdict.add(level, rule.risk_score, rule.risk, rule.capabilities.iter().cloned());
            gravity.push((level, rule.risk, rule.risk_score, rule.id.as_str(), rule.reason.as_str()));
        }
        let beyond = [(judge.is_unclear, UNCLEAR), (judge.is_nested, NESTED)];
        let beyond = beyond.into_iter().chain([(judge.is_unknown, UNKNOWN)]);
        for (_, Beyond { id, score, capability, reason }) in beyond.filter(|(found, _)| *found) {
            // A person decides about an unknown program, which isn't grave for being unknown.
            let (level, risk) = (Level::Confirm, (id != UNKNOWN.id).then_some(Risk::High));
            verdict.add(level, score, risk, std::iter::once(capability.to_owned()));
            gravity.push((level, risk, score, id, reason));
        }
        // Equally grave ones stay in the order of the file.
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
