//! Finds private keys in armor: PEM, OpenSSH, PGP, PuTTY. They stand in files, in diffs (`+-----BEGIN`), and in a JSON
//! string on one line with `\n` between. A block without an end is taken to reach to the end of the text.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::Regex;

use super::{Edit, REDACTED_KEY};

pub(super) const HINTS: &[&str] = &["PRIVATE KEY", "OpenVPN Static key", "Private-Lines:"];

static BEGIN: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"-{4,5} ?BEGIN (?:[A-Za-z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?|OpenVPN Static key V1) ?-{4,5}|Private-Lines: [0-9]+",
    )
    .ok()
});

static END: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"-{4,5} ?END (?:[A-Za-z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?|OpenVPN Static key V1) ?-{4,5}|Private-MAC: ?[0-9a-f]*",
    )
    .ok()
});

/// Lines of a key's body up to the end of the block. They are left where the beginning of a block was cut off.
static TAIL: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"(?m)(?:^[-+ ]?[A-Za-z0-9+/=]{8,100}\r?\n)+[-+ ]?-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----",
    )
    .ok()
});

pub(super) fn find(text: &str, keep_lines: bool) -> Option<Vec<Edit>> {
    let (begin, end, tail) = (BEGIN.as_ref()?, END.as_ref()?, TAIL.as_ref()?);
    let mut edits: Vec<Edit> = Vec::new();
    let mut done = 0;
    while done < text.len() {
        let block = begin.find_at(text, done).map(|begin| {
            let end = end.find_at(text, begin.end()).map_or(text.len(), |end| end.end());
            begin.start()..end
        });
        let before = &text[done..block.as_ref().map_or(text.len(), |block| block.start)];
        for cut in tail.find_iter(before) {
            let prefix = usize::from(cut.as_str().starts_with(['-', '+', ' ']));
            edits
                .push((done + cut.start() + prefix..done + cut.end(), replacement(cut.as_str(), keep_lines)));
        }
        let Some(block) = block else { break };
        done = block.end;
        edits.push((block.clone(), replacement(&text[block], keep_lines)));
    }
    Some(edits)
}

/// Hides the lines of a key in a list of lines. From a beginning on it hides all lines that can belong to a key, and
/// from an end without a beginning it hides the lines before that can.
pub(super) fn hide_lines(mut lines: Vec<&mut String>) {
    let (Some(begin), Some(end)) = (BEGIN.as_ref(), END.as_ref()) else { return };
    if !lines.iter().any(|line| line.contains("KEY") || line.contains("Private-")) {
        return;
    }
    let mut hidden = vec![false; lines.len()];
    let mut is_inside = false;
    for at in 0..lines.len() {
        let line = lines[at].as_str();
        let (begins, ends) = (begin.is_match(line), end.is_match(line));
        if ends && !is_inside && !begins {
            let before = lines[..at].iter().rev().take_while(|line| is_body(line)).count();
            hidden[at - before..at].iter_mut().for_each(|hidden| *hidden = true);
        }
        is_inside = begins && !ends || is_inside && !ends && is_of_a_key(line);
        hidden[at] |= begins || ends || is_inside;
    }
    for (line, _) in lines.iter_mut().zip(hidden).filter(|(_, hidden)| *hidden) {
        REDACTED_KEY.clone_into(*line);
    }
}

/// Says whether a line is base64, perhaps with the mark of a diff before it.
fn is_body(line: &str) -> bool {
    let line = line.trim().trim_start_matches(['+', '-']);
    line.len() >= 8 && line.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte))
}

/// Says whether a line may stand between a key's beginning and its end.
fn is_of_a_key(line: &str) -> bool {
    let line = line.trim();
    let is_short = line.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte));
    let is_header =
        ["Proc-Type:", "DEK-Info:", "Comment:", "Version:", "Encryption:", "Public-Lines:", "Private-"];
    is_short || is_header.iter().any(|header| line.starts_with(header))
}

fn replacement(block: &str, keep_lines: bool) -> Cow<'static, str> {
    let more = if keep_lines { block.matches('\n').count() } else { 0 };
    if more == 0 {
        return Cow::Borrowed(REDACTED_KEY);
    }
    let ends_a_line = block.ends_with('\n');
    let lines = vec![REDACTED_KEY; more + usize::from(!ends_a_line)];
    Cow::Owned(lines.join("\n") + if ends_a_line { "\n" } else { "" })
}
