//! `svc_restart`: restarts a unit, or starts one that does not run.

use linux_sysadmin_sdk::prelude::*;

use super::UnitArgs;
use crate::changes::outcome::Outcome;
use crate::changes::plan;
use crate::systemd::unit;
use crate::systemd::verb::Verb;

pub(crate) fn svc_restart(args: UnitArgs, cx: &Context) -> Result<Noted<Outcome>> {
    let unit = unit::known(&args.service, cx)?;
    unit.check(Verb::Restart)?;
    plan::apply(&unit, &[Verb::Restart], cx)
}
