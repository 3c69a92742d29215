//! Options of keys (sshd(8)): those with which a key may be added, and their form in answers.

use linux_sysadmin_sdk::{prelude::*, text::excerpt};

use linux_sysadmin_sdk::authorized_keys::name;

/// Options that only restrict a key, or limit its time.
const HARMLESS: [&str; 7] = [
    "restrict",
    "no-agent-forwarding",
    "no-port-forwarding",
    "no-pty",
    "no-user-rc",
    "no-x11-forwarding",
    "verify-required",
];

/// Options with which no key is added, and the reason.
const REFUSED: [(&str, &str); 12] = [
    ("command", "sets a command line that the account runs at each login"),
    ("environment", "sets variables of what the account runs"),
    ("tunnel", "opens a tunnel into the network"),
    ("permitopen", "opens ports to other machines"),
    ("permitlisten", "opens ports to other machines"),
    ("port-forwarding", "gives back what restrict takes"),
    ("agent-forwarding", "gives back what restrict takes"),
    ("x11-forwarding", "gives back what restrict takes"),
    ("pty", "gives back what restrict takes"),
    ("user-rc", "gives back what restrict takes"),
    ("cert-authority", "lets in whoever the key's owner signs a certificate for"),
    ("no-touch-required", "takes a security key's signature without its owner's touch"),
];

/// Refuses options that do more than restrict the key.
pub(crate) fn must_be_harmless(options: &[String]) -> Result<()> {
    options.iter().try_for_each(|option| must_be_harmless_one(option))
}

fn must_be_harmless_one(option: &str) -> Result<()> {
    let lower = name(option).to_ascii_lowercase();
    let invalid = |why: String| {
        let expected = format!("expected of {}, from=\"…\", expiry-time=\"…\"", HARMLESS.join(", "));
        Err(Problem::validation(
            "INVALID_OPTION",
            format!("the option {:?} {why}: {expected}", shown(option)),
        ))
    };
    if HARMLESS.contains(&option.to_ascii_lowercase().as_str()) {
        return Ok(());
    }
    let value = option.split_once('=').and_then(|(_, value)| value.strip_prefix('"')?.strip_suffix('"'));
    match (lower.as_str(), value) {
        ("from", Some(value)) if is_from(value) => Ok(()),
        ("from", _) => {
            invalid("takes names and addresses of hosts in quotes, with commas in between".to_owned())
        }
        ("expiry-time", Some(value)) if is_time(value) => Ok(()),
        ("expiry-time", _) => invalid("takes YYYYMMDD, YYYYMMDDHHMM or YYYYMMDDHHMMSS in quotes".to_owned()),
        _ => match REFUSED.iter().find(|(name, _)| *name == lower) {
            Some((_, why)) => invalid(why.to_string()),
            None => invalid("isn't known to be harmless".to_owned()),
        },
    }
}

/// Whether the value has patterns of hosts, negated or not, and networks only.
fn is_from(value: &str) -> bool {
    !value.is_empty()
        && value.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".:-_*?!,/".contains(&byte))
}

fn is_time(value: &str) -> bool {
    let digits = value.strip_suffix('Z').unwrap_or(value);
    [8, 12, 14].contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// The option as an answer shows it, without the value of a variable, which may be a secret.
pub(crate) fn shown(option: &str) -> String {
    const MOST: usize = 200;
    let lower = name(option).to_ascii_lowercase();
    if lower == "environment" {
        let variable = option.split('"').nth(1).and_then(|text| text.split('=').next()).unwrap_or_default();
        return format!("environment=\"{variable}=…\"");
    }
    excerpt(option, MOST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_added_with_options_that_only_restrict_it() {
        for option in [
            "restrict",
            "no-pty",
            "no-X11-forwarding",
            "NO-PORT-FORWARDING",
            "verify-required",
            "from=\"10.0.0.0/8,*.example.org,!evil.example.org\"",
            "from=\"2001:db8::/32\"",
            "expiry-time=\"20270101\"",
            "expiry-time=\"202701011200Z\"",
        ] {
            assert!(must_be_harmless(&[option.to_owned()]).is_ok(), "{option}");
        }
        for (option, why) in [
            ("command=\"id\"", "command line"),
            ("COMMAND=\"id\"", "command line"),
            ("environment=\"PATH=/tmp\"", "variables"),
            ("tunnel=\"0\"", "tunnel"),
            ("permitopen=\"db:5432\"", "ports"),
            ("permitlisten=\"8080\"", "ports"),
            ("pty", "gives back"),
            ("cert-authority", "signs"),
            ("no-touch-required", "touch"),
            ("principals=\"root\"", "isn't known"),
            ("no-such-thing", "isn't known"),
            ("restrict=\"x\"", "isn't known"),
            ("from=10.0.0.1", "in quotes"),
            ("from=\"\"", "in quotes"),
            ("from=\"a b\"", "in quotes"),
            ("from=\"a\\\"b\"", "in quotes"),
            ("expiry-time=\"tomorrow\"", "YYYYMMDD"),
            ("expiry-time=\"2027010\"", "YYYYMMDD"),
        ] {
            let problem = must_be_harmless(&["no-pty".to_owned(), option.to_owned()]).unwrap_err();
            assert_eq!(problem.code, "INVALID_OPTION", "{option}");
            assert!(problem.message.contains(why), "{option}: {}", problem.message);
        }
    }

    #[test]
    fn a_variables_value_is_not_shown() {
        assert_eq!(shown("environment=\"TOKEN=secret\""), "environment=\"TOKEN=…\"");
        assert_eq!(shown("Environment=\"TOKEN\""), "environment=\"TOKEN=…\"");
        assert_eq!(shown("command=\"backup --all\""), "command=\"backup --all\"");
        assert!(shown(&"x".repeat(10_000)).len() < 300);
    }
}
