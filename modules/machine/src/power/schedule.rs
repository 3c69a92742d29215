//! The commands that restart the machine or turn it off, and the time at which they do.

use linux_sysadmin_sdk::{prelude::*, text::has_hidden, time};

pub(crate) const RESTART: CommandLine = CommandLine::new("shutdown -r <text>");
pub(crate) const RESTART_TOLD: CommandLine = CommandLine::new("shutdown -r <text> <text>");
pub(crate) const TURN_OFF: CommandLine = CommandLine::new("shutdown -P <text>");
pub(crate) const TURN_OFF_TOLD: CommandLine = CommandLine::new("shutdown -P <text> <text>");
pub(crate) const CANCEL: CommandLine = CommandLine::new("shutdown -c");

/// The file in which logind keeps the shutdown that is planned.
pub(crate) const SCHEDULED: &str = "/run/systemd/shutdown/scheduled";
/// The longest time that a shutdown is planned ahead, in minutes: a year.
const LONGEST: u32 = 366 * 24 * 60;
/// The most characters of a message to those who are logged in.
const MESSAGE: usize = 200;

/// A shutdown that is planned.
#[derive(Debug, PartialEq)]
pub(crate) struct Scheduled {
    /// `reboot`, `poweroff`, `halt` or `kexec`; `dry-` stands before it where only warnings are sent.
    pub(crate) mode: String,
    /// The time, as RFC 3339.
    pub(crate) at: String,
}

/// Reads the shutdown that is planned, if one is.
pub(crate) fn scheduled(file: Result<String>) -> Option<Scheduled> {
    let file = file.ok()?;
    let value = |key: &str| file.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
    let micros: i64 = value("USEC")?.parse().ok()?;
    Some(Scheduled { mode: value("MODE")?.to_owned(), at: time::rfc3339(micros / 1_000_000) })
}

/// The time as shutdown(8) takes it.
pub(crate) fn time(at: Option<&str>) -> Result<String> {
    let at = at.unwrap_or("now");
    let is_clock = |(hour, minute): (&str, &str)| {
        let number = |text: &str, end| {
            (1..=2).contains(&text.len())
                && text.bytes().all(|byte| byte.is_ascii_digit())
                && text.parse().is_ok_and(|number: u8| number < end)
        };
        number(hour, 24) && minute.len() == 2 && number(minute, 60)
    };
    let is_span = |minutes: &str| {
        minutes.bytes().all(|byte| byte.is_ascii_digit())
            && minutes.parse().is_ok_and(|minutes: u32| (1..=LONGEST).contains(&minutes))
    };
    let is_known =
        at == "now" || at.strip_prefix('+').is_some_and(is_span) || at.split_once(':').is_some_and(is_clock);
    match is_known {
        true => Ok(at.to_owned()),
        false => Err(Problem::validation(
            "INVALID_TIME",
            format!(
                "{at:?} is no time of a shutdown: expected `now`, `+MINUTES` (1 to {LONGEST}) or `HH:MM`, the next time \
                 that the machine's clock shows it"
            ),
        )),
    }
}

/// Checks a message to those who are logged in.
pub(crate) fn message(text: &str) -> Result<()> {
    let length = text.chars().count();
    match !text.starts_with('-') && (1..=MESSAGE).contains(&length) && !has_hidden(text) {
        true => Ok(()),
        false => Err(Problem::validation(
            "INVALID_MESSAGE",
            format!(
                "a message has 1 to {MESSAGE} characters that can be seen, on one line, and doesn't begin with `-`"
            ),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_now_a_number_of_minutes_or_a_time_of_day() {
        for at in ["now", "+1", "+527040", "00:00", "3:05", "23:59"] {
            assert_eq!(time(Some(at)).as_deref(), Ok(at));
        }
        assert_eq!(time(None).as_deref(), Ok("now"));
        for at in [
            "", "+0", "+527041", "5", "+1h", "+-1", "++1", "24:00", "12:60", "12:5", "-1", "tomorrow",
            "1:00 -k",
        ] {
            assert!(time(Some(at)).is_err_and(|problem| problem.message.contains("HH:MM")), "{at:?}");
        }
    }

    #[test]
    fn a_message_is_one_line_that_is_no_option() {
        assert!(message("kernel update, back in a minute").is_ok());
        for text in ["", "-k", "two\nlines", "a\u{202e}b", &"x".repeat(201)] {
            assert!(message(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn what_logind_has_planned_is_read_from_its_file() {
        // systemd 252, `shutdown -r +30 "planned by test"`.
        let file = "USEC=1795741274627635\nWARN_WALL=1\nMODE=reboot\nUID=0\nWALL_MESSAGE=planned by test\n"
            .to_owned();
        let expected = Scheduled { mode: "reboot".into(), at: "2026-11-27T01:01:14Z".into() };
        assert_eq!(scheduled(Ok(file)), Some(expected));
        for odd in ["", "USEC=\nMODE=reboot\n", "USEC=1\n"] {
            assert_eq!(scheduled(Ok(odd.to_owned())), None, "{odd:?}");
        }
        assert_eq!(scheduled(Err(Problem::not_found("FILE_NOT_FOUND", "none"))), None);
    }
}
