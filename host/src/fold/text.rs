//! Texts of several lines, as files are: what one host has otherwise, line by line.

use std::cell::Cell;

use serde_json::Value;
use similar::TextDiff;

use super::compare;
use super::node::{Found, Node, Said};

/// For one answer: the products of the numbers of lines that are compared, so that what is large and unlike doesn't
/// take long.
pub const BUDGET: usize = 1 << 24;

/// Tells texts by what differs from the most common one, where that is shorter by half. Whether all are told so, and
/// are not more than that one itself some times over.
pub fn as_diffs(found: &mut [Found<'_>], budget: &Cell<usize>) -> bool {
    let Some((common, _)) = found.iter().enumerate().max_by_key(|(_, found)| found.hosts.len()) else {
        return false;
    };
    let Some(common_text) = lines(&found[common]) else { return false };
    let (mut length, mut all) = (0, true);
    for (_, other) in found.iter_mut().enumerate().filter(|(at, _)| *at != common) {
        match lines(other).and_then(|text| diff(common_text, text, budget)) {
            Some(diff) => {
                length += diff.len();
                (other.length, other.said) = (compare::length(&diff), Said::Diff(diff));
            }
            None => all = false,
        }
    }
    all && length <= 3 * common_text.len()
}

/// A carriage return would end a line in a diff, and doesn't show.
fn lines<'a>(found: &Found<'a>) -> Option<&'a str> {
    let Said::Value(Node::Same(Value::String(text))) = &found.said else { return None };
    (text.contains('\n') && !text.contains('\r')).then_some(text)
}

fn diff(from: &str, to: &str, budget: &Cell<usize>) -> Option<String> {
    let product = from.lines().count().checked_mul(to.lines().count())?;
    budget.set(budget.get().checked_sub(product)?);
    let diff = TextDiff::from_lines(from, to).unified_diff().context_radius(0).to_string();
    (diff.len() * 2 <= to.len()).then_some(diff)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const CONFIG: &str = "# How others come in.\nPort 22\nPermitRootLogin no\nPasswordAuthentication no\n\
                          X11Forwarding no\nSubsystem sftp internal-sftp\nUsePAM yes\n";
        "Port 22\nPermitRootLogin no\nPasswordAuthentication no\nX11Forwarding no\nUsePAM yes\n";

    fn told(values: &[(Value, usize)], budget: usize) -> (Vec<Option<String>>, bool) {
        let found = values.iter().map(|(value, hosts)| Found {
            said: Said::Value(Node::Same(value)),
            hosts: (0..*hosts).collect(),
            length: 0,
        });
        let mut found: Vec<Found<'_>> = found.collect();
        let all = as_diffs(&mut found, &Cell::new(budget));
        let said =
            found.into_iter().map(|found| if let Said::Diff(diff) = found.said { Some(diff) } else { None });
        (said.collect(), all)
    }

    #[test]
    fn a_text_is_told_from_the_most_common_one() {
        let other = CONFIG.replace("Login no", "Login yes");
        let open = CONFIG.trim_end().to_owned();
        let (said, all) = told(&[(json!(other), 1), (json!(CONFIG), 4), (json!(open), 1)], BUDGET);
        let expected = [
            Some("@@ -3 +3 @@\n-PermitRootLogin no\n+PermitRootLogin yes\n".to_owned()),
            None,
            Some("@@ -7 +7 @@\n-UsePAM yes\n+UsePAM yes\n\\ No newline at end of file\n".to_owned()),
        ];
        assert_eq!((said, all), (expected.to_vec(), true));
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
        assert_eq!(told(&[(other.clone(), 1), (json!(CONFIG), 4)], 48).0, [None, None]);
        assert!(told(&[(other, 1), (json!(CONFIG), 4)], 49).0[0].is_some());
    }
}
