//! The licenses of all crates in what is handed out, and its bill of materials in CycloneDX's format.

use super::Release;
use super::crates::{Crate, Crates};
use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;

/// How the names of files with a license or its notices begin.
const FILES: [&str; 6] = ["license", "licence", "copying", "notice", "unlicense", "copyright"];

const HEAD: &str = "\
The program and its modules contain code of these packages, each under the license that is named beside it. The texts of the
licenses follow; each is there once, below the packages that come with it. Where a package comes without a text, that of its
license stands below other packages. The program also contains Rust's standard library
(MIT OR Apache-2.0) and the C library musl (MIT), and the modules contain wasi-libc (MIT).
";

/// All licenses as text. A package that doesn't say under which license it is given is an error.
pub(super) fn licenses(crates: &Crates) -> Result<String> {
    let mut text = format!("{HEAD}\n");
    let mut texts: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for found in crates.all.values().filter(|found| !found.is_own) {
        let files = files_of(found)?;
        let license = match (&found.license, files.is_empty()) {
            (Some(license), _) => license.as_str(),
            (None, false) => "see its text",
            (None, true) => bail!("{} {} says nothing of its license", found.name, found.version),
        };
        text.push_str(&format!("{} {}: {license}\n", found.name, found.version));
        for file in files {
            texts.entry(file).or_default().insert(format!("{} {}", found.name, found.version));
        }
    }
    for (license, packages) in texts {
        let packages: Vec<String> = packages.into_iter().collect();
        text.push_str(&format!("\n{}\n{}\n\n{license}\n", "-".repeat(80), packages.join(", ")));
    }
    Ok(text)
}

/// The texts of a crate's licenses.
fn files_of(found: &Crate) -> Result<Vec<String>> {
    let mut texts = Vec::new();
    let entries =
        fs::read_dir(&found.folder).with_context(|| format!("cannot read {}", found.folder.display()))?;
    let mut paths: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    for path in paths.iter().filter(|path| path.is_file()) {
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
        let is_named = found.license_file.as_deref().is_some_and(|file| path.ends_with(file));
        if is_named || FILES.iter().any(|begin| name.starts_with(begin)) {
            let text = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
            let text = String::from_utf8_lossy(&text).replace("\r\n", "\n");
            texts.push(text.trim().to_owned());
        }
    }
    Ok(texts)
}

/// The bill of materials. It has the time of the commit, so that the same commit gives the same bytes.
pub(super) fn bill(crates: &Crates, release: &Release, name: &str) -> Result<String> {
    let purl = format!("pkg:cargo/{name}@{}", release.version);
    let component = |(purl, found): (&String, &Crate)| {
        let mut component = json!({
            "type": "library", "bom-ref": purl, "name": found.name, "version": found.version, "purl": purl,
        });
        if let Some(license) = &found.license {
            component["licenses"] = json!([{"expression": license}]);
        }
        if let Some(sha256) = &found.sha256 {
            component["hashes"] = json!([{"alg": "SHA-256", "content": sha256}]);
        }
        component
    };
    let others = crates.all.iter().filter(|(other, _)| **other != purl);
    let components: Vec<Value> = others.map(component).collect();
    let none = BTreeSet::new();
    let dependency = |of: &String| {
        let uses = crates.uses.get(of).unwrap_or(&none);
        json!({"ref": of, "dependsOn": uses})
    };
    let dependencies: Vec<Value> = crates.all.keys().map(dependency).collect();
    let bill = json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "timestamp": release.time,
            "component": {
                "type": "application", "bom-ref": purl, "name": name, "version": release.version, "purl": purl,
            },
        },
        "components": components,
        "dependencies": dependencies,
    });
    Ok(serde_json::to_string_pretty(&bill)? + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some(folder: &std::path::Path, license: Option<&str>) -> Crates {
        let found = |name: &str, is_own: bool| Crate {
            name: name.to_owned(),
            version: "1.0.0".to_owned(),
            license: license.map(str::to_owned),
            license_file: None,
            folder: folder.to_owned(),
            sha256: (!is_own).then(|| "ab".to_owned()),
            is_own,
        };
        let mut crates = Crates::default();
        for one in [found("app", true), found("used", false), found("other", false)] {
            crates.all.insert(one.purl(), one);
        }
        let uses = BTreeSet::from(["pkg:cargo/used@1.0.0".to_owned()]);
        crates.uses.insert("pkg:cargo/app@1.0.0".to_owned(), uses);
        crates
    }

    #[test]
    fn each_text_is_there_once_and_a_crate_without_a_license_is_an_error() -> Result<()> {
        let folder = tempfile::tempdir()?;
        assert!(licenses(&some(folder.path(), None)).is_err());
        fs::write(folder.path().join("LICENSE-MIT"), "The text of it\r\n")?;
        fs::write(folder.path().join("README.md"), "no license")?;
        let text = licenses(&some(folder.path(), Some("MIT")))?;
        assert!(
            text.contains("\nother 1.0.0: MIT\nused 1.0.0: MIT\n") && !text.contains("app 1.0.0"),
            "{text}"
        );
        assert!(text.ends_with("\nother 1.0.0, used 1.0.0\n\nThe text of it\n"), "{text}");
        assert!(licenses(&some(folder.path(), None))?.contains("used 1.0.0: see its text"));
        Ok(())
    }

    #[test]
    fn the_bill_names_every_crate_once_and_what_it_uses() -> Result<()> {
        let folder = tempfile::tempdir()?;
        let release = Release {
            version: "1.0.0".to_owned(),
            seconds: "0".to_owned(),
            time: "1970-01-01T00:00:00Z".to_owned(),
        };
        let text = bill(&some(folder.path(), Some("MIT")), &release, "app")?;
        let bill: Value = serde_json::from_str(&text)?;
        assert_eq!(bill["metadata"]["timestamp"], "1970-01-01T00:00:00Z");
        let names: Vec<_> =
            bill["components"].as_array().expect("a list").iter().map(|one| &one["name"]).collect();
        assert_eq!(names, ["other", "used"]);
        assert_eq!(bill["components"][1]["hashes"][0]["content"], "ab");
        let app = &bill["dependencies"][0];
        assert_eq!(
            (&app["ref"], &app["dependsOn"][0]),
            (&json!("pkg:cargo/app@1.0.0"), &json!("pkg:cargo/used@1.0.0"))
        );
        Ok(())
    }
}
