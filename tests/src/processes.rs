//! What /proc tells of the server's processes, from outside.

use std::fs;
use std::time::{Duration, Instant};

/// No process that was told to end takes this long; it only keeps a broken test from hanging.
const PATIENCE: Duration = Duration::from_secs(60);

/// Processes of this machine whose command line holds the mark.
pub fn processes_with(mark: &str) -> usize {
    each("cmdline").filter(|cmdline| cmdline.contains(mark)).count()
}

/// Waits until no process has the mark: one that was killed is gone once it was reaped, which nobody tells.
#[track_caller]
pub fn until_gone(mark: &str) {
    let begun = Instant::now();
    while processes_with(mark) > 0 {
        assert!(begun.elapsed() < PATIENCE, "it still runs: {mark:?}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Processes whose parent is this one; one that ended and wasn't waited for counts as well.
pub fn children_of(pid: u32) -> usize {
    // `1234 (a name, in which anything may stand) S 1 …`
    let parent = |stat: &str| stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse().ok();
    each("stat").filter(|stat| parent(stat) == Some(pid)).count()
}

/// The most memory that a process ever had, in MiB.
pub fn peak_memory(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("the process runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a peak");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") >> 10
}

/// This file of every process that is still there when it is read.
fn each(file: &str) -> impl Iterator<Item = String> {
    let entries = fs::read_dir("/proc").expect("/proc").flatten();
    entries
        .filter(|entry| entry.file_name().to_string_lossy().bytes().all(|byte| byte.is_ascii_digit()))
        .filter_map(move |entry| fs::read(entry.path().join(file)).ok())
        .map(|contents| String::from_utf8_lossy(&contents).into_owned())
}
