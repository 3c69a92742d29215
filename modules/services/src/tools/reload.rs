//! `svc_reload`: makes a unit reload its configuration.

use linux_sysadmin_sdk::prelude::*;

use super::UnitArgs;
use crate::changes::outcome::Outcome;
use crate::changes::plan;
use crate::systemd::unit;
use crate::systemd::verb::Verb;

pub(crate) fn svc_reload(args: UnitArgs, cx: &Context) -> Result<Noted<Outcome>> {
    let unit = unit::known(&args.service, cx)?;
    unit.check(Verb::Reload)?;
    plan::apply(&unit, &[Verb::Reload], cx)
}
