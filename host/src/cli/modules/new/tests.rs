//! The folders that are made, and what is refused. The end-to-end tests build them.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::*;

/// Each kind of module that can be made.
const KINDS: [(Language, Option<Domain>); 4] = [
    (Language::Rust, None),
    (Language::Rust, Some(Domain::Packages)),
    (Language::Rust, Some(Domain::Firewall)),
    (Language::Python, None),
];

fn new((lang, domain): (Language, Option<Domain>), name: &str) -> New {
    New { name: name.parse().unwrap(), lang, domain, sdk: None }
}

fn sdk() -> Sdk {
    Sdk::Folder("/srv/the \"sdk\"".to_owned())
}

/// The files below a folder, by their paths from there.
fn below(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => files.extend(below(&path)),
            false => files.push(path),
        }
    }
    files.sort();
    files
}

fn text(path: impl AsRef<Path>) -> String {
    fs::read_to_string(path).unwrap()
}

#[test]
fn a_new_folder_has_sources_tests_license_readme_and_ci() {
    for kind in KINDS {
        let home = tempfile::tempdir().unwrap();
        new(kind, "disk-health").make(home.path(), &sdk()).unwrap();
        let folder = home.path().join("disk-health");
        let files = below(&folder);
        let has = |path: &str| files.contains(&folder.join(path));
        for path in [".github/workflows/ci.yml", ".gitignore", "LICENSE", "README.md"] {
            assert!(has(path), "{kind:?}: {path} is not in {files:?}");
        }
        assert!(files.iter().any(|path| path.starts_with(folder.join("tests"))), "{kind:?}: {files:?}");
        let sources = if kind.0 == Language::Rust { "src/lib.rs" } else { "module.py" };
        assert!(text(folder.join(sources)).contains("\"disk-health\""), "{kind:?}");
        assert!(text(folder.join("README.md")).starts_with("# disk-health\n"), "{kind:?}");
        assert!(text(folder.join("LICENSE")).contains("Apache License"), "{kind:?}");
        let ci: serde_yaml::Value =
            serde_yaml::from_str(&text(folder.join(".github/workflows/ci.yml"))).unwrap();
        assert!(ci["jobs"]["module"]["steps"].as_sequence().is_some_and(|steps| steps.len() > 3), "{kind:?}");
        for path in &files {
            assert!(text(path).ends_with('\n'), "{}", path.display());
            assert!(!text(path).contains("{{"), "a placeholder is left in {}", path.display());
        }
    }
}

#[test]
fn a_crate_is_a_workspace_of_its_own_and_takes_the_sdk_of_this_version() {
    for kind in KINDS.into_iter().filter(|(language, _)| *language == Language::Rust) {
        let home = tempfile::tempdir().unwrap();
        new(kind, "x-y").make(home.path(), &sdk()).unwrap();
        let manifest = text(home.path().join("x-y/Cargo.toml"));
        let version = env!("CARGO_PKG_VERSION");
        for line in ["[workspace]", "name = \"module-x-y\"", &format!("linux-sysadmin-sdk = \"={version}\"")]
        {
            assert!(manifest.lines().any(|found| found == line), "{line} is not in {manifest}");
        }
        let config = text(home.path().join("x-y/.cargo/config.toml"));
        assert!(config.contains(r#"linux-sysadmin-sdk = { path = "/srv/the \"sdk\"" }"#), "{config}");
        // The folder of the sdk is one of this machine's, and no part of what others get.
        assert!(text(home.path().join("x-y/.gitignore")).contains("/.cargo/config.toml"));

        new(kind, "published").make(home.path(), &Sdk::Published).unwrap();
        assert!(!home.path().join("published/.cargo").exists());
    }
}

#[test]
fn a_domain_is_served_with_the_program_that_the_name_says() {
    let home = tempfile::tempdir().unwrap();
    for (domain, name, fact) in [
        (Domain::Packages, "packages-lab", "package_manager"),
        (Domain::Firewall, "firewall-lab", "firewall_backend"),
    ] {
        new((Language::Rust, Some(domain)), name).make(home.path(), &sdk()).unwrap();
        let source = text(home.path().join(name).join("src/lib.rs"));
        assert!(source.contains(&format!(".serves(\"{fact}\", &[\"lab\"])")), "{source}");
    }
}

#[test]
fn a_folder_that_is_there_is_refused_and_stays_as_it_is() {
    let home = tempfile::tempdir().unwrap();
    let there = home.path().join("mine");
    let refused = |what: &str| {
        let refused = new(KINDS[0], "mine").make(home.path(), &sdk()).unwrap_err().to_string();
        assert!(refused.contains("mine is there already; nothing was changed"), "{what}: {refused}");
    };
    fs::create_dir(&there).unwrap();
    refused("an empty folder");
    fs::write(there.join("notes"), "mine").unwrap();
    refused("a folder with a file");
    assert_eq!(below(&there), [there.join("notes")]);
    fs::remove_dir_all(&there).unwrap();
    fs::write(&there, "mine").unwrap();
    refused("a file");
    assert_eq!(text(&there), "mine");
    fs::remove_file(&there).unwrap();
    std::os::unix::fs::symlink(home.path().join("elsewhere"), &there).unwrap();
    refused("a link that leads nowhere");
    assert!(!home.path().join("elsewhere").exists());
}

#[test]
fn what_cannot_be_made_leaves_nothing() {
    let home = tempfile::tempdir().unwrap();
    let missing = home.path().join("missing");
    let refused = new(KINDS[0], "mine").make(&missing, &sdk()).unwrap_err().to_string();
    assert!(refused.contains("can't be made"), "{refused}");
    let python = (Language::Python, Some(Domain::Packages));
    let refused = new(python, "mine").make(home.path(), &sdk()).unwrap_err().to_string();
    assert!(refused.contains("expected --lang rust with --domain packages"), "{refused}");
    assert!(below(home.path()).is_empty());
}

#[test]
fn every_template_is_part_of_a_new_module() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../sdk/templates");
    let name: name::NewName = "x".parse().unwrap();
    let mut used = BTreeSet::new();
    for (language, domain) in KINDS {
        used.extend(templates::files(language, domain, &name, &sdk()).into_iter().map(|(_, text)| text));
    }
    for path in below(&folder) {
        let filled = templates::fill(&text(&path), None, &name, &sdk());
        let with = |domain| templates::fill(&text(&path), Some(domain), &name, &sdk());
        let all = [filled, with(Domain::Packages), with(Domain::Firewall)];
        assert!(all.iter().any(|text| used.contains(text)), "{} is in no list", path.display());
    }
}
