//! `swap_list`: the swap areas beside fstab, how full they are, and whose memory is in them.

use std::cmp::Reverse;

use linux_sysadmin_sdk::prelude::*;
use linux_sysadmin_sdk::processes::{self, Process, Stat, Status};

use super::areas::{self, Area};
use crate::mounts::devices::{Device, Devices};
use crate::mounts::fstab::{Entry, Table};
use crate::size::shown;

/// Whether the compressed cache in front of swap is on.
pub(crate) const ZSWAP: &str = "/sys/module/zswap/parameters/enabled";
pub(crate) const SWAPPINESS: &str = "/proc/sys/vm/swappiness";

/// The most processes that are told.
const MOST: usize = 5;
/// The most bytes of `/proc/PID/status` that are read.
const STATUS_BYTES: u64 = 8 << 10;

#[derive(Serialize)]
struct Item {
    path: String,
    #[serde(rename = "type")]
    kind: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    used: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    priority: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fstab_line: Option<usize>,
    /// None where it is in use as fstab says.
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<&'static str>,
}

#[derive(Serialize)]
struct User {
    #[serde(flatten)]
    process: Process,
    swap: String,
}

#[derive(Serialize)]
pub(crate) struct Swap {
    areas: Vec<Item>,
    total: String,
    used: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    memory_available: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    swappiness: Option<u32>,
    /// True where the kernel compresses pages before it writes them to swap.
    zswap: bool,
    /// The processes with most of their memory in swap.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    processes: Vec<User>,
}

pub(crate) fn list(_: NoArgs, cx: &Context) -> Result<Single<Swap>> {
    let used = areas::read(cx)?;
    let table = Table::read(cx)?;
    let devices = Devices::read(cx);
    let entries: Vec<(&Entry, Vec<&Device>)> = table
        .entries
        .iter()
        .filter(|entry| entry.is_swap())
        .map(|entry| (entry, devices.resolved(&entry.source, cx).unwrap_or_default()))
        .collect();
    let is_of = |(entry, named): &(&Entry, Vec<&Device>), area: &Area| {
        entry.source == area.path || named.iter().any(|device| device.is_called(&area.path))
    };
    let mut items: Vec<Item> = Vec::new();
    for area in &used {
        let line = entries.iter().find(|entry| is_of(entry, area)).map(|(entry, _)| entry.line);
        items.push(Item {
            path: area.path.clone(),
            kind: if area.is_zram() { "zram".to_owned() } else { area.kind.clone() },
            size: Some(shown(area.size)),
            used: Some(shown(area.used)),
            priority: Some(area.priority),
            fstab_line: line,
            state: (line.is_none() && !area.is_zram()).then_some("not_in_fstab"),
        });
    }
    for (entry, named) in entries.iter().filter(|entry| !used.iter().any(|area| is_of(entry, area))) {
        let is_gone =
            named.is_empty() && devices.named(&entry.source).is_some() && devices.could_tell(&entry.source);
        items.push(Item {
            path: entry.source.clone(),
            kind: if named.is_empty() { "file" } else { "partition" }.to_owned(),
            size: named.first().map(|device| shown(device.size)),
            used: None,
            priority: None,
            fstab_line: Some(entry.line),
            state: Some(match entry.has("noauto") {
                true => "noauto",
                false if is_gone => "no_such_device",
                false => "not_in_use",
            }),
        });
    }
    let in_use = used.iter().map(|area| area.used).sum();
    let meminfo = cx.read(areas::MEMORY).unwrap_or_default();
    Ok(Single(Swap {
        areas: items,
        total: shown(used.iter().map(|area| area.size).sum()),
        used: shown(in_use),
        memory_available: areas::available_memory(&meminfo).map(shown),
        swappiness: cx.read(SWAPPINESS).ok().and_then(|text| text.trim().parse().ok()),
        zswap: cx.read(ZSWAP).is_ok_and(|text| text.trim() == "Y"),
        processes: if in_use > 0 { users(cx)? } else { Vec::new() },
    }))
}

/// The processes with most of their memory in swap.
fn users(cx: &Context) -> Result<Vec<User>> {
    Ok(most(cx)?.into_iter().map(|(process, bytes)| User { process, swap: shown(bytes) }).collect())
}

/// The processes with most of their memory in swap, with its bytes.
pub(crate) fn most(cx: &Context) -> Result<Vec<(Process, u64)>> {
    let paths = processes::stat_paths(cx)?;
    let parts: Vec<_> =
        paths.iter().map(|path| (path.replace("/stat", "/status"), 0, STATUS_BYTES)).collect();
    let texts = cx.read_parts(&parts).into_iter();
    let mut found: Vec<(&String, u64)> = paths
        .iter()
        .zip(texts)
        .filter_map(|(path, text)| {
            let status = Status::new(String::from_utf8_lossy(&text.ok()?).into_owned());
            Some((path, status.number("VmSwap", 0)?.saturating_mul(1024))).filter(|(_, bytes)| *bytes > 0)
        })
        .collect();
    found.sort_by_key(|(_, bytes)| Reverse(*bytes));
    found.truncate(MOST);
    let texts = cx.read_all(&found.iter().map(|(path, _)| path).collect::<Vec<_>>());
    let pairs = texts.iter().zip(&found);
    let stats: Vec<(Stat, u64)> =
        pairs.filter_map(|(text, (_, bytes))| Some((Stat::parse(text.as_ref().ok()?)?, *bytes))).collect();
    let looked = processes::look_up(cx, stats.iter().map(|(stat, _)| stat));
    Ok(looked.into_iter().zip(&stats).map(|(found, (_, bytes))| (found.process, *bytes)).collect())
}
