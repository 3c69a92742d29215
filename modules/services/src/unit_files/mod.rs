//! Writing unit files: arguments become settings, settings become a file, and the file becomes a plan.

pub(crate) mod arguments;
pub(crate) mod edit;
pub(crate) mod limits;
pub(crate) mod planned_file;
pub(crate) mod precedence;
pub(crate) mod syntax;
pub(crate) mod timer_schedule;
pub(crate) mod unit_args;
