//! Values of a jail's options: only what fail2ban reads as that one value. A value has no line end, and names other options
//! only in the form `%(name)s`.

use std::net::IpAddr;

use linux_sysadmin_sdk::{prelude::*, text::excerpt};

/// Names that are no jails: sections with a meaning of their own.
const RESERVED: [&str; 4] = ["DEFAULT", "INCLUDES", "KNOWN", "Definition"];

const SHOWN: usize = 60;

fn invalid(name: &str, value: &str, expected: &str) -> Problem {
    let message = format!("{name} is {:?}: expected {expected}", excerpt(value, SHOWN));
    Problem::validation("INVALID_VALUE", message)
}

fn is_word(text: &str, more: &[u8]) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || more.contains(&byte))
}

/// Refuses what is no name of a jail.
pub(super) fn check_jail(name: &str) -> Result<()> {
    let is_name = name.len() <= 64
        && is_word(name, b"_.-")
        && !name.starts_with(['-', '.'])
        && !RESERVED.iter().any(|reserved| reserved.eq_ignore_ascii_case(name));
    let expected = "a section's name of letters, digits, `_`, `.` and `-`";
    if is_name { Ok(()) } else { Err(invalid("jail", name, expected)) }
}

/// A name or number of a port, or several with commas, or ranges with a colon.
pub(super) fn port(text: &str) -> Result<String> {
    let is_one = |part: &str| {
        let ends: Vec<&str> = part.split(':').collect();
        let is_port = |end: &&str| match end.parse::<u32>() {
            Ok(number) => number <= 65_535,
            Err(_) => is_word(end, b"_-") && end.starts_with(|first: char| first.is_ascii_alphabetic()),
        };
        ends.len() <= 2 && ends.iter().all(is_port)
    };
    let parts: Vec<&str> = text.split(',').map(str::trim).collect();
    match parts.iter().all(|part| is_one(part)) {
        true => Ok(parts.join(",")),
        false => Err(invalid(
            "port",
            text,
            "a port, a service's name, a range `1000:2000`, or several with commas",
        )),
    }
}

/// The name of a filter, perhaps with options: `sshd[mode=aggressive]`.
pub(super) fn filter(text: &str) -> Result<String> {
    let (name, options) = match text.strip_suffix(']').and_then(|text| text.split_once('[')) {
        Some((name, options)) => (name, options),
        None => (text, ""),
    };
    let is_plain = |options: &str| {
        options.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_=,. \"-".contains(&byte))
    };
    match is_word(name, b"_.-") && !name.starts_with(['.', '-']) && is_plain(options) {
        true => Ok(text.to_owned()),
        false => {
            Err(invalid("filter", text, "a name of /etc/fail2ban/filter.d, perhaps with [option=value]"))
        }
    }
}

/// An absolute path, perhaps with wildcards, or `%(name)s`.
pub(super) fn logpath(text: &str) -> Result<String> {
    let is_option = text
        .strip_prefix("%(")
        .and_then(|text| text.strip_suffix(")s"))
        .is_some_and(|name| is_word(name, b"_-"));
    let is_path = text.starts_with('/')
        && text.len() <= 1024
        && !text.split('/').any(|part| part == "..")
        && text.chars().all(|sign| !sign.is_control() && !sign.is_whitespace() && !"%;#<>\\".contains(sign));
    match is_option || is_path {
        true => Ok(text.to_owned()),
        false => {
            Err(invalid("logpath", text, "an absolute path without blanks, wildcards allowed, or %(name)s"))
        }
    }
}

/// A time: seconds, or numbers with units. Only a ban may last for ever.
pub(super) fn time(name: &str, text: &str, may_be_endless: bool) -> Result<String> {
    let is_part = |part: &str| {
        let unit = part.trim_start_matches(|sign: char| sign.is_ascii_digit());
        let number = &part[..part.len() - unit.len()];
        let units =
            ["", "s", "m", "h", "d", "w", "mo", "y", "sec", "min", "hour", "day", "week", "month", "year"];
        number.len() <= 9 && number.parse::<u32>().is_ok_and(|number| number > 0) && units.contains(&unit)
    };
    let mut parts = text.split(' ').peekable();
    let is_time = text.len() <= 40 && parts.peek().is_some() && parts.all(is_part);
    match is_time || (may_be_endless && text == "-1") {
        true => Ok(text.to_owned()),
        false => {
            let expected = if may_be_endless {
                "a time such as 10m, 1h, 1d 12h, or -1 for ever"
            } else {
                "a time such as 10m, 1h, 1d 12h"
            };
            Err(invalid(name, text, expected))
        }
    }
}

/// An address in the form in which fail2ban shows it, or a network.
pub(super) fn address(name: &str, text: &str, may_be_network: bool) -> Result<String> {
    let (address, length) =
        text.split_once('/').map_or((text, None), |(address, length)| (address, Some(length)));
    let most = match address.parse::<IpAddr>() {
        Ok(IpAddr::V4(_)) => Some(32),
        Ok(IpAddr::V6(_)) => Some(128),
        Err(_) => None,
    };
    let is_length =
        |length: &str| length.parse::<u8>().is_ok_and(|length| most.is_some_and(|most| length <= most));
    match most.is_some() && length.is_none_or(|length| may_be_network && is_length(length)) {
        true => Ok(address
            .parse::<IpAddr>()
            .ok()
            .filter(|_| length.is_none())
            .map_or_else(|| text.to_owned(), |address| address.to_string())),
        false => {
            let expected = if may_be_network {
                "an IP address or a network such as 192.0.2.0/24"
            } else {
                "an IP address"
            };
            Err(invalid(name, text, expected))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_one_value_and_nothing_else() {
        let jail = |text: &str| check_jail(text).map(|()| text.to_owned());
        let bantime = |text: &str| time("bantime", text, true);
        let findtime = |text: &str| time("findtime", text, false);
        let ignored = |text: &str| address("ignoreip", text, true);
        let one = |text: &str| address("address", text, false);
        type Check<'a> = &'a dyn Fn(&str) -> Result<String>;
        let table: [(Check<'_>, &[&str], &[&str]); 8] = [
            (
                &jail,
                &["sshd", "nginx-http-auth", "a.b_c"],
                &["", "-d", "DEFAULT", "default", "a b", "a]\n[x", "a/b"],
            ),
            (
                &port,
                &["22", "ssh", "http,https", "1000:2000", "0:65535"],
                &["", "65536", "ssh;id", "1:2:3", "a b", "-1"],
            ),
            (
                &filter,
                &["sshd", "sshd[mode=aggressive]"],
                &["", "../x", "a\nb", "sshd[mode=%(x)s]", "a[", "x y"],
            ),
            (
                &logpath,
                &["/var/log/auth.log", "/var/log/nginx/*error.log", "%(sshd_log)s"],
                &["", "auth.log", "/var/../etc/shadow", "/a b", "/a\n[x]", "/a;b", "%(a)s /b"],
            ),
            (
                &bantime,
                &["600", "10m", "1d 12h", "-1"],
                &["", "0", "-2", "1x", "1h\n", "h", "1h  2m", "9999999999"],
            ),
            (&findtime, &["10m"], &["-1", "0"]),
            (
                &ignored,
                &["192.0.2.1", "192.0.2.0/24", "2001:db8::/32"],
                &["", "host", "192.0.2.0/33", "192.0.2.1 x"],
            ),
            (&one, &["192.0.2.1", "::1"], &["192.0.2.0/24", "x"]),
        ];
        for (number, (check, good, bad)) in table.into_iter().enumerate() {
            for text in good {
                assert_eq!(check(text).unwrap(), *text, "{number}");
            }
            for text in bad {
                assert_eq!(check(text).unwrap_err().code, "INVALID_VALUE", "{number}: {text:?}");
            }
        }
    }
}
