//! `/etc/resolv.conf`, see resolv.conf(5).

/// The file that the resolver of the C library reads.
pub(crate) const RESOLV_CONF: &str = "/etc/resolv.conf";

/// The C library takes so many servers, and leaves out the others (MAXNS).
pub(crate) const MOST_SERVERS: usize = 3;

/// The settings in the file.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct ResolvConf {
    pub(crate) servers: Vec<String>,
    pub(crate) search: Vec<String>,
    pub(crate) options: Vec<String>,
}

/// Reads the file as the C library does: a keyword begins its line, and the last `search` or `domain` counts.
pub(crate) fn parse(text: &str) -> ResolvConf {
    let mut found = ResolvConf::default();
    for line in text.lines() {
        let Some((keyword, rest)) = line.split_once([' ', '\t']) else { continue };
        let mut words = rest.split_whitespace().map(str::to_owned);
        match keyword {
            "nameserver" => found.servers.extend(words.next()),
            "search" => found.search = words.collect(),
            "domain" => found.search = words.take(1).collect(),
            "options" => found.options.extend(words),
            _ => {}
        }
    }
    found
}

/// The text with these servers and domains in place of those that it has. Everything else stays.
pub(crate) fn with(text: &str, servers: &[String], search: &[String]) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let servers = servers.iter().map(|server| format!("nameserver {server}")).collect();
    let search = if search.is_empty() { Vec::new() } else { vec![format!("search {}", search.join(" "))] };
    for (keywords, new) in [(["search", "domain"], search), (["nameserver", "nameserver"], servers)] {
        let is_old =
            |line: &String| line.split([' ', '\t']).next().is_some_and(|word| keywords.contains(&word));
        let at = lines.iter().position(is_old).unwrap_or(lines.len());
        lines.retain(|line| !is_old(line));
        let at = at.min(lines.len());
        lines.splice(at..at, new);
    }
    lines.iter().map(|line| format!("{line}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_keeps_what_it_is_not_about() {
        let text =
            "# ours\ndomain old.example\noptions edns0\nnameserver 192.0.2.1\n; second\nnameserver 192.0.2.2";
        let servers = ["192.0.2.53".to_owned(), "2001:db8::53".to_owned()];
        let expected = "# ours\nsearch a.example\noptions edns0\nnameserver 192.0.2.53\nnameserver 2001:db8::53\n; second\n";
        assert_eq!(with(text, &servers, &["a.example".to_owned()]), expected);
        assert_eq!(with("", &servers[..1], &[]), "nameserver 192.0.2.53\n");
        assert_eq!(with("search a\nnameserver 192.0.2.1\n", &[], &[]), "");
        let found = parse(&with(text, &servers, &["a.example".to_owned()]));
        assert_eq!((found.servers, found.options), (servers.to_vec(), vec!["edns0".to_owned()]));
    }

    #[test]
    fn the_file_is_read_as_the_library_reads_it() {
        let text = "; x\n# nameserver 192.0.2.1\nnameserver\t192.0.2.53  # first\n nameserver 192.0.2.54\nnameserver fe80::1%eth0\nnameserver\n\
                    domain old.example\nsearch a.example b.example\noptions edns0 trust-ad\noptions ndots:2\nnameservers 192.0.2.9\n";
        let found = parse(text);
        assert_eq!(found.servers, ["192.0.2.53", "fe80::1%eth0"]);
        assert_eq!(found.search, ["a.example", "b.example"]);
        assert_eq!(found.options, ["edns0", "trust-ad", "ndots:2"]);
        assert_eq!(parse("search a b\ndomain c d\n").search, ["c"]);
        assert_eq!(parse(""), ResolvConf::default());
    }
}
