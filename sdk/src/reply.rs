//! The three shapes of an answer.

use serde::Serialize;

use crate::bindings::exports::sysadmin::module::describe::Shape;
use crate::bindings::exports::sysadmin::module::tools::Reply;
use crate::{Category, Problem};

/// One object.
pub struct Single<T>(pub T);

/// One object, with what the caller should know besides, as "already enabled": nothing had to change.
pub struct Noted<T> {
    /// The object.
    pub data: T,
    /// A sentence each.
    pub notes: Vec<String>,
}

/// A list. The host applies `limit` and `filter`, unless the module did and says how many there were.
pub struct Listing<T> {
    /// The items, the most wanted first.
    pub items: Vec<T>,
    /// How many there were, where the module has applied `limit` and `filter` itself.
    pub total: Option<u64>,
    /// What the caller should know besides.
    pub notes: Vec<String>,
}

/// One object, with an interpretation to build on.
pub struct Analysis<T> {
    /// The facts.
    pub data: T,
    /// What they mean, in a sentence or two.
    pub summary: String,
    /// How bad that is.
    pub severity: Severity,
}

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Nothing to do.
    Info,
    /// Look at it.
    Warning,
    /// Act soon.
    High,
    /// Act now.
    Critical,
}

impl Severity {
    /// As in the envelope.
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

/// What a tool's function may return.
pub trait IntoReply {
    /// Which shape it is.
    const SHAPE: Shape;

    /// As the contract wants it.
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
