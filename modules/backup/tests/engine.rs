//! The engine with the real rsync, in directories of its own. Each test says so and ends where rsync is missing.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod place;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use place::{Place, difference, give_away, is_root, odd_files, of_each_shell, place, ran, skipped};

#[test]
fn a_tree_comes_back_as_it_was_by_every_shell() {
    for place in of_each_shell(place) {
        let source = place.path("source");
        odd_files(&source);
        give_away(&source.join("-rf"));
        let first = place.create(&["--label=one"]);
        fs::write(source.join("[x]*?"), "longer than before").unwrap();
        let second = place.create(&[]);
        let inode = |id: &str, name: &str| fs::metadata(place.backed_up(id, name)).unwrap().ino();
        assert_eq!(inode(&first, "sparse"), inode(&second, "sparse"), "what didn't change is linked");
        assert_ne!(inode(&first, "[x]*?"), inode(&second, "[x]*?"));
        assert_eq!(inode(&second, "-rf"), inode(&second, "empty/hard => link"));
        assert!(fs::metadata(place.backed_up(&second, "sparse")).unwrap().blocks() < 100);

        let verified = place.verify(&second);
        for kind in ["corrupt", "missing", "changed", "extra", "new"] {
            assert_eq!(verified.value(kind), "0", "{}", verified.out);
        }
        let target = format!("--target={}", place.at("restored"));
        place.at_destination("restore", &[&target, "--", &second]).good();
        let restored = place.path("restored").join(place.at("source").trim_start_matches('/'));
        assert_eq!(difference(&source, &restored), "", "{:?}", place.shell);
        assert!(fs::metadata(restored.join("sparse")).unwrap().blocks() < 100);
        let manifest = fs::read_to_string(place.path("destination").join(&second).join("manifest")).unwrap();
        assert!(
            manifest.is_ascii()
                && manifest.contains("/new\\#012line\n")
                && manifest.contains("/\\#377\\#376\n")
        );
        assert!(manifest.contains(" tree/") && manifest.contains("/tab\tx \\#134#041\n"), "{manifest}");
    }
}

#[test]
fn checksums_are_those_of_the_files_whether_copied_linked_or_found_there() {
    let Some(place) = place() else { return };
    place.fake_ssh();
    let source = place.path("source");
    for number in 0..30 {
        fs::write(source.join(format!("file {number}")), format!("contents {number}")).unwrap();
    }
    fs::hard_link(source.join("file 1"), source.join("a link")).unwrap();
    let destination = format!("--destination=rsync://backuphost:{}", place.at("destination"));
    // A path on another host has no blanks.
    let plain = tempfile::tempdir_in("/var/tmp").unwrap();
    let destination = destination.replace(&place.at("destination"), plain.path().to_str().unwrap());
    let create =
        || place.run(&["create", &destination, "--", &place.at("source")]).good().value("id").to_owned();
    let checked = |id: &str| {
        let manifest = fs::read_to_string(plain.path().join(id).join("manifest")).unwrap();
        let files = manifest.lines().filter_map(|line| {
            let words: Vec<_> = line.splitn(8, ' ').collect();
            (words[0] == "f").then(|| (words[7].to_owned(), words[1].to_owned()))
        });
        let files: Vec<_> = files.collect();
        assert_eq!(files.len(), 31, "{manifest}");
        for (path, sum) in files {
            let text = ran(Command::new("md5sum").arg(plain.path().join(id).join(&path))).good().out;
            assert!(text.starts_with(&format!("{sum} ")), "{path} {sum} {text}");
        }
    };
    let first = create();
    checked(&first);
    fs::write(source.join("file 3"), "other contents").unwrap();
    let second = create();
    checked(&second);
    // As an interrupted run leaves it.
    let begun = plain.path().join(format!(".incomplete-{second}"));
    fs::rename(plain.path().join(&second), &begun).unwrap();
    fs::remove_dir_all(plain.path().join(&first)).unwrap();
    fs::write(begun.join("request"), format!("path={}\n", place.at("source"))).unwrap();
    fs::write(source.join("file 4"), "again other contents").unwrap();
    let third = place.run(&["create", &destination, "--", &place.at("source")]).good();
    assert_eq!(third.value("new_files"), "1");
    assert!(third.value("note").contains("interrupted"), "{}", third.out);
    checked(third.value("id"));
    let verified = place.run(&["verify", &destination, "--", third.value("id")]).good();
    assert_eq!((verified.value("corrupt"), verified.value("changed")), ("0", "0"), "{}", verified.out);
}

#[test]
fn what_did_not_change_is_not_read_again() {
    // rsync's order is the one of the manifest before, unless that one was put together from parts.
    for is_reversed in [false, true] {
        let Some(place) = place() else { return };
        let source = place.path("source");
        for name in ["a", "b", "c", "d"] {
            fs::write(source.join(name), format!("contents of {name}")).unwrap();
        }
        let manifest = |id: &str| place.path("destination").join(id).join("manifest");
        let first = place.create(&[]);
        let mut lines: Vec<String> =
            fs::read_to_string(manifest(&first)).unwrap().lines().map(|line| format!("{line}\n")).collect();
        if is_reversed {
            lines.reverse();
            fs::write(manifest(&first), lines.concat()).unwrap();
        }
        fs::set_permissions(source.join("a"), fs::Permissions::from_mode(0o600)).unwrap();
        fs::remove_file(source.join("b")).unwrap();
        fs::write(source.join("new"), "new").unwrap();
        for (name, link) in [("c", "z of c"), ("new", "z of new")] {
            fs::hard_link(source.join(name), source.join(link)).unwrap();
        }
        place.program("rsync", &format!("echo \"$*\" >>'{}'; exec /usr/bin/rsync \"$@\"", place.at("ran")));
        let second = place.create(&[]);
        let ran = fs::read_to_string(place.path("ran")).unwrap();
        assert!(ran.contains(" -ii ") && !ran.contains("--dry-run"), "{ran}");
        let text = fs::read_to_string(manifest(&second)).unwrap();
        let sum = |of: &str, name: &str| {
            let line = of.lines().find(|line| line.ends_with(&format!("/source/{name}"))).unwrap();
            line.split(' ').nth(1).unwrap().to_owned()
        };
        for name in ["a", "c", "d"] {
            assert_eq!(sum(&text, name), sum(&lines.concat(), name), "{name}");
        }
        assert_eq!(sum(&text, "z of c"), sum(&text, "c"));
        assert_eq!(sum(&text, "z of new"), sum(&text, "new"));
        let verified = place.verify(&second);
        for kind in ["corrupt", "missing", "changed", "extra", "new"] {
            assert_eq!(verified.value(kind), "0", "{}", verified.out);
        }
    }
}

#[test]
fn an_account_that_is_not_root_keeps_owners_as_attributes() {
    let Some(place) = place() else { return };
    if !is_root() {
        skipped("needs root");
        return;
    }
    place.fake_ssh();
    place.program("id", "[ \"$1\" = -u ] && echo 1000");
    let plain = tempfile::tempdir_in("/var/tmp").unwrap();
    let source = place.path("source");
    odd_files(&source);
    std::os::unix::fs::chown(source.join("-rf"), Some(12345), Some(54321)).unwrap();
    let destination = format!("--destination=sftp://keeper@backuphost:2222{}", plain.path().display());
    let id = place.run(&["create", &destination, "--", &place.at("source")]).good().value("id").to_owned();
    let kept =
        plain.path().join(&id).join("tree").join(place.at("source").trim_start_matches('/')).join("-rf");
    assert_eq!(fs::metadata(kept).unwrap().uid(), 0, "the account can't give files away");
    let verified = place.run(&["verify", &destination, "--", &id]).good();
    assert_eq!((verified.value("corrupt"), verified.value("changed")), ("0", "0"), "{}", verified.out);
    let target = format!("--target={}", place.at("restored"));
    place.run(&["restore", &destination, &target, "--", &id]).good();
    let restored = place.path("restored").join(place.at("source").trim_start_matches('/'));
    assert_eq!(difference(&source, &restored), "");
    let unknown = place.run(&["list", "--destination=rsync://elsewhere/srv"]);
    assert_eq!(unknown.code(), "DESTINATION_UNREACHABLE");
    assert!(unknown.error.contains("Could not resolve hostname elsewhere"), "{}", unknown.error);
    let missing = place.run(&["list", "--destination=rsync://backuphost/var/tmp/none"]);
    assert_eq!(missing.code(), "DESTINATION_NOT_FOUND");
}

#[test]
fn a_killed_backup_is_never_good_and_the_next_one_goes_on() {
    let Some(place) = place() else { return };
    let source = place.path("source");
    for number in 0..40 {
        fs::write(source.join(format!("{number:02}")), vec![number; 100_000]).unwrap();
    }
    place.program("rsync", "case \" $* \" in *' -ii '*) exec /usr/bin/rsync --bwlimit=1000 \"$@\" ;; esac; exec /usr/bin/rsync \"$@\"");
    let mut child = place
        .command(&[
            "create",
            &format!("--destination={}", place.at("destination")),
            "--",
            &place.at("source"),
        ])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .unwrap();
    let begun = Instant::now();
    let incomplete = loop {
        let found = place.destination_names().into_iter().find(|name| name.starts_with(".incomplete-"));
        let copied = found.as_ref().and_then(|name| fs::read_dir(place.backed_up(name, "")).ok());
        if copied.is_some_and(|files| files.count() > 3) {
            break found.unwrap();
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "nothing was copied");
        std::thread::sleep(Duration::from_millis(20));
    };
    ran(Command::new("kill").args(["-KILL", "--", &format!("-{}", child.id())])).good();
    child.wait().unwrap();
    let listed = place.at_destination("list", &[]).good();
    assert_eq!(listed.out, format!("incomplete {incomplete}\n"));
    let id = incomplete.strip_prefix(".incomplete-").unwrap();
    assert_eq!(place.at_destination("verify", &["--", id]).code(), "BACKUP_NOT_FOUND");

    fs::remove_file(place.path("bin/rsync")).unwrap();
    fs::remove_file(source.join("00")).unwrap();
    let again = place.at_destination("create", &["--", &place.at("source")]).good();
    assert!(again.value("new_files").parse::<u32>().unwrap() < 39, "{}", again.out);
    let verified = place.verify(again.value("id"));
    assert_eq!(
        (verified.value("corrupt"), verified.value("missing"), verified.value("extra")),
        ("0", "0", "0")
    );
    assert_eq!(place.destination_names(), [again.value("id")]);
    // Another request doesn't go on from there.
    let left = format!(".incomplete-{}", again.value("id"));
    fs::rename(place.path("destination").join(again.value("id")), place.path("destination").join(left))
        .unwrap();
    place.create(&["--exclude=*1"]);
    assert_eq!(place.destination_names().len(), 1);
}

#[test]
fn corrupt_changed_and_missing_are_told_apart() {
    let Some(place) = place() else { return };
    let source = place.path("source");
    for name in ["flipped", "edited", "deleted", "touched", "gone", "same"] {
        fs::write(source.join(name), format!("contents of {name}")).unwrap();
    }
    let id = place.create(&["--exclude=*.log"]);
    let flipped = place.backed_up(&id, "flipped");
    let times = fs::metadata(&flipped).unwrap().modified().unwrap();
    fs::write(&flipped, "Contents of flipped").unwrap();
    fs::File::options().write(true).open(&flipped).unwrap().set_modified(times).unwrap();
    fs::remove_file(place.backed_up(&id, "gone")).unwrap();
    fs::write(place.backed_up(&id, "planted"), "").unwrap();
    fs::write(source.join("edited"), "CONTENTS of edited").unwrap();
    fs::set_permissions(source.join("touched"), fs::Permissions::from_mode(0o600)).unwrap();
    fs::remove_file(source.join("deleted")).unwrap();
    fs::write(source.join("added"), "").unwrap();
    fs::write(source.join("excluded.log"), "").unwrap();
    let verified = place.verify(&id);
    let counts =
        ["corrupt", "missing", "changed", "extra", "new"].map(|kind| verified.value(kind).to_owned());
    assert_eq!(counts, ["2", "1", "2", "1", "1"], "{}", verified.out);
    let told: BTreeSet<_> = verified.out.lines().filter(|line| line.contains("tree/")).collect();
    let line = |kind: &str, name: &str, why: &str| {
        let path = format!("tree{}/{name}", place.at("source"));
        format!("{kind} {path}{}{why}", if why.is_empty() { "" } else { "\t" })
    };
    let expected = [
        line("corrupt", "flipped", "content"),
        line("corrupt", "gone", "it is gone from the backup"),
        line("missing", "deleted", ""),
        line("changed", "edited", "content"),
        line("changed", "touched", "mode, owner or time"),
        line("extra", "planted", ""),
    ];
    assert_eq!(told, expected.iter().map(String::as_str).collect());
    // A next backup links to the bad copy, a full one doesn't.
    let linked = place.create(&["--exclude=*.log"]);
    assert_eq!(place.verify(&linked).value("corrupt"), "1");
    let full = place.create(&["--exclude=*.log", "--full"]);
    assert_eq!(place.verify(&full).value("corrupt"), "0");
    let manifest = place.path("destination").join(&full).join("manifest");
    fs::write(&manifest, fs::read_to_string(&manifest).unwrap().replacen("rw-", "rwx", 1)).unwrap();
    assert!(place.verify(&full).value("note").contains("manifest"));
}

#[test]
fn many_findings_are_counted_and_the_first_ones_told() {
    let Some(place) = place() else { return };
    for number in 0..500 {
        fs::write(place.path("source").join(number.to_string()), "x").unwrap();
    }
    let id = place.create(&[]);
    for number in 0..500 {
        fs::remove_file(place.path("source").join(number.to_string())).unwrap();
    }
    let verified = place.verify(&id);
    assert_eq!(verified.value("missing"), "500");
    assert_eq!(verified.out.lines().filter(|line| line.starts_with("missing ")).count(), 20);
}

#[test]
fn a_restore_in_place_keeps_what_it_replaces_and_leaves_the_rest() {
    let Some(place) = place() else { return };
    let source = place.path("source");
    fs::create_dir(source.join("sub")).unwrap();
    for name in ["a", "b", "c", "sub/d", "-e f"] {
        fs::write(source.join(name), format!("good {name}")).unwrap();
    }
    let id = place.create(&[]);
    fs::write(source.join("a"), "newer a").unwrap();
    fs::write(source.join("b"), "older, other length").unwrap();
    let old = std::time::SystemTime::now() - Duration::from_secs(9000);
    fs::File::options().write(true).open(source.join("b")).unwrap().set_modified(old).unwrap();
    fs::File::options()
        .write(true)
        .open(source.join("a"))
        .unwrap()
        .set_modified(std::time::SystemTime::now() + Duration::from_secs(9000))
        .unwrap();
    fs::remove_file(source.join("c")).unwrap();
    fs::write(source.join("stays"), "x").unwrap();
    fs::set_permissions(&source, fs::Permissions::from_mode(0o711)).unwrap();

    let preview = place.at_destination("preview", &["--", &id]).good();
    assert_eq!(
        (preview.value("created"), preview.value("overwritten"), preview.value("newer")),
        ("1", "2", "1")
    );
    assert!(preview.out.contains(&format!("newer {}/a\n", place.at("source"))), "{}", preview.out);
    assert!(preview.out.contains(&format!("overwritten {}/b\n", place.at("source"))), "{}", preview.out);
    assert!(!source.join("c").exists());

    let a = format!("{}/a", place.at("source"));
    let partial = place.at_destination("restore", &["--", &id, &a]).good();
    assert_eq!(fs::read_to_string(&a).unwrap(), "good a");
    assert!(!source.join("c").exists());
    assert_eq!(fs::metadata(&source).unwrap().mode() & 0o777, 0o711, "the directory above stays as it is");
    let kept = Path::new(partial.value("kept")).join(a.trim_start_matches('/'));
    assert_eq!(fs::read_to_string(kept).unwrap(), "newer a");

    let whole = place.at_destination("restore", &["--", &id]).good();
    assert_eq!(whole.value("restored"), "2");
    for name in ["a", "b", "c", "sub/d", "-e f"] {
        assert_eq!(fs::read_to_string(source.join(name)).unwrap(), format!("good {name}"));
    }
    assert!(source.join("stays").exists());
    let nothing = place.at_destination("restore", &["--", &id]).good();
    assert!(!nothing.out.contains("kept="), "{}", nothing.out);
    let none = place.at_destination("restore", &["--", &id, "/none"]);
    assert_eq!(none.code(), "NOT_IN_BACKUP");
}

#[test]
fn the_latest_backup_is_this_hosts_or_else_the_newest_of_any() {
    let Some(place) = place() else { return };
    fs::write(place.path("source/a"), "x").unwrap();
    let target = format!("--target={}", place.at("restored"));
    let latest = || place.at_destination("restore", &[&target, "--", "latest"]);
    assert_eq!(latest().code(), "BACKUP_NOT_FOUND");
    place.program("uname", "echo zeta.example");
    place.create(&[]);
    std::thread::sleep(Duration::from_millis(1100));
    place.program("uname", "echo alpha");
    let alpha = place.create(&["--label=x"]);
    place.program("uname", "echo other");
    assert_eq!(latest().good().value("id"), alpha);
    place.program("uname", "echo zeta");
    assert!(latest().good().value("id").starts_with("zeta-"));
    assert_eq!(fs::read_dir(place.path("restored")).unwrap().count(), 1);
}

#[test]
fn a_network_file_system_is_mounted_for_the_time_of_the_run() {
    let Some(place) = place() else { return };
    if !is_root() {
        skipped("needs root");
        return;
    }
    fs::write(place.path("source/a"), "x").unwrap();
    let log = place.at("mounts");
    // Stands in for the kernel: the mount point becomes a link to the destination.
    place.program("mount", &format!(
        "[ \"$1 $2 $5\" = '-t nfs nas.local:/backups' ] || {{ echo 'mount.nfs: access denied by server' >&2; exit 32; }}\n\
         rmdir \"$6\" && ln -s '{}' \"$6\" && echo \"$6\" >>'{log}'",
        place.at("destination")
    ));
    place.program("umount", &format!("rm \"$1\" && mkdir \"$1\" && echo \"un $1\" >>'{log}'"));
    let id =
        place.run(&["create", "--destination=nfs://nas.local/backups", "--", &place.at("source")]).good();
    assert!(place.path("destination").join(id.value("id")).join("info").exists());
    let failed = place.run(&["create", "--destination=nfs://nas.local/backups", "--", "/nonexistent"]);
    assert_eq!(failed.code(), "SOURCE_NOT_FOUND");
    let log = fs::read_to_string(log).unwrap();
    let lines: Vec<_> = log.lines().collect();
    assert_eq!(lines.len(), 4, "{log}");
    for pair in lines.chunks(2) {
        assert_eq!(pair[1], format!("un {}", pair[0]));
        assert!(!Path::new(pair[0]).exists(), "the mount point is gone");
    }
    let denied = place.run(&["list", "--destination=nfs://nas.local/other"]);
    assert_eq!(denied.code(), "DESTINATION_UNREACHABLE");
    assert!(denied.error.contains("access denied"), "{}", denied.error);
}

#[test]
fn a_corrupt_file_is_told_by_the_restore() {
    let Some(place) = place() else { return };
    fs::write(place.path("source/a"), "good").unwrap();
    let id = place.create(&[]);
    fs::write(place.backed_up(&id, "a"), "bad!").unwrap();
    let target = format!("--target={}", place.at("restored"));
    let restored = place.at_destination("restore", &[&target, "--", &id]).good();
    assert!(restored.out.contains("corrupt tree/"), "{}", restored.out);
}

#[test]
fn sources_that_are_files_links_or_around_the_destination() {
    let Some(place) = place() else { return };
    let source = place.path("source");
    fs::write(source.join("one file"), "x").unwrap();
    symlink("/etc", source.join("to etc")).unwrap();
    let one = format!("{}/one file", place.at("source"));
    let created = place.at_destination("create", &["--", &one]).good();
    assert_eq!(created.value("files"), "1");
    let link = format!("{}/to etc", place.at("source"));
    let created = place.at_destination("create", &["--", &link]).good();
    assert!(created.value("note").contains("only the link"), "{}", created.out);
    for (path, code) in [
        (place.at("destination"), "SOURCE_IN_DESTINATION"),
        (format!("{}/{}", place.at("destination"), created.value("id")), "SOURCE_IN_DESTINATION"),
        (place.at("none"), "SOURCE_NOT_FOUND"),
        ("relative".to_owned(), "INVALID_PATH"),
        (format!("{}/../source", place.at("source")), "INVALID_PATH"),
    ] {
        assert_eq!(place.at_destination("create", &["--", &path]).code(), code, "{path}");
    }
    let around = place.directory.path().to_str().unwrap();
    let created = place.at_destination("create", &["--", around]).good();
    assert!(created.value("note").contains("is left out"), "{}", created.out);
    let tree =
        place.path("destination").join(created.value("id")).join("tree").join(around.trim_start_matches('/'));
    assert!(tree.join("source/one file").exists() && !tree.join("destination").exists());
    // The same through a link to the destination's parent.
    symlink(around, place.path("alias")).unwrap();
    let alias = format!("{}/destination", place.at("alias"));
    assert_eq!(place.at_destination("create", &["--", &alias]).code(), "SOURCE_IN_DESTINATION");
}

#[test]
fn odd_arguments_are_refused() {
    let Some(place) = place() else { return };
    let source = place.at("source");
    let open = place.path("open");
    fs::create_dir(&open).unwrap();
    fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).unwrap();
    let open = format!("--destination={}", open.display());
    let good = format!("--destination={}", place.at("destination"));
    let table: &[(&[&str], &str)] = &[
        (&["create", "--destination=ftp://x/y", "--", &source], "INVALID_DESTINATION"),
        (&["create", "--destination=relative", "--", &source], "INVALID_DESTINATION"),
        (&["create", "--destination=/", "--", &source], "INVALID_DESTINATION"),
        (&["create", "--destination=/mnt/../etc", "--", &source], "INVALID_DESTINATION"),
        (&["create", "--destination=rsync://-oProxyCommand=x/y", "--", &source], "INVALID_DESTINATION"),
        (&["create", "--destination=rsync://h;id/y", "--", &source], "INVALID_DESTINATION"),
        (&["create", "--destination=rsync://h/y;id", "--", &source], "INVALID_DESTINATION"),
        (&["create", "--destination=sftp://u@h:2x/y", "--", &source], "INVALID_DESTINATION"),
        (&["create", "--destination=rsync:///y", "--", &source], "INVALID_DESTINATION"),
        (&["create", "--destination=nfs://u@h/y", "--", &source], "INVALID_DESTINATION"),
        (&["create", "--destination=/var/tmp/none/at all", "--", &source], "DESTINATION_NOT_FOUND"),
        (&["create", &open, "--", &source], "DESTINATION_UNSAFE"),
        (&["create", &good, "--label=a/b", "--", &source], "INVALID_LABEL"),
        (&["create", &good, "--label=a b", "--", &source], "INVALID_LABEL"),
        (&["create", &good], "INVALID_ARGUMENTS"),
        (&["create", &good, "--dump=oracle", "--", &source], "INVALID_DUMP"),
        (&["create", &good, "--keep-all=1", "--", &source], "INVALID_ARGUMENTS"),
        (&["verify", &good, "--", "../x-2026-01-01-000000"], "INVALID_BACKUP_ID"),
        (&["verify", &good, "--", ".incomplete-x-2026-01-01-000000"], "INVALID_BACKUP_ID"),
        (&["verify", &good, "--", "x"], "INVALID_BACKUP_ID"),
        (&["verify", &good, "--", "x-2026-01-01-000000"], "BACKUP_NOT_FOUND"),
        (&["restore", &good, "--target=a", "--", "x-2026-01-01-000000"], "BACKUP_NOT_FOUND"),
        (&["run", "../x"], "INVALID_ARGUMENTS"),
        (&["run", "none"], "SCHEDULE_NOT_FOUND"),
        (&["sync", &good], "INVALID_ARGUMENTS"),
        (&[], "INVALID_DESTINATION"),
    ];
    for (args, code) in table {
        assert_eq!(place.run(args).code(), *code, "{args:?}");
    }
    assert!(place.destination_names().iter().all(|name| name.starts_with(".incomplete-")));
}

#[test]
fn a_name_that_is_taken_is_followed_by_the_next_second() {
    let Some(place) = place() else { return };
    place.program("date", "case $1 in +%s) echo 1795755600 ;; *) exec /bin/date \"$@\" ;; esac");
    fs::write(place.path("source/a"), "x").unwrap();
    let ids: BTreeSet<_> = (0..3).map(|_| place.create(&["--label=same"])).collect();
    let times: Vec<_> = ids.iter().map(|id| id.split("-2026-").nth(1).unwrap()).collect();
    assert_eq!(times, ["11-27-050000-same", "11-27-050001-same", "11-27-050002-same"]);
}

#[test]
fn files_that_vanish_are_a_note_and_files_that_cannot_be_read_are_a_failure() {
    let Some(place) = place() else { return };
    fs::write(place.path("source/a"), "x").unwrap();
    let ends = |code: u8, message: &str| {
        place.program("rsync", &format!(
            "/usr/bin/rsync \"$@\" || exit; case \" $* \" in *' -ii '*) echo '{message}' >&2; exit {code} ;; esac"
        ));
    };
    ends(24, "file has vanished: \"/x\"");
    let created = place.at_destination("create", &["--", &place.at("source")]).good();
    assert_eq!(created.value("note"), "1 files vanished while they were read");
    for (code, message, expected) in [
        (23, "rsync: [sender] read errors mapping \"/x\": Input/output error (5)", "RSYNC_FAILED"),
        (11, "rsync: [receiver] write failed on \"/x\": No space left on device (28)", "DESTINATION_FULL"),
        (12, "rsync: connection unexpectedly closed (0 bytes received so far) [sender]", "CONNECTION_LOST"),
    ] {
        ends(code, message);
        let failed = place.at_destination("create", &["--", &place.at("source")]);
        assert_eq!(failed.code(), expected);
        assert!(failed.error.contains(message), "{}", failed.error);
    }
    assert_eq!(place.destination_names().len(), 2, "one is good, one is incomplete");
}

#[test]
fn mounts_are_left_out_and_a_full_disk_is_told() {
    let Some(place) = place() else { return };
    if !is_root() || !ran(Command::new("unshare").args(["-m", "true"])).ok {
        skipped("needs mounts");
        return;
    }
    fs::create_dir(place.path("source/mount")).unwrap();
    for number in 0..40 {
        fs::write(place.path("source").join(number.to_string()), vec![7; 100_000]).unwrap();
    }
    let root = place.at("destination");
    fs::write(
        place.path("fstab"),
        format!("/dev/none {}/later ext4 defaults 0 0\n", root.replace(' ', "\\040")),
    )
    .unwrap();
    let script = format!(
        "set -u; cd '{at}'; e() {{ PATH=/usr/sbin:/usr/bin:/sbin:/bin sh ./engine \"$@\"; echo code=$?; }}
        mount -t tmpfs x source/mount && echo x >source/mount/inside
        echo == full; mount -t tmpfs -o size=1m,mode=700 x destination
        e create '--destination={root}' -- '{at}/source'
        echo == room; mount -o remount,size=16m destination
        e create '--destination={root}' -- '{at}/source'
        find destination -name inside
        echo == all; e create '--destination={root}' -- '{at}/source' '{at}/source/mount'
        find destination -name inside | wc -l
        echo == below; mkdir -p plain/later; mount --bind fstab /etc/fstab; printf '/dev/none %s/plain/later ext4 x 0 0\n' \"$PWD\" >fstab
        e create \"--destination=$PWD/plain/later\" -- '{at}/source'",
        at = place.directory.path().display(),
    );
    let output = ran(Command::new("unshare").args(["-m", "sh", "-c", &script]));
    let parts: Vec<_> = output.out.split("== ").collect();
    assert!(parts[1].starts_with("full") && parts[1].contains("code=1"), "{}{}", output.out, output.error);
    assert!(output.error.contains("DESTINATION_FULL: "), "{}", output.error);
    assert!(
        parts[2].contains("code=0") && parts[2].contains("interrupted") && !parts[2].contains("/inside"),
        "{}",
        output.out
    );
    assert!(parts[3].contains("code=0\n1\n"), "{}", output.out);
    // The directory has a blank, and fstab can't have one as it is.
    assert!(parts[4].starts_with("below"), "{}", output.out);
}

#[test]
fn one_run_at_a_time() {
    let Some(place) = place() else { return };
    fs::write(place.path("source/a"), "x").unwrap();
    place.create(&[]);
    let lock = fs::read_dir(place.path("run")).unwrap().next().unwrap().unwrap().path();
    let mut holder = Command::new("flock")
        .arg(lock)
        .args(["sleep", "60"])
        .stdin(Stdio::null())
        .process_group(0)
        .spawn()
        .unwrap();
    let begun = Instant::now();
    let code = loop {
        let ran = place.at_destination("create", &["--", &place.at("source")]);
        if !ran.ok {
            break ran.code().to_owned();
        }
        assert!(begun.elapsed() < Duration::from_secs(20));
    };
    ran(Command::new("kill").args(["-KILL", "--", &format!("-{}", holder.id())])).good();
    holder.wait().unwrap();
    assert_eq!(code, "BACKUP_RUNNING");
}

#[test]
fn a_schedule_prunes_its_own_backups_only() {
    let Some(place) = place() else { return };
    fs::write(place.path("source/a b"), "x").unwrap();
    fs::write(place.path("source/x.log"), "x").unwrap();
    let config = format!(
        "# comment\ndestination=local://{}\npath={}/\nexclude=*.log\nkeep_daily=2\nkeep_weekly=0\nkeep_monthly=0\n",
        place.at("destination"),
        place.at("source")
    );
    fs::write(place.path("config/daily.conf"), config).unwrap();
    place.program("date", "case $1 in +%s) cat \"${0%/*}/now\" ;; *) exec /bin/date \"$@\" ;; esac");
    let on = |day: u64| fs::write(place.path("bin/now"), (1_795_755_600 + day * 86_400).to_string()).unwrap();
    on(0);
    let by_hand = place.create(&["--label=daily-x"]);
    let mut removed = Vec::new();
    for day in 0..4 {
        on(day);
        let ran = place.run(&["run", "daily"]).good();
        assert_eq!(ran.value("files"), "1");
        removed.extend(ran.out.lines().filter_map(|line| line.strip_prefix("removed=").map(str::to_owned)));
    }
    assert_eq!(removed.len(), 2);
    let names = place.destination_names();
    assert!(names.contains(&by_hand) && names.len() == 3, "{names:?}");
    fs::write(place.path("config/bad.conf"), "destination=/x\nrun=reboot\n").unwrap();
    assert_eq!(place.run(&["run", "bad"]).code(), "INVALID_ARGUMENTS");
}

#[test]
fn dumps_lie_beside_the_tree_and_a_failed_one_fails_the_backup() {
    let Some(place) = place() else { return };
    fs::write(place.path("source/a"), "x").unwrap();
    place.program("runuser", "[ \"$*\" = '-u postgres -- pg_dumpall' ] && echo 'CREATE ROLE postgres;'");
    place.program("mariadb-dump", "[ \"$1\" = --single-transaction ] && echo 'CREATE DATABASE x;'");
    place.program("redis-cli", "[ \"$1\" = --rdb ] && printf 'REDIS0011\\000' >\"$2\"");
    let id = place.create(&["--dump=postgresql", "--dump=mariadb", "--dump=redis"]);
    let dumps = place.path("destination").join(&id).join("dumps");
    assert_eq!(fs::read_to_string(dumps.join("postgresql.sql")).unwrap(), "CREATE ROLE postgres;\n");
    assert_eq!(fs::read(dumps.join("redis.rdb")).unwrap(), b"REDIS0011\0");
    assert_eq!(fs::metadata(dumps.join("mariadb.sql")).unwrap().mode() & 0o777, 0o600);
    assert_eq!(place.verify(&id).value("corrupt"), "0");
    fs::write(dumps.join("mariadb.sql"), "CREATE DATABASE y;\n").unwrap();
    assert!(place.verify(&id).out.contains("corrupt dumps/mariadb.sql"));
    let target = format!("--target={}", place.at("restored"));
    place.at_destination("restore", &[&target, "--", &id]).good();
    assert!(place.path("restored/dumps/redis.rdb").exists());
    place.program("runuser", "echo 'pg_dumpall: error: connection to server on socket failed' >&2; exit 1");
    let failed = place.at_destination("create", &["--dump=postgresql", "--", &place.at("source")]);
    assert_eq!(failed.code(), "DUMP_FAILED");
    assert!(failed.error.contains("connection to server"), "{}", failed.error);
    let good = place.at_destination("list", &[]).good().out;
    assert_eq!(good.lines().filter(|line| line.starts_with("backup ")).count(), 1, "{good}");
}

#[test]
fn a_redis_with_a_password_is_dumped_where_its_configuration_has_it() {
    let Some(place) = place() else { return };
    fs::write(place.path("source/a"), "x").unwrap();
    fs::create_dir(place.path("redis")).unwrap();
    fs::write(place.path("redis/another.conf"), "port 6380\nrequirepass other\n").unwrap();
    place.program(
        "redis-cli",
        "[ \"$REDISCLI_AUTH\" = 'a b\"cA' ] || { echo 'SYNC with master failed: -NOAUTH Authentication required.'; exit 1; }\n\
         [ \"$1\" = --rdb ] && printf REDIS0011 >\"$2\"",
    );
    for line in ["RequirePass \"a b\\\"c\\x41\"  \r", "requirepass 'a b\"cA'"] {
        fs::write(place.path("redis/redis.conf"), format!("# requirepass none\nport 6379\n{line}\n"))
            .unwrap();
        let id = place.create(&["--dump=redis"]);
        let dump = place.path("destination").join(id).join("dumps/redis.rdb");
        assert_eq!(fs::read_to_string(dump).unwrap(), "REDIS0011", "{line}");
    }
    fs::remove_file(place.path("redis/redis.conf")).unwrap();
    let failed = place.at_destination("create", &["--dump=redis", "--", &place.at("source")]);
    assert_eq!(failed.code(), "DUMP_FAILED");
    assert!(failed.error.contains("requirepass") && failed.error.contains("NOAUTH"), "{}", failed.error);
}

#[test]
fn an_archive_of_etc_is_whole_private_and_listed() {
    let Some(place) = place() else { return };
    if !is_root() {
        skipped("needs root");
        return;
    }
    let archived = place.at_destination("archive-etc", &["--label=before"]).good();
    let path = place.path("destination").join(archived.value("archive"));
    let metadata = fs::metadata(&path).unwrap();
    assert_eq!(
        (metadata.mode() & 0o777, metadata.len().to_string().as_str()),
        (0o600, archived.value("bytes"))
    );
    let listed = ran(Command::new("tar").arg("-tzf").arg(&path)).good().out;
    assert!(listed.lines().any(|line| line == "etc/passwd"));
    let listed = place.at_destination("list", &[]).good().out;
    assert_eq!(listed, format!("archive {} {}\n", archived.value("bytes"), archived.value("archive")));
    place.program("gzip", "[ \"$1\" = -t ] && exec /bin/gzip -t; cat >/dev/null; echo x");
    assert_eq!(place.at_destination("archive-etc", &[]).code(), "DESTINATION_FULL");
}

#[test]
fn space_and_rights_of_a_destination_are_told() {
    let Some(place) = place() else { return };
    let checked = place.at_destination("check", &[]).good();
    let [total, free] = ["total_kib", "free_kib"].map(|key| checked.value(key).parse::<u64>().unwrap());
    assert!(total >= free && free > 0);
}

/// The names that `surplus` leaves of those on its input.
fn kept(place: &Place, names: &BTreeSet<String>) -> BTreeSet<String> {
    use std::io::Write;
    let mut child = place
        .command(&["surplus", "7", "4", "6"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let text: String = names.iter().map(|name| format!("{name}\n")).collect();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let goes: BTreeSet<_> = String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect();
    names.difference(&goes).cloned().collect()
}

/// The date that many days after 2026-01-01, a Thursday.
fn date(day: i64) -> String {
    linux_sysadmin_sdk::time::rfc3339(1_767_225_600 + day * 86_400).split_once('T').unwrap().0.to_owned()
}

#[test]
fn a_year_of_daily_backups_leaves_7_days_4_weeks_and_6_months() {
    let Some(place) = place() else { return };
    let name = |day| format!("host-{}-030000-etc", date(day));
    let mut left = BTreeSet::new();
    let mut all = BTreeSet::new();
    for day in 0..400 {
        left.insert(name(day));
        all.insert(name(day));
        left = kept(&place, &left);
        assert!(left.len() <= 17);
        assert!(day < 7 || (0..7).all(|ago| left.contains(&name(day - ago))), "{day}");
        assert!(day < 210 || left.len() == 17, "{day}: {left:?}");
    }
    assert_eq!(left, kept(&place, &all), "pruning every day leaves what pruning once does");
    // Day 399 is 2027-02-04, a Thursday: the days from the Friday before, the last days of the weeks and months before.
    let dates: Vec<_> = left.iter().map(|name| &name[5..15]).collect();
    assert_eq!(
        dates,
        [
            "2026-07-31",
            "2026-08-31",
            "2026-09-30",
            "2026-10-31",
            "2026-11-30",
            "2026-12-31",
            "2027-01-03",
            "2027-01-10",
            "2027-01-17",
            "2027-01-24",
            "2027-01-29",
            "2027-01-30",
            "2027-01-31",
            "2027-02-01",
            "2027-02-02",
            "2027-02-03",
            "2027-02-04",
        ]
    );
}

#[test]
fn the_last_backup_of_a_day_counts_and_gaps_do_not() {
    let Some(place) = place() else { return };
    let names: BTreeSet<String> = (0..12)
        .flat_map(|week| [1, 13].map(|hour| format!("a-b-{}-{hour:02}0000-x", date(week * 31))))
        .chain(["no date".to_owned()])
        .collect();
    let left = kept(&place, &names);
    let mut hours = BTreeMap::new();
    for name in left.iter().filter(|name| name.starts_with("a-b")) {
        *hours.entry(name[15..17].to_owned()).or_insert(0) += 1;
    }
    assert_eq!(hours, BTreeMap::from([("13".to_owned(), 12)]));
    assert!(left.contains("no date"), "what has no date isn't touched");
}
