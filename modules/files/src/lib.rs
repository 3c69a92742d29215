//! The tools for files: read, search, patch, write, copy, move and remove them.
#![forbid(unsafe_code)]

pub mod lines;
pub mod patch;
