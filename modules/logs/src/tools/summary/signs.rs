//! Signs: words in a line of a text log that may matter. Only lines with a sign are parsed.

use std::rc::Rc;

use regex::bytes::{Regex, RegexBuilder};

/// The signs that lines of any program may have, as an expression.
pub(super) const SIGNS: &str = "error|fail|fatal|panic|critical|crit\\]|emerg|alert|warn|denied|refused|timed out|timeout|traceback|segfault|out of memory|cannot |can't |unable to|\" 5[0-9][0-9] ";

/// The signs for one file.
pub(super) struct Signs {
    /// Expressions of which one matches every line that may matter. None where an expression can't be made, and every line
    /// may matter.
    regexes: Option<Vec<Rc<Regex>>>,
    pub(super) text: String,
}

/// The longest expression that is an argument of grep.
const MOST_SIGNS: usize = 3_000;

/// Makes an expression that ignores case.
pub(super) fn signs(text: &str) -> Option<Rc<Regex>> {
    let mut builder = RegexBuilder::new(text);
    builder.unicode(false).case_insensitive(true).size_limit(4 << 20).build().ok().map(Rc::new)
}

impl Signs {
    /// The usual signs and the words that patterns of profiles need, in a form that grep and this crate read alike. Making an
    /// expression takes longer than reading most files, and therefore all files share the usual one.
    pub(super) fn of<'w>(usual: &Option<Rc<Regex>>, words: impl Iterator<Item = &'w String>) -> Self {
        let mut own = String::new();
        for word in words {
            let escaped: String = word
                .chars()
                .flat_map(|letter| {
                    "\\^$.[]|()?*+{}".contains(letter).then_some('\\').into_iter().chain([letter])
                })
                .collect();
            if SIGNS.len() + own.len() + escaped.len() < MOST_SIGNS {
                own = format!("{own}|{escaped}");
            }
        }
        let regexes = std::iter::once(usual.clone()).chain(own.strip_prefix('|').map(signs)).collect();
        Self { regexes, text: format!("{SIGNS}{own}") }
    }

    pub(super) fn are_in(&self, line: &[u8]) -> bool {
        self.regexes.as_ref().is_none_or(|all| all.iter().any(|regex| regex.is_match(line)))
    }
}
