//! Processes as the kernel shows them below `/proc`, and the members that a process has in every answer.
//!
//! A process that ends between two readings is left out. See proc_pid_stat(5), proc_pid_status(5) and cgroups(7).

pub mod cgroup;
pub mod command_line;
pub mod links;
pub mod replaced_files;
mod stat;

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::accounts::User;
use crate::time::rfc3339;
use crate::{Context, PathGrant, Problem, Result, text};

pub use stat::{Stat, TICKS_PER_SECOND};

/// The most bytes of a command line that are read. More of them can't be seen in an answer.
const COMMAND_BYTES: u64 = 8 << 10;

/// The most characters of a command line where a process is told in words.
const SHOWN: usize = 80;

/// The most bytes that are read of any other file of a process.
const FILE_BYTES: u64 = 64 << 10;

/// The most bytes that are read of a file of the whole machine.
const MACHINE_BYTES: u64 = 1 << 20;

/// The files that the functions of this module read.
pub fn grants() -> [PathGrant; 7] {
    [
        PathGrant::read("/proc", "the list of processes"),
        PathGrant::read("/proc/stat", "CPU time, and the time of the boot"),
        PathGrant::read("/proc/*/stat", "names, states, parents, CPU time and memory of processes"),
        PathGrant::read("/proc/*/status", "owner and memory of the processes shown"),
        PathGrant::read(
            "/proc/*/cmdline",
            "command lines of the processes shown, without the secrets in them",
        ),
        PathGrant::read("/proc/*/cgroup", "units of the processes shown"),
        PathGrant::read("/etc/passwd", "names of the owners"),
    ]
}

/// The members that a process has in every answer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Process {
    /// The number of the process.
    pub pid: u32,
    /// The time of its start, RFC 3339 in UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started: Option<String>,
    /// The command line, shortened and without secrets. A kernel thread and a zombie have none, and their name stands in
    /// brackets, as in ps(1).
    pub command: String,
    /// The unit of the system's manager. None for a process outside of every unit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
    /// The name of the effective user, or its number where it has no name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
}

impl Process {
    /// The process in words: `PID 7 (nginx: master, started …, nginx.service, root)`.
    pub fn shown(&self) -> String {
        let mut about = vec![text::excerpt(&self.command, SHOWN)];
        about.extend(self.started.as_ref().map(|time| format!("started {time}")));
        about.extend(self.unit.clone());
        about.extend(self.user.clone());
        format!("PID {} ({})", self.pid, about.join(", "))
    }
}

/// A process with what was read of it.
#[derive(Clone, Debug)]
pub struct Found {
    /// The members for an answer.
    pub process: Process,
    /// `/proc/PID/status`. None where the process has ended.
    pub status: Option<Status>,
    /// `/proc/PID/cgroup`, empty where it can't be read.
    pub cgroup: String,
    /// The command line with its NUL characters, and with its secrets.
    pub arguments: String,
}

/// The text of `/proc/PID/status`.
#[derive(Clone, Debug)]
pub struct Status(String);

impl Status {
    /// Takes the text of the file.
    pub fn new(text: String) -> Self {
        Self(text)
    }

    /// The value of a line, such as `Uid`.
    pub fn value(&self, name: &str) -> Option<&str> {
        self.0.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
    }

    /// A number in the value of a line, the first one being number 0.
    pub fn number(&self, name: &str, nth: usize) -> Option<u64> {
        self.value(name)?.split_whitespace().nth(nth)?.parse().ok()
    }
}

/// The paths of `stat` of all processes that the account may see.
pub fn stat_paths(cx: &Context) -> Result<Vec<String>> {
    let names = cx.list_dir("/proc")?;
    let pids = names.iter().filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()));
    Ok(pids.map(|pid| format!("/proc/{pid}/stat")).collect())
}

/// All processes that the account may see, in no particular order.
pub fn all(cx: &Context) -> Result<Vec<Stat>> {
    let texts = cx.read_all(&stat_paths(cx)?);
    Ok(texts.iter().filter_map(|text| Stat::parse(text.as_ref().ok()?)).collect())
}

/// The problem of a target on which no process can be seen.
pub fn none() -> Problem {
    Problem::not_found("NO_PROCESSES", "no process can be read below /proc")
        .remedy("Check that /proc is mounted and not hidden from this account (hidepid)")
}

/// A note where processes may be hidden. With `hidepid`, those of other accounts can't even be listed. PID 1 always exists
/// and is root's.
pub fn hidden<'a>(all: impl IntoIterator<Item = &'a Stat>) -> Option<String> {
    let is_first = |stat: &Stat| stat.pid == 1;
    let note = "PID 1 can't be read: processes of other accounts may be hidden (hidepid)";
    (!all.into_iter().any(is_first)).then(|| note.to_owned())
}

/// The processes with these numbers, by the number. Those that have ended are left out.
pub fn by_pid(cx: &Context, pids: impl IntoIterator<Item = u32>) -> BTreeMap<u32, Found> {
    let pids: BTreeSet<u32> = pids.into_iter().collect();
    let paths: Vec<String> = pids.iter().map(|pid| format!("/proc/{pid}/stat")).collect();
    let texts = if paths.is_empty() { Vec::new() } else { cx.read_all(&paths) };
    let stats: Vec<Stat> = texts.iter().filter_map(|text| Stat::parse(text.as_ref().ok()?)).collect();
    if stats.is_empty() {
        return BTreeMap::new();
    }
    look_up(cx, &stats).into_iter().map(|found| (found.process.pid, found)).collect()
}

/// Reads what `stat` doesn't have, of all these processes at once.
pub fn look_up<'a>(cx: &Context, stats: impl IntoIterator<Item = &'a Stat>) -> Vec<Found> {
    let stats: Vec<&Stat> = stats.into_iter().collect();
    let mut parts =
        vec![("/etc/passwd".to_owned(), 0, MACHINE_BYTES), ("/proc/stat".to_owned(), 0, MACHINE_BYTES)];
    for Stat { pid, .. } in &stats {
        parts.push((format!("/proc/{pid}/status"), 0, FILE_BYTES));
        parts.push((format!("/proc/{pid}/cgroup"), 0, FILE_BYTES));
        parts.push((format!("/proc/{pid}/cmdline"), 0, COMMAND_BYTES));
    }
    let mut texts = cx.read_parts(&parts).into_iter().map(|bytes| bytes.ok().map(text::lossy_string));
    let mut next = || texts.next().flatten();
    let users = Users::parse(&next().unwrap_or_default());
    let boot = boot_time(&next().unwrap_or_default());
    let found = |stat: &&Stat| {
        let status = next().map(Status::new);
        let cgroup = next().unwrap_or_default();
        let arguments = next().unwrap_or_default();
        let process = Process {
            pid: stat.pid,
            started: boot.map(|boot| started(boot, stat)),
            command: command_line::shown(&arguments).unwrap_or_else(|| format!("[{}]", stat.name)),
            unit: cgroup::unit(&cgroup).map(str::to_owned),
            user: status.as_ref().and_then(|status| status.number("Uid", 1)).map(|uid| users.name(uid)),
        };
        Found { process, status, cgroup, arguments }
    };
    stats.iter().map(found).collect()
}

/// The time of the boot in `/proc/stat`, in seconds since the epoch.
fn boot_time(stat: &str) -> Option<i64> {
    stat.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse().ok()
}

fn started(boot: i64, stat: &Stat) -> String {
    let since_boot = i64::try_from(stat.started / TICKS_PER_SECOND).unwrap_or(i64::MAX);
    rfc3339(boot.saturating_add(since_boot))
}

/// The names of users in passwd(5).
pub struct Users(BTreeMap<u64, String>);

impl Users {
    /// Reads the file. Of several names with the same number the first one counts, as in getpwuid(3).
    pub fn parse(passwd: &str) -> Self {
        let mut users = BTreeMap::new();
        for user in passwd.lines().filter_map(User::parse) {
            users.entry(user.uid.into()).or_insert(user.name);
        }
        Self(users)
    }

    /// The name of a user, or the number where it has no name there.
    pub fn name(&self, uid: u64) -> String {
        self.0.get(&uid).cloned().unwrap_or_else(|| uid.to_string())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::testkit::FakeTarget;

    const STAT: &str = "7 (a b) S 1 1 1 0 -1 0 0 0 0 0 5 0 9 9 20 0 3 0 12345 4096 25 1 1\n";

    fn target() -> FakeTarget {
        FakeTarget::new()
            .file("/proc/stat", "cpu 1 2 3\nbtime 1700000000\n")
            .file("/etc/passwd", "root:x:0:0::/root:/bin/sh\ntoor:x:0:0::/:/bin/sh\nbroken\nx:y\n+::::::\n")
            .file("/proc/7/stat", STAT)
            .file("/proc/self/stat", STAT)
    }

    #[test]
    fn a_process_is_told_by_number_start_command_unit_and_user() {
        let found = by_pid(&target().context(), [7, 8, 7]);
        assert_eq!(found.keys().collect::<Vec<_>>(), [&7], "the other one has ended");
        let process = Process {
            pid: 7,
            started: Some("2023-11-14T22:15:23Z".into()),
            command: "nginx: master".into(),
            unit: Some("nginx.service".into()),
            user: Some("root".into()),
        };
        let said = "PID 7 (nginx: master, started 2023-11-14T22:15:23Z, nginx.service, root)";
        assert_eq!(process.shown(), said);
        let bare = Process { started: None, unit: None, user: None, ..process };
        assert_eq!(bare.shown(), "PID 7 (nginx: master)");
    }

    #[test]
    fn a_process_has_its_number_start_command_unit_and_user() {
        let cx = target()
            .file("/proc/7/status", "Name:\ta\\nUid: b\nUid:\t1000\t0\t0\t0\n")
            .file("/proc/7/cgroup", "0::/system.slice/x.service\n")
            .file("/proc/7/cmdline", "/bin/x\0--password=hunter2\0")
            .context();
        let stats = all(&cx).unwrap();
        let found = look_up(&cx, &stats);
        let expected = Process {
            pid: 7,
            started: Some("2023-11-14T22:15:23Z".into()),
            command: "/bin/x --password=***".into(),
            unit: Some("x.service".into()),
            user: Some("root".into()),
        };
        assert_eq!(found.iter().map(|found| &found.process).collect::<Vec<_>>(), [&expected]);
    }

    #[test]
    fn what_cannot_be_read_is_left_out_and_a_name_stands_for_the_command() {
        let cx = FakeTarget::new().file("/proc/7/stat", STAT).context();
        let found = look_up(&cx, &all(&cx).unwrap());
        let expected = Process { pid: 7, started: None, command: "[a b]".into(), unit: None, user: None };
        assert_eq!(found[0].process, expected);
        assert!(found[0].status.is_none());
    }

    #[test]
    fn a_command_line_without_an_end_is_cut() {
        let cx = target().file("/proc/7/cmdline", "x\x1b[2J\0".repeat(100_000)).context();
        let command = look_up(&cx, &all(&cx).unwrap()).remove(0).process.command;
        assert!(command.starts_with("x [2J x [2J") && command.chars().count() == 161, "{command}");
    }

    #[test]
    fn passwd_gives_the_first_name_of_a_number() {
        let users =
            Users::parse("root:x:0:0::/root:/bin/sh\ntoor:x:0:0::/:/bin/sh\nnobody:x:65534:65534::/:/\n");
        assert_eq!([0, 65534, 99].map(|uid| users.name(uid)), ["root", "nobody", "99"]);
    }
}
