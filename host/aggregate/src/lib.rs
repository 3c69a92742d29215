//! Folds the answers of many hosts to one question into one answer. It says once what is alike, and names who differs.
//!
//! The reader of an answer from fifty hosts pays for each word. Most of that answer is the same fifty times, and the
//! differences are what matters. The rules of folding:
//!
//! 1. A value that is equal on all hosts stands there as one host gave it. Objects are folded member by member. Whatever
//!    differs has members that begin with `$`; a name of the tool's own that begins with `$` gets one more `$` in front.
//!    Where whole objects or lists side by side are shorter, they are given whole.
//! 2. `$on` names the hosts that have a member or an item, and `$not_on` those that don't, whichever are fewer. A value
//!    that isn't an object then stands in `$value`, and several items in a row stand in `$items`.
//! 3. `{"$differs": [{"value": …, "hosts": […]}, …]}` gives values with their hosts, the rarest first. Where more than
//!    three hosts have the last value, its `hosts` is their number: every host that isn't named has that value. For texts
//!    of several lines, `diff` may stand in place of `value`: a unified diff from the last value. `$host` stands for the
//!    host's own name. For up to five hosts, every value is given.
//! 4. Many numbers or times become `{"$range": [least, middle, greatest], "low": […], "high": […]}`. `low` and `high` name
//!    the hosts at the ends, if there are at most three. `outliers` has other hosts that stand out, up to five at each end
//!    together with those; `further` counts the rest. A value stands out if it is farther from the quartiles than 1.5 times
//!    the distance between them (Tukey, Exploratory Data Analysis, 1977).
//! 5. Many different texts: where most hosts have the same one, the others are given as outliers with the names of all their
//!    hosts. Ten of them are given, and a last entry counts the `further` values. Where no text is that common,
//!    `{"$examples": [{"value": …, "hosts": […]}, …], "values": …}` gives some of them and their number.
//! 6. Items of a list are paired by the member that identifies them: `name`, `unit` and so on, otherwise the first text that
//!    no two items of a host share, otherwise all texts of an item together. Lines and other items that aren't objects are
//!    paired where they are equal; lists of equally many numbers are paired by position. The order of the items is every
//!    host's order where there is such an order; otherwise an item stands as high as it does on any host.
//! 7. A set of hosts that is named more than once gets a label, `$1`, `$2` and so on, where it is named first.
//! 8. A note says once that some values of some hosts are not given.
//! 9. The whole answer is bounded. Where it would be too long, each host keeps as many items as the others, from the first
//!    on. `$cut` at the end of a list or of an object counts what is left out, with the `hosts` of which nothing remains, or
//!    their number. `{"$cut": "… bytes"}` stands for a value, and a text that is cut ends with its length. Short values
//!    stay whole.
//!
//! Every answer is redacted before it is folded, because redaction recognizes a secret by the name of its member, and
//! folding puts other members in between.
#![forbid(unsafe_code)]

mod compare;
mod cut;
mod failures;
mod node;
mod pairing;
mod range;
mod summaries;
mod text_diff;
mod write;

#[cfg(test)]
mod tests;

pub use failures::{Failures, HostFailure};

use serde_json::Value;

use host_text::redact::redact_value;
use host_text::visible::make_visible;

/// One host's answer.
#[derive(Clone, Debug)]
pub struct HostAnswer {
    /// The host's name. No two answers have the same.
    pub host: String,
    /// The tool's answer.
    pub data: Value,
    /// The summary of an analysis.
    pub summary: Option<String>,
    /// The severity of an analysis: `info`, `warning`, `high` or `critical`.
    pub severity: Option<String>,
    /// The further remarks for the caller.
    pub notes: Vec<String>,
    /// Whether the host has more than `data` holds.
    pub truncated: bool,
}

/// One answer for all hosts.
#[derive(Clone, Debug, PartialEq)]
pub struct FoldedAnswer {
    /// The folded answers; an array where all answers are arrays.
    pub data: Value,
    /// The summaries, one line each, the worst first.
    pub summary: Option<String>,
    /// The worst severity.
    pub severity: Option<String>,
    /// The notes with their hosts, and notes on what folding left out. There are at most 17.
    pub notes: Vec<String>,
    /// Whether a host or folding left something out.
    pub truncated: bool,
}

/// Folds the answers of different hosts to the same call. The hosts stay in the given order, and the same answers give the
/// same bytes. No answers fold to null. Folding may take seconds where many hosts give long answers.
pub fn fold(mut answers: Vec<HostAnswer>) -> FoldedAnswer {
    let mut shown: Vec<Value> = answers.iter_mut().map(|answer| answer.data.take()).collect();
    for data in &mut shown {
        redact_value(data);
        // Escaping comes before folding, because it changes lengths, and folding decides by lengths.
        make_visible(data);
    }
    let names: Vec<&str> = answers.iter().map(|answer| answer.host.as_str()).collect();
    let (data, mut caveats) = write::bounded(compare::compare(&names, &shown), &names);
    let (summary, severity) = summaries::summary(&answers, &mut caveats);
    let mut notes = summaries::notes(&answers, &mut caveats);
    caveats.cut_before = summaries::cut_before(&answers);
    notes.extend(caveats.notes());
    let truncated = caveats.is_cut() || answers.iter().any(|answer| answer.truncated);
    FoldedAnswer { data, summary, severity, notes, truncated }
}
