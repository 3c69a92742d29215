//! Components: loaded, described, limited and called. Nothing outside this folder names wasmtime.
// Not `forbid`: `cache.rs` deserializes compiled code, and says why.
#![deny(unsafe_code)]

mod again;
mod aliases;
mod bindings;
mod cache;
pub mod common;
mod compile;
mod config;
mod convert;
mod description;
mod engine;
mod idle;
mod imports;
mod install;
mod instance;
mod json;
mod knowledge;
mod limits;
mod lock;
mod log;
mod looking;
mod module;
mod output;
mod reach;
mod registry;
mod source;
mod store;
mod surface;
mod system;
mod wall;

pub use again::{Anew, Calling};
pub use aliases::Aliases;
pub use compile::{SUBCOMMAND as COMPILE, child as compile};
pub use config::{Disabled, Limits, Modules, Policy};
pub use description::{Description, Shape, Tool};
pub use install::{Examined, InstallError, Verified, Workshop};
pub use lock::NAME as LOCK;
pub use module::{Module, Reply};
pub use reach::{Connections, Jobs, PublicKey, Reach, Session};
pub use registry::{Cold, Conflict, Registry, Route, kept_list};
pub use source::read_sums;
pub use source::{Absent, Origin, Places, SUMS};
pub use store::{CallContext, Handing, Progress, Times};

/// The contract that this host speaks, as `sysadmin:module@0.1.0`.
pub const CONTRACT: &str = "sysadmin:module@0.1.0";
