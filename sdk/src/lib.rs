//! The library for authors of modules. An author writes tools and grants; this crate takes care of bindings, JSON and
//! envelopes.
//!
//! A tool is a function from a typed arguments struct to a typed reply:
//!
//! ```
//! use linux_sysadmin_sdk::prelude::*;
//!
//! #[derive(Deserialize, JsonSchema)]
//! struct LoadArgs {}
//!
//! #[derive(Serialize)]
//! struct Load {
//!     /// Runnable processes, averaged over a minute.
//!     one_minute: f64,
//! }
//!
//! fn load(_: LoadArgs, cx: &Context) -> Result<Single<Load>> {
//!     let text = cx.read("/proc/loadavg")?;
//!     let first = text.split(' ').next().and_then(|word| word.parse().ok());
//!     Ok(Single(Load { one_minute: first.ok_or_else(|| Problem::unexpected("/proc/loadavg", &text))? }))
//! }
//!
//! pub fn module() -> Module {
//!     Module::new("load", env!("CARGO_PKG_VERSION"), "performance", "Load averages")
//!         .path(PathGrant::read("/proc/loadavg", "load averages"))
//!         .tool(Tool::new("load_now", "Load average", load).instant())
//! }
//!
//! linux_sysadmin_sdk::export!(module);
//! ```
//!
//! The reply's type gives the tool's shape: [`Single`], [`Listing`] or [`Analysis`]. The module may do what its grants
//! say, and nothing else. Its tests run natively, against a [`testkit::FakeTarget`].
//!
//! A tool changes something by a plan only. It declares its risk, which gives it a `dry_run` argument. Grants for changing
//! cover the steps of the plan, and the tool hands the plan to the host as a whole:
//!
//! ```
//! use linux_sysadmin_sdk::prelude::*;
//!
//! const RESTART: CommandLine = CommandLine::new("systemctl restart -- <unit>");
//!
//! #[derive(Deserialize, JsonSchema)]
//! struct Restart {
//!     /// A unit's name.
//!     service: String,
//! }
//!
//! #[derive(Serialize)]
//! struct Restarted {
//!     /// False where it was a dry run.
//!     restarted: bool,
//! }
//!
//! fn restart(args: Restart, cx: &Context) -> Result<Single<Restarted>> {
//!     let step = Step::run(RESTART.with([&args.service]).as_root()).uninterruptible();
//!     let change = Change::new(format!("Restart {}", args.service)).step(step).affects(args.service);
//!     let applied = cx.apply(change)?;
//!     Ok(Single(Restarted { restarted: !applied.dry_run }))
//! }
//!
//! pub fn module() -> Module {
//!     Module::new("restart", env!("CARGO_PKG_VERSION"), "services", "Restarts units")
//!         .command(RESTART.change(Risk::Moderate, "to restart it"))
//!         .tool(Tool::new("restart", "Restart a unit", restart).risk(Risk::Moderate))
//! }
//! ```
// Not `forbid`: generated bindings lower and lift values by hand.
#![deny(unsafe_code)]

pub mod accounts;
pub mod authorized_keys;
#[allow(unsafe_code)]
pub mod bindings;
pub mod certificates;
mod change;
// The file is the host's own, by a symlink: a hole of a command line takes none of these characters.
mod characters;
mod command;
mod command_line;
mod context;
pub mod firewall;
mod grant;
#[doc(hidden)]
pub mod guest;
mod journal;
pub mod knowledge;
pub mod listening;
mod module;
pub mod mounts;
pub mod packages;
pub mod paths;
mod problem;
pub mod processes;
mod reply;
mod schema;
pub mod sshd;
pub mod sudoers;
#[cfg(feature = "system")]
pub mod system;
#[cfg(not(target_family = "wasm"))]
pub mod testkit;
pub mod text;
pub mod time;
mod tool;
mod tool_call;
pub mod units;

pub use bindings::sysadmin::module::distro_context::Distro;
pub use bindings::sysadmin::module::target_files::Metadata;
pub use bindings::sysadmin::module::types::{
    Category, Command, DurationCategory, Keep, Output, Pipeline, Place, Privilege, Problem, Risk,
};
pub use change::{Applied, Change, Failure, Lock, ProcessSignal, SignalTarget, Step};
pub use command_line::CommandLine;
pub use context::{Context, OutputStream};
pub use grant::{AnyProgramGrant, CommandGrant, OwnProgramGrant, PathGrant, SignalGrant};
pub use journal::JournalEntry;
pub use module::Module;
pub use reply::{Analysis, IntoReply, Listing, Noted, Severity, Single};
pub use tool::Tool;
pub use tool_call::ToolCall;

/// The crates whose derives a tool's types have, in the versions that this crate understands.
///
/// A module that depends on `serde` and `schemars` by itself needs nothing of this. One that depends on this crate alone
/// tells the derives where they are:
///
/// ```
/// use linux_sysadmin_sdk::prelude::*;
///
/// #[derive(Deserialize, JsonSchema)]
/// #[serde(crate = "linux_sysadmin_sdk::serde")]
/// #[schemars(crate = "linux_sysadmin_sdk::schemars")]
/// struct LoadArgs {}
/// ```
pub use {schemars, serde, serde_json};

/// The result of a tool: its reply, or a problem.
pub type Result<T> = std::result::Result<T, Problem>;

/// The names that most modules need, including the derives.
pub mod prelude {
    pub use crate::{
        Analysis, Applied, Category, Change, Command, CommandGrant, CommandLine, Context, DurationCategory,
        Failure, Listing, Lock, Metadata, Module, NoArgs, Noted, Output, PathGrant, Problem, Result, Risk,
        Severity, Single, Step, Tool,
    };
    pub use schemars::JsonSchema;
    pub use serde::{Deserialize, Serialize};
    pub use serde_json::json;
}

/// The arguments of a tool that takes none.
#[derive(serde::Deserialize, schemars::JsonSchema)]
pub struct NoArgs {}

/// Makes the crate a component. `export!(module)` takes a function that returns the [`Module`].
#[macro_export]
macro_rules! export {
    ($module:ident) => {
        #[cfg(target_family = "wasm")]
        mod component {
            use $crate::bindings::exports::sysadmin::module::{describe, tools};

            struct Component;

            impl describe::Guest for Component {
                fn describe() -> describe::Description {
                    super::$module().description()
                }
            }

            impl tools::Guest for Component {
                fn call(
                    tool: String,
                    arguments: String,
                    context: tools::Context,
                ) -> ::std::result::Result<tools::Reply, tools::Problem> {
                    $crate::guest::call(super::$module(), &tool, &arguments, context)
                }
            }

            $crate::bindings::export!(Component with_types_in $crate::bindings);
        }
    };
}
