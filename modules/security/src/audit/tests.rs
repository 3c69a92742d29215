#![allow(clippy::unwrap_used)]

use linux_sysadmin_sdk::knowledge::ConfigFile;
use linux_sysadmin_sdk::testkit::{FakeTarget, profile};
use serde_json::{Value, json};

use super::*;

const ACCEPTED: &str = "/etc/linux-sysadmin/security/accepted.yaml";
/// 2026-11-28
const NOW: f64 = 1_795_824_000.0;

/// A machine with sockets that nobody declares, and of which nothing else can be seen.
fn host(ports: &[u16]) -> FakeTarget {
    let line = |port: &u16| format!("tcp LISTEN 0 1 0.0.0.0:{port} *:* users:((\"nc\",pid=32,fd=6))\n");
    let sockets: String = ports.iter().map(line).collect();
    FakeTarget::new().at(NOW).profile(profile("journald")).answer(&["ss", "-Hltunp"], 0, sockets, "")
}

fn call(host: FakeTarget, arguments: Value) -> Result<(Value, String)> {
    let (data, reply) = host.call(&crate::module(), "sec_audit", arguments)?;
    Ok((data, reply.summary.unwrap()))
}

#[test]
fn a_check_that_fails_hides_nothing_of_the_others() {
    let (data, summary) = call(host(&[7001]), json!({})).unwrap();
    let kinds: Vec<_> = data["findings"].as_array().unwrap().iter().map(|entry| &entry["kind"]).collect();
    assert!(kinds.contains(&&json!("listening-undeclared")), "{data}");
    assert!(data["unseen"].to_string().contains("sec_check_users: "), "{data}");
    assert!(summary.contains("of 7 checks"), "{summary}");
}

#[test]
fn the_checks_wait_for_their_first_commands_together() {
    let config = vec![ConfigFile {
        path: "/etc/nginx/nginx.conf".into(),
        what: "x".into(),
        main: true,
        optional: false,
        generated: false,
        apply: None,
    }];
    let target = || {
        host(&[7001])
            .account("root")
            .profile(linux_sysadmin_sdk::knowledge::Profile { config: config.clone(), ..profile("nginx") })
            .file("/etc/passwd", "root:x:0:0:root:/root:/bin/bash\n")
            .file("/proc/self/mountinfo", "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n")
    };
    let trips = |tool: &str| {
        let target = target();
        let trips = target.trips();
        let _ = target.call(&crate::module(), tool, json!({}));
        trips.get()
    };
    let one_by_one = [
        "sec_check_users",
        "sec_check_listening",
        "sec_check_ssh",
        "sec_update_check",
        "cert_list",
        "sec_check_suid",
        "sec_compliance",
    ]
    .map(trips);
    assert!(one_by_one.iter().all(|trips| *trips > 0), "{one_by_one:?}");
    // The first one of each tool becomes one for all.
    assert_eq!(trips("sec_audit"), one_by_one.iter().sum::<usize>() - 6, "{one_by_one:?}");
}

#[test]
fn the_answer_is_ranked_and_bounded_and_each_finding_says_what_it_breaks() {
    let many: Vec<u16> = (7001..12_001).collect();
    let sockets: String = many
        .iter()
        .map(|port| format!("tcp LISTEN 0 1 0.0.0.0:{port} *:* users:((\"nc\",pid=32,fd=6))\n"))
        .collect();
    let clear = "tcp LISTEN 0 1 0.0.0.0:23 *:* users:((\"telnetd\",pid=33,fd=6))\n";
    let target = FakeTarget::new()
        .at(NOW)
        .profile(profile("journald"))
        .file("/etc/passwd", "root:x:0:0:root:/root:/bin/bash\ntoor:x:0:0::/root:/bin/bash\n")
        .answer(&["ss", "-Hltunp"], 0, format!("{sockets}{clear}"), "");
    let (data, _) = call(target, json!({})).unwrap();
    let entries = data["findings"].as_array().unwrap();
    let severities: Vec<&str> = entries.iter().map(|entry| entry["severity"].as_str().unwrap()).collect();
    assert_eq!(severities, ["critical", "high", "warning", "warning"], "{data}");
    for entry in entries {
        assert!(entry["reference"].is_string() && entry["subjects"][0].is_string(), "{entry}");
    }
    assert_eq!(entries[0]["mend"], json!({"tool": "user_delete", "arguments": {"user": "toor"}}));
    let undeclared = entries.iter().find(|entry| entry["kind"] == "listening-undeclared").unwrap();
    assert_eq!((undeclared["subjects"].as_array().unwrap().len(), &undeclared["more"]), (12, &json!(4988)));
    assert!(data.to_string().len() < 8000, "{}", data.to_string().len());
}

#[test]
fn every_kind_of_weakness_has_a_reference() {
    let planted = include_str!("../../tests/planted.yaml").lines();
    let planted = planted.filter_map(|line| line.strip_prefix("- kind: "));
    let of_sshd = include_str!("../ssh/weaknesses.yaml").lines();
    let of_sshd = of_sshd.filter_map(|line| line.strip_prefix("- kind: "));
    // What sec_compliance checks has its number beside the check.
    let is_check =
        |kind: &&str| ["mode-", "sysctl-", "mount-", "sshd-"].iter().any(|of| kind.starts_with(of));
    let kinds: Vec<&str> = planted.chain(of_sshd).filter(|kind| !is_check(kind)).collect();
    assert!(kinds.len() > 40, "{kinds:?}");
    for kind in kinds {
        let mut found = Found::default();
        found.push(crate::finding::Finding::new(Severity::High, kind, "x", "y"));
        assert!(found.report().findings[0].reference.is_some(), "{kind}");
    }
}

#[test]
fn own_checks_that_are_refused_are_told() {
    let own = host(&[]).file("/etc/linux-sysadmin/security/checks.yaml", "- {id: own-odd}\n");
    let (data, _) = call(own, json!({})).unwrap();
    assert!(data["unseen"].to_string().contains("own checks that aren't in the form"), "{data}");
}

#[test]
fn an_accepted_finding_stays_out_until_its_day() {
    let file = |until: &str| {
        format!("- {{kind: listening-undeclared, subject: '0.0.0.0:7001', reason: a test, until: {until}}}\n")
    };
    let (data, _) = call(host(&[7001, 7002]).file(ACCEPTED, file("2027-01-01")), json!({})).unwrap();
    assert_eq!(data["accepted"], 1);
    assert!(!data["findings"].to_string().contains("7001") && data["findings"].to_string().contains("7002"));
    let (data, _) = call(host(&[7001, 7002]).file(ACCEPTED, file("2026-11-01")), json!({})).unwrap();
    assert!(data["findings"].to_string().contains("7001"));
    let expected = json!(["listening-undeclared 0.0.0.0:7001: a test (until 2026-11-01)"]);
    assert_eq!(data["no_longer_accepted"], expected);
    // It counts again from the beginning of its day on, and not a moment earlier.
    let at = |now: f64| {
        let (data, _) = call(host(&[7001]).file(ACCEPTED, file("2026-11-28")).at(now), json!({})).unwrap();
        data["findings"].to_string().contains("7001")
    };
    assert!(!at(NOW - 1.0) && at(NOW));
}

#[test]
fn a_file_of_accepted_findings_that_others_may_write_is_refused() {
    let metadata = Metadata {
        size: 3,
        mode: 0o664,
        owner: "root".into(),
        group: "root".into(),
        modified_unix: 0,
        is_dir: false,
        is_symlink: false,
    };
    let refused = host(&[]).file(ACCEPTED, "[]").metadata(ACCEPTED, metadata);
    assert_eq!(call(refused, json!({})).unwrap_err().code, "UNTRUSTED_FILE");
    let odd = host(&[]).file(ACCEPTED, "nonsense");
    assert_eq!(call(odd, json!({})).unwrap_err().code, "INVALID_ACCEPTED");
}

#[test]
fn an_earlier_run_is_compared_by_its_own_findings() {
    let (before, _) = call(host(&[7001, 7002]), json!({})).unwrap();
    let (data, summary) = call(host(&[7002, 7003]), json!({"before": before["findings"]})).unwrap();
    assert_eq!(data["new"], json!(["listening-undeclared 0.0.0.0:7003"]));
    assert_eq!(data["gone"], json!(["listening-undeclared 0.0.0.0:7001"]));
    assert!(summary.ends_with("1 new, 1 gone"), "{summary}");
    let many: Vec<u16> = (7001..7021).collect();
    let (cut, _) = call(host(&many), json!({})).unwrap();
    let (data, _) = call(host(&many[..18]), json!({"before": cut["findings"]})).unwrap();
    assert_eq!((data.get("new"), data.get("gone")), (None, None), "{data}");
    let refused = call(host(&[]), json!({"before": [{"kind": "x"}]})).unwrap_err();
    assert_eq!(refused.code, "INVALID_ARGUMENTS");
}
