//! Commands that are connected by pipes on a host behind a real sshd: one channel carries what all of them say, and each
//! exit code comes back.

use std::io::Write;
use std::process::Stdio;

use linux_sysadmin_tests::Lab;
use serde_json::{Value, json};

/// A process that a test starts sleeps for these seconds.
const SLEEP: &str = "98751";

/// Runs pipelines on the host of this alias; gives the outputs or the problem of each.
#[track_caller]
fn ran(lab: &Lab, alias: &str, pipelines: &Value) -> Vec<Value> {
    let mut child = lab
        .command(&[env!("CARGO_BIN_EXE_pipelines"), alias])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("ip runs");
    let mut stdin = child.stdin.take().expect("a pipe");
    stdin.write_all(pipelines.to_string().as_bytes()).expect("it reads");
    drop(stdin);
    let output = child.wait_with_output().expect("it ends");
    assert!(output.status.success(), "{alias}");
    serde_json::from_slice(&output.stdout).expect("an array")
}

/// A pipeline of these commands.
fn pipeline(commands: &[&[&str]]) -> Value {
    json!({"commands": commands.iter().map(|argv| json!({"argv": argv})).collect::<Vec<_>>()})
}

/// Asserts the exit codes, the stdout, and the stderr of the last output. The others are empty.
#[track_caller]
fn said(outputs: &Value, exit_codes: &[i32], stdout: &[u8], stderr: &str) {
    let outputs = outputs.as_array().unwrap_or_else(|| panic!("{outputs}"));
    let codes: Vec<&Value> = outputs.iter().map(|output| &output["exit_code"]).collect();
    assert_eq!(json!(codes), json!(exit_codes), "{outputs:?}");
    let (last, others) = outputs.split_last().expect("an output");
    assert_eq!(last["stdout"], hex::encode(stdout), "{outputs:?}");
    assert_eq!(last["stderr"], stderr, "{outputs:?}");
    for other in others {
        assert_eq!((&other["stdout"], &other["stderr"]), (&json!(""), &json!("")), "{outputs:?}");
    }
}

/// Asserts that no process of a test sleeps on this host any more.
fn nobody_sleeps(lab: &Lab, host: &str) {
    lab.host(host).until(&format!("! pgrep --full '^sleep {SLEEP}$'"));
}

#[test]
fn commands_are_connected_and_each_exit_code_comes_back() {
    let Some(lab) = Lab::beside_others("commands_are_connected_and_each_exit_code_comes_back") else {
        return;
    };
    let sh = |script| ["sh", "-c", script];
    let pipelines = json!([
        pipeline(&[&["printf", r"b\na\nb\n"], &["sort"], &["uniq", "-c"]]),
        pipeline(&[&["false"], &["true"], &sh("exit 7")]),
        pipeline(&[&["yes"], &["head", "-n", "1"]]),
        pipeline(&[&sh("kill -s KILL $$"), &sh("kill -s TERM $$"), &["true"]]),
        pipeline(&[&["head", "-c", "10000000", "/dev/zero"], &["cat"], &["wc", "-c"]]),
        pipeline(&[&["printf", r"\377\0\303("], &["cat"]]),
        pipeline(&[&sh("echo one >&2"), &sh("cat; echo two >&2"), &["cat"]]),
        pipeline(&[&["cat"], &["wc", "-c"]]),
        pipeline(&[
            &sh("test -e /proc/self/fd/3 || echo three"),
            &sh("cat; test -e /proc/self/fd/5 || echo five")
        ]),
    ]);
    for alias in ["debian1", "rhel1", "bare1"] {
        let outputs = ran(&lab, alias, &pipelines);
        said(&outputs[0], &[0, 0, 0], b"      1 a\n      2 b\n", "");
        said(&outputs[1], &[1, 0, 7], b"", "");
        said(&outputs[2], &[141, 0], b"y\n", "");
        said(&outputs[3], &[137, 143, 0], b"", "");
        said(&outputs[4], &[0, 0, 0], b"10000000\n", "");
        said(&outputs[5], &[0, 0], b"\xff\0\xc3(", "");
        assert_eq!(outputs[6][2]["stderr"], "one\ntwo\n", "{alias}");
        said(&outputs[7], &[0, 0], b"0\n", "");
        said(&outputs[8], &[0, 0], b"three\nfive\n", "");
    }
}

#[test]
fn words_of_connected_commands_arrive_as_they_are_with_any_login_shell() {
    let test = "words_of_connected_commands_arrive_as_they_are_with_any_login_shell";
    let Some(lab) = Lab::beside_others(test) else { return };
    let printable: String = (' '..='~').collect();
    let words = ["", "a b", "it's", "\\", "$HOME", "`id`", "\n", "a\nb\n", "*", "é", "=ls", "~", &printable];
    let argv = [&["printf", "%s\\n"][..], &words].concat();
    let expected: String = words.iter().map(|word| format!("{word}\n")).collect();
    for shell in ["dash", "bash", "zsh", "fish"] {
        let alias = lab.alias("debian1", &format!("with-{shell}"));
        let outputs = ran(&lab, &alias, &json!([pipeline(&[&argv, &["cat", "-"], &["cat"]])]));
        said(&outputs[0], &[0, 0, 0], expected.as_bytes(), "");
    }
}

#[test]
fn the_first_command_reads_what_is_given_and_each_has_its_own_variables() {
    let test = "the_first_command_reads_what_is_given_and_each_has_its_own_variables";
    let Some(lab) = Lab::beside_others(test) else { return };
    let large = "x".repeat(8 << 20);
    let show = json!(["sh", "-c", "cat; echo \"[$A]\""]);
    let pipelines = json!([
        {"commands": [{"argv": ["cat"], "stdin": large}, {"argv": ["wc", "-c"]}]},
        {"commands": [{"argv": ["sh", "-c", "exit 3"], "stdin": large}, {"argv": ["wc", "-c"]}]},
        {"commands": [{"argv": show, "env": [["A", "b c"]], "stdin": "in "}, {"argv": show, "env": []}]},
    ]);
    let outputs = ran(&lab, "debian1", &pipelines);
    said(&outputs[0], &[0, 0], b"8388608\n", "");
    said(&outputs[1], &[3, 0], b"0\n", "");
    said(&outputs[2], &[0, 0], b"in [b c]\n[]\n", "");
    lab.host("debian1").until("! ls /dev/shm/.linux-sysadmin.* /tmp/.linux-sysadmin.* 2> /dev/null");
}

#[test]
fn a_pipeline_that_cannot_start_as_a_whole_does_not_start() {
    let Some(lab) = Lab::beside_others("a_pipeline_that_cannot_start_as_a_whole_does_not_start") else {
        return;
    };
    let made = "/var/tmp/lab-pipeline-made";
    let outputs = ran(&lab, "debian1", &json!([pipeline(&[&["touch", made], &["no-such-program"]])]));
    assert_eq!(outputs[0]["code"], "PROGRAM_NOT_FOUND", "{outputs:?}");
    let message = outputs[0]["message"].as_str().expect("a message");
    assert!(message.starts_with("command 2 of 2, no-such-program, can't be started: "), "{message}");
    assert!(!lab.host("debian1").holds(&format!("rm {made}")));
}

#[test]
fn a_pipeline_ends_as_a_whole_at_its_time_limit_with_what_it_said() {
    let test = "a_pipeline_ends_as_a_whole_at_its_time_limit_with_what_it_said";
    let Some(lab) = Lab::beside_others(test) else { return };
    let sleep = |before: &str| json!(["sh", "-c", format!("{before}; sleep {SLEEP} & sleep {SLEEP}; cat")]);
    let stages = |root: bool| {
        json!({"commands": [
            {"argv": sleep("true"), "seconds": 1},
            {"argv": sleep("echo late >&2"), "seconds": 4, "root": root},
            {"argv": sleep("echo so far"), "seconds": 2},
        ]})
    };
    for (alias, root) in [("debian1".to_owned(), false), (lab.alias("debian1", "admin"), true)] {
        let outputs = ran(&lab, &alias, &json!([stages(root)]));
        let problem = &outputs[0];
        assert_eq!(problem["code"], "COMMAND_TIMEOUT", "{problem}");
        let message = problem["message"].as_str().expect("a message");
        assert!(message.starts_with("sh | sh | sh took longer than 4 s and was stopped;"), "{message}");
        let so_far = json!({"stdout": "so far\n", "stderr": "late\n", "truncated": false});
        assert_eq!(problem["details"]["output_so_far"], so_far, "{problem}");
        nobody_sleeps(&lab, "debian1");
    }
}

#[test]
fn commands_with_other_rights_are_connected_to_commands_without() {
    let Some(lab) = Lab::beside_others("commands_with_other_rights_are_connected_to_commands_without") else {
        return;
    };
    let alias = lab.alias("debian1", "admin");
    let id = json!(["sh", "-c", "cat; id -u"]);
    let root = json!({"commands": [{"argv": id, "root": true}, {"argv": id}, {"argv": id, "root": true}]});
    let piped = json!({"commands": [{"argv": ["yes"], "root": true}, {"argv": ["head", "-n", "1"]}]});
    let outputs = ran(&lab, &alias, &json!([root, piped]));
    let said_ids = hex::decode(outputs[0][2]["stdout"].as_str().expect("a stdout")).expect("hex");
    let ids: Vec<&str> = std::str::from_utf8(&said_ids).expect("text").lines().collect();
    assert_eq!((ids.len(), ids[0], ids[2]), (3, "0", "0"), "{outputs:?}");
    assert_ne!(ids[1], "0", "{outputs:?}");
    said(&outputs[1], &[141, 0], b"y\n", "");
}

/// The shell that would tell the exit codes is killed along with the commands.
#[test]
fn a_pipeline_whose_end_is_not_told_is_a_problem_and_a_change_is_uncertain() {
    let test = "a_pipeline_whose_end_is_not_told_is_a_problem_and_a_change_is_uncertain";
    let Some(lab) = Lab::beside_others(test) else { return };
    let commands = json!([{"argv": ["sh", "-c", "echo begun; kill -s KILL 0"]}, {"argv": ["cat"]}]);
    let pipelines = json!([{"commands": commands}, {"commands": commands, "acts": true}]);
    let outputs = ran(&lab, "debian1", &pipelines);
    assert_eq!(outputs[0]["code"], "IO_ERROR", "{outputs:?}");
    let message = outputs[0]["message"].as_str().expect("a message");
    assert!(message.contains("ended early, with exit code 137"), "{message}");
    assert_eq!(outputs[1]["code"], "CHANGE_UNCERTAIN", "{outputs:?}");
}
