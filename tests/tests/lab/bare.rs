//! A host without sudo, cron and much else. Tools that only look work as far as they can, tools that change something say
//! what they need, and the session says what is missing, both on the host itself and over SSH.

use linux_sysadmin_tests::{Client, Machine, Reach, expected, expected_tools};
use serde_json::{Value, json};

const WAYS: [Reach; 2] = [Reach::Inside("bare1"), Reach::OverSsh("bare1")];

/// Every tool that is offered, and whether it only looks.
async fn tools(client: &mut Client) -> Vec<(String, bool)> {
    let listed = client.request("tools/list", json!({})).await;
    let tools = listed["result"]["tools"].as_array().unwrap_or_else(|| panic!("{listed}")).clone();
    let read_only = |tool: &Value| tool["annotations"]["readOnlyHint"] == true;
    tools.iter().map(|tool| (tool["name"].as_str().expect("a name").to_owned(), read_only(tool))).collect()
}

#[tokio::test]
async fn what_only_looks_works_without_sudo() {
    for reach in WAYS {
        let Some(machine) = Machine::by(reach, "what_only_looks_works_without_sudo") else { return };
        for account in ["admin", "root"] {
            let mut client = machine.serve_shipped(account, account).await;
            let looking: Vec<_> = tools(&mut client).await.into_iter().filter(|(_, looks)| *looks).collect();
            assert!(looking.len() >= 10, "{looking:?}");
            for (tool, _) in looking {
                let expected = expected(&tool);
                let envelope = client.envelope(&tool, expected.harmless.clone()).await;
                let code = envelope["error_code"].as_str().unwrap_or_default();
                let fails = expected.fails_on_bare.as_ref().unwrap_or(&expected.fails);
                assert_eq!(code, fails, "{reach:?} {account} {tool}: {envelope}");
            }
        }
    }
}

#[tokio::test]
async fn what_changes_something_says_what_it_needs() {
    for reach in WAYS {
        let Some(machine) = Machine::by(reach, "what_changes_something_says_what_it_needs") else { return };
        let mut client = machine.serve_shipped("admin", "admin").await;
        let before = machine.snapshot();
        for (tool, looks) in tools(&mut client).await {
            assert!(looks || expected(&tool).changes(), "{tool} says nothing of what it needs");
        }
        for (module, expected) in expected_tools() {
            let (Some(needs), tool) = (expected.needs.as_deref(), &expected.name) else { continue };
            if let Some(fails) = &expected.fails_on_bare {
                let envelope = client.envelope(tool, expected.harmless.clone()).await;
                assert_eq!(envelope["error_code"], **fails, "{reach:?} {tool}: {envelope}");
                continue;
            }
            if needs == "nothing" {
                let envelope = client.envelope(tool, expected.harmless.clone()).await;
                let code = envelope["error_code"].as_str().unwrap_or_default();
                // Over SSH there is a key that `ssh_copy_id` could copy.
                assert!(code.is_empty() || code == expected.fails, "{reach:?} {tool}: {envelope}");
                continue;
            }
            let envelope = client.envelope(tool, expected.change_on_bare()).await;
            if needs == "root" {
                assert_eq!(envelope["error_code"], "PRIVILEGE_REQUIRED", "{reach:?} {tool}: {envelope}");
                assert_eq!(envelope["error_category"], "privilege", "{reach:?} {tool}: {envelope}");
                let fragment = format!("linux-sysadmin modules sudoers {}", module.name);
                assert!(
                    envelope["remediation"].to_string().contains(&fragment),
                    "{reach:?} {tool}: {envelope}"
                );
            } else {
                assert_eq!(envelope["error_code"], "PROGRAM_NOT_FOUND", "{reach:?} {tool}: {envelope}");
                assert!(envelope["message"].to_string().contains(needs), "{reach:?} {tool}: {envelope}");
            }
        }
        machine.is_still(&before, "an account without rights");
    }
}

#[tokio::test]
async fn the_session_says_what_is_missing() {
    for reach in WAYS {
        let Some(machine) = Machine::by(reach, "the_session_says_what_is_missing") else { return };
        machine.unconfigure("admin");
        let mut client = machine.serve_shipped("admin", "admin").await;
        let session = client.envelope("sysadmin_session_info", json!({})).await;
        let data = &session["data"];
        assert_eq!(data["sudo_available"], false, "{session}");
        assert_eq!(data["degraded_mode"], true, "{session}");
        assert!(data["degraded_reason"].to_string().contains("sudo"), "{session}");
        assert!(data["setup_hints"].as_array().is_some_and(|hints| !hints.is_empty()), "{session}");
        let missing = data["missing"].as_array().unwrap_or_else(|| panic!("{session}"));
        for program in ["sudo", "crontab"] {
            let there = machine.holds(&format!("command -v {program}"));
            assert_eq!(missing.contains(&json!(program)), !there, "{program}: {session}");
            assert!(!there, "{program} is on a host that is to be bare");
        }
        let mut root = machine.serve_shipped("root", "root").await;
        let root = root.envelope("sysadmin_session_info", json!({})).await;
        assert_eq!(root["data"].get("degraded_mode"), None, "{root}");
    }
}
