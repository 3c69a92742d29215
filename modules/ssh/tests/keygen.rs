//! Runs the planned commands with the real ssh-keygen: no existing file is overwritten. Nothing is tested where it isn't
//! installed.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// Runs a program without input, as the host does.
fn run(program: &str, args: &[&str]) -> Option<Output> {
    Command::new(program).args(args).stdin(Stdio::null()).output().ok()
}

fn generate(options: &[&str], file: &Path) -> Option<Output> {
    let file = file.to_str().unwrap();
    run("ssh-keygen", &[&["-q", "-t"], options, &["-N", "", "-C", "a comment", "-f", file]].concat())
}

#[test]
fn each_kind_of_key_is_made_and_never_over_another_one() {
    let directory = tempfile::tempdir().unwrap();
    for options in [&["ed25519"] as &[&str], &["ecdsa", "-b", "384"], &["rsa", "-b", "3072"]] {
        let file = directory.path().join(options[0]);
        let Some(output) = generate(options, &file) else { return };
        assert!(output.status.success(), "{output:?}");
        let public = file.with_extension("pub");
        let made = [&file, &public].map(|file| fs::read(file).unwrap());
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(made[1].ends_with(b" a comment\n"));
        let again = generate(options, &file).unwrap();
        assert!(!again.status.success(), "{again:?}");
        assert!(String::from_utf8_lossy(&again.stdout).contains("already exists"), "{again:?}");
        assert_eq!([&file, &public].map(|file| fs::read(file).unwrap()), made);
    }
}

#[test]
fn a_public_half_by_itself_is_what_the_step_before_is_for() {
    let directory = tempfile::tempdir().unwrap();
    let (file, public) = (directory.path().join("key"), directory.path().join("key.pub"));
    fs::write(&public, "of another key").unwrap();
    let is_absent = || run("test", &["!", "-e", public.to_str().unwrap()]).unwrap().status.success();
    assert!(!is_absent(), "the plan ends here");
    let Some(output) = generate(&["ed25519"], &file) else { return };
    assert!(
        output.status.success() && fs::read(&public).unwrap() != b"of another key",
        "ssh-keygen doesn't ask"
    );
    run("rm", &["--", file.to_str().unwrap(), public.to_str().unwrap()]).unwrap();
    assert!(is_absent() && !file.exists());
}
