//! One of the reasons why a service needs a restart or a reload: its configuration has been changed since the service read
//! it.

use linux_sysadmin_sdk::knowledge::config_paths::{covers, root};
use linux_sysadmin_sdk::knowledge::{ApplyBy, ConfigFile, Profile};
use linux_sysadmin_sdk::{Output, Privilege, prelude::*, time::rfc3339};

/// The number of files that are named.
const NAMED: usize = 3;

/// The depth of the search below the directory of a glob.
const DEPTH: &str = "3";

/// Finds files that are newer than a time. The paths precede the options, and therefore it can't be a [`CommandLine`].
const CHANGED: &str = "find -H <path:/etc/**>... -maxdepth 3 -type f -newermt <time> -printf '%T@ %p\\n'";

pub(crate) fn grant() -> CommandGrant {
    CommandGrant::read(CHANGED, "which configuration was changed since a service read it")
        .as_root_if_available()
}

/// The command that finds configuration which is newer than a time. None where the profile names no such file.
pub(crate) fn newer(profile: &Profile, moment: i64) -> Option<Command> {
    let mut roots: Vec<String> = read_by_it(profile).map(|file| root(&file.path)).collect();
    roots.sort();
    roots.dedup();
    let below = |root: &String| root.starts_with("/etc/") && root.len() > "/etc/".len();
    roots.retain(below);
    (!roots.is_empty()).then(|| {
        Command::new("find")
            .arg("-H")
            .args(roots)
            .args(["-maxdepth", DEPTH, "-type", "f", "-newermt"])
            .arg(format!("@{}", moment.max(0)))
            .args(["-printf", "%T@ %p\\n"])
            .privilege(Privilege::RootIfAvailable)
    })
}

/// The files that a restart or a reload would read again, each with the time of its change.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Changed {
    pub(crate) restart: Vec<String>,
    pub(crate) reload: Vec<String>,
}

/// The configuration in that command's output that was changed after the service had started, or after its last reload.
pub(crate) fn changed(answer: &Result<Output>, profile: &Profile, started: i64, reloaded: i64) -> Changed {
    let mut changed = Changed::default();
    // The exit code doesn't matter: it is 1 where a directory is missing.
    let Ok(output) = answer else { return changed };
    for line in output.text().lines() {
        let Some((modified, path)) = line.split_once(' ') else { continue };
        let Some(modified) = modified.split('.').next().and_then(|seconds| seconds.parse::<i64>().ok())
        else {
            continue;
        };
        let Some(file) = read_by_it(profile).find(|file| covers(&file.path, path)) else { continue };
        let said = format!("{path} was changed at {}", rfc3339(modified));
        match file.apply {
            // An installation writes the file and starts the service in the same second.
            Some(ApplyBy::Restart) if modified > started => changed.restart.push(said),
            Some(ApplyBy::Reload) if modified > reloaded => changed.reload.push(said),
            _ => {}
        }
    }
    changed.restart = named(changed.restart);
    changed.reload = named(changed.reload);
    changed
}

/// The first names of a list, and the number of the others.
pub(crate) fn named(mut all: Vec<String>) -> Vec<String> {
    all.sort();
    let more = all.len().saturating_sub(NAMED);
    if more > 0 {
        all.truncate(NAMED);
        all.push(format!("and {more} more"));
    }
    all
}

fn read_by_it(profile: &Profile) -> impl Iterator<Item = &ConfigFile> {
    profile
        .config
        .iter()
        .filter(|file| !file.generated && matches!(file.apply, Some(ApplyBy::Reload | ApplyBy::Restart)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use linux_sysadmin_sdk::testkit::{output, profile};

    #[test]
    fn what_was_changed_after_it_was_read_is_told_with_what_it_needs() {
        let mut profile = profile("x");
        let file = |path: &str, apply| ConfigFile {
            path: path.into(),
            what: String::new(),
            main: false,
            optional: false,
            generated: false,
            apply,
        };
        profile.config = vec![
            file("/etc/x/x.conf", Some(ApplyBy::Reload)),
            file("/etc/x/mod.d/*", Some(ApplyBy::Restart)),
            file("/etc/cron.d/x", Some(ApplyBy::AtOnce)),
            file("/var/lib/x/y", Some(ApplyBy::Restart)),
            file("/etc/*", Some(ApplyBy::Restart)),
        ];
        let command = newer(&profile, 90).map(|command| command.args.join(" "));
        let expected = "-H /etc/x/mod.d /etc/x/x.conf -maxdepth 3 -type f -newermt @90 -printf %T@ %p\\n";
        assert_eq!(command.as_deref(), Some(expected));
        let said = "150.5 /etc/x/x.conf\n150.5 /etc/x/mod.d/a b\n150.5 /etc/x/other\n90.1 /etc/x/mod.d/old\nnonsense\nx y\n";
        let output = output(1, said, "");
        let found = changed(&Ok(output.clone()), &profile, 100, 140);
        let at = |path: &str| vec![format!("{path} was changed at 1970-01-01T00:02:30Z")];
        assert_eq!(found, Changed { restart: at("/etc/x/mod.d/a b"), reload: at("/etc/x/x.conf") });
        assert_eq!(changed(&Ok(output), &profile, 150, 150), Changed::default());
    }
}
