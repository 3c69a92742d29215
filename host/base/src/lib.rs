//! What every other crate of the host speaks of: commands and what they left, problems, risks, accounts, small files that
//! are trusted.
//!
//! The crate runs nothing and reaches no machine, and knows no tool.
#![forbid(unsafe_code)]

pub mod account;
mod attempt;
mod command;
pub mod directories;
pub mod faults;
pub mod heard;
pub mod id;
pub mod passwd;
mod privilege;
pub mod problem;
pub mod program;
mod risk;
pub mod sha256;
pub mod small_file;
pub mod unambiguous;
mod within;

pub use attempt::Attempt;
pub use command::{Command, Keep, Output};
pub use privilege::Privilege;
pub use risk::Risk;
pub use within::Within;
