//! Samples: two readings of the same files, and the time between them.
//!
//! The kernel counts since boot. A rate is the difference of two readings divided by the time between them. With
//! `sample_ms` 0 it is the count divided by the time since boot, which needs no waiting. Values from 1 to 99 count as 100.

use std::collections::BTreeMap;
use std::time::Duration;

use linux_sysadmin_sdk::prelude::*;

use crate::rounding::{hundredth, tenth};

/// The default length: 20 clock ticks per core (so that one tick is 5%), and short enough to wait for.
const DEFAULT_MS: u32 = 200;

/// The length of a clock tick, by which the kernel counts CPU time (`USER_HZ`, proc_pid_stat(5)).
const TICK_S: f64 = 0.01;

/// The shortest sample: ten clock ticks. Shares over fewer ticks are noise, and a shorter sample is made this long.
const SHORTEST_MS: u32 = 100;

/// The longest sample, as in the schema: a third of the time that a quick tool may take.
const LONGEST_MS: u32 = 10_000;

/// The error of a difference of two times in `/proc/uptime`. The file truncates each time to hundredths of a second.
const UPTIME_ERROR_S: f64 = 0.011;

const UPTIME: &str = "/proc/uptime";

/// The arguments of a tool that samples.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct SampleArgs {
    /// 0, or at least 100
    #[schemars(range(max = 10000))]
    pub(crate) sample_ms: Option<u32>,
}

/// The contents of files at one time.
pub(crate) struct Reading {
    files: BTreeMap<String, Result<String>>,
    clock: f64,
}

impl Reading {
    /// Reads all files in one call, so that as little time as possible lies between them.
    pub(crate) fn take(cx: &Context, mut paths: Vec<String>) -> Self {
        paths.insert(0, UPTIME.to_owned());
        let clock = cx.monotonic();
        let texts = cx.read_all(&paths);
        Self { files: paths.into_iter().zip(texts).collect(), clock }
    }

    /// The text of a file, or the host's problem where it couldn't be read.
    pub(crate) fn text(&self, path: &str) -> Result<&str> {
        match self.files.get(path) {
            Some(Ok(text)) => Ok(text),
            Some(Err(problem)) => Err(problem.clone()),
            None => Err(Problem::not_found("FILE_NOT_FOUND", format!("{path} wasn't read"))),
        }
    }

    /// The paths and texts of all files that could be read.
    pub(crate) fn texts(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files.iter().filter_map(|(path, text)| Some((path.as_str(), text.as_deref().ok()?)))
    }

    /// The time since boot, in seconds.
    pub(crate) fn uptime(&self) -> Result<f64> {
        parse_uptime(self.text(UPTIME)?)
    }
}

/// Two readings and the time between them, or one reading and the time since boot.
pub(crate) struct Interval {
    /// The earlier reading. None for counts since boot.
    pub(crate) before: Option<Reading>,
    /// The later reading.
    pub(crate) after: Reading,
    /// The length in seconds. It is never negative, and 0 where no clock moved.
    pub(crate) seconds: f64,
}

impl Interval {
    /// Reads the files twice. It calls `paths` each time, because processes come and go.
    pub(crate) fn take(
        cx: &Context,
        sample_ms: Option<u32>,
        paths: impl Fn() -> Result<Vec<String>>,
    ) -> Result<Self> {
        let wanted = sample_ms.unwrap_or(DEFAULT_MS);
        if wanted > LONGEST_MS {
            let message = format!("sample_ms is {wanted}, and at most {LONGEST_MS}");
            return Err(Problem::validation("INVALID_ARGUMENTS", message));
        }
        if wanted == 0 {
            let after = Reading::take(cx, paths()?);
            let seconds = after.uptime()?;
            return Ok(Self { before: None, after, seconds });
        }
        let before = Reading::take(cx, paths()?);
        cx.sleep(Duration::from_millis(wanted.max(SHORTEST_MS).into()));
        let after = Reading::take(cx, paths()?);
        let seconds = elapsed(&before, &after);
        Ok(Self { before: Some(before), after, seconds })
    }

    /// The resolution of CPU shares: the percentage of one core that one clock tick of the sample stands for. None for counts
    /// since boot, where a tick is negligible.
    pub(crate) fn cpu_within_pct(&self) -> Option<f64> {
        let is_sample = self.before.is_some() && self.seconds > 0.0;
        is_sample.then(|| tenth(TICK_S / self.seconds * 100.0))
    }

    /// A note that says which rate a single event stands for. None for counts since boot.
    pub(crate) fn rate_note(&self, event: &str) -> Option<String> {
        let is_sample = self.before.is_some() && self.seconds > 0.0;
        is_sample.then(|| {
            let (seconds, each) = (hundredth(self.seconds), tenth(1.0 / self.seconds));
            format!("the sample was {seconds} s, so one {event} counts as {each} per second")
        })
    }

    /// Parses a file of both readings. The earlier one is None for counts since boot. Where the earlier one couldn't be
    /// read, it is an error: otherwise, counts since boot would look like counts of the sample.
    pub(crate) fn both<T>(&self, path: &str, parse: impl Fn(&str) -> Result<T>) -> Result<(Option<T>, T)> {
        let before = match &self.before {
            Some(reading) => Some(parse(reading.text(path)?)?),
            None => None,
        };
        Ok((before, parse(self.after.text(path)?)?))
    }

    /// The rate per second. It is 0 for a counter that went backwards, as for a device that was removed and added again.
    pub(crate) fn rate(&self, before: u64, after: u64) -> f64 {
        if self.seconds > 0.0 { after.saturating_sub(before) as f64 / self.seconds } else { 0.0 }
    }
}

/// The time between two readings. Where the clocks of target and server disagree, the target's counts: over a slow
/// connection, the time between two answers isn't the time between two readings.
fn elapsed(before: &Reading, after: &Reading) -> f64 {
    let clock = after.clock - before.clock;
    let seconds = match (before.uptime(), after.uptime()) {
        (Ok(before), Ok(after)) if (after - before - clock).abs() > UPTIME_ERROR_S => after - before,
        _ => clock,
    };
    seconds.max(0.0)
}

/// The first number of `/proc/uptime`: seconds since boot, proc_uptime(5).
fn parse_uptime(text: &str) -> Result<f64> {
    let seconds = text.split_whitespace().next().and_then(|word| word.parse::<f64>().ok());
    seconds
        .filter(|seconds| seconds.is_finite() && *seconds >= 0.0)
        .ok_or_else(|| Problem::unexpected(UPTIME, text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use linux_sysadmin_sdk::testkit::FakeTarget;

    fn seconds(first: &str, second: &str, sample_ms: u32) -> Result<f64> {
        let recording = |text: &str| format!("==> /proc/uptime <==\n{text}");
        let cx = FakeTarget::new().recording(&recording(first)).recording(&recording(second)).context();
        Ok(Interval::take(&cx, Some(sample_ms), || Ok(Vec::new()))?.seconds)
    }

    #[test]
    fn the_targets_clock_wins_where_the_two_disagree() {
        let table = [
            ("100.00 5", "100.50 5", 500, 0.5),
            ("100.00 5", "100.51 5", 500, 0.5),
            ("100.00 5", "100.49 5", 500, 0.5),
            ("100.00 5", "102.00 5", 500, 2.0),
            // After a reboot or with garbled text, a rate of 0 is better than a wrong one.
            ("100.00 5", "3.00 5", 500, 0.0),
            ("", "100.00 5", 500, 0.5),
            ("nan 5", "inf 5", 500, 0.5),
        ];
        for (first, second, sample_ms, expected) in table {
            let seconds = seconds(first, second, sample_ms).unwrap();
            assert!((seconds - expected).abs() < 1e-9, "{first} to {second}: {seconds}");
        }
    }

    #[test]
    fn a_sample_of_nothing_is_since_boot() {
        assert_eq!(seconds("31359.04 2076.12\n", "", 0).unwrap(), 31359.04);
        for text in ["", "x", "-1 2", "nan 1", "inf 1"] {
            assert_eq!(seconds(text, "", 0).unwrap_err().code, "UNEXPECTED_OUTPUT", "{text:?}");
        }
    }

    #[test]
    fn a_sample_is_at_least_ten_ticks() {
        for (sample_ms, expected) in [(1, 0.1), (99, 0.1), (100, 0.1), (101, 0.101)] {
            let seconds = seconds("x", "x", sample_ms).unwrap();
            assert!((seconds - expected).abs() < 1e-9, "{sample_ms}: {seconds}");
        }
    }

    #[test]
    fn a_sample_says_how_fine_it_is_and_counts_since_boot_do_not() {
        let cx = FakeTarget::new().context();
        let reading = || Reading::take(&cx, Vec::new());
        let over = |seconds| Interval { before: Some(reading()), after: reading(), seconds };
        assert_eq!(over(0.2).cpu_within_pct(), Some(5.0));
        assert_eq!(over(1.0).cpu_within_pct(), Some(1.0));
        let note = over(0.2).rate_note("request");
        assert_eq!(note.unwrap(), "the sample was 0.2 s, so one request counts as 5 per second");
        let since_boot = Interval { before: None, after: reading(), seconds: 9.0 };
        assert_eq!((since_boot.cpu_within_pct(), since_boot.rate_note("request")), (None, None));
        // No clock moved.
        assert_eq!(over(0.0).cpu_within_pct(), None);
    }

    #[test]
    fn a_sample_has_an_end() {
        assert!(seconds("1.00 1", "11.00 1", LONGEST_MS).is_ok());
        assert_eq!(seconds("1.00 1", "11.00 1", LONGEST_MS + 1).unwrap_err().code, "INVALID_ARGUMENTS");
    }

    #[test]
    fn no_rate_is_infinite_or_negative() {
        let cx = FakeTarget::new().context();
        let at = |seconds| Interval { before: None, after: Reading::take(&cx, Vec::new()), seconds };
        assert_eq!(at(0.0).rate(0, 10), 0.0);
        assert_eq!(at(2.0).rate(0, 10), 5.0);
        assert_eq!(at(2.0).rate(10, 0), 0.0);
    }
}
