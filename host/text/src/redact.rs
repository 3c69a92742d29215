//! Takes secrets out of everything that is shown or recorded: answers, arguments, previews, the audit log.
//!
//! A secret is known by its form (a key block, a crypt hash, a token with a well-known beginning) or by the name in
//! front of it (`password=`). Text isn't hidden only because it looks random, and so sums, fingerprints and
//! identifiers stay. Where it isn't clear how far a secret goes, too much is hidden rather than too little.
//!
//! Most text holds no secret. One pass finds hints, which are the words that every secret has in it or before it, and
//! only the secrets that they hint at are looked for. Some hints stand in many lines; behind them, values that look
//! generated are looked for first, and then the text before each of them is read. Every pass is linear.

mod block;
mod commands;
mod escapes;
mod forms;
mod guessed;
mod joined;
mod mask;
mod names;
mod value;
mod words;

use std::borrow::Cow;
use std::ops::Range;
use std::sync::LazyLock;

use aho_corasick::Anchored;
use aho_corasick::automaton::{Automaton, StateID};
use aho_corasick::dfa::DFA;

use crate::visible;

pub use mask::{mask, mask_between};
pub use value::redact_value;

/// The text that replaces a secret.
const REDACTED: &str = "[redacted]";
/// The text that replaces a block with a private key.
const REDACTED_KEY: &str = "[redacted private key]";

/// The place of a secret, and the text that replaces it.
type Edit = (Range<usize>, Cow<'static, str>);

/// Returns the text with `[redacted]` in place of each secret. Everything else stays, such as a URL's user, a name, or
/// the other fields of a line. The text is borrowed where it holds no secret. Redacting twice gives the same as
/// redacting once.
pub fn redact(text: &str) -> Cow<'_, str> {
    whole(text, false)
}

/// Returns at most `most` characters of the redacted text, made visible. It redacts before it cuts, because half a
/// secret can't be recognized.
pub fn excerpt(text: &str, most: usize) -> String {
    crate::visible::excerpt(&redact(text), most)
}

/// Redacts as [`redact`] does and keeps the number of lines: each line of a key block is replaced on its own.
pub fn redact_lines(text: &str) -> Cow<'_, str> {
    whole(text, true)
}

/// Redacts the text. Invisible text, such as the escape sequence of a colour, can split a name. The text is therefore
/// first read without it, and if that finds a secret, the result is the text without it.
fn whole(text: &str, keep_lines: bool) -> Cow<'_, str> {
    let as_it_looks = visible::without_unseen(text);
    if let Cow::Owned(seen) = &as_it_looks
        && let Cow::Owned(redacted) = run(seen, keep_lines)
    {
        return Cow::Owned(until_stable(redacted, keep_lines));
    }
    match run(text, keep_lines) {
        Cow::Owned(redacted) => Cow::Owned(until_stable(redacted, keep_lines)),
        whole => whole,
    }
}

/// Redacts what is redacted already until nothing more is found. A secret that is gone may have hidden the name of another.
fn until_stable(mut text: String, keep_lines: bool) -> String {
    for _ in 0..MOST_ROUNDS {
        match run(&text, keep_lines) {
            Cow::Owned(next) if next != text => text = next,
            _ => break,
        }
    }
    text
}

/// Redacts each of several texts. They may be the lines of one text, and a block that spans several of them is
/// recognized.
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
    // The result is owned, because a borrowed one would mean that the text holds no secret.
    let Some(hints) = &*HINTS else { return Cow::Owned(REDACTED.to_owned()) };
    let seen = hints.seen(text);
    let mut text = Cow::Borrowed(text);
    if seen & BLOCKS != 0 {
        text = edited(text, |text| block::find(text, keep_lines)).0;
    }
    if seen >= form_bit(0) {
        // A secret that is hidden now may have kept another from being found, such as a slash in a URL's password.
        for _ in 0..MOST_ROUNDS {
            let (next, has_changed) = edited(text, |text| known(text, seen));
            text = next;
            if !has_changed {
                break;
            }
        }
    }
    if seen & (NAMES | GUESSES) != 0 {
        text = edited(text, guessed::find).0;
    }
    if seen & NAMES != 0 {
        text = edited(text, names::find).0;
    }
    if seen & JOINTS != 0 {
        text = edited(text, |text| joined::find(text, |text| by_itself(hints, text))).0;
    }
    text
}

/// Finds the secrets of a text that is only read, and isn't shown.
fn by_itself(hints: &Hints, text: &str) -> Option<Vec<Edit>> {
    let seen = hints.seen(text);
    let names = if seen & NAMES != 0 { names::find(text)? } else { Vec::new() };
    let guessed = if seen & (NAMES | GUESSES) != 0 { guessed::find(text)? } else { Vec::new() };
    Some(merged([known(text, seen)?, names, guessed].concat()))
}

/// The most rounds. Hiding a secret brings at most one other to light, and a bound keeps this linear.
const MOST_ROUNDS: usize = 16;

/// Finds secrets by their form and among the options of commands. All are looked for in the same text, as one secret
/// may hold the beginning of another (`sshpass -p ;curl -u root:…`).
fn known(text: &str, seen: u128) -> Option<Vec<Edit>> {
    let mut secrets = Vec::new();
    for (at, form) in forms::ALL.iter().enumerate() {
        if seen & form_bit(at) != 0 {
            secrets.extend(form.find(text)?);
        }
    }
    for (at, command) in commands::ALL.iter().enumerate() {
        if seen & command_bit(at) != 0 {
            secrets.extend(command.find(text)?);
        }
    }
    Some(merged(secrets.into_iter().map(|secret| (secret, Cow::Borrowed(REDACTED))).collect()))
}

/// Hides secrets that overlap as one.
fn merged(mut secrets: Vec<Edit>) -> Vec<Edit> {
    secrets.sort_unstable_by_key(|(secret, _)| secret.start);
    secrets.dedup_by(|(secret, _), (last, _)| {
        let overlaps = secret.start <= last.end;
        if overlaps {
            last.end = last.end.max(secret.end);
        }
        overlaps
    });
    secrets
}

/// Returns the text with the edits applied, and whether there were any. The whole text is hidden where `find` failed.
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

/// The kinds of secrets that a text hints at, as bits: [`block`], [`names`], [`guessed`], [`joined`], and each of [`forms::ALL`] and
/// [`commands::ALL`].
const BLOCKS: u128 = 1;
const NAMES: u128 = 2;
const GUESSES: u128 = 4;
const JOINTS: u128 = 8;

const fn form_bit(at: usize) -> u128 {
    16 << at
}

const fn command_bit(at: usize) -> u128 {
    form_bit(forms::ALL.len() + at)
}

/// The words of which every secret has one in it or before it.
struct Hints {
    /// It knows the words in small letters, and reads a text as if it were in small letters: with both, it would be twice as
    /// large.
    automaton: DFA,
    start: StateID,
    /// The kind of secret that each word hints at.
    bits: Vec<u128>,
    /// The number of bytes that a word has at most besides its first one.
    rest: usize,
}

/// The number of parts of a text that are read side by side. The next state of an automaton waits for memory, and another part
/// is read meanwhile.
const LANES: usize = 4;

impl Hints {
    fn new() -> Option<Self> {
        let forms = forms::ALL.iter().enumerate().map(|(at, form)| (form.hints, form_bit(at)));
        let commands = commands::ALL.iter().enumerate().map(|(at, command)| (command.hints, command_bit(at)));
        let of_their_own = [(block::HINTS, BLOCKS), (words::GUESS_HINTS, GUESSES), (joined::HINTS, JOINTS)];
        let all = of_their_own.into_iter().chain(forms).chain(commands);
        let all = all.flat_map(|(hints, bit)| hints.iter().map(move |hint| (Cow::Borrowed(*hint), bit)));
        let (hints, bits): (Vec<_>, Vec<_>) = all.chain(names::hints().map(|hint| (hint, NAMES))).unzip();
        let rest = hints.iter().map(|hint| hint.len()).max()?.checked_sub(1)?;
        let small = hints.iter().map(|hint| hint.to_ascii_lowercase());
        let automaton = DFA::builder().prefilter(false).build(small).ok()?;
        let start = automaton.start_state(Anchored::No).ok()?;
        Some(Self { automaton, start, bits, rest })
    }

    /// Returns the kinds of secrets that the text hints at.
    fn seen(&self, text: &str) -> u128 {
        let text = text.as_bytes();
        let mut lanes = [self.start; LANES];
        let mut seen = 0;
        if text.len() < LANES * self.rest {
            for byte in text {
                self.step(&mut lanes[0], *byte, &mut seen);
            }
            return seen;
        }
        // A word begins in one part, and ends in it as well, because each part goes on into the next one.
        let part = (text.len() - self.rest).div_ceil(LANES);
        let length = part + self.rest;
        let of_part = |at: usize| {
            let start = (at * part).min(text.len() - length);
            text[start..start + length].iter()
        };
        let parts = of_part(0).zip(of_part(1)).zip(of_part(2)).zip(of_part(3));
        for (((first, second), third), fourth) in parts {
            self.step(&mut lanes[0], *first, &mut seen);
            self.step(&mut lanes[1], *second, &mut seen);
            self.step(&mut lanes[2], *third, &mut seen);
            self.step(&mut lanes[3], *fourth, &mut seen);
        }
        seen
    }

    /// Reads the next byte of a part.
    #[inline(always)]
    fn step(&self, state: &mut StateID, byte: u8, seen: &mut u128) {
        *state = self.automaton.next_state(Anchored::No, *state, byte.to_ascii_lowercase());
        if self.automaton.is_special(*state) && self.automaton.is_match(*state) {
            *seen |= self.bits_of(*state);
        }
    }

    /// The kinds of secrets at which the words that end in this state hint.
    #[cold]
    fn bits_of(&self, state: StateID) -> u128 {
        let words = (0..self.automaton.match_len(state)).map(|at| self.automaton.match_pattern(state, at));
        words.fold(0, |bits, word| bits | self.bits.get(word.as_usize()).copied().unwrap_or(u128::MAX))
    }
}

/// None if the automaton can't be built, which a test rules out. Then all text is hidden.
static HINTS: LazyLock<Option<Hints>> = LazyLock::new(Hints::new);

#[cfg(test)]
mod tests;
