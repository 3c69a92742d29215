//! The tools for expressions as the host calls them.
#![allow(clippy::unwrap_used)]

use linux_sysadmin_sdk::Category;
use linux_sysadmin_sdk::testkit::{FakeTarget, takes_little_context};
use module_cron::module;
use serde_json::{Value, json};

/// 2026-03-28 00:00 UTC, a Saturday; Europe changes its clocks a day later.
const NOW: f64 = 1_774_656_000.0;

fn target() -> FakeTarget {
    let mut target = FakeTarget::new().at(NOW);
    target.distro.extra.push(("timezone".to_owned(), "Europe/Berlin".to_owned()));
    target
}

fn answer(tool: &str, arguments: Value) -> Value {
    match target().call(&module(), tool, arguments.clone()) {
        Ok((data, _)) => data,
        Err(problem) => panic!("{arguments}: {problem:?}"),
    }
}

fn next_runs(arguments: Value) -> Value {
    answer("cron_next_runs", arguments)
}

/// The local times of the runs, up to the minute and the hours of the offset.
fn local(data: &Value) -> Vec<String> {
    let runs = data["runs"].as_array().unwrap().iter();
    runs.map(|run| run["local"].as_str().unwrap().replace(":00+", "+")).collect()
}

fn notes(data: &Value) -> Vec<&str> {
    data["notes"].as_array().unwrap().iter().map(|note| note.as_str().unwrap()).collect()
}

fn refusal(arguments: Value) -> (String, String, Vec<String>) {
    match target().call(&module(), "cron_next_runs", arguments) {
        Ok((data, _)) => panic!("{data}"),
        Err(problem) => {
            assert!(matches!(problem.category, Category::Validation));
            (problem.code, problem.message, problem.remediation)
        }
    }
}

#[test]
fn a_tool_takes_little_of_a_models_context() {
    let description = module().description();
    for tool in &description.tools {
        takes_little_context(tool);
    }
    assert!(description.serves.is_empty());
}

#[test]
fn a_right_expression_is_explained() {
    assert_eq!(
        answer("cron_validate", json!({"expression": "30 2 * * mon-fri"})),
        json!({
            "valid": true,
            "expression": "30 2 * * mon-fri",
            "normalized": "30 2 * * 1-5",
            "description": "At 02:30 on Monday through Friday",
            "fields": {
                "minute": "30", "hour": "2", "day_of_month": "1-31", "month": "Jan-Dec",
                "day_of_week": "Mon-Fri"
            },
            "warnings": [],
            "errors": []
        })
    );
    let boot = answer("cron_validate", json!({"expression": "@reboot"}));
    assert_eq!((&boot["valid"], &boot["fields"]), (&json!(true), &Value::Null));
}

#[test]
fn that_an_expression_is_wrong_is_an_answer() {
    assert_eq!(
        answer("cron_validate", json!({"expression": "0 24 * * fri-mon"})),
        json!({
            "valid": false,
            "expression": "0 24 * * fri-mon",
            "warnings": [],
            "errors": [
                {
                    "field": "hour", "column": 3, "value": "24", "message": "`24` is out of range",
                    "expected": "0-23", "suggestion": "0"
                },
                {
                    "field": "day_of_week", "column": 10, "value": "fri-mon",
                    "message": "the range `fri-mon` runs backwards, and cron's ranges don't wrap around",
                    "expected": "0-7 (0 and 7 are Sunday) or sun-sat", "suggestion": "5-6,0-1"
                }
            ]
        })
    );
    let long = answer("cron_validate", json!({"expression": "*".repeat(10_240)}));
    assert!(long.to_string().len() < 500, "{long}");
}

#[test]
fn the_next_runs_of_a_wrong_expression_are_an_error() {
    let (code, message, remedies) = refusal(json!({"expression": "60 25 * * *"}));
    assert_eq!(code, "INVALID_CRON_EXPRESSION");
    assert_eq!(
        message,
        "not a cron expression: minute (column 1): `60` is out of range, expected 0-59, did you mean `0`?; \
         hour (column 4): `25` is out of range, expected 0-23"
    );
    assert_eq!(remedies.len(), 1);
    for expression in ["", "\0", "* * * * * command", "30 2 * *", &"x".repeat(10_240)] {
        assert_eq!(refusal(json!({"expression": expression})).0, "INVALID_CRON_EXPRESSION");
    }
}

#[test]
fn runs_are_told_in_the_targets_time() {
    let mut data = next_runs(json!({"expression": "0 6 * * 1", "count": 2}));
    // The release, such as `2026e`, changes with updates of the crate.
    let release = data.as_object_mut().unwrap().remove("tzdata").unwrap();
    let (year, letter) = release.as_str().unwrap().split_at(4);
    assert!(year.parse::<u16>().unwrap() >= 2026 && letter.len() == 1, "{release}");
    assert_eq!(
        data,
        json!({
            "expression": "0 6 * * 1",
            "description": "At 06:00 on Monday",
            "timezone": "Europe/Berlin",
            "runs": [
                {
                    "local": "2026-03-30T06:00:00+02:00", "weekday": "Mon",
                    "in_seconds": 187_200, "relative": "in 2 days 4 h"
                },
                { "local": "2026-04-06T06:00:00+02:00", "weekday": "Mon", "in_seconds": 792_000 }
            ],
            "notes": []
        })
    );
    assert_eq!(next_runs(json!({"expression": "0 6 * * 1"}))["runs"].as_array().unwrap().len(), 5);
    assert_eq!(
        next_runs(json!({"expression": "@hourly", "count": 100}))["runs"].as_array().unwrap().len(),
        100
    );
}

#[test]
fn a_run_in_the_skipped_hour_is_made_up_for_unless_it_is_a_wildcards() {
    let fixed = next_runs(json!({"expression": "30 2 * * *", "count": 3}));
    assert_eq!(local(&fixed), ["2026-03-28T02:30+01:00", "2026-03-29T03:00+02:00", "2026-03-30T02:30+02:00"]);
    assert_eq!(fixed["runs"][1]["makes_up_for"], "2026-03-29 02:30");
    assert_eq!(
        notes(&fixed),
        ["the clock goes from 2026-03-29 02:00 to 2026-03-29 03:00: \
          cron makes up for the skipped run right after"]
    );
    let wildcard = next_runs(json!({"expression": "*/30 2 * * *", "count": 4}));
    assert_eq!(
        local(&wildcard),
        [
            "2026-03-28T02:00+01:00",
            "2026-03-28T02:30+01:00",
            "2026-03-30T02:00+02:00",
            "2026-03-30T02:30+02:00"
        ]
    );
    assert!(notes(&wildcard)[0].contains("2 runs fall into the skipped time and don't happen"), "{wildcard}");
}

#[test]
fn a_run_in_the_repeated_hour_happens_once_unless_it_is_a_wildcards() {
    let after = "2026-10-25 00:00";
    let fixed = next_runs(json!({"expression": "30 2 * * *", "count": 2, "after": after}));
    assert_eq!(local(&fixed), ["2026-10-25T02:30+02:00", "2026-10-26T02:30+01:00"]);
    assert!(notes(&fixed)[0].contains("the first time only"), "{fixed}");
    let wildcard = next_runs(json!({"expression": "30 */2 * * *", "count": 4, "after": after}));
    assert_eq!(
        local(&wildcard),
        [
            "2026-10-25T00:30+02:00",
            "2026-10-25T02:30+02:00",
            "2026-10-25T02:30+01:00",
            "2026-10-25T04:30+01:00"
        ]
    );
    assert_eq!(wildcard["runs"][1]["second_pass"], Value::Null);
    assert_eq!(wildcard["runs"][2]["second_pass"], true);
    // This is between the two passes of the hour.
    let after = "2026-10-25T00:45:00Z";
    let fixed = next_runs(json!({"expression": "50 2 * * *", "count": 2, "after": after}));
    assert_eq!(local(&fixed), ["2026-10-25T02:50+02:00", "2026-10-26T02:50+01:00"]);
    let after = "2026-10-25T01:00:00Z";
    let fixed = next_runs(json!({"expression": "50 2 * * *", "count": 1, "after": after}));
    assert_eq!(local(&fixed), ["2026-10-26T02:50+01:00"]);
}

#[test]
fn a_change_of_a_day_is_a_correction() {
    let data = next_runs(json!({
        "expression": "0 9 * * *", "timezone": "Pacific/Apia", "after": "2011-12-29 00:00", "count": 2
    }));
    assert_eq!(local(&data), ["2011-12-29T09:00:00-10:00", "2011-12-31T09:00+14:00"]);
    assert!(notes(&data)[0].contains("1 run falls into the skipped time and doesn't happen"), "{data}");
}

#[test]
fn the_zone_is_the_argument_or_the_targets_or_utc() {
    let zone = |target: FakeTarget, arguments| target.call(&module(), "cron_next_runs", arguments).unwrap().0;
    let named = zone(target(), json!({"expression": "@daily", "timezone": "asia/kolkata", "count": 1}));
    assert_eq!(
        (&named["timezone"], local(&named)),
        (&json!("Asia/Kolkata"), vec!["2026-03-29T00:00+05:30".to_owned()])
    );
    assert!(notes(&named).is_empty());

    let unknown = zone(FakeTarget::new().at(NOW), json!({"expression": "@daily", "count": 1}));
    assert_eq!(
        (&unknown["timezone"], local(&unknown)),
        (&json!("UTC"), vec!["2026-03-29T00:00+00:00".to_owned()])
    );
    assert_eq!(notes(&unknown), ["the target's time zone is not known: UTC is taken"]);

    let mut odd = FakeTarget::new().at(NOW);
    odd.distro.extra.push(("timezone".to_owned(), "Mars/Olympus".to_owned()));
    let odd = zone(odd, json!({"expression": "@daily", "count": 1}));
    assert!(notes(&odd)[0].contains("`Mars/Olympus`, is not in the time zone database"), "{odd}");
}

#[test]
fn an_unknown_zone_is_refused_with_names_that_come_close() {
    for (name, meant) in [
        ("Europe/Berlim", "Europe/Berlin"),
        ("Berlin", "Europe/Berlin"),
        ("europe/new york", "America/New_York"),
        ("Asia/Calcuta", "Asia/Calcutta"),
    ] {
        let (code, message, remedies) = refusal(json!({"expression": "@daily", "timezone": name}));
        assert_eq!(code, "UNKNOWN_TIMEZONE");
        assert!(message.contains(name), "{message}");
        assert!(remedies[0].contains(meant), "{name}: {remedies:?}");
    }
    for name in ["", "+02:00", "\0", "../../etc/passwd", "Nowhere/Atlantis", &"z".repeat(10_240)] {
        let (code, message, _) = refusal(json!({"expression": "@daily", "timezone": name}));
        assert_eq!(code, "UNKNOWN_TIMEZONE");
        assert!(message.len() < 200, "{message}");
    }
}

#[test]
fn after_is_an_instant_or_a_local_time() {
    let first = |after: &str| {
        let data = next_runs(json!({"expression": "30 2 * * *", "count": 1, "after": after}));
        (local(&data)[0].clone(), notes(&data).join(" "))
    };
    for (after, run) in [
        ("2026-07-01T00:00:00Z", "2026-07-01T02:30+02:00"),
        ("2026-07-01T02:30:00+02:00", "2026-07-02T02:30+02:00"),
        ("2026-07-01 02:29", "2026-07-01T02:30+02:00"),
        ("2026-07-01T02:30", "2026-07-02T02:30+02:00"),
        ("2026-07-01", "2026-07-01T02:30+02:00"),
        ("1999-12-31 12:00", "2000-01-01T02:30+01:00"),
        ("2199-12-31 12:00", "2200-01-01T02:30+01:00"),
    ] {
        assert_eq!(first(after), (run.to_owned(), String::new()), "{after}");
    }
    assert!(first("2026-03-29 02:15").1.contains("doesn't exist"));
    let (run, note) = first("2026-10-25 02:15");
    assert_eq!(run, "2026-10-25T02:30+02:00");
    assert!(note.contains("happens twice; the first was taken"), "{note}");
    for after in [
        "",
        "tomorrow",
        "2026-13-01 00:00",
        "25:00",
        "1969-12-31T00:00:00Z",
        "-9999-01-01",
        "0",
        "\0",
        "99999-01-01 00:00",
    ] {
        let (code, message, _) = refusal(json!({"expression": "@daily", "after": after}));
        assert_eq!(code, "INVALID_TIME", "{message}");
    }
}

#[test]
fn a_schedule_without_times_says_so() {
    for (expression, note) in [
        ("@reboot", "no clock times"),
        ("0 0 30 2 *", "no day 30 in February"),
        ("0 0 31 4,6,9,11 *", "no day 31 in"),
        // This is the last Sunday of March, at an hour that Berlin skips on that day.
        ("*/5 2 25-31 3 */7", "no run until 20"),
    ] {
        let data = next_runs(json!({"expression": expression, "count": 100}));
        assert_eq!(data["runs"], json!([]), "{expression}");
        assert!(notes(&data).iter().any(|text| text.contains(note)), "{expression}: {data}");
    }
}

#[test]
fn a_random_range_is_an_error_where_debians_cron_reads_it() {
    let on = |family: &str, tool: &str, expression: &str| {
        let mut target = target();
        target.distro.family = family.to_owned();
        target.call(&module(), tool, json!({"expression": expression}))
    };
    let reads =
        |what: &str| format!("Debian's cron reads the field as `{what}`; random ranges (`~`) are cronie's");
    let refuses =
        |field: &str| format!("Debian's crontab refuses it (bad {field}); random ranges (`~`) are cronie's");
    for (expression, column, value, message) in [
        ("~ 0 1 1 *", 1, "~", refuses("minute")),
        ("~5 0 1 1 *", 1, "~5", refuses("minute")),
        ("5,~ 0 1 1 *", 3, "~", refuses("minute")),
        ("0 0 ~ * *", 5, "~", refuses("day-of-month")),
        ("70~80 * * * *", 1, "70~80", refuses("minute")),
        ("0~59 0 1 1 *", 1, "0~59", reads("0")),
        ("0~59/5 * * * *", 1, "0~59/5", reads("0")),
        ("1,5~,9 * * * *", 3, "5~", reads("1,5")),
        ("5~9,~ * * * *", 1, "5~9", reads("5")),
        ("0 0 * * Mon~fri", 9, "Mon~fri", reads("mon")),
        ("*~ * * * *", 1, "*~", reads("*")),
    ] {
        let (data, _) = on("debian", "cron_validate", expression).unwrap();
        let errors = data["errors"].as_array().unwrap();
        assert_eq!((&data["valid"], errors.len()), (&json!(false), 1), "{data}");
        let error = &errors[0];
        assert_eq!(
            (&error["column"], &error["value"], &error["message"]),
            (&json!(column), &json!(value), &json!(message)),
            "{expression}"
        );
        let problem = on("debian", "cron_next_runs", expression).unwrap_err();
        assert!(problem.message.contains(&message), "{problem:?}");
    }
    for family in ["rhel", "arch", "unknown"] {
        let (data, _) = on(family, "cron_validate", "~ 0 1 1 *").unwrap();
        assert_eq!((&data["valid"], data["warnings"].as_array().unwrap().len()), (&json!(true), 1), "{data}");
        let (data, _) = on(family, "cron_next_runs", "0~59 3 * * *").unwrap();
        assert_eq!(data["runs"], json!([]));
        assert!(notes(&data)[0].contains("drawn at random"), "{data}");
    }
}

#[test]
fn leap_days_are_found_across_a_century() {
    let leap = |expression: &str, after: &str| {
        let data =
            next_runs(json!({"expression": expression, "count": 2, "after": after, "timezone": "UTC"}));
        local(&data).iter().map(|run| run[..10].to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(leap("0 0 29 2 *", "2096-03-01"), ["2104-02-29", "2108-02-29"]);
    // The job runs on Sundays only, because the day of the week starts with a star.
    assert_eq!(leap("0 0 29 2 */7", "2060-03-01"), ["2088-02-29", "2128-02-29"]);
    let all = next_runs(json!({"expression": "0 0 29 2 */7", "count": 100}));
    assert_eq!(all["runs"].as_array().unwrap().len(), 100);
}

#[test]
fn the_end_of_time_is_an_end() {
    let data = next_runs(json!({"expression": "0 0 1 1 *", "count": 100, "after": "9990-01-01T00:00:00Z"}));
    assert_eq!(data["runs"].as_array().unwrap().len(), 9, "{data}");
    assert!(notes(&data)[0].contains("no further run until"), "{data}");
    let data = next_runs(json!({"expression": "* * * * *", "after": "9999-12-30T22:00:00Z"}));
    assert!(data["runs"].is_array());
}

#[test]
fn a_count_outside_of_its_range_is_refused() {
    for count in [0, 101, u32::MAX] {
        assert_eq!(refusal(json!({"expression": "@daily", "count": count})).0, "INVALID_ARGUMENTS");
    }
}
