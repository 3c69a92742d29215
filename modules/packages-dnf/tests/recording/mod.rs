//! Recordings: command lines with what they said, as in `data/`.

use linux_sysadmin_sdk::Output;
use linux_sysadmin_sdk::testkit::FakeTarget;

struct Entry {
    argv: Vec<String>,
    exit_code: i32,
    stdout: String,
    stderr: String,
}

/// `$ command line`, stdout, perhaps `[stderr]` and that, `[exit 0]`.
fn entries(text: &str) -> Vec<Entry> {
    let mut entries: Vec<Entry> = Vec::new();
    let (mut is_open, mut is_error) = (false, false);
    for line in text.split_inclusive('\n') {
        let bare = line.trim_end_matches('\n');
        if let (false, Some(command)) = (is_open, bare.strip_prefix("$ ")) {
            let argv = words(command);
            entries.push(Entry { argv, exit_code: 0, stdout: String::new(), stderr: String::new() });
            (is_open, is_error) = (true, false);
        } else if let (true, Some(entry)) = (is_open, entries.last_mut()) {
            if let Some(code) = bare.strip_prefix("[exit ").and_then(|rest| rest.strip_suffix(']')) {
                entry.exit_code = code.parse().expect("an exit code");
                is_open = false;
            } else if bare == "[stderr]" {
                is_error = true;
            } else if is_error {
                entry.stderr.push_str(line);
            } else {
                entry.stdout.push_str(line);
            }
        }
    }
    assert!(!is_open && !entries.is_empty(), "a whole recording");
    entries
}

/// Without variables in front; a quoted word may hold blanks.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut rest = line.trim();
    while !rest.is_empty() {
        let quoted = rest.strip_prefix('\'').and_then(|rest| rest.split_once('\''));
        let (word, behind) = quoted.unwrap_or_else(|| rest.split_once(' ').unwrap_or((rest, "")));
        if !words.is_empty() || !word.starts_with("TZ=") {
            words.push(word.to_owned());
        }
        rest = behind.trim_start();
    }
    words
}

/// A target that says what was recorded, and behind that whatever else was said to it.
pub fn with(target: FakeTarget, text: &str) -> FakeTarget {
    entries(text).iter().fold(target, |target, entry| {
        let argv: Vec<_> = entry.argv.iter().map(String::as_str).collect();
        target.answer(&argv, entry.exit_code, &entry.stdout, &entry.stderr)
    })
}

pub fn target(text: &str) -> FakeTarget {
    with(FakeTarget::new(), text)
}

/// The same, which says what was recorded in the second place once a plan has run.
pub fn then(target: FakeTarget, text: &str) -> FakeTarget {
    entries(text).iter().fold(target, |target, entry| {
        let argv: Vec<_> = entry.argv.iter().map(String::as_str).collect();
        target.answer_after(&argv, entry.exit_code, &entry.stdout, &entry.stderr)
    })
}

/// What every command whose line ends so has said.
pub fn outputs(text: &str, end: &str) -> Vec<Output> {
    let meant = entries(text).into_iter().filter(|entry| format!(" {}", entry.argv.join(" ")).ends_with(end));
    let outputs = meant.map(|entry| Output {
        exit_code: entry.exit_code,
        stdout_bytes: entry.stdout.len() as u64,
        stdout_lines: entry.stdout.lines().count() as u64,
        stdout: entry.stdout.into_bytes(),
        stderr: entry.stderr.into_bytes(),
        truncated: false,
        duration_ms: 1,
    });
    outputs.collect()
}

/// The last of them.
pub fn output(text: &str, end: &str) -> Output {
    outputs(text, end).pop().expect("a recorded command")
}
