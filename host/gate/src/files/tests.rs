use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;

use super::*;
use crate::plan::tests::{at, command, write};
use host_target::Overrides;

const ID: &str = "0123456789abcdef";

/// A directory that root's rights may pass where the tests run as root.
fn directory() -> tempfile::TempDir {
    match rustix::process::geteuid().is_root() {
        true => tempfile::tempdir_in("/run"),
        false => tempfile::tempdir(),
    }
    .unwrap()
}

async fn expected_target() -> ExpectedTarget {
    ExpectedTarget::now(&target()).await
}

fn target() -> Target {
    Target::local(Overrides::default())
}

fn access() -> Access {
    Access { privilege: Privilege::Caller, verbs: Vec::new() }
}

async fn survey(path: &Path, action: &Action) -> Result<Site, Problem> {
    Site::survey(&target(), access(), path.to_str().unwrap(), action, (ID, 0), |_, _| Ok(())).await
}

fn writing(path: &Path, contents: &str) -> Action {
    write(path.to_str().unwrap(), contents).action
}

fn removing(path: &Path) -> Action {
    Action::Remove(at(path.to_str().unwrap()))
}

fn making(path: &Path) -> Action {
    let at = at(path.to_str().unwrap());
    Action::MakeDirectory(Directory { at, mode: 0o750, owner: None, group: None })
}

/// The files of a directory: names with modes, times and contents.
fn all(directory: &Path) -> Vec<(String, u32, i64, u64, Vec<u8>)> {
    let mut all: Vec<_> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| {
            let entry = entry.unwrap();
            let metadata = entry.metadata().unwrap();
            let contents = if metadata.is_file() { fs::read(entry.path()).unwrap() } else { Vec::new() };
            let name = entry.file_name().to_string_lossy().into_owned();
            (name, metadata.mode(), metadata.mtime_nsec() + metadata.mtime(), metadata.ino(), contents)
        })
        .collect();
    all.sort();
    all
}

#[tokio::test]
async fn what_a_step_did_is_taken_back_to_the_very_same_file() {
    let kept = directory();
    let directory = kept.path().canonicalize().unwrap();
    let (old, gone) = (directory.join("old"), directory.join("gone"));
    fs::write(&old, "before\n").unwrap();
    fs::set_permissions(&old, fs::Permissions::from_mode(0o4751)).unwrap();
    fs::write(&gone, "kept\n").unwrap();
    let before = all(&directory);
    let actions = [
        writing(&old, "after\n"),
        writing(&directory.join("new"), "new\n"),
        removing(&gone),
        making(&directory.join("made")),
    ];
    for action in actions {
        let path = action.path().unwrap().path.clone();
        let site = survey(Path::new(&path), &action).await.unwrap();
        site.apply(&target(), &action, None, &expected_target().await).await.unwrap();
        assert_ne!(all(&directory), before, "{path}");
        site.undo(&target(), &action).await.unwrap();
        assert_eq!(all(&directory), before, "{path}");
    }
}

#[tokio::test]
async fn a_file_keeps_its_mode_and_owner_and_a_new_one_gets_those_of_the_plan() {
    let kept = directory();
    let directory = kept.path().canonicalize().unwrap();
    let old = directory.join("old");
    fs::write(&old, "before\n").unwrap();
    fs::set_permissions(&old, fs::Permissions::from_mode(0o640)).unwrap();
    let is_root = rustix::process::geteuid().is_root();
    if is_root {
        std::os::unix::fs::chown(&old, Some(1), Some(2)).unwrap();
    }
    let owner = fs::metadata(&old).unwrap();
    for (mode, expected) in [(None, 0o640), (Some(0o600), 0o600)] {
        let mut action = writing(&old, "after\n");
        let Action::Write(write) = &mut action else { unreachable!() };
        write.mode = mode;
        let site = survey(&old, &action).await.unwrap();
        site.apply(&target(), &action, None, &expected_target().await).await.unwrap();
        site.tidy(&target()).await.unwrap();
        let now = fs::metadata(&old).unwrap();
        assert_eq!((now.mode() & 0o7777, now.uid(), now.gid()), (expected, owner.uid(), owner.gid()));
        assert_eq!(fs::read(&old).unwrap(), b"after\n");
        assert_eq!(all(&directory).len(), 1, "nothing is left over");
    }
    let new = directory.join("new");
    let action = writing(&new, "");
    let site = survey(&new, &action).await.unwrap();
    site.apply(&target(), &action, None, &expected_target().await).await.unwrap();
    site.tidy(&target()).await.unwrap();
    assert_eq!(fs::metadata(&new).unwrap().mode() & 0o7777, 0o644);
}

#[tokio::test]
async fn only_a_regular_file_of_one_name_is_written_to_or_removed() {
    let kept = directory();
    let directory = kept.path().canonicalize().unwrap();
    let path = |name: &str| directory.join(name);
    fs::write(path("file"), "x").unwrap();
    fs::write(path("one"), "x").unwrap();
    fs::hard_link(path("one"), path("two")).unwrap();
    symlink("file", path("link")).unwrap();
    symlink("nothing", path("dangling")).unwrap();
    fs::create_dir(path("directory")).unwrap();
    rustix::fs::mknodat(rustix::fs::CWD, path("pipe"), rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    let before = all(&directory);
    for (name, code) in [
        ("one", "HARD_LINK"),
        ("link", "SYMLINK"),
        ("dangling", "SYMLINK"),
        ("directory", "NOT_A_REGULAR_FILE"),
        ("pipe", "NOT_A_REGULAR_FILE"),
    ] {
        for action in [writing(&path(name), "y"), removing(&path(name))] {
            assert_eq!(survey(&path(name), &action).await.unwrap_err().code, code, "{name}");
        }
        assert_eq!(survey(&path(name), &making(&path(name))).await.unwrap_err().code, "FILE_EXISTS");
    }
    assert_eq!(survey(&path("none"), &removing(&path("none"))).await.unwrap_err().code, "FILE_NOT_FOUND");
    for name in [".previous", ".linux-sysadmin-00", "a/../file", "file/"] {
        let path = format!("{}/{name}", directory.display());
        let action = writing(Path::new(&path), "y");
        let refused = Site::survey(&target(), access(), &path, &action, (ID, 0), |_, _| Ok(())).await;
        assert_eq!(refused.unwrap_err().code, "INVALID_PATH", "{name}");
    }
    assert_eq!(all(&directory), before);
}

#[tokio::test]
async fn through_a_directory_of_somebody_elses_root_writes_nothing() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    for (mode, owner) in [(0o775, 0), (0o757, 0), (0o755, 1)] {
        let kept = directory();
        let shared = kept.path().canonicalize().unwrap().join("shared");
        fs::create_dir(&shared).unwrap();
        fs::set_permissions(&shared, fs::Permissions::from_mode(mode)).unwrap();
        std::os::unix::fs::chown(&shared, Some(owner), Some(2)).unwrap();
        let action = writing(&shared.join("file"), "x");
        assert_eq!(survey(&shared.join("file"), &action).await.unwrap_err().code, "UNTRUSTED_DIRECTORY");
    }
}

#[tokio::test]
async fn what_somebody_has_changed_since_is_left_alone() {
    let kept = directory();
    let directory = kept.path().canonicalize().unwrap();
    let (file, new) = (directory.join("file"), directory.join("new"));
    fs::write(&file, "before").unwrap();
    let (write, create) = (writing(&file, "after"), writing(&new, "after"));
    let site = survey(&file, &write).await.unwrap();
    let created = survey(&new, &create).await.unwrap();
    fs::write(&file, "theirs").unwrap();
    fs::write(&new, "theirs").unwrap();
    let before = all(&directory);
    assert_eq!(
        site.apply(&target(), &write, None, &expected_target().await).await.unwrap_err().code,
        "FILE_CHANGED"
    );
    assert_eq!(
        created.apply(&target(), &create, None, &expected_target().await).await.unwrap_err().code,
        "FILE_CHANGED"
    );
    assert_eq!(all(&directory), before);
}

#[tokio::test]
async fn a_file_that_is_not_valid_never_goes_live_and_is_named_as_it_would_be() {
    let kept = directory();
    let directory = kept.path().canonicalize().unwrap();
    let file = directory.join("file");
    fs::write(&file, "before").unwrap();
    let before = all(&directory);
    let action = writing(&file, "after");
    let site = survey(&file, &action).await.unwrap();
    let refused = site
        .apply(&target(), &action, Some(&command(&["grep", "before", "{}"])), &expected_target().await)
        .await;
    let refused = refused.unwrap_err();
    assert_eq!(refused.code, "VALIDATION_FAILED");
    let missing = command(&["cat", "{}", "/nonexistent"]);
    let refused = site.apply(&target(), &action, Some(&missing), &expected_target().await).await.unwrap_err();
    assert!(refused.message.contains("/nonexistent: No such file"), "{}", refused.message);
    assert_eq!(all(&directory), before);
    let option = command(&["grep", "--file={}", "/etc/passwd", "--invert-match"]);
    site.apply(&target(), &action, Some(&option), &expected_target().await).await.unwrap();
    assert_eq!(fs::read(&file).unwrap(), b"after");
}

#[tokio::test]
async fn a_directory_that_holds_something_by_now_stays() {
    let kept = directory();
    let made = kept.path().canonicalize().unwrap().join("made");
    let action = making(&made);
    let site = survey(&made, &action).await.unwrap();
    site.apply(&target(), &action, None, &expected_target().await).await.unwrap();
    assert_eq!(fs::metadata(&made).unwrap().mode() & 0o7777, 0o750);
    fs::write(made.join("theirs"), "x").unwrap();
    assert_eq!(site.undo(&target(), &action).await.unwrap_err().code, "DIRECTORY_NOT_EMPTY");
    assert!(made.join("theirs").exists());
}

#[tokio::test]
async fn with_other_rights_nothing_runs_that_no_grant_brings_along() {
    let kept = directory();
    let file = kept.path().canonicalize().unwrap().join("file");
    let root = Access { privilege: Privilege::Root, verbs: Vec::new() };
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let action = writing(&file, "x");
    let site =
        Site::survey(&target(), root, file.to_str().unwrap(), &action, (ID, 0), |_, _| Ok(())).await.unwrap();
    assert_eq!(
        site.apply(&target(), &action, None, &expected_target().await).await.unwrap_err().code,
        "CAPABILITY_DENIED"
    );
    assert!(!file.exists());
}
