//! Counters of disks in `/proc/diskstats`.
//!
//! See Documentation/admin-guide/iostats.rst. A sector is 512 bytes there, whatever the disk's own sectors are. Lines have
//! 14 columns, 18 since Linux 4.18 (discards), and 20 since 5.5 (flushes). Partitions had 7 before 2.6.25.

use std::collections::{BTreeMap, BTreeSet};

use linux_sysadmin_sdk::prelude::*;

use crate::rounding::{hundredth, is_zero, is_zero_count, tenth};
use crate::sample::Interval;

pub(crate) const DISKSTATS: &str = "/proc/diskstats";

/// The counters of a disk since boot.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Counters {
    reads: u64,
    read_sectors: u64,
    read_ms: u64,
    writes: u64,
    write_sectors: u64,
    write_ms: u64,
    in_flight: u64,
    /// The time in which the disk had requests.
    busy_ms: u64,
    /// The time of each request, from queue to completion, summed over all requests.
    queue_ms: u64,
    discard_sectors: u64,
}

/// The counters of all devices.
#[derive(Debug)]
pub(crate) struct Diskstats {
    devices: BTreeMap<String, Counters>,
    /// The number of lines that could not be parsed.
    skipped: usize,
}

impl Diskstats {
    /// Parses the file. An empty file means no disks, as in some containers.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let mut all = Self { devices: BTreeMap::new(), skipped: 0 };
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            match line_of(line) {
                Some((name, Some(counters))) => {
                    all.devices.insert(name.to_owned(), counters);
                }
                Some((_, None)) => {}
                None => all.skipped += 1,
            }
        }
        if all.devices.is_empty() && all.skipped > 0 {
            return Err(Problem::unexpected(DISKSTATS, text));
        }
        Ok(all)
    }

    /// The devices that aren't partitions. Without the list in `/sys/block`, a device whose name is another's with a number
    /// after it counts as a partition.
    fn whole(&self, listed: Option<&BTreeSet<String>>) -> impl Iterator<Item = (&String, &Counters)> {
        let listed = listed.cloned();
        self.devices.iter().filter(move |(name, _)| match &listed {
            // sysfs writes a slash in a name (cciss/c0d0) as an exclamation mark.
            Some(listed) => listed.contains(&name.replace('/', "!")),
            None => !is_partition(name, |parent| self.devices.contains_key(parent)),
        })
    }
}

/// The name of a device, and its counters. A line of an old kernel has no counters for a partition.
fn line_of(line: &str) -> Option<(&str, Option<Counters>)> {
    let mut words = line.split_whitespace();
    let (_major, _minor): (u64, u64) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    let name = words.next()?;
    let values = words.map(|word| word.parse().ok()).collect::<Option<Vec<u64>>>()?;
    let counters = match values.as_slice() {
        [
            reads,
            _,
            read_sectors,
            read_ms,
            writes,
            _,
            write_sectors,
            write_ms,
            in_flight,
            busy_ms,
            queue_ms,
            rest @ ..,
        ] => Some(Counters {
            reads: *reads,
            read_sectors: *read_sectors,
            read_ms: *read_ms,
            writes: *writes,
            write_sectors: *write_sectors,
            write_ms: *write_ms,
            in_flight: *in_flight,
            busy_ms: *busy_ms,
            queue_ms: *queue_ms,
            discard_sectors: rest.get(2).copied().unwrap_or(0),
        }),
        [_, _, _, _] => None,
        _ => return None,
    };
    Some((name, counters))
}

/// Whether a name is that of a partition, as `sda1` of `sda` and `nvme0n1p2` of `nvme0n1`. `md12` is no partition of `md1`,
/// because a name that ends in a digit needs a `p`.
fn is_partition(name: &str, exists: impl Fn(&str) -> bool) -> bool {
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
    if stem.len() == name.len() || stem.is_empty() {
        return false;
    }
    let parent = match stem.strip_suffix('p') {
        Some(parent) if parent.ends_with(|c: char| c.is_ascii_digit()) => parent,
        _ => stem,
    };
    parent != name && exists(parent)
}

/// A disk, volume or array over the sample. Figures that don't apply are left out.
#[derive(Clone, Serialize)]
pub(crate) struct Disk {
    pub(crate) device: String,
    /// The name in `/dev/mapper`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<String>,
    pub(crate) read_kb_s: f64,
    pub(crate) write_kb_s: f64,
    #[serde(skip_serializing_if = "is_zero")]
    discard_kb_s: f64,
    /// Completed reads. Merged reads count once.
    pub(crate) reads_s: f64,
    /// Completed writes. Merged writes count once.
    pub(crate) writes_s: f64,
    /// The mean time of a read, with the wait in the queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    read_await_ms: Option<f64>,
    /// The mean time of a write, with the wait in the queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    write_await_ms: Option<f64>,
    /// The time in which the disk had requests. A disk that serves several requests at once isn't full at 100.
    pub(crate) util_pct: f64,
    /// The mean number of requests in the queue or under way.
    pub(crate) queue: f64,
    /// The number of requests that are under way now.
    #[serde(skip_serializing_if = "is_zero_count")]
    in_flight: u64,
}

impl Disk {
    fn between(device: &str, before: Counters, after: Counters, interval: &Interval) -> Self {
        let rate = |field: fn(&Counters) -> u64| interval.rate(field(&before), field(&after));
        let mean = |time: fn(&Counters) -> u64, count: fn(&Counters) -> u64| {
            let count = count(&after).saturating_sub(count(&before));
            let time = time(&after).saturating_sub(time(&before));
            (count > 0).then(|| hundredth(time as f64 / count as f64))
        };
        Self {
            device: device.to_owned(),
            name: None,
            read_kb_s: tenth(rate(|disk| disk.read_sectors) / 2.0),
            write_kb_s: tenth(rate(|disk| disk.write_sectors) / 2.0),
            discard_kb_s: tenth(rate(|disk| disk.discard_sectors) / 2.0),
            reads_s: tenth(rate(|disk| disk.reads)),
            writes_s: tenth(rate(|disk| disk.writes)),
            read_await_ms: mean(|disk| disk.read_ms, |disk| disk.reads),
            write_await_ms: mean(|disk| disk.write_ms, |disk| disk.writes),
            // Milliseconds per second are tenths of a percent. The kernel adds the time at the end of a request, and so the
            // sum can exceed 100.
            util_pct: tenth((rate(|disk| disk.busy_ms) / 10.0).min(100.0)),
            queue: hundredth(rate(|disk| disk.queue_ms) / 1000.0),
            in_flight: after.in_flight,
        }
    }

    /// The mean time of a read or of a write, whichever is longer.
    pub(crate) fn await_ms(&self) -> f64 {
        self.read_await_ms.unwrap_or(0.0).max(self.write_await_ms.unwrap_or(0.0))
    }

    pub(crate) fn throughput(&self) -> f64 {
        self.read_kb_s + self.write_kb_s
    }
}

/// The disks of a sample, the busiest first, and the number of lines that could not be parsed.
pub(crate) fn disks(interval: &Interval, listed: Option<&BTreeSet<String>>) -> Result<(Vec<Disk>, usize)> {
    let (before, after) = interval.both(DISKSTATS, Diskstats::parse)?;
    let mut disks = Vec::new();
    for (device, counters) in after.whole(listed) {
        // The counters of a device that was added during the sample began at 0.
        let earlier = before.as_ref().and_then(|all| all.devices.get(device)).copied().unwrap_or_default();
        // A machine has dozens of these devices, and most are idle.
        let stand_in = ["ram", "loop", "zram", "nbd", "fd", "sr"]
            .iter()
            .any(|kind| device.strip_prefix(kind).is_some_and(|number| number.parse::<u32>().is_ok()));
        if stand_in && *counters == earlier {
            continue;
        }
        disks.push(Disk::between(device, earlier, *counters, interval));
    }
    disks.sort_by(|a, b| {
        b.util_pct
            .total_cmp(&a.util_pct)
            .then(b.throughput().total_cmp(&a.throughput()))
            .then(a.device.cmp(&b.device))
    });
    Ok((disks, after.skipped))
}

/// The names in `/sys/block`. None where the directory can't be read.
pub(crate) fn listed(cx: &Context) -> Option<BTreeSet<String>> {
    Some(cx.list_dir("/sys/block").ok()?.into_iter().collect())
}

/// Looks up the names of mapped devices.
pub(crate) fn name(cx: &Context, disks: &mut [Disk]) {
    let mapped = disks.iter_mut().filter(|disk| disk.device.starts_with("dm-")).collect::<Vec<_>>();
    let paths = mapped.iter().map(|disk| format!("/sys/block/{}/dm/name", disk.device)).collect::<Vec<_>>();
    if paths.is_empty() {
        return;
    }
    for (disk, name) in mapped.into_iter().zip(cx.read_all(&paths)) {
        disk.name = name.ok().map(|name| name.trim().to_owned()).filter(|name| !name.is_empty());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linux_sysadmin_sdk::testkit::FakeTarget;

    fn line(name: &str, more: &str) -> String {
        format!("8 0 {name} 1 2 3 4 5 6 7 8 9 10 11{more}\n")
    }

    #[test]
    fn lines_of_every_kernel_are_read() {
        let fourteen = Diskstats::parse(&line("sda", "")).unwrap().devices["sda"];
        let expected = Counters {
            reads: 1,
            read_sectors: 3,
            read_ms: 4,
            writes: 5,
            write_sectors: 7,
            write_ms: 8,
            in_flight: 9,
            busy_ms: 10,
            queue_ms: 11,
            discard_sectors: 0,
        };
        assert_eq!(fourteen, expected);
        for more in [" 12 13 14 15", " 12 13 14 15 16 17", " 12 13 14 15 16 17 18 19"] {
            let counters = Diskstats::parse(&line("sda", more)).unwrap().devices["sda"];
            assert_eq!(counters, Counters { discard_sectors: 14, ..expected });
        }
        let old =
            Diskstats::parse(&format!("{}   8 1 sda1 5024 46400 6662 13324\n", line("sda", ""))).unwrap();
        assert_eq!((old.devices.len(), old.skipped), (1, 0));
    }

    #[test]
    fn what_is_not_a_line_is_skipped_and_counted() {
        let cut = format!("{}   8       1 sdb 1 2", line("sda", ""));
        let all = Diskstats::parse(&cut).unwrap();
        assert_eq!((all.devices.len(), all.skipped), (1, 1));
        for text in
            ["hello", "8 0 sda", "8 0 sda x 2 3 4 5 6 7 8 9 10 11", "8 0 sda -1 2 3 4 5 6 7 8 9 10 11"]
        {
            assert_eq!(Diskstats::parse(text).unwrap_err().code, "UNEXPECTED_OUTPUT", "{text:?}");
        }
        assert!(Diskstats::parse("\n").unwrap().devices.is_empty());
    }

    #[test]
    fn a_partition_is_a_name_and_a_number() {
        let disks = [
            "sda",
            "nvme0n1",
            "mmcblk0",
            "md1",
            "md12",
            "dm-1",
            "dm-11",
            "loop1",
            "loop11",
            "cciss/c0d0",
            "vdap",
        ];
        let exists = |name: &str| disks.contains(&name);
        for part in ["sda1", "sda15", "nvme0n1p1", "mmcblk0p2", "md1p1", "cciss/c0d0p1", "vdap3"] {
            assert!(is_partition(part, exists), "{part}");
        }
        for whole in disks.iter().chain(&["sdb1", "nvme1n1", "mtdblock3", "zram0", "7", ""]) {
            assert!(!is_partition(whole, exists), "{whole}");
        }
    }

    #[test]
    fn a_device_that_came_or_went_or_was_replaced_has_no_wild_rates() {
        let text = |names: &str| format!("==> /proc/diskstats <==\n{names}\n");
        let first = text("8 0 sda 9 9 900 9 9 9 900 9 0 9 9\n8 16 sdb 5 0 5 5 5 0 5 5 0 5 5\n");
        let second = text("8 0 sda 1 0 2 1 0 0 0 0 0 1 1\n8 32 sdc 2 0 200 4 0 0 0 0 0 4 4\n");
        let target = FakeTarget::new().recording(&first).recording(&second);
        let (data, _) =
            target.call(&crate::module(), "perf_disk_io", serde_json::json!({"sample_ms": 1000})).unwrap();
        let rates = data
            .as_array()
            .unwrap()
            .iter()
            .map(|disk| (disk["device"].as_str().unwrap(), disk["read_kb_s"].as_f64().unwrap()));
        assert_eq!(rates.collect::<Vec<_>>(), [("sdc", 100.0), ("sda", 0.0)]);
    }
}
