//! The words that every other crate of the host uses: commands and their output, problems, risks, accounts, and small
//! files that are trusted.
//!
//! This crate starts no process, connects to no machine, and knows no tool.
#![forbid(unsafe_code)]

pub mod account;
pub mod atomic_file;
mod attempt;
mod command;
pub mod directories;
pub mod faults;
pub mod id;
pub mod output_buffer;
pub mod passwd;
pub mod path_glob;
mod privilege;
pub mod problem;
pub mod program;
mod risk;
pub mod sha256;
pub mod strict_json;
pub mod trusted_file;
mod within;

pub use attempt::Attempt;
pub use command::{Command, Keep, Output};
pub use privilege::Privilege;
pub use risk::Risk;
pub use within::Within;
