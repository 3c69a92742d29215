//! Identifies the process that makes a change. By that, a reader of a change without an end can tell whether it is still
//! being made.

use std::fs;
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

/// The identity of a process, which tells it from every other process that ever had its number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// The process number.
    pub pid: u32,
    /// The time at which it started, in clock ticks since the boot: field 22 of `/proc/PID/stat`, proc(5).
    pub started: u64,
    /// The boot in which it ran: `/proc/sys/kernel/random/boot_id`.
    pub boot_id: String,
    /// The namespace in which the number is valid: `/proc/self/ns/pid`.
    pub pid_namespace: Option<String>,
    /// The machine on which it ran: `/etc/machine-id`. Machines may share a home directory.
    pub machine_id: Option<String>,
}

/// Whether the process that makes a change still runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Liveness {
    /// The process runs.
    Running,
    /// The process has ended.
    Gone,
    /// The process belongs to another machine or container, or `/proc` doesn't tell.
    Unknown,
    /// The process itself recorded that the outcome of its change is unknown, so it doesn't matter whether it runs.
    Uncertain,
}

impl Process {
    /// This process; `None` without `/proc`.
    pub fn current() -> Option<Self> {
        let pid = std::process::id();
        Some(Self {
            pid,
            started: stat(pid)?.1,
            boot_id: boot_id()?,
            pid_namespace: fs::read_link("/proc/self/ns/pid").ok().map(|link| link.display().to_string()),
            machine_id: first_line("/etc/machine-id"),
        })
    }

    /// Whether the process still runs.
    pub fn liveness(&self) -> Liveness {
        let Some(own) = Self::current() else { return Liveness::Unknown };
        if self.machine_id != own.machine_id {
            return Liveness::Unknown;
        }
        if self.boot_id != own.boot_id {
            return Liveness::Gone;
        }
        if self.pid_namespace != own.pid_namespace {
            return Liveness::Unknown;
        }
        match stat(self.pid) {
            Some((state, started)) if started == self.started && !matches!(state, 'Z' | 'X') => {
                Liveness::Running
            }
            _ => Liveness::Gone,
        }
    }
}

/// The id of this boot. No process outlives its boot.
pub fn boot_id() -> Option<String> {
    static BOOT_ID: LazyLock<Option<String>> =
        LazyLock::new(|| first_line("/proc/sys/kernel/random/boot_id"));
    BOOT_ID.clone()
}

fn first_line(path: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let line = text.lines().next()?.trim();
    (!line.is_empty()).then(|| line.to_owned())
}

/// The state and start time of a process. They follow the program's name, which may hold parentheses and blanks.
fn stat(pid: u32) -> Option<(char, u64)> {
    // The program's name need not be UTF-8.
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    let stat = String::from_utf8_lossy(&stat).into_owned();
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
    let state = fields.next()?.chars().next()?;
    Some((state, fields.nth(18)?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_running_until_it_is_not() {
        let own = Process::current().unwrap();
        assert_eq!(own.liveness(), Liveness::Running);
        let mut child =
            std::process::Command::new("cat").stdin(std::process::Stdio::piped()).spawn().unwrap();
        let other = Process { pid: child.id(), started: stat(child.id()).unwrap().1, ..own.clone() };
        assert_eq!(other.liveness(), Liveness::Running);
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(other.liveness(), Liveness::Gone);
    }

    #[test]
    fn a_number_that_another_process_has_now_is_not_the_process() {
        let own = Process::current().unwrap();
        for (process, liveness) in [
            (Process { started: own.started + 1, ..own.clone() }, Liveness::Gone),
            (Process { boot_id: "another".to_owned(), ..own.clone() }, Liveness::Gone),
            (Process { machine_id: Some("another".to_owned()), ..own.clone() }, Liveness::Unknown),
            (Process { pid_namespace: Some("pid:[1]".to_owned()), ..own.clone() }, Liveness::Unknown),
        ] {
            assert_eq!(process.liveness(), liveness, "{process:?}");
        }
    }
}
