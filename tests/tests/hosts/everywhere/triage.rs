//! Tests on a real host that `triage` finds planted faults by a complaint about each, and that the call which it suggests works.

use linux_sysadmin_tests::{Changing, Client, expected_tools, way};
use serde_json::{Value, json};

const CLEAN: &str = r"
systemctl stop lsa-shop 2>/dev/null
rm -f /etc/systemd/system/lsa-shop.service /etc/cron.d/lsa-report*
systemctl daemon-reload
systemctl reset-failed lsa-shop 2>/dev/null
umount /mnt/lsa-full 2>/dev/null
rm -rf --one-file-system /mnt/lsa-full
";

/// Plants a unit whose program is missing, a full file system in memory, an expired account, and a file that cron ignores:
/// Debian's for its name, and Red Hat's, which takes such a name, for its mode.
const PREPARE: &str = r"
printf '[Service]\nExecStart=/usr/bin/lsa-no-such-program\n' > /etc/systemd/system/lsa-shop.service
systemctl daemon-reload
systemctl start lsa-shop || :
mkdir -p /mnt/lsa-full
mount -t tmpfs -o size=8m lsa /mnt/lsa-full
head -c 7900000 /dev/zero > /mnt/lsa-full/big.log
useradd --create-home --shell /bin/sh --expiredate 2020-01-01 lsa-gone
echo '30 2 * * * root /bin/true' > /etc/cron.d/lsa-report.cron
test -e /etc/debian_version || chmod 666 /etc/cron.d/lsa-report.cron
# The program's failure is told by a process that ends at once, and journald may take it in later than it is asked to sync.
for _ in $(seq 100); do
    journalctl --sync
    ! journalctl --quiet --unit=lsa-shop | grep -q 'step EXEC' || break
    sleep 0.1
done
";

async fn first(client: &mut Client, complaint: &str) -> Value {
    let envelope = client.envelope("triage", json!({"complaint": complaint})).await;
    assert_eq!(envelope["status"], "success", "{complaint}: {envelope}");
    let finding = envelope["data"]["findings"][0].clone();
    assert!(finding.is_object(), "{complaint}: {envelope}");
    finding
}

/// Makes the call that a finding suggests, and says yes where somebody is asked.
async fn follow(client: &mut Client, finding: &Value) -> Value {
    let tool = finding["call"]["tool"].as_str().unwrap_or_else(|| panic!("no call: {finding}"));
    let mut arguments = finding["call"]["arguments"].clone();
    let mut envelope = client.envelope(tool, arguments.clone()).await;
    if envelope["status"] == "confirmation_required" {
        arguments["confirmed"] = json!(true);
        envelope = client.envelope(tool, arguments).await;
    }
    assert_eq!(envelope["status"], "success", "{finding}: {envelope}");
    envelope
}

#[tokio::test]
async fn planted_faults_are_found_by_a_complaint_and_the_next_call_works() {
    let test = "planted_faults_are_found_by_a_complaint_and_the_next_call_works";
    let Some(machine) = Changing::by(way(), test, PREPARE, CLEAN) else { return };
    let mut client = machine.serve_default().await;

    let unit = first(&mut client, "lsa-shop doesn't start").await;
    assert_eq!(unit["kind"], "service", "{unit}");
    assert!(
        unit["cause"].as_str().is_some_and(|cause| cause.contains("/usr/bin/lsa-no-such-program")),
        "{unit}"
    );
    assert!(unit["since"].is_string(), "{unit}");
    let shown = follow(&mut client, &unit).await;
    assert!(shown["data"].to_string().contains("lsa-no-such-program"), "{shown}");

    let disk = first(&mut client, "no space left on /mnt/lsa-full").await;
    assert!(disk["what"].as_str().is_some_and(|what| what.contains("/mnt/lsa-full")), "{disk}");
    assert!(disk["cause"].as_str().is_some_and(|cause| cause.contains("big.log")), "{disk}");
    let top = follow(&mut client, &disk).await;
    assert!(top["data"].to_string().contains("big.log"), "{top}");

    let login = first(&mut client, "lsa-gone can't log in").await;
    assert_eq!(login["kind"], "login", "{login}");
    assert!(login["cause"].as_str().is_some_and(|cause| cause.contains("expired")), "{login}");
    follow(&mut client, &login).await;
    assert!(machine.holds("chage -l lsa-gone | grep -q 'Account expires.*never'"), "{login}");

    let cron = first(&mut client, "the report of lsa doesn't come at night, though cron has it").await;
    assert_eq!(cron["kind"], "schedule", "{cron}");
    assert!(cron.to_string().contains("/etc/cron.d/lsa-report.cron"), "{cron}");
    follow(&mut client, &cron).await;
    let is_debian = way().host().starts_with("debian");
    assert_eq!(
        machine.holds("test -e /etc/cron.d/lsa-report"),
        is_debian,
        "the other cron ignores it for its mode"
    );
}

#[tokio::test]
async fn a_machine_without_a_complaint_is_told_in_few_bytes_and_each_call_that_looks_works() {
    let test = "a_machine_without_a_complaint_is_told_in_few_bytes_and_each_call_that_looks_works";
    let Some(machine) = Changing::by(way(), test, PREPARE, CLEAN) else { return };
    let mut client = machine.serve_default().await;
    let envelope = client.envelope("triage", json!({})).await;
    let data = &envelope["data"];
    let findings = data["findings"].as_array().cloned().unwrap_or_default();
    assert!((1..=12).contains(&findings.len()), "{envelope}");
    for planted in ["lsa-shop", "/mnt/lsa-full", "/etc/cron.d/lsa-report.cron"] {
        assert!(data.to_string().contains(planted), "{planted}: {envelope}");
    }
    assert!(data.get("unseen").is_none(), "{envelope}");
    assert!(data.to_string().len() < 2000, "{} bytes: {envelope}", data.to_string().len());
    let looks = |tool: &str| expected_tools().any(|(_, known)| known.name == tool && !known.changes());
    for finding in findings.iter().filter(|finding| finding["call"]["tool"].as_str().is_some_and(looks)) {
        follow(&mut client, finding).await;
    }
    machine.nothing_is_left_behind();
}
