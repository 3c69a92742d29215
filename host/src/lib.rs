//! The host. It has all the power and knows nothing about administration: every tool comes from a component.
//!
//! Read `dispatcher/pipeline.rs` first: it is one tool call, in seven steps.
#![forbid(unsafe_code)]

mod answers;
mod arguments;
mod calls;
pub mod cli;
mod config;
mod dispatcher;
mod module_tests;
mod retry;
mod server;
mod signals;
mod targets;
