//! The host: it owns all power and no domain knowledge. Every tool comes from a component.
//!
//! Read `dispatcher/pipeline.rs` first: it is one tool call, in seven steps.
#![forbid(unsafe_code)]

mod aliases;
mod answer;
mod arguments;
mod call;
mod call_key;
pub mod cli;
mod config;
mod connections;
mod dispatcher;
mod envelope;
mod jobs;
mod listing;
mod live;
mod many;
mod parking;
mod record;
mod remediation;
mod retry;
mod running;
mod schema;
mod server;
mod session;
mod signals;
mod targets;
mod turns;
mod watch;
