//! `svc_troubleshoot`: runs a profile's checks for a symptom, and shows the causes that the evidence supports. A unit
//! without a profile is looked at by what every unit has.

use std::collections::BTreeMap;

use linux_sysadmin_sdk::knowledge::{self, Cause, Diagnosis, Finding, Profile, Symptom, evidence_lines};
use linux_sysadmin_sdk::{listening, prelude::*};

use crate::ports::declared;
use crate::profile::command_batch::{CommandBatch, CommandIndex};
use crate::profile::service_lookup::{self, Service};
use crate::systemd::{properties, systemctl, unit_name};
use crate::unit_trouble::{self, UnitTrouble};

#[derive(Deserialize, JsonSchema)]
pub(crate) struct TroubleArgs {
    /// Unit or profile, as nginx
    service: String,
    /// Id; default: by its state
    symptom: Option<String>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Trouble {
    service: String,
    profile: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    active_state: Option<String>,
    /// All symptoms of the profile, where the caller names none.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    symptoms: BTreeMap<String, String>,
    /// The symptoms whose checks ran.
    checked: Vec<String>,
    /// The supported causes. Those with the most evidence come first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    causes: Vec<Supported>,
    /// Declared ports that others hold, where the service doesn't run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    ports_taken: Vec<String>,
    /// Findings that support no cause by themselves.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    also: Vec<Evidence>,
    /// The known causes, where nothing supports any of them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unsupported: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unchecked: Vec<Unchecked>,
}

#[derive(Debug, Serialize)]
struct Supported {
    symptom: String,
    cause: String,
    fix: String,
    evidence: Vec<Evidence>,
}

#[derive(Clone, Debug, Serialize, PartialEq, Eq)]
struct Evidence {
    means: String,
    command: String,
    /// A line or two of the command's output.
    line: String,
}

#[derive(Debug, Serialize, PartialEq, Eq)]
struct Unchecked {
    command: String,
    why: String,
}

/// The findings of the profile's checks, or of a unit that no profile knows.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum Findings {
    Profile(Box<Trouble>),
    Unit(Box<UnitTrouble>),
}

pub(crate) fn svc_troubleshoot(args: TroubleArgs, cx: &Context) -> Result<Analysis<Findings>> {
    let Service { unit, profile } = service_lookup::service(&args.service, cx)?;
    match profile {
        Some(profile) => {
            let Analysis { data, summary, severity } = of_profile(&args, &profile, cx)?;
            Ok(Analysis { data: Findings::Profile(Box::new(data)), summary, severity })
        }
        None if args.symptom.is_some() => Err(service_lookup::no_profile(&args.service, cx)
            .remedy(format!("Call svc_troubleshoot service={}", unit_name::short(&unit)))),
        None => {
            let Analysis { data, summary, severity } = unit_trouble::troubleshoot(&unit, cx)?;
            Ok(Analysis { data: Findings::Unit(Box::new(data)), summary, severity })
        }
    }
}

fn of_profile(args: &TroubleArgs, profile: &Profile, cx: &Context) -> Result<Analysis<Trouble>> {
    let unit = unit_of(&args.service, profile);
    let state = unit.and_then(|unit| state(&unit, cx));
    let symptoms = chosen(profile, args.symptom.as_deref(), state.as_deref())?;
    let is_active = matches!(state.as_deref(), Some("active" | "reloading" | "refreshing"));

    let mut batch = CommandBatch::default();
    let mut checks: Vec<(&Symptom, &Diagnosis, CommandIndex)> = Vec::new();
    for symptom in &symptoms {
        // The log of a failed start is no evidence after a start that succeeded.
        let is_over = is_active && is_of_starting(symptom) && args.symptom.is_none();
        for check in
            symptom.checks.iter().filter(|check| !(is_over && evidence_lines::reads_log(&check.argv)))
        {
            checks.push((symptom, check, batch.add(knowledge::command(&check.argv, check.root))));
        }
    }
    let declares = profile.ports.iter().any(|port| !port.optional);
    let listening = (is_down(state.as_deref()) && declares).then(|| batch.add(listening::command()));
    let outputs = batch.run(cx);
    let taken = listening.and_then(|command| outputs.stdout(command)).and_then(|listening| {
        Some(declared::compare(profile, None, false, &listening::parse(&listening), cx)?.held_by_others)
    });

    let mut found = Found::default();
    for (symptom, check, command) in checks {
        found.add(symptom, check, outputs.of(command));
    }
    let causes = supported(&symptoms, found.by_cause);
    let nothing_for = |symptom: &&Symptom| -> Vec<String> {
        symptom.causes.iter().map(|cause| cause.cause.clone()).collect()
    };
    let unsupported = match causes.is_empty() && args.symptom.is_some() {
        true => symptoms.iter().flat_map(nothing_for).collect(),
        false => Vec::new(),
    };
    let all = profile.symptoms.iter().map(|symptom| (symptom.id.clone(), symptom.symptom.clone()));
    let data = Trouble {
        service: args.service.clone(),
        profile: profile.id.clone(),
        symptoms: if args.symptom.is_none() { all.collect() } else { BTreeMap::new() },
        checked: symptoms.iter().map(|symptom| symptom.id.clone()).collect(),
        causes,
        ports_taken: taken.unwrap_or_default(),
        also: found.also,
        unsupported,
        unchecked: found.unchecked,
        active_state: state,
    };
    Ok(Analysis { summary: summary(profile, &data), severity: severity(&data), data })
}

/// The service's unit on this machine. None where it is a template and the caller names no instance.
fn unit_of(input: &str, profile: &Profile) -> Option<String> {
    let named = unit_name::full(input).ok().filter(|full| profile.unit(full).is_some());
    let main = || profile.main_unit().map(|unit| unit.name.clone());
    named.or_else(main).filter(|unit| unit_name::full(unit).is_ok())
}

/// The unit's state. None where there is no such unit.
fn state(unit: &str, cx: &Context) -> Option<String> {
    let shown = systemctl::answer(cx.run(systemctl::ACTIVATED.with([unit]))).ok()?;
    let is_there = properties::parse(&shown).first()?.text("LoadState") != Some("not-found");
    let shown = systemctl::answer(cx.run(systemctl::ACTIVE.with([unit]))).ok().filter(|_| is_there)?;
    properties::parse(&shown).first()?.string("ActiveState")
}

fn is_down(state: Option<&str>) -> bool {
    matches!(state, Some("failed" | "inactive" | "activating" | "deactivating"))
}

fn is_of_starting(symptom: &Symptom) -> bool {
    symptom.id.contains("start")
}

/// The symptom that the caller names. Without a name, those about starting where the service doesn't run, or else all.
fn chosen<'a>(profile: &'a Profile, wanted: Option<&str>, state: Option<&str>) -> Result<Vec<&'a Symptom>> {
    let all = || profile.symptoms.iter();
    if let Some(wanted) = wanted {
        let found: Vec<_> = all().filter(|symptom| symptom.id == wanted).collect();
        if found.is_empty() {
            let message = format!("the profile {} has no symptom {}", profile.id, unit_name::shown(wanted));
            let known = all().map(|symptom| format!("{} ({})", symptom.id, symptom.symptom));
            return Err(Problem::not_found("UNKNOWN_SYMPTOM", message)
                .remedy(format!("Known: {}", known.collect::<Vec<_>>().join("; ")))
                .remedy("Leave it out, and what its state suggests is checked"));
        }
        return Ok(found);
    }
    let of_starting: Vec<_> = all().filter(|symptom| is_of_starting(symptom)).collect();
    Ok(if is_down(state) && !of_starting.is_empty() { of_starting } else { all().collect() })
}

#[derive(Default)]
struct Found {
    /// Evidence by symptom and cause.
    by_cause: Vec<((String, String), Vec<Evidence>)>,
    also: Vec<Evidence>,
    unchecked: Vec<Unchecked>,
}

impl Found {
    fn add(&mut self, symptom: &Symptom, check: &Diagnosis, answer: &Result<Output>) {
        let command = check.argv.join(" ");
        let held = match answer {
            Ok(output) => held(check, output),
            Err(problem) => Err(evidence_lines::why(problem)),
        };
        let held = match held {
            Ok(held) => held,
            Err(why) => {
                let unchecked = Unchecked { command, why };
                if !self.unchecked.contains(&unchecked) {
                    self.unchecked.push(unchecked);
                }
                return;
            }
        };
        for (finding, line) in held {
            let evidence = Evidence { means: finding.means.clone(), command: command.clone(), line };
            let Some(cause) = &finding.cause else {
                if !self.also.contains(&evidence) {
                    self.also.push(evidence);
                }
                continue;
            };
            let of = (symptom.id.clone(), cause.clone());
            match self.by_cause.iter_mut().find(|(known, _)| *known == of) {
                Some((_, all)) => all.push(evidence),
                None => self.by_cause.push((of, vec![evidence])),
            }
        }
    }
}

/// The findings that hold, with the lines that support them. The error says why the output can't tell.
fn held<'a>(
    check: &'a Diagnosis,
    output: &Output,
) -> std::result::Result<Vec<(&'a Finding, String)>, String> {
    let mut held = Vec::new();
    for finding in &check.findings {
        if finding.holds(output).map_err(|problem| evidence_lines::why(&problem))? {
            held.push((finding, evidence_lines::of(&check.argv, finding, output)));
        }
    }
    let is_said = |(finding, _): &(&Finding, String)| finding.matches.is_some() || finding.contains.is_some();
    if check.root && !held.iter().any(is_said) && evidence_lines::is_limited(&check.argv, output) {
        return Err(format!("it seems to need root's rights: {}", evidence_lines::summary(output)));
    }
    Ok(held)
}

fn supported(symptoms: &[&Symptom], found: Vec<((String, String), Vec<Evidence>)>) -> Vec<Supported> {
    let cause = |symptom: &str, cause: &str| -> Option<&Cause> {
        let symptom = symptoms.iter().find(|known| known.id == symptom)?;
        symptom.causes.iter().find(|known| known.id == cause)
    };
    let mut supported: Vec<Supported> = found
        .into_iter()
        .filter_map(|((symptom, id), evidence)| {
            let cause = cause(&symptom, &id)?;
            Some(Supported { symptom, cause: cause.cause.clone(), fix: cause.fix.clone(), evidence })
        })
        .collect();
    // The sort is stable: causes with as much evidence stay in the profile's order.
    supported.sort_by_key(|cause| std::cmp::Reverse(cause.evidence.len()));
    supported
}

fn summary(profile: &Profile, data: &Trouble) -> String {
    let state = match data.active_state.as_deref() {
        Some("failed") => " has failed".to_owned(),
        Some("inactive") => " is inactive, without a failure on record".to_owned(),
        Some(state) => format!(" is {state}"),
        None => String::new(),
    };
    let name = &profile.name;
    let taken = match data.ports_taken.is_empty() {
        true => String::new(),
        false => format!("; {}", data.ports_taken.join(", ")),
    };
    let unchecked = match data.unchecked.len() {
        0 => taken,
        count => format!("{taken}; {count} of the commands told nothing"),
    };
    match data.causes.as_slice() {
        [] => format!("{name}{state}: nothing was found that speaks for a known cause{unchecked}"),
        [first, others @ ..] => {
            let more = match others.len() {
                0 => String::new(),
                1 => ", and one other is possible".to_owned(),
                count => format!(", and {count} others are possible"),
            };
            // A service that runs may have no trouble at all.
            let seen = data.symptoms.get(&first.symptom).filter(|_| !is_down(data.active_state.as_deref()));
            let seen = seen.map(|seen| format!(" (should it be that \"{seen}\")")).unwrap_or_default();
            format!("{name}{state}: most speaks for this cause{seen}: {}{more}{unchecked}", first.cause)
        }
    }
}

fn severity(data: &Trouble) -> Severity {
    match (data.active_state.as_deref(), data.causes.is_empty()) {
        (Some("failed" | "activating"), false) => Severity::Critical,
        (Some("failed" | "activating"), true) => Severity::High,
        (_, false) | (Some("inactive"), true) => Severity::Warning,
        (_, true) => Severity::Info,
    }
}
