//! `svc_start`, `svc_stop`, `svc_restart`, `svc_reload`, `svc_enable` and `svc_disable`: look, one plan, look again.

use linux_sysadmin_sdk::{DurationCategory, prelude::*};

use crate::cascade;
use crate::outcome::{self, Outcome};
use crate::power::{self, Verb};
use crate::systemctl;
use crate::unit::{self, Along, Unit};

/// How long the target waits to be reached anew before it undoes what may have cut it off, in seconds.
const GUARD: u32 = 60;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct UnitArgs {
    /// As for svc_status
    service: String,
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct EnableArgs {
    /// As for svc_status
    service: String,
    /// Start it too
    #[serde(default)]
    now: bool,
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct DisableArgs {
    /// As for svc_status
    service: String,
    /// Stop it too
    #[serde(default)]
    now: bool,
}

pub(crate) fn svc_start(args: UnitArgs, cx: &Context) -> Result<Noted<Outcome>> {
    let unit = unit::known(&args.service, cx)?;
    if unit.is_active() {
        return Ok(outcome::holds(&unit, format!("{} is {} already", unit.id, unit.active_state)));
    }
    unit.check(Verb::Start)?;
    apply(&unit, &[Verb::Start], cx)
}

pub(crate) fn svc_stop(args: UnitArgs, cx: &Context) -> Result<Noted<Outcome>> {
    let unit = unit::known(&args.service, cx)?;
    if !unit.is_running() {
        return Ok(outcome::holds(&unit, format!("{} isn't running: it is {}", unit.id, unit.active_state)));
    }
    unit.check(Verb::Stop)?;
    apply(&unit, &[Verb::Stop], cx)
}

pub(crate) fn svc_restart(args: UnitArgs, cx: &Context) -> Result<Noted<Outcome>> {
    let unit = unit::known(&args.service, cx)?;
    unit.check(Verb::Restart)?;
    apply(&unit, &[Verb::Restart], cx)
}

pub(crate) fn svc_reload(args: UnitArgs, cx: &Context) -> Result<Noted<Outcome>> {
    let unit = unit::known(&args.service, cx)?;
    unit.check(Verb::Reload)?;
    apply(&unit, &[Verb::Reload], cx)
}

pub(crate) fn svc_enable(args: EnableArgs, cx: &Context) -> Result<Noted<Outcome>> {
    let unit = unit::known(&args.service, cx)?;
    unit.check(Verb::Enable)?;
    can_be_enabled(&unit)?;
    let mut verbs = Vec::new();
    if !unit.is_enabled() {
        verbs.push(Verb::Enable);
    }
    if args.now && !unit.is_active() {
        unit.check(Verb::Start)?;
        verbs.push(Verb::Start);
    }
    if verbs.is_empty() {
        let active = if args.now { " and active" } else { "" };
        return Ok(outcome::holds(&unit, format!("{} is enabled{active} already", unit.id)));
    }
    apply(&unit, &verbs, cx)
}

pub(crate) fn svc_disable(args: DisableArgs, cx: &Context) -> Result<Noted<Outcome>> {
    let unit = unit::known(&args.service, cx)?;
    if matches!(unit.enabled.as_str(), "generated" | "transient") {
        return Err(not_by_files(&unit, Verb::Disable));
    }
    let mut verbs = Vec::new();
    if unit.enabled.starts_with("enabled") || unit.enabled.starts_with("linked") {
        verbs.push(Verb::Disable);
    }
    if args.now && unit.is_running() {
        unit.check(Verb::Stop)?;
        verbs.push(Verb::Stop);
    }
    let why = not_disabled(&unit);
    if verbs.is_empty() {
        return Ok(outcome::holds(&unit, why));
    }
    let is_off = !verbs.contains(&Verb::Disable);
    let mut reply = apply(&unit, &verbs, cx)?;
    reply.notes.extend(is_off.then_some(why));
    Ok(reply)
}

/// systemctl answers 0 for several of these, and does nothing.
fn can_be_enabled(unit: &Unit) -> Result<()> {
    let short = unit.short();
    match unit.enabled.as_str() {
        "static" => {
            let message = format!(
                "{} can't be enabled: its unit file has no [Install] section; it is started by what needs it",
                unit.id
            );
            Err(unit::state("UNIT_STATIC", message)
                .remedy(format!("Start it for now: svc_start service={short}"))
                .remedy("Enable what starts it, as its timer or socket (triggered_by in svc_status)"))
        }
        "indirect" => {
            let message = format!(
                "{} isn't enabled itself: its [Install] section only names other units (Also=, or another instance)",
                unit.id
            );
            Err(unit::state("UNIT_INDIRECT", message).remedy(format!(
                "Enable those that it names, such as its socket: systemctl cat -- {}",
                unit.id
            )))
        }
        "generated" | "transient" => Err(not_by_files(unit, Verb::Enable)),
        "bad" | "" => Err(unit::state(
            "UNIT_HAS_NO_FILE",
            format!("{} has no unit file that could be enabled", unit.id),
        )),
        _ => Ok(()),
    }
}

fn not_by_files(unit: &Unit, verb: Verb) -> Problem {
    let name = verb.name();
    let from = unit.source_path.as_deref().map(|path| format!(" from {path}")).unwrap_or_default();
    let message = format!("{} can't be {name}d: its unit file is {}{from}", unit.id, unit.enabled);
    let problem = unit::state("UNIT_GENERATED", message);
    match unit.source_path.as_deref().and_then(|path| path.strip_prefix("/etc/init.d/")) {
        Some(script) => problem.remedy(format!("On the target: update-rc.d {script} {name}")),
        None => problem.remedy("Change what it is made from"),
    }
}

/// Why there was nothing to disable.
fn not_disabled(unit: &Unit) -> String {
    let id = &unit.id;
    match unit.enabled.as_str() {
        "" => format!("{id} has no unit file: it is enabled nowhere"),
        "static" => format!("{id} is static: it is enabled nowhere, what needs it starts it"),
        "indirect" => format!("{id} is indirect: it isn't enabled itself, the units it names may be"),
        other => format!("{id} isn't enabled: its unit file is {other}"),
    }
}

/// One plan of one or two verbs.
fn apply(unit: &Unit, verbs: &[Verb], cx: &Context) -> Result<Noted<Outcome>> {
    let along = along(unit, verbs, cx)?;
    let names: Vec<&str> = verbs.iter().map(|verb| verb.name()).collect();
    let words = names.join(" and ");
    let mut change = Change::new(format!("{} {}", capitalized(&words), unit.id)).lock(Lock::Systemd);
    for verb in verbs {
        change = change.step(step(unit, *verb));
    }
    let mut change = with_consequences(change, unit, verbs, &along);
    if let Some(profile) = cx.profile(&unit.id) {
        change = cascade::warnings(&profile, unit, verbs).into_iter().fold(change, Change::warning);
    }
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
    reply.data.along = outcome::shorts(&along.units);
    Ok(reply)
}

fn along(unit: &Unit, verbs: &[Verb], cx: &Context) -> Result<Along> {
    let interrupts = |verb: &Verb| matches!(verb, Verb::Stop | Verb::Restart);
    if unit.is_running() && verbs.iter().any(interrupts) {
        unit::stopping_with(unit, cx)
    } else if verbs.iter().any(|verb| matches!(verb, Verb::Start | Verb::Restart)) {
        unit::stopping_for(unit, cx)
    } else {
        Ok(Along::default())
    }
}

/// Risk, warnings, affected units and the guard.
fn with_consequences(mut change: Change, unit: &Unit, verbs: &[Verb], along: &Along) -> Change {
    for verb in verbs {
        change = change.risk(power::risk(*verb, &unit.id));
        for warning in power::warnings(*verb, &unit.id) {
            change = change.warning(warning);
        }
    }
    let interrupts = unit.is_running().then(|| verbs.iter().find(|verb| is_interruption(**verb))).flatten();
    if interrupts.is_some() {
        change = change.affects(unit.id.as_str());
    }
    // What a start stops, it stops.
    let to_others = interrupts.copied().unwrap_or(Verb::Stop);
    if !along.units.is_empty() {
        let list = outcome::shorts(&along.units).join(", ");
        change = change.warning(format!("also {}s: {}", to_others.name(), outcome::excerpt(&list)));
    }
    if along.is_cut {
        change = change.warning("more units depend on it than were followed").risk(Risk::High);
    }
    for other in &along.units {
        change = change.affects(other.as_str()).risk(power::risk(to_others, other));
        for warning in power::warnings(to_others, other) {
            change = change.warning(warning);
        }
    }
    if verbs.contains(&Verb::Stop) && !unit.triggered_by.is_empty() {
        let list = outcome::shorts(&unit.triggered_by).join(", ");
        change = change.warning(format!("{list} can start it again"));
    }
    let cuts = interrupts.is_some_and(|verb| power::can_cut_off(*verb, &unit.id))
        || along.units.iter().any(|other| power::can_cut_off(to_others, other));
    if cuts { change.guard(GUARD) } else { change }
}

fn is_interruption(verb: Verb) -> bool {
    matches!(verb, Verb::Stop | Verb::Restart)
}

/// With its undo, where a command can be one.
pub(crate) fn step(unit: &Unit, verb: Verb) -> Step {
    let command = |verb: Verb| command(verb, &unit.id);
    let step = Step::run(command(verb)).uninterruptible();
    let undo = match verb {
        Verb::Start => Some(Verb::Stop),
        Verb::Stop => Some(Verb::Start).filter(|_| unit.can_start),
        Verb::Restart if !unit.is_running() => Some(Verb::Stop),
        // All that a command can do where the network didn't come back.
        Verb::Restart => Some(Verb::Restart).filter(|_| power::can_cut_off(verb, &unit.id)),
        Verb::Reload => None,
        // What was enabled for this boot only, or linked, would not be that again.
        Verb::Enable => Some(Verb::Disable).filter(|_| unit.enabled == "disabled"),
        Verb::Disable => Some(Verb::Enable).filter(|_| unit.is_enabled()),
    };
    match undo {
        Some(undo) => step.undo(command(undo)),
        None => step,
    }
}

/// As root.
pub(crate) fn command(verb: Verb, unit: &str) -> Command {
    let line = match verb {
        Verb::Start => systemctl::START,
        Verb::Stop => systemctl::STOP,
        Verb::Restart => systemctl::RESTART,
        Verb::Reload => systemctl::RELOAD,
        Verb::Enable => systemctl::ENABLE,
        Verb::Disable => systemctl::DISABLE,
    };
    line.with([unit]).as_root().duration(DurationCategory::Normal)
}

fn capitalized(words: &str) -> String {
    let mut characters = words.chars();
    characters
        .next()
        .map(|first| first.to_ascii_uppercase().to_string() + characters.as_str())
        .unwrap_or_default()
}
