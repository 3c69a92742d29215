//! The advisories and CVEs that updates fix, by the names of packages, as dnf knows them.

use std::collections::BTreeMap;

use super::nevra;
use crate::{CommandLine, Context, DurationCategory, Output, Result};

/// Prints the advisories that updates fix, with the packages that fix them.
pub const ADVISORIES: CommandLine = CommandLine::new("dnf --quiet --cacheonly updateinfo list --updates");

/// Prints the same for CVEs.
pub const CVES: CommandLine =
    CommandLine::new("dnf --quiet --cacheonly updateinfo list --updates --with-cve");

/// The faults that the updates of a package fix.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Settled {
    /// Whether one of them is an advisory about security.
    pub security: bool,
    /// The severity of the worst advisory.
    pub severity: Option<String>,
    /// The names of the advisories.
    pub advisories: Vec<String>,
    /// The numbers of the CVEs.
    pub cves: Vec<String>,
}

/// The severities, the worst first.
const SEVERITIES: [&str; 4] = ["Critical", "Important", "Moderate", "Low"];

/// Asks dnf. What it can't say is left out.
pub fn settled(cx: &Context) -> BTreeMap<String, Settled> {
    let look = |line: CommandLine| line.command().duration(DurationCategory::Normal);
    let said = |output: Result<Output>| output.map(|output| output.text().into_owned()).unwrap_or_default();
    let [advisories, cves] = cx.run_each([look(ADVISORIES), look(CVES)]).map(said);
    read(&advisories, &cves)
}

/// Reads the outputs of [`ADVISORIES`] and [`CVES`].
pub fn read(advisories: &str, cves: &str) -> BTreeMap<String, Settled> {
    let mut settled: BTreeMap<String, Settled> = BTreeMap::new();
    for line in advisories.lines().filter_map(parse) {
        let package = settled.entry(line.package).or_default();
        package.security |= line.security;
        package.severity = worse(package.severity.take(), line.severity);
        push(&mut package.advisories, line.id);
    }
    for line in cves.lines().filter_map(parse) {
        push(&mut settled.entry(line.package).or_default().cves, line.id);
    }
    settled
}

struct Line {
    id: String,
    security: bool,
    severity: Option<String>,
    package: String,
}

/// Parses a line of dnf 4, `LAB-2026-0001 Important/Sec. lab-hello-2.0-1.noarch`, or of dnf 5, which has the columns
/// `Name Type Severity Package Issued`.
fn parse(line: &str) -> Option<Line> {
    let words: Vec<_> = line.split_whitespace().collect();
    let (id, security, severity, package) = match words[..] {
        [id, kind, package] => {
            let severity = kind.strip_suffix("/Sec.");
            (id, severity.is_some(), severity.unwrap_or_default(), package)
        }
        [id, kind, severity, package, _date, _time] => (id, kind == "security", severity, package),
        _ => return None,
    };
    let severity = SEVERITIES.contains(&severity).then(|| severity.to_owned());
    let package = nevra::parse(package)?.name.to_owned();
    Some(Line { id: id.to_owned(), security, severity, package })
}

fn worse(one: Option<String>, other: Option<String>) -> Option<String> {
    let rank = |severity: &String| SEVERITIES.iter().position(|known| known == severity);
    [one, other].into_iter().flatten().min_by_key(rank)
}

fn push(list: &mut Vec<String>, item: String) {
    if !list.contains(&item) {
        list.push(item);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Option<(String, bool, Option<String>, String)> {
        parse(line).map(|line| (line.id, line.security, line.severity, line.package))
    }

    #[test]
    fn an_advisory_is_read_from_either_dnf() {
        let of_security = ("FEDORA-2026-1".to_owned(), true, Some("Important".to_owned()), "bash".to_owned());
        assert_eq!(parsed("FEDORA-2026-1 Important/Sec. bash-5.2-1.fc41.x86_64"), Some(of_security.clone()));
        // These are the columns of libdnf5-cli/output/advisorylist.cpp, dnf 5.2.
        let columns = "FEDORA-2026-1 security Important bash-0:5.2-1.fc41.x86_64 2026-01-15 00:00:00";
        assert_eq!(parsed(columns), Some(of_security));
        let bug = ("FEDORA-2026-2".to_owned(), false, None, "bash".to_owned());
        assert_eq!(parsed("FEDORA-2026-2 bugfix         bash-5.2-1.fc41.x86_64"), Some(bug));
        let unknown = parsed("X-1 Unknown/Sec. bash-5.2-1.fc41.x86_64").expect("an advisory");
        assert_eq!((unknown.1, unknown.2), (true, None));
        assert_eq!(parsed("Name          Type     Severity  Package  Issued"), None);
        assert_eq!(parsed("Last metadata expiration check: 0:00:01 ago"), None);
    }

    #[test]
    fn the_worst_severity_counts() {
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(worse(some("Low"), some("Critical")), some("Critical"));
        assert_eq!(worse(None, some("Low")), some("Low"));
        assert_eq!(worse(None, None), None);
    }
}
