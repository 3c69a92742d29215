//! Simulations by dnf: the table that it prints before it asks.
//!
//! The table is made for people. It breaks long lines, and dnf 4 and dnf 5 print different forms. So the operations are
//! compared with the counts below the table, and a table that was misread is refused.

use linux_sysadmin_sdk::packages::{Installed, Operation, Request, Simulated, Verb};
use linux_sysadmin_sdk::prelude::*;
use linux_sysadmin_sdk::{Category, Command};

use crate::version::plain;
use crate::{command, installed, problem, repository};

pub fn simulate(request: &Request, cx: &Context) -> Result<Simulated> {
    let Some(simulation) = command::simulation(request) else { return Ok(Simulated::default()) };
    let before = installed::installed(cx)?;
    let output = run(simulation, cx)?;
    let mut simulated = read(&output, &before)?;
    let names: &[String] = match request {
        Request::Install(names) | Request::Remove(names) | Request::Purge(names) | Request::Update(names) => {
            names
        }
        _ => &[],
    };
    is_that_version(request, &simulated)?;
    let held = before.iter().filter(|package| package.held);
    let held = held.filter(|package| names.contains(&package.name) || *request == Request::UpdateAll);
    for package in held {
        let stays = simulated.operations.iter().all(|operation| operation.name != package.name);
        if stays && !simulated.held_back.contains(&package.name) {
            simulated.held_back.push(package.name.clone());
        }
    }
    if matches!(request, Request::Purge(_)) {
        let note = "rpm keeps changed configuration files: it appends .rpmsave to their names";
        simulated.notes.push(note.to_owned());
    }
    if let Some(repositories) = repository::unread(&output) {
        simulated.notes.push(format!("the repositories {repositories} weren't read"));
    }
    Ok(simulated)
}

/// Reads the output of a simulation.
pub fn read(output: &Output, before: &[Installed]) -> Result<Simulated> {
    let said = format!("{}\n{}", output.text(), output.error_text());
    let simulated = parse(&said, before)?;
    if simulated.operations.is_empty()
        && said.contains("Operation aborted")
        && !said.contains("module streams:")
    {
        return Err(Problem::unexpected("dnf's simulation", &said));
    }
    Ok(simulated)
}

/// Runs the simulation. dnf's exit code is 1 where it answered its own question with no.
pub fn run(simulation: Command, cx: &Context) -> Result<Output> {
    let output = cx.run(simulation)?;
    let is_over = |text: &str| {
        ["Operation aborted", "Nothing to do", "No packages marked for"].iter().any(|end| text.contains(end))
    };
    if is_over(&output.text()) || is_over(&output.error_text()) {
        return Ok(output);
    }
    problem::success(output)
}

/// Refuses a simulation that takes another version than the requested one.
fn is_that_version(request: &Request, simulated: &Simulated) -> Result<()> {
    let Request::Version(name, version) = request else { return Ok(()) };
    let is_it = |operation: &Operation| operation.name == *name && operation.to == *version;
    if simulated.operations.iter().any(is_it) {
        return Ok(());
    }
    let message =
        format!("dnf wouldn't take {name} to {version}: a version below the installed one is expected");
    let problem = Problem::new("NOT_AN_EARLIER_VERSION", Category::State, message);
    Err(problem.remedy("pkg_update takes a package to its newest version"))
}

/// The section of the table that a line belongs to.
#[derive(Clone, Copy, PartialEq)]
enum Section {
    Of(Verb),
    Skipped,
    Modules,
    /// Groups, reasons and other sections without packages.
    Other,
}

fn section(heading: &str) -> Option<Section> {
    let verb = |verb| Some(Section::Of(verb));
    match heading {
        "Installing"
        | "Installing dependencies"
        | "Installing weak dependencies"
        | "Installing group/module packages"
        | "Installing group packages" => verb(Verb::Install),
        "Upgrading" => verb(Verb::Upgrade),
        "Downgrading" => verb(Verb::Downgrade),
        "Reinstalling" => verb(Verb::Reinstall),
        "Removing" | "Removing dependent packages" | "Removing unused dependencies" => verb(Verb::Remove),
        _ if heading.starts_with("Skipping packages with") => Some(Section::Skipped),
        "Enabling module streams" | "Switching module streams" => Some(Section::Modules),
        _ => Some(Section::Other),
    }
}

/// The word before a package that another one replaces.
const REPLACING: &str = "replacing";

fn parse(text: &str, before: &[Installed]) -> Result<Simulated> {
    let mut simulated = Simulated::default();
    let mut now = None;
    // A row with long columns continues on the next line.
    let mut rows: Vec<(Section, Vec<&str>)> = Vec::new();
    for line in text.lines() {
        if line.starts_with("Transaction Summary") {
            break;
        }
        let heading =
            line.strip_suffix(':').filter(|line| line.starts_with(|c: char| c.is_ascii_uppercase()));
        // After this, dnf 4 prints how to install the packages all the same.
        let skipped = line.starts_with("Skipping packages with").then_some(line);
        if let Some(heading) = skipped.or(heading) {
            now = section(heading);
        } else if let Some(section) = now.filter(|_| !line.starts_with("(add ")) {
            let words: Vec<_> = line.split_whitespace().collect();
            let indent = line.len() - line.trim_start().len();
            match (indent, words.first()) {
                (_, None) | (0, _) => now = None,
                (1, Some(_)) => rows.push((section, words)),
                (_, Some(&REPLACING)) => rows.push((section, words)),
                _ => rows.last_mut().into_iter().for_each(|(_, row)| row.extend(&words)),
            }
        }
    }
    let mut above = "";
    for (section, row) in &rows {
        match section {
            Section::Of(verb) => {
                let operation = operation(*verb, row, before)?;
                // dnf 5 prints the replaced version of a package in the same form as another package.
                simulated
                    .operations
                    .extend(operation.filter(|found| row.first() != Some(&REPLACING) || found.name != above));
                above = row.first().filter(|first| **first != REPLACING).map_or(above, |name| name);
            }
            Section::Skipped => simulated.held_back.extend(row.first().map(|name| (*name).to_owned())),
            Section::Modules => {
                simulated.notes.push(format!("enables a module's stream: {}", row.join(" ")));
            }
            Section::Other => {}
        }
    }
    simulated.held_back.dedup();
    counted(text, &simulated.operations)?;
    simulated.download_bytes = download(text);
    simulated.disk_bytes = disk(text);
    Ok(simulated)
}

/// Parses `lab-dep noarch 1.0-1 lab 6.0 k`, or below it `replacing lab-old.noarch 0.9-1`. dnf 5 writes the latter as
/// `replacing lab-old noarch 0.9-1 lab 6.0 KiB`, and also for the former version of the package itself.
fn operation(verb: Verb, row: &[&str], before: &[Installed]) -> Result<Option<Operation>> {
    let misread = || Problem::unexpected("dnf's table of packages", &row.join(" "));
    if let [REPLACING, rest @ ..] = row {
        let (name, version) = match rest {
            [name, _arch, version, _, ..] => (*name, *version),
            [package, version] => (package.rsplit_once('.').ok_or_else(misread)?.0, *version),
            // This is the former version of the package above, without its name.
            _ => return Ok(None),
        };
        let is_package =
            before.iter().any(|package| package.name == name && package.version == plain(version));
        return Ok(is_package.then(|| Operation::new(Verb::Remove, name, plain(version), "")));
    }
    let [name, arch, version, ..] = row else { return Err(misread()) };
    let version = plain(version);
    let of_it = before.iter().filter(|package| package.name == **name);
    let here: Vec<_> = of_it.collect();
    let same = here.iter().find(|package| package.arch == **arch).or_else(|| here.first());
    let from = same.map(|package| package.version.as_str()).unwrap_or_default();
    Ok(Some(match verb {
        Verb::Install => Operation::new(verb, *name, "", version),
        Verb::Upgrade | Verb::Downgrade => Operation::new(verb, *name, from, version),
        Verb::Reinstall => Operation::new(verb, *name, version, version),
        Verb::Remove | Verb::Purge => Operation::new(Verb::Remove, *name, version, ""),
    }))
}

/// Compares the operations with the counts of the summary: `Install  2 Packages` or ` Installing:         2 packages`.
fn counted(text: &str, operations: &[Operation]) -> Result<()> {
    let summary = text.lines().skip_while(|line| !line.starts_with("Transaction Summary")).skip(1);
    let counts = [
        (["Install", "Installing:"], Verb::Install),
        (["Upgrade", "Upgrading:"], Verb::Upgrade),
        (["Downgrade", "Downgrading:"], Verb::Downgrade),
        (["Remove", "Removing:"], Verb::Remove),
    ];
    for line in summary.take_while(|line| !line.starts_with("Total")) {
        let words: Vec<_> = line.split_whitespace().collect();
        let [action, count, packages, ..] = words[..] else { continue };
        let found = counts.iter().find(|(actions, _)| actions.contains(&action));
        let (Some((_, verb)), Ok(count)) = (found, count.parse::<usize>()) else { continue };
        if !packages.to_ascii_lowercase().starts_with("package") {
            continue;
        }
        let read = operations.iter().filter(|operation| operation.verb == *verb).count();
        // A replaced package isn't counted as removed.
        if read < count || *verb != Verb::Remove && read != count {
            let message = format!("{read} packages to {} were read, and dnf counts {count}", verb.name());
            return Err(Problem::unexpected("dnf's table of packages", &message));
        }
    }
    Ok(())
}

/// The size of the download. dnf 4 prints `Total download size: 6.3 k`, or `Total size: 6.0 k` where everything is
/// downloaded. dnf 5 prints `Need to download 35 MiB.`
fn download(text: &str) -> Option<u64> {
    let of = |line: &str| {
        let amount = line.strip_prefix("Total download size: ").or_else(|| line.strip_prefix("Total size: "));
        amount.or_else(|| line.split_once("Need to download ").map(|(_, rest)| rest)).and_then(bytes)
    };
    text.lines().find_map(of)
}

/// The change of the space on disk. dnf 4 prints `Installed size: 56  ` or `Freed space: 29  `. dnf 5 prints `After this
/// operation, 7 MiB extra will be used (…).`, or `… 5 MiB will be freed (…)`.
fn disk(text: &str) -> Option<i64> {
    text.lines().find_map(|line| {
        let signed = |bytes: u64, is_freed: bool| {
            i64::try_from(bytes).ok().map(|bytes| if is_freed { -bytes } else { bytes })
        };
        if let Some(rest) = line.strip_prefix("Installed size: ") {
            return signed(bytes(rest)?, false);
        }
        if let Some(rest) = line.strip_prefix("Freed space: ") {
            return signed(bytes(rest)?, true);
        }
        let rest = line.strip_prefix("After this operation, ")?;
        signed(bytes(rest)?, rest.contains("will be freed"))
    })
}

/// Parses a size: `6.3 k`, `56`, `35 MiB.`. Both dnf 4 and dnf 5 count in powers of 1024.
fn bytes(text: &str) -> Option<u64> {
    let mut words = text.split_whitespace();
    let amount: f64 = words.next()?.parse().ok()?;
    let power = match words.next().unwrap_or_default().chars().next() {
        Some('k' | 'K') => 1,
        Some('M') => 2,
        Some('G') => 3,
        Some('T') => 4,
        _ => 0,
    };
    let bytes = amount * 1024f64.powi(power);
    (bytes.is_finite() && (0.0..1e18).contains(&bytes)).then_some(bytes.round() as u64)
}
