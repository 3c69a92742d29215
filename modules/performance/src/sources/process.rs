//! Processes in `/proc/PID/stat` and `/proc/PID/status`, with their CPU and memory.
//!
//! See proc_pid_stat(5) and proc_pid_status(5). A process that ends between two readings is left out.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use linux_sysadmin_sdk::{accounts::User, prelude::*};

use crate::command_line;
use crate::rounding::{mib, tenth};
use crate::sample::{Interval, Reading};

/// USER_HZ, the unit of the times of processes. It is the same on every architecture that distributions support.
const TICKS_PER_SECOND: f64 = 100.0;

/// The error of a comparison of a process's start with the uptime, in seconds. The kernel truncates both to 0.01 s.
const TICK_S: f64 = 0.011;

/// The parts of `/proc/PID/stat` that are used.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Stat {
    pub(crate) pid: u32,
    /// The first 15 bytes of the program's name. Kernel threads may have longer names.
    pub(crate) name: String,
    pub(crate) state: char,
    /// The user and system time in clock ticks, with virtual machines.
    ticks: u64,
    pub(crate) threads: u64,
    /// The start after boot, in clock ticks. It distinguishes a new process from an older one with the same PID.
    started: u64,
    /// The resident memory in pages. The file doesn't say their size.
    resident: u64,
}

impl Stat {
    /// Parses the file. The name ends at the last parenthesis, because it may hold spaces, parentheses and line breaks.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (head, rest) = text.rsplit_once(')')?;
        let (pid, name) = head.split_once('(')?;
        let fields = rest.split_whitespace().collect::<Vec<_>>();
        // The fields have the numbers of proc_pid_stat(5). The state, number 3, is the first field after the name.
        let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
        Some(Self {
            pid: pid.trim().parse().ok()?,
            name: name.replace(char::is_control, " "),
            state: fields.first()?.chars().next()?,
            ticks: field(14)?.checked_add(field(15)?)?,
            threads: field(20)?,
            started: field(22)?,
            resident: field(24)?,
        })
    }
}

/// A process over a sample.
#[derive(Clone, Debug)]
pub(crate) struct Process {
    pub(crate) stat: Stat,
    /// The CPU share, where 100 is one core.
    pub(crate) cpu_pct: f64,
}

// It has no doc comment, because that would be in the schema without telling more than the values.
#[derive(Clone, Copy, Deserialize, JsonSchema, PartialEq)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Sort {
    Cpu,
    Memory,
}

/// The paths of `stat` of all processes.
pub(crate) fn paths(cx: &Context) -> Result<Vec<String>> {
    let names = cx.list_dir("/proc")?;
    let pids = names.iter().filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()));
    Ok(pids.map(|pid| format!("/proc/{pid}/stat")).collect())
}

fn stats(reading: &Reading) -> impl Iterator<Item = Stat> {
    reading.texts().filter_map(|(path, text)| {
        let pid = path.strip_prefix("/proc/")?.strip_suffix("/stat")?;
        pid.parse::<u32>().ok()?;
        Stat::parse(text)
    })
}

/// The processes at the end of the sample, in no particular order.
pub(crate) fn processes(interval: &Interval) -> Vec<Process> {
    let before = interval.before.as_ref().map(|reading| {
        stats(reading).map(|stat| ((stat.pid, stat.started), stat.ticks)).collect::<HashMap<_, _>>()
    });
    let uptime = interval.after.uptime().unwrap_or(0.0);
    let before_uptime = interval.before.as_ref().and_then(|reading| reading.uptime().ok());
    let share = |stat: &Stat| {
        let Some(before) = &before else {
            // Without an earlier reading, it is the average since the start of the process.
            let alive = uptime - stat.started as f64 / TICKS_PER_SECOND;
            return if alive > 0.0 { stat.ticks as f64 / TICKS_PER_SECOND / alive * 100.0 } else { 0.0 };
        };
        let earlier = match before.get(&(stat.pid, stat.started)) {
            Some(ticks) => *ticks,
            // A process that was started during the sample began at 0.
            None if before_uptime
                .is_some_and(|uptime| stat.started as f64 / TICKS_PER_SECOND >= uptime - TICK_S) =>
            {
                0
            }
            // An older process that the first reading lacks counts as idle: its use before the sample is unknown.
            None => stat.ticks,
        };
        interval.rate(earlier, stat.ticks) / TICKS_PER_SECOND * 100.0
    };
    stats(&interval.after).map(|stat| Process { cpu_pct: tenth(share(&stat)), stat }).collect()
}

/// Sorts processes by CPU or memory, the highest first.
pub(crate) fn sort(processes: &mut [Process], sort: Sort) {
    processes.sort_by(|a, b| {
        let by_cpu = b.cpu_pct.total_cmp(&a.cpu_pct);
        let by_memory = b.stat.resident.cmp(&a.stat.resident);
        let (first, second) = if sort == Sort::Cpu { (by_cpu, by_memory) } else { (by_memory, by_cpu) };
        first.then(second).then(a.stat.pid.cmp(&b.stat.pid))
    });
}

/// A process in an answer.
#[derive(Serialize)]
pub(crate) struct ShownProcess {
    pub(crate) pid: u32,
    pub(crate) name: String,
    /// The name of the effective user, or its number where it has no name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) user: Option<String>,
    /// The CPU share, where 100 is one core.
    pub(crate) cpu_pct: f64,
    /// The resident memory, with shared memory. None for a process that has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) memory_mb: Option<f64>,
    /// The state as in ps(1): R runs or can run, S sleeps, D waits for a disk, Z is a zombie, T is stopped, I is idle.
    pub(crate) state: char,
    pub(crate) threads: u64,
    /// The command line, shortened and without secrets. None for kernel threads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) command: Option<String>,
}

/// Looks up owner, exact memory and command line, which `stat` doesn't have.
pub(crate) fn look_up(cx: &Context, processes: Vec<Process>) -> Vec<ShownProcess> {
    let mut paths = vec!["/etc/passwd".to_owned()];
    for process in &processes {
        paths.push(format!("/proc/{}/status", process.stat.pid));
        paths.push(format!("/proc/{}/cmdline", process.stat.pid));
    }
    let mut files = cx.read_all(&paths).into_iter().map(Result::ok);
    let users = users(&files.next().flatten().unwrap_or_default());
    processes
        .into_iter()
        .map(|Process { stat, cpu_pct }| {
            let status = files.next().flatten();
            let command = files.next().flatten().and_then(|cmdline| command_line::shown(&cmdline));
            let value = |name: &str, nth: usize| {
                let mut lines = status.as_deref()?.lines();
                let values = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
                values.split_whitespace().nth(nth)?.parse::<u64>().ok()
            };
            let uid = value("Uid", 1);
            ShownProcess {
                pid: stat.pid,
                name: stat.name,
                user: uid.map(|uid| users.get(&uid).cloned().unwrap_or_else(|| uid.to_string())),
                cpu_pct,
                // Kernel threads have no memory, and no line for it.
                memory_mb: status.as_ref().map(|_| mib(value("VmRSS", 0).unwrap_or(0))),
                state: stat.state,
                threads: stat.threads,
                command,
            }
        })
        .collect()
}

/// Reads names of users from passwd(5). Of several names with the same number the first one counts, as in getpwuid(3).
fn users(passwd: &str) -> BTreeMap<u64, String> {
    let mut users = BTreeMap::new();
    for user in passwd.lines().filter_map(User::parse) {
        users.entry(user.uid.into()).or_insert(user.name);
    }
    users
}

/// The names and PIDs of processes that wait for a disk.
pub(crate) fn blocked(processes: &[Process]) -> Vec<String> {
    let mut blocked = processes.iter().filter(|process| process.stat.state == 'D').collect::<Vec<_>>();
    blocked.sort_by_key(|process| (Reverse(process.stat.resident), process.stat.pid));
    blocked.iter().map(|process| format!("{} (PID {})", process.stat.name, process.stat.pid)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use linux_sysadmin_sdk::testkit::FakeTarget;

    fn line(pid: u32, name: &str, ticks: u64, started: u64) -> String {
        format!(
            "{pid} ({name}) S 1 1 1 0 -1 0 0 0 0 0 {ticks} 0 9 9 20 0 3 0 {started} 4096 25 18446744073709551615 1\n"
        )
    }

    #[test]
    fn a_name_ends_at_the_last_parenthesis() {
        for name in
            ["bash", "odd (name) x", ") S 1", "((bash process)", "a) R 5 (b", "", "(sd-pam)", "two words"]
        {
            let stat = Stat::parse(&line(7, name, 5, 100)).unwrap();
            assert_eq!((stat.pid, stat.name.as_str(), stat.state), (7, name, 'S'));
            assert_eq!((stat.ticks, stat.threads, stat.started, stat.resident), (5, 3, 100, 25));
        }
        assert_eq!(Stat::parse(&line(7, "a\nb", 5, 100)).unwrap().name, "a b");
    }

    #[test]
    fn what_is_not_a_process_is_left_out() {
        let whole = line(7, "bash", 5, 100);
        for cut in 0..whole.find("4096 25").unwrap() {
            assert_eq!(Stat::parse(&whole[..cut]), None, "{cut}");
        }
        for text in ["7 bash S 1", "x (bash) S 1 1", "(bash)", ")(", &whole.replace(" 5 0 9", " x 0 9")] {
            assert_eq!(Stat::parse(text), None, "{text:?}");
        }
    }

    /// The processes of two readings a second apart. In the later reading, the process `gone` can't be read.
    fn sampled(before: &[String], after: &[String], gone: &str) -> Vec<Process> {
        let recording = |uptime: &str, lines: &[String]| {
            let mut text = format!("==> /proc/uptime <==\n{uptime} 0\n");
            for line in lines {
                let pid = line.split(' ').next().unwrap();
                text.push_str(&format!("\n==> /proc/{pid}/stat <==\n{line}"));
            }
            text
        };
        let mut after = recording("101.00", after);
        if !gone.is_empty() {
            after.push_str(&format!("\n==> /proc/{gone}/stat <==\n"));
        }
        let cx = FakeTarget::new().recording(&recording("100.00", before)).recording(&after).context();
        processes(&Interval::take(&cx, Some(1000), || paths(&cx)).unwrap())
    }

    #[test]
    fn a_number_taken_by_a_new_process_is_a_new_process() {
        let found = sampled(&[line(7, "old", 9000, 100)], &[line(7, "new", 30, 10_050)], "");
        assert_eq!((found[0].stat.name.as_str(), found[0].cpu_pct), ("new", 30.0));
    }

    #[test]
    fn what_a_process_used_before_it_could_be_read_is_not_the_samples() {
        let found = sampled(&[], &[line(7, "old", 9000, 100)], "");
        assert_eq!(found[0].cpu_pct, 0.0);
    }

    #[test]
    fn a_process_that_ended_is_gone_and_no_error() {
        let both = [line(7, "stays", 10, 1), line(8, "ends", 10, 1)];
        let found = sampled(&both, &[line(7, "stays", 60, 1)], "8");
        assert_eq!(
            found.iter().map(|process| (process.stat.pid, process.cpu_pct)).collect::<Vec<_>>(),
            [(7, 50.0)]
        );
    }

    #[test]
    fn order_is_by_what_was_asked_for() {
        let process = |pid, cpu_pct, resident| {
            let stat = Stat { resident, ..Stat::parse(&line(pid, "x", 0, 1)).unwrap() };
            Process { stat, cpu_pct }
        };
        let mut all = [process(3, 1.0, 5), process(2, 1.0, 5), process(4, 9.0, 1), process(5, 0.0, 9)];
        let mut pids = |by| {
            sort(&mut all, by);
            all.iter().map(|process| process.stat.pid).collect::<Vec<_>>()
        };
        assert_eq!(pids(Sort::Cpu), [4, 2, 3, 5]);
        assert_eq!(pids(Sort::Memory), [5, 2, 3, 4]);
    }

    #[test]
    fn passwd_gives_the_first_name_of_a_number() {
        let users = users(
            "root:x:0:0::/root:/bin/sh\ntoor:x:0:0::/:/bin/sh\nbroken\nx:y\nnobody:x:65534:65534::/:/\n+::::::\n",
        );
        assert_eq!(users.into_iter().collect::<Vec<_>>(), [(0, "root".into()), (65534, "nobody".into())]);
    }
}
