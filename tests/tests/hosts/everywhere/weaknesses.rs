//! Tests on a real host what the security checks find: everything that is planted, and nothing on a host as it is installed.
//! What is planted, and a second implementation of the checks of `sec_compliance`, are data of the module.

use linux_sysadmin_tests::{Changing, Client, way};
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize)]
struct Planted {
    kind: String,
    subject: Option<String>,
    tool: String,
    /// A program without which it can't be planted.
    needs: Option<String>,
    plant: String,
    clean: String,
}

#[derive(Deserialize)]
struct SecondCheck {
    id: String,
    /// Ends with 0 where the check passes, with 1 where it fails, and with 2 where it doesn't apply.
    holds: String,
}

fn planted() -> Vec<Planted> {
    let data = include_str!("../../../../modules/security/tests/planted.yaml");
    serde_yaml::from_str(data).expect("planted weaknesses")
}

fn second_checks() -> Vec<SecondCheck> {
    let data = include_str!("../../../../modules/security/tests/compliance_commands.yaml");
    serde_yaml::from_str(data).expect("commands")
}

/// The script that takes everything away that may be planted.
fn clean() -> String {
    planted().iter().map(|row| format!("( {} ) || true\n", row.clean)).collect()
}

/// The findings of an answer as `KIND SUBJECT`, without evidence.
fn findings(envelope: &Value) -> Vec<String> {
    let entries = envelope["data"]["findings"].as_array().cloned().unwrap_or_default();
    let of = |entry: &Value| {
        let kind = entry["kind"].as_str().expect("a kind").to_owned();
        let subjects = entry["subjects"].as_array().cloned().unwrap_or_default();
        let plain =
            |subject: &Value| subject.as_str().and_then(|text| text.split(": ").next()).map(str::to_owned);
        subjects.iter().filter_map(plain).map(|subject| format!("{kind} {subject}")).collect::<Vec<_>>()
    };
    entries.iter().flat_map(of).collect()
}

/// Holds the outcome of each of the thirty checks against that of the second implementation.
async fn compliance_agrees(machine: &Changing, client: &mut Client) -> Value {
    let envelope = client.envelope("sec_compliance", json!({"all": true})).await;
    let data = &envelope["data"];
    let named = |member: &str, id: &str| {
        let list = data[member].as_array().cloned().unwrap_or_default();
        list.iter().any(|one| one == id || one["id"] == id)
    };
    let script: String = second_checks()
        .iter()
        .map(|check| format!("( {} ) > /dev/null; echo {} $?\n", check.holds, check.id))
        .collect();
    let said = machine.sh(&script);
    assert_eq!(said.lines().count(), 30, "{said}");
    for line in said.lines() {
        let (id, code) = line.split_once(' ').expect("an id and a code");
        let member = match code {
            "0" => "passed_ids",
            "2" => "not_applicable",
            _ => "failed",
        };
        assert!(named(member, id), "{line}: {envelope}");
    }
    envelope
}

#[tokio::test]
async fn a_host_as_it_is_installed_has_nothing_weak() {
    let test = "a_host_as_it_is_installed_has_nothing_weak";
    // The lists of packages may be older than the image's tests.
    let fresh = "test ! -d /var/lib/apt/lists/partial || touch /var/lib/apt/lists/partial";
    let Some(machine) = Changing::by(way(), test, fresh, &clean()) else { return };
    let mut client = machine.serve_default().await;
    let envelope = client.envelope("sec_audit", json!({})).await;
    assert_eq!(envelope["data"].get("findings"), None, "{envelope}");
    compliance_agrees(&machine, &mut client).await;
}

#[tokio::test]
async fn each_planted_weakness_is_found_and_what_is_accepted_stays_out() {
    let test = "each_planted_weakness_is_found_and_what_is_accepted_stays_out";
    let own = "/etc/linux-sysadmin/security";
    let clean = format!("{}rm -rf {own}\n", clean());
    let Some(machine) = Changing::by(way(), test, ":", &clean) else { return };
    let mut client = machine.serve_default().await;
    let rows = planted().into_iter();
    let has = |row: &Planted| {
        row.needs.as_ref().is_none_or(|program| machine.holds(&format!("command -v {program}")))
    };
    let rows: Vec<Planted> = rows.filter(has).collect();
    assert!(rows.len() >= 25, "{}", rows.len());
    machine.sh(&rows.iter().map(|row| format!("{}\n", row.plant)).collect::<String>());

    let compliance = compliance_agrees(&machine, &mut client).await;
    let mut tools: Vec<&str> = rows.iter().map(|row| row.tool.as_str()).collect();
    tools.sort_unstable();
    tools.dedup();
    for tool in tools {
        let envelope = match tool {
            "sec_compliance" => compliance.clone(),
            _ => client.envelope(tool, json!({})).await,
        };
        let found = findings(&envelope);
        for row in rows.iter().filter(|row| row.tool == tool) {
            let is_found = match &row.subject {
                Some(subject) => found.contains(&format!("{} {subject}", row.kind)),
                None => {
                    let failed = envelope["data"]["failed"].as_array().cloned().unwrap_or_default();
                    failed.iter().any(|one| one["id"] == row.kind.as_str())
                }
            };
            assert!(is_found, "{} {:?}: {envelope}", row.kind, row.subject);
        }
    }

    // All at once, but for what is accepted; then the same is compared with what is left after a part was mended.
    machine.sh(&format!(
        "mkdir -p {own} && printf '%s\\n' '- {{kind: user-uid-0, subject: w2-lsa, reason: a test, until: 2999-01-01}}' > {own}/accepted.yaml"
    ));
    let before = client.envelope("sec_audit", json!({})).await;
    let all = findings(&before);
    assert_eq!(
        (&before["data"]["accepted"], all.iter().any(|one| one == "user-uid-0 w2-lsa")),
        (&json!(1), false)
    );
    assert!(all.contains(&"suid-unexpected /usr/bin/shuf".to_owned()), "{before}");
    machine.sh("chmod u-s /usr/bin/shuf && install -m 4755 /bin/true /usr/local/bin/lsa-late && rm -f /run/reboot-required");
    let after = client.envelope("sec_audit", json!({"before": before["data"]["findings"]})).await;
    machine.sh("rm /usr/local/bin/lsa-late");
    let gone = after["data"]["gone"].to_string();
    assert!(gone.contains("/usr/bin/shuf") && gone.contains("update-reboot"), "{after}");
    assert!(after["data"]["new"].to_string().contains("suid-unowned /usr/local/bin/lsa-late"), "{after}");
}
