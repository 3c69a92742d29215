//! Suggests which of the known names was meant.

/// The most letters that may be wrong.
const MOST_WRONG: usize = 3;
/// The most letters of a name that is compared. No known name is longer.
const LONGEST: usize = 64;

/// Returns the names that are similar to `said`, the closest first. At most a third of the letters of a short name may
/// be wrong.
pub fn closest<'a>(said: &str, names: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let length = said.chars().count();
    if length > LONGEST {
        return Vec::new();
    }
    let most = MOST_WRONG.min(length.div_ceil(3));
    let mut close: Vec<(usize, &str)> = names
        .into_iter()
        .filter(|name| name.chars().count() <= LONGEST)
        .map(|name| (strsim::levenshtein(&said.to_lowercase(), &name.to_lowercase()), name))
        .filter(|(distance, _)| *distance <= most)
        .collect();
    close.sort_unstable();
    close.into_iter().map(|(_, name)| name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

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
            assert_eq!(closest(said, names), meant, "{said}");
        }
        assert!(closest(&"x".repeat(100), ["x"]).is_empty());
    }
}
