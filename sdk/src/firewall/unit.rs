//! The unit that loads a firewall's rules.

use crate::{CommandLine, Context, Module, Result};

const UNIT: CommandLine =
    CommandLine::new("systemctl show --property=ActiveState --property=UnitFileState -- <unit>");

/// Asks for the command that tells the unit's state.
pub(super) fn granted(module: Module) -> Module {
    module.command(UNIT.read("whether the firewall starts at boot"))
}

/// The state of a unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unit {
    /// Whether it runs, or has run.
    pub is_active: bool,
    /// Whether it starts at boot.
    pub is_enabled: bool,
}

/// The state of the unit.
pub fn unit(name: &str, cx: &Context) -> Result<Unit> {
    let output = cx.run(UNIT.with([name]))?.success("systemctl show")?;
    let text = output.text();
    let is = |property: &str, value: &str| {
        text.lines()
            .any(|line| line.split_once('=').is_some_and(|(key, found)| key == property && found == value))
    };
    Ok(Unit { is_active: is("ActiveState", "active"), is_enabled: is("UnitFileState", "enabled") })
}
