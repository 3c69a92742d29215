//! The audit log on a real host: the records of plans, the marks in the journal, and what happens where the log can't be
//! written.

use linux_sysadmin_tests::{Client, Machine, Plan, Step};
use serde_json::{Value, json};

const DIRECTORY: &str = "/var/lib/planner/root/.local/state/linux-sysadmin";
const LOG: &str = "/var/lib/planner/root/.local/state/linux-sysadmin/audit.jsonl";
const PASSWORD: &str = "hunter2-of-the-test";

fn touch() -> Plan {
    Plan::of([Step::run(&["touch", "--", "/srv/plan/ran"]).undo(&["rm", "--", "/srv/plan/ran"])])
}

/// A plan whose record is larger than the rest of a page, so that a full file system has no room for it.
fn large() -> Plan {
    touch().step(Step::write("/srv/planner/new", &"line\n".repeat(3000)))
}

/// Calls a tool that only looks, which must work.
async fn looks(client: &mut Client) {
    let envelope = client.envelope("perf_uptime", json!({})).await;
    assert_eq!(envelope["status"], "success", "{envelope}");
}

async fn is_refused_for_the_log(machine: &Machine, client: &mut Client, why: &str) {
    let before = machine.snapshot();
    let envelope = client.apply(&large()).await;
    assert_eq!(envelope["status"], "error", "{why}: {envelope}");
    assert_eq!(envelope["error_code"], "AUDIT_UNAVAILABLE", "{why}: {envelope}");
    assert_eq!(envelope["error_category"], "resource", "{why}: {envelope}");
    assert!(!envelope["remediation"].as_array().expect("a list").is_empty(), "{why}: {envelope}");
    machine.is_still(&before, why);
    machine.nothing_is_left_behind();
    looks(client).await;
}

/// Runs `audit verify` on root's log; gives its exit code and output.
fn verify(machine: &Machine, args: &[&str]) -> (Option<i32>, String) {
    let output = machine.program(&[&["audit", "verify"], args].concat());
    let said = String::from_utf8_lossy(&[&output.stdout[..], &output.stderr].concat()).into_owned();
    (output.status.code(), said.split_whitespace().collect::<Vec<_>>().join(" "))
}

#[tokio::test]
async fn what_became_of_every_plan_is_on_record() {
    let Some(machine) = Machine::new("what_became_of_every_plan_is_on_record") else { return };
    machine.sh("mkfifo /srv/plan/gate");
    let mut client = machine.serve().await;
    let secret = format!("user=joe\npassword={PASSWORD}\n");
    let written = touch().step(Step::write("/srv/planner/new", &secret).with("sensitive", true));
    let broken = touch().step(Step::run(&["false"]));
    let undeniable = touch().with("risk", "critical");
    let denied = touch().step(Step::run(&["uname"]));
    client.envelope("planner_apply", touch().dry_run()).await;
    client.done(&written).await;
    client.apply(&broken).await;
    client.apply(&undeniable).await;
    client.apply(&denied).await;
    client.envelope("planner_apply_readonly", touch().apply()).await;
    client.envelope("planner_apply", json!({"plan": touch().json(), "password": PASSWORD})).await;
    let held_up =
        Plan::of([Step::run(&["tee", "--", "/srv/plan/gate"]).with("stdin", format!("password={PASSWORD}"))]);
    let id = client.begin(held_up.apply()).await;
    client.until_runs(&machine, id, "tee -- /srv/plan/gate").await;
    client.cancel(id).await;
    machine.until_ended("tee -- /srv/plan/gate");
    machine.until(&format!("test $(grep -c '\"event\":\"change-ended\"' {LOG}) = 3"));

    let records = machine.audit("root");
    let of = |event: &str| records.iter().filter(|record| record["event"] == event).collect::<Vec<_>>();
    let (calls, begun, ended) = (of("call"), of("change-begun"), of("change-ended"));
    let change = |number: usize| begun[number]["id"].as_str();
    let expected = [
        ("dry-run", "success", None, None),
        ("allowed", "success", None, change(0)),
        ("allowed", "error", Some("COMMAND_FAILED"), change(1)),
        ("asked", "confirmation_required", Some("CONFIRMATION_REQUIRED"), None),
        ("refused", "error", Some("CAPABILITY_DENIED"), None),
        ("refused", "error", Some("READ_ONLY_TOOL"), None),
        ("none", "error", Some("INVALID_ARGUMENTS"), None),
        ("allowed", "error", Some("CANCELLED"), change(2)),
    ];
    assert_eq!(calls.len(), expected.len(), "{calls:?}");
    for (number, (call, (decision, status, error, change))) in calls.iter().zip(expected).enumerate() {
        assert_eq!(
            (&call["decision"], &call["status"]),
            (&json!(decision), &json!(status)),
            "{number}: {call}"
        );
        assert_eq!(
            (&call["error_code"], &call["change"]),
            (&json!(error), &json!(change)),
            "{number}: {call}"
        );
        let by_policy = matches!(decision, "allowed" | "refused");
        assert_eq!(
            call["decided_by"],
            if by_policy { json!("policy") } else { json!(null) },
            "{number}: {call}"
        );
    }
    let host_id = machine.read("/etc/machine-id");
    let module = machine.sh("sha256sum < /run/planner/planner.wasm");
    for (number, (begun, ended)) in begun.iter().zip(&ended).enumerate() {
        assert_eq!(begun["id"], ended["id"], "{number}");
        assert_eq!(begun["trace_id"], calls[[1, 2, 7][number]]["trace_id"], "{number}: {begun}");
        assert_eq!(begun["target"]["machine_id"], host_id.trim(), "{number}: {begun}");
        assert_eq!(begun["module"]["sha256"].as_str(), module.split(' ').next(), "{number}: {begun}");
        assert_eq!(begun["plan_sha256"].as_str().map(str::len), Some(64), "{number}: {begun}");
        assert_eq!(
            (&begun["risk"], &begun["decided_by"]),
            (&json!(["high", "moderate", "high"][number]), &json!("policy")),
            "{begun}"
        );
    }
    let outcomes: Vec<_> = ended.iter().map(|ended| (&ended["outcome"], &ended["exit_codes"])).collect();
    let [done, undone] = [json!("done"), json!("undone")];
    assert_eq!(outcomes[..2], [(&done, &json!([0])), (&undone, &json!([0, 1]))]);
    assert_eq!((&ended[2]["outcome"], &ended[2]["interrupted"]), (&undone, &json!(true)), "{}", ended[2]);
    let ran = json!([
        {"command": "touch -- /srv/plan/ran", "exit_code": 0},
        {"command": "false", "exit_code": 1},
        {"command": "rm -- /srv/plan/ran", "exit_code": 0},
    ]);
    assert_eq!(calls[2]["commands"], ran, "{}", calls[2]);
    let file = &begun[0]["files"][0];
    assert_eq!((&file["path"], &file["existed"]), (&json!("/srv/planner/new"), &json!(false)), "{file}");
    let sum = machine.sh("sha256sum < /srv/planner/new");
    assert_eq!(file["sha256_after"].as_str(), sum.split(' ').next(), "{file}");
    assert!(!machine.holds(&format!("grep --recursive --quiet -e {PASSWORD} {DIRECTORY}")), "a secret");
    machine.audit_is_valid("root", "root");

    let show = machine.program(&["audit", "show", change(1).expect("an id")]);
    let show =
        String::from_utf8(show.stdout).expect("UTF-8").split_whitespace().collect::<Vec<_>>().join(" ");
    for word in ["undone", "touch -- /srv/plan/ran", "rm -- /srv/plan/ran", "COMMAND_FAILED", "step 2 failed"]
    {
        assert!(show.contains(word), "{word}: {show}");
    }
    let changes = machine.program(&["audit", "export", "--changes"]);
    assert_eq!(String::from_utf8(changes.stdout).expect("UTF-8").lines().count(), 6);
}

#[tokio::test]
async fn a_log_that_was_written_anew_is_told_by_what_the_journal_knows() {
    let test = "a_log_that_was_written_anew_is_told_by_what_the_journal_knows";
    let Some(machine) = Machine::new(test) else { return };
    // The journal's lines of this test are found by time, since `--after-cursor` with `-t` of systemd 252 leaves one out.
    let since = machine.sh("date +@%s.%6N");
    let since = since.trim().to_owned();
    let heads = "/run/planner/heads";
    let keep = || {
        machine.sh(&format!(
            "journalctl --sync; journalctl -t linux-sysadmin -o cat _UID=0 --since={since} > {heads}"
        ));
    };
    let mut client = machine.serve().await;
    client.done(&touch()).await;
    looks(&mut client).await;
    client.done(&Plan::of([Step::run(&["rm", "--", "/srv/plan/ran"])])).await;
    client.close().await;
    keep();
    // Each plan notes its beginning and its end.
    let told = machine.read(heads);
    assert_eq!(told.lines().filter(|line| line.starts_with("audit head ")).count(), 4, "{told}");
    let (code, said) = verify(&machine, &["--heads", heads]);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("records that the other log names, all found: 4"), "{said}");

    // An attacker with the account's rights writes the whole log anew, in the program's own form.
    machine.sh(&format!("mv {DIRECTORY} {DIRECTORY}.true"));
    let mut client = machine.serve().await;
    for _ in 0..8 {
        looks(&mut client).await;
    }
    client.close().await;
    let (code, said) = verify(&machine, &[]);
    assert_eq!(code, Some(0), "the chain is valid in itself: {said}");
    let (code, said) = verify(&machine, &["--heads", heads]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("which the other log names") && said.contains("audit.jsonl:1:"), "{said}");

    // Or the attacker leaves out its end.
    machine.sh(&format!("rm -r {DIRECTORY}"));
    let client = machine.serve().await;
    client.close().await;
    let (code, said) = verify(&machine, &["--heads", heads]);
    assert_eq!(code, Some(1), "{said}");
    machine.sh(&format!("rm -rf {DIRECTORY}; mv {DIRECTORY}.true {DIRECTORY}"));
    assert_eq!(verify(&machine, &["--heads", heads]).0, Some(0));
}

#[tokio::test]
async fn where_nothing_can_be_put_on_record_nothing_is_changed_and_looking_goes_on() {
    let test = "where_nothing_can_be_put_on_record_nothing_is_changed_and_looking_goes_on";
    let Some(machine) = Machine::new(test) else { return };
    let state = "/var/lib/planner/root/.local/state";
    machine.sh(&format!("install -d -m 700 {state}; mount -t tmpfs -o size=256k,mode=700 tmpfs {state}"));
    let mut client = machine.serve().await;
    looks(&mut client).await;
    client.done(&touch()).await;
    machine.sh("rm /srv/plan/ran");

    machine.sh(&format!("cat /dev/zero > {state}/filler 2>/dev/null; test $(stat -f -c %a {state}) = 0"));
    is_refused_for_the_log(&machine, &mut client, "a full disk").await;
    is_refused_for_the_log(&machine, &mut client, "a disk that is still full").await;
    machine.sh(&format!("rm {state}/filler"));
    client.done(&large()).await;
    client.close().await;
    machine.audit_is_valid("root", "root");
    machine.sh("rm /srv/plan/ran /srv/planner/new");

    for (why, spoil, mend) in [
        (
            "a directory",
            format!("mv {LOG} {LOG}.kept; mkdir {LOG}"),
            format!("rmdir {LOG}; mv {LOG}.kept {LOG}"),
        ),
        (
            "a link",
            format!("mv {LOG} {LOG}.kept; touch /srv/plan/x; ln -s /srv/plan/x {LOG}"),
            format!("test ! -s /srv/plan/x; rm {LOG} /srv/plan/x; mv {LOG}.kept {LOG}"),
        ),
        ("others may write to it", format!("chmod 666 {LOG}"), format!("chmod 600 {LOG}")),
        ("another account's", format!("chown admin {LOG}"), format!("chown root {LOG}")),
        ("read only", format!("mount -o remount,ro {state}"), format!("mount -o remount,rw {state}")),
        (
            "cut off",
            format!("cp {LOG} {LOG}.kept; sed -i '$d' {LOG}"),
            format!("cat {LOG}.kept > {LOG}; rm {LOG}.kept"),
        ),
    ] {
        machine.sh(&spoil);
        // The rights to the file are checked only when it is opened.
        let mut client = machine.serve().await;
        is_refused_for_the_log(&machine, &mut client, why).await;
        machine.sh(&format!("set -e; {mend}"));
        client.done(&touch()).await;
        machine.sh("rm /srv/plan/ran");
        machine.audit_is_valid("root", "root");
        client.close().await;
    }
}

#[tokio::test]
async fn an_account_that_cannot_write_its_log_changes_nothing() {
    let Some(machine) = Machine::new("an_account_that_cannot_write_its_log_changes_nothing") else { return };
    looks(&mut machine.serve_as("admin", "admin").await).await;
    let directory = "/var/lib/planner/admin/.local/state/linux-sysadmin";
    for (spoil, mend) in [
        (format!("chmod 400 {directory}/audit.jsonl"), format!("chmod 600 {directory}/audit.jsonl")),
        (format!("chown root {directory}"), format!("chown admin {directory}")),
        (format!("chmod 400 {directory}/audit.lock"), format!("chmod 600 {directory}/audit.lock")),
        (format!("chmod 400 {directory}/audit.head"), format!("chmod 600 {directory}/audit.head")),
    ] {
        machine.sh(&spoil);
        let mut client = machine.serve_as("admin", "admin").await;
        is_refused_for_the_log(&machine, &mut client, &spoil).await;
        machine.sh(&mend);
        client.done(&touch()).await;
        machine.sh("rm /srv/plan/ran");
        machine.audit_is_valid("admin", "admin");
    }
}

#[tokio::test]
async fn two_servers_that_change_things_keep_one_chain() {
    let Some(machine) = Machine::new("two_servers_that_change_things_keep_one_chain") else { return };
    machine.configure("root", "audit:\n  rotate_mib: 1\n");
    let (mut one, mut other) = (machine.serve().await, machine.serve().await);
    async fn work(client: &mut Client, name: &str) {
        let path = format!("/srv/plan/{name}");
        let big = json!({"b": "x".repeat(7_000)});
        for round in 0..10 {
            let mut asked = Vec::new();
            for _ in 0..20 {
                asked.push(client.ask("tools/call", json!({"name": "perf_uptime", "arguments": big})).await);
            }
            asked.push(client.ask("tools/call", json!({"name": "perf_uptime", "arguments": big})).await);
            let step = if round % 2 == 0 { "touch" } else { "rm" };
            let plan = Plan::of([Step::run(&[step, "--", &path])]);
            client.done(&plan).await;
            for id in asked {
                client.answer(id).await;
            }
        }
    }
    tokio::join!(work(&mut one, "one"), work(&mut other, "other"));
    one.close().await;
    other.close().await;
    machine.audit_is_valid("root", "root");
    let exported = machine.program(&["audit", "export"]);
    let exported = String::from_utf8(exported.stdout).expect("UTF-8");
    let records: Vec<Value> =
        exported.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let of = |event: &str| records.iter().filter(|record| record["event"] == event).count();
    assert_eq!((of("call"), of("change-begun"), of("change-ended")), (2 * 10 * 22, 20, 20));
    assert!(of("rotated") >= 1, "a file was put aside");
}
