//! A regular expression as a tree, and its text as sudo takes it: POSIX extended, in a sudoers file.
//!
//! Two readers stand in the way of the text. The parser of sudoers ends an expression at the first `$`
//! and a line at the first `#`, wherever they stand, unless there is a backslash before them; it hands the
//! backslash on. And sudo looks for repetitions of repetitions without regard to brackets (`[*+]` is one),
//! and for more than [`MAX_LENGTH`] bytes. Such an expression isn't reported: it matches nothing.

use regex_syntax::hir::{Class, ClassUnicode, ClassUnicodeRange, Hir, HirKind, Repetition};

/// The longest expression that sudo compiles, `^` and `$` included (its `sudo_regex_compile`).
pub(super) const MAX_LENGTH: usize = 1024;
/// How many expressions one may be divided into, so that none is too long.
const MAX_PIECES: usize = 16;

/// Reads Rust's syntax; what isn't, matches nothing.
pub(super) fn parse(text: &str) -> Hir {
    regex_syntax::parse(text).unwrap_or_else(|_| Hir::fail())
}

/// Exactly this text.
pub(super) fn literal(text: &str) -> Hir {
    Hir::literal(text.as_bytes())
}

/// Any character, those beyond ASCII among them.
pub(super) fn any_character() -> ClassUnicode {
    ClassUnicode::new([ClassUnicodeRange::new('\0', char::MAX)])
}

/// `min` times or more.
pub(super) fn repeated(sub: Hir, min: u32, max: Option<u32>) -> Hir {
    Hir::repetition(Repetition { min, max, greedy: true, sub: Box::new(sub) })
}

/// What matches none of these characters; `None` where nothing is left.
pub(super) fn without(hir: &Hir, chars: &[char]) -> Option<Hir> {
    Some(match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => hir.clone(),
        HirKind::Literal(text) => {
            let text = std::str::from_utf8(&text.0).ok()?;
            (!text.contains(chars)).then(|| hir.clone())?
        }
        HirKind::Class(Class::Unicode(class)) => {
            let mut left = class.clone();
            left.difference(&ClassUnicode::new(chars.iter().map(|c| ClassUnicodeRange::new(*c, *c))));
            (!left.ranges().is_empty()).then(|| Hir::class(Class::Unicode(left)))?
        }
        HirKind::Class(Class::Bytes(_)) => return None,
        HirKind::Repetition(repetition) => match without(&repetition.sub, chars) {
            Some(sub) => repeated(sub, repetition.min, repetition.max),
            None => (repetition.min == 0).then(Hir::empty)?,
        },
        HirKind::Capture(capture) => without(&capture.sub, chars)?,
        HirKind::Concat(parts) => {
            Hir::concat(parts.iter().map(|part| without(part, chars)).collect::<Option<_>>()?)
        }
        HirKind::Alternation(ways) => {
            let left: Vec<Hir> = ways.iter().filter_map(|way| without(way, chars)).collect();
            (!left.is_empty()).then(|| Hir::alternation(left))?
        }
    })
}

/// Whether a blank can be in what it matches.
pub(super) fn may_hold_a_blank(hir: &Hir) -> bool {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => false,
        HirKind::Literal(text) => text.0.contains(&b' '),
        HirKind::Class(Class::Unicode(class)) => {
            class.ranges().iter().any(|range| (range.start()..=range.end()).contains(&' '))
        }
        HirKind::Class(Class::Bytes(_)) => true,
        HirKind::Repetition(repetition) => may_hold_a_blank(&repetition.sub),
        HirKind::Capture(capture) => may_hold_a_blank(&capture.sub),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => parts.iter().any(may_hold_a_blank),
    }
}

/// The text of the expression, or of several that match together what it does, none of them too long;
/// `None` where it takes too many.
pub(super) fn texts(hir: &Hir) -> Option<Vec<String>> {
    let mut done = Vec::new();
    let mut left = vec![hir.clone()];
    while let Some(next) = left.pop() {
        let text = text(&next)?;
        if text.len() <= MAX_LENGTH {
            done.push(text);
        } else {
            left.extend(ways(&next)?.into_iter().rev());
        }
        if done.len() + left.len() > MAX_PIECES {
            return None;
        }
    }
    Some(done)
}

/// The same as two alternatives, divided where it gains most; `None` where nothing in it can be chosen.
fn ways(hir: &Hir) -> Option<Vec<Hir>> {
    match hir.kind() {
        HirKind::Alternation(ways) => {
            let (some, others) = ways.split_at(ways.len() / 2);
            Some(vec![Hir::alternation(some.to_vec()), Hir::alternation(others.to_vec())])
        }
        HirKind::Capture(capture) => ways(&capture.sub),
        HirKind::Repetition(Repetition { min: 0, max: Some(1), sub, .. }) => {
            Some(vec![Hir::empty(), (**sub).clone()])
        }
        HirKind::Concat(parts) => {
            let length = |part: &Hir| write(part, Place::Whole).map_or(0, |text| text.len());
            let divisible = (0..parts.len()).filter(|at| ways(&parts[*at]).is_some());
            let at = divisible.max_by_key(|at| length(&parts[*at]))?;
            let with = |way: Hir| {
                let (before, after) = (parts[..at].iter().cloned(), parts[at + 1..].iter().cloned());
                Hir::concat(before.chain([way]).chain(after).collect())
            };
            Some(ways(&parts[at])?.into_iter().map(with).collect())
        }
        _ => None,
    }
}

/// From `^` to `$`. `None` for what can't be said: no text at all, and classes beyond ASCII.
fn text(hir: &Hir) -> Option<String> {
    let inside = write(hir, Place::Part)?;
    Some(format!("^{inside}$"))
}

/// Where a piece of an expression stands, which decides whether it needs parentheses.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// By itself.
    Whole,
    /// Beside others.
    Part,
    /// In front of a repetition.
    Repeated,
}

fn write(hir: &Hir, place: Place) -> Option<String> {
    let grouped = |text: String, when: bool| if when { format!("({text})") } else { text };
    Some(match hir.kind() {
        HirKind::Empty => grouped(String::new(), place == Place::Repeated),
        HirKind::Look(_) | HirKind::Class(Class::Bytes(_)) => return None,
        HirKind::Literal(text) => {
            let text = std::str::from_utf8(&text.0).ok()?;
            let escaped = text.chars().map(escaped).collect();
            grouped(escaped, place == Place::Repeated && text.chars().nth(1).is_some())
        }
        HirKind::Class(Class::Unicode(class)) => write_class(class)?,
        HirKind::Capture(capture) => write(&capture.sub, place)?,
        HirKind::Repetition(repetition) => {
            let times = match (repetition.min, repetition.max) {
                (0, Some(1)) => "?".to_owned(),
                (0, None) => "*".to_owned(),
                (1, None) => "+".to_owned(),
                (min, None) => format!("{{{min},}}"),
                (min, Some(max)) if min == max => format!("{{{min}}}"),
                (min, Some(max)) => format!("{{{min},{max}}}"),
            };
            grouped(write(&repetition.sub, Place::Repeated)? + &times, place == Place::Repeated)
        }
        HirKind::Concat(parts) => {
            let parts: Option<String> = parts.iter().map(|part| write(part, Place::Part)).collect();
            grouped(parts?, place == Place::Repeated)
        }
        HirKind::Alternation(ways) => {
            // POSIX leaves an empty alternative undefined.
            let maybe_nothing = ways.iter().any(|way| *way.kind() == HirKind::Empty);
            let ways = ways.iter().filter(|way| *way.kind() != HirKind::Empty);
            let ways: Option<Vec<String>> = ways.map(|way| write(way, Place::Whole)).collect();
            let ways = ways?.join("|");
            if maybe_nothing {
                grouped(format!("({ways})?"), place == Place::Repeated)
            } else {
                grouped(ways, place != Place::Whole)
            }
        }
    })
}

/// A character by itself. Only what has a meaning gets a backslash: before a letter, `<` or `'`, it would
/// give one (GNU's `\w`, `\<`, `\'`).
fn escaped(c: char) -> String {
    if r"\^$.[]|()*+?{}#".contains(c) { format!("\\{c}") } else { c.to_string() }
}

/// A bracket expression. In brackets a backslash is itself, so the ones that the parser of sudoers wants
/// before `#` and `$` can be there only where the class has the backslash too.
fn write_class(class: &ClassUnicode) -> Option<String> {
    if *class == any_character() {
        return Some(".".to_owned());
    }
    let ranges = class.ranges();
    if ranges.is_empty() || ranges.iter().any(|range| !range.end().is_ascii()) {
        return None;
    }
    if matches!(ranges, [range] if (range.start(), range.end()) == ('!', '~')) {
        return Some("[[:graph:]]".to_owned());
    }
    let has = |c: char| ranges.iter().any(|range| (range.start()..=range.end()).contains(&c));
    let (inside, outside): (Vec<char>, Vec<char>) =
        ('\0'..='\x7f').filter(|c| has(*c)).partition(|c| !matches!(c, '#' | '$') || has('\\'));
    if outside.is_empty() {
        return Some(bracket(&inside));
    }
    let mut ways: Vec<String> = outside.into_iter().map(escaped).collect();
    if !inside.is_empty() {
        ways.insert(0, bracket(&inside));
    }
    Some(format!("({})", ways.join("|")))
}

/// Letters and digits first, as people write it; but `]` before them, `-` at an end, and `+` not beside `*`.
fn bracket(chars: &[char]) -> String {
    let has = |c: char| chars.contains(&c);
    let dash_first = has('^') && !has(']');
    let mut text = String::from("[");
    let first = [(']', true), ('-', dash_first), ('+', true)];
    text.extend(first.into_iter().filter(|(c, here)| *here && has(*c)).map(|(c, _)| c));
    let mut plain: Vec<char> = chars.iter().copied().filter(|c| !"]+^-".contains(*c)).collect();
    plain.sort_by_key(|c| (!c.is_ascii_alphabetic(), !c.is_ascii_digit()));
    let mut plain = plain.into_iter().peekable();
    while let Some(first) = plain.next() {
        let mut last = first;
        while let Some(next) = plain.next_if(|next| follows(last, *next)) {
            last = next;
        }
        match u32::from(last) - u32::from(first) {
            0 if matches!(first, '\\' | '#' | '$') => text.extend(['\\', first]),
            0 => text.push(first),
            1 => text.extend([first, last]),
            _ => text.extend([first, '-', last]),
        }
    }
    text.extend(has('^').then_some('^'));
    text.extend((has('-') && !dash_first).then_some('-'));
    text + "]"
}

/// Letters or digits that are neighbours.
fn follows(before: char, after: char) -> bool {
    before.is_ascii_alphanumeric()
        && after.is_ascii_alphanumeric()
        && u32::from(before) + 1 == u32::from(after)
}
