//! The engine of patches: from a diff and the texts of files to their new texts, without a look at the target.

pub mod apply;
#[cfg(test)]
mod beside_patch;
pub mod conflict;
pub mod locate;
pub mod parse;
