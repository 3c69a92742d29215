//! Joins of findings with facts of other answers: a refused connection with who listens elsewhere, a missing directory with what
//! systemd-tmpfiles said, and trouble with what changed shortly before.

use linux_sysadmin_sdk::Severity;
use serde_json::json;

use crate::call::Call;
use crate::finding::{Finding, Kind};
use crate::moment;
use crate::names::WHOLE;
use crate::notebook::{Change, Notebook};
use crate::rank;

/// A change that has to do with the trouble is told with it where it is at most this old, in seconds.
const RELATED: i64 = 86_400;
/// Any other change is told with the trouble where it was so shortly before, in seconds.
const SHORTLY: i64 = 900;
/// Clocks and logs differ by a little, in seconds.
const TOLERANCE: i64 = 5;
/// Changes of so many seconds are told by themselves.
const LATELY: i64 = 86_400;
/// The most changes that are told by themselves.
const TOLD: usize = 3;

pub(crate) fn join(notebook: &mut Notebook<'_>) {
    refused_connections(notebook);
    missing_directories(notebook);
    ports_of_command_lines(notebook);
    taken_ports(notebook);
    changes_before(notebook);
}

/// Where nothing listens on a local port, a service that the complaint names may listen on another one.
fn refused_connections(notebook: &mut Notebook<'_>) {
    for (unit, meaning) in notebook.meanings.clone() {
        let part = |name: &str| meaning.parts.get(name).map(String::as_str).unwrap_or_default();
        let host = part("host");
        let is_local = host == "localhost" || host == "[::1]" || host.starts_with("127.");
        let port = part("port").parse::<u16>().ok().filter(|_| is_local);
        let Some(port) = port else { continue };
        if notebook.listeners.iter().any(|listener| listener.ports.contains(&port)) {
            continue;
        }
        let is_meant = |name: &&String| **name != unit && notebook.complaint.names(name) == WHOLE;
        let other = notebook.listeners.iter().find_map(|listener| {
            let name = listener.unit.as_ref().filter(is_meant)?;
            Some((name.clone(), *listener.ports.first()?, listener.sockets.first()?.clone()))
        });
        let Some((name, listens, socket)) = other else { continue };
        let search = Call::new("file_search")
            .with("path", json!(["/etc", "/opt", "/srv"]))
            .with("pattern", json!(format!("\\b({port}|{listens})\\b")));
        if let Some(finding) = of_unit(notebook, &unit) {
            finding.cause = Some(format!("{}; {name} listens on {socket}", meaning.cause));
            finding.call = Some(search);
            finding.names.push(name);
        }
    }
}

fn of_unit<'n>(notebook: &'n mut Notebook<'_>, unit: &str) -> Option<&'n mut Finding> {
    notebook.findings.iter_mut().find(|finding| finding.unit.as_deref() == Some(unit))
}

/// A directory that systemd-tmpfiles couldn't make is missed by the service.
fn missing_directories(notebook: &mut Notebook<'_>) {
    for (unit, meaning) in notebook.meanings.clone() {
        let Some(directory) = meaning.missing.clone() else { continue };
        let name = directory.rsplit('/').next().unwrap_or_default().to_owned();
        let is_of_it = |line: &str| line.contains(&directory) || line.contains(&format!("/{name}."));
        let Some(said) = notebook.tmpfiles.iter().find(|said| is_of_it(&said.line)).cloned() else {
            continue;
        };
        notebook.findings.retain(|finding| finding.cause.as_deref() != Some(&said.cause));
        if let Some(finding) = of_unit(notebook, &unit) {
            finding.cause = Some(format!("{}, because {}", meaning.cause, said.cause));
            finding.evidence.insert(1.min(finding.evidence.len()), said.line);
            finding.call = said.call.or(finding.call.take());
        }
    }
}

/// A service may only say that its port is taken. Its command line may name the port, and another one may listen on it.
fn ports_of_command_lines(notebook: &mut Notebook<'_>) {
    for (unit, meaning) in notebook.meanings.clone() {
        if !meaning.line.contains("ddress already in use") || meaning.parts.contains_key("port") {
            continue;
        }
        let command =
            notebook.units.iter().find(|known| known.name == unit).and_then(|known| known.command.as_deref());
        let mut ports = command
            .unwrap_or_default()
            .split([' ', ':', '=', ',', '/'])
            .filter_map(|word| word.parse::<u16>().ok());
        let is_taken = |port: &u16| {
            let others = notebook.listeners.iter().filter(|listener| listener.unit.as_ref() != Some(&unit));
            others.flat_map(|listener| &listener.ports).any(|taken| taken == port)
        };
        let Some(port) = ports.find(is_taken) else { continue };
        notebook.taken.push((unit.clone(), port));
        if let Some(finding) = of_unit(notebook, &unit) {
            finding.cause = Some(format!("another process has the port {port}"));
            finding.call = Some(
                Call::new("net_connections").with("port", json!(port)).with("state", json!("listening")),
            );
        }
    }
}

/// Names the process that has a service's port.
fn taken_ports(notebook: &mut Notebook<'_>) {
    for (unit, port) in notebook.taken.clone() {
        let holder = notebook.listeners.iter().find(|listener| listener.ports.contains(&port));
        let Some(shown) = holder.map(|listener| listener.shown.clone()) else { continue };
        if let Some(finding) = of_unit(notebook, &unit) {
            finding.evidence.insert(0, format!("port {port} is held by {shown}"));
        }
    }
}

/// Adds what changed shortly before to each finding, and tells the latest changes that explain nothing by themselves.
fn changes_before(notebook: &mut Notebook<'_>) {
    let (now, changes) = (notebook.now, std::mem::take(&mut notebook.changes));
    let mut is_told = vec![false; changes.len()];
    for finding in &mut notebook.findings {
        let end = finding.since.unwrap_or(now) + TOLERANCE;
        let before = |change: &Change| end - change.at;
        let related = changes
            .iter()
            .enumerate()
            .filter(|(_, change)| (0..=RELATED).contains(&before(change)) && is_related(change, finding));
        let latest = related.max_by_key(|(_, change)| change.at);
        let shortly = || {
            let near =
                changes.iter().enumerate().filter(|(_, change)| (0..=SHORTLY).contains(&before(change)));
            near.filter(|_| finding.since.is_some()).max_by_key(|(_, change)| change.at)
        };
        let Some((at, change)) = latest.or_else(shortly) else { continue };
        is_told[at] = true;
        let is_related = is_related(change, finding);
        let ago = match finding.since {
            Some(since) => format!("{} before", moment::span(since - change.at)),
            None => format!("{} ago", moment::span(now - change.at)),
        };
        let told = format!("{}, {ago}", change.what);
        if !is_related {
            finding.evidence.push(told);
            continue;
        }
        finding.cause = Some(match finding.cause.take() {
            Some(cause) => format!("{cause}; {told}"),
            None => told,
        });
        finding.weight += rank::CHANGED;
        finding.since = finding.since.or(Some(change.at));
        finding.call = finding.call.take().or_else(|| change.call.clone());
    }
    let mut left: Vec<&Change> = changes
        .iter()
        .zip(is_told)
        .filter(|(change, is_told)| !is_told && (0..LATELY).contains(&(now - change.at)))
        .map(|(change, _)| change)
        .collect();
    left.sort_by_key(|change| std::cmp::Reverse(change.at));
    let Some(latest) = left.first() else { return };
    let what = match left.len() {
        1 => "one change within a day".to_owned(),
        count => format!("{count} changes within a day"),
    };
    let mut finding =
        Finding::new(Kind::Change, Severity::Info, what).since(Some(latest.at)).call([latest.call.clone()]);
    finding.evidence = left
        .iter()
        .take(TOLD)
        .map(|change| format!("{}, {} ago", change.what, moment::span(now - change.at)))
        .collect();
    notebook.add(finding);
}

/// Whether a change has to do with what a finding is about: its path lies in a directory of it or has its name, its package has
/// that name, or a line of evidence names the path.
fn is_related(change: &Change, finding: &Finding) -> bool {
    let is_name = |name: &&String| !name.starts_with('/') && name.len() > 2;
    let names = || finding.names.iter().filter(is_name);
    if change.packages.iter().any(|package| names().any(|name| name == package)) {
        return true;
    }
    let Some(path) = &change.path else { return false };
    let is_below = |name: &String| {
        name.starts_with('/')
            && path
                .strip_prefix(name.trim_end_matches('/'))
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let has_name = |name: &String| {
        path.split('/').any(|part| part == name || part.split_once('.').is_some_and(|(stem, _)| stem == name))
    };
    finding.names.iter().any(is_below)
        || names().any(has_name)
        || finding.evidence.iter().chain(&finding.cause).any(|line| line.contains(path.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_related_by_path_name_or_package() {
        let finding = Finding::new(Kind::Service, Severity::High, "x").name("unbound").name("/etc/unbound");
        let change = |path: &str, package: &str| Change {
            at: 0,
            what: String::new(),
            path: Some(path.to_owned()).filter(|path| !path.is_empty()),
            packages: Some(package.to_owned()).filter(|package| !package.is_empty()).into_iter().collect(),
            call: None,
        };
        for (path, package, related) in [
            ("/etc/unbound/unbound.conf.d/intern.conf", "", true),
            ("/etc/default/unbound", "", true),
            ("/etc/systemd/system/unbound.service", "", true),
            ("/etc/unbound2/x", "", false),
            ("/etc/passwd", "", false),
            ("", "unbound", true),
            ("", "unbound-anchor", false),
        ] {
            assert_eq!(is_related(&change(path, package), &finding), related, "{path} {package}");
        }
    }
}
