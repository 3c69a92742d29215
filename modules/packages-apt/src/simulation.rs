//! Simulations by `apt-get --simulate`, and the updates that they show.

use std::collections::{BTreeMap, BTreeSet};

use linux_sysadmin_sdk::packages::apt_lines::{self, Line, operation};
use linux_sysadmin_sdk::packages::{Operation, Request, Simulated, State, Update, Updates, Verb};
use linux_sysadmin_sdk::{Category, prelude::*};

use crate::apt_cache::Sizes;
use crate::commands::{INSTALLED, SHOW_VERSIONS};
use crate::output::{errors, names_below};
use crate::{apt_cache, commands, dpkg_query, explain};

/// The most packages whose sizes are asked for.
const MOST_SIZES: usize = 500;

/// Files of which `apt-get update` writes one.
const STAMPS: [&str; 2] = ["/var/lib/apt/periodic/update-success-stamp", "/var/lib/apt/lists/partial"];

pub(crate) fn of(request: &Request, cx: &Context) -> Result<Simulated> {
    let command = commands::simulation(request)
        .ok_or_else(|| Problem::new("NOT_SUPPORTED", Category::State, "apt-get has no simulation of this"))?;
    read(cx.run(command.duration(linux_sysadmin_sdk::DurationCategory::Normal))?, cx)
}

/// Reads the output of a simulation.
pub(crate) fn read(output: Output, cx: &Context) -> Result<Simulated> {
    let text = said(output)?;
    let held = names_below(&text, "The following held packages will be changed:");
    if !held.is_empty() {
        let message = format!("a hold keeps these at their version: {}", held.join(", "));
        let problem = Problem::new("PACKAGE_HELD", Category::State, message);
        return Err(problem.remedy(format!("To release the hold: `pkg_unhold` with {}", held.join(", "))));
    }
    let mut simulated = parse(&text)?;
    size(&mut simulated, cx);
    if text.contains("WARNING: The following essential packages will be removed") {
        simulated.notes.push("apt-get refuses to remove essential packages".to_owned());
    }
    Ok(simulated)
}

/// The output of a simulation, or the problem of its failure.
fn said(output: Output) -> Result<String> {
    if output.exit_code != 0 {
        let unknown = || {
            let message = format!("apt-get says: {}", errors(&output.error_text()));
            Problem::new("SIMULATION_FAILED", Category::Other, message)
        };
        return Err(explain::explain(&output).unwrap_or_else(unknown));
    }
    let output = output.success("apt-get --simulate")?;
    Ok(output.text().into_owned())
}

fn parse(text: &str) -> Result<Simulated> {
    let lower = names_below(text, "The following packages will be DOWNGRADED");
    let operations = text.lines().filter_map(|line| operation(line, &lower).transpose());
    Ok(Simulated {
        operations: operations.map(|found| found.map(|line| line.operation)).collect::<Result<_>>()?,
        held_back: held_back(text),
        no_longer_needed: no_longer_needed(text),
        ..Simulated::default()
    })
}

/// Since apt 2.5, phased updates have their own heading.
fn held_back(text: &str) -> Vec<String> {
    let kept = names_below(text, "The following packages have been kept back");
    [kept, names_below(text, "The following upgrades have been deferred due to phasing")].concat()
}

fn no_longer_needed(text: &str) -> Vec<String> {
    let one =
        names_below(text, "The following package was automatically installed and is no longer required");
    let more =
        names_below(text, "The following packages were automatically installed and are no longer required");
    [one, more].concat()
}

/// Adds the size of the download and on disk, as far as the lists have them. They are an estimate, so that a failure is
/// ignored.
fn size(simulated: &mut Simulated, cx: &Context) {
    let is_known = |(_, version): &(&String, &String)| !version.is_empty();
    let pairs = simulated.operations.iter().flat_map(|operation| {
        let name = &operation.name;
        [(name, &operation.to), (name, &operation.from)].into_iter().filter(is_known)
    });
    let pairs: BTreeSet<_> = pairs.collect();
    if pairs.is_empty() || pairs.len() > MOST_SIZES {
        return;
    }
    let operands = pairs.iter().map(|(name, version)| format!("{name}={version}"));
    let Ok(said) = cx.run(SHOW_VERSIONS.with(operands)) else { return };
    let sizes = apt_cache::sizes(&said.text());
    // Without a version, nothing is downloaded or unpacked.
    let of = |name: &str, version: &str| match version {
        "" => Some(Sizes { file: Some(0), unpacked: Some(0) }),
        version => sizes.get(&(name.to_owned(), version.to_owned())).copied(),
    };
    let operations = &simulated.operations;
    let download = operations.iter().map(|operation| of(&operation.name, &operation.to)?.file);
    let disk = operations.iter().map(|Operation { name, from, to, .. }| {
        let unpacked = |version| i64::try_from(of(name, version)?.unpacked?).ok();
        Some(unpacked(to)? - unpacked(from)?)
    });
    let (download, disk) = (download.sum(), disk.sum());
    (simulated.download_bytes, simulated.disk_bytes) = (download, disk);
}

/// All newer versions, and a note on those that an update of all packages leaves out.
pub(crate) fn updates(cx: &Context) -> Result<Updates> {
    let ours = commands::simulation(&Request::UpdateAll).unwrap_or_else(|| apt_lines::NEWER.command());
    let slow = |command: Command| command.duration(linux_sysadmin_sdk::DurationCategory::Normal);
    let [newer, ours, installed] =
        cx.run_each([slow(apt_lines::NEWER.command()), slow(ours), INSTALLED.command()]);
    let newer = said(newer?)?;
    let ours: BTreeSet<_> = parse(&said(ours?)?)?.operations.into_iter().map(|done| done.name).collect();
    let installed = dpkg_query::read(installed)?;
    let installed: BTreeMap<_, _> = installed
        .iter()
        .filter(|package| package.state != State::ConfigFiles)
        .map(|package| (package.name.as_str(), package))
        .collect();
    let lines = newer.lines().filter_map(|line| operation(line, &[]).transpose());
    let mut items: Vec<_> = lines.collect::<Result<Vec<_>>>()?.into_iter().filter_map(update).collect();
    items.iter_mut().for_each(|update| {
        update.held = installed.get(update.name.as_str()).is_some_and(|package| package.held);
    });
    let without =
        held_back(&newer).into_iter().filter(|name| !items.iter().any(|update| update.name == *name));
    let without: Vec<_> = without.collect();
    if !without.is_empty() {
        let mut policies = apt_cache::policy(&without, cx)?;
        items.extend(without.into_iter().filter_map(|name| {
            let (policy, here) = (policies.remove(&name)?, installed.get(name.as_str())?);
            let candidate = policy.candidate.filter(|candidate| *candidate != here.version)?;
            let source = policy.available.into_iter().find(|found| found.version == candidate)?;
            Some(Update {
                installed: here.version.clone(),
                held: here.held,
                security: policy.secure.contains(&candidate),
                phased_percent: policy.phased,
                repository: source.repository,
                candidate,
                name,
                ..Update::default()
            })
        }));
    }
    let back = items.iter().filter(|update| !ours.contains(&update.name) && !update.held);
    let back: Vec<_> = back.map(|update| update.name.as_str()).collect();
    let mut notes = Vec::new();
    if !back.is_empty() {
        notes.push(format!("an update of all packages leaves these out: {}", back.join(", ")));
    }
    let stamps = cx.stat_all(&STAMPS).into_iter().filter_map(|found| found.ok().flatten());
    let refreshed = stamps.map(|found| found.modified_unix as f64).reduce(f64::max);
    Ok(Updates { items, refreshed, notes })
}

/// The update of a line, where the package is installed.
fn update(line: Line) -> Option<Update> {
    let Operation { verb, name, from, to } = line.operation;
    (verb == Verb::Upgrade).then(|| Update {
        name,
        installed: from,
        candidate: to,
        security: apt_lines::is_security(&line.origins),
        repository: repository(&line.origins),
        ..Update::default()
    })
}

/// The archives without the architecture at the end.
fn repository(origins: &str) -> String {
    origins.split_once(" [").map_or(origins, |(origins, _arch)| origins).to_owned()
}
