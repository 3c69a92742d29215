//! Addresses of repositories: those that a caller gives, and those that files hold, which may have passwords in them.

use crate::{Problem, Result};

/// Names of parameters whose values are secrets.
const SECRET_PARAMETERS: [&str; 8] =
    ["token", "key", "password", "passwd", "secret", "auth", "signature", "sig"];

/// The address without credentials, and whether it had some.
pub fn shown(url: &str) -> (String, bool) {
    let (plain, had_user) = match split_user(url) {
        Some((scheme, rest)) => (format!("{scheme}{rest}"), true),
        None => (url.to_owned(), false),
    };
    let Some((address, query)) = plain.split_once('?') else { return (plain, had_user) };
    let mut had_secret = false;
    let parameters: Vec<_> = query
        .split('&')
        .map(|parameter| {
            let (name, _) = parameter.split_once('=').unwrap_or((parameter, ""));
            let low = name.to_ascii_lowercase();
            if !SECRET_PARAMETERS.iter().any(|secret| low.contains(secret)) {
                return parameter.to_owned();
            }
            had_secret = true;
            format!("{name}=[redacted]")
        })
        .collect();
    (format!("{address}?{}", parameters.join("&")), had_user || had_secret)
}

/// Splits `https://user:password@host/path` into `https://` and `host/path`.
fn split_user(url: &str) -> Option<(&str, &str)> {
    let authority = url.find("://")? + 3;
    let end = url[authority..].find(['/', '?', '#']).map_or(url.len(), |at| authority + at);
    let at = url[authority..end].rfind('@')? + authority;
    Some((&url[..authority], &url[at + 1..]))
}

/// The form in which two addresses of the same place are equal.
pub fn comparable(url: &str) -> String {
    let plain = shown(url).0;
    let lower = match plain.split_once("://") {
        Some((scheme, rest)) => {
            let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            format!("{}://{}{path}", scheme.to_ascii_lowercase(), host.to_ascii_lowercase())
        }
        None => plain.replacen("file:/", "file:///", 1),
    };
    lower.trim_end_matches('/').to_owned()
}

/// The host of the address in lower case and without credentials, empty where it has none.
pub fn host(url: &str) -> String {
    let plain = comparable(url);
    let rest = plain.split_once("://").map_or("", |(_, rest)| rest);
    let host = match rest.strip_prefix('[') {
        // An address of IP version 6 has colons itself.
        Some(rest) => rest.split(']').next(),
        None => rest.split(['/', ':']).next(),
    };
    host.unwrap_or_default().to_owned()
}

/// Says whether the address is reached without TLS over a network.
pub(super) fn is_plain(url: &str) -> bool {
    let low = url.to_ascii_lowercase();
    ["http:", "ftp:", "rsync:", "mirror:", "mirror+http:", "rsh:"]
        .iter()
        .any(|scheme| low.starts_with(scheme))
}

/// Refuses what is no address of a repository.
pub(super) fn check(url: &str, auth_file: &str) -> Result<()> {
    if shown(url).1 {
        // The address isn't repeated, because it holds a password.
        let message = "the URL holds credentials, and every account can read a repository's URL";
        let problem = Problem::validation("INVALID_VALUE", message);
        return Err(problem
            .remedy(format!("Put them into {auth_file}, which only root reads, and give the URL alone")));
    }
    let Some(reason) = reason(url) else { return Ok(()) };
    let shown: String = url.chars().take(120).collect();
    let message = format!("{shown:?} is no repository's URL: {reason}");
    Err(Problem::validation("INVALID_VALUE", message))
}

fn reason(url: &str) -> Option<&'static str> {
    // dnf takes a comma for the beginning of another address.
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || "-._~:/?=&+%$()[]".contains(c);
    if url.len() > 1000 {
        return Some("it is longer than 1000 characters");
    }
    if !url.chars().all(is_allowed) {
        return Some("it has characters that no URL of a repository has");
    }
    if let Some(path) = url.strip_prefix("file://") {
        return (!path.starts_with('/') || path.contains("/..")).then_some("file:///PATH is expected");
    }
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
    let Some(rest) = rest else { return Some("https://, http:// or file:/// is expected") };
    let host = rest.split(['/', '?']).next().unwrap_or_default();
    let name = host.split_once(':').map_or(host, |(name, _)| name);
    let is_host = |c: char| c.is_ascii_alphanumeric() || "-.[]:".contains(c);
    let is_name = !name.is_empty() && !name.starts_with(['-', '.']) && host.chars().all(is_host);
    (!is_name).then_some("it names no host")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_shown_without_its_secrets() {
        for (url, expected, had) in [
            ("https://a:b@c.example/d", "https://c.example/d", true),
            ("https://token@c.example", "https://c.example", true),
            ("https://a:p@ss@c.example/", "https://c.example/", true),
            ("https://c.example/a@b/", "https://c.example/a@b/", false),
            (
                "https://c.example/?auth_token=x&arch=y",
                "https://c.example/?auth_token=[redacted]&arch=y",
                true,
            ),
            ("file:/opt/a", "file:/opt/a", false),
        ] {
            assert_eq!(shown(url), (expected.to_owned(), had), "{url}");
        }
    }

    #[test]
    fn a_url_that_a_caller_gives_is_one() {
        for good in [
            "https://a.example",
            "http://127.0.0.1:8080/x/",
            "file:///opt/a",
            "https://a/$releasever/$basearch/",
        ] {
            assert!(check(good, "F").is_ok(), "{good}");
        }
        for (bad, said) in [
            ("", "https://"),
            ("ftp://a/b", "https://"),
            ("a.example/x", "https://"),
            ("https:///x", "no host"),
            ("https://-a/x", "no host"),
            ("file://opt/a", "file:///PATH"),
            ("file:///opt/../etc", "file:///PATH"),
            ("https://a/b c", "characters"),
            ("https://a/\nTrusted: yes", "characters"),
            ("https://a/\u{202e}", "characters"),
            ("[trusted=yes] https://a/", "characters"),
            ("https://a/,http://b/", "characters"),
        ] {
            let problem = check(bad, "F").expect_err(bad);
            assert!(problem.message.contains(said), "{bad}: {}", problem.message);
        }
        let problem =
            check("https://user:hunter2@a.example/", "/etc/apt/auth.conf.d").expect_err("credentials");
        assert!(!format!("{problem:?}").contains("hunter2"));
        assert!(problem.remediation[0].contains("/etc/apt/auth.conf.d"));
    }

    #[test]
    fn the_same_place_is_known_in_other_spellings() {
        assert_eq!(comparable("HTTPS://A.example/Debian/"), comparable("https://a.example/Debian"));
        assert_eq!(comparable("file:/opt/a"), comparable("file:///opt/a/"));
        assert_ne!(comparable("https://a.example/Debian"), comparable("https://a.example/debian"));
    }
}
