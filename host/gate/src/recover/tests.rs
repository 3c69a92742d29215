use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use super::*;
use host_base::Privilege;
use host_base::sha256;
use host_target::Overrides;

/// A file of the change in a directory, as a killed server may have left it.
struct Case {
    directory: tempfile::TempDir,
    file: FileChange,
}

/// A directory that root's rights may pass where the tests run as root.
fn directory() -> tempfile::TempDir {
    match rustix::process::geteuid().is_root() {
        true => tempfile::tempdir_in("/run"),
        false => tempfile::tempdir(),
    }
    .unwrap()
}

impl Case {
    fn new(kind: FileChangeKind, existed: bool) -> Self {
        let directory = directory();
        let at = directory.path().canonicalize().unwrap();
        let file = FileChange {
            path: at.join("file").to_str().unwrap().to_owned(),
            staging: at.join(".linux-sysadmin-0123456789abcd00").to_str().unwrap().to_owned(),
            privilege: Privilege::Caller,
            existed,
            sha256_before: existed.then(|| sha256::of(b"before")),
            sha256_after: (kind == FileChangeKind::Write).then(|| sha256::of(b"after")),
            kind,
            to: None,
            before: None,
            after: None,
        };
        Self { directory, file }
    }

    fn path(&self) -> PathBuf {
        PathBuf::from(&self.file.path)
    }

    /// Writes the file, the new file beside it, and the former file beside it.
    fn with(self, file: Option<&str>, staged: Option<&str>, kept: Option<&str>) -> Self {
        let staging = Path::new(&self.file.staging);
        if let Some(contents) = file {
            fs::write(self.path(), contents).unwrap();
        }
        for (name, contents) in [("file", staged), (".previous", kept)] {
            if let Some(contents) = contents {
                fs::create_dir_all(staging).unwrap();
                fs::write(staging.join(name), contents).unwrap();
            }
        }
        self
    }

    /// Gives the former file both of its names.
    fn linked(self) -> Self {
        fs::hard_link(self.path(), Path::new(&self.file.staging).join(".previous")).unwrap();
        self
    }

    /// Makes an empty directory for copies.
    fn staged(self) -> Self {
        fs::create_dir_all(&self.file.staging).unwrap();
        self
    }

    async fn recover(&self, force: bool) -> Recovered {
        let begun = ChangeBegun { files: vec![self.file.clone()], ..host_audit::examples::begun("c1") };
        recover(self.directory.path(), &Target::local(Overrides::default()), &begun, force).await
    }

    /// The file's contents, and whether copies are left.
    fn now(&self) -> (Option<String>, bool) {
        (fs::read_to_string(self.path()).ok(), Path::new(&self.file.staging).exists())
    }
}

#[tokio::test]
async fn wherever_the_server_was_killed_the_file_is_as_before_and_no_copy_is_left() {
    use FileChangeKind::{Remove, Write};
    let (before, after) = (Some("before"), Some("after"));
    for (what, case, expected) in [
        ("a write that hadn't begun", Case::new(Write, true).with(before, None, None), before),
        ("a directory only", Case::new(Write, true).with(before, None, None).staged(), before),
        ("half a file", Case::new(Write, true).with(before, Some("af"), None), before),
        ("a link beside it", Case::new(Write, true).with(before, after, None).linked(), before),
        ("a write that was done", Case::new(Write, true).with(after, None, before), before),
        ("a new one that hadn't begun", Case::new(Write, false).with(None, None, None), None),
        ("a new one that was staged", Case::new(Write, false).with(None, after, None), None),
        ("a new one that was written", Case::new(Write, false).with(after, None, None).staged(), None),
        ("a removal that hadn't begun", Case::new(Remove, true).with(before, None, None).staged(), before),
        ("a removal that was done", Case::new(Remove, true).with(None, None, before), before),
        (
            "theirs, before the change came to it",
            Case::new(Write, true).with(Some("x"), None, None),
            Some("x"),
        ),
        (
            "theirs, while the new one was staged",
            Case::new(Write, true).with(Some("x"), after, None),
            Some("x"),
        ),
    ] {
        for time in ["the first time", "once more"] {
            let recovered = case.recover(false).await;
            assert_eq!(recovered.not_restored, Vec::<String>::new(), "{what}, {time}");
            assert_eq!(recovered.restored.len(), 1, "{what}, {time}");
            assert_eq!(case.now(), (expected.map(str::to_owned), false), "{what}, {time}");
        }
    }
}

#[tokio::test]
async fn what_somebody_has_changed_since_is_put_back_only_by_force() {
    use FileChangeKind::{Remove, Write};
    let theirs = Some("theirs");
    for (what, case, expected) in [
        ("a written one", Case::new(Write, true).with(theirs, None, Some("before")), Some("before")),
        (
            "a written one they removed",
            Case::new(Write, true).with(None, None, Some("before")),
            Some("before"),
        ),
        ("a removed one", Case::new(Remove, true).with(theirs, None, Some("before")), Some("before")),
        ("a new one", Case::new(Write, false).with(theirs, None, None).staged(), None),
        ("a new one of the same contents", Case::new(Write, false).with(Some("after"), None, None), None),
    ] {
        let before = case.now();
        let recovered = case.recover(false).await;
        assert!(recovered.restored.is_empty(), "{what}: {recovered:?}");
        assert!(recovered.not_restored[0].contains("--force"), "{what}: {recovered:?}");
        assert_eq!(case.now(), before, "{what}");
        let recovered = case.recover(true).await;
        assert_eq!(recovered.not_restored, Vec::<String>::new(), "{what}");
        assert_eq!(case.now(), (expected.map(str::to_owned), false), "{what}");
    }
}

#[tokio::test]
async fn without_its_copy_a_file_is_not_restored_and_that_is_said() {
    for (kind, now) in [(FileChangeKind::Write, Some("after")), (FileChangeKind::Remove, None)] {
        let case = Case::new(kind, true).with(now, None, None);
        for force in [false, true] {
            let recovered = case.recover(force).await;
            assert!(recovered.restored.is_empty());
            assert!(recovered.not_restored[0].contains("isn't in"), "{recovered:?}");
            assert_eq!(case.now().0.as_deref(), now);
        }
    }
}

#[tokio::test]
async fn the_very_file_comes_back_with_its_mode_and_times() {
    let case = Case::new(FileChangeKind::Write, true).with(Some("after"), None, Some("before"));
    let kept = Path::new(&case.file.staging).join(".previous");
    fs::set_permissions(&kept, fs::Permissions::from_mode(0o4751)).unwrap();
    let state = |path: &Path| {
        let metadata = fs::metadata(path).unwrap();
        (metadata.ino(), metadata.mode(), metadata.mtime(), metadata.mtime_nsec())
    };
    let before = state(&kept);
    case.recover(false).await;
    assert_eq!(state(&case.path()), before);
}

#[tokio::test]
async fn a_directory_is_removed_unless_it_holds_something() {
    let case = Case::new(FileChangeKind::MakeDirectory, false);
    assert_eq!(case.recover(false).await.restored.len(), 1, "it was never made");
    fs::create_dir(case.path()).unwrap();
    assert!(case.recover(false).await.restored[0].ends_with("is removed"));
    assert!(!case.path().exists());
    fs::create_dir(case.path()).unwrap();
    fs::write(case.path().join("theirs"), "").unwrap();
    for force in [false, true] {
        let recovered = case.recover(force).await;
        assert!(recovered.not_restored[0].contains("not empty"), "{recovered:?}");
    }
    assert!(case.path().join("theirs").exists());
}

#[tokio::test]
async fn copies_are_looked_for_beside_the_file_and_nowhere_else() {
    let mut case = Case::new(FileChangeKind::Write, true).with(Some("after"), None, Some("before"));
    let elsewhere = directory();
    let at = |name: &str| elsewhere.path().canonicalize().unwrap().join(name).to_str().unwrap().to_owned();
    let inside = format!("{}/deeper/.linux-sysadmin-00", case.directory.path().display());
    for staging in [at(".linux-sysadmin-0123456789abcd00"), at("x"), inside, String::new()] {
        case.file.staging = staging.clone();
        let recovered = case.recover(true).await;
        assert!(recovered.not_restored[0].contains("as the record says"), "{staging}: {recovered:?}");
        assert_eq!(fs::read_to_string(case.path()).unwrap(), "after");
    }
}

#[tokio::test]
async fn copies_of_a_change_that_stays_are_removed() {
    let case = Case::new(FileChangeKind::Write, true).with(Some("after"), None, Some("before"));
    let begun = ChangeBegun { files: vec![case.file.clone()], ..host_audit::examples::begun("c1") };
    let target = Target::local(Overrides::default());
    assert_eq!(remove_copies(&target, &begun).await.unwrap().concat(), case.file.staging);
    assert_eq!(case.now(), (Some("after".to_owned()), false));
    assert!(remove_copies(&target, &begun).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_directory_that_was_left_for_its_copies_goes_with_them() {
    let case = Case::new(FileChangeKind::RemoveDirectory, true);
    let target = Target::local(Overrides::default());
    let begun = || ChangeBegun {
        files: vec![FileChange { before: Some(attributes(&case.path())), ..case.file.clone() }],
        ..host_audit::examples::begun("c1")
    };
    fs::create_dir(case.path()).unwrap();
    let left = begun();
    // Somebody else has made another one of this name since.
    fs::rename(case.path(), case.path().with_file_name("away")).unwrap();
    fs::create_dir(case.path()).unwrap();
    assert!(remove_copies(&target, &left).await.unwrap().is_empty());
    assert!(case.path().exists());
    assert_eq!(remove_copies(&target, &begun()).await.unwrap(), [case.path().to_str().unwrap()]);
    assert!(!case.path().exists());
    assert!(remove_copies(&target, &left).await.unwrap().is_empty());
}

/// The attributes of what is at a path now.
fn attributes(path: &Path) -> FileAttributes {
    let metadata = fs::symlink_metadata(path).unwrap();
    let (owner, group) = (
        if metadata.uid() == 0 { "root" } else { "daemon" },
        if metadata.gid() == 0 { "root" } else { "bin" },
    );
    FileAttributes {
        is_directory: metadata.is_dir(),
        device: metadata.dev(),
        inode: metadata.ino(),
        mode: metadata.mode() & 0o7777,
        owner: owner.to_owned(),
        group: group.to_owned(),
    }
}

impl Case {
    /// The record of a move of the file, and the new path.
    fn moved(self) -> (Self, PathBuf) {
        let to = self.path().with_file_name("moved");
        let (before, to_text) = (Some(attributes(&self.path())), Some(to.to_str().unwrap().to_owned()));
        let file = FileChange { before, to: to_text, sha256_before: None, ..self.file.clone() };
        (Self { file, ..self }, to)
    }
}

#[tokio::test]
async fn what_was_moved_is_moved_back_unless_something_is_in_the_way() {
    let case = || Case::new(FileChangeKind::Move, true).with(Some("before"), None, None).moved();
    let says = |recovered: &Recovered, what: &str| {
        let said = recovered.restored.iter().chain(&recovered.not_restored).cloned().collect::<Vec<_>>();
        assert!(said.len() == 1 && said[0].contains(what), "{recovered:?}");
    };
    // The move never came, or it came.
    let (never, _) = case();
    says(&never.recover(false).await, "is as it was before");
    let (came, to) = case();
    fs::rename(came.path(), &to).unwrap();
    says(&came.recover(false).await, "is moved back");
    assert!(!to.exists());
    says(&came.recover(false).await, "is as it was before");
    assert_eq!(came.now().0.as_deref(), Some("before"));
    // Somebody has put another file there, or in its old place.
    let (replaced, to) = case();
    fs::rename(replaced.path(), to.with_file_name("away")).unwrap();
    fs::write(&to, "theirs").unwrap();
    let recovered = replaced.recover(false).await;
    says(&recovered, "--force");
    assert_eq!(recovered.not_restored.len(), 1);
    says(&replaced.recover(true).await, "is moved back");
    let (taken, to) = case();
    fs::rename(taken.path(), &to).unwrap();
    fs::write(taken.path(), "theirs").unwrap();
    for force in [false, true] {
        let recovered = taken.recover(force).await;
        says(&recovered, "something else is there by now");
        assert_eq!(recovered.not_restored.len(), 1);
        assert_eq!(fs::read_to_string(&to).unwrap(), "before");
    }
    let (gone, _) = case();
    fs::remove_file(gone.path()).unwrap();
    for force in [false, true] {
        let recovered = gone.recover(force).await;
        says(&recovered, "somebody has moved or removed it");
        assert_eq!(recovered.not_restored.len(), 1);
    }
}

#[tokio::test]
async fn the_former_attributes_are_set_again_however_far_the_change_came() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let mut case = Case::new(FileChangeKind::SetAttributes, true).with(Some("x"), None, None);
    let path = case.path();
    let set = |mode: u32, owner: u32| {
        std::os::unix::fs::chown(&path, Some(owner), None).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    };
    set(0o4755, 0);
    let before = attributes(&path);
    case.file.before = Some(before.clone());
    case.file.after = Some(FileAttributes { mode: 0o640, owner: "daemon".to_owned(), ..before.clone() });
    for (mode, owner, is_ours) in [
        (0o4755, 0, true),
        (0o755, 1, true),
        (0o640, 1, true),
        // The recovery was killed between its commands.
        (0o640, 0, true),
        (0o777, 1, false),
        (0o640, 2, false),
    ] {
        set(mode, owner);
        let recovered = case.recover(false).await;
        assert_eq!(recovered.not_restored.is_empty(), is_ours, "{mode:o} {owner}: {recovered:?}");
        if !is_ours {
            assert!(recovered.not_restored[0].contains("--force"), "{recovered:?}");
            assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, mode);
            assert!(case.recover(true).await.not_restored.is_empty());
        }
        assert_eq!(attributes(&path), before);
    }
    // Another file by the same name.
    fs::write(path.with_file_name("other"), "").unwrap();
    fs::rename(path.with_file_name("other"), &path).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    assert!(case.recover(false).await.not_restored[0].contains("--force"));
    fs::remove_file(&path).unwrap();
    assert!(case.recover(true).await.not_restored[0].contains("isn't there any more"));
}

#[tokio::test]
async fn a_removed_directory_is_made_again() {
    let mut case = Case::new(FileChangeKind::RemoveDirectory, true);
    fs::create_dir(case.path()).unwrap();
    fs::set_permissions(case.path(), fs::Permissions::from_mode(0o751)).unwrap();
    let target = Target::local(Overrides::default());
    let located =
        target.locate(vec![case.file.path.clone()], &access(&case.file).unwrap()).await.remove(0).unwrap();
    let metadata = located.found.unwrap().metadata;
    case.file.before = Some(FileAttributes {
        is_directory: true,
        device: metadata.device,
        inode: metadata.inode,
        mode: metadata.mode,
        owner: metadata.owner,
        group: metadata.group,
    });
    let mode = || fs::metadata(case.path()).unwrap().mode() & 0o7777;
    assert!(case.recover(false).await.restored[0].ends_with("is there, as before"));
    fs::remove_dir(case.path()).unwrap();
    assert!(case.recover(false).await.restored[0].ends_with("is made again"));
    assert_eq!(mode(), 0o751);
    fs::set_permissions(case.path(), fs::Permissions::from_mode(0o700)).unwrap();
    assert!(case.recover(false).await.not_restored[0].contains("--force"));
    assert_eq!(mode(), 0o700);
    assert_eq!(case.recover(true).await.restored.len(), 1);
    assert_eq!(mode(), 0o751);
    fs::remove_dir(case.path()).unwrap();
    fs::write(case.path(), "theirs").unwrap();
    assert!(case.recover(true).await.not_restored[0].contains("something else"));
    assert_eq!(case.now().0.as_deref(), Some("theirs"));
}

#[tokio::test]
async fn a_record_that_lacks_what_was_before_restores_nothing() {
    for kind in [FileChangeKind::SetAttributes, FileChangeKind::RemoveDirectory] {
        let case = Case::new(kind, true).with(Some("x"), None, None);
        assert!(case.recover(true).await.not_restored[0].contains("doesn't say"));
    }
    let mut case = Case::new(FileChangeKind::Move, true).with(Some("x"), None, None);
    case.file.to = Some("/etc/../x".to_owned());
    assert!(case.recover(true).await.not_restored[0].contains("as the record says"));
}
