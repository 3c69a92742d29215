//! `disk_usage` and `disk_usage_top` on file systems that were filled in each of the ways that fill a disk.
//!
//! The recordings are real: each file says what was planted, and which programs printed it. A `␀` stands for a NUL.
#![allow(clippy::unwrap_used)]

use linux_sysadmin_sdk::knowledge::{DataPath, Unit};
use linux_sysadmin_sdk::testkit::{FakeTarget, profile, transcript};
use linux_sysadmin_sdk::{Category, Problem};
use module_storage::module;
use serde_json::{Value, json};

const STATFS: [&str; 5] = ["stat", "--file-system", "--printf", "%b %f %a %S %c %d %n\\0", "--"];
const ROOT: &str = "66057466 62000000 20446462 4096 16777216 16000000 /\0";

/// A machine whose root has room, with one of the recorded file systems on `/srv/data`.
fn machine(recorded: &str) -> FakeTarget {
    let recorded = recorded.replace('␀', "\0");
    let mounts: String =
        recorded.lines().filter_map(|line| line.strip_prefix("# ")).map(|line| format!("{line}\n")).collect();
    let mut target = FakeTarget::new()
        .file("/proc/self/mountinfo", mounts.as_str())
        .file("/proc/stat", "btime 1700000000\n")
        .file("/etc/passwd", "app:x:1000:1000::/:/bin/sh\n");
    for pid in [700, 701, 702] {
        let stat = format!("{pid} (app) S 1 1 1 0 -1 0 0 0 0 0 5 0 9 9 20 0 3 0 12345 4096 25 1 1\n");
        target = target
            .file(&format!("/proc/{pid}/stat"), stat)
            .file(&format!("/proc/{pid}/status"), "Uid:\t1000\t1000\t1000\t1000\n")
            .file(&format!("/proc/{pid}/cgroup"), "0::/system.slice/app.service\n")
            .file(&format!("/proc/{pid}/cmdline"), "/usr/bin/app\0--log\0/srv/data/log/app.log\0");
    }
    for (argv, answered) in transcript(&recorded) {
        let argv: Vec<&str> = argv.iter().map(String::as_str).collect();
        // The root is asked together with the other file systems.
        if argv.starts_with(&STATFS) {
            let points: Vec<&str> = mounts.lines().filter_map(|line| line.split(' ').nth(4)).collect();
            let hiding = if points.len() > 2 { "256 256 256 4096 1024 1023 /srv/data/backup\0" } else { "" };
            let said = [ROOT.as_bytes(), &answered.stdout, hiding.as_bytes()].concat();
            target = target.answer(&[&STATFS[..], &points].concat(), 0, said, "");
        }
        target = target.answer(&argv, answered.exit_code, &answered.stdout, "");
    }
    target
}

const LOG: &str = include_str!("recorded/log.txt");
const DELETED: &str = include_str!("recorded/deleted.txt");
const INODES: &str = include_str!("recorded/inodes.txt");
const RESERVED: &str = include_str!("recorded/reserved.txt");
const HIDING: &str = include_str!("recorded/hiding.txt");

fn usage(target: FakeTarget, arguments: Value) -> (Value, String, String) {
    let (data, reply) = target.call(&module(), "disk_usage", arguments).unwrap();
    (data, reply.summary.unwrap(), reply.severity.unwrap())
}

fn refused(target: FakeTarget, tool: &str, arguments: Value) -> Problem {
    target.call(&module(), tool, arguments).unwrap_err()
}

#[test]
fn a_log_that_fills_a_disk_is_told_with_its_size_and_age() {
    let (data, summary, severity) = usage(machine(LOG), json!({}));
    assert_eq!(severity, "high", "{summary}");
    assert!(
        summary.contains("/srv/data is 94 % full") && summary.contains("/srv/data/log/app/app.log"),
        "{summary}"
    );
    let cause = &data["causes"][0];
    assert_eq!(
        cause["largest"][0],
        json!({"path": "/srv/data/log/app/app.log", "size": "44M", "changed_within": "10 min"})
    );
    assert_eq!(data["filesystems"][0]["mount"], "/srv/data");
    assert_eq!(data["filesystems"][0]["used_pct"], 94);
    assert_eq!(data["filesystems"][1]["used_pct"], 17);
    for nothing in ["hidden", "deleted_open", "most_files", "partial"] {
        assert!(cause[nothing].is_null(), "{cause}");
    }
}

#[test]
fn a_deleted_file_is_told_with_the_process_that_keeps_it_and_the_call_that_frees_it() {
    let (data, summary, severity) = usage(machine(DELETED), json!({}));
    assert_eq!(severity, "high", "{summary}");
    let expected = json!([{
        "path": "/srv/data/log/app.log", "size": "46M", "pid": 700, "started": "2023-11-14T22:15:23Z", "user": "app",
        "command": "/usr/bin/app --log /srv/data/log/app.log", "unit": "app.service", "more_processes": 1,
        "next": "svc_restart {\"service\": \"app.service\"}",
    }]);
    assert_eq!(data["causes"][0]["deleted_open"], expected);
    assert!(summary.contains("deleted files that are still open take 46M of 49."), "{summary}");
    assert!(summary.contains("svc_restart {\"service\": \"app.service\"} frees"), "{summary}");
    assert!(data["causes"][0]["hidden"].is_null(), "{data}");
}

#[test]
fn used_up_inodes_are_told_with_the_directory_that_has_them() {
    let (data, summary, severity) = usage(machine(INODES), json!({}));
    assert_eq!(
        (severity.as_str(), &data["filesystems"][0]["inodes_used_pct"]),
        ("high", &json!(93)),
        "{summary}"
    );
    assert_eq!(data["causes"][0]["most_files"][0]["path"], "/srv/data/cache/");
    assert!(
        summary.contains("/srv/data inodes are 93 % full") && summary.contains("below /srv/data/cache/"),
        "{summary}"
    );
}

#[test]
fn what_is_reserved_for_root_is_told() {
    let (data, summary, severity) = usage(machine(RESERVED), json!({}));
    assert_eq!((severity.as_str(), &data["filesystems"][0]["used_pct"]), ("critical", &json!(100)));
    assert!(summary.contains("are reserved for root") && summary.contains("/srv/data/up/part"), "{summary}");
    assert!(data["filesystems"][0]["reserved"].is_string(), "{data}");
}

#[test]
fn data_below_a_mount_point_is_told_with_the_mounts_that_can_hide_it() {
    let (data, summary, _) = usage(machine(HIDING), json!({}));
    let hidden = &data["causes"][0]["hidden"];
    assert_eq!(
        (&hidden["size"], &hidden["below_mounts"]),
        (&json!("46M"), &json!(["/srv/data/backup"])),
        "{data}"
    );
    assert!(summary.contains("hidden below a mount point: /srv/data/backup"), "{summary}");
    assert!(hidden["next"].as_str().unwrap().contains("keep_fstab"), "{hidden}");
    // xfs needs about as much for itself.
    let (data, _, _) = usage(machine(&HIDING.replace("ext4 /dev/loop2", "xfs /dev/loop2")), json!({}));
    assert!(data["causes"][0].is_object() && data["causes"][0]["hidden"].is_null(), "{data}");
    // A whole that isn't seen tells nothing of what is hidden.
    let part = HIDING.replace("7:2 / /srv/data", "7:2 /part /srv/data");
    assert!(usage(machine(&part), json!({})).0["causes"][0]["hidden"].is_null());
}

#[test]
fn below_the_threshold_no_cause_is_looked_for_and_a_path_asks_for_one() {
    let (data, summary, severity) = usage(machine(LOG), json!({"nearly_full_pct": 95}));
    assert!(data["causes"].is_null() && severity == "info", "{data}");
    assert_eq!(summary, "the fullest is /srv/data with 94 %");
    let real = ["realpath", "--canonicalize-existing", "--zero", "--", "/data/www"];
    let target = machine(LOG).answer(&real, 0, "/srv/data/www\0", "");
    let (data, _, _) = usage(target, json!({"path": "/data/www", "nearly_full_pct": 100}));
    assert_eq!(data["filesystems"].as_array().unwrap().len(), 1);
    assert_eq!(data["causes"][0]["mount"], "/srv/data");
}

#[test]
fn a_service_is_named_with_what_it_has_there() {
    let mut app = profile("app");
    app.data = vec![DataPath { path: "/srv/data/log/".into(), what: "x".into(), optional: false }];
    let (data, summary, _) = usage(machine(LOG).profile(app), json!({}));
    assert_eq!(data["causes"][0]["services"], json!([{"profile": "app", "owns": "/srv/data/log"}]));
    assert_eq!(data["causes"][0]["largest"][0]["service"], "app");
    assert!(summary.contains("app.log of app takes"), "{summary}");
}

/// The descriptors that are open for writing, as find prints them, and the directories that systemd knows.
fn with_writers(target: FakeTarget, links: &str, directories: &str) -> FakeTarget {
    let find = [
        "find",
        "/proc",
        "-mindepth",
        "1",
        "-maxdepth",
        "3",
        "(",
        "-path",
        "/proc/[!1-9]*",
        "-o",
        "-path",
        "/proc/*/task",
        "-o",
        "-path",
        "/proc/*/net",
        "-o",
        "-path",
        "/proc/*/attr",
        "-o",
        "-path",
        "/proc/*/ns",
        "-o",
        "-path",
        "/proc/*/fdinfo",
        "-o",
        "-path",
        "/proc/*/map_files",
        ")",
        "-prune",
        "-o",
        "-type",
        "l",
        "-path",
        "/proc/*/fd/*",
        "-perm",
        "/0200",
        "-lname",
        "/*",
        "!",
        "-lname",
        "/dev/*",
        "-printf",
        "%p\\t%l\\0",
    ];
    let show = [
        "systemctl",
        "show",
        "--type=service",
        "--state=active",
        "--property=Id,StateDirectory,LogsDirectory,CacheDirectory",
        "--",
        "*",
    ];
    target.answer(&find, 0, links, "").answer(&show, 0, directories, "")
}

#[test]
fn the_services_that_live_on_a_file_system_are_told_with_what_they_have_there() {
    let links = "/proc/700/fd/3\t/srv/data/log/app/app.log\0/proc/700/fd/4\t/srv/data/log/app/old (deleted)\0\
        /proc/700/fd/5\t/memfd:x (deleted)\0/proc/701/fd/9\t/var/log/elsewhere\0/proc/999/fd/1\t/srv/data/x\0";
    let directories = "Id=app.service\nStateDirectory=app\n\nId=other.service\nStateDirectory=data\n";
    let (data, summary, _) = usage(with_writers(machine(LOG), links, directories), json!({}));
    let expected = json!([{"unit": "app.service", "writes": "/srv/data/log/app/app.log"}]);
    assert_eq!(data["causes"][0]["services"], expected);
    assert_eq!(data["causes"][0]["largest"][0]["service"], "app.service");
    assert!(summary.contains("app.log of app.service takes"), "{summary}");

    // On /var/lib, a directory that systemd made counts, and a profile is named beside the unit.
    let there = LOG.replace("/srv/data", "/var/lib");
    let mut app = profile("app");
    app.units = vec![Unit {
        name: "app.service".into(),
        aliases: Vec::new(),
        main: true,
        reload: false,
        optional: false,
        what: None,
    }];
    app.data = vec![DataPath { path: "/var/lib/app/db".into(), what: "x".into(), optional: false }];
    let (data, _, _) = usage(with_writers(machine(&there), "", directories).profile(app), json!({}));
    let expected = json!([
        {"unit": "app.service", "profile": "app", "owns": "/var/lib/app/db"},
        {"unit": "other.service", "owns": "/var/lib/data"},
    ]);
    assert_eq!(data["causes"][0]["services"], expected);
}

#[test]
fn many_services_are_told_in_part() {
    let directories: String =
        (0..100).map(|number| format!("Id=s{number}.service\nStateDirectory=s{number}\n\n")).collect();
    let there = LOG.replace("/srv/data", "/var/lib");
    let (data, _, _) = usage(with_writers(machine(&there), "", &directories), json!({}));
    assert_eq!(data["causes"][0]["services"].as_array().map(Vec::len), Some(8));
}

/// A file system that doesn't answer, one whose process is gone, and one that is fine.
#[test]
fn a_file_system_that_hangs_is_told_and_the_others_are_answered() {
    let mounts = "27 1 254:0 / / rw - ext4 /dev/vda rw\n30 27 0:50 / /mnt/a b rw - nfs4 nas:/a rw\n"
        .replace("a b", "a\\040b")
        + "31 27 0:51 / /mnt/gone rw - fuse.sshfs me@x:/ rw\n32 27 0:52 / /tmp rw - tmpfs tmpfs rw\n";
    let of = |path: &'static str| [&STATFS[..], &[path]].concat();
    let target = FakeTarget::new()
        .file("/proc/self/mountinfo", mounts + "33 27 8:9 / /mnt/line\\012break rw - xfs /dev/sdb rw\n")
        .answer(&[&STATFS[..], &["/", "/tmp"]].concat(), 0, format!("{ROOT}1000 900 900 4096 0 0 /tmp\0"), "")
        .answer(
            &of("/mnt/gone"),
            1,
            "",
            "stat: cannot read file system information for '/mnt/gone': Transport endpoint is not connected\n",
        )
        .failure(&of("/mnt/a b"), Problem::new("COMMAND_TIMEOUT", Category::Timeout, "stat took longer than 10 s"));
    let (data, summary, severity) = usage(target, json!({}));
    let said: Vec<_> = data["filesystems"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (one["mount"].as_str().unwrap(), one["problem"].as_str().unwrap_or("")))
        .collect();
    let gone = ("/mnt/gone", "Transport endpoint is not connected");
    let odd = ("/mnt/line\nbreak", "not asked: its name can't be seen whole");
    assert_eq!(said, [("/mnt/a b", "doesn't answer within 10 s"), gone, odd, ("/", "")]);
    assert_eq!(severity, "high");
    assert!(summary.contains("/mnt/a b (nfs4, nas:/a): doesn't answer"), "{summary}");
}

#[test]
fn a_disk_that_is_gone_doesnt_hide_the_numbers_of_the_others() {
    let late = Problem::new("COMMAND_TIMEOUT", Category::Timeout, "stat took longer than 10 s");
    let of = |paths: &[&'static str]| [&STATFS[..], paths].concat();
    let target = FakeTarget::new()
        .file(
            "/proc/self/mountinfo",
            "27 1 254:0 / / rw - ext4 /dev/vda rw\n28 27 8:0 / /gone rw - xfs /dev/sda rw\n",
        )
        .failure(&of(&["/", "/gone"]), late.clone())
        .failure(&of(&["/gone"]), late)
        .answer(&of(&["/"]), 0, ROOT, "");
    let (data, _, _) = usage(target, json!({}));
    assert_eq!(data["filesystems"][0]["problem"], "doesn't answer within 10 s");
    assert_eq!(data["filesystems"][1]["used_pct"], 17);
}

#[test]
fn what_cannot_be_seen_is_said() {
    // Without root's rights, directories stay closed and other accounts' processes can't be looked at.
    let closed = LOG.replace("nd1 2 2 12 ", "nx1 2 2 12 ");
    assert_ne!(closed, LOG);
    let (data, _, _) = usage(machine(&closed), json!({}));
    assert_eq!(data["causes"][0]["partial"], "1 directories can't be read without root's rights");
    assert!(data["causes"][0]["hidden"].is_null(), "{data}");
    // Without any answer, the numbers are still there.
    let bare = machine(LOG.split("$ find").next().unwrap());
    let (data, _, _) = usage(bare, json!({}));
    assert_eq!(data["filesystems"][0]["used_pct"], 94);
    assert!(data["missing"][0].as_str().unwrap().starts_with("deleted files that are open"), "{data}");
    assert!(data["causes"][0]["partial"].is_string(), "{data}");
}

#[test]
fn bad_paths_are_refused_and_say_what_was_expected() {
    let real = |path: &'static str| ["realpath", "--canonicalize-existing", "--zero", "--", path];
    for tool in ["disk_usage", "disk_usage_top"] {
        for path in ["", "relative", "/a\nb", "/a\u{1b}[2J", &format!("/{}", "x".repeat(5000))] {
            let problem = refused(machine(LOG), tool, json!({"path": path}));
            assert_eq!(problem.code, "INVALID_PATH", "{path}");
            assert!(problem.message.contains("expected an absolute path") && problem.message.len() < 250);
        }
        let missing = "realpath: /lsa/none: No such file or directory\n";
        let target = machine(LOG).answer(&real("/lsa/none"), 1, "", missing);
        assert_eq!(refused(target, tool, json!({"path": "/lsa/none"})).code, "PATH_NOT_FOUND");
        let target = machine(LOG).answer(
            &real("/loop"),
            1,
            "",
            "realpath: /loop: Too many levels of symbolic links\n",
        );
        assert_eq!(refused(target, tool, json!({"path": "/loop"})).code, "PATH_UNREADABLE");
        let late = Problem::new("COMMAND_TIMEOUT", Category::Timeout, "realpath took longer than 10 s");
        let target = machine(LOG).failure(&real("/mnt/nfs/x"), late);
        assert_eq!(refused(target, tool, json!({"path": "/mnt/nfs/x"})).code, "FILE_SYSTEM_HANGS");
    }
}

#[test]
fn a_machine_without_mounts_is_a_problem_and_not_an_empty_answer() {
    assert_eq!(refused(FakeTarget::new(), "disk_usage", json!({})).code, "FILE_NOT_FOUND");
    let odd = FakeTarget::new().file("/proc/self/mountinfo", "garbage\n");
    assert_eq!(refused(odd, "disk_usage", json!({})).code, "UNEXPECTED_OUTPUT");
}

fn top(target: FakeTarget, arguments: Value) -> (Value, Vec<String>) {
    let (data, reply) = target.call(&module(), "disk_usage_top", arguments).unwrap();
    (data, reply.notes)
}

#[test]
fn the_largest_are_told_of_the_fullest_file_system_or_of_a_path() {
    let (data, notes) = top(machine(LOG), json!({}));
    assert_eq!(
        (&data["path"], &data["largest"][0]["path"]),
        (&json!("/srv/data"), &json!("/srv/data/log/app/app.log"))
    );
    assert!(notes.is_empty(), "{notes:?}");
    let (data, _) = top(machine(LOG), json!({"count": 1}));
    assert_eq!(data["largest"].as_array().unwrap().len(), 1);
}

/// A root directory as `find` prints it: packages, journal, logs, two kernels, and a cache of a user.
const ROOT_TREE: &str = "od0 9 8 2 5 /\0od1 2 0 3 5 var\0od2 2 0 4 5 cache\0od3 2 0 5 5 apt\0od4 2 0 6 5 archives\0\
    of5 1 400000 7 5 a.deb\0od2 2 0 8 5 log\0od3 2 0 9 5 journal\0of4 1 300000 10 5 system.journal\0\
    of3 1 200000 11 5 syslog\0od1 2 0 12 5 boot\0of2 1 90000 13 5 vmlinuz-6.1\0of2 1 90000 14 5 initrd.img-6.1\0\
    od1 2 0 20 5 home\0od2 2 0 21 5 ann\0od3 2 0 22 5 .cache\0of4 1 100000 23 5 x\0";

fn root(kernels: &[&str]) -> FakeTarget {
    let find: Vec<String> =
        transcript(LOG).into_iter().find(|(argv, _)| argv[0] == "find" && argv[1] == "-H").unwrap().0;
    let find: Vec<&str> = find.iter().map(|word| if word == "/srv/data" { "/" } else { word }).collect();
    let real = ["realpath", "--canonicalize-existing", "--zero", "--", "/"];
    let target = machine(LOG).answer(&real, 0, "/\0", "").answer(&find, 0, ROOT_TREE, "");
    kernels.iter().fold(target, |target, kernel| target.file(&format!("/boot/{kernel}"), ""))
}

#[test]
fn what_may_be_cleaned_is_told_with_the_call_that_cleans_it() {
    let (data, _) =
        top(root(&["vmlinuz-6.1.0-1", "vmlinuz-6.1.0-2", "config-6.1.0-2"]), json!({"path": "/"}));
    let calls: Vec<_> = data["clean"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (one["path"].as_str().unwrap(), one["next"].as_str().unwrap().split(' ').next().unwrap()))
        .collect();
    let expected = [
        ("/var/cache/apt/archives", "pkg_clean"),
        ("/var/log/journal", "command_run"),
        ("/var/log", "log_disk_usage"),
        ("/boot", "pkg_autoremove"),
        ("/home/ann/.cache", "command_run"),
    ];
    assert_eq!(calls, expected);
    assert!(data["clean"][4]["next"].as_str().unwrap().contains("\"/home/ann/.cache\""), "{data}");
    // A single kernel stays.
    let (data, _) = top(root(&["vmlinuz-6.1.0-2", "vmlinuz-0-rescue-abc"]), json!({"path": "/"}));
    assert!(!data["clean"].to_string().contains("/boot"), "{data}");
}

#[test]
fn an_answer_is_short_however_large_the_tree_is() {
    let mut tree = String::from("od0 9 8 2 5 data\0");
    for directory in 0..200 {
        tree += &format!("od1 2 8 {} 5 {}\0", directory + 10, "d".repeat(200));
        for file in 0..500 {
            tree += &format!("nf2 1 4096 {} 5 {}{file}\0", directory * 1000 + file + 1000, "f".repeat(200));
        }
    }
    let find: Vec<String> =
        transcript(LOG).into_iter().find(|(argv, _)| argv[0] == "find" && argv[1] == "-H").unwrap().0;
    let find: Vec<&str> = find.iter().map(String::as_str).collect();
    let target = FakeTarget::new().answer(&find, 0, tree, "");
    let real = ["realpath", "--canonicalize-existing", "--zero", "--", "/srv/data"];
    let (data, _) =
        top(target.answer(&real, 0, "/srv/data\0", ""), json!({"path": "/srv/data", "count": 100}));
    assert_eq!(data["files"], 100_201);
    assert!(data.to_string().len() < 4096, "{}", data.to_string().len());
}
