//! The program understands older spellings of tools, arguments and values, mentions them once, and shows them nowhere else.

use linux_sysadmin_tests::{Client, Home, component, guest, modules};
use serde_json::{Value, json};

/// Arguments with every kind of older spelling at once.
fn older() -> Value {
    json!({
        "lv": "data", "resize_fs": true, "packages": ["nginx"], "action": "disable_x11",
        "actions": ["disable_root_login", "disable_x11"],
    })
}

/// The same arguments in today's spelling.
fn real() -> Value {
    json!({
        "lv_name": "data", "resize_filesystem": true, "package": ["nginx"], "action": "disable_x11_forwarding",
        "actions": ["disable_root_login", "disable_x11_forwarding"],
    })
}

async fn open(home: &Home) -> Client {
    Client::open(home, &guest("renamed"), "2025-06-18").await.0
}

#[tokio::test]
async fn an_older_spelling_is_the_same_call_and_the_answer_says_once_what_it_is_called_now() {
    let home = Home::new();
    let mut client = open(&home).await;
    let now = client.envelope("renamed_tell", real()).await;
    assert_eq!(now["data"], real(), "{now}");
    assert!(now.get("notes").is_none(), "{now}");
    let once = client.envelope("renamed_history", older()).await;
    let (_, at_the_terminal) = home.call(&guest("renamed"), "renamed_history", older());
    for envelope in [once, at_the_terminal] {
        assert_eq!((&envelope["tool"], &envelope["data"]), (&json!("renamed_tell"), &real()), "{envelope}");
        let [note] = envelope["notes"].as_array().expect("notes").as_slice() else { panic!("{envelope}") };
        let note = note.as_str().expect("a sentence");
        for (said, real) in [
            ("renamed_history", "renamed_tell"),
            ("lv", "lv_name"),
            ("resize_fs", "resize_filesystem"),
            ("packages", "package"),
            ("action disable_x11", "disable_x11_forwarding"),
            ("actions disable_x11", "disable_x11_forwarding"),
        ] {
            assert!(note.contains(&format!("{said} as {real}")), "{said} {real}: {note}");
        }
    }
    let listing =
        client.envelope("renamed_status", json!({"path": "/srv", "limit": 1, "filter": "srv"})).await;
    assert_eq!((&listing["tool"], &listing["total"]), (&json!("renamed_list"), &json!(1)), "{listing}");
    assert_eq!(listing["data"], json!([{"destination": "/srv"}]));
}

#[test]
fn what_is_typed_by_an_older_name_is_read_as_what_the_argument_takes() {
    let home = Home::new();
    let args = ["call", "renamed_say", "resize_fs=true", "packages=[\"nginx\"]", "name=5"];
    let output = home.run(&guest("renamed"), &args);
    let envelope: Value = serde_json::from_slice(&output.stdout).expect("an envelope");
    let expected = json!({"resize_filesystem": true, "package": ["nginx"], "lv_name": "5"});
    assert_eq!(envelope["data"], expected, "{envelope}");
}

#[tokio::test]
async fn no_list_and_no_schema_has_an_older_spelling() {
    let home = Home::new();
    let mut client = open(&home).await;
    let listed = client.request("tools/list", json!({})).await["result"]["tools"].to_string();
    let shown = String::from_utf8(home.run(&guest("renamed"), &["tools", "--json"]).stdout).expect("text");
    for text in [listed, shown] {
        assert!(text.contains("renamed_tell") && text.contains("\"resize_filesystem\""), "{text}");
        for older in
            ["renamed_say", "renamed_history", "resize_fs\"", "packages", "\"disable_x11\"", "\"path\""]
        {
            assert!(!text.contains(older), "{older} is in {text}");
        }
    }
}

#[tokio::test]
async fn what_cannot_be_put_right_is_an_error_of_real_names() {
    let home = Home::new();
    let mut client = open(&home).await;
    for (given, said) in [
        (json!({"package": ["a"], "packages": ["a"]}), "package and packages are one argument"),
        (json!({"name": "a", "lv": "b"}), "lv and name are one argument: say lv_name alone"),
        (json!({"packages": true}), "package (said as packages): "),
        (json!({"name": null, "unknown": 1}), "'unknown' was unexpected"),
    ] {
        let envelope = client.envelope("renamed_say", given).await;
        assert_eq!(
            (&envelope["error_code"], &envelope["tool"]),
            (&json!("INVALID_ARGUMENTS"), &json!("renamed_tell")),
            "{envelope}"
        );
        let message = envelope["message"].as_str().expect("a message");
        assert!(message.starts_with("renamed_tell doesn't take") && message.contains(said), "{message}");
        assert!(
            envelope["notes"][0].as_str().is_some_and(|note| note.contains("renamed_say as renamed_tell"))
        );
        let takes = "renamed_tell takes action, actions, lv_name, package, resize_filesystem";
        let steps = envelope["remediation"].as_array().expect("steps");
        assert!(steps.contains(&json!(takes)), "{envelope}");
    }
    let typo = client.call("renamed_tel", json!({})).await;
    assert!(
        typo["message"].as_str().is_some_and(|said| said.contains("Did you mean renamed_tell?")),
        "{typo}"
    );
}

#[test]
fn on_record_is_the_real_call_and_what_the_tool_was_called() {
    let home = Home::new();
    for (tool, called_as) in [("renamed_history", json!("renamed_history")), ("renamed_tell", Value::Null)] {
        home.call(&guest("renamed"), tool, older());
        let call = home.audit().pop().expect("a record");
        assert_eq!((&call["tool"], &call["called_as"]), (&json!("renamed_tell"), &called_as), "{call}");
        assert_eq!(call["arguments"], real(), "{call}");
    }
}

#[test]
fn an_alias_never_takes_the_name_of_a_tool_that_ships() {
    let home = Home::new();
    let file = component("captor");
    let file = file.to_str().expect("UTF-8");
    let adding = ["modules", "add", file, "--replace"];
    for output in [home.add(&component("captor")), home.run(&modules(), &adding)] {
        assert_eq!(output.status.code(), Some(1));
        let said = String::from_utf8_lossy(&output.stderr);
        let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
        let reason = "cron_validate means the tool cron_validate of module cron, which comes with the host";
        assert!(said.contains(reason), "{said}");
    }
    let (_, answer) = home.call(&modules(), "cron_validate", json!({"expression": "* * * * *"}));
    assert_eq!(answer["data"]["valid"], true, "{answer}");
}

#[test]
fn tools_that_ship_take_older_spellings() {
    let home = Home::new();
    // Each call is refused by what the argument says under its real name.
    for (tool, arguments, real, code) in [
        ("lvm_status", json!({"vg_name": ""}), "lvm_list", None),
        (
            "lvm_create_lv",
            json!({"vg": "vg0", "name": "data", "size": "10"}),
            "lvm_create_lv",
            Some("INVALID_SIZE"),
        ),
        (
            "lvm_resize",
            json!({"lv_path": "vg0/data", "size": "-", "resize_fs": true}),
            "lvm_resize",
            Some("INVALID_SIZE"),
        ),
        ("mount_remove", json!({"device": "/lsa\nnone"}), "mount_remove", Some("INVALID_PATH")),
        ("swap_remove", json!({"device": "-a"}), "swap_remove", Some("INVALID_PATH")),
        ("bak_list", json!({"path": "relative"}), "bak_list", Some("INVALID_DESTINATION")),
        (
            "bak_schedule",
            json!({"name": "a.b", "retention_days": 7}),
            "bak_schedule",
            Some("INVALID_SCHEDULE_NAME"),
        ),
        (
            "bak_restore",
            json!({"source": "/srv/x", "destination": "relative"}),
            "bak_restore",
            Some("INVALID_PATH"),
        ),
    ] {
        let (_, answer) = home.call(&modules(), tool, arguments);
        assert_eq!(answer["tool"], real, "{answer}");
        if let Some(code) = code {
            assert_eq!(answer["error_code"], code, "{answer}");
        }
    }
}

#[test]
fn an_operator_is_shown_what_a_module_answers_to() {
    let file = component("renamed");
    let output = Home::new().run(&modules(), &["modules", "inspect", file.to_str().expect("UTF-8")]);
    let said = String::from_utf8_lossy(&output.stdout);
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    for word in [
        "answers to renamed_history; answers to renamed_say;",
        "takes resize_fs as resize_filesystem;",
        "takes disable_x11 as disable_x11_forwarding, in actions",
    ] {
        assert!(said.contains(word), "{word} is not in: {said}");
    }
}
