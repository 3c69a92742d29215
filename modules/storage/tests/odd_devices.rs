//! What the tools do with devices that vanish, can't be written, have a name in common or none, and with names that hold
//! blanks, newlines and letters of other languages.
//!
//! The rows of lsblk and the blocks of blkid are in the form of util-linux 2.38.1. The label with a newline is as blkid of
//! that version prints it.
#![allow(clippy::unwrap_used)]

mod machine;

use linux_sysadmin_sdk::testkit::FakeTarget;
use linux_sysadmin_sdk::{Category, Failure, Problem};
use machine::{At, BLKID_ARGV, LSBLK_ARGV, answer, at, bare, empty, machine, plan, refused, written};
use module_storage::module;
use serde_json::{Value, json};

/// A machine with these devices, whose root is on /dev/vda.
fn devices(fstab: &str, rows: &[Value], blkid: &str) -> FakeTarget {
    let lsblk = json!({"blockdevices": rows}).to_string();
    bare(fstab).answer(&LSBLK_ARGV, 0, lsblk, "").answer(&BLKID_ARGV, 0, blkid, "").answer(
        &machine::VERIFY,
        0,
        "",
        "",
    )
}

fn disk(name: &str, number: &str) -> Value {
    json!({"name": name, "kname": name, "pkname": null, "maj:min": number, "type": "disk", "ro": false, "size": 1_000_000_000})
}

fn add(device: &str, mount_point: &str, fs_type: &str) -> Value {
    json!({"device": device, "mount_point": mount_point, "fs_type": fs_type, "options": "nofail,nosuid,nodev"})
}

fn findings(target: FakeTarget) -> Vec<Value> {
    let (data, _) = target.call(&module(), "fstab_validate", json!({})).unwrap();
    data["findings"].as_array().unwrap().clone()
}

const TWINS: &str = "DEVNAME=/dev/sdb\nLABEL=backup\nUUID=1111-2222\nTYPE=ext4\n\nDEVNAME=/dev/sdc\nLABEL=backup\nUUID=3333-4444\nTYPE=ext4\n";

#[test]
fn of_two_devices_with_one_label_the_caller_names_one() {
    let target = |fstab| devices(fstab, &[disk("/dev/sdb", "8:16"), disk("/dev/sdc", "8:32")], TWINS);
    let problem = refused(target(""), "mount_add", add("LABEL=backup", "/srv/b", "ext4"));
    assert_eq!(problem.code, "DEVICE_AMBIGUOUS");
    assert_eq!(problem.message, "LABEL=backup is on several devices: /dev/sdb, /dev/sdc");
    assert_eq!(problem.remediation, ["device= one of UUID=1111-2222 (/dev/sdb), UUID=3333-4444 (/dev/sdc)"]);
    assert_eq!(refused(target(""), "swap_add", json!({"device": "LABEL=backup"})).code, "DEVICE_AMBIGUOUS");
    let fstab = "LABEL=backup /srv/b ext4 nofail 0 0\n";
    let found = findings(at(target(fstab), "/srv/b", At::Directory));
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0]["message"], "/dev/sdb, /dev/sdc are all LABEL=backup: any of them may be taken");
    let target = empty(target(""), "/srv/b");
    let plans = target.plans();
    answer(target, "mount_add", add("UUID=3333-4444", "/srv/b", "ext4"));
    assert_eq!(plan(&plans).steps()[..2], written("UUID=3333-4444 /srv/b ext4 nofail,nosuid,nodev 0 0\n"));
}

#[test]
fn a_label_that_no_device_has_is_refused_with_those_that_there_are() {
    let target = || devices("", &[disk("/dev/sdb", "8:16"), disk("/dev/sdc", "8:32")], TWINS);
    for asked in ["LABEL=none", "LABEL=", "LABEL=backup ", "PARTLABEL=backup", "/dev/disk/by-label/none"] {
        let problem = refused(target(), "mount_add", add(asked, "/srv/b", "ext4"));
        assert_eq!(problem.code, "DEVICE_NOT_FOUND", "{asked}");
        let free = "Not mounted: /dev/sdb (ext4, label backup), /dev/sdc (ext4, label backup)";
        assert_eq!(problem.remediation, [free], "{asked}");
    }
}

#[test]
fn a_device_that_is_gone_is_never_to_be_formatted() {
    // The disk was pulled out between both looks, or is a reader without a card.
    let mut empty_reader = disk("/dev/sdd", "8:48");
    empty_reader["size"] = json!(0);
    let target = || devices("", &[disk("/dev/sdb", "8:16"), empty_reader.clone()], TWINS);
    let problem = refused(target(), "mount_add", add("/dev/sdd", "/srv/b", "ext4"));
    assert_eq!(problem.code, "NO_FILE_SYSTEM");
    assert!(problem.message.contains("no medium in it, or is gone"), "{problem:?}");
    assert!(!format!("{problem:?}").contains("mkfs"), "{problem:?}");
    for tool in ["mount_add", "swap_add"] {
        let arguments = match tool {
            "mount_add" => add("/dev/sde", "/srv/b", "ext4"),
            _ => json!({"device": "/dev/sde"}),
        };
        assert_eq!(refused(target(), tool, arguments).code, "DEVICE_NOT_FOUND", "{tool}");
    }
    // One that only the second look has seen can be mounted, by its UUID.
    let target = machine::empty(target(), "/srv/b");
    let plans = target.plans();
    let (data, _) = answer(target, "mount_add", add("/dev/sdc", "/srv/b", "ext4"));
    assert_eq!((&data["source"], plans.borrow().len()), (&json!("UUID=3333-4444"), 1));
}

#[test]
fn a_device_that_cannot_be_written_is_mounted_with_a_warning_and_is_no_swap() {
    let mut locked = disk("/dev/sdb", "8:16");
    // As lsblk 2.32 writes it.
    locked["ro"] = json!("1");
    let target = |blkid| devices("", std::slice::from_ref(&locked), blkid);
    let (_, notes) = answer(empty(target(TWINS), "/srv/b"), "mount_add", add("/dev/sdb", "/srv/b", "ext4"));
    assert!(notes.contains(&"/dev/sdb is read-only, and so will be the mount".to_owned()), "{notes:?}");
    let mut arguments = add("/dev/sdb", "/srv/b", "ext4");
    arguments["options"] = json!("ro,nofail,nosuid,nodev");
    let (_, notes) = answer(empty(target(TWINS), "/srv/b"), "mount_add", arguments);
    assert!(!notes.iter().any(|note| note.contains("read-only")), "{notes:?}");
    assert_eq!(refused(target(""), "swap_add", json!({"device": "/dev/sdb"})).code, "DEVICE_READ_ONLY");
}

#[test]
fn a_device_that_is_in_use_elsewhere_is_refused_by_each_of_its_names() {
    let rows = [disk("/dev/sdb", "8:16"), disk("/dev/sdc", "8:32")];
    let mounts = "43 42 254:0 / / rw - ext4 /dev/vda rw\n50 43 8:16 / /srv/käse\\040laden rw - ext4 /dev/root-of-sdb rw\n";
    let target = || devices("", &rows, TWINS).file("/proc/self/mountinfo", mounts);
    for asked in ["/dev/sdb", "UUID=1111-2222", "/dev/disk/by-uuid/1111-2222"] {
        let problem = refused(target(), "mount_add", add(asked, "/mnt/y", "ext4"));
        assert_eq!(problem.code, "DEVICE_MOUNTED", "{asked}");
        assert_eq!(problem.message, "/dev/sdb is mounted at /srv/käse laden already", "{asked}");
        assert_eq!(problem.remediation[0], "mount_remove mount_point=/srv/käse laden", "{asked}");
        assert_eq!(refused(target(), "swap_add", json!({"device": asked})).code, "DEVICE_MOUNTED", "{asked}");
    }
}

#[test]
fn names_with_blanks_and_letters_of_other_languages_come_through_fstab() {
    let blkid = "DEVNAME=/dev/sdb\nLABEL=Größe\\ ÷\\ \\\"日本\\\"\nUUID=1111-2222\nTYPE=ext4\n";
    let point = "/srv/käse 日本 # 1";
    let before = "# Größe\n\\040 broken\n";
    let target = empty(devices(before, &[disk("/dev/sdb", "8:16")], blkid), point);
    let plans = target.plans();
    let (data, _) = answer(target, "mount_add", add("/dev/disk/by-uuid/1111-2222", point, "ext4"));
    assert_eq!(data["mount_point"], point);
    let expected = format!(
        "{before}/dev/disk/by-uuid/1111-2222 /srv/käse\\040日本\\040\\043\\0401 ext4 nofail,nosuid,nodev 0 0\n"
    );
    assert_eq!(plan(&plans).steps()[..2], written(expected.clone()));
    // What was written is found again, and taken out without a trace.
    let target = devices(&expected, &[disk("/dev/sdb", "8:16")], blkid);
    let plans = target.plans();
    let (data, _) = answer(target, "mount_remove", json!({"mount_point": point}));
    assert_eq!(data["fstab_lines"], json!([3]));
    assert_eq!(plan(&plans).steps(), written(before));
}

#[test]
fn a_newline_in_a_name_is_read_as_a_part_of_it_and_never_written() {
    let mounts = "43 42 254:0 / / rw - ext4 /dev/vda rw\n50 43 8:16 / /mnt/line\\012break\\011x rw - ext4 /dev/sdb rw\n";
    let blkid = "DEVNAME=/dev/sdb\nLABEL=a\\ b\nc\\\\x\nUUID=1111-2222\nTYPE=ext4\n";
    let fstab = "UUID=1111-2222 /mnt/line\\012break\\011x ext4 nofail 0 0\n";
    let target = || devices(fstab, &[disk("/dev/sdb", "8:16")], blkid).file("/proc/self/mountinfo", mounts);
    let (items, _) = answer(target(), "mount_list", json!({"filter": "line"}));
    let listed = items.as_array().unwrap().iter().find(|item| item["source"] == "/dev/sdb").unwrap();
    assert_eq!((&listed["mount_point"], &listed["fstab_line"]), (&json!("/mnt/line\nbreak\tx"), &json!(1)));
    assert_eq!(listed["state"], Value::Null, "{listed}");
    assert!(findings(target()).is_empty());
    for (tool, arguments) in [
        ("mount_add", add("/dev/sdb", "/mnt/line\nbreak", "ext4")),
        ("mount_add", add("/dev/sdb\n/dev/sdc", "/mnt/y", "ext4")),
        ("mount_remove", json!({"mount_point": "/mnt/line\nbreak\tx"})),
        ("swap_add", json!({"device": "/dev/sdb\n"})),
        ("swap_add", json!({"size": "64M", "directory": "/srv/a\nb"})),
        ("swap_remove", json!({"path": "/srv/a\nb"})),
    ] {
        let problem = refused(target(), tool, arguments);
        assert!(["INVALID_PATH", "INVALID_DEVICE"].contains(&problem.code.as_str()), "{tool} {problem:?}");
        assert!(problem.message.contains("expected"), "{tool} {problem:?}");
    }
}

#[test]
fn entries_that_need_each_other_are_a_loop_however_long_it_is() {
    let fstab = "/a/x /b none bind,nofail 0 0\n/b/x /c none bind,nofail 0 0\n/c/x /a none bind,nofail 0 0\n\
        /a/y /d none bind,nofail 0 0\n/e /f none bind,nofail 0 0\n";
    let target = ["/a", "/b", "/c", "/d", "/f"]
        .into_iter()
        .fold(devices(fstab, &[], ""), |target, path| at(target, path, At::Directory));
    let found = findings(target);
    let told: Vec<_> = found.iter().filter(|finding| finding["severity"] == "high").collect();
    assert_eq!(told.len(), 1, "{found:?}");
    assert_eq!(
        (&told[0]["line"], &told[0]["message"]),
        (&json!(1), &json!("needs a mount that needs this one: a loop with line 2, 3"))
    );
}

/// `stat` and `realpath` of a path on a file system whose machine is away.
fn hanging(target: FakeTarget, path: &str) -> FakeTarget {
    let late = |program: &str| {
        Problem::new("COMMAND_TIMEOUT", Category::Timeout, format!("{program} took longer than 10 s"))
    };
    target
        .failure(&["stat", "--format=%F", "--", path], late("stat"))
        .failure(&["realpath", "--canonicalize-missing", "--", path], late("realpath"))
}

#[test]
fn what_lies_on_a_file_system_that_hangs_is_said_to_be_unknown() {
    let fstab = "nas:/a /mnt/nas nfs nofail 0 0\n/srv/x /mnt/nas/in none bind,nofail 0 0\n";
    let mounts = "43 42 254:0 / / rw - ext4 /dev/vda rw\n50 43 0:50 / /mnt/nas rw - nfs4 nas:/a rw\n";
    let target = || hanging(devices(fstab, &[], "").file("/proc/self/mountinfo", mounts), "/mnt/nas/in");
    let found = findings(target());
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0]["message"], "/mnt/nas/in can't be looked at: realpath took longer than 10 s");
    let (items, _) = answer(target(), "mount_list", json!({}));
    assert!(items.to_string().contains("\"/mnt/nas\""), "{items}");
    let mut arguments = add("/srv/x", "/mnt/nas/in", "none");
    arguments["options"] = json!("bind");
    let bound = hanging(machine(""), "/mnt/nas/in").answer(
        &["stat", "--format=%F", "--", "/srv/x"],
        0,
        "directory\n",
        "",
    );
    let problem = refused(bound, "mount_add", arguments);
    assert_eq!(problem.code, "MOUNT_POINT_UNKNOWN");
    assert!(problem.message.contains("took longer than 10 s"), "{problem:?}");
}

#[test]
fn an_unmount_that_gets_no_answer_says_how_it_is_forced() {
    let mounts = "43 42 254:0 / / rw - ext4 /dev/vda rw\n50 43 0:50 / /mnt/nas rw - nfs4 nas:/a rw\n51 43 8:16 / /mnt/b rw - ext4 /dev/sdb rw\n";
    let removed = |point: &str, code: &str| {
        let failure = Failure {
            problem: Problem::new(code, Category::Timeout, "`umount -- /mnt/nas` took longer than 120 s"),
            step: 0,
            outputs: Vec::new(),
            undone: Vec::new(),
            not_undone: Vec::new(),
            uncertain: false,
        };
        let (deleted, below) = (format!("{point} (deleted)"), format!("{point}/*"));
        let find = "find /proc -mindepth 1 -maxdepth 3 ( -path /proc/[!1-9]* -o -path /proc/*/task -o -path /proc/*/net -o -path \
                    /proc/*/attr -o -path /proc/*/ns -o -path /proc/*/fdinfo ) -prune -o -type l";
        let mut argv: Vec<&str> = find.split_whitespace().collect();
        argv.extend([
            "(",
            "-lname",
            point,
            "-o",
            "-lname",
            &deleted,
            "-o",
            "-lname",
            &below,
            ")",
            "-printf",
            "%p\\t%l\\0",
        ]);
        let target = devices("", &[disk("/dev/sdb", "8:16")], TWINS)
            .file("/proc/self/mountinfo", mounts)
            .answer(&argv, 0, "", "")
            .outcome(Err(failure));
        target.call(&module(), "mount_remove", json!({"mount_point": point})).unwrap_err().remediation
    };
    let help = removed("/mnt/nas", "COMMAND_TIMEOUT");
    assert!(help[0].contains(r#"["umount","--force","--lazy","/mnt/nas"]"#), "{help:?}");
    // A disk of the machine itself answers, and a person's no is no failure.
    assert!(removed("/mnt/b", "COMMAND_TIMEOUT").is_empty());
    assert!(removed("/mnt/nas", "DECLINED").is_empty());
}
