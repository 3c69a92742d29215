//! An attempt that failed, as an answer lists it.

use std::time::Duration;

use serde::Serialize;

use crate::problem::Problem;

/// A look at the target, or a connection to it, that failed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Attempt {
    /// The time from the beginning of the first attempt to the end of this one.
    pub after_seconds: f64,
    /// The error code, as in the envelope.
    pub error_code: String,
    /// The message, as in the envelope.
    pub message: String,
}

impl Attempt {
    /// Makes the record of a problem. `after` is the time since the first attempt began.
    pub fn of(problem: &Problem, after: Duration) -> Self {
        Self {
            after_seconds: (after.as_secs_f64() * 10.0).round() / 10.0,
            error_code: problem.code.clone(),
            message: problem.message.clone(),
        }
    }
}
