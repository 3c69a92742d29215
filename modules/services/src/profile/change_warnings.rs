//! Warnings about a change of a service, as its profile says: active services that depend on it, and active services that
//! conflict with it. The host judges how grave that is.

use linux_sysadmin_sdk::knowledge::{Interaction, InteractionKind, Profile};

use super::dependants;
use crate::systemd::unit::Unit;
use crate::systemd::verb::Verb;

/// One warning for each such service. There is none for a unit that is only a part of the service.
pub(crate) fn warnings(profile: &Profile, unit: &Unit, verbs: &[Verb]) -> Vec<String> {
    if !profile.main_unit().is_some_and(|main| main.is(&unit.id)) {
        return Vec::new();
    }
    let mut warnings = Vec::new();
    let interrupts = verbs.iter().any(|verb| matches!(verb, Verb::Stop | Verb::Restart));
    let when = match verbs {
        _ if unit.is_running() && interrupts => Some(""),
        [Verb::Disable | Verb::Mask] => Some("from the next boot on, "),
        _ => None,
    };
    if let Some(when) = when {
        warnings.extend(dependants::of_profile(Some(profile)).into_iter().map(|one| {
            let role = one.role.map(|role| format!(" ({role})")).unwrap_or_default();
            let verb = if one.who.len() == 1 { "depends" } else { "depend" };
            format!("{when}{} {verb} on it{role}: {}", one.who.join(", "), one.if_down)
        }));
    }
    let starts = verbs.iter().any(|verb| matches!(verb, Verb::Start | Verb::Restart | Verb::Enable));
    let conflicts = |other: &&Interaction| other.active && other.kind == InteractionKind::Conflicts;
    for other in profile.interactions.iter().filter(conflicts).filter(|_| starts && !unit.is_active()) {
        warnings.push(format!("{} is active and conflicts with it: {}", other.with, other.what));
    }
    warnings
}
