//! The hosts that known_hosts files name, at the port of SSH. Patterns and revoked keys name none.

use std::collections::BTreeSet;

use russh::keys::ssh_key::known_hosts::{HostPatterns, Marker};

use super::line::{hashed, of_hosts};

/// The names of hosts. Some are hashed.
#[derive(Debug, Default)]
pub struct ListedHosts {
    /// The names in lower case.
    plain: BTreeSet<String>,
    hashed: Vec<(Vec<u8>, [u8; 20])>,
}

impl ListedHosts {
    /// Reads the bytes of files. A malformed line is skipped, as ssh does.
    pub fn of(files: &[Vec<u8>]) -> Self {
        let mut listed = Self::default();
        for line in files.iter().flat_map(|bytes| bytes.split(|byte| *byte == b'\n')) {
            match of_hosts(line) {
                Ok(Some((marker, hosts))) if marker != Some(Marker::Revoked) => listed.add(hosts),
                _ => {}
            }
        }
        listed
    }

    fn add(&mut self, hosts: HostPatterns) {
        match hosts {
            HostPatterns::HashedName { salt, hash } => self.hashed.push((salt, hash)),
            HostPatterns::Patterns(patterns) => {
                let is_listed =
                    |name: &str| host_ssh_syntax::matches_list(patterns.iter().map(String::as_str), name);
                // `[host]:port` is a host at a port of its own.
                let is_name = |name: &&String| !name.contains(['*', '?', '!', '[']) && is_listed(name);
                self.plain.extend(patterns.iter().filter(is_name).cloned());
            }
        }
    }

    /// Says whether the host is named, openly or by a hash.
    pub fn has(&self, name: &str) -> bool {
        let name = name.to_ascii_lowercase();
        self.plain.contains(&name) || self.hashed.iter().any(|(salt, hash)| hashed(&name, salt) == *hash)
    }

    /// Returns the names that aren't hashed, sorted.
    pub fn plain(&self) -> impl Iterator<Item = &str> {
        self.plain.iter().map(String::as_str)
    }

    /// Says whether no host is named at all.
    pub fn is_empty(&self) -> bool {
        self.plain.is_empty() && self.hashed.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIFr0nJxMpU0Vg3Xo4nHhOMVHJ2ZrYVbKXGJyPWYPlM5S";

    fn listed(lines: &str) -> ListedHosts {
        ListedHosts::of(&[lines.replace("KEY", KEY).into_bytes()])
    }

    #[test]
    fn hosts_are_named_by_plain_names_and_addresses() {
        for (line, names) in [
            ("web KEY", "web"),
            ("Web.Example.COM,10.0.0.1 KEY comment", "10.0.0.1 web.example.com"),
            ("\tweb\tKEY\r", "web"),
            ("2001:db8::1 KEY", "2001:db8::1"),
            ("@cert-authority web,*.example.com KEY", "web"),
            ("@revoked web KEY", ""),
            ("@unknown web KEY", ""),
            ("[web]:2222 KEY", ""),
            ("[web]:22 KEY", ""),
            ("web*,we?,db KEY", "db"),
            ("web,!web,db KEY", "db"),
            ("# web KEY", ""),
            ("web", ""),
            ("web ssh-ed25519", ""),
            ("", ""),
        ] {
            assert_eq!(listed(line).plain().collect::<Vec<_>>().join(" "), names, "{line}");
            assert_eq!(listed(line).is_empty(), names.is_empty(), "{line}");
        }
        let files = [b"a ssh-x AAAA\n".to_vec(), b"\xff ssh-x AAAA\nb ssh-x AAAA".to_vec()];
        assert_eq!(ListedHosts::of(&files).plain().collect::<Vec<_>>(), ["a", "b"]);
    }

    /// `ssh-keygen -H` of OpenSSH 9.2p1 made the file.
    #[test]
    fn a_hidden_name_is_found_by_who_knows_it() {
        let hidden = ListedHosts::of(&[include_bytes!("fixtures/hashed").to_vec()]);
        assert!(!hidden.is_empty());
        assert_eq!(hidden.plain().next(), None);
        assert!(hidden.has("web.example.com") && hidden.has("WEB.example.com"));
        assert!(!hidden.has("db.example.com") && !hidden.has(""));
    }
}
