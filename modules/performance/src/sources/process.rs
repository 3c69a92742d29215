//! Processes with their CPU and memory.

use std::cmp::Reverse;
use std::collections::HashMap;

use linux_sysadmin_sdk::prelude::*;
use linux_sysadmin_sdk::processes::{self, Stat};

use crate::rounding::{mib, tenth};
use crate::sample::{Interval, Reading};

/// The clock ticks of a second, by which the kernel counts the times of processes.
const TICKS_PER_SECOND: f64 = processes::TICKS_PER_SECOND as f64;

/// The error of a comparison of a process's start with the uptime, in seconds. The kernel truncates both to 0.01 s.
const TICK_S: f64 = 0.011;

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
    #[serde(flatten)]
    pub(crate) process: processes::Process,
    /// The program's name, for sentences.
    #[serde(skip)]
    pub(crate) name: String,
    /// The CPU share, where 100 is one core.
    pub(crate) cpu_pct: f64,
    /// The resident memory, with shared memory. None for a process that has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) memory_mb: Option<f64>,
    /// The state as in ps(1): R runs or can run, D waits for a disk, Z is a zombie, T is stopped, I is idle. It is left out
    /// for S, which sleeps.
    #[serde(skip_serializing_if = "is_sleeping")]
    pub(crate) state: char,
    /// The number of threads, left out for one.
    #[serde(skip_serializing_if = "is_one")]
    pub(crate) threads: u64,
}

fn is_sleeping(state: &char) -> bool {
    *state == 'S'
}

fn is_one(count: &u64) -> bool {
    *count == 1
}

/// Looks up what `stat` doesn't have.
pub(crate) fn look_up(cx: &Context, found: Vec<Process>) -> Vec<ShownProcess> {
    let details = processes::look_up(cx, found.iter().map(|process| &process.stat));
    let shown = |(Process { stat, cpu_pct }, details): (Process, processes::Found)| ShownProcess {
        process: details.process,
        name: stat.name,
        cpu_pct,
        // Kernel threads have no memory, and no line for it.
        memory_mb: details.status.map(|status| mib(status.number("VmRSS", 0).unwrap_or(0))),
        state: stat.state,
        threads: stat.threads,
    };
    found.into_iter().zip(details).map(shown).collect()
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
        super::processes(&Interval::take(&cx, Some(1000), || processes::stat_paths(&cx)).unwrap())
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
}
