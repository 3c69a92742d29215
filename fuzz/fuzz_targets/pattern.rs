//! Patterns against arguments. The input's lines are a pattern, another one, and arguments; its bytes make
//! the choices where a command line, or a third pattern, is made from the first. That the work is bounded is
//! asserted where it is done.
#![no_main]

use std::collections::BTreeSet;
use std::sync::LazyLock;

use fuzz::{HoleType, Item, MAX_PATTERN, Part, Pattern, Token, sample};
use libfuzzer_sys::fuzz_target;

/// Every type of hole.
const HOLES: &str = "unit package version user group path path:/a/* path:/** path:/etc/shadow disk volume \
        interface int port protocol address cidr host time size mode url image text secret arg";

/// For each type of hole all that say that they cover it.
static COVERED: LazyLock<Vec<(HoleType, HoleType)>> = LazyLock::new(|| {
    let types = || HOLES.split_whitespace().map(|name| HoleType::parse(name).expect("a type of hole"));
    let covers = |wide: &HoleType, narrow: &HoleType| {
        let [wide, narrow] =
            [wide, narrow].map(|hole| Pattern::parse(&format!("x -- <{hole}>")).expect("a pattern"));
        wide.covers(&narrow)
    };
    types()
        .flat_map(|wide| types().map(move |narrow| (wide.clone(), narrow)))
        .filter(|(wide, narrow)| covers(wide, narrow))
        .collect()
});

fuzz_target!(|input: &str| {
    let mut lines = input.split('\n');
    let (first, second) = (lines.next().unwrap_or(""), lines.next().unwrap_or(""));
    let given: Vec<String> = lines.map(str::to_owned).collect();
    let mut choices = input.bytes().rev();
    let similar = edited(first, second, &mut choices);
    let patterns: Vec<Pattern> = [first, second, &similar].into_iter().filter_map(parsed).collect();
    let mut argvs = vec![given];
    for pattern in &patterns {
        argvs.push(sample::argv(pattern, &mut choices.clone()));
        argvs.push(sample::argv(pattern, &mut input.bytes()));
    }
    for value in argvs.iter().flatten() {
        for (wide, narrow) in COVERED.iter().filter(|(_, narrow)| narrow.accepts(value)) {
            assert!(wide.accepts(value), "<{wide}> covers <{narrow}> and refuses {value:?}");
        }
    }
    for argv in &argvs {
        for pattern in &patterns {
            a_match_accounts_for_everything(pattern, argv);
            a_match_is_what_the_grammar_says(pattern, argv);
            what_stands_beside_the_arguments_counts(pattern, argv);
        }
        what_is_covered_is_allowed(&patterns, argv);
        another_grant_gives_its_own_program_only(&patterns, argv);
    }
});

/// The first pattern but for one word, since two that have nothing in common are never compared far.
fn edited(first: &str, second: &str, choices: &mut impl Iterator<Item = u8>) -> String {
    let mut choose = |below: usize| choices.next().map_or(0, usize::from) % below;
    let mut words: Vec<&str> = first.split(' ').collect();
    let at = choose(words.len());
    let others: Vec<&str> = second.split(' ').collect();
    let holes: Vec<&str> = HOLES.split_whitespace().collect();
    let word = match choose(8) {
        0 => others[choose(others.len())].to_owned(),
        1 => format!("[{}]", words[at]),
        2 => format!("{}...", words[at]),
        3 => format!("({}|{})", words[at], others[choose(others.len())]),
        4 => String::new(),
        5 if first.ends_with("< stdin") => return first.trim_end_matches("< stdin").to_owned(),
        5 => return format!("{first} < stdin"),
        6 => return format!("V=x {first}"),
        _ => match words[at].split_once('<') {
            Some((before, rest)) => {
                let after = rest.split_once('>').map_or("", |(_, after)| after);
                format!("{before}<{}>{after}", holes[choose(holes.len())])
            }
            None => format!("<{}>", holes[choose(holes.len())]),
        },
    };
    words[at] = &word;
    words.join(" ")
}

fn parsed(text: &str) -> Option<Pattern> {
    let pattern = match Pattern::parse(text) {
        Ok(pattern) => pattern,
        Err(error) => {
            assert!((1..=text.chars().count() + 1).contains(&error.column), "{error}");
            return None;
        }
    };
    assert_eq!(pattern.text(), text);
    assert!(text.len() <= MAX_PATTERN);
    let again = Pattern::parse(&pattern.to_string()).expect("its own text is a pattern");
    assert_eq!(
        (pattern.program(), pattern.variables(), pattern.items(), pattern.stdin()),
        (again.program(), again.variables(), again.items(), again.stdin())
    );
    assert!(pattern.covers(&again));
    Some(pattern)
}

fn a_match_accounts_for_everything(pattern: &Pattern, argv: &[String]) {
    let Some(found) = pattern.matches(argv) else { return };
    // The values stand in the arguments, in their order, none within another.
    let (mut at, mut from) = (0, 0);
    for (hole, value) in &found.holes {
        assert!(hole.accepts(value));
        if *hole != HoleType::Arg {
            assert!(!value.is_empty() && !value.contains(['\0', '\n']), "<{hole}> {value:?}");
            assert!(!value.starts_with('-') || *hole == HoleType::Size, "<{hole}> {value:?}");
        }
        loop {
            let rest = argv.get(at).map(|arg| &arg[from..]).expect("the value is in no argument");
            match rest.find(value.as_str()) {
                Some(before) if *hole != HoleType::Arg || value == rest => {
                    from += before + value.len();
                    break;
                }
                _ => (at, from) = (at + 1, 0),
            }
        }
        if *hole == HoleType::Arg {
            (at, from) = (at + 1, 0);
        }
    }
    for at in 0..argv.len().min(16) {
        let mut longer = argv.to_vec();
        longer[at].push('\0');
        assert!(pattern.matches(&longer).is_none());
        if !pattern.text().contains("<arg>") {
            longer[at].pop();
            longer[at].push('\n');
            assert!(pattern.matches(&longer).is_none());
        }
    }
}

fn what_stands_beside_the_arguments_counts(pattern: &Pattern, argv: &[String]) {
    let (program, env) = (pattern.program(), pattern.variables());
    let matches = pattern.matches(argv).is_some();
    assert_eq!(pattern.allows(program, argv, env, pattern.stdin()).is_some(), matches);
    assert!(pattern.stdin() || pattern.allows(program, argv, env, true).is_none());
    assert!(pattern.allows(&format!("/bin/{program}"), argv, env, false).is_none());
    let more = [env, &[("LD_PRELOAD".to_owned(), "/x".to_owned())]].concat();
    assert!(pattern.allows(program, argv, &more, false).is_none());
    for at in 0..env.len() {
        let mut other = env.to_vec();
        other[at].1.push('x');
        assert!(pattern.allows(program, argv, &other, false).is_none());
        let copy = if at > 0 { 0 } else { env.len() - 1 };
        other[at] = env[copy].clone();
        assert!(at == copy || pattern.allows(program, argv, &other, false).is_none(), "one of them twice");
        other.remove(at);
        assert!(pattern.allows(program, argv, &other, false).is_none());
    }
}

fn what_is_covered_is_allowed(patterns: &[Pattern], argv: &[String]) {
    for (wide, narrow) in patterns.iter().flat_map(|wide| patterns.iter().map(move |narrow| (wide, narrow))) {
        let env = narrow.variables();
        let allowed = |by: &Pattern| by.allows(narrow.program(), argv, env, narrow.stdin()).is_some();
        if wide.covers(narrow) && allowed(narrow) {
            assert!(allowed(wide), "{wide} covers {narrow} and refuses {argv:?}");
        }
    }
}

fn another_grant_gives_its_own_program_only(patterns: &[Pattern], argv: &[String]) {
    let [one, other, ..] = patterns else { return };
    let allowed = |by: &[Pattern], program: &str, env: &[(String, String)]| {
        by.iter().any(|pattern| pattern.allows(program, argv, env, false).is_some())
    };
    if one.program() != other.program() {
        let env = one.variables();
        assert_eq!(allowed(&patterns[..2], one.program(), env), allowed(&patterns[..1], one.program(), env));
    }
}

/// The same question answered in the plainest way: where an item may end that begins at one of some places.
fn a_match_is_what_the_grammar_says(pattern: &Pattern, argv: &[String]) {
    if argv.len() <= 8 && argv.iter().all(|arg| arg.len() <= 32) {
        let ends = ends(pattern.items(), argv, BTreeSet::from([0]));
        assert_eq!(pattern.matches(argv).is_some(), ends.contains(&argv.len()), "{pattern} {argv:?}");
    }
}

fn ends(items: &[Item], argv: &[String], starts: BTreeSet<usize>) -> BTreeSet<usize> {
    items.iter().fold(starts, |starts, item| item_ends(item, argv, starts))
}

fn item_ends(item: &Item, argv: &[String], mut starts: BTreeSet<usize>) -> BTreeSet<usize> {
    if starts.is_empty() {
        return starts;
    }
    match item {
        Item::Token(token) => {
            let takes = |at: &usize| argv.get(*at).is_some_and(|arg| token_takes(token, arg));
            starts.into_iter().filter(takes).map(|at| at + 1).collect()
        }
        Item::Optional(items) => {
            starts.extend(ends(items, argv, starts.clone()));
            starts
        }
        Item::Alternatives(ways) => ways.iter().flat_map(|way| ends(way, argv, starts.clone())).collect(),
        Item::Repeat(item) => {
            let mut all = BTreeSet::new();
            let mut new = item_ends(item, argv, starts);
            while !new.is_empty() {
                all.extend(new.iter().copied());
                new = item_ends(item, argv, new).difference(&all).copied().collect();
            }
            all
        }
    }
}

/// One division, and no value with a separator in it.
fn token_takes(token: &Token, arg: &str) -> bool {
    let holes = |part: &&Part| matches!(part, Part::Hole(_));
    let ends = token.parts().len().saturating_sub(1);
    let separators: Vec<&str> = token
        .parts()
        .iter()
        .enumerate()
        .filter_map(|(at, part)| match part {
            Part::Literal(text) if at != 0 && at != ends => Some(text.as_str()),
            _ => None,
        })
        .collect();
    let mut divisions = Vec::new();
    divide(token.parts(), arg, &mut Vec::new(), &mut divisions);
    let [values] = &divisions[..] else { return false };
    token.parts().iter().filter(holes).zip(values).all(|(part, value)| match part {
        Part::Hole(hole) => hole.accepts(value) && !separators.iter().any(|text| value.contains(text)),
        Part::Literal(_) => true,
    })
}

fn divide<'a>(parts: &[Part], text: &'a str, values: &mut Vec<&'a str>, found: &mut Vec<Vec<&'a str>>) {
    match parts {
        [] if text.is_empty() => found.push(values.clone()),
        [] => {}
        [Part::Literal(literal), parts @ ..] => {
            if let Some(text) = text.strip_prefix(literal.as_str()) {
                divide(parts, text, values, found);
            }
        }
        [Part::Hole(_)] => found.push([&values[..], &[text]].concat()),
        [Part::Hole(_), parts @ ..] => {
            for at in (0..=text.len()).filter(|at| text.is_char_boundary(*at)) {
                values.push(&text[..at]);
                divide(parts, &text[at..], values, found);
                values.pop();
            }
        }
    }
}
