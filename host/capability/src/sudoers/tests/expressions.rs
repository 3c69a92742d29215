//! Tests of whole patterns against their expressions.

use proptest::prelude::*;
use proptest::string::string_regex;

use super::*;
use crate::pattern::{MAX_ARGS, sample};

#[test]
fn a_pattern_becomes_one_expression() {
    for (text, expected) in [
        ("x", &["\"\""] as &[&str]),
        ("x a", &["^a$"]),
        ("x (start|stop) -- <int>", &[r"^(start|stop) -- (0|[1-9][0-9]{0,18})$"]),
        ("x a [b] c...", &["^a( b)?( c)+$"]),
        ("x [a] b", &["^(a )?b$"]),
        ("x [a]... b", &["^(a )*b$"]),
        ("x b [a]...", &["^b( a)*$"]),
        ("x a... b", &["^a( a)* b$"]),
        ("x [a]", &["\"\"", "^a$"]),
        ("x [a]...", &["\"\"", "^a( a)*$"]),
        ("x [a] [b]", &["\"\"", "^(a( b)?|b)$"]),
        ("x ([a] b|c)", &["^((a )?b|c)$"]),
        ("x --o='a.b*c$#\\'", &[r"^--o=a\.b\*c\$\#\\$"]),
        ("x '(?i)a' '{1}' '[^b]|c' '+'", &[r"^\(\?i\)a \{1\} \[\^b\]\|c \+$"]),
        ("x a '' b", &["^a  b$"]),
        ("x 'ä'", &["^ä$"]),
        (
            "x <user>:<group>",
            &[
                r"^[A-Za-z_]([A-Za-z0-9._-]{0,30}[A-Za-z0-9_-])?:[A-Za-z_]([A-Za-z0-9._-]{0,30}[A-Za-z0-9_-])?$",
            ],
        ),
    ] {
        assert_eq!(texts(&pattern(text)), expected, "{text}");
    }
}

/// pattern, argument lists that pass, argument lists that don't
#[test]
fn what_passes_is_what_the_pattern_allows() {
    for (text, passes, fails) in [
        (
            "systemctl (start|stop|restart) -- <unit>",
            &["restart -- nginx", "start -- getty@tty1.service"] as &[&str],
            &[
                "restart nginx",
                "restart -- nginx sshd",
                "restart -- --no-block",
                "--no-block restart -- nginx",
                "restart --",
                "restart -- ",
                "restart  -- nginx",
                "reload -- nginx",
                "restart -- nginx ",
                " restart -- nginx",
                "restart -- a/b",
                "restart -- nginx\nx",
                "",
                "restart -- nginx --no-block",
            ] as &[&str],
        ),
        (
            "apt-get install --yes -- <package>...",
            &["install --yes -- nginx", "install --yes -- nginx g++ python3.11"],
            &[
                "install --yes --",
                "install --yes -- nginx -o",
                "install --yes -- ./x.deb",
                "install --yes -- nginx- vim",
                "install -- nginx",
            ],
        ),
        (
            "journalctl --output=json [--unit=<unit>]... [--since=<time>] --lines=<int>",
            &[
                "--output=json --lines=1",
                "--output=json --unit=a --unit=b --lines=1",
                "--output=json --since=1 hour ago --lines=1",
            ],
            &[
                "--output=json --unit=a --file=/etc/shadow --lines=1",
                "--output=json --since=now --file=/x --lines=1",
                "--lines=1",
            ],
        ),
        (
            "chown -- <user>:<group> <path:/srv/*>",
            &["-- ada:users /srv/x"],
            &["-- ada: /srv/x", "-- ada:users /srv/x /etc/shadow", "-- a:b:c /srv/x", "-- 0:0 /srv/x"],
        ),
        ("nc <host>:<port>", &["example.org:22", "1.2.3.4:22"], &["::1:22", "example.org:", "a:b:22"]),
        ("x <size>-<size>", &["1G-2G"], &["-1G-2G", "1G--2G"]),
        ("x <text>=<text>", &["a=b"], &["a=b=c", "=b", "a=", "-a=b", "a=-b"]),
        (
            "x '?exact-name('<package>')'",
            &["?exact-name(vim)"],
            &["?exact-name(vim))", "?exact-name()", "?exact-name(a|b)"],
        ),
        (
            "podman exec -- <text> <arg>...",
            &["exec -- web sh -c id", "exec -- web --x"],
            &["exec -- web", "exec -- --privileged sh", "exec web sh"],
        ),
        ("x -- '$HOME#a'", &["-- $HOME#a"], &["-- $HOME", "-- HOME#a"]),
        (
            "ip route add <cidr> via <address> dev <interface>",
            &["route add 10.0.0.0/8 via 10.0.0.1 dev eth0", "route add ::/0 via fe80::1 dev eth0"],
            &["route add 10.0.0.0/8 via 10.0.0.1 dev eth0 table 1", "route add default via ::1 dev eth0"],
        ),
    ] {
        let texts = texts(&pattern(text));
        texts.iter().for_each(|text| assert_that_sudo_reads(text));
        for args in passes {
            assert!(allows(&texts, &[args]), "{text} must pass {args:?}: {texts:?}");
        }
        for args in fails {
            assert!(!allows(&texts, &[args]), "{text} must not pass {args:?}: {texts:?}");
        }
    }
}

#[test]
fn what_has_no_expression_is_refused() {
    let too_long = format!("x {}", "a ".repeat(200) + &"b".repeat(800));
    let too_many = format!("x {}", "a ".repeat(300));
    let all_optional = format!("x {}", "[a] ".repeat(17));
    for (text, refusal) in [
        ("x <path>", Refusal::AnyPath),
        ("x <path:/srv/**>", Refusal::AnyDepth("/srv/**".to_owned())),
        ("x ''", Refusal::EmptyArgument),
        ("x (a|'')", Refusal::EmptyArgument),
        ("x <url>h<url>", Refusal::Inseparable),
        (&too_long, Refusal::TooLong),
        (&too_many, Refusal::TooLong),
        (&all_optional, Refusal::TooLong),
    ] {
        let found = arguments(&pattern(text), Exactness::Grants).map(|found| found.texts());
        assert_eq!(found, Err(refusal), "{text}");
    }
}

#[test]
fn a_long_expression_is_divided_where_it_has_alternatives() {
    for text in [
        "x from <cidr> to <cidr> via <address>",
        "x [--from=<cidr>] [--to=<cidr>] <host>",
        "x ((from|to) <cidr> <cidr>|any) <address>",
    ] {
        let texts = texts(&pattern(text));
        assert!(texts.len() > 1, "{text}");
        texts.iter().filter(|text| *text != "\"\"").for_each(|text| assert_that_sudo_reads(text));
    }
    let all = texts(&pattern("x from <cidr> to <cidr> via <address>"));
    for (args, passes) in [
        ("from 10.0.0.0/8 to 10.0.0.0/8 via 10.0.0.1", true),
        ("from ::/0 to ::/0 via ::1", true),
        ("from ::/0 to 10.0.0.0/8 via ::1", true),
        ("from 10.0.0.0/8 to ::/0 via 10.0.0.1", true),
        ("from 10.0.0.0/8 to ::/0 via 10.0.0.1/8", false),
    ] {
        assert_eq!(allows(&all, &[args]), passes, "{args}");
    }
}

#[test]
fn what_sudo_cannot_tell_apart_is_said() {
    for (text, note) in [
        ("x --since=<time>", Some("not exact")),
        ("x 'a b'", Some("not exact")),
        ("x <path:/srv/My Files/*>", Some("not exact")),
        ("x --comment=<text>", Some("no text with blanks")),
        ("x --password=<secret>", Some("no text with blanks")),
        ("x -- <arg>...", Some("no text with blanks")),
        ("x -- <unit>", None),
        ("x", None),
    ] {
        let notes = arguments(&pattern(text), Exactness::Grants).unwrap().notes;
        assert_eq!(notes.len(), usize::from(note.is_some()), "{text}: {notes:?}");
        assert!(note.is_none_or(|note| notes[0].contains(note)), "{text}: {notes:?}");
    }
}

fn any_pattern(tokens: &'static [&'static str]) -> impl Strategy<Value = String> {
    let items = prop::collection::vec(sample::any_item(tokens), 0..4);
    items.prop_map(|items| format!("x {}", items.join(" ")))
}

fn any_argv() -> impl Strategy<Value = Vec<&'static str>> {
    prop::collection::vec(
        prop::sample::select(vec!["a", "b", "--", "1", "a=1", "a:b", "c", "-a", "", "a="]),
        0..6,
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    /// Pattern and expression agree where values have no blanks.
    #[test]
    fn an_expression_passes_what_its_pattern_allows(
        text in any_pattern(&["a", "b", "--", "<int>", "a=<int>", "<user>:<group>", "''"]),
        argv in any_argv(),
    ) {
        let pattern = pattern(&text);
        if let Ok(found) = arguments(&pattern, Exactness::Grants) {
            let args: Vec<String> = argv.iter().map(|arg| (*arg).to_owned()).collect();
            prop_assert_eq!(allows(&found.texts(), &argv), pattern.matches(&args).is_some(), "{} {:?} {:?}", text, argv, found.texts());
        }
    }

    /// Several patterns together pass what one of them allows.
    #[test]
    fn united_expressions_pass_what_one_of_them_passes(
        texts in prop::collection::vec(
            any_pattern(&["a", "ab", "b", "ba", "--", "<int>", "a=<int>", "a=1", "<user>:<group>", "'a|b'"]),
            1..8,
        ),
        argv in any_argv(),
    ) {
        let mut united = Arguments::default();
        let mut passes = false;
        for text in &texts {
            if let Ok(found) = arguments(&pattern(text), Exactness::Grants) {
                passes |= allows(&found.texts(), &argv);
                united.extend(found);
            }
        }
        let united = united.texts();
        united.iter().filter(|text| *text != "\"\"").for_each(|text| assert_that_sudo_reads(text));
        prop_assert_eq!(allows(&united, &argv), passes, "{:?} {:?} {:?}", texts, argv, united);
    }
}

#[test]
fn many_expressions_become_few_that_sudo_can_take() {
    let mut united = Arguments::default();
    let path = |number: usize| format!("/etc/app{}/über-{number}.conf", number % 7);
    for number in 0..200 {
        let pattern = pattern(&format!("x '--of={}' -- <int>", path(number)));
        united.extend(arguments(&pattern, Exactness::Grants).unwrap());
    }
    let united = united.texts();
    united.iter().for_each(|text| assert_that_sudo_reads(text));
    assert!(united.len() <= 4, "{}", united.len());
    for common in ["--of=/etc/app", ".conf -- (0|[1-9]"] {
        let common = common.replace('.', "\\.");
        assert!(united.iter().all(|text| text.matches(&common).count() == 1), "{common} in {united:?}");
    }
    for number in 0..200 {
        assert!(allows(&united, &[&format!("--of={}", path(number)), "--", "7"]), "{number}");
        assert!(!allows(&united, &[&format!("--of={}", path(number)), "--"]), "{number}");
    }
    assert!(!allows(&united, &[&format!("--of={}", path(200)), "--", "7"]));
    assert!(!allows(&united, &["--of=/etc/app1/über-0.conf", "--", "7"]));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    /// A command line that an expression matches, divided at its blanks, is allowed by the pattern, except for the
    /// number of arguments, which no expression can count.
    #[test]
    fn nothing_passes_that_the_pattern_does_not_allow(
        (text, passed) in any_pattern(&[
            "a", "--o", "<unit>", "--p=<package>", "<package>=<version>", "<user>:<group>", "<path:/srv/*>", "<disk>",
            "<volume>", "dev <interface>", "<port>-<port>", "<cidr>", "<host>:<port>", "<size>-<size>", "<mode>", "<url>",
            "<image>", "<image>:<text>", "<text>,,<text>=<text>", "<secret>", "<version>-<int>",
        ])
        .prop_filter_map("has no expression", |text| Some((arguments(&pattern(&text), Exactness::Grants).ok()?.texts(), text)))
        .prop_flat_map(|(texts, text)| (Just(text), prop::sample::select(texts)))
        .prop_flat_map(|(text, passed)| {
            let inside = in_rust(&passed).trim_matches(['^', '$']).to_owned();
            let strings = if passed == "\"\"" { Just(None).boxed() } else { string_regex(&inside).unwrap().prop_map(Some).boxed() };
            (Just(text), strings)
        })
        .prop_filter("more arguments than any pattern takes", |(_, passed)| {
            passed.iter().flat_map(|passed| passed.split(' ')).count() <= MAX_ARGS
        }),
    ) {
        let args: Vec<String> = passed.iter().flat_map(|passed| passed.split(' ')).map(str::to_owned).collect();
        prop_assert!(pattern(&text).matches(&args).is_some(), "{} {:?}", text, args);
    }

    #[test]
    fn sudo_reads_every_expression(text in any_pattern(&[
        "'#'", "'$'", "'\\'", "'*+?'", "'{1}'", "<text>", "<url>", "<unit>", "<host>", "<text>:<text>", "<text>#<text>", "<text>$<text>",
    ])) {
        if let Ok(found) = arguments(&pattern(&text.replace("$<", "'$'<")), Exactness::Grants) {
            found.texts().iter().filter(|text| *text != "\"\"").for_each(|text| assert_that_sudo_reads(text));
        }
    }
}
