//! The tools, and the answer that several of them share.

pub(crate) mod answer;
pub(crate) mod disk_usage;
pub(crate) mod query;
pub(crate) mod search;
pub(crate) mod service_logs;
pub(crate) mod summary;
