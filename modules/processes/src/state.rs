//! The states of processes, as the kernel and ps(1) name them.

use linux_sysadmin_sdk::prelude::*;

/// The letters, with the words that stand for them in arguments.
const STATES: [(char, &str); 7] = [
    ('R', "running"),
    ('S', "sleeping"),
    ('D', "blocked"),
    ('Z', "zombie"),
    ('T', "stopped"),
    ('t', "traced"),
    ('I', "idle"),
];

/// The letters that an argument asks for, which is a word or some letters.
pub(crate) fn letters(asked: &str) -> Result<Vec<char>> {
    let by_word = STATES.iter().find(|(_, word)| *word == asked).map(|(letter, _)| vec![*letter]);
    let known = |letter: char| STATES.iter().any(|(known, _)| *known == letter);
    let by_letter = || (!asked.is_empty() && asked.chars().all(known)).then(|| asked.chars().collect());
    by_word.or_else(by_letter).ok_or_else(|| {
        let states = STATES.map(|(letter, word)| format!("{letter} ({word})")).join(", ");
        let asked = linux_sysadmin_sdk::text::excerpt(asked, 20);
        Problem::validation("INVALID_ARGUMENTS", format!("state is {asked:?}: expected letters of {states}"))
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::letters;

    #[test]
    fn a_state_is_a_word_or_letters() {
        for (asked, expected) in [("Z", "Z"), ("DZ", "DZ"), ("zombie", "Z"), ("traced", "t"), ("T", "T")] {
            assert_eq!(letters(asked).unwrap(), expected.chars().collect::<Vec<_>>());
        }
        for asked in ["", "Q", "asleep", "z", "Z,D", &"Z\u{1b}".repeat(1000)] {
            let problem = letters(asked).unwrap_err();
            assert!(
                problem.code == "INVALID_ARGUMENTS" && problem.message.len() < 250,
                "{}",
                problem.message
            );
        }
    }
}
