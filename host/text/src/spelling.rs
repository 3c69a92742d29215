//! Which of the names that there are was perhaps meant.

/// So many letters may be wrong.
const MOST_WRONG: usize = 3;
/// Of a name that is looked for: none is longer.
const LONGEST: usize = 64;

/// Those close to what was said, the closest first. At most a third of a short name may be wrong.
pub fn close<'a>(said: &str, names: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let length = said.chars().count();
    if length > LONGEST {
        return Vec::new();
    }
    let most = MOST_WRONG.min(length.div_ceil(3));
    let mut close: Vec<(usize, &str)> = names
        .into_iter()
        .filter(|name| name.chars().count() <= LONGEST)
        .map(|name| (distance(&said.to_lowercase(), &name.to_lowercase()), name))
        .filter(|(distance, _)| *distance <= most)
        .collect();
    close.sort_unstable();
    close.into_iter().map(|(_, name)| name).collect()
}

/// Levenshtein's.
fn distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (i, l) in left.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, r) in right.iter().enumerate() {
            let changed = diagonal + usize::from(l != *r);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_distance_counts_edits() {
        for (left, right, edits) in
            [("abc", "abc", 0), ("abc", "abd", 1), ("", "abc", 3), ("kitten", "sitting", 3)]
        {
            assert_eq!(distance(left, right), edits, "{left} {right}");
        }
    }

    #[test]
    fn the_closest_is_first_and_what_has_little_in_common_is_not_close() {
        let names = ["service", "services", "limit", "user"];
        for (said, meant) in [
            ("servise", &["service", "services"][..]),
            ("Limit", &["limit"]),
            ("limits", &["limit"]),
            ("us", &[]),
            ("x", &[]),
            ("colour", &[]),
            ("", &[]),
        ] {
            assert_eq!(close(said, names), meant, "{said}");
        }
        assert!(close(&"x".repeat(100), ["x"]).is_empty());
    }
}
