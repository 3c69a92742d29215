//! Names and addresses of hosts, as callers give them.

use linux_sysadmin_sdk::{prelude::*, text::excerpt};

/// The longest name in bytes, see RFC 1035.
const LONGEST: usize = 253;

/// The longest part of a name.
const LONGEST_LABEL: usize = 63;

/// The name without a dot at its end. Underscores are allowed, which names of services have.
///
/// Problems: `INVALID_NAME` for what no name can be, such as an option, a URL or a number that programs read as an address.
pub(crate) fn check(name: &str) -> Result<&str> {
    let bare = name.trim();
    let bare = bare.strip_suffix('.').unwrap_or(bare);
    let is_label = |label: &str| {
        (1..=LONGEST_LABEL).contains(&label.len())
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
    };
    let last = bare.rsplit('.').next().unwrap_or(bare);
    // inet_aton(3) reads 127.1 and 0x7f.1 as addresses.
    let is_number =
        last.bytes().all(|byte| byte.is_ascii_digit()) || last.starts_with("0x") || last.starts_with("0X");
    if bare.len() <= LONGEST && !is_number && bare.split('.').all(is_label) {
        return Ok(bare);
    }
    let message = format!(
        "{:?} is no host's name: expected one such as db.example.org, of letters, digits, dashes and dots (without a scheme, a port and a path)",
        excerpt(name, 80)
    );
    Err(Problem::validation("INVALID_NAME", message))
}

/// Refuses what can't be a port, with the code `INVALID_PORT`.
pub(crate) fn check_port(port: i64) -> Result<u16> {
    let checked = u16::try_from(port).ok().filter(|port| *port > 0);
    checked.ok_or_else(|| Problem::validation("INVALID_PORT", format!("port is {port}: expected 1 to 65535")))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_no_option_no_url_and_no_number() {
        for name in [
            "db",
            "db.example",
            "DB.example.",
            "_dmarc.example",
            "a-b",
            "xn--nxasmq6b",
            "1and1.example",
            "7.example",
        ] {
            assert!(check(name).is_ok(), "{name}");
        }
        assert_eq!(check(" db.example. ").unwrap(), "db.example");
        let long = "a".repeat(64);
        for name in [
            "",
            ".",
            "-db",
            "db-",
            "a..b",
            "a b",
            "http://a",
            "a/b",
            "a:80",
            "127.1",
            "0x7f.1",
            "2130706433",
            "ä.example",
            &long,
            "$(id)",
            "a\u{202e}b",
            "*",
        ] {
            let problem = check(name);
            assert!(problem.is_err_and(|problem| problem.code == "INVALID_NAME"), "{name:?}");
        }
        for port in [0, -1, 65536, i64::MAX] {
            assert_eq!(check_port(port).unwrap_err().code, "INVALID_PORT");
        }
        assert_eq!(check_port(65535).unwrap(), 65535);
    }
}
