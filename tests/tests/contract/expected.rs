//! Every module brings what the tests of every tool need: `modules/NAME/tests/expected.yaml`. Each message names the file
//! and what is to be added there.

use linux_sysadmin_tests::{ExpectedModule, ExpectedTool, Home, expected_modules, file_of, modules, shipped};
use serde_json::Value;

/// The faults in a file's description of a tool, by the tool as clients see it.
fn faults(expected: &ExpectedTool, listed: &Value) -> Vec<String> {
    let mut faults = Vec::new();
    match (listed["annotations"]["readOnlyHint"] == true, &expected.needs) {
        (false, None) => faults.push(
            "changes something: add `needs`, which is `root`, `nothing` or a program that the image `bare` lacks"
                .to_owned(),
        ),
        (true, Some(_)) => faults.push("only looks: take `needs` away".to_owned()),
        _ => {}
    }
    match (expected.same.is_empty(), &expected.not_compared) {
        (true, None) => faults.push(
            "has no calls to compare: add `same`, or the reason as `not_compared` where it works on the server's own machine"
                .to_owned(),
        ),
        (false, Some(_)) => faults.push("has both `same` and `not_compared`: take one of them away".to_owned()),
        _ => {}
    }
    if expected.changes() && !expected.instead.is_empty() {
        faults.push("changes something, and only looks are measured: take `instead` away".to_owned());
    }
    if expected.same.is_empty() && !expected.may_differ.is_empty() {
        faults.push("has no calls to compare: take `may_differ` away".to_owned());
    }
    let required = listed["inputSchema"]["required"].as_array().into_iter().flatten();
    for argument in required.filter_map(Value::as_str) {
        if expected.harmless.get(argument).is_none() {
            faults.push(format!("requires {argument}: add it to `harmless`"));
        }
        if expected.measured.as_ref().is_some_and(|measured| measured.get(argument).is_none()) {
            faults.push(format!("requires {argument}: add it to `measured`"));
        }
    }
    faults
}

/// The modules whose files describe a tool.
fn describing(tool: &str) -> Vec<(&'static ExpectedModule, &'static ExpectedTool)> {
    let all = expected_modules().iter().flat_map(|module| module.tools.iter().map(move |one| (module, one)));
    all.filter(|(_, one)| one.name == tool).collect()
}

#[test]
fn every_tool_is_described_in_its_modules_folder() {
    let output = Home::new().run(&modules(), &["tools", "--json"]);
    let listed: Vec<Value> = serde_json::from_slice(&output.stdout).expect("a list of tools");
    let mut wrong = Vec::new();
    for tool in &listed {
        let name = tool["name"].as_str().expect("a name");
        let having: Vec<_> =
            shipped().iter().filter(|module| module.tools.iter().any(|one| one == name)).collect();
        match describing(name)[..] {
            [] => wrong.push(format!("{}: add the tool {name}", file_of(&having[0].name))),
            [(module, expected)] => wrong.extend(
                faults(expected, tool)
                    .iter()
                    .map(|fault| format!("{}: {name} {fault}", file_of(&module.name))),
            ),
            [(one, _), (other, _), ..] => wrong.push(format!(
                "{} and {} both describe {name}: take it away from one of them",
                file_of(&one.name),
                file_of(&other.name)
            )),
        }
    }
    for module in expected_modules() {
        if module.tools.iter().all(|tool| tool.found_by.is_empty()) {
            let file = file_of(&module.name);
            wrong.push(format!("{file}: say of one of the tools which needs it is `found_by`"));
        }
        let own = shipped().iter().find(|shipped| shipped.name == module.name).map(|shipped| &shipped.tools);
        let is_unknown = |tool: &&ExpectedTool| own.is_none_or(|own| !own.contains(&tool.name));
        let unknown = module.tools.iter().filter(is_unknown);
        wrong.extend(unknown.map(|tool| {
            format!("{}: take {} away, which is no tool of this module", file_of(&module.name), tool.name)
        }));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
