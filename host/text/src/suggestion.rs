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

/// Returns the names that have a word of `said` in them, the best first. Each name comes with a text about it, whose words
/// count a little. A word that begins or abbreviates another one, as `ptr` does `printer`, counts as well, but alone it is
/// too little.
pub fn by_words<'a>(said: &str, names: impl IntoIterator<Item = (&'a str, &'a str)>) -> Vec<&'a str> {
    let said: Vec<String> = if said.len() > LONGEST { Vec::new() } else { words(said) };
    let mut found: Vec<(usize, &str)> = names
        .into_iter()
        .filter_map(|(name, text)| {
            let (own, text) = (words(name), words(text));
            let has_own = said.iter().any(|word| own.contains(word));
            let score: usize = said.iter().map(|word| likeness(word, &own, &text)).sum();
            has_own.then_some((score, name))
        })
        .collect();
    let best = found.iter().map(|(score, _)| *score).max().unwrap_or_default();
    found.retain(|(score, _)| *score == best);
    found.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.len().cmp(&b.1.len())).then(a.1.cmp(b.1)));
    found.into_iter().map(|(_, name)| name).collect()
}

/// The words of a text in lower case, as their singular.
fn words(text: &str) -> Vec<String> {
    let words = text.split(|character: char| !character.is_alphanumeric()).filter(|word| !word.is_empty());
    words
        .map(|word| {
            let word = word.to_lowercase();
            match word.strip_suffix('s').filter(|singular| singular.len() > 2 && !singular.ends_with('s')) {
                Some(singular) => singular.to_owned(),
                None => word,
            }
        })
        .collect()
}

fn likeness(word: &str, own: &[String], text: &[String]) -> usize {
    let is_close = |known: &String| abbreviates(known, word) || abbreviates(word, known);
    if own.iter().any(|known| known == word) {
        6
    } else if own.iter().any(is_close) {
        4
    } else {
        text.iter().filter(|known| *known == word).count().min(1)
    }
}

/// Whether the letters of `short` stand in `long` in their order, the first one at its beginning.
fn abbreviates(short: &str, long: &str) -> bool {
    let mut letters = long.chars();
    let is_short = short.len() >= 2 && short.len() < long.len();
    is_short
        && short.chars().next() == long.chars().next()
        && short.chars().all(|letter| letters.any(|known| known == letter))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_the_same_words_is_found_whatever_their_order() {
        let names = [
            ("ptr_restart", "Restart a printer"),
            ("ptr_status", "State of one printer"),
            ("fnt_install", "Install fonts"),
            ("guest_list", "Guests"),
            ("guest_info", "One guest"),
            ("tape_query", "Lines of the ledger"),
            ("tape_search", "Lines that match"),
            ("ink_usage", "Ink that is left"),
        ];
        for (said, meant) in [
            ("restart_printer", &["ptr_restart"][..]),
            ("printer-status", &["ptr_status"]),
            ("install_font", &["fnt_install"]),
            ("list_guests", &["guest_list"]),
            ("get_tapes", &["tape_query", "tape_search"]),
            ("get_ledger_tape", &["tape_query"]),
            ("usage", &["ink_usage"]),
            // An abbreviation alone is too little.
            ("printer", &[]),
            ("bash", &[]),
            ("", &[]),
            ("___", &[]),
        ] {
            assert_eq!(by_words(said, names), meant, "{said}");
        }
        assert!(by_words(&"usage_".repeat(100), names).is_empty());
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
            assert_eq!(closest(said, names), meant, "{said}");
        }
        assert!(closest(&"x".repeat(100), ["x"]).is_empty());
    }
}
