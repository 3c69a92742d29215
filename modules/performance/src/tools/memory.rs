//! `perf_memory`: shows what memory and swap are used for.

use linux_sysadmin_sdk::prelude::*;

use crate::rounding::{is_zero, is_zero_count, mib, tenth};
use crate::sample::Reading;
use crate::sources::memory::{MEMINFO, Meminfo, VMSTAT, Vmstat};
use crate::sources::pressure::{self, Pressure};

/// The answer, in MiB. Parts that the machine doesn't have (swap, huge pages, zram, pressure) are left out.
#[derive(Serialize)]
pub(crate) struct Memory {
    total_mb: f64,
    /// The memory that a new program can have without swapping.
    available_mb: f64,
    /// True on kernels before 3.14, which have no such value.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    available_estimated: bool,
    /// The total without the available memory, in percent of the total.
    used_pct: f64,
    free_mb: f64,
    /// The cache of block devices, mostly metadata of file systems.
    buffers_mb: f64,
    /// The cache of files, with tmpfs and shared memory.
    cached_mb: f64,
    /// tmpfs and shared memory, which can be swapped but not dropped.
    shared_mb: f64,
    /// The memory of programs that no file backs.
    anonymous_mb: f64,
    mapped_mb: f64,
    /// Memory that waits to be written to disk.
    dirty_mb: f64,
    /// Memory that is being written to disk.
    writeback_mb: f64,
    /// The kernel's own objects.
    slab_mb: f64,
    /// The part of the slab that can be dropped.
    slab_reclaimable_mb: f64,
    kernel_stack_mb: f64,
    page_tables_mb: f64,
    /// The memory that is promised to programs, used or not.
    committed_mb: f64,
    /// The memory that may be promised where overcommit is off (vm.overcommit_memory 2).
    commit_limit_mb: f64,
    /// The part of anonymous memory in transparent huge pages.
    #[serde(skip_serializing_if = "is_zero")]
    huge_anonymous_mb: f64,
    /// Memory reserved for devices that need contiguous memory.
    #[serde(skip_serializing_if = "is_zero")]
    cma_mb: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    swap: Option<Swap>,
    #[serde(skip_serializing_if = "Option::is_none")]
    huge_pages: Option<HugePages>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    zram: Vec<Zram>,
    /// The number of page faults since boot that read from a disk.
    #[serde(skip_serializing_if = "Option::is_none")]
    major_faults: Option<u64>,
    /// The number of processes killed since boot because memory was short.
    #[serde(skip_serializing_if = "Option::is_none")]
    oom_kills: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pressure: Option<Pressure>,
}

#[derive(Serialize)]
struct Swap {
    total_mb: f64,
    used_mb: f64,
    /// The part that is in memory as well, and need not be read again.
    cached_mb: f64,
    /// The size of the compressed cache in memory (zswap).
    #[serde(skip_serializing_if = "is_zero")]
    zswap_mb: f64,
    /// The number of pages read since boot.
    #[serde(skip_serializing_if = "is_zero_count")]
    pages_in: u64,
    /// The number of pages written since boot.
    #[serde(skip_serializing_if = "is_zero_count")]
    pages_out: u64,
}

/// Huge pages of the default size that are set aside for programs.
#[derive(Serialize)]
struct HugePages {
    page_mb: f64,
    total: u64,
    free: u64,
    reserved: u64,
}

/// A zram device, from its `mm_stat`. See Documentation/admin-guide/blockdev/zram.rst.
#[derive(Serialize)]
struct Zram {
    device: String,
    /// The size of the stored data before compression.
    stored_mb: f64,
    /// The memory that it takes, with the allocator's overhead.
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

/// Reads `mm_stat`. None for a device without data, such as the one that the kernel module creates when it is loaded.
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
    fn only_a_zram_in_use_is_shown() {
        let used = zram("zram0", " 4194304 1048576 2097152 0 2097152 10 0 0 0\n").unwrap();
        assert_eq!((used.stored_mb, used.taken_mb), (4.0, 2.0));
        for text in ["", "0 0 0 0 0 0 0 0 0", "5 6", "a b c"] {
            assert!(zram("zram0", text).is_none(), "{text:?}");
        }
    }
}
