//! A server on a real host is killed, or a step fails, at every point that the program names. `audit recover` undoes
//! the change of a killed server. A failed change is undone at once.

use linux_sysadmin_tests::{Expected, Machine, Plan, Snapshot, Step};
use serde_json::json;

/// Makes files of another account, with another mode and an old time, which have to come back.
const FILES: &str = "
for name in existing removed; do
    echo $name > /srv/planner/$name; chown admin:adm /srv/planner/$name; chmod 640 /srv/planner/$name
    touch -d '2020-01-02 03:04:05.678901234' /srv/planner/$name
done";

const RAN: &str = "/srv/plan/ran";
const NEW: &str = "/srv/planner/new";
const EXISTING: &str = "/srv/planner/existing";
const MADE: &str = "/srv/plan/made";

/// A file that only the undo of a command removes, which a person has to run.
const BY_COMMAND: &[Expected] = &[Expected { name: RAN, why: "a command made it" }];

/// A plan with one step of each kind.
fn plan() -> Plan {
    Plan::of([
        Step::run(&["touch", "--", RAN]).undo(&["rm", "--", RAN]),
        Step::write(EXISTING, "changed\n"),
        Step::write(NEW, "new\n"),
        Step::remove("/srv/planner/removed"),
        Step::make_directory(MADE, 0o750),
    ])
    .after_undo(&["systemctl", "daemon-reload"])
}

/// The same plan with a last step that fails.
fn broken() -> Plan {
    plan().step(Step::run(&["false"]))
}

/// Points before the first step.
const BEGINNING: [&str; 4] =
    ["before-begun", "before-sync-change-begun", "after-sync-change-begun", "after-begun"];

/// Points within the plan's steps.
const STEPS: [&str; 25] = [
    "before-step-0",
    "after-step-0",
    "before-step-1",
    "before-staging-1",
    "in-staging-1",
    "after-staging-1",
    "after-link-1",
    "after-rename-1",
    "after-step-1",
    "before-step-2",
    "before-staging-2",
    "in-staging-2",
    "after-staging-2",
    "after-rename-2",
    "after-step-2",
    "before-step-3",
    "before-staging-3",
    "in-staging-3",
    "after-rename-3",
    "after-step-3",
    "before-step-4",
    "after-mkdir-4",
    "after-step-4",
    "before-ended",
    "before-sync-change-ended",
];

/// Points in the undo of the plan that fails.
const UNDO: [&str; 9] = [
    "before-undo-4",
    "before-undo-3",
    "before-tidy-3",
    "before-undo-2",
    "before-tidy-2",
    "before-undo-1",
    "before-tidy-1",
    "before-undo-0",
    "before-after-undo",
];

/// Points after the record of the end.
const ENDED: [&str; 4] = ["after-sync-change-ended", "before-tidy-1", "before-tidy-2", "before-tidy-3"];

/// Has a server killed at this point of a plan; gives the change's id, where the change has begun.
async fn kill(machine: &Machine, account: &str, plan: &Plan, point: &str) -> Option<String> {
    let changes = changes(machine, account);
    let mut client = machine.serve_until(account, account, &format!("kill@{point}")).await;
    client.begin(plan.apply()).await;
    let (status, _) = client.ended().await;
    // A shell adds 128 to the signal, and KILL is 9.
    assert!(status.code() == Some(128 + 9) || status.code().is_none(), "{point}: {status}");
    assert!(!machine.runs("touch -- .*"), "{point}: a process is left");
    machine.audit_is_valid(account, account);
    self::changes(machine, account).into_iter().nth(changes.len())
}

/// The ids of all changes on record.
fn changes(machine: &Machine, account: &str) -> Vec<String> {
    let begun = machine.audit(account).into_iter().filter(|record| record["event"] == "change-begun");
    begun.map(|record| record["id"].as_str().expect("an id").to_owned()).collect()
}

fn unfinished(machine: &Machine, account: &str) -> String {
    let (code, said) = machine.says(account, account, &["audit", "recover"]);
    assert_eq!(code, Some(0), "{said}");
    said
}

/// Asserts that nothing is left to recover, and that `audit recover` says so.
fn is_over(machine: &Machine, account: &str, id: &str, point: &str) {
    assert_eq!(unfinished(machine, account), "no change is unfinished\n", "{point}");
    let (code, said) = machine.says(account, account, &["audit", "recover", id]);
    assert_eq!(code, Some(1), "{point}: {said}");
    assert!(said.contains("already") || said.contains("has ended"), "{point}: {said}");
    machine.nothing_is_left_behind();
    machine.audit_is_valid(account, account);
}

/// Asserts that the change is unfinished, and that `audit recover` undoes it.
fn recovers(machine: &Machine, account: &str, before: &Snapshot, id: &str, point: &str) {
    let (_, shown) = machine.says(account, account, &["audit", "show", "--unfinished"]);
    assert!(shown.contains(id) && shown.contains("audit recover"), "{point}: {shown}");
    let (code, said) = machine.says(account, account, &["audit", "recover", id]);
    assert_eq!(code, Some(0), "{point}: {said}");
    assert!(said.contains("not run") && said.contains("systemctl daemon-reload"), "{point}: {said}");
    machine.is_still_but(before, BY_COMMAND, point);
    is_over(machine, account, id, point);
    machine.sh(&format!("rm -f {RAN}"));
}

#[tokio::test]
async fn killed_before_or_within_a_step_a_change_is_recovered() {
    let Some(machine) = Machine::faulty("killed_before_or_within_a_step_a_change_is_recovered") else {
        return;
    };
    machine.sh(FILES);
    let before = machine.snapshot();
    for point in BEGINNING.into_iter().chain(STEPS) {
        match kill(&machine, "root", &plan(), point).await {
            None => {
                assert_eq!(point, "before-begun");
                machine.is_still(&before, point);
                assert_eq!(unfinished(&machine, "root"), "no change is unfinished\n");
            }
            Some(id) if point == "before-sync-change-ended" => {
                // The end is on record, since a process that dies loses nothing that it has written.
                assert_eq!(machine.recorded("root", "change-ended")["outcome"], "done");
                stays(&machine, &id, point);
            }
            Some(id) => recovers(&machine, "root", &before, &id, point),
        }
    }
}

/// Asserts that the change stays, and that only its copies are left over.
fn stays(machine: &Machine, id: &str, point: &str) {
    let listed = unfinished(machine, "root");
    assert!(listed.starts_with("no change is unfinished\n"), "{point}: {listed}");
    assert!(
        listed.contains("left copies") && listed.contains(&format!("audit recover {id}")),
        "{point}: {listed}"
    );
    let (code, said) = machine.says("root", "root", &["audit", "recover", id]);
    assert_eq!(code, Some(0), "{point}: {said}");
    assert!(said.contains("stays") && said.contains(".linux-sysadmin-"), "{point}: {said}");
    assert_eq!(machine.read(EXISTING), "changed\n", "{point}");
    assert!(machine.has(NEW) && machine.has(MADE) && !machine.has("/srv/planner/removed"), "{point}");
    is_over(machine, "root", id, point);
    machine.sh(&format!("rm -rf {RAN} {NEW} {MADE}\n{FILES}"));
}

#[tokio::test]
async fn killed_after_its_end_was_on_record_a_change_stays_and_its_copies_can_be_removed() {
    let test = "killed_after_its_end_was_on_record_a_change_stays_and_its_copies_can_be_removed";
    let Some(machine) = Machine::faulty(test) else { return };
    machine.sh(FILES);
    for point in ENDED {
        let id = kill(&machine, "root", &plan(), point).await.expect("a change");
        stays(&machine, &id, point);
    }
}

/// The notes with the next plan on this machine, in its dry run and in its change.
async fn told_with_the_next_plan(machine: &Machine) -> [String; 2] {
    let mut client = machine.serve().await;
    let next = Plan::of([Step::write("/srv/planner/another", "another\n")]);
    let tried = client.envelope("planner_apply", next.dry_run()).await;
    let made = client.envelope("planner_apply", next.apply()).await;
    assert_eq!((&tried["status"], &made["status"]), (&json!("success"), &json!("success")), "{tried} {made}");
    assert_eq!(client.close().await.0.code(), Some(0));
    machine.sh("rm /srv/planner/another");
    [tried["preview"]["warnings"].to_string(), made["notes"].to_string()]
}

#[tokio::test]
async fn what_a_killed_server_has_left_is_told_with_the_next_plan_until_it_is_recovered() {
    let test = "what_a_killed_server_has_left_is_told_with_the_next_plan_until_it_is_recovered";
    let Some(machine) = Machine::faulty(test) else { return };
    machine.sh(FILES);
    for (point, what) in [("after-step-1", "left half-done"), ("after-sync-change-ended", "left copies")] {
        let id = kill(&machine, "root", &plan(), point).await.expect("a change");
        for told in told_with_the_next_plan(&machine).await {
            assert!(told.contains(&format!("audit recover {id}")) && told.contains(what), "{point}: {told}");
        }
        let (code, said) = machine.says("root", "root", &["audit", "recover", &id]);
        assert_eq!(code, Some(0), "{point}: {said}");
        for told in told_with_the_next_plan(&machine).await {
            assert!(!told.contains("audit recover"), "{point}: {told}");
        }
        machine.sh(&format!("rm -rf {RAN} {NEW} {MADE}\n{FILES}"));
    }
    // The text that a command has replaced is kept beside the log, and isn't needed any more.
    let id = kill_while_adding(&machine, "after-sync-change-ended").await;
    let kept = machine.sh("find / -xdev -path '*/linux-sysadmin/replaced/*' -type f");
    assert!(kept.trim().ends_with(&id), "{kept}");
    assert_eq!(unfinished(&machine, "root"), "no change is unfinished\n");
    assert!(machine.has(kept.trim()), "a change of just now may be about to begin");
    machine.sh(&format!("touch -d '1 hour ago' {kept}"));
    assert_eq!(unfinished(&machine, "root"), "no change is unfinished\n");
    assert!(!machine.has(kept.trim()));
    machine.sh("crontab -u nobody -r");
    machine.nothing_is_left_behind();
}

#[tokio::test]
async fn killed_in_the_undo_a_change_is_recovered() {
    let Some(machine) = Machine::faulty("killed_in_the_undo_a_change_is_recovered") else { return };
    machine.sh(FILES);
    let before = machine.snapshot();
    for point in UNDO {
        let id = kill(&machine, "root", &broken(), point).await.expect("a change");
        recovers(&machine, "root", &before, &id, point);
    }
}

#[tokio::test]
async fn an_account_with_sudo_recovers_what_root_does() {
    let Some(machine) = Machine::faulty("an_account_with_sudo_recovers_what_root_does") else { return };
    machine.sh(FILES);
    let before = machine.snapshot();
    for point in ["after-link-1", "after-rename-2", "after-step-4"] {
        let id = kill(&machine, "admin", &plan(), point).await.expect("a change");
        // Root has the rights to recover the change, but it belongs to another account's log.
        let log = "/var/lib/planner/admin/.local/state/linux-sysadmin";
        let (code, said) = machine.says("root", "root", &["audit", "recover", &id, "--directory", log]);
        assert!(code == Some(1) && said.contains("the account admin"), "{said}");
        recovers(&machine, "admin", &before, &id, point);
    }
}

#[tokio::test]
async fn a_step_that_fails_at_any_point_is_undone_with_all_before_it() {
    let test = "a_step_that_fails_at_any_point_is_undone_with_all_before_it";
    let Some(machine) = Machine::faulty(test) else { return };
    machine.sh(FILES);
    let before = machine.snapshot();
    for point in BEGINNING.into_iter().chain(STEPS).chain(["after-sync-change-ended"]) {
        let begun = changes(&machine, "root").len();
        let mut client = machine.serve_until("root", "root", &format!("fail@{point}")).await;
        let envelope = client.apply(&plan()).await;
        assert_eq!(envelope["status"], "error", "{point}: {envelope}");
        machine.is_still(&before, point);
        machine.nothing_is_left_behind();
        assert_eq!(client.close().await.0.code(), Some(0), "{point}");
        machine.audit_is_valid("root", "root");
        let changes = changes(&machine, "root");
        if BEGINNING[..3].contains(&point) {
            assert_eq!(changes.len(), begun, "{point}: it never began");
            continue;
        }
        assert_eq!(envelope["not_undone"], json!([]), "{point}: {envelope}");
        let id = changes.last().expect("a change");
        if point.ends_with("ended") {
            // The change is undone without a record, so `audit recover` finds everything in its place.
            assert_eq!(envelope["error_code"], "AUDIT_UNAVAILABLE", "{point}: {envelope}");
            recovers(&machine, "root", &before, id, point);
        } else {
            assert_eq!(machine.recorded("root", "change-ended")["outcome"], "undone", "{point}");
            is_over(&machine, "root", id, point);
        }
    }
}

#[tokio::test]
async fn an_undo_that_fails_is_told_of_and_the_copy_stays() {
    let Some(machine) = Machine::faulty("an_undo_that_fails_is_told_of_and_the_copy_stays") else { return };
    machine.sh(FILES);
    for (point, title) in [
        ("before-undo-4", MADE),
        ("before-undo-3", "/srv/planner/removed"),
        ("before-undo-2", NEW),
        ("before-undo-1", EXISTING),
        ("before-undo-0", RAN),
        ("before-after-undo", "systemctl daemon-reload"),
    ] {
        let mut client = machine.serve_until("root", "root", &format!("fail@{point}")).await;
        let envelope = client.apply(&broken()).await;
        let not_undone = envelope["not_undone"].as_array().expect("a list");
        assert_eq!(not_undone.len(), 1, "{point}: {envelope}");
        assert!(not_undone[0].to_string().contains(title), "{point}: {envelope}");
        assert_eq!(machine.recorded("root", "change-ended")["outcome"], "partly-undone", "{point}");
        if ["/srv/planner/removed", EXISTING].contains(&title) {
            let name = title.rsplit('/').next().expect("a name");
            assert_eq!(
                machine.sh("cat /srv/planner/.linux-sysadmin-*/.previous"),
                format!("{name}\n"),
                "{point}"
            );
        }
        assert_eq!(client.close().await.0.code(), Some(0), "{point}");
        machine.audit_is_valid("root", "root");
        machine.sh(&format!("rm -rf /srv/planner/.linux-sysadmin-* {RAN} {NEW} {MADE}\n{FILES}"));
    }
}

#[tokio::test]
async fn what_somebody_has_changed_since_is_put_back_only_by_force() {
    let test = "what_somebody_has_changed_since_is_put_back_only_by_force";
    let Some(machine) = Machine::faulty(test) else { return };
    machine.sh(FILES);
    let before = machine.snapshot();
    let id = kill(&machine, "root", &plan(), "before-ended").await.expect("a change");
    machine.sh(&format!("echo theirs > {EXISTING}"));
    for _ in 0..2 {
        let (code, said) = machine.says("root", "root", &["audit", "recover", &id]);
        assert_eq!(code, Some(1), "{said}");
        assert!(said.contains(&format!("NOT RESTORED: {EXISTING}")) && said.contains("--force"), "{said}");
        assert_eq!(machine.read(EXISTING), "theirs\n");
        assert!(!machine.has(NEW) && !machine.has(MADE) && machine.has("/srv/planner/removed"), "all others");
        let recovered = machine.recorded("root", "change-recovered");
        assert_eq!(recovered["not_restored"].as_array().map(Vec::len), Some(1), "{recovered}");
        assert!(unfinished(&machine, "root").contains(&id), "it can still be put back");
    }
    // The next server says so as well.
    let (_, said) = machine.serve().await.close().await;
    assert!(said.contains(&id) && said.contains("audit recover"), "{said}");

    let (code, said) = machine.says("root", "root", &["audit", "recover", &id, "--force"]);
    assert_eq!(code, Some(0), "{said}");
    machine.is_still_but(&before, BY_COMMAND, "by force");
    assert_eq!(machine.recorded("root", "change-recovered")["by"], "root");
    is_over(&machine, "root", &id, "by force");
}

#[tokio::test]
async fn a_change_that_is_being_made_is_not_recovered() {
    let Some(machine) = Machine::faulty("a_change_that_is_being_made_is_not_recovered") else { return };
    let mut client = machine.serve().await;
    machine.sh("mkfifo /srv/plan/gate");
    let gate = Step::run(&["tee", "--", "/srv/plan/gate"]).with("stdin", "through");
    let id = client.begin(Plan::of([Step::write(NEW, "new\n"), gate]).apply()).await;
    client.until_runs(&machine, id, "tee -- /srv/plan/gate").await;
    let change = changes(&machine, "root").pop().expect("a change");
    let (code, said) = machine.says("root", "root", &["audit", "recover", &change, "--force"]);
    assert!(code == Some(1) && said.contains("still being made"), "{said}");
    assert!(machine.has(NEW));
    machine.sh("timeout 60 cat /srv/plan/gate");
    assert_eq!(client.outcome(id).await["status"], "success");
}

#[tokio::test]
async fn while_a_guard_is_armed_the_target_undoes_and_what_it_leaves_is_removed() {
    let test = "while_a_guard_is_armed_the_target_undoes_and_what_it_leaves_is_removed";
    let Some(machine) = Machine::faulty(test) else { return };
    machine.sh(FILES);
    let before = machine.snapshot();
    let id = kill(&machine, "root", &plan().with("guard", 600), "after-step-4").await.expect("a change");
    let (code, said) = machine.says("root", "root", &["audit", "recover", &id]);
    assert!(code == Some(1) && said.contains("undoes this change by itself"), "{said}");
    assert_eq!(machine.read(EXISTING), "changed\n");
    // The guard's time is over.
    machine.sh(&format!(
        "systemctl stop linux-sysadmin-guard-{id}.timer; systemctl start linux-sysadmin-guard-{id}.service"
    ));
    let (code, said) = machine.says("root", "root", &["audit", "recover", &id]);
    assert!(code == Some(0) && said.contains("has undone it"), "{said}");
    machine.is_still(&before, "the guard runs commands as well");
    is_over(&machine, "root", &id, "a guard");

    // The server is killed before the guard is armed.
    let id = kill(&machine, "root", &plan().with("guard", 600), "after-begun").await.expect("a change");
    recovers(&machine, "root", &before, &id, "no guard yet");
}

const ADMINS: &str = "# what the administrator has\n0 3 * * * /usr/bin/true\n";

/// Has a server killed while it adds a cron job by the module that ships; gives the change's id.
async fn kill_while_adding(machine: &Machine, point: &str) -> String {
    machine.host().put("/run/planner/crontab", ADMINS.as_bytes());
    machine.sh("cp -r /opt/linux-sysadmin/modules /run/planner/; crontab -u nobody /run/planner/crontab");
    let before = changes(machine, "root").len();
    let mut client = machine.serve_until("root", "root", &format!("kill@{point}")).await;
    let arguments = json!({"user": "nobody", "schedule": "0 4 * * *", "command": "/usr/bin/false"});
    client.ask("tools/call", json!({"name": "cron_add", "arguments": arguments})).await;
    client.ended().await;
    changes(machine, "root").into_iter().nth(before).expect("a change")
}

fn crontab(machine: &Machine) -> String {
    let output = machine.host().command(&["crontab", "-u", "nobody", "-l"]).output().expect("xtask runs");
    String::from_utf8(output.stdout).expect("UTF-8")
}

#[tokio::test]
async fn what_a_command_replaced_is_put_back_unless_somebody_has_changed_it_since() {
    let test = "what_a_command_replaced_is_put_back_unless_somebody_has_changed_it_since";
    let Some(machine) = Machine::faulty(test) else { return };
    for (point, becomes) in [
        ("before-step-0", "is as it was before"),
        ("after-step-0", "is put back"),
        ("before-ended", "is put back"),
    ] {
        let id = kill_while_adding(&machine, point).await;
        assert_eq!(crontab(&machine).contains("/usr/bin/false"), point != "before-step-0", "{point}");
        let (code, said) = machine.says("root", "root", &["audit", "recover", &id]);
        assert_eq!(code, Some(0), "{point}: {said}");
        assert!(said.contains("crontab -u nobody -") && said.contains(becomes), "{point}: {said}");
        assert_eq!(crontab(&machine), ADMINS, "{point}");
        assert_eq!(unfinished(&machine, "root"), "no change is unfinished\n", "{point}");
    }
    let id = kill_while_adding(&machine, "after-step-0").await;
    machine.sh("echo '@daily /usr/bin/theirs' | crontab -u nobody -");
    let (code, said) = machine.says("root", "root", &["audit", "recover", &id]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("NOT RESTORED") && said.contains("--force"), "{said}");
    assert_eq!(crontab(&machine), "@daily /usr/bin/theirs\n");
    machine.sh("crontab -u nobody -r");
    machine.nothing_is_left_behind();
}
