//! Reads scripts of sed(1) and awk(1), which can start programs, and read and write files.
//!
//! It reads them as GNU sed 4.9 and gawk 5.2 do. A script that it doesn't understand, or that other versions read in another
//! way, is unclear: it must not look harmless. The time is linear in the text.

use serde::Deserialize;

/// The language of a program's scripts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Language {
    Sed,
    Awk,
}

impl Language {
    /// The options whose value is a script, and the options that run a script from elsewhere.
    pub(super) fn options(self) -> (&'static [&'static str], &'static [&'static str]) {
        match self {
            Self::Sed => (&["-e", "--expression"], &["-f", "--file"]),
            Self::Awk => (
                &["-e", "--source"],
                &["-f", "--file", "-i", "--include", "-l", "--load", "-E", "--exec", "-D", "--debug", "-W"],
            ),
        }
    }
}

/// The effects of a script besides editing.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Script<'t> {
    pub(super) reads: Vec<&'t str>,
    pub(super) writes: Vec<&'t str>,
    /// Texts for a shell.
    pub(super) runs: Vec<&'t str>,
    /// True where it can't be told what the script does.
    pub(super) is_unclear: bool,
}

impl<'t> Script<'t> {
    /// Reads a script.
    pub(super) fn read(language: Language, text: &'t str) -> Self {
        let mut script = Self::default();
        match language {
            Language::Sed => script.is_unclear |= sed(text, &mut script).is_none(),
            Language::Awk => script.is_unclear = awk(text),
        }
        script
    }
}

/// Reads one sed command after the other; `None` where one is not understood.
fn sed<'t>(text: &'t str, script: &mut Script<'t>) -> Option<()> {
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_whitespace() || matches!(c, ';' | '{' | '}'));
        if rest.is_empty() {
            return Some(());
        }
        rest = address(rest)?;
        if let Some(behind) = rest.trim_start().strip_prefix(',') {
            rest = address(behind.trim_start())?;
        }
        rest = rest.trim_start_matches(|c: char| c.is_whitespace() || c == '!');
        let mut characters = rest.chars();
        let command = characters.next()?;
        rest = characters.as_str();
        match command {
            '{' | '}' | '=' | 'd' | 'D' | 'g' | 'G' | 'h' | 'H' | 'n' | 'N' | 'p' | 'P' | 'x' | 'F' | 'z' => {
            }
            'q' | 'Q' | 'l' | 'L' => rest = rest.trim_start_matches(|c: char| c == ' ' || c.is_ascii_digit()),
            '#' => rest = line(rest).1,
            // A label ends at white space or a `;` in some versions, and at the end of the line in others.
            ':' | 'b' | 't' | 'T' | 'v' => {
                let (label, behind) = line(rest);
                let label = label.trim_matches([' ', '\t']);
                let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
                match label.find(|c| !is_name(c)) {
                    None => rest = behind,
                    // Every version ends a command without a label there.
                    Some(0) if command != ':' => rest = rest.trim_start_matches([' ', '\t']),
                    Some(at) if command != ':' && label[at..].starts_with([';', '}']) => {
                        rest = &rest.trim_start_matches([' ', '\t'])[at..];
                    }
                    Some(_) => return None,
                }
            }
            // The text goes on in the next line where a line ends in a backslash that is not escaped.
            'a' | 'i' | 'c' => loop {
                let (text, behind) = line(rest);
                if text.ends_with("\\\\") {
                    return None;
                }
                rest = behind.get(1..).unwrap_or_default();
                if !text.ends_with('\\') {
                    break;
                }
            },
            'r' | 'R' | 'w' | 'W' | 'e' => {
                let (name, behind) = line(rest);
                script.note(command, name.trim_start())?;
                rest = behind;
            }
            's' | 'y' => {
                let mut characters = rest.chars();
                let delimiter = characters.next().filter(|c| !matches!(c, '\\' | '\n'))?;
                rest = up_to(up_to(characters.as_str(), delimiter, command == 's')?, delimiter, false)?;
                if command == 's' {
                    rest = flags(rest, script)?;
                }
            }
            _ => return None,
        }
        // A command must be followed by a separator.
        let next = rest.trim_start_matches([' ', '\t', '\r']).chars().next();
        let is_ended = matches!(command, '#' | 'a' | 'i' | 'c' | 'r' | 'R' | 'w' | 'W' | 'e' | '{' | '}');
        if !is_ended && !matches!(next, None | Some(';' | '\n' | '}' | '#')) {
            return None;
        }
    }
}

impl<'t> Script<'t> {
    /// Notes the file or the command that a command of sed names; `None` where the name is missing.
    fn note(&mut self, command: char, name: &'t str) -> Option<()> {
        let names = match command {
            'r' | 'R' => &mut self.reads,
            'w' | 'W' => &mut self.writes,
            _ => &mut self.runs,
        };
        names.push(Some(name).filter(|name| !name.is_empty())?);
        Some(())
    }
}

/// The text behind an address, or the whole text where there is none.
fn address(text: &str) -> Option<&str> {
    let behind = match text.chars().next()? {
        '$' => &text[1..],
        '0'..='9' | '+' | '~' => {
            text.trim_start_matches(|c: char| c.is_ascii_digit() || matches!(c, '~' | '+'))
        }
        '/' => up_to(&text[1..], '/', true)?.trim_start_matches(['I', 'M']),
        '\\' => {
            let mut characters = text.chars().skip(1);
            let delimiter = characters.next().filter(|c| !matches!(c, '\\' | '\n'))?;
            up_to(&text[1 + delimiter.len_utf8()..], delimiter, true)?.trim_start_matches(['I', 'M'])
        }
        _ => text,
    };
    Some(behind)
}

/// The text behind the delimiter; `None` where a delimiter stands within brackets, which depends on the version.
fn up_to(text: &str, delimiter: char, has_brackets: bool) -> Option<&str> {
    let mut is_escaped = false;
    let mut is_bracket = false;
    for (at, c) in text.char_indices() {
        match c {
            _ if is_escaped => is_escaped = false,
            _ if c == delimiter && is_bracket => return None,
            _ if c == delimiter => return Some(&text[at + c.len_utf8()..]),
            '\\' => is_escaped = !is_bracket,
            '[' if has_brackets => is_bracket = true,
            // A `]` at the beginning of a bracket expression is a character: `[]x]`, `[^]x]`.
            ']' if is_bracket => is_bracket = text[..at].ends_with('[') || text[..at].ends_with("[^"),
            _ => {}
        }
    }
    None
}

/// Reads the flags of `s`. `e` runs the result as a command, and `w` writes it to a file.
fn flags<'t>(text: &'t str, script: &mut Script<'t>) -> Option<&'t str> {
    for (at, c) in text.char_indices() {
        match c {
            'g' | 'p' | 'i' | 'I' | 'm' | 'M' | '0'..='9' => {}
            'w' => {
                let (name, behind) = line(&text[at + 1..]);
                script.note('w', name.trim_start())?;
                return Some(behind);
            }
            'e' => return None,
            _ => return Some(&text[at..]),
        }
    }
    Some("")
}

/// The first line, and the text behind it.
fn line(text: &str) -> (&str, &str) {
    let end = text.find('\n').unwrap_or(text.len());
    (&text[..end], &text[end..])
}

/// The meaning of a `/` in awk at this point.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Slash {
    /// The slash begins a regular expression, because an operand has to follow.
    Expression,
    /// The slash divides.
    Division,
    /// The slash may do either: `if (x) /re/` and `(x) / 2` differ only in the text far before it.
    Unsure,
}

/// Whether an awk script may do more than read its input and print: read or write files, run programs, or load code.
fn awk(text: &str) -> bool {
    let mut slash = Slash::Expression;
    let mut is_print = false;
    let mut parentheses = 0_usize;
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let behind = &rest[c.len_utf8()..];
        (rest, slash) = match c {
            // A regular expression ends on its own line, unless the line is continued.
            '/' if slash == Slash::Unsure
                && (line(behind).0.contains('/') || line(behind).0.trim_end().ends_with('\\')) =>
            {
                return true;
            }
            '/' if slash != Slash::Expression => (behind, Slash::Expression),
            '"' | '/' => match quoted(behind, c) {
                Some(behind) => (behind, Slash::Division),
                None => return true,
            },
            '#' => (line(behind).1, slash),
            ' ' | '\t' | '\r' => (behind, slash),
            '\\' if behind.starts_with(['\n', '\r']) => (behind.trim_start(), slash),
            'a'..='z' | 'A'..='Z' | '_' => {
                let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
                let word = &rest[..end];
                if matches!(word, "system" | "getline" | "ARGV" | "ARGC" | "ARGIND" | "PROCINFO" | "SYMTAB") {
                    return true;
                }
                is_print |= matches!(word, "print" | "printf");
                let slash = match word {
                    "print" | "printf" | "return" | "in" | "else" | "do" | "exit" | "delete" => {
                        Slash::Expression
                    }
                    // `case` is a keyword of gawk only, and `length` needs no parentheses.
                    "case" | "length" => Slash::Unsure,
                    _ => Slash::Division,
                };
                (&rest[end..], slash)
            }
            '0'..='9' | '.' | ']' => (behind, Slash::Division),
            '$' => (behind, Slash::Unsure),
            '|' if !behind.starts_with('|') => return true,
            '|' => (&behind[1..], Slash::Expression),
            '>' if is_print && parentheses == 0 => return true,
            '(' => {
                parentheses += 1;
                (behind, Slash::Expression)
            }
            ')' => {
                parentheses = parentheses.saturating_sub(1);
                (behind, Slash::Unsure)
            }
            ';' | '{' | '}' => {
                (is_print, parentheses) = (false, 0);
                (behind, Slash::Expression)
            }
            '+' | '-' if behind.starts_with(c) => (&behind[1..], Slash::Unsure),
            // A statement goes on in the next line behind a comma.
            '\n' | ',' | '=' | '!' | '~' | '<' | '>' | '&' | '+' | '-' | '*' | '%' | '^' | '?' | ':'
            | '[' => (behind, Slash::Expression),
            // `@load`, `@include`, `@name()`, and characters that awk doesn't know.
            _ => return true,
        };
    }
    false
}

/// The text behind a string or a regular expression; `None` where it doesn't end on its line, or where a `/` stands within
/// brackets, which ends it in some versions.
fn quoted(text: &str, end: char) -> Option<&str> {
    let (mut is_escaped, mut is_bracket) = (false, false);
    for (at, c) in text.char_indices() {
        match c {
            '\n' => return None,
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            _ if c == end && is_bracket => return None,
            _ if c == end => return Some(&text[at + 1..]),
            '[' if end == '/' => is_bracket = true,
            ']' => is_bracket = false,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(language: Language, text: &str) -> Script<'_> {
        Script::read(language, text)
    }

    #[test]
    fn a_sed_script_that_only_edits_does_nothing_else() {
        let harmless = [
            "",
            "p",
            "5q",
            "$p",
            "1,5!d",
            "/^e/d",
            "s/we/e/",
            "s/a/e/g",
            "s,/e,/w,",
            "/x/!d;s/e/w/2",
            "/a/,/b/p",
            "1~2p",
            "2,+3d",
            "s/[0-9]/n/gp",
            "y/ew/we/",
            "a e reboot",
            "1i\\\ne reboot",
            "/x/{s/a/b/;p}",
            "\\,/etc/,d",
            "# e reboot",
            "=",
            "n;d",
            ":a\nN\n$!ba\ns/\\n/ /g",
            ": a\nN; t a; p",
            "/x/b;p",
            "v 4.2\np",
            "s/[^]e]/x/",
            "/a/I,/b/ s/x\\/y/e/;p",
        ];
        for text in harmless {
            assert_eq!(read(Language::Sed, text), Script::default(), "{text:?}");
        }
    }

    #[test]
    fn a_sed_script_says_what_it_runs_reads_and_writes() {
        let named = |reads: &[&'static str], writes: &[&'static str], runs: &[&'static str]| Script {
            reads: reads.to_vec(),
            writes: writes.to_vec(),
            runs: runs.to_vec(),
            is_unclear: false,
        };
        let table = [
            ("1e reboot", named(&[], &[], &["reboot"])),
            ("1!e reboot", named(&[], &[], &["reboot"])),
            ("$e reboot;p", named(&[], &[], &["reboot;p"])),
            ("p;e reboot\np", named(&[], &[], &["reboot"])),
            ("/x/w /etc/hosts", named(&[], &["/etc/hosts"], &[])),
            ("y/a/b/;w/etc/hosts", named(&[], &["/etc/hosts"], &[])),
            ("s|x|y|gw /etc/hosts", named(&[], &["/etc/hosts"], &[])),
            ("/x/{W /etc/hosts\n}", named(&[], &["/etc/hosts"], &[])),
            ("$r /etc/shadow", named(&["/etc/shadow"], &[], &[])),
            ("a\\\n1\ne reboot", named(&[], &[], &["reboot"])),
        ];
        for (text, expected) in table {
            assert_eq!(read(Language::Sed, text), expected, "{text:?}");
        }
    }

    #[test]
    fn what_is_not_understood_of_sed_is_unclear() {
        for text in [
            "e",
            "s/x/reboot/e",
            "s/x/y/ge;p",
            "s/x/y",
            "s/[/]/x/",
            "k",
            "/x",
            "w",
            ":a;e reboot",
            ":a e reboot",
            ":a\te reboot",
            "ba e reboot",
            "b e reboot",
            "ta\u{b}e reboot",
            "v 4.2 e reboot",
            "s\\x\\y\\",
            "p p",
            "1",
            "a x\\\\\ne reboot",
        ] {
            assert!(read(Language::Sed, text).is_unclear, "{text:?}");
        }
    }

    #[test]
    fn an_awk_script_that_looks_and_prints_is_clear() {
        let harmless = [
            "{print $1}",
            "/a|b/ {print $1}",
            "$3 > 10 || $2 > 5",
            "NR > x",
            "$3 == 0 {print $1}",
            "{ print ($1 > 5) }",
            "/system/ { n++ } END { print n / 2, n }",
            "{ print \"a > b | c\" }",
            "BEGIN { FS = \":\" } { print $1 } # | sh",
            "{ if ($1 > 2) { print $2 } }",
            "!seen[$0]++",
            "{ s += $1 } END { printf \"%d\\n\", s }",
            "$1 ~ /x/ && !/y/",
        ];
        for text in harmless {
            assert_eq!(read(Language::Awk, text), Script::default(), "{text:?}");
        }
    }

    #[test]
    fn an_awk_script_that_runs_reads_or_writes_is_unclear() {
        let unclear = [
            "BEGIN{system(\"reboot\")}",
            "{ system ( \"x\" ) }",
            "{ print | \"sh\" }",
            "BEGIN { \"x\" | getline }",
            "{ print > \"/x\" }",
            "{ print >> \"/x\" }",
            "{ printf(\"x\") > \"/x\" }",
            "BEGIN { while ((getline x < \"/etc/shadow\") > 0) print x }",
            "@load \"x\"",
            "@include \"x\"",
            "{ print |& \"sh\" }",
            "BEGIN { ARGV[1] = \"/etc/shadow\" }",
            "{ print \"open }",
            "/open",
            "{ n = 4 / 2; print | \"sh /\" }",
            "if (1) /\"/; print | \"sh\" #\"",
            "BEGIN { case = 4; x = case / 2; system(\"id\") / 1 }",
            "{ x = length / 2; system(\"id\") / 1 }",
            "{ if (1) /a # \\\nb\" /; system(\"id\"); #\" }",
            "{ x++ /1; y=\"/\"; print | \"sh\" } #\"",
            "{ print 1,\n2 > \"/x\" }",
            "/[/]/ { print }",
            "BEGIN { f = \"system\"; @f(\"reboot\") }",
        ];
        for text in unclear {
            assert!(read(Language::Awk, text).is_unclear, "{text:?}");
        }
    }
}
