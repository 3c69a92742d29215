//! The crate of the host that decides about commands and paths, and nothing else of it: what it needs is small, and
//! instrumenting wasmtime would take an hour.

pub use host_capability::parts::*;
pub use host_capability::{Glob, HoleType, Pattern, STAGING, is_lexically_safe};
