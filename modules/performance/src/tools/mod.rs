//! One file for each tool.

pub(crate) mod bottleneck;
pub(crate) mod disk_io;
pub(crate) mod memory;
pub(crate) mod network_io;
pub(crate) mod overview;
pub(crate) mod top_processes;
pub(crate) mod uptime;
