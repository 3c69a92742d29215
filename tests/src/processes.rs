//! Looks at the server's processes from outside, by /proc.

use std::fs;
use std::time::{Duration, Instant};

/// The time after which a test that hangs fails. No process takes this long to end.
const PATIENCE: Duration = Duration::from_secs(60);

/// The number of processes of this machine whose command line holds the mark.
pub fn processes_with(mark: &str) -> usize {
    each("cmdline").filter(|cmdline| cmdline.contains(mark)).count()
}

/// Waits until no process has the mark. A killed process is there until it is reaped.
#[track_caller]
pub fn until_gone(mark: &str) {
    let begun = Instant::now();
    while processes_with(mark) > 0 {
        assert!(begun.elapsed() < PATIENCE, "it still runs: {mark:?}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The number of processes whose parent is this one, including those that have ended and weren't reaped.
pub fn children_of(pid: u32) -> usize {
    // The text is `1234 (a name with any characters) S 1 …`.
    let parent = |stat: &str| stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse().ok();
    each("stat").filter(|stat| parent(stat) == Some(pid)).count()
}

/// The most memory that a process ever had, in MiB.
pub fn peak_memory(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("the process runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a peak");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") >> 10
}

/// The contents of this file of every process that is there.
fn each(file: &str) -> impl Iterator<Item = String> {
    let entries = fs::read_dir("/proc").expect("/proc").flatten();
    entries
        .filter(|entry| entry.file_name().to_string_lossy().bytes().all(|byte| byte.is_ascii_digit()))
        .filter_map(move |entry| fs::read(entry.path().join(file)).ok())
        .map(|contents| String::from_utf8_lossy(&contents).into_owned())
}
