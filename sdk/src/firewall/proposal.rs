//! A change of a firewall as its module proposes it: the steps, and the kernel's rules after them. What is the same for all
//! firewalls is added here: the warnings, the risk, and the guard.

use super::ruleset::Ruleset;
use super::ways_in::{Cut, WaysIn};
use crate::{Change, Command, Risk, Step};

/// The time in seconds in which the host must reach the machine anew. After it, the machine undoes the change itself.
const GUARD: u32 = 60;

/// The kernel's rules after a change.
#[derive(Clone, Debug)]
pub enum After {
    /// They stay as they are, because the firewall is inactive.
    Same,
    /// They are these.
    Rules(Ruleset),
    /// Nobody knows.
    Unknown,
}

/// A change of a firewall.
#[derive(Debug)]
pub struct Proposal {
    /// One sentence in the imperative.
    pub summary: String,
    /// The steps. Without any, the rules are already as asked for.
    pub steps: Vec<Step>,
    /// The commands that run after every undo.
    pub after_undo: Vec<Command>,
    /// Steps that write files of the firewall as they are. A plan with a guard begins with them, so that its undo puts the
    /// files back byte for byte.
    pub kept: Vec<Step>,
    /// The kernel's rules before the change, where the backend has built those after it anew, so that both can be compared.
    pub before: Option<Ruleset>,
    /// The kernel's rules after the change.
    pub after: After,
    /// The zone, or the table and the chain.
    pub place: Option<String>,
    /// The interface at which the rule holds. `None` stands for all.
    pub interface: Option<String>,
    /// What is to be said, one sentence each.
    pub notes: Vec<String>,
}

impl Proposal {
    /// A change without steps.
    pub fn new(summary: impl Into<String>, after: After) -> Self {
        Self {
            summary: summary.into(),
            steps: Vec::new(),
            after_undo: Vec::new(),
            kept: Vec::new(),
            before: None,
            after,
            place: None,
            interface: None,
            notes: Vec::new(),
        }
    }

    /// The ways in that it closes.
    pub(super) fn cut(&self, kernel: &Ruleset, ways: &WaysIn) -> Option<Cut> {
        let before = self.before.as_ref().unwrap_or(kernel);
        match &self.after {
            After::Same => None,
            After::Rules(after) => Some(ways.cut(before, after)),
            After::Unknown => Some(Cut { closed: Vec::new(), is_known: false }),
        }
    }

    /// The plan. A change that closes a way in, or may do so, is critical, and has a guard.
    pub(super) fn plan(self, cut: Option<&Cut>, is_guarded: bool) -> Change {
        let said = cut.and_then(Cut::in_words);
        let is_guarded = is_guarded || said.is_some();
        let mut change = self.notes.into_iter().fold(Change::new(self.summary), Change::warning);
        if let Some(said) = said {
            change = change.warning(said).risk(Risk::Critical);
        }
        if is_guarded {
            change = self.kept.into_iter().fold(change, Change::step).guard(GUARD);
        }
        change = self.steps.into_iter().fold(change, Change::step);
        self.after_undo.into_iter().fold(change, Change::after_undo)
    }
}
