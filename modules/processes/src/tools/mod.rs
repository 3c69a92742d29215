//! The tools.

pub(crate) mod signal;
