//! Finds values that look like secrets behind names that are no proof by themselves: keys, sessions, codes, prose about
//! a password, the word for it in other languages.
//!
//! Few words of a log look like a secret, and many have such a name before them. The values are therefore looked for
//! first, and only the text right before one of them is read for a name.

use std::borrow::Cow;
use std::ops::Range;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::LazyLock;

use regex_automata::hybrid::dfa::{Cache, DFA};
use regex_automata::nfa::thompson;
use regex_automata::util::pool::Pool;
use regex_automata::util::syntax;
use regex_automata::{Anchored, Input};

use super::names::is_no_secret;
use super::words::{PASSWORDS, PROOFS, SIGNS, VALUE_WORDS};
use super::{Edit, REDACTED};

/// The number of bytes of the shortest value that is looked at.
const SHORTEST: usize = 8;
/// The number of bytes before a value that are read for a name. The limit keeps this linear.
const BEFORE: usize = 160;

/// The texts right before a sum, such as a key's fingerprint.
const SUMS: [&str; 8] = ["SHA256:", "SHA512:", "SHA1:", "MD5:", "sha256:", "sha512:", "sha1:", "md5:"];

/// The appearance of a value. It decides which names make the value a secret.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Look {
    /// It has letters and digits, as `hunter123`. Much that is no secret looks so.
    Chosen,
    /// It is hexadecimal or base32, and so may be a sum.
    Encoded,
    /// It has small letters, capitals and digits, and consists of no words.
    Generated,
}

/// Text that ends with a name and what may stand between that name and its value. The patterns are about bytes: with the
/// classes of Unicode they would take ten times the memory.
struct Names {
    passwords: Ending,
    proofs: Ending,
    signs: Ending,
    /// Names that contain one of the signs and are none.
    harmless: Ending,
}

/// A pattern of the end of a text. It is read backwards from there, so it needs only the automaton of that direction: with the
/// other one, and with those that find the parts of a match, it would take twice the memory.
struct Ending {
    automaton: DFA,
    caches: Pool<Cache, NewCache>,
}

type NewCache = Box<dyn Fn() -> Cache + Send + Sync + UnwindSafe + RefUnwindSafe>;

impl Ending {
    /// Compiles a pattern. None if it isn't one.
    fn new(pattern: &str) -> Option<Self> {
        let automaton = DFA::builder()
            .thompson(thompson::Config::new().reverse(true).which_captures(thompson::WhichCaptures::None))
            .syntax(syntax::Config::new().unicode(false).utf8(false))
            .build(pattern)
            .ok()?;
        let of_caches = automaton.clone();
        Some(Self { automaton, caches: Pool::new(Box::new(move || of_caches.create_cache())) })
    }

    /// Says whether the text ends with a match. None where the search gives up.
    fn matches(&self, text: &str) -> Option<bool> {
        let input = Input::new(text).anchored(Anchored::Yes).earliest(true);
        let found = self.automaton.try_search_rev(&mut self.caches.get(), &input);
        found.ok().map(|end| end.is_some())
    }
}

static NAMES: LazyLock<Option<Names>> = LazyLock::new(|| {
    let word = VALUE_WORDS.join("|");
    let sign = r"(?:=>|:=|->|<-|<<<|==?|!=|\\=|[:~,]|(?u:[\u{ff1a}\u{ff1d}])|%3[dD]|&#(?:61|[xX]3[dD]);)";
    let argument = r#"(?:[A-Za-z_.]{1,32}|\\*"[^"\\\n]{0,32}\\*"|'[^'\n]{0,32}')"#;
    let between = [
        // `key1`, `"key"`, `unseal key 1`
        r#"[0-9]{0,3}\\*["'`\])}]{0,2}(?:[ \t]+#?[0-9]{1,3})?"#.to_owned(),
        // `password for joe is`, `password for 'root'@'localhost' =`, `password changed to`, `password:`
        format!(
            r"(?:[ \t]+(?:for|of)[ \t]+[!-9;<>-~]{{1,64}}(?:(?:[ \t]+(?:{word}))+[ \t]*{sign}?|[ \t]*{sign})|(?:[ \t]+(?:{word}))*[ \t]*{sign}?)"
        ),
        r#"[ \t]*\\*["'`\[({<]{0,3}"#.to_owned(),
        // `{"a":"`, `("a", "`, `value="`, `a:`
        format!(
            r#"(?:(?i:basic|plain|token|value)[= \t]\\*"?|(?:{argument}[ \t]*[,:][ \t]*){{1,2}}\\*["'])?(?:[A-Za-z_][A-Za-z0-9_.-]{{0,31}}:)?"#
        ),
    ]
    .concat();
    // A name begins a word, with a capital also in the middle of one: `dbPassword`.
    let regex = |names: &[&str]| {
        let inner = names.iter().filter_map(|name| {
            let (first, rest) = name.split_at_checked(1)?;
            first
                .bytes()
                .all(|byte| byte.is_ascii_lowercase())
                .then(|| format!("{}(?iu:{rest})", first.to_ascii_uppercase()))
        });
        let inner = inner.collect::<Vec<_>>().join("|");
        let names = names.join("|");
        Ending::new(&format!(r"(?:(?:^|[^A-Za-z]|\\[nrt])(?iu:{names})|[a-z0-9](?:{inner})){between}"))
    };
    let harmless = [
        // A code says how something ended, a login where it came from.
        r"(?i:(?:error|exit|status|response|return|reason|result|country|language|source|http)[ _-]?code)",
        r"(?i:pub(?:lic)?[ _-]?key|fingerprint|key[ _-]?id|unexpected token)",
        // These are positions in a list.
        r"(?i:(?:page|next|continue|continuation)[ _-]?token)",
        r"(?i:login[ \t]+(?:from|to|at|on|via|by|as|for|in))",
    ];
    Some(Names {
        passwords: regex(PASSWORDS)?,
        proofs: regex(PROOFS)?,
        signs: regex(SIGNS)?,
        harmless: Ending::new(&format!("(?:{}){between}", harmless.join("|")))?,
    })
});

/// Finds all secrets. None if a pattern can't be compiled, which a test rules out.
pub(super) fn find(text: &str) -> Option<Vec<Edit>> {
    let mut edits: Vec<Edit> = Vec::new();
    for run in (Runs { bytes: text.as_bytes(), at: 0 }) {
        let value = value_in(text, run);
        let Some(look) = look(&text[value.clone()]) else { continue };
        let names = NAMES.as_ref()?;
        let of_a_list = edits
            .last()
            .is_some_and(|(last, _)| text[last.end..value.start].trim_matches([' ', '"', '\'', '\\']) == ",");
        if of_a_list || names.are_before(look, &text[window(text, value.start)..value.start]) {
            edits.push((value, Cow::Borrowed(REDACTED)));
        }
    }
    Some(edits)
}

impl Names {
    fn are_before(&self, look: Look, text: &str) -> bool {
        let lists: &[&Ending] = match look {
            Look::Chosen => &[&self.passwords],
            Look::Encoded => &[&self.passwords, &self.proofs],
            Look::Generated => &[&self.passwords, &self.proofs, &self.signs],
        };
        // What can't be told counts as a secret.
        lists.iter().any(|names| names.matches(text).unwrap_or(true))
            && !self.harmless.matches(text).unwrap_or(false)
            && !SUMS.iter().any(|sum| text.ends_with(sum))
    }
}

/// Returns where the text begins that is read for a name.
fn window(text: &str, end: usize) -> usize {
    let mut start = end.saturating_sub(BEFORE);
    while !text.is_char_boundary(start) {
        start += 1;
    }
    start
}

/// Returns the value in a run: what follows an escaped `=`, up to the next member of a query, and with the padding of
/// base64.
fn value_in(text: &str, run: Range<usize>) -> Range<usize> {
    let (mut start, mut end) = (run.start, run.end);
    if let Some(at) = text[start..end].rfind("%3D").or_else(|| text[start..end].rfind("%3d")) {
        start += at + 3;
    }
    let padding = text.as_bytes()[end..].iter().take(3).take_while(|byte| **byte == b'=').count();
    if padding == 1
        && let Some(at) = text[start..end].rfind('&')
    {
        return start..start + at;
    }
    end += padding;
    start..end
}

/// Says what a value looks like. None if it looks like no secret.
fn look(value: &str) -> Option<Look> {
    let run = value.trim_end_matches('=');
    // An option begins with dashes, the rest of a URL with slashes, a number with `0x`, a public key with many zeros.
    if run.len() < SHORTEST || ["-", "//", "0x", "AAAA"].iter().any(|other| run.starts_with(other)) {
        return None;
    }
    let count = |of: fn(&u8) -> bool| run.bytes().filter(of).count();
    let (small, capital) = (count(u8::is_ascii_lowercase), count(u8::is_ascii_uppercase));
    let digits = count(u8::is_ascii_digit);
    let is_plain = small + capital + digits == run.len();
    let look = if digits == 0 || small + capital == 0 {
        return None;
    } else if is_plain && (is_hex(run) || is_base32(run)) {
        Look::Encoded
    } else if small > 0 && capital > 0 && run.len() >= 10 && !is_file(run) && !is_made_of_words(run) {
        Look::Generated
    } else if small + capital >= 3 && is_word(run) {
        Look::Chosen
    } else {
        return None;
    };
    (!is_no_secret(value)).then_some(look)
}

/// Says whether a text has no marks that divide a name, and isn't that of a sum.
fn is_word(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!$^&*+".contains(&byte))
        && !["sha", "md5", "SHA", "MD5"].iter().any(|sum| text.starts_with(sum))
}

/// Says whether a text looks generated, or is hexadecimal of the length of a key.
pub(super) fn is_generated(text: &str) -> bool {
    matches!(look(text), Some(Look::Generated | Look::Encoded))
}

fn is_hex(text: &str) -> bool {
    text.len() >= 32
        && text.bytes().all(|byte| byte.is_ascii_hexdigit())
        && !(text.contains(|c: char| c.is_ascii_lowercase())
            && text.contains(|c: char| c.is_ascii_uppercase()))
}

fn is_base32(text: &str) -> bool {
    text.len() >= 16 && text.bytes().all(|byte| byte.is_ascii_uppercase() || (b'2'..=b'7').contains(&byte))
}

/// Says whether a text is the name of a file or a host.
fn is_file(text: &str) -> bool {
    text.rsplit_once('.').is_some_and(|(_, ending)| {
        (2..=8).contains(&ending.len()) && ending.bytes().all(|byte| byte.is_ascii_lowercase())
    })
}

/// Says whether a text is a name made of words, as `TestUser1Create2Fail` is. Its words are long, and can be spoken.
fn is_made_of_words(text: &str) -> bool {
    let bytes = text.as_bytes();
    let (mut words, mut letters, mut at) = (0, 0, 0);
    while at < bytes.len() {
        let start = at;
        while at < bytes.len() && bytes[at].is_ascii_uppercase() {
            at += 1;
        }
        // In `HTMLPage`, the last capital belongs to the second word.
        if at - start > 1 && bytes.get(at).is_some_and(u8::is_ascii_lowercase) {
            at -= 1;
        } else {
            while at < bytes.len() && bytes[at].is_ascii_lowercase() {
                at += 1;
            }
        }
        if at == start {
            at += 1;
            continue;
        }
        let word = &bytes[start..at];
        let is_short = word.len() <= 3 || word.iter().all(u8::is_ascii_uppercase);
        if !is_short && !word.iter().any(|letter| b"aeiouyAEIOUY".contains(letter)) {
            return false;
        }
        (words, letters) = (words + 1, letters + word.len());
    }
    letters >= 3 * words
}

/// Goes through the longest runs of bytes that values consist of, as far as they may be values by the kinds of their
/// bytes. It skips short ones without reading all of them.
struct Runs<'a> {
    bytes: &'a [u8],
    /// No run begins before this place and goes on behind it.
    at: usize,
}

impl Iterator for Runs<'_> {
    type Item = Range<usize>;

    fn next(&mut self) -> Option<Range<usize>> {
        loop {
            let least = self.bytes.get(self.at..)?.first_chunk::<SHORTEST>()?;
            // One bit for each byte that belongs to no value. The place of the last one costs no branch for each byte.
            let gaps = least
                .iter()
                .enumerate()
                .fold(0u32, |gaps, (at, byte)| gaps | u32::from(KINDS[usize::from(*byte)] == 0) << at);
            if gaps != 0 {
                self.at += (u32::BITS - gaps.leading_zeros()) as usize;
                continue;
            }
            let start = self.at;
            let mut kinds = 0;
            while let Some(byte) = self.bytes.get(self.at)
                && KINDS[usize::from(*byte)] != 0
            {
                kinds |= KINDS[usize::from(*byte)];
                self.at += 1;
            }
            let has = |kind: u8| kinds & kind != 0;
            // A time and a path have marks, and not letters of both kinds and digits.
            if has(DIGIT) && (has(SMALL) && has(CAPITAL) || (has(SMALL) || has(CAPITAL)) && !has(OF_NAMES)) {
                return Some(start..self.at);
            }
        }
    }
}

const SMALL: u8 = 1;
const CAPITAL: u8 = 2;
const DIGIT: u8 = 4;
/// A mark that also divides names, paths and times.
const OF_NAMES: u8 = 8;
const MARK: u8 = 16;

/// The kind of each byte that values consist of.
static KINDS: [u8; 256] = {
    let mut kinds = [0; 256];
    let of_kinds: [(&[u8], u8); 5] = [
        (b"abcdefghijklmnopqrstuvwxyz", SMALL),
        (b"ABCDEFGHIJKLMNOPQRSTUVWXYZ", CAPITAL),
        (b"0123456789", DIGIT),
        (b"@/_.~-", OF_NAMES),
        (b"!$%^&*+", MARK),
    ];
    let mut kind = 0;
    while kind < of_kinds.len() {
        let mut at = 0;
        while at < of_kinds[kind].0.len() {
            kinds[of_kinds[kind].0[at] as usize] = of_kinds[kind].1;
            at += 1;
        }
        kind += 1;
    }
    kinds
};
