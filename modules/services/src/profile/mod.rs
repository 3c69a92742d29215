//! The parts of an answer that come from a service's profile: health checks, known errors, dependants, and the reasons
//! for a restart.

pub(crate) mod change_warnings;
pub(crate) mod command_batch;
pub(crate) mod dependants;
pub(crate) mod health_checks;
pub(crate) mod log_timestamps;
pub(crate) mod needs_restart;
pub(crate) mod recent_errors;
pub(crate) mod service_lookup;
pub(crate) mod service_report;
