//! `disk_list` and `disk_health` as the host calls them.
//!
//! The answers of smartctl have the members and the words of smartmontools 7.3 and 7.4, cut to what is read. The machines that
//! they stand for are made up, since no test host has a disk with SMART.
#![allow(clippy::unwrap_used)]

use linux_sysadmin_sdk::Problem;
use linux_sysadmin_sdk::testkit::{FakeTarget, takes_little_context};
use module_storage::module;
use serde_json::{Value, json};

const LSBLK: [&str; 5] = [
    "lsblk",
    "--json",
    "--bytes",
    "--paths",
    "--output=NAME,KNAME,PKNAME,TYPE,SIZE,RO,RM,FSTYPE,LABEL,UUID,MOUNTPOINT,MODEL,TRAN,MAJ:MIN",
];
const BLKID: [&str; 5] = ["blkid", "-c", "/dev/null", "-o", "export"];

/// A device as lsblk of util-linux 2.38.1 prints it, with further members.
fn device(name: &str, kind: &str, more: Value) -> Value {
    let mut device = json!({
        "name": name, "kname": name, "pkname": null, "type": kind, "size": 1_073_741_824_u64, "ro": false, "rm": false,
        "fstype": null, "label": null, "uuid": null, "mountpoint": null, "model": null, "tran": null, "maj:min": "0:0",
    });
    device.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    device
}

fn machine(devices: &[Value]) -> FakeTarget {
    let text = json!({"blockdevices": devices}).to_string();
    FakeTarget::new().answer(&LSBLK, 0, text, "").answer(&BLKID, 2, "", "")
}

fn list(target: FakeTarget) -> (Value, Vec<String>) {
    let (data, reply) = target.call(&module(), "disk_list", json!({})).unwrap();
    (data, reply.notes)
}

fn health(target: FakeTarget) -> (Value, String, String) {
    let (data, reply) = target.call(&module(), "disk_health", json!({})).unwrap();
    (data, reply.summary.unwrap(), reply.severity.unwrap())
}

/// Printed by lsblk and blkid of util-linux 2.38.1 without udev, for a btrfs of two loop devices.
const WITHOUT_UDEV: &str = r#"{"blockdevices": [
  {"name": "/dev/loop2", "kname": "/dev/loop2", "pkname": null, "type": "loop", "size": 209715200, "ro": false, "rm": false,
   "fstype": null, "label": null, "uuid": null, "mountpoint": "/mnt", "model": null, "tran": null, "maj:min": "7:2"},
  {"name": "/dev/loop3", "kname": "/dev/loop3", "pkname": null, "type": "loop", "size": 209715200, "ro": false, "rm": false,
   "fstype": null, "label": null, "uuid": null, "mountpoint": null, "model": null, "tran": null, "maj:min": "7:3"}]}"#;
const EXPORT: &str = "DEVNAME=/dev/loop2\nLABEL=two\\ words\nUUID=7b45282f-db33-4f3e-9c7e-f00364473135\n\
    UUID_SUB=08e2d6e2-a786-4d43-98ee-f223599c41bd\nBLOCK_SIZE=4096\nTYPE=btrfs\n\nDEVNAME=/dev/loop3\nLABEL=two\\ words\n\
    UUID=7b45282f-db33-4f3e-9c7e-f00364473135\nUUID_SUB=a9d368d4-10f2-4742-8768-605ad0205559\nBLOCK_SIZE=4096\nTYPE=btrfs\n";

#[test]
fn without_udev_blkid_says_what_is_on_a_device_and_each_part_of_a_btrfs_is_mounted() {
    let mounts = "27 1 254:0 / / rw - ext4 /dev/vda rw\n\
        43 27 0:39 / /mnt rw,relatime - btrfs /dev/loop2 rw,discard=async,subvolid=5,subvol=/\n";
    let target = FakeTarget::new()
        .answer(&LSBLK, 0, WITHOUT_UDEV, "")
        .answer(&BLKID, 0, EXPORT, "")
        .file("/proc/self/mountinfo", mounts);
    let (data, notes) = list(target);
    let of = |path: &str| {
        json!({"path": path, "type": "loop", "size": "200M", "fs": "btrfs", "label": "two words",
               "uuid": "7b45282f-db33-4f3e-9c7e-f00364473135", "mounted": "/mnt"})
    };
    assert_eq!(data, json!([of("/dev/loop2"), of("/dev/loop3")]));
    assert!(notes.is_empty(), "{notes:?}");
}

const MDSTAT: &str = "Personalities : [raid1]\nmd0 : active raid1 sdb1[1] sda1[0](F)\n      \
    1046528 blocks super 1.2 [2/1] [_U]\n      [==>..................]  recovery = 12.6% (132352/1046528) finish=0.5min \
    speed=26470K/sec\n\nunused devices: <none>\n";

#[test]
fn a_tree_is_told_from_the_disk_up_and_an_array_once_with_its_state() {
    let member = json!({"fstype": "linux_raid_member", "uuid": "m", "label": "host:0"});
    let array =
        device("/dev/md0", "raid1", json!({"fstype": "ext4", "uuid": "u", "mountpoint": "/srv", "ro": true}));
    let part = |name: &str| {
        let mut part = device(name, "part", member.clone());
        part["children"] = json!([array]);
        part
    };
    let disk = |name: &str, child: &str, more: Value| {
        let mut disk = device(name, "disk", more);
        disk["children"] = json!([part(child)]);
        disk
    };
    let devices = [
        disk("/dev/sda", "/dev/sda1", json!({"model": "WDC WD10", "tran": "sata"})),
        disk("/dev/sdb", "/dev/sdb1", json!({"rm": true, "tran": "usb"})),
        device("/dev/sr0", "rom", json!({"size": 0})),
        device("/dev/loop0", "loop", json!({"fstype": "squashfs"})),
    ];
    let (data, notes) = list(machine(&devices).file("/proc/mdstat", MDSTAT));
    let paths: Vec<_> = data.as_array().unwrap().iter().map(|row| row["path"].as_str().unwrap()).collect();
    assert_eq!(paths, ["/dev/sda", "/dev/sda1", "/dev/md0", "/dev/sdb", "/dev/sdb1"]);
    assert_eq!(
        data[0],
        json!({"path": "/dev/sda", "type": "disk", "size": "1G", "model": "WDC WD10", "bus": "sata"})
    );
    let state = "degraded: 1 of 2 members work; failed: sda1; recovery 12.6 %, 0.5 min left";
    assert_eq!(data[2]["raid"], state);
    assert_eq!((&data[2]["on"], &data[2]["read_only"]), (&json!(["/dev/sda1", "/dev/sdb1"]), &json!(true)));
    assert_eq!((&data[3]["removable"], &data[2]["mounted"]), (&json!(true), &json!("/srv")));
    // The members of one array have one UUID, which is no accident.
    assert_eq!(notes, [format!("/dev/md0 is {state}")]);
}

#[test]
fn two_devices_with_one_uuid_or_label_are_told_unless_one_lies_on_the_other() {
    let on = |fs: &str, label: &str, uuid: &str| json!({"fstype": fs, "label": label, "uuid": uuid});
    let mut mirror = device("/dev/sdd", "disk", on("ext4", "mirror", "7"));
    mirror["children"] = json!([device("/dev/mapper/m", "mpath", on("ext4", "mirror", "7"))]);
    let devices = [
        device("/dev/sda1", "part", on("ext4", "data", "1")),
        device("/dev/sdb1", "part", on("ext4", "data", "1")),
        device("/dev/sdc1", "part", on("xfs", "ba ck", "2")),
        device("/dev/sdc2", "part", on("ext4", "ba ck", "3")),
        mirror,
        device("/dev/sde1", "part", json!({"fstype": "ext4", "uuid": "9"})),
    ];
    let (data, notes) = list(machine(&devices));
    let expected = [
        "/dev/sda1 and /dev/sdb1 have the same UUID 1: mounting by it takes either",
        "/dev/sdc1 and /dev/sdc2 have the same label \"ba ck\": mounting by it takes either",
    ];
    assert_eq!(notes, expected);
    let unlabelled = data.as_array().unwrap().iter().find(|row| row["path"] == "/dev/sde1").unwrap();
    assert!(unlabelled["label"].is_null(), "{unlabelled}");
}

#[test]
fn a_machine_without_disks_is_an_empty_list_and_other_output_is_a_problem() {
    for text in ["", "{\"blockdevices\": []}"] {
        let target = || FakeTarget::new().answer(&LSBLK, 0, text, "");
        assert_eq!(list(target()), (json!([]), Vec::new()));
        assert_eq!(health(target()).1, "0 disks are well");
    }
    let odd = FakeTarget::new().answer(&LSBLK, 1, "lsblk: failed", "");
    assert_eq!(odd.call(&module(), "disk_list", json!({})).unwrap_err().code, "UNEXPECTED_OUTPUT");
}

fn smartctl(disk: &str) -> Vec<&str> {
    vec!["smartctl", "--json", "--nocheck=standby", "--all", "--", disk]
}

/// A machine with one disk, which says this.
fn disk_that_says(exit: i32, said: &Value) -> FakeTarget {
    let devices = [device("/dev/sda", "disk", json!({"model": "X", "tran": "sata"}))];
    machine(&devices).answer(&smartctl("/dev/sda"), exit, said.to_string(), "")
}

fn ata(attributes: Value, more: Value) -> Value {
    let mut answer = json!({
        "smartctl": {"version": [7, 3], "exit_status": 0},
        "device": {"name": "/dev/sda", "info_name": "/dev/sda [SAT]", "type": "sat", "protocol": "ATA"},
        "model_name": "WDC WD10EZEX-00BN5A0", "serial_number": "WD-1",
        "smart_support": {"available": true, "enabled": true}, "smart_status": {"passed": true},
        "temperature": {"current": 35}, "power_on_time": {"hours": 12345},
        "ata_smart_attributes": {"revision": 16, "table": attributes},
        "ata_smart_error_log": {"summary": {"revision": 1, "count": 0}},
    });
    answer.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    answer
}

fn attribute(id: u64, name: &str, raw: u64, when_failed: &str) -> Value {
    json!({"id": id, "name": name, "value": 100, "worst": 100, "thresh": 10, "when_failed": when_failed,
           "raw": {"value": raw, "string": raw.to_string()}})
}

#[test]
fn what_a_disk_says_is_told_in_plain_words_with_its_severity() {
    let nvme = |log: Value, passed: bool| {
        json!({"smartctl": {"version": [7, 4], "exit_status": 0}, "device": {"type": "nvme", "protocol": "NVMe"},
               "model_name": "Samsung SSD 980", "smart_status": {"passed": passed}, "nvme_smart_health_information_log": log})
    };
    let nothing = json!({});
    let pending = json!([
        attribute(5, "Reallocated_Sector_Ct", 3, ""),
        attribute(197, "Current_Pending_Sector", 8, "")
    ]);
    let failing = ata(
        json!([attribute(5, "Reallocated_Sector_Ct", 2005, "now")]),
        json!({"smart_status": {"passed": false}}),
    );
    let logs = json!({
        "ata_smart_error_log": {"summary": {"count": 4}}, "temperature": {"current": 64},
        "ata_smart_self_test_log": {"standard": {"table": [
            {"status": {"value": 117, "string": "Completed: read failure", "passed": false}},
            {"status": {"value": 0, "string": "Completed without error", "passed": true}}]}},
    });
    let scsi = json!({"smartctl": {"version": [7, 3], "exit_status": 0}, "device": {"protocol": "SCSI"},
        "scsi_model_name": "SEAGATE ST600", "smart_status": {"passed": true}, "scsi_grown_defect_list": 2,
        "scsi_error_counter_log": {"read": {"total_uncorrected_errors": 5}, "write": {"total_uncorrected_errors": 0}}});
    for (said, severity, expected) in [
        (
            ata(json!([attribute(5, "Reallocated_Sector_Ct", 0, "")]), nothing.clone()),
            "info",
            "1 disks are well",
        ),
        // The upper half of a raw value is no count.
        (
            ata(json!([attribute(187, "Reported_Uncorrect", 7 << 32, "")]), nothing.clone()),
            "info",
            "1 disks are well",
        ),
        (
            ata(pending, nothing.clone()),
            "high",
            "/dev/sda: 8 sectors can't be read and wait to be replaced, 3 sectors were replaced by spare ones",
        ),
        (
            failing,
            "critical",
            "/dev/sda: the disk says that it is failing: replace it now, Reallocated_Sector_Ct is below its threshold, \
             2005 sectors were replaced by spare ones",
        ),
        (
            ata(json!([attribute(199, "UDMA_CRC_Error_Count", 1, "past")]), logs),
            "high",
            "/dev/sda: its latest self-test failed: Completed: read failure, 1 transfers over the cable went wrong: check the \
             cable, UDMA_CRC_Error_Count was below its threshold, 4 errors are in its log, 64 °C is too hot",
        ),
        (
            nvme(
                json!({"critical_warning": 9, "available_spare": 3, "available_spare_threshold": 10, "percentage_used": 104, "media_errors": 6}),
                false,
            ),
            "critical",
            "/dev/sda: the disk says that it is failing: replace it now, its spare blocks are used up, it has become read-only, \
             6 blocks couldn't be read or written, worn: 104 % of its endurance is used",
        ),
        (
            nvme(json!({"critical_warning": 0, "percentage_used": 93, "media_errors": 0}), true),
            "warning",
            "/dev/sda: nearly worn: 93 % of its endurance is used",
        ),
        (
            scsi,
            "high",
            "/dev/sda: 5 read errors couldn't be corrected, 2 sectors were replaced by spare ones",
        ),
    ] {
        let (data, summary, of) = health(disk_that_says(0, &said));
        assert_eq!((summary.as_str(), of.as_str()), (expected, severity), "{data}");
    }
}

#[test]
fn a_disk_that_tells_nothing_is_unknown_and_says_why() {
    let said = |message: &str| json!({"smartctl": {"version": [7, 3], "messages": [{"string": message, "severity": "error"}], "exit_status": 2}});
    for (message, expected) in [
        ("Device is in STANDBY mode, exit(2)", "sleeps, and wasn't woken"),
        ("Smartctl open device: /dev/sda failed: Permission denied", "root's rights are needed"),
        ("/dev/sda: Unable to detect device type", "no disk of its own: a virtual one has no SMART"),
        (
            "Smartctl open device: /dev/sda failed: DELL or MegaRaid controller, please try adding '-d megaraid,N'",
            "Smartctl open device: /dev/sda failed: DELL or MegaRaid controller, please try adding '-d megaraid,N'",
        ),
    ] {
        let (data, summary, severity) = health(disk_that_says(2, &said(message)));
        assert_eq!(
            (&data["disks"][0]["health"], &data["disks"][0]["why"]),
            (&json!("unknown"), &json!([expected]))
        );
        assert_eq!((summary.as_str(), severity.as_str()), ("no disk tells its health", "info"));
    }
    let off = json!({"smartctl": {"exit_status": 4}, "smart_support": {"available": true, "enabled": false}});
    assert!(
        health(disk_that_says(4, &off)).0["disks"][0]["why"][0]
            .as_str()
            .unwrap()
            .starts_with("SMART is turned off")
    );
    let (data, _, _) = health(disk_that_says(1, &json!("Segmentation fault")));
    assert!(data["disks"][0]["why"][0].as_str().unwrap().contains("not in the expected form"), "{data}");
}

#[test]
fn a_disk_behind_an_unknown_bridge_is_asked_by_sata_commands() {
    let unknown = json!({"smartctl": {"messages": [{"string": "/dev/sda: Unknown USB bridge [0x152d:0x0578 (0x214)]", "severity": "error"}], "exit_status": 1}});
    let sat = ["smartctl", "--json", "--nocheck=standby", "--all", "--device=sat", "--", "/dev/sda"];
    let well = ata(json!([]), json!({}));
    let (data, _, _) = health(disk_that_says(1, &unknown).answer(&sat, 0, well.to_string(), ""));
    assert_eq!((&data["disks"][0]["health"], &data["disks"][0]["temperature_c"]), (&json!("ok"), &json!(35)));
    let (data, _, _) = health(disk_that_says(1, &unknown).answer(&sat, 2, unknown.to_string(), ""));
    assert_eq!(data["disks"][0]["why"][0], "its USB bridge passes no SMART on");
}

#[test]
fn without_smartctl_the_rest_is_told_with_the_call_that_brings_it() {
    let missing = Problem::not_found("PROGRAM_NOT_FOUND", "there is no program smartctl");
    let devices = [
        device("/dev/sda", "disk", json!({})),
        device("/dev/vda", "disk", json!({"tran": "virtio"})),
        device("/dev/zram0", "disk", json!({"mountpoint": "[SWAP]"})),
    ];
    let target = machine(&devices)
        .failure(&smartctl("/dev/sda"), missing)
        .file("/proc/mdstat", MDSTAT)
        .file("/sys/fs/ext4/sda1/errors_count", "3\n")
        .file("/sys/fs/ext4/sda2/errors_count", "0\n")
        .file("/sys/fs/ext4/features/lazy_itable_init", "supported\n");
    let (data, summary, severity) = health(target);
    assert!(data["missing"][0].as_str().unwrap().contains("pkg_install package=smartmontools"), "{data}");
    let disks: Vec<_> =
        data["disks"].as_array().unwrap().iter().map(|disk| disk["disk"].as_str().unwrap()).collect();
    assert_eq!(disks, ["/dev/sda", "/dev/vda"]);
    assert_eq!(severity, "critical");
    assert!(summary.starts_with("/dev/md0 is degraded: 1 of 2 members work"), "{summary}");
    assert!(summary.contains("/dev/sda1: ext4 has met 3 errors") && !summary.contains("sda2"), "{summary}");
}

#[test]
fn errors_of_btrfs_are_told_and_a_refusal_is_said() {
    let mounts =
        "27 1 254:0 / / rw - ext4 /dev/vda rw\n43 27 0:39 / /srv/b rw - btrfs /dev/sdb rw,subvol=/\n";
    let argv = ["btrfs", "device", "stats", "--", "/srv/b"];
    let target = || machine(&[]).file("/proc/self/mountinfo", mounts);
    let errors = "[/dev/sdb].write_io_errs    0\n[/dev/sdb].corruption_errs  9\n";
    let (data, summary, severity) = health(target().answer(&argv, 0, errors, ""));
    assert_eq!((data["filesystems"][0]["device"].as_str(), severity.as_str()), (Some("/dev/sdb"), "high"));
    assert!(summary.contains("9 corruption errors: btrfs scrub start /srv/b"), "{summary}");
    let refused = "ERROR: cannot check /srv/b: Operation not permitted\n";
    let (data, _, _) = health(target().answer(&argv, 1, "", refused));
    assert!(data["missing"][0].as_str().unwrap().contains("Operation not permitted"), "{data}");
}

#[test]
fn one_disk_is_asked_for_by_its_name_or_a_part_of_it() {
    let mut disk = device("/dev/sda", "disk", json!({}));
    disk["children"] = json!([device("/dev/sda1", "part", json!({}))]);
    let devices = [disk, device("/dev/sdb", "disk", json!({})), device("/dev/loop0", "loop", json!({}))];
    let well = ata(json!([]), json!({})).to_string();
    for name in ["sda", "/dev/sda", "/dev/sda1"] {
        let target = machine(&devices).answer(&smartctl("/dev/sda"), 0, well.as_str(), "");
        let (data, _) = target.call(&module(), "disk_health", json!({"disk": name})).unwrap();
        assert_eq!((data["disks"].as_array().unwrap().len(), &data["disks"][0]["health"]), (1, &json!("ok")));
    }
    for name in ["", "sdz", "/dev/loop0", "/dev/../sda", "-x", &"x\u{1b}".repeat(1000)] {
        let problem = machine(&devices).call(&module(), "disk_health", json!({"disk": name})).unwrap_err();
        assert_eq!(problem.code, "DISK_NOT_FOUND", "{name}");
        assert!(problem.message.contains("expected one of /dev/sda, /dev/sdb"), "{}", problem.message);
        assert!(problem.message.len() < 250, "{}", problem.message);
    }
    let none = FakeTarget::new().answer(&LSBLK, 0, "", "");
    let problem = none.call(&module(), "disk_health", json!({"disk": "sda"})).unwrap_err();
    assert!(problem.message.ends_with("there is none"), "{}", problem.message);
}

#[test]
fn a_tool_takes_little_of_a_models_context() {
    let description = module().description();
    for tool in description.tools.iter().filter(|tool| tool.name.starts_with("disk_")) {
        takes_little_context(tool);
    }
}
