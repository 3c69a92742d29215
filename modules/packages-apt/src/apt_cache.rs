//! The lists of the repositories, by apt-cache(8).

use std::collections::{BTreeMap, BTreeSet};

use linux_sysadmin_sdk::packages::{Available, Found, Info, State};
use linux_sysadmin_sdk::{OutputStream, prelude::*};

use crate::commands::{AUTOMATIC, INSTALLED, NAMES, POLICY, SEARCH, SEARCH_NAMES, SHOW};
use crate::dpkg_query;

/// The most bytes that are read of `apt-cache search` and `pkgnames`, which may print more than the host keeps of an
/// output.
const MOST_BYTES: usize = 16 << 20;

/// The versions of a package with apt's pins applied: `apt-cache policy`.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Policy {
    pub(crate) candidate: Option<String>,
    /// The versions that the repositories have, the newest first.
    pub(crate) available: Vec<Available>,
    /// The versions that a security archive has.
    pub(crate) secure: BTreeSet<String>,
    /// The percentage of machines that get the newest version so far.
    pub(crate) phased: Option<u8>,
}

/// The policies by the names of packages. apt knows nothing of a name that is missing.
pub(crate) fn policy<N: AsRef<str>>(names: &[N], cx: &Context) -> Result<BTreeMap<String, Policy>> {
    let names = names.iter().map(AsRef::as_ref);
    let said = cx.run(POLICY.with(names))?.success("apt-cache policy")?;
    Ok(parse_policy(&said.text()))
}

/// Parses the output of `apt-cache policy`. A name begins its line. Its properties follow after two blanks, its versions
/// after ` *** ` or five blanks, and the sources of a version after seven blanks and a priority of at least four
/// characters. `/var/lib/dpkg/status` is no repository.
fn parse_policy(text: &str) -> BTreeMap<String, Policy> {
    let mut known: BTreeMap<String, Policy> = BTreeMap::new();
    let mut current = None;
    let mut version: Option<(&str, bool)> = None;
    for line in text.lines() {
        if let Some(name) = line.strip_suffix(':').filter(|name| !name.starts_with(' ')) {
            // A package of another architecture is written as `name:arch`.
            let name = name.split_once(':').map_or(name, |(name, _arch)| name);
            current = Some(known.entry(name.to_owned()).or_default());
            version = None;
            continue;
        }
        let Some(policy) = current.as_mut() else { continue };
        if let Some(candidate) = line.strip_prefix("  Candidate: ") {
            policy.candidate = Some(candidate.to_owned()).filter(|candidate| candidate != "(none)");
        } else if let Some(source) = line.strip_prefix("       ") {
            let Some((number, listed)) = version.as_mut() else { continue };
            let source = source.trim_start().split_once(' ').map_or("", |(_priority, source)| source.trim());
            if source.is_empty() || source == "/var/lib/dpkg/status" {
                continue;
            }
            if source.contains("-security") {
                policy.secure.insert((*number).to_owned());
            }
            if !*listed {
                let repository = source.strip_suffix(" Packages").unwrap_or(source).to_owned();
                policy.available.push(Available { version: (*number).to_owned(), repository });
                *listed = true;
            }
        } else if let Some(row) = line.strip_prefix(" *** ").or_else(|| line.strip_prefix("     ")) {
            let mut words = row.split_whitespace();
            let number = words.next().unwrap_or_default();
            let percent = row.split_once("(phased ").and_then(|(_, rest)| rest.split_once('%'));
            if version.is_none() {
                policy.phased = percent.and_then(|(percent, _)| percent.parse().ok());
            }
            version = Some((number, false));
        }
    }
    known
}

pub(crate) fn names(like: &str, cx: &Context) -> Result<Vec<String>> {
    let first: String = like.chars().take(1).collect();
    lines(cx.open(NAMES.with([first]))?, cx)
}

pub(crate) fn search(words: &[String], names_only: bool, cx: &Context) -> Result<Vec<Found>> {
    // apt-cache reads words as regular expressions.
    let words = words.iter().map(|word| word.replace('.', "[.]").replace('+', "[+]"));
    let line = if names_only { SEARCH_NAMES } else { SEARCH };
    // The search runs while dpkg is asked.
    let searching = cx.open(line.with(words))?;
    let installed: BTreeMap<_, _> = dpkg_query::installed(cx)?
        .into_iter()
        .filter(|package| package.state != State::ConfigFiles)
        .map(|package| (package.name, package.version))
        .collect();
    let found = |line: String| {
        let (name, summary) = line.split_once(" - ")?;
        Some(Found {
            name: name.to_owned(),
            version: None,
            installed: installed.get(name).cloned(),
            summary: summary.to_owned(),
        })
    };
    Ok(lines(searching, cx)?.into_iter().filter_map(found).collect())
}

fn lines(mut stream: OutputStream, cx: &Context) -> Result<Vec<String>> {
    let mut said = Vec::new();
    loop {
        let piece = stream.read(1 << 18)?;
        if piece.is_empty() {
            break;
        }
        said.extend(piece);
        if said.len() > MOST_BYTES {
            let message = format!("apt-cache says more than {MOST_BYTES} bytes");
            return Err(Problem::new("OUTPUT_TOO_LARGE", linux_sysadmin_sdk::Category::Resource, message));
        }
    }
    if said.is_empty() {
        // The exit code of the stream isn't known. This command fails as well where apt-cache can't read its lists.
        cx.run(POLICY.with(["apt"]))?.success("apt-cache")?;
    }
    Ok(String::from_utf8_lossy(&said).lines().map(str::to_owned).collect())
}

pub(crate) fn info(name: &str, cx: &Context) -> Result<Option<Info>> {
    let [show, policy, automatic, installed] =
        cx.run_each([SHOW.with([name]), POLICY.with([name]), AUTOMATIC.with([name]), INSTALLED.command()]);
    let policy = parse_policy(&policy?.success("apt-cache policy")?.text()).remove(name).unwrap_or_default();
    let installed = dpkg_query::read(installed)?;
    let here = installed.into_iter().find(|package| package.name == name);
    let show = show?;
    let stanzas = stanzas(&show.text());
    let Some(stanza) = stanzas.first() else {
        // The name belongs to a virtual package, or to none.
        let Some(here) = here else { return Ok(None) };
        return Ok(Some(Info {
            name: name.to_owned(),
            installed: Some(here.version),
            arch: here.arch,
            state: here.state,
            ..Info::default()
        }));
    };
    let field = |name: &str| stanza.get(name).cloned().unwrap_or_default();
    let list = |names: &[&str]| {
        let texts = names.iter().map(|name| field(name));
        texts.flat_map(|text| items(&text)).collect::<Vec<_>>()
    };
    let (summary, description) = described(stanza);
    let current = here.as_ref().filter(|here| here.state != State::ConfigFiles);
    let candidate =
        policy.candidate.filter(|candidate| current.is_none_or(|here| here.version != *candidate));
    Ok(Some(Info {
        name: name.to_owned(),
        candidate,
        versions: policy.available,
        arch: field("Architecture"),
        summary,
        description,
        section: field("Section"),
        homepage: field("Homepage"),
        license: String::new(),
        // dpkg's own record of an installed package doesn't have the size of the file.
        download_bytes: stanzas.iter().find_map(|stanza| stanza.get("Size")?.parse().ok()),
        installed_bytes: field("Installed-Size").parse::<u64>().ok().map(|kib| kib * 1024),
        depends: list(&["Pre-Depends", "Depends"]),
        conflicts: list(&["Conflicts", "Breaks"]),
        held: current.is_some_and(|here| here.held),
        essential: here.as_ref().is_some_and(|here| here.essential),
        automatic: automatic.is_ok_and(|said| said.text().trim() == name),
        installed_at: current.and_then(|here| installed_at(&here.name, &here.arch, cx)),
        state: here.as_ref().map(|here| here.state.clone()).unwrap_or_default(),
        installed: current.map(|here| here.version.clone()),
    }))
}

/// The time of the installation: dpkg writes a package's list of files only when it unpacks the package.
fn installed_at(name: &str, arch: &str, cx: &Context) -> Option<String> {
    let paths = [format!("/var/lib/dpkg/info/{name}.list"), format!("/var/lib/dpkg/info/{name}:{arch}.list")];
    let found = cx.stat_all(&paths).into_iter().find_map(|found| found.ok().flatten())?;
    Some(linux_sysadmin_sdk::time::rfc3339(found.modified_unix as i64))
}

/// The summary and the other lines of `Description` or `Description-LANGUAGE`.
fn described(stanza: &Stanza) -> (String, String) {
    let mut fields = stanza.iter();
    let is_text = |name: &str| name.starts_with("Description") && name != "Description-md5";
    let text = fields.find(|(name, _)| is_text(name)).map(|(_, text)| text.as_str()).unwrap_or_default();
    let (summary, rest) = text.split_once('\n').unwrap_or((text, ""));
    // A dot alone stands for an empty line: deb-control(5).
    let rest = rest.lines().map(|line| if line.trim() == "." { "" } else { line.trim() });
    (summary.to_owned(), rest.collect::<Vec<_>>().join("\n"))
}

type Stanza = BTreeMap<String, String>;

/// Parses deb822(5): fields begin their lines, indented lines continue them, and empty lines separate stanzas.
fn stanzas(text: &str) -> Vec<Stanza> {
    let mut stanzas = vec![Stanza::new()];
    let mut last = String::new();
    for line in text.lines() {
        let Some(stanza) = stanzas.last_mut() else { break };
        if line.is_empty() {
            if !stanza.is_empty() {
                stanzas.push(Stanza::new());
            }
        } else if line.starts_with([' ', '\t']) {
            if let Some(value) = stanza.get_mut(&last) {
                value.push('\n');
                value.push_str(line);
            }
        } else if let Some((name, value)) = line.split_once(':') {
            last = name.to_owned();
            stanza.insert(last.clone(), value.trim().to_owned());
        }
    }
    stanzas.retain(|stanza| !stanza.is_empty());
    stanzas
}

/// The items of a list with commas.
fn items(text: &str) -> Vec<String> {
    text.split(',').map(|item| item.trim().to_owned()).filter(|item| !item.is_empty()).collect()
}

/// The sizes of a version in bytes, as far as they are known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Sizes {
    /// The size of the file. dpkg's own record of a version that is in no repository doesn't have it.
    pub(crate) file: Option<u64>,
    pub(crate) unpacked: Option<u64>,
}

/// The sizes in the stanzas of `apt-cache show`, by name and version.
pub(crate) fn sizes(text: &str) -> BTreeMap<(String, String), Sizes> {
    let size = |stanza: &Stanza| {
        let number = |name: &str| stanza.get(name).and_then(|text| text.parse::<u64>().ok());
        let key = (stanza.get("Package")?.clone(), stanza.get("Version")?.clone());
        let unpacked = number("Installed-Size").and_then(|kib| kib.checked_mul(1024));
        Some((key, Sizes { file: number("Size"), unpacked }))
    };
    stanzas(text).iter().filter_map(size).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text comes from apt 2.6.1, with a pin of 1001 for the repository.
    #[test]
    fn a_source_is_one_whatever_its_priority() {
        let text = "lab-pri:\n  Installed: 0.9\n  Candidate: 1.0\n  Version table:\n     1.0 1001\n       \
            1001 file:/opt/aptrepo ./ Packages\n *** 0.9 100\n        100 /var/lib/dpkg/status\n";
        let policy = parse_policy(text).remove("lab-pri").expect("known");
        let here = Available { version: "1.0".into(), repository: "file:/opt/aptrepo ./".into() };
        assert_eq!((policy.candidate.as_deref(), policy.available), (Some("1.0"), vec![here]));
    }
}
