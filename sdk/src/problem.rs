//! Problems: errors with a stable code, a category, a message and advice. The host puts them into the envelope.

use std::fmt::Write as _;

use crate::{Category, Problem};

impl Problem {
    /// Makes a problem. `code` is in upper snake case.
    pub fn new(code: &str, category: Category, message: impl Into<String>) -> Self {
        Self { code: code.to_owned(), category, message: message.into(), remediation: Vec::new() }
    }

    /// The caller's input is wrong. The message says what was expected.
    pub fn validation(code: &str, message: impl Into<String>) -> Self {
        Self::new(code, Category::Validation, message)
    }

    /// The target has no such thing.
    pub fn not_found(code: &str, message: impl Into<String>) -> Self {
        Self::new(code, Category::NotFound, message)
    }

    /// A program's output or a file has a form that the module doesn't know.
    pub fn unexpected(source: &str, text: &str) -> Self {
        let message = format!("{source} is not in the expected form: {:?}", excerpt(text));
        Self::new("UNEXPECTED_OUTPUT", Category::Other, message)
    }

    /// Adds a step that a person or a model can take to solve the problem.
    pub fn remedy(mut self, step: impl Into<String>) -> Self {
        self.remediation.push(step.into());
        self
    }
}

/// The beginning of an unexpected text, for a message.
fn excerpt(text: &str) -> String {
    let mut short: String = text.chars().take(120).collect();
    if short.len() < text.len() {
        let _ = write!(short, "… ({} bytes)", text.len());
    }
    short
}
