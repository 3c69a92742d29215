//! Valid and invalid expressions, their problems, their meaning, and warnings about them.
#![allow(clippy::unwrap_used)]

use module_cron::describe::{describe, warnings};
use module_cron::expression::{Expression, Field, Unit, When};
use module_cron::parse::parse;
use module_cron::problem::Problem;

fn valid(text: &str) -> Expression {
    parse(text).unwrap_or_else(|problems| panic!("{text}: {problems:?}"))
}

fn fields(text: &str) -> Box<[Field; 5]> {
    match valid(text).when {
        When::Times(fields) => fields,
        When::Boot => panic!("{text} has no times"),
    }
}

fn problems(text: &str) -> Vec<Problem> {
    parse(text).err().unwrap_or_else(|| panic!("{text:?} was taken"))
}

#[test]
fn an_expression_is_written_out_and_normalized() {
    // Each row has an expression, its normalized form, and the values of those fields that don't match everything.
    let table = [
        ("30 2 * * 1-5", "30 2 * * 1-5", "minute=30 hour=2 day of week=Mon-Fri"),
        ("  05\t02 * * mon-FRI \n", "5 2 * * 1-5", "minute=5 hour=2 day of week=Mon-Fri"),
        ("*/15 * * * *", "*/15 * * * *", "minute=0,15,30,45"),
        ("*/1 * * * *", "* * * * *", ""),
        ("*,5 * * * *", "* * * * *", ""),
        ("0-59 * * * *", "0-59 * * * *", ""),
        ("1-10/2 8-10,14 * * *", "1,3,5,7,9 8-10,14 * * *", "minute=1,3,5,7,9 hour=8-10,14"),
        ("0 0 1 jan,JUL *", "0 0 1 1,7 *", "minute=0 hour=0 day of month=1 month=Jan,Jul"),
        ("0 0 * jan-mar/2 *", "0 0 * 1,3 *", "minute=0 hour=0 month=Jan,Mar"),
        ("0 0 * * 7", "0 0 * * 0", "minute=0 hour=0 day of week=Sun"),
        ("0 0 * * 5-7", "0 0 * * 0,5,6", "minute=0 hour=0 day of week=Sun,Fri,Sat"),
        ("0 0 * * */7", "0 0 * * */7", "minute=0 hour=0 day of week=Sun"),
        ("0 0 * * sun-sat", "0 0 * * 0-6", "minute=0 hour=0"),
        ("0~10,30 3 * * *", "0~10,30 3 * * *", "minute=30,0~10 hour=3"),
        ("~ 3 * * *", "~ 3 * * *", "minute=0~59 hour=3"),
        ("*/90 * * * *", "*/90 * * * *", "minute=0"),
        ("@yearly", "0 0 1 1 *", "minute=0 hour=0 day of month=1 month=Jan"),
        ("@annually", "0 0 1 1 *", "minute=0 hour=0 day of month=1 month=Jan"),
        ("@monthly", "0 0 1 * *", "minute=0 hour=0 day of month=1"),
        ("@weekly", "0 0 * * 0", "minute=0 hour=0 day of week=Sun"),
        ("@daily", "0 0 * * *", "minute=0 hour=0"),
        ("@midnight", "0 0 * * *", "minute=0 hour=0"),
        ("@hourly", "0 * * * *", "minute=0"),
    ];
    for (text, normalized, expected) in table {
        assert_eq!(valid(text).normalized(), normalized, "{text}");
        let fields = fields(text);
        let shown = fields.iter().filter(|field| !field.is_full());
        let shown: Vec<_> =
            shown.map(|field| format!("{}={}", field.unit.name(), field.expanded())).collect();
        assert_eq!(shown.join(" "), expected, "{text}");
    }
    assert_eq!(valid("@reboot").normalized(), "@reboot");
    assert!(matches!(valid("@reboot").when, When::Boot));
}

#[test]
fn a_normalized_expression_means_the_same() {
    for text in ["*/7 */5 */3 */2 */2", "1-5,9 0-23 1-31 jan-dec 0-7", "*,3 0 * * sat,sun", "@weekly"] {
        let again = valid(text).normalized();
        for (before, after) in fields(text).iter().zip(fields(&again).iter()) {
            assert_eq!((before.values, before.star), (after.values, after.star), "{text} as {again}");
        }
        assert_eq!(valid(&again).normalized(), again);
    }
}

#[test]
fn only_a_leading_star_makes_a_wildcard() {
    for (text, stars) in [
        ("* * * * *", [true; 5]),
        ("*/2 *,1 * * *", [true; 5]),
        ("0-59 0-23 1-31 1-12 0-7", [false; 5]),
        ("5,*/10 0 1 1 0", [false; 5]),
    ] {
        assert_eq!(fields(text).each_ref().map(|field| field.star), stars, "{text}");
    }
}

#[test]
fn a_problem_names_the_value_its_column_and_what_would_be_right() {
    // Field, column, value, part of the message, suggestion.
    type Row<'a> = (&'a str, Option<Unit>, usize, &'a str, &'a str, Option<&'a str>);
    use Unit::{DayOfMonth, DayOfWeek, Hour, Minute, Month};
    let table: &[Row<'_>] = &[
        ("60 * * * *", Some(Minute), 1, "60", "out of range", Some("0")),
        ("0 24 * * *", Some(Hour), 3, "24", "out of range", Some("0")),
        ("0 0 32 * *", Some(DayOfMonth), 5, "32", "out of range", None),
        ("0 0 0 * *", Some(DayOfMonth), 5, "0", "out of range", None),
        ("0 0 * 13 *", Some(Month), 7, "13", "out of range", None),
        ("0 0 * * 8", Some(DayOfWeek), 9, "8", "out of range", None),
        ("5-64/30 * * * *", Some(Minute), 3, "64", "out of range", None),
        ("1,2,99 * * * *", Some(Minute), 5, "99", "out of range", None),
        ("\t 1  77 * * *", Some(Hour), 6, "77", "out of range", None),
        ("99999999999999999999 * * * *", Some(Minute), 1, "99999999999999999999", "out of range", None),
        ("14 30 * * *", Some(Hour), 1, "14 30", "the minute comes first", Some("30 14")),
        ("2:30 * * * *", Some(Minute), 1, "2:30", "fields of their own", Some("30 2")),
        ("-5 * * * *", Some(Minute), 1, "-5", "no sign", None),
        ("+5 * * * *", Some(Minute), 1, "+5", "no sign", None),
        ("1.5 * * * *", Some(Minute), 1, "1.5", "not a number", None),
        ("5x * * * *", Some(Minute), 1, "5x", "not a number", None),
        ("1-5-7 * * * *", Some(Minute), 3, "5-7", "not a number", None),
        ("five * * * *", Some(Minute), 1, "five", "numbers only", None),
        ("5- * * * *", Some(Minute), 1, "5-", "no end", Some("5-59")),
        ("5-/2 * * * *", Some(Minute), 1, "5-/2", "no end", Some("5-59/2")),
        ("*/0 * * * *", Some(Minute), 3, "0", "step of 0", None),
        ("*/ * * * *", Some(Minute), 3, "", "missing", None),
        ("*/-5 * * * *", Some(Minute), 3, "-5", "a step is a number", None),
        ("*/5/2 * * * *", Some(Minute), 3, "5/2", "a step is a number", None),
        ("*/99999999999 * * * *", Some(Minute), 3, "99999999999", "too large", None),
        ("5/10 * * * *", Some(Minute), 1, "5/10", "only after a range", Some("5-59/10")),
        ("0/15 * * * *", Some(Minute), 1, "0/15", "only after a range", Some("*/15")),
        ("/5 * * * *", Some(Minute), 1, "/5", "before it", Some("*/5")),
        ("*5 * * * *", Some(Minute), 1, "*5", "may follow a `*`", Some("*/5")),
        ("** * * * *", Some(Minute), 1, "**", "may follow a `*`", None),
        ("1,,2 * * * *", Some(Minute), 3, "", "missing in the list", None),
        ("1, * * * *", Some(Minute), 3, "", "missing in the list", None),
        (", * * * *", Some(Minute), 1, "", "missing in the list", None),
        ("0 22-4 * * *", Some(Hour), 3, "22-4", "don't wrap around", Some("22-23,0-4")),
        ("0 22-4/2 * * *", Some(Hour), 3, "22-4/2", "don't wrap around", Some("22,0,2,4")),
        ("0 23-0 * * *", Some(Hour), 3, "23-0", "don't wrap around", Some("23,0")),
        ("0 0 * nov-feb *", Some(Month), 7, "nov-feb", "don't wrap around", Some("11-12,1-2")),
        ("0 0 * * fri-mon", Some(DayOfWeek), 9, "fri-mon", "don't wrap around", Some("5-6,0-1")),
        ("0 0 * * fri-sun", Some(DayOfWeek), 9, "fri-sun", "don't wrap around", Some("5-7")),
        ("0 0 * * 7-1", Some(DayOfWeek), 9, "7-1", "don't wrap around", Some("0-1")),
        ("0 0 * * monday", Some(DayOfWeek), 9, "monday", "not a name", Some("mon")),
        ("0 0 * sept *", Some(Month), 7, "sept", "not a name", Some("sep")),
        ("0 0 * jna *", Some(Month), 7, "jna", "not a name", None),
        ("0 0 * juni *", Some(Month), 7, "juni", "not a name", Some("jun")),
        ("0 0 * * m1", Some(DayOfWeek), 9, "m1", "neither a number nor a name", None),
        ("0 0 * mon *", Some(Month), 7, "mon", "belongs to the field day of week", None),
        ("jan * * * *", Some(Minute), 1, "jan", "belongs to the field month", None),
        ("0 0 ? * *", Some(DayOfMonth), 5, "?", "Quartz's", Some("*")),
        ("0 0 L * *", Some(DayOfMonth), 5, "L", "`L` (last)", None),
        ("0 0 L-3 * *", Some(DayOfMonth), 5, "L-3", "`L` (last)", None),
        ("0 0 15W * *", Some(DayOfMonth), 5, "15W", "nearest weekday", None),
        ("0 0 LW * *", Some(DayOfMonth), 5, "LW", "nearest weekday", None),
        ("0 0 * * 5L", Some(DayOfWeek), 9, "5L", "`L` (last)", None),
        ("0 0 * * friL", Some(DayOfWeek), 9, "friL", "`L` (last)", None),
        ("0 0 * * FRI#2", Some(DayOfWeek), 9, "FRI#2", "nth weekday", None),
        ("H/15 * * * *", Some(Minute), 1, "H/15", "Jenkins'", None),
        ("0~59/5 * * * *", Some(Minute), 1, "0~59/5", "OpenBSD's", Some("0~59")),
        ("50~10 * * * *", Some(Minute), 1, "50~10", "backwards", Some("10~50")),
        ("0~60 * * * *", Some(Minute), 3, "60", "out of range", Some("0")),
        ("0–5 * * * *", Some(Minute), 2, "–", "U+2013", Some("-")),
        ("＊ * * * *", Some(Minute), 1, "＊", "U+FF0A", Some("*")),
        ("ü ☃ * * *", Some(Minute), 1, "ü", "U+00FC", None),
        ("0\0 * * * *", Some(Minute), 2, "\\0", "U+0000", None),
        ("", None, 1, "", "empty", None),
        (" \t\n", None, 1, "", "empty", None),
        ("0 5 * *", None, 1, "0 5 * *", "only 4 of five fields", Some("0 5 * * *")),
        (" 5", None, 2, "5", "only 1 of five fields", Some("5 * * * *")),
        ("* * * * * command", None, 11, "command", "not part of the expression", Some("* * * * *")),
        ("0 5 * * * root /bin/true", None, 11, "root", "not part of the expression", Some("0 5 * * *")),
        ("0 5 * * * w", None, 11, "w", "not part of the expression", Some("0 5 * * *")),
        ("* * * * * *", None, 1, "* * * * * *", "no seconds", Some("* * * * *")),
        ("0 0 12 * * mon-fri", None, 1, "0 0 12 * * mon-fri", "no seconds", Some("0 12 * * mon-fri")),
        ("0 0 12 1 1 * 2026", None, 1, "0 0 12 1 1 * 2026", "a year last", Some("0 12 1 1 *")),
        ("0 5 * * *\n0 6 * * *", None, 10, "0 5 * * *\\n0 6 * * *", "more than one line", None),
        ("@Daily", None, 1, "@Daily", "lower case", Some("@daily")),
        ("@dayly", None, 1, "@dayly", "no nickname", Some("@daily")),
        ("@fortnightly", None, 1, "@fortnightly", "no nickname", None),
        ("@", None, 1, "@", "no nickname", None),
        ("@daily /bin/true", None, 8, "/bin/true", "not part of the expression", Some("@daily")),
    ];
    for (text, field, column, value, message, suggestion) in table {
        let found = problems(text);
        let problem = &found[0];
        assert_eq!(
            (problem.field, problem.column, &*problem.value),
            (*field, *column, *value),
            "{text:?}: {found:?}"
        );
        assert!(problem.message.contains(message), "{text:?}: {found:?}");
        assert_eq!(problem.suggestion.as_deref(), *suggestion, "{text:?}: {found:?}");
        assert!(!problem.expected.is_empty(), "{text:?}");
    }
}

#[test]
fn what_debians_cron_makes_of_a_line_it_takes_all_the_same_is_told() {
    const TAKES: &str = "; Debian's crontab takes this without complaint, and its cron ";
    for (text, does) in [
        ("5-1 * * * *", "never runs the job"),
        ("0 0 * * fri-sun", "never runs the job"),
        ("0 0 28-3 * *", "never runs the job"),
        ("0 0 28-3 * fri-sun", "never runs the job"),
        ("0 0 * nov-feb *", "never runs the job"),
        ("0 0 1 1 fri-sun", "runs the job on the days of the month only"),
        ("0 0 28-3 * 1", "runs the job on the days of the week only"),
        ("0 0 30 2 fri-sun", "never runs the job"),
        ("0 0 * * sat-mon,3", "reads the field as `3`"),
        ("1.5 * * * *", "reads the field as `1`"),
        ("1* * * * *", "reads the field as `1`"),
        ("** * * * *", "reads the field as `*`"),
        ("*5 * * * *", "reads the field as `*`"),
        ("*/5/2 * * * *", "reads the field as `*/5`"),
        ("1-5-7 * * * *", "reads the field as `1-5`"),
        ("2:30 * * * *", "reads the field as `2`"),
        ("0 0 * * FRI#2", "reads the field as `fri`"),
        ("0~59/5 * * * *", "reads the field as `0`"),
        ("0 0 * * fri-sun /bin/true", "never runs the job"),
    ] {
        let found = problems(text);
        assert!(found[0].message.ends_with(&format!("{TAKES}{does}")), "{text}: {found:?}");
    }
    // Each field has its own problem.
    let found = problems("1.5,2.5 3.5 * * *");
    let told: Vec<bool> = found.iter().map(|problem| problem.message.contains(TAKES)).collect();
    assert_eq!(told, [true, false, true]);
    for text in [
        "5-1 24 * * *",
        "60 * * * *",
        "5- * * * *",
        "1,,2 * * * *",
        "0 0 ? * *",
        "0 0 * * 5L",
        "5/10 * * * *",
        "1.5 * * *",
        "1.5 * * * * *",
        "1=5 * * * *",
        "99999999999.5 * * * *",
        "#1 * * * *",
        "@daily.5",
    ] {
        assert!(problems(text).iter().all(|problem| !problem.message.contains(TAKES)), "{text}");
    }
}

#[test]
fn a_suggestion_in_the_place_of_the_value_is_right() {
    for text in [
        "5/10 * * * *",
        "0 22-4/2 * * *",
        "0 0 * nov-feb fri-sun",
        "*5 /7 * * *",
        "0 0 ? * *",
        "0 0 * * monday",
    ] {
        let mut corrected: Vec<char> = text.chars().collect();
        for problem in problems(text).iter().rev() {
            let start = problem.column - 1;
            let suggestion = problem.suggestion.as_ref().unwrap();
            corrected.splice(start..start + problem.value.chars().count(), suggestion.chars());
        }
        valid(&corrected.into_iter().collect::<String>());
    }
}

#[test]
fn all_problems_of_all_fields_come_at_once_in_order() {
    let found = problems("60,61 24 32 13 8");
    let places: Vec<_> =
        found.iter().map(|problem| (problem.field.map(Unit::name), problem.column)).collect();
    assert_eq!(
        places,
        [
            (Some("minute"), 1),
            (Some("minute"), 4),
            (Some("hour"), 7),
            (Some("day of month"), 10),
            (Some("month"), 13),
            (Some("day of week"), 16)
        ]
    );
    // There are too many fields, and invalid ones.
    assert_eq!(problems("99 * * * * run").len(), 2);
    // The seconds of Quartz's syntax aren't read as minutes.
    let found = problems("0 0 12 ? * MON#2");
    let columns: Vec<_> = found.iter().map(|problem| problem.column).collect();
    assert_eq!(columns, [1, 8, 12], "{found:?}");
}

#[test]
fn garbage_is_answered_shortly() {
    let long = "x".repeat(10 * 1024);
    assert_eq!(problems(&long).len(), 1);
    assert!(problems(&long)[0].message.contains("10240 bytes"));
    let commas = format!("{} * * * *", ",".repeat(900));
    assert_eq!(problems(&commas).len(), 10);
    for text in [
        "\u{0}\u{1}\u{7f}",
        "\u{202e}* * * * *",
        "🦀 🦀 🦀 🦀 🦀",
        "'; rm -rf /",
        "%s %n %x * *",
        "* * * * ( )",
    ] {
        let found = problems(text);
        let shown: String = found.iter().map(ToString::to_string).collect();
        assert!(!shown.chars().any(char::is_control), "{shown:?}");
        assert!(shown.len() < 2_000, "{shown:?}");
    }
}

#[test]
fn an_expression_is_told_in_words() {
    for (text, words) in [
        ("* * * * *", "Every minute"),
        ("0-59 * * * *", "Every minute"),
        ("*/5 * * * *", "Every 5 minutes"),
        ("*/7 * * * *", "At every 7th minute from 0 through 56 of every hour"),
        ("0 * * * *", "At minute 0 of every hour"),
        ("15,45 * * * *", "At minutes 15 and 45 of every hour"),
        ("30 2 * * *", "At 02:30 every day"),
        ("30 2 * * 1-5", "At 02:30 on Monday through Friday"),
        ("30 2 * * 0,6", "At 02:30 on Sunday and Saturday"),
        ("0 8,12,16 * * *", "At 08:00, 12:00 and 16:00 every day"),
        ("* 2 * * *", "Every minute from 02:00 through 02:59 every day"),
        ("*/15 9-17 * * *", "Every 15 minutes from 09:00 through 17:45 every day"),
        ("0 9-17 * * 1-5", "At minute 0 of every hour from 9 through 17 on Monday through Friday"),
        ("0 */2 * * *", "At minute 0 of every 2nd hour starting at 00:00 every day"),
        ("*/5 1,3 * * *", "Every 5 minutes in the hours 1 and 3 every day"),
        ("15 14 1 * *", "At 14:15 on day 1 of the month"),
        ("0 0 1-7,15 * *", "At 00:00 on days 1 through 7 and 15 of the month"),
        ("0 0 1 1,7 *", "At 00:00 on day 1 of the month in January and July"),
        ("0 22 * 6-8 *", "At 22:00 every day in June through August"),
        ("30 4 1,15 * 5", "At 04:30 on days 1 and 15 of the month and also on every Friday"),
        ("0 0 */2 * 1", "At 00:00 on every 2nd day from 1 through 31 of the month if that is Monday"),
        (
            "0 0 1-7 * */2",
            "At 00:00 on days 1 through 7 of the month if that is Sunday, Tuesday, Thursday or Saturday",
        ),
        ("0 0 1-31 * 1", "At 00:00 every day"),
        ("0 0 30 2 *", "At 00:00 on day 30 of the month in February, which never happens"),
        ("@reboot", "Once when cron starts after the system has booted"),
        ("0~59 3 * * *", "At a time drawn when cron loads the crontab (minute 0~59), with hour 3"),
    ] {
        assert_eq!(describe(&valid(text)), words, "{text}");
    }
}

#[test]
fn what_may_surprise_is_warned_of() {
    for (text, parts) in [
        ("30 2 * * 1-5", vec![]),
        ("* * * * *", vec![]),
        ("*/15 */2 * */3 *", vec![]),
        ("0 0 28-31 * *", vec![]),
        ("0 0 1-31 * *", vec![]),
        ("0 0 * * 0,2,4", vec![]),
        ("* 2 * * *", vec!["every minute of hour 2, 60 times a day"]),
        ("* 2,3 * * *", vec!["every minute of 2 hours, 120 times a day"]),
        ("*/7 * * * *", vec!["from minute 56 to minute 0 it is 4 minutes"]),
        ("0-59/7 * * * *", vec!["from minute 56 to minute 0 it is 4 minutes"]),
        ("0 */5 * * *", vec!["from hour 20 to hour 0 it is 4 hours"]),
        ("0 0 1 */5 *", vec!["from November to January it is 2 months"]),
        ("0 0 * * */2", vec!["from Saturday to Sunday it is 1 day"]),
        ("0 0 */2 * *", vec!["starts anew every month"]),
        ("*/90 * * * *", vec!["leaves only minute 0"]),
        ("0 0 * * */7", vec!["leaves only Sunday"]),
        ("30 4 1,15 * 5", vec!["when either matches"]),
        ("0 0 1-31 * 5", vec!["this runs every day"]),
        ("0 0 1 * 0-6", vec!["this runs every day"]),
        ("0 0 1-7 * */7", vec!["leaves only Sunday", "only when both day fields match"]),
        ("0 0 31 * *", vec!["day 31 doesn't exist in February, April, June, September and November"]),
        ("0 0 31 1,3 *", vec![]),
        ("0 0 29 2 *", vec!["leap years"]),
        ("0 0 29 * *", vec!["leap years"]),
        ("0 0 29,30 2 *", vec!["not all of the days 29 and 30 exist in February"]),
        ("0 0 30 2 *", vec!["never runs: there is no day 30 in February"]),
        ("0 0 31 4,6 *", vec!["never runs: there is no day 31 in April and June"]),
        ("0 0 30 2 1", vec!["when either matches", "day 30 doesn't exist in February"]),
        ("0~59 3 * * *", vec!["Debian's cron silently reads `0~59` as `0`"]),
        ("~ 3 * * *", vec!["Debian's cron refuses the line"]),
        ("@reboot", vec!["no clock times"]),
    ] {
        let found = warnings(&valid(text));
        assert_eq!(found.len(), parts.len(), "{text}: {found:?}");
        for (warning, part) in found.iter().zip(parts) {
            assert!(warning.contains(part), "{text}: {warning}");
        }
    }
}
