//! What a module may do: nothing, but for what its grants spell out.

mod concern;
mod directory;
mod grants;
mod hole;
mod path;
mod pattern;
mod request;
mod reviewed;
mod staging;
mod sudoers;
mod verbs;

pub use concern::{Concern, Request, by_concern};
pub use directory::DataDirectory;
pub use grants::{GrantError, Granted, Grants, Looking, command_line};
pub use hole::HoleType;
pub use path::{Glob, GlobError, STAGING, is_lexically_safe};
pub use pattern::{Pattern, PatternError};
pub use request::{CommandRequest, Effect, PathRequest, Place, Requests};
pub use sudoers::{Bound, Fragment, FragmentError, Rule, SudoVersion};
pub use verbs::{verbs_for, verbs_for_accounts, verbs_for_command, verbs_for_validation};
