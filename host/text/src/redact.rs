//! Secrets are taken out of everything that is shown or recorded: answers, arguments, previews, the audit log.
//!
//! A secret is known by its form (a key block, a crypt hash, a token with a well-known beginning) or by the name in
//! front of it (`password=`). Nothing is guessed from randomness alone, so that sums, fingerprints and identifiers stay
//! as they are. Where it isn't clear how far a secret goes, too much is hidden rather than too little.
//!
//! Most text holds none: one pass over it finds whatever could begin one, and only what was hinted at is looked for.
//! Every pass is linear.

mod block;
mod commands;
mod forms;
mod names;
mod value;
mod words;

use std::borrow::Cow;
use std::ops::Range;
use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, AhoCorasickKind};

use crate::visible;

pub use value::redact_value;

/// What stands in a secret's place.
const REDACTED: &str = "[redacted]";
/// The same for a whole block.
const REDACTED_KEY: &str = "[redacted private key]";

/// Where a secret is, and what goes there instead.
type Edit = (Range<usize>, Cow<'static, str>);

/// The text without its secrets: `[redacted]` in their place, and what isn't secret (a URL's user, a name, the other
/// fields of a line) kept. Borrowed where there is none. Redacting twice is redacting once.
pub fn redact(text: &str) -> Cow<'_, str> {
    whole(text, false)
}

/// At most `most` characters of it, made visible. A secret goes first: half of one that was cut isn't known as such.
pub fn excerpt(text: &str, most: usize) -> String {
    crate::visible::excerpt(&redact(text), most)
}

/// As [`redact`], with as many lines as before: each line of a key block is replaced by itself.
pub fn redact_lines(text: &str) -> Cow<'_, str> {
    whole(text, true)
}

/// A name that is split by what nobody sees, as a colour's escape, is read as it looks; where that hides something, so is
/// what is shown.
fn whole(text: &str, keep_lines: bool) -> Cow<'_, str> {
    let as_it_looks = visible::without_unseen(text);
    if let Cow::Owned(seen) = &as_it_looks
        && let Cow::Owned(redacted) = run(seen, keep_lines)
    {
        return Cow::Owned(redacted);
    }
    run(text, keep_lines)
}

/// Each of several texts, which may be lines of one: a block that goes over several of them is known as one.
pub fn redact_each(texts: Vec<String>) -> Vec<String> {
    if texts.iter().all(|text| !text.contains('\n')) {
        let whole = texts.join("\n");
        match redact_lines(&whole) {
            Cow::Borrowed(_) => return texts,
            Cow::Owned(redacted) => {
                let lines: Vec<String> = redacted.split('\n').map(str::to_owned).collect();
                if lines.len() == texts.len() {
                    return lines;
                }
            }
        }
    }
    texts.iter().map(|text| redact(text).into_owned()).collect()
}

fn run(text: &str, keep_lines: bool) -> Cow<'_, str> {
    // Owned, so that nobody takes it for the text itself.
    let Some(hints) = &*HINTS else { return Cow::Owned(REDACTED.to_owned()) };
    let seen = hints.seen(text);
    let mut text = Cow::Borrowed(text);
    if seen & BLOCKS != 0 {
        text = edited(text, |text| block::find(text, keep_lines)).0;
    }
    if seen & !(BLOCKS | NAMES) != 0 {
        // What was hidden may have kept another from being known: a slash in a URL's password.
        for _ in 0..MOST_ROUNDS {
            let (next, has_changed) = edited(text, |text| known(text, seen));
            text = next;
            if !has_changed {
                break;
            }
        }
    }
    if seen & NAMES != 0 {
        text = edited(text, names::find).0;
    }
    text
}

/// One brings at most another to light; the number only has to be bounded, which keeps this linear.
const MOST_ROUNDS: usize = 16;

/// What is known by a form or as an option. All is looked for in the same text, since one secret may hold where another
/// begins (`sshpass -p ;curl -u root:…`), and what overlaps is one.
fn known(text: &str, seen: u32) -> Option<Vec<Edit>> {
    let mut secrets = if seen & COMMANDS != 0 { commands::find(text)? } else { Vec::new() };
    for (at, form) in forms::ALL.iter().enumerate() {
        if seen & form_bit(at) != 0 {
            secrets.extend(form.find(text)?);
        }
    }
    secrets.sort_unstable_by_key(|secret| secret.start);
    let mut edits: Vec<Edit> = Vec::with_capacity(secrets.len());
    for secret in secrets {
        match edits.last_mut() {
            Some((last, _)) if secret.start <= last.end => last.end = last.end.max(secret.end),
            _ => edits.push((secret, Cow::Borrowed(REDACTED))),
        }
    }
    Some(edits)
}

/// The text with what was found in it replaced, and whether there was anything. All of it is hidden where looking wasn't
/// possible.
fn edited<'a>(text: Cow<'a, str>, find: impl FnOnce(&str) -> Option<Vec<Edit>>) -> (Cow<'a, str>, bool) {
    let Some(edits) = find(&text) else { return (Cow::Owned(REDACTED.to_owned()), false) };
    if edits.is_empty() {
        return (text, false);
    }
    let mut result = String::with_capacity(text.len());
    let mut done = 0;
    for (range, replacement) in edits {
        result.push_str(&text[done..range.start]);
        result.push_str(&replacement);
        done = range.end;
    }
    result.push_str(&text[done..]);
    (Cow::Owned(result), true)
}

/// What a text may hold, as bits: [`block`], [`names`], [`commands`], and each of [`forms::ALL`].
const BLOCKS: u32 = 1;
const NAMES: u32 = 2;
const COMMANDS: u32 = 4;

fn form_bit(at: usize) -> u32 {
    8 << at
}

/// What every secret has in or before it.
struct Hints {
    automaton: AhoCorasick,
    /// What each of them is a hint of.
    bits: Vec<u32>,
}

impl Hints {
    fn new() -> Option<Self> {
        let forms = forms::ALL.iter().enumerate().map(|(at, form)| (form.hints, form_bit(at)));
        let of_their_own = [(block::HINTS, BLOCKS), (words::HINTS, NAMES), (commands::HINTS, COMMANDS)];
        let all = of_their_own.into_iter().chain(forms);
        let (hints, bits): (Vec<_>, Vec<_>) =
            all.flat_map(|(hints, bit)| hints.iter().map(move |hint| (*hint, bit))).unzip();
        let automaton = AhoCorasick::builder()
            .ascii_case_insensitive(true)
            .kind(Some(AhoCorasickKind::DFA))
            .build(hints)
            .ok()?;
        Some(Self { automaton, bits })
    }

    /// The bits of all that a text gives a hint of.
    fn seen(&self, text: &str) -> u32 {
        let hits = self.automaton.find_overlapping_iter(text);
        hits.fold(0, |seen, hit| seen | self.bits.get(hit.pattern().as_usize()).copied().unwrap_or(u32::MAX))
    }
}

/// None if they can't be read, which a test rules out; then nothing at all is shown.
static HINTS: LazyLock<Option<Hints>> = LazyLock::new(Hints::new);

#[cfg(test)]
mod tests;
