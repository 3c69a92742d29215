//! One call on ten hosts. A host that doesn't answer doesn't delay the others' answers. A change asks once, begins on
//! one host alone, and stops where it fails. A command of the caller's choice does the same.

use linux_sysadmin_tests::{Client, Fleet, Plan, Step, Way};
use serde_json::{Value, json};

const APPLY: &str = "planner_apply";
/// The only host on which the plan fails.
const FAILS: &str = "fleet03";

/// A plan whose second step fails where a directory is missing.
fn plan() -> Plan {
    Plan::of([
        Step::run(&["touch", "--", "/srv/plan/new"]).undo(&["rm", "--", "/srv/plan/new"]),
        Step::run(&["rmdir", "--", "/srv/plan/empty"]),
    ])
}

/// The arguments of a call that applies the plan on the whole fleet.
fn everywhere(plan: &Plan) -> Value {
    let mut arguments = plan.apply();
    arguments["host"] = "fleet".into();
    arguments
}

/// Makes the directory that the plan needs on each host except `but`.
fn prepare(fleet: &Fleet, but: Option<&str>) {
    for host in fleet.hosts() {
        host.run(&["rm", "-rf", "/srv/plan"]);
        let made = if but == Some(host.name()) { "/srv/plan" } else { "/srv/plan/empty" };
        host.run(&["mkdir", "-p", made]);
    }
}

/// The names in the plan's directory, by host.
fn found(fleet: &Fleet) -> Vec<(&str, String)> {
    fleet.hosts().iter().map(|host| (host.name(), host.run(&["ls", "/srv/plan"]))).collect()
}

/// The same names for all hosts.
fn everywhere_is<'a>(fleet: &'a Fleet, listed: &str) -> Vec<(&'a str, String)> {
    fleet.names().into_iter().map(|name| (name, listed.to_owned())).collect()
}

/// The error codes of the calls on record, in the order of the hosts. A call that succeeded has null.
fn codes(fleet: &Fleet) -> Vec<(String, Value)> {
    let records = fleet.home().audit();
    let calls = records.iter().filter(|record| record["event"] == "call" && record["tool"] == APPLY);
    let mut codes: Vec<_> = calls
        .map(|call| (call["target"]["name"].as_str().expect("a name").to_owned(), call["error_code"].clone()))
        .collect();
    codes.sort_by(|(one, _), (other, _)| one.cmp(other));
    codes
}

fn changes(fleet: &Fleet) -> usize {
    fleet.home().audit().iter().filter(|record| record["event"] == "change-begun").count()
}

async fn served(fleet: &Fleet, way: Way) -> Client {
    let mut client = fleet.serve(&[]);
    let (version, capabilities) = way.client();
    client.can(capabilities);
    client.initialize(version).await;
    client
}

#[tokio::test]
async fn who_hangs_and_who_is_gone_keep_nobody_from_the_others_answers() {
    let test = "who_hangs_and_who_is_gone_keep_nobody_from_the_others_answers";
    let Some(fleet) = Fleet::new(test) else { return };
    fleet.add("parrot");
    // The time is longer than any client waits, so a call that waits for it would never be answered.
    let config = std::fs::read_to_string(fleet.file("config")).expect("a configuration");
    fleet.configure(&format!("{config}Host *\n  ConnectTimeout 3600\n"));
    let (hangs, gone) = ("fleet03", "fleet07");
    fleet.hangs(hangs);
    fleet.is_gone(gone);
    let mut client = served(&fleet, Way::InputRequired).await;
    let read = json!({"path": "/etc/hostname", "host": "fleet"});
    let envelope = client.envelope("parrot_read", read.clone()).await;
    assert_eq!(envelope["status"], "success", "{envelope}");
    assert_eq!(envelope["hosts"], json!({"total": 10, "succeeded": 8, "failed": 2}));
    let failures = envelope["failures"].as_array().expect("a list");
    let mut failed: Vec<_> =
        failures.iter().map(|failure| (&failure["hosts"], &failure["error_code"])).collect();
    failed.sort_by_key(|(hosts, _)| hosts.to_string());
    assert_eq!(
        failed,
        [(&json!([hangs]), &json!("HOST_SLOW")), (&json!([gone]), &json!("CONNECTION_FAILED"))],
        "{envelope}"
    );
    let data = envelope["data"].to_string();
    for name in fleet.names() {
        assert_eq!(data.contains(name), name != hangs && name != gone, "{name}: {envelope}");
    }

    // A change needs all hosts, so it begins nowhere.
    fleet.add_planner();
    prepare(&fleet, None);
    let mut client = served(&fleet, Way::InputRequired).await;
    let envelope = client.envelope(APPLY, everywhere(&plan())).await;
    assert_eq!(
        (&envelope["status"], &envelope["error_code"]),
        (&json!("error"), &json!("HOST_SLOW")),
        "{envelope}"
    );
    let (answered, silent): (Vec<_>, Vec<_>) =
        fleet.names().into_iter().partition(|name| *name != hangs && *name != gone);
    assert_eq!(envelope["not_begun"], json!(answered), "{envelope}");
    assert_eq!(envelope["hosts"], json!({"total": 10, "succeeded": 0, "failed": silent.len()}));
    assert_eq!(found(&fleet), everywhere_is(&fleet, "empty\n"));
    assert_eq!(changes(&fleet), 0);
}

#[tokio::test]
async fn an_older_spelling_is_put_right_once_for_all_hosts() {
    let Some(fleet) = Fleet::new("an_older_spelling_is_put_right_once_for_all_hosts") else { return };
    fleet.add("parrot");
    let mut client = served(&fleet, Way::InputRequired).await;
    let envelope = client.envelope("parrot_cat", json!({"file": "/etc/hostname", "host": "fleet"})).await;
    assert_eq!(envelope["hosts"], json!({"total": 10, "succeeded": 10, "failed": 0}), "{envelope}");
    assert_eq!(envelope["tool"], "parrot_read", "{envelope}");
    let note = "understood: parrot_cat as parrot_read; file as path";
    assert_eq!(envelope["notes"], json!([note]), "{envelope}");
    let records = fleet.home().audit();
    let calls: Vec<_> = records.iter().filter(|record| record["event"] == "call").collect();
    assert_eq!(calls.len(), 10);
    for call in calls {
        assert_eq!(
            (&call["tool"], &call["called_as"]),
            (&json!("parrot_read"), &json!("parrot_cat")),
            "{call}"
        );
        assert_eq!(call["arguments"], json!({"path": "/etc/hostname"}), "{call}");
    }
}

#[tokio::test]
async fn a_change_ends_with_the_hosts_that_are_changed_when_one_fails() {
    let test = "a_change_ends_with_the_hosts_that_are_changed_when_one_fails";
    let Some(fleet) = Fleet::new(test) else { return };
    fleet.add_planner();
    // The first host always comes alone.
    for (serial, done, not_begun) in [(1, 1..=2, 4..=10), (4, 1..=5, 6..=10)] {
        let context = format!("serial: {serial}");
        fleet.settle_for(&format!("ssh:\n  serial: {serial}\n"));
        let _ = std::fs::remove_dir_all(fleet.home().state());
        prepare(&fleet, Some(FAILS));
        let mut client = served(&fleet, Way::InputRequired).await;
        let envelope = client.envelope(APPLY, everywhere(&plan())).await;
        let names = |numbers: std::ops::RangeInclusive<usize>| {
            let names = numbers.map(|number| format!("fleet{number:02}"));
            names.filter(|name| name != FAILS).collect::<Vec<_>>()
        };
        let (done, not_begun) = (names(done), names(not_begun));
        assert_eq!(
            (&envelope["status"], &envelope["error_code"]),
            (&json!("error"), &json!("COMMAND_FAILED")),
            "{context}: {envelope}"
        );
        assert_eq!(
            envelope["hosts"],
            json!({"total": 10, "succeeded": done.len(), "failed": 1}),
            "{context}"
        );
        assert_eq!(
            (&envelope["done"], &envelope["not_begun"]),
            (&json!(done), &json!(not_begun)),
            "{context}"
        );
        let failure = &envelope["failures"][0];
        assert_eq!(failure["hosts"], json!([FAILS]), "{context}");
        assert!(failure["undone"].to_string().contains("/srv/plan/new"), "{context}: {envelope}");
        let listed = |name: &str| match name {
            FAILS => "",
            name if done.iter().any(|done| done == name) => "new\n",
            _ => "empty\n",
        };
        let expected: Vec<_> =
            fleet.names().into_iter().map(|name| (name, listed(name).to_owned())).collect();
        assert_eq!(found(&fleet), expected, "{context}");
        assert!(client.close().await.0.success());
        let code = |name: &str| match name {
            FAILS => "COMMAND_FAILED".into(),
            name if done.iter().any(|done| done == name) => Value::Null,
            _ => "NOT_BEGUN".into(),
        };
        let expected: Vec<_> = fleet.names().into_iter().map(|name| (name.to_owned(), code(name))).collect();
        assert_eq!(codes(&fleet), expected, "{context}");
        assert_eq!(changes(&fleet), done.len() + 1, "{context}");
    }
}

#[tokio::test]
async fn all_hosts_are_asked_about_once_and_a_no_is_of_all() {
    let Some(fleet) = Fleet::new("all_hosts_are_asked_about_once_and_a_no_is_of_all") else { return };
    fleet.add_planner();
    prepare(&fleet, None);
    let grave = everywhere(&plan().with("risk", "high"));
    for way in Way::ALL {
        let _ = std::fs::remove_dir_all(fleet.home().state());
        let mut client = served(&fleet, way).await;
        let asked = client.is_asked(way, APPLY, grave.clone()).await;
        if way == Way::TwoStep {
            let plans = asked.message["preview"]["plans"].as_array().expect("a list");
            let hosts: Vec<_> = plans.iter().map(|plan| &plan["hosts"]).collect();
            assert_eq!(hosts, [&json!(fleet.names())], "{asked:?}");
        } else {
            let mut listed = asked.text().lines().filter_map(|line| line.strip_prefix("- "));
            for name in fleet.names() {
                let line = listed.next().unwrap_or_default();
                assert!(line.starts_with(&format!("{name} ({name}, ")), "{name}: {}", asked.text());
            }
            assert_eq!(listed.next(), None, "{}", asked.text());
            let steps = asked.text().lines().filter(|line| line.starts_with("1. run touch -- /srv/plan/new"));
            assert_eq!(steps.count(), 1, "what is the same of all is written once: {}", asked.text());
            let envelope = client.answers(&asked, "decline").await;
            assert_eq!(
                (&envelope["status"], &envelope["error_code"]),
                (&json!("error"), &json!("CONFIRMATION_DECLINED")),
                "{way:?}: {envelope}"
            );
            assert_eq!(envelope["hosts"], json!({"total": 10, "succeeded": 0, "failed": 10}), "{way:?}");
            let on_record = |name: &str| {
                ["CONFIRMATION_REQUIRED", "CONFIRMATION_DECLINED"].map(|code| (name.to_owned(), code.into()))
            };
            let expected: Vec<_> = fleet.names().into_iter().flat_map(on_record).collect();
            assert_eq!(codes(&fleet), expected, "{way:?}");
        }
        assert!(client.close().await.0.success());
        assert_eq!(found(&fleet), everywhere_is(&fleet, "empty\n"), "{way:?}");
        assert_eq!(changes(&fleet), 0, "{way:?}");
    }
    let mut client = served(&fleet, Way::Elicitation).await;
    let asked = client.is_asked(Way::Elicitation, APPLY, grave).await;
    let envelope = client.answers(&asked, "accept").await;
    assert_eq!(envelope["hosts"], json!({"total": 10, "succeeded": 10, "failed": 0}), "{envelope}");
    assert_eq!(found(&fleet), everywhere_is(&fleet, "new\n"));
    assert_eq!(changes(&fleet), 10);
}

#[tokio::test]
async fn a_command_looks_on_all_hosts_at_once_and_asks_once_where_it_changes_them() {
    let test = "a_command_looks_on_all_hosts_at_once_and_asks_once_where_it_changes_them";
    let Some(fleet) = Fleet::new(test) else { return };
    prepare(&fleet, None);
    let mut client = served(&fleet, Way::Elicitation).await;
    let everywhere = |argv: &[&str]| json!({"argv": argv, "host": "fleet", "as_root": true});
    let envelope = client.envelope("command_run", everywhere(&["uname", "--nodename"])).await;
    assert_eq!(envelope["hosts"], json!({"total": 10, "succeeded": 10, "failed": 0}), "{envelope}");
    let data = envelope["data"].to_string();
    for name in fleet.names() {
        assert!(data.contains(name), "{name}: {envelope}");
    }
    assert_eq!(changes(&fleet), 0);
    let touch = everywhere(&["touch", "/srv/plan/new"]);
    let asked = client.is_asked(Way::Elicitation, "command_run", touch).await;
    assert_eq!(found(&fleet), everywhere_is(&fleet, "empty\n"));
    let envelope = client.answers(&asked, "accept").await;
    assert_eq!(envelope["hosts"], json!({"total": 10, "succeeded": 10, "failed": 0}), "{envelope}");
    assert_eq!(found(&fleet), everywhere_is(&fleet, "empty\nnew\n"));
    assert_eq!(changes(&fleet), 10);
}
