//! Finds, describes, limits and calls components. No other crate names wasmtime.
// `forbid` isn't possible: `cache.rs` deserializes compiled code, and says why.
#![deny(unsafe_code)]

mod aliases;
mod any_program;
mod bindings;
mod cache;
mod call_clock;
mod compile;
mod config;
mod contract_0_1;
mod convert;
mod description;
mod engine;
mod guest;
pub mod host_arguments;
mod idle;
mod imports;
mod install;
mod instance;
mod json;
mod knowledge;
mod limits;
mod linker;
mod lock;
mod log;
mod look_commands;
mod module;
mod output;
mod registry;
mod replan;
mod shared_cache;
mod source;
mod store;
mod surface;
mod system_imports;
mod system_services;
mod tool_caller;
mod tool_calls;
mod trap;
mod wildcard_reads;

pub use aliases::Aliases;
pub use compile::{SUBCOMMAND as COMPILE, child as compile};
pub use config::{ConfiguredPaths, Disabled, Limits, Modules, Policy};
pub use description::{Description, Shape, Tool};
pub use install::{Examined, InstallError, ModuleInstaller, Verified};
pub use limits::CallBudget;
pub use lock::NAME as LOCK;
pub use module::{LARGEST as LARGEST_COMPONENT, Module, Reply};
pub use registry::{CompileMode, Conflict, Registry, Route, kept_list};
pub use replan::{ReplanCall, ToolCall};
pub use shared_cache::{CompiledForEveryone, compile_for_everyone, shared_cache};
pub use source::{ModuleDirectories, Origin, SUMS, UnusedModule, module_names, read_sums};
pub use store::{CallContext, PlanHandling, TimeLimits};
pub use system_services::{
    ConnectionService, JobService, ListedTool, PublicKey, SessionService, SystemServices,
};
pub use tool_caller::ToolCaller;

/// The version of the contract that this host speaks. It speaks version 0.1.0 as well.
pub const CONTRACT: &str = "sysadmin:module@0.2.0";
