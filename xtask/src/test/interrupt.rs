//! A signal ends what the run has started. During a build it ends all processes of the build and then xtask itself. During
//! the tests it ends the tests, and the hosts are still taken down.

use anyhow::Result;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

/// The exit code of a build that was interrupted. A shell gives it where SIGINT has ended a command.
const INTERRUPTED: i32 = 130;

/// Knows whether a signal has asked the run to stop, and which process groups have to end then.
#[derive(Default)]
pub(super) struct Interrupt {
    stop: AtomicBool,
    /// Whether tests run or hosts may be up. Until then a signal ends the run at once.
    tests: AtomicBool,
    groups: Mutex<BTreeSet<i32>>,
}

impl Interrupt {
    /// Watches for signals: from now on a signal ends what is running.
    pub(super) fn watch() -> Result<Arc<Self>> {
        let interrupt = Arc::new(Self::default());
        let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
        let told = interrupt.clone();
        thread::spawn(move || {
            for _ in signals.forever() {
                if !told.tests.load(Ordering::SeqCst) {
                    eprintln!("xtask: the build is interrupted");
                    // cargo doesn't end its compilers where only cargo gets the signal.
                    descendants(std::process::id() as i32).into_iter().for_each(terminate);
                    std::process::exit(INTERRUPTED);
                }
                eprintln!("xtask: stopping; the hosts are being taken down");
                told.stop.store(true, Ordering::SeqCst);
                told.end_all();
            }
        });
        Ok(interrupt)
    }

    /// Makes a signal end the tests. The run goes on to take the hosts down.
    pub(super) fn tests_begin(&self) {
        self.tests.store(true, Ordering::SeqCst);
    }

    pub(super) fn is_told(&self) -> bool {
        self.stop.load(Ordering::SeqCst)
    }

    /// Notes a process group that has started. A group that starts after the signal is ended at once.
    pub(super) fn begins(&self, group: u32) {
        self.groups.lock().unwrap_or_else(PoisonError::into_inner).insert(group as i32);
        if self.is_told() {
            end(group as i32, Signal::KILL);
        }
    }

    /// Notes that the leader of a process group has ended, and kills the rest of the group.
    pub(super) fn ended(&self, group: u32) {
        self.groups.lock().unwrap_or_else(PoisonError::into_inner).remove(&(group as i32));
        end(group as i32, Signal::KILL);
    }

    fn end_all(&self) {
        for group in self.groups.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            end(*group, Signal::KILL);
        }
    }
}

fn end(group: i32, signal: Signal) {
    if let Some(group) = Pid::from_raw(group) {
        kill_process_group(group, signal).ok();
    }
}

fn terminate(process: i32) {
    if let Some(process) = Pid::from_raw(process) {
        kill_process(process, Signal::TERM).ok();
    }
}

/// All descendants of this process.
fn descendants(of: i32) -> Vec<i32> {
    let mut children: BTreeMap<i32, Vec<i32>> = BTreeMap::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(process) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        if let Some(parent) = parent(&stat) {
            children.entry(parent).or_default().push(process);
        }
    }
    let mut found = vec![of];
    let mut at = 0;
    while at < found.len() {
        found.extend(children.remove(&found[at]).unwrap_or_default());
        at += 1;
    }
    found.split_off(1)
}

/// The parent that `/proc/PID/stat` names. The program's name before it is in parentheses and may hold any character.
fn parent(stat: &str) -> Option<i32> {
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn a_parent_is_found_behind_any_name() {
        assert_eq!(parent("7 (a) b) S 5 7 7 0"), Some(5));
        assert_eq!(parent("7 (cargo) R 1 7 7 0"), Some(1));
        assert_eq!(parent(""), None);
    }

    #[test]
    fn children_of_children_are_found() {
        let script = "sleep 600 & read -r line; kill $!";
        let mut shell = Command::new("sh").args(["-c", script]).stdin(Stdio::piped()).spawn().expect("sh");
        let id = shell.id() as i32;
        let below = loop {
            let below = descendants(id);
            if !below.is_empty() {
                break below;
            }
        };
        assert!(descendants(std::process::id() as i32).contains(&below[0]));
        drop(shell.stdin.take());
        shell.wait().expect("its end");
        assert!(descendants(id).is_empty());
    }
}
