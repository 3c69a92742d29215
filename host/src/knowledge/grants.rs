//! What a profile allows the module that was given it: its read-only commands, and reading its configuration and logs.

use super::check::{commands, pattern_of};
use super::profile::{Profile, holds_on};
use crate::capability::{
    CommandRequest, Effect, Glob, GlobError, GrantError, Grants, PathRequest, Place, Risk,
};
use crate::target::Privilege;

/// The glob that a profile's path is: a directory's is all that is in it.
pub fn glob(path: &str) -> Result<Glob, GlobError> {
    Glob::parse(&glob_text(path))
}

fn glob_text(path: &str) -> String {
    match path.strip_suffix('/') {
        Some(directory) => format!("{directory}/**"),
        None => path.to_owned(),
    }
}

/// On machines of this family. Secrets of any family are kept.
pub fn of(profile: &Profile, family: &str) -> Result<Grants, GrantError> {
    let mut grants = Grants::new(&profile.id);
    let here = |entry| holds_on(entry, family);
    let health = profile.health.iter().map(|one| (&one.family, &one.argv));
    let checkers = profile.validate.iter().map(|one| (&one.family, &one.argv));
    let checks = profile.troubleshooting.iter().flat_map(|trouble| &trouble.checks);
    let checks = checks.map(|one| (&one.family, &one.argv));
    let elsewhere: Vec<_> =
        health.chain(checkers).chain(checks).filter(|(of, _)| !here(of)).map(|(_, argv)| argv).collect();
    for (_, argv, root) in commands(profile) {
        // The same command may hold here by another entry; then it is allowed once more than needed.
        if elsewhere.contains(&&argv) {
            continue;
        }
        let Ok(pattern) = pattern_of(&argv) else { continue };
        grants.command(&CommandRequest {
            pattern: pattern.text().to_owned(),
            effect: Effect::Read,
            privilege: if root { Privilege::RootIfAvailable } else { Privilege::Caller },
            place: Place::Target,
            risk: Risk::ReadOnly,
            reason: String::new(),
        })?;
    }
    let config = profile.config.iter().filter(|one| here(&one.family)).map(|one| glob_text(&one.path));
    let logs = profile.logs.iter().filter(|one| here(&one.family)).filter_map(|one| one.path.as_deref());
    // Rotated ones lie beside it.
    let logs = logs.flat_map(|path| match path.ends_with(['/', '*']) {
        true => vec![glob_text(path)],
        false => vec![path.to_owned(), format!("{path}.*"), format!("{path}-*")],
    });
    for glob in config.chain(logs) {
        grants.path(&PathRequest {
            glob,
            write: false,
            privilege: Privilege::RootIfAvailable,
            place: Place::Target,
            reason: String::new(),
        })?;
    }
    for secret in &profile.secrets {
        grants.deny(&glob_text(&secret.path))?;
    }
    Ok(grants)
}
