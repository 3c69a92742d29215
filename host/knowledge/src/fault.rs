//! What is wrong with a profile's file.

/// What is wrong with a file.
pub struct Fault {
    /// Names and numbers from the file's root to where it is.
    pub at: Vec<String>,
    /// What was found, and what was expected.
    pub reason: String,
}

impl Fault {
    /// At the place of these names.
    pub fn new(at: &[&str], reason: impl Into<String>) -> Self {
        Self { at: at.iter().map(|part| (*part).to_owned()).collect(), reason: reason.into() }
    }
}
