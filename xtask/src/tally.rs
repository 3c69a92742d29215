//! Adds up the counts that the test binaries report.

use std::collections::BTreeMap;
use std::fmt;

/// The counts of a whole run. Its Display is the last line of `cargo xtask test`.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
    pub(crate) skipped: u64,
}

impl Tally {
    /// Adds the counts of a line of a test binary's output, where the line is the summary:
    /// `test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 2 filtered out; finished in 0.00s`
    pub(crate) fn add_line(&mut self, line: &str) {
        // The summary may stand behind a test's own output that has no newline at its end.
        let Some((_, counts)) = line.split_once("test result: ") else { return };
        for part in counts.split([';', '.']) {
            match part.trim().split_once(' ') {
                Some((number, "passed")) => self.passed += number.parse().unwrap_or(0),
                Some((number, "failed")) => self.failed += number.parse().unwrap_or(0),
                Some((number, "ignored")) => self.skipped += number.parse().unwrap_or(0),
                _ => {}
            }
        }
    }

    /// Adds the counts of another run.
    pub(crate) fn add(&mut self, other: &Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }

    /// Moves tests that said that they were skipped from passed to skipped: a test that finds no host returns, and its binary
    /// counts that as passed.
    pub(crate) fn skip(&mut self, count: u64) {
        let moved = count.min(self.passed);
        self.passed -= moved;
        self.skipped += moved;
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed, {} skipped", self.passed, self.failed, self.skipped)
    }
}

/// The reasons in the skip log, by the name of the test, so that no test counts twice. Each line is `TEST: REASON`.
pub(crate) fn parse_skips(log: &str) -> BTreeMap<String, String> {
    log.lines()
        .map(|line| line.trim())
        .filter(|line| !line.is_empty())
        .map(|line| line.split_once(": ").unwrap_or((line, "no reason given")))
        .map(|(test, reason)| (test.to_owned(), reason.to_owned()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_of_all_binaries_are_summed_and_other_lines_are_not() {
        let mut tally = Tally::default();
        for line in [
            "running 3 tests",
            "test a::b ... ok",
            "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 2 filtered out; finished in 0.00s",
            "test result: FAILED. 10 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1.20s",
            "left over outputtest result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s",
            "99 passed; 99 failed",
            "",
        ] {
            tally.add_line(line);
        }
        assert_eq!(tally, Tally { passed: 14, failed: 2, skipped: 1 });
        tally.skip(3);
        assert_eq!(tally.to_string(), "11 passed, 2 failed, 4 skipped");
    }

    #[test]
    fn more_skips_than_passes_never_go_below_zero() {
        let mut tally = Tally { passed: 1, failed: 1, skipped: 0 };
        tally.skip(2);
        assert_eq!(tally, Tally { passed: 0, failed: 1, skipped: 1 });
    }

    #[test]
    fn a_test_that_reports_its_skip_twice_counts_once() {
        let skips = parse_skips("cron::adds: not root\n\ncron::adds: not root\nsvc: no hosts: none\nbare\n");
        assert_eq!(skips.len(), 3);
        assert_eq!(skips["svc"], "no hosts: none");
    }
}
