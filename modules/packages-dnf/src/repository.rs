//! The contents of the repositories, by what was downloaded of them.

use std::collections::{BTreeMap, BTreeSet};

use linux_sysadmin_sdk::Category;
use linux_sysadmin_sdk::packages::{Available, Found, Info, Update, Updates, advisory};
use linux_sysadmin_sdk::prelude::*;

use crate::command::{AVAILABLE, CACHES, HIDDEN, INFO, INFO_INSTALLED, REASON, UPGRADES, VERSIONS, look};
use crate::version::{compare, plain};
use crate::{installed, problem};

/// The number of bytes of a listing that are read at once.
const PIECE: u32 = 1 << 18;
/// The most bytes of a line.
const MOST_LINE: usize = 1 << 16;

/// Calls `take` for each package of the repositories. They aren't kept, because there may be a hundred thousand.
fn each(cx: &Context, mut take: impl FnMut(&str, &str, &str)) -> Result<()> {
    let mut stream = cx.open(look(AVAILABLE.command()))?;
    let (mut rest, mut any) = (Vec::new(), false);
    loop {
        let piece = stream.read(PIECE)?;
        let is_end = piece.is_empty();
        rest.extend(piece);
        if is_end {
            rest.push(b'\n');
        }
        let whole = rest.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
        let lines: Vec<u8> = rest.drain(..whole).collect();
        for line in String::from_utf8_lossy(&lines).lines() {
            if let [name, version, summary] = line.splitn(3, '\t').collect::<Vec<_>>()[..] {
                any = true;
                take(name, plain(version), summary);
            }
        }
        if rest.len() > MOST_LINE {
            return Err(Problem::unexpected("dnf's list of packages", &String::from_utf8_lossy(&rest)));
        }
        if is_end {
            break;
        }
    }
    // The exit code of the stream isn't known. A listing that succeeds is never empty.
    if any { Ok(()) } else { upgrades(cx).map(drop) }
}

pub fn search(words: &[String], names_only: bool, cx: &Context) -> Result<Vec<Found>> {
    let mut found: BTreeMap<String, (String, String)> = BTreeMap::new();
    each(cx, |name, version, summary| {
        let (low_name, low_summary) = (name.to_lowercase(), summary.to_lowercase());
        let is_in = |word: &String| low_name.contains(word) || !names_only && low_summary.contains(word);
        if words.iter().all(is_in) {
            // Two architectures of one package may have different versions for a while.
            let known = found.entry(name.to_owned()).or_default();
            if compare(version, &known.0).is_ge() {
                *known = (version.to_owned(), summary.to_owned());
            }
        }
    })?;
    if found.is_empty() {
        return Ok(Vec::new());
    }
    let here: BTreeMap<_, _> =
        installed::installed(cx)?.into_iter().map(|package| (package.name, package.version)).collect();
    let items = found.into_iter().map(|(name, (version, summary))| {
        let installed = here.get(&name).cloned();
        Found { version: Some(version), installed, summary, name }
    });
    Ok(items.collect())
}

pub fn names(cx: &Context) -> Result<Vec<String>> {
    let mut names = BTreeSet::new();
    each(cx, |name, _, _| {
        names.insert(name.to_owned());
    })?;
    Ok(names.into_iter().collect())
}

/// The names of which there is no package of exactly this name. dnf also takes a name that a package provides, a name
/// with a version, and a file, and would install something else than requested.
pub fn unknown(names: &[String], cx: &Context) -> Result<Vec<String>> {
    let known: BTreeSet<_> = listed(VERSIONS, names, cx)?.into_iter().map(|(name, _)| name).collect();
    let unknown: Vec<_> = names.iter().filter(|name| !known.contains(*name)).cloned().collect();
    if !unknown.is_empty()
        && let Ok(hidden) = listed(HIDDEN, &unknown, cx)
        && let Some((name, first)) = hidden.iter().find(|(name, _)| unknown.contains(name))
    {
        let message = format!(
            "{name} is hidden by a module: there is version {} in {}, in a stream that isn't enabled",
            first.version, first.repository
        );
        let problem = Problem::new("PACKAGE_IN_MODULE", Category::State, message);
        return Err(problem.remedy(format!("`dnf module provides {name}` names the streams that have it")));
    }
    Ok(unknown)
}

pub fn versions(name: &str, cx: &Context) -> Result<Vec<Available>> {
    let found = listed(VERSIONS, &[name.to_owned()], cx)?.into_iter();
    let mut versions: Vec<_> = found.filter(|(found, _)| found == name).map(|(_, version)| version).collect();
    versions.sort_by(|a, b| compare(&b.version, &a.version).then_with(|| a.repository.cmp(&b.repository)));
    versions.dedup_by(|a, b| a.version == b.version);
    Ok(versions)
}

/// Asks for packages, and returns them with their names, because dnf may find packages of other names.
fn listed(line: CommandLine, names: &[String], cx: &Context) -> Result<Vec<(String, Available)>> {
    let output = problem::success(cx.run(look(line.with(names)))?)?;
    let found: Vec<_> = output.text().lines().filter_map(version_of).collect();
    if found.is_empty() {
        all_read(&output)?;
    }
    Ok(found)
}

fn version_of(line: &str) -> Option<(String, Available)> {
    let [name, version, repository] = line.split('\t').collect::<Vec<_>>()[..] else { return None };
    let version = Available { version: plain(version).to_owned(), repository: repository.to_owned() };
    Some((name.to_owned(), version))
}

/// Refuses an output for which dnf ignored repositories, because it found nothing in them.
fn all_read(output: &Output) -> Result<()> {
    match unread(output) {
        Some(repositories) => {
            let message = format!("the repositories {repositories} weren't read yet");
            Err(problem::unread(Problem::new("REPOSITORIES_NOT_READ", Category::State, message)))
        }
        None => Ok(()),
    }
}

/// The repositories that dnf ignored.
pub fn unread(output: &Output) -> Option<String> {
    let said = output.error_text();
    let ignored = said.lines().find_map(|line| line.trim().strip_prefix("Ignoring repositories: "));
    ignored.map(str::to_owned)
}

pub fn info(name: &str, cx: &Context) -> Result<Option<Info>> {
    let commands = [INFO, INFO_INSTALLED, REASON].map(|line| look(line.with([name])));
    let mut outputs = cx.run_all(commands.into()).into_iter();
    let mut next = || outputs.next().unwrap_or_else(|| Err(Problem::unexpected("the host", "")));
    let (available, here, reason) = (next()?, next()?, next()?);
    let available = problem::success(available)?;
    let here = problem::success(here)?;
    let candidate = described(&available.text(), name);
    let installed = described(&here.text(), name);
    let Some(mut info) = candidate.clone().or_else(|| installed.clone()) else {
        all_read(&available)?;
        // This is a problem where a module hides the package.
        unknown(&[name.to_owned()], cx)?;
        return Ok(None);
    };
    if let Some(installed) = &installed {
        // These are facts that only the installed package has.
        info.installed = installed.candidate.clone();
        info.held = installed::locked(cx).contains(name);
        info.essential = installed::protected(cx).contains(name);
        if let Some([reason, at]) = reason_of(&reason.text(), name) {
            info.automatic =
                reason.eq_ignore_ascii_case("dependency") || reason.eq_ignore_ascii_case("weak dependency");
            info.installed_at =
                Some(if at.contains(' ') { format!("{at} UTC") } else { at }).filter(|at| !at.is_empty());
        }
    }
    if candidate.is_none() {
        (info.candidate, info.download_bytes) = (None, None);
    } else if info.candidate == info.installed {
        info.candidate = None;
    }
    if candidate.is_some() {
        info.versions = versions(name, cx)?;
    }
    Ok(Some(info))
}

fn reason_of(text: &str, name: &str) -> Option<[String; 2]> {
    text.lines().find_map(|line| match line.split('\t').collect::<Vec<_>>()[..] {
        [found, reason, at] if found == name => Some([reason.to_owned(), at.to_owned()]),
        _ => None,
    })
}

/// The first package of exactly this name, with its version as the candidate.
fn described(text: &str, name: &str) -> Option<Info> {
    let mut lines = text.lines().skip_while(|line| !line.starts_with(name));
    let mut lines =
        lines.by_ref().skip_while(|line| !line.strip_prefix(name).is_some_and(|rest| rest.starts_with('\t')));
    let [_, arch, version, download, size, license, homepage, summary] =
        lines.next()?.splitn(8, '\t').collect::<Vec<_>>()[..]
    else {
        return None;
    };
    let mut info = Info {
        name: name.to_owned(),
        candidate: Some(plain(version).to_owned()),
        arch: arch.to_owned(),
        summary: summary.to_owned(),
        license: license.to_owned(),
        homepage: if homepage == "(none)" { String::new() } else { homepage.to_owned() },
        download_bytes: download.parse().ok().filter(|bytes| *bytes > 0),
        installed_bytes: size.parse().ok(),
        ..Info::default()
    };
    let mut section = "";
    for line in lines {
        match line {
            "@requires" | "@conflicts" | "@description" if section != "@description" => section = line,
            // Here the same package begins with another architecture or version.
            _ if line.split('\t').count() >= 8 => break,
            _ if section == "@description" => {
                info.description += line;
                info.description.push('\n');
            }
            "" => {}
            // These are requirements on rpm itself.
            _ if line.starts_with("rpmlib(") => {}
            _ if section == "@requires" => info.depends.push(line.to_owned()),
            _ if section == "@conflicts" => info.conflicts.push(line.to_owned()),
            _ => {}
        }
    }
    info.description = info.description.trim().to_owned();
    Some(info)
}

/// Name, architecture, version and repository.
type Upgrade = [String; 4];

fn upgrades(cx: &Context) -> Result<(Vec<Upgrade>, Option<String>)> {
    let output = problem::success(cx.run(look(UPGRADES.command()))?)?;
    let text = output.text();
    let lines = text.lines().filter_map(|line| {
        let fields: Vec<_> = line.split('\t').map(str::to_owned).collect();
        Upgrade::try_from(fields).ok()
    });
    let upgrades: Vec<_> = lines.collect();
    let unread = unread(&output);
    if upgrades.is_empty() {
        all_read(&output)?;
    }
    Ok((upgrades, unread))
}

pub fn updates(cx: &Context) -> Result<Updates> {
    let (upgrades, unread) = upgrades(cx)?;
    let installed = installed::installed(cx)?;
    let mut settled = if upgrades.is_empty() { BTreeMap::new() } else { advisory::settled(cx) };
    let items = upgrades.into_iter().filter_map(|[name, arch, version, repository]| {
        let here = installed.iter().filter(|package| package.name == name);
        let here: Vec<_> = here.filter(|package| package.arch == arch || arch == "noarch").collect();
        let newest = here.into_iter().max_by(|a, b| compare(&a.version, &b.version))?;
        let known = settled.remove(&name).unwrap_or_default();
        Some(Update {
            installed: newest.version.clone(),
            candidate: plain(&version).to_owned(),
            repository,
            security: known.security,
            severity: known.severity,
            advisories: known.advisories,
            cves: known.cves,
            held: newest.held,
            phased_percent: None,
            name,
        })
    });
    let mut items: Vec<_> = items.collect();
    items.sort_by(|a, b| a.name.cmp(&b.name));
    items.dedup_by(|a, b| a.name == b.name && a.candidate == b.candidate);
    let held: Vec<_> =
        installed.iter().filter(|package| package.held).map(|package| package.name.as_str()).collect();
    let mut notes = Vec::new();
    if !held.is_empty() {
        notes.push(format!(
            "newer versions aren't shown of packages with a locked version: {}",
            held.join(", ")
        ));
    }
    notes.extend(unread.map(|repositories| format!("the repositories {repositories} weren't read")));
    Ok(Updates { items, refreshed: refreshed(cx), notes })
}

/// The time when the repositories were last read: dnf touches a repository's list of packages even where it hasn't
/// changed.
fn refreshed(cx: &Context) -> Option<f64> {
    let below = |directories: &[String]| {
        let names = cx.list_all(directories).into_iter().map(Result::unwrap_or_default);
        let paths = directories
            .iter()
            .zip(names)
            .flat_map(|(directory, names)| names.into_iter().map(move |name| format!("{directory}/{name}")));
        paths.collect::<Vec<_>>()
    };
    let caches = below(&CACHES.map(str::to_owned));
    let lists = below(&caches.iter().map(|cache| format!("{cache}/repodata")).collect::<Vec<_>>());
    let lists: Vec<_> =
        lists.into_iter().filter(|path| path.contains("/repodata/") && path.contains("primary")).collect();
    let found = cx.stat_all(&lists).into_iter().flatten().flatten();
    found.map(|list| list.modified_unix as f64).reduce(f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_description_that_looks_like_the_next_package_ends_there_and_names_nothing_else() {
        let text = "a\tnoarch\t1-1\t10\t20\tMIT\thttps://a.example\tOne\n@requires\n/bin/sh\nrpmlib(x) <= 1\n\
            @conflicts\nb\n@description\nFirst.\n\n@requires\nevil\n\
            a\tnoarch\t2-1\t1\t2\tMIT\t(none)\tTwo\n@requires\nother\n";
        let info = described(text, "a").expect("a package");
        assert_eq!(info.depends, ["/bin/sh"]);
        assert_eq!(info.conflicts, ["b"]);
        assert_eq!(info.description, "First.\n\n@requires\nevil");
        assert_eq!(info.candidate.as_deref(), Some("1-1"));
        assert!(described("ab\tnoarch\t1-1\t1\t2\tMIT\t(none)\tOther\n", "a").is_none());
        assert!(described("", "a").is_none());
    }
}
