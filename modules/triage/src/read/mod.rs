//! The readers of answers, a file for each subject. Each of them takes the envelope of one tool, and writes what is wrong into
//! the notebook.

pub(crate) mod certificates;
pub(crate) mod changes;
pub(crate) mod clock;
pub(crate) mod disks;
pub(crate) mod dns;
pub(crate) mod kernel;
pub(crate) mod load;
pub(crate) mod login;
pub(crate) mod mounts;
pub(crate) mod packages;
pub(crate) mod ports;
pub(crate) mod routes;
pub(crate) mod schedule;
pub(crate) mod units;
