//! Tests on a real host how processes are ended and get signals, and which of them get none. ps and systemctl say what has
//! become of them.

use linux_sysadmin_tests::{Changing, Client, way};
use serde_json::{Value, json};

/// The processes of the tests are those whose command line holds this.
const CLEAN: &str = r"
systemctl stop lsa-signals.service
pkill -KILL -f lsa-signals
pkill -KILL -f '^sleep 60[0-9]'
rm -rf /run/lsa-*
userdel --force --remove lsa-plain
";

fn changing(test: &str) -> Option<Changing> {
    Changing::by(way(), test, "", CLEAN)
}

/// Starts a script that outlives the command, and returns its process id once it says that it is ready.
fn start(machine: &Changing, name: &str, script: &str) -> u32 {
    machine.host().put(&format!("/run/lsa-signals-{name}"), format!("{script}\n").as_bytes());
    let started = format!(
        "rm -f /run/lsa-ready; mkfifo /run/lsa-ready
         setsid sh /run/lsa-signals-{name} < /dev/null > /dev/null 2>&1 3> /run/lsa-ready &
         read pid < /run/lsa-ready; rm /run/lsa-ready; echo $pid"
    );
    machine.sh(&started).trim().parse().expect("a process id")
}

/// Says that the script is ready.
const READY: &str = "echo $$ >&3; exec 3>&-";

fn is_there(machine: &Changing, pid: u32) -> bool {
    machine.holds(&format!("ps -o stat= -p {pid} | grep -qv '^Z'"))
}

fn ps(machine: &Changing, pid: u32, column: &str) -> String {
    machine.sh(&format!("ps -o {column}= -p {pid}")).trim().to_owned()
}

/// Makes a change, saying yes to the question where there is one.
async fn agreed(client: &mut Client, arguments: &Value) -> Value {
    let answer = client.envelope("proc_signal", arguments.clone()).await;
    if answer["status"] != "confirmation_required" {
        return answer;
    }
    let mut confirmed = arguments.clone();
    confirmed["confirmed"] = json!(true);
    client.envelope("proc_signal", confirmed).await
}

#[tokio::test]
async fn a_process_is_ended_and_one_that_ignores_that_is_killed() {
    let Some(machine) = changing("a_process_is_ended_and_one_that_ignores_that_is_killed") else { return };
    let mut client = machine.serve_all_but_critical().await;
    let (mild, hard) = (
        start(&machine, "mild", &format!("{READY}; sleep 600 & wait")),
        start(&machine, "hard", &format!("trap '' TERM; {READY}; while :; do sleep 1; done")),
    );
    let started = machine.sh(&format!("TZ=UTC date -d \"$(ps -o lstart= -p {hard})\" +%FT%TZ"));
    let arguments = json!({"pid": [mild, hard], "wait_seconds": 1});
    let preview = machine.shows(&mut client, "proc_signal", &arguments).await;
    let step = preview["steps"][0]["signal"].as_str().expect("a sentence");
    assert!(
        step.starts_with(&format!("Send SIGTERM to {mild} `sh /run/lsa-signals-mild` (root, started ")),
        "{step}"
    );
    assert!(step.ends_with(", then SIGKILL to what is left after 1 s"), "{step}");
    assert!(is_there(&machine, mild) && is_there(&machine, hard));
    let done = agreed(&mut client, &arguments).await;
    let told = |at: usize| {
        (done["data"]["processes"][at]["pid"].clone(), done["data"]["processes"][at]["outcome"].clone())
    };
    assert_eq!(told(0), (json!(mild), json!("ended")), "{done}");
    assert_eq!(told(1), (json!(hard), json!("killed")), "{done}");
    assert_eq!(done["data"]["processes"][1]["command"], "sh /run/lsa-signals-hard");
    let told = done["data"]["processes"][1]["started"].as_str().expect("a time");
    assert_eq!(&told[..17], &started.trim()[..17], "to the minute");
    assert!(!is_there(&machine, mild) && !is_there(&machine, hard));
    machine.refuses(&mut client, "proc_signal", &json!({"pid": mild}), "PROCESS_NOT_FOUND").await;
}

#[tokio::test]
async fn a_tree_that_forks_while_it_is_ended_is_ended() {
    let Some(machine) = changing("a_tree_that_forks_while_it_is_ended_is_ended") else { return };
    let mut client = machine.serve_all_but_critical().await;
    // The script ends by itself where the test fails.
    let script = format!(
        "{READY}; i=0; while [ $i -lt 500 ]; do sh -c 'sleep 601; : lsa-signals' & i=$((i + 1)); sleep 0.05; done"
    );
    let pid = start(&machine, "forks", &script);
    let count = || {
        machine.sh("ps -eo args= | grep -c '^[s]leep 601' || true").trim().parse::<u32>().expect("a count")
    };
    while count() < 5 {}
    let ended = agreed(&mut client, &json!({"pid": pid, "tree": true})).await;
    assert_eq!(ended["status"], "success", "{ended}");
    assert_eq!(ended["data"]["processes"][0]["outcome"], "ended", "{ended}");
    assert!(ended["data"]["descendants"]["ended"].as_u64() >= Some(10), "{ended}");
    assert_eq!(count(), 0, "{ended}");
}

#[tokio::test]
async fn a_stop_and_its_end_are_seen_in_ps() {
    let Some(machine) = changing("a_stop_and_its_end_are_seen_in_ps") else { return };
    let mut client = machine.serve_all_but_critical().await;
    let pid = start(&machine, "stops", &format!("{READY}; exec sleep 602"));
    for (signal, state) in [(json!("STOP"), "T"), (json!(18), "S"), (json!("sigstop"), "T")] {
        let sent = agreed(&mut client, &json!({"pid": pid, "signal": signal})).await;
        assert_eq!(sent["data"]["processes"][0]["outcome"], "sent", "{sent}");
        while !ps(&machine, pid, "stat").starts_with(state) {}
    }
    // A process that is stopped takes SIGTERM only once it goes on. SIGKILL ends it.
    let waits = agreed(&mut client, &json!({"pid": pid, "signal": "TERM", "wait_seconds": 1})).await;
    assert_eq!(waits["data"]["processes"][0]["outcome"], "stopped", "{waits}");
    assert!(waits["notes"].to_string().contains("CONT"), "{waits}");
    let killed = agreed(&mut client, &json!({"pid": pid, "signal": "KILL"})).await;
    assert_eq!(killed["data"]["processes"][0]["outcome"], "killed", "{killed}");
}

#[tokio::test]
async fn what_gets_no_signal_is_refused_and_lives() {
    let Some(machine) = changing("what_gets_no_signal_is_refused_and_lives") else { return };
    let mut client = machine.serve_all_but_critical().await;
    let pid = start(&machine, "lives", &format!("{READY}; exec sleep 603"));
    let kernel: u32 = machine.sh("pgrep -x kthreadd || echo 0").trim().parse().expect("a process id");
    for (arguments, code) in [
        (json!({"pid": 0}), "INVALID_PID"),
        (json!({"pid": -1}), "INVALID_PID"),
        (json!({"pid": [pid, -2]}), "INVALID_PID"),
        (json!({"pid": []}), "INVALID_PID"),
        (json!({"pid": 4_194_305}), "INVALID_PID"),
        (json!({"pid": 1}), "PROTECTED_PROCESS"),
        (json!({"pid": [pid, 1]}), "PROTECTED_PROCESS"),
        (json!({"pid": pid, "signal": "TERMINATE"}), "INVALID_SIGNAL"),
        (json!({"pid": pid, "signal": 65}), "INVALID_SIGNAL"),
        (json!({"pid": pid, "signal": "-9"}), "INVALID_SIGNAL"),
        (json!({"pid": pid, "wait_seconds": 0}), "INVALID_WAIT"),
        (json!({"pid": pid, "wait_seconds": 301}), "INVALID_WAIT"),
        (json!({"pid": pid, "started": "2020-01-01T00:00:00Z"}), "PROCESS_REUSED"),
        (json!({"pid": pid, "started": "yesterday"}), "INVALID_START"),
        (json!({"pid": 4_194_304}), "PROCESS_NOT_FOUND"),
    ] {
        machine.refuses(&mut client, "proc_signal", &arguments, code).await;
    }
    if kernel != 0 {
        machine.refuses(&mut client, "proc_signal", &json!({"pid": kernel}), "PROTECTED_PROCESS").await;
    }
    assert!(is_there(&machine, pid));
    assert_eq!(machine.begun("root"), 0);
}

#[tokio::test]
async fn the_main_process_of_a_unit_is_left_to_systemd_and_its_others_are_not() {
    let test = "the_main_process_of_a_unit_is_left_to_systemd_and_its_others_are_not";
    let Some(machine) = changing(test) else { return };
    let mut client = machine.serve_all_but_critical().await;
    machine.sh(
        "systemd-run --quiet --unit=lsa-signals.service sh -c ': lsa-signals; sleep 604 & while :; do sleep 605; done'",
    );
    let main: u32 = machine
        .sh("systemctl show --value --property=MainPID lsa-signals")
        .trim()
        .parse()
        .expect("a process id");
    let child = || machine.sh(&format!("pgrep -P {main} -f 'sleep 604' || true")).trim().to_owned();
    while child().is_empty() {}
    for (signal, advice) in
        [(json!("TERM"), "svc_stop"), (json!("KILL"), "svc_restart"), (json!("HUP"), "svc_reload")]
    {
        let refused = machine
            .refuses(&mut client, "proc_signal", &json!({"pid": main, "signal": signal}), "UNIT_PROCESS")
            .await;
        assert!(refused["remediation"].to_string().contains(advice), "{refused}");
    }
    let child: u32 = child().parse().expect("a process id");
    let preview = machine.shows(&mut client, "proc_signal", &json!({"pid": child})).await;
    assert!(preview["warnings"].to_string().contains("lsa-signals.service"), "{preview}");
    let ended = agreed(&mut client, &json!({"pid": child})).await;
    assert_eq!(ended["data"]["processes"][0]["unit"], "lsa-signals.service", "{ended}");
    assert!(!is_there(&machine, child) && is_there(&machine, main));
}

#[tokio::test]
async fn a_thread_and_a_zombie_are_explained() {
    let Some(machine) = changing("a_thread_and_a_zombie_are_explained") else { return };
    let mut client = machine.serve_all_but_critical().await;
    // The shell becomes a program that doesn't reap what the shell had started.
    let parent = start(&machine, "parent", &format!("sleep 0 & {READY}; exec sleep 606"));
    let zombie = || machine.sh(&format!("ps -o pid=,stat= --ppid {parent} | awk '$2 ~ /^Z/ {{print $1}}'"));
    while zombie().trim().is_empty() {}
    let zombie: u32 = zombie().trim().parse().expect("a process id");
    let refused = machine.refuses(&mut client, "proc_signal", &json!({"pid": zombie}), "PROCESS_ENDED").await;
    assert!(refused.to_string().contains(&parent.to_string()), "{refused}");
    let threads = machine.sh("for task in /proc/[0-9]*/task/[0-9]*; do p=${task#/proc/}; p=${p%%/*}; \
         [ ${task##*/} = $p ] || echo ${task##*/} $p; done 2> /dev/null | head -n 1");
    if let Some((thread, process)) = threads.trim().split_once(' ') {
        let thread: u32 = thread.parse().expect("a number");
        let refused =
            machine.refuses(&mut client, "proc_signal", &json!({"pid": thread}), "NOT_A_PROCESS").await;
        assert!(refused["remediation"].to_string().contains(process), "{refused}");
    }
}

#[tokio::test]
async fn what_carries_the_server_gets_no_signal() {
    let Some(machine) = changing("what_carries_the_server_gets_no_signal") else { return };
    let mut client = machine.serve_all_but_critical().await;
    // Over SSH this is the sshd that all connections come from; on the host itself, the server.
    let own = machine.sh("pgrep --exact --runstates S,R linux-sysadmin || pgrep -o -x sshd");
    let pid: u32 = own.split_whitespace().next().expect("a process").parse().expect("a process id");
    let arguments = json!({"pid": pid, "signal": "USR1"});
    let refused = machine.refuses(&mut client, "proc_signal", &arguments, "PROTECTED_PROCESS").await;
    assert!(refused["message"].to_string().contains("own commands"), "{refused}");
    let alive = client.envelope("proc_signal", json!({"pid": 0})).await;
    assert_eq!(alive["error_code"], "INVALID_PID", "{alive}");
}
