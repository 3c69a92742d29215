//! An error in a profile's file.

/// An error in a profile's file.
pub struct ProfileError {
    /// The names and indexes from the root of the file to the field.
    pub at: Vec<String>,
    /// The text that was found, and what was expected.
    pub reason: String,
}

impl ProfileError {
    /// Makes an error for the field at these names.
    pub fn new(at: &[&str], reason: impl Into<String>) -> Self {
        Self { at: at.iter().map(|part| (*part).to_owned()).collect(), reason: reason.into() }
    }
}
