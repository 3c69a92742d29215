//! Measures builds, units and tests. The times of the last run decide which unit begins first.

use super::process::Report;
use super::units::Unit;
use crate::{files, workspace};
use anyhow::Result;
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The number of rows of a table.
const ROWS: usize = 25;

pub(super) struct Timings {
    begun: Instant,
    file: PathBuf,
    taken: Mutex<Taken>,
}

#[derive(Default)]
struct Taken {
    /// Builds and other parts, each with its start after the start of the run, and the time that it took.
    parts: Vec<(String, Duration, Duration)>,
    /// The seconds that units took, by the unit's label.
    units: BTreeMap<String, f64>,
    this_time: Vec<(String, Duration)>,
    tests: Vec<(String, f64)>,
}

impl Timings {
    /// Reads the times of the last run, where there are some.
    pub(super) fn load() -> Result<Self> {
        let file = workspace::target_dir()?.join("test-timings.json");
        let text = fs::read_to_string(&file).unwrap_or_default();
        let units = serde_json::from_str(&text).unwrap_or_default();
        Ok(Self { begun: Instant::now(), file, taken: Mutex::new(Taken { units, ..Taken::default() }) })
    }

    /// Measures a part of the run.
    pub(super) fn time<T>(&self, part: &str, does: impl FnOnce() -> T) -> T {
        let begun = Instant::now();
        let done = does();
        let row = (part.to_owned(), begun - self.begun, begun.elapsed());
        self.taken().parts.push(row);
        done
    }

    pub(super) fn add(&self, unit: &Unit, report: &Report) {
        let mut taken = self.taken();
        taken.units.insert(unit.label.clone(), report.took.as_secs_f64());
        taken.this_time.push((unit.label.clone(), report.took));
        let of_tests = report.output.lines().filter_map(parse);
        taken.tests.extend(of_tests.map(|(test, seconds)| (format!("{} {test}", unit.label), seconds)));
    }

    /// The time that the unit took the last time. A new unit counts as long.
    pub(super) fn expected(&self, unit: &Unit) -> f64 {
        self.taken().units.get(&unit.label).copied().unwrap_or(f64::MAX)
    }

    pub(super) fn save(&self) -> Result<()> {
        files::write(&self.file, serde_json::to_vec_pretty(&self.taken().units)?, 0o644)
    }

    pub(super) fn print(&self) {
        let mut taken = self.taken();
        println!("\nparts, by when they began:");
        taken.parts.sort_by_key(|(_, began, _)| *began);
        for (part, began, took) in &taken.parts {
            println!("{:>8.1} s after {:>7.1} s  {part}", took.as_secs_f64(), began.as_secs_f64());
        }
        println!("\nthe longest processes:");
        taken.this_time.sort_by_key(|(_, took)| std::cmp::Reverse(*took));
        for (unit, took) in taken.this_time.iter().take(ROWS) {
            println!("{:>8.1} s  {unit}", took.as_secs_f64());
        }
        println!("\nthe longest tests, the wait for their host included:");
        taken.tests.sort_by(|(_, a), (_, b)| b.total_cmp(a));
        for (test, seconds) in taken.tests.iter().take(ROWS) {
            println!("{seconds:>8.1} s  {test}");
        }
        println!();
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads a line such as `test a::b ... ok <1.234s>`.
fn parse(line: &str) -> Option<(String, f64)> {
    let (test, rest) = line.strip_prefix("test ")?.split_once(" ... ")?;
    let (_, time) = rest.split_once('<')?;
    Some((test.to_owned(), time.strip_suffix("s>")?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_a_test_stands_behind_its_result() {
        assert_eq!(parse("test a::b ... ok <1.250s>"), Some(("a::b".to_owned(), 1.25)));
        assert_eq!(parse("test a::b ... FAILED <0.001s>"), Some(("a::b".to_owned(), 0.001)));
        for line in ["test a::b ... ok", "test a::b ... ignored", "running 3 tests", ""] {
            assert_eq!(parse(line), None, "{line}");
        }
    }
}
