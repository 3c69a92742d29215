//! The engine where others, a clock, a disk or a file system get in its way. It runs for real, with the real rsync.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod place;

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, lchown, symlink};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use place::{Place, is_root, place, ran, skipped, with_mounts};

const ADA: u32 = 12345;

/// None, and a word about it, where rsync or root's rights are missing.
fn place_of_root() -> Option<Place> {
    if !is_root() {
        skipped("needs root");
        return None;
    }
    place()
}

fn mode(path: &Path, bits: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(bits)).unwrap();
}

#[test]
fn a_destination_that_others_could_lead_elsewhere_is_refused() {
    let Some(place) = place_of_root() else { return };
    let above = place.path("above");
    fs::create_dir_all(above.join("deep/backups")).unwrap();
    for (path, bits) in [("deep/backups", 0o700), ("deep", 0o755), ("", 0o755)] {
        mode(&above.join(path), bits);
    }
    symlink(above.join("deep"), place.path("by")).unwrap();
    let destination = format!("--destination={}/deep/backups", above.display());
    let by = format!("--destination={}/backups", place.at("by"));
    let check = |destination: &str| place.run(&["check", destination]);
    check(&destination).good();
    check(&by).good();
    chown(&above, Some(ADA), None).unwrap();
    for destination in [&destination, &by] {
        let refused = check(destination);
        assert_eq!(refused.code(), "DESTINATION_UNSAFE");
        assert!(refused.error.contains(above.to_str().unwrap()), "{}", refused.error);
    }
    chown(&above, Some(0), None).unwrap();
    mode(&above, 0o777);
    assert_eq!(check(&destination).code(), "DESTINATION_UNSAFE");
    // In such a directory nobody replaces what isn't his own.
    mode(&above, 0o1777);
    check(&destination).good();
}

#[test]
fn one_destination_has_one_lock_however_it_is_named() {
    let Some(place) = place() else { return };
    fs::write(place.path("source/a"), "x").unwrap();
    symlink(place.path("destination"), place.path("alias")).unwrap();
    for name in ["destination", "alias"] {
        place
            .run(&["create", &format!("--destination={}", place.at(name)), "--", &place.at("source")])
            .good();
    }
    assert_eq!(fs::read_dir(place.path("run")).unwrap().count(), 1);
    assert_eq!(fs::metadata(place.path("run")).unwrap().mode() & 0o777, 0o700);
}

#[test]
fn a_destination_below_the_source_is_left_out_whatever_its_name() {
    for name in ["we]ird", "back\\slash", "st*r [x] ?\\"] {
        let Some(place) = place() else { return };
        let inner = place.path("source").join(name);
        fs::create_dir(&inner).unwrap();
        mode(&inner, 0o700);
        fs::write(place.path("source/a"), "x").unwrap();
        // The source is named through a symlink above it.
        symlink(place.directory.path(), place.path("alias")).unwrap();
        let destination = format!("--destination={}", inner.display());
        for source in ["source", "alias/source"] {
            let made = place.run(&["create", &destination, "--", &place.at(source)]).good();
            assert!(
                made.value("note").contains("is left out, since the backup is made there"),
                "{}",
                made.out
            );
            assert_eq!(made.value("files"), "1", "{name}");
            let verified = place.run(&["verify", &destination, "--", made.value("id")]).good();
            assert_eq!((verified.value("new"), verified.value("missing")), ("0", "0"), "{}", verified.out);
        }
    }
}

#[test]
fn a_destination_that_is_seen_twice_never_backs_itself_up() {
    let Some(place) = place() else { return };
    let Some(ran) = with_mounts(
        &place,
        r#"mkdir -m 0700 source/backups mirror twice; echo x >source/a
        mount --bind source mirror
        echo "== by the other name"; e create "--destination=$at/source/backups" -- "$at/mirror"
        echo "== inside"; e create "--destination=$at/source/backups" -- "$at/mirror/backups"
        mkdir source/twice; mount --bind source/backups source/twice
        echo "== below"; e create "--destination=$at/source/backups" -- "$at/source"
        find source/backups -path '*/tree/*/twice/*' -o -path '*/tree/*/backups/*'"#,
    ) else {
        return;
    };
    let parts: Vec<_> = ran.out.split("== ").collect();
    assert!(parts[1].contains("code=0") && parts[1].contains("files=1\n"), "{}{}", ran.out, ran.error);
    assert!(parts[1].contains("mirror/backups is left out"), "{}", ran.out);
    assert!(
        parts[2].contains("code=1") && ran.error.contains("SOURCE_IN_DESTINATION"),
        "{}{}",
        ran.out,
        ran.error
    );
    assert!(parts[3].trim_end().ends_with("code=0"), "{}{}", ran.out, ran.error);
}

#[test]
fn a_disk_that_is_not_mounted_is_no_empty_source_and_no_destination() {
    let Some(place) = place() else { return };
    let Some(ran) = with_mounts(
        &place,
        r#"escaped=$(printf %s "$at" | sed 's/ /\\040/g')
        printf '/dev/none %s/source ext4 defaults 0 0\n/dev/none %s/later/ ext4 defaults 0 0\n' "$escaped" "$escaped" >fstab
        mount --bind fstab /etc/fstab; mkdir source/sub later; mkdir -m 0700 later/x
        echo "== source"; e create "--destination=$at/destination" -- "$at/source/sub"
        echo "== destination"; e create "--destination=$at/later/x" -- /etc/hostname
        mount -t tmpfs x source; echo x >source/a
        echo "== mounted"; e create "--destination=$at/destination" -- "$at/source""#,
    ) else {
        return;
    };
    let codes: Vec<_> = ran.out.lines().filter(|line| line.starts_with("code=")).collect();
    assert_eq!(codes, ["code=1", "code=1", "code=0"], "{}{}", ran.out, ran.error);
    assert!(
        ran.error.contains("SOURCE_NOT_MOUNTED: ") && ran.error.contains("DESTINATION_NOT_MOUNTED: "),
        "{}",
        ran.error
    );
}

#[test]
fn the_kernels_own_file_systems_are_never_copied() {
    let Some(place) = place() else { return };
    assert_eq!(place.at_destination("create", &["--", "/proc/sys"]).code(), "INVALID_PATH");
    let Some(ran) = with_mounts(
        &place,
        r#"mkdir -p source/proc source/disk; mount -t proc x source/proc; mount -t tmpfs x source/disk; echo x >source/disk/a
        e create "--destination=$at/destination" -- "$at/source" "$at/source/disk"
        find destination -name a -o -name uptime | sed 's|.*/||'
        # It goes on, and deletes nothing of the other file system.
        mv destination/* destination/.incomplete-x-2026-01-01-000000 && cd destination/.incomplete-*
        mv "../.incomplete-x-2026-01-01-000000" "../.incomplete-$(uname -n | cut -d . -f 1)-2026-01-01-000000"
        sed -n '/^path=/p' info >request; rm info manifest; cd "$at"
        e create "--destination=$at/destination" -- "$at/source" "$at/source/disk" | grep -E '^(note|code|files)'
        e verify "--destination=$at/destination" -- latest | grep -E '^(new|missing|changed|extra)='"#,
    ) else {
        return;
    };
    assert!(ran.out.contains("code=0\na\n"), "{}{}", ran.out, ran.error);
    assert!(ran.out.contains("interrupted") && ran.out.contains("files=1\n"), "{}", ran.out);
    assert!(ran.out.ends_with("missing=0\nchanged=0\nextra=0\nnew=0\n"), "{}", ran.out);
}

#[test]
fn a_full_disk_for_working_files_makes_no_good_backup_with_half_a_manifest() {
    let Some(place) = place() else { return };
    for number in 0..2000 {
        fs::write(place.path("source").join(format!("{number}{}", "x".repeat(100))), "x").unwrap();
    }
    let Some(ran) = with_mounts(
        &place,
        r#"mkdir work; for size in 200k 600k 900k; do
          mount -t tmpfs -o size=$size x work; TMPDIR=$at/work e create "--destination=$at/destination" -- "$at/source"; umount work
        done; e list "--destination=$at/destination" | grep -c ^backup
        e create "--destination=$at/destination" -- "$at/source" | grep ^files"#,
    ) else {
        return;
    };
    let codes: Vec<_> = ran.out.lines().filter(|line| line.starts_with("code=")).collect();
    assert_eq!(&codes[..2], ["code=1", "code=1"], "{}{}", ran.out, ran.error);
    assert!(ran.error.contains("WORK_FAILED: the list of files can't be written"), "{}", ran.error);
    assert!(ran.out.ends_with("files=2000\n"), "{}", ran.out);
    let verified = place.at_destination("verify", &["--", "latest"]).good();
    assert_eq!((verified.value("corrupt"), verified.value("extra")), ("0", "0"), "{}", verified.out);
}

#[test]
fn a_full_backup_does_not_go_on_from_links_to_bad_copies() {
    let Some(place) = place() else { return };
    fs::write(place.path("source/a"), "good").unwrap();
    let first = place.create(&[]);
    let bad = place.backed_up(&first, "a");
    let time = fs::metadata(&bad).unwrap().modified().unwrap();
    fs::write(&bad, "evil").unwrap();
    fs::File::options().write(true).open(&bad).unwrap().set_modified(time).unwrap();
    let second = place.create(&[]);
    let incomplete = place.path("destination").join(format!(".incomplete-{second}"));
    fs::rename(place.path("destination").join(&second), &incomplete).unwrap();
    fs::write(incomplete.join("request"), format!("path={}\n", place.at("source"))).unwrap();
    let full = place.create(&["--full"]);
    assert_eq!(fs::read_to_string(place.backed_up(&full, "a")).unwrap(), "good");
    assert_eq!(place.verify(&full).value("corrupt"), "0");
}

#[test]
fn a_single_file_leaves_nothing_of_a_killed_run_behind() {
    let Some(place) = place() else { return };
    fs::write(place.path("source/large"), vec![7; 4_000_000]).unwrap();
    place.program("rsync", "case \" $* \" in *' -ii '*) exec /usr/bin/rsync --bwlimit=500 \"$@\" ;; esac; exec /usr/bin/rsync \"$@\"");
    let file = format!("{}/large", place.at("source"));
    let destination = format!("--destination={}", place.at("destination"));
    let mut command = place.command(&["create", &destination, "--", &file]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).process_group(0).spawn().unwrap();
    let begun = Instant::now();
    let is_copying = || {
        let found = place.destination_names().into_iter().find(|name| name.starts_with(".incomplete-"));
        let begun = found.and_then(|name| fs::read_dir(place.backed_up(&name, "")).ok());
        begun.is_some_and(|files| files.count() > 0)
    };
    while !is_copying() {
        assert!(begun.elapsed() < Duration::from_secs(60), "nothing was copied");
        std::thread::sleep(Duration::from_millis(20));
    }
    ran(Command::new("kill").args(["-KILL", "--", &format!("-{}", child.id())])).good();
    child.wait().unwrap();
    fs::remove_file(place.path("bin/rsync")).unwrap();
    let again = place.at_destination("create", &["--", &file]).good();
    let verified = place.verify(again.value("id"));
    assert_eq!((verified.value("corrupt"), verified.value("extra"), verified.value("new")), ("0", "0", "0"));
    let names = fs::read_dir(place.path("destination").join(again.value("id"))).unwrap();
    let mut names: Vec<_> = names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    assert_eq!(names, ["info", "manifest", "tree"]);
}

#[test]
fn a_file_that_changes_while_it_is_read_does_not_fail_the_backup() {
    let Some(place) = place() else { return };
    for number in 0..20 {
        fs::write(place.path("source").join(format!("{number:02}")), vec![number; 300_000]).unwrap();
    }
    let script = "while :; do head -c 3000000 /dev/urandom >busy; echo line >>log; : >busy; done";
    let mut writer = Command::new("sh")
        .args(["-c", script])
        .current_dir(place.path("source"))
        .process_group(0)
        .spawn()
        .unwrap();
    let made: Vec<_> = (0..4).map(|_| place.at_destination("create", &["--", &place.at("source")])).collect();
    ran(Command::new("kill").args(["-KILL", "--", &format!("-{}", writer.id())])).good();
    writer.wait().unwrap();
    for made in made {
        let verified = place.verify(made.good().value("id"));
        assert_eq!((verified.value("corrupt"), verified.value("extra")), ("0", "0"), "{}", verified.out);
    }
}

#[test]
fn a_file_that_never_keeps_still_is_left_out_and_named() {
    let Some(place) = place() else { return };
    for name in ["a", "busy"] {
        fs::write(place.path("source").join(name), "x").unwrap();
    }
    // What rsync 3.2.7 says where a file is truncated each time that it is read.
    place.program(
        "rsync",
        &format!(
            r#"case " $* " in *" --dry-run "* | *" --version "*) exec /usr/bin/rsync "$@" ;; esac
touch '{source}/busy'
/usr/bin/rsync --exclude=busy "$@"
case " $* " in *" -ii "*) echo 'f 0123456789abcdef0123456789abcdef 1 2026/11/27-10:00:00 rw-r--r-- 0 0 tree{source}/busy//>f+++++++++' ;; esac
echo 'WARNING: {relative}/busy failed verification -- update discarded (will try again).
ERROR: {relative}/busy failed verification -- update discarded.
rsync error: some files/attrs were not transferred (see previous errors) (code 23) at main.c(1338) [sender=3.2.7]' >&2
exit 23"#,
            source = place.at("source"),
            relative = place.at("source").trim_start_matches('/'),
        ),
    );
    let made = place.at_destination("create", &["--", &place.at("source")]).good();
    assert!(
        made.value("note").contains(&format!("each time that it was read: {}/busy", place.at("source"))),
        "{}",
        made.out
    );
    fs::remove_file(place.path("bin/rsync")).unwrap();
    let verified = place.verify(made.value("id"));
    let counts = ["corrupt", "missing", "extra", "new"].map(|kind| verified.value(kind).to_owned());
    assert_eq!(counts, ["0", "0", "0", "1"], "{}", verified.out);
}

#[test]
fn a_clock_that_jumped_ahead_neither_takes_the_place_of_newer_backups_nor_loses_them() {
    let Some(place) = place() else { return };
    fs::write(place.path("source/a"), "x").unwrap();
    let config = format!(
        "destination={}\npath={}\nkeep_daily=2\nkeep_weekly=0\nkeep_monthly=0\n",
        place.at("destination"),
        place.at("source")
    );
    fs::write(place.path("config/daily.conf"), config).unwrap();
    place.program("date", "case $1 in +%s) cat \"${0%/*}/now\" ;; *) exec /bin/date \"$@\" ;; esac");
    let on = |day: u64| {
        fs::write(place.path("bin/now"), (1_795_755_600 + day * 86_400).to_string()).unwrap();
        place.run(&["run", "daily"]).good().value("id").to_owned()
    };
    // 2036, for three days; then the clock is right again.
    let ahead: Vec<_> = (3650..3653).map(on).collect();
    let right: Vec<_> = (0..4).map(on).collect();
    let names = place.destination_names();
    assert_eq!(names, [right[2].clone(), right[3].clone(), ahead[1].clone(), ahead[2].clone()]);
    // What didn't change is linked to the backup before, and that one is the latest.
    let [before, last] =
        [&right[2], &right[3]].map(|id| fs::metadata(place.backed_up(id, "a")).unwrap().ino());
    assert_eq!(before, last);
    let target = format!("--target={}", place.at("restored"));
    assert_eq!(place.at_destination("restore", &[&target, "--", "latest"]).good().value("id"), right[3]);
}

#[test]
fn a_file_system_without_links_is_refused_and_nothing_stays_there() {
    let Some(place) = place() else { return };
    fs::write(place.path("source/a"), "x").unwrap();
    place.program("ln", "echo \"ln: failed to create hard link 'x': Operation not permitted\" >&2; exit 1");
    let refused = place.at_destination("create", &["--", &place.at("source")]);
    assert_eq!(refused.code(), "DESTINATION_UNSUITABLE");
    assert!(refused.error.contains("Operation not permitted"), "{}", refused.error);
    assert!(place.destination_names().is_empty());
}

#[test]
fn a_destination_that_cannot_be_written_says_why() {
    let Some(place) = place() else { return };
    let Some(ran) = with_mounts(
        &place,
        r#"mount --bind destination destination; mount -o remount,ro,bind destination
        e create "--destination=$at/destination" -- /etc/hostname"#,
    ) else {
        return;
    };
    assert!(
        ran.error.contains("DESTINATION_FAILED: the destination can't be written: ")
            && ran.error.contains("Read-only file system"),
        "{}{}",
        ran.out,
        ran.error
    );
}

#[test]
fn directories_above_what_is_restored_come_back_as_they_were() {
    let Some(place) = place_of_root() else { return };
    let app = place.path("source/app");
    fs::create_dir_all(app.join("data")).unwrap();
    fs::write(app.join("data/file"), "x").unwrap();
    chown(&app, Some(ADA), Some(ADA)).unwrap();
    mode(&app, 0o2751);
    let data = format!("{}/app/data", place.at("source"));
    let id = place.at_destination("create", &["--", &data]).good().value("id").to_owned();
    fs::remove_dir_all(&app).unwrap();
    place.at_destination("restore", &["--", &id]).good();
    let found = fs::metadata(&app).unwrap();
    assert_eq!((found.uid(), found.gid(), found.mode() & 0o7777), (ADA, ADA, 0o2751));
    assert_eq!(fs::read_to_string(app.join("data/file")).unwrap(), "x");
    // Those that are there stay as they are.
    mode(&app, 0o700);
    fs::remove_dir_all(app.join("data")).unwrap();
    place.at_destination("restore", &["--", &id]).good();
    assert_eq!(fs::metadata(&app).unwrap().mode() & 0o7777, 0o700);
}

#[test]
fn nobody_but_root_leads_a_restore_elsewhere() {
    let Some(place) = place_of_root() else { return };
    let home = place.path("source/ada");
    fs::create_dir_all(home.join("a/cron.d")).unwrap();
    fs::write(home.join("a/cron.d/evil"), "* * * * * root sh").unwrap();
    chown(&home, Some(ADA), Some(ADA)).unwrap();
    let wanted = format!("{}/a/cron.d", home.display());
    let id = place.create(&[]);
    fs::rename(home.join("a"), home.join("b")).unwrap();
    fs::create_dir(place.path("etc")).unwrap();
    symlink(place.path("etc"), home.join("a")).unwrap();
    lchown(home.join("a"), Some(ADA), Some(ADA)).unwrap();
    for command in ["preview", "restore"] {
        let refused = place.at_destination(command, &["--", &id, &wanted]);
        assert_eq!(refused.code(), "TARGET_IS_SYMLINK", "{command}");
        assert!(refused.error.contains("/ada/a"), "{}", refused.error);
    }
    assert!(!place.path("etc/cron.d").exists());

    let target =
        |path: &Path| place.at_destination("restore", &[&format!("--target={}", path.display()), "--", &id]);
    let open = place.path("open");
    fs::create_dir(&open).unwrap();
    mode(&open, 0o1777);
    fs::create_dir(open.join("planted")).unwrap();
    chown(open.join("planted"), Some(ADA), None).unwrap();
    assert_eq!(target(&open.join("planted")).code(), "TARGET_UNSAFE");
    assert_eq!(target(&home.join("restored")).code(), "TARGET_UNSAFE");
    assert_eq!(target(&place.path("destination").join("x")).code(), "INVALID_PATH");
    assert_eq!(target(&place.path("destination").join(&id).join("tree")).code(), "INVALID_PATH");
    target(&open.join("restored")).good();
}

#[test]
fn a_request_holds_no_lines_that_its_caller_did_not_mean() {
    let Some(place) = place() else { return };
    let source = place.at("source");
    for (option, code) in
        [("--exclude=a\nhost=other", "INVALID_ARGUMENTS"), ("--label=a\nb", "INVALID_ARGUMENTS")]
    {
        assert_eq!(place.at_destination("create", &[option, "--", &source]).code(), code, "{option:?}");
    }
    assert_eq!(place.at_destination("create", &["--", "/a\nb"]).code(), "INVALID_PATH");
}

#[test]
fn a_killed_run_leaves_no_network_file_system_mounted() {
    let Some(place) = place_of_root() else { return };
    let left = place.path("run/mount.999999999.abcdef");
    let used = place.path(&format!("run/mount.{}.abcdef", std::process::id()));
    for path in [&left, &used] {
        fs::create_dir_all(path).unwrap();
    }
    let log = place.at("log");
    place.program("umount", &format!("echo \"$*\" >>'{log}'"));
    place.program("mount", "echo 'mount.nfs: Connection refused' >&2; exit 32");
    let failed = place.run(&["list", "--destination=nfs://nas.local/backups"]);
    assert_eq!(failed.code(), "DESTINATION_UNREACHABLE");
    assert_eq!(fs::read_to_string(log).unwrap(), format!("-l {}\n", left.display()));
    assert!(!left.exists() && used.exists());
}

#[test]
fn two_machines_of_one_name_leave_each_others_backups() {
    let Some(place) = place() else { return };
    fs::write(place.path("source/a"), "x").unwrap();
    let config = format!(
        "destination={}\npath={}\nkeep_daily=1\nkeep_weekly=0\nkeep_monthly=0\n",
        place.at("destination"),
        place.at("source")
    );
    fs::write(place.path("config/daily.conf"), config).unwrap();
    let as_machine = |id: &str| {
        fs::write(place.path("machine-id"), id).unwrap();
        place.run(&["run", "daily"]).good()
    };
    let first = as_machine("one").value("id").to_owned();
    let other = as_machine("other");
    assert!(!other.out.contains("removed="), "{}", other.out);
    let begun = place.path("destination").join(format!(".incomplete-{}", other.value("id")));
    fs::create_dir_all(begun.join("tree")).unwrap();
    fs::copy(place.path("destination").join(other.value("id")).join("info"), begun.join("request")).unwrap();
    fs::write(begun.join("machine"), "what another machine has").unwrap();
    let second = as_machine("one");
    assert_eq!(second.value("removed"), first);
    assert!(begun.exists(), "another machine may be at work there");
    let names = place.destination_names();
    assert!(names.iter().any(|name| name == other.value("id")) && names.len() == 3, "{names:?}");
    let verified = place.verify(other.value("id"));
    assert!(verified.value("note").contains("another host"), "{}", verified.out);
}

#[test]
fn what_hangs_is_ended_and_told() {
    let Some(place) = place() else { return };
    fs::create_dir(place.path("source/hung")).unwrap();
    place.set("ANSWERS_WITHIN=10", "1");
    place.set("STUCK_AFTER=3600", "1");
    // As where a FUSE server no longer answers.
    place.program("stat", "case $* in */hung) exec sleep 600 ;; esac; exec /usr/bin/stat \"$@\"");
    let hung = format!("{}/hung", place.at("source"));
    let refused = place.at_destination("create", &["--", &hung]);
    assert_eq!(refused.code(), "SOURCE_HANGS");
    assert!(refused.error.contains("/hung doesn't answer within 1 seconds"), "{}", refused.error);
    let destination = place.run(&["list", &format!("--destination={hung}")]);
    assert_eq!(destination.code(), "DESTINATION_HANGS");
    fs::remove_file(place.path("bin/stat")).unwrap();
    let open = place.at("source/file");
    fs::write(&open, "x").unwrap();
    place.program(
        "rsync",
        &format!(
            "case \" $* \" in *' -ii '*) exec 7<'{open}'; exec sleep 600 ;; esac; exec /usr/bin/rsync \"$@\""
        ),
    );
    let stuck = place.at_destination("create", &["--", &place.at("source")]);
    assert_eq!(stuck.code(), "SOURCE_HANGS");
    assert!(stuck.error.contains(&open), "{}", stuck.error);
    assert!(place.at_destination("list", &[]).good().out.starts_with("incomplete "));
}

#[test]
fn a_mount_that_hangs_below_a_source_is_named() {
    let Some(place) = place() else { return };
    place.set("ANSWERS_WITHIN=10", "1");
    place.program("stat", "case $* in */hung) exec sleep 600 ;; esac; exec /usr/bin/stat \"$@\"");
    let Some(ran) = with_mounts(
        &place,
        r#"mkdir source/hung disk; truncate -s 2M disk/image; mount --bind disk source/hung
        mount -t overlay -o "lowerdir=$at/disk:$at/bin" x source/hung || exit 77
        e create "--destination=$at/destination" -- "$at/source""#,
    ) else {
        return;
    };
    if ran.out.is_empty() {
        skipped("there is no overlay");
        return;
    }
    assert!(
        ran.error.contains("SOURCE_HANGS: ") && ran.error.contains("/source/hung, which is mounted"),
        "{}{}",
        ran.out,
        ran.error
    );
}
