use std::time::Instant;

use serde_json::json;

use super::*;

#[test]
fn arguments_are_one_object_that_names_nothing_twice() {
    for (given, parsed) in [("{}", json!({})), (r#"{"a": {"b": [1, null]}}"#, json!({"a": {"b": [1, null]}}))]
    {
        assert_eq!(Value::Object(parse(given).unwrap()), parsed);
    }
    let deep = format!("{{\"a\": {}}}", "[".repeat(60_000));
    for (given, said) in [
        ("", "no JSON"),
        ("{", "no JSON"),
        ("{} {}", "no JSON"),
        (r#"{"a": 1, "a": 2}"#, "a stands twice"),
        (&deep, "no JSON"),
        ("null", "no JSON object"),
        ("[]", "no JSON object"),
        (r#""{}""#, "no JSON object"),
    ] {
        let problem = parse(given).unwrap_err();
        assert_eq!((problem.code.as_str(), problem.category), ("INVALID_ARGUMENTS", Category::Validation));
        assert!(problem.message.contains(said), "{given}: {}", problem.message);
    }
    let long = |bytes: usize| format!("{{\"a\":\"{}\"}}", "x".repeat(bytes - 8));
    assert!(parse(&long(MAX_ARGUMENTS)).is_ok());
    assert_eq!(parse(&long(MAX_ARGUMENTS + 1)).unwrap_err().code, "ARGUMENTS_TOO_LARGE");
}

#[test]
fn a_module_gets_an_envelope_as_a_client_does_without_secrets_and_without_what_is_null() {
    let mut envelope = Envelope::success("look", "localhost", Instant::now(), None);
    envelope.data = Some(json!({"password": "hunter2", "text": "a\u{202e}b", "none": null}));
    envelope.summary = Some("all is well".to_owned());
    envelope.severity = Some("info".to_owned());
    let result: Value = serde_json::from_str(&result(envelope).unwrap()).unwrap();
    let expected = json!({"password": "[redacted]", "text": "a\\u{202e}b", "none": null});
    assert_eq!(result["data"], expected);
    assert_eq!((&result["summary"], &result["severity"]), (&json!("all is well"), &json!("info")));
    assert_eq!((&result["status"], &result["tool"]), (&json!("success"), &json!("look")));
    assert_eq!(result.get("command_executed"), None);
}

#[test]
fn the_error_of_an_envelope_is_the_problem_with_all_that_it_tells() {
    let problem = Problem::new("X", Category::NotFound, "no such\u{1b}")
        .remedy("list them")
        .detail("exit_code", json!(4));
    let told = result(Envelope::failure("look", "localhost", Instant::now(), None, problem)).unwrap_err();
    assert_eq!((told.code.as_str(), told.category), ("X", Category::NotFound));
    assert_eq!(
        (told.message.as_str(), &told.remediation[..]),
        ("no such\\u{1b}", &["list them".to_owned()][..])
    );
    assert_eq!(told.details["exit_code"], 4);
}
