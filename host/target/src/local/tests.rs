use std::time::Duration;

use super::*;
use crate::command_problem::{refused_by_sudo, without_warnings_of_sudo};
use host_base::Keep;
use host_base::Privilege;

mod pipelines;

fn command(program: &str, args: &[&str]) -> Command {
    Command::new(program, args.iter().copied(), Duration::from_secs(20))
}

async fn run(command: Command) -> Result<Output, Problem> {
    Local::new().run(&command, Rights::NONE).await
}

/// Counts the processes of this machine whose command line holds the mark.
fn processes_with(mark: &str) -> usize {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    entries
        .filter(|entry| entry.file_name().to_string_lossy().bytes().all(|byte| byte.is_ascii_digit()))
        .filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok())
        .filter(|cmdline| String::from_utf8_lossy(cmdline).contains(mark))
        .count()
}

#[tokio::test]
async fn argv_reaches_the_program_token_by_token() {
    let output = run(command("printf", &["%s|", "a b", "$(id)", "`id`", "'\"", "", "ü\n"])).await.unwrap();
    assert_eq!(output.exit_code, 0);
    assert_eq!(output.stdout, "a b|$(id)|`id`|'\"||ü\n|".as_bytes());
}

#[tokio::test]
async fn the_environment_is_clean() {
    let mut wanted = command("env", &[]);
    wanted.env.push(("EXTRA".into(), "1".into()));
    let output = run(wanted).await.unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let mut names: Vec<_> = text.lines().filter_map(|line| line.split('=').next()).collect();
    names.sort_unstable();
    assert_eq!(names, ["EXTRA", "HOME", "LC_ALL", "PATH"]);
    assert!(text.contains("LC_ALL=C.UTF-8"));
}

#[tokio::test]
async fn stdin_is_given_or_empty() {
    let mut wanted = command("cat", &[]);
    assert_eq!(run(wanted.clone()).await.unwrap().stdout, b"");
    wanted.stdin = Some(b"in\0put".to_vec());
    assert_eq!(run(wanted).await.unwrap().stdout, b"in\0put");
}

#[tokio::test]
async fn an_exit_code_and_a_signal_are_reported_as_shells_do() {
    assert_eq!(run(command("sh", &["-c", "echo no >&2; exit 3"])).await.unwrap().exit_code, 3);
    assert_eq!(run(command("sh", &["-c", "kill -TERM $$"])).await.unwrap().exit_code, 128 + 15);
}

#[tokio::test]
async fn a_timeout_ends_the_whole_group() {
    let mark = "86399.71";
    let mut wanted = command("sh", &["-c", &format!("sleep {mark} & sleep {mark}; true")]);
    wanted.timeout = Duration::from_millis(300);
    let problem = run(wanted).await.unwrap_err();
    assert_eq!(problem.code, "COMMAND_TIMEOUT");
    gone(mark).await;
}

#[tokio::test]
async fn dropping_the_call_ends_the_whole_group() {
    let mark = "86399.72";
    let wanted = command("sh", &["-c", &format!("sleep {mark} & sleep {mark}; true")]);
    {
        let local = Local::new();
        let running = local.run(&wanted, Rights::NONE);
        tokio::pin!(running);
        // It runs until both are there, and no longer.
        while processes_with(mark) < 3 {
            let _ = tokio::time::timeout(Duration::from_millis(5), &mut running).await;
        }
    }
    gone(mark).await;
}

#[tokio::test]
async fn a_process_left_behind_does_not_hold_the_answer() {
    let mark = "86399.73";
    let output = run(command("sh", &["-c", &format!("sleep {mark} & echo done")])).await.unwrap();
    assert_eq!(output.stdout, b"done\n");
    gone(mark).await;
}

#[tokio::test]
async fn a_process_left_behind_ends_with_its_command() {
    let mark = "86399.74";
    let output = run(command("sh", &["-c", &format!("sleep {mark} >/dev/null 2>&1 &")])).await.unwrap();
    assert_eq!(output.exit_code, 0);
    gone(mark).await;
}

#[tokio::test]
async fn the_end_of_an_output_is_kept_though_a_process_left_behind_holds_it() {
    let mark = "86399.75";
    let mut wanted = command("sh", &["-c", &format!("sleep {mark} & printf 'one\\ntwo'")]);
    wanted.keep = Keep::Tail;
    let output = run(wanted).await.unwrap();
    assert_eq!((output.stdout.as_slice(), output.stdout_lines), (&b"one\ntwo"[..], 2));
    gone(mark).await;
}

#[tokio::test]
async fn an_output_is_read_piece_by_piece_with_stdin_given() {
    let mut wanted = command("cat", &[]);
    wanted.stdin = Some(b"0123456789".to_vec());
    let mut stream = Local::new().open(&wanted, Rights::NONE).await.unwrap();
    let mut pieces = Vec::new();
    loop {
        let piece = stream.read(4).await.unwrap();
        if piece.is_empty() {
            break;
        }
        assert!(piece.len() <= 4);
        pieces.extend(piece);
    }
    assert_eq!(pieces, b"0123456789");
}

#[tokio::test]
async fn a_command_that_is_read_from_has_its_time_too() {
    let mark = "86399.76";
    let mut wanted = command("sleep", &[mark]);
    wanted.timeout = Duration::from_millis(200);
    let mut stream = Local::new().open(&wanted, Rights::NONE).await.unwrap();
    assert_eq!(stream.read(1).await.unwrap_err().code, "COMMAND_TIMEOUT");
    gone(mark).await;
}

#[tokio::test]
async fn an_endless_output_is_cut_while_it_streams() {
    let mut wanted = command("yes", &[]);
    wanted.timeout = Duration::from_millis(200);
    assert_eq!(run(wanted).await.unwrap_err().code, "COMMAND_TIMEOUT");
    let output = run(command("head", &["-c", "5000000", "/dev/zero"])).await.unwrap();
    assert_eq!((output.stdout.len(), output.stdout_bytes, output.truncated), (1 << 20, 5_000_000, true));
}

#[tokio::test]
async fn an_endless_output_that_is_read_piece_by_piece_ends_with_its_reader() {
    let mark = "y-86399.77";
    let mut stream = Local::new().open(&command("yes", &[mark]), Rights::NONE).await.unwrap();
    assert!(!stream.read(4096).await.unwrap().is_empty());
    assert_eq!(processes_with(mark), 1);
    drop(stream);
    gone(mark).await;
}

#[tokio::test]
async fn a_process_left_behind_does_not_hold_what_is_read_piece_by_piece() {
    let mark = "86399.78";
    let wanted = command("sh", &["-c", &format!("sleep {mark} & echo done")]);
    let mut stream = Local::new().open(&wanted, Rights::NONE).await.unwrap();
    assert_eq!(stream.read(4096).await.unwrap(), b"done\n");
    assert_eq!(stream.read(4096).await.unwrap(), b"");
    gone(mark).await;
}

#[tokio::test]
async fn an_output_need_not_be_text() {
    let output = run(command("printf", &[r"\377\000\303(\n"])).await.unwrap();
    assert_eq!(output.stdout, b"\xff\0\xc3(\n");
    let output = run(command("sh", &["-c", r"printf '\376' >&2"])).await.unwrap();
    assert_eq!(output.stderr, b"\xfe");
}

/// The input is larger than any pipe, and so it is refused in the middle.
#[tokio::test]
async fn a_program_that_does_not_read_its_stdin_ends_as_it_would() {
    let mut wanted = command("sh", &["-c", "echo said; exit 7"]);
    wanted.stdin = Some(vec![b'x'; 8 << 20]);
    let output = run(wanted.clone()).await.unwrap();
    assert_eq!((output.exit_code, output.stdout.as_slice()), (7, &b"said\n"[..]));
    let mut stream = Local::new().open(&wanted, Rights::NONE).await.unwrap();
    assert_eq!(stream.read(4096).await.unwrap(), b"said\n");
    assert_eq!(stream.read(4096).await.unwrap(), b"");
}

#[tokio::test]
async fn a_program_that_reads_nothing_and_does_not_end_has_its_time_too() {
    let mut wanted = command("sleep", &["86399.79"]);
    wanted.stdin = Some(vec![b'x'; 8 << 20]);
    wanted.timeout = Duration::from_millis(200);
    let problem = run(wanted).await.unwrap_err();
    assert_eq!(problem.code, "COMMAND_TIMEOUT");
    assert_eq!(problem.message, "sleep took longer than 0.2 s and was stopped");
    gone("86399.79").await;
}

#[tokio::test]
async fn what_a_command_said_before_its_time_was_over_is_told() {
    let script = "printf 'one\\ntwo\\nthree\\n'; echo 'password=Zq7hunter2 prompt?' >&2; sleep 86399.78";
    let mut wanted = command("sh", &["-c", script]);
    wanted.timeout = Duration::from_millis(300);
    let problem = run(wanted).await.unwrap_err();
    let said = problem.message;
    assert!(
        said.starts_with("sh took longer than 0.3 s and was stopped; until then it said: two / three / "),
        "{said}"
    );
    assert!(said.ends_with("password=[redacted]"), "{said}");
    let so_far = &problem.details["output_so_far"];
    assert_eq!((&so_far["stdout"], &so_far["truncated"]), (&"one\ntwo\nthree\n".into(), &false.into()));
    assert!(so_far["stderr"].as_str().is_some_and(|said| said.contains("[redacted]")), "{so_far}");
    assert!(!so_far.to_string().contains("hunter2"), "{so_far}");
    gone("86399.78").await;
}

#[tokio::test]
async fn a_long_output_so_far_is_cut_at_the_end_that_is_not_asked_for() {
    for (keep, begins, ends) in [(Keep::Head, "first\n", "xx"), (Keep::Tail, "xx", "last\n")] {
        let script = "echo first; head -c 40000 /dev/zero | tr '\\0' x; echo last; sleep 86399.84";
        let mut wanted = command("sh", &["-c", script]);
        (wanted.timeout, wanted.keep) = (Duration::from_millis(300), keep);
        let problem = run(wanted).await.unwrap_err();
        let so_far = &problem.details["output_so_far"];
        let said = so_far["stdout"].as_str().unwrap();
        assert!(said.starts_with(begins) && said.ends_with(ends) && said.len() == 16 << 10, "{keep:?}");
        assert_eq!(so_far["truncated"], true);
    }
    gone("86399.84").await;
}

#[test]
fn what_may_still_run_is_not_said_to_be_stopped() {
    let said = timed_out("apt-get", Duration::from_secs(30), true).message;
    assert!(said.starts_with("apt-get took longer than 30 s and was told to stop"), "{said}");
    assert!(said.contains("may still run"), "{said}");
}

#[test]
fn what_one_call_reads_is_bounded_in_all() {
    let request = ReadRequest { path: "/proc/stat".into(), offset: 0, max_bytes: 4096 };
    let answers =
        read_within(10, &[request.clone(), request.clone(), request], &Trusted::Root, &|_, _| Ok(()));
    assert!(answers[0].is_ok());
    assert!(
        answers[1..]
            .iter()
            .all(|answer| answer.as_ref().is_err_and(|problem| problem.code == "FILES_TOO_LARGE"))
    );
}

#[tokio::test]
async fn another_account_is_refused_where_it_cannot_be_had() {
    let mut wanted = command("id", &[]);
    wanted.privilege = Privilege::User("nobody".into());
    assert_eq!(run(wanted).await.unwrap_err().code, "PRIVILEGE_REQUIRED");
}

/// Waits until the processes are gone. The kernel removes a killed grandchild once it is reaped, which this process
/// can't do.
async fn gone(mark: &str) {
    tokio::time::timeout(Duration::from_secs(20), async {
        while processes_with(mark) > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await
    .expect("processes were left behind");
}

#[test]
fn what_sudo_says_is_told_from_what_a_program_says() {
    for refusal in [
        "sudo: a password is required",
        "sudo: a terminal is required to read the password; either use the -S option",
        "sudo: sorry, you must have a tty to run sudo",
        "Sorry, user ada is not allowed to execute '/usr/bin/id' as root on host1.",
        "Sorry, user ada may not run sudo on host1.",
        "ada is not in the sudoers file.",
        "ada is not allowed to run sudo on host1.",
    ] {
        assert!(refused_by_sudo(1, false, refusal.as_bytes()).is_some(), "{refusal}");
        assert!(refused_by_sudo(1, true, refusal.as_bytes()).is_none(), "{refusal}");
        assert!(refused_by_sudo(2, false, refusal.as_bytes()).is_none(), "{refusal}");
    }
    for other in [
        "",
        "head: cannot open '/etc/sudoers.d/a password is required' for reading: No such file",
        "mysql: a password is required",
        "visudo: /etc/sudoers is not in the sudoers format",
        "id: sudo: no such user",
        "sudo: unable to resolve host x: Name or service not known",
    ] {
        assert!(refused_by_sudo(1, false, other.as_bytes()).is_none(), "{other}");
    }
}

#[test]
fn warnings_of_sudo_hide_no_message_of_the_command() {
    let warning = "sudo: unable to open /etc/sudoers.inc: No such file or directory\n";
    let report = "/etc/sudoers.d/w:1:13: syntax error\ngarbage here\n            ^\n";
    for (exit_code, stderr, expected) in [
        (1, format!("{report}no crontab for root\n"), "no crontab for root\n"),
        (1, format!("{warning}{report}{report}no crontab\n"), "no crontab\n"),
        (0, report.to_owned(), ""),
        (1, report.to_owned(), report),
        (1, format!("no crontab\n{report}"), &format!("no crontab\n{report}")),
        (0, warning.to_owned(), ""),
        (0, format!("{warning}note: x\n"), "note: x\n"),
        (1, format!("{warning}no crontab for root\n"), "no crontab for root\n"),
        (1, format!("no crontab\n{warning}for root"), "no crontab\nfor root"),
        (1, format!("{warning}\n"), &format!("{warning}\n")),
        (1, warning.to_owned(), warning),
        (1, "id: sudo: no such user\n".to_owned(), "id: sudo: no such user\n"),
    ] {
        let mut left = stderr.clone().into_bytes();
        without_warnings_of_sudo(exit_code, &mut left);
        assert_eq!(String::from_utf8(left).unwrap(), expected, "{exit_code} {stderr}");
    }
}
