//! A wrong call works where it can mean one thing only, or is answered with the right call written out. Every argument of
//! every tool says what it is, and the list of tools takes little of a model's context.

use std::collections::BTreeMap;

use linux_sysadmin_tests::{Home, expected, modules};
use serde::Deserialize;
use serde_json::Value;

/// The most bytes that a tool takes in the list of tools, on average.
const BYTES_OF_TOOL: usize = 500;

/// A wrong call.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrongCall {
    /// The tool that is called.
    tool: String,
    arguments: Value,
    /// The arguments that the tool gets, where the call works.
    means: Option<Value>,
    /// The error code, where the call is refused.
    code: Option<String>,
    /// The step of the answer that has the right call, where the call is refused.
    call: Option<String>,
}

fn wrong_calls() -> Vec<WrongCall> {
    let text = include_str!("../../data/wrong_calls.yaml");
    serde_yaml::from_str(text).expect("the data")
}

#[test]
fn a_wrong_call_works_or_is_answered_with_the_right_one() {
    let home = Home::new();
    let calls = wrong_calls();
    assert!(calls.len() >= 60, "{}", calls.len());
    let mut wrong = Vec::new();
    for WrongCall { tool, arguments, means, code, call } in calls {
        let (_, answer) = home.call(&modules(), &tool, arguments.clone());
        let shown = format!("{tool} {arguments}: {answer}");
        let is_call = |record: &Value| record["event"] == "call";
        let recorded = home.audit().into_iter().rfind(is_call).expect("a record");
        match (means, code, call) {
            (Some(means), None, None) => {
                let is_dry = !expected(&tool).changes() || means["dry_run"] == true;
                assert!(is_dry, "{tool} {arguments} could change this machine");
                let refused = answer["message"].to_string().contains("doesn't take these arguments");
                let note = answer["notes"].as_array().is_some_and(|notes| {
                    notes.iter().filter_map(Value::as_str).any(|note| note.starts_with("understood: "))
                });
                if refused || !note || recorded["arguments"] != means {
                    wrong.push(format!("{shown}\n  with {}", recorded["arguments"]));
                }
            }
            (None, Some(code), Some(call)) => {
                let steps = answer["remediation"].as_array().cloned().unwrap_or_default();
                if answer["error_code"] != *code || !steps.contains(&Value::from(call)) {
                    wrong.push(shown);
                }
            }
            _ => wrong.push(format!("{tool} {arguments}: expected `means`, or `code` and `call`")),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn tools() -> (Vec<Value>, String) {
    let output = Home::new().run(&modules(), &["tools", "--json"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let listed: Vec<Value> = serde_json::from_slice(&output.stdout).expect("a list of tools");
    // The client gets the list without blanks.
    let sent = serde_json::to_string(&listed).expect("JSON");
    (listed, sent)
}

#[test]
fn every_argument_says_what_it_is_and_stands_alone() {
    let mut wrong = Vec::new();
    for tool in tools().0 {
        let arguments = tool["inputSchema"]["properties"].as_object().expect("its arguments").clone();
        for (name, argument) in arguments {
            let description = argument["description"].as_str().unwrap_or_default();
            let words = description.to_lowercase();
            let leans = ["as for ", "like for ", "see "].iter().any(|begin| words.starts_with(begin));
            if description.is_empty() || leans || description.ends_with('.') {
                wrong.push(format!("{} {name}: {description:?}", tool["name"]));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_list_of_tools_takes_little_of_a_models_context() {
    let (listed, sent) = tools();
    let average = sent.len() / listed.len();
    let mut sizes: Vec<(usize, String)> =
        listed.iter().map(|tool| (tool.to_string().len(), tool["name"].to_string())).collect();
    sizes.sort();
    sizes.reverse();
    sizes.truncate(20);
    assert!(average <= BYTES_OF_TOOL, "{average} bytes on average; the largest: {sizes:?}");
}

#[test]
fn a_tool_that_may_lose_something_says_so_and_one_that_looks_has_no_such_hint() {
    // What these words of a name do can't be taken back by the next call.
    let losing = [
        "clean", "delete", "edit", "purge", "reboot", "remove", "resize", "restart", "restore", "rollback",
        "shutdown", "signal", "start", "stop", "write",
    ];
    let mut kept = 0;
    for tool in tools().0 {
        let (name, hints) = (tool["name"].as_str().expect("a name"), &tool["annotations"]);
        let looks = !expected(name).changes();
        assert_eq!(hints["readOnlyHint"], looks, "{tool}");
        assert_eq!(hints["destructiveHint"].is_boolean(), !looks, "{tool}");
        assert!(!looks || hints.get("idempotentHint").is_none(), "{tool}");
        let loses = name.split('_').any(|word| losing.contains(&word));
        assert!(!loses || hints["destructiveHint"] == true, "{name} loses something");
        kept += usize::from(hints["destructiveHint"] == false);
    }
    assert!(kept > 10, "{kept}");
}

#[test]
fn one_word_names_the_same_thing_in_all_tools() {
    // The other words are understood, but no schema has them.
    let others = BTreeMap::from([
        ("package", &["packages", "package_name", "pkg"][..]),
        ("service", &["unit", "service_name", "unit_name"]),
        ("user", &["username", "account", "login"]),
        ("path", &["filename", "file_path", "filepath"]),
        ("pid", &["pids", "process_id"]),
    ]);
    for tool in tools().0 {
        let arguments = tool["inputSchema"]["properties"].as_object().expect("its arguments").clone();
        for (word, others) in &others {
            for other in *others {
                assert!(!arguments.contains_key(*other), "{} has {other} for {word}", tool["name"]);
            }
        }
    }
}
