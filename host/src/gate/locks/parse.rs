//! What the kernel, systemd and editors write about who is at work.

use rustix::fs::{major, minor};

/// Ticks of a second in `/proc/PID/stat`: `USER_HZ` is 100 on every architecture that distributions are made for.
const TICKS: u64 = 100;

/// One line of `/proc/locks`.
#[derive(Debug, PartialEq)]
pub(super) struct Locked {
    /// None where it belongs to an open file and no process (OFD locks), or to one in another namespace.
    pub(super) pid: Option<u32>,
    pub(super) exclusive: bool,
    device: (u32, u32),
    inode: u64,
}

impl Locked {
    pub(super) fn is_on(&self, device: u64, inode: u64) -> bool {
        self.device == (major(device), minor(device)) && self.inode == inode
    }
}

/// `1: POSIX  ADVISORY  WRITE 11953 fe:00:10010663 0 EOF`, proc_locks(5). Those who wait (`7: -> FLOCK …`) hold nothing.
pub(super) fn locks(text: &str) -> Vec<Locked> {
    let lock = |line: &str| {
        let fields: Vec<_> = line.split_ascii_whitespace().collect();
        let [_, "FLOCK" | "POSIX" | "OFDLCK", _, access, pid, place, ..] = fields[..] else { return None };
        let [major, minor, inode] = place.split(':').collect::<Vec<_>>()[..] else { return None };
        Some(Locked {
            pid: pid.parse().ok().filter(|pid| *pid > 0),
            exclusive: access == "WRITE",
            device: (u32::from_str_radix(major, 16).ok()?, u32::from_str_radix(minor, 16).ok()?),
            inode: inode.parse().ok()?,
        })
    };
    text.lines().filter_map(lock).collect()
}

/// When the machine was started, from `/proc/stat`; seconds since the epoch.
pub(super) fn booted(stat: &str) -> Option<i64> {
    stat.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse().ok()
}

/// From `/proc/PID/stat`.
#[derive(Debug, PartialEq)]
pub(super) struct Process {
    /// At most 15 characters.
    pub(super) name: String,
    /// Ticks after the machine was started.
    started: u64,
}

impl Process {
    /// When it was started, RFC 3339.
    pub(super) fn since(&self, booted: i64) -> Option<String> {
        let seconds = booted.checked_add(i64::try_from(self.started / TICKS).ok()?)?;
        Some(jiff::Timestamp::from_second(seconds).ok()?.to_string())
    }
}

/// proc_pid_stat(5). The name may have blanks and parentheses in it. A process that has ended and wasn't waited for is
/// none.
pub(super) fn process(stat: &[u8]) -> Option<Process> {
    let stat = String::from_utf8_lossy(stat);
    let (before, after) = stat.rsplit_once(')')?;
    let (_, name) = before.split_once('(')?;
    let mut fields = after.split_ascii_whitespace();
    let state = fields.next()?;
    let started = fields.nth(18)?.parse().ok()?;
    (!matches!(state, "Z" | "X")).then(|| Process { name: name.to_owned(), started })
}

/// Who writes a swap file of vim's, or a lock file of nano's, which has the same header (`struct block0` in vim's
/// memline.c): a mark, the version, the page size, the file's time and inode, and then the process.
pub(super) fn swap_pid(swap: &[u8]) -> Option<u32> {
    let pid: [u8; 4] = swap.strip_prefix(b"b0")?.get(22..26)?.try_into().ok()?;
    Some(u32::from_le_bytes(pid)).filter(|pid| *pid > 0)
}

/// `user@host.PID:boot`, where a lock of emacs' leads.
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
    /// `start`, `stop`, …
    pub(super) kind: String,
}

/// `123 nginx.service start running`.
pub(super) fn jobs(text: &str) -> Vec<Job> {
    let job = |line: &str| {
        let [id, unit, kind, _state] = line.split_ascii_whitespace().collect::<Vec<_>>()[..] else {
            return None;
        };
        Some(Job { id: id.parse().ok()?, unit: unit.to_owned(), kind: kind.to_owned() })
    };
    text.lines().filter_map(job).collect()
}
