//! Programs at a real terminal: that of script(1), util-linux, which gives a program one of its own, as its controlling
//! one.

use std::io::{BufReader, Read, Write};
use std::process::{Command, Stdio};

use crate::binary;

/// A line of a shell's at a terminal, `$BIN` being the program under test: typed is `first` at once, and `then` at the
/// prompt. Gives the exit code and all that was to be seen. `start` makes the command that a program is an argument of.
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
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("script(1)");
    let (mut typed, mut seen) = (child.stdin.take().expect("stdin"), Vec::new());
    let mut screen = BufReader::new(child.stdout.take().expect("stdout"));
    typed.write_all(first.as_bytes()).expect("typed");
    let mut byte = [0];
    while !String::from_utf8_lossy(&seen).contains(prompt) && screen.read(&mut byte).expect("read") == 1 {
        seen.push(byte[0]);
    }
    // Where the prompt never came, the program has ended.
    let _ = typed.write_all(then.as_bytes());
    screen.read_to_end(&mut seen).expect("read");
    drop(typed);
    (child.wait().expect("waited for").code(), String::from_utf8(seen).expect("UTF-8"))
}
