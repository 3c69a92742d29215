//! Compares an answer with what a call is expected to give.

use serde_json::Value;

use super::stage::TriedAnswer;
use super::transcripts::TriedCall;
use host_target::recorded::transcript;
use host_text::visible::excerpt;

/// The characters of a value that a reason quotes.
const QUOTED: usize = 200;

/// Every way in which an answer isn't the expected one, in a sentence each.
pub fn differences(call: &TriedCall, answer: &TriedAnswer) -> Vec<String> {
    let mut reasons: Vec<String> = not_recorded(answer).into_iter().map(|line| missing(&line)).collect();
    match (&call.error, answer.error()) {
        (Some(expected), Some(found)) if expected == found => {}
        (Some(expected), Some(_)) => {
            reasons.push(format!("expected the error {expected}, found {}", answer.message()));
        }
        (Some(expected), None) => reasons.push(format!("expected the error {expected}, and it succeeded")),
        (None, Some(_)) => reasons.push(answer.message()),
        (None, None) => {}
    }
    let data = answer.envelope.get("data").unwrap_or(&Value::Null);
    reasons.extend(lacks(&call.has, data, "data"));
    let ran: Vec<String> = answer.asked.ran.iter().map(|ran| line(&ran.argv)).collect();
    let mut rest = ran.iter();
    for expected in &call.runs {
        if !rest.any(|ran| ran == expected) {
            let ran = if ran.is_empty() { "nothing".to_owned() } else { ran.join(", ") };
            reasons.push(format!("expected it to run `{expected}`, and it ran {}", excerpt(&ran, QUOTED)));
            break;
        }
    }
    reasons
}

/// The command lines that the module ran and that are not recorded, each once. What the host itself asks about a target isn't
/// the module's.
fn not_recorded(answer: &TriedAnswer) -> Vec<String> {
    let is_modules = |argv: &&Vec<String>| {
        answer.asked.allowed.iter().any(|command| {
            argv.first() == Some(&command.program) && argv.get(1..) == Some(command.args.as_slice())
        })
    };
    let mut lines: Vec<String> =
        answer.asked.not_recorded.iter().filter(is_modules).map(|argv| line(argv)).collect();
    lines.dedup();
    lines
}

fn missing(line: &str) -> String {
    format!(
        "`{line}` is not recorded: `linux-sysadmin modules record -- {line}` records it on such a machine"
    )
}

/// A command line as a transcript has it.
pub fn line(argv: &[String]) -> String {
    transcript::line(argv).unwrap_or_else(|_| format!("{argv:?}"))
}

/// Says what of the expected is not in the found value. An object has at least the expected members, and a list has an item
/// for each expected one, in any order.
fn lacks(expected: &Value, found: &Value, at: &str) -> Option<String> {
    let differs = || {
        let shown = |value: &Value| excerpt(&value.to_string(), QUOTED);
        Some(format!("{at}: expected {}, found {}", shown(expected), shown(found)))
    };
    match (expected, found) {
        (Value::Null, _) => None,
        (Value::Object(expected), Value::Object(found)) => {
            expected.iter().find_map(|(name, expected)| match found.get(name) {
                Some(found) => lacks(expected, found, &format!("{at}.{name}")),
                None => Some(format!("{at} has no member {name}")),
            })
        }
        (Value::Array(expected), Value::Array(items)) => {
            let is_missing =
                |expected: &&Value| !items.iter().any(|item| lacks(expected, item, at).is_none());
            expected.iter().find(is_missing).map(|missing| {
                let missing = excerpt(&missing.to_string(), QUOTED);
                format!("{at}: none of its {} items has {missing}", items.len())
            })
        }
        (expected, found) if expected == found => None,
        _ => differs(),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::*;
    use host_base::Command;
    use host_target::recorded::{Asked, RanCommand};

    #[test]
    fn a_value_has_at_least_what_is_expected_of_it() {
        let found = json!({"name": "a", "rows": [{"n": 1, "m": 2}, {"n": 3}]});
        for (expected, reason) in [
            (json!(null), None),
            (json!({}), None),
            (json!({"name": "a"}), None),
            (json!({"rows": [{"n": 3}]}), None),
            (json!({"rows": [{"n": 3}, {"m": 2}]}), None),
            (json!({"name": "b"}), Some(r#"data.name: expected "b", found "a""#)),
            (json!({"none": 1}), Some("data has no member none")),
            (json!({"rows": [{"n": 2}]}), Some(r#"data.rows: none of its 2 items has {"n":2}"#)),
            (json!([1]), Some("data: expected [1], found")),
        ] {
            match (lacks(&expected, &found, "data"), reason) {
                (None, None) => {}
                (Some(found), Some(reason)) if found.starts_with(reason) => {}
                (found, _) => panic!("{expected}: {found:?}"),
            }
        }
    }

    fn answer(envelope: Value, ran: &[&str], not_recorded: &[&str]) -> TriedAnswer {
        let words = |line: &&str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let command = |line: &&str| {
            let words = words(line);
            Command::new(words[0].clone(), words[1..].to_vec(), Duration::from_secs(1))
        };
        TriedAnswer {
            envelope: envelope.as_object().unwrap().clone(),
            asked: Asked {
                ran: ran.iter().map(|line| RanCommand { argv: words(line), changes: false }).collect(),
                allowed: ran.iter().map(command).collect(),
                not_recorded: not_recorded.iter().map(words).collect(),
                ..Asked::default()
            },
        }
    }

    #[test]
    fn an_error_is_expected_or_told() {
        let call = |error: Option<&str>| TriedCall {
            tool: "look".to_owned(),
            error: error.map(str::to_owned),
            ..TriedCall::default()
        };
        let good = answer(json!({"status": "success"}), &[], &[]);
        let failed =
            answer(json!({"status": "error", "error_code": "NOT_FOUND", "message": "none"}), &[], &[]);
        assert!(differences(&call(None), &good).is_empty());
        assert!(differences(&call(Some("NOT_FOUND")), &failed).is_empty());
        assert_eq!(differences(&call(None), &failed), ["NOT_FOUND: none"]);
        assert_eq!(
            differences(&call(Some("OTHER")), &failed),
            ["expected the error OTHER, found NOT_FOUND: none"]
        );
        assert_eq!(differences(&call(Some("OTHER")), &good), ["expected the error OTHER, and it succeeded"]);
    }

    #[test]
    fn commands_are_expected_in_their_order_and_have_to_be_recorded() {
        let call = |runs: &[&str]| TriedCall {
            tool: "look".to_owned(),
            runs: runs.iter().map(|line| (*line).to_owned()).collect(),
            ..TriedCall::default()
        };
        let ran = answer(json!({"status": "success"}), &["a", "b x", "c"], &[]);
        assert!(differences(&call(&["a", "c"]), &ran).is_empty());
        assert_eq!(differences(&call(&["c", "a"]), &ran), ["expected it to run `a`, and it ran a, b x, c"]);
        // The last command is the host's own question, which no author records.
        let unknown = answer(json!({"status": "success"}), &["b x"], &["b x", "systemctl show"]);
        let reasons = differences(&call(&[]), &unknown);
        assert_eq!(reasons.len(), 1, "{reasons:?}");
        assert!(reasons[0].starts_with("`b x` is not recorded"), "{reasons:?}");
    }
}
