//! A program whose processes are hard to end, and the calls that start it.

use serde_json::{Value, json};

use crate::{Client, Host};

/// The path of the program on a host.
const PROGRAM: &str = "/usr/local/sbin/lingering";

/// The program. Its processes are known by the seconds for which they sleep.
const SCRIPT: &str = r#"#!/bin/sh
case "$1" in
    # Nobody in it ends when told to.
    stubborn) trap '' HUP INT TERM; sleep "$2" & sleep "$2"; sleep "$2" ;;
    # The first one ends, and one in the background doesn't.
    scattered) (trap '' HUP INT TERM; exec sleep "$2") & sleep "$2"; sleep "$2" ;;
    # It doesn't end, and has no children.
    alone) trap '' HUP INT TERM; exec sleep "$2" ;;
    leaving) sleep "$2" & echo done ;;
    failing) exit 124 ;;
    killed) kill -s KILL $$ ;;
esac
"#;

/// The configuration without retries: a call that is out of time would be made once more, with twice the time.
pub const ONCE: &str = "errors:\n  max_retries: 0\n";

/// Kinds of process trees that are hard to end, each with the number of processes that sleep and with their account.
const TREES: [(&str, usize, Option<&str>); 4] =
    [("stubborn", 2, None), ("scattered", 2, None), ("alone", 1, None), ("scattered", 2, Some("nobody"))];

/// Puts the program on a host.
pub fn install(host: &Host) {
    host.put(PROGRAM, SCRIPT.as_bytes());
    host.run(&["chmod", "0755", PROGRAM]);
}

/// Takes the program and its processes away, those whose seconds begin with these three digits.
pub fn remove(host: &Host, seconds: u32) {
    host.holds(&format!(
        "pkill -KILL --full '^(.* )?(sleep|lingering [a-z]+) {seconds}[0-9]{{3}}$'; rm -f {PROGRAM}"
    ));
}

/// Starts a process tree of this kind; gives the number of the request.
pub async fn begin(client: &mut Client, kind: &str, seconds: u32, account: Option<&str>) -> i64 {
    let mut arguments = json!({"kind": kind, "seconds": seconds});
    if let Some(account) = account {
        arguments["account"] = json!(account);
    }
    client.ask("tools/call", json!({"name": "lingering_run", "arguments": arguments})).await
}

/// Starts all trees that are hard to end at the same time, with consecutive numbers from this one on.
pub async fn begin_all(host: &Host, client: &mut Client, first: u32) -> Vec<(i64, u32)> {
    let mut begun = Vec::new();
    for ((kind, _, account), seconds) in TREES.into_iter().zip(first..) {
        begun.push((begin(client, kind, seconds, account).await, seconds));
    }
    for ((_, processes, _), seconds) in TREES.into_iter().zip(first..) {
        until_sleeping(host, processes, seconds);
    }
    begun
}

/// Waits until neither the processes with these seconds nor their callers are left.
pub fn until_gone(host: &Host, seconds: u32) {
    host.until(&format!("! pgrep --full '^(.* )?(sleep|([^ ]*/)?lingering [a-z]+) {seconds}$'"));
}

/// Waits until this number of the processes runs.
pub fn until_sleeping(host: &Host, processes: usize, seconds: u32) {
    host.until(&format!("test $(pgrep --full --exact --count 'sleep {seconds}') -eq {processes}"));
}

/// Asserts that the call was out of time.
#[track_caller]
pub fn is_stopped(envelope: &Value) {
    assert_eq!(envelope["error_code"], "COMMAND_TIMEOUT", "{envelope}");
    assert_eq!(envelope["message"], "lingering took longer than 10 s and was stopped", "{envelope}");
}
