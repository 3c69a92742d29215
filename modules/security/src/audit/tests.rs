#![allow(clippy::unwrap_used)]

use linux_sysadmin_sdk::testkit::FakeTarget;
use serde_json::{Value, json};

use super::*;

const ACCEPTED: &str = "/etc/linux-sysadmin/security/accepted.yaml";
/// 2026-11-28
const NOW: f64 = 1_795_824_000.0;

/// A machine with two sockets that nobody declares, and of which nothing else can be seen.
fn host(ports: &[u16]) -> FakeTarget {
    let line = |port: &u16| format!("tcp LISTEN 0 1 0.0.0.0:{port} *:* users:((\"nc\",pid=32,fd=6))\n");
    let sockets: String = ports.iter().map(line).collect();
    FakeTarget::new().at(NOW).answer(&["ss", "-Hltunp"], 0, sockets, "")
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
    assert!(summary.contains(&format!("of {} checks", CHECKS.len())), "{summary}");
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
