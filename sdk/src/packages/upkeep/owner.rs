//! `pkg_owner`: the packages that files and commands come from.
//!
//! A database has each file under the path of its package, which may be another one than the caller's: `/bin` may be a link
//! to `/usr/bin`, and a command may be a link of the alternatives. So each path is looked for under both names of its
//! directory, and then as the file that its links lead to. The search for a path takes longer than the look at its links, so
//! that both start at once, and only a link that leads elsewhere needs a second search.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Owners, Upkeep};
use crate::packages::Backend;
use crate::{CommandLine, Context, Listing, Module, Problem, Result};

/// Prints the type of each path that exists, and the path.
const TYPES: CommandLine = CommandLine::new(r"stat '--printf=%F\t%n\n' -- <path>...");
/// Prints for each path where its links lead to.
const TARGETS: CommandLine = CommandLine::new("readlink --canonicalize-missing -- <path>...");

/// Adds the grants that the tool needs for every manager.
pub(super) fn granted(module: Module) -> Module {
    module.command(TYPES.read("which of the paths exist")).command(TARGETS.read("where links lead to"))
}

/// The directories in which a command is looked for, in root's order.
const PATH: [&str; 6] = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];

/// The most paths in a call.
const MOST_PATHS: usize = 50;

/// The most packages that are listed for a path: all packages own directories such as `/etc`.
const MOST_PACKAGES: usize = 10;

#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
enum Files {
    One(String),
    Several(Vec<String>),
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct OwnerArgs {
    /// Absolute paths, or commands
    files: Files,
}

#[derive(Serialize)]
pub(super) struct Owned {
    path: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    packages: Vec<String>,
    /// The number of packages that have the path, where more do than are listed.
    #[serde(skip_serializing_if = "Option::is_none")]
    package_count: Option<usize>,
    /// The file that the package has, where the path leads to it by links.
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    diversion: Option<String>,
    /// True where the package has a file that isn't there.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    missing: bool,
    /// Packages of the repositories that would bring it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    provided_by: Vec<String>,
}

/// A file that the caller asks for.
struct Asked {
    path: String,
    /// The paths under which packages may have it, the likeliest first.
    candidates: Vec<String>,
    exists: bool,
}

pub(super) fn owner<B: Backend>(
    _: &B,
    upkeep: &dyn Upkeep,
    args: OwnerArgs,
    cx: &Context,
) -> Result<Listing<Owned>> {
    let given = match args.files {
        Files::One(file) => vec![file],
        Files::Several(files) => files,
    };
    if given.is_empty() || given.len() > MOST_PATHS {
        let message = format!("{} files are named; 1 to {MOST_PATHS} are expected in a call", given.len());
        return Err(Problem::validation("TOO_MANY_FILES", message));
    }
    for file in &given {
        check(file)?;
    }
    let (asked, mut owners) = located(&given, upkeep, cx)?;
    let candidates: BTreeSet<_> = asked.iter().flat_map(|asked| &asked.candidates).collect();
    let others: Vec<_> = candidates.into_iter().filter(|path| !owners.contains_key(*path)).cloned().collect();
    let found = upkeep.owners(&others, cx)?;
    owners.extend(others.into_iter().zip(found));
    let mut notes = Vec::new();
    let mut items = Vec::new();
    for asked in asked {
        let found = asked.candidates.iter().find_map(|candidate| {
            owners
                .get(candidate)
                .filter(|owners| **owners != Owners::default())
                .map(|owners| (candidate, owners))
        });
        let mut item = Owned {
            path: asked.path,
            packages: Vec::new(),
            package_count: None,
            file: None,
            diversion: None,
            missing: false,
            provided_by: Vec::new(),
        };
        if let Some((candidate, owners)) = found {
            let count = owners.packages.len();
            item.packages = owners.packages.iter().take(MOST_PACKAGES).cloned().collect();
            item.package_count = (count > MOST_PACKAGES).then_some(count);
            let is_same = *candidate == item.path || twin(candidate).is_some_and(|other| other == item.path);
            item.file = (!is_same).then(|| candidate.clone());
            item.diversion = owners.diversion.clone();
            item.missing = !asked.exists;
        } else {
            let path = &item.path;
            if asked.exists {
                notes.push(format!(
                    "{path} is there, and no package has it: a script or a person may have made it"
                ));
            } else {
                notes.push(format!("{path} isn't there, and no installed package has it"));
                item.provided_by = provided_by(upkeep, path, cx)?;
            }
        }
        items.push(item);
    }
    Ok(Listing { items, total: None, notes })
}

/// The packages of the repositories that would bring the path or the command.
fn provided_by(upkeep: &dyn Upkeep, file: &str, cx: &Context) -> Result<Vec<String>> {
    let paths = match file.starts_with('/') {
        true => vec![file.to_owned()],
        false => ["/usr/bin", "/usr/sbin"].map(|directory| format!("{directory}/{file}")).into(),
    };
    for path in paths {
        let found = upkeep.providers(&path, cx)?;
        if !found.is_empty() {
            return Ok(found);
        }
    }
    Ok(Vec::new())
}

/// Refuses what is neither an absolute path nor the name of a command.
fn check(file: &str) -> Result<()> {
    let shown: String = file.chars().take(80).collect();
    let refused = |expected: &str| Err(Problem::validation("INVALID_PATH", format!("{shown:?}: {expected}")));
    if file.is_empty() || file.len() > 4096 || file.chars().any(char::is_control) {
        return refused("an absolute path or the name of a command is expected, without control characters");
    }
    if file.starts_with('-') {
        return refused("it begins like an option; an absolute path or the name of a command is expected");
    }
    if !file.starts_with('/') && file.contains('/') {
        return refused("it is a relative path; an absolute path or the name of a command is expected");
    }
    if file.split('/').any(|part| part == "..") {
        return refused("a path without .. is expected");
    }
    Ok(())
}

/// The paths that a file may have: of a command, one in each directory.
fn spelled(file: &String) -> Vec<String> {
    match file.starts_with('/') {
        true => vec![match file.trim_end_matches('/') {
            "" => "/".to_owned(),
            path => path.to_owned(),
        }],
        false => PATH.iter().map(|directory| format!("{directory}/{file}")).collect(),
    }
}

/// Finds out which of the files exist, where their links lead to, and who has those of which the path is given.
fn located(
    given: &[String],
    upkeep: &dyn Upkeep,
    cx: &Context,
) -> Result<(Vec<Asked>, BTreeMap<String, Owners>)> {
    let all: Vec<_> = given.iter().flat_map(spelled).collect();
    let paths = given.iter().filter(|file| file.starts_with('/')).flat_map(spelled);
    let paths: BTreeSet<_> = paths.flat_map(|path| [twin(&path), Some(path)]).flatten().collect();
    let paths: Vec<_> = paths.into_iter().collect();
    let mut commands = if paths.is_empty() { Vec::new() } else { upkeep.search_owners(&paths) };
    let searches = commands.len();
    commands.extend([TYPES.with(&all), TARGETS.with(&all)]);
    let mut outputs = cx.run_all(commands);
    let Ok([types, targets]) = <[_; 2]>::try_from(outputs.split_off(searches)) else {
        return Err(Problem::unexpected("stat", ""));
    };
    let owners = upkeep.read_owners(&paths, outputs)?;
    let owners = paths.into_iter().zip(owners).collect();
    // stat fails where a path doesn't exist, and prints the others all the same.
    let types = types?;
    let text = types.text();
    let existing: Vec<_> =
        text.lines().filter_map(|line| line.split_once('\t')).map(|(_, path)| path).collect();
    let targets = targets?.success("readlink")?;
    let targets: Vec<_> = targets.text().lines().map(str::to_owned).collect();
    if targets.len() != all.len() {
        return Err(Problem::unexpected("readlink", &targets.join("\n")));
    }
    let asked = given.iter().map(|file| {
        let paths = spelled(file);
        let exists = |path: &String| existing.contains(&path.as_str());
        let here = paths.iter().find(|path| exists(path));
        let mut candidates: Vec<String> = Vec::new();
        let considered = here.map_or_else(|| paths.iter().collect::<Vec<_>>(), |path| vec![path]);
        for path in &considered {
            candidates.extend([Some((*path).clone()), twin(path)].into_iter().flatten());
        }
        for path in &considered {
            let target = all.iter().position(|other| other == *path).and_then(|at| targets.get(at));
            candidates
                .extend(target.iter().flat_map(|target| [Some((*target).clone()), twin(target)]).flatten());
        }
        let mut once = Vec::new();
        candidates.retain(|candidate| {
            let is_new = !once.contains(candidate);
            once.push(candidate.clone());
            is_new
        });
        Asked { path: here.unwrap_or(file).clone(), candidates, exists: here.is_some() }
    });
    Ok((asked.collect(), owners))
}

/// The other name of a path where `/bin`, `/sbin` or `/lib` is a link to the directory in `/usr`.
fn twin(path: &str) -> Option<String> {
    const MERGED: [&str; 6] = ["/bin/", "/sbin/", "/lib/", "/lib32/", "/lib64/", "/libx32/"];
    let is_merged = |path: &str| MERGED.iter().any(|directory| path.starts_with(directory));
    match path.strip_prefix("/usr") {
        Some(rest) => is_merged(rest).then(|| rest.to_owned()),
        None => is_merged(path).then(|| format!("/usr{path}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_a_path_or_a_command_and_nothing_that_a_program_takes_for_something_else() {
        for file in ["", "-f", "--all", "etc/passwd", "./x", "/etc/../root", "/a\nb"] {
            assert_eq!(check(file).expect_err(file).code, "INVALID_PATH", "{file}");
        }
        for file in ["ls", "/usr/bin/[", "/etc/a*b", "/", "g++"] {
            assert!(check(file).is_ok(), "{file}");
        }
    }

    #[test]
    fn a_merged_directory_has_two_names() {
        let table = [
            ("/bin/sh", Some("/usr/bin/sh")),
            ("/usr/lib/x/y.so", Some("/lib/x/y.so")),
            ("/usr/share/x", None),
            ("/etc/passwd", None),
        ];
        for (path, expected) in table {
            assert_eq!(twin(path).as_deref(), expected, "{path}");
        }
    }
}
