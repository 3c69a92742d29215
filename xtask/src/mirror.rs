//! Finds the Debian mirror from which an image is built: the one that this machine's own apt uses.

use crate::cmd;
use std::fs;
use std::path::Path;
use std::process::Command;

/// The mirror where apt's configuration names no Debian archive for the wanted suite.
const DEFAULT_MIRROR: &str = "http://deb.debian.org/debian";
const DEFAULT_SECURITY: &str = "http://deb.debian.org/debian-security";

/// One archive of apt's configuration, as in sources.list(5).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Source {
    pub(crate) uri: String,
    pub(crate) suite: String,
    pub(crate) components: Vec<String>,
}

/// The archives from which the build of an image installs.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Mirror {
    pub(crate) uri: String,
    pub(crate) security: String,
}

impl Mirror {
    /// The sources.list of an image while it is built.
    pub(crate) fn sources_list(&self, suite: &str) -> String {
        format!("deb {} {suite} main\ndeb {} {suite}-security main\n", self.uri, self.security)
    }
}

/// The mirror for `suite`, by /etc/apt/sources.list and sources.list.d.
pub(crate) fn of_this_machine(suite: &str) -> Mirror {
    choose(&configured_sources(Path::new("/etc/apt")), suite)
}

/// The proxy that apt uses for HTTP, where it uses one.
pub(crate) fn apt_proxy() -> Option<String> {
    let text = cmd::output(Command::new("apt-config").args(["dump", "Acquire::http::Proxy"])).ok()?;
    parse_proxy(&text)
}

fn configured_sources(etc_apt: &Path) -> Vec<Source> {
    let mut files = vec![etc_apt.join("sources.list")];
    if let Ok(dir) = fs::read_dir(etc_apt.join("sources.list.d")) {
        files.extend(dir.flatten().map(|entry| entry.path()));
    }
    files[1..].sort();
    let mut sources = Vec::new();
    for file in files {
        let Ok(text) = fs::read_to_string(&file) else { continue };
        // apt itself ignores files with other endings.
        match file.extension().and_then(|ending| ending.to_str()) {
            Some("list") => sources.extend(parse_one_line(&text)),
            Some("sources") => sources.extend(parse_deb822(&text)),
            _ => {}
        }
    }
    sources
}

fn choose(sources: &[Source], suite: &str) -> Mirror {
    let find = |suite: &str| {
        sources
            .iter()
            .find(|s| s.suite == suite && s.components.iter().any(|c| c == "main") && fetchable(&s.uri))
            .map(|s| s.uri.clone())
    };
    Mirror {
        uri: find(suite).unwrap_or_else(|| DEFAULT_MIRROR.to_owned()),
        security: find(&format!("{suite}-security")).unwrap_or_else(|| DEFAULT_SECURITY.to_owned()),
    }
}

/// Whether debootstrap takes this kind of URI. It takes no `cdrom:`, `mirror+http:` and the like.
fn fetchable(uri: &str) -> bool {
    ["http://", "https://", "file:"].iter().any(|scheme| uri.starts_with(scheme))
}

fn parse_one_line(text: &str) -> Vec<Source> {
    text.lines().filter_map(parse_line).collect()
}

fn parse_line(line: &str) -> Option<Source> {
    let line = line.split('#').next().unwrap_or_default().trim();
    let mut rest = line.strip_prefix("deb")?.strip_prefix([' ', '\t'])?.trim_start();
    if rest.starts_with('[') {
        rest = rest.split_once(']')?.1.trim_start();
    }
    let mut words = rest.split_whitespace().map(str::to_owned);
    Some(Source { uri: trim_uri(&words.next()?), suite: words.next()?, components: words.collect() })
}

fn parse_deb822(text: &str) -> Vec<Source> {
    let mut stanzas: Vec<Vec<(String, String)>> = vec![Vec::new()];
    for line in text.lines() {
        let last = stanzas.len() - 1;
        if line.starts_with('#') {
            // A comment may stand between a field and its continuation.
        } else if line.trim().is_empty() {
            stanzas.push(Vec::new());
        } else if line.starts_with([' ', '\t']) {
            if let Some((_, value)) = stanzas[last].last_mut() {
                value.push(' ');
                value.push_str(line.trim());
            }
        } else if let Some((name, value)) = line.split_once(':') {
            stanzas[last].push((name.trim().to_ascii_lowercase(), value.trim().to_owned()));
        }
    }
    stanzas.iter().flat_map(|stanza| stanza_sources(stanza)).collect()
}

fn stanza_sources(stanza: &[(String, String)]) -> Vec<Source> {
    let words = |name: &str| -> Vec<String> {
        stanza
            .iter()
            .find(|(field, _)| field == name)
            .map(|(_, value)| value.split_whitespace().map(str::to_owned).collect())
            .unwrap_or_default()
    };
    // apt takes these words for off, and anything else for on.
    let off = ["no", "false", "off", "without", "disable"];
    let disabled = words("enabled").first().is_some_and(|word| off.contains(&word.to_lowercase().as_str()));
    if disabled || !words("types").iter().any(|t| t == "deb") {
        return Vec::new();
    }
    let (suites, components) = (words("suites"), words("components"));
    words("uris")
        .iter()
        .flat_map(|uri| {
            suites.iter().map(|suite| Source {
                uri: trim_uri(uri),
                suite: suite.clone(),
                components: components.clone(),
            })
        })
        .collect()
}

fn trim_uri(uri: &str) -> String {
    uri.trim_end_matches('/').to_owned()
}

fn parse_proxy(dump: &str) -> Option<String> {
    let line = dump.lines().find(|line| line.starts_with("Acquire::http::Proxy "))?;
    let value = line.split('"').nth(1)?;
    (!value.is_empty() && value != "DIRECT").then(|| value.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(uri: &str, suite: &str, components: &[&str]) -> Source {
        Source {
            uri: uri.into(),
            suite: suite.into(),
            components: components.iter().map(|c| c.to_string()).collect(),
        }
    }

    #[test]
    fn one_line_sources_are_read_as_apt_reads_them() {
        let cases = [
            ("deb http://m/debian bookworm main", Some(source("http://m/debian", "bookworm", &["main"]))),
            (
                "deb [arch=amd64 signed-by=/k.gpg] https://m/debian/ sid main contrib # why",
                Some(source("https://m/debian", "sid", &["main", "contrib"])),
            ),
            ("deb\thttp://m/x\t./", Some(source("http://m/x", "./", &[]))),
            ("deb-src http://m/debian bookworm main", None),
            ("# deb http://m/debian bookworm main", None),
            ("deb http://m/debian", None),
            ("deb [broken http://m/debian bookworm main", None),
            ("", None),
        ];
        for (line, expected) in cases {
            assert_eq!(parse_line(line), expected, "{line}");
        }
    }

    #[test]
    fn deb822_stanzas_multiply_uris_by_suites() {
        let text = "\
Types: deb deb-src
# a comment between fields
URIs: http://a/debian/
  http://b/debian
Suites: bookworm
# a comment in a continued field
 bookworm-updates
Components: main contrib
Signed-By:
 -----BEGIN PGP PUBLIC KEY BLOCK-----
 .
 abc: def

Types: deb
Enabled: no
URIs: http://off
Suites: bookworm
Components: main

Types: deb-src
URIs: http://src
Suites: bookworm
Components: main
";
        let comps = ["main", "contrib"];
        assert_eq!(
            parse_deb822(text),
            [
                source("http://a/debian", "bookworm", &comps),
                source("http://a/debian", "bookworm-updates", &comps),
                source("http://b/debian", "bookworm", &comps),
                source("http://b/debian", "bookworm-updates", &comps),
            ]
        );
    }

    #[test]
    fn the_first_fetchable_archive_of_the_suite_with_main_is_chosen() {
        let sources = [
            source("cdrom:[Debian]", "bookworm", &["main"]),
            source("http://vendor/repo", "bookworm", &["stable"]),
            source("http://a/debian", "bookworm", &["main"]),
            source("http://b/debian", "bookworm", &["main"]),
            source("http://a/sec", "bookworm-security", &["main"]),
        ];
        let mirror = choose(&sources, "bookworm");
        assert_eq!(mirror, Mirror { uri: "http://a/debian".into(), security: "http://a/sec".into() });
        assert_eq!(choose(&sources, "trixie").uri, DEFAULT_MIRROR);
    }

    #[test]
    fn a_proxy_is_taken_from_apt_config_and_direct_is_none() {
        let cases = [
            ("Acquire::http::Proxy \"http://p:3128\";\n", Some("http://p:3128")),
            (
                "Acquire::http::Proxy::host \"DIRECT\";\nAcquire::http::Proxy \"http://q\";\n",
                Some("http://q"),
            ),
            ("Acquire::http::Proxy \"DIRECT\";\n", None),
            ("Acquire::http::Proxy \"\";\n", None),
            ("", None),
        ];
        for (dump, expected) in cases {
            assert_eq!(parse_proxy(dump).as_deref(), expected, "{dump}");
        }
    }
}
