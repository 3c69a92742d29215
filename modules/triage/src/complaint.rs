//! A complaint: the kinds of trouble that it is about, and the names in it.

use std::collections::BTreeSet;
use std::net::IpAddr;

use linux_sysadmin_sdk::prelude::*;

use crate::call::Form;
use crate::finding::Kind;
use crate::names;
use crate::words::{WORDS, has};

/// The longest complaint, in characters.
const LONGEST: usize = 2000;

/// The most hosts of a complaint that are looked at.
const HOSTS: usize = 2;

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Complaint {
    /// Empty where nothing is known of the trouble.
    pub(crate) kinds: BTreeSet<Kind>,
    /// The text in lower case.
    text: String,
    /// Its words in lower case, without what stands around them.
    pub(crate) words: Vec<String>,
    pub(crate) hosts: Vec<String>,
    pub(crate) addresses: Vec<IpAddr>,
    pub(crate) paths: Vec<String>,
}

impl Complaint {
    pub(crate) fn parse(text: Option<&str>) -> Result<Self> {
        let text = text.unwrap_or_default().trim();
        if text.chars().count() > LONGEST {
            let message =
                format!("the complaint is longer than {LONGEST} characters: expected a sentence or two");
            return Err(Problem::validation("INVALID_COMPLAINT", message));
        }
        if let Some(kind) = Kind::named(text) {
            return Ok(Self { kinds: [kind].into(), ..Self::default() });
        }
        if text == "unknown" {
            return Ok(Self::default());
        }
        let mut complaint = Self { text: text.to_lowercase(), ..Self::default() };
        // Lower case may be of another length, and paths keep their letters.
        for word in text.split_whitespace().map(bare).filter(|word| !word.is_empty()) {
            complaint.add(word);
        }
        let lower = &complaint.text;
        let meant = WORDS.kinds.iter().filter(|(_, words)| words.iter().any(|word| has(lower, word)));
        complaint.kinds = meant.map(|(kind, _)| *kind).collect();
        if !complaint.hosts.is_empty() {
            complaint.kinds.extend([Kind::Dns, Kind::Network]);
        }
        Ok(complaint)
    }

    fn add(&mut self, word: &str) {
        let lower = word.to_lowercase();
        if let Ok(address) = word.parse() {
            self.addresses.push(address);
        } else if word.starts_with('/') {
            if Form::Path.value(word).is_some() {
                self.paths.push(word.to_owned());
            }
        } else {
            let host = lower.rsplit("//").next().unwrap_or_default();
            let host = host.split(['/', ':', '@']).next().unwrap_or_default();
            if is_host(host) && self.hosts.len() < HOSTS && !self.hosts.iter().any(|known| known == host) {
                self.hosts.push(host.to_owned());
            }
        }
        let stem = lower.strip_suffix("'s").or_else(|| lower.strip_suffix("’s")).unwrap_or(&lower);
        self.words.push(stem.to_owned());
    }

    /// Whether the text has one of these words.
    pub(crate) fn says(&self, words: &[impl AsRef<str>]) -> bool {
        words.iter().any(|word| has(&self.text, word.as_ref()))
    }

    pub(crate) fn is_about(&self, kind: Kind) -> bool {
        self.kinds.contains(&kind)
    }

    /// The share of a name's parts that the complaint has, in percent.
    pub(crate) fn names(&self, name: &str) -> u32 {
        if self.words.is_empty() { 0 } else { names::meant(name, &self.words) }
    }

    /// The categories of profiles, and the units, that its words mean.
    pub(crate) fn services(&self) -> (Vec<&'static str>, Vec<&'static str>) {
        let meant = || WORDS.services.iter().filter(|one| self.says(&one.words));
        (
            meant().flat_map(|one| &one.categories).map(String::as_str).collect(),
            meant().flat_map(|one| &one.units).map(String::as_str).collect(),
        )
    }
}

/// A word without quotes, brackets and punctuation around it.
fn bare(word: &str) -> &str {
    word.trim_matches(|c: char| !c.is_alphanumeric() && !"/_-".contains(c)).trim_end_matches(['-', '/'])
}

/// Whether a word is the name of a host with its domain, and not a unit or a file.
fn is_host(word: &str) -> bool {
    let labels: Vec<&str> = word.split('.').collect();
    let is_label = |label: &&str| {
        !label.is_empty()
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
    };
    let [_, .., last] = labels[..] else { return false };
    labels.iter().all(is_label)
        && last.len() > 1
        && last.bytes().all(|byte| byte.is_ascii_alphabetic())
        && !WORDS.endings.iter().any(|ending| ending == last)
        && Form::Host.value(word).is_some()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Complaint {
        Complaint::parse(Some(text)).unwrap()
    }

    fn kinds(text: &str) -> Vec<&'static str> {
        parsed(text).kinds.into_iter().map(Kind::name).collect()
    }

    #[test]
    fn a_kind_by_its_name_is_that_kind_alone_and_unknown_is_none() {
        for kind in Kind::ALL.into_iter().filter(|kind| *kind != Kind::Change) {
            assert_eq!(kinds(kind.name()), [kind.name()]);
        }
        for text in ["unknown", "", "  ", "change"] {
            assert!(kinds(text).is_empty(), "{text}");
        }
        assert_eq!(Complaint::parse(None).unwrap(), Complaint::default());
    }

    #[test]
    fn words_of_everyday_complaints_mean_kinds() {
        for (text, expected) in [
            ("The web server didn't come back after last night's restart.", &["service"][..]),
            ("lsa-anna can't log in by SSH since yesterday.", &["login"]),
            ("Nobody reaches wiki.intern.example. git.intern.example works.", &["network", "dns"]),
            ("There is no nightly report of the shop.", &["schedule"]),
            ("The disk fills up. The logs of the shop aren't rotated any more.", &["disk", "schedule"]),
            ("Updates can't be installed.", &["packages"]),
            ("No space left on device", &["disk"]),
            ("Everything is so slow", &["slow"]),
            ("the clock is wrong", &["time"]),
            ("browsers say the site is not secure", &["certificate"]),
        ] {
            assert_eq!(kinds(text), expected, "{text}");
        }
    }

    #[test]
    fn hosts_addresses_and_paths_are_read_and_units_and_files_are_no_hosts() {
        let complaint = parsed(
            "\"db.intern.example\", (https://Wiki.example:8443/x) and nginx.service, shop.conf at 127.0.0.20 in /srv/Shop. e.g. 1.2",
        );
        assert_eq!(complaint.hosts, ["db.intern.example", "wiki.example"]);
        assert_eq!(complaint.addresses, ["127.0.0.20".parse::<IpAddr>().unwrap()]);
        assert_eq!(complaint.paths, ["/srv/Shop"]);
    }

    #[test]
    fn possessives_and_quotes_do_not_hide_a_name() {
        assert_eq!(parsed("The shop's worker").names("shop-worker"), names::WHOLE);
        assert_eq!(parsed("\"shop\"!").names("shop"), names::WHOLE);
        assert_eq!(parsed("slow").names("slow"), 0, "a kind alone names nothing");
    }

    #[test]
    fn hostile_and_long_texts_are_no_names() {
        let complaint = parsed("-Hevil.example $(id).example a;b.example /a/../b /x\u{202e}y '; rm -rf /");
        assert!(complaint.hosts.iter().all(|host| Form::Host.value(host).is_some()), "{complaint:?}");
        assert!(complaint.paths.iter().all(|path| Form::Path.value(path).is_some()), "{complaint:?}");
        let problem = Complaint::parse(Some(&"x".repeat(2001))).unwrap_err();
        assert_eq!(problem.code, "INVALID_COMPLAINT");
        assert!(problem.message.contains("2000"), "{}", problem.message);
    }

    #[test]
    fn words_mean_services_without_their_names() {
        let (categories, units) = parsed("The web server is down, and logs aren't rotated").services();
        assert_eq!((categories, units), (vec!["web"], vec!["logrotate"]));
    }
}
