//! Identifiers that nobody can guess.

use crate::problem::{Category, Problem};

/// Returns sixteen hexadecimal digits from the kernel's random number generator.
pub fn random() -> Result<String, Problem> {
    let mut bytes = [0; 8];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty()).map_err(|error| {
        Problem::new("INTERNAL_ERROR", Category::Internal, format!("no random numbers: {error}"))
    })?;
    Ok(hex::encode(bytes))
}
