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
