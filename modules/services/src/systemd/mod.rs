//! Asks systemd and reads what it prints: units, their properties, names, times and calendar expressions.

pub(crate) mod calendar;
pub(crate) mod exit_status;
pub(crate) mod journal;
pub(crate) mod properties;
pub(crate) mod stopped_units;
pub(crate) mod systemctl;
pub(crate) mod time;
pub(crate) mod unit;
pub(crate) mod unit_name;
pub(crate) mod verb;
