//! `svc_start`: starts a unit.

use linux_sysadmin_sdk::prelude::*;

use super::UnitArgs;
use crate::changes::outcome::{self, Outcome};
use crate::changes::plan;
use crate::systemd::unit;
use crate::systemd::verb::Verb;

pub(crate) fn svc_start(args: UnitArgs, cx: &Context) -> Result<Noted<Outcome>> {
    let unit = unit::known(&args.service, cx)?;
    if unit.is_active() {
        return Ok(outcome::holds(&unit, format!("{} is {} already", unit.id, unit.active_state)));
    }
    unit.check(Verb::Start)?;
    plan::apply(&unit, &[Verb::Start], cx)
}
