//! The input and output of many commands at once are the same on the host itself and over SSH. Over SSH all of it goes
//! through one connection, which is gone in the end.

use linux_sysadmin_tests::{Client, Machine, Reach};
use serde_json::{Value, json};

const PROGRAM: &str = "/usr/local/bin/talking";

/// The program that is run. Each run is known by its number. While it runs, its file is in /run/talking, so that each run
/// counts how many there are at the moment.
const SCRIPT: &str = r#"#!/bin/sh
case "$1" in
    number) mkdir "/run/talking/$$"; ls /run/talking | wc -l > "/run/talking-counts/$2.$$"; echo "$2"; echo "not $2" >&2
            rmdir "/run/talking/$$"; exit $(($2 % 200)) ;;
    bytes) printf '\377\376\000\303\n\200'; printf '\355\240\200' >&2 ;;
    much) printf 'first\n'; head -c "$2" /dev/zero | tr '\0' x; printf '\nlast' ;;
    reads) exec cat ;;
    leaving) sleep "$2" & echo done ;;
    hanging) exec sleep "$2" ;;
esac
"#;

const CLEAN: &str = "
pkill -KILL --full --exact 'sleep 9865[0-9]{2}'
rm -rf /usr/local/bin/talking /run/talking /run/talking-counts
";

/// The questions, each with the known parts of its answer.
fn questions() -> Vec<(Value, Value)> {
    const MIB: u64 = 1 << 20;
    let of = |kind: &str, number: u64| json!({"kind": kind, "number": number});
    let with = |mut question: Value, name: &str, value: Value| {
        question[name] = value;
        question
    };
    let counted: Vec<u8> = (192..=255).collect();
    vec![
        (
            of("bytes", 0),
            json!({
                "exit_code": 0, "truncated": false, "stdout_bytes": 6, "stdout_lines": 2,
                "stdout": {"first": [255, 254, 0, 195, 10, 128]}, "stderr": {"first": [237, 160, 128]},
            }),
        ),
        (
            of("much", 10 * MIB),
            json!({"exit_code": 0, "truncated": true, "stdout_bytes": 10 * MIB + 11, "stdout_lines": 3}),
        ),
        (
            with(of("much", 10 * MIB), "tail", json!(true)),
            json!({"exit_code": 0, "truncated": true, "stdout_bytes": 10 * MIB + 11, "stdout_lines": 3}),
        ),
        (
            with(of("reads", 0), "stdin", json!(MIB)),
            json!({
                "exit_code": 0, "truncated": false, "stdout_bytes": MIB,
                "stdout": {"bytes": MIB, "last": counted},
            }),
        ),
        // The program doesn't read this input.
        (with(of("number", 7), "stdin", json!(MIB)), json!({"exit_code": 7, "stdout_bytes": 2})),
        (of("reads", 0), json!({"exit_code": 0, "stdout_bytes": 0})),
        (of("leaving", 986_501), json!({"exit_code": 0, "stdout": {"first": b"done\n".to_vec()}})),
        (of("hanging", 986_502), json!({"error_code": "COMMAND_TIMEOUT"})),
        (of("number", 142), json!({"exit_code": 142, "stderr": {"first": b"not 142\n".to_vec()}})),
    ]
}

/// Asserts that the answer holds all of this.
#[track_caller]
fn holds(answer: &Value, expected: &Value, context: &str) {
    match expected {
        Value::Object(members) => {
            members
                .iter()
                .for_each(|(name, value)| holds(&answer[name], value, &format!("{context}.{name}")));
        }
        _ => assert_eq!(answer, expected, "{context}"),
    }
}

fn prepared(reach: Reach, test: &str) -> Option<Machine> {
    let machine = Machine::by(reach, test)?;
    machine.holds(CLEAN);
    machine.host().put(PROGRAM, SCRIPT.as_bytes());
    machine.sh(&format!("chmod 0755 {PROGRAM}; install -d -m 1777 /run/talking /run/talking-counts"));
    Some(machine)
}

async fn ask(client: &mut Client, questions: &[Value]) -> i64 {
    let arguments = json!({"questions": questions});
    client.ask("tools/call", json!({"name": "talking_ask", "arguments": arguments})).await
}

#[tokio::test]
async fn whatever_commands_say_and_read_is_the_same_over_ssh() {
    let test = "whatever_commands_say_and_read_is_the_same_over_ssh";
    for host in ["debian1", "rhel1"] {
        let Some(mut machine) = prepared(Reach::Inside(host), test) else { return };
        for account in ["root", "admin"] {
            let (asked, expected): (Vec<_>, Vec<_>) = questions().into_iter().unzip();
            let mut all = Vec::new();
            for reach in [Reach::Inside(host), Reach::OverSsh(host)] {
                machine.now(reach, test);
                machine.add(account, account, "talking");
                let mut client = machine.serve_shipped(account, account).await;
                let id = ask(&mut client, &asked).await;
                let envelope = client.outcome(id).await;
                let answers = envelope["data"]["answers"].as_array().unwrap_or_else(|| panic!("{envelope}"));
                assert_eq!(answers.len(), asked.len());
                for ((question, expected), answer) in asked.iter().zip(&expected).zip(answers) {
                    holds(answer, expected, &format!("{reach:?} {account} {question}"));
                }
                // The stopped command is gone, and so are processes that it left behind as the same account.
                machine.until_ended("sleep 986502");
                machine.until_ended("sleep 986501");
                all.push(answers.clone());
            }
            for ((question, inside), over_ssh) in asked.iter().zip(&all[0]).zip(&all[1]) {
                assert_eq!(inside, over_ssh, "{host} {account} {question}");
            }
        }
        machine.holds(CLEAN);
    }
}

/// The number of open connections from the lab to sshd.
fn connections(machine: &Machine) -> usize {
    let sockets = "ss --no-header --tcp --numeric state established '( sport = :22 )'";
    machine.sh(sockets).lines().count()
}

#[tokio::test]
async fn many_calls_with_many_questions_go_through_one_connection_and_leave_nothing() {
    const CALLS: u64 = 200;
    // Even on a busy machine, so many calls at once are answered before they would become jobs.
    const AT_ONCE: u64 = 50;
    const QUESTIONS: u64 = 20;
    let test = "many_calls_with_many_questions_go_through_one_connection_and_leave_nothing";
    let Some(machine) = prepared(Reach::OverSsh("debian1"), test) else { return };
    // Connections of earlier tests have to end first.
    machine.until("test -z \"$(ss -H -t -n state established '( sport = :22 )')\"");
    machine.add("admin", "admin", "talking");
    let mut client = machine.serve_shipped("admin", "admin").await;
    for begin in (0..CALLS).step_by(AT_ONCE as usize) {
        let mut asked = Vec::new();
        for call in begin..begin + AT_ONCE {
            let numbers = call * QUESTIONS..(call + 1) * QUESTIONS;
            let questions: Vec<_> = numbers
                .clone()
                .map(|number| json!({"kind": "number", "number": number, "patient": true}))
                .collect();
            asked.push((ask(&mut client, &questions).await, numbers));
        }
        for (id, numbers) in asked {
            let envelope = client.outcome(id).await;
            let answers = envelope["data"]["answers"].as_array().unwrap_or_else(|| panic!("{envelope}"));
            for (number, answer) in numbers.zip(answers) {
                let said = format!("{number}\n").into_bytes();
                let expected = json!({"exit_code": number % 200, "stdout": {"first": said}});
                holds(answer, &expected, &number.to_string());
            }
            assert_eq!(connections(&machine), 1);
        }
    }
    // Each question was answered once. As many ran at once as sshd takes sessions, less the sessions that are kept free.
    let counts = machine.sh("cd /run/talking-counts; ls | wc -l; sort -n -u * | tail -n 1");
    let counts: Vec<u64> = counts.lines().map(|line| line.trim().parse().expect("a number")).collect();
    assert_eq!(counts[0], CALLS * QUESTIONS);
    assert!((2..=8).contains(&counts[1]), "{} at once", counts[1]);

    // The account's only processes on the host now are sshd's own and SFTP.
    let sessions =
        "ps -o comm= --ppid $(pgrep --full --exact 'sshd: admin@notty' | head -n 1) | sort | uniq -c";
    let left = machine.sh(sessions);
    assert_eq!(left.split_whitespace().collect::<Vec<_>>(), ["1", "sftp-server"], "{left}");
    assert_eq!(client.close().await.0.code(), Some(0));
    machine.until("! pgrep --full '^(sshd: admin|[^ ]*sh /usr/local/bin/talking)'");
    machine.until("test -z \"$(ss -H -t -n state established '( sport = :22 )')\"");
    machine.holds(CLEAN);
}
