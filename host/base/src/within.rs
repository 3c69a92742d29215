//! Numbers of the configuration that have bounds.

use serde::Deserialize;

/// A number within its bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "u32")]
pub struct Within<const LEAST: u32, const MOST: u32>(u32);

impl<const LEAST: u32, const MOST: u32> Within<LEAST, MOST> {
    /// The upper bound.
    pub const MOST: u32 = MOST;

    /// Makes a number that is known to be within the bounds. For a constant, a number outside the bounds is a compile
    /// error.
    pub const fn new(number: u32) -> Self {
        assert!(LEAST <= number && number <= MOST);
        Self(number)
    }

    /// Returns the number.
    pub fn get(self) -> u32 {
        self.0
    }
}

impl<const LEAST: u32, const MOST: u32> TryFrom<u32> for Within<LEAST, MOST> {
    type Error = String;

    fn try_from(number: u32) -> Result<Self, String> {
        match (LEAST..=MOST).contains(&number) {
            true => Ok(Self(number)),
            false => Err(format!("{number} is not a number from {LEAST} to {MOST}")),
        }
    }
}
