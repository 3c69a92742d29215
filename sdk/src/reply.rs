//! The shapes of an answer.

use serde::Serialize;

use crate::bindings::exports::sysadmin::module::describe::Shape;
use crate::bindings::exports::sysadmin::module::tools::Reply;
use crate::{Category, Problem};

/// One object.
pub struct Single<T>(pub T);

/// One object with notes for the caller, such as "already enabled: nothing was changed".
pub struct Noted<T> {
    /// The object.
    pub data: T,
    /// Notes for the caller, one sentence each.
    pub notes: Vec<String>,
}

/// A list of items. The host applies `limit` and `filter`, unless the module has applied them and gives a `total`. Without a
/// filter, the sdk applies `limit` to a list that has no `total`, so that no item is written that the host leaves out.
pub struct Listing<T> {
    /// The items, the most important first.
    pub items: Vec<T>,
    /// The number of all items, where the module itself has applied `limit` and `filter`.
    pub total: Option<u64>,
    /// Notes for the caller, one sentence each.
    pub notes: Vec<String>,
}

/// One object with an interpretation.
pub struct Analysis<T> {
    /// The facts that were found.
    pub data: T,
    /// The meaning of the facts, in a sentence or two.
    pub summary: String,
    /// The severity of the findings.
    pub severity: Severity,
}

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// There is nothing to do.
    Info,
    /// A person should look at it.
    Warning,
    /// A person should act within days.
    High,
    /// A person should act now.
    Critical,
}

impl Severity {
    /// The name in the envelope.
    pub fn name(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::High => "high",
            Self::Critical => "critical",
        }
    }
}

impl<T> From<Vec<T>> for Listing<T> {
    fn from(items: Vec<T>) -> Self {
        Self { items, total: None, notes: Vec::new() }
    }
}

/// A type that a tool's function may return.
pub trait IntoReply {
    /// The shape of the answer.
    const SHAPE: Shape;

    /// The answer with at most this many items, where it is a list.
    fn limited(self, _limit: u32) -> Self
    where
        Self: Sized,
    {
        self
    }

    /// The answer in the contract's form.
    fn into_reply(self) -> Result<Reply, Problem>;
}

impl<T: Serialize> IntoReply for Single<T> {
    const SHAPE: Shape = Shape::Single;

    fn into_reply(self) -> Result<Reply, Problem> {
        reply(&self.0)
    }
}

impl<T: Serialize> IntoReply for Noted<T> {
    const SHAPE: Shape = Shape::Single;

    fn into_reply(self) -> Result<Reply, Problem> {
        Ok(Reply { notes: self.notes, ..reply(&self.data)? })
    }
}

impl<T: Serialize> IntoReply for Listing<T> {
    const SHAPE: Shape = Shape::Listing;

    fn limited(mut self, limit: u32) -> Self {
        if self.total.is_none() {
            self.total = Some(self.items.len() as u64);
            self.items.truncate(limit as usize);
        }
        self
    }

    fn into_reply(self) -> Result<Reply, Problem> {
        Ok(Reply { total: self.total, notes: self.notes, ..reply(&self.items)? })
    }
}

impl<T: Serialize> IntoReply for Analysis<T> {
    const SHAPE: Shape = Shape::Analysis;

    fn into_reply(self) -> Result<Reply, Problem> {
        let severity = Some(self.severity.name().to_owned());
        Ok(Reply { summary: Some(self.summary), severity, ..reply(&self.data)? })
    }
}

fn reply(data: &impl Serialize) -> Result<Reply, Problem> {
    let data = serde_json::to_string(data)
        .map_err(|error| Problem::new("UNSERIALIZABLE_REPLY", Category::Internal, error.to_string()))?;
    Ok(Reply { data, total: None, summary: None, severity: None, notes: Vec::new() })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_cut_to_the_limit_and_its_total_stays() {
        for (total, limit, data, said) in
            [(None, 2, "[1,2]", 3), (None, 5, "[1,2,3]", 3), (Some(9), 2, "[1,2,3]", 9)]
        {
            let listing = Listing { items: vec![1, 2, 3], total, notes: Vec::new() };
            let reply = listing.limited(limit).into_reply().unwrap();
            assert_eq!((reply.data.as_str(), reply.total), (data, Some(said)));
        }
    }
}
