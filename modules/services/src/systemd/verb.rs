//! The changes of a unit's state that the tools make: start, stop, restart, reload, enable, disable.

use linux_sysadmin_sdk::{DurationCategory, prelude::*};

use super::systemctl;

/// A verb of systemctl that changes a unit's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    Start,
    Stop,
    Restart,
    Reload,
    Enable,
    Disable,
}

impl Verb {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Stop => "stop",
            Self::Restart => "restart",
            Self::Reload => "reload",
            Self::Enable => "enable",
            Self::Disable => "disable",
        }
    }

    /// The command that does it with a unit, as root.
    pub(crate) fn command(self, unit: &str) -> Command {
        let line = match self {
            Self::Start => systemctl::START,
            Self::Stop => systemctl::STOP,
            Self::Restart => systemctl::RESTART,
            Self::Reload => systemctl::RELOAD,
            Self::Enable => systemctl::ENABLE,
            Self::Disable => systemctl::DISABLE,
        };
        line.with([unit]).as_root().duration(DurationCategory::Normal)
    }
}
