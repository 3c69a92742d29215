//! Secrets in messages that the host can't see in a single line, such as the lines of a private key.

use std::collections::BTreeMap;
use std::rc::Rc;

use linux_sysadmin_sdk::prelude::*;

use crate::line::Line;

/// Takes secrets out of messages. The lines must be in the order in which each source wrote them, because a key that was
/// written line by line is recognized by the lines around it.
pub(crate) fn redact(cx: &Context, lines: &mut [Line]) {
    let mut of_source: BTreeMap<Rc<str>, Vec<usize>> = BTreeMap::new();
    for (at, line) in lines.iter().enumerate() {
        of_source.entry(line.source.clone()).or_default().push(at);
    }
    for at in of_source.into_values() {
        // A message of several lines is redacted apart from the others.
        let (whole, single): (Vec<_>, Vec<_>) =
            at.into_iter().partition(|at| lines[*at].message.contains('\n'));
        for at in [whole, single] {
            let messages = at.iter().map(|at| std::mem::take(&mut lines[*at].message)).collect();
            for (at, message) in at.iter().zip(cx.redacted(messages)) {
                lines[*at].message = without_key_line(message);
            }
        }
    }
}

const REDACTED: &str = "[redacted]";

/// The message without its last word, where that looks like a line of a private key.
pub(crate) fn without_key_line(message: String) -> String {
    match ends_in_key_line(&message) {
        true => {
            let text = message.trim_end();
            let begins = text.rfind(char::is_whitespace).map_or(0, |at| at + 1);
            format!("{}{REDACTED}", &text[..begins])
        }
        false => message,
    }
}

/// Whether the last word of a message looks like a line of a private key. Without the line that begins the key, nobody can
/// tell. A program may write a time or a name before it.
pub(crate) fn ends_in_key_line(message: &str) -> bool {
    let text = message.split_whitespace().next_back().unwrap_or_default();
    let has = |is: fn(&char) -> bool| text.chars().any(|character| is(&character));
    (40..=128).contains(&text.len())
        && text.chars().all(|character| character.is_ascii_alphanumeric() || "+/=".contains(character))
        && has(char::is_ascii_uppercase)
        && has(char::is_ascii_lowercase)
        && !text.chars().all(|character| character.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_a_key_is_known_without_the_line_that_says_so() {
        for line in [
            "b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAAMwAAAAtzc2gtZW",
            "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj",
        ] {
            assert!(ends_in_key_line(line), "{line}");
            assert_eq!(without_key_line(format!("app[7]: {line}")), "app[7]: [redacted]");
        }
        for line in [
            "",
            "connect() failed (111: Connection refused)",
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
            "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
            "Started",
            "session opened for user root(uid=0) by (uid=1000) and this is longer",
        ] {
            assert!(!ends_in_key_line(line), "{line}");
        }
    }
}
