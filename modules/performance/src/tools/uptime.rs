//! `perf_uptime`: shows the time since boot and the load averages.

use linux_sysadmin_sdk::prelude::*;

use crate::sample::Reading;
use crate::sources::cpu::{LOADAVG, Load, STAT, Stat};

/// The answer.
#[derive(Serialize)]
pub(crate) struct Uptime {
    uptime_s: u64,
    /// The time of the boot, as in RFC 3339 and in UTC. None where the machine booted without a clock.
    #[serde(skip_serializing_if = "Option::is_none")]
    booted_at: Option<String>,
    /// The number of threads that run, can run or wait for a disk, averaged over 1, 5 and 15 minutes.
    load_average: [f64; 3],
    /// The number of CPUs that are online. Each thread of a core counts. A load of this number keeps all of them busy.
    cores: u64,
    /// The number of threads that now run or can run.
    runnable: u64,
    threads: u64,
}

pub(crate) fn uptime(_: NoArgs, cx: &Context) -> Result<Single<Uptime>> {
    let reading = Reading::take(cx, vec![STAT.to_owned(), LOADAVG.to_owned()]);
    let stat = Stat::parse(reading.text(STAT)?)?;
    let load = Load::parse(reading.text(LOADAVG)?)?;
    Ok(Single(Uptime {
        uptime_s: reading.uptime()? as u64,
        booted_at: stat.booted.filter(|booted| *booted > 0).and_then(rfc3339),
        load_average: load.averages,
        cores: stat.cores(),
        runnable: load.runnable,
        threads: load.threads,
    }))
}

/// Converts seconds since the epoch to a date of the proleptic Gregorian calendar. Years are counted from March, so that the
/// leap day is the last day. None after the year 9999, where RFC 3339 ends.
fn rfc3339(unix: u64) -> Option<String> {
    const DAYS_FROM_YEAR_0: u64 = 719_468;
    const DAYS_OF_400_YEARS: u64 = 146_097;
    if unix > 253_402_300_799 {
        return None;
    }
    let (days, second) = (unix / 86_400 + DAYS_FROM_YEAR_0, unix % 86_400);
    let (era, day) = (days / DAYS_OF_400_YEARS, days % DAYS_OF_400_YEARS);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    // From March on, each five months have 153 days.
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, year) = if month < 10 { (month + 3, year) } else { (month - 9, year + 1) };
    let year = year + 400 * era;
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    Some(format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        // The output of `date -u -d @N +%FT%TZ`.
        let table = [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (951_868_800, "2000-03-01T00:00:00Z"),
            (1_521_041_977, "2018-03-14T15:39:37Z"),
            (1_709_251_199, "2024-02-29T23:59:59Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
            (253_402_300_799, "9999-12-31T23:59:59Z"),
        ];
        for (unix, expected) in table {
            assert_eq!(rfc3339(unix).as_deref(), Some(expected), "{unix}");
        }
        assert_eq!(rfc3339(253_402_300_800), None);
        assert_eq!(rfc3339(u64::MAX), None);
    }
}
