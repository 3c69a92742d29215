//! The list of tools where the operator keeps it short, and the search for tools.

use std::collections::BTreeSet;
use std::fs;

use linux_sysadmin_tests::{Client, Home, expected_tools, modules};
use serde_json::{Value, json};

const FIND: &str = "sysadmin_find_tools";

/// A home whose configuration keeps the list short.
fn home() -> Home {
    let home = Home::new();
    fs::create_dir_all(home.config().parent().expect("a parent")).expect("made");
    fs::write(home.config(), "tools:\n  listing: compact\n").expect("written");
    home
}

async fn list(client: &mut Client) -> Value {
    client.request("tools/list", json!({})).await["result"]["tools"].take()
}

fn names(list: &Value) -> BTreeSet<String> {
    let tools = list.as_array().unwrap_or_else(|| panic!("no list: {list}"));
    tools.iter().map(|tool| tool["name"].as_str().expect("a name").to_owned()).collect()
}

async fn notified(client: &mut Client) {
    client.receive_where(|message| message["method"] == "notifications/tools/list_changed").await;
}

/// A client of this protocol version that is told of changes of the list.
async fn open(home: &Home, version: &str) -> (Client, Value) {
    let (mut client, opened) = Client::open(home, &modules(), version).await;
    if version >= "2026-07-28" {
        let wanted = json!({"notifications": {"toolsListChanged": true}});
        client.ask("subscriptions/listen", wanted).await;
        let is_acknowledged =
            |message: &Value| message["method"] == "notifications/subscriptions/acknowledged";
        client.receive_where(is_acknowledged).await;
    }
    (client, opened)
}

#[tokio::test]
async fn a_short_list_begins_with_a_dozen_tools_in_8_kb() {
    let home = home();
    for version in ["2025-06-18", "2026-07-28"] {
        let (mut client, opened) = open(&home, version).await;
        let instructions = opened["result"]["instructions"].as_str().expect("instructions");
        assert!(instructions.contains("the tool that finds tools"), "{instructions}");
        let list = list(&mut client).await;
        let bytes = list.to_string().len();
        assert!(bytes <= 8000, "{bytes} bytes: {list}");
        let names = names(&list);
        assert!((10..=16).contains(&names.len()), "{names:?}");
        for name in [FIND, "sysadmin_session_info", "triage"] {
            assert!(names.contains(name), "{name} is not in {names:?}");
        }
        client.close().await;
    }
}

#[tokio::test]
async fn tools_that_are_found_get_into_the_list_and_the_client_is_told() {
    let home = home();
    for version in ["2025-06-18", "2026-07-28"] {
        let (mut client, _) = open(&home, version).await;
        let before = names(&list(&mut client).await);
        let found = client.envelope(FIND, json!({"need": "add swap memory"})).await;
        assert_eq!(found["data"]["tools"][0]["name"], "swap_add", "{found}");
        assert!(
            found["notes"][0].as_str().is_some_and(|note| note.contains("are new in your list")),
            "{found}"
        );
        notified(&mut client).await;
        let after = names(&list(&mut client).await);
        let added: BTreeSet<_> = after.difference(&before).cloned().collect();
        let told: BTreeSet<_> = names(&found["data"]["tools"]).difference(&before).cloned().collect();
        assert_eq!(added, told, "{version}");
        assert!(after.is_superset(&before), "{after:?}");
        // What is in the list already is found again, and nothing is new.
        let again = client.envelope(FIND, json!({"need": "add swap memory"})).await;
        assert_eq!((&again["data"], again.get("notes")), (&found["data"], None), "{again}");
        client.close().await;
    }
}

#[tokio::test]
async fn a_tool_that_is_not_in_the_list_can_be_called_and_is_in_it_then() {
    let home = home();
    let (mut client, _) = open(&home, "2025-06-18").await;
    assert!(!names(&list(&mut client).await).contains("cron_validate"));
    let valid = client.envelope("cron_validate", json!({"expression": "* * * * *"})).await;
    assert_eq!(valid["data"]["valid"], true, "{valid}");
    notified(&mut client).await;
    assert!(names(&list(&mut client).await).contains("cron_validate"));
    // What is no tool gets into no list.
    let before = names(&list(&mut client).await);
    assert_eq!(client.call("no_such_tool", json!({})).await["code"], -32602);
    assert_eq!(names(&list(&mut client).await), before);
    client.close().await;
}

#[tokio::test]
async fn a_list_of_all_tools_stays_as_it_is() {
    let home = Home::new();
    let (mut client, opened) = open(&home, "2025-06-18").await;
    assert!(!opened.to_string().contains("finds tools:"), "{opened}");
    let all = names(&list(&mut client).await);
    let output = home.run(&modules(), &["tools", "--json"]);
    assert_eq!(all, names(&serde_json::from_slice(&output.stdout).expect("JSON")));
    let found = client.envelope(FIND, json!({"need": "add swap memory"})).await;
    assert_eq!(found["data"]["tools"][0]["name"], "swap_add", "{found}");
    assert_eq!(found.get("notes"), None, "{found}");
    assert_eq!(names(&list(&mut client).await), all);
    client.close().await;
}

#[tokio::test]
async fn each_tool_is_found_by_the_needs_that_its_module_names() {
    let home = Home::new();
    let (mut client, _) = open(&home, "2025-06-18").await;
    let mut missing = Vec::new();
    for (module, tool) in expected_tools() {
        for need in &tool.found_by {
            let found = client.envelope(FIND, json!({"need": need})).await;
            if !names(&found["data"]["tools"]).contains(&tool.name) {
                missing.push(format!("{}: {need:?} finds {}", module.name, found["data"]));
            }
        }
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
    client.close().await;
}

#[tokio::test]
async fn a_need_that_says_nothing_finds_nothing_and_one_that_is_none_is_refused() {
    let home = home();
    let (mut client, _) = open(&home, "2025-06-18").await;
    let before = names(&list(&mut client).await);
    let nothing = client.envelope(FIND, json!({"need": "zeppelin"})).await;
    assert_eq!(
        (&nothing["status"], &nothing["data"]),
        (&json!("success"), &json!({"tools": []})),
        "{nothing}"
    );
    assert!(nothing["notes"].to_string().contains("There are tools about"), "{nothing}");
    for wrong in [
        json!({}),
        json!({"need": ""}),
        json!({"need": "x".repeat(301)}),
        json!({"need": ["restart", "stop"]}),
        json!({"need": "restart", "more": 1}),
    ] {
        let refused = client.envelope(FIND, wrong.clone()).await;
        assert_eq!(refused["error_code"], "INVALID_ARGUMENTS", "{wrong}: {refused}");
    }
    assert_eq!(names(&list(&mut client).await), before);
    client.close().await;
}
