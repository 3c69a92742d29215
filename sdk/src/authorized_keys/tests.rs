use proptest::prelude::*;

use super::*;

const KEYS: &str = include_str!("data/keys.pub");
/// A file with every kind of line, and with keys that ssh-keygen of OpenSSH 9.2p1 made.
const FILE: &str = include_str!("data/authorized_keys");
const CERTIFICATE: &str = include_str!("data/certificate.pub");

fn key(number: usize) -> &'static str {
    KEYS.lines().nth(number).unwrap()
}

fn fingerprint(number: usize) -> String {
    Authorized::read(key(number)).unwrap().key.fingerprint()
}

/// The line number, the options and the comment of each key.
fn listed(file: &[u8]) -> Vec<(usize, String, String)> {
    let lines = lines(file);
    keys(&lines).map(|(number, key)| (number, key.options.join(" | "), key.comment.clone())).collect()
}

#[test]
fn a_file_is_read_as_sshd_reads_it() {
    let expected = [
        (3, "", "ada@example.org ed25519"),
        (
            5,
            "no-pty | from=\"10.0.0.0/8,!10.1.0.0/16\" | command=\"echo \\\"a, b\\\" # c\"",
            "ada@example.org rsa-4096",
        ),
        (7, "restrict", ""),
        (8, "cert-authority | principals=\"ada,root\"", "the authority"),
        (10, "", "ada@example.org sk-ed25519"),
        (11, "environment=\"TOKEN=a b\" | no-X11-forwarding", "ada@example.org sk-ecdsa"),
        // This line is from known_hosts. sshd reads an option that it doesn't know, and ignores the line.
        (13, "|1|F1E1KeoE/eEWhi10WpGv4OdiO6Y=|3988QV0VE8wmZL7suNrYQLITLCg=", ""),
        (15, "", "ada@example.org dsa"),
        (17, "", "ada@example.org ecdsa-256"),
    ];
    let expected: Vec<_> = expected
        .iter()
        .map(|(line, options, comment)| (*line, options.to_string(), comment.to_string()))
        .collect();
    assert_eq!(listed(FILE.as_bytes()), expected);
    let junk = lines(FILE.as_bytes())
        .iter()
        .filter(|line| line.entry == Entry::Junk)
        .map(|line| line.number)
        .collect::<Vec<_>>();
    // These lines have a key of SSH 1, no key, an open quote, and a cut key.
    assert_eq!(junk, [9, 12, 14, 16]);
}

#[test]
fn a_line_in_the_way_of_windows_is_a_key_too() {
    let file = format!("# c\r\n{}\r\n{}", key(0), key(4));
    assert_eq!(listed(file.as_bytes()).iter().map(|(line, ..)| *line).collect::<Vec<_>>(), [2, 3]);
    assert_eq!(listed(file.as_bytes())[0].2, "ada@example.org ed25519");
    let more = with(file.as_bytes(), key(5));
    assert_eq!(String::from_utf8(more).unwrap(), format!("{file}\r\n{}\r\n", key(5)));
}

#[test]
fn a_line_that_has_no_end_gets_one_before_another_follows() {
    for (file, expected) in
        [("", "new\n"), ("# a", "# a\nnew\n"), ("# a\n", "# a\nnew\n"), ("\n\n", "\n\nnew\n")]
    {
        assert_eq!(with(file.as_bytes(), "new"), expected.as_bytes());
    }
}

#[test]
fn huge_lines_and_bytes_of_any_kind_stay_as_they_are() {
    let mut others = vec![b'x'; 300_000];
    others.extend_from_slice(b"\n\xff\xfe\0\n\r\r\n");
    let file = [&others, key(0).as_bytes(), b" M\xfcller\n"].concat();
    assert!(without(&file, &fingerprint(0)) == others);
    assert!(without(&file, &fingerprint(1)) == file);
}

#[test]
fn all_lines_of_a_key_go_whatever_its_options_and_comment() {
    let file = format!("{}\n# x\nno-pty {}\n{}\n", key(0), key(0), key(1));
    assert_eq!(without(file.as_bytes(), &fingerprint(0)), format!("# x\n{}\n", key(1)).as_bytes());
}

#[test]
fn a_key_that_sshd_would_find_goes_however_it_is_written() {
    let rsa = key(1).replacen("ssh-rsa", "rsa-sha2-512", 1);
    let cut = format!("{}\0 more", key(1).rsplit_once(' ').unwrap().0);
    let file = format!("{rsa}\nno-pty {rsa}\n{cut}\n{}\n", key(0));
    assert_eq!(without(file.as_bytes(), &fingerprint(1)), format!("{}\n", key(0)).as_bytes());
}

#[test]
fn what_is_no_login_key_opens_nothing() {
    for (line, opens) in [
        (key(0).to_owned(), true),
        (format!("restrict {}", key(0)), true),
        (format!("cert-authority {}", key(0)), false),
        (format!("Cert-Authority,principals=\"a\" {}", key(0)), false),
        (CERTIFICATE.to_owned(), false),
        (key(7).to_owned(), false),
        (format!("no-such-option {}", key(0)), false),
        (format!("|1|a=|b= {}", key(0)), false),
        (format!("NO-PTY,Command=\"id\" {}", key(0)), true),
    ] {
        assert_eq!(Authorized::read(&line).unwrap().opens(), opens, "{line}");
    }
}

#[test]
fn a_backslash_counts_before_a_quote_only() {
    // sshd reads two backslashes and a quote as a backslash and an escaped quote.
    for (options, count) in [(r#"a="\\" b""#, 1), (r#"a="\"",b"#, 2), (r#"a="x\",b""#, 1)] {
        assert_eq!(split(options).len(), count, "{options}");
    }
    assert_eq!(end_of_options(r#"command="a \" b" ssh"#), Some(16));
    assert_eq!(end_of_options("command=\"a b"), None);
}

/// Lines of any bytes, some of them with keys.
fn some_line() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        (0usize..10).prop_map(|number| key(number).as_bytes().to_vec()),
        (0usize..10).prop_map(|number| format!("\tno-pty,from=\"a, b\" {}  x", key(number)).into_bytes()),
        proptest::collection::vec(any::<u8>().prop_filter("a line", |byte| *byte != b'\n'), 0..40),
        "#.{0,20}".prop_map(String::into_bytes),
        Just(Vec::new()),
    ]
}

fn some_file() -> impl Strategy<Value = Vec<u8>> {
    let ends = prop_oneof![Just("\n"), Just("\r\n")];
    (proptest::collection::vec((some_line(), ends), 0..12), any::<bool>()).prop_map(|(lines, is_ended)| {
        let count = lines.len();
        let mut file = Vec::new();
        for (number, (line, end)) in lines.into_iter().enumerate() {
            file.extend(line);
            if is_ended || number + 1 < count {
                file.extend_from_slice(end.as_bytes());
            }
        }
        file
    })
}

proptest! {
    #[test]
    fn adding_and_removing_keep_every_other_line_byte_for_byte(file in some_file(), number in 0usize..10) {
        let lines = lines(&file);
        let all: Vec<u8> = lines.iter().flat_map(|line| line.bytes).copied().collect();
        prop_assert_eq!(&all, &file);

        let more = with(&file, key(number));
        prop_assert!(more.starts_with(&file));
        prop_assert!(String::from_utf8_lossy(&more[file.len()..]).trim() == key(number));
        prop_assert!(listed(&more).len() == listed(&file).len() + 1);

        let less = without(&file, &fingerprint(number));
        let fingerprint = fingerprint(number);
        let is_gone = |line: &&Line<'_>| {
            matches!(&line.entry, Entry::Key(found) if found.key.fingerprint() == fingerprint)
        };
        let others: Vec<u8> = lines.iter().filter(|line| !is_gone(line)).flat_map(|line| line.bytes).copied().collect();
        prop_assert_eq!(less, others);
    }
}
