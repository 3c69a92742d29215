//! The places to which a service writes its logs: units, identifiers, programs and files, as its profile says.

use std::collections::BTreeSet;

use linux_sysadmin_sdk::knowledge::{LogSource, Profile};
use linux_sysadmin_sdk::{Privilege, prelude::*};

use crate::budget::Budget;
use crate::text_logs::path::{is_rotated, word};
use crate::unit_names;

/// The number of files that a glob of a profile stands for at most.
const FILES: usize = 20;

/// Names of files that programs of all kinds write to.
pub(crate) const SHARED: &[&str] = &[
    "syslog",
    "messages",
    "auth.log",
    "secure",
    "daemon.log",
    "kern.log",
    "user.log",
    "mail.log",
    "maillog",
    "cron",
    "cron.log",
    "debug",
];

/// Refuses a text that can't be the name of a service.
pub(crate) fn check(service: &str) -> Result<()> {
    let is_name = !service.is_empty()
        && service.len() <= 255
        && !service.starts_with(['.', '@', '-'])
        && service.bytes().all(|byte| byte.is_ascii_alphanumeric() || br":_.\@-".contains(&byte));
    if is_name {
        return Ok(());
    }
    let message = format!("{service:?} is no name of a service; expected one like `nginx` or `ssh.service`");
    Err(Problem::validation("INVALID_SERVICE", message))
}

/// The units whose journals belong to a service. The main unit is among them even where the service logs elsewhere, because
/// its starts and stops count. Where the caller names an instance, that is among them too.
pub(crate) fn units(profile: &Profile, asked: &str) -> Vec<String> {
    let mut units: BTreeSet<String> = profile.main_unit().map(|unit| unit.name.clone()).into_iter().collect();
    let own = unit_names::full(asked);
    if own.contains('@') && profile.unit(&own).is_some() {
        units.insert(own);
    }
    units.extend(profile.logs.iter().filter_map(|log| match &log.source {
        LogSource::Journal(unit) => Some(unit.clone()),
        _ => None,
    }));
    units.into_iter().collect()
}

/// True for a file that programs of all kinds write to, and for its rotated files.
pub(crate) fn is_shared(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    SHARED.iter().any(|shared| *shared == name || is_rotated(shared, name))
}

/// The program names by which a service's lines are recognized in a shared file.
pub(crate) fn programs(profile: &Profile) -> Vec<String> {
    let units = profile.units.iter().filter_map(|unit| unit.name.split(['.', '@']).next());
    let names = profile.processes.iter().map(String::as_str).chain(units).chain([profile.id.as_str()]);
    let identifiers = profile.logs.iter().filter_map(|log| match &log.source {
        LogSource::Identifier(name) => Some(name.as_str()),
        _ => None,
    });
    names.chain(identifiers).map(str::to_owned).collect()
}

/// The files of a profile's glob, without rotated ones. The latest comes first.
pub(crate) fn expand(cx: &Context, budget: &Budget<'_>, glob: &str) -> Vec<String> {
    if !glob.contains('*') {
        return vec![glob.to_owned()];
    }
    let cx = &cx.files_as(Privilege::RootIfAvailable);
    let mut found = vec![String::new()];
    let mut parts = glob.trim_start_matches('/').split('/').peekable();
    while let Some(part) = parts.next() {
        let is_last = parts.peek().is_none();
        if !part.contains('*') {
            found.iter_mut().for_each(|path| *path = format!("{path}/{part}"));
            continue;
        }
        let mut next = Vec::new();
        found.truncate(FILES);
        let listed = budget.waiting(|| cx.list_all(&found));
        for (path, names) in found.iter().zip(listed) {
            let names = names.unwrap_or_default();
            let all: Vec<_> = names.iter().map(String::as_str).collect();
            let meant = all.iter().filter(|name| word(if part == "**" { "*" } else { part }, name));
            let originals = meant.filter(|name| {
                !is_last || !all.iter().any(|other| other != *name && is_rotated(other, name))
            });
            next.extend(originals.map(|name| format!("{path}/{name}")));
        }
        found = next;
    }
    let metadata = budget.waiting(|| cx.stat_all(&found));
    let mut files: Vec<_> = found
        .into_iter()
        .zip(metadata)
        .filter_map(|(path, metadata)| Some((metadata.ok()??, path)))
        .filter(|(metadata, _)| !metadata.is_dir)
        .map(|(metadata, path)| (std::cmp::Reverse(metadata.modified_unix), path))
        .collect();
    files.sort();
    files.into_iter().take(FILES).map(|(_, path)| path).collect()
}
