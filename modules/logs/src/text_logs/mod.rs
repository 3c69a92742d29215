//! Text logs: files in `/var/log`, or where the profile of a service says.

pub(crate) mod file;
pub(crate) mod grep;
pub(crate) mod inventory;
pub(crate) mod line_splitter;
pub(crate) mod path;
pub(crate) mod read;
pub(crate) mod seek;
pub(crate) mod tail;
