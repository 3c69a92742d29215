//! The tools, one file per subject.

pub(crate) mod info;
pub(crate) mod power;
pub(crate) mod set;
pub(crate) mod sysctl;
pub(crate) mod time;
