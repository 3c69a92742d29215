use regex::Regex;

use super::*;

mod expressions;
mod fragments;
mod values;
mod writing;

fn pattern(text: &str) -> Pattern {
    Pattern::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// The arguments as a sudoers file has them.
fn texts(pattern: &Pattern) -> Vec<String> {
    arguments(pattern, Exactness::Grants).unwrap_or_else(|error| panic!("{pattern}: {error}")).texts()
}

/// Whether sudo would allow the arguments: one of the texts matches. `""` stands for no arguments.
fn allows(texts: &[String], args: &[&str]) -> bool {
    texts.iter().any(|text| match text.as_str() {
        "\"\"" => args.is_empty(),
        text => Regex::new(&in_rust(text)).unwrap().is_match(&args.join(" ")),
    })
}

/// The same expression in Rust's syntax. In POSIX's brackets, a backslash and `[` are literal.
fn in_rust(text: &str) -> String {
    let mut rust = String::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        match c {
            '\\' => {
                let next = rest.chars().next().unwrap();
                rest = &rest[next.len_utf8()..];
                rust.extend(['\\', next]);
            }
            '[' => {
                let inside = rest.replace("[:graph:]", "!-~");
                let end = inside[1..].find(']').unwrap() + 1;
                let chars: Vec<char> = inside[..end].chars().collect();
                assert_ne!(chars[0], '^', "{text}: expected positive classes only");
                rust.push('[');
                for (at, c) in chars.iter().enumerate() {
                    match c {
                        '-' if at > 0 && at + 1 < chars.len() => rust.push('-'),
                        c => rust.push_str(&format!("\\x{:02x}", u32::from(*c))),
                    }
                }
                rust.push(']');
                let taken = if rest.starts_with("[:graph:]") { "[:graph:]".len() } else { end };
                rest = &rest[taken + 1..];
            }
            c => rust.push(c),
        }
    }
    rust
}

/// Repeats sudo's `check_pattern`, which doesn't know brackets, and looks for characters that its parser takes for an end.
fn assert_that_sudo_reads(text: &str) {
    assert!(text.len() <= 1024 && text.starts_with('^') && text.ends_with('$'), "{text}");
    let mut before = ' ';
    let mut chars = text[1..text.len() - 1].chars().peekable();
    while let Some(c) = chars.next() {
        assert!(!matches!(c, '#' | '$' | '\n'), "{text}: {c} ends it");
        match c {
            '\\' => {
                chars.next();
                before = ' ';
                continue;
            }
            '{' if chars.peek().is_some_and(char::is_ascii_digit) => {
                assert!(!"?*+{".contains(before), "{text}: a repetition of a repetition");
                chars.by_ref().find(|c| *c == '}');
            }
            '?' | '*' | '+' => assert!(!"?*+{".contains(before), "{text}: a repetition of a repetition"),
            _ => {}
        }
        before = c;
    }
}
