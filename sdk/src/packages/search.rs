//! `pkg_search`: packages of the repositories, by words of their names and summaries.

use schemars::JsonSchema;
use serde::Deserialize;

use super::Backend;
use super::types::Found;
use crate::{Context, Listing, Problem, Result};

#[derive(Deserialize, JsonSchema)]
pub(super) struct SearchArgs {
    /// Words; all must occur
    query: String,
    /// Look at names, not at summaries
    #[serde(default)]
    names_only: bool,
}

pub(super) fn search<B: Backend>(backend: &B, args: SearchArgs, cx: &Context) -> Result<Listing<Found>> {
    let words = words(&args.query)?;
    let mut items = backend.search(&words, args.names_only, cx)?;
    let query = words.join(" ");
    // The package of exactly this name comes first, then names that begin with a word, then names that hold all words.
    let rank = |found: &Found| match found.name.to_lowercase() {
        name if name == query => 0,
        name if words.iter().any(|word| name.starts_with(word.as_str())) => 1,
        name if words.iter().all(|word| name.contains(word.as_str())) => 2,
        _ => 3,
    };
    items.sort_by(|a, b| (rank(a), &a.name).cmp(&(rank(b), &b.name)));
    items.dedup_by(|a, b| a.name == b.name);
    Ok(items.into())
}

/// The words of a query in lower case. A manager would take other characters for a regular expression, a glob or an option.
fn words(query: &str) -> Result<Vec<String>> {
    let expected = "1 to 8 words of letters, digits and + . _ -, 100 characters in all";
    let words: Vec<String> = query.split_whitespace().map(str::to_lowercase).collect();
    let is_plain = |word: &String| {
        word.chars().all(|c| c.is_alphanumeric() || "+._-".contains(c))
            && word.starts_with(|c: char| c.is_alphanumeric())
    };
    if words.is_empty() || words.len() > 8 || query.len() > 100 || !words.iter().all(is_plain) {
        let shown: String = query.chars().take(80).collect();
        let message = format!("can't search for {shown:?}: {expected} are expected");
        return Err(Problem::validation("INVALID_QUERY", message));
    }
    Ok(words)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_words_and_never_an_expression_or_an_option() {
        for bad in ["", " ", "-x", "a.*", "a|b", "^a", "a;id", "$(id)", "a --b", &"a".repeat(101)] {
            assert_eq!(words(bad).unwrap_err().code, "INVALID_QUERY", "{bad}");
        }
        assert_eq!(words("  Web  Server ").unwrap(), ["web", "server"]);
        assert_eq!(words("g++ python3.11").unwrap(), ["g++", "python3.11"]);
    }
}
