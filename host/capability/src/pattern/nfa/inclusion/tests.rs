use proptest::prelude::*;

use crate::pattern::{Pattern, sample};

#[track_caller]
fn pattern(text: &str) -> Pattern {
    Pattern::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[test]
fn a_pattern_covers_what_it_certainly_allows() {
    for (wide, narrow) in [
        ("x", "x"),
        ("A=b C=d x", "C=d A=b x"),
        ("x < stdin", "x"),
        ("x 'a' b", "x a 'b'"),
        ("x <unit>", "x nginx.service"),
        ("x --unit=<unit>", "x --unit=nginx"),
        ("x <text>", "x <unit>"),
        ("x <text>", "x <path>"),
        ("x <text>", "x <secret>"),
        ("x -- <arg>", "x -- <size>"),
        ("x -- <arg>...", "x -- -o '' <text>"),
        ("x <int>", "x <port>"),
        ("x <host>", "x <address>"),
        ("x <group>", "x <user>"),
        ("x <user>:<text>", "x <user>:<group>"),
        ("x [a] [b]", "x"),
        ("x [a] [b]", "x b"),
        ("x [(a|b)]...", "x"),
        ("x (a|b|c)", "x (c|a)"),
        ("x (a b|a c)", "x a (b|c)"),
        ("x [(a|b)]...", "x a... b [a] (b|a)..."),
        ("x <unit>...", "x <unit> <unit>"),
        ("x [a]... [b]...", "x a... [b]..."),
        ("x (a|<int>)...", "x 1 a <port>..."),
        ("x <path>", "x <path:/srv/*>"),
        ("x <path:/**>", "x <path:/srv/**>"),
        ("x <path:/srv/**>", "x <path:/srv/*/a*>"),
        ("x <path:/srv/*>", "x <path:/srv/a*c>"),
        ("x <path:/srv/a*>", "x <path:/srv/a*c*>"),
        ("x <path:/*/**>", "x <path:/a/**>"),
        ("x <path:/**/log>", "x <path:/srv/**/a/log>"),
        ("x <path:/etc/shadow>", "x <path:/etc/shadow>"),
        ("x <path:/proc/*/environ>", "x <path:/proc/1/environ>"),
    ] {
        assert!(pattern(wide).covers(&pattern(narrow)), "{wide} covers {narrow}");
    }
}

#[test]
fn a_pattern_does_not_cover_what_it_may_not_allow() {
    for (narrow, wide) in [
        ("x", "y"),
        ("x", "/bin/x"),
        ("x", "x a"),
        ("x a", "x"),
        ("x", "A=b x"),
        ("A=b x", "x"),
        ("A=b x", "A=c x"),
        ("A=b x", "B=b x"),
        ("A=b x", "A=b C=d x"),
        ("x", "x < stdin"),
        ("x a", "x [a]"),
        ("x a", "x (a|b)"),
        ("x [a]", "x a..."),
        ("x a b", "x b a"),
        ("x <unit>", "x <unit>..."),
        ("x <unit>", "x -Hhost"),
        ("x -- <unit>", "x <unit>"),
        ("x <unit>", "x <text>"),
        ("x <text>", "x <size>"),
        ("x <text>", "x -- <arg>"),
        ("x <text>", "x ''"),
        ("x <port>", "x <int>"),
        ("x <address>", "x <host>"),
        ("x --a=<text>", "x --b=<text>"),
        ("x <user>:<group>", "x <user>"),
        ("x <int>-<int>", "x 1-2-3"),
        // The host doesn't check where a path leads that is written out.
        ("x <path:/srv/*>", "x /srv/a"),
        ("x --file=<path>", "x --file=/srv/a"),
        ("x <path:/**>", "x <path>"),
        ("x <path:/srv/*>", "x <path:/srv/**>"),
        ("x <path:/srv/*>", "x <path:/srv/*/*>"),
        ("x <path:/srv/*/**>", "x <path:/srv/**>"),
        ("x <path:/srv/a*c>", "x <path:/srv/a*>"),
        ("x <path:/srv/a>", "x <path:/srv/b>"),
        ("x <path>", "x <path:/etc/shadow>"),
        ("x <path>", "x <path:/proc/*/environ>"),
        ("x <path:/etc/*>", "x <path:/etc/shadow>"),
        ("x <path:/**>", "x <path:/proc/*/environ>"),
    ] {
        assert!(!pattern(narrow).covers(&pattern(wide)), "{narrow} must not cover {wide}");
    }
}

#[test]
fn what_takes_too_long_to_tell_is_not_covered() {
    // The sets have to tell which of the last 13 arguments were an `a`: that makes 2^13 sets.
    let hard = format!("x [(a|b)]... a {}", "(a|b) ".repeat(13));
    assert!(pattern(&hard).covers(&pattern(&hard)));
    assert!(!pattern(&hard).covers(&pattern(&hard.replace("[(a|b)]...", "[(b|a)]..."))));
    let easy = format!("x [(a|b)]... a {}", "(a|b) ".repeat(5));
    assert!(pattern(&easy).covers(&pattern(&easy.replace("[(a|b)]...", "[(b|a)]..."))));
}

/// Generates items, and wider items that take everything that the first take.
fn any_widening() -> impl Strategy<Value = (String, String)> {
    let tokens = vec![
        ("a", "a"),
        ("b", "(a|b)"),
        ("1", "<int>"),
        ("--", "--"),
        ("<port>", "<int>"),
        ("<unit>", "<text>"),
        ("<user>", "<group>"),
        ("a=<int>", "a=<text>"),
        ("<user>:<group>", "<user>:<text>"),
        ("<path:/srv/a/*>", "<path:/srv/**>"),
    ];
    let token = prop::sample::select(tokens).prop_map(|(narrow, wide)| (narrow.to_owned(), wide.to_owned()));
    token.prop_recursive(3, 12, 2, |inner| {
        let one = prop::collection::vec(inner, 1..3)
            .prop_map(|items| items.into_iter().unzip::<_, _, Vec<_>, Vec<_>>())
            .prop_map(|(narrow, wide)| (narrow.join(" "), wide.join(" ")));
        (one.clone(), one, 0..6).prop_map(|((a, wide_a), (b, wide_b), kind)| match kind {
            0 => (a, format!("[{wide_a}]")),
            1 => (format!("[{a}]"), format!("[{wide_a}]...")),
            2 => (a, format!("({wide_b}|{wide_a})")),
            3 => (format!("({a}|{b})"), format!("({wide_b}|{wide_a})...")),
            4 => (format!("({a})..."), format!("({wide_a})...")),
            _ => (format!("{a} {b}"), format!("[({wide_b}|{wide_a})]...")),
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_covered_is_allowed(
        items in prop::collection::vec(any_widening(), 0..4),
        other in prop::collection::vec(any_widening(), 0..2),
        choices in prop::collection::vec(any::<u8>(), 0..40),
    ) {
        let (narrow, wide): (Vec<String>, Vec<String>) = items.into_iter().unzip();
        let (other, _): (Vec<String>, Vec<String>) = other.into_iter().unzip();
        let patterns = [narrow, wide, other].map(|items| pattern(&format!("x {}", items.join(" "))));
        prop_assert!(patterns.iter().all(|same| same.covers(same)));
        prop_assert!(patterns[1].covers(&patterns[0]), "{} covers {}", patterns[1], patterns[0]);
        for other in &patterns {
            let argv = sample::argv(other, &mut choices.iter().copied());
            for pattern in patterns.iter().filter(|pattern| pattern.covers(other)) {
                let refused = other.matches(&argv).is_some() && pattern.matches(&argv).is_none();
                prop_assert!(!refused, "{} covers {} and refuses {:?}", pattern, other, argv);
            }
        }
    }
}
