//! `disk_usage` on disks that were made larger under their file systems.
//!
//! The outputs about ext4, xfs and btrfs were recorded with e2fsprogs 1.47.0, xfsprogs 6.1.0, btrfs-progs 6.2 and util-linux
//! 2.38.1, on loop devices whose files had become twice as large. The disk with partitions is in the form of lsblk(8).
#![allow(clippy::unwrap_used)]

use linux_sysadmin_sdk::testkit::FakeTarget;
use linux_sysadmin_sdk::{Category, Problem};
use module_storage::module;
use serde_json::{Value, json};

const STATFS: [&str; 6] = ["stat", "--file-system", "--printf", "%b %f %a %S %c %d %n\\0", "--", "/srv/data"];
const DEVICE: [&str; 7] =
    ["lsblk", "--json", "--bytes", "--paths", "--list", "--nodeps", "--output=NAME,TYPE,SIZE,PKNAME"];
const DISK: [&str; 6] = ["lsblk", "--json", "--bytes", "--paths", "--list", "--output=NAME,TYPE,SIZE,PKNAME"];

const DUMPE2FS: &str = "Filesystem volume name:   <none>\nInode count:              16384\nBlock count:              65536\n\
    Reserved block count:     3276\nFirst block:              1\nBlock size:               1024\nFragment size:            1024\n";
const XFS_INFO: &str = "meta-data=/dev/loop0             isize=512    agcount=4, agsize=20480 blks\n         =                       sectsz=512   attr=2, projid32bit=1\n\
    data     =                       bsize=4096   blocks=81920, imaxpct=25\n         =                       sunit=0      swidth=0 blks\n\
    log      =internal log           bsize=4096   blocks=16384, version=2\n";
const BTRFS_SHOW: &str = "Label: none  uuid: f44a3a67-cdaf-4c5d-8936-d64ec5e9c049\n\tTotal devices 1 FS bytes used 147456\n\
    \tdevid    1 size 134217728 used 121634816 path /dev/loop0\n\n";

const FULL: &str = include_str!("data/lvm/full.txt");

/// One device as lsblk prints it.
fn lsblk(rows: &[(&str, &str, u64, Option<&str>)]) -> String {
    let row = |(name, kind, size, parent): &(&str, &str, u64, Option<&str>)| json!({"name": name, "type": kind, "size": size, "pkname": parent});
    json!({"blockdevices": rows.iter().map(row).collect::<Vec<_>>()}).to_string()
}

/// A machine with this file system on /srv/data, whose device has this size.
fn machine(mount: &str, statfs: &str, device: &str, size: u64) -> FakeTarget {
    let said = lsblk(&[(device, "loop", size, None)]);
    FakeTarget::new()
        .file("/proc/self/mountinfo", format!("27 1 254:0 / / rw - ext4 /dev/vda rw\n42 27 {mount}\n"))
        .answer(&["realpath", "--canonicalize-existing", "--zero", "--", "/srv/data"], 0, "/srv/data\0", "")
        .answer(&STATFS, 0, format!("{statfs} /srv/data\0"), "")
        .answer(&[&DEVICE[..], &["--", device]].concat(), 0, said, "")
}

fn ext4(size: u64) -> FakeTarget {
    let mount = "7:0 / /srv/data rw - ext4 /dev/loop0 rw";
    machine(mount, "56037 5303 717 1024 16384 16372", "/dev/loop0", size).answer(
        &["dumpe2fs", "-h", "--", "/dev/loop0"],
        0,
        DUMPE2FS,
        "dumpe2fs 1.47.0 (5-Feb-2023)\n",
    )
}

fn xfs(size: u64) -> FakeTarget {
    let mount = "7:0 / /srv/data rw - xfs /dev/loop0 rw,inode64";
    machine(mount, "65536 3202 3202 4096 163840 163836", "/dev/loop0", size).answer(
        &["xfs_info", "--", "/srv/data"],
        0,
        XFS_INFO,
        "",
    )
}

fn btrfs(size: u64, statfs: &str, show: &str) -> FakeTarget {
    let mount = "0:40 / /srv/data rw - btrfs /dev/loop0 rw,subvolid=5,subvol=/";
    let argv = ["btrfs", "filesystem", "show", "--raw", "--", "/srv/data"];
    machine(mount, statfs, "/dev/loop0", size).answer(&argv, 0, show, "")
}

/// What fills /srv/data, and the summary.
fn cause(target: FakeTarget) -> (Value, String) {
    let (data, reply) = target.call(&module(), "disk_usage", json!({"path": "/srv/data"})).unwrap();
    (data["causes"][0].clone(), reply.summary.unwrap())
}

#[test]
fn a_device_that_became_larger_is_told_with_the_call_that_lets_its_file_system_fill_it() {
    let btrfs = btrfs(256 << 20, "32768 1288 1032 4096 0 0", BTRFS_SHOW);
    for (target, more, next) in [
        (ext4(128 << 20), "64M", r#"["resize2fs","--","/dev/loop0"]"#),
        (xfs(640 << 20), "320M", r#"["xfs_growfs","--","/srv/data"]"#),
        (btrfs, "128M", r#"["btrfs","filesystem","resize","--","1:max","/srv/data"]"#),
    ] {
        let (cause, summary) = cause(target);
        let next = format!(r#"command_run {{"argv": {next}, "as_root": true}}"#);
        assert_eq!(cause["growable"], json!({"more": more, "next": next}));
        assert!(
            summary.contains(&format!("there are {more} more for it, which {next} gives it")),
            "{summary}"
        );
    }
}

#[test]
fn a_file_system_that_fills_its_device_has_nothing_to_grow_into() {
    let of_two = "42768 1288 1032 4096 0 0";
    for target in [
        ext4(64 << 20),
        // What is less than a block group is no room.
        ext4((64 << 20) + 4096),
        xfs(320 << 20),
        btrfs(128 << 20, "32768 1288 1032 4096 0 0", BTRFS_SHOW),
        // The second of two devices may be the one that is larger.
        btrfs(256 << 20, of_two, &format!("{BTRFS_SHOW}\tdevid    2 size 40960000 used 1 path /dev/loop1\n")),
        // Without root's rights, nobody knows.
        ext4(128 << 20).failure(
            &["dumpe2fs", "-h", "--", "/dev/loop0"],
            Problem::new("PRIVILEGE_REQUIRED", Category::Denied, "root's rights are needed"),
        ),
        machine(
            "7:0 / /srv/data ro - ext4 /dev/loop0 ro",
            "56037 5303 717 1024 16384 16372",
            "/dev/loop0",
            128 << 20,
        ),
        machine(
            "0:50 / /srv/data rw - nfs4 nas:/x rw",
            "56037 5303 717 1024 16384 16372",
            "/dev/loop0",
            128 << 20,
        ),
    ] {
        let (cause, summary) = cause(target);
        assert_eq!(cause["mount"], "/srv/data");
        assert!(cause["growable"].is_null() && !summary.contains("growfs"), "{cause} {summary}");
    }
}

/// The file system on a partition, which it fills, and the disk around it.
fn on_a_partition(partition: &str, disk: &str, rows: &[(&str, &str, u64, Option<&str>)]) -> (Value, String) {
    let mount = format!("8:1 / /srv/data rw - ext4 {partition} rw");
    let target = machine(&mount, "56037 5303 717 1024 16384 16372", partition, 64 << 20)
        .answer(&["dumpe2fs", "-h", "--", partition], 0, DUMPE2FS, "")
        .answer(&[&DISK[..], &["--", disk]].concat(), 0, lsblk(rows), "");
    let said = lsblk(&[(partition, "part", 64 << 20, Some(disk))]);
    // The latest answer about the partition counts.
    cause(target.transcript(&format!("$ {} -- {partition}\n[exit 0]\n{said}\n", DEVICE.join(" "))))
}

#[test]
fn a_disk_that_became_larger_is_told_with_the_partition_first() {
    for (partition, disk, number) in [("/dev/vda1", "/dev/vda", "1"), ("/dev/nvme0n1p2", "/dev/nvme0n1", "2")]
    {
        let rows = [
            (disk, "disk", 1 << 30, None),
            (partition, "part", 64 << 20, Some(disk)),
            ("/dev/other", "part", 128 << 20, Some(disk)),
        ];
        let (cause, _) = on_a_partition(partition, disk, &rows);
        assert_eq!(cause["growable"]["more"], "832M", "{cause}");
        let next = cause["growable"]["next"].as_str().unwrap();
        let first = format!(r#"["growpart","{disk}","{number}"]"#);
        let second = format!(r#"["resize2fs","--","{partition}"]"#);
        assert!(next.find(&first) < next.find(&second) && next.contains(&first), "{next}");
        // The partitions take the disk but for what lies between them.
        let full = [(disk, "disk", 256 << 20, None), (partition, "part", 250 << 20, Some(disk))];
        assert!(on_a_partition(partition, disk, &full).0["growable"].is_null());
    }
}

#[test]
fn a_volume_whose_group_has_room_is_told_with_the_call_that_grows_both() {
    let on = |volume: &str, bytes: u64| {
        let volume = &format!("/dev/mapper/vg0-{volume}");
        let mount = format!("253:1 / /srv/data rw - ext4 {volume} rw");
        let blocks = format!("Block count:              {}\nBlock size:               1024\n", bytes >> 10);
        let target = machine(&mount, "189882 2000 0 1024 52208 52196", volume, bytes)
            .answer(&["dumpe2fs", "-h", "--", volume], 0, blocks, "")
            .transcript(FULL);
        let said = lsblk(&[(volume, "lvm", bytes, Some("/dev/loop0"))]);
        cause(target.transcript(&format!("$ {} -- {volume}\n[exit 0]\n{said}\n", DEVICE.join(" ")))).0
    };
    let next = r#"lvm_resize {"lv_path": "/dev/vg0/fast", "size": "+100%FREE"}"#;
    assert_eq!(on("fast", 213_909_504)["growable"], json!({"more": "1.04G", "next": next}));
    // A volume with a snapshot grows only without it.
    assert!(on("data", 314_572_800)["growable"].is_null());
}
