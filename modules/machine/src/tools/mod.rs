//! The tools, one file per subject.

pub(crate) mod power;
