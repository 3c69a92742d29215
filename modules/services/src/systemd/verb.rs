//! The changes of a unit's state that the tools make: start, stop, restart, reload, enable, disable, mask, unmask.

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
    Mask,
    /// The mask ends with the next boot.
    MaskRuntime,
    Unmask,
    UnmaskRuntime,
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
            Self::Mask | Self::MaskRuntime => "mask",
            Self::Unmask | Self::UnmaskRuntime => "unmask",
        }
    }

    /// True for a verb that makes the unit impossible to start.
    pub(crate) fn masks(self) -> bool {
        matches!(self, Self::Mask | Self::MaskRuntime)
    }

    /// True for a verb that starts, stops or reloads the unit. The others change only links to its file.
    pub(crate) fn runs(self) -> bool {
        matches!(self, Self::Start | Self::Stop | Self::Restart | Self::Reload)
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
            Self::Mask => systemctl::MASK,
            Self::MaskRuntime => systemctl::MASK_RUNTIME,
            Self::Unmask => systemctl::UNMASK,
            Self::UnmaskRuntime => systemctl::UNMASK_RUNTIME,
        };
        line.with([unit]).as_root().duration(DurationCategory::Normal)
    }
}
