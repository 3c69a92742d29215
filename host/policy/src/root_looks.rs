//! Command lines that may look with root's rights where the caller chooses all of their words.
//!
//! The rules say what changes something. A command that changes nothing may still show what only root may read, so it is
//! also held against a list of programs whose words tell all that they read.

use std::sync::LazyLock;

use serde::Deserialize;

/// The programs. If the table can't be read, none may look.
static TABLE: LazyLock<Option<Table>> =
    LazyLock::new(|| serde_yaml::from_str(include_str!("root_looks.yaml")).ok());

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    state: Vec<Programs>,
    names: Vec<Programs>,
    contents: Vec<Programs>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Programs {
    programs: Vec<String>,
    without: Vec<String>,
    #[serde(default)]
    letters: String,
}

/// The kind of information that a command shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shows {
    /// The state of the system.
    State,
    /// Names and metadata of files, also of those below a directory.
    Names,
    /// Contents of the files that it names.
    Contents,
}

/// The kinds of text that a command shows. None where its words don't tell that.
pub fn shows(argv: &[String]) -> Option<Shows> {
    let table = TABLE.as_ref()?;
    let (program, words) = argv.split_first()?;
    let groups =
        [(&table.state, Shows::State), (&table.names, Shows::Names), (&table.contents, Shows::Contents)];
    groups.into_iter().find_map(|(group, shows)| {
        let known = group.iter().find(|known| known.programs.iter().any(|name| name == program))?;
        let is_out = |word: &String| {
            known.without.iter().any(|out| is_like(word, out) || is_among_letters(word, out))
                || !word.starts_with('-') && word.contains(|letter| known.letters.contains(letter))
        };
        (!words.iter().any(is_out)).then_some(shows)
    })
}

/// Whether a word is like a pattern that may begin or end with `*`.
fn is_like(word: &str, pattern: &str) -> bool {
    match (pattern.strip_prefix('*'), pattern.strip_suffix('*')) {
        (None, None) => word == pattern,
        (None, Some(beginning)) => word.starts_with(beginning),
        (Some(end), None) => word.ends_with(end),
        (Some(end), Some(_)) => word.contains(end.trim_end_matches('*')),
    }
}

/// Whether a word of joined one-letter options, such as `-nr`, has the option's letter.
fn is_among_letters(word: &str, option: &str) -> bool {
    let letter = option.strip_prefix('-').filter(|letter| letter.len() == 1 && *letter != "-");
    let letters = word.strip_prefix('-').filter(|letters| !letters.starts_with('-'));
    matches!((letter, letters), (Some(letter), Some(letters)) if letters.contains(letter))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_programs_whose_words_tell_what_they_read_look_with_roots_rights() {
        for (line, expected) in [
            ("systemctl status nginx", Some(Shows::State)),
            ("systemctl cat nginx", Some(Shows::State)),
            ("systemctl --root=/srv/x status", None),
            ("ip -br address", Some(Shows::State)),
            ("ip -batch /etc/shadow", None),
            ("ping -c1 127.0.0.1", Some(Shows::State)),
            ("ip netns exec a cat /etc/shadow", None),
            ("ps -ef", Some(Shows::State)),
            ("ps aux", Some(Shows::State)),
            ("ps auxe", None),
            ("ps -o pid,environ", None),
            ("wc -c /etc/hosts", Some(Shows::Contents)),
            ("cut -d: -f1 /etc/passwd", Some(Shows::Contents)),
            ("rpm -q --define x y", None),
            ("journalctl -u ssh -n 50", Some(Shows::State)),
            ("journalctl --directory=/srv/x", None),
            ("ls -la /etc", Some(Shows::Names)),
            ("find /etc -name x.conf", Some(Shows::Names)),
            ("find /etc -name x -exec cat {} +", None),
            ("find /etc -fprintf /x y", None),
            ("cat /etc/hosts", Some(Shows::Contents)),
            ("head -n 5 /etc/hosts", Some(Shows::Contents)),
            ("grep -n listen /etc/nginx/nginx.conf", Some(Shows::Contents)),
            ("grep -nr listen /etc/nginx", None),
            ("grep --recursive x /etc", None),
            ("grep -f /etc/shadow /etc/hosts", None),
            ("wc --files0-from=/etc/shadow", None),
            ("diff -ur /a /b", None),
            ("xargs cat", None),
            ("sh -c ls", None),
            ("sudo ls", None),
            ("env --chdir=/etc cat passwd", None),
            ("env ls", None),
            ("tar -cf - /etc", None),
            ("sed -n 1p /etc/hosts", None),
            ("git status", None),
            ("/usr/bin/cat /etc/hosts", None),
            ("getent passwd", Some(Shows::State)),
            ("getent shadow", None),
            ("", None),
        ] {
            let argv: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
            assert_eq!(shows(&argv), expected, "{line}");
        }
    }
}
