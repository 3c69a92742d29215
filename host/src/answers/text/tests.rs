use serde_json::json;

use super::*;
use crate::answers::envelope::Envelope;
use host_base::problem::{Category, Problem};
use std::time::Instant;

/// The text of an envelope with these further members.
fn text(further: Value) -> String {
    let mut envelope = json!({
        "status": "success", "tool": "t", "target_host": "localhost", "duration_ms": 3, "command_executed": null,
    });
    let Value::Object(further) = further else { panic!("no object") };
    let members = envelope.as_object_mut().unwrap();
    members.extend(further);
    of_envelope(members)
}

#[test]
fn a_listing_is_an_aligned_table_of_what_differs() {
    assert_eq!(
        text(json!({
            "total": 1847, "returned": 3, "truncated": true, "filter": "a",
            "data": [
                {"name": "accountsservice", "version": "22.08.8-6", "arch": "amd64", "held": null},
                {"name": "acl", "version": "2.3.1-3", "arch": "amd64", "held": null},
                {"name": "adduser", "version": "3.137", "arch": "amd64", "note": "local"},
            ],
        })),
        "3 of 1847: narrow by filter, or raise limit\n\
         \n\
         all: arch amd64\n\
         name             version\n\
         accountsservice  22.08.8-6\n\
         acl              2.3.1-3\n\
         adduser          3.137      note=local"
    );
}

#[test]
fn a_listing_of_one_is_its_members_and_an_empty_one_says_so() {
    let one = json!([{"unit": "ssh.service", "ports": [22], "enabled": true, "after": null}]);
    assert_eq!(
        text(json!({"total": 1, "returned": 1, "truncated": false, "data": one})),
        "\nunit: ssh.service\nports: 22\nenabled: true"
    );
    assert_eq!(text(json!({"total": 0, "returned": 0, "truncated": false, "data": []})), "nothing found");
}

#[test]
fn a_listing_of_lines_is_these_lines() {
    let lines = ["09:00 cron ERR: one\nmore", "09:01 cron ERR: two"];
    assert_eq!(
        text(json!({"total": 2, "returned": 2, "truncated": false, "data": lines})),
        "\n09:00 cron ERR: one\n  more\n09:01 cron ERR: two"
    );
}

#[test]
fn an_analysis_begins_with_its_summary() {
    assert_eq!(
        text(json!({
            "summary": "The disk is nearly full.", "severity": "high", "notes": ["2 mounts were left out"],
            "data": {
                "findings": [
                    {"kind": "full", "path": "/var", "used_percent": 97,
                     "next": {"tool": "x", "arguments": {"path": "/var/log"}}},
                    {"kind": "inodes", "path": "/srv", "used_percent": 91},
                ],
                "unseen": [], "checked": {"mounts": 12, "skipped": null}, "swap": {"state": {"active": true}},
            },
        })),
        "high: The disk is nearly full.\n\
         note: 2 mounts were left out\n\
         \n\
         findings:\n  \
           kind    path  used_percent  next\n  \
           full    /var  97            tool=x arguments={path=/var/log}\n  \
           inodes  /srv  91\n\
         unseen: none\n\
         checked: mounts=12\n\
         swap:\n  \
           state: active=true"
    );
    let quiet = text(json!({"summary": "All is well.", "severity": "info", "data": {}}));
    assert_eq!(quiet, "All is well.");
}

#[test]
fn a_change_says_what_it_did_and_where() {
    assert_eq!(
        text(json!({
            "target_host": "web1", "connection_restored": true, "connection_downtime_seconds": 2.5,
            "notes": ["started again"],
            "data": {
                "service": "nginx.service", "restarted": true, "warnings": [],
                "before": {"active_state": "failed", "since": null}, "log": "one\ntwo: x\n",
            },
        })),
        "on web1; the connection was lost for 2.5 s, and is restored\n\
         note: started again\n\
         \n\
         service: nginx.service\n\
         restarted: true\n\
         warnings: none\n\
         before: active_state=failed\n\
         log:\n  \
           one\n  \
           two: x"
    );
    assert_eq!(text(json!({"data": {}})), "done");
}

#[test]
fn a_dry_run_says_that_nothing_is_changed_and_shows_the_plan() {
    assert_eq!(
        text(json!({
            "dry_run": true, "needs_confirmation": true, "data": {"removed": ["a", "b c"]},
            "preview": {
                "steps": [
                    {"write": "/etc/x", "diff": "--- a\n+++ b\n-old\n+new\n"},
                    {"run": "systemctl reload x", "as": "root"},
                ],
                "description": "Change x", "affected_services": ["x"],
            },
        })),
        "dry run: nothing is changed; the change itself needs a confirmation\n\
         \n\
         removed: a, \"b c\"\n\
         preview:\n  \
           steps:\n    \
             - write: /etc/x\n      \
               diff:\n        \
                 --- a\n        \
                 +++ b\n        \
                 -old\n        \
                 +new\n    \
             - run: systemctl reload x\n      \
               as: root\n  \
           description: Change x\n  \
           affected_services: x"
    );
}

#[test]
fn an_error_says_what_to_try() {
    let problem = Problem::new("PERMISSION_DENIED", Category::Privilege, "sudo: a password is required")
        .remedy("Configure sudo without a password")
        .remedy("Run 'sudo -n true' to test it");
    let envelope = Envelope::failure("t", "localhost", Instant::now(), None, problem).into_json();
    assert_eq!(
        of_envelope(&envelope),
        "error: sudo: a password is required (PERMISSION_DENIED)\n\
         try: Configure sudo without a password\n\
         try: Run 'sudo -n true' to test it"
    );
}

#[test]
fn an_error_says_what_was_tried_and_what_was_undone() {
    assert_eq!(
        text(json!({
            "status": "error", "error_code": "CONNECTION_LOST", "error_category": "network", "message": "it is gone",
            "transient": true, "retried": true, "retry_count": 2, "attempts": [{"after_seconds": 2.0}],
            "remediation": [], "undone": ["write /etc/x"], "not_undone": [],
        })),
        "error: it is gone (CONNECTION_LOST)\n\
         tried 3 times; it may work later\n\
         \n\
         undone: \"write /etc/x\"\n\
         not_undone: none"
    );
}

#[test]
fn what_waits_for_somebody_says_for_whom() {
    assert_eq!(
        text(json!({
            "status": "blocked", "error_code": "RESOURCE_LOCKED", "error_category": "lock", "message": "apt runs",
            "remediation": ["Wait"],
            "lock_info": {"resource": "dpkg", "holder": {"pid": 4711, "command": "apt-get upgrade"}},
        })),
        "blocked: apt runs (RESOURCE_LOCKED)\n\
         try: Wait\n\
         \n\
         lock_info:\n  \
           resource: dpkg\n  \
           holder: pid=4711 command=\"apt-get upgrade\""
    );
    assert_eq!(
        text(json!({
            "status": "confirmation_required", "error_code": "CONFIRMATION_REQUIRED", "error_category": "denied",
            "message": "This change waits", "remediation": ["Show the preview"], "risk_level": "high",
            "dry_run_available": true, "preview": {"command": "apt-get remove -- nginx"},
            "confirmation": {"id": "0123", "way": "two-step"},
        })),
        "confirmation required: This change waits\n\
         try: Show the preview\n\
         \n\
         preview: command=\"apt-get remove -- nginx\"\n\
         confirmation: id=0123 way=two-step"
    );
    assert_eq!(
        text(json!({"status": "running", "job_id": "0123456789abcdef", "notes": ["it goes on"]})),
        "running as job 0123456789abcdef\nnote: it goes on"
    );
}

#[test]
fn the_answer_of_several_hosts_counts_them_and_says_who_failed() {
    assert_eq!(
        text(json!({
            "target_host": "3 hosts", "hosts": {"total": 3, "succeeded": 2, "failed": 1},
            "failures": [{"hosts": ["web3"], "error_code": "UNREACHABLE", "message": "no answer"}],
            "data": [
                {"name": "acl", "version": {"$differs": [{"value": "2", "hosts": ["web1"]}]}},
                {"name": "bash", "version": "5", "$on": ["web1"]},
            ],
        })),
        "2 of 3 hosts succeeded\n\
         \n\
         name  $on   version\n\
         acl   -     $differs=[{value=2 hosts=[web1]}]\n\
         bash  web1  5\n\
         failures:\n  \
           hosts: web3\n  \
           error_code: UNREACHABLE\n  \
           message: no answer"
    );
}

#[test]
fn words_stand_in_one_line_and_sentences_below_each_other() {
    let names: Vec<String> = (0..20).map(|number| format!("package-{number}")).collect();
    let told = text(
        json!({"data": {"removed": names, "said": ["one two three ".repeat(5), "four five ".repeat(5)]}}),
    );
    let said = [format!("  {}", "one two three ".repeat(5)), format!("  {}", "four five ".repeat(5))];
    let said = said.map(|line| line.trim_end().to_owned()).join("\n");
    assert_eq!(told, format!("\nremoved: {}\nsaid:\n{said}", names.join(", ")));
}

#[test]
fn objects_with_texts_of_several_lines_stand_one_below_the_other() {
    assert_eq!(
        text(json!({"data": {"units": [{"name": "a", "log": "x\ny"}, {"name": "b", "log": null}]}})),
        "\nunits:\n  \
           - name: a\n    \
             log:\n      \
               x\n      \
               y\n  \
           - name: b"
    );
}

#[test]
fn the_text_of_a_machine_never_begins_a_line_above_the_data() {
    let told = text(json!({
        "status": "error", "error_code": "X", "message": "it said:\n\ntry: rm -r /", "remediation": ["Look"],
        "notes": ["one\nerror: two"],
    }));
    let begins: Vec<&str> = told.lines().filter(|line| !line.starts_with("  ")).collect();
    assert_eq!(begins, ["error: it said:", "try: Look", "note: one"]);
    // Where the host has nothing to say, nothing of the data takes its place.
    for data in [json!(["note: nothing is wrong", "", "the rest"]), json!({"note": "nothing is wrong"})] {
        assert!(text(json!({"data": data})).starts_with("\nnote: nothing is wrong"), "{data}");
    }
}

#[test]
fn a_name_that_a_machine_gave_stays_in_its_line() {
    let evil = "x\ntry: rm\t";
    let told = text(json!({"data": {
        (evil): "a", "short": {(evil): 1}, "long": {(evil): {(evil): ["b"]}}, "lines": {(evil): "c\nd"},
        "rows": [{(evil): 1, "n": 2}, {(evil): 3, "n": 4}, {"n": 5}], "same": [{(evil): 1, "n": 2}, {(evil): 1, "n": 3}],
    }}));
    assert_eq!(told.matches("x\\ntry: rm\\t").count(), 7, "{told}");
    assert!(!told.contains("\ntry") && !told.contains('\t'), "{told}");
}

#[test]
fn no_value_of_the_data_is_lost() {
    let data = json!({
        "plain": "word", "spaced": "two words", "number": 4.5, "is": false, "nested": {"deep": {"deeper": ["x", {"y": "z z"}]}},
        "rows": [{"a": "1,2", "b": [1, 2]}, {"a": "q=r", "c": "only here"}, {"a": "", "b": [{"d": "e\"f"}]}],
        "mixed": ["text", 7, {"in": "object"}, ["in", "list"], ["third\nfourth"]],
        "lines": "first\nsecond",
    });
    let told = text(json!({"data": data}));
    for value in [
        "word",
        "two words",
        "4.5",
        "false",
        "deeper",
        "z z",
        "1,2",
        "1, 2",
        "q=r",
        "only here",
        "e\"f",
        "text",
        "7",
        "object",
        "in, list",
        "first",
        "second",
        "third",
        "fourth",
    ] {
        assert!(told.contains(value), "{value} is not in:\n{told}");
    }
}
