//! The engine with a real restic and repositories of its own. Each test says so and ends where restic or rsync is missing.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod place;

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use place::{
    Place, Ran, difference, give_away, has, is_root, odd_files, of_each_shell, place, ran, skipped,
    with_mounts,
};

/// A place with a password.
fn without_repository() -> Option<Place> {
    if !has("restic") {
        skipped("there is no restic");
        return None;
    }
    let place = place()?;
    fs::write(place.path("machine-id"), "0123456789abcdef0123456789abcdef\n").unwrap();
    password(&place, "one secret\n", 0o600);
    Some(place)
}

/// A place with a password and an empty repository.
fn repository() -> Option<Place> {
    let place = without_repository()?;
    put_repository(&place);
    Some(place)
}

/// Puts a new repository of restic 0.14 where there is none. To open one takes restic half a second of computing by intent. Of
/// this one's key, scrypt is given the smallest N, which takes none.
fn put_repository(place: &Place) {
    let made = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/repository");
    let repository = place.path("repository");
    for name in ["data", "index", "keys", "locks", "snapshots"] {
        fs::create_dir_all(repository.join(name)).unwrap();
    }
    fs::set_permissions(&repository, fs::Permissions::from_mode(0o700)).unwrap();
    fs::copy(made.join("config"), repository.join("config")).unwrap();
    for key in fs::read_dir(made.join("keys")).unwrap().map(Result::unwrap) {
        fs::copy(key.path(), repository.join("keys").join(key.file_name())).unwrap();
    }
}

fn password(place: &Place, text: &str, mode: u32) {
    let path = place.path("config/restic-password");
    fs::write(&path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

fn destination(place: &Place) -> String {
    format!("--destination=restic://{}", place.at("repository"))
}

fn at(place: &Place, command: &str, args: &[&str]) -> Ran {
    place.run(&[&[command, &destination(place)], args].concat())
}

#[track_caller]
fn create(place: &Place, args: &[&str]) -> Ran {
    at(place, "create", &[args, &["--", &place.at("source")]].concat()).good()
}

/// Sets what the engine takes for the time, in seconds since 1970.
fn clock(place: &Place, time: u64) {
    place.program("date", "case $1 in +%s) cat \"${0%/*}/now\" ;; *) exec /bin/date \"$@\" ;; esac");
    fs::write(place.path("bin/now"), time.to_string()).unwrap();
}

/// restic itself, with the place's repository.
fn restic(place: &Place, args: &[&str]) -> Command {
    let mut command = Command::new("restic");
    command.args(["--no-cache", "--password-file", &place.at("config/restic-password")]);
    command.args(["--repo", &place.at("repository")]).args(args).env("HOME", place.directory.path());
    command
}

/// The packs of the repository, the largest first.
fn packs(place: &Place) -> Vec<PathBuf> {
    let directories = fs::read_dir(place.path("repository/data")).unwrap();
    let files = directories.flat_map(|directory| fs::read_dir(directory.unwrap().path()).unwrap());
    let mut files: Vec<_> = files.map(|file| file.unwrap().path()).collect();
    // One that is being written may get another name meanwhile.
    files.sort_by_key(|file| std::cmp::Reverse(fs::metadata(file).map_or(0, |found| found.len())));
    files
}

fn flip(path: &Path) {
    let mut bytes = fs::read(path).unwrap();
    bytes[40] ^= 1;
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
    fs::write(path, bytes).unwrap();
}

/// Bytes that don't compress.
fn noise(size: usize) -> Vec<u8> {
    let mut state = 7_u64;
    let next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) as u8
    };
    std::iter::repeat_with(next).take(size).collect()
}

#[test]
fn a_tree_comes_back_as_it_was_by_every_shell() {
    for place in of_each_shell(without_repository) {
        let source = place.path("source");
        odd_files(&source);
        fs::write(source.join("q\"\\<&>\u{2028}"), "quoted").unwrap();
        give_away(&source.join("-rf"));
        let checked = at(&place, "check", &[]).good();
        assert_eq!(checked.value("repository"), "missing");
        assert!(checked.value("free_kib").parse::<u64>().unwrap() > 0);
        let new = create(&place, &["--label=one", "--exclude=*.log"]);
        assert!(new.value("note").contains("a new repository was made"), "{}", new.out);
        fs::remove_dir_all(place.path("repository")).unwrap();
        put_repository(&place);
        let made = create(&place, &["--label=one", "--exclude=*.log"]);
        assert!(!made.out.contains("a new repository was made"), "{}", made.out);
        let id = made.value("id");
        assert!(id.ends_with("-one"), "{id}");
        assert!(!at(&place, "check", &[]).good().out.contains("missing"));

        let verified = at(&place, "verify", &["--", id]).good();
        for kind in ["corrupt", "missing", "changed"] {
            assert_eq!(verified.value(kind), "0", "{:?} {}", place.shell, verified.out);
        }
        assert_eq!(verified.value("entries"), "17", "{}", verified.out);
        let target = format!("--target={}", place.at("restored"));
        let foreseen = at(&place, "preview", &[&target, "--", id]).good();
        assert_eq!((foreseen.value("created"), foreseen.value("overwritten")), ("14", "0"));
        let restored = at(&place, "restore", &[&target, "--", id]).good();
        assert_eq!(restored.value("restored"), "14", "{}", restored.out);
        let there = place.path("restored").join(place.at("source").trim_start_matches('/'));
        assert_eq!(difference(&source, &there), "", "{:?}", place.shell);
        // A second time it goes into what is there.
        fs::write(there.join("tab\tx \\#041"), "other").unwrap();
        fs::remove_file(there.join("dangling")).unwrap();
        let again = at(&place, "restore", &[&target, "--", "latest"]).good();
        assert_eq!((again.value("restored"), again.value("id")), ("1", id), "{}", again.out);
        assert_eq!(difference(&source, &there), "", "{:?}", place.shell);
        assert_eq!(fs::read_dir(place.path("restored")).unwrap().count(), 1, "nothing else is left there");

        fs::write(source.join("[x]*?"), "longer than before").unwrap();
        let second = create(&place, &[]);
        assert_eq!(second.value("new_files"), "1", "{}", second.out);
        assert!(second.value("new_bytes").parse::<u64>().unwrap() < 100_000);
    }
}

#[test]
fn a_restore_in_place_keeps_what_it_replaces_and_leaves_the_rest() {
    let Some(place) = repository() else { return };
    let source = place.path("source");
    fs::create_dir(source.join("sub")).unwrap();
    for name in ["a", "[b] \\ \"q\"", "c", "ä\nnew", "sub/d", "-e f"] {
        fs::write(source.join(name), format!("good {name}")).unwrap();
    }
    let made = create(&place, &[]);
    let id = made.value("id");
    let set = |name: &str, text: &str, hours: i64| {
        let file = source.join(name);
        fs::write(&file, text).unwrap();
        let now = std::time::SystemTime::now();
        let span = Duration::from_secs(3600 * hours.unsigned_abs());
        let time = if hours < 0 { now - span } else { now + span };
        fs::File::options().write(true).open(file).unwrap().set_modified(time).unwrap();
    };
    set("a", "newer a", 3);
    set("[b] \\ \"q\"", "older", -3);
    set("ä\nnew", "newer as well", 3);
    fs::remove_file(source.join("c")).unwrap();
    fs::write(source.join("stays"), "x").unwrap();
    fs::set_permissions(&source, fs::Permissions::from_mode(0o711)).unwrap();

    let foreseen = at(&place, "preview", &["--", id]).good();
    let counts = ["created", "overwritten", "newer"].map(|key| foreseen.value(key).to_owned());
    assert_eq!(counts, ["1", "3", "2"], "{}", foreseen.out);
    let told: Vec<_> = foreseen.out.lines().filter(|line| line.contains(" /")).collect();
    let line = |kind: &str, name: &str| format!("{kind} {}/{name}", place.at("source"));
    assert_eq!(
        told,
        [line("newer", "a"), line("newer", "\\#303\\#244\\#012new"), line("overwritten", "[b] \\ \"q\"")]
    );
    assert!(!source.join("c").exists());

    let one = format!("{}/[b] \\ \"q\"", place.at("source"));
    let partial = at(&place, "restore", &["--", id, &one]).good();
    assert_eq!(partial.value("restored"), "1");
    assert_eq!(fs::read_to_string(&one).unwrap(), "good [b] \\ \"q\"");
    assert!(!source.join("c").exists());
    assert_eq!(fs::metadata(&source).unwrap().mode() & 0o777, 0o711, "the directory above stays as it is");
    let kept = Path::new(partial.value("kept")).join(one.trim_start_matches('/'));
    assert_eq!(fs::read_to_string(kept).unwrap(), "older");

    let whole = at(&place, "restore", &["--", id]).good();
    assert_eq!(whole.value("restored"), "3", "{}", whole.out);
    for name in ["a", "c", "ä\nnew", "sub/d", "-e f"] {
        assert_eq!(fs::read_to_string(source.join(name)).unwrap(), format!("good {name}"));
    }
    assert!(source.join("stays").exists() && !place.path("restoring").exists());
    assert!(!at(&place, "restore", &["--", id]).good().out.contains("kept="));
    for command in ["preview", "restore"] {
        let none = format!("{}/none", place.at("source"));
        assert_eq!(at(&place, command, &["--", id, &none]).code(), "NOT_IN_BACKUP");
        let target = format!("--target={}/x", place.at("repository"));
        assert_eq!(at(&place, command, &[&target, "--", id]).code(), "INVALID_PATH");
    }
    // What is a symlink now could lead elsewhere.
    fs::rename(source.join("sub"), source.join("moved")).unwrap();
    symlink("/etc", source.join("sub")).unwrap();
    let below = format!("{}/sub/d", place.at("source"));
    for command in ["preview", "restore"] {
        assert_eq!(at(&place, command, &["--", id, &below]).code(), "TARGET_IS_SYMLINK");
    }
}

#[test]
fn corrupt_changed_and_missing_are_told_apart() {
    let Some(place) = repository() else { return };
    let source = place.path("source");
    for name in ["edited", "deleted", "touched", "same", "new\nline \\#041 ä"] {
        fs::write(source.join(name), format!("contents of {name}")).unwrap();
    }
    let made = create(&place, &[]);
    let id = made.value("id").to_owned();
    // The same size and time, as a bad disk or somebody who hides it leaves a file.
    let edited = source.join("edited");
    let time = fs::metadata(&edited).unwrap().modified().unwrap();
    fs::write(&edited, "CONTENTS of edited").unwrap();
    fs::File::options().write(true).open(&edited).unwrap().set_modified(time).unwrap();
    fs::set_permissions(source.join("touched"), fs::Permissions::from_mode(0o600)).unwrap();
    fs::remove_file(source.join("deleted")).unwrap();
    fs::remove_file(source.join("new\nline \\#041 ä")).unwrap();
    let told = |verified: &Ran| {
        let lines = verified.out.lines().filter(|line| line.contains(" tree/")).map(str::to_owned);
        let mut lines: Vec<_> = lines.collect();
        lines.sort();
        lines
    };
    let line = |kind: &str, name: &str, why: &str| {
        let path = format!("tree{}/{name}", place.at("source"));
        format!("{kind} {path}{}{why}", if why.is_empty() { "" } else { "\t" })
    };
    let verified = at(&place, "verify", &["--", &id]).good();
    let counts = ["corrupt", "missing", "changed"].map(|kind| verified.value(kind).to_owned());
    assert_eq!(counts, ["0", "2", "2"], "{}", verified.out);
    assert_eq!(
        told(&verified),
        [
            line("changed", "edited", "content"),
            line("changed", "touched", "mode or owner"),
            line("missing", "deleted", ""),
            line("missing", "new\\#012line \\#134#041 \\#303\\#244", ""),
        ]
    );

    // A second backup has a pack of its own, and only that one is damaged.
    fs::remove_file(edited).unwrap();
    fs::write(source.join("large"), noise(300_000)).unwrap();
    let second = create(&place, &[]);
    flip(&packs(&place)[0]);
    let damaged = at(&place, "verify", &["--", second.value("id")]).good();
    assert_eq!(damaged.value("corrupt"), "1", "{}", damaged.out);
    assert_eq!(told(&damaged), [line("corrupt", "large", "its pack is damaged")]);
    assert!(damaged.value("note").contains("wasn't compared") && damaged.value("entries") != "0");
    assert_eq!(at(&place, "verify", &["--", &id]).good().value("corrupt"), "0");
    let target = format!("--target={}", place.at("restored"));
    let failed = at(&place, "restore", &[&target, "--", second.value("id")]);
    assert_eq!(failed.code(), "REPOSITORY_CORRUPT");
    assert!(failed.error.contains("/large"), "{}", failed.error);
    assert!(!place.path("restored").exists());
    let same = format!("{}/same", place.at("source"));
    at(&place, "restore", &[&target, "--", second.value("id"), &same]).good();
    // A pack that is gone is told as well.
    fs::remove_file(&packs(&place)[0]).unwrap();
    let gone = at(&place, "verify", &["--", second.value("id")]).good();
    assert_ne!(gone.value("corrupt"), "0", "{}", gone.out);
    // With damaged directories restic's dump lacks all that is in them, and succeeds.
    packs(&place).iter().for_each(|pack| flip(pack));
    let blind = at(&place, "verify", &["--", &id]).good();
    assert_ne!(blind.value("corrupt"), "0", "{}", blind.out);
}

#[test]
fn a_killed_backup_is_no_backup_and_its_lock_stops_nobody() {
    let Some(place) = repository() else { return };
    fs::write(place.path("source/first"), "x").unwrap();
    let config = format!(
        "destination=restic://{}\npath={}\nkeep_daily=1\nkeep_weekly=0\nkeep_monthly=0\n",
        place.at("repository"),
        place.at("source")
    );
    fs::write(place.path("config/daily.conf"), config).unwrap();
    let first = place.run(&["run", "daily"]).good().value("id").to_owned();
    fs::write(place.path("source/large"), noise(6_000_000)).unwrap();
    let real = ran(Command::new("sh").args(["-c", "command -v restic"])).good().out;
    place.program("restic", &format!("exec {} --limit-upload 500 \"$@\"", real.trim()));
    let mut child = place
        .command(&["create", &destination(&place), "--", &place.at("source")])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .unwrap();
    let begun = Instant::now();
    let locks = place.path("repository/locks");
    let is_copying = || {
        fs::read_dir(&locks).unwrap().count() > 0
            && packs(&place).iter().any(|pack| pack.to_string_lossy().contains("-tmp-"))
    };
    while !is_copying() {
        assert!(begun.elapsed() < Duration::from_secs(60), "nothing was copied");
        std::thread::sleep(Duration::from_millis(20));
    }
    let group = format!("-{}", child.id());
    ran(Command::new("kill").args(["-KILL", "--", &group])).good();
    child.wait().unwrap();
    // restic takes a process for running until init has waited for it.
    while ran(Command::new("kill").args(["-0", "--", &group])).ok {
        assert!(begun.elapsed() < Duration::from_secs(60), "a process is left");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(fs::read_dir(&locks).unwrap().count(), 1);
    fs::remove_file(place.path("bin/restic")).unwrap();
    let listed = at(&place, "list", &[]).good().out;
    assert_eq!(listed.matches("\"linux-sysadmin\"").count(), 1, "{listed}");
    // What needs the repository for itself alone removes the lock of a process that is gone.
    let next = place.run(&["run", "daily"]).good();
    assert_eq!(next.value("removed"), first, "{}{}", next.out, next.error);
    let verified = at(&place, "verify", &["--", next.value("id")]).good();
    assert_eq!((verified.value("corrupt"), verified.value("missing")), ("0", "0"));
}

#[test]
fn a_repository_that_somebody_else_uses_is_told() {
    let Some(place) = repository() else { return };
    fs::write(place.path("source/a"), "x").unwrap();
    create(&place, &[]);
    let mut holder = restic(&place, &["backup", "--stdin", "--stdin-filename", "x"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let begun = Instant::now();
    while fs::read_dir(place.path("repository/locks")).unwrap().count() == 0 {
        assert!(begun.elapsed() < Duration::from_secs(60), "there is no lock");
        std::thread::sleep(Duration::from_millis(20));
    }
    let config = format!(
        "destination=restic://{}\npath={}\nkeep_daily=1\nkeep_weekly=0\nkeep_monthly=0\n",
        place.at("repository"),
        place.at("source")
    );
    fs::write(place.path("config/daily.conf"), config).unwrap();
    // Both may write at once; only what removes something has to wait.
    clock(&place, 1_795_755_600);
    let first = place.run(&["run", "daily"]).good();
    assert!(!first.out.contains("removed="), "{}", first.out);
    clock(&place, 1_795_755_601);
    let second = place.run(&["run", "daily"]);
    assert_eq!(second.code(), "REPOSITORY_LOCKED");
    assert!(second.error.contains("already locked by PID"), "{}", second.error);
    drop(holder.stdin.take());
    holder.wait().unwrap();
}

#[test]
fn a_schedule_prunes_the_backups_of_its_label_and_of_this_machine_only() {
    let Some(place) = repository() else { return };
    fs::write(place.path("source/a"), "x").unwrap();
    let config = format!(
        "destination=restic://{}\npath={}\nkeep_daily=2\nkeep_weekly=0\nkeep_monthly=0\n",
        place.at("repository"),
        place.at("source")
    );
    fs::write(place.path("config/daily.conf"), config).unwrap();
    let on = |day: u64| clock(&place, 1_795_755_600 + day * 86_400);
    let run = || place.run(&["run", "daily"]).good();
    on(0);
    let by_hand = create(&place, &["--label=daily-x"]).value("id").to_owned();
    let first = run().value("id").to_owned();
    on(1);
    let namesake = {
        fs::write(place.path("machine-id"), "another machine\n").unwrap();
        let id = run().value("id").to_owned();
        fs::write(place.path("machine-id"), "0123456789abcdef0123456789abcdef\n").unwrap();
        id
    };
    let foreign = restic(&place, &["backup", "--tag", "mine", &place.at("source")]).output().unwrap();
    assert!(foreign.status.success());
    on(2);
    let second = run().value("id").to_owned();
    on(3);
    let last = run();
    assert_eq!(last.value("removed"), first);
    let listed = at(&place, "list", &[]).good().out;
    for id in [&by_hand, &namesake, &second, last.value("id")] {
        assert!(listed.contains(&format!("\"{id}\"")), "{id} {listed}");
    }
    assert!(!listed.contains(&format!("\"{first}\"")) && !listed.contains("\"mine\""), "{listed}");
    let all = restic(&place, &["snapshots", "--json"]).output().unwrap();
    assert!(String::from_utf8_lossy(&all.stdout).contains("\"mine\""));
    // The other machine's backup isn't compared with the files here.
    let verified = at(&place, "verify", &["--", &namesake]).good();
    assert!(verified.value("note").contains("another host") && !verified.out.contains("missing="));
}

#[test]
fn dumps_go_along_and_come_back_at_a_target() {
    let Some(place) = repository() else { return };
    fs::write(place.path("source/a"), "x").unwrap();
    place.program("runuser", "[ \"$*\" = '-u postgres -- pg_dumpall' ] && echo 'CREATE ROLE postgres;'");
    let made = create(&place, &["--dump=postgresql"]);
    assert!(!place.path("dumps").exists());
    let verified = at(&place, "verify", &["--", made.value("id")]).good();
    assert_eq!((verified.value("corrupt"), verified.value("missing")), ("0", "0"), "{}", verified.out);
    let target = format!("--target={}", place.at("restored"));
    let file = format!("{}/a", place.at("source"));
    for paths in [&[][..], &[file.as_str()]] {
        at(&place, "restore", &[&[&target, "--", made.value("id")], paths].concat()).good();
        let dump = place.path("restored/dumps/postgresql.sql");
        assert_eq!(fs::read_to_string(dump).unwrap(), "CREATE ROLE postgres;\n");
        let inside = place.path("restored").join(place.at("dumps").trim_start_matches('/'));
        assert!(!inside.exists(), "{inside:?}");
        fs::remove_dir_all(place.path("restored")).unwrap();
    }
    at(&place, "restore", &["--", made.value("id")]).good();
    assert!(!place.path("dumps").exists() && !place.path("restoring").exists());
    place.program("runuser", "echo 'pg_dumpall: error: connection to server failed' >&2; exit 1");
    let failed = at(&place, "create", &["--dump=postgresql", "--", &place.at("source")]);
    assert_eq!(failed.code(), "DUMP_FAILED");
    assert!(!place.path("dumps").exists());
    assert_eq!(at(&place, "list", &[]).good().out.matches("\"linux-sysadmin\"").count(), 1);
}

#[test]
fn what_could_not_be_read_makes_no_good_backup() {
    let Some(place) = repository() else { return };
    fs::write(place.path("source/a"), "x").unwrap();
    let first = create(&place, &[]).value("id").to_owned();
    let real = ran(Command::new("sh").args(["-c", "command -v restic"])).good().out;
    // As restic 0.14 tells it.
    let told = |code: u32| {
        let error = format!(
            r#"{{"message_type":"error","error":{{"Op":"open","Path":"/x","Err":{code}}},"during":"archival","item":"/x"}}"#
        );
        place.program(
            "restic",
            &format!(
                "{} \"$@\" || exit\ncase \" $* \" in *' backup --json '*) echo '{error}' >&2; exit 3 ;; esac",
                real.trim()
            ),
        );
        at(&place, "create", &["--", &place.at("source")])
    };
    let vanished = told(2).good();
    assert_eq!(vanished.value("note"), "1 files vanished while they were read");
    let failed = told(13);
    assert_eq!(failed.code(), "RESTIC_FAILED");
    assert!(failed.error.contains("\"Err\":13"), "{}", failed.error);
    let listed = at(&place, "list", &[]).good().out;
    assert_eq!(listed.matches("\"linux-sysadmin\"").count(), 2, "{listed}");
    assert!(listed.contains(&first) && listed.contains(vanished.value("id")));
}

#[test]
fn each_hindrance_has_a_code_of_its_own() {
    let Some(place) = without_repository() else { return };
    let source = place.at("source");
    fs::write(place.path("source/a"), "x").unwrap();
    let create = || at(&place, "create", &["--", &source]);
    assert_eq!(at(&place, "list", &[]).code(), "REPOSITORY_MISSING");
    fs::create_dir(place.path("repository")).unwrap();
    fs::set_permissions(place.path("repository"), fs::Permissions::from_mode(0o700)).unwrap();
    fs::write(place.path("repository/file"), "x").unwrap();
    assert_eq!(create().code(), "REPOSITORY_MISSING");
    fs::remove_file(place.path("repository/file")).unwrap();
    for (mode, text, code) in [
        (0o644, "one secret", "RESTIC_PASSWORD_UNSAFE"),
        (0o640, "one secret", "RESTIC_PASSWORD_UNSAFE"),
        (0o600, "", "RESTIC_PASSWORD_MISSING"),
    ] {
        password(&place, text, mode);
        assert_eq!(create().code(), code);
    }
    fs::remove_file(place.path("config/restic-password")).unwrap();
    assert_eq!(create().code(), "RESTIC_PASSWORD_MISSING");
    symlink("/etc/hostname", place.path("config/restic-password")).unwrap();
    assert_eq!(create().code(), "RESTIC_PASSWORD_UNSAFE");
    fs::remove_file(place.path("config/restic-password")).unwrap();
    password(&place, "one secret\n", 0o600);
    create().good();
    password(&place, "another\n", 0o600);
    assert_eq!(create().code(), "RESTIC_PASSWORD_WRONG");
    password(&place, "one secret\n", 0o600);
    let data = place.at("repository/data");
    let refused: [(&[&str], &str); 7] = [
        (&["create", "--", "/none"], "SOURCE_NOT_FOUND"),
        (&["create", "--label=a/b", "--", &source], "INVALID_LABEL"),
        (&["archive-etc"], "INVALID_DESTINATION"),
        (&["verify", "--", "x"], "INVALID_BACKUP_ID"),
        (&["verify", "--", "x-2026-01-01-000000"], "BACKUP_NOT_FOUND"),
        (&["restore", "--", "x-2026-01-01-000000"], "BACKUP_NOT_FOUND"),
        (&["create", "--", &data], "SOURCE_IN_DESTINATION"),
    ];
    for (args, code) in refused {
        assert_eq!(at(&place, args[0], &args[1..]).code(), code, "{args:?}");
    }
    for destination in ["restic://host/x", "restic+sftp:///x", "restic+sftp://u@-h/x", "restic+sftp://h/a;id"]
    {
        let refused = place.run(&["list", &format!("--destination={destination}")]);
        assert_eq!(refused.code(), "INVALID_DESTINATION", "{destination}");
    }
    let missing = format!("--destination=restic://{}/none/x", place.at("source"));
    assert_eq!(place.run(&["create", &missing, "--", &source]).code(), "DESTINATION_NOT_FOUND");
    fs::set_permissions(place.path("repository"), fs::Permissions::from_mode(0o777)).unwrap();
    assert_eq!(create().code(), "DESTINATION_UNSAFE");
    fs::set_permissions(place.path("repository"), fs::Permissions::from_mode(0o700)).unwrap();
    place.program("restic", "echo 'restic 0.9.6 compiled with go1.13'");
    assert_eq!(create().code(), "RESTIC_TOO_OLD");
    place.program(
        "restic",
        "case $1 in backup) echo --files-from-raw ;; *) echo 'unknown flag: --no-lock' >&2; exit 1 ;; esac",
    );
    assert_eq!(create().code(), "RESTIC_TOO_OLD");
    place.program("restic", "case $1 in backup) echo --files-from-raw ;; *) echo 'ssh: connect to host h port 22: Connection refused' >&2; exit 1 ;; esac");
    assert_eq!(create().code(), "DESTINATION_UNREACHABLE");
    fs::remove_file(place.path("bin/restic")).unwrap();
    let mut without = place.command(&["list", &destination(&place)]);
    for program in [
        "sh",
        "mktemp",
        "rm",
        "cksum",
        "sha256sum",
        "cut",
        "uname",
        "tr",
        "head",
        "rmdir",
        "find",
        "id",
        "cat",
    ] {
        let found = ran(Command::new("sh").args(["-c", &format!("command -v {program}")])).good().out;
        symlink(found.trim(), place.path("bin").join(program)).unwrap();
    }
    assert_eq!(ran(without.env("PATH", place.path("bin"))).code(), "RESTIC_MISSING");
}

#[test]
fn a_full_disk_and_a_read_only_one_are_told() {
    let Some(place) = without_repository() else { return };
    if !is_root() || !ran(Command::new("unshare").args(["-m", "true"])).ok {
        skipped("needs mounts");
        return;
    }
    fs::write(place.path("source/large"), noise(3_000_000)).unwrap();
    let script = format!(
        "set -u; cd '{at}'; e() {{ PATH=/usr/sbin:/usr/bin:/sbin:/bin sh ./engine \"$@\"; echo code=$?; }}
        d='{destination}'; mkdir disk; mount -t tmpfs -o size=1m,mode=700 x disk
        e create \"$d\" -- '{at}/source'; mount -o remount,size=16m disk
        e create \"$d\" -- '{at}/source' | grep ^code; e list \"$d\" | grep -c linux-sysadmin
        mkdir small; mount -t tmpfs -o size=1m,mode=700 x small
        e restore \"$d\" --target='{at}/small' -- latest; ls -A small
        mount -o remount,ro disk; e create \"$d\" -- '{at}/source'
        e verify \"$d\" -- latest | grep -E '^(corrupt|code)='",
        at = place.directory.path().display(),
        destination = format_args!("--destination=restic://{}", place.at("disk/repository")),
    );
    let output = ran(Command::new("unshare").args(["-m", "sh", "-c", &script]));
    let codes: Vec<_> =
        output.error.lines().filter_map(|line| line.split_once(": ").map(|(code, _)| code)).collect();
    assert_eq!(
        codes,
        ["DESTINATION_FULL", "TARGET_FULL", "DESTINATION_FAILED"],
        "{}{}",
        output.out,
        output.error
    );
    assert!(
        output.out.contains("code=0\n1\n") && output.out.ends_with("corrupt=0\ncode=0\n"),
        "{}",
        output.out
    );
}

#[test]
fn a_repository_on_another_host_is_reached_by_sftp() {
    let Some(place) = without_repository() else { return };
    let places =
        ["/usr/lib/openssh/sftp-server", "/usr/libexec/openssh/sftp-server", "/usr/lib/ssh/sftp-server"];
    let given = std::env::var("SFTP_SERVER").ok();
    let Some(server) = given.or(places.into_iter().find(|path| Path::new(path).exists()).map(str::to_owned))
    else {
        skipped("there is no sftp-server");
        return;
    };
    place.program(
        "ssh",
        &format!(
            "while :; do case $1 in -o | -p | -l) shift 2 ;; -*) shift ;; *) break ;; esac; done\n\
             [ \"$*\" = 'backuphost -s sftp' ] || {{ echo \"ssh: Could not resolve hostname $1: Name or service not known\" >&2; exit 255; }}\n\
             exec {server}"
        ),
    );
    odd_files(&place.path("source"));
    // A path on another host has no blanks.
    let plain = tempfile::tempdir_in("/var/tmp").unwrap();
    let destination =
        format!("--destination=restic+sftp://keeper@backuphost:2222{}/repository", plain.path().display());
    let on = |command: &str, args: &[&str]| place.run(&[&[command, &destination], args].concat());
    assert_eq!(on("list", &[]).code(), "REPOSITORY_MISSING");
    assert_eq!(on("check", &[]).good().value("repository"), "missing");
    let made = on("create", &["--", &place.at("source")]).good();
    let verified = on("verify", &["--", made.value("id")]).good();
    assert_eq!((verified.value("corrupt"), verified.value("missing")), ("0", "0"), "{}", verified.out);
    let target = format!("--target={}", place.at("restored"));
    on("restore", &[&target, "--", made.value("id")]).good();
    let restored = place.path("restored").join(place.at("source").trim_start_matches('/'));
    assert_eq!(difference(&place.path("source"), &restored), "");
    let unknown = place.run(&["list", "--destination=restic+sftp://elsewhere/srv/x"]);
    assert_eq!(unknown.code(), "DESTINATION_UNREACHABLE");
    assert!(unknown.error.contains("Could not resolve hostname elsewhere"), "{}", unknown.error);
}

/// Where the layers of an overlay are on several file systems, its files are on other devices than its directories.
#[test]
fn an_overlay_is_backed_up_whole_and_what_is_mounted_there_is_not() {
    let Some(place) = repository() else { return };
    let Some(ran) = with_mounts(
        &place,
        r#"mkdir lower upper; mount -t tmpfs x lower; mount -t tmpfs x upper; mkdir upper/files upper/work
        echo below >lower/below; mkdir lower/mounted
        mount -t overlay -o "lowerdir=$at/lower,upperdir=$at/upper/files,workdir=$at/upper/work" x source || exit 77
        echo above >source/above; mount -t tmpfs x source/mounted; echo other >source/mounted/other
        e create "--destination=restic://$at/repository" -- "$at/source""#,
    ) else {
        return;
    };
    if ran.out.is_empty() {
        skipped("there is no overlay");
        return;
    }
    assert!(ran.out.contains("code=0"), "{}{}", ran.out, ran.error);
    assert_eq!(ran.value("files"), "2", "{}", ran.out);
    let mut listed = restic(&place, &["ls", "latest"]);
    let listed = String::from_utf8(listed.output().unwrap().stdout).unwrap();
    for (file, is_there) in [("below", true), ("above", true), ("mounted", true), ("mounted/other", false)] {
        let path = format!("{}/{file}", place.at("source"));
        assert_eq!(listed.lines().any(|line| line == path), is_there, "{path}: {listed}");
    }
}
