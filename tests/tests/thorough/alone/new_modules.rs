//! What `modules new` makes passes its own tests, and is built without a warning, as it is.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use linux_sysadmin_tests::{Home, modules};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().expect("the sources")
}

/// Makes a module in this home, with these options, and gives its folder.
fn made(home: &Home, name: &str, options: &[&str]) -> PathBuf {
    let mut new = home.command(&modules(), &["modules", "new", name]);
    new.args(options).arg("--sdk").arg(root().join("sdk")).current_dir(home.path());
    succeeded(name, new.output().expect("the program starts"));
    home.path().join(name)
}

fn succeeded(what: &str, output: Output) -> String {
    let said = [&output.stdout[..], &output.stderr].map(String::from_utf8_lossy).concat();
    assert!(output.status.success(), "{what}: {said}");
    said
}

#[test]
fn the_tests_of_a_new_module_pass_without_a_warning() {
    let home = Home::new();
    for (name, options) in [
        ("own-tools", &[][..]),
        ("packages-own", &["--domain", "packages"]),
        ("firewall-own", &["--domain", "firewall"]),
    ] {
        let folder = made(&home, name, options);
        // With the dependencies that the workspace has, nothing is fetched.
        fs::copy(root().join("Cargo.lock"), folder.join("Cargo.lock")).expect("copied");
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["test", "--offline"]).current_dir(&folder).env("CARGO_PROFILE_DEV_DEBUG", "false");
        // The dependencies are built once for all of them.
        cargo.env("CARGO_TARGET_DIR", Path::new(env!("CARGO_TARGET_TMPDIR")).join("new-modules"));
        let said = succeeded(name, cargo.output().expect("cargo"));
        assert!(!said.contains("warning"), "{name}: {said}");
        let passed = |line: &str| line.starts_with("test result: ok. ") && !line.contains(" 0 passed;");
        assert!(said.lines().any(passed), "{name}: {said}");
    }
}

#[test]
fn the_tests_of_a_new_module_in_python_pass() {
    let home = Home::new();
    let folder = made(&home, "own-python", &["--lang", "python"]);
    let mut python = Command::new("python3");
    python.args(["-m", "unittest", "discover", "-s", "tests"]).current_dir(&folder);
    python.env("PYTHONPATH", root().join("sdk/python/src")).env("PYTHONDONTWRITEBYTECODE", "1");
    let said = succeeded("own-python", python.output().expect("python3"));
    assert!(said.contains("Ran 3 tests"), "{said}");
}
