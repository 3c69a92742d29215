//! One file for each source in `/proc` and `/sys`.

pub(crate) mod cpu;
pub(crate) mod disk;
pub(crate) mod memory;
pub(crate) mod network;
pub(crate) mod pressure;
pub(crate) mod process;
