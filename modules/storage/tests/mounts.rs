//! What the tools for mounts answer and plan, on a machine that was recorded.
#![allow(clippy::unwrap_used)]

mod machine;

use linux_sysadmin_sdk::testkit::{FakeTarget, takes_little_context};
use linux_sysadmin_sdk::{Change, DurationCategory, Lock, Risk, Step};
use machine::{
    At, EXT4, MOUNTINFO, XFS, answer, at, bare, empty, machine, plan, refused, reload, root, written,
};
use module_storage::module;
use serde_json::{Value, json};

const FSTAB: &str = "# static\n/dev/vda / ext4 rw,discard 0 1\n";

fn findings(target: FakeTarget) -> (Vec<Value>, String) {
    let (data, reply) = target.call(&module(), "fstab_validate", json!({})).unwrap();
    (data["findings"].as_array().unwrap().clone(), reply.severity.unwrap())
}

/// The machine with a table that has most of the faults that there are.
fn faulty() -> FakeTarget {
    let mut target = machine(include_str!("fixtures/mounts/fstab"));
    target = target.transcript(&format!(
        "$ findmnt --verify --tab-file=/etc/fstab\n[exit 1]\n{}",
        include_str!("fixtures/mounts/verify")
    ));
    for path in ["/mnt/a b", "/mnt/x", "/mnt", "/", "/mnt/q"] {
        target = at(target, path, At::Directory);
    }
    for path in ["/mnt/none", "/mnt/none2", "/mnt/c", "/swapfile"] {
        target = at(target, path, At::Nothing);
    }
    at(target, "/mnt/p", At::LinkTo("/srv/p"))
}

#[test]
fn every_fault_of_fstab_is_told_with_its_line() {
    let target = faulty();
    let (found, severity) = findings(target);
    assert_eq!(severity, "high");
    let text = serde_json::to_string(&found).unwrap();
    assert!(!text.contains("hunter2"), "{text}");
    let has = |line: u64, severity: &str, part: &str| {
        let is_it = |finding: &&Value| {
            finding["line"] == line
                && finding["severity"] == severity
                && finding["message"].as_str().is_some_and(|message| message.contains(part))
        };
        assert!(found.iter().any(|finding| is_it(&finding)), "{line} {severity} {part}: {text}");
    };
    has(8, "high", "fewer than three fields");
    has(4, "high", "no device UUID=00000000-0000-0000-0000-000000000000 is there: the next start stops");
    has(4, "warning", "/mnt/none isn't there");
    // findmnt takes a device that may be away for an error.
    has(5, "warning", "no device UUID=00000000-0000-0000-0000-000000000001 is there now");
    has(6, "high", "the type is ext4, and /dev/loop3 has xfs");
    has(6, "warning", "/dev/loop3 may be another device after a start");
    has(7, "high", "/mnt/x stands in line 6 already");
    has(11, "warning", "`mount -a` mounts /mnt over what line 3, 4, 5, 6, 7, 10 mounted below it");
    has(12, "warning", "no swap file /swapfile is there");
    has(9, "warning", "no device /dev/loop9 is there");
    has(10, "high", "options hold a secret (password)");
    has(10, "warning", "without nofail");
    has(11, "warning", "pass 2 has fsck check nfs");
    has(13, "high", "\"rel\" is no absolute path");
    has(14, "warning", "leads through a symlink to /srv/p");
    has(14, "high", "a loop with line 15");
    has(16, "high", "/swapfile stands in line 12 already");
    assert_eq!(found.len(), 22, "{text}");
    let help =
        found.iter().find(|finding| finding["message"].as_str().unwrap().starts_with("/dev/loop3 may"));
    assert_eq!(help.unwrap()["help"], format!("UUID={}", XFS.trim_start_matches("UUID=")));
}

#[test]
fn a_table_without_faults_has_no_findings() {
    let fstab = format!(
        "{FSTAB}{XFS} /mnt/x xfs defaults 0 0\ntmpfs /tmp tmpfs nosuid 0 0\nproc /proc proc defaults 0 0\n"
    );
    let mut target = machine(fstab);
    for path in ["/", "/mnt/x", "/tmp", "/proc"] {
        target = at(target, path, At::Directory);
    }
    let (found, severity) = findings(target);
    // The recorded machine has its root on a device whose name may change.
    assert_eq!((found.len(), severity.as_str()), (1, "warning"), "{found:?}");
    assert!(found[0]["message"].as_str().unwrap().starts_with("/dev/vda may be"), "{found:?}");
}

#[test]
fn what_only_findmnt_knows_is_told_as_well() {
    let said = "\n0 parse errors, 0 errors, 1 warning\nnone\n   [W] your fstab has been modified, but systemd still uses the old version;\n       use 'systemctl daemon-reload' to reload\n";
    let target = bare("").answer(&machine::VERIFY, 0, said, "");
    let (found, _) = findings(target);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0]["help"].as_str().unwrap().contains("daemon-reload"));
    // Without a table and without findmnt, there is nothing to say.
    let (found, severity) = findings(FakeTarget::new());
    assert_eq!((found.len(), severity.as_str()), (0, "info"));
}

#[test]
fn thousands_of_entries_are_checked() {
    let fstab: String = (0..3000).map(|number| format!("host:/x /mnt/{number} nfs nofail 0 0\n")).collect();
    let (found, _) = findings(machine(fstab));
    // None of the directories can be looked at.
    assert_eq!(found.len(), 3000);
}

fn listed(target: FakeTarget, arguments: Value) -> Vec<Value> {
    answer(target, "mount_list", arguments).0.as_array().unwrap().clone()
}

fn shown_units(target: FakeTarget, units: &[&str], states: &str) -> FakeTarget {
    let argv: Vec<&str> =
        ["systemctl", "show", "--property=ActiveState", "--"].iter().chain(units).copied().collect();
    target.answer(&argv, 0, states, "")
}

#[test]
fn mounts_stand_beside_fstab_and_those_that_differ_come_first() {
    let fstab = format!(
        "/dev/vda / ext4 discard,noatime 0 1\n{EXT4} /mnt/a\\040b ext4 defaults 0 0\nUUID=gone /mnt/gone ext4 nofail 0 0\n\
         host:/x /mnt/n nfs noauto,password=hunter2 0 0\n"
    );
    let mut target = machine(fstab);
    for path in ["/mnt/a b", "/mnt/gone", "/mnt/n"] {
        target = at(target, path, At::Directory);
    }
    let units = ["mnt-a\\x20b.mount", "mnt-gone.mount", "mnt-n.mount"];
    target =
        shown_units(target, &units, "ActiveState=failed\n\nActiveState=inactive\n\nActiveState=inactive\n");
    let journal = [
        "journalctl",
        "--output=json",
        "--no-pager",
        "--quiet",
        "--boot",
        "--lines=20",
        "--unit=mnt-a\\x20b.mount",
    ];
    let said = r#"{"__REALTIME_TIMESTAMP":"1","PRIORITY":"5","_SYSTEMD_UNIT":"mnt-a.mount","MESSAGE":"mount: /mnt/a b: wrong fs type, bad superblock."}"#;
    let (items, notes) = answer(target.answer(&journal, 0, said, ""), "mount_list", json!({}));
    assert!(notes[0].starts_with("mount_add with what fstab has"), "{notes:?}");
    let expected = json!([
        {"mount_point": "/mnt/a b", "source": EXT4, "fs_type": "ext4", "options": "defaults", "fstab_line": 2, "state": "failed",
         "reason": "mount: /mnt/a b: wrong fs type, bad superblock."},
        {"mount_point": "/mnt/gone", "source": "UUID=gone", "fs_type": "ext4", "options": "nofail", "fstab_line": 3,
         "state": "not_mounted", "reason": "there is no device UUID=gone"},
        {"mount_point": "/", "source": "/dev/vda", "fs_type": "ext4",
         "options": "rw,relatime,discard,resv_strict,resuid=65534,resgid=65534", "fstab_line": 1, "state": "options_differ",
         "reason": "fstab says noatime, which doesn't hold now"},
        {"mount_point": "/mnt/x", "source": "/dev/loop3", "fs_type": "xfs",
         "options": "rw,relatime,inode64,logbufs=8,logbsize=32k,noquota", "state": "not_in_fstab"},
        {"mount_point": "/mnt/n", "source": "host:/x", "fs_type": "nfs", "options": "noauto,password=***", "fstab_line": 4,
         "state": "noauto"},
    ]);
    assert_eq!(items, expected);
}

#[test]
fn pseudo_file_systems_are_listed_on_request_and_hidden_mounts_are_told() {
    let count = |arguments| listed(machine(FSTAB), arguments).len();
    assert_eq!((count(json!({})), count(json!({"all": true}))), (2, 5));
    let over = format!("{MOUNTINFO}64 63 7:4 / /mnt/x rw - btrfs /dev/loop4 rw\n");
    let items = listed(machine(FSTAB).file("/proc/self/mountinfo", over), json!({}));
    assert_eq!(items[0]["state"], "hidden");
    assert_eq!(items[0]["reason"], "/dev/loop4 is mounted over it, at /mnt/x");
    let other = format!("{FSTAB}{EXT4} /mnt/x xfs defaults 0 0\n");
    let items = listed(machine(other), json!({}));
    assert_eq!(
        (&items[0]["state"], &items[0]["reason"]),
        (&json!("other_source"), &json!(format!("fstab names {EXT4}")))
    );
}

fn add(device: &str, mount_point: &str, fs_type: &str) -> Value {
    json!({"device": device, "mount_point": mount_point, "fs_type": fs_type})
}

#[test]
fn a_device_is_mounted_now_and_at_each_start_by_its_uuid() {
    let target = at(empty(machine(FSTAB), "/mnt"), "/mnt/new", At::Nothing);
    let target = at(at(target, "/mnt/new/a b", At::Nothing), "/", At::Directory);
    let plans = target.plans();
    let mut arguments = add("/dev/loop2", "/mnt/new/a b/", "ext4");
    arguments["options"] = json!("defaults,nofail");
    arguments["pass"] = json!(2);
    let (data, notes) = answer(target, "mount_add", arguments);
    let expected = json!({"mount_point": "/mnt/new/a b", "source": EXT4, "fs_type": "ext4", "options": "defaults,nofail",
        "made": ["/mnt/new", "/mnt/new/a b"]});
    assert_eq!(data, expected);
    assert!(notes[0].starts_with(&format!("fstab gets {EXT4}")), "{notes:?}");
    let [write, reloaded] = written(format!("{FSTAB}{EXT4} /mnt/new/a\\040b ext4 defaults,nofail 0 2\n"));
    let made = root(&["mkdir", "--mode=0755", "--", "/mnt/new", "/mnt/new/a b"], DurationCategory::Instant);
    let removed = root(&["rmdir", "--", "/mnt/new/a b", "/mnt/new"], DurationCategory::Instant);
    let change = Change::new(format!("Mount {EXT4} at /mnt/new/a b now and at each start"))
        .step(Step::run(made).undo(removed))
        .lock(Lock::File("/etc/fstab".into()))
        .step(write)
        .step(reloaded)
        .after_undo(reload())
        .step(Step::run(root(&["mount", "--", "/mnt/new/a b"], DurationCategory::Slow)))
        .warning("where the machine can do without it, options=defaults,nofail,nosuid,nodev is of less risk");
    assert_eq!(plan(&plans), change);
}

#[test]
fn what_is_there_already_is_not_done_again() {
    let fstab = format!("{FSTAB}{XFS} /mnt/x xfs defaults 0 0\n");
    // Mounted and in fstab.
    let target = machine(fstab.clone());
    let plans = target.plans();
    let (_, notes) = answer(target, "mount_add", add("/dev/loop3", "/mnt/x", "xfs"));
    assert!(plans.borrow().is_empty() && notes[0].contains("already"), "{notes:?}");
    // Mounted, and not in fstab.
    let target = machine(FSTAB);
    let plans = target.plans();
    answer(target, "mount_add", add(XFS, "/mnt/x", "auto"));
    assert_eq!(plan(&plans).steps(), written(fstab.clone()));
    // In fstab, and not mounted.
    let unmounted: String =
        MOUNTINFO.lines().filter(|line| !line.contains("loop3")).map(|line| format!("{line}\n")).collect();
    let target = empty(machine(fstab), "/mnt/x").file("/proc/self/mountinfo", unmounted);
    let plans = target.plans();
    answer(target, "mount_add", add(XFS, "/mnt/x", "xfs"));
    assert_eq!(plan(&plans).steps(), [Step::run(root(&["mount", "--", "/mnt/x"], DurationCategory::Slow))]);
}

#[test]
fn what_cannot_be_mounted_is_refused_with_what_helps() {
    let in_fstab = format!("{FSTAB}{EXT4} /srv/a ext4 defaults 0 0\nhost:/x /mnt/n nfs ro 0 0\n");
    let target = || {
        let target = machine(in_fstab.clone())
            .answer(&["stat", "--format=%F", "--", "/srv/dir"], 0, "directory\n", "")
            .answer(&["stat", "--format=%F", "--", "/srv/none"], 1, "", "No such file or directory");
        let target = at(target, "/mnt/file", At::File);
        at(target, "/mnt/link", At::LinkTo("/srv/b"))
    };
    let with = |mut arguments: Value, options: &str| {
        arguments["options"] = json!(options);
        arguments
    };
    for (arguments, code, part) in [
        (add("/dev/loop2", "mnt/x", "ext4"), "INVALID_PATH", "absolute"),
        (add("/dev/loop2", "/mnt/../etc", "ext4"), "INVALID_PATH", "absolute"),
        (add("/dev/loop2", "/mnt/a\nb", "ext4"), "INVALID_PATH", "control"),
        (add("/dev/loop2", "/", "ext4"), "SYSTEM_DIRECTORY", "/"),
        (add("/dev/loop2", "/usr/local/x", "ext4"), "SYSTEM_DIRECTORY", "cover"),
        (
            with(add("//h/s", "/mnt/c", "cifs"), "user=a,password=hunter2"),
            "SECRET_IN_OPTIONS",
            "credentials=FILE",
        ),
        (with(add("/dev/loop4", "/mnt/y", "btrfs"), "rw,,x"), "INVALID_OPTIONS", "joined by commas"),
        (add("/dev/loop4", "/mnt/y", "swap"), "INVALID_FS_TYPE", "mount point"),
        (add("/dev/loop4", "/mnt/y", "a b"), "INVALID_FS_TYPE", "ext4"),
        (add("sshfs#a@b:", "/mnt/y", "fuse.sshfs"), "FS_TYPE_NOT_SUPPORTED", "as root"),
        (add("", "/mnt/y", "ext4"), "INVALID_DEVICE", "expected a device"),
        (add("-o", "/mnt/y", "ext4"), "INVALID_DEVICE", "expected a device"),
        (add("sdb1", "/mnt/y", "ext4"), "INVALID_DEVICE", "expected a device"),
        (add("/srv/dir", "/mnt/y", "ext4"), "INVALID_DEVICE", "bind among the options"),
        (add("/srv/none", "/mnt/y", "ext4"), "DEVICE_NOT_FOUND", "/srv/none"),
        (with(add("/srv/none", "/mnt/y", "none"), "bind"), "SOURCE_NOT_FOUND", "/srv/none"),
        (add("/dev/sdx1", "/mnt/y", "ext4"), "DEVICE_NOT_FOUND", "/dev/sdx1"),
        (add("UUID=1", "/mnt/y", "ext4"), "DEVICE_NOT_FOUND", "UUID=1"),
        (add("/dev/vda", "/mnt/y", "ext4"), "NO_FILE_SYSTEM", "blkid"),
        (add("/dev/loop4", "/mnt/y", "xfs"), "FS_TYPE_MISMATCH", "has btrfs, not xfs"),
        (add("/dev/loop3", "/mnt/y", "xfs"), "DEVICE_MOUNTED", "mounted at /mnt/x"),
        (add("/dev/loop2", "/mnt/y", "ext4"), "DEVICE_IN_FSTAB", "line 3"),
        (add("/dev/loop4", "/mnt/x", "btrfs"), "MOUNT_POINT_IN_USE", "/dev/loop3 is mounted"),
        (add("/dev/loop4", "/mnt/n", "btrfs"), "MOUNT_POINT_IN_FSTAB", "line 4"),
        (add("/dev/loop4", "/mnt/link", "btrfs"), "MOUNT_POINT_IS_SYMLINK", "/srv/b"),
        (add("/dev/loop4", "/mnt/file", "btrfs"), "NOT_A_DIRECTORY", "regular file"),
        (add("/dev/loop4", "/mnt/unknown", "btrfs"), "MOUNT_POINT_UNKNOWN", "/mnt/unknown"),
        (add("host", "/mnt/y", "nfs"), "INVALID_DEVICE", "host:/path"),
        (add("//host", "/mnt/y", "cifs"), "INVALID_DEVICE", "//host/share"),
        (add("h:/x", "/mnt/y", "nfs"), "HELPER_MISSING", "mount.nfs"),
    ] {
        let problem = refused(target(), "mount_add", arguments.clone());
        assert_eq!(problem.code, code, "{arguments} {}", problem.message);
        assert!(problem.message.contains(part), "{arguments} {}", problem.message);
        assert!(!format!("{problem:?}").contains("hunter2"));
    }
    let problem = refused(target(), "mount_add", add("/dev/sdx1", "/mnt/y", "ext4"));
    assert_eq!(problem.remediation, ["Not mounted: /dev/loop2 (ext4, label data disk), /dev/loop4 (btrfs)"]);
    let problem = refused(target(), "mount_add", add("h:/x", "/mnt/y", "nfs"));
    assert_eq!(problem.remediation, ["pkg_install package=nfs-common"]);
    let mut arguments = add("/dev/loop4", "/mnt/y", "btrfs");
    arguments["pass"] = json!(3);
    assert_eq!(refused(target(), "mount_add", arguments).code, "INVALID_ARGUMENTS");
}

#[test]
fn two_devices_with_one_uuid_are_refused() {
    let blkid = "DEVNAME=/dev/loop2\nUUID=1\nTYPE=ext4\n\nDEVNAME=/dev/loop4\nUUID=1\nTYPE=ext4\n";
    let target = || empty(bare(FSTAB), "/mnt/y").answer(&machine::BLKID_ARGV, 0, blkid, "");
    let problem = refused(target(), "mount_add", add("UUID=1", "/mnt/y", "ext4"));
    assert_eq!(problem.code, "DEVICE_AMBIGUOUS");
    assert!(problem.message.ends_with("/dev/loop2, /dev/loop4"), "{}", problem.message);
    // By its name, one of them is meant, and fstab keeps the name.
    let target = target();
    let plans = target.plans();
    let (data, notes) = answer(target, "mount_add", add("/dev/loop2", "/mnt/y", "ext4"));
    assert_eq!(data["source"], "/dev/loop2");
    assert!(notes.iter().any(|note| note.contains("no UUID of its own")), "{notes:?}");
    assert_eq!(plans.borrow().len(), 1);
}

#[test]
fn another_machines_directory_is_mounted_with_the_programs_that_it_needs() {
    let target = at(machine(FSTAB), "/mnt/y", At::Directory)
        .answer(&["find", "/mnt/y", "-mindepth", "1", "-maxdepth", "1", "-printf", "."], 0, "...", "")
        .answer(&["stat", "--format=%F", "--", "/usr/sbin/mount.cifs"], 0, "regular file\n", "");
    let plans = target.plans();
    let mut arguments = add("//host/a b", "/mnt/y", "cifs");
    arguments["options"] = json!("credentials=/etc/samba/credentials,users,suid");
    let (data, notes) = answer(target, "mount_add", arguments);
    assert_eq!(data["source"], "//host/a b");
    assert!(notes.iter().any(|note| note.contains("without nofail")), "{notes:?}");
    let change = plan(&plans);
    let line = "//host/a\\040b /mnt/y cifs credentials=/etc/samba/credentials,users,suid 0 0\n";
    assert_eq!(change.steps()[..2], written(format!("{FSTAB}{line}")));
    // What an account mounts there could make it root.
    let expected = Change::new("Mount //host/a b at /mnt/y now and at each start").risk(Risk::Critical);
    let shown = format!("{change:?}");
    assert!(shown.contains("risk: Some(Risk::Critical)"), "{shown} {expected:?}");
    assert!(shown.contains("the mount hides its 3 entries"), "{shown}");
}

#[test]
fn a_table_with_errors_is_written_without_findmnt() {
    let target = empty(bare(FSTAB), "/mnt/y").answer(&machine::VERIFY, 1, "", "");
    let plans = target.plans();
    answer(target, "mount_add", add("tmpfs", "/mnt/y", "tmpfs"));
    let change = plan(&plans);
    assert_eq!(
        change.steps()[0],
        Step::write("/etc/fstab", format!("{FSTAB}tmpfs /mnt/y tmpfs defaults 0 0\n"))
    );
    assert!(format!("{change:?}").contains("fstab has errors already"));
}

#[test]
fn without_systemd_nothing_is_reloaded() {
    let mut target = empty(machine(FSTAB), "/mnt/y");
    target.distro.init_system = "openrc".into();
    let plans = target.plans();
    answer(target, "mount_add", add("tmpfs", "/mnt/y", "tmpfs"));
    assert_eq!(plan(&plans).steps().len(), 2);
}

#[test]
fn what_could_stop_the_next_start_is_said_with_the_options_that_avoid_it() {
    let asked = |device: &str, fs_type: &str, options: Option<&str>| {
        let helper = ["stat", "--format=%F", "--", "/usr/sbin/mount.nfs"];
        let target = empty(machine(FSTAB), "/srv/y").answer(&helper, 0, "regular file\n", "");
        let plans = target.plans();
        let mut arguments = add(device, "/srv/y", fs_type);
        if let Some(options) = options {
            arguments["options"] = json!(options);
        }
        let (data, notes) = answer(target, "mount_add", arguments);
        // Once it is mounted, nobody can call it with other options.
        assert!(!notes.iter().any(|note| note.contains("is of less risk")), "{notes:?}");
        (data["options"].clone(), format!("{:?}", plan(&plans)))
    };
    for (device, fs_type, options, said) in [
        (
            "/dev/loop2",
            "ext4",
            None,
            "a start without UUID=a66bac55-ad80-49dd-a67b-2e25db8c3cd6 stops in emergency mode",
        ),
        ("/dev/loop2", "ext4", None, "options=defaults,nofail,nosuid,nodev is of less risk"),
        ("/dev/loop2", "ext4", Some("noatime,nofail"), "options=noatime,nofail,nosuid,nodev is of less risk"),
        ("/dev/loop2", "ext4", Some("noauto,nodev"), "options=noauto,nodev,nosuid is of less risk"),
        // These turn suid and dev off themselves.
        ("/dev/loop2", "ext4", Some("users"), "options=users,nofail is of less risk"),
        ("tmpfs", "tmpfs", None, "options=defaults,nofail,nosuid,nodev is of less risk"),
        ("nas:/x", "nfs", None, "services wait for the other machine at each start"),
        ("nas:/x", "nfs", None, "is of less risk; x-systemd.automount mounts it on use"),
    ] {
        let (_, plan) = asked(device, fs_type, options);
        assert!(plan.contains(said), "{device} {options:?}: {plan}");
    }
    assert_eq!(asked("/dev/loop2", "ext4", None).0, "defaults");
    let (_, plan) = asked("/dev/loop2", "ext4", Some("nofail,nosuid,nodev"));
    assert!(!plan.contains("emergency mode") && !plan.contains("is of less risk"), "{plan}");
    // A file system in memory is never away.
    assert!(!asked("tmpfs", "tmpfs", None).1.contains("emergency mode"));
}

/// The search for processes that use something.
fn users(target: FakeTarget, point: &str, found: &str) -> FakeTarget {
    let (deleted, below) = (format!("{point} (deleted)"), format!("{point}/*"));
    let argv = "find /proc -mindepth 1 -maxdepth 3 ( -path /proc/[!1-9]* -o -path /proc/*/task -o -path /proc/*/net -o -path \
                /proc/*/attr -o -path /proc/*/ns -o -path /proc/*/fdinfo ) -prune -o -type l";
    let mut argv: Vec<&str> = argv.split_whitespace().collect();
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
    target.answer(&argv, 0, found, "")
}

fn unmount() -> Step {
    Step::run(root(&["umount", "--", "/mnt/x"], DurationCategory::Slow))
}

#[test]
fn a_mount_and_its_line_are_removed_and_nothing_else() {
    let fstab = format!("# a\n{XFS}\t/mnt/x/ xfs  defaults 0 0 # ours\n\n/dev/vda / ext4 rw 0 1");
    let rest = "# a\n\n/dev/vda / ext4 rw 0 1";
    let back = root(&["mount", "--", "/mnt/x"], DurationCategory::Normal);
    for asked in ["/mnt/x", "/mnt/x/", "/dev/loop3", XFS] {
        let target = users(machine(fstab.clone()), "/mnt/x", "");
        let plans = target.plans();
        let (data, _) = answer(target, "mount_remove", json!({"mount_point": asked}));
        assert_eq!(data, json!({"mount_point": "/mnt/x", "unmounted": true, "fstab_lines": [2]}));
        let [write, reloaded] = written(rest);
        assert_eq!(plan(&plans).steps(), [unmount().undo(back.clone()), write, reloaded], "{asked}");
    }
    let target = users(machine(fstab), "/mnt/x", "");
    let plans = target.plans();
    answer(target, "mount_remove", json!({"mount_point": "/mnt/x", "keep_fstab": true}));
    assert_eq!(plan(&plans).steps(), [unmount().undo(back)]);
    // Mounted, and not in fstab.
    let target = users(machine(FSTAB), "/mnt/x", "");
    let plans = target.plans();
    answer(target, "mount_remove", json!({"mount_point": "/mnt/x"}));
    assert_eq!(plan(&plans).steps(), [unmount()]);
    // In fstab, and not mounted.
    let target = machine(format!("{FSTAB}host:/x /mnt/n nfs ro 0 0\n"));
    let plans = target.plans();
    let (data, _) = answer(target, "mount_remove", json!({"mount_point": "host:/x"}));
    assert_eq!(data, json!({"mount_point": "/mnt/n", "unmounted": false, "fstab_lines": [3]}));
    assert_eq!(plan(&plans).steps(), written(FSTAB));
}

#[test]
fn an_automount_is_stopped_before_what_it_mounted() {
    let over = MOUNTINFO.replace("63 43", "62 43 0:50 / /mnt/x rw - autofs systemd-1 rw,fd=50\n63 62");
    let target = users(machine(FSTAB).file("/proc/self/mountinfo", over), "/mnt/x", "");
    let plans = target.plans();
    answer(target, "mount_remove", json!({"mount_point": "/mnt/x"}));
    let [stop, start] = ["stop", "start"]
        .map(|verb| root(&["systemctl", verb, "--", "mnt-x.automount"], DurationCategory::Instant));
    assert_eq!(plan(&plans).steps(), [Step::run(stop).undo(start), unmount()]);
}

#[test]
fn who_keeps_a_mount_busy_is_told_with_the_call_that_helps() {
    let stat = |pid: u32, name: &str| {
        format!("{pid} ({name}) S 1 1 1 0 -1 0 0 0 0 0 5 0 9 9 20 0 3 0 12345 4096 25 1 1\n")
    };
    let busy = |target| {
        users(
            target,
            "/mnt/x",
            "/proc/70/cwd\t/mnt/x/a\0/proc/80/fd/3\t/mnt/x/b c\0/proc/80/fd/4\t/mnt/x/b c\0",
        )
        .file("/proc/70/stat", stat(70, "bash"))
        .file("/proc/70/cmdline", "-bash\0")
        .file("/proc/70/status", "Uid:\t0\t0\t0\t0\n")
        .file("/proc/70/cgroup", "0::/user.slice/user-0.slice/session-3.scope\n")
        .file("/proc/80/stat", stat(80, "mariadbd"))
        .file("/proc/80/cmdline", "/usr/sbin/mariadbd\0--x\0")
        .file("/proc/80/cgroup", "0::/system.slice/mariadb.service\n")
        .file("/proc/stat", "btime 1700000000\n")
        .file("/etc/passwd", "root:x:0:0::/root:/bin/sh\n")
    };
    let problem = refused(busy(machine(FSTAB)), "mount_remove", json!({"mount_point": "/mnt/x"}));
    assert_eq!(problem.code, "MOUNT_BUSY");
    assert_eq!(
        problem.message,
        "/mnt/x is busy: PID 70 (-bash, started 2023-11-14T22:15:23Z, session-3.scope, root) has cwd /mnt/x/a; PID 80 \
         (/usr/sbin/mariadbd --x, started 2023-11-14T22:15:23Z, mariadb.service) has fd 3,4 /mnt/x/b c"
    );
    assert_eq!(problem.remediation, ["svc_stop service=mariadb.service", "proc_signal pid=[70]"]);
    // What is mounted or swapped on it comes first.
    let below = format!("{MOUNTINFO}64 63 7:4 / /mnt/x/y rw - btrfs /dev/loop4 rw\n");
    let target = machine(FSTAB).file("/proc/self/mountinfo", below);
    let problem = refused(target, "mount_remove", json!({"mount_point": "/mnt/x"}));
    assert_eq!(
        (problem.code.as_str(), problem.remediation),
        ("MOUNT_BUSY", vec!["mount_remove mount_point=/mnt/x/y keep_fstab=true".to_owned()])
    );
    let swaps = "Filename Type Size Used Priority\n/mnt/x/s\\040w file 1024 0 -2\n";
    let problem =
        refused(machine(FSTAB).file("/proc/swaps", swaps), "mount_remove", json!({"mount_point": "/mnt/x"}));
    assert_eq!(problem.remediation, ["swap_remove path=/mnt/x/s w"]);
    let target = machine(FSTAB)
        .file("/sys/block/loop1/loop/backing_file", "/srv/other\n")
        .file("/sys/block/loop7/loop/backing_file", "/mnt/x/disk.img\n");
    let problem = refused(target, "mount_remove", json!({"mount_point": "/mnt/x"}));
    assert!(
        problem.message.ends_with("/dev/loop7 shows the file /mnt/x/disk.img on it"),
        "{}",
        problem.message
    );
}

#[test]
fn what_the_system_needs_stays_mounted() {
    let twice = format!(
        "{MOUNTINFO}64 43 7:3 / /srv/x rw - xfs /dev/loop3 rw\n65 43 7:4 / /mnt rw - btrfs /dev/loop4 rw\n"
    );
    for (asked, code, part) in [
        ("/", "SYSTEM_MOUNT", "needs it"),
        ("/dev/vda", "SYSTEM_MOUNT", "needs it"),
        ("/proc", "SYSTEM_MOUNT", "needs it"),
        ("/boot/efi", "SYSTEM_MOUNT", "needs it"),
        ("/mnt/none", "MOUNT_NOT_FOUND", "neither mounted nor in fstab"),
        ("/dev/loop9", "MOUNT_NOT_FOUND", "neither mounted nor in fstab"),
        ("", "MOUNT_NOT_FOUND", "neither mounted nor in fstab"),
        ("/mnt/../x", "INVALID_PATH", "absolute"),
        ("/dev/loop3", "MOUNT_AMBIGUOUS", "/mnt/x, /srv/x"),
        ("/mnt/x", "MOUNT_HIDDEN", "/dev/loop4 is mounted at /mnt, over /mnt/x"),
    ] {
        let target = machine(FSTAB).file("/proc/self/mountinfo", twice.as_str());
        let problem = refused(target, "mount_remove", json!({"mount_point": asked}));
        assert_eq!(problem.code, code, "{asked} {}", problem.message);
        assert!(problem.message.contains(part), "{asked} {}", problem.message);
    }
}

#[test]
fn the_tools_take_little_room_in_a_clients_context() {
    for tool in module().description().tools {
        if [
            "mount_list",
            "mount_add",
            "mount_remove",
            "fstab_validate",
            "swap_list",
            "swap_add",
            "swap_remove",
        ]
        .contains(&tool.name.as_str())
        {
            takes_little_context(&tool);
        }
    }
}

#[test]
fn an_account_that_could_redirect_a_mount_is_told() {
    let owner = |path: &str| ["stat", "--format=%U:%a", "--", path].map(str::to_owned);
    let warned = |home: &str| {
        let [a, b] = [owner("/home"), owner("/home/ada")];
        let [a, b] = [&a, &b].map(|argv| argv.iter().map(String::as_str).collect::<Vec<_>>());
        let target =
            empty(machine(FSTAB), "/home/ada/x").answer(&a, 0, "root:755\n", "").answer(&b, 0, home, "");
        let mut arguments = add("tmpfs", "/home/ada/x", "tmpfs");
        arguments["options"] = json!("nofail,nosuid,nodev");
        answer(target, "mount_add", arguments).1
    };
    assert_eq!(
        warned("ada:700\n"),
        ["ada can write to /home/ada, and put a symlink in the place of /home/ada/x"]
    );
    assert_eq!(
        warned("root:1777\n"),
        ["other accounts can write to /home/ada, and put a symlink in the place of /home/ada/x"]
    );
    assert!(warned("root:755\n").is_empty());
}

#[test]
fn without_rights_a_uuid_that_nobody_knows_is_no_fault() {
    let lsblk = include_str!("fixtures/mounts/lsblk.json");
    let target = || {
        let fstab = "UUID=1 /mnt/y ext4 defaults 0 0\n";
        at(bare(fstab), "/mnt/y", At::Directory).answer(&machine::LSBLK_ARGV, 0, lsblk, "")
    };
    assert_eq!(findings(target()).0, Vec::<Value>::new());
    let problem = refused(target(), "mount_add", add("UUID=2", "/mnt/z", "ext4"));
    assert_eq!(problem.code, "DEVICE_NOT_FOUND");
    assert!(problem.remediation[0].contains("below /dev"), "{problem:?}");
}

#[test]
fn an_automount_that_nothing_has_used_is_stopped_with_its_line() {
    let fstab = format!("{FSTAB}host:/x /mnt/n nfs x-systemd.automount 0 0\n");
    let over = format!("{MOUNTINFO}62 43 0:50 / /mnt/n rw - autofs systemd-1 rw,fd=50\n");
    let target = machine(fstab).file("/proc/self/mountinfo", over);
    let plans = target.plans();
    answer(target, "mount_remove", json!({"mount_point": "/mnt/n"}));
    assert_eq!(plan(&plans).steps().len(), 3);
    assert!(format!("{:?}", plan(&plans).steps()[0]).contains("mnt-n.automount"));
}

#[test]
fn a_file_system_is_only_made_where_nothing_is() {
    let lsblk = r#"{"blockdevices": [
        {"name":"/dev/sda","kname":"/dev/sda","pkname":null,"maj:min":"8:0","size":1},
        {"name":"/dev/sda1","kname":"/dev/sda1","pkname":"/dev/sda","maj:min":"8:1","fstype":"ext4","uuid":"1","size":1},
        {"name":"/dev/sdb","kname":"/dev/sdb","pkname":null,"maj:min":"8:16","size":1},
        {"name":"/dev/sdc","kname":"/dev/sdc","pkname":null,"maj:min":"8:32","size":1},
        {"name":"/dev/sdd","kname":"/dev/sdd","pkname":null,"maj:min":"8:48","fstype":"crypto_LUKS","uuid":"2","size":1}
    ]}"#;
    let blkid = "DEVNAME=/dev/sdb\nPTUUID=3\nPTTYPE=gpt\n";
    for (device, message, help) in [
        ("/dev/sda", "has partitions or volumes on it: /dev/sda1", ""),
        ("/dev/sdb", "no file system that blkid knows", "disk_list"),
        ("/dev/sdc", "no file system that blkid knows", "mkfs.ext4"),
        ("/dev/sdd", "is an encrypted volume", "cryptsetup"),
    ] {
        let target =
            bare(FSTAB).answer(&machine::LSBLK_ARGV, 0, lsblk, "").answer(&machine::BLKID_ARGV, 0, blkid, "");
        let problem = refused(target, "mount_add", add(device, "/mnt/y", "ext4"));
        assert_eq!(problem.code, "NO_FILE_SYSTEM", "{device}");
        assert!(problem.message.contains(message), "{device} {}", problem.message);
        assert!(problem.remediation.concat().contains(help), "{device} {:?}", problem.remediation);
    }
}
