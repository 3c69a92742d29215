//! Programs that print nothing, another language, no text, or more than is kept: no tool makes a weakness of it, and none says
//! that all is well. The outputs are written by hand. What a single program of a tool prints is tested beside the tool.
#![allow(clippy::unwrap_used)]

use linux_sysadmin_sdk::knowledge::{ConfigFile, Profile};
use linux_sysadmin_sdk::testkit::{FakeTarget, profile};
use module_security::module;
use serde_json::json;

/// A machine on which every program prints this.
fn target(package_manager: &str, text: &str) -> FakeTarget {
    let config = ConfigFile {
        path: "/etc/nginx/nginx.conf".into(),
        what: "x".into(),
        main: true,
        optional: false,
        generated: false,
        apply: None,
    };
    let mut target = FakeTarget::new()
        .account("root")
        .profile(Profile { config: vec![config], ..profile("nginx") })
        .file("/etc/passwd", "root:x:0:0:root:/root:/bin/bash\n")
        .file("/proc/self/mountinfo", "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n")
        .otherwise(0, text);
    target.distro.package_manager = package_manager.to_owned();
    target.distro.mac_system = "apparmor".to_owned();
    target.distro.mac_mode = Some("enforcing".to_owned());
    target
}

/// Nothing, another language, no text, lines without end, and more than is kept.
fn texts() -> [String; 5] {
    [
        String::new(),
        "Fehler: alles ist anders als erwartet\n".to_owned(),
        "\u{fffd}\0\u{1b}[31m\n\n\0".to_owned(),
        "x".repeat(200_000),
        "x y z\n".repeat(300_000),
    ]
}

#[test]
fn no_tool_makes_a_weakness_of_what_it_does_not_understand_or_calls_it_well() {
    for text in texts() {
        for (tool, package_manager) in [
            ("sec_check_users", "apt"),
            ("sec_check_suid", "apt"),
            ("sec_check_listening", "apt"),
            ("sec_check_ssh", "apt"),
            ("sec_update_check", "apt"),
            ("sec_update_check", "dnf"),
            ("sec_fail2ban_status", "apt"),
            ("sec_compliance", "apt"),
            ("sec_audit", "apt"),
            ("sec_audit", "dnf"),
        ] {
            let about = format!("{tool} {package_manager} {text:.20}");
            let (data, reply) = match target(package_manager, &text).call(&module(), tool, json!({})) {
                Ok(answer) => answer,
                Err(problem) => {
                    let codes = ["UNEXPECTED_OUTPUT", "OUTPUT_TOO_LARGE", "COMMAND_FAILED"];
                    assert!(codes.contains(&problem.code.as_str()), "{about}: {problem:?}");
                    assert!(problem.message.len() < 2000, "{about}: {}", problem.message.len());
                    continue;
                }
            };
            assert!(data.get("findings").is_none() && data.get("failed").is_none(), "{about}: {data}");
            assert!(data.to_string().len() < 10_000, "{about}: {}", data.to_string().len());
            // A machine may have no sockets, no such programs and no advisories.
            let may_be_empty = matches!(
                (tool, package_manager),
                ("sec_check_listening" | "sec_check_suid", _) | ("sec_update_check", "dnf")
            );
            if !(text.is_empty() && may_be_empty) {
                let summary = reply.summary.unwrap_or_default();
                assert!(data["unseen"].is_array(), "{about}: {summary} {data}");
            }
        }
    }
}

#[test]
fn what_lists_denials_and_certificates_takes_nothing_for_one() {
    for text in texts() {
        let about = format!("{text:.20}");
        let (data, _) = target("apt", &text).call(&module(), "sec_mac_status", json!({})).unwrap();
        assert!(data.get("denials").is_none() && data.get("findings").is_none(), "{about}: {data}");
        let (data, reply) = target("apt", &text).call(&module(), "cert_list", json!({})).unwrap();
        assert_eq!(data, json!([]), "{about}: {:?}", reply.notes);
    }
}
