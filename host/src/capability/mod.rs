//! What a module may do: nothing, but for what its grants spell out.

mod grants;
mod hole;
mod path;
mod pattern;

pub use grants::{Effect, GrantError, Grants, command_line};
