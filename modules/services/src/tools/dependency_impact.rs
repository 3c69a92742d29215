//! `svc_dependency_impact`: shows what stops or gets worse when a service stops, which services can take its place, and
//! what it needs.

use linux_sysadmin_sdk::knowledge::{Profile, Status};
use linux_sysadmin_sdk::prelude::*;

use crate::changes::unit_warnings;
use crate::profile::dependants::{self, Dependants};
use crate::profile::service_lookup;
use crate::systemd::properties::{self, Properties};
use crate::systemd::stopped_units::{self, StoppedUnits};
use crate::systemd::verb::Verb;
use crate::systemd::{systemctl, unit, unit_name};

/// The number of profiles that are followed.
const MOST: usize = 50;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct ImpactArgs {
    /// Unit or profile, as nginx
    service: String,
}

#[derive(Debug, Default, Serialize)]
pub(crate) struct Impact {
    service: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    profile: Option<String>,
    active_state: String,
    /// Warnings about a stop of the unit.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
    /// Running units that systemd stops along with it, directly or through other units.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    stops: Vec<String>,
    /// Running services that depend on it, and those that depend on these.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    degrades: Vec<Degraded>,
    /// Dependants that aren't services of this machine.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    outside: Vec<Outside>,
    /// Running units that want it, and go on without it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    wanted_by: Vec<String>,
    /// Other services on this machine that fill its roles.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    stand_ins: Vec<StandIn>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    needs: Vec<Need>,
}

#[derive(Debug, Serialize)]
struct Degraded {
    #[serde(flatten)]
    hit: Dependants,
    /// The service through which they depend on it, where they don't depend on it directly.
    #[serde(skip_serializing_if = "Option::is_none")]
    through: Option<String>,
}

#[derive(Debug, Serialize)]
struct Outside {
    who: String,
    if_down: String,
}

#[derive(Debug, Serialize)]
struct StandIn {
    role: String,
    services: Vec<String>,
}

/// A unit or a role that the service needs.
#[derive(Debug, Serialize)]
struct Need {
    #[serde(skip_serializing_if = "Option::is_none")]
    unit: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<String>,
    /// Whether the unit runs or a service fills the role.
    is_met: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    by: Vec<String>,
    /// True where the service runs without it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    optional: bool,
    /// The effect of the missing role.
    #[serde(skip_serializing_if = "Option::is_none")]
    if_down: Option<String>,
}

pub(crate) fn svc_dependency_impact(args: ImpactArgs, cx: &Context) -> Result<Analysis<Impact>> {
    let service = service_lookup::service(&args.service, cx)?;
    let (own, around) = unit::look_and(&service.unit, systemctl::AROUND, cx)?;
    let profile = service.profile.or_else(|| cx.profile(&own.id));
    if own.is_unknown() && profile.is_none() {
        return Err(unit::unknown(&service.unit, cx));
    }
    let stopped = if own.is_unknown() { StoppedUnits::default() } else { stopped_units::by_stop(&own, cx)? };
    let around = properties::parse(&around);
    let (wanting, needing) = around.first().map(neighbours).unwrap_or_default();
    let running = running(&[wanting.as_slice(), needing.as_slice()].concat(), cx)?;
    let runs = |unit: &String| running.contains(unit);

    let mut needs: Vec<Need> = needing
        .iter()
        .map(|unit| Need {
            unit: Some(unit_name::short(unit).to_owned()),
            role: None,
            is_met: runs(unit),
            by: Vec::new(),
            optional: false,
            if_down: None,
        })
        .collect();
    let mut data = Impact {
        service: own.short().to_owned(),
        active_state: own.active_state.clone(),
        warnings: unit_warnings::warnings(Verb::Stop, &own.id),
        stops: unit_name::shorts(&stopped.units),
        wanted_by: unit_name::shorts(&wanting.into_iter().filter(runs).collect::<Vec<_>>()),
        ..Impact::default()
    };
    if let Some(profile) = &profile {
        let all = cx.detected();
        data.profile = Some(profile.id.clone());
        data.degrades = degraded(profile, &all);
        data.outside = outside(profile);
        data.stand_ins = stand_ins(profile, &all);
        needs.extend(needed_roles(profile));
    }
    data.needs = needs;
    let severity = severity(&data);
    Ok(Analysis { summary: summary(&own.id, &data, stopped.is_cut), severity, data })
}

/// The units that want the unit, and the units that it needs. Targets are left out.
fn neighbours(unit: &Properties<'_>) -> (Vec<String>, Vec<String>) {
    let of = |keys: &[&str]| {
        let names = keys.iter().flat_map(|key| unit.words(key));
        let mut names: Vec<String> = names
            .filter(|unit| !unit.ends_with(".target") && !unit.ends_with(".slice"))
            .filter(|unit| unit_name::full(unit).is_ok_and(|full| full == *unit))
            .collect();
        names.sort();
        names.dedup();
        names.truncate(100);
        names
    };
    (of(&["WantedBy"]), of(&["Requires", "Requisite", "BindsTo"]))
}

fn running(units: &[String], cx: &Context) -> Result<Vec<String>> {
    if units.is_empty() {
        return Ok(Vec::new());
    }
    let shown = systemctl::answer(cx.run(systemctl::ACTIVE.with(units)))?;
    let units = properties::parse(&shown);
    let running =
        units.iter().filter(|unit| !matches!(unit.text("ActiveState"), Some("inactive" | "failed")));
    Ok(running.filter_map(|unit| unit.string("Id")).collect())
}

/// The services that depend on the profile's service, directly or through others, without duplicates.
fn degraded(profile: &Profile, all: &[Profile]) -> Vec<Degraded> {
    let mut degraded = Vec::new();
    let mut known = vec![profile.id.clone()];
    let mut next = vec![profile];
    while let Some(of) = (!next.is_empty()).then(|| next.remove(0)) {
        for mut hit in dependants::of_profile(Some(of)) {
            hit.who.retain(|id| !known.contains(id));
            if hit.who.is_empty() || known.len() > MOST {
                continue;
            }
            known.extend(hit.who.iter().cloned());
            next.extend(all.iter().filter(|other| hit.who.contains(&other.id)));
            let through = (of.id != profile.id).then(|| of.id.clone());
            degraded.push(Degraded { hit, through });
        }
    }
    degraded
}

fn outside(profile: &Profile) -> Vec<Outside> {
    let nobody = profile.dependants.iter().filter(|one| one.profiles.is_empty());
    nobody.map(|one| Outside { who: one.role.clone(), if_down: one.if_down.clone() }).collect()
}

fn stand_ins(profile: &Profile, all: &[Profile]) -> Vec<StandIn> {
    let fills = |other: &&Profile, role: &String| {
        other.id != profile.id && other.status == Status::Active && other.provides.contains(role)
    };
    let of_role = |role: &String| {
        let services: Vec<String> =
            all.iter().filter(|other| fills(other, role)).map(|other| other.id.clone()).collect();
        (!services.is_empty()).then(|| StandIn { role: role.clone(), services })
    };
    profile.provides.iter().filter_map(of_role).collect()
}

/// The roles that the service needs. Optional roles that no service fills are left out.
fn needed_roles(profile: &Profile) -> Vec<Need> {
    let counts = |need: &&linux_sysadmin_sdk::knowledge::Need| !need.optional || !need.filled_by.is_empty();
    let need = |need: &linux_sysadmin_sdk::knowledge::Need| Need {
        unit: None,
        role: Some(need.role.clone()),
        is_met: !need.filled_by.is_empty(),
        by: need.filled_by.clone(),
        optional: need.optional,
        if_down: need.filled_by.is_empty().then(|| need.if_down.clone()),
    };
    profile.needs.iter().filter(counts).map(need).collect()
}

fn summary(unit: &str, data: &Impact, is_cut: bool) -> String {
    let services: usize = data.degrades.iter().map(|one| one.hit.who.len()).sum();
    let many = |count: usize, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
    let verb = |count: usize, verb: &str| if count == 1 { format!("{verb}s") } else { verb.to_owned() };
    let mut parts = Vec::new();
    if !data.stops.is_empty() {
        let count = data.stops.len();
        let least = if is_cut { "at least " } else { "" };
        parts.push(format!("{least}{} {} with it", many(count, "unit"), verb(count, "stop")));
    }
    if services > 0 {
        parts.push(format!("{} {} on it", many(services, "service"), verb(services, "depend")));
    }
    parts.extend(data.warnings.iter().cloned());
    let hit = if parts.is_empty() { "nothing else here depends on it".to_owned() } else { parts.join(", ") };
    let missing: Vec<&str> = data
        .needs
        .iter()
        .filter(|need| !need.is_met && !need.optional)
        .filter_map(|need| need.unit.as_deref().or(need.role.as_deref()))
        .collect();
    let missing = match missing.is_empty() {
        true => String::new(),
        false => format!("; what it needs and isn't there: {}", missing.join(", ")),
    };
    format!("{unit}: {hit}{missing}")
}

fn severity(data: &Impact) -> Severity {
    let is_alone = data.stops.is_empty() && data.degrades.is_empty();
    let lacks = data.needs.iter().any(|need| !need.is_met && !need.optional);
    match (is_alone, lacks || !data.warnings.is_empty()) {
        (_, true) => Severity::High,
        (false, false) => Severity::Warning,
        (true, false) => Severity::Info,
    }
}
