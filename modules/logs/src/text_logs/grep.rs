//! Searches large text logs with the target's own `grep`, so that only the lines that may matter are transferred.
//!
//! In the C locale every byte is valid, and only a zero byte makes a file binary. grep then says so and prints no lines.
//! With `--text` it would print them, but keep a hole of many gigabytes in memory as one line. Such a file is read instead.

use linux_sysadmin_sdk::{DurationCategory, Keep, Privilege, prelude::*};

use super::line_splitter::{self, LineSplitter};
use crate::budget::{Budget, Spent};

/// The pattern of the grant.
pub(crate) const PATTERN: &str = concat!(
    "LC_ALL=C grep (--line-number --fixed-strings|--extended-regexp) [--ignore-case] [--context=<int>] ",
    "--regexp=<text>... -- <path:/var/log/**>"
);

/// The grant to search a file on the target.
pub(crate) fn grant() -> CommandGrant {
    CommandGrant::read(PATTERN, "lines of large text logs that may matter, found where they lie")
        .as_root_if_available()
}

/// The largest output in bytes. It comes in small pieces, and reading the file itself is faster than a larger one.
const MUCH: u64 = 32 << 20;

/// The end of a search with grep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GrepEnd {
    /// Every line was passed on.
    Complete,
    /// A limit of the budget was reached before the end.
    Stopped(Spent),
    /// grep can't be used, and the file must be read instead.
    Unusable,
}

/// Passes on the lines of a file that grep prints with these options.
pub(crate) fn grep(
    cx: &Context,
    budget: &Budget<'_>,
    options: impl IntoIterator<Item = String>,
    path: &str,
    mut sink: impl FnMut(&[u8]),
) -> GrepEnd {
    let command = Command::new("grep").env("LC_ALL", "C").args(options).args(["--", path]);
    let command = command.privilege(Privilege::RootIfAvailable).duration(DurationCategory::Slow);
    debug_assert!(matches!(command.keep, Keep::Head));
    // A stream reports no errors, and so it is used only for an output that is too large to be kept.
    let output = match budget.waiting(|| cx.run(command.clone())) {
        Ok(output) if output.exit_code < 2 && !says_binary(&output) => output,
        _ => return GrepEnd::Unusable,
    };
    if output.stdout_bytes > MUCH {
        return GrepEnd::Unusable;
    }
    let mut lines = LineSplitter::new(line_splitter::MOST);
    let mut each = |line: &[u8]| {
        sink(line);
        true
    };
    if !output.truncated {
        lines.piece(&output.stdout, &mut each);
        lines.end(&mut each);
        return GrepEnd::Complete;
    }
    drop(output);
    let Ok(mut stream) = budget.waiting(|| cx.open(command)) else { return GrepEnd::Unusable };
    loop {
        match budget.read(&mut stream) {
            Ok(piece) if piece.is_empty() => break,
            Ok(piece) => lines.piece(&piece, &mut each),
            // The command ran out of time.
            Err(_) => return GrepEnd::Stopped(Spent::Time),
        };
        if let Some(spent) = budget.spent() {
            return GrepEnd::Stopped(spent);
        }
    }
    lines.end(&mut each);
    GrepEnd::Complete
}

/// Whether grep says that the file is binary. It says so on stderr since 3.5, and before that in the last line of stdout.
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
        // The messages of GNU grep 3.8 and of 3.4.
        for (exit_code, stdout, stderr, expected) in [
            (0, "1:a\n", "", (GrepEnd::Complete, 1)),
            (1, "", "", (GrepEnd::Complete, 0)),
            (0, "", "grep: /var/log/x: binary file matches\n", (GrepEnd::Unusable, 0)),
            (0, "1:a\nBinary file /var/log/x matches\n", "", (GrepEnd::Unusable, 0)),
            (2, "", "grep: /var/log/x: Permission denied\n", (GrepEnd::Unusable, 0)),
        ] {
            let argv = ["grep", "--regexp=a", "--", "/var/log/x"];
            let cx = FakeTarget::new().answer(&argv, exit_code, stdout, stderr).context();
            let mut count = 0;
            let options = ["--regexp=a".to_owned()];
            let asked = grep(&cx, &Budget::quick(&cx), options, "/var/log/x", |_| count += 1);
            assert_eq!((asked, count), expected, "{stdout}{stderr}");
        }
        let cx = FakeTarget::new().context();
        assert_eq!(grep(&cx, &Budget::quick(&cx), [], "/var/log/x", |_| {}), GrepEnd::Unusable);
    }
}
