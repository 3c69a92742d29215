//! Logical volumes.

use linux_sysadmin_sdk::prelude::*;

/// Adds the tools of this folder, with their grants.
pub(crate) fn tools(module: Module) -> Module {
    module
}
