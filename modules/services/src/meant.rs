//! What a caller's word stands for: a unit, and the profile of the service that it belongs to.

use linux_sysadmin_sdk::{Category, knowledge::Profile, prelude::*};

use crate::name;

/// A word that is a unit's name, or a profile's id whose unit is called otherwise: `bind` is `named.service`.
#[derive(Debug)]
pub(crate) struct Meant {
    /// In full.
    pub(crate) unit: String,
    pub(crate) profile: Option<Profile>,
}

/// Whether there is such a unit is not asked.
pub(crate) fn meant(input: &str, cx: &Context) -> Result<Meant> {
    let unit = name::full(input)?;
    if let Some(profile) = cx.profile(&unit) {
        return Ok(Meant { unit, profile: Some(profile) });
    }
    let profile = cx.profile(input);
    let main = profile.as_ref().and_then(Profile::main_unit).map(|unit| unit.name.clone());
    // That of a template is no unit.
    let unit = main.filter(|main| name::full(main).is_ok()).unwrap_or(unit);
    Ok(Meant { unit, profile })
}

/// Where nothing can be said without a profile.
pub(crate) fn profile(input: &str, cx: &Context) -> Result<Profile> {
    meant(input, cx)?.profile.ok_or_else(|| {
        let message = format!("nothing is known of {}: it has no profile", name::shown(input));
        let mut known: Vec<String> = cx.detected().into_iter().map(|profile| profile.id).collect();
        known.sort();
        let problem = Problem::new("NO_PROFILE", Category::NotFound, message)
            .remedy(format!("What systemd tells of it: svc_status service={}", name::short(input)));
        match known.is_empty() {
            true => problem,
            false => problem.remedy(format!("Known here: {}", known.join(", "))),
        }
    })
}
