//! The crates whose code is in what is handed out, by cargo's own account: those of the program and those of the modules,
//! without what only builds or tests need.

use crate::{cmd, wasm, workspace};
use anyhow::{Context, Result};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// A crate.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Crate {
    pub(super) name: String,
    pub(super) version: String,
    /// The SPDX expression of its license, where its manifest has one.
    pub(super) license: Option<String>,
    /// The file of its license, where its manifest names one.
    pub(super) license_file: Option<String>,
    pub(super) folder: PathBuf,
    /// The SHA-256 of its archive; none for a crate of this workspace.
    pub(super) sha256: Option<String>,
    /// Whether it belongs to this workspace.
    pub(super) is_own: bool,
}

impl Crate {
    /// The package URL, which names the crate in a bill of materials.
    pub(super) fn purl(&self) -> String {
        format!("pkg:cargo/{}@{}", self.name, self.version)
    }
}

/// Crates, and which of them each one uses, by their package URLs.
#[derive(Debug, Default)]
pub(super) struct Crates {
    pub(super) all: BTreeMap<String, Crate>,
    pub(super) uses: BTreeMap<String, BTreeSet<String>>,
}

/// The crates of the program for this target and of all modules.
pub(super) fn shipped(triple: &str) -> Result<Crates> {
    let sums = sums(&fs::read_to_string(workspace::root().join("Cargo.lock"))?);
    let mut crates = Crates::default();
    let modules = workspace::modules()?;
    let modules: BTreeSet<String> = modules.iter().map(|name| workspace::package("module", name)).collect();
    let program = BTreeSet::from([workspace::BINARY.to_owned()]);
    for (target, roots) in [(triple, program), (wasm::TARGET, modules)] {
        let mut metadata = workspace::cargo();
        metadata.args(["metadata", "--format-version=1", "--locked", "--filter-platform", target]);
        let text = cmd::output(&mut metadata)?;
        let metadata: Value = serde_json::from_str(&text).context("cargo metadata answers no JSON")?;
        add(&mut crates, &metadata, &roots, &sums)?;
    }
    Ok(crates)
}

/// Adds the packages of these names, and all that they use when they run.
fn add(
    crates: &mut Crates,
    metadata: &Value,
    roots: &BTreeSet<String>,
    sums: &BTreeMap<(String, String), String>,
) -> Result<()> {
    let by_id = |list: &'static str, of: &Value| -> Result<BTreeMap<String, Value>> {
        let entries = of[list].as_array().with_context(|| format!("cargo metadata has no {list}"))?;
        let entry = |entry: &Value| Some((entry["id"].as_str()?.to_owned(), entry.clone()));
        Ok(entries.iter().filter_map(entry).collect())
    };
    let (packages, nodes) = (by_id("packages", metadata)?, by_id("nodes", &metadata["resolve"])?);
    let is_root = |package: &Value| {
        package["source"].is_null() && package["name"].as_str().is_some_and(|name| roots.contains(name))
    };
    let named = packages.iter().filter(|(_, package)| is_root(package)).map(|(id, _)| id.clone());
    let mut open: Vec<String> = named.collect();
    let mut seen: BTreeSet<String> = open.iter().cloned().collect();
    while let Some(id) = open.pop() {
        let package = packages.get(&id).with_context(|| format!("cargo metadata has no package {id}"))?;
        let found = read(package, sums)?;
        let purl = found.purl();
        crates.all.insert(purl.clone(), found);
        let deps = nodes.get(&id).and_then(|node| node["deps"].as_array()).into_iter().flatten();
        let runs = |dep: &&Value| {
            let mut kinds = dep["dep_kinds"].as_array().into_iter().flatten();
            kinds.any(|kind| kind["kind"].is_null())
        };
        for used in deps.filter(runs).filter_map(|dep| dep["pkg"].as_str()) {
            let package =
                packages.get(used).with_context(|| format!("cargo metadata has no package {used}"))?;
            crates.uses.entry(purl.clone()).or_default().insert(read(package, sums)?.purl());
            if seen.insert(used.to_owned()) {
                open.push(used.to_owned());
            }
        }
    }
    Ok(())
}

fn read(package: &Value, sums: &BTreeMap<(String, String), String>) -> Result<Crate> {
    let text = |member: &str| package[member].as_str().map(str::to_owned);
    let name = text("name").context("a package without a name")?;
    let version = text("version").context("a package without a version")?;
    let manifest = text("manifest_path").context("a package without a manifest")?;
    let folder = Path::new(&manifest).parent().context("a manifest without a folder")?.to_owned();
    let sha256 = sums.get(&(name.clone(), version.clone())).cloned();
    // Older manifests write a slash for a choice.
    let license = text("license").map(|license| license.replace('/', " OR ").replace("  ", " "));
    let is_own = package["source"].is_null();
    Ok(Crate { name, version, license, license_file: text("license_file"), folder, sha256, is_own })
}

/// The SHA-256 of the crates' archives, which Cargo.lock has by name and version.
fn sums(lock: &str) -> BTreeMap<(String, String), String> {
    let package = |block: &str| {
        let value = |key: &str| {
            let line = block.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(" = \""))?;
            line.strip_suffix('"').map(str::to_owned)
        };
        Some(((value("name")?, value("version")?), value("checksum")?))
    };
    lock.split("[[package]]").filter_map(package).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_only_a_build_or_a_test_needs_is_left_out() -> Result<()> {
        let package = |name: &str, source: Value| {
            json!({
                "id": name, "name": name, "version": "1.0.0", "source": source, "license": "MIT/Apache-2.0",
                "license_file": null, "manifest_path": format!("/c/{name}/Cargo.toml"),
            })
        };
        let dep = |name: &str, kinds: &[Value]| {
            let kinds: Vec<Value> = kinds.iter().map(|kind| json!({"kind": kind})).collect();
            json!({"pkg": name, "dep_kinds": kinds})
        };
        let registry = json!("registry");
        let metadata = json!({
            "packages": [
                package("app", Value::Null), package("used", registry.clone()),
                package("build", registry.clone()), package("test", registry.clone()), package("both", registry),
            ],
            "resolve": {"nodes": [
                {"id": "app", "deps": [
                    dep("used", &[Value::Null]), dep("build", &[json!("build")]), dep("test", &[json!("dev")]),
                    dep("both", &[json!("dev"), Value::Null]),
                ]},
                {"id": "used", "deps": []}, {"id": "both", "deps": [dep("used", &[Value::Null])]},
            ]},
        });
        let sums = sums(
            "version = 4\n\n[[package]]\nname = \"app\"\nversion = \"1.0.0\"\n\n\
             [[package]]\nname = \"used\"\nversion = \"1.0.0\"\nsource = \"x\"\nchecksum = \"ab\"\n",
        );
        let mut crates = Crates::default();
        add(&mut crates, &metadata, &BTreeSet::from(["app".to_owned()]), &sums)?;
        let names: Vec<_> = crates.all.keys().map(String::as_str).collect();
        assert_eq!(names, ["pkg:cargo/app@1.0.0", "pkg:cargo/both@1.0.0", "pkg:cargo/used@1.0.0"]);
        assert_eq!(crates.all["pkg:cargo/used@1.0.0"].sha256.as_deref(), Some("ab"));
        assert_eq!(crates.all["pkg:cargo/used@1.0.0"].license.as_deref(), Some("MIT OR Apache-2.0"));
        assert_eq!(crates.uses["pkg:cargo/both@1.0.0"], BTreeSet::from(["pkg:cargo/used@1.0.0".to_owned()]));
        assert!(crates.all["pkg:cargo/app@1.0.0"].is_own && !crates.all["pkg:cargo/used@1.0.0"].is_own);
        Ok(())
    }
}
