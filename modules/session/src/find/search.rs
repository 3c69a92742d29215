//! The search for tools: the words of a need against the words of each tool's name, summary and domain.
//!
//! A word counts for more the fewer tools have it, and for more in a name than in a summary. A word that means the same in
//! the language of administration counts too, but less. The same need and the same tools always give the same answer.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use crate::host::ListedTool;

/// The words of a need that are passed over.
const IGNORED: &str = include_str!("ignored.txt");
/// What else a word may mean.
const MEANINGS: &str = include_str!("meanings.txt");

/// The weight of a word in a tool's name, in its summary, and in the domain and summary of its module.
const WEIGHTS: [f64; 3] = [3.0, 2.0, 1.0];
/// The part that a word counts which begins like the wanted one.
const BEGINS_ALIKE: f64 = 0.7;
/// The part that a word counts which may mean the same.
const MEANS_ALIKE: f64 = 0.6;
/// What each further word counts that may mean the same.
const ALSO_MEANS: f64 = 0.2;
/// The number of letters that two words have in common which begin alike.
const FEWEST_LETTERS: usize = 4;
/// The most that a word counts for its rarity. A word that a single tool has by chance shouldn't decide alone.
const RAREST: f64 = 3.0;
/// A tool fits that has at least this part of the best one's score.
const FITS: f64 = 0.5;

/// Further words by the stem of a word, as stems.
static ALIKE: LazyLock<BTreeMap<String, Vec<String>>> = LazyLock::new(|| {
    let lines =
        MEANINGS.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.split_once(": "));
    lines.map(|(word, others)| (stem(word), stems(others))).collect()
});

/// The tools that fit the need, the best first, and at most so many.
pub(super) fn find<'a>(need: &str, tools: &'a [ListedTool], most: usize) -> Vec<&'a ListedTool> {
    let words: Vec<[Vec<String>; 3]> = tools
        .iter()
        .map(|tool| {
            [stems(&tool.name), stems(&tool.summary), stems(&format!("{} {}", tool.domain, tool.module))]
        })
        .collect();
    let mut scores = vec![0.0; tools.len()];
    for wanted in wanted(need) {
        let matches: Vec<f64> = words.iter().map(|fields| best_match(&wanted, fields)).collect();
        let having = matches.iter().filter(|found| **found > 0.0).count();
        if having == 0 {
            continue;
        }
        let rarity = (1.0 + tools.len() as f64 / having as f64).ln().min(RAREST);
        for (score, found) in scores.iter_mut().zip(matches) {
            *score += found * rarity;
        }
    }
    let best = scores.iter().copied().fold(0.0, f64::max);
    let mut found: Vec<(f64, &ListedTool)> =
        scores.into_iter().zip(tools).filter(|(score, _)| *score > 0.0 && *score >= FITS * best).collect();
    found.sort_by(|(one, tool), (other, another)| {
        other.total_cmp(one).then_with(|| tool.name.cmp(&another.name))
    });
    found.into_iter().take(most).map(|(_, tool)| tool).collect()
}

/// The stems of the words of a need that say something, each once.
fn wanted(need: &str) -> Vec<String> {
    let need = need.to_lowercase();
    let mut wanted: Vec<String> = Vec::new();
    for word in split(&need).filter(|word| !is_ignored(word)) {
        let stem = stem(word);
        if !wanted.contains(&stem) {
            wanted.push(stem);
        }
    }
    wanted
}

fn is_ignored(word: &str) -> bool {
    let lines = IGNORED.lines().filter(|line| !line.starts_with('#'));
    lines.flat_map(str::split_ascii_whitespace).any(|ignored| ignored == word)
}

/// The best match of a word in any of the fields, or of the words that may mean the same.
fn best_match(wanted: &str, fields: &[Vec<String>; 3]) -> f64 {
    let in_fields = |wanted: &str| {
        let weighted = fields.iter().zip(WEIGHTS);
        let matches = weighted.flat_map(|(field, weight)| field.iter().map(move |word| (word, weight)));
        matches.map(|(word, weight)| weight * likeness(wanted, word)).fold(0.0, f64::max)
    };
    let others = ALIKE.get(wanted).into_iter().flatten();
    let others: Vec<f64> = others.map(|other| in_fields(other)).filter(|found| *found > 0.0).collect();
    let further = others.len().saturating_sub(1) as f64;
    let alike = MEANS_ALIKE * others.into_iter().fold(0.0, f64::max) + ALSO_MEANS * further;
    in_fields(wanted).max(alike)
}

/// How much two stems are alike: 1 where they are the same.
fn likeness(one: &str, other: &str) -> f64 {
    let begins_alike =
        one.len().min(other.len()) >= FEWEST_LETTERS && (one.starts_with(other) || other.starts_with(one));
    match one == other {
        true => 1.0,
        false if begins_alike => BEGINS_ALIKE,
        false => 0.0,
    }
}

/// The words of a text: letters and digits in a row.
fn split(text: &str) -> impl Iterator<Item = &str> {
    text.split(|character: char| !character.is_alphanumeric()).filter(|word| !word.is_empty())
}

fn stems(text: &str) -> Vec<String> {
    split(&text.to_lowercase()).map(stem).collect()
}

/// A word without the endings of English: `installing`, `installed` and `installs` become `install`.
fn stem(word: &str) -> String {
    let mut stem = word.to_owned();
    if !word.is_ascii() {
        return stem;
    }
    if stem.len() > 4 && stem.ends_with("ies") {
        stem.replace_range(stem.len() - 3.., "y");
    } else if stem.len() > 3
        && stem.ends_with('s')
        && !["ss", "us", "is"].iter().any(|end| stem.ends_with(end))
    {
        stem.pop();
    }
    for ending in ["ing", "ed"] {
        if stem.len() > ending.len() + 2 && stem.ends_with(ending) {
            stem.truncate(stem.len() - ending.len());
            let bytes = stem.as_bytes();
            // `stopped` comes from `stop`, and `installed` from `install`.
            if let [.., before, last] = bytes
                && before == last
                && bytes.len() > 3
                && !b"lsz".contains(last)
            {
                stem.pop();
            }
            break;
        }
    }
    if stem.len() > 3 && stem.ends_with('e') {
        stem.pop();
    }
    stem
}

#[cfg(test)]
mod tests {
    use super::*;

    // Tools that are written by hand. The modules' tests/expected.yaml have needs for the tools that there are.
    fn tools() -> Vec<ListedTool> {
        [
            ("disk_list", "Disks and partitions: size, mounts", "storage", "Disks and what fills them"),
            ("disk_usage", "Room on file systems", "storage", "Disks and what fills them"),
            ("log_search", "Lines that match, in log files", "logs", "The journal and text logs"),
            ("unit_restart", "Restart a unit", "services", "Services of systemd"),
            ("unit_stop", "Stop a unit", "services", "Services of systemd"),
            ("user_create", "New account", "users", "Users and groups"),
            ("user_delete", "Delete an account", "users", "Users and groups"),
        ]
        .map(|(name, summary, domain, module)| ListedTool {
            name: name.to_owned(),
            summary: summary.to_owned(),
            domain: domain.to_owned(),
            module: module.to_owned(),
        })
        .into()
    }

    fn names(need: &str, most: usize) -> Vec<String> {
        find(need, &tools(), most).into_iter().map(|tool| tool.name.clone()).collect()
    }

    #[test]
    fn a_need_finds_the_tools_that_have_its_words() {
        for (need, first) in [
            ("restart the web server's unit", "unit_restart"),
            ("RESTARTING units", "unit_restart"),
            // By words that mean the same.
            ("reboot a daemon", "unit_restart"),
            ("is there space left?", "disk_usage"),
            ("partitions", "disk_list"),
            ("search the logs for a text", "log_search"),
            ("delete an account", "user_delete"),
            ("create accounts", "user_create"),
        ] {
            assert_eq!(names(need, 8).first().map(String::as_str), Some(first), "{need}");
        }
    }

    #[test]
    fn a_need_without_a_word_that_says_something_finds_nothing() {
        for need in ["", "  ", "what is it?", "—", "zeppelin", "日本語"] {
            assert_eq!(names(need, 8), [""; 0], "{need:?}");
        }
    }

    #[test]
    fn what_fits_much_worse_is_left_out_and_no_more_come_than_were_asked_for() {
        assert_eq!(names("delete an account", 8), ["user_delete"]);
        assert_eq!(names("disks", 8), ["disk_list", "disk_usage"]);
        assert_eq!(names("disks", 1), ["disk_list"]);
    }

    #[test]
    fn equally_good_tools_come_in_the_order_of_their_names() {
        let mut backwards = tools();
        backwards.reverse();
        let found: Vec<_> =
            find("services", &backwards, 8).into_iter().map(|tool| tool.name.as_str()).collect();
        assert_eq!(found, ["unit_restart", "unit_stop"]);
    }

    #[test]
    fn words_are_compared_by_their_stems() {
        for (word, expected) in [
            ("installs", "install"),
            ("installed", "install"),
            ("installing", "install"),
            ("stopped", "stop"),
            ("entries", "entry"),
            ("status", "status"),
            ("access", "access"),
            ("restore", "restor"),
            ("restoring", "restor"),
            ("dns", "dns"),
            ("ed", "ed"),
            ("größe", "größe"),
        ] {
            assert_eq!(stem(word), expected, "{word}");
        }
    }

    #[test]
    fn each_line_of_the_data_is_read() {
        let lines = MEANINGS.lines().filter(|line| !line.starts_with('#')).count();
        assert_eq!(ALIKE.len(), lines, "two lines are about the same word, or one has no others");
        assert!(ALIKE.values().all(|others| !others.is_empty()));
        assert!(is_ignored("the") && is_ignored("your") && !is_ignored("disk") && !is_ignored("#"));
    }
}
