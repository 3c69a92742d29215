//! The plan of a tool that starts, stops, reloads, enables, disables, masks or unmasks a unit, with its risk, warnings and undo.

use linux_sysadmin_sdk::prelude::*;

use super::outcome::{self, Outcome};
use super::unit_warnings;
use crate::excerpt;
use crate::profile::change_warnings;
use crate::systemd::stopped_units::{self, StoppedUnits};
use crate::systemd::unit::Unit;
use crate::systemd::unit_name;
use crate::systemd::verb::Verb;

/// The time in seconds in which the host must reach the target again. After it, the target undoes the change itself.
const GUARD: u32 = 60;

/// Makes a plan of one or two verbs, hands it over, and reports the outcome.
pub(crate) fn apply(unit: &Unit, verbs: &[Verb], cx: &Context) -> Result<Noted<Outcome>> {
    let names: Vec<&str> = verbs.iter().map(|verb| verb.name()).collect();
    let words = names.join(" and ");
    let mut change = Change::new(format!("{} {}", capitalized(&words), unit.id)).lock(Lock::Systemd);
    for verb in verbs {
        change = change.step(step(unit, *verb));
    }
    let (change, along) = with_consequences(change, unit, verbs, cx)?;
    let applied = match cx.apply(change) {
        Ok(applied) => applied,
        Err(failure) => {
            let step = usize::try_from(failure.step).unwrap_or_default();
            let verb = verbs.get(step).copied().unwrap_or(verbs[0]);
            return Err(outcome::failed(unit, verb, failure, cx));
        }
    };
    let mut reply = if applied.dry_run {
        let mut data = Outcome::unchanged(unit);
        data.would = Some(words);
        Noted { data, notes: Vec::new() }
    } else {
        outcome::after(unit, verbs, &applied, cx)
    };
    reply.data.along = along;
    Ok(reply)
}

/// Adds what the verbs do to other units and to the machine. Returns the short names of the units that stop along too.
pub(crate) fn with_consequences(
    change: Change,
    unit: &Unit,
    verbs: &[Verb],
    cx: &Context,
) -> Result<(Change, Vec<String>)> {
    let stopped = stopped_units(unit, verbs, cx)?;
    let mut change = with_effects(change, unit, verbs, &stopped);
    if let Some(profile) = cx.profile(&unit.id) {
        change = change_warnings::warnings(&profile, unit, verbs).into_iter().fold(change, Change::warning);
    }
    Ok((change, unit_name::shorts(&stopped.units)))
}

fn stopped_units(unit: &Unit, verbs: &[Verb], cx: &Context) -> Result<StoppedUnits> {
    let interrupts = |verb: &Verb| matches!(verb, Verb::Stop | Verb::Restart);
    if unit.is_running() && verbs.iter().any(interrupts) {
        stopped_units::by_stop(unit, cx)
    } else if verbs.iter().any(|verb| matches!(verb, Verb::Start | Verb::Restart)) {
        stopped_units::by_start(unit, cx)
    } else {
        Ok(StoppedUnits::default())
    }
}

/// Adds warnings, affected units and the guard to the plan. The host adds the risk, also of the units that stop along,
/// which the plan names as affected.
fn with_effects(mut change: Change, unit: &Unit, verbs: &[Verb], stopped: &StoppedUnits) -> Change {
    for verb in verbs {
        change = unit_warnings::warnings(*verb, &unit.id).into_iter().fold(change, Change::warning);
    }
    let interrupts = unit.is_running().then(|| verbs.iter().find(|verb| is_interruption(**verb))).flatten();
    if interrupts.is_some() {
        change = change.affects(unit.id.as_str());
    }
    // A start stops the units that conflict with it.
    let to_others = interrupts.copied().unwrap_or(Verb::Stop);
    if !stopped.units.is_empty() {
        let list = unit_name::shorts(&stopped.units).join(", ");
        change = change.warning(format!("also {}s: {}", to_others.name(), excerpt::of_text(&list)));
    }
    if stopped.is_cut {
        change = change.warning("more units depend on it than were followed").risk(Risk::High);
    }
    for other in &stopped.units {
        change = change.affects(other.as_str());
        change = unit_warnings::warnings(to_others, other).into_iter().fold(change, Change::warning);
    }
    let masks = verbs.iter().any(|verb| verb.masks());
    if masks && !unit.needed_by.is_empty() {
        let list = unit_name::shorts(&unit.needed_by).join(", ");
        change = change.warning(format!("can't start without it: {}", excerpt::of_text(&list)));
    }
    if (masks || verbs.contains(&Verb::Stop)) && !unit.triggered_by.is_empty() {
        let list = unit_name::shorts(&unit.triggered_by).join(", ");
        let effect = if masks { "fails to start it from now on" } else { "can start it again" };
        change = change.warning(format!("{list} {effect}"));
    }
    let cuts = interrupts.is_some_and(|verb| unit_warnings::can_cut_off(*verb, &unit.id))
        || stopped.units.iter().any(|other| unit_warnings::can_cut_off(to_others, other));
    if cuts { change.guard(GUARD) } else { change }
}

fn is_interruption(verb: Verb) -> bool {
    matches!(verb, Verb::Stop | Verb::Restart)
}

/// The step that does the verb, with its undo where a command can undo it.
pub(crate) fn step(unit: &Unit, verb: Verb) -> Step {
    let step = Step::run(verb.command(&unit.id)).uninterruptible();
    let undo = match verb {
        Verb::Start => Some(Verb::Stop),
        Verb::Stop => Some(Verb::Start).filter(|_| unit.can_start),
        Verb::Restart if !unit.is_running() => Some(Verb::Stop),
        // Where the network didn't come back, another restart is all that a command can do.
        Verb::Restart => Some(Verb::Restart).filter(|_| unit_warnings::can_cut_off(verb, &unit.id)),
        Verb::Reload => None,
        // A unit that was linked, or enabled for this boot only, would not get that state again.
        Verb::Enable => Some(Verb::Disable).filter(|_| unit.enabled == "disabled"),
        Verb::Disable => Some(Verb::Enable).filter(|_| unit.is_enabled()),
        Verb::Mask => Some(Verb::Unmask),
        Verb::MaskRuntime => Some(Verb::UnmaskRuntime),
        Verb::Unmask => Some(Verb::Mask),
        Verb::UnmaskRuntime => Some(Verb::MaskRuntime),
    };
    match undo {
        Some(undo) => step.undo(undo.command(&unit.id)),
        None => step,
    }
}

fn capitalized(words: &str) -> String {
    let mut characters = words.chars();
    characters
        .next()
        .map(|first| first.to_ascii_uppercase().to_string() + characters.as_str())
        .unwrap_or_default()
}
