//! Reads the settings of ssh, as `readconf.c` and `strdelim` of OpenSSH's sources do. Some of them run a command at each
//! connection.

use super::words::{lines, unquoted};
use super::{Code, shown};

/// Keywords whose command a shell runs.
const BY_SHELL: [&str; 2] = ["proxycommand", "localcommand"];
/// Keywords whose command ssh itself splits into words.
const DIRECT: [&str; 2] = ["knownhostscommand", "xauthlocation"];
/// Keywords that say where a connection goes and how, and touch nothing on this machine.
const HARMLESS: [&str; 44] = [
    "host",
    "hostname",
    "user",
    "port",
    "identityfile",
    "identitiesonly",
    "addressfamily",
    "bindaddress",
    "bindinterface",
    "batchmode",
    "canonicaldomains",
    "canonicalizehostname",
    "canonicalizemaxdots",
    "checkhostip",
    "ciphers",
    "compression",
    "connectionattempts",
    "connecttimeout",
    "escapechar",
    "fingerprinthash",
    "hashknownhosts",
    "hostkeyalgorithms",
    "hostkeyalias",
    "ipqos",
    "kbdinteractiveauthentication",
    "kexalgorithms",
    "loglevel",
    "macs",
    "numberofpasswordprompts",
    "passwordauthentication",
    "preferredauthentications",
    "proxyjump",
    "pubkeyacceptedalgorithms",
    "pubkeyacceptedkeytypes",
    "pubkeyauthentication",
    "rekeylimit",
    "requesttty",
    "sendenv",
    "serveralivecountmax",
    "serveraliveinterval",
    "sessiontype",
    "tcpkeepalive",
    "updatehostkeys",
    "visualhostkey",
];

/// Finds the commands that a connection runs. Other settings in an account's own file can do no more than the account.
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
        match keyword.as_str() {
            _ if value.eq_ignore_ascii_case("none") => {}
            key if BY_SHELL.contains(&key) => code.shell(value, at, user),
            key if DIRECT.contains(&key) => match unquoted(value) {
                Some(argv) => code.run(argv, at, user),
                None => code.cannot_read(format!("a command with a quote that stays open, {at}")),
            },
            "match" => conditions(value, &at, user, &mut code),
            key if user.is_some() || HARMLESS.contains(&key) => {}
            _ => code.add_power(format_args!(
                "sets {} to {} for root's ssh, {at}",
                shown(written),
                shown(value)
            )),
        }
    }
    code
}

const SPACE: [char; 5] = [' ', '\t', '\r', '\u{b}', '\u{c}'];

/// Finds the command of `exec` in the conditions of `Match`.
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

/// The next word or quoted text. The blanks behind it, and one equals sign among them, are skipped.
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
