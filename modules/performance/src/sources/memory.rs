//! Memory in `/proc/meminfo`, and swapping and OOM kills in `/proc/vmstat`.
//!
//! See proc_meminfo(5) and Documentation/filesystems/proc.rst. The kB of meminfo are KiB.

use std::collections::BTreeMap;

use linux_sysadmin_sdk::prelude::*;

use crate::rounding::{mib, percent};

pub(crate) const MEMINFO: &str = "/proc/meminfo";
pub(crate) const VMSTAT: &str = "/proc/vmstat";

/// The values of `/proc/meminfo`, in KiB except for the counts of huge pages.
pub(crate) struct Meminfo {
    values: BTreeMap<String, u64>,
    /// All memory, without the part that the kernel took at boot.
    pub(crate) total: u64,
    /// The memory that a new program can have without swapping.
    pub(crate) available: u64,
    /// True where `available` is this module's estimate, because the kernel has no such value.
    pub(crate) estimated: bool,
}

impl Meminfo {
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let mut values = BTreeMap::new();
        for line in text.lines() {
            let Some((name, value)) = line.split_once(':') else { continue };
            if let Some(Ok(value)) = value.split_whitespace().next().map(str::parse) {
                values.insert(name.trim().to_owned(), value);
            }
        }
        let mut all = Self { values, total: 0, available: 0, estimated: false };
        all.total = all
            .value("MemTotal")
            .filter(|total| *total > 0)
            .ok_or_else(|| Problem::unexpected(MEMINFO, text))?;
        all.estimated = all.value("MemAvailable").is_none();
        all.available = match all.value("MemAvailable") {
            Some(available) => available,
            // Before Linux 3.14, the estimate is free memory and caches. Shmem is in Cached, and can't be dropped.
            None => {
                let free = all.value("MemFree").ok_or_else(|| Problem::unexpected(MEMINFO, text))?;
                let droppable = ["Buffers", "Cached", "SReclaimable"].iter().map(|name| all.kib(name));
                droppable.fold(free, u64::saturating_add).saturating_sub(all.kib("Shmem"))
            }
        };
        all.available = all.available.min(all.total);
        Ok(all)
    }

    fn value(&self, name: &str) -> Option<u64> {
        self.values.get(name).copied()
    }

    pub(crate) fn kib(&self, name: &str) -> u64 {
        self.value(name).unwrap_or(0)
    }

    /// A value in MiB. It is 0 where the kernel doesn't have it.
    pub(crate) fn mb(&self, name: &str) -> f64 {
        mib(self.kib(name))
    }

    pub(crate) fn swap_total(&self) -> u64 {
        self.kib("SwapTotal")
    }

    pub(crate) fn swap_used(&self) -> u64 {
        self.swap_total().saturating_sub(self.kib("SwapFree"))
    }

    pub(crate) fn available_pct(&self) -> f64 {
        percent(self.available as f64, self.total as f64)
    }

    pub(crate) fn used_pct(&self) -> f64 {
        percent(self.total.saturating_sub(self.available) as f64, self.total as f64)
    }
}

/// The parts of `/proc/vmstat` that are used: counts since boot.
#[derive(Default)]
pub(crate) struct Vmstat {
    /// The number of pages read from swap.
    pub(crate) swapped_in: u64,
    /// The number of pages written to swap.
    pub(crate) swapped_out: u64,
    /// The number of page faults that read from a disk.
    pub(crate) major_faults: u64,
    /// The number of processes that the kernel killed because memory was short. None before Linux 4.13.
    pub(crate) oom_kills: Option<u64>,
}

impl Vmstat {
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let values = text
            .lines()
            .filter_map(|line| {
                let (name, value) = line.split_once(' ')?;
                Some((name, value.trim().parse::<u64>().ok()?))
            })
            .collect::<BTreeMap<_, _>>();
        if values.is_empty() {
            return Err(Problem::unexpected(VMSTAT, text));
        }
        let count = |name| values.get(name).copied().unwrap_or(0);
        Ok(Self {
            swapped_in: count("pswpin"),
            swapped_out: count("pswpout"),
            major_faults: count("pgmajfault"),
            oom_kills: values.get("oom_kill").copied(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_kernel_gets_an_estimate() {
        let text = "MemTotal: 1000 kB\nMemFree: 100 kB\nBuffers: 10 kB\nCached: 200 kB\nShmem: 50 kB\nSReclaimable: 40 kB\n";
        let info = Meminfo::parse(text).unwrap();
        assert_eq!((info.available, info.estimated), (300, true));
        let info = Meminfo::parse(&format!("{text}MemAvailable: 250 kB\n")).unwrap();
        assert_eq!((info.available, info.estimated), (250, false));
    }

    #[test]
    fn available_is_at_most_all() {
        // Containers whose total is cut to their limit show this.
        let info = Meminfo::parse("MemTotal: 100 kB\nMemAvailable: 900 kB\n").unwrap();
        assert_eq!((info.available, info.used_pct()), (100, 0.0));
        let info = Meminfo::parse("MemTotal: 100 kB\nMemAvailable: 0 kB\nSwapTotal: 5 kB\nSwapFree: 9 kB\n")
            .unwrap();
        assert_eq!((info.used_pct(), info.swap_used()), (100.0, 0));
    }

    #[test]
    fn what_is_not_meminfo_is_a_problem() {
        let table = [
            "",
            "MemTotal:",
            "MemTotal: x kB",
            "MemTotal: 0 kB\nMemAvailable: 0 kB",
            "MemFree: 5 kB",
            "MemTotal: 5 kB",
            "MemTotal: -5 kB\nMemFree: 1 kB",
            "MemTotal 5 kB",
            "MemTotal: 99999999999999999999 kB",
        ];
        for text in table {
            assert_eq!(
                Meminfo::parse(text).err().map(|problem| problem.code),
                Some("UNEXPECTED_OUTPUT".into()),
                "{text:?}"
            );
        }
    }

    #[test]
    fn vmstat_is_read_line_by_line() {
        let vmstat = Vmstat::parse("pswpin 5\npswpout 7\ngarbage\nnr_x -3\noom_kill 2\n").unwrap();
        assert_eq!((vmstat.swapped_in, vmstat.swapped_out, vmstat.oom_kills), (5, 7, Some(2)));
        assert_eq!(Vmstat::parse("pgfault 5\n").unwrap().oom_kills, None);
        assert!(Vmstat::parse("").is_err());
    }
}
