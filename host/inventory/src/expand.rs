//! The hosts that a caller's `host` names: hosts, groups, patterns of names, or `all`, one or several in a list or
//! with commas between. If a word names a host that may not be named, the whole is refused.

use std::collections::HashMap;

use super::collected::ALL;
use super::{Allowed, Glob, Inventory, LOCALHOST};
use host_base::problem::{Category, Problem};
use host_openssh::Alias;
use host_text::suggestion;
use host_text::visible::excerpt;

/// The most hosts of one call, and the most words that name them.
const MOST: usize = 1_000;
/// The most names that are shown where there may be many.
const SHOWN: usize = 5;

/// A host that a call is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SelectedHost {
    /// The host's name.
    pub name: String,
    /// Whether the call named the host itself, and not only a group, a pattern or `all`.
    pub explicit: bool,
}

/// A word of `host`, by its kind.
enum HostWord<'a> {
    /// Every host of the inventory, and of the configuration's list.
    All,
    Pattern(Glob),
    Group(Vec<&'a str>),
    Host,
}

impl Inventory {
    /// Returns the named hosts, each once, in the order in which they are named. Within a word they have the
    /// inventory's order.
    ///
    /// A pattern is matched against hosts and groups of the inventory, aliases of `~/.ssh/config`, and the
    /// configuration's list. Hosts that only known_hosts has must be named one by one.
    pub fn expand(&self, said: &[String], allowed: &Allowed) -> Result<Vec<SelectedHost>, Problem> {
        let words: Vec<&str> = said.iter().flat_map(|said| said.split(',')).map(str::trim).collect();
        if words.is_empty() || words.len() > MOST {
            let message = format!("expected 1 to {MOST} hosts in `host`, found {}", words.len());
            return Err(Problem::new("INVALID_ARGUMENTS", Category::Validation, message).remedy(EXPECTED));
        }
        let mut hosts: Vec<SelectedHost> = Vec::new();
        let mut places: HashMap<&str, usize> = HashMap::new();
        for word in words {
            let kind = self.word(word, allowed)?;
            let explicit = matches!(kind, HostWord::Host);
            for name in self.named(word, kind, allowed)? {
                let at = *places.entry(name).or_insert(hosts.len());
                match hosts.get_mut(at) {
                    Some(named) => named.explicit |= explicit,
                    None => hosts.push(SelectedHost { name: name.to_owned(), explicit }),
                }
            }
            if hosts.len() > MOST {
                let message = format!("{:?} makes it more than {MOST} hosts in one call", excerpt(word, 60));
                return Err(Problem::new("TOO_MANY_HOSTS", Category::Validation, message)
                    .remedy(format!("Name at most {MOST} hosts: a smaller group, or a pattern")));
            }
        }
        Ok(hosts)
    }

    /// Returns what kind of word it is.
    fn word(&self, word: &str, allowed: &Allowed) -> Result<HostWord<'_>, Problem> {
        let invalid = |why: String| {
            Problem::new("INVALID_ARGUMENTS", Category::Validation, format!("`host`: {why}")).remedy(EXPECTED)
        };
        if word == ALL || word == "*" {
            return Ok(HostWord::All);
        }
        if Glob::is_one(word) {
            return Glob::new(word).map(HostWord::Pattern).map_err(invalid);
        }
        word.parse::<Alias>().map_err(|_| {
            invalid(format!(
                "{:?} is not the name of a host or a group: expected letters, digits, `-`, `.`, `_` and `:`, not `-` \
                 first",
                excerpt(word, 60)
            ))
        })?;
        let Some(members) = self.members(word) else { return Ok(HostWord::Host) };
        match members[..] == [word] {
            true => Ok(HostWord::Host),
            // A group never has the name of an inventory's host, but it may have the name of another host.
            false if !allowed.is_listed() && allowed.names().any(|name| name == word) => {
                let message = format!(
                    "{word} is a group of the inventory, and a host that ~/.ssh/config or known_hosts knows"
                );
                Err(Problem::new("HOST_AMBIGUOUS", Category::Validation, message)
                    .remedy(format!("Name hosts of the group one by one: {}", some(&members)))
                    .remedy("Or have an operator rename the group, where it comes from, and start the server anew"))
            }
            false => Ok(HostWord::Group(members)),
        }
    }

    /// Returns the hosts that a word names. All of them are allowed.
    fn named<'a>(
        &'a self,
        word: &'a str,
        kind: HostWord<'a>,
        allowed: &'a Allowed,
    ) -> Result<Vec<&'a str>, Problem> {
        let may = |name: &&str| allowed.allows(name) && !self.left_out.contains_key(*name);
        let entries = || self.entries.iter().map(|entry| entry.name.as_str()).filter(may);
        match kind {
            HostWord::Host => self.host(word, allowed).map(|()| vec![word]),
            HostWord::Group(members) => match members.iter().find(|member| !allowed.allows(member)) {
                // A part of a group would be taken for the whole.
                Some(member) => Err(self.denied(member, &format!("{member}, which is in the group {word},"))),
                None if members.is_empty() => Err(unknown(format!("the group {word} has no hosts"))),
                None => Ok(members),
            },
            HostWord::All => {
                let listed = allowed.configured().filter(may).filter(|name| self.entry(name).is_none());
                let all: Vec<&str> = entries().chain(listed).collect();
                let why = "`all` is every host of the inventory, and there is none that may be named";
                match all.is_empty() {
                    false => Ok(all),
                    true => Err(unknown(why.to_owned()).remedy(
                        "An operator can list hosts in `hosts` of the configuration, or inventories in `inventory`, and \
                         start the server anew",
                    )),
                }
            }
            HostWord::Pattern(glob) => {
                let fits = |name: &&str| glob.matches(name);
                let written_names = allowed.written_names().filter(may).filter(fits);
                let groups = self.groups().filter(|(name, _)| glob.matches(name));
                let members = groups.flat_map(|(_, members)| members).filter(may);
                let found: Vec<&str> = entries().filter(fits).chain(written_names).chain(members).collect();
                match found.is_empty() {
                    false => Ok(found),
                    true => Err(self.nothing_matches(word, &glob, allowed)),
                }
            }
        }
    }

    /// Says whether the host is refused only because it wasn't known when the server started.
    pub fn is_unknown_host(&self, name: &str, allowed: &Allowed) -> bool {
        let is_known = self.left_out.contains_key(name) || self.entry(name).is_some() || name == LOCALHOST;
        !is_known && !allowed.is_listed() && !allowed.allows(name) && name.parse::<Alias>().is_ok()
    }

    /// Checks that the host may be named.
    fn host(&self, name: &str, allowed: &Allowed) -> Result<(), Problem> {
        // Even if another source knows the host, it would be reached in another way than the inventory says.
        if let Some(reason) = self.left_out.get(name) {
            let message = format!("{name} is in the inventory, and can't be reached as that says: {reason}");
            return Err(unknown(message));
        }
        if allowed.allows(name) {
            return Ok(());
        }
        if allowed.is_listed() || name == LOCALHOST || self.entry(name).is_some() {
            return Err(self.with_close(name, self.denied(name, name), allowed));
        }
        let problem = unknown(format!("no host and no group is called {name}"));
        Err(self.with_close(name, problem, allowed).remedy(
            "A host is known that ~/.ssh/config, known_hosts or the inventory had when the server started: an \
             operator can add it there, or to `hosts` of the configuration, and start the server anew; who connects to one whose \
             key known_hosts has by now is asked about it",
        ))
    }

    /// `what` is the host's name, or the beginning of a sentence about it.
    fn denied(&self, name: &str, what: &str) -> Problem {
        let is_local = name == LOCALHOST || self.entry(name).is_some_and(|entry| entry.is_local);
        let (message, remedy) = match is_local {
            true => (
                format!("{what} is this machine, which may not be named as a host"),
                "An operator can set ssh.local to true in the configuration and start the server anew"
                    .to_owned(),
            ),
            false => (
                format!("{what} is not among the hosts that may be named"),
                format!(
                    "An operator can add {name} to ssh.allowed_hosts in the configuration and start the server anew"
                ),
            ),
        };
        Problem::new("HOST_NOT_ALLOWED", Category::Denied, message).remedy(remedy)
    }

    fn nothing_matches(&self, word: &str, glob: &Glob, allowed: &Allowed) -> Problem {
        let shown = excerpt(word, 60);
        let denied = self.entries.iter().find(|entry| glob.matches(&entry.name));
        if let Some(entry) = denied {
            return self
                .denied(&entry.name, &format!("{}, which is all that {shown} could mean,", entry.name));
        }
        let known: Vec<&str> = allowed.names().filter(|name| glob.matches(name)).collect();
        let problem = unknown(format!("no host and no group is called like {shown}"));
        match known.is_empty() {
            true => problem.remedy(EXPECTED),
            false => problem.remedy(format!(
                "A pattern doesn't stand for hosts that only known_hosts has. Name them one by one: {}",
                some(&known)
            )),
        }
    }

    /// Adds names that may have been meant.
    fn with_close(&self, said: &str, problem: Problem, allowed: &Allowed) -> Problem {
        let groups = self.groups_by_name.keys().map(String::as_str);
        let mut close = suggestion::closest(said, allowed.names().chain(groups));
        close.dedup();
        match close.as_slice() {
            [] => problem,
            close => {
                let names = &close[..close.len().min(3)];
                problem.remedy(format!("Did you mean {}?", names.join(", ")))
            }
        }
    }
}

const EXPECTED: &str = "Name a host or a group of the inventory, a host that ~/.ssh/config or known_hosts knows, a \
                        pattern as web*, or all; several in a list or with commas between";

fn unknown(message: String) -> Problem {
    Problem::new("HOST_UNKNOWN", Category::NotFound, message)
}

fn some(names: &[&str]) -> String {
    let shown = names[..names.len().min(SHOWN)].join(", ");
    match names.len().saturating_sub(SHOWN) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

#[cfg(test)]
mod tests;
