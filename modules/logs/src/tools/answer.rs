//! The answer of the tools that show lines in order of time, and the arguments that bound it.

use linux_sysadmin_sdk::prelude::*;

use crate::line::{self, Line, ShownLine};
use crate::{fold, redaction};

/// The number of lines where the caller gives none.
const LIMIT: usize = 100;
/// The largest number of lines that a caller may ask for.
const MOST: usize = 2000;

#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Order {
    #[default]
    Newest,
    Oldest,
}

/// Lines in order of time.
#[derive(Serialize)]
pub(crate) struct Answer {
    /// The source, where all lines have the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<std::rc::Rc<str>>,
    lines: Vec<ShownLine>,
    /// The number of lines before folding, where some are folded.
    #[serde(skip_serializing_if = "Option::is_none")]
    total: Option<usize>,
    /// The sources that were read, where the caller didn't name them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    sources: Vec<String>,
    /// Sources that don't exist.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    missing: Vec<String>,
    /// True where there are more lines than were asked for.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    truncated: bool,
    /// The position after the last line, for `after_cursor`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cursor: Option<String>,
}

/// Checks the number of lines that the caller asks for.
pub(crate) fn limit(asked: Option<u32>) -> Result<usize> {
    let asked = asked.map_or(LIMIT, |asked| asked as usize);
    if !(1..=MOST).contains(&asked) {
        let message = format!("limit is {asked}; expected 1 to {MOST}");
        return Err(Problem::validation("INVALID_LIMIT", message));
    }
    Ok(asked)
}

impl Answer {
    /// Makes the answer of the newest or oldest `most` lines. The lines of each source must be in order.
    pub(crate) fn new(cx: &Context, mut lines: Vec<Line>, most: usize, order: Order, fold: bool) -> Self {
        redaction::redact(cx, &mut lines);
        line::in_order(&mut lines);
        let cut = lines.len().saturating_sub(most);
        match order {
            Order::Newest => drop(lines.drain(..cut)),
            Order::Oldest => lines.truncate(most),
        }
        let mut shown = if fold { fold::near(&lines) } else { fold::none(&lines) };
        let total = (shown.len() < lines.len()).then_some(lines.len());
        let source = line::common_source(&mut shown);
        Self {
            source,
            lines: shown,
            total,
            sources: Vec::new(),
            missing: Vec::new(),
            truncated: cut > 0,
            cursor: None,
        }
    }

    pub(crate) fn truncated(mut self, truncated: bool) -> Self {
        self.truncated |= truncated;
        self
    }

    pub(crate) fn sources(mut self, sources: Vec<String>, missing: Vec<String>) -> Self {
        (self.sources, self.missing) = (sources, missing);
        self
    }
}
