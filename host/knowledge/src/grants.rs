//! The grants that a profile gives a module: its read-only commands, reading its configuration and logs, and plans by which
//! its checkers read a text that isn't the configuration yet.

use super::candidate::Candidate;
use super::check::{commands, pattern_of};
use super::glob::glob_text;
use super::profile::{Profile, holds_on};
use host_base::Privilege;
use host_base::Risk;
use host_capability::{CommandRequest, Effect, GrantError, Grants, PathRequest, Place, Requests};

/// The requests for looking on machines of this family, which sudo may allow an account. They don't include the check
/// of a text: an account that may run it by sudo could get root's rights.
pub fn requests(profile: &Profile, family: &str) -> Requests {
    let name = &profile.name;
    let here = commands(profile).filter(|one| holds_on(one.family, family));
    let commands = here.filter_map(|one| {
        Some(CommandRequest {
            pattern: pattern_of(one.argv).ok()?.text().to_owned(),
            effect: Effect::Read,
            privilege: if one.root { Privilege::RootIfAvailable } else { Privilege::Caller },
            place: Place::Target,
            risk: Risk::ReadOnly,
            reason: format!("to see how {name} is"),
        })
    });
    let config =
        profile.config.iter().filter(|one| holds_on(&one.family, family)).map(|one| glob_text(&one.path));
    let logs = profile.logs.iter().filter(|one| holds_on(&one.family, family));
    // Rotated logs lie beside the current one.
    let logs = logs.filter_map(|one| one.path.as_deref()).flat_map(|path| match path.ends_with(['/', '*']) {
        true => vec![glob_text(path)],
        false => vec![path.to_owned(), format!("{path}.*"), format!("{path}-*")],
    });
    let path = |what: &'static str| {
        move |glob: String| PathRequest {
            glob,
            write: false,
            privilege: Privilege::RootIfAvailable,
            place: Place::Target,
            reason: format!("{what} of {name}"),
        }
    };
    let paths = config.map(path("configuration")).chain(logs.map(path("logs")));
    Requests { commands: commands.collect(), paths: paths.collect(), ..Requests::default() }
}

/// The requests for plans that have new configuration checked. A text that isn't the configuration yet is put beside it,
/// read, and removed. A file that is in place already is read there, and the plan puts the former one back where the checker
/// refuses it.
fn candidates(profile: &Profile, family: &str) -> Requests {
    let name = &profile.name;
    let here = profile.validate.iter().filter(|one| holds_on(&one.family, family));
    let in_place: Vec<_> = here.clone().map(|one| &one.argv).collect();
    let here: Vec<_> =
        here.filter_map(|one| Candidate::of(profile, one.candidate.as_ref()?, family)).collect();
    let command = |argv: &[String], risk| {
        Some(CommandRequest {
            pattern: pattern_of(argv).ok()?.text().to_owned(),
            effect: Effect::Change,
            privilege: Privilege::Root,
            place: Place::Target,
            risk,
            reason: format!("to check a configuration of {name}"),
        })
    };
    let commands = here.iter().flat_map(|one| {
        let remove = ["rm", "--", &one.path].map(str::to_owned);
        [command(&one.argv, Risk::High), command(&remove, Risk::Low)]
    });
    let commands = commands.chain(in_place.iter().map(|argv| command(argv, Risk::High)));
    let paths = here.iter().map(|one| PathRequest {
        glob: one.path.clone(),
        write: true,
        privilege: Privilege::Root,
        place: Place::Target,
        reason: format!("a configuration of {name}, for as long as it is checked"),
    });
    Requests { commands: commands.flatten().collect(), paths: paths.collect(), ..Requests::default() }
}

/// Turns all requests of a profile into grants. Secrets of any family are denied.
pub fn of(profile: &Profile, family: &str) -> Result<Grants, GrantError> {
    let mut grants = Grants::new(&profile.id);
    for Requests { commands, paths, .. } in [requests(profile, family), candidates(profile, family)] {
        commands.iter().try_for_each(|request| grants.command(request))?;
        paths.iter().try_for_each(|request| grants.path(request))?;
    }
    profile.secrets.iter().try_for_each(|secret| grants.deny(&glob_text(&secret.path)))?;
    Ok(grants)
}
