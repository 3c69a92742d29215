//! Folds repeated lines: they are counted, and shown once.

use std::collections::{HashMap, VecDeque};
use std::rc::Rc;

use crate::level::Level;
use crate::line::{Line, ShownLine};
use crate::mask::mask;

/// The number of other messages that may stand between two equal ones in an answer that keeps the order. A service often
/// repeats two or three lines together.
const NEAR: usize = 8;

/// Folds equal lines that are near each other, at the place of the first one.
pub(crate) fn near(lines: &[Line]) -> Vec<ShownLine> {
    struct Group<'a> {
        key: String,
        first: &'a Line,
        count: u64,
        last: Option<i64>,
    }
    let mut groups: Vec<Group<'_>> = Vec::new();
    for line in lines {
        let key = mask(&line.message);
        let near = groups.len().saturating_sub(NEAR);
        let same = groups[near..].iter_mut().rev().find(|group| {
            group.key == key && group.first.source == line.source && group.first.level == line.level
        });
        match same {
            Some(group) => {
                group.count += 1;
                group.last = group.last.max(line.at);
            }
            None => groups.push(Group { key, first: line, count: 1, last: line.at }),
        }
    }
    groups.iter().map(|group| ShownLine::new(group.first, group.count, group.last)).collect()
}

/// Shows every line, without folding.
pub(crate) fn none(lines: &[Line]) -> Vec<ShownLine> {
    lines.iter().map(|line| ShownLine::new(line, 1, None)).collect()
}

/// All lines with the same message, wherever they are.
#[derive(Debug)]
pub(crate) struct Group {
    /// The latest line.
    pub(crate) line: Line,
    pub(crate) count: u64,
    pub(crate) first: Option<i64>,
    pub(crate) last: Option<i64>,
}

/// A bounded number of groups. Once it is full, a new group replaces the oldest one or is dropped.
#[derive(Debug)]
pub(crate) struct Groups {
    most: usize,
    groups: HashMap<(Rc<str>, Option<Level>, String), Group>,
    order: VecDeque<(Rc<str>, Option<Level>, String)>,
    /// The number of groups that were replaced or dropped.
    pub(crate) dropped: u64,
    keeps_first: bool,
}

impl Groups {
    /// With `keeps_first`, new groups are dropped once there are `most` groups.
    pub(crate) fn new(most: usize, keeps_first: bool) -> Self {
        Self { most, groups: HashMap::new(), order: VecDeque::new(), dropped: 0, keeps_first }
    }

    pub(crate) fn add(&mut self, line: Line) {
        let key = (line.unit.clone().unwrap_or_else(|| line.source.clone()), line.level, mask(&line.message));
        if let Some(group) = self.groups.get_mut(&key) {
            group.count += 1;
            group.first = group.first.min(line.at).or(line.at);
            if line.at >= group.last {
                group.last = line.at;
                group.line = line;
            }
            return;
        }
        if self.groups.len() >= self.most {
            self.dropped += 1;
            if self.keeps_first {
                return;
            }
            if let Some(oldest) = self.order.pop_front() {
                self.groups.remove(&oldest);
            }
        }
        self.order.push_back(key.clone());
        self.groups.insert(key, Group { count: 1, first: line.at, last: line.at, line });
    }

    /// The groups, in the order in which they began.
    pub(crate) fn into_groups(self) -> impl Iterator<Item = Group> {
        let Self { mut groups, order, .. } = self;
        order.into_iter().filter_map(move |key| groups.remove(&key))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn line(second: i64, message: &str) -> Line {
        Line {
            at: Some(second * 1_000_000),
            source: "x".into(),
            unit: None,
            level: None,
            message: message.to_owned(),
        }
    }

    #[test]
    fn repeated_lines_are_one_with_their_number_and_the_time_of_the_last() {
        let lines = [line(1, "a 1"), line(2, "b"), line(3, "a 2"), line(4, "b"), line(5, "c")];
        let shown = near(&lines);
        let said: Vec<_> =
            shown.iter().map(|shown| (shown.message.as_str(), shown.count, shown.last.as_deref())).collect();
        assert_eq!(
            said,
            [
                ("a 1", Some(2), Some("1970-01-01T00:00:03Z")),
                ("b", Some(2), Some("1970-01-01T00:00:04Z")),
                ("c", None, None),
            ]
        );
        assert_eq!(none(&lines).len(), 5);
    }

    #[test]
    fn what_stands_far_apart_stays_apart() {
        let mut lines = vec![line(0, "again")];
        lines.extend(('a'..='i').map(|letter| line(1, &letter.to_string())));
        lines.push(line(2, "again"));
        assert_eq!(near(&lines).iter().filter(|shown| shown.message == "again").count(), 2);
    }

    #[test]
    fn groups_are_bounded_and_say_what_they_left_out() {
        let mut newest = Groups::new(2, false);
        let mut oldest = Groups::new(2, true);
        for (second, message) in [(1, "a"), (2, "b"), (3, "a"), (4, "c")] {
            newest.add(line(second, message));
            oldest.add(line(second, message));
        }
        let names = |groups: Groups| {
            let mut names: Vec<_> =
                groups.into_groups().map(|group| (group.line.message, group.count)).collect();
            names.sort();
            names
        };
        assert_eq!((newest.dropped, oldest.dropped), (1, 1));
        assert_eq!(names(newest), [("b".to_owned(), 1), ("c".to_owned(), 1)]);
        assert_eq!(names(oldest), [("a".to_owned(), 2), ("b".to_owned(), 1)]);
    }
}
