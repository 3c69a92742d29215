//! Many hosts' answers to one question as one answer: what is alike is said once, who differs is named.
//!
//! An answer of fifty hosts is read by somebody who pays for each word of it. Most of it is the same fifty times, and
//! what matters is where it isn't. An answer is folded like this:
//!
//! 1. What is equal on all hosts stands there as one host said it. Objects are folded member by member, so that only
//!    what differs looks different: it has members that begin with `$`. (A name of the tool's own that begins so has
//!    one more `$` in front.) Where whole objects or lists side by side are shorter, they are given whole.
//! 2. `$on` and `$not_on` name the hosts that have a member or an item, or those that don't, whichever are fewer; what
//!    is no object is then in `$value`, and several items in a row are in `$items`.
//! 3. `{"$differs": [{"value": …, "hosts": […]}, …]}` are values with their hosts, the rarest first. Where more than
//!    three hosts have the last one, `hosts` is how many: all that aren't named. Of texts with several lines, `diff` may
//!    stand for `value`: how to get there from the last one, in unified form. `$host` is the host's own name. Up to
//!    five hosts, all is said of each.
//! 4. Numbers and times that are many: `{"$range": [least, middle, greatest], "low": […], "high": […]}`, where `low`
//!    and `high` are the hosts at the ends, if at most three. Others that stand out are in `outliers`, up to five hosts
//!    at each end with those; `further` counts the rest. What stands out is beyond 1.5 times the distance of the
//!    quartiles from them (Tukey, Exploratory Data Analysis, 1977).
//! 5. Texts of which there are many: where one is most hosts', the others are outliers, and their hosts are all named;
//!    ten are given, the last entry says how many `further` values its hosts have. Where none is,
//!    `{"$examples": [{"value": …, "hosts": […]}, …], "values": …}` are some, and how many there are.
//! 6. Items of a list are paired by what identifies them: `name`, `unit` and so on, otherwise the first text that no two
//!    items of a host share, otherwise all texts of an item together. Lines and other items that are no objects are
//!    paired where they are equal, lists of as many numbers by their position. The order is every host's where there is
//!    one; otherwise an item stands as high as it does on any host.
//! 7. A set of hosts that is named again is `$1`, `$2` and so on, from where it was named.
//! 8. What isn't said of each host is said to be so in a note, once.
//! 9. The whole is bounded. Where there is no room for more, of each host as many items are given as of the others, from
//!    the first on; `$cut` at the end of a list or of an object is how many are left out, with the `hosts` of which
//!    nothing is left, or how many those are. `{"$cut": "… bytes"}` stands for a value, and a text that is cut ends with
//!    its length. What is short stays whole.
//!
//! Every answer is redacted before it is folded: a secret is known by the name of its member, and folding puts others
//! in between.
#![forbid(unsafe_code)]

mod compare;
mod cut;
mod items;
mod node;
mod range;
mod said;
mod text;
mod write;

#[cfg(test)]
mod tests;

use serde_json::Value;

use host_text::redact::redact_value;
use host_text::visible::make_visible;

/// One host's answer.
#[derive(Clone, Debug)]
pub struct Answered {
    /// Its name; no two answers have the same.
    pub host: String,
    /// What the tool said.
    pub data: Value,
    /// Of an analysis.
    pub summary: Option<String>,
    /// Of an analysis: `info`, `warning`, `high` or `critical`.
    pub severity: Option<String>,
    /// What the caller should know besides.
    pub notes: Vec<String>,
    /// There is more than `data` holds.
    pub truncated: bool,
}

/// One answer for all of them.
#[derive(Clone, Debug, PartialEq)]
pub struct Folded {
    /// What the hosts said; an array where all of theirs are.
    pub data: Value,
    /// Theirs, a line each, the worst first.
    pub summary: Option<String>,
    /// The worst of theirs.
    pub severity: Option<String>,
    /// Theirs with their hosts, and what was not said of each host. At most 17.
    pub notes: Vec<String>,
    /// Something was left out, by a host or here.
    pub truncated: bool,
}

/// Folds answers to the same call, each of a host of its own. The hosts stay in the given order; the same answers give
/// the same bytes. None at all are null. It may take seconds where many hosts say much.
pub fn fold(mut answers: Vec<Answered>) -> Folded {
    let mut shown: Vec<Value> = answers.iter_mut().map(|answer| answer.data.take()).collect();
    for data in &mut shown {
        redact_value(data);
        // Escaped later, it would be longer than it was taken to be.
        make_visible(data);
    }
    let names: Vec<&str> = answers.iter().map(|answer| answer.host.as_str()).collect();
    let (data, mut seen) = write::bounded(compare::tell(&names, &shown), &names);
    let (summary, severity) = said::summary(&answers, &mut seen);
    let mut notes = said::notes(&answers, &mut seen);
    seen.cut_before = said::cut_before(&answers);
    notes.extend(seen.notes());
    let truncated = seen.is_cut() || answers.iter().any(|answer| answer.truncated);
    Folded { data, summary, severity, notes, truncated }
}
