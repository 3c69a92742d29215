//! Calendar expressions, as `systemd-analyze calendar` checks them and says when they elapse.

use linux_sysadmin_sdk::{prelude::*, time::rfc3339};

use super::{systemctl, time};

/// The number of upcoming times in an answer.
const MOST: usize = 3;

/// The next times at which calendar expressions elapse, in order and in UTC, with notes for the caller.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Elapses {
    pub(crate) next: Vec<String>,
    pub(crate) notes: Vec<String>,
}

/// Asks the target, because its systemd decides what an expression is and its time zone decides when it elapses.
pub(crate) fn elapses(expressions: &[String], cx: &Context) -> Result<Elapses> {
    let commands = expressions.iter().map(|expression| systemctl::CALENDAR.with([expression.as_str()]));
    let mut found = Vec::new();
    let mut notes = Vec::new();
    for (expression, output) in expressions.iter().zip(cx.run_all(commands.collect())) {
        let output = output?;
        let said = output.error_text();
        if output.exit_code != 0 && said.contains("Failed to parse calendar") {
            let message = format!("on_calendar is no calendar expression: {}", said.replace('\n', "; "));
            return Err(Problem::validation("INVALID_CALENDAR", message)
                .remedy("As in daily, Mon..Fri 08:00, *-*-01 04:30:00, *:0/15 or 09:00 Europe/Berlin"));
        }
        let text = output.success("systemd-analyze calendar")?.text().into_owned();
        let times = times(&text);
        if text.contains("Next elapse: never") {
            notes.push(format!("on_calendar {expression} never elapses again"));
        } else if times.is_empty() {
            return Err(Problem::unexpected("systemd-analyze calendar", &text));
        }
        found.extend(times);
    }
    found.sort_unstable();
    found.dedup();
    found.truncate(MOST);
    Ok(Elapses { next: found.into_iter().map(rfc3339).collect(), notes })
}

/// Reads the times that systemd-analyze prints in UTC. Where the zone isn't UTC, it prints each time in both zones.
fn times(text: &str) -> Vec<i64> {
    let labelled = text.lines().filter_map(|line| line.split_once(": "));
    let labelled = labelled.filter(|(label, _)| {
        let label = label.trim();
        label == "(in UTC)" || label == "Next elapse" || label.starts_with("Iter")
    });
    labelled.filter_map(|(_, moment)| time::timestamp(moment.trim())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use linux_sysadmin_sdk::testkit::FakeTarget;

    /// Recorded from systemd-analyze 252.
    const DAILY_IN_BERLIN: &str = "  Original form: daily\nNormalized form: *-*-* 00:00:00\n    \
        Next elapse: Sat 2026-11-21 00:00:00 CET\n       (in UTC): Fri 2026-11-20 23:00:00 UTC\n       \
        From now: 30min left\n       Iter. #2: Sun 2026-11-22 00:00:00 CET\n       \
        (in UTC): Sat 2026-11-21 23:00:00 UTC\n       From now: 24h left\n       \
        Iter. #3: Mon 2026-11-23 00:00:00 CET\n       (in UTC): Sun 2026-11-22 23:00:00 UTC\n       \
        From now: 2 days left\n";
    const WEEKDAYS_IN_UTC: &str = "  Original form: Mon..Fri 08:00 Europe/Berlin\n\
        Normalized form: Mon..Fri *-*-* 08:00:00 Europe/Berlin\n    \
        Next elapse: Mon 2026-11-23 07:00:00 UTC\n       From now: 2 days left\n       \
        Iter. #2: Tue 2026-11-24 07:00:00 UTC\n       From now: 3 days left\n       \
        Iter. #3: Wed 2026-11-25 07:00:00 UTC\n       From now: 4 days left\n";
    const PAST: &str =
        "  Original form: 2001-01-01\nNormalized form: 2001-01-01 00:00:00\n    Next elapse: never\n";

    fn asked(answers: &[(&str, i32, &str, &str)]) -> Result<Elapses> {
        let target = answers.iter().fold(FakeTarget::new(), |target, (expression, code, stdout, stderr)| {
            let argv = ["systemd-analyze", "calendar", "--iterations=3", "--", expression];
            target.answer(&argv, *code, stdout, stderr)
        });
        let expressions: Vec<String> =
            answers.iter().map(|(expression, ..)| expression.to_string()).collect();
        elapses(&expressions, &target.context())
    }

    #[test]
    fn the_next_times_of_all_expressions_come_in_order_and_in_utc() {
        let found = asked(&[("weekdays", 0, WEEKDAYS_IN_UTC, ""), ("daily", 0, DAILY_IN_BERLIN, "")]);
        let next =
            ["2026-11-20T23:00:00Z", "2026-11-21T23:00:00Z", "2026-11-22T23:00:00Z"].map(str::to_owned);
        assert_eq!(found, Ok(Elapses { next: next.into(), notes: Vec::new() }));
    }

    #[test]
    fn what_never_elapses_is_said() {
        let notes = vec!["on_calendar 2001-01-01 never elapses again".to_owned()];
        assert_eq!(asked(&[("2001-01-01", 0, PAST, "")]), Ok(Elapses { next: Vec::new(), notes }));
    }

    #[test]
    fn what_is_no_expression_is_the_callers_mistake_and_what_is_no_answer_is_not() {
        let said = "Failed to parse calendar specification 'dxaily': Invalid argument\n";
        let table = [
            (1, "", said, "INVALID_CALENDAR"),
            (127, "", "systemd-analyze: not found", "COMMAND_FAILED"),
            (0, "", "", "UNEXPECTED_OUTPUT"),
            (0, "Next elapse: bald\n", "", "UNEXPECTED_OUTPUT"),
        ];
        for (code, stdout, stderr, expected) in table {
            let problem = asked(&[("x", code, stdout, stderr)]).err();
            assert_eq!(problem.map(|problem| problem.code).as_deref(), Some(expected), "{stdout}{stderr}");
        }
    }
}
