//! Checks of the values that `ssh_config_add` writes: words that ssh reads as they are, without quotes, tokens, variables
//! or options.

use std::net::Ipv6Addr;

use linux_sysadmin_sdk::{prelude::*, text::excerpt};

/// The most characters of a name in DNS.
const LONGEST: usize = 255;

/// The name of a host in the configuration and in calls.
pub(crate) fn alias(text: &str) -> Result<()> {
    let is_alias = is_word(text, "-._:");
    match is_alias && !text.eq_ignore_ascii_case("localhost") {
        true => Ok(()),
        false if is_alias => invalid("host", text, "another name than that of the server's own machine"),
        false => invalid("host", text, "one alias of letters, digits and - . _ : that doesn't begin with -"),
    }
}

/// A host name or an address.
pub(crate) fn hostname(text: &str) -> Result<()> {
    let is_name = is_word(text, "-._") || text.parse::<Ipv6Addr>().is_ok();
    if is_name { Ok(()) } else { invalid("hostname", text, "a name or an address, without user and port") }
}

/// An account of the host.
pub(crate) fn user(text: &str) -> Result<()> {
    if is_word(text, "-._@+") { Ok(()) } else { invalid("user", text, "letters, digits and - . _ @ +") }
}

/// The path of a private key on this machine.
pub(crate) fn identity_file(text: &str) -> Result<()> {
    let below = text.strip_prefix("~/").or_else(|| text.strip_prefix('/')).unwrap_or_default();
    let is_plain = below.split('/').all(|name| !matches!(name, "" | "." | "..") && is_path_name(name));
    match is_plain && text.len() <= 1024 {
        true => Ok(()),
        false => invalid(
            "identity_file",
            text,
            "a path from / or ~/ on, of letters, digits and - . _ @ + between the slashes",
        ),
    }
}

fn is_path_name(name: &str) -> bool {
    name.chars().all(|character| character.is_alphanumeric() || "-._@+".contains(character))
}

/// `none`, or jump hosts with commas between them.
pub(crate) fn proxy_jump(text: &str) -> Result<()> {
    match text == "none" || text.split(',').all(is_jump) {
        true => Ok(()),
        false => invalid("proxy_jump", text, "none, or [user@]host[:port] with commas in between"),
    }
}

fn is_jump(jump: &str) -> bool {
    let (account, rest) = match jump.rsplit_once('@') {
        Some((account, rest)) => (Some(account), rest),
        None => (None, jump),
    };
    let (host, port) = match rest.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, "")) => (address, None),
        Some((address, port)) => match port.strip_prefix(':') {
            Some(port) => (address, Some(port)),
            None => return false,
        },
        None => match rest.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (rest, None),
        },
    };
    let is_host = if rest.starts_with('[') { host.parse::<Ipv6Addr>().is_ok() } else { is_word(host, "-._") };
    let is_port = |port: &str| {
        port.bytes().all(|byte| byte.is_ascii_digit()) && port.parse::<u16>().is_ok_and(|port| port > 0)
    };
    is_host && account.is_none_or(|account| is_word(account, "-._+")) && port.is_none_or(is_port)
}

/// Whether the text consists of letters, digits and these characters, and isn't an option.
fn is_word(text: &str, also: &str) -> bool {
    let is_letter = |character: char| character.is_ascii_alphanumeric() || also.contains(character);
    !text.is_empty() && text.len() <= LONGEST && !text.starts_with('-') && text.chars().all(is_letter)
}

fn invalid(argument: &str, text: &str, expected: &str) -> Result<()> {
    let message = format!("{argument} is {:?}: expected {expected}", excerpt(text, 100));
    Err(Problem::validation("INVALID_VALUE", message))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    type Check = fn(&str) -> Result<()>;

    #[test]
    fn values_are_plain_words() {
        let table: [(Check, &[&str], &[&str]); 5] = [
            (
                alias,
                &["web1", "web-1.example.org", "db_2", "::1", "10.0.0.1", "x"],
                &[
                    "",
                    "-x",
                    "web*",
                    "!web",
                    "web?",
                    "a b",
                    "a,b",
                    "localhost",
                    "LocalHost",
                    "a#b",
                    "a\"",
                    "wéb",
                    "a%h",
                ],
            ),
            (
                hostname,
                &["web1.example.org", "10.0.0.1", "2001:db8::1", "web_1"],
                &[
                    "",
                    "-oProxyCommand=x",
                    "%h.example.org",
                    "a b",
                    "u@h",
                    "h:22",
                    "a\nPort 1",
                    "${X}",
                    "'a'",
                    "[::1]",
                    "fe80::1%eth0",
                ],
            ),
            (
                user,
                &["root", "ada.lovelace", "ada@corp.example", "_apt"],
                &["", "-l", "a b", "%u", "a\"", "a\\b", "$USER", "a\r", "a=b"],
            ),
            (
                identity_file,
                &["~/.ssh/id_ed25519", "/etc/keys/deploy+1@x", "~/ä/key"],
                &[
                    "", "none", "id_rsa", "~", "~/", "/", "~ada/x", "~/a b", "~/%h", "~/$X", "~/../x",
                    "/a//b", "\"/a\"", "/a#b", "/a\nb", "/a\\b",
                ],
            ),
            (
                proxy_jump,
                &["none", "bastion", "ada@bastion:2222", "a,b@c,d:22", "[::1]:22", "ada@[2001:db8::1]"],
                &[
                    "", ",", "a,", "-a", "a:0", "a:x", "a:65536", "@a", "ssh://a", "a b", "none,a b", "[::1",
                    "[a]:22", "::1", "%h", "a@-b",
                ],
            ),
        ];
        for (check, right, wrong) in table {
            right.iter().for_each(|text| assert!(check(text).is_ok(), "{text}"));
            wrong
                .iter()
                .for_each(|text| assert_eq!(check(text).unwrap_err().code, "INVALID_VALUE", "{text}"));
        }
    }
}
