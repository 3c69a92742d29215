use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use super::contents::{LARGEST, PIECE};
use super::*;
use crate::plan::Directory;
use crate::plan::tests::{at, command, moving, removing_directory, setting, write};
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

/// A directory, kept by the first value, with an empty file and an empty directory in it.
fn file_and_tree() -> (tempfile::TempDir, PathBuf, PathBuf, PathBuf) {
    let kept = directory();
    let directory = kept.path().canonicalize().unwrap();
    let (file, tree) = (directory.join("file"), directory.join("tree"));
    fs::write(&file, "").unwrap();
    fs::create_dir(&tree).unwrap();
    (kept, directory, file, tree)
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
    Site::survey(&target(), access(), path.to_str().unwrap(), action, (ID, 0), |_, _, _| Ok(())).await
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
        assert_eq!(survey(&path(name), &writing(&path(name), "y")).await.unwrap_err().code, code, "{name}");
        // A link itself may go.
        let removed = survey(&path(name), &removing(&path(name))).await;
        let code = (code != "SYMLINK").then_some(code);
        assert_eq!(removed.err().map(|problem| problem.code).as_deref(), code, "{name}");
        assert_eq!(survey(&path(name), &making(&path(name))).await.unwrap_err().code, "FILE_EXISTS");
    }
    assert_eq!(survey(&path("none"), &removing(&path("none"))).await.unwrap_err().code, "FILE_NOT_FOUND");
    for name in [".previous", ".linux-sysadmin-00", "a/../file", "file/"] {
        let path = format!("{}/{name}", directory.display());
        let action = writing(Path::new(&path), "y");
        let refused = Site::survey(&target(), access(), &path, &action, (ID, 0), |_, _, _| Ok(())).await;
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
async fn a_link_is_removed_itself_and_the_same_one_is_put_back() {
    let kept = directory();
    let directory = kept.path().canonicalize().unwrap();
    fs::write(directory.join("file"), "kept").unwrap();
    for leads_to in ["file", "nothing", "/etc", "."] {
        let link = directory.join("link");
        symlink(leads_to, &link).unwrap();
        let inode = || fs::symlink_metadata(&link).map(|link| link.ino()).ok();
        let before = inode();
        let action = removing(&link);
        let site = survey(&link, &action).await.unwrap();
        assert_eq!(site.link_target(), Some(leads_to.as_bytes()));
        apply(&site, &action).await.unwrap();
        assert_eq!((inode(), fs::read(directory.join("file")).unwrap()), (None, b"kept".to_vec()));
        site.undo(&target(), &action).await.unwrap();
        assert_eq!((inode(), fs::read_link(&link).unwrap().to_str()), (before, Some(leads_to)));
        // Another link, or a file, that came since stays.
        for theirs in [Some("theirs"), None] {
            fs::remove_file(&link).unwrap();
            match theirs {
                Some(leads_to) => symlink(leads_to, &link).unwrap(),
                None => fs::write(&link, "theirs").unwrap(),
            }
            assert_eq!(apply(&site, &action).await.unwrap_err().code, "FILE_CHANGED", "{leads_to}");
            assert!(inode().is_some(), "{leads_to}");
        }
        fs::remove_file(&link).unwrap();
    }
    assert_eq!(all(&directory).len(), 1, "nothing is left over");
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
    let site = Site::survey(&target(), root, file.to_str().unwrap(), &action, (ID, 0), |_, _, _| Ok(()))
        .await
        .unwrap();
    assert_eq!(
        site.apply(&target(), &action, None, &expected_target().await).await.unwrap_err().code,
        "CAPABILITY_DENIED"
    );
    assert!(!file.exists());
}

/// Whether this account may change attributes in the tests' directories, and their file system renames directories.
async fn is_fit() -> bool {
    let mounts = crate::mounts::Mounts::read(&target()).await.unwrap();
    rustix::process::geteuid().is_root() && mounts.renames_directories("/run")
}

fn name(path: &Path) -> &str {
    path.to_str().unwrap()
}

async fn apply(site: &Site, action: &Action) -> Result<(), Problem> {
    site.apply(&target(), action, None, &expected_target().await).await
}

#[tokio::test]
async fn what_is_moved_or_set_is_put_back_as_it_was() {
    if !is_fit().await {
        return;
    }
    let kept = directory();
    let directory = kept.path().canonicalize().unwrap();
    let (file, tree, elsewhere) =
        (directory.join("file"), directory.join("tree"), directory.join("elsewhere"));
    fs::write(&file, "before\n").unwrap();
    for directory in [&tree, &elsewhere] {
        fs::create_dir(directory).unwrap();
        fs::set_permissions(directory, fs::Permissions::from_mode(0o2755)).unwrap();
    }
    fs::write(tree.join("inside"), "kept\n").unwrap();
    let everything = || (all(&directory), all(&tree), all(&elsewhere));
    let before = everything();
    for (path, after, action) in [
        (&file, directory.join("moved"), moving(name(&file), name(&directory.join("moved")))),
        (&file, elsewhere.join("moved"), moving(name(&file), name(&elsewhere.join("moved")))),
        (&tree, elsewhere.join("moved"), moving(name(&tree), name(&elsewhere.join("moved")))),
        (&file, file.clone(), setting(name(&file), Some(0o600), None, None)),
        (&file, file.clone(), setting(name(&file), Some(0o4711), Some("daemon"), Some("bin"))),
        (&tree, tree.clone(), setting(name(&tree), Some(0o1700), None, Some("bin"))),
    ] {
        let action = action.action;
        let site = survey(path, &action).await.unwrap();
        let was = fs::metadata(path).unwrap();
        apply(&site, &action).await.unwrap();
        let now = fs::metadata(&after).unwrap();
        assert_eq!((now.ino(), now.mtime_nsec()), (was.ino(), was.mtime_nsec()), "{action:?}");
        assert_eq!(path.exists(), *path == after, "{action:?}");
        if let Action::SetAttributes(attributes) = &action {
            assert_eq!(Some(now.mode() & 0o7777), attributes.mode);
            assert_eq!(now.uid() == 1, attributes.owner.is_some());
            assert_eq!(now.gid() == 2, attributes.group.is_some());
        }
        site.undo(&target(), &action).await.unwrap();
        let (mut left, mut expected) = (everything(), before.clone());
        // A directory has a new time where something has come and gone.
        for (all, ..) in [&mut left, &mut expected] {
            all.iter_mut().filter(|(name, ..)| name == "elsewhere").for_each(|entry| entry.2 = 0);
        }
        assert_eq!(left, expected, "{action:?}");
    }
}

#[tokio::test]
async fn a_new_owner_takes_the_set_id_bits_away_and_they_come_back_with_the_former_one() {
    if !is_fit().await {
        return;
    }
    let kept = directory();
    let file = kept.path().canonicalize().unwrap().join("file");
    fs::write(&file, "").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o4755)).unwrap();
    let action = setting(name(&file), None, Some("daemon"), None).action;
    let site = survey(&file, &action).await.unwrap();
    apply(&site, &action).await.unwrap();
    let rights = || fs::metadata(&file).map(|now| (now.mode() & 0o7777, now.uid(), now.gid())).unwrap();
    assert_eq!(rights(), (0o755, 1, 0));
    site.undo(&target(), &action).await.unwrap();
    assert_eq!(rights(), (0o4755, 0, 0));
    // What somebody else has set since stays.
    apply(&site, &action).await.unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o700)).unwrap();
    assert_eq!(site.undo(&target(), &action).await.unwrap_err().code, "FILE_CHANGED");
    assert_eq!(rights(), (0o700, 1, 0));
    // The step itself isn't taken then, either.
    assert_eq!(apply(&site, &action).await.unwrap_err().code, "FILE_CHANGED");
}

#[tokio::test]
async fn a_removed_directory_is_made_again_with_mode_owner_and_group() {
    let kept = directory();
    let directory = kept.path().canonicalize().unwrap();
    let removed = directory.join("removed");
    for mode in [0o750, 0o3771] {
        fs::create_dir(&removed).unwrap();
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::chown(&removed, Some(1), Some(2)).unwrap();
        }
        fs::set_permissions(&removed, fs::Permissions::from_mode(mode)).unwrap();
        let rights =
            || fs::metadata(&removed).map(|now| (now.mode() & 0o7777, now.uid(), now.gid())).unwrap();
        let before = rights();
        let action = removing_directory(name(&removed)).action;
        let site = survey(&removed, &action).await.unwrap();
        apply(&site, &action).await.unwrap();
        assert!(all(&directory).is_empty());
        site.undo(&target(), &action).await.unwrap();
        assert_eq!(rights(), before);
        assert_eq!(site.undo(&target(), &action).await.unwrap_err().code, "FILE_CHANGED");
        // A name that comes after the plan was made keeps the directory.
        let site = survey(&removed, &action).await.unwrap();
        fs::write(removed.join("theirs"), "").unwrap();
        // Within the same second, only rmdir notices.
        let refused = apply(&site, &action).await.unwrap_err().code;
        assert!(["FILE_CHANGED", "DIRECTORY_NOT_EMPTY"].contains(&refused.as_str()), "{refused}");
        assert_eq!(site.remove_when_empty(&target()).await.unwrap_err().code, "DIRECTORY_NOT_EMPTY");
        let mut site = survey(&removed, &action).await.unwrap();
        let refused = site.check_emptied(&target(), &[]).await.unwrap_err();
        assert_eq!(refused.code, "DIRECTORY_NOT_EMPTY");
        assert!(refused.message.contains("holds theirs"), "{refused}");
        fs::remove_dir_all(&removed).unwrap();
    }
}

#[tokio::test]
async fn what_is_no_plain_file_or_directory_is_neither_moved_nor_changed() {
    let kept = directory();
    let directory = kept.path().canonicalize().unwrap();
    let path = |name: &str| directory.join(name).to_str().unwrap().to_owned();
    fs::write(path("file"), "x").unwrap();
    fs::write(path("one"), "x").unwrap();
    fs::hard_link(path("one"), path("two")).unwrap();
    symlink("file", path("link")).unwrap();
    fs::create_dir(path("directory")).unwrap();
    rustix::fs::mknodat(rustix::fs::CWD, path("pipe"), rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    let before = all(&directory);
    let of = |name: &str| {
        let path = path(name);
        [
            moving(&path, &format!("{path}-moved")).action,
            setting(&path, Some(0o600), None, None).action,
            removing_directory(&path).action,
        ]
    };
    for (name, codes) in [
        ("one", ["HARD_LINK", "HARD_LINK", "NOT_A_DIRECTORY"]),
        ("link", ["SYMLINK"; 3]),
        ("pipe", ["NOT_A_REGULAR_FILE"; 3]),
        ("none", ["FILE_NOT_FOUND"; 3]),
        ("file/", ["INVALID_PATH"; 3]),
        (".linux-sysadmin-00", ["INVALID_PATH"; 3]),
    ] {
        for (action, code) in of(name).iter().zip(codes) {
            let path = &action.path().unwrap().path;
            assert_eq!(survey(Path::new(path), action).await.unwrap_err().code, code, "{action:?}");
        }
    }
    for (from, to, code) in [
        ("file", path("one"), "FILE_EXISTS"),
        ("file", path("directory"), "FILE_EXISTS"),
        ("file", path("link"), "FILE_EXISTS"),
        ("directory", path("directory/inside"), "MOVE_INTO_ITSELF"),
        ("file", path(".previous"), "INVALID_PATH"),
        ("file", path("a/../b"), "INVALID_PATH"),
    ] {
        let action = moving(&path(from), &to).action;
        assert_eq!(survey(Path::new(&path(from)), &action).await.unwrap_err().code, code, "{from} {to}");
    }
    if is_fit().await {
        for (action, code) in [
            (moving(&path("file"), "/proc/lsa-x").action, "OTHER_FILE_SYSTEM"),
            (moving("/proc", "/lsa-x").action, "MOUNT_POINT"),
            (removing_directory("/proc").action, "MOUNT_POINT"),
        ] {
            let at = action.path().unwrap().path.clone();
            assert_eq!(survey(Path::new(&at), &action).await.unwrap_err().code, code, "{action:?}");
        }
    }
    assert_eq!(all(&directory), before);
}

#[tokio::test]
async fn where_others_could_put_a_link_no_attributes_are_set_and_nothing_is_moved_by_root() {
    let kept = directory();
    let shared = kept.path().canonicalize().unwrap().join("shared");
    fs::create_dir(&shared).unwrap();
    fs::set_permissions(&shared, fs::Permissions::from_mode(0o777)).unwrap();
    fs::write(shared.join("file"), "").unwrap();
    fs::create_dir(shared.join("directory")).unwrap();
    let file = shared.join("file");
    let action = setting(name(&file), Some(0o644), None, None).action;
    assert_eq!(survey(&file, &action).await.unwrap_err().code, "UNTRUSTED_DIRECTORY");
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let own = kept.path().canonicalize().unwrap().join("own");
    fs::write(&own, "").unwrap();
    for action in [
        moving(name(&file), name(&kept.path().canonicalize().unwrap().join("moved"))).action,
        moving(name(&own), name(&shared.join("moved"))).action,
        removing_directory(name(&shared.join("directory"))).action,
    ] {
        let at = action.path().unwrap().path.clone();
        assert_eq!(survey(Path::new(&at), &action).await.unwrap_err().code, "UNTRUSTED_DIRECTORY", "{at}");
    }
}

#[tokio::test]
async fn a_move_overwrites_nothing_and_takes_nothing_else_along() {
    let kept = directory();
    let directory = kept.path().canonicalize().unwrap();
    let (file, moved, other) = (directory.join("file"), directory.join("moved"), directory.join("other"));
    let action = moving(name(&file), name(&moved)).action;
    fs::write(&file, "ours").unwrap();
    let site = survey(&file, &action).await.unwrap();
    fs::write(&moved, "theirs").unwrap();
    let before = all(&directory);
    assert_eq!(apply(&site, &action).await.unwrap_err().code, "FILE_CHANGED");
    // Somebody is faster than the last look.
    assert_eq!(site.move_there(&target()).await.unwrap_err().code, "FILE_EXISTS");
    assert_eq!(all(&directory), before);
    fs::remove_file(&moved).unwrap();
    fs::rename(&file, &other).unwrap();
    fs::write(&file, "theirs").unwrap();
    let before = all(&directory);
    assert_eq!(apply(&site, &action).await.unwrap_err().code, "FILE_CHANGED");
    assert_eq!(site.move_there(&target()).await.unwrap_err().code, "FILE_CHANGED");
    assert_eq!(all(&directory), before);
    // Neither does its undo.
    fs::rename(&other, &file).unwrap();
    apply(&site, &action).await.unwrap();
    fs::write(&file, "theirs").unwrap();
    assert_eq!(site.undo(&target(), &action).await.unwrap_err().code, "FILE_CHANGED");
    fs::remove_file(&file).unwrap();
    fs::rename(&moved, &other).unwrap();
    fs::write(&moved, "theirs").unwrap();
    let before = all(&directory);
    assert_eq!(site.undo(&target(), &action).await.unwrap_err().code, "FILE_CHANGED");
    assert_eq!(all(&directory), before);
}

#[tokio::test]
async fn a_large_file_is_moved_although_it_is_not_read_whole() {
    let kept = directory();
    let file = kept.path().canonicalize().unwrap().join("file");
    let moved = file.with_file_name("moved");
    fs::write(&file, vec![b'x'; LARGEST + 2 * PIECE as usize]).unwrap();
    let action = moving(name(&file), name(&moved)).action;
    let site = survey(&file, &action).await.unwrap();
    assert_eq!(site.sha256(), None);
    apply(&site, &action).await.unwrap();
    assert!(moved.exists());
    assert_eq!(survey(&moved, &removing(&moved)).await.unwrap_err().code, "FILE_TOO_LARGE");
}

#[tokio::test]
async fn what_no_grant_brings_along_is_refused_before_anything_is_shown() {
    if !is_fit().await {
        return;
    }
    let (_kept, directory, file, tree) = file_and_tree();
    for action in [
        moving(name(&file), name(&directory.join("moved"))).action,
        setting(name(&file), Some(0o600), None, None).action,
        removing_directory(name(&tree)).action,
    ] {
        let at = action.path().unwrap().path.clone();
        let root = Access { privilege: Privilege::Root, verbs: Vec::new() };
        let refused = Site::survey(&target(), root, &at, &action, (ID, 0), |_, _, _| Ok(())).await;
        assert_eq!(refused.unwrap_err().code, "CAPABILITY_DENIED", "{action:?}");
    }
}

#[tokio::test]
async fn the_target_itself_would_undo_by_the_same_commands() {
    if !is_fit().await {
        return;
    }
    let (_kept, directory, file, tree) = file_and_tree();
    fs::set_permissions(&tree, fs::Permissions::from_mode(0o2750)).unwrap();
    let (at, moved) = (directory.display(), directory.join("moved"));
    for (action, expected) in [
        (
            moving(name(&file), name(&moved)),
            vec![format!("mv --no-clobber --no-target-directory -- {at}/moved {at}/file")],
        ),
        (
            setting(name(&file), Some(0o600), Some("daemon"), None),
            vec![
                format!("chown --no-dereference -- root:root {at}/file"),
                format!("chmod -- 0644 {at}/file"),
            ],
        ),
        (
            removing_directory(name(&tree)),
            vec![
                format!("mkdir --mode=2750 -- {at}/tree"),
                format!("chown --no-dereference -- root:root {at}/tree"),
                format!("chmod -- u=rwx,g=rxs,o=,u-s,o-t {at}/tree"),
                format!("restorecon -- {at}/tree"),
            ],
        ),
    ] {
        let action = action.action;
        let site = survey(Path::new(&action.path().unwrap().path), &action).await.unwrap();
        let commands = site.undo_by_target(&action, true).into_iter();
        assert_eq!(commands.map(|(argv, _)| argv.join(" ")).collect::<Vec<_>>(), expected);
    }
}
