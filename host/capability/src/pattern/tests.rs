use proptest::prelude::*;

use super::*;
use crate::hole::MAX_VALUE;

#[track_caller]
fn pattern(text: &str) -> Pattern {
    Pattern::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn args(args: &[&str]) -> Vec<String> {
    args.iter().map(|arg| (*arg).to_owned()).collect()
}

#[track_caller]
fn holes(text: &str, argv: &[&str]) -> Vec<String> {
    let found = pattern(text).matches(&args(argv)).unwrap_or_else(|| panic!("{text} must match {argv:?}"));
    found.holes.iter().map(|(hole, value)| format!("{hole} {value}")).collect()
}

#[test]
fn a_pattern_matches_its_command_lines_and_no_others() {
    /// Pattern, argvs that match, argvs that don't; blanks separate arguments.
    type Row = (&'static str, &'static [&'static str], &'static [&'static str]);
    let rows: &[Row] = &[
        (
            "apt-get install --yes -- <package>...",
            &["install --yes -- nginx", "install --yes -- nginx curl g++"],
            &[
                "",
                "install",
                "install --yes --",
                "install --yes nginx",
                "install --yes -- nginx-",
                "install --yes -- nginx+",
                "install --yes -- nginx=1.0",
                "install --yes -- ./x.deb",
                "install --yes -- -o",
                "remove --yes -- nginx",
                "install --yes -- nginx --purge",
                "--yes install -- nginx",
                "install --yes --yes -- nginx",
            ],
        ),
        (
            "apt-get install --yes --allow-downgrades -- <package>=<version>",
            &[
                "install --yes --allow-downgrades -- nginx=1.0-1",
                "install --yes --allow-downgrades -- g++=4:12.2.0-3",
            ],
            &[
                "install --yes --allow-downgrades -- nginx",
                "install --yes --allow-downgrades -- nginx=",
                "install --yes --allow-downgrades -- =1",
                "install --yes --allow-downgrades -- nginx=1=2",
                "install --yes --allow-downgrades -- nginx=1.0-",
                "install --yes --allow-downgrades -- nginx=-1",
            ],
        ),
        (
            "apt-get install --yes -- '?exact-name('<package>')'...",
            &["install --yes -- ?exact-name(nginx) ?exact-name(g++)"],
            &[
                "install --yes -- nginx",
                "install --yes -- ?exact-name(nginx)-",
                "install --yes -- ?exact-name(a)|?name(b)",
            ],
        ),
        (
            "systemctl (start|stop|restart) -- <unit>",
            &["start -- nginx", "stop -- nginx.service", "restart -- getty@tty1"],
            &[
                "start",
                "start --",
                "start nginx",
                "start -- nginx sshd",
                "start stop -- nginx",
                "reload -- nginx",
                "-- nginx",
                "start -- -Hhost",
                "start -- --no-block",
                "start -- ../x",
                "start -- nginx*",
                "-Hhost start -- nginx",
                "starts -- nginx",
            ],
        ),
        (
            "journalctl --output=json [--unit=<unit>]... [--since=<time>] --lines=<int>",
            &[
                "--output=json --lines=10",
                "--output=json --unit=a --lines=10",
                "--output=json --unit=a --unit=b --since=now --lines=10",
                "--output=json --since=2026-01-31 --lines=10",
            ],
            &[
                "--lines=10",
                "--output=json",
                "--output=json --lines=x",
                "--output=json --unit= --lines=10",
                "--output=json --unit=-a --lines=10",
                "--output=json --unit a --lines=10",
                "--output=json --since=now --unit=a --lines=10",
                "--output=json --since=now --since=now --lines=10",
                "--output=json --lines=10 --file=/etc/shadow",
                "--output=json --unit=nginx --file=/etc/shadow --lines=10",
                "--output=json-pretty --lines=10",
            ],
        ),
        (
            "rsync --archive --hard-links [--exclude=<text>]... -- <path:/**>... <path:/mnt/**>",
            &[
                "--archive --hard-links -- /etc /mnt/a",
                "--archive --hard-links --exclude=*.tmp --exclude=x -- /etc /srv/ /mnt/a",
                "--archive --hard-links -- /mnt/a /mnt/b",
            ],
            &[
                "--archive --hard-links -- /mnt/a",
                "--archive --hard-links -- /etc /srv",
                "--archive --hard-links -- /etc /mnt",
                "--archive --hard-links -- /etc/shadow /mnt/a",
                "--archive --hard-links -- host:/etc /mnt/a",
                "--archive --hard-links --rsh=sh -- /etc /mnt/a",
                "--archive --hard-links -- /etc /mnt/../etc",
            ],
        ),
        (
            "crontab -u <user> - < stdin",
            &["-u root -"],
            &["-u root", "-u root - -", "-u -l -", "-u 0 -", "-"],
        ),
        (
            "visudo -cf <path:/etc/sudoers.d/*>",
            &["-cf /etc/sudoers.d/x"],
            &[
                "-cf /etc/sudoers",
                "-cf /etc/sudoers.d/a/b",
                "-cf /etc/sudoers.d/../shadow",
                "-c -f /etc/sudoers.d/x",
            ],
        ),
        (
            "chown -- <user>:<group> <path:/srv/**>",
            &["-- www-data:www-data /srv/a"],
            &[
                "-- www-data /srv/a",
                "-- root: /srv/a",
                "-- :root /srv/a",
                "-- a:b:c /srv/a",
                "-- a:b /etc/a",
                "-- 0:0 /srv/a",
            ],
        ),
        (
            "x [a [b [c]]] (d|e f...|[g] h)... i",
            &["d i", "a d i", "a b d i", "a b c e f f f d h g h i", "h i", "e f i"],
            &["i", "b d i", "a c d i", "e i", "g i", "d", "d i i", "f i", "d j i"],
        ),
        ("x (a b)... c", &["a b c", "a b a b c"], &["c", "a c", "a b a c", "b a c", "a a b b c"]),
        ("x ([a] [b])... c", &["c", "a c", "b c", "b a b b a a c"], &["", "a", "d c"]),
        ("uptime", &[""], &["-s", "a", "a b"]),
        ("x [a]... [a] a", &["a", "a a", "a a a a"], &["", "b", "a b"]),
        ("x -- <text>", &["-- a", "-- ;id", "-- $(id)"], &["--", "-- -a", "-- a b", "a"]),
    ];
    for (text, matching, refused) in rows {
        let pattern = pattern(text);
        let split =
            |line: &str| line.split(' ').filter(|arg| !arg.is_empty()).map(str::to_owned).collect::<Vec<_>>();
        for line in *matching {
            assert!(pattern.matches(&split(line)).is_some(), "{text} must match {line}");
        }
        for line in *refused {
            assert!(pattern.matches(&split(line)).is_none(), "{text} must refuse {line}");
        }
    }
}

#[test]
fn an_argument_is_never_split_or_joined() {
    let restart = pattern("systemctl restart -- <unit>");
    assert!(restart.matches(&args(&["restart -- nginx"])).is_none());
    assert!(restart.matches(&args(&["restart", "-- nginx"])).is_none());
    assert!(restart.matches(&args(&["restart", "--", "nginx", ""])).is_none());
    assert!(restart.matches(&args(&["restart", "", "--", "nginx"])).is_none());
    assert!(pattern("x 'a b' ''").matches(&args(&["a b", ""])).is_some());
    assert!(pattern("x 'a b' ''").matches(&args(&["a", "b", ""])).is_none());
    assert!(pattern("x 'a b' ''").matches(&args(&["a b"])).is_none());
    assert!(pattern("x ''").matches(&args(&["a"])).is_none());
}

#[test]
fn a_match_reports_every_value_in_order() {
    assert_eq!(
        holes(
            "x [--u=<unit>]... [-t <time>] -- <user>:<group> <path:/srv/**>...",
            &["--u=a", "--u=b", "-t", "now", "--", "c:d", "/srv/e", "/srv/f"]
        ),
        ["unit a", "unit b", "time now", "user c", "group d", "path:/srv/** /srv/e", "path:/srv/** /srv/f"]
    );
    assert_eq!(holes("x a b", &["a", "b"]), [""; 0]);
}

#[test]
fn where_two_readings_are_possible_the_earlier_hole_takes_more() {
    let text = "x -- <path:/**>... [<path:/mnt/**>]";
    assert_eq!(holes(text, &["--", "/mnt/a", "/mnt/b"]), ["path:/** /mnt/a", "path:/** /mnt/b"]);
    assert_eq!(holes("x [<int>] [<text>]", &["1"]), ["int 1"]);
    assert_eq!(holes("x [<int>] [<text>]", &["a"]), ["text a"]);
    assert_eq!(holes("x (<text>|<int>)", &["1"]), ["text 1"]);
}

#[test]
fn the_paths_of_a_match_come_with_their_globs() {
    let found = pattern("x <path> <text> <path:/srv/**>").matches(&args(&["/a", "/b", "/srv/c"])).unwrap();
    let paths: Vec<_> = found.paths().map(|(hole, path)| (hole.to_string(), path.as_str())).collect();
    assert_eq!(paths, [("path".to_owned(), "/a"), ("path:/srv/**".to_owned(), "/srv/c")]);
}

#[test]
fn a_token_with_several_holes_is_divided_in_one_way_only() {
    for (text, arg, expected) in [
        ("x <user>:<group>", "a:b", true),
        ("x <text>:<text>", "a:b", true),
        ("x <text>:<text>", "a:b:c", false),
        ("x <path>:<path>", "/a:/b", true),
        ("x <path>:<path>", "/a:/b:/etc", false),
        ("x <text>=<text>", "a=b=c", false),
        ("x <text>=<text>", "a=", false),
        ("x <text>=<text>", "=a", false),
        ("x <text>..<text>", "a..b", true),
        ("x <text>..<text>", "a.b", false),
        ("x <text>'...'<text>", "a....b", false),
        ("x <text>=<text>:<text>", "a=b:c", true),
        ("x <text>=<text>:<text>", "a:b=c:d", false),
        ("x '['<address>']':<port>", "[::1]:80", true),
        ("x '['<address>']':<port>", "[::1]:80:90", false),
        ("x <address>:<port>", "::1:80", false),
        ("x <address>:<port>", "1.2.3.4:80", true),
        ("x <port>-<port>/<protocol>", "80-90/tcp", true),
        ("x <port>-<port>/<protocol>", "80-90-99/tcp", false),
        ("x a<text>a", "a", false),
        ("x a<text>a", "aa", false),
        ("x a<text>a", "aaa", true),
        ("x <unit>.service", "a.service", true),
        ("x <unit>.service", ".service", false),
    ] {
        assert_eq!(pattern(text).matches(&args(&[arg])).is_some(), expected, "{text} {arg}");
    }
}

#[test]
fn no_multibyte_character_is_cut() {
    assert_eq!(holes("x 'ä'<text>'ü'<text>", &["ääüö"]), ["text ä", "text ö"]);
    assert!(pattern("x 'ä'<text>").matches(&args(&["ö"])).is_none());
}

#[test]
fn a_whole_command_is_held_against_program_environment_and_input() {
    let install = pattern("DEBIAN_FRONTEND=noninteractive apt-get install --yes -- <package>");
    let argv = args(&["install", "--yes", "--", "nginx"]);
    let env = vec![("DEBIAN_FRONTEND".to_owned(), "noninteractive".to_owned())];
    let other = vec![("DEBIAN_FRONTEND".to_owned(), "readline".to_owned())];
    let more = [env.clone(), vec![("APT_CONFIG".to_owned(), "/tmp/x".to_owned())]].concat();
    assert!(install.allows("apt-get", &argv, &env, false).is_some());
    assert!(install.allows("apt-get", &argv, &env, true).is_none());
    assert!(install.allows("apt-get", &argv, &[], false).is_none());
    assert!(install.allows("apt-get", &argv, &other, false).is_none());
    assert!(install.allows("apt-get", &argv, &more, false).is_none());
    assert!(install.allows("apt-get", &argv, &[env.clone(), env.clone()].concat(), false).is_none());
    for program in ["apt", "/usr/bin/apt-get", "./apt-get", "apt-get ", "APT-GET", ""] {
        assert!(install.allows(program, &argv, &env, false).is_none(), "{program}");
    }
    let crontab = pattern("crontab -u <user> - < stdin");
    let argv = args(&["-u", "root", "-"]);
    assert!(crontab.allows("crontab", &argv, &[], true).is_some());
    assert!(crontab.allows("crontab", &argv, &[], false).is_some());
}

#[test]
fn the_parts_of_a_pattern_are_told_apart() {
    let parsed = pattern("A=1 B_2='x y' C= /usr/sbin/nft -f -   <  stdin ");
    let variables = [("A", "1"), ("B_2", "x y"), ("C", "")];
    assert_eq!(parsed.variables(), variables.map(|(name, value)| (name.to_owned(), value.to_owned())));
    assert_eq!(parsed.program(), "/usr/sbin/nft");
    assert!(parsed.stdin());
    assert_eq!(parsed.items().len(), 2);
    assert!(!pattern("x '<' stdin").stdin());
    assert_eq!(parsed.to_string(), parsed.text());
    let variable_behind = pattern("env A=1");
    assert!(variable_behind.variables().is_empty());
    assert!(variable_behind.matches(&args(&["A=1"])).is_some());
    let quoted = pattern("x --a'b c'd=<int>");
    let Item::Token(token) = &quoted.items()[0] else { panic!() };
    assert_eq!(token.parts(), [Part::Literal("--ab cd=".into()), Part::Hole(HoleType::Int)]);
    assert_eq!(token.column(), 3);
}

#[test]
fn what_is_no_pattern_is_refused_at_its_column() {
    for (text, column, message) in [
        ("", 1, "expected a program"),
        ("   ", 4, "expected a program"),
        ("A=1", 4, "expected a program"),
        ("<unit>", 1, "expected a program"),
        ("[x]", 1, "expected a program"),
        ("(a|b)", 1, "expected a program"),
        ("-x", 1, "expected a program"),
        ("./x", 1, "expected a program"),
        ("..", 1, "expected a program"),
        ("bin/x", 1, "expected a program"),
        ("/usr//bin/x", 1, "expected a program"),
        ("/usr/../bin/x", 1, "expected a program"),
        ("/usr/bin/", 1, "expected a program"),
        ("/", 1, "expected a program"),
        ("x<int>", 1, "expected a program"),
        ("x...", 1, "expected a program"),
        ("'a b'", 1, "expected a program"),
        ("< stdin", 1, "expected a program"),
        ("A=<int> x", 3, "expected the one value that `A` has"),
        ("A=b... x", 3, "expected the one value that `A` has"),
        ("A=1 A=2 x", 5, "expected `A` once"),
        ("LD_PRELOAD=/x y", 1, "expected no `LD_PRELOAD`"),
        ("A=1 PATH=/x y", 5, "expected no `PATH`"),
        ("x <nothing>", 3, "expected a hole's type (one of unit, package"),
        ("x <name>", 3, "`text` takes any words"),
        ("x <unit:a>", 3, "only `path` takes a glob"),
        ("x <path:a>", 3, "expected an absolute path"),
        ("x <path:/a/../b>", 3, "expected a path without"),
        ("x <path:/a**>", 3, "expected `**` to be a whole component"),
        ("x <unit", 3, "expected a closing `>`"),
        ("x <", 3, "expected a hole as in"),
        ("x <>", 3, "expected a hole as in"),
        ("x < stdout", 3, "expected a hole as in"),
        ("x < stdin y", 3, "expected a hole as in"),
        ("x [< stdin]", 4, "expected a hole as in"),
        ("x <stdin>", 3, "expected a hole's type"),
        ("x a>b", 4, "expected `>` in single quotes"),
        ("x 'a", 3, "expected a closing `'`"),
        ("x a\"b\"", 4, "in single quotes"),
        ("x *.log", 3, "in single quotes"),
        ("x a;b", 4, "in single quotes"),
        ("x $(id)", 3, "in single quotes"),
        ("x a\\b", 4, "in single quotes"),
        ("x `id`", 3, "in single quotes"),
        ("x ä", 3, "in single quotes"),
        ("x a\nb", 4, "expected visible text, found \\u{a}"),
        ("x 'a\u{202e}b'", 5, "expected visible text, found \\u{202e}"),
        ("x\ty", 2, "expected visible text"),
        ("x []", 4, "expected at least one token"),
        ("x [ ]", 5, "expected at least one token"),
        ("x ()", 4, "expected at least one token"),
        ("x (a|)", 6, "expected at least one token"),
        ("x (|a)", 4, "expected at least one token"),
        ("x [a", 5, "expected a closing `]`"),
        ("x (a|b", 7, "expected a closing `)`"),
        ("x (a", 5, "expected a closing `)`"),
        ("x [", 4, "expected a closing `]`"),
        ("x a]", 4, "expected no `]` here"),
        ("x a)", 4, "expected no `)` here"),
        ("x a|b", 4, "expected no `|` here"),
        ("x [a|b]", 5, "expected no `|` here"),
        ("x [a)", 5, "expected no `)` here"),
        ("x (a]", 5, "expected no `]` here"),
        ("x a[b]", 4, "expected a blank"),
        ("x a(b|c)", 4, "expected a blank"),
        ("x [a]b", 6, "expected a blank"),
        ("x (a|b)c", 8, "expected a blank"),
        ("x [a][b]", 6, "expected a blank"),
        ("x a...b", 7, "expected a blank"),
        ("x a....", 7, "expected a blank"),
        ("x a......", 7, "expected a blank"),
        ("x ...", 3, "right before `...`"),
        ("x a ...", 5, "right before `...`"),
        ("x <int><int>", 8, "between two holes"),
        ("x <int>''<int>", 10, "between two holes"),
        ("x <int>a<int>a<int>a<int>a<int>", 27, "at most 4 holes"),
        ("x -- a<arg>", 6, "`<arg>` to be a token by itself"),
        ("x [[[[[[[[[a]]]]]]]]]", 11, "at most 8 groups"),
    ] {
        let error = Pattern::parse(text).expect_err(text);
        assert!(error.to_string().contains(message), "{text:?}: {error}");
        assert_eq!(error.column, column, "{text:?}: {error}");
        assert!(error.to_string().starts_with(&format!("column {column}: ")), "{error}");
    }
}

#[test]
fn any_argument_is_accepted_only_where_options_are_over() {
    for text in [
        "x -- <arg>...",
        "x run <text> <arg>...",
        "x run --user=<user> <text> <arg>...",
        "x run --tty -- <text> <arg>...",
        "x [--a] -- [<arg>]",
        "x (-- |-- a) <arg>",
        "x name=<text> <arg>",
        "x <text> [<arg>]...",
        "x <text> (<arg> <arg>)...",
    ] {
        pattern(text);
    }
    for (text, column) in [
        ("x <arg>", 3),
        ("x <arg>...", 3),
        ("x run <arg>", 7),
        ("x [--] <arg>", 8),
        ("x [<text>] <arg>", 12),
        ("x (--|a) <arg>", 10),
        ("x (<text> b|-c) <arg>", 17),
        ("x -u <user> <arg>", 13),
        ("x --user <user> <arg>", 17),
        ("x [-u] <user> <arg>", 15),
        ("x <size> <arg>", 10),
        ("x --a=<text> <arg>", 14),
        ("x ([<arg>] <text>)...", 5),
        ("x - <arg>", 5),
        ("x -<text> <arg>", 11),
    ] {
        let error = Pattern::parse(text).expect_err(text);
        assert_eq!((error.column, error.kind), (column, PatternErrorKind::ArgBeforeOperand), "{text}");
    }
}

#[test]
fn a_pattern_is_bounded() {
    assert_eq!(
        Pattern::parse(&format!("x {}", "a".repeat(MAX_PATTERN))).unwrap_err().kind,
        PatternErrorKind::TooLong
    );
    pattern(&format!("x {}", "a ".repeat(1000)));
    assert_eq!(
        Pattern::parse(&format!("x {}", "a ".repeat(1024))).unwrap_err().kind,
        PatternErrorKind::TooManyStates
    );
    pattern("x [[[[[[[[a]]]]]]]]");
    pattern("x a<int>a<int>a<int>a<int>a");
}

#[test]
fn an_argv_is_bounded() {
    let any = pattern("x -- <arg>...");
    let with = |count: usize| [args(&["--"]), vec!["a".to_owned(); count]].concat();
    assert!(any.matches(&with(MAX_ARGS - 1)).is_some());
    assert!(any.matches(&with(MAX_ARGS)).is_none());
    assert!(any.matches(&args(&["--", &"a".repeat(MAX_VALUE + 1)])).is_none());
}

#[test]
fn a_secret_is_not_shown() {
    let found = pattern("x <secret> <text>").matches(&args(&["hunter2", "b"])).unwrap();
    let shown = format!("{found:?}");
    assert!(!shown.contains("hunter2") && shown.contains("<text> \\\"b\\\""), "{shown}");
}

#[test]
fn a_hostile_argv_takes_no_time() {
    let nested = pattern("x ([[[[a]... [a]...]... ([a] [a])...]...]... [a])... b");
    let dense = pattern(&format!("x ({}b)...", "[a] ".repeat(400)));
    let text = pattern("x <text>aa<text>aa<text>aa<text>");
    let long = "a".repeat(1 << 20);
    let started = std::time::Instant::now();
    assert!(nested.matches(&vec!["a".to_owned(); MAX_ARGS]).is_none());
    assert!(dense.matches(&vec!["a".to_owned(); 1000]).is_none());
    assert!(text.matches(std::slice::from_ref(&long)).is_none());
    assert!(pattern("x <path:/**>").matches(&[format!("/{long}")]).is_none());
    assert!(started.elapsed().as_secs() < 5, "{:?}", started.elapsed());
}

/// The plainest way to match: it tries every way to read the arguments, one after the other.
fn reads(items: &[Item], argv: &[String], rest: &mut dyn FnMut(&[String]) -> bool) -> bool {
    let Some((first, items)) = items.split_first() else { return rest(argv) };
    let mut rest = |argv: &[String]| reads(items, argv, rest);
    reads_item(first, argv, &mut rest)
}

fn reads_item(item: &Item, argv: &[String], rest: &mut dyn FnMut(&[String]) -> bool) -> bool {
    match item {
        Item::Token(token) => argv.split_first().is_some_and(|(arg, argv)| token.matches(arg) && rest(argv)),
        Item::Optional(items) => reads(items, argv, rest) || rest(argv),
        Item::Alternatives(ways) => ways.iter().any(|way| reads(way, argv, rest)),
        Item::Repeat(item) => {
            let before = argv.len();
            reads_item(item, argv, &mut |argv: &[String]| {
                rest(argv) || (argv.len() < before && reads_item(&Item::Repeat(item.clone()), argv, rest))
            })
        }
    }
}

fn any_item() -> impl Strategy<Value = String> {
    sample::any_item(&["a", "b", "--", "<int>", "<unit>", "a=<int>", "<user>:<group>"])
}

fn any_argv() -> impl Strategy<Value = Vec<String>> {
    let arg = prop::sample::select(vec!["a", "b", "--", "1", "a=1", "a:b", "c", "-a", "", "a=", "-1"]);
    prop::collection::vec(arg.prop_map(str::to_owned), 0..6)
}

/// Generates text that looks like a pattern, so that the parser gets beyond its first character.
const ALMOST: &str = r"x [ab<>\[\]()|'. =:/*\-]{0,40}(<(unit|path:/a/\*\*|arg|size)>|\.\.\.|< stdin| ){0,6}";

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn parsing_never_panics(text in any::<String>(), almost in ALMOST) {
        for text in [text, almost] {
            match Pattern::parse(&text) {
                Ok(pattern) => prop_assert_eq!(pattern.text(), text),
                Err(error) => prop_assert!(error.column >= 1 && error.column <= text.chars().count() + 1),
            }
        }
    }

    #[test]
    fn a_match_is_total(items in prop::collection::vec(any_item(), 0..4), argv in any_argv()) {
        let pattern = Pattern::parse(&format!("x {}", items.join(" "))).unwrap();
        let expected = reads(pattern.items(), &argv, &mut |rest: &[String]| rest.is_empty());
        let found = pattern.matches(&argv);
        prop_assert_eq!(found.is_some(), expected, "{} {:?}", pattern, argv);
        for (hole, value) in found.iter().flat_map(|found| &found.holes) {
            prop_assert!(hole.accepts(value));
            prop_assert!(argv.iter().any(|arg| arg.contains(value.as_str())));
        }
    }

    #[test]
    fn values_and_literals_make_up_the_argument(arg in "[a-c:=]{1,12}") {
        let pattern = pattern("x <text>=<text>:<text>");
        if let Some(found) = pattern.matches(std::slice::from_ref(&arg)) {
            let [(_, a), (_, b), (_, c)] = &found.holes[..] else { panic!() };
            prop_assert_eq!(format!("{a}={b}:{c}"), arg);
        }
    }

    #[test]
    fn a_hole_never_matches_a_leading_dash(tail in any::<String>(), plain in "[a-z0-9/.]{0,12}") {
        for hole in [
            "unit", "package", "version", "user", "group", "path", "path:/**", "disk", "volume", "interface", "int", "port",
            "protocol", "address", "cidr", "host", "time", "mode", "url", "image", "text", "secret",
        ] {
            for tail in [&tail, &plain] {
                let value = format!("-{tail}");
                prop_assert!(!HoleType::parse(hole).unwrap().accepts(&value));
                let (operand, option) = (pattern(&format!("x <{hole}>")), pattern(&format!("x --o=<{hole}>")));
                prop_assert!(option.matches(&[["--o=", value.as_str()].concat()]).is_none());
                prop_assert!(operand.matches(&[value]).is_none());
            }
        }
    }

    #[test]
    fn a_size_with_a_dash_is_a_number(tail in any::<String>(), almost in "[-+0-9.KMGiB%]{0,6}") {
        for tail in [tail, almost] {
            if HoleType::Size.accepts(&format!("-{tail}")) {
                prop_assert!(tail.starts_with(|c: char| c.is_ascii_digit()));
            }
        }
    }

    #[test]
    fn no_value_holds_what_cannot_be_seen(before in "[a-z/]{1,4}", hidden in any::<char>(), after in "[a-z]{0,4}") {
        if host_text::characters::is_hidden(hidden) {
            let value = format!("{before}{hidden}{after}");
            for hole in ["text", "secret", "path", "unit", "url", "time", "host"] {
                prop_assert!(!HoleType::parse(hole).unwrap().accepts(&value));
            }
        }
    }

    #[test]
    fn another_program_never_passes(program in "[a-z./ -]{0,12}", argv in any_argv()) {
        let pattern = pattern("x -- <arg>...");
        if program != "x" {
            prop_assert!(pattern.allows(&program, &argv, &[], false).is_none());
        }
    }
}
