//! A machine with an ext4, an xfs and a btrfs file system on loop devices, as `fixtures/mounts` has it.
#![allow(clippy::unwrap_used, dead_code, missing_docs)]

use linux_sysadmin_sdk::testkit::{FakeTarget, Plans};
use linux_sysadmin_sdk::{Change, Command, DurationCategory, Metadata, Problem, Step};
use module_storage::module;
use serde_json::Value;

pub const MOUNTINFO: &str = include_str!("../fixtures/mounts/mountinfo");
pub const EXT4: &str = "UUID=a66bac55-ad80-49dd-a67b-2e25db8c3cd6";
pub const XFS: &str = "UUID=d69abd2d-54cd-447a-a37e-8383e4f6c2e9";
const LSBLK: &str = include_str!("../fixtures/mounts/lsblk.json");
const BLKID: &str = include_str!("../fixtures/mounts/blkid");

/// The `lsblk` that the tools run.
pub const LSBLK_ARGV: [&str; 6] = [
    "lsblk",
    "--json",
    "--list",
    "--bytes",
    "--paths",
    "--output=NAME,KNAME,PKNAME,MAJ:MIN,TYPE,FSTYPE,UUID,LABEL,PARTUUID,PARTLABEL,RM,HOTPLUG,TRAN,RO,SIZE",
];
pub const BLKID_ARGV: [&str; 5] = ["blkid", "--cache-file", "/dev/null", "--output", "export"];
pub const VERIFY: [&str; 3] = ["findmnt", "--verify", "--tab-file=/etc/fstab"];

/// The machine with this fstab, which findmnt finds nothing wrong with.
pub fn machine(fstab: impl Into<Vec<u8>>) -> FakeTarget {
    bare(fstab).answer(&LSBLK_ARGV, 0, LSBLK, "").answer(&BLKID_ARGV, 0, BLKID, "").answer(
        &VERIFY,
        0,
        "Success, no errors or warnings detected\n",
        "",
    )
}

/// The same without answers about devices.
pub fn bare(fstab: impl Into<Vec<u8>>) -> FakeTarget {
    FakeTarget::new()
        .file("/proc/self/mountinfo", MOUNTINFO)
        .file("/etc/fstab", fstab)
        .file("/proc/swaps", "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n")
}

/// What is at a path.
pub enum At {
    Nothing,
    Directory,
    LinkTo(&'static str),
    File,
}

pub fn at(target: FakeTarget, path: &str, what: At) -> FakeTarget {
    let real = format!("{}\n", if let At::LinkTo(real) = what { real } else { path });
    let target = target.answer(&["realpath", "--canonicalize-missing", "--", path], 0, &real, "");
    let stat = ["stat", "--format=%F", "--", path];
    match what {
        At::Nothing => {
            target.answer(&stat, 1, "", &format!("stat: cannot statx '{path}': No such file or directory\n"))
        }
        At::Directory | At::LinkTo(_) => target.answer(&stat, 0, "directory\n", ""),
        At::File => target.answer(&stat, 0, "regular file\n", ""),
    }
}

/// An empty directory at a path.
pub fn empty(target: FakeTarget, path: &str) -> FakeTarget {
    at(target, path, At::Directory).answer(
        &["find", path, "-mindepth", "1", "-maxdepth", "1", "-printf", "."],
        0,
        "",
        "",
    )
}

pub fn directory(mode: u32) -> Metadata {
    Metadata {
        size: 0,
        mode,
        owner: "root".into(),
        group: "root".into(),
        modified_unix: 0,
        is_dir: true,
        is_symlink: false,
    }
}

/// The data of an answer, and its notes.
pub fn answer(target: FakeTarget, tool: &str, arguments: Value) -> (Value, Vec<String>) {
    let (data, reply) = target.call(&module(), tool, arguments).unwrap();
    (data, reply.notes)
}

/// The problem with which a call is refused, and that it made no plan.
pub fn refused(target: FakeTarget, tool: &str, arguments: Value) -> Problem {
    let plans = target.plans();
    let problem = target.call(&module(), tool, arguments.clone()).err();
    assert!(plans.borrow().is_empty(), "{arguments}");
    problem.unwrap_or_else(|| panic!("{arguments} isn't refused"))
}

/// The only plan that was made.
pub fn plan(plans: &Plans) -> Change {
    let plans = plans.borrow();
    assert_eq!(plans.len(), 1);
    plans[0].clone()
}

/// A command of a plan.
pub fn root(argv: &[&str], duration: DurationCategory) -> Command {
    Command::new(argv[0]).args(argv[1..].iter().copied()).as_root().duration(duration)
}

/// The steps that write fstab and let systemd read it.
pub fn written(contents: impl Into<Vec<u8>>) -> [Step; 2] {
    let check = root(&["findmnt", "--verify", "--tab-file={}"], DurationCategory::Quick);
    [Step::write("/etc/fstab", contents).validate(check), Step::run(reload())]
}

pub fn reload() -> Command {
    root(&["systemctl", "daemon-reload"], DurationCategory::Normal)
}
