//! One file for each tool.

pub(crate) mod config_check;
pub(crate) mod config_validate;
pub(crate) mod create_unit;
pub(crate) mod dependency_impact;
pub(crate) mod edit_unit;
pub(crate) mod enable;
pub(crate) mod list;
pub(crate) mod mask;
pub(crate) mod port_audit;
pub(crate) mod reload;
pub(crate) mod restart;
pub(crate) mod set_limits;
pub(crate) mod show;
pub(crate) mod start;
pub(crate) mod status;
pub(crate) mod stop;
pub(crate) mod timer_create;
pub(crate) mod timer_list;
pub(crate) mod timer_modify;
pub(crate) mod troubleshoot;

use linux_sysadmin_sdk::prelude::*;

/// The argument of the tools that start, stop, restart and reload a unit.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct UnitArgs {
    /// Unit, as ssh.socket
    service: String,
}
