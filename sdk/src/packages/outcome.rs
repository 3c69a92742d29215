//! Finds out what a change has done, by comparing the package database before and after it.

use std::collections::{BTreeMap, BTreeSet};

use super::types::{Installed, Operation, Simulated, State, Verb};

/// The versions of each package by its name and architecture, with their states. Several versions of a kernel may be
/// installed at once.
type Versions<'a> = BTreeMap<(&'a str, &'a str), Vec<(&'a str, &'a State)>>;

fn by_name(installed: &[Installed]) -> Versions<'_> {
    let mut versions = Versions::new();
    for package in installed {
        let of_it = versions.entry((package.name.as_str(), package.arch.as_str())).or_default();
        of_it.push((package.version.as_str(), &package.state));
    }
    versions
}

/// The changes in the package database. The simulation decides between upgrade and downgrade, and between removal and
/// purge: only the manager knows which of two versions is higher.
pub(super) fn difference(before: &[Installed], after: &[Installed], simulated: &Simulated) -> Vec<Operation> {
    let (before, after) = (by_name(before), by_name(after));
    let meant = |name: &str, verb: Verb, otherwise: Verb| {
        let mut operations = simulated.operations.iter();
        if operations.any(|meant| meant.verb == verb && meant.name == name) { verb } else { otherwise }
    };
    let is_here = |(_, state): &&(&str, &State)| **state != State::ConfigFiles;
    let mut operations = Vec::new();
    let keys: BTreeSet<_> = before.keys().chain(after.keys()).collect();
    for key in keys {
        let (old, new) = (versions_of(&before, key), versions_of(&after, key));
        let gone: Vec<_> = old.iter().filter(|version| !new.contains(version)).collect();
        let come: Vec<_> = new.iter().filter(|version| !old.contains(version)).collect();
        let name = key.0;
        if let ([from], [to]) = (gone.as_slice(), come.as_slice())
            && is_here(from)
            && is_here(to)
        {
            let verb =
                if from.0 == to.0 { Verb::Reinstall } else { meant(name, Verb::Downgrade, Verb::Upgrade) };
            operations.push(Operation::new(verb, name, from.0, version_text(to)));
            continue;
        }
        for from in gone {
            // A package of which only configuration was left, and that is installed again, was not removed.
            if is_here(&from) || new.is_empty() {
                let verb = if new.is_empty() { meant(name, Verb::Purge, Verb::Remove) } else { Verb::Remove };
                operations.push(Operation::new(verb, name, from.0, ""));
            }
        }
        let come = come.into_iter().filter(is_here);
        operations.extend(come.map(|to| Operation::new(Verb::Install, name, "", version_text(to))));
    }
    operations
}

fn versions_of<'a>(versions: &'a Versions<'a>, key: &(&'a str, &'a str)) -> &'a [(&'a str, &'a State)] {
    versions.get(key).map_or(&[], Vec::as_slice)
}

/// `1.0`, or `1.0 (half-configured)`.
fn version_text((version, state): &(&str, &State)) -> String {
    match state {
        State::Broken(state) => format!("{version} ({state})"),
        State::Installed | State::ConfigFiles => (*version).to_owned(),
    }
}

/// Whether this operation, one of `all`, is done according to the package database.
pub(super) fn is_done(
    wanted: &Operation,
    all: &[Operation],
    before: &[Installed],
    after: &[Installed],
) -> bool {
    let has_name = |package: &&Installed| package.name == wanted.name;
    if !wanted.is_removal() {
        let mut here = after.iter().filter(has_name).filter(|package| package.state == State::Installed);
        return here.any(|package| wanted.to.is_empty() || package.version == wanted.to);
    }
    let is_meant = |package: &&Installed| match wanted.verb {
        Verb::Remove => package.state != State::ConfigFiles && package.version == wanted.from,
        _ => wanted.from.is_empty() || package.version == wanted.from,
    };
    let count = |installed: &[Installed]| installed.iter().filter(has_name).filter(is_meant).count();
    // An operation names no architecture, and the same version may stay for another one. So as many versions must be gone
    // as the operations remove.
    let to_go = all.iter().filter(|other| {
        let goes = other.is_removal() || matches!(other.verb, Verb::Upgrade | Verb::Downgrade);
        goes && (&other.name, &other.from) == (&wanted.name, &wanted.from)
    });
    let left = count(after);
    left == 0 || count(before).saturating_sub(left) >= to_go.count()
}

#[cfg(test)]
mod tests {
    use super::super::report::past_participle;
    use super::*;

    fn package(name: &str, version: &str, state: State) -> Installed {
        Installed { name: name.into(), version: version.into(), state, ..Installed::default() }
    }

    fn whole(name: &str, version: &str) -> Installed {
        package(name, version, State::Installed)
    }

    fn simulated(verb: Verb) -> Simulated {
        Simulated { operations: vec![Operation::new(verb, "a", "1", "2")], ..Simulated::default() }
    }

    #[test]
    fn what_was_done_is_read_from_the_package_database() {
        let broken = || package("a", "1", State::Broken("half-configured".into()));
        let left = || package("a", "1", State::ConfigFiles);
        let table = [
            (vec![], vec![whole("a", "1")], Verb::Install, vec!["installed a 1"]),
            (vec![whole("a", "1")], vec![whole("a", "2")], Verb::Upgrade, vec!["upgraded a 1 -> 2"]),
            (vec![whole("a", "2")], vec![whole("a", "1")], Verb::Downgrade, vec!["downgraded a 2 -> 1"]),
            (vec![whole("a", "1")], vec![left()], Verb::Remove, vec!["removed a 1"]),
            (vec![whole("a", "1")], vec![], Verb::Remove, vec!["removed a 1"]),
            (vec![whole("a", "1")], vec![], Verb::Purge, vec!["purged a 1"]),
            (vec![left()], vec![], Verb::Purge, vec!["purged a 1"]),
            (vec![left()], vec![whole("a", "1")], Verb::Install, vec!["installed a 1"]),
            (vec![], vec![broken()], Verb::Install, vec!["installed a 1 (half-configured)"]),
            (vec![broken()], vec![whole("a", "1")], Verb::Install, vec!["reinstalled a 1"]),
            // Kernels stand beside each other.
            (
                vec![whole("a", "1")],
                vec![whole("a", "1"), whole("a", "2")],
                Verb::Install,
                vec!["installed a 2"],
            ),
            (vec![whole("b", "1")], vec![whole("b", "1")], Verb::Install, vec![]),
        ];
        for (before, after, verb, expected) in table {
            let done = difference(&before, &after, &simulated(verb));
            let done: Vec<_> = done
                .iter()
                .map(|done| format!("{} {}", past_participle(done.verb), done.versions()))
                .collect();
            assert_eq!(done, expected, "{before:?} {after:?}");
        }
    }

    #[test]
    fn a_removal_has_come_where_another_architecture_stays() {
        let of = |arch: &str, version: &str| Installed { arch: arch.into(), ..whole("a", version) };
        let left = Installed { state: State::ConfigFiles, ..of("i386", "1") };
        let both = || vec![of("amd64", "1"), of("i386", "1")];
        let removal = || Operation::new(Verb::Remove, "a", "1", "");
        let purge = |from: &str| Operation::new(Verb::Purge, "a", from, "");
        let upgrade = Operation::new(Verb::Upgrade, "a", "1", "2");
        let table = [
            (both(), vec![removal()], vec![of("i386", "1")], true),
            (both(), vec![removal()], vec![of("amd64", "1"), left.clone()], true),
            (both(), vec![removal()], both(), false),
            (both(), vec![removal(), removal()], vec![], true),
            (both(), vec![removal(), removal()], vec![of("i386", "1")], false),
            (both(), vec![purge("1")], vec![of("i386", "1")], true),
            (both(), vec![purge("1")], vec![of("amd64", "1"), left.clone()], false),
            (vec![of("amd64", "1"), left.clone()], vec![purge("")], vec![of("amd64", "1")], true),
            (vec![of("amd64", "1"), left.clone()], vec![purge("")], vec![of("amd64", "1"), left], false),
            // A version that the manager writes in another way than its database.
            (vec![of("amd64", "0:1")], vec![removal()], vec![], true),
            // The one that is gone is the one that was updated.
            (both(), vec![removal(), upgrade], vec![of("amd64", "2"), of("i386", "1")], false),
        ];
        for (before, all, after, expected) in table {
            assert_eq!(is_done(&all[0], &all, &before, &after), expected, "{all:?}: {before:?} {after:?}");
        }
    }
}
