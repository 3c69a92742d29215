//! The machine's memory, by `/proc/meminfo`.

use super::Files;
use linux_sysadmin_sdk::prelude::*;

const MEMINFO: &str = "/proc/meminfo";
pub(crate) const FILES: &[&str] = &[MEMINFO];

/// Sizes of memory, in MiB.
#[derive(Serialize)]
pub(crate) struct Memory {
    total_mb: u64,
    swap_mb: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    huge_pages: Option<HugePages>,
}

/// The pool of huge pages of the default size.
#[derive(Serialize)]
struct HugePages {
    total: u64,
    free: u64,
    size_kb: u64,
}

impl Memory {
    pub(crate) fn of(files: &Files) -> Option<Self> {
        let text = files.text(MEMINFO)?;
        let value = |key: &str| {
            let mut lines = text.lines().filter_map(|line| line.split_once(':'));
            let (_, value) = lines.find(|(name, _)| *name == key)?;
            value.split_whitespace().next()?.parse::<u64>().ok()
        };
        let huge_pages = || {
            let total = value("HugePages_Total").filter(|total| *total > 0)?;
            Some(HugePages { total, free: value("HugePages_Free")?, size_kb: value("Hugepagesize")? })
        };
        Some(Self {
            total_mb: value("MemTotal")? / 1024,
            swap_mb: value("SwapTotal").unwrap_or(0) / 1024,
            huge_pages: huge_pages(),
        })
    }
}
