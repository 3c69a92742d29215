//! Checks names of hosts and accounts. They come from a model or a file, and go to programs and into files.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::invalid;
use host_base::problem::Problem;
use host_text::visible::excerpt;

/// The longest name of DNS.
const LONGEST: usize = 255;

/// Checks that a word can be an alias of ssh_config(5), and isn't an option or anything that a shell reads.
pub(super) fn check_alias(alias: &str) -> Result<(), Problem> {
    check_host("a host", alias)
}

/// Checks that a text is a name or an address and nothing else.
pub fn check_host(what: &str, name: &str) -> Result<(), Problem> {
    let expected = |why: &str| {
        Err(invalid(format!(
            "expected {what} as an alias of ~/.ssh/config, a name or an address, found {:?}: {why}",
            excerpt(name, 100)
        )))
    };
    let of_names = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    if name.is_empty() {
        expected("it is empty")
    } else if name.len() > LONGEST {
        expected("it is longer than 255 characters")
    } else if name.starts_with('-') {
        expected("it begins with -, as an option does")
    } else if is_ipv6(name) {
        Ok(())
    } else if name.contains("://") {
        expected("it is no URI; user and port are given apart from it")
    } else if name.contains('@') {
        expected("the user is given apart from it")
    } else if name.starts_with('[') {
        expected("an IPv6 address has no brackets, and the port is given apart from it")
    } else if name.contains(':') {
        expected("the port is given apart from it")
    } else if !name.chars().all(of_names) {
        expected("only letters, digits, dots, hyphens and underscores can stand in one")
    } else if is_dotted(name) && name.parse::<Ipv4Addr>().is_err() {
        expected("it is no whole IPv4 address")
    } else {
        Ok(())
    }
}

/// Says whether a name consists of numbers and dots. Unless it is an address of four numbers, some programs take it
/// for a shorter address and others for a name.
fn is_dotted(name: &str) -> bool {
    name.contains('.') && name.chars().all(|c| c.is_ascii_digit() || c == '.')
}

/// Says whether a text is an IPv6 address, perhaps with its zone, as in `fe80::1%eth0`.
fn is_ipv6(text: &str) -> bool {
    let (address, zone) = text.split_once('%').map_or((text, None), |(address, zone)| (address, Some(zone)));
    let of_zones = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    address.parse::<Ipv6Addr>().is_ok()
        && zone.is_none_or(|zone| !zone.is_empty() && zone.chars().all(of_zones))
}

/// Checks that a text can be an account's name there. A domain's may have a backslash or an @.
pub fn check_user(name: &str) -> Result<(), Problem> {
    let of_names = |c: char| c.is_alphanumeric() || matches!(c, '.' | '-' | '_' | '@' | '\\' | '+');
    if name.is_empty() || name.len() > LONGEST || name.starts_with('-') || !name.chars().all(of_names) {
        return Err(invalid(format!(
            "expected an account's name, of letters, digits and . - _ @ + \\ and not beginning with -, found {:?}",
            excerpt(name, 100)
        )));
    }
    Ok(())
}

/// Parses a port from 1 to 65535, of digits only.
pub(super) fn port(text: &str) -> Option<u16> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?.filter(|port| *port != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_alias_is_a_name_or_an_address() {
        for alias in [
            "web",
            "web-1",
            "web_1",
            "Web.Example.COM",
            "10.0.0.1",
            "::1",
            "fe80::1%eth0",
            "2001:db8::10",
            "x",
            "42",
            "1web",
            "example.com.",
            "web-",
            "10.0.0.1.example.com",
        ] {
            assert!(check_alias(alias).is_ok(), "{alias}");
        }
    }

    #[test]
    fn an_alias_is_no_option_and_nothing_of_a_shells() {
        for (alias, why) in [
            ("", "empty"),
            ("-oProxyCommand=x", "option"),
            ("-", "option"),
            ("--", "option"),
            ("web db", "only letters"),
            ("web\n", "only letters"),
            ("web\tdb", "only letters"),
            ("web;id", "only letters"),
            ("$(id)", "only letters"),
            ("`id`", "only letters"),
            ("web|id", "only letters"),
            ("web&", "only letters"),
            ("web>x", "only letters"),
            ("web'", "only letters"),
            ("web\"", "only letters"),
            ("web\\", "only letters"),
            ("web*", "only letters"),
            ("web,db", "only letters"),
            ("../web", "only letters"),
            ("web/1", "only letters"),
            ("web%h", "only letters"),
            ("wéb", "only letters"),
            ("web\u{202e}", "only letters"),
            ("root@web", "the user is given apart"),
            ("ssh://web", "no URI"),
            ("ssh://root@web:22", "no URI"),
            ("web:22", "the port is given apart"),
            ("[::1]", "brackets"),
            ("[::1]:22", "brackets"),
            ("::1%", "the port is given apart"),
            ("::1%$(id)", "the port is given apart"),
            ("10.0.0", "IPv4"),
            ("10.0.0.256", "IPv4"),
            ("..", "IPv4"),
            (&"a".repeat(256), "longer"),
        ] {
            let problem = check_alias(alias).unwrap_err();
            assert_eq!(problem.code, "SSH_CONFIG_INVALID", "{alias}");
            assert!(problem.message.contains(why), "{alias}: {}", problem.message);
        }
    }

    #[test]
    fn a_user_is_no_option_and_nothing_of_a_shells() {
        for user in ["root", "ada.lovelace", "web-data", "_apt", "CORP\\ada", "ada@corp.example", "üser"] {
            assert!(check_user(user).is_ok(), "{user}");
        }
        for user in ["", "-lroot", "a b", "a;b", "$(id)", "a'b", "a\nb", "a%hb", "a/b", "a:b", "a\u{200b}b"] {
            assert_eq!(check_user(user).unwrap_err().code, "SSH_CONFIG_INVALID", "{user}");
        }
    }

    #[test]
    fn a_port_is_a_number_that_one_can_connect_to() {
        for (text, expected) in [
            ("22", Some(22)),
            ("65535", Some(65535)),
            ("022", Some(22)),
            ("0", None),
            ("65536", None),
            ("+22", None),
            ("-1", None),
            ("", None),
            ("ssh", None),
        ] {
            assert_eq!(port(text), expected, "{text}");
        }
    }
}
