//! The tools for the rules of sudo: `sudoers_list` and `sudoers_modify`. The sdk reads the rules.

pub(crate) mod list;
pub(crate) mod modify;
mod requested_rule;
mod root_equivalent;

use linux_sysadmin_sdk::prelude::*;
pub(crate) use linux_sysadmin_sdk::sudoers::{DIRECTORY, MAIN, Sudoers, is_read, parse, rights};

/// Checks all files of sudo.
pub(crate) const CHECK_ALL: CommandLine = CommandLine::new("visudo --check");
/// Checks one file before sudo reads it.
pub(crate) const CHECK_ONE: CommandLine = CommandLine::new("visudo --check --file=<path:/etc/sudoers.d/*>");
