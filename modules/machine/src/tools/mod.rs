//! The tools, one file per subject.

pub(crate) mod info;
pub(crate) mod power;
pub(crate) mod sysctl;
