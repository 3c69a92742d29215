//! The sdk can be published: the crate has all that it needs without the workspace around it.

use std::path::Path;
use std::process::Command;

use linux_sysadmin_tests::skipped;

/// What cargo says where it can't reach the registry.
const UNREACHABLE: [&str; 4] =
    ["failed to download", "failed to fetch", "unable to update registry", "failed to query replaced source"];

#[test]
fn the_crate_is_built_from_what_would_be_published() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("published");
    let mut cargo = Command::new(env!("CARGO"));
    cargo.current_dir(&root).args([
        "publish",
        "--dry-run",
        "--allow-dirty",
        "--package",
        "linux-sysadmin-sdk",
    ]);
    let output = cargo.arg("--target-dir").arg(&target).output().expect("cargo runs");
    let said = String::from_utf8_lossy(&output.stderr);
    if UNREACHABLE.iter().any(|unreachable| said.to_lowercase().contains(unreachable)) {
        let last = said.lines().next_back().unwrap_or_default();
        skipped("the_crate_is_built_from_what_would_be_published", last);
        return;
    }
    assert!(output.status.success(), "{said}");
    // Whoever finds the crate on the registry learns there what it is.
    assert!(!said.contains("manifest has no"), "{said}");
}

#[test]
fn the_crate_has_the_contract_and_nothing_of_other_packages() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut cargo = Command::new(env!("CARGO"));
    cargo.current_dir(&root).args(["package", "--list", "--allow-dirty", "--offline"]);
    let output = cargo.args(["--package", "linux-sysadmin-sdk"]).output().expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let listed = String::from_utf8_lossy(&output.stdout);
    let files: Vec<&str> = listed.lines().collect();
    // These are reached by links out of the crate's folder.
    for file in ["README.md", "src/lib.rs", "src/characters.rs", "wit/module.wit", "wit/0.1/module.wit"] {
        assert!(files.contains(&file), "{file} is not in {files:?}");
    }
    for folder in ["python/", "examples/", "templates/"] {
        assert!(!files.iter().any(|file| file.starts_with(folder)), "{folder} is in {files:?}");
    }
}
