//! What a module may do: nothing, but for what its grants spell out.

mod grants;
mod hole;
mod path;
mod pattern;
mod request;
mod sudoers;

pub use grants::{GrantError, Grants, Looking, command_line};
pub use hole::HoleType;
pub use path::Glob;
pub use request::{CommandRequest, Effect, PathRequest, Place, Requests, Risk};
pub use sudoers::{Environment, Fragment, FragmentError, Refusal, Rule, SudoVersion};
