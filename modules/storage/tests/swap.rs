//! What the tools for swap answer and plan.
#![allow(clippy::unwrap_used)]

mod machine;

use linux_sysadmin_sdk::testkit::FakeTarget;
use linux_sysadmin_sdk::{Change, Command, DurationCategory, Lock, Metadata, Step};
use machine::{At, EXT4, answer, at, directory, machine, plan, refused, reload, root, written};
use serde_json::{Value, json};

const FSTAB: &str = "/dev/vda / ext4 rw,discard 0 1\n";
const HEAD: &str = "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n";
const FOLDER: &str = "/var/lib/linux-sysadmin-swap";

fn stat(pid: u32, name: &str) -> String {
    format!("{pid} ({name}) S 1 1 1 0 -1 0 0 0 0 0 5 0 9 9 20 0 3 0 12345 4096 25 1 1\n")
}

/// The machine with two areas in use, and processes in them.
fn swapping(fstab: &str, available: u64) -> FakeTarget {
    let swaps = format!(
        "{HEAD}/swap\\040file                 file\t\t2097152\t\t1048576\t\t-2\n/dev/zram0 partition\t1048576\t\t0\t\t100\n"
    );
    let mut target = machine(fstab)
        .file("/proc/swaps", swaps)
        .file("/proc/meminfo", format!("MemTotal: 4000000 kB\nMemAvailable:    {available} kB\n"))
        .file("/proc/sys/vm/swappiness", "60\n")
        .file("/proc/stat", "btime 1700000000\n")
        .file("/etc/passwd", "root:x:0:0::/root:/bin/sh\n");
    for (pid, name, kib, unit) in
        [(70, "java", 900_000, "app.service"), (80, "bash", 0, "x.scope"), (90, "sleep", 4, "x.scope")]
    {
        target = target
            .file(&format!("/proc/{pid}/stat"), stat(pid, name))
            .file(&format!("/proc/{pid}/status"), format!("Uid:\t0\t0\t0\t0\nVmSwap:\t  {kib} kB\n"))
            .file(&format!("/proc/{pid}/cmdline"), format!("{name}\0"))
            .file(&format!("/proc/{pid}/cgroup"), format!("0::/system.slice/{unit}\n"));
    }
    target
}

#[test]
fn swap_areas_stand_beside_fstab_with_whose_memory_is_in_them() {
    let fstab = "/swap\\040file none swap sw 0 0\nUUID=gone none swap sw 0 0\n/old none swap noauto 0 0\n";
    let (data, _) = answer(swapping(fstab, 102_400), "swap_list", json!({}));
    let expected = json!({
        "areas": [
            {"path": "/swap file", "type": "file", "size": "2G", "used": "1G", "priority": -2, "fstab_line": 1},
            {"path": "/dev/zram0", "type": "zram", "size": "1G", "used": "0B", "priority": 100},
            {"path": "UUID=gone", "type": "file", "fstab_line": 2, "state": "no_such_device"},
            {"path": "/old", "type": "file", "fstab_line": 3, "state": "noauto"},
        ],
        "total": "3G", "used": "1G", "memory_available": "100M", "swappiness": 60, "zswap": false,
        "processes": [
            {"pid": 70, "started": "2023-11-14T22:15:23Z", "command": "java", "unit": "app.service", "user": "root", "swap": "878.9M"},
            {"pid": 90, "started": "2023-11-14T22:15:23Z", "command": "sleep", "unit": "x.scope", "user": "root", "swap": "4K"},
        ],
    });
    assert_eq!(data, expected);
}

#[test]
fn a_machine_without_swap_says_so() {
    let (data, _) = answer(machine(FSTAB), "swap_list", json!({}));
    assert_eq!(data, json!({"areas": [], "total": "0B", "used": "0B", "zswap": false}));
}

/// The machine with room for a file in /var/lib, on this file system.
fn roomy(fs_type: &str, free_blocks: u64) -> FakeTarget {
    at(machine(FSTAB), "/var/lib", At::Directory)
        .file("/proc/self/mountinfo", format!("43 42 254:0 / / rw - {fs_type} /dev/vda rw\n"))
        .file("/proc/sys/kernel/random/boot_id", "b3a1\n")
        .answer(
            &["stat", "--file-system", "--format=%a %S", "--", "/var/lib"],
            0,
            format!("{free_blocks} 4096\n"),
            "",
        )
}

fn long(argv: &[&str]) -> Command {
    root(argv, DurationCategory::LongRunning)
}

#[test]
fn a_swap_file_is_roots_alone_from_the_beginning_and_goes_away_where_a_step_fails() {
    for (fs_type, priority) in [("ext4", None), ("xfs", Some("5")), ("btrfs", None)] {
        let target = roomy(fs_type, 1 << 20);
        let plans = target.plans();
        let arguments = match priority {
            None => json!({"size": "1G"}),
            Some(_) => json!({"size": "1G", "priority": 5}),
        };
        let (data, notes) = answer(target, "swap_add", arguments);
        let path = data["path"].as_str().unwrap();
        let name = path.strip_prefix(&format!("{FOLDER}/")).unwrap();
        assert!(name.len() == 16 && name.bytes().all(|byte| byte.is_ascii_hexdigit()), "{name}");
        assert_eq!((&data["size"], &data["source"]), (&json!("1G"), &json!(path)));
        assert_eq!(notes.is_empty(), fs_type != "btrfs");
        let step = |argv: &[&str]| {
            Step::run(long(argv)).undo(root(&["rm", "--force", "--", path], DurationCategory::Instant))
        };
        let mut expected = vec![
            Step::make_directory(FOLDER, 0o700).owner("root", "root"),
            step(&["install", "--mode=0600", "--no-target-directory", "--", "/dev/null", path]),
        ];
        if fs_type == "btrfs" {
            expected.push(step(&["chattr", "+C", "--", path]));
        }
        expected.push(step(&["fallocate", "--length", "1073741824", "--", path]));
        expected.push(step(&["mkswap", "--", path]));
        let on: Vec<&str> = match priority {
            None => vec!["swapon", "--", path],
            Some(_) => vec!["swapon", "--priority=5", "--", path],
        };
        expected.push(Step::run(root(&on, DurationCategory::Instant)).undo(long(&["swapoff", "--", path])));
        let options = if priority.is_some() { "sw,nofail,pri=5" } else { "sw,nofail" };
        expected.extend(written(format!("{FSTAB}{path} none swap {options} 0 0\n")));
        assert_eq!(plan(&plans).steps(), expected, "{fs_type}");
    }
}

#[test]
fn a_second_file_has_another_name_in_the_same_directory() {
    let path = |target: FakeTarget| {
        answer(target, "swap_add", json!({"size": "64M"})).0["path"].as_str().unwrap().to_owned()
    };
    let first = path(roomy("ext4", 1 << 20));
    assert_eq!(first, path(roomy("ext4", 1 << 20)), "a plan that is made once more is the same");
    let target = roomy("ext4", 1 << 20).metadata(FOLDER, directory(0o700)).file(&first, "");
    let plans = target.plans();
    assert_ne!(first, path(target));
    assert!(!format!("{:?}", plan(&plans)).contains("make_directory"));
}

#[test]
fn selinux_lets_a_swap_file_be_used() {
    let mut target = roomy("xfs", 1 << 20);
    target.distro.mac_system = "selinux".into();
    let plans = target.plans();
    answer(target, "swap_add", json!({"size": "64M"}));
    assert!(format!("{:?}", plan(&plans).steps()[2]).contains("--type=swapfile_t"));
}

#[test]
fn a_blank_partition_gets_a_uuid_that_fstab_names() {
    let probe = ["blkid", "--probe", "--output", "export", "--", "/dev/vda"];
    let target = machine(FSTAB)
        .file("/etc/fstab", "")
        .file("/proc/self/mountinfo", "43 42 0:9 / / rw - overlay overlay rw\n")
        .answer(&probe, 2, "", "");
    let plans = target.plans();
    let (data, _) = answer(target, "swap_add", json!({"device": "/dev/vda"}));
    let uuid = data["source"].as_str().unwrap().strip_prefix("UUID=").unwrap().to_owned();
    assert!(uuid.len() == 36 && uuid.split('-').map(str::len).eq([8, 4, 4, 4, 12]), "{uuid}");
    let quick = |argv: &[&str]| root(argv, DurationCategory::Instant);
    // A start neither fails nor waits long for a partition that is gone.
    let options = "sw,nofail,x-systemd.device-timeout=10s";
    let [write, reloaded] = written(format!("UUID={uuid} none swap {options} 0 0\n"));
    let change = Change::new("Use /dev/vda as swap now and at each start")
        .step(Step::run(quick(&["mkswap", &format!("--uuid={uuid}"), "--", "/dev/vda"])).undo(quick(&[
            "wipefs",
            "--all",
            "--types=swap",
            "--",
            "/dev/vda",
        ])))
        .step(Step::run(quick(&["swapon", "--", "/dev/vda"])).undo(long(&["swapoff", "--", "/dev/vda"])))
        .lock(Lock::File("/etc/fstab".into()))
        .step(write)
        .step(reloaded)
        .after_undo(reload());
    assert_eq!(plan(&plans), change);
}

#[test]
fn what_cannot_be_swap_is_refused() {
    let in_use = format!("{HEAD}/dev/loop4 partition 1024 0 -2\n");
    let target = || roomy("ext4", 100_000);
    for (target, arguments, code) in [
        (target(), json!({}), "INVALID_ARGUMENTS"),
        (target(), json!({"size": "1G", "device": "/dev/loop2"}), "INVALID_ARGUMENTS"),
        (target(), json!({"directory": "/x", "device": "/dev/loop2"}), "INVALID_ARGUMENTS"),
        (target(), json!({"size": "64M", "priority": 40000}), "INVALID_ARGUMENTS"),
        (target(), json!({"size": "lots"}), "INVALID_SIZE"),
        (target(), json!({"size": "1M"}), "INVALID_SIZE"),
        (target(), json!({"size": "64M", "directory": "srv"}), "INVALID_PATH"),
        (at(target(), "/l", At::LinkTo("/m")), json!({"size": "64M", "directory": "/l"}), "INVALID_PATH"),
        (at(target(), "/n", At::Nothing), json!({"size": "64M", "directory": "/n"}), "DIRECTORY_NOT_FOUND"),
        (roomy("overlay", 1 << 20), json!({"size": "64M"}), "FS_TYPE_NOT_SUPPORTED"),
        // 390 MiB are free.
        (target(), json!({"size": "150M"}), "NO_ROOM"),
        (target().metadata(FOLDER, directory(0o755)), json!({"size": "64M"}), "UNSAFE_DIRECTORY"),
        (
            target().metadata(FOLDER, Metadata { owner: "ada".into(), ..directory(0o700) }),
            json!({"size": "64M"}),
            "UNSAFE_DIRECTORY",
        ),
        (target(), json!({"device": "sdb1"}), "INVALID_DEVICE"),
        (target(), json!({"device": ""}), "INVALID_DEVICE"),
        (target(), json!({"device": "/dev/none"}), "DEVICE_NOT_FOUND"),
        (target(), json!({"device": "/dev/vda"}), "DEVICE_MOUNTED"),
        (target(), json!({"device": "/dev/loop2"}), "DEVICE_HAS_DATA"),
        (target().file("/proc/swaps", in_use), json!({"device": "/dev/loop4"}), "SWAP_IN_USE"),
        (
            target().file("/etc/fstab", format!("{EXT4} none swap sw 0 0\n")),
            json!({"device": "/dev/loop2"}),
            "DEVICE_IN_FSTAB",
        ),
    ] {
        let problem = refused(target, "swap_add", arguments.clone());
        assert_eq!(problem.code, code, "{arguments} {}", problem.message);
    }
    let probe = ["blkid", "--probe", "--output", "export", "--", "/dev/vda"];
    let target = machine("").file("/proc/self/mountinfo", "43 42 0:9 / / rw - overlay overlay rw\n").answer(
        &probe,
        0,
        "DEVNAME=/dev/vda\nPTTYPE=gpt\n",
        "",
    );
    let problem = refused(target, "swap_add", json!({"device": "/dev/vda"}));
    assert_eq!(problem.code, "DEVICE_HAS_DATA");
    assert!(problem.message.contains("PTTYPE=gpt"), "{}", problem.message);
}

fn off(path: &str) -> Step {
    let on = root(&["swapon", "--", path], DurationCategory::Instant);
    Step::run(long(&["swapoff", "--", path])).undo(on)
}

#[test]
fn swap_is_turned_off_where_memory_has_room_for_it() {
    let fstab = format!("{FSTAB}/swap\\040file none swap sw 0 0\n");
    // The other area has 1 GiB free.
    let target = swapping(&fstab, 100_000);
    let plans = target.plans();
    let (data, notes) = answer(target, "swap_remove", json!({"path": "/swap file"}));
    assert_eq!(data, json!({"path": "/swap file", "used": "1G", "fstab_lines": [2], "file_removed": false}));
    assert_eq!(notes, ["/swap file stays: file_remove path=/swap file frees its room"]);
    let [write, reloaded] = written(FSTAB);
    assert_eq!(plan(&plans).steps(), [off("/swap file"), write, reloaded]);
    let problem = refused(swapping(&fstab, 10_000), "swap_remove", json!({"path": "/swap file"}));
    assert_eq!(problem.code, "SWAP_NEEDED");
    assert!(
        problem.message.starts_with("1G of /swap file are in use, and there is room for 969."),
        "{}",
        problem.message
    );
    let expected = ["svc_restart service=app.service: PID 70 (java) has 878.9M in swap"];
    assert_eq!(problem.remediation[..1], expected);
}

#[test]
fn a_file_of_this_tool_is_removed_with_its_area() {
    let path = format!("{FOLDER}/0123456789abcdef");
    let swaps = format!("{HEAD}{path} file 65536 0 7\n");
    let file = Metadata { is_dir: false, ..directory(0o600) };
    let remove = Step::run(root(&["rm", "--force", "--", &path], DurationCategory::Instant));
    let target = machine(format!("{FSTAB}{path} none swap sw,pri=7 0 0\n"))
        .file("/proc/swaps", swaps)
        .file("/proc/meminfo", "MemAvailable: 100000 kB\n")
        .metadata(&path, file.clone());
    let plans = target.plans();
    let (data, _) = answer(target, "swap_remove", json!({"path": path}));
    assert_eq!(data["file_removed"], true);
    let on = root(&["swapon", "--priority=7", "--", &path], DurationCategory::Instant);
    let [write, reloaded] = written(FSTAB);
    let expected = [Step::run(long(&["swapoff", "--", &path])).undo(on), write, reloaded, remove.clone()];
    assert_eq!(plan(&plans).steps(), expected);
    // What is left of an area is removed as well.
    let target = machine(FSTAB).metadata(&path, file);
    let plans = target.plans();
    answer(target, "swap_remove", json!({"path": path}));
    assert_eq!(plan(&plans).steps(), [remove]);
}

#[test]
fn what_is_no_swap_is_refused_and_memory_that_is_compressed_comes_back() {
    for (path, code) in [
        ("", "INVALID_PATH"),
        ("-a", "INVALID_PATH"),
        ("/a\nb", "INVALID_PATH"),
        ("/none", "SWAP_NOT_FOUND"),
        ("/dev/none", "SWAP_NOT_FOUND"),
        (&format!("{FOLDER}/x"), "SWAP_NOT_FOUND"),
    ] {
        assert_eq!(refused(swapping(FSTAB, 1), "swap_remove", json!({"path": path})).code, code, "{path}");
    }
    let deleted = format!("{HEAD}/x\\040(deleted) file 1024 0 -2\n");
    let target = machine(FSTAB).file("/proc/swaps", deleted);
    assert_eq!(refused(target, "swap_remove", json!({"path": "/x (deleted)"})).code, "SWAP_FILE_DELETED");
    let target = swapping(FSTAB, 100_000);
    let plans = target.plans();
    let (_, notes) = answer(target, "swap_remove", json!({"path": "/dev/zram0"}));
    assert!(notes[0].contains("zram-generator"), "{notes:?}");
    let on = root(&["swapon", "--priority=100", "--", "/dev/zram0"], DurationCategory::Instant);
    assert_eq!(plan(&plans).steps(), [Step::run(long(&["swapoff", "--", "/dev/zram0"])).undo(on)]);
}

#[test]
fn thousands_of_areas_and_processes_are_read() {
    let mut target = machine(FSTAB).file("/proc/stat", "btime 1700000000\n");
    for pid in 1000..3000 {
        target = target
            .file(&format!("/proc/{pid}/stat"), stat(pid, "x"))
            .file(&format!("/proc/{pid}/status"), format!("VmSwap: {pid} kB\n"));
    }
    let areas: String = (0..1000).map(|number| format!("/s{number} file 1024 1 -2\n")).collect();
    let (data, _) = answer(target.file("/proc/swaps", format!("{HEAD}{areas}")), "swap_list", json!({}));
    assert_eq!(data["areas"].as_array().unwrap().len(), 1000);
    let pids: Vec<&Value> =
        data["processes"].as_array().unwrap().iter().map(|process| &process["pid"]).collect();
    assert_eq!(pids, [2999, 2998, 2997, 2996, 2995]);
}
