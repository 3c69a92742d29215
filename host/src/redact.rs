//! Secrets are taken out of everything that is shown or recorded: answers, arguments, previews, the audit log.
//!
//! A secret is known by its form (a key block, a crypt hash, a token with a well-known beginning) or by the name in
//! front of it (`password=`). Nothing is guessed from randomness alone, so that sums, fingerprints and identifiers stay
//! as they are. Where it isn't clear how far a secret goes, too much is hidden rather than too little.
//!
//! Most text holds none: one pass over it finds whatever could begin one, and only what was hinted at is looked for.
//! Every pass is linear.

mod block;
mod forms;
mod names;
mod value;

use std::borrow::Cow;
use std::ops::Range;
use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, AhoCorasickKind};

pub use value::redact_value;

/// What stands in a secret's place.
const REDACTED: &str = "[redacted]";
/// The same for a whole block.
const REDACTED_KEY: &str = "[redacted private key]";

/// What kind of secret there may be.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    /// Armored private keys.
    Block,
    /// A form, see [`forms`].
    Form,
    /// A name, see [`names`].
    Name,
}

/// What is left to be looked for once all of them were hinted at.
const KINDS: usize = 3;

/// Where a secret is, and what goes there instead.
type Edit = (Range<usize>, Cow<'static, str>);

/// The text without its secrets: `[redacted]` in their place, and what isn't secret (a URL's user, a name, the other
/// fields of a line) kept. Borrowed where there is none. Redacting twice is redacting once.
pub fn redact(text: &str) -> Cow<'_, str> {
    run(text, false)
}

/// As [`redact`], with as many lines as before: each line of a key block is replaced by itself.
pub fn redact_lines(text: &str) -> Cow<'_, str> {
    run(text, true)
}

fn run(text: &str, keep_lines: bool) -> Cow<'_, str> {
    let Some(hints) = &*HINTS else { return Cow::Borrowed(REDACTED) };
    let seen = hints.seen(text);
    let mut text = Cow::Borrowed(text);
    if seen.contains(&Some(Kind::Block)) {
        text = edited(text, |text| block::find(text, keep_lines));
    }
    if seen.contains(&Some(Kind::Form)) {
        for form in forms::ALL {
            text = edited(text, |text| forms::find(form, text));
        }
    }
    if seen.contains(&Some(Kind::Name)) {
        text = edited(text, names::find);
    }
    text
}

/// The text with what was found in it replaced. All of it is hidden where looking wasn't possible.
fn edited<'a>(text: Cow<'a, str>, find: impl FnOnce(&str) -> Option<Vec<Edit>>) -> Cow<'a, str> {
    let Some(edits) = find(&text) else { return Cow::Borrowed(REDACTED) };
    if edits.is_empty() {
        return text;
    }
    let mut result = String::with_capacity(text.len());
    let mut done = 0;
    for (range, replacement) in edits {
        result.push_str(&text[done..range.start]);
        result.push_str(&replacement);
        done = range.end;
    }
    result.push_str(&text[done..]);
    Cow::Owned(result)
}

/// What every secret has in or before it.
struct Hints {
    automaton: AhoCorasick,
    kinds: Vec<Kind>,
}

impl Hints {
    fn new() -> Option<Self> {
        let of =
            |hints: &[&'static str], kind| hints.iter().map(move |hint| (*hint, kind)).collect::<Vec<_>>();
        let all = [of(block::HINTS, Kind::Block), of(forms::HINTS, Kind::Form), of(names::HINTS, Kind::Name)]
            .concat();
        let automaton = AhoCorasick::builder()
            .ascii_case_insensitive(true)
            .kind(Some(AhoCorasickKind::DFA))
            .build(all.iter().map(|(hint, _)| hint))
            .ok()?;
        Some(Self { automaton, kinds: all.into_iter().map(|(_, kind)| kind).collect() })
    }

    /// The kinds that a text gives a hint of.
    fn seen(&self, text: &str) -> [Option<Kind>; KINDS] {
        let mut seen = [None; KINDS];
        for hit in self.automaton.find_overlapping_iter(text) {
            let kind = self.kinds.get(hit.pattern().as_usize()).copied();
            if let Some(kind) = kind {
                seen[kind as usize] = Some(kind);
            }
            if seen.iter().all(Option::is_some) {
                break;
            }
        }
        seen
    }
}

/// None if they can't be read, which a test rules out; then nothing at all is shown.
static HINTS: LazyLock<Option<Hints>> = LazyLock::new(Hints::new);

#[cfg(test)]
mod tests;
