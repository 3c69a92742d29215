//! `svc_mask` and `svc_unmask`: make a unit impossible to start, and end that. A mask is a link to /dev/null in the place of a
//! unit file.

use linux_sysadmin_sdk::prelude::*;

use crate::changes::outcome::{self, Outcome};
use crate::changes::plan;
use crate::excerpt;
use crate::systemd::unit::{self, Unit, state};
use crate::systemd::unit_name;
use crate::systemd::verb::Verb;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct MaskArgs {
    /// As for svc_status
    service: String,
    /// Stop it too
    #[serde(default)]
    now: bool,
    /// Only until the next boot
    #[serde(default)]
    runtime: bool,
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct UnmaskArgs {
    /// As for svc_status
    service: String,
}

pub(crate) fn svc_mask(args: MaskArgs, cx: &Context) -> Result<Noted<Outcome>> {
    let unit = unit::known(&args.service, cx)?;
    let mut verbs = Vec::new();
    // The stop comes first: undone, it starts the unit, which must not be masked any more then.
    if args.now && unit.is_running() {
        unit.check(Verb::Stop)?;
        verbs.push(Verb::Stop);
    }
    let holds = unit.enabled == "masked" || (args.runtime && unit.is_masked());
    if !holds {
        can_be_masked(&unit, cx)?;
        verbs.push(if args.runtime { Verb::MaskRuntime } else { Verb::Mask });
    }
    if verbs.is_empty() {
        return Ok(outcome::holds(&unit, format!("{} is masked already", unit.id)));
    }
    let mut reply = plan::apply(&unit, &verbs, cx)?;
    if !unit.needed_by.is_empty() {
        let list = unit_name::shorts(&unit.needed_by).join(", ");
        reply.notes.push(format!("can't start without it: {}", excerpt::of_text(&list)));
    }
    if !args.now && unit.is_running() {
        reply.notes.push(format!("it runs on until it is stopped: svc_stop service={}", unit.short()));
    }
    Ok(reply)
}

pub(crate) fn svc_unmask(args: UnmaskArgs, cx: &Context) -> Result<Noted<Outcome>> {
    let unit = unit::known(&args.service, cx)?;
    if !unit.is_masked() {
        return Ok(outcome::holds(&unit, format!("{} isn't masked", unit.id)));
    }
    let mut verbs = Vec::new();
    for (path, verb) in places(&unit).iter().zip([Verb::Unmask, Verb::UnmaskRuntime]) {
        if cx.stat_all(&[path]).remove(0)?.is_some() {
            verbs.push(verb);
        }
    }
    if verbs.is_empty() {
        let place = unit.fragment_path.as_deref().unwrap_or("a file of its package");
        let message =
            format!("{} is masked by its package, in {place}: there is no mask in /etc to remove", unit.id);
        return Err(state("UNIT_MASKED", message).remedy(format!(
            "If it is to run all the same, give it a file: svc_create_unit name={}",
            unit.short()
        )));
    }
    let mut reply = plan::apply(&unit, &verbs, cx)?;
    if !unit.is_running() {
        reply.notes.push(format!("it isn't started by that: svc_start service={}", unit.short()));
    }
    Ok(reply)
}

/// The places of a mask, the permanent one first.
fn places(unit: &Unit) -> [String; 2] {
    ["/etc", "/run"].map(|root| format!("{root}/systemd/system/{}", unit.id))
}

/// Refuses units that a mask can't take the place of.
fn can_be_masked(unit: &Unit, cx: &Context) -> Result<()> {
    let short = unit.short();
    if unit.enabled == "transient" {
        let message =
            format!("{} can't be masked: it is transient, its file is there only while it runs", unit.id);
        return Err(state("UNIT_GENERATED", message).remedy(format!("Stop it: svc_stop service={short}")));
    }
    if unit.is_masked() {
        return Ok(());
    }
    let [permanent, _] = places(unit);
    if cx.stat_all(&[&permanent]).remove(0)?.is_none() {
        return Ok(());
    }
    let message =
        format!("{} can't be masked: its file is {permanent}, where the mask would have to be", unit.id);
    Err(state("UNIT_NOT_MASKABLE", message)
        .remedy(format!("Have it not started at boot: svc_disable service={short} now=true"))
        .remedy(format!(
            "Or move the file out of the way first: file_move path={permanent} to=/usr/local/lib/systemd/system/{}",
            unit.id
        )))
}
