//! Components: loaded, described, limited and called. Nothing outside this folder names wasmtime.

mod bindings;
mod cache;
mod convert;
mod description;
mod engine;
mod imports;
mod limits;
mod log;
mod module;
mod output;
mod registry;
mod store;

pub use description::{Shape, Tool};
pub use module::{Module, Reply};
pub use registry::{Registry, Route};
pub use store::{CallContext, Executed, Progress};

/// The contract that this host speaks, as `sysadmin:module@0.1.0`.
pub const CONTRACT: &str = "sysadmin:module@0.1.0";
