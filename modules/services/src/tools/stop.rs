//! `svc_stop`: stops a unit.

use linux_sysadmin_sdk::prelude::*;

use super::UnitArgs;
use crate::changes::outcome::{self, Outcome};
use crate::changes::plan;
use crate::systemd::unit;
use crate::systemd::verb::Verb;

pub(crate) fn svc_stop(args: UnitArgs, cx: &Context) -> Result<Noted<Outcome>> {
    let unit = unit::known(&args.service, cx)?;
    if !unit.is_running() {
        return Ok(outcome::holds(&unit, format!("{} isn't running: it is {}", unit.id, unit.active_state)));
    }
    unit.check(Verb::Stop)?;
    plan::apply(&unit, &[Verb::Stop], cx)
}
