//! Signs in the lines that a unit wrote before it failed: paths that it couldn't use, ports, and what is short.

/// The number of paths that are looked at.
const MOST_PATHS: usize = 5;

/// Words of lines that are about a path which can't be used.
const ABOUT_PATHS: [&str; 12] = [
    "cannot access",
    "cannot open",
    "can't open",
    "could not open",
    "couldn't open",
    "denied",
    "enoent",
    "failed to open",
    "no such file",
    "not found",
    "not permitted",
    "unable to",
];

/// A sign in a line that tells the cause by itself.
pub(crate) struct Sign {
    words: &'static str,
    pub(crate) means: &'static str,
    /// The call that helps. `{service}` stands for the unit.
    pub(crate) next: &'static str,
}

const SIGNS: [Sign; 5] = [
    Sign { words: "no space left on device", means: "a file system is full", next: "disk_usage" },
    Sign {
        words: "read-only file system",
        means: "a file system, or the unit's sandbox, can only be read",
        next: "svc_show service={service}",
    },
    Sign {
        words: "too many open files",
        means: "it may not open more files",
        next: "svc_set_limits service={service} limit_nofile=<number>",
    },
    Sign {
        words: "name or service not known",
        means: "a name doesn't resolve",
        next: "net_explain target=<name>",
    },
    Sign { words: "name resolution", means: "a name doesn't resolve", next: "net_explain target=<name>" },
];

/// The signs in a line.
pub(crate) fn signs(line: &str) -> impl Iterator<Item = &'static Sign> {
    let line = line.to_lowercase();
    SIGNS.iter().filter(move |sign| line.contains(sign.words))
}

/// The paths that lines say can't be used, each with the line.
pub(crate) fn paths(lines: &[String]) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    for line in lines {
        let lower = line.to_lowercase();
        if !ABOUT_PATHS.iter().any(|words| lower.contains(words)) {
            continue;
        }
        for path in absolute(line) {
            if !found.iter().any(|(known, _)| *known == path) {
                found.push((path, line.clone()));
            }
        }
    }
    found.truncate(MOST_PATHS);
    found
}

/// The absolute paths in a line. Quotes and punctuation around them are no part of them.
fn absolute(line: &str) -> Vec<String> {
    let is_in_path = |character: char| character.is_ascii_alphanumeric() || "/._-+@%".contains(character);
    let words = line.split(|character: char| !is_in_path(character));
    words
        .map(|word| word.trim_end_matches(['.', '/']))
        .filter(|word| word.starts_with('/') && word.len() > 2 && !word.contains("//"))
        .filter(|word| !word.split('/').any(|name| name == ".." || name == "."))
        .map(str::to_owned)
        .collect()
}

/// The port that a line says is in use.
pub(crate) fn port_in_use(line: &str) -> Option<u16> {
    let is_it = line.to_lowercase().contains("address already in use");
    is_it.then(|| ports(line)).and_then(|ports| ports.first().copied())
}

/// The port of this machine that a line says nobody answers at.
pub(crate) fn port_refused(line: &str) -> Option<u16> {
    let lower = line.to_lowercase();
    let is_here = ["127.0.0.1", "localhost", "[::1]"].iter().any(|host| lower.contains(host));
    let is_it = lower.contains("connection refused") && is_here;
    is_it.then(|| ports(line)).and_then(|ports| ports.first().copied())
}

/// The numbers behind a colon, or behind the word `port`, that can be ports.
fn ports(line: &str) -> Vec<u16> {
    let starts = line.match_indices(':').map(|(at, _)| at + 1);
    let named = line.match_indices("port ").map(|(at, word)| at + word.len());
    let number = |at: usize| {
        let rest = &line[at..];
        let end = rest.find(|character: char| !character.is_ascii_digit()).unwrap_or(rest.len());
        let is_whole = !rest[end..].starts_with([':', '.']) || rest[end..].starts_with(": ");
        rest[..end].parse::<u16>().ok().filter(|port| *port > 0 && is_whole)
    };
    starts.chain(named).filter_map(number).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> Vec<String> {
        vec![text.to_owned()]
    }

    #[test]
    fn a_path_is_what_the_line_says_cannot_be_used() {
        for (text, expected) in [
            // nginx 1.22, Python 3.11, Go 1.21, Node 18, PostgreSQL 15; written by hand after their form.
            (
                "open() \"/etc/nginx/mime.types\" failed (2: No such file or directory)",
                &["/etc/nginx/mime.types"][..],
            ),
            ("PermissionError: [Errno 13] Permission denied: '/srv/app/conf.yaml'", &["/srv/app/conf.yaml"]),
            ("open /var/lib/app/db.sqlite: permission denied", &["/var/lib/app/db.sqlite"]),
            ("Error: ENOENT: no such file or directory, open '/srv/app/a.json'", &["/srv/app/a.json"]),
            (
                "FATAL:  could not open file \"/var/lib/pg/PG_VERSION\": Permission denied",
                &["/var/lib/pg/PG_VERSION"],
            ),
            ("app.service: Failed to load environment files: No such file or directory", &[]),
            ("listening on /run/app.sock", &[]),
            ("not found: ../x, //y, /", &[]),
        ] {
            let found: Vec<String> = paths(&line(text)).into_iter().map(|(path, _)| path).collect();
            assert_eq!(found, expected, "{text}");
        }
        let many: Vec<String> = (0..9).map(|number| format!("/srv/{number}: not found")).collect();
        assert_eq!(paths(&many).len(), MOST_PATHS);
    }

    #[test]
    fn a_port_is_the_one_that_the_line_is_about() {
        for (text, expected) in [
            ("bind() to 0.0.0.0:8080 failed (98: Address already in use)", Some(8080)),
            ("listen tcp :9000: bind: address already in use", Some(9000)),
            ("could not bind port 5432: Address already in use", Some(5432)),
            ("OSError: [Errno 98] Address already in use", None),
            ("bind() to 0.0.0.0:8080 failed (13: Permission denied)", None),
        ] {
            assert_eq!(port_in_use(text), expected, "{text}");
        }
        for (text, expected) in [
            ("dial tcp 127.0.0.1:5432: connect: connection refused", Some(5432)),
            (
                "connection to server at \"localhost\" (127.0.0.1), port 5432 failed: Connection refused",
                Some(5432),
            ),
            ("dial tcp 192.0.2.7:5432: connect: connection refused", None),
        ] {
            assert_eq!(port_refused(text), expected, "{text}");
        }
    }

    #[test]
    fn what_is_short_is_known_by_the_systems_own_words() {
        assert_eq!(signs("write: No space left on device").count(), 1);
        assert_eq!(signs("accept4() failed (24: Too many open files)").count(), 1);
        assert_eq!(signs("all is well").count(), 0);
    }
}
