//! Runs one unit and reports its results.

use super::interrupt::Interrupt;
use super::units::Unit;
use crate::tally::Tally;
use anyhow::{Context, Result};
use std::fs::File;
use std::io::{Read, Seek};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The time after which a unit that hangs is ended. No unit takes as long.
const LIMIT: Duration = Duration::from_secs(20 * 60);

/// The results of a unit.
pub(super) struct Report {
    pub(super) tally: Tally,
    /// The reason why the unit failed, other than by tests that it reports as failed.
    pub(super) broken: Option<String>,
    /// Whether the unit was ended because it took too long. What it was doing on its hosts is not undone.
    pub(super) is_late: bool,
    pub(super) output: String,
    pub(super) took: Duration,
}

impl Report {
    /// The report of a unit whose tests could not be run.
    pub(super) fn not_run(unit: &Unit, why: &str) -> Self {
        let tally = Tally { failed: unit.expected().unwrap_or(1), ..Tally::default() };
        let broken = Some(why.to_owned());
        Self { tally, broken, is_late: false, output: String::new(), took: Duration::ZERO }
    }

    pub(super) fn is_fine(&self) -> bool {
        self.broken.is_none() && self.tally.failed == 0
    }
}

/// Runs the unit to its end, or until the run is interrupted.
pub(super) fn run(unit: &Unit, command: &mut Command, interrupt: &Interrupt) -> Result<Report> {
    let begun = Instant::now();
    // The output goes to a file: a process that a test leaves running would keep a pipe open, and this would wait for it.
    let mut output = tempfile::tempfile().context("cannot make a file for the output")?;
    let mut child = command
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(output.try_clone()?)
        .stderr(output.try_clone()?)
        .spawn()
        .with_context(|| format!("cannot start `{}`", crate::cmd::describe(command)))?;
    interrupt.begins(child.id());
    let mut is_late = false;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if !is_late && begun.elapsed() > LIMIT {
            is_late = true;
            child.kill()?;
        }
        sleep(Duration::from_millis(50));
    };
    interrupt.ended(child.id());
    let output = read(&mut output)?;
    let (tally, broken) = judge(unit.expected(), &output, status, is_late);
    Ok(Report { tally, broken, is_late, output, took: begun.elapsed() })
}

fn read(file: &mut File) -> Result<String> {
    let mut bytes = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Counts what the process reported. A test without a result has failed.
fn judge(expected: Option<u64>, output: &str, status: ExitStatus, is_late: bool) -> (Tally, Option<String>) {
    let mut tally = Tally::default();
    output.lines().for_each(|line| tally.add_line(line));
    let reported = tally.passed + tally.failed + tally.skipped;
    let missing = match expected {
        Some(expected) => expected.saturating_sub(reported),
        // A command without a count is one test.
        None if reported == 0 && status.success() => {
            tally.passed = 1;
            0
        }
        None => u64::from(reported == 0),
    };
    tally.failed += missing;
    let broken = if is_late {
        Some(format!("it was ended after {} s", LIMIT.as_secs()))
    } else if missing > 0 {
        Some(format!("it ended with {status} and told of {reported} tests, {missing} too few"))
    } else if !status.success() && tally.failed == 0 {
        Some(format!("it ended with {status}"))
    } else {
        None
    };
    (tally, broken)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;

    const THREE: &str = "test a ... ok\ntest result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n";

    #[test]
    fn a_binary_that_crashes_fails_what_it_owes() {
        let aborted = ExitStatus::from_raw(6);
        let (tally, broken) = judge(Some(4), "running 4 tests\ntest a ... ok\n", aborted, false);
        assert_eq!((tally.passed, tally.failed), (0, 4));
        assert!(broken.expect("it is broken").contains("4 too few"));
        // A thread that goes on after the last test can still crash the process.
        let (tally, broken) = judge(Some(3), THREE, aborted, false);
        assert_eq!((tally.passed, tally.failed), (3, 0));
        assert!(broken.is_some());
    }

    #[test]
    fn a_test_that_is_not_found_is_missed() {
        let (tally, broken) = judge(Some(4), THREE, ExitStatus::from_raw(0), false);
        assert_eq!((tally.passed, tally.failed), (3, 1));
        assert!(broken.is_some());
        let (tally, broken) = judge(Some(3), THREE, ExitStatus::from_raw(0), false);
        assert_eq!((tally.passed, tally.failed, broken), (3, 0, None));
    }

    #[test]
    fn a_command_without_a_count_is_one_test() {
        let (tally, broken) = judge(None, "", ExitStatus::from_raw(0), false);
        assert_eq!((tally.passed, tally.failed, broken), (1, 0, None));
        let (tally, broken) = judge(None, "error: unused\n", ExitStatus::from_raw(256), false);
        assert_eq!((tally.passed, tally.failed), (0, 1));
        assert!(broken.is_some());
    }
}
