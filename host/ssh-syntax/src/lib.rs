//! The syntax of ssh_config(5): words, patterns and keywords.
//!
//! The host reads a configuration to connect, and the module `ssh` reads one to list and change it. Both use this crate, so
//! that they never differ. It knows no files and no settings, and it has no dependencies: the module is compiled to
//! WebAssembly, where the crates of the host don't run.
#![forbid(unsafe_code)]

mod keyword;
mod pattern;
mod words;

pub use keyword::{ValueForm, is_whole_line, value_form};
pub use pattern::matches_list;
pub use words::{Word, directive, words};
