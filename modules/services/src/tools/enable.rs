//! `svc_enable` and `svc_disable`: change whether a unit is started at boot.

use linux_sysadmin_sdk::prelude::*;

use crate::changes::outcome::{self, Outcome};
use crate::changes::plan;
use crate::systemd::unit::{self, Unit};
use crate::systemd::verb::Verb;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct EnableArgs {
    /// Unit, as ssh.socket
    service: String,
    /// Start it too
    #[serde(default)]
    now: bool,
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct DisableArgs {
    /// Unit, as ssh.socket
    service: String,
    /// Stop it too
    #[serde(default)]
    now: bool,
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
    plan::apply(&unit, &verbs, cx)
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
    let mut reply = plan::apply(&unit, &verbs, cx)?;
    reply.notes.extend(is_off.then_some(why));
    Ok(reply)
}

/// Refuses units that can't be enabled. For several of them, systemctl would do nothing and exit with 0.
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
            Err(unit::state("UNIT_INDIRECT", message)
                .remedy(format!("Enable those that it names, such as its socket: svc_show service={short}")))
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

/// The reason why there was nothing to disable.
fn not_disabled(unit: &Unit) -> String {
    let id = &unit.id;
    match unit.enabled.as_str() {
        "" => format!("{id} has no unit file: it is enabled nowhere"),
        "static" => format!("{id} is static: it is enabled nowhere, what needs it starts it"),
        "indirect" => format!("{id} is indirect: it isn't enabled itself, the units it names may be"),
        other => format!("{id} isn't enabled: its unit file is {other}"),
    }
}
