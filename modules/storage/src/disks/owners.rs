//! The services whose data and logs lie somewhere, by their profiles.

use linux_sysadmin_sdk::knowledge::{LogSource, Profile, Status, config_paths::root};
use linux_sysadmin_sdk::prelude::*;

use crate::mount_table::is_within;

/// The directories and files of the services that the target has.
#[derive(Default)]
pub(crate) struct Owners(Vec<Owner>);

/// A service by its profile.
pub(crate) struct Owner {
    pub(crate) id: String,
    pub(crate) unit: Option<String>,
    paths: Vec<String>,
}

impl Owners {
    pub(crate) fn look(cx: &Context) -> Self {
        let runs = |profile: &Profile| matches!(profile.status, Status::Active | Status::Failed);
        let owner = |profile: Profile| Owner {
            paths: paths(&profile),
            unit: profile.main_unit().map(|unit| unit.name.clone()),
            id: profile.id,
        };
        Self(cx.detected().into_iter().filter(runs).map(owner).collect())
    }

    /// The service that a path belongs to: the one whose path covers most of it.
    pub(crate) fn of(&self, path: &str) -> Option<&str> {
        let covered =
            |owner: &Owner| owner.paths.iter().filter(|own| is_within(path, own)).map(String::len).max();
        let found = self.0.iter().filter_map(|owner| Some((covered(owner)?, owner.id.as_str())));
        found.max().map(|(_, id)| id)
    }

    /// The services with data or logs at a place, each with the first such path.
    pub(crate) fn on(&self, is_there: impl Fn(&str) -> bool) -> Vec<(&str, &Owner)> {
        let first = |owner: &Owner| owner.paths.iter().position(|path| is_there(path));
        self.0.iter().filter_map(|owner| Some((owner.paths.get(first(owner)?)?.as_str(), owner))).collect()
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
        let own = |id: &str, paths: &[&str]| Owner {
            id: id.to_owned(),
            unit: None,
            paths: paths.iter().map(|path| (*path).to_owned()).collect(),
        };
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
        let there = owners.on(|path| path == "/srv");
        assert_eq!(
            there.iter().map(|(path, owner)| (*path, owner.id.as_str())).collect::<Vec<_>>(),
            [("/srv", "inner")]
        );
    }
}
