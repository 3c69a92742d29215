//! Large text logs, looked through by the target's own `grep`: only what may matter comes over.
//!
//! In the C locale no byte is wrong, and only a zero makes a file binary; grep then says so and tells no lines. With
//! `--text` it would tell them, but keep a hole of many gigabytes in memory as one line. Such a file is read instead.

use linux_sysadmin_sdk::{DurationCategory, Keep, Privilege, prelude::*};

use crate::budget::{Budget, Spent};
use crate::pieces::{self, Lines};

/// What it finds.
pub(crate) const PATTERN: &str = concat!(
    "LC_ALL=C grep (--line-number --fixed-strings|--extended-regexp) [--ignore-case] [--context=<int>] ",
    "--regexp=<text>... -- <path:/var/log/**>"
);

/// The grant to have a file looked through where it lies.
pub(crate) fn grant() -> CommandGrant {
    CommandGrant::read(PATTERN, "lines of large text logs that may matter, found where they lie")
        .as_root_if_available()
}

/// Of what comes over in small pieces. Where it is more, the file itself is read faster.
const MUCH: u64 = 32 << 20;

/// How it went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    /// Each line was told.
    Whole,
    /// Not all of them were.
    Spent(Spent),
    /// It can't be asked so: the file is to be read.
    No,
}

/// Lines of a file that grep prints with these options.
pub(crate) fn grep(
    cx: &Context,
    budget: &Budget<'_>,
    options: impl IntoIterator<Item = String>,
    path: &str,
    mut sink: impl FnMut(&[u8]),
) -> Asked {
    let command = Command::new("grep").env("LC_ALL", "C").args(options).args(["--", path]);
    let command = command.privilege(Privilege::RootIfAvailable).duration(DurationCategory::Slow);
    debug_assert!(matches!(command.keep, Keep::Head));
    // A stream tells nothing of errors, so it is used only for what is too much to be kept.
    let output = match budget.waiting(|| cx.run(command.clone())) {
        Ok(output) if output.exit_code < 2 && !says_binary(&output) => output,
        _ => return Asked::No,
    };
    if output.stdout_bytes > MUCH {
        return Asked::No;
    }
    let mut lines = Lines::new(pieces::MOST);
    let mut each = |line: &[u8]| {
        sink(line);
        true
    };
    if !output.truncated {
        lines.piece(&output.stdout, &mut each);
        lines.end(&mut each);
        return Asked::Whole;
    }
    drop(output);
    let Ok(mut stream) = budget.waiting(|| cx.open(command)) else { return Asked::No };
    loop {
        match budget.read(&mut stream) {
            Ok(piece) if piece.is_empty() => break,
            Ok(piece) => lines.piece(&piece, &mut each),
            // It took longer than it may.
            Err(_) => return Asked::Spent(Spent::Time),
        };
        if let Some(spent) = budget.spent() {
            return Asked::Spent(spent);
        }
    }
    lines.end(&mut each);
    Asked::Whole
}

/// On standard error since 3.5, before that as the last line.
fn says_binary(output: &linux_sysadmin_sdk::Output) -> bool {
    let last = output.stdout.trim_ascii_end().rsplit(|byte| *byte == b'\n').next().unwrap_or_default();
    output.error_text().contains("binary file matches")
        || last.starts_with(b"Binary file ") && last.ends_with(b" matches")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use linux_sysadmin_sdk::testkit::FakeTarget;

    #[test]
    fn what_grep_cant_tell_is_to_be_read() {
        // GNU grep 3.8, and as 3.4 said it.
        for (exit_code, stdout, stderr, expected) in [
            (0, "1:a\n", "", (Asked::Whole, 1)),
            (1, "", "", (Asked::Whole, 0)),
            (0, "", "grep: /var/log/x: binary file matches\n", (Asked::No, 0)),
            (0, "1:a\nBinary file /var/log/x matches\n", "", (Asked::No, 0)),
            (2, "", "grep: /var/log/x: Permission denied\n", (Asked::No, 0)),
        ] {
            let argv = ["grep", "--regexp=a", "--", "/var/log/x"];
            let cx = FakeTarget::new().answer(&argv, exit_code, stdout, stderr).context();
            let mut count = 0;
            let options = ["--regexp=a".to_owned()];
            let asked = grep(&cx, &Budget::quick(&cx), options, "/var/log/x", |_| count += 1);
            assert_eq!((asked, count), expected, "{stdout}{stderr}");
        }
        let cx = FakeTarget::new().context();
        assert_eq!(grep(&cx, &Budget::quick(&cx), [], "/var/log/x", |_| {}), Asked::No);
    }
}
