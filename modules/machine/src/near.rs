//! Names that are close to a misspelt one.

/// The most names that are told.
const MOST: usize = 5;

/// Those of the known names that are close to this one, the closest first. The last parts of paths are compared without
/// regard to case.
pub(crate) fn near(name: &str, known: impl IntoIterator<Item = String>) -> Vec<String> {
    let last = |text: &str| text.rsplit('/').next().unwrap_or(text).to_lowercase();
    let wanted = last(name);
    let mut found: Vec<(usize, String)> = known
        .into_iter()
        .map(|other| (strsim::levenshtein(&wanted, &last(&other)), other))
        .filter(|(distance, other)| *distance <= 2 + wanted.len() / 4 || last(other).contains(&wanted))
        .collect();
    found.sort();
    found.dedup();
    found.into_iter().take(MOST).map(|(_, other)| other).collect()
}

#[cfg(test)]
mod tests {
    use super::near;

    #[test]
    fn the_closest_name_comes_first() {
        let zones = || ["Europe/Berlin", "America/New_York", "Europe/Dublin"].map(str::to_owned);
        assert_eq!(near("Europe/Berln", zones())[0], "Europe/Berlin");
        assert_eq!(near("new_york", zones()), ["America/New_York"]);
        assert!(near("Mars/Olympus", zones()).is_empty());
    }
}
