//! Destinations: what a caller means by one, and those that are configured.

use linux_sysadmin_sdk::{Privilege, prelude::*, text::excerpt};

use crate::schedule::config::Config;

/// The destination of archives of `/etc` where none is named.
pub(crate) const ARCHIVES: &str = "/var/backups/linux-sysadmin";

/// A destination in the script's spelling.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Destination(String);

impl Destination {
    /// Checks a destination. A path stands for `local://` with that path.
    pub(crate) fn checked(text: &str) -> Result<Self> {
        let refused = |why: &str| {
            let message = format!(
                "{:?} {why}: expected local:///PATH, rsync://HOST/PATH, sftp://USER@HOST:PORT/PATH, nfs://HOST/PATH, \
                 restic:///PATH, restic+sftp://USER@HOST:PORT/PATH, or the name of a schedule",
                excerpt(text, 200)
            );
            Problem::validation("INVALID_DESTINATION", message)
        };
        if text.chars().any(char::is_control) {
            return Err(refused("has a control character"));
        }
        let (scheme, rest) = match text.split_once("://") {
            Some((scheme, rest)) => (scheme, rest),
            None if text.starts_with('/') => ("local", text),
            None => return Err(refused("is no destination")),
        };
        let (place, path) = rest.split_at(rest.find('/').ok_or_else(|| refused("has no path"))?);
        let path = path.trim_end_matches('/');
        if path.split('/').any(|name| name == "..") || path.is_empty() {
            return Err(refused("has no absolute path without `..`, other than /"));
        }
        match scheme {
            "local" | "restic" if place.is_empty() => {}
            "rsync" | "sftp" | "restic+sftp" if !place.is_empty() => {}
            "nfs" if !place.is_empty() && !place.contains(['@', ':']) => {}
            _ => return Err(refused("has another form")),
        }
        let is_plain = |text: &str, more: &str| {
            text.chars().all(|c| c.is_ascii_alphanumeric() || more.contains(c)) && !text.starts_with('-')
        };
        if !place.is_empty()
            && (!is_plain(place, "._-@:") || !is_plain(path, "._/@+-") || place.contains("@-"))
        {
            return Err(refused("has characters that a host or a path on another host can't have"));
        }
        Ok(Self(format!("{scheme}://{}{path}", place.trim_end_matches(':'))))
    }

    /// A destination as a caller names it, or the name of a schedule.
    pub(crate) fn named(text: &str, configs: &[Config]) -> Result<Self> {
        match configs.iter().find(|config| config.name == text) {
            Some(config) => Self::checked(&config.destination),
            None => Self::checked(text),
        }
    }

    pub(crate) fn uri(&self) -> &str {
        &self.0
    }

    /// Whether it is a repository of restic.
    pub(crate) fn is_repository(&self) -> bool {
        self.0.starts_with("restic")
    }

    /// Whether a schedule has this destination.
    pub(crate) fn is_configured(&self, configs: &[Config]) -> bool {
        configs.iter().any(|config| Self::checked(&config.destination).is_ok_and(|known| known == *self))
    }

    /// Raises the risk where nobody has configured the destination: a backup carries root's files away.
    pub(crate) fn weighed(&self, change: Change, configs: &[Config]) -> Change {
        if self.is_configured(configs) || self.0 == format!("local://{ARCHIVES}") {
            return change;
        }
        change.risk(Risk::High).warning(format!(
            "no schedule has the destination {}: files that only root may read go there",
            self.0
        ))
    }
}

/// The configurations of all schedules.
pub(crate) fn configured(cx: &Context) -> Result<Vec<Config>> {
    Config::all(&cx.files_as(Privilege::RootIfAvailable))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_destination_has_one_spelling() {
        for (text, uri) in [
            ("/mnt/backups", "local:///mnt/backups"),
            ("local:///mnt/back ups/", "local:///mnt/back ups"),
            ("rsync://backuphost:/backups/server01", "rsync://backuphost/backups/server01"),
            ("rsync://u@h/b/", "rsync://u@h/b"),
            ("sftp://u@h.example:2222/b", "sftp://u@h.example:2222/b"),
            ("nfs://nas.local/backups", "nfs://nas.local/backups"),
            ("restic:///srv/a b/", "restic:///srv/a b"),
            ("restic+sftp://u@h:22/b", "restic+sftp://u@h:22/b"),
        ] {
            assert_eq!(Destination::checked(text).unwrap().uri(), uri);
        }
        for text in [
            "",
            "mnt",
            "/",
            "local://",
            "local://host/x",
            "local:///",
            "local:///a/../b",
            "ftp://h/x",
            "rsync:///x",
            "rsync://h",
            "rsync://h/",
            "rsync://-oProxyCommand=x/y",
            "rsync://u@-h/y",
            "rsync://h/a b",
            "rsync://h/$(id)",
            "nfs://u@h/x",
            "/a\nb",
            "rsync://[::1]/x",
            "s3://bucket/x",
            "restic://host/x",
            "restic:///",
            "restic+sftp:///x",
            "restic+sftp://u@-h/x",
            "restic+sftp://h/a b",
            "restic+rest://h/x",
            "restic:/srv/x",
        ] {
            assert_eq!(Destination::checked(text).unwrap_err().code, "INVALID_DESTINATION", "{text}");
        }
    }
}
