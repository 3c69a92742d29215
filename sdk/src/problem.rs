//! Problems: what the envelope of an error is made of.

use crate::module::excerpt;
use crate::{Category, Problem};

impl Problem {
    /// `code` in upper snake case.
    pub fn new(code: &str, category: Category, message: impl Into<String>) -> Self {
        Self { code: code.to_owned(), category, message: message.into(), remediation: Vec::new() }
    }

    /// The caller's input: says what was expected.
    pub fn validation(code: &str, message: impl Into<String>) -> Self {
        Self::new(code, Category::Validation, message)
    }

    /// No such thing on the target.
    pub fn not_found(code: &str, message: impl Into<String>) -> Self {
        Self::new(code, Category::NotFound, message)
    }

    /// A program or file said something that this module doesn't understand.
    pub fn unexpected(source: &str, text: &str) -> Self {
        let message = format!("{source} is not in the expected form: {:?}", excerpt(text));
        Self::new("UNEXPECTED_OUTPUT", Category::Other, message)
    }

    /// Adds a step that a person or a model can take.
    pub fn remedy(mut self, step: impl Into<String>) -> Self {
        self.remediation.push(step.into());
        self
    }
}
