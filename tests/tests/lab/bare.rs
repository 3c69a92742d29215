//! A host without sudo, cron and much else: what only looks works as far as it can, what changes something says what it
//! needs, and the session says what there isn't; inside the host and over SSH.

use linux_sysadmin_tests::{Client, Machine, Reach, harmless, harmless_error};
use serde_json::{Value, json};

const WAYS: [Reach; 2] = [Reach::Inside("bare1"), Reach::OverSsh("bare1")];

/// What changes something takes root's rights; the module that it is of.
const CHANGES: [(&str, &str); 22] = [
    ("pkg_purge", "packages-apt"),
    ("pkg_remove", "packages-apt"),
    ("pkg_update", "packages-apt"),
    ("svc_start", "services"),
    ("svc_stop", "services"),
    ("svc_restart", "services"),
    ("svc_reload", "services"),
    ("svc_enable", "services"),
    ("svc_disable", "services"),
    ("svc_config_check", "services"),
    ("svc_create_unit", "services"),
    ("svc_edit_unit", "services"),
    ("timer_create", "services"),
    ("timer_modify", "services"),
    ("group_create", "users"),
    ("perms_set", "users"),
    ("sudoers_modify", "users"),
    ("user_create", "users"),
    ("user_delete", "users"),
    ("user_lock", "users"),
    ("user_modify", "users"),
    ("user_unlock", "users"),
];

/// What takes cron, which isn't there.
const OF_CRON: [&str; 2] = ["cron_add", "cron_remove"];

/// What takes no more rights than the account's own, or none on this host.
const OWN: [&str; 10] = [
    "group_delete",
    "job_cancel",
    "pkg_install",
    "pkg_rollback",
    "ssh_authorized_keys",
    "ssh_config_add",
    "ssh_connect",
    "ssh_copy_id",
    "ssh_disconnect",
    "ssh_key_generate",
];

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
                let envelope = client.envelope(&tool, harmless(&tool)).await;
                let code = envelope["error_code"].as_str().unwrap_or_default();
                assert_eq!(code, harmless_error(&tool), "{reach:?} {account} {tool}: {envelope}");
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
        let known: Vec<_> = CHANGES.iter().map(|(tool, _)| *tool).chain(OF_CRON).chain(OWN).collect();
        for (tool, looks) in tools(&mut client).await {
            assert!(looks || known.contains(&tool.as_str()), "{tool} isn't looked at here");
        }
        for tool in OWN {
            let envelope = client.envelope(tool, harmless(tool)).await;
            let code = envelope["error_code"].as_str().unwrap_or_default();
            // Over SSH there is a key that could be copied.
            assert!(code.is_empty() || code == harmless_error(tool), "{reach:?} {tool}: {envelope}");
        }
        for (tool, module) in CHANGES {
            let mut arguments = harmless(tool);
            arguments.as_object_mut().expect("an object").remove("dry_run");
            // What there is on every host.
            if tool == "timer_modify" {
                arguments["name"] = json!("systemd-tmpfiles-clean");
            }
            if tool == "svc_enable" || tool == "svc_start" {
                arguments["service"] = json!("debug-shell");
            }
            let envelope = client.envelope(tool, arguments).await;
            assert_eq!(envelope["error_code"], "PRIVILEGE_REQUIRED", "{reach:?} {tool}: {envelope}");
            assert_eq!(envelope["error_category"], "privilege", "{reach:?} {tool}: {envelope}");
            let fragment = format!("linux-sysadmin modules sudoers {module}");
            assert!(envelope["remediation"].to_string().contains(&fragment), "{reach:?} {tool}: {envelope}");
        }
        for tool in OF_CRON {
            let mut arguments = harmless(tool);
            arguments.as_object_mut().expect("an object").remove("dry_run");
            let envelope = client.envelope(tool, arguments).await;
            assert_eq!(envelope["error_code"], "PROGRAM_NOT_FOUND", "{reach:?} {tool}: {envelope}");
            assert!(envelope["message"].to_string().contains("crontab"), "{reach:?} {tool}: {envelope}");
        }
        machine.is_still(&before, "an account without rights");
    }
}

#[tokio::test]
async fn the_session_says_what_is_missing() {
    for reach in WAYS {
        let Some(machine) = Machine::by(reach, "the_session_says_what_is_missing") else { return };
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
