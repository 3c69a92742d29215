//! Decides what a module may do: nothing except what its grants spell out.
//!
//! The crate decides and runs nothing: commands, paths and requests come in, and a yes or a problem goes out. It never
//! knows which tool asks.
#![forbid(unsafe_code)]

mod access;
mod concern;
mod data_directory;
mod grants;
mod hole;
mod path;
mod pattern;
mod request;
mod reviewed;
mod same;
mod staging;
mod sudoers;
mod verbs;

pub use access::Access;
pub use concern::{Concern, Request, by_concern};
pub use data_directory::DataDirectory;
pub use grants::{GrantError, GrantedLook, GrantedStep, Grants, command_line};
pub use hole::HoleType;
pub use path::{Glob, GlobError, STAGING, is_lexically_safe, is_secret};
pub use pattern::{Pattern, PatternError};
pub use request::{
    AnyProgramRequest, CommandRequest, Effect, OwnProgramRequest, PathRequest, Place, Requests, SignalRequest,
};
pub use sudoers::{Exactness, Fragment, FragmentError, SudoVersion, SudoersRule};
pub use verbs::{
    Verb, verbs_for, verbs_for_accounts, verbs_for_command, verbs_for_moves, verbs_for_validation,
};

/// The parts of patterns and paths, for the fuzzer.
#[cfg(feature = "fuzzing")]
pub mod parts {
    pub use crate::path::{PathText, is_secret};
    pub use crate::pattern::{Item, MAX_PATTERN, Part, Token, sample};
}
