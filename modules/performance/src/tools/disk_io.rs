//! `perf_disk_io`: shows rates of each disk.

use linux_sysadmin_sdk::prelude::*;

use crate::sample::{Interval, SampleArgs};
use crate::sources::disk::{self, DISKSTATS, Disk};

pub(crate) fn disk_io(args: SampleArgs, cx: &Context) -> Result<Listing<Disk>> {
    let interval = Interval::take(cx, args.sample_ms, || Ok(vec![DISKSTATS.to_owned()]))?;
    let (mut items, skipped) = disk::disks(&interval, disk::listed(cx).as_ref())?;
    disk::name(cx, &mut items);
    let mut notes = Vec::from_iter(interval.rate_note("request"));
    if skipped > 0 {
        notes.push(format!("{skipped} lines of {DISKSTATS} weren't understood"));
    }
    Ok(Listing { items, total: None, notes })
}
