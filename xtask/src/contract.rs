//! Freezes the current version of the contract: its text is copied to a folder of its own, and a component that was built for it
//! is kept. A test runs the component with every later host, and another one compares the text with its sums.

use crate::build::{self, Profile};
use crate::{files, workspace};
use anyhow::{Context, Result, bail};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs;
use std::path::Path;

/// The world of modules that don't come with the program. Only these see a frozen version.
const WORLD: &str = "world tool-module {";

/// The package of each file, up to its version.
const PACKAGE: &str = "package sysadmin:module@";

/// The guest of which a component is kept.
const GUEST: &str = "kept";

/// The folder of what is kept.
const KEPT: &str = "tests/data/contract";

pub(crate) fn freeze() -> Result<()> {
    let wit = workspace::root().join("wit");
    let module = read(&wit.join("module.wit"))?;
    let short = short_version(&module).context("wit/module.wit names no version")?;
    let folder = wit.join(short);
    if folder.exists() {
        bail!(
            "version {short} is frozen already, and a frozen version is never edited: another shape is a new version, \
             whose number stands in the `package` line of every file of wit/"
        );
    }
    let texts = frozen(&module, |name| read(&wit.join(format!("{name}.wit"))))?;
    // Nothing is written where the guest can't be built.
    let component = build::guest(Profile::Release, GUEST)?;
    files::make_dir(&folder)?;
    let mut sums = String::new();
    for (name, text) in &texts {
        files::write(&folder.join(name), text, 0o644)?;
        sums += &format!("{}  {name}\n", hex::encode(Sha256::digest(text)));
    }
    let kept = workspace::root().join(KEPT);
    files::write(&kept.join(format!("{short}.sums")), sums, 0o644)?;
    files::copy(&component, &kept.join(format!("{short}.wasm")), 0o644)?;
    println!(
        "xtask: version {short} is frozen: {} files in wit/{short}, and {KEPT}/{short}.wasm",
        texts.len()
    );
    Ok(())
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

/// The first two numbers of the version in a file of WIT.
fn short_version(text: &str) -> Option<&str> {
    let version = text.lines().find_map(|line| line.strip_prefix(PACKAGE))?.strip_suffix(';')?;
    version.rsplit_once('.').map(|(short, _patch)| short)
}

/// The files of a frozen version: the world of third parties' modules, and the interfaces that it needs, as they are.
fn frozen(module: &str, interface: impl Fn(&str) -> Result<String>) -> Result<BTreeMap<String, String>> {
    let version = short_version(module).context("wit/module.wit names no version")?;
    let (_, rest) = module.split_once(WORLD).context("wit/module.wit has no world tool-module")?;
    let (items, _) = rest.split_once('}').context("the world tool-module has no end")?;
    let item = |line: &str| {
        let line = line.trim();
        let name = line.strip_prefix("import ").or(line.strip_prefix("export "))?;
        Some(name.trim_end_matches(';').to_owned())
    };
    let mut open: Vec<String> = items.lines().filter_map(item).collect();
    let mut texts = BTreeMap::new();
    while let Some(name) = open.pop() {
        let file = format!("{name}.wit");
        if let Entry::Vacant(place) = texts.entry(file) {
            open.extend(used(place.insert(interface(&name)?)));
        }
    }
    let package = module.lines().find(|line| line.starts_with(PACKAGE)).unwrap_or_default();
    let text = format!(
        "/// Version {version} of the contract, which doesn't change any more. Components that were built for it load as before.\n\
         {package}\n\n/// The interfaces that every module may import, and those that it must export.\n{WORLD}{items}}}\n"
    );
    texts.insert("module.wit".to_owned(), text);
    Ok(texts)
}

/// The interfaces whose types an interface uses.
fn used(text: &str) -> Vec<String> {
    let name = |line: &str| Some(line.trim().strip_prefix("use ")?.split_once(".{")?.0.to_owned());
    text.lines().filter_map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_third_parties_see_is_frozen_and_nothing_else() -> Result<()> {
        let module = "/// x\npackage sysadmin:module@0.9.0;\n\n/// y\nworld tool-module {\n    import a;\n    export b;\n}\n\n\
            world system-module {\n    include tool-module;\n    import own;\n}\n";
        let interface = |name: &str| {
            Ok(match name {
                "a" => "package sysadmin:module@0.9.0;\ninterface a {\n    use types.{x};\n}\n".to_owned(),
                "b" | "types" => format!("package sysadmin:module@0.9.0;\ninterface {name} {{}}\n"),
                other => bail!("{other} is not asked for"),
            })
        };
        let texts = frozen(module, interface)?;
        let names: Vec<_> = texts.keys().map(String::as_str).collect();
        assert_eq!(names, ["a.wit", "b.wit", "module.wit", "types.wit"]);
        assert!(texts["a.wit"].contains("use types.{x};"));
        let frozen = &texts["module.wit"];
        assert!(
            frozen.contains("package sysadmin:module@0.9.0;\n") && frozen.contains("    export b;\n}\n"),
            "{frozen}"
        );
        assert!(!frozen.contains("own") && frozen.starts_with("/// Version 0.9 "), "{frozen}");
        Ok(())
    }

    #[test]
    fn the_contract_of_this_tree_could_be_frozen() -> Result<()> {
        let wit = workspace::root().join("wit");
        let module = read(&wit.join("module.wit"))?;
        let texts = frozen(&module, |name| read(&wit.join(format!("{name}.wit"))))?;
        // Version 0.1 has the interfaces that there were from the beginning.
        for entry in fs::read_dir(wit.join("0.1"))? {
            let name = entry?.file_name().into_string().unwrap_or_default();
            assert!(texts.contains_key(&name), "{name}");
        }
        assert!(!texts.contains_key("session.wit") && !texts.contains_key("target-control.wit"));
        Ok(())
    }
}
