//! An attempt that failed, as an answer tells of it.

use std::time::Duration;

use serde::Serialize;

use crate::problem::Problem;

/// A look, or a connection, that failed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Attempt {
    /// From the first look's beginning to this one's end.
    pub after_seconds: f64,
    /// As in the envelope.
    pub error_code: String,
    /// As in the envelope.
    pub message: String,
}

impl Attempt {
    /// So long after the first one's beginning.
    pub fn of(problem: &Problem, after: Duration) -> Self {
        Self {
            after_seconds: (after.as_secs_f64() * 10.0).round() / 10.0,
            error_code: problem.code.clone(),
            message: problem.message.clone(),
        }
    }
}
