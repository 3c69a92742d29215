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
    /// Unit, as ssh.socket
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
    /// Unit, as ssh.socket
    service: String,
}

pub(crate) fn svc_mask(args: MaskArgs, cx: &Context) -> Result<Noted<Outcome>> {
    let unit = masked_by_its_own_name(unit::known(&args.service, cx)?, cx)?;
    let mut verbs = Vec::new();
    // The stop comes first: undone, it starts the unit, which must not be masked any more then.
    if args.now && unit.is_running() {
        unit.check(Verb::Stop)?;
        verbs.push(Verb::Stop);
    }
    let holds = unit.enabled == "masked" || (args.runtime && unit.is_masked());
    if !holds {
        can_be_masked(&unit, args.runtime, cx)?;
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
    let unit = masked_by_its_own_name(unit::known(&args.service, cx)?, cx)?;
    if !unit.is_masked() {
        return Ok(outcome::holds(&unit, format!("{} isn't masked", unit.id)));
    }
    let mut verbs = Vec::new();
    for (path, verb) in places(&unit).iter().zip([Verb::Unmask, Verb::UnmaskRuntime]) {
        if cx.stat_all(&[path]).remove(0)?.is_some() {
            verbs.push(verb);
        }
    }
    if let (true, Some(template)) = (verbs.is_empty(), masked_template(&unit)) {
        let message =
            format!("{} is masked with all instances of {template}: a mask of its own isn't there", unit.id);
        return Err(state("UNIT_MASKED", message)
            .remedy(format!("On the target, for all of them: systemctl unmask -- {template}")));
    }
    if verbs.is_empty() {
        let place = unit.fragment_path.as_deref().unwrap_or("a file of its package");
        let message =
            format!("{} is masked by its package, in {place}: there is no mask in /etc to remove", unit.id);
        return Err(state("UNIT_MASKED", message).remedy(format!(
            "If it is to run all the same, give it a file: svc_create_unit service={}",
            unit.short()
        )));
    }
    let mut reply = plan::apply(&unit, &verbs, cx)?;
    if !unit.is_running() {
        reply.notes.push(format!("it isn't started by that: svc_start service={}", unit.short()));
    }
    Ok(reply)
}

/// The unit whose mask is the file of this one. systemd takes the alias of a masked unit for a unit of its own, which it can't
/// load, so that a mask would have no effect under that name and has to be removed under the other one.
fn masked_by_its_own_name(unit: Unit, cx: &Context) -> Result<Unit> {
    match unit.file_name() {
        Some(file) if unit.is_masked() && file != unit.id && unit_name::template(file).is_none() => {
            unit::look(file, cx)
        }
        _ => Ok(unit),
    }
}

/// The template whose mask is the file of this unit.
fn masked_template(unit: &Unit) -> Option<&str> {
    unit.file_name().filter(|file| *file != unit.id && unit_name::template(file).is_some())
}

/// The places of a mask, the permanent one first.
fn places(unit: &Unit) -> [String; 2] {
    ["/etc", "/run"].map(|root| format!("{root}/systemd/system/{}", unit.id))
}

/// Refuses units that a mask can't take the place of.
fn can_be_masked(unit: &Unit, runtime: bool, cx: &Context) -> Result<()> {
    let short = unit.short();
    if unit.enabled == "transient" {
        let message =
            format!("{} can't be masked: it is transient, its file is there only while it runs", unit.id);
        return Err(state("UNIT_GENERATED", message).remedy(format!("Stop it: svc_stop service={short}")));
    }
    if unit.is_masked() {
        return Ok(());
    }
    let [permanent, until_boot] = places(unit);
    let mut found = cx.stat_all(&[&permanent, &until_boot]).into_iter();
    let mut is_there = || -> Result<bool> { Ok(found.next().transpose()?.flatten().is_some()) };
    let (is_permanent, is_until_boot) = (is_there()?, is_there()?);
    if is_permanent {
        let message =
            format!("{} can't be masked: its file is {permanent}, where the mask would have to be", unit.id);
        return Err(state("UNIT_NOT_MASKABLE", message)
            .remedy(format!("Have it not started at boot: svc_disable service={short} now=true"))
            .remedy(format!(
                "Or move the file out of the way first: file_move path={permanent} to=/usr/local/lib/systemd/system/{}",
                unit.id
            )));
    }
    if runtime && is_until_boot {
        let message = format!(
            "{} can't be masked until the next boot: its file is {until_boot}, where the mask would have to be",
            unit.id
        );
        return Err(state("UNIT_NOT_MASKABLE", message)
            .remedy(format!("Mask it until it is unmasked: svc_mask service={short}")));
    }
    Ok(())
}
