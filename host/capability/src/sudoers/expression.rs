//! A regular expression as a tree, and its text as sudo takes it: POSIX extended, in a sudoers file.
//!
//! Two readers restrict the text. The parser of sudoers ends an expression at the first `$` and a line at the first `#`,
//! wherever they stand, unless a backslash precedes them; it passes the backslash on. And sudo refuses repetitions of
//! repetitions, for which it ignores brackets (`[*+]` counts as one), and more than [`MAX_LENGTH`] bytes. It doesn't report
//! such an expression, which then matches nothing.

use std::collections::{BTreeMap, VecDeque};

use regex_syntax::hir::{Class, ClassUnicode, ClassUnicodeRange, Hir, HirKind, Repetition};

/// The longest expression that sudo compiles, including `^` and `$` (`sudo_regex_compile`).
pub(super) const MAX_LENGTH: usize = 1024;
/// The greatest number of expressions into which one is divided, so that none is too long.
const MAX_PIECES: usize = 16;

/// Parses an expression in Rust's syntax. A text that can't be parsed matches nothing.
pub(super) fn parse(text: &str) -> Hir {
    regex_syntax::parse(text).unwrap_or_else(|_| Hir::fail())
}

/// The expression for exactly this text.
pub(super) fn literal(text: &str) -> Hir {
    Hir::literal(text.as_bytes())
}

/// The class of all characters, including those beyond ASCII.
pub(super) fn any_character() -> ClassUnicode {
    ClassUnicode::new([ClassUnicodeRange::new('\0', char::MAX)])
}

/// The class of the characters that can be seen, and the blank.
fn visible() -> ClassUnicode {
    ClassUnicode::new([ClassUnicodeRange::new(' ', '~')])
}

/// The expression for at least `min` and at most `max` repetitions.
pub(super) fn repeated(sub: Hir, min: u32, max: Option<u32>) -> Hir {
    Hir::repetition(Repetition { min, max, greedy: true, sub: Box::new(sub) })
}

/// The expression restricted to texts without these characters; `None` where no text is left.
pub(super) fn without(hir: &Hir, chars: &[char]) -> Option<Hir> {
    Some(match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => hir.clone(),
        HirKind::Literal(text) => {
            let text = std::str::from_utf8(&text.0).ok()?;
            (!text.contains(chars)).then(|| hir.clone())?
        }
        HirKind::Class(Class::Unicode(class)) => {
            // sudoers takes no class of all characters but some, so those beyond ASCII are left out as well.
            let is_any = *class == any_character() && !chars.is_empty();
            let mut left = if is_any { visible() } else { class.clone() };
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

/// Whether the expression matches a text with a blank.
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

/// The expression, or several that together match the same, none of them too long; `None` where it would take too many.
pub(super) fn pieces(hir: &Hir) -> Option<Vec<Hir>> {
    let mut done = Vec::new();
    let mut left = vec![hir.clone()];
    while let Some(next) = left.pop() {
        if text(&next)?.len() <= MAX_LENGTH {
            done.push(next);
        } else {
            left.extend(ways(&next)?.into_iter().rev());
        }
        if done.len() + left.len() > MAX_PIECES {
            return None;
        }
    }
    Some(done)
}

/// The texts that together match what these [pieces] match, and nothing else. sudo reads every text of a fragment at each
/// command, and therefore a text holds as many pieces as its length allows.
pub(super) fn united(pieces: &[Hir]) -> Vec<String> {
    let pieces: BTreeMap<String, &Hir> =
        pieces.iter().filter_map(|piece| Some((text(piece)?, piece))).collect();
    let mut texts: Vec<String> = Vec::new();
    let mut last: Vec<&Hir> = Vec::new();
    for (own, piece) in pieces {
        last.push(piece);
        let with_it = text(&alternation(&last)).filter(|text| text.len() <= MAX_LENGTH);
        match (with_it, texts.last_mut()) {
            (Some(text), Some(before)) => *before = text,
            _ => {
                texts.push(own);
                last = vec![piece];
            }
        }
    }
    texts
}

/// The expression for what one of these matches. What all of them begin with and end in is written once.
fn alternation(ways: &[&Hir]) -> Hir {
    let parts = |way: &&Hir| match way.kind() {
        HirKind::Concat(parts) => parts.iter().cloned().collect(),
        _ => VecDeque::from([(*way).clone()]),
    };
    let mut ways: Vec<VecDeque<Hir>> = ways.iter().map(parts).collect();
    let before = take_common(&mut ways, End::Front);
    let behind = take_common(&mut ways, End::Back);
    let between = Hir::alternation(ways.into_iter().map(|way| Hir::concat(way.into())).collect());
    Hir::concat(before.into_iter().chain([between]).chain(behind).collect())
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Front,
    Back,
}

/// Takes away what all of these have in common at one end.
fn take_common(ways: &mut [VecDeque<Hir>], end: End) -> VecDeque<Hir> {
    let mut taken = VecDeque::new();
    let push = |parts: &mut VecDeque<Hir>, part: Hir, end: End| match end {
        End::Front => parts.push_front(part),
        End::Back => parts.push_back(part),
    };
    let other = if end == End::Front { End::Back } else { End::Front };
    loop {
        let at_end = |way: &VecDeque<Hir>| if end == End::Front { way.front() } else { way.back() }.cloned();
        let Some(parts) = ways.iter().map(at_end).collect::<Option<Vec<Hir>>>() else { return taken };
        let common = match parts.first() {
            Some(first) if parts.iter().all(|part| part == first) => first.clone(),
            _ => common_text(&parts, end),
        };
        if *common.kind() == HirKind::Empty {
            return taken;
        }
        for (way, part) in ways.iter_mut().zip(parts) {
            if end == End::Front {
                way.pop_front()
            } else {
                way.pop_back()
            };
            if let (HirKind::Literal(text), HirKind::Literal(common)) = (part.kind(), common.kind()) {
                let (text, taken) = (&text.0, common.0.len());
                let rest = match end {
                    End::Front => &text[taken..],
                    End::Back => &text[..text.len() - taken],
                };
                if !rest.is_empty() {
                    push(way, Hir::literal(rest), end);
                }
            }
        }
        push(&mut taken, common, other);
    }
}

/// The text that all of these texts begin with, or end in; empty where one of them is no text.
fn common_text(parts: &[Hir], end: End) -> Hir {
    let text = |part: &Hir| match part.kind() {
        HirKind::Literal(text) => std::str::from_utf8(&text.0).ok().map(str::to_owned),
        _ => None,
    };
    let Some(texts) = parts.iter().map(text).collect::<Option<Vec<String>>>() else { return Hir::empty() };
    let ordered = |text: &String| -> Vec<char> {
        if end == End::Front { text.chars().collect() } else { text.chars().rev().collect() }
    };
    let mut texts = texts.iter().map(ordered);
    let mut common = texts.next().unwrap_or_default();
    for text in texts {
        let same = common.iter().zip(&text).take_while(|(a, b)| a == b).count();
        common.truncate(same);
    }
    if end == End::Back {
        common.reverse();
    }
    literal(&common.into_iter().collect::<String>())
}

/// Divides the expression into two alternatives, at the place where that shortens it most; `None` where it has no
/// alternatives.
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
            let length = |part: &Hir| write(part, Position::Whole).map_or(0, |text| text.len());
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

/// The text from `^` to `$`. `None` for what sudoers can't express: an expression that matches no text, and classes
/// beyond ASCII.
fn text(hir: &Hir) -> Option<String> {
    let inside = write(hir, Position::Part)?;
    Some(format!("^{inside}$"))
}

/// The position of a piece in an expression, which decides whether it needs parentheses.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Position {
    /// The piece stands by itself.
    Whole,
    /// The piece stands beside others.
    Part,
    /// The piece stands in front of a repetition.
    Repeated,
}

fn write(hir: &Hir, place: Position) -> Option<String> {
    let grouped = |text: String, when: bool| if when { format!("({text})") } else { text };
    Some(match hir.kind() {
        HirKind::Empty => grouped(String::new(), place == Position::Repeated),
        HirKind::Look(_) | HirKind::Class(Class::Bytes(_)) => return None,
        HirKind::Literal(text) => {
            let text = std::str::from_utf8(&text.0).ok()?;
            let escaped = text.chars().map(escaped).collect();
            grouped(escaped, place == Position::Repeated && text.chars().nth(1).is_some())
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
            grouped(write(&repetition.sub, Position::Repeated)? + &times, place == Position::Repeated)
        }
        HirKind::Concat(parts) => {
            let parts: Option<String> = parts.iter().map(|part| write(part, Position::Part)).collect();
            grouped(parts?, place == Position::Repeated)
        }
        HirKind::Alternation(ways) => {
            // POSIX leaves an empty alternative undefined.
            let maybe_nothing = ways.iter().any(|way| *way.kind() == HirKind::Empty);
            let ways = ways.iter().filter(|way| *way.kind() != HirKind::Empty);
            let ways: Option<Vec<String>> = ways.map(|way| write(way, Position::Whole)).collect();
            let ways = ways?.join("|");
            if maybe_nothing {
                grouped(format!("({ways})?"), place == Position::Repeated)
            } else {
                grouped(ways, place != Position::Whole)
            }
        }
    })
}

/// A character by itself. Only a character with a meaning gets a backslash: before a letter, `<` or `'`, a backslash
/// would add a meaning (GNU's `\w`, `\<`, `\'`).
fn escaped(c: char) -> String {
    if r"\^$.[]|()*+?{}#".contains(c) { format!("\\{c}") } else { c.to_string() }
}

/// A bracket expression. A backslash in brackets is literal, so the backslashes that the parser of sudoers needs before
/// `#` and `$` can stand there only where the class has the backslash as well.
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

/// Writes letters and digits first, as people do. But `]` comes before them, `-` stands at an end, and `+` not beside
/// `*`.
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

/// Whether two letters or digits are neighbours.
fn follows(before: char, after: char) -> bool {
    before.is_ascii_alphanumeric()
        && after.is_ascii_alphanumeric()
        && u32::from(before) + 1 == u32::from(after)
}
