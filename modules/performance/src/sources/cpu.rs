//! CPU times in `/proc/stat`, and load averages in `/proc/loadavg`.
//!
//! See proc_stat(5) and proc_loadavg(5). Times are in clock ticks of 1/100 s, and only their ratios are used here.

use std::collections::BTreeMap;

use linux_sysadmin_sdk::prelude::*;

use crate::rounding::{hundredth, is_zero, percent, tenth};

pub(crate) const STAT: &str = "/proc/stat";
pub(crate) const LOADAVG: &str = "/proc/loadavg";

/// The time by mode, in the order of the file: user, nice, system, idle, iowait, irq, softirq, steal, guest, guest_nice.
/// Modes that a kernel before 2.6.33 doesn't have are 0.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Ticks([u64; 10]);

const USER: usize = 0;
const NICE: usize = 1;
const SYSTEM: usize = 2;
const IDLE: usize = 3;
const IOWAIT: usize = 4;
const IRQ: usize = 5;
const SOFTIRQ: usize = 6;
const STEAL: usize = 7;
const GUEST: usize = 8;
const GUEST_NICE: usize = 9;

impl Ticks {
    fn parse(words: &[&str]) -> Option<Self> {
        let mut ticks = [0; 10];
        if words.len() <= IDLE {
            return None;
        }
        for (tick, word) in ticks.iter_mut().zip(words) {
            *tick = word.parse().ok()?;
        }
        Some(Self(ticks))
    }

    /// The time since an earlier reading. A mode that went backwards counts as 0: by proc_stat(5), idle and iowait may do so.
    fn since(self, before: Self) -> Self {
        let mut ticks = self.0;
        for (tick, before) in ticks.iter_mut().zip(before.0) {
            *tick = tick.saturating_sub(before);
        }
        Self(ticks)
    }

    /// The sum of all modes. User and nice already include guest and guest_nice.
    fn total(self) -> u64 {
        self.0[..GUEST].iter().fold(0, |sum, tick| sum.saturating_add(*tick))
    }

    fn busy_pct(self) -> f64 {
        let idle = self.0[IDLE].saturating_add(self.0[IOWAIT]);
        percent(self.total().saturating_sub(idle) as f64, self.total() as f64)
    }
}

/// The parts of `/proc/stat` that are used.
pub(crate) struct Stat {
    all: Ticks,
    /// The CPUs that are online, by number. Numbers may be missing.
    cores: BTreeMap<u32, Ticks>,
    /// The time of the boot in seconds since the epoch. It is 0 where the machine booted without a clock.
    pub(crate) booted: Option<u64>,
    /// The number of processes that now wait for I/O.
    pub(crate) blocked: Option<u64>,
}

impl Stat {
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let unexpected = |what| Problem::unexpected(STAT, what);
        let mut all = None;
        let mut stat = Self { all: Ticks::default(), cores: BTreeMap::new(), booted: None, blocked: None };
        for line in text.lines() {
            let words = line.split_whitespace().collect::<Vec<_>>();
            let Some((name, values)) = words.split_first() else { continue };
            let first = values.first().and_then(|word| word.parse().ok());
            match *name {
                "cpu" => all = Some(Ticks::parse(values).ok_or_else(|| unexpected(line))?),
                "btime" => stat.booted = first,
                "procs_blocked" => stat.blocked = first,
                name => {
                    if let Some(number) = name.strip_prefix("cpu").and_then(|number| number.parse().ok()) {
                        let ticks = Ticks::parse(values).ok_or_else(|| unexpected(line))?;
                        stat.cores.insert(number, ticks);
                    }
                }
            }
        }
        stat.all = all.ok_or_else(|| unexpected(text))?;
        Ok(stat)
    }

    /// The number of CPUs that are online, at least 1. Each thread of a core counts.
    pub(crate) fn cores(&self) -> u64 {
        self.cores.len().max(1) as u64
    }
}

/// The time of all CPUs by mode, in percent. The modes add up to 100. Modes without any time are left out, except for the
/// most important ones.
#[derive(Serialize)]
pub(crate) struct Usage {
    /// The number of CPUs that are online. Each thread of a core counts.
    pub(crate) cores: u64,
    /// All modes but idle and iowait.
    pub(crate) usage_pct: f64,
    /// Programs, with virtual machines.
    pub(crate) user_pct: f64,
    /// Programs of low priority, with virtual machines.
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) nice_pct: f64,
    /// The kernel.
    pub(crate) system_pct: f64,
    /// Idle time while I/O was under way. With many cores, it shows only a part of the waiting.
    pub(crate) iowait_pct: f64,
    /// Interrupts.
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) irq_pct: f64,
    /// Work that interrupts defer, such as most of networking.
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) softirq_pct: f64,
    /// Time that the machine wanted and the hypervisor gave to others.
    pub(crate) steal_pct: f64,
    /// The part of user and nice that virtual machines used.
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) guest_pct: f64,
    /// Time without anything to do.
    pub(crate) idle_pct: f64,
    /// The busiest CPU.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) busiest_core: Option<BusiestCore>,
}

/// The CPU with the highest usage. A full core is a bottleneck for a program with one thread, and the sum doesn't show it.
#[derive(Clone, Copy, Serialize)]
pub(crate) struct BusiestCore {
    pub(crate) core: u32,
    pub(crate) usage_pct: f64,
}

impl Usage {
    /// The usage between two readings, or since boot.
    pub(crate) fn between(before: Option<&Stat>, after: &Stat) -> Self {
        let spent = after.all.since(before.map(|stat| stat.all).unwrap_or_default());
        let total = spent.total() as f64;
        let pct = |mode: usize| tenth(percent(spent.0[mode] as f64, total));
        Self {
            cores: after.cores(),
            usage_pct: tenth(spent.busy_pct()),
            user_pct: pct(USER),
            nice_pct: pct(NICE),
            system_pct: pct(SYSTEM),
            iowait_pct: pct(IOWAIT),
            irq_pct: pct(IRQ),
            softirq_pct: pct(SOFTIRQ),
            steal_pct: pct(STEAL),
            guest_pct: tenth(percent(spent.0[GUEST].saturating_add(spent.0[GUEST_NICE]) as f64, total)),
            idle_pct: pct(IDLE),
            busiest_core: busiest_core(before, after),
        }
    }
}

fn busiest_core(before: Option<&Stat>, after: &Stat) -> Option<BusiestCore> {
    if after.cores.len() < 2 {
        return None;
    }
    let mut busiest: Option<BusiestCore> = None;
    for (core, ticks) in &after.cores {
        let earlier = match before {
            // A CPU that came online during the sample is left out.
            Some(stat) => match stat.cores.get(core) {
                Some(ticks) => *ticks,
                None => continue,
            },
            None => Ticks::default(),
        };
        let usage_pct = tenth(ticks.since(earlier).busy_pct());
        if busiest.is_none_or(|busiest| usage_pct > busiest.usage_pct) {
            busiest = Some(BusiestCore { core: *core, usage_pct });
        }
    }
    busiest
}

/// The contents of `/proc/loadavg`.
pub(crate) struct Load {
    /// The number of threads that run, can run or wait for a disk, averaged over 1, 5 and 15 minutes.
    pub(crate) averages: [f64; 3],
    /// The number of threads that now run or can run.
    pub(crate) runnable: u64,
    /// The number of threads.
    pub(crate) threads: u64,
}

impl Load {
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let unexpected = || Problem::unexpected(LOADAVG, text);
        let words = text.split_whitespace().collect::<Vec<_>>();
        let [one, five, fifteen, threads, ..] = words.as_slice() else { return Err(unexpected()) };
        let mut averages = [0.0; 3];
        for (average, word) in averages.iter_mut().zip([one, five, fifteen]) {
            let number = word.parse::<f64>().ok().filter(|number| number.is_finite());
            *average = hundredth(number.ok_or_else(unexpected)?);
        }
        let (runnable, threads) = threads.split_once('/').ok_or_else(unexpected)?;
        let number = |word: &str| word.parse().map_err(|_| unexpected());
        Ok(Self { averages, runnable: number(runnable)?, threads: number(threads)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(before: &str, after: &str) -> Usage {
        Usage::between(Some(&Stat::parse(before).unwrap()), &Stat::parse(after).unwrap())
    }

    #[test]
    fn guests_are_counted_once() {
        let usage = usage("cpu 0 0 0 0 0 0 0 0 0 0", "cpu 40 10 0 50 0 0 0 0 30 5");
        assert_eq!((usage.usage_pct, usage.user_pct, usage.nice_pct), (50.0, 40.0, 10.0));
        assert_eq!((usage.guest_pct, usage.idle_pct), (35.0, 50.0));
    }

    #[test]
    fn waiting_is_no_usage_and_theft_is() {
        let usage = usage("cpu 0 0 0 0 0 0 0 0", "cpu 10 0 10 20 30 5 5 20");
        assert_eq!((usage.usage_pct, usage.iowait_pct, usage.steal_pct), (50.0, 30.0, 20.0));
        assert_eq!((usage.irq_pct, usage.softirq_pct), (5.0, 5.0));
    }

    #[test]
    fn a_mode_that_went_backwards_counts_as_unmoved() {
        let usage = usage("cpu 100 0 100 500 90 0 0 0 0 0", "cpu 150 0 100 550 80 0 0 0 0 0");
        assert_eq!((usage.user_pct, usage.idle_pct, usage.iowait_pct), (50.0, 50.0, 0.0));
    }

    #[test]
    fn no_time_at_all_is_no_usage() {
        let same = "cpu 1 2 3 4 5 6 7 8 9 10\ncpu0 1 2 3 4 5\ncpu1 1 2 3 4 5";
        let usage = usage(same, same);
        assert_eq!((usage.usage_pct, usage.idle_pct), (0.0, 0.0));
        assert_eq!(usage.busiest_core.unwrap().usage_pct, 0.0);
    }

    #[test]
    fn only_cores_that_are_online_count() {
        let stat = Stat::parse("cpu 1 1 1 1\ncpu0 1 1 1 1\ncpu5 1 1 1 1\nintr 5 0 0").unwrap();
        assert_eq!(stat.cores(), 2);
        assert_eq!(Stat::parse("cpu 1 1 1 1").unwrap().cores(), 1);
    }

    #[test]
    fn a_core_that_came_online_has_no_sample() {
        let before = "cpu 0 0 0 0\ncpu0 0 0 0 0";
        let after = "cpu 1000 0 0 1000\ncpu0 10 0 0 90\ncpu1 990 0 0 0";
        assert_eq!(usage(before, after).busiest_core.unwrap().core, 0);
    }

    #[test]
    fn numbers_beyond_all_bounds_do_not_panic() {
        let most = u64::MAX;
        let usage =
            usage("cpu 0 0 0 0", &format!("cpu {most} {most} {most} {most} {most} 0 0 0 {most} {most}"));
        assert!(usage.usage_pct.is_finite());
    }

    #[test]
    fn what_is_not_proc_stat_is_a_problem() {
        let table = [
            "",
            "\n\n",
            "cpu",
            "cpu 1 2 3",
            "cpu 1 2 x 4",
            "cpu -1 2 3 4",
            "cpu0 1 2 3 4",
            "hello",
            "cpu 1 2 3 4\ncpu0 1",
            "cpu 99999999999999999999 1 1 1",
            "\u{fffd}",
        ];
        for text in table {
            assert_eq!(
                Stat::parse(text).err().map(|problem| problem.code),
                Some("UNEXPECTED_OUTPUT".into()),
                "{text:?}"
            );
        }
    }

    #[test]
    fn what_is_not_loadavg_is_a_problem() {
        for text in
            ["", "0.1 0.2 0.3", "0.1 0.2 0.3 5 9", "a b c 1/2 3", "0.1 0.2 nan 1/2 3", "0.1 0.2 0.3 1/x 3"]
        {
            assert!(Load::parse(text).is_err(), "{text:?}");
        }
        let load = Load::parse("7.48 7.13 6.82 9/109 9223\n").unwrap();
        assert_eq!((load.averages, load.runnable, load.threads), ([7.48, 7.13, 6.82], 9, 109));
    }
}
