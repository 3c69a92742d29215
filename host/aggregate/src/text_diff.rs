//! Gives texts of several lines, such as files, as line diffs from the most common text.

use std::cell::Cell;
use std::collections::HashMap;

use serde_json::Value;
use similar::TextDiff;

use super::node::{Content, Node, SizedGroup};

/// The number of comparisons of lines that one answer may take. It bounds the time for texts that are long and unlike.
pub const BUDGET: usize = 1 << 24;
/// The number of whole texts that would otherwise be given as examples.
const MAX_WHOLE_TEXTS: usize = 3;

/// Replaces texts by their diffs from the most common text, where a diff is at most half as long as its text. Where the
/// texts are `many`, it replaces all of them or none, and only if the diffs together aren't longer than a few whole texts.
/// Returns whether all texts other than the most common one are diffs.
pub fn as_diffs(found: &mut [SizedGroup<'_>], many: bool, budget: &Cell<usize>) -> bool {
    let common = found.iter().enumerate().max_by_key(|(_, found)| found.hosts.len());
    let Some((common, Some(text))) = common.map(|(at, found)| (at, lines(found))) else { return false };
    let other = |(at, other): (usize, &SizedGroup<'_>)| match at == common {
        true => None,
        false => lines(other).and_then(|other| diff(text, other, budget)),
    };
    let diffs: Vec<Option<String>> = found.iter().enumerate().map(other).collect();
    let all = diffs.iter().flatten().count() + 1 == found.len();
    let is_short = diffs.iter().flatten().map(String::len).sum::<usize>() <= MAX_WHOLE_TEXTS * text.len();
    if many && !(all && is_short) {
        return false;
    }
    for (found, diff) in found.iter_mut().zip(diffs) {
        if let Some(diff) = diff {
            (found.length, found.content) = (super::node::length(&diff), Content::Diff(diff));
        }
    }
    all
}

/// The text, where it can be given as a diff. A carriage return would end a line in a diff, and wouldn't show.
fn lines<'a>(found: &SizedGroup<'a>) -> Option<&'a str> {
    let Content::Value(Node::Same(Value::String(text))) = &found.content else { return None };
    (text.contains('\n') && !text.contains('\r')).then_some(text)
}

/// The diff between two texts. None where it would be too long or may take too long. The time depends on the number of
/// unlike lines, which is estimated by the lines without an equal. Where the diff turns out too long in spite of that, as
/// for lines in another order, the budget also pays for the longer time.
fn diff(from: &str, to: &str, budget: &Cell<usize>) -> Option<String> {
    let lines = from.lines().count() + to.lines().count();
    let unlike = unlike(from, to);
    if unlike * 2 > lines {
        return None;
    }
    budget.set(budget.get().checked_sub(lines * (unlike + 1))?);
    let diff = TextDiff::from_lines(from, to).unified_diff().context_radius(0).to_string();
    if diff.len() * 2 > to.len() {
        budget.set(budget.get().saturating_sub(lines * lines));
        return None;
    }
    Some(diff)
}

/// The number of lines that the other text lacks or has less often.
fn unlike(from: &str, to: &str) -> usize {
    let mut times: HashMap<&str, isize> = HashMap::new();
    from.lines().for_each(|line| *times.entry(line).or_default() += 1);
    to.lines().for_each(|line| *times.entry(line).or_default() -= 1);
    times.values().map(|times| times.unsigned_abs()).sum()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const CONFIG: &str = "# How others come in.\nPort 22\nPermitRootLogin no\nPasswordAuthentication no\n\
                          X11Forwarding no\nSubsystem sftp internal-sftp\nUsePAM yes\n";

    fn told(values: &[(Value, usize)], budget: usize) -> (Vec<Option<String>>, bool) {
        told_of(values, false, budget)
    }

    fn told_of(values: &[(Value, usize)], many: bool, budget: usize) -> (Vec<Option<String>>, bool) {
        let found = values.iter().map(|(value, hosts)| SizedGroup {
            content: Content::Value(Node::Same(value)),
            hosts: (0..*hosts).collect(),
            length: 0,
        });
        let mut found: Vec<SizedGroup<'_>> = found.collect();
        let all = as_diffs(&mut found, many, &Cell::new(budget));
        let content = found
            .into_iter()
            .map(|found| if let Content::Diff(diff) = found.content { Some(diff) } else { None });
        (content.collect(), all)
    }

    #[test]
    fn a_text_is_told_from_the_most_common_one() {
        let other = CONFIG.replace("Login no", "Login yes");
        let open = CONFIG.trim_end().to_owned();
        let (content, all) = told(&[(json!(other), 1), (json!(CONFIG), 4), (json!(open), 1)], BUDGET);
        let expected = [
            Some("@@ -3 +3 @@\n-PermitRootLogin no\n+PermitRootLogin yes\n".to_owned()),
            None,
            Some("@@ -7 +7 @@\n-UsePAM yes\n+UsePAM yes\n\\ No newline at end of file\n".to_owned()),
        ];
        assert_eq!((content, all), (expected.to_vec(), true));
    }

    #[test]
    fn what_has_little_in_common_is_told_itself() {
        let table = [
            json!("quite\nanother\ntext\n"),
            json!("one line"),
            json!(CONFIG.replace('\n', "\r\n")),
            json!(null),
            json!(7),
        ];
        for value in table {
            assert_eq!(
                told(&[(value.clone(), 1), (json!(CONFIG), 4)], BUDGET),
                (vec![None, None], false),
                "{value}"
            );
        }
    }

    #[test]
    fn what_takes_long_is_not_compared() {
        let other = json!(CONFIG.replace("Login no", "Login yes"));
        // 14 lines, of which 2 have no equal.
        assert_eq!(told(&[(other.clone(), 1), (json!(CONFIG), 4)], 41).0, [None, None]);
        assert!(told(&[(other.clone(), 1), (json!(CONFIG), 4)], 42).0[0].is_some());
        let reversed = json!(CONFIG.lines().rev().map(|line| format!("{line}\n")).collect::<String>());
        let both = [(reversed, 1), (other, 1), (json!(CONFIG), 4)];
        assert!(told(&both, 14 + 14 * 14 + 42).0[1].is_some());
        assert_eq!(told(&both, 14 + 14 * 14 + 41).0, [None, None, None]);
    }

    #[test]
    fn of_many_texts_all_are_told_so_or_none() {
        let other = json!(CONFIG.replace("Login no", "Login yes"));
        let common = (json!(CONFIG), 40);
        assert!(told_of(&[(other.clone(), 1), common.clone()], true, BUDGET).1);
        assert_eq!(
            told_of(&[(other, 1), (json!("x\ny\n"), 1), common.clone()], true, BUDGET).0,
            [None, None, None]
        );
        let ports = |ports: std::ops::Range<u32>| -> Vec<(Value, usize)> {
            let config = |port: u32| (json!(CONFIG.replace("22", &port.to_string())), 1);
            ports.map(config).chain([common.clone()]).collect()
        };
        assert!(told_of(&ports(100..105), true, BUDGET).1);
        assert!(!told_of(&ports(100..150), true, BUDGET).1);
    }
}
