//! Finds where the lines of a range of time begin and end in a large file.

use linux_sysadmin_sdk::{Privilege, prelude::*};

use super::file::{File, Packing};
use super::read::PART;
use crate::budget::Budget;
use crate::clock::{Clock, SECOND};
use crate::line_format::LineFormat;
use crate::time_range::Range;

/// The bytes that are read to find a line with a time.
const PROBE: u64 = 64 << 10;

/// An offset somewhat before the first line of the range.
pub(crate) fn begin(
    cx: &Context,
    budget: &Budget<'_>,
    file: &File,
    format: &LineFormat,
    clock: &Clock<'_>,
    range: Range,
) -> u64 {
    range.since.map_or(0, |since| around(cx, budget, file, format, clock, since).0)
}

/// An offset somewhat after the last line of the range, in a file of this size.
pub(crate) fn end(
    cx: &Context,
    budget: &Budget<'_>,
    (file, size): (&File, u64),
    format: &LineFormat,
    clock: &Clock<'_>,
    range: Range,
) -> u64 {
    range.until.map_or(size, |until| around(cx, budget, file, format, clock, until + 1).1)
}

/// Offsets before and after the first line of a time, found by bisection. They are a few parts apart, or farther where lines
/// have no times.
fn around(
    cx: &Context,
    budget: &Budget<'_>,
    file: &File,
    format: &LineFormat,
    clock: &Clock<'_>,
    second: i64,
) -> (u64, u64) {
    let (Some(size), Packing::None) = (file.size, file.packing) else { return (0, u64::MAX) };
    let cx = &cx.files_as(Privilege::RootIfAvailable);
    let (mut low, mut high) = (0, size);
    while high - low > 8 * PART {
        let middle = low + (high - low) / 2;
        let part = (file.path.as_str(), i64::try_from(middle).unwrap_or(i64::MAX), PROBE);
        let Some(Ok(part)) = budget.read_parts(cx, &[part]).pop() else { break };
        let lines = part.split(|byte| *byte == b'\n').skip(1);
        match lines.filter_map(|line| format.time(line, clock, file.near(clock))).next() {
            Some(at) if at >= second * SECOND => high = middle + PROBE,
            Some(_) => low = middle,
            None => break,
        }
    }
    (low, high.min(size))
}
