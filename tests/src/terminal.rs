//! Runs programs at a real terminal: script(1) of util-linux gives a program a controlling terminal of its own.

use std::io::{BufReader, Read, Write};
use std::process::{Command, Stdio};

use crate::binary;

/// Runs a line of shell at a terminal that shows no colours, in which `$BIN` is the program under test. It types `first` at
/// once, `then` at the prompt, and the code where `approve` asks for one; gives the exit code and everything that was shown.
/// `start` makes the command to which a line is given.
pub fn at_terminal(
    start: impl FnOnce(&str) -> Command,
    line: &str,
    first: &str,
    prompt: &str,
    then: &str,
) -> (Option<i32>, String) {
    let mut child = start("script")
        .args(["--quiet", "--return", "--command", line, "/dev/null"])
        .env("BIN", binary())
        .env("SHELL", "/bin/sh")
        .env("TERM", "dumb")
        .env("NO_COLOR", "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("script(1)");
    let (mut typed, mut seen) = (child.stdin.take().expect("stdin"), Vec::new());
    let mut screen = BufReader::new(child.stdout.take().expect("stdout"));
    typed.write_all(first.as_bytes()).expect("typed");
    let mut read_until = |seen: &mut Vec<u8>, is_there: &dyn Fn(&str) -> bool| {
        let mut byte = [0];
        while !is_there(&String::from_utf8_lossy(seen)) && screen.read(&mut byte).expect("read") == 1 {
            seen.push(byte[0]);
        }
    };
    read_until(&mut seen, &|seen| seen.contains(prompt));
    // Where a prompt never comes, the program has ended.
    let _ = typed.write_all(then.as_bytes());
    read_until(&mut seen, &|seen| code(seen).is_some());
    if let Some(code) = code(&String::from_utf8_lossy(&seen)) {
        let _ = typed.write_all(format!("{code}\n").as_bytes());
    }
    screen.read_to_end(&mut seen).expect("read");
    drop(typed);
    (child.wait().expect("waited for").code(), String::from_utf8(seen).expect("UTF-8"))
}

/// The code that the second question of `approve` asks for.
fn code(seen: &str) -> Option<&str> {
    seen.rsplit_once("\nType ")?.1.split_once(" to approve on ").map(|(code, _)| code)
}
