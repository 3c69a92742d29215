//! The tools, one in each file.

pub(crate) mod info;
pub(crate) mod list;
pub(crate) mod signal;
