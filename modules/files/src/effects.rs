//! Calls that make a change take effect, for files of the system that belong to no service with a profile. The first glob
//! that covers a file counts.

use std::sync::LazyLock;

use linux_sysadmin_sdk::knowledge::config_paths::covers;
use serde::Deserialize;

#[derive(Deserialize)]
struct Effect {
    glob: String,
    next: String,
}

static EFFECTS: LazyLock<Vec<Effect>> =
    LazyLock::new(|| serde_json::from_str(include_str!("effects.json")).unwrap_or_default());

/// The calls for these paths, without repetitions.
pub(crate) fn next<'a>(paths: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut calls: Vec<String> = Vec::new();
    for path in paths {
        let found = EFFECTS.iter().find(|effect| covers(&effect.glob, path));
        if let Some(Effect { next, .. }) = found.filter(|effect| !calls.contains(&effect.next)) {
            calls.push(next.clone());
        }
    }
    calls
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_the_system_has_its_next_call() {
        let calls = next(
            ["/etc/sysctl.d/a.conf", "/etc/sysctl.conf", "/etc/hosts", "/etc/apt/sources.list"].into_iter(),
        );
        assert_eq!(
            calls,
            ["command_run argv=[\"sysctl\",\"--system\"] as_root=true", "pkg_update refresh_only=true"]
        );
    }
}
