//! The active services that depend on a service, as its profile says.

use linux_sysadmin_sdk::{knowledge::Profile, prelude::*};

/// Units or services that run, depend on a service, and lose the same without it.
#[derive(Debug, Serialize, PartialEq, Eq)]
pub(crate) struct Dependants {
    pub(crate) who: Vec<String>,
    /// The role in which they depend on it, such as `dns-clients`. None for units.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) role: Option<String>,
    pub(crate) if_down: String,
}

/// The active services that depend on the service of a profile, as the profile says.
pub(crate) fn of_profile(profile: Option<&Profile>) -> Vec<Dependants> {
    let mut found: Vec<Dependants> = Vec::new();
    let active =
        profile.iter().flat_map(|profile| &profile.dependants).filter(|one| !one.profiles.is_empty());
    for one in active {
        let same = found.iter_mut().find(|known| known.if_down == one.if_down);
        match same {
            Some(known) => known.who.extend(one.profiles.iter().cloned()),
            None => found.push(Dependants {
                who: one.profiles.clone(),
                role: Some(one.role.clone()),
                if_down: one.if_down.clone(),
            }),
        }
    }
    for one in &mut found {
        one.who.sort();
        one.who.dedup();
    }
    found
}
