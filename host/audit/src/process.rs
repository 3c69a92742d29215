//! Which process makes a change, so that whoever finds it without an end can tell whether it is still being made.

use std::fs;
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

/// A process, told apart from every other that ever had its number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// Its number.
    pub pid: u32,
    /// When it started, in clock ticks since the boot: field 22 of `/proc/PID/stat`, proc(5).
    pub started: u64,
    /// `/proc/sys/kernel/random/boot_id`.
    pub boot_id: String,
    /// Where its number holds: `/proc/self/ns/pid`.
    pub pid_namespace: Option<String>,
    /// `/etc/machine-id`: homes may be shared between machines.
    pub machine_id: Option<String>,
}

/// Whether a process is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    /// It is.
    Running,
    /// It is not.
    Gone,
    /// It belongs to another machine or container, or `/proc` doesn't tell.
    Unknown,
    /// Nothing depends on it: it has put on record itself that it doesn't know what became of its change.
    Uncertain,
}

impl Process {
    /// This one; `None` without `/proc`.
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

    /// Whether it is still there.
    pub fn life(&self) -> Life {
        let Some(own) = Self::current() else { return Life::Unknown };
        if self.machine_id != own.machine_id {
            return Life::Unknown;
        }
        if self.boot_id != own.boot_id {
            return Life::Gone;
        }
        if self.pid_namespace != own.pid_namespace {
            return Life::Unknown;
        }
        match stat(self.pid) {
            Some((state, started)) if started == self.started && !matches!(state, 'Z' | 'X') => Life::Running,
            _ => Life::Gone,
        }
    }
}

/// This boot's own name, which no process outlives.
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

/// State and start time. The program's name comes before them and may hold anything, parentheses and blanks too.
fn stat(pid: u32) -> Option<(char, u64)> {
    // Bytes: the name needn't be UTF-8.
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
        assert_eq!(own.life(), Life::Running);
        let mut child =
            std::process::Command::new("cat").stdin(std::process::Stdio::piped()).spawn().unwrap();
        let other = Process { pid: child.id(), started: stat(child.id()).unwrap().1, ..own.clone() };
        assert_eq!(other.life(), Life::Running);
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(other.life(), Life::Gone);
    }

    #[test]
    fn a_number_that_another_process_has_now_is_not_the_process() {
        let own = Process::current().unwrap();
        for (process, life) in [
            (Process { started: own.started + 1, ..own.clone() }, Life::Gone),
            (Process { boot_id: "another".to_owned(), ..own.clone() }, Life::Gone),
            (Process { machine_id: Some("another".to_owned()), ..own.clone() }, Life::Unknown),
            (Process { pid_namespace: Some("pid:[1]".to_owned()), ..own.clone() }, Life::Unknown),
        ] {
            assert_eq!(process.life(), life, "{process:?}");
        }
    }
}
