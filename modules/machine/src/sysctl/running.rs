//! The values that run, and what hinders setting them.

use std::collections::BTreeMap;

use linux_sysadmin_sdk::{Category, prelude::*};

use super::key::Key;
use crate::near::near;

/// The file systems that are mounted.
pub(crate) const MOUNTS: &str = "/proc/mounts";
/// The most values that one answer has.
const MOST: usize = 500;

/// Finds the values of a name, a prefix or a glob, and reads them, but for secrets. True where there are more than one
/// answer has. A name that isn't there is found with its problem, unless a glob made it.
pub(crate) fn find(pattern: &Key, cx: &Context) -> (BTreeMap<Key, Result<String>>, bool) {
    let mut level = vec![Key::root()];
    let mut is_cut = false;
    for part in pattern.parts() {
        level = match part.contains(['*', '?', '[']) {
            true => children(&level, cx).into_iter().filter(|key| key.is_named(part)).collect(),
            false => level.iter().map(|key| key.child(part)).collect(),
        };
        is_cut |= level.len() > MOST;
        level.truncate(MOST);
    }
    let mut found = BTreeMap::new();
    while !level.is_empty() && found.len() < MOST {
        let (secret, others): (Vec<_>, Vec<_>) = level.into_iter().partition(Key::is_secret);
        found.extend(secret.into_iter().map(|key| (key, Ok(String::new()))));
        let texts = cx.read_all(&paths(&others));
        let (read, failed): (Vec<_>, Vec<_>) =
            others.into_iter().zip(texts).partition(|(_, text)| text.is_ok());
        found.extend(read);
        let lists = cx.list_all(&failed.iter().map(|(key, _)| key.path()).collect::<Vec<_>>());
        level = Vec::new();
        for ((key, problem), names) in failed.into_iter().zip(lists) {
            match names {
                Ok(names) => level.extend(names.iter().map(|name| key.child(name))),
                // Not every directory that a glob matches has the rest of the name.
                Err(_) if pattern.is_glob() && is_missing(&problem) => {}
                Err(_) => drop(found.insert(key, problem)),
            }
        }
        is_cut |= found.len() + level.len() > MOST;
        level.truncate(MOST);
    }
    while found.len() > MOST {
        found.pop_last();
    }
    (found, is_cut)
}

/// Says whether the kernel has no such value.
pub(crate) fn is_missing(text: &Result<String>) -> bool {
    text.as_ref().is_err_and(|why| why.category == Category::NotFound)
}

fn children(keys: &[Key], cx: &Context) -> Vec<Key> {
    let lists = keys.iter().zip(cx.list_all(&paths(keys)));
    let names = lists.map(|(key, names)| (key, names.unwrap_or_default()));
    names.flat_map(|(key, names)| names.into_iter().map(move |name| key.child(&name))).collect()
}

fn paths(keys: &[Key]) -> Vec<String> {
    keys.iter().map(Key::path).collect()
}

/// A value that the kernel doesn't have, with names that are near.
pub(crate) fn missing(key: &Key, cx: &Context) -> Problem {
    // The closest part of the name that isn't there is what was misspelt.
    let mut missing = key.clone();
    let mut listed = cx.list_dir(&missing.parent().path());
    while listed.is_err() && missing.parent() != Key::root() {
        missing = missing.parent();
        listed = cx.list_dir(&missing.parent().path());
    }
    let parent = missing.parent();
    let name = missing.parts().last().unwrap_or_default();
    let names = listed.unwrap_or_default();
    if missing == *key && names.iter().any(|known| known == name) {
        let message = format!("{} is a group that has no values now", key.name());
        return Problem::not_found("SYSCTL_NOT_FOUND", message)
            .remedy("What brings them, such as a file system or a module of the kernel, isn't there");
    }
    let near: Vec<_> = near(name, names).iter().map(|name| parent.child(name).name()).collect();
    let problem = Problem::not_found("SYSCTL_NOT_FOUND", format!("the kernel has no value {}", key.name()));
    match near.is_empty() {
        true => problem.remedy(format!(
            "sysctl_get keys=[\"{}\"] lists those that are there; a module that isn't loaded may bring it",
            if parent == Key::root() { "*".to_owned() } else { parent.name() }
        )),
        false => problem.remedy(format!("Near: {}", near.join(", "))),
    }
}

/// Refuses a value that can't be set: the kernel only shows it, or a container may not.
pub(crate) fn refuse_read_only(key: &Key, metadata: &Metadata, mounts: &str) -> Result<()> {
    let refuse = |why: String| Err(Problem::new("SYSCTL_READ_ONLY", Category::State, why));
    if metadata.mode & 0o222 == 0 {
        return refuse(format!("the kernel only shows {}: nobody can set it", key.name()));
    }
    match is_mounted_read_only(&key.path(), mounts) {
        true => refuse(format!(
            "/proc/sys is mounted read-only here, as in a container: {} can be set only on the machine that runs the container",
            key.name()
        )),
        false => Ok(()),
    }
}

fn is_mounted_read_only(path: &str, mounts: &str) -> bool {
    let mounts = mounts.lines().filter_map(|line| {
        let mut words = line.split(' ').skip(1);
        let (at, options) = (words.next()?, words.nth(1)?);
        let is_above = path.strip_prefix(at).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        is_above.then(|| (at.len(), options.split(',').any(|option| option == "ro")))
    });
    // Of several mounts at one place, the last one is seen.
    mounts.max_by_key(|(length, _)| *length).is_some_and(|(_, is_ro)| is_ro)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_container_sets_only_what_is_mounted_to_be_written() {
        // systemd-nspawn 252.
        let mounts = "proc /proc proc rw,nosuid,nodev,noexec,relatime 0 0\nproc /proc/sys proc ro,nosuid,nodev,noexec,relatime 0 0\n\
                      proc /proc/sys/net proc rw,nosuid,nodev,noexec,relatime 0 0\n";
        assert!(is_mounted_read_only("/proc/sys/vm/swappiness", mounts));
        assert!(!is_mounted_read_only("/proc/sys/net/core/somaxconn", mounts));
        assert!(!is_mounted_read_only("/proc/sys/vm/swappiness", ""));
    }
}
