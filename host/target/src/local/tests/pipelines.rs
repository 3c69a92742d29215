//! Commands that are connected by pipes on this machine.

use super::*;
use crate::pipeline::Pipeline;

fn sh(script: &str) -> Command {
    command("sh", &["-c", script])
}

async fn run(commands: &[Command]) -> Result<Vec<Output>, Problem> {
    Local::new().run_pipeline(Pipeline::of(commands).unwrap(), Rights::NONE).await
}

/// Runs the commands; gives their exit codes and the stdout.
async fn ran(commands: &[Command]) -> (Vec<i32>, String) {
    let outputs = run(commands).await.unwrap();
    let exit_codes = outputs.iter().map(|output| output.exit_code).collect();
    (exit_codes, String::from_utf8(outputs.last().unwrap().stdout.clone()).unwrap())
}

#[tokio::test]
async fn each_command_reads_what_the_one_before_it_writes() {
    let commands = [command("printf", &["b\\na\\nb\\n"]), command("sort", &[]), command("uniq", &["-c"])];
    assert_eq!(ran(&commands).await, (vec![0, 0, 0], "      1 a\n      2 b\n".to_owned()));
    let many = vec![command("cat", &[]); 7];
    let commands = [vec![command("printf", &["x"])], many].concat();
    assert_eq!(ran(&commands).await, (vec![0; 8], "x".to_owned()));
}

#[tokio::test]
async fn each_command_has_its_own_exit_code_and_stderr_and_only_the_last_has_a_stdout() {
    let commands = [
        sh("echo one; echo first >&2; exit 1"),
        sh("cat; echo two; kill -TERM $$"),
        sh("cat >&2; echo three; exit 7"),
    ];
    let outputs = run(&commands).await.unwrap();
    let said: Vec<_> = outputs
        .iter()
        .map(|output| {
            let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
            (output.exit_code, text(&output.stdout), text(&output.stderr), output.stdout_lines)
        })
        .collect();
    let (none, third) = (String::new(), "three\n".to_owned());
    let first = (1, none.clone(), "first\n".to_owned(), 0);
    assert_eq!(said, [first, (143, none.clone(), none, 0), (7, third, "one\ntwo\n".to_owned(), 1)]);
}

#[tokio::test]
async fn a_command_that_ends_early_ends_the_one_before_it() {
    let commands = [command("yes", &[]), command("head", &["-n", "1"])];
    assert_eq!(ran(&commands).await, (vec![141, 0], "y\n".to_owned()));
    let commands = [command("yes", &[]), command("cat", &[]), sh("exec 0<&-; echo no more; exit 4")];
    assert_eq!(ran(&commands).await, (vec![141, 141, 4], "no more\n".to_owned()));
}

#[tokio::test]
async fn the_first_command_has_the_given_input_whether_it_is_read_or_not() {
    let given = Command { stdin: Some(vec![b'x'; 8 << 20]), ..command("cat", &[]) };
    assert_eq!(ran(&[given.clone(), command("wc", &["-c"])]).await, (vec![0, 0], "8388608\n".to_owned()));
    let unread = Command { stdin: given.stdin, ..sh("echo said; exit 7") };
    assert_eq!(ran(&[unread, command("cat", &[])]).await, (vec![7, 0], "said\n".to_owned()));
    assert_eq!(ran(&[command("cat", &[]), command("wc", &["-c"])]).await, (vec![0, 0], "0\n".to_owned()));
}

#[tokio::test]
async fn much_passes_through_and_much_is_said_beside_it() {
    let loud = "head -c 3000000 /dev/zero >&2; exec cat";
    let commands = [command("head", &["-c", "10000000", "/dev/zero"]), sh(loud), sh(loud), sh(loud)];
    let outputs = run(&commands).await.unwrap();
    for loud in &outputs[1..] {
        assert_eq!((loud.exit_code, loud.stderr.len(), loud.truncated), (0, 1 << 20, true));
    }
    assert!(!outputs[0].truncated);
    let last = outputs.last().unwrap();
    assert_eq!((last.stdout.len(), last.stdout_bytes), (1 << 20, 10_000_000));
}

#[tokio::test]
async fn bytes_that_are_no_text_pass_unchanged() {
    let outputs = run(&[command("printf", &[r"\377\0\303("]), command("cat", &[])]).await.unwrap();
    assert_eq!(outputs[1].stdout, b"\xff\0\xc3(");
}

#[tokio::test]
async fn a_command_has_no_descriptor_but_its_own_three() {
    // A single command has those, and what this process was started with.
    let (_, alone) = ran(&[command("ls", &["/proc/self/fd"])]).await;
    let list = "cat; ls /proc/self/fd";
    let (exit_codes, said) = ran(&[command("ls", &["/proc/self/fd"]), sh(list), sh(list)]).await;
    assert_eq!((exit_codes, said), (vec![0, 0, 0], alone.repeat(3)));
}

#[tokio::test]
async fn a_program_that_is_missing_is_refused_before_any_command_starts() {
    let folder = tempfile::tempdir().unwrap();
    let made = folder.path().join("made");
    let commands = [command("touch", &["--", made.to_str().unwrap()]), command("no-such-program", &[])];
    let problem = run(&commands).await.unwrap_err();
    assert_eq!(problem.code, "PROGRAM_NOT_FOUND");
    let message = problem.message;
    assert!(message.starts_with("command 2 of 2, no-such-program, can't be started: "), "{message}");
    assert!(!made.exists());
}

#[tokio::test]
async fn rights_that_cannot_be_had_are_refused_before_any_command_starts() {
    let folder = tempfile::tempdir().unwrap();
    let made = folder.path().join("made");
    let other = Command { privilege: Privilege::User("nobody".into()), ..command("cat", &[]) };
    let commands = [command("touch", &["--", made.to_str().unwrap()]), other];
    assert_eq!(run(&commands).await.unwrap_err().code, "PRIVILEGE_REQUIRED");
    assert!(!made.exists());
}

#[tokio::test]
async fn a_process_left_behind_does_not_hold_up_the_next_command() {
    let mark = "86399.81";
    let commands = [sh(&format!("sleep {mark} & echo done")), command("cat", &[]), command("cat", &[])];
    assert_eq!(ran(&commands).await, (vec![0, 0, 0], "done\n".to_owned()));
    gone(mark).await;
}

#[tokio::test]
async fn the_longest_time_limit_is_that_of_the_pipeline_and_ends_all_of_it() {
    let mark = "86399.82";
    let quick = |script: &str, milliseconds| Command {
        timeout: Duration::from_millis(milliseconds),
        ..sh(&script.replace("SLEEP", &format!("sleep {mark} & sleep {mark}")))
    };
    let commands =
        [quick("SLEEP", 1), quick("echo late >&2; SLEEP; cat", 2), quick("echo so far; SLEEP", 700)];
    let problem = run(&commands).await.unwrap_err();
    assert_eq!(problem.code, "COMMAND_TIMEOUT");
    let said = "sh | sh | sh took longer than 0.7 s and was stopped; until then it said: so far / late";
    assert_eq!(problem.message, said);
    let so_far = serde_json::json!({"stdout": "so far\n", "stderr": "late\n", "truncated": false});
    assert_eq!(problem.details["output_so_far"], so_far);
    gone(mark).await;
}

#[tokio::test]
async fn dropping_the_pipeline_ends_all_of_it() {
    let mark = "86399.83";
    let script = sh(&format!("sleep {mark} & sleep {mark}; true"));
    let commands = [script.clone(), script];
    {
        let running = run(&commands);
        tokio::pin!(running);
        while processes_with(mark) < 6 {
            let _ = tokio::time::timeout(Duration::from_millis(5), &mut running).await;
        }
    }
    gone(mark).await;
}
