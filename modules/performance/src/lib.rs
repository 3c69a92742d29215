//! The `perf_*` tools: they show what uses CPU, memory, disks and network.
//!
//! The tools read `/proc` and `/sys`, and run no command. Rates come from two readings of the kernel's counters, as
//! [`sample`] explains.
//!
//! Units are in the names: `_pct` percent, `_ms` milliseconds, `_mb` MiB (2^20 bytes), `_kb_s` KiB per second,
//! `_s` per second.
#![forbid(unsafe_code)]

mod machine;
mod rounding;
mod sample;
mod sources;
mod tools;

use linux_sysadmin_sdk::{prelude::*, processes};

/// The module, with its tools and the files that they read.
pub fn module() -> Module {
    Module::new("performance", env!("CARGO_PKG_VERSION"), "performance", "CPU, memory, disk and network load")
        .license(env!("CARGO_PKG_LICENSE"))
        .grants(grants)
        .tool(Tool::new("perf_overview", "CPU, memory, disk, load at a glance", tools::overview::overview))
        .tool(Tool::new(
            "perf_top_processes",
            "CPU 100% = one core; sample_ms 0: since start",
            tools::top_processes::top_processes,
        ))
        .tool(Tool::new("perf_memory", "Breakdown, swap, OOM kills", tools::memory::memory).instant())
        .tool(Tool::new("perf_disk_io", "Rates per disk; sample_ms 0: since boot", tools::disk_io::disk_io))
        .tool(Tool::new(
            "perf_network_io",
            "Rates per interface; sample_ms 0: since boot",
            tools::network_io::network_io,
        ))
        .tool(Tool::new("perf_uptime", "With boot time and load averages", tools::uptime::uptime).instant())
        .tool(
            Tool::new(
                "perf_bottleneck",
                "Names the likely bottleneck, with evidence",
                tools::bottleneck::bottleneck,
            )
            .first(),
        )
}

fn grants(module: Module) -> Module {
    module
        .paths(processes::grants())
        .path(PathGrant::read("/proc/loadavg", "load averages"))
        .path(PathGrant::read("/proc/uptime", "time since boot, and between two readings"))
        .path(PathGrant::read("/proc/meminfo", "memory"))
        .path(PathGrant::read("/proc/vmstat", "swapping and OOM kills"))
        .path(PathGrant::read("/proc/pressure/*", "pressure stall information"))
        .path(PathGrant::read("/proc/diskstats", "disk counters"))
        .path(PathGrant::read("/proc/net/dev", "interface counters"))
        .path(PathGrant::read("/proc/*/net/dev", "where the link /proc/net leads"))
        .path(PathGrant::read("/sys/block", "which devices are whole disks"))
        .path(PathGrant::read("/sys/block/*/dm/name", "names of mapped devices"))
        .path(PathGrant::read("/sys/block/*/mm_stat", "what zram saves"))
        .path(PathGrant::read("/sys/devices/virtual/block/*/dm/name", "where the links in /sys/block lead"))
        .path(PathGrant::read("/sys/devices/virtual/block/*/mm_stat", "where the links in /sys/block lead"))
        .path(PathGrant::read("/sys/class/net/*/operstate", "which interfaces are up"))
        .path(PathGrant::read("/sys/class/net/*/speed", "speed of the link"))
        .path(PathGrant::read("/sys/devices/**/net/*/operstate", "where the links in /sys/class/net lead"))
        .path(PathGrant::read("/sys/devices/**/net/*/speed", "where the links in /sys/class/net lead"))
}

linux_sysadmin_sdk::export!(module);
