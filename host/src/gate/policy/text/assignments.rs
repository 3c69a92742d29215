//! Files of variables: `/etc/default`, `/etc/environment`. Some are read by systemd or PAM, and some are sourced by a
//! shell, to which they are a script. Where nothing but plain assignments is in one, it is the same to all of them.

use super::programs::of_variable;
use super::words::{lines, unquoted};
use super::{Code, shown};

/// What is set for root.
pub fn read(text: &str) -> Code {
    let mut code = Code::default();
    for (number, line) in lines(text) {
        let line = line.trim_matches([' ', '\t']);
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        let assignment = line.strip_prefix("export ").unwrap_or(line).trim_start();
        let Some((name, value)) = plain(assignment) else {
            code.cannot_read(format!("a script: `{}`, line {number}", shown(line)));
            continue;
        };
        if let Some(sentence) = of_variable(name, &value) {
            code.gives(format_args!("{sentence}, line {number}"));
        }
    }
    code
}

/// One assignment with a value of one word in which a shell has nothing to do.
fn plain(text: &str) -> Option<(&str, String)> {
    let (name, value) = text.split_once('=')?;
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if name.is_empty() || !name.chars().all(is_name) {
        return None;
    }
    if has_work(value) {
        return None;
    }
    // A comment may follow, and nothing else.
    let words = unquoted(value)?;
    match words.as_slice() {
        [] => Some((name, String::new())),
        [value] => Some((name, value.clone())),
        [value, comment, ..] if comment.starts_with('#') => Some((name, value.clone())),
        _ => None,
    }
}

/// Whether a shell would do more than to take quotes away.
fn has_work(value: &str) -> bool {
    let mut quote = None;
    let mut is_after_blank = false;
    let mut characters = value.chars();
    while let Some(character) = characters.next() {
        let begins_word = std::mem::replace(&mut is_after_blank, matches!(character, ' ' | '\t'));
        match character {
            _ if quote == Some(character) => quote = None,
            _ if quote == Some('\'') => {}
            '$' | '`' => return true,
            '\\' => drop(characters.next()),
            _ if quote.is_some() => {}
            '"' | '\'' => quote = Some(character),
            '#' if begins_word => return false,
            ';' | '&' | '|' | '<' | '>' | '(' | ')' => return true,
            _ => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_shell_has_nothing_to_do_with_is_read() {
        let harmless = "# a\nA=b\nexport B=\"c d\"  # e\n\nSSHD_OPTS=\nC='$x;`y`'\r\n";
        assert_eq!(read(harmless), Code::default());
        for script in [
            "A=$(id)",
            "A=`id`",
            "A=b; id",
            "A=b id",
            "id",
            "A=\"b",
            "A=\"b\"; id",
            "if x; then",
            ". /etc/x",
            "A=b&id",
            "A='b';id",
            "A='b'$(id)",
            "A='b'\"$(id)\"",
            "A=b#$(id)",
        ] {
            assert!(read(script).unreadable.is_some(), "{script}");
        }
        assert_eq!(read("LD_PRELOAD=/x.so\n").power.len(), 1);
    }
}
