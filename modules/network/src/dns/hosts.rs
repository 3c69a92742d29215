//! `/etc/hosts` and `/etc/nsswitch.conf`, see hosts(5) and nsswitch.conf(5).

use linux_sysadmin_sdk::prelude::*;

pub(crate) const HOSTS: &str = "/etc/hosts";
pub(crate) const NSSWITCH: &str = "/etc/nsswitch.conf";

/// A line of the file that has the name.
#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct Entry {
    pub(crate) line: usize,
    pub(crate) address: String,
    pub(crate) names: Vec<String>,
}

/// The lines that have a name. Capitals don't matter, and a dot at its end neither.
pub(crate) fn entries(hosts: &str, name: &str) -> Vec<Entry> {
    let name = name.trim_end_matches('.');
    let entry = |(number, line): (usize, &str)| {
        let text = line.split('#').next().unwrap_or_default();
        let mut words = text.split_whitespace();
        let address = words.next()?.to_owned();
        let names: Vec<String> = words.map(str::to_owned).collect();
        let is_there = names.iter().any(|own| own.trim_end_matches('.').eq_ignore_ascii_case(name));
        is_there.then_some(Entry { line: number + 1, address, names })
    };
    hosts.lines().enumerate().filter_map(entry).collect()
}

/// The sources of host names, in the order in which they are asked.
pub(crate) fn sources(nsswitch: &str) -> Option<String> {
    let line = nsswitch.lines().find_map(|line| line.trim_start().strip_prefix("hosts:"))?;
    let text = line.split('#').next().unwrap_or_default();
    Some(text.split_whitespace().collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_found_in_any_place_of_a_line_and_in_no_comment() {
        let hosts = "127.0.0.1 localhost\n192.0.2.7\tdb.example DB db2 # db3\n# 192.0.2.8 db\n\n::1 ip6-loopback db\n192.0.2.9";
        let found = |name: &str| {
            entries(hosts, name).into_iter().map(|entry| (entry.line, entry.address)).collect::<Vec<_>>()
        };
        assert_eq!(found("db"), [(2, "192.0.2.7".to_owned()), (5, "::1".to_owned())]);
        assert_eq!(found("DB.example."), [(2, "192.0.2.7".to_owned())]);
        for name in ["db3", "192.0.2.7", "exam", ""] {
            assert_eq!(found(name), [], "{name}");
        }
    }

    #[test]
    fn the_sources_stand_in_one_line() {
        assert_eq!(
            sources("passwd: files\n hosts:\tfiles  mdns4_minimal [NOTFOUND=return] dns # x\n").as_deref(),
            Some("files mdns4_minimal [NOTFOUND=return] dns")
        );
        assert_eq!(sources("# hosts: files\n"), None);
    }
}
