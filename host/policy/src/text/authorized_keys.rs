//! Reads an account's authorized keys. The options before a key can name a command (sshd(8), AUTHORIZED_KEYS FILE FORMAT).

use super::words::lines;
use super::{Code, shown};

/// Options that only restrict a key.
const HARMLESS: [&str; 5] = ["from", "expiry-time", "permitopen", "permitlisten", "principals"];

/// Finds the commands that logins with these keys run.
pub fn read(text: &str, user: Option<&str>) -> Code {
    let mut code = Code::default();
    for (number, line) in lines(text) {
        let line = line.trim_start_matches([' ', '\t']);
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let mut rest = line;
        while let Some((name, value)) = option(&mut rest) {
            let at = format!("{}, line {number}", name.to_ascii_lowercase());
            match value {
                Err(OpenQuote) => {
                    code.cannot_read(format!("keys with an option whose quote stays open, {at}"));
                    break;
                }
                Ok(None) => {}
                Ok(Some(value)) if name.eq_ignore_ascii_case("command") => code.shell(&value, at, user),
                Ok(Some(_)) if HARMLESS.iter().any(|known| name.eq_ignore_ascii_case(known)) => {}
                Ok(Some(value)) => {
                    code.add_power(format_args!("sets {}=\"{}\", {at}", shown(name), shown(&value)));
                }
            }
        }
    }
    code
}

struct OpenQuote;

/// Takes the next option and its value; `None` behind the last one. In a line without options the first word is the key's
/// type, which is read as an option without a value.
fn option<'a>(rest: &mut &'a str) -> Option<(&'a str, Result<Option<String>, OpenQuote>)> {
    let text = *rest;
    let end = text.find([',', '=', ' ', '\t', '"']).unwrap_or(text.len());
    let (name, behind) = text.split_at(end);
    let Some(quoted) = behind.strip_prefix("=\"") else {
        // The option ends at a comma, and all options end at a blank.
        let end = behind.find([',', ' ', '\t']).unwrap_or(behind.len());
        *rest = behind[end..].strip_prefix(',').unwrap_or_default();
        return (!name.is_empty()).then_some((name, Ok(None)));
    };
    let mut value = String::new();
    let mut characters = quoted.char_indices().peekable();
    while let Some((at, character)) = characters.next() {
        match character {
            '\\' if characters.next_if(|(_, next)| *next == '"').is_some() => value.push('"'),
            '"' => {
                *rest = quoted[at + 1..].strip_prefix(',').unwrap_or_default();
                return Some((name, Ok(Some(value))));
            }
            other => value.push(other),
        }
    }
    *rest = "";
    Some((name, Err(OpenQuote)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_options_command_is_found_wherever_it_stands() {
        const KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5 ada@example";
        let table = [
            ("", None),
            ("restrict,pty ", None),
            ("command=\"/bin/true\" ", Some("/bin/true")),
            ("no-pty,Command=\"echo \\\"a b\\\", c\",from=\"10.0.0.0/8\" ", Some("echo \"a b\", c")),
            ("from=\"a,b c\",COMMAND=\"x\" ", Some("x")),
        ];
        for (options, expected) in table {
            let code = read(&format!("# {KEY}\n  {options}{KEY} command=\"no option\"\n"), None);
            let found = code.lines.first().and_then(|line| line.shell.as_deref());
            assert_eq!((found, code.lines.len()), (expected, usize::from(expected.is_some())), "{options}");
            assert!(code.unreadable.is_none() && code.power.is_empty());
        }
        assert!(read("command=\"x ssh-rsa A", None).unreadable.is_some());
        assert_eq!(read("environment=\"LD_PRELOAD=/x\" ssh-rsa A", None).power.len(), 1);
    }
}
