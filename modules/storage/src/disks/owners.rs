//! The services whose data and logs lie somewhere, by their profiles.

use linux_sysadmin_sdk::knowledge::{LogSource, Profile, Status, config_paths::root};
use linux_sysadmin_sdk::prelude::*;

use super::mount_table::{Mount, MountTable, is_within};

/// The directories and files of the services that the target has.
pub(crate) struct Owners(Vec<(String, Vec<String>)>);

impl Owners {
    pub(crate) fn look(cx: &Context) -> Self {
        let runs = |profile: &Profile| matches!(profile.status, Status::Active | Status::Failed);
        Self(
            cx.detected()
                .into_iter()
                .filter(runs)
                .map(|profile| (profile.id.clone(), paths(&profile)))
                .collect(),
        )
    }

    /// The service that a path belongs to: the one whose path covers most of it.
    pub(crate) fn of(&self, path: &str) -> Option<&str> {
        let covered =
            |paths: &Vec<String>| paths.iter().filter(|own| is_within(path, own)).map(String::len).max();
        let found = self.0.iter().filter_map(|(id, paths)| Some((covered(paths)?, id.as_str())));
        found.max().map(|(_, id)| id)
    }

    /// The services with data or logs on a file system.
    pub(crate) fn on(&self, mount: &Mount, table: &MountTable) -> Vec<&str> {
        let is_there = |path: &String| table.of(path).is_some_and(|of| of.device == mount.device);
        self.0.iter().filter(|(_, paths)| paths.iter().any(is_there)).map(|(id, _)| id.as_str()).collect()
    }
}

/// The paths without their wildcards. What lies in memory until the next boot is left out, and so is a path that ends up as a
/// directory that all services share.
fn paths(profile: &Profile) -> Vec<String> {
    let logs = profile.logs.iter().filter_map(|log| match &log.source {
        LogSource::Path(path) => Some(path),
        _ => None,
    });
    let all = profile.data.iter().map(|data| &data.path).chain(logs).map(|path| root(path));
    all.filter(|path| {
        path.matches('/').count() >= 2
            && !path.starts_with("/run/")
            && path != "/var/log"
            && path != "/var/lib"
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_belongs_to_the_service_that_covers_most_of_it() {
        let own =
            |id: &str, paths: &[&str]| (id.to_owned(), paths.iter().map(|path| (*path).to_owned()).collect());
        let owners = Owners(vec![
            own("app", &["/var/lib/app"]),
            own("inner", &["/var/lib/app/inner", "/srv"]),
            own("rsyslog", &["/var/log/syslog"]),
        ]);
        for (path, expected) in [
            ("/var/lib/app/", Some("app")),
            ("/var/lib/app/inner/x", Some("inner")),
            ("/var/lib/application", None),
            ("/var/log/syslog", Some("rsyslog")),
            ("/var/", None),
        ] {
            assert_eq!(owners.of(path), expected, "{path}");
        }
        let table =
            MountTable::parse("1 0 8:1 / / rw - ext4 /dev/a rw\n2 1 8:2 / /srv rw - ext4 /dev/b rw\n");
        assert!(table.of("/srv").is_some_and(|mount| owners.on(mount, &table) == ["inner"]));
    }
}
