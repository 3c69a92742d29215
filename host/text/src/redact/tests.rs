mod generated;
mod lookalikes;
mod secrets;

use proptest::prelude::*;
use serde_json::json;

use super::*;

const KEY: &str = "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAABG5vbmU\nAAAAEbm9uZQAAAAAA\n-----END OPENSSH PRIVATE KEY-----\n";

fn redacted(mut value: serde_json::Value) -> serde_json::Value {
    redact_value(&mut value);
    value
}

#[test]
fn every_pattern_can_be_read() {
    assert!(HINTS.is_some());
    assert!(forms::ALL.iter().all(|form| form.find("").is_some()));
    assert!(commands::ALL.iter().all(|command| command.find("").is_some()));
    assert!(command_bit(commands::ALL.len() - 1) > 0);
    assert!(block::find("", false).is_some() && names::find("").is_some());
    assert!(guessed::find("Ab1Ab1Ab1Ab1").is_some());
}

/// The parts of a text that are read side by side overlap by the longest word.
#[test]
fn a_hint_is_seen_wherever_it_stands() {
    let hints = HINTS.as_ref().unwrap();
    let longest = "password is generated";
    assert_eq!(hints.rest, longest.len() - 1);
    for length in [0, 1, 60, 100, 101, 102, 103, 200] {
        for at in 0..=length {
            for hint in ["pw", "PassWord", longest] {
                let text = format!("{}{hint}{}", " ".repeat(at), " ".repeat(length - at));
                assert_ne!(hints.seen(&text) & NAMES, 0, "{hint} at {at} of {length}");
            }
        }
        assert_eq!(hints.seen(&" ".repeat(length)), 0);
    }
}

#[test]
fn text_without_a_hint_is_not_copied() {
    for text in ["", "load average: 0.00, 0.01, 0.05\n", "ümläut 日本語\n+++ b/x\n"] {
        assert!(matches!(redact(text), Cow::Borrowed(kept) if kept.as_ptr() == text.as_ptr()), "{text}");
    }
}

#[test]
fn a_key_block_goes_whole_in_files_diffs_and_json() {
    let diff = |prefix: &str| KEY.lines().map(|line| format!("{prefix}{line}\n")).collect::<String>();
    for (text, shown) in [
        (format!("a\n{KEY}b\n"), "a\n[redacted private key]\nb\n".to_owned()),
        (diff("+"), "+[redacted private key]\n".to_owned()),
        (diff("-"), "-[redacted private key]\n".to_owned()),
        (diff(" "), " [redacted private key]\n".to_owned()),
        (KEY.replace('\n', "\\n"), "[redacted private key]\\n".to_owned()),
        (KEY.replace('\n', "\\\\n"), "[redacted private key]\\\\n".to_owned()),
        (KEY.replace('\n', "\r\n"), "[redacted private key]\r\n".to_owned()),
        // A block without an end goes on to the end of the text.
        (KEY[..60].to_owned(), "[redacted private key]".to_owned()),
        (format!("{KEY}{KEY}"), "[redacted private key]\n[redacted private key]\n".to_owned()),
        // This block has no beginning.
        (format!("x\n{}", &KEY[36..]), "x\n[redacted private key]\n".to_owned()),
        (format!("x\n{}", diff("+")[37..].to_owned()), "x\n+[redacted private key]\n".to_owned()),
    ] {
        assert_eq!(redact(&text), shown, "{text}");
    }
    for label in [
        "PRIVATE KEY",
        "RSA PRIVATE KEY",
        "EC PRIVATE KEY",
        "DSA PRIVATE KEY",
        "ENCRYPTED PRIVATE KEY",
        "PGP PRIVATE KEY BLOCK",
    ] {
        let text =
            format!("-----BEGIN {label}-----\nProc-Type: 4,ENCRYPTED\n\nMIIEvQ\n-----END {label}-----");
        assert_eq!(redact(&text), REDACTED_KEY, "{label}");
    }
}

#[test]
fn lines_stay_where_they_were_if_they_are_asked_for() {
    let text = format!("a\n{KEY}password = x y\nb\n");
    let shown = redact_lines(&text);
    assert_eq!(shown.lines().count(), text.lines().count());
    assert_eq!(shown.lines().filter(|line| *line == REDACTED_KEY).count(), 4);
    assert!(shown.ends_with("password = [redacted]\nb\n"), "{shown}");
    let cut = &text[..60];
    assert_eq!(redact_lines(cut).lines().count(), cut.lines().count());
}

#[test]
fn a_secret_is_hidden_wherever_its_name_and_its_look_give_it_away() {
    let generated = ["Zq9k103dW3xYp7L", "hT6+vB2.nQ8sXw==", "x4R!m9Kp2Lz&"];
    let encoded =
        ["9f86d081884c7d659a2feaa0c55ad015", "9F86D081884C7D659A2FEAA0C55AD015", "GEZDGNBVGY3TQOJQ"];
    let members: Vec<String> =
        generated::MEMBERS.iter().map(|name| format!(r#"{{"{name}":"{{}}"}}"#)).collect();
    let members: Vec<&str> = members.iter().map(String::as_str).collect();
    let rows = [
        (&members[..], &generated[..]),
        (generated::GENERATED, &generated[..]),
        (generated::ENCODED, &encoded[..]),
        (generated::ENCODED, &generated[..]),
        (generated::CHOSEN, &encoded[..]),
        (generated::CHOSEN, &generated[..]),
        (generated::CHOSEN, &["hunter123"][..]),
    ];
    let all = rows.iter().flat_map(|(forms, secrets)| secrets.iter().map(move |secret| (*forms, *secret)));
    let shown: Vec<_> = all
        .flat_map(|(forms, secret)| forms.iter().map(move |form| (*form, secret)))
        .filter(|(form, secret)| redact(&form.replace("{}", secret)).contains(&secret[..8]))
        .collect();
    assert!(shown.is_empty(), "{} are shown: {shown:#?}", shown.len());
}

#[test]
fn a_secret_behind_a_joint_of_lines_is_hidden_and_the_lines_stay() {
    for (text, shown) in [
        (
            "ExecStop=/usr/bin/x --token=\\\n  hunter2 -v\n",
            "ExecStop=/usr/bin/x --token=\\\n  [redacted] -v\n",
        ),
        ("ExecReload=/x --password \\\n  hunter2\n", "ExecReload=/x --password \\\n  [redacted]\n"),
        ("Environment=PASS\\\n=hunter2\n", "Environment=PASS\\\n=[redacted]\n"),
        ("Environment=P\\x41SSWORD=hunter2\n", "Environment=P\\x41SSWORD=[redacted]\n"),
        ("Environment=PASSW\\117RD=hunter2\n", "Environment=PASSW\\117RD=[redacted]\n"),
        ("P\\x41SSWORD=hunt\\x65\n", "P\\x41SSWORD=[redacted]\n"),
        ("curl --pass\\\nword hunter2 x", "curl --pass\\\nword [redacted] x"),
        ("PASSWORD=hun\\\nter2 x\n", "PASSWORD=\\\n[redacted] x\n"),
        ("curl -u \\\n  joe:hunter2 \\\n  http://x", "curl -u \\\n  joe:[redacted] \\\n  http://x"),
        ("+x --token=\\\n+  hunter2\n", "+x --token=\\\n+  [redacted]\n"),
        ("-x --token \\\n-  hunter2\n", "-x --token \\\n-  [redacted]\n"),
        (r#"{"a":"x --token=\\\n  hunter2\n"}"#, r#"{"a":"x --token=\\\n  [redacted]\n"}"#),
        ("x --token \\\r\n hunter2\r\n", "x --token \\\r\n [redacted]\r\n"),
    ] {
        assert_eq!(redact(text), shown, "{text:?}");
        assert_eq!(redact(shown), shown, "{text:?}");
        assert_eq!(redact_lines(text), shown, "{text:?}");
    }
    for text in [
        "ExecStart=/usr/bin/x \\\n  --password-file=/etc/x \\\n  --verbose\n",
        "printf '\\x1b[31m\\x41\\n'",
        "dev-disk-by\\x2duuid-0a3407de.device",
    ] {
        assert_eq!(redact(text), text);
    }
}

/// Returns all cases that are shown in another way than expected.
fn wrong(cases: impl IntoIterator<Item = (String, String)>) -> Vec<String> {
    let wrong = |(text, shown): (String, String)| {
        let found = redact(&text);
        (found != shown).then(|| format!("{text:?}\n  {shown:?}, and not\n  {found:?}"))
    };
    cases.into_iter().filter_map(wrong).collect()
}

/// Returns the text as a line of a diff, and as a JSON string.
fn in_other_text(text: &str) -> Vec<String> {
    let escaped = serde_json::to_string(&json!({"a": format!("one\n{text}\nthree")})).unwrap();
    let in_diff = ["+", "-", " "].map(|prefix| format!(" a\n{prefix}{text}\n b\n"));
    in_diff.into_iter().chain([escaped]).collect()
}

#[test]
fn a_secret_is_taken_out_and_what_is_around_it_stays() {
    let cases = secrets::SECRETS.iter().map(|(text, shown)| ((*text).to_owned(), (*shown).to_owned()));
    let wrong = wrong(cases);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_secret_is_found_in_a_diff_and_in_json_as_well() {
    let cases = secrets::SECRETS
        .iter()
        .flat_map(|(text, shown)| in_other_text(text).into_iter().zip(in_other_text(shown)));
    let wrong = wrong(cases);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_only_looks_like_a_secret_survives_byte_for_byte() {
    let cases = lookalikes::LOOKALIKES
        .iter()
        .flat_map(|text| [vec![(*text).to_owned()], in_other_text(text)].concat());
    let wrong = wrong(cases.map(|text| (text.clone(), text)));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_value_is_secret_by_its_name() {
    for name in [
        "password",
        "Password",
        "passwd",
        "passphrase",
        "secret",
        "token",
        "api_key",
        "apikey",
        "apiKey",
        "access_key",
        "private_key",
        "client_secret",
        "clientSecret",
        "authorization",
        "credential",
        "credentials",
        "db_pass",
        "dbPass",
        "psk",
        "MYSQL_ROOT_PASSWORD",
        "AWS_SECRET_ACCESS_KEY",
        "X-Api-Key",
        "auth-token",
        "password2",
        "password_hash",
        "pwd",
        "SSHPASS",
        "RSYNCPASS",
        "unseal key 1",
        "hmac_key",
    ] {
        assert_eq!(redacted(json!({name: "hunter two"})), json!({name: "[redacted]"}));
    }
    for name in [
        "token_type",
        "secret_name",
        "password_age",
        "password_last_changed",
        "tokens",
        "passwordauthentication",
        "keyboard",
        "monkey",
        "key",
        "public_key",
        "host_key",
        "path",
        "next_page_token",
        "bypass",
        "proxy_pass",
        "first_pass",
        "OLDPWD",
        "secret.service",
        "ssl_certificate_key",
        "compass",
        "BYPASS",
        "COMPASS",
        "MONKEY",
        "password-file",
    ] {
        let value = json!({name: "hunter two"});
        assert_eq!(redacted(value.clone()), value);
    }
}

#[test]
fn a_key_that_comes_line_by_line_goes_whole_wherever_the_list_was_cut() {
    let lines: Vec<&str> = KEY.lines().collect();
    for cut in [&lines[..], &lines[1..], &lines[..3], &lines[2..]] {
        let all = [&["before it"][..], cut, &["behind it, as ever"]].concat();
        let shown = |text: &str| if cut.contains(&text) { REDACTED_KEY } else { text }.to_owned();
        let expected: Vec<String> = all.iter().map(|line| shown(line)).collect();
        assert_eq!(redacted(json!(all)), json!(expected));
        let items = |lines: &[String]| {
            let items =
                lines.iter().enumerate().map(|(at, line)| json!({"time": at.to_string(), "message": line}));
            serde_json::Value::Array(items.collect())
        };
        let all: Vec<String> = all.iter().map(|line| (*line).to_owned()).collect();
        assert_eq!(redacted(items(&all)), items(&expected));
    }
    let words = json!(["a PRIVATE KEY is made", "deadbeefdeadbeef", "cafecafecafecafe"]);
    assert_eq!(redacted(words.clone()), words);
}

#[test]
fn a_name_that_is_split_by_what_nobody_sees_is_read_as_it_looks() {
    for text in [
        "\u{1b}[31mpass\u{1b}[0mword=hunter2",
        "pass\u{200b}word=hunter2",
        "pass\u{9b}1mword=hunter2",
        "p\u{feff}assword\u{1b}]0;title\u{7}=hunter2",
        "password=\u{2060}hunter2",
    ] {
        assert_eq!(redact(text), "password=[redacted]", "{text:?}");
    }
    let coloured = "\u{1b}[32mok\u{1b}[0m nothing here";
    assert_eq!(redact(coloured), coloured);
}

#[test]
fn under_a_secret_name_a_state_a_count_and_a_path_stay() {
    for value in [
        json!("locked"),
        json!("none"),
        json!("x"),
        json!("!"),
        json!("***"),
        json!("/etc/ssl/private/a.key"),
        json!(12),
        json!(true),
        json!(null),
        json!(""),
    ] {
        let value = json!({"password": value, "token": value});
        assert_eq!(redacted(value.clone()), value);
    }
}

#[test]
fn an_option_a_variable_and_a_list_hide_what_belongs_to_them() {
    for (value, shown) in [
        (json!(["x", "--password", "hunter2", "y"]), json!(["x", "--password", "[redacted]", "y"])),
        (json!(["--token=abc", "-v"]), json!(["--token=[redacted]", "-v"])),
        (
            json!({"name": "DB_PASSWORD", "value": "x1"}),
            json!({"name": "DB_PASSWORD", "value": "[redacted]"}),
        ),
        (json!({"name": "DB_HOST", "value": "x1"}), json!({"name": "DB_HOST", "value": "x1"})),
        (
            json!({"credentials": ["a1", {"user": "u"}]}),
            json!({"credentials": ["[redacted]", {"user": "u"}]}),
        ),
        (json!({"a": [{"b": "ghp_0123456789abcdefghij"}]}), json!({"a": [{"b": "[redacted]"}]})),
        (json!({"ghp_0123456789abcdefghij": 1}), json!({"[redacted]": 1})),
    ] {
        assert_eq!(redacted(value), shown);
    }
}

#[test]
fn large_texts_full_of_hints_are_gone_through() {
    let most = 1 << 20;
    for piece in [
        "password: ",
        "password=",
        "password=/etc/",
        "passwd: ",
        "://a:b",
        "$6$",
        "-----BEGIN PRIVATE KEY",
        "token\\n",
        "{\"secret\":\"",
        "eyJ",
        "mysql ",
        "curl x",
        "curl -u a:b ",
        "curl -u \"",
        "curl -u '$(curl ;",
        "ldapsearch -w 'a -w \"b ",
        "ldapsearch -w \"x\" ",
        "sshpass -p ",
        "mysql -p;",
        "api/webhooks/1/",
        "glpat-0123456789abcdef-",
        "$6$0123456789abcdef",
        "pass pass:",
        "password=\"",
        "a:b:::",
        "\\\\\\\"",
        "<token>",
        "--token ",
        "QUJD\n",
        "Ab1Ab1Ab1Ab1 ",
        "login Ab1Ab1Ab1Ab1,",
        "key (\"",
        "--token=\\\n",
        "P\\x41SSWORD=",
        "\\x41",
        "<secret name='",
        "name=\"password\">",
        "P\\x41SSWORD=hunt\\x65 ",
        "digest response",
    ] {
        let text = piece.repeat(most / piece.len());
        assert!(redact(&text).len() <= 3 * text.len(), "{piece}");
    }
}

/// Makes text from pieces that secrets and their surroundings consist of.
fn pieces() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "password",
        "passwd",
        "token",
        "secret_",
        "psk",
        "pwd",
        "=",
        ": ",
        " = ",
        ":",
        "\"",
        "'",
        "\\\"",
        "\\n",
        "\n",
        " ",
        "  ",
        "--",
        "-",
        "+",
        "://",
        "@",
        "u:",
        "[redacted]",
        "[redacted",
        "[redacted private key]",
        "]",
        "}",
        "{",
        "(",
        ",",
        ";",
        "hunter2",
        "x",
        "Bearer ",
        "Authorization: ",
        "$6$ab$",
        "0123456789abcdefghij",
        "ghp_",
        "eyJhbGciOiJI.eyJzdWIiOiIx",
        "-----BEGIN PRIVATE KEY-----",
        "-----END PRIVATE KEY-----",
        "<",
        ">",
        "\\",
        "\\t",
        "/",
        "/etc/x",
        "ü",
        "*",
        "!",
        ":1:0:99999:7:::",
        "root:",
        "curl -u ",
        "sshpass -p ",
        "PSK ",
        "PASSWORD ",
        "#",
        "&",
        "?",
        "sig=",
        "\t",
        "$",
        "${",
        "api_key",
        "%3D",
        "Zq9k103dW3xYp7L",
        "9f86d081884c7d659a2feaa0c55ad015",
        "hunter123",
        "key ",
        "login ",
        "SSHPASS",
        " 1",
        "`",
        "\\\n",
        "\\\n  ",
        "\\\r\n",
        "\\\\\\n",
        "\\x41",
        "\\x22",
        "name=\"",
        " value=\"",
        "</",
        "{PLAIN}",
        "setuser a on >",
        "\" * \"",
        "openssl passwd ",
        " -pw ",
        " is ",
        " for a:",
    ]);
    prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

/// Makes commands with passwords that end with `9Zq`, and with other words before, between and behind them.
fn commands() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "curl -u a:09Zq",
        "curl -su a:;9Zq",
        "curl --proxy-user 'a:b 9Zq' --user \"a:b;9Zq\"",
        ";curl -u b:09Zq",
        "mysql -p-9Zq",
        "mysqldump -p\"a b9Zq\" -p|9Zq",
        "ldapsearch -w 19Zq",
        "ldapsearch -x -w 'a -w 9Zq'",
        "sshpass -p ;9Zq",
        "-passin pass:9Zq",
        "Authorization: Basic 9Zq",
        "curl -u",
        "ldapsearch -w",
        "sshpass -p",
        "mysql",
        "-x",
        "-w x",
        "-u a:$(x)",
        "http://x",
        ";",
        "|",
    ]);
    prop::collection::vec(piece, 0..8).prop_map(|pieces| pieces.join(" "))
}

#[test]
fn what_is_hidden_behind_a_backslash_is_hidden() {
    for text in [
        r#"curl -u "secret_: password\[redacted]"#,
        r#"curl -u "secret_: \[redacted]"#,
        r"password=\[redacted]",
        r"password=\\[redacted] x",
    ] {
        let once = redact(text).into_owned();
        assert_eq!(redact(&once), once, "{text}");
    }
    assert!(!redact(r"password=\[redacted]9Zq").contains("9Zq"));
}

proptest! {
    // More are asked for by `PROPTEST_CASES`.
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases.max(2000)))]

    #[test]
    fn redacting_twice_is_redacting_once(text in pieces()) {
        let once = redact(&text).into_owned();
        prop_assert_eq!(redact(&once), once.as_str(), "{}", text);
    }

    #[test]
    fn a_password_of_one_command_hides_no_other(text in commands()) {
        let once = redact(&text).into_owned();
        prop_assert!(!once.contains("9Zq"), "{} {}", text, once);
        prop_assert_eq!(redact(&once), once.as_str(), "{}", text);
    }

    #[test]
    fn lines_are_kept_whatever_the_text(text in pieces()) {
        prop_assert_eq!(redact_lines(&text).matches('\n').count(), text.matches('\n').count(), "{}", text);
    }

    #[test]
    fn no_text_is_too_odd(text in any::<String>()) {
        redact(&text);
    }

    /// The passwords hold no slashes and no dollars, because paths and references are no secrets.
    #[test]
    fn a_password_is_gone_whatever_it_is_made_of(
        password in "[!-~&&[^\"'\\\\`\\[{(<$/]]{4,12}9Zq", name in prop::sample::select(vec!["password", "DB_PASSWORD", "--token"]),
    ) {
        for text in [format!("{name}={password}"), format!("a {name}=\"{password} b\" c"), format!("  {name} = {password}\n")] {
            prop_assert!(!redact(&text).contains("9Zq"), "{} {}", text, redact(&text));
        }
    }
}
