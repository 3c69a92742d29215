//! Starting, stopping, reloading, enabling and disabling units: the plan, its warnings, and its outcome.

pub(crate) mod outcome;
pub(crate) mod plan;
pub(crate) mod unit_warnings;
