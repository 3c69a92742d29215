//! Finds the unit and the profile that a caller's name of a service stands for.

use linux_sysadmin_sdk::{Category, knowledge::Profile, prelude::*};

use crate::systemd::{unit, unit_name};

/// The service that a caller names by a unit's name, or by the id of a profile whose unit has another name: `bind` is
/// `named.service`.
#[derive(Debug)]
pub(crate) struct Service {
    /// The unit's full name.
    pub(crate) unit: String,
    pub(crate) profile: Option<Profile>,
}

/// Finds unit and profile. It doesn't look whether the unit exists.
pub(crate) fn service(input: &str, cx: &Context) -> Result<Service> {
    let unit = unit::named(input, cx)?;
    if let Some(profile) = cx.profile(&unit) {
        return Ok(Service { unit, profile: Some(profile) });
    }
    let profile = cx.profile(input);
    let main = profile.as_ref().and_then(Profile::main_unit).map(|unit| unit.name.clone());
    // The main unit may be a template, which isn't a unit.
    let unit = main.filter(|main| unit_name::full(main).is_ok()).unwrap_or(unit);
    Ok(Service { unit, profile })
}

/// The profile, for tools that can't work without one.
pub(crate) fn profile(input: &str, cx: &Context) -> Result<Profile> {
    service(input, cx)?.profile.ok_or_else(|| no_profile(input, cx))
}

/// The problem of a service that no profile knows.
pub(crate) fn no_profile(input: &str, cx: &Context) -> Problem {
    let message = format!("nothing is known of {}: it has no profile", unit_name::shown(input));
    let mut known: Vec<String> = cx.detected().into_iter().map(|profile| profile.id).collect();
    known.sort();
    let problem = Problem::new("NO_PROFILE", Category::NotFound, message)
        .remedy(format!("See what systemd tells of it: svc_status service={}", unit_name::short(input)));
    match known.is_empty() {
        true => problem,
        false => problem.remedy(format!("Known here: {}", known.join(", "))),
    }
}
