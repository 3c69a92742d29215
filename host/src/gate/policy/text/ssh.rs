//! ssh's and sshd's settings, as `readconf.c`, `servconf.c` and `strdelim` of OpenSSH's sources read them: what runs a
//! command at each connection or login.

use super::programs::{is_loose, of_variable};
use super::words::{lines, unquoted};
use super::{Code, shown};

/// Read by a shell.
const BY_SHELL: [&str; 3] = ["proxycommand", "localcommand", "forcecommand"];
/// Taken apart by ssh itself.
const DIRECT: [&str; 4] =
    ["knownhostscommand", "authorizedkeyscommand", "authorizedprincipalscommand", "xauthlocation"];
/// Loaded into the program.
const LOADED: [&str; 2] = ["pkcs11provider", "securitykeyprovider"];
/// Files that say who is let in, or more of the same.
const TRUSTED: [&str; 5] =
    ["authorizedkeysfile", "authorizedprincipalsfile", "trustedusercakeys", "include", "modulifile"];

/// What a connection or a login runs.
pub fn read(text: &str, user: Option<&str>) -> Code {
    let mut code = Code::default();
    for (number, line) in lines(text) {
        let mut rest = line.trim_matches(SPACE);
        if rest.is_empty() || rest.starts_with('#') {
            continue;
        }
        let Some(written) = delimited(&mut rest) else { continue };
        let keyword = written.to_ascii_lowercase();
        let value = rest.trim_start_matches([' ', '\t', '=']);
        let at = format!("{}, line {number}", shown(written));
        let is_none = matches!(value.to_ascii_lowercase().as_str(), "none" | "internal-sftp" | "");
        match keyword.as_str() {
            key if BY_SHELL.contains(&key) && !is_none => code.shell(value, at, user),
            key if DIRECT.contains(&key) && !is_none => match unquoted(value) {
                Some(argv) => code.run(argv, at, user),
                None => code.cannot_read(format!("a command with a quote that stays open, {at}")),
            },
            "subsystem" => {
                let mut rest = value;
                let _name = delimited(&mut rest);
                if !rest.starts_with("internal-sftp") {
                    code.shell(rest, at, user);
                }
            }
            "match" => conditions(value, &at, user, &mut code),
            key if LOADED.contains(&key) && !is_none && !value.starts_with('$') && value != "internal" => {
                code.gives(format_args!("loads {} into ssh, {at}", shown(value)));
            }
            key if TRUSTED.contains(&key) => {
                for path in unquoted(value).unwrap_or_else(|| vec![value.to_owned()]) {
                    if path.starts_with('/') && is_loose(&path) && user.is_none() {
                        let what = "which others than root may write";
                        code.gives(format_args!("trusts {}, {what}, {at}", shown(&path)));
                    }
                }
            }
            "setenv" => {
                for pair in unquoted(value).unwrap_or_default() {
                    let variable = pair.split_once('=').and_then(|(name, value)| of_variable(name, value));
                    if let Some(sentence) = variable {
                        code.gives(format_args!("{sentence}, {at}"));
                    }
                }
            }
            "permituserenvironment" if !value.eq_ignore_ascii_case("no") => {
                code.gives(format_args!("lets accounts set any variable at their login, {at}"));
            }
            "permitemptypasswords" if !value.eq_ignore_ascii_case("no") => {
                code.gives(format_args!("lets accounts in that have no password, {at}"));
            }
            _ => {}
        }
    }
    code
}

const SPACE: [char; 5] = [' ', '\t', '\r', '\u{b}', '\u{c}'];

/// `Match`'s `exec`, wherever it stands.
fn conditions(value: &str, at: &str, user: Option<&str>, code: &mut Code) {
    let mut rest = value;
    while let Some(attribute) = delimited(&mut rest) {
        if attribute.trim_start_matches('!').eq_ignore_ascii_case("exec") {
            match delimited(&mut rest) {
                Some(command) => code.shell(command, at, user),
                None => code.cannot_read(format!("a condition without its command, {at}")),
            }
        }
    }
}

/// The next word or quoted text; blanks behind it, and one equals sign among them, belong to it.
fn delimited<'a>(rest: &mut &'a str) -> Option<&'a str> {
    let text = rest.trim_start_matches(SPACE);
    if text.is_empty() {
        return None;
    }
    let (word, after) = match text.strip_prefix('"') {
        Some(quoted) => quoted.split_once('"').unwrap_or((quoted, "")),
        None => text.split_at(text.find(|c| SPACE.contains(&c) || c == '=').unwrap_or(text.len())),
    };
    let after = after.trim_start_matches(SPACE);
    *rest = after.strip_prefix('=').unwrap_or(after).trim_start_matches(SPACE);
    // A lone equals sign at the start is an empty word.
    (!word.is_empty() || after.len() < text.len()).then_some(word)
}
