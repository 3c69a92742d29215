//! Whom it hits when something is done with a service, as its profile says: those that run here and depend on it, and those
//! that it doesn't get on with. How grave that is is the host's to say.

use linux_sysadmin_sdk::knowledge::{Interaction, InteractionKind, Profile};

use crate::joined;
use crate::power::Verb;
use crate::unit::Unit;

/// One each. Nothing of what is only a part of the service.
pub(crate) fn warnings(profile: &Profile, unit: &Unit, verbs: &[Verb]) -> Vec<String> {
    if !profile.main_unit().is_some_and(|main| main.is(&unit.id)) {
        return Vec::new();
    }
    let mut warnings = Vec::new();
    let interrupts = verbs.iter().any(|verb| matches!(verb, Verb::Stop | Verb::Restart));
    let when = match verbs {
        _ if unit.is_running() && interrupts => Some(""),
        [Verb::Disable] => Some("from the next boot on, "),
        _ => None,
    };
    if let Some(when) = when {
        warnings.extend(joined::services(Some(profile)).into_iter().map(|one| {
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
