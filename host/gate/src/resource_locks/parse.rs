//! Parses what the kernel, systemd and editors write about processes and locks.

use rustix::fs::{major, minor};

/// The ticks of a second in `/proc/PID/stat`. `USER_HZ` is 100 on every architecture that distributions are made for.
const TICKS: u64 = 100;

/// One line of `/proc/locks`.
#[derive(Debug, PartialEq)]
pub(super) struct FileLock {
    /// The process. None where the lock belongs to an open file (OFD locks), or to a process in another namespace.
    pub(super) pid: Option<u32>,
    pub(super) exclusive: bool,
    device: Device,
    inode: u64,
}

/// The major and minor number of a file system.
pub(super) type Device = (u32, u32);

impl FileLock {
    pub(super) fn is_on(&self, device: Device, inode: u64) -> bool {
        self.device == device && self.inode == inode
    }
}

/// The device that `stat` names by this number.
pub(super) fn device(number: u64) -> Device {
    (major(number), minor(number))
}

/// One line of `/proc/self/mountinfo`.
#[derive(Debug, PartialEq)]
pub(super) struct Mount {
    id: u32,
    parent: u32,
    /// The device as `/proc/locks` names it, which may differ from that of `stat`.
    device: Device,
    place: String,
}

/// Parses lines such as `420 393 0:62 / /srv rw,relatime shared:106 - overlay overlay rw`, see proc_pid_mountinfo(5).
/// Lines of another form are skipped.
pub(super) fn mounts(text: &str) -> Vec<Mount> {
    let mount = |line: &str| {
        let [id, parent, device, _root, place, ..] = line.split(' ').collect::<Vec<_>>()[..] else {
            return None;
        };
        let (major, minor) = device.split_once(':')?;
        Some(Mount {
            id: id.parse().ok()?,
            parent: parent.parse().ok()?,
            device: (major.parse().ok()?, minor.parse().ok()?),
            place: unescaped(place)?,
        })
    };
    text.lines().filter_map(mount).collect()
}

/// Decodes `\040` and the like, which stand for blanks, tabs, newlines and backslashes.
fn unescaped(place: &str) -> Option<String> {
    let mut parts = place.split('\\');
    let mut bytes = parts.next()?.as_bytes().to_vec();
    for part in parts {
        let (digits, rest) = part.split_at_checked(3)?;
        bytes.push(u8::from_str_radix(digits, 8).ok()?);
        bytes.extend_from_slice(rest.as_bytes());
    }
    String::from_utf8(bytes).ok()
}

/// The file system of an absolute path without links. The search goes from the root mount down, so that a mount that is
/// hidden by another one isn't found.
pub(super) fn device_of(mounts: &[Mount], path: &str) -> Option<Device> {
    let covers = |mount: &&Mount| match path.strip_prefix(mount.place.trim_end_matches('/')) {
        Some(rest) => rest.is_empty() || rest.starts_with('/'),
        None => false,
    };
    let is_root = |mount: &&Mount| {
        mount.place == "/" && !mounts.iter().any(|other| other.id == mount.parent && other.id != mount.id)
    };
    let mut at = mounts.iter().find(is_root)?;
    // Each mount is visited at most once, so that a text with a cycle ends as well.
    for _ in mounts {
        let below = mounts.iter().filter(|mount| mount.parent == at.id && mount.id != at.id).filter(covers);
        match below.min_by_key(|mount| mount.place.len()) {
            Some(mount) => at = mount,
            None => break,
        }
    }
    Some(at.device)
}

/// Parses lines such as `1: POSIX  ADVISORY  WRITE 11953 fe:00:10010663 0 EOF`, see proc_locks(5). Processes that wait
/// (`7: -> FLOCK …`) hold nothing.
pub(super) fn locks(text: &str) -> Vec<FileLock> {
    let lock = |line: &str| {
        let fields: Vec<_> = line.split_ascii_whitespace().collect();
        let [_, "FLOCK" | "POSIX" | "OFDLCK", _, access, pid, place, ..] = fields[..] else { return None };
        let [major, minor, inode] = place.split(':').collect::<Vec<_>>()[..] else { return None };
        Some(FileLock {
            pid: pid.parse().ok().filter(|pid| *pid > 0),
            exclusive: access == "WRITE",
            device: (u32::from_str_radix(major, 16).ok()?, u32::from_str_radix(minor, 16).ok()?),
            inode: inode.parse().ok()?,
        })
    };
    text.lines().filter_map(lock).collect()
}

/// The time of the boot from `/proc/stat`, in seconds since the epoch.
pub(super) fn booted(stat: &str) -> Option<i64> {
    stat.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse().ok()
}

/// A process, from `/proc/PID/stat`.
#[derive(Debug, PartialEq)]
pub(super) struct Process {
    /// The name, of at most 15 characters.
    pub(super) name: String,
    /// The time of the start, in ticks after the boot.
    started: u64,
}

impl Process {
    /// The time of the start, in the form of RFC 3339.
    pub(super) fn since(&self, booted: i64) -> Option<String> {
        let seconds = booted.checked_add(i64::try_from(self.started / TICKS).ok()?)?;
        Some(jiff::Timestamp::from_second(seconds).ok()?.to_string())
    }
}

/// Parses proc_pid_stat(5). The name may contain blanks and parentheses. The result is none for a process that has
/// ended.
pub(super) fn process(stat: &[u8]) -> Option<Process> {
    let stat = String::from_utf8_lossy(stat);
    let (before, after) = stat.rsplit_once(')')?;
    let (_, name) = before.split_once('(')?;
    let mut fields = after.split_ascii_whitespace();
    let state = fields.next()?;
    let started = fields.nth(18)?.parse().ok()?;
    (!matches!(state, "Z" | "X")).then(|| Process { name: name.to_owned(), started })
}

/// The unit of the system's manager in `/proc/PID/cgroup`: `0::/system.slice/cron.service`.
pub(super) fn unit(cgroup: &str) -> Option<String> {
    let path = cgroup.lines().find_map(|line| {
        line.strip_prefix("0::").or_else(|| line.split_once(":name=systemd:").map(|(_, path)| path))
    })?;
    let is_unit =
        |name: &&str| [".service", ".scope", ".socket", ".mount"].iter().any(|kind| name.ends_with(kind));
    path.split('/').find(is_unit).map(str::to_owned)
}

/// The process id in a swap file of vim, or in a lock file of nano, which has the same header (`struct block0` in vim's
/// memline.c): a mark, the version, the page size, the file's time and inode, and then the process.
pub(super) fn swap_pid(swap: &[u8]) -> Option<u32> {
    let pid: [u8; 4] = swap.strip_prefix(b"b0")?.get(22..26)?.try_into().ok()?;
    Some(u32::from_le_bytes(pid)).filter(|pid| *pid > 0)
}

/// The process id in the target of an emacs lock, `user@host.PID:boot`.
pub(super) fn emacs_pid(link: &str) -> Option<u32> {
    let (_, place) = link.rsplit_once('@')?;
    let place = place.rsplit_once(':').map_or(place, |(place, _)| place);
    place.rsplit_once('.')?.1.parse().ok().filter(|pid| *pid > 0)
}

/// One line of `systemctl list-jobs --no-legend --plain`.
#[derive(Debug, PartialEq)]
pub(super) struct Job {
    pub(super) id: u64,
    pub(super) unit: String,
    /// The kind of the job, such as `start` or `stop`.
    pub(super) kind: String,
}

/// Parses lines such as `123 nginx.service start running`.
pub(super) fn jobs(text: &str) -> Vec<Job> {
    let job = |line: &str| {
        let [id, unit, kind, _state] = line.split_ascii_whitespace().collect::<Vec<_>>()[..] else {
            return None;
        };
        Some(Job { id: id.parse().ok()?, unit: unit.to_owned(), kind: kind.to_owned() })
    };
    text.lines().filter_map(job).collect()
}
