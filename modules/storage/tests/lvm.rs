//! `lvm_list`, `lvm_create_lv`, `lvm_resize` and `lvm_snapshot` as the host calls them. The reports are those of LVM 2.03.16 on
//! Debian 12, recorded without a device mapper. What an active volume looks like is from lvs(8).
#![allow(clippy::unwrap_used)]

use linux_sysadmin_sdk::testkit::{FakeTarget, takes_little_context, transcript};
use linux_sysadmin_sdk::{Category, Change, Command, Failure, Lock, Problem, Risk, Step};
use module_storage::module;
use serde_json::{Value, json};

const FULL: &str = include_str!("data/lvm/full.txt");
const MISSING: &str = include_str!("data/lvm/missing.txt");
const DUPLICATE: &str = include_str!("data/lvm/duplicate.txt");
const NONE: &str = include_str!("data/lvm/none.txt");
const EXT4: &str = include_str!("data/lvm/ext4.txt");
const XFS: &str = include_str!("data/lvm/xfs.txt");
const BTRFS: &str = include_str!("data/lvm/btrfs.txt");

const LSBLK: [&str; 5] = ["lsblk", "--json", "--paths", "--list", "--output=NAME,FSTYPE"];
const DEVICES: &str = r#"{"blockdevices": [{"name":"/dev/loop0", "fstype":"LVM2_member"},
    {"name":"/dev/mapper/vg0-fast", "fstype":"ext4"}, {"name":"/dev/mapper/vg0-web", "fstype":"xfs"}]}"#;
const PROBE: [&str; 6] = ["blkid", "--probe", "--output", "export", "--", "/dev/vg0/fast"];
const SWAPS: &str = "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n";

/// The group as it was recorded, with its volumes active.
fn active() -> String {
    [
        ("owi-XXs---", "owi-a-s---"),
        ("-wi-XX----", "-wi-a-----"),
        ("twi-XXtz--", "twi-aotz--"),
        ("Vwi-XXtz--", "Vwi-a-tz--"),
        ("swi-XXs---", "swi-a-s---"),
    ]
    .iter()
    .fold(FULL.to_owned(), |text, (recorded, active)| text.replace(recorded, active))
}

/// The row of a volume with other values.
fn with(text: &str, volume: &str, values: &[(&str, &str)]) -> String {
    let start = format!("\"lv_name\":\"{volume}\"");
    let lines = text.lines().map(|line| {
        if !line.contains(&start) {
            return line.to_owned();
        }
        let comma = if line.ends_with(',') { "," } else { "" };
        let mut row: Value = serde_json::from_str(line.trim().trim_end_matches(',')).unwrap();
        for (name, value) in values {
            assert!(row[name].is_string(), "{name}");
            row[name] = json!(value);
        }
        format!("{row}{comma}")
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn target(reports: &str) -> FakeTarget {
    FakeTarget::new()
        .transcript(reports)
        .answer(&LSBLK, 0, DEVICES, "")
        .file("/proc/self/mountinfo", "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n")
        .file("/proc/swaps", SWAPS)
}

/// The target where the volume is mounted at /srv/a.
fn mounted(target: FakeTarget, volume: &str, kind: &str, options: &str) -> FakeTarget {
    target.file(
        "/proc/self/mountinfo",
        format!(
            "22 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw\n40 22 253:1 /sub /srv/b {options} - {kind} /dev/mapper/vg0-{volume} rw\n\
             41 22 253:1 / /srv/a {options} - {kind} /dev/mapper/vg0-{volume} rw\n"
        ),
    )
}

fn call(target: FakeTarget, tool: &str, arguments: Value) -> Result<(Value, Vec<String>), Problem> {
    target.call(&module(), tool, arguments).map(|(data, reply)| (data, reply.notes))
}

fn refused(target: FakeTarget, tool: &str, arguments: Value) -> Problem {
    let plans = target.plans();
    let problem = call(target, tool, arguments).unwrap_err();
    assert!(plans.borrow().is_empty(), "{problem:?}");
    problem
}

/// The answer and the one plan.
fn planned(target: FakeTarget, tool: &str, arguments: Value) -> (Value, Vec<String>, Change) {
    let plans = target.plans();
    let (data, notes) = call(target, tool, arguments).unwrap();
    let [plan] = plans.take().try_into().unwrap();
    (data, notes, plan)
}

fn step(line: &str) -> Step {
    Step::run(command(line)).uninterruptible()
}

fn command(line: &str) -> Command {
    let mut words = line.split(' ');
    Command::new(words.next().unwrap()).args(words).as_root()
}

fn resize(target: FakeTarget, path: &str, size: &str) -> (Value, Vec<String>, Change) {
    planned(target, "lvm_resize", json!({"lv_path": path, "size": size}))
}

#[test]
fn the_tools_take_little_of_a_models_context() {
    let module = module().description();
    let tools: Vec<_> = module.tools.iter().filter(|tool| tool.name.starts_with("lvm_")).collect();
    assert_eq!(tools.len(), 4);
    for tool in tools {
        takes_little_context(tool);
    }
    let aliases = |name: &str| &module.tools.iter().find(|tool| tool.name == name).unwrap().aliases;
    assert_eq!(aliases("lvm_list").tool, ["lvm_status"]);
    let names = |name: &str| {
        let pairs = aliases(name).arguments.iter().map(|one| format!("{} {}", one.alias, one.argument));
        pairs.collect::<Vec<_>>()
    };
    assert_eq!(names("lvm_create_lv"), ["name lv_name", "vg vg_name"]);
    assert_eq!(names("lvm_resize"), ["resize_fs resize_filesystem", "lv lv_path"]);
}

#[test]
fn a_group_is_told_with_its_volumes_and_what_they_are() {
    let (data, _) = call(mounted(target(&active()), "fast", "ext4", "rw"), "lvm_list", json!({})).unwrap();
    let volume = |name: &str| {
        let all = data["groups"][0]["volumes"].as_array().unwrap();
        all.iter().find(|volume| volume["path"].as_str().unwrap().ends_with(name)).unwrap().clone()
    };
    assert_eq!(data["groups"][0]["name"], "vg0");
    assert_eq!(data["groups"][0]["free"], "1.04G");
    assert_eq!(data["groups"][0]["pvs"], json!([{"name": "/dev/loop0", "size": "1.99G", "free": "1.04G"}]));
    assert_eq!(data["unused_pvs"], json!([{"name": "/dev/loop1", "size": "1G", "free": "1G"}]));
    assert_eq!(volume("/data"), json!({"path": "/dev/vg0/data", "size": "300M"}));
    assert_eq!(
        volume("/fast"),
        json!({"path": "/dev/vg0/fast", "size": "204M", "filesystem": "ext4", "mounted": ["/srv/a", "/srv/b"]})
    );
    assert_eq!(
        volume("/data_snap"),
        json!({"path": "/dev/vg0/data_snap", "size": "60M", "kind": "snapshot", "origin": "data"})
    );
    assert_eq!(volume("/pool"), json!({"path": "vg0/pool", "size": "400M", "kind": "thin pool"}));
    assert_eq!(
        volume("/web"),
        json!({"path": "/dev/vg0/web", "size": "2G", "kind": "thin", "pool": "pool", "filesystem": "xfs"})
    );
    assert!(data.get("findings").is_none() && data.get("lvm_says").is_none(), "{data}");
}

#[test]
fn what_is_nearly_full_is_told_with_the_call_that_helps() {
    let text = with(&active(), "data_snap", &[("data_percent", "91.50")]);
    let text = with(&text, "pool", &[("data_percent", "96.00"), ("metadata_percent", "20.00")]);
    let df = ["df", "--block-size=1", "--output=used,avail,target", "--", "/srv/a"];
    let table = "      Used      Avail Mounted on\n 190000000    9000000 /srv/a\n";
    let target = mounted(target(&text), "fast", "ext4", "rw").answer(&df, 0, table, "");
    let (data, reply) = target.call(&module(), "lvm_list", json!({"vg_name": "vg0"})).unwrap();
    let found = |index: usize, name: &str| data["findings"][index][name].as_str().unwrap().to_owned();
    assert!(found(0, "what").contains("vg0/pool is 96% full"));
    assert_eq!(found(0, "next"), "lvm_resize lv_path=vg0/pool size=+80M");
    assert!(found(1, "what").contains("data_snap is 91.5% full"));
    assert_eq!(found(1, "next"), "lvm_resize lv_path=/dev/vg0/data_snap size=+12M");
    assert_eq!(found(2, "what"), "/srv/a is 96% full, on /dev/vg0/fast");
    assert_eq!(found(2, "next"), "lvm_resize lv_path=/dev/vg0/fast size=+44M");
    assert_eq!(reply.severity.as_deref(), Some("critical"));
    assert!(reply.summary.unwrap().contains("vg0 has 1.04G free"));
}

#[test]
fn a_lost_snapshot_and_a_disk_that_vanished_are_told() {
    let text = with(&active(), "data_snap", &[("lv_attr", "swi-I-s---"), ("data_percent", "100.00")]);
    let (data, _) = call(target(&text), "lvm_list", json!({})).unwrap();
    assert_eq!(data["findings"][0]["next"], "command_run argv=[lvremove,--yes,vg0/data_snap] as_root=true");
    let (data, reply) = target(MISSING).call(&module(), "lvm_list", json!({})).unwrap();
    assert_eq!(reply.severity.as_deref(), Some("critical"));
    assert_eq!(data["groups"][0]["pvs"][1]["missing"], true);
    assert!(data["findings"][0]["next"].as_str().unwrap().contains("vgextend,--restoremissing,vg0"));
    assert!(data["lvm_says"].to_string().contains("last written to /dev/loop1"), "{data}");
}

#[test]
fn groups_of_one_name_are_told_apart_and_nothing_is_changed_in_them() {
    let (data, _) = call(target(DUPLICATE), "lvm_list", json!({"vg_name": "vg0"})).unwrap();
    let groups = data["groups"].as_array().unwrap();
    assert_eq!(groups.len(), 2);
    assert!(groups.iter().all(|group| group["uuid"].is_string()));
    // Each has the volumes and disks of its own.
    let counts: Vec<_> = groups.iter().map(|group| group["volumes"].as_array().unwrap().len()).collect();
    assert_eq!(counts, [1, 6]);
    for (tool, arguments) in [
        ("lvm_create_lv", json!({"vg_name": "vg0", "lv_name": "x", "size": "1M"})),
        ("lvm_resize", json!({"lv_path": "/dev/vg0/fast", "size": "+4M"})),
        ("lvm_snapshot", json!({"lv_path": "/dev/vg0/fast"})),
    ] {
        let problem = refused(target(DUPLICATE), tool, arguments);
        assert_eq!(problem.code, "LVM_GROUP_AMBIGUOUS");
        assert!(problem.remediation[0].contains("vgrename,AOaxIw-"), "{problem:?}");
    }
}

#[test]
fn a_machine_without_volumes_or_without_lvm_says_so() {
    let (data, reply) = target(NONE).call(&module(), "lvm_list", json!({})).unwrap();
    assert_eq!(data, json!({"groups": []}));
    assert!(reply.summary.unwrap().contains("no volume group"));
    let problem = refused(target(NONE), "lvm_resize", json!({"lv_path": "/dev/vg0/data", "size": "1G"}));
    assert_eq!((problem.code.as_str(), problem.category), ("LVM_VOLUME_NOT_FOUND", Category::NotFound));
    let broken = NONE.replace("\"report\"", "\"rapport\"");
    assert_eq!(refused(target(&broken), "lvm_list", json!({})).code, "UNEXPECTED_OUTPUT");
}

/// Recorded as the account nobody, for whom the report is empty.
#[test]
fn an_account_without_roots_rights_is_told_that_it_needs_them() {
    let said = "  WARNING: Running as a non-root user. Functionality may be unavailable.\n  \
                /run/lock/lvm/P_global:aux: open failed: Permission denied\n";
    for tool in ["lvm_list", "lvm_snapshot"] {
        let mut target = FakeTarget::new();
        for (argv, output) in transcript(NONE) {
            let argv: Vec<_> = argv.iter().map(String::as_str).collect();
            target = target.answer(&argv, 0, output.stdout, said);
        }
        let problem = refused(target, tool, json!({"lv_path": "/dev/vg0/data"}));
        assert_eq!((problem.code.as_str(), problem.category), ("PRIVILEGE_REQUIRED", Category::Privilege));
    }
}

/// Recorded while flock(1) held the file, with `--config global/wait_for_locks=0`.
#[test]
fn a_lock_of_another_command_is_told() {
    let said = "  WARNING: Activation disabled. No device-mapper interaction will be attempted.\n  \
                /run/lock/lvm/V_vg0: flock failed: Resource temporarily unavailable\n  Can't get lock for vg0.\n  \
                Cannot process volume group vg0\n";
    let mut locked = FakeTarget::new();
    for (argv, output) in transcript(NONE) {
        let argv: Vec<_> = argv.iter().map(String::as_str).collect();
        locked = locked.answer(&argv, 5, output.stdout, said);
    }
    let problem = refused(locked, "lvm_list", json!({}));
    assert_eq!(problem.code, "LVM_LOCKED");
    assert!(problem.message.contains("V_vg0"), "{problem:?}");
}

#[test]
fn a_volume_is_made_with_its_file_system_and_taken_away_where_that_fails() {
    let arguments = json!({"vg_name": "vg0", "lv_name": "srv", "size": "500M"});
    let (data, _, plan) = planned(target(FULL), "lvm_create_lv", arguments);
    let create = step("lvcreate --zero=y --wipesignatures=y --extents=125 --name=srv -- vg0")
        .undo(command("lvremove --yes -- vg0/srv"));
    let make = command("mkfs.ext4 -q -- /dev/vg0/srv").duration(linux_sysadmin_sdk::DurationCategory::Slow);
    let expected = Change::new("Create the volume /dev/vg0/srv of 500M with ext4")
        .lock(Lock::Lvm)
        .step(create)
        .step(Step::run(make).uninterruptible());
    assert_eq!(plan, expected);
    assert_eq!(
        data,
        json!({"path": "/dev/vg0/srv", "size": "500M", "filesystem": "ext4", "group_free": "572M",
               "next": "mount_add device=/dev/vg0/srv fs_type=ext4 options=nofail,nosuid,nodev mount_point=…"})
    );
}

#[test]
fn a_size_may_be_a_part_of_the_group_or_of_what_is_free() {
    for (size, filesystem, extents) in [
        ("100%FREE", "xfs", 268),
        ("10%vg", "none", 51),
        ("50%FREE", "btrfs", 134),
        ("1b", "none", 1),
        ("5M", "none", 2),
    ] {
        let arguments = json!({"vg_name": "vg0", "lv_name": "srv", "size": size, "filesystem": filesystem});
        let (_, _, plan) = planned(target(FULL), "lvm_create_lv", arguments);
        let create = format!("lvcreate --zero=y --wipesignatures=y --extents={extents} --name=srv -- vg0");
        assert_eq!(plan.steps()[0], step(&create).undo(command("lvremove --yes -- vg0/srv")));
        assert_eq!(plan.steps().len(), if filesystem == "none" { 1 } else { 2 });
    }
    let arguments =
        json!({"vg_name": "vg0", "lv_name": "srv", "size": "4M", "filesystem": "none", "wipe": true});
    let (_, _, plan) = planned(target(FULL), "lvm_create_lv", arguments);
    let create = "lvcreate --yes --zero=y --wipesignatures=y --extents=1 --name=srv -- vg0";
    assert_eq!(plan.steps(), [step(create).undo(command("lvremove --yes -- vg0/srv"))]);
}

#[test]
fn a_volume_that_cannot_be_made_is_refused_with_what_helps() {
    let ask = |name: &str, size: &str| json!({"vg_name": "vg0", "lv_name": name, "size": size});
    for (arguments, code, helps) in [
        (ask("srv", "2G"), "LVM_NO_SPACE", "at most 1.04G"),
        (ask("srv", "2G"), "LVM_NO_SPACE", "vgextend,vg0,/dev/loop1"),
        (ask("data", "4M"), "LVM_VOLUME_EXISTS", "lvm_resize lv_path=/dev/vg0/data"),
        (json!({"vg_name": "vg1", "lv_name": "x", "size": "4M"}), "LVM_GROUP_NOT_FOUND", "There are vg0"),
        (json!({"vg_name": "-x\n", "lv_name": "x", "size": "4M"}), "LVM_GROUP_NOT_FOUND", "There are vg0"),
    ] {
        let problem = refused(target(FULL), "lvm_create_lv", arguments);
        assert_eq!(problem.code, code);
        assert!(problem.remediation.iter().any(|remedy| remedy.contains(helps)), "{problem:?}");
    }
    for name in
        ["", "-x", "a b", "a\nb", "ä", "a/b", ".", "..", "snapshot1", "pvmove0", "x_tdata", "x_rimage_0"]
    {
        assert_eq!(
            refused(target(FULL), "lvm_create_lv", ask(name, "4M")).code,
            "INVALID_VOLUME_NAME",
            "{name}"
        );
    }
    assert_eq!(
        refused(target(FULL), "lvm_create_lv", ask(&"x".repeat(124), "4M")).code,
        "INVALID_VOLUME_NAME"
    );
    for size in ["10", "+4M", "-4M", "100%ORIGIN", "0M", "four"] {
        assert_eq!(refused(target(FULL), "lvm_create_lv", ask("srv", size)).code, "INVALID_SIZE", "{size}");
    }
    for (filesystem, size) in [("xfs", "296M"), ("btrfs", "100M")] {
        let arguments = json!({"vg_name": "vg0", "lv_name": "x", "size": size, "filesystem": filesystem});
        assert_eq!(refused(target(FULL), "lvm_create_lv", arguments).code, "VOLUME_TOO_SMALL");
    }
    for (attributes, code) in [("wzx-n-", "LVM_GROUP_EXPORTED"), ("rz--n-", "LVM_GROUP_READ_ONLY")] {
        let text = FULL.replace("wz--n-", attributes);
        assert_eq!(refused(target(&text), "lvm_create_lv", ask("srv", "4M")).code, code);
    }
    assert_eq!(refused(target(MISSING), "lvm_create_lv", ask("srv", "4M")).code, "LVM_GROUP_INCOMPLETE");
}

/// What the steps say is from the sources of LVM 2.03 and of e2fsprogs 1.47. The host puts the command in front.
#[test]
fn a_step_that_fails_has_what_helps() {
    let failed = |tool: &str, arguments: Value, said: &str| {
        let problem = Problem::new("COMMAND_FAILED", Category::Other, said);
        let failure = Failure {
            problem,
            step: 0,
            outputs: Vec::new(),
            undone: Vec::new(),
            not_undone: Vec::new(),
            uncertain: false,
        };
        let target = target(&active()).transcript(EXT4).outcome(Err(failure));
        call(target, tool, arguments).unwrap_err().remediation
    };
    let create = json!({"vg_name": "vg0", "lv_name": "srv", "size": "500M"});
    let command =
        "lvcreate --zero=y --wipesignatures=y --extents=125 --name=srv -- vg0 ended with exit code 5: ";
    let said = "Aborted wiping of ext4.\n  1 existing signature left on the device.";
    let helps = failed("lvm_create_lv", create.clone(), &format!("{command}{said}"));
    assert!(helps[0].contains("wipe=true"), "{helps:?}");
    let said = "Insufficient suitable allocatable extents for logical volume srv: 8 more required";
    let helps = failed("lvm_create_lv", create.clone(), &format!("{command}{said}"));
    assert!(helps[0].contains("several disks"), "{helps:?}");
    let helps = failed("lvm_create_lv", create, &format!("{command}Volume group \"vg0\" not found"));
    assert_eq!(helps, [""; 0]);
    let resize = json!({"lv_path": "/dev/vg0/fast", "size": "100M"});
    let said = "/dev/vg0/fast: UNEXPECTED INCONSISTENCY; RUN fsck MANUALLY.";
    let helps = failed(
        "lvm_resize",
        resize,
        &format!("e2fsck -f -p -- /dev/vg0/fast ended with exit code 4: {said}"),
    );
    assert!(helps[0].contains("argv=[e2fsck,-f,-y,--,/dev/vg0/fast]"), "{helps:?}");
}

#[test]
fn a_mounted_ext4_grows_after_its_volume() {
    let (data, notes, plan) =
        resize(mounted(target(&active()).transcript(EXT4), "fast", "ext4", "rw"), "/dev/vg0/fast", "+1G");
    let expected = Change::new("Grow /dev/vg0/fast with its ext4 from 204M to 1.19G")
        .risk(Risk::Critical)
        .lock(Lock::Lvm)
        .step(step("lvextend --extents=307 -- vg0/fast"))
        .step(step("resize2fs -- /dev/vg0/fast"));
    assert_eq!(plan, expected);
    assert_eq!(
        data,
        json!({"path": "/dev/vg0/fast", "before": "204M", "size": "1.19G", "filesystem": "ext4", "mounted": "/srv/a",
               "group_free": "48M"})
    );
    assert!(notes.is_empty());
}

#[test]
fn each_file_system_grows_in_its_own_way() {
    let check = step("e2fsck -f -p -- /dev/vg0/fast").success(&[0, 1]);
    let extend = || step("lvextend --extents=61 -- vg0/fast");
    let here = |transcript: &str| target(&active()).transcript(transcript);
    for (target, steps) in [
        (here(EXT4), vec![check, extend(), step("resize2fs -- /dev/vg0/fast")]),
        (mounted(here(XFS), "fast", "xfs", "rw"), vec![extend(), step("xfs_growfs -- /srv/a")]),
        (
            mounted(here(BTRFS), "fast", "btrfs", "rw"),
            vec![extend(), step("btrfs filesystem resize -- 2:max /srv/a")],
        ),
        (here("").answer(&PROBE, 2, "", ""), vec![extend()]),
    ] {
        let (_, _, plan) = resize(target, "vg0/fast", "+40M");
        assert_eq!(plan.steps(), steps);
    }
    // The volume alone needs no look at what is on it.
    let arguments = json!({"lv_path": "/dev/mapper/vg0-fast", "size": "+40M", "resize_filesystem": false});
    let (_, _, plan) = planned(target(FULL), "lvm_resize", arguments);
    assert_eq!(plan.steps(), [extend()]);
}

#[test]
fn pools_snapshots_and_thin_volumes_grow_without_a_file_system_or_room() {
    let (_, _, plan) = resize(target(&active()), "vg0/pool", "+100%FREE");
    assert_eq!(plan.steps(), [step("lvextend --extents=368 -- vg0/pool")]);
    let (_, _, plan) = resize(target(&active()), "/dev/vg0/data_snap", "100M");
    assert_eq!(plan.steps(), [step("lvextend --extents=25 -- vg0/data_snap")]);
    let probe = ["blkid", "--probe", "--output", "export", "--", "/dev/vg0/web"];
    let (data, _, plan) = resize(target(&active()).answer(&probe, 2, "", ""), "/dev/vg0/web", "1T");
    assert_eq!(plan.steps(), [step("lvextend --extents=262144 -- vg0/web")]);
    assert_eq!(data["group_free"], "1.04G");
    let warned = Change::new("Grow /dev/vg0/web from 2G to 1T")
        .risk(Risk::Critical)
        .lock(Lock::Lvm)
        .step(plan.steps()[0].clone());
    let warned = warned.warning(
        "the thin volumes of pool then promise 1T and the pool has 400M: once it is full, writing fails in all of them",
    );
    assert_eq!(plan, warned);
}

#[test]
fn the_same_size_is_a_success_unless_the_file_system_lags_behind() {
    let same = json!({"lv_path": "/dev/vg0/fast", "size": "204M"});
    let here = || mounted(target(&active()).transcript(EXT4), "fast", "ext4", "rw");
    let (data, notes) = call(here(), "lvm_resize", same.clone()).unwrap();
    assert_eq!(notes, ["/dev/vg0/fast has 204M already"]);
    assert_eq!((&data["before"], &data["size"]), (&json!("204M"), &json!("204M")));
    // An extent less is what a volume that was grown alone shows.
    let smaller = EXT4.replace("Block count:              208896", "Block count:              204800");
    assert_ne!(smaller, EXT4);
    let target = mounted(target(&active()).transcript(&smaller), "fast", "ext4", "rw");
    let (_, notes, plan) = planned(target, "lvm_resize", same);
    assert_eq!(plan.steps(), [step("resize2fs -- /dev/vg0/fast")]);
    assert!(notes[0].contains("its file system has 200M only"), "{notes:?}");
}

#[test]
fn an_ext4_shrinks_before_its_volume_while_it_is_not_mounted() {
    let shrunk =
        step("resize2fs -- /dev/vg0/fast 106496K").undo(command("resize2fs -- /dev/vg0/fast 208896K"));
    let steps = [
        step("e2fsck -f -p -- /dev/vg0/fast").success(&[0, 1]),
        shrunk,
        step("lvreduce --yes --extents=26 -- vg0/fast"),
    ];
    let target = || target(&active()).transcript(EXT4);
    for size in ["104M", "-100M", "103M"] {
        let (data, _, plan) = resize(target(), "/dev/vg0/fast", size);
        assert_eq!(plan.steps(), steps);
        assert_eq!((&data["size"], &data["group_free"]), (&json!("104M"), &json!("1.14G")));
    }
}

#[test]
fn what_would_lose_data_is_refused() {
    let text = active();
    let ext4 = || target(&text).transcript(EXT4);
    let signature = |kind: &str| target(&text).answer(&PROBE, 0, format!("TYPE={kind}\n"), "");
    let swaps = format!("{SWAPS}/dev/dm-4                               partition\t208892\t0\t-2\n");
    let numbered = with(&text, "fast", &[("lv_kernel_minor", "4")]);
    let open = with(&text, "fast", &[("lv_attr", "-wi-ao----")]);
    let root = "40 1 253:4 / / rw - ext4 /dev/mapper/vg0-fast rw\n";
    for (target, size, code, helps) in [
        (ext4(), "60M", "VOLUME_TOO_SMALL", "more than 76.4M"),
        (
            mounted(ext4(), "fast", "ext4", "rw"),
            "100M",
            "FILESYSTEM_MOUNTED",
            "mount_remove mount_point=/srv/a",
        ),
        (ext4().file("/proc/self/mountinfo", root), "100M", "FILESYSTEM_MOUNTED", "rescue system"),
        (target(&open).transcript(EXT4), "100M", "VOLUME_IN_USE", "proc_list file=/dev/vg0/fast"),
        (
            target(&numbered).transcript(EXT4).file("/proc/swaps", swaps),
            "100M",
            "VOLUME_IN_USE",
            "swap_remove",
        ),
        (target(&text).transcript(XFS), "100M", "FILESYSTEM_CANT_SHRINK", "lvm_create_lv vg_name=vg0"),
        (
            mounted(target(&text).transcript(XFS), "fast", "xfs", "rw"),
            "-4M",
            "FILESYSTEM_CANT_SHRINK",
            "copy the files",
        ),
        (target(&text).transcript(BTRFS), "100M", "FILESYSTEM_CANT_SHRINK", "btrfs filesystem resize"),
        (signature("crypto_LUKS"), "100M", "FILESYSTEM_UNSUPPORTED", "resize_filesystem=false"),
        (signature("swap"), "+4M", "FILESYSTEM_UNSUPPORTED", "swap_remove"),
        (signature("LVM2_member"), "+4M", "FILESYSTEM_UNSUPPORTED", "pvresize"),
        (target(&text).answer(&PROBE, 2, "", ""), "100M", "FILESYSTEM_UNSUPPORTED", "is lost"),
        (target(&text).transcript(XFS), "+4M", "FILESYSTEM_NOT_MOUNTED", "mount_add device=/dev/vg0/fast"),
        (mounted(ext4(), "fast", "ext4", "ro"), "+4M", "FILESYSTEM_READ_ONLY", "remount"),
        (ext4(), "+2G", "LVM_NO_SPACE", "vgextend"),
        (target(FULL), "100M", "LVM_VOLUME_INACTIVE", "lvchange,--activate,y,vg0/fast"),
    ] {
        let problem = refused(target, "lvm_resize", json!({"lv_path": "/dev/vg0/fast", "size": size}));
        assert_eq!(problem.code, code, "{problem:?}");
        assert!(problem.remediation.iter().any(|remedy| remedy.contains(helps)), "{problem:?}");
    }
    let alone = json!({"lv_path": "/dev/vg0/fast", "size": "100M", "resize_filesystem": false});
    assert_eq!(refused(ext4(), "lvm_resize", alone.clone()).code, "FILESYSTEM_TOO_LARGE");
    let (_, _, plan) = planned(target(&text).answer(&PROBE, 2, "", ""), "lvm_resize", alone);
    assert_eq!(plan.steps(), [step("lvreduce --yes --extents=25 -- vg0/fast")]);
    for (volume, size, code) in [
        ("/dev/vg0/data", "+4M", "LVM_HAS_SNAPSHOTS"),
        ("vg0/pool", "-40M", "LVM_NOT_SUPPORTED"),
        ("/dev/vg0/data_snap", "20M", "LVM_NOT_SUPPORTED"),
        ("/dev/vg0/nope", "20M", "LVM_VOLUME_NOT_FOUND"),
        ("/dev/vg0/fast\n", "20M", "LVM_VOLUME_NOT_FOUND"),
        ("--help", "20M", "LVM_VOLUME_NOT_FOUND"),
        ("/dev/vg0/fast", "100%FREE", "INVALID_SIZE"),
        ("/dev/vg0/fast", "-1T", "INVALID_SIZE"),
        ("/dev/vg0/fast", "20%ORIGIN", "INVALID_SIZE"),
        ("/dev/vg0/fast", "20", "INVALID_SIZE"),
    ] {
        let arguments = json!({"lv_path": volume, "size": size});
        assert_eq!(refused(target(&text), "lvm_resize", arguments).code, code, "{volume} {size}");
    }
    assert_eq!(
        refused(target(MISSING), "lvm_resize", json!({"lv_path": "vg0/fast", "size": "+4M"})).code,
        "LVM_GROUP_INCOMPLETE"
    );
}

#[test]
fn a_snapshot_gets_a_fifth_of_its_origin_and_says_when_it_is_full() {
    let text = with(&active(), "fast", &[("lv_kernel_minor", "4")]);
    let target = mounted(target(&text), "fast", "xfs", "rw")
        .file(
            "/sys/devices/virtual/block/dm-4/stat",
            "   10  0  80  1  500  0  204800  9  0  5  10  0 0 0 0 0 0\n",
        )
        .file("/proc/uptime", "36000.00 70000.00\n");
    let (data, notes, plan) = planned(target, "lvm_snapshot", json!({"lv_path": "/dev/vg0/fast"}));
    let expected = Change::new("Make the snapshot /dev/vg0/fast_snap of /dev/vg0/fast")
        .lock(Lock::Lvm)
        .step(step("lvcreate --snapshot --extents=10 --name=fast_snap -- vg0/fast"));
    assert_eq!(plan, expected);
    assert!(notes.is_empty());
    assert_eq!(
        data,
        json!({
            "path": "/dev/vg0/fast_snap", "size": "40M", "group_free": "1G",
            "full": "after 40M of the origin have changed; it is lost then. At the rate since the boot that is in about 4 hours \
                     at the earliest",
            "mount": "mount -o ro,nouuid /dev/vg0/fast_snap DIRECTORY",
            "merge": "command_run argv=[lvconvert,--merge,vg0/fast_snap] as_root=true; it begins once /srv/a is unmounted and \
                      activated anew",
            "remove": "command_run argv=[lvremove,--yes,vg0/fast_snap] as_root=true",
        })
    );
}

#[test]
fn a_second_snapshot_has_another_name_and_a_thin_one_no_size() {
    let arguments = json!({"lv_path": "/dev/vg0/data", "size": "50%ORIGIN"});
    let (data, _, plan) = planned(target(&active()), "lvm_snapshot", arguments);
    assert_eq!(data["path"], "/dev/vg0/data_snap2");
    assert_eq!(plan.steps()[0], step("lvcreate --snapshot --extents=37 --name=data_snap2 -- vg0/data"));
    let text = with(&active(), "pool", &[("data_percent", "40.00"), ("metadata_percent", "12.50")]);
    let arguments = json!({"lv_path": "/dev/vg0/web", "snapshot_name": "before", "size": "1G"});
    let (data, notes, plan) = planned(target(&text), "lvm_snapshot", arguments);
    assert_eq!(plan.steps(), [step("lvcreate --snapshot --name=before -- vg0/web")]);
    assert_eq!(data["full"], "with its pool: vg0/pool has 40% of its data and 12.5% of its metadata in use");
    assert!(
        data["mount"]
            .as_str()
            .unwrap()
            .starts_with("lvchange --activate y --ignoreactivationskip vg0/before, then mount")
    );
    assert!(notes[0].contains("`size` wasn't used"));
}

#[test]
fn a_snapshot_that_has_no_room_or_no_sense_is_refused() {
    let full = with(&active(), "pool", &[("data_percent", "97.00"), ("metadata_percent", "12.50")]);
    let swaps = format!("{SWAPS}/dev/mapper/vg0-fast                    partition\t208892\t0\t-2\n");
    let little = FULL
        .replace("\"1124073472\"", "\"4194304\"")
        .replace("\"vg_free_count\":\"268\"", "\"vg_free_count\":\"1\"");
    for (target, arguments, code) in [
        (target(&active()), json!({"lv_path": "/dev/vg0/fast", "size": "2G"}), "LVM_NO_SPACE"),
        (target(&little), json!({"lv_path": "/dev/vg0/fast"}), "LVM_NO_SPACE"),
        (target(&full), json!({"lv_path": "/dev/vg0/web"}), "LVM_POOL_FULL"),
        (target(FULL), json!({"lv_path": "/dev/vg0/data_snap"}), "LVM_NOT_SUPPORTED"),
        (target(FULL), json!({"lv_path": "vg0/pool"}), "LVM_NOT_SUPPORTED"),
        (target(FULL).file("/proc/swaps", swaps), json!({"lv_path": "/dev/vg0/fast"}), "LVM_NOT_SUPPORTED"),
        (target(FULL), json!({"lv_path": "/dev/vg0/fast", "snapshot_name": "data"}), "LVM_VOLUME_EXISTS"),
        (
            target(FULL),
            json!({"lv_path": "/dev/vg0/fast", "snapshot_name": "snapshot"}),
            "INVALID_VOLUME_NAME",
        ),
        (target(FULL), json!({"lv_path": "/dev/vg0/fast", "size": "+1G"}), "INVALID_SIZE"),
        (target(FULL), json!({"lv_path": "/dev/vg9/fast"}), "LVM_VOLUME_NOT_FOUND"),
    ] {
        assert_eq!(refused(target, "lvm_snapshot", arguments).code, code);
    }
}

#[test]
fn a_group_of_thousands_of_volumes_is_cut_and_counted() {
    let row = transcript(FULL).into_iter().find(|(argv, _)| argv[0] == "lvs").unwrap();
    let mut report: Value = serde_json::from_slice(&row.1.stdout).unwrap();
    let rows = report["report"][0]["lv"].as_array_mut().unwrap();
    let one = rows.iter().find(|row| row["lv_name"] == "fast").unwrap().clone();
    rows.extend((0..3000).map(|number| {
        let mut row = one.clone();
        row["lv_name"] = json!(format!("v{number}"));
        row
    }));
    let argv: Vec<_> = row.0.iter().map(String::as_str).collect();
    let others = FULL.split("$ lvs").next().unwrap();
    let (data, _) =
        call(target(others).answer(&argv, 0, report.to_string(), ""), "lvm_list", json!({})).unwrap();
    assert_eq!(data["groups"][0]["volumes"].as_array().unwrap().len(), 200);
    assert_eq!(data["groups"][0]["more_volumes"], 2806);
}
