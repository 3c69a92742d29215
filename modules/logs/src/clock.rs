//! The target's clock and time zone, and times as answers write them.

use std::cell::OnceCell;

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use linux_sysadmin_sdk::{Output, prelude::*, time};

/// A second in microseconds, the unit of the times of lines.
pub(crate) const SECOND: i64 = 1_000_000;

/// Prints the target's clock, in seconds since the epoch. It may differ from the server's clock.
pub(crate) const NOW: CommandLine = CommandLine::new("date +%s");

/// The file with the target's time zone.
pub(crate) const LOCALTIME: &str = "/etc/localtime";

/// The target's clock and zone, which are read only where they are needed.
pub(crate) struct Clock<'a> {
    cx: &'a Context,
    now: OnceCell<i64>,
    zone: OnceCell<TimeZone>,
}

impl<'a> Clock<'a> {
    pub(crate) fn new(cx: &'a Context) -> Self {
        Self { cx, now: OnceCell::new(), zone: OnceCell::new() }
    }

    /// The target's time, in seconds since the epoch.
    pub(crate) fn now(&self) -> i64 {
        *self.now.get_or_init(|| self.parse(self.cx.run(NOW.command())))
    }

    /// Runs commands, and reads the clock at the same time. Returns the outputs of the commands.
    pub(crate) fn beside(&self, mut commands: Vec<Command>) -> Vec<Result<Output>> {
        commands.push(NOW.command());
        let mut outputs = self.cx.run_all(commands);
        if let Some(now) = outputs.pop() {
            self.now.get_or_init(|| self.parse(now));
        }
        outputs
    }

    fn parse(&self, output: Result<Output>) -> i64 {
        let seconds = output.ok().and_then(|output| output.text().trim().parse().ok());
        seconds.unwrap_or(self.cx.now() as i64)
    }

    /// The target's zone, or UTC where it has none.
    pub(crate) fn zone(&self) -> &TimeZone {
        self.zone.get_or_init(|| {
            let file = self.cx.read_bytes(LOCALTIME).ok();
            file.and_then(|file| TimeZone::tzif("local", &file).ok()).unwrap_or(TimeZone::UTC)
        })
    }

    /// A local time in seconds since the epoch. A local time that occurs twice is the first one.
    pub(crate) fn local(&self, civil: DateTime) -> Option<i64> {
        Some(self.zone().to_ambiguous_timestamp(civil).compatible().ok()?.as_second())
    }
}

/// A time as text, in UTC and to the second.
pub(crate) fn text(micros: i64) -> String {
    time::rfc3339(micros.div_euclid(SECOND))
}
