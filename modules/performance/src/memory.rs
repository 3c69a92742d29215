//! `/proc/meminfo` and `/proc/vmstat`, and the tool `perf_memory`.
//!
//! proc_meminfo(5), Documentation/filesystems/proc.rst. The kB of meminfo are KiB.

use std::collections::BTreeMap;

use linux_sysadmin_sdk::prelude::*;

use crate::number::{is_none_at_all, is_zero, mib, percent, tenth};
use crate::pressure::{self, Pressure};
use crate::sample::Reading;

pub(crate) const MEMINFO: &str = "/proc/meminfo";
pub(crate) const VMSTAT: &str = "/proc/vmstat";

/// `/proc/meminfo` in KiB, but for the counts of huge pages.
pub(crate) struct Meminfo {
    values: BTreeMap<String, u64>,
    /// All of it, less what the kernel took at boot.
    pub(crate) total: u64,
    /// What a new program could have without swapping.
    pub(crate) available: u64,
    /// Whether `available` is our estimate, as the kernel gave none.
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
            // Before Linux 3.14: what is free and what can be dropped. Shmem is in Cached, and can't be dropped.
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

    fn kib(&self, name: &str) -> u64 {
        self.value(name).unwrap_or(0)
    }

    /// As MiB; 0 for what the kernel doesn't have.
    fn mb(&self, name: &str) -> f64 {
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

/// What is used of `/proc/vmstat`: counts since boot.
#[derive(Default)]
pub(crate) struct Vmstat {
    /// Pages read from swap.
    pub(crate) swapped_in: u64,
    /// Pages written to swap.
    pub(crate) swapped_out: u64,
    /// Page faults that had to read from a disk.
    pub(crate) major_faults: u64,
    /// Processes that the kernel killed for want of memory; since Linux 4.13.
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

/// The answer of `perf_memory`, in MiB. What the machine hasn't (swap, huge pages, zram, pressure) is left out.
#[derive(Serialize)]
pub(crate) struct Memory {
    total_mb: f64,
    /// What a new program could have without swapping.
    available_mb: f64,
    /// True on kernels before 3.14, which give no such number.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    available_estimated: bool,
    /// Total less available, in percent of the total.
    used_pct: f64,
    free_mb: f64,
    /// Of block devices: mostly metadata of file systems.
    buffers_mb: f64,
    /// Of files, tmpfs and shared memory included.
    cached_mb: f64,
    /// tmpfs and shared memory: can't be dropped, only swapped.
    shared_mb: f64,
    /// Of programs, without a file behind it.
    anonymous_mb: f64,
    mapped_mb: f64,
    /// To be written to disk.
    dirty_mb: f64,
    /// Being written to disk.
    writeback_mb: f64,
    /// The kernel's own objects.
    slab_mb: f64,
    /// Of the slab: can be dropped.
    slab_reclaimable_mb: f64,
    kernel_stack_mb: f64,
    page_tables_mb: f64,
    /// Promised to programs, used or not.
    committed_mb: f64,
    /// How much may be promised where overcommit is off (vm.overcommit_memory 2).
    commit_limit_mb: f64,
    /// In transparent huge pages; a part of anonymous.
    #[serde(skip_serializing_if = "is_zero")]
    huge_anonymous_mb: f64,
    /// For devices that need it in one piece.
    #[serde(skip_serializing_if = "is_zero")]
    cma_mb: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    swap: Option<Swap>,
    #[serde(skip_serializing_if = "Option::is_none")]
    huge_pages: Option<HugePages>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    zram: Vec<Zram>,
    /// Page faults that had to read from a disk, since boot.
    #[serde(skip_serializing_if = "Option::is_none")]
    major_faults: Option<u64>,
    /// Processes killed for want of memory, since boot.
    #[serde(skip_serializing_if = "Option::is_none")]
    oom_kills: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pressure: Option<Pressure>,
}

#[derive(Serialize)]
struct Swap {
    total_mb: f64,
    used_mb: f64,
    /// In memory too, so that it needn't be read again.
    cached_mb: f64,
    /// Compressed in memory before it reaches the disk.
    #[serde(skip_serializing_if = "is_zero")]
    zswap_mb: f64,
    /// Pages since boot.
    #[serde(skip_serializing_if = "is_none_at_all")]
    pages_in: u64,
    /// Pages since boot.
    #[serde(skip_serializing_if = "is_none_at_all")]
    pages_out: u64,
}

/// Pages set aside for programs that ask for them, of the default size.
#[derive(Serialize)]
struct HugePages {
    page_mb: f64,
    total: u64,
    free: u64,
    reserved: u64,
}

/// Documentation/admin-guide/blockdev/zram.rst, `mm_stat`.
#[derive(Serialize)]
struct Zram {
    device: String,
    /// What was stored.
    stored_mb: f64,
    /// What it takes, the allocator's losses included.
    taken_mb: f64,
}

pub(crate) fn memory(_: NoArgs, cx: &Context) -> Result<Single<Memory>> {
    let devices = cx.list_dir("/sys/block").unwrap_or_default();
    let zrams = devices.into_iter().filter(|name| name.starts_with("zram")).collect::<Vec<_>>();
    let mut paths = vec![MEMINFO.to_owned(), VMSTAT.to_owned(), pressure::MEMORY.to_owned()];
    paths.extend(zrams.iter().map(|name| mm_stat(name)));
    let reading = Reading::take(cx, paths);

    let info = Meminfo::parse(reading.text(MEMINFO)?)?;
    let vmstat = reading.text(VMSTAT).and_then(Vmstat::parse).ok();
    let swap = (info.swap_total() > 0).then(|| Swap {
        total_mb: mib(info.swap_total()),
        used_mb: mib(info.swap_used()),
        cached_mb: info.mb("SwapCached"),
        zswap_mb: info.mb("Zswap"),
        pages_in: vmstat.as_ref().map_or(0, |vmstat| vmstat.swapped_in),
        pages_out: vmstat.as_ref().map_or(0, |vmstat| vmstat.swapped_out),
    });
    let huge_pages = (info.kib("HugePages_Total") > 0).then(|| HugePages {
        page_mb: info.mb("Hugepagesize"),
        total: info.kib("HugePages_Total"),
        free: info.kib("HugePages_Free"),
        reserved: info.kib("HugePages_Rsvd"),
    });
    Ok(Single(Memory {
        total_mb: mib(info.total),
        available_mb: mib(info.available),
        available_estimated: info.estimated,
        used_pct: tenth(info.used_pct()),
        free_mb: info.mb("MemFree"),
        buffers_mb: info.mb("Buffers"),
        cached_mb: info.mb("Cached"),
        shared_mb: info.mb("Shmem"),
        anonymous_mb: info.mb("AnonPages"),
        mapped_mb: info.mb("Mapped"),
        dirty_mb: info.mb("Dirty"),
        writeback_mb: info.mb("Writeback"),
        slab_mb: info.mb("Slab"),
        slab_reclaimable_mb: info.mb("SReclaimable"),
        kernel_stack_mb: info.mb("KernelStack"),
        page_tables_mb: info.mb("PageTables"),
        committed_mb: info.mb("Committed_AS"),
        commit_limit_mb: info.mb("CommitLimit"),
        huge_anonymous_mb: info.mb("AnonHugePages"),
        cma_mb: info.mb("CmaTotal"),
        swap,
        huge_pages,
        zram: zrams.iter().filter_map(|name| zram(name, reading.text(&mm_stat(name)).ok()?)).collect(),
        major_faults: vmstat.as_ref().map(|vmstat| vmstat.major_faults),
        oom_kills: vmstat.as_ref().and_then(|vmstat| vmstat.oom_kills),
        pressure: reading.text(pressure::MEMORY).ok().and_then(Pressure::parse),
    }))
}

fn mm_stat(device: &str) -> String {
    format!("/sys/block/{device}/mm_stat")
}

/// None for one that stores nothing: the module makes an empty one when it is loaded.
fn zram(device: &str, text: &str) -> Option<Zram> {
    let bytes = text.split_whitespace().map(|word| word.parse::<u64>().ok()).collect::<Option<Vec<_>>>()?;
    let [stored, _compressed, taken, ..] = bytes.as_slice() else { return None };
    (*stored > 0).then(|| Zram {
        device: device.to_owned(),
        stored_mb: mib(stored / 1024),
        taken_mb: mib(taken / 1024),
    })
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
        // Seen in containers whose total is cut to their limit.
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

    #[test]
    fn only_a_zram_in_use_is_shown() {
        let used = zram("zram0", " 4194304 1048576 2097152 0 2097152 10 0 0 0\n").unwrap();
        assert_eq!((used.stored_mb, used.taken_mb), (4.0, 2.0));
        for text in ["", "0 0 0 0 0 0 0 0 0", "5 6", "a b c"] {
            assert!(zram("zram0", text).is_none(), "{text:?}");
        }
    }
}
