//! The tools, one in each file.

pub(crate) mod info;
