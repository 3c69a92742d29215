//! pacman's own simulation, and what it leaves out: with `--print`, pacman doesn't look for conflicts, and doesn't say which
//! packages are replaced.

use linux_sysadmin_sdk::Category;
use linux_sysadmin_sdk::packages::{Installed, Operation, Request, Simulated, Verb};
use linux_sysadmin_sdk::prelude::*;

use crate::database::{self, Fields};
use crate::problem::success;
use crate::version;

/// A line of the simulation.
struct Line {
    name: String,
    version: String,
    bytes: u64,
}

pub fn simulate(request: &Request, command: Command, cx: &Context) -> Result<Simulated> {
    let before = database::installed(cx)?;
    let lines = read(&success(cx.run(command)?)?.text())?;
    let mut simulated = Simulated {
        operations: lines.iter().map(|line| operation(request, line, &before)).collect(),
        ..Simulated::default()
    };
    match request {
        Request::Remove(_) | Request::Purge(_) => return Ok(simulated),
        Request::Version(name, version) => {
            is_that_version(name, version, &simulated)?;
            return Ok(simulated);
        }
        _ => {}
    }
    simulated.download_bytes = Some(lines.iter().map(|line| line.bytes).sum());
    let come = simulated.operations.iter().filter(|operation| operation.verb == Verb::Install);
    let come: Vec<&str> = come.map(|operation| operation.name.as_str()).collect();
    let come = database::fields(&come, cx)?;
    let mut replaced: Vec<&Installed> = Vec::new();
    if *request == Request::UpdateAll {
        replaced = named(&come, "Replaces", &before).into_iter().map(|(_, package)| package).collect();
        let held = database::updates(cx)?.into_iter().filter(|update| update.held);
        simulated.held_back = held.map(|update| update.name).collect();
    }
    let conflicts = named(&come, "Conflicts With", &before);
    let conflict =
        conflicts.iter().find(|(_, package)| replaced.iter().all(|gone| gone.name != package.name));
    if let Some((name, package)) = conflict {
        let message =
            format!("{name} and {} are in conflict, and {} is installed", package.name, package.name);
        let problem = Problem::new("DEPENDENCY_CONFLICT", Category::Dependency, message);
        return Err(
            problem.remedy(format!("Remove the other one first: pkg_remove package={}", package.name))
        );
    }
    let gone =
        replaced.iter().map(|package| Operation::new(Verb::Remove, &package.name, &package.version, ""));
    simulated.operations.extend(gone);
    if matches!(request, Request::Update(_)) && !simulated.operations.is_empty() {
        let note = "a distribution that is updated as a whole, such as Arch Linux, expects that of all packages at once";
        simulated.notes.push(note.to_owned());
    }
    Ok(simulated)
}

/// The packages of which one line names installed packages, with those. A condition on a version is pacman's to judge.
fn named<'a>(come: &[Fields], key: &str, before: &'a [Installed]) -> Vec<(String, &'a Installed)> {
    let mut found = Vec::new();
    for fields in come {
        let own = database::text(fields, "Name");
        for name in database::list(fields, key) {
            let package = before.iter().find(|package| package.name == name && package.name != own);
            found.extend(package.map(|package| (own.clone(), package)));
        }
    }
    found
}

/// Reads lines such as `lab-hello 2.0-1 694`.
fn read(text: &str) -> Result<Vec<Line>> {
    let is_line = |line: &&str| !line.is_empty() && *line != "loading packages...";
    let line = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        let [name, version, bytes] = words.as_slice() else { return None };
        let bytes = bytes.parse().ok()?;
        Some(Line { name: (*name).to_owned(), version: (*version).to_owned(), bytes })
    };
    let read = |text: &str| line(text).ok_or_else(|| Problem::unexpected("pacman's simulation", text));
    text.lines().filter(is_line).map(read).collect()
}

fn operation(request: &Request, line: &Line, before: &[Installed]) -> Operation {
    let here =
        before.iter().find(|package| package.name == line.name).map(|package| package.version.as_str());
    let verb = match (request, here) {
        (Request::Remove(_), _) => return Operation::new(Verb::Remove, &line.name, &line.version, ""),
        (Request::Purge(_), _) => return Operation::new(Verb::Purge, &line.name, &line.version, ""),
        (_, None) => Verb::Install,
        (_, Some(version)) if version == line.version => Verb::Reinstall,
        (_, Some(here)) if version::compare(here, &line.version).is_gt() => Verb::Downgrade,
        (_, Some(_)) => Verb::Upgrade,
    };
    Operation::new(verb, &line.name, here.unwrap_or_default(), &line.version)
}

/// Refuses a simulation that brings another version: without a file in the cache, the repositories decide which one it is.
fn is_that_version(name: &str, version: &str, simulated: &Simulated) -> Result<()> {
    let mut operations = simulated.operations.iter();
    if operations.any(|operation| operation.name == name && operation.to == version) {
        return Ok(());
    }
    let message = format!("version {version} of {name} is neither in the repositories nor in pacman's cache");
    Err(Problem::new("VERSION_NOT_AVAILABLE", Category::NotFound, message))
}
