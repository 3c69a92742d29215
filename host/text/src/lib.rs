//! Makes text safe to show to a person or a model, or to record: every character is visible, and secrets are taken
//! out.
//!
//! This crate knows no commands, files or hosts. Its callers are the parts of the host that show or record text.
#![forbid(unsafe_code)]

pub mod characters;
pub mod redact;
pub mod suggestion;
pub mod table;
pub mod visible;
