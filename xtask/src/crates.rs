//! `cargo xtask crates`: which crate of the host uses which, and whether the modules of each use one another in one direction.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::workspace;

/// A crate of the host.
struct Crate {
    name: String,
    /// The folder of the crate.
    root: PathBuf,
    /// The names of the crates that it depends on, the host's own and others.
    uses: BTreeSet<String>,
}

/// Prints the crates, each after all crates that it uses, and fails where a crate's modules use each other in a circle.
pub(crate) fn crates() -> Result<()> {
    let crates = read()?;
    let names: BTreeSet<&str> = crates.iter().map(|one| one.name.as_str()).collect();
    let mut circles = Vec::new();
    for one in in_order(&crates) {
        let own: Vec<&str> =
            one.uses.iter().map(String::as_str).filter(|name| names.contains(name)).collect();
        println!("{:<20} {}", one.name, if own.is_empty() { "-".to_owned() } else { own.join(" ") });
        circles.extend(
            circles_of(&one.root)?.into_iter().map(|circle| format!("{}: {}", one.name, circle.join(" "))),
        );
    }
    if !circles.is_empty() {
        bail!("modules that use each other in a circle:\n{}", circles.join("\n"));
    }
    Ok(())
}

/// The crates at and below `host/`.
fn read() -> Result<Vec<Crate>> {
    let metadata = workspace::metadata()?;
    let host = workspace::root().join("host");
    let mut crates = Vec::new();
    for package in metadata["packages"].as_array().context("cargo metadata names no packages")? {
        let manifest = Path::new(package["manifest_path"].as_str().unwrap_or_default());
        let Some(root) = manifest.parent().filter(|root| root.starts_with(&host)) else { continue };
        let dependencies = package["dependencies"].as_array().into_iter().flatten();
        // Dependencies for tests and for build scripts have a kind.
        let uses = dependencies.filter(|one| one["kind"].is_null()).filter_map(|one| one["name"].as_str());
        crates.push(Crate {
            name: package["name"].as_str().unwrap_or_default().to_owned(),
            root: root.to_owned(),
            uses: uses.map(str::to_owned).collect(),
        });
    }
    Ok(crates)
}

/// The crates, each after the crates that it uses. cargo allows no circle.
fn in_order(crates: &[Crate]) -> Vec<&Crate> {
    let mut left: Vec<&Crate> = crates.iter().collect();
    let mut order: Vec<&Crate> = Vec::new();
    while !left.is_empty() {
        let is_free = |one: &&Crate| !left.iter().any(|other| one.uses.contains(&other.name));
        let (mut free, rest): (Vec<&Crate>, Vec<&Crate>) = left.iter().partition(|one| is_free(one));
        if free.is_empty() {
            break;
        }
        free.sort_by_key(|one| one.name.clone());
        order.append(&mut free);
        left = rest;
    }
    order
}

/// Modules at the top of a crate that use each other in a circle, by what their sources import. Tests aren't read.
fn circles_of(root: &Path) -> Result<Vec<Vec<String>>> {
    let mut sources = Vec::new();
    sources_in(&root.join("src"), &mut Vec::new(), &mut sources)?;
    let tops: BTreeSet<String> = sources.iter().filter_map(|(path, _)| path.first().cloned()).collect();
    let mut uses: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (path, text) in sources.iter().filter(|(path, _)| !path.is_empty()) {
        let of_module = uses.entry(path[0].clone()).or_default();
        of_module.extend(imports(text, path.len()).filter(|name| tops.contains(name) && *name != path[0]));
    }
    let reaches = |from: &str, to: &str| {
        let (mut seen, mut next) = (BTreeSet::new(), vec![from.to_owned()]);
        while let Some(module) = next.pop() {
            for used in uses.get(&module).into_iter().flatten() {
                if used == to {
                    return true;
                }
                if seen.insert(used.clone()) {
                    next.push(used.clone());
                }
            }
        }
        false
    };
    let mut circles: Vec<Vec<String>> = Vec::new();
    for module in tops.iter().filter(|module| reaches(module, module)) {
        if circles.iter().any(|circle| circle.contains(module)) {
            continue;
        }
        let is_in = |other: &&String| reaches(module, other) && reaches(other, module);
        circles.push(tops.iter().filter(is_in).cloned().collect());
    }
    Ok(circles)
}

/// The sources below a folder without their tests and comments, each with the path of its module.
fn sources_in(folder: &Path, at: &mut Vec<String>, found: &mut Vec<(Vec<String>, String)>) -> Result<()> {
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        let name = path.file_stem().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
        if name == "tests" {
            continue;
        }
        if path.is_dir() {
            at.push(name);
            sources_in(&path, at, found)?;
            at.pop();
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path)?;
            let text = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
            let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
            let mut module = at.clone();
            if !matches!(name.as_str(), "lib" | "main" | "mod") {
                module.push(name);
            }
            found.push((module, code.collect::<Vec<_>>().join("\n")));
        }
    }
    Ok(())
}

/// The top-level modules of the crate that a source names. `depth` is how deep the source's own module is.
fn imports(text: &str, depth: usize) -> impl Iterator<Item = String> {
    let to_top = "super::".repeat(depth);
    let starts = ["crate::".to_owned(), to_top];
    let mut names = Vec::new();
    for start in starts {
        for (at, _) in text.match_indices(&start) {
            let before = text[..at].chars().next_back();
            if before.is_some_and(|character| character.is_alphanumeric() || matches!(character, '_' | ':')) {
                continue;
            }
            let behind = &text[at + start.len()..];
            match behind.strip_prefix('{') {
                Some(list) => {
                    let list = list.split(';').next().unwrap_or_default();
                    let mut deep = 0;
                    let mut item = String::new();
                    for character in list.chars() {
                        match character {
                            '{' => deep += 1,
                            '}' => deep -= 1,
                            ',' if deep == 0 => names.push(std::mem::take(&mut item)),
                            _ if deep == 0 => item.push(character),
                            _ => {}
                        }
                    }
                    names.push(item);
                }
                None => names.push(behind.chars().take(60).collect()),
            }
        }
    }
    names.into_iter().map(|name| {
        name.trim_start()
            .chars()
            .take_while(|character| character.is_alphanumeric() || *character == '_')
            .collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn users_of(what: &str) -> Vec<String> {
        let crates = read().unwrap();
        let is_it =
            |name: &String| name == what || name.strip_prefix(what).is_some_and(|rest| rest.starts_with('-'));
        let users = crates.into_iter().filter(|one| one.uses.iter().any(is_it));
        let mut users: Vec<String> = users.map(|one| one.name).collect();
        users.sort();
        users
    }

    #[test]
    fn the_crates_of_the_host_know_no_more_than_their_part() {
        assert_eq!(users_of("wasmtime"), ["host-components"]);
        assert_eq!(users_of("russh"), ["host-openssh", "host-target"]);
        assert_eq!(users_of("rmcp"), ["linux-sysadmin"]);
        let crates = read().unwrap();
        assert_eq!(in_order(&crates).len(), crates.len());
        assert_eq!(in_order(&crates).last().unwrap().name, "linux-sysadmin");
    }

    #[test]
    fn no_modules_use_each_other_in_a_circle() {
        for one in read().unwrap() {
            assert_eq!(circles_of(&one.root).unwrap(), Vec::<Vec<String>>::new(), "{}", one.name);
        }
    }

    #[test]
    fn a_circle_is_found_however_it_is_imported() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = folder.path().join("src").join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("lib.rs", "mod a; mod b; mod c; mod d;");
        write("a.rs", "use super::{c, b::{X, Y}};\n");
        write("b/mod.rs", "mod inner;\n");
        write("b/inner.rs", "use super::super::c::Z;\n");
        write(
            "c.rs",
            "// use crate::a;\nfn f() { crate::d::g() }\n#[cfg(test)]\nmod tests { use crate::a; }\n",
        );
        write("d.rs", "use super::other;\n");
        assert_eq!(circles_of(folder.path()).unwrap(), Vec::<Vec<String>>::new());
        write("d.rs", "pub fn g() { crate::b::h() }\n");
        assert_eq!(circles_of(folder.path()).unwrap(), [["b", "c", "d"]]);
    }
}
