//! The running units that systemd stops or restarts along with a change of another unit.

use std::collections::BTreeSet;

use linux_sysadmin_sdk::prelude::*;

use super::unit::Unit;
use super::{properties, systemctl, unit_name};

/// The number of units that are followed at most.
const MOST_FOLLOWED: usize = 256;

/// Every unit conflicts with these, and they never run on a machine that answers.
const ALWAYS_IN_CONFLICT: [&str; 2] = ["shutdown.target", "umount.target"];

/// Running units that stop or restart along with a unit.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct StoppedUnits {
    pub(crate) units: Vec<String>,
    /// True where there were too many units to follow them all.
    pub(crate) is_cut: bool,
}

/// The units that stop or restart along with the unit: those that require it, and those that require these.
pub(crate) fn by_stop(unit: &Unit, cx: &Context) -> Result<StoppedUnits> {
    follow(&unit.id, unit.dependents.clone(), cx)
}

/// The units that stop when the unit starts: those that conflict with it, and those that require these.
pub(crate) fn by_start(unit: &Unit, cx: &Context) -> Result<StoppedUnits> {
    follow(&unit.id, unit.conflicts.clone(), cx)
}

fn follow(id: &str, first: Vec<String>, cx: &Context) -> Result<StoppedUnits> {
    let mut known: BTreeSet<String> = ALWAYS_IN_CONFLICT.map(str::to_owned).into();
    known.insert(id.to_owned());
    let (mut stopped, mut next, mut room) = (StoppedUnits::default(), first, MOST_FOLLOWED);
    while !stopped.is_cut {
        // Only `-.mount` is not accepted as an argument, and it stops with nothing.
        next.retain(|name| {
            unit_name::full(name).is_ok_and(|full| full == *name) && known.insert(name.clone())
        });
        stopped.is_cut = next.len() > room;
        next.truncate(room);
        room -= next.len();
        if next.is_empty() {
            break;
        }
        let shown = systemctl::answer(cx.run(systemctl::STATE.with(&next)))?;
        let units: Vec<Unit> = properties::parse_units(&shown)?.iter().filter_map(Unit::of).collect();
        if units.len() != next.len() {
            return Err(Problem::unexpected("systemctl show", &shown));
        }
        next = units.iter().flat_map(|unit| unit.dependents.clone()).collect();
        stopped.units.extend(units.into_iter().filter(Unit::is_running).map(|unit| unit.id));
    }
    stopped.units.sort();
    stopped.units.dedup();
    stopped.units.retain(|unit| unit != id);
    Ok(stopped)
}
