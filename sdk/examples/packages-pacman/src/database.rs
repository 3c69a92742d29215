//! Reads pacman's databases: what is installed, and what the repositories had when their lists were fetched.

use std::collections::BTreeMap;

use linux_sysadmin_sdk::packages::{Available, Found, Info, Installed, Update};
use linux_sysadmin_sdk::prelude::*;

use crate::commands::{self, look};
use crate::problem::success;

/// What pacman says of one package, by the names of its lines.
pub type Fields = BTreeMap<String, String>;

/// The number of packages that one command asks about.
const AT_ONCE: usize = 100;

pub fn installed(cx: &Context) -> Result<Vec<Installed>> {
    let asked = [commands::INSTALLED, commands::IGNORED, commands::GUARDED];
    let [listed, ignored, guarded] = cx.run_each(asked.map(|line| look(line.command())));
    let (listed, ignored, guarded) = (some(listed?)?, patterns(ignored?)?, patterns(guarded?)?);
    let package = |line: &str| match line.split_once(' ') {
        Some((name, version)) => Ok(Installed {
            name: name.to_owned(),
            version: version.to_owned(),
            held: is_like(name, &ignored),
            essential: is_like(name, &guarded),
            ..Installed::default()
        }),
        None => Err(Problem::unexpected("pacman's list of packages", line)),
    };
    listed.lines().map(package).collect()
}

/// The packages that have all words in their names or descriptions. pacman looks at what a package provides as well.
pub fn search(words: &[String], names_only: bool, cx: &Context) -> Result<Vec<Found>> {
    let expressions = words.iter().map(|word| expression(word));
    let said = some(cx.run(look(commands::SEARCH.with(expressions)))?)?;
    let mut found = read_search(&said);
    found.retain(|found| {
        let text = match names_only {
            true => found.name.to_lowercase(),
            false => format!("{}\n{}", found.name, found.summary).to_lowercase(),
        };
        words.iter().all(|word| text.contains(word.as_str()))
    });
    Ok(found)
}

pub fn info(name: &str, cx: &Context) -> Result<Option<Info>> {
    let asked = [
        commands::DETAILS.with([name]),
        commands::OFFERED.with([name]),
        commands::IGNORED.command(),
        commands::GUARDED.command(),
    ];
    let [here, offered, ignored, guarded] = cx.run_each(asked.map(look));
    let here = of_name(here?, name)?.into_iter().next();
    let offered = of_name(offered?, name)?.into_iter().next();
    let version = |fields: &Option<Fields>| fields.as_ref().map(|fields| text(fields, "Version"));
    let (installed, candidate) = (version(&here), version(&offered));
    let Some(known) = here.as_ref().or(offered.as_ref()) else { return Ok(None) };
    Ok(Some(Info {
        name: name.to_owned(),
        candidate: candidate.filter(|candidate| Some(candidate) != installed.as_ref()),
        installed,
        arch: text(known, "Architecture"),
        summary: text(known, "Description"),
        section: text(known, "Groups"),
        homepage: text(known, "URL"),
        license: text(known, "Licenses"),
        download_bytes: offered.as_ref().and_then(|offered| bytes(&text(offered, "Download Size"))),
        installed_bytes: bytes(&text(known, "Installed Size")),
        depends: list(known, "Depends On"),
        conflicts: list(known, "Conflicts With"),
        held: is_like(name, &patterns(ignored?)?),
        essential: is_like(name, &patterns(guarded?)?),
        automatic: text(known, "Install Reason").contains("as a dependency"),
        installed_at: Some(text(known, "Install Date")).filter(|date| !date.is_empty()),
        ..Info::default()
    }))
}

/// The versions of a package that the repositories have, in the order in which pacman prefers them.
pub fn offered(name: &str, cx: &Context) -> Result<Vec<Available>> {
    let said = cx.run(look(commands::OFFERED.with([name])))?;
    let version = |fields: Fields| Available {
        version: text(&fields, "Version"),
        repository: text(&fields, "Repository"),
    };
    Ok(of_name(said, name)?.into_iter().map(version).collect())
}

/// What the repositories say of these packages.
pub fn fields(names: &[&str], cx: &Context) -> Result<Vec<Fields>> {
    let asked = names.chunks(AT_ONCE).map(|names| look(commands::OFFERED.with(names.iter().copied())));
    let mut fields = Vec::new();
    for said in cx.run_all(asked.collect()) {
        fields.extend(blocks(&success(said?)?.text()));
    }
    Ok(fields)
}

pub fn updates(cx: &Context) -> Result<Vec<Update>> {
    let said = some(cx.run(look(commands::UPDATES.command()))?)?;
    let update = |line: &str| match line.split_whitespace().collect::<Vec<_>>().as_slice() {
        [name, installed, "->", candidate, marks @ ..] => Ok(Update {
            name: (*name).to_owned(),
            installed: (*installed).to_owned(),
            candidate: (*candidate).to_owned(),
            held: marks.contains(&"[ignored]"),
            ..Update::default()
        }),
        _ => Err(Problem::unexpected("pacman's list of updates", line)),
    };
    said.lines().map(update).collect()
}

pub fn names(cx: &Context) -> Result<Vec<String>> {
    let said = some(cx.run(look(commands::NAMES.command()))?)?;
    Ok(said.lines().map(str::to_owned).collect())
}

/// The value of a line. pacman writes `None` where there is nothing.
pub fn text(fields: &Fields, key: &str) -> String {
    fields.get(key).filter(|value| value.as_str() != "None").cloned().unwrap_or_default()
}

/// The values of a line, between which there are two blanks.
pub fn list(fields: &Fields, key: &str) -> Vec<String> {
    let value = text(fields, key);
    value.split("  ").map(str::trim).filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

/// What pacman printed. It ends with 1 and says nothing where there is nothing to print.
fn some(output: Output) -> Result<String> {
    if output.exit_code == 1 && output.stdout.is_empty() && output.stderr.is_empty() {
        return Ok(String::new());
    }
    Ok(success(output)?.text().into_owned())
}

/// The packages of this name in the output of `--info`. A name can also stand for what a package provides.
fn of_name(output: Output, name: &str) -> Result<Vec<Fields>> {
    if output.exit_code != 0 && output.error_text().contains("was not found") {
        return Ok(Vec::new());
    }
    let mut found = blocks(&success(output)?.text());
    found.retain(|fields| text(fields, "Name") == name);
    Ok(found)
}

/// The packages of an output of `--info`. A line that goes on with the one before begins with blanks.
fn blocks(text: &str) -> Vec<Fields> {
    let field = |line: &str| {
        let (key, value) = line.split_once(':')?;
        Some((key.trim().to_owned(), value.trim().to_owned()))
    };
    let lines = |block: &str| -> Fields {
        block.lines().filter(|line| !line.starts_with(' ')).filter_map(field).collect()
    };
    text.split("\n\n").map(lines).filter(|fields| fields.contains_key("Name")).collect()
}

/// Reads lines such as `extra/nginx 1.26.0-1 (group) [installed: 1.24.0-1]`, each with its description below.
fn read_search(text: &str) -> Vec<Found> {
    let mut found: Vec<Found> = Vec::new();
    for line in text.lines() {
        if let Some(summary) = line.strip_prefix("    ") {
            if let Some(last) = found.last_mut() {
                last.summary = summary.trim().to_owned();
            }
            continue;
        }
        let mut words = line.split(' ');
        let name = words.next().and_then(|word| word.split_once('/')).map(|(_repository, name)| name);
        let (Some(name), Some(version)) = (name, words.next()) else { continue };
        let mark = line.split_once("[installed").map(|(_, rest)| rest);
        let installed = mark.map(|rest| match rest.strip_prefix(": ") {
            Some(other) => other.trim_end_matches(']').to_owned(),
            None => version.to_owned(),
        });
        found.push(Found {
            name: name.to_owned(),
            version: Some(version.to_owned()),
            installed,
            summary: String::new(),
        });
    }
    found
}

/// The extended regular expression that matches the word itself.
fn expression(word: &str) -> String {
    let letter = |letter: char| match letter.is_alphanumeric() {
        true => letter.to_string(),
        false => format!("[{letter}]"),
    };
    word.chars().map(letter).collect()
}

/// Reads a size such as `694.00 B` or `1.32 MiB`.
fn bytes(text: &str) -> Option<u64> {
    let (number, unit) = text.split_once(' ')?;
    let exponent = ["B", "KiB", "MiB", "GiB", "TiB"].iter().position(|known| *known == unit)?;
    let number: f64 = number.parse().ok()?;
    Some((number * 1024_f64.powi(i32::try_from(exponent).ok()?)) as u64)
}

/// The patterns that pacman-conf prints, one in a line.
fn patterns(output: Output) -> Result<Vec<String>> {
    Ok(success(output)?.text().lines().map(str::to_owned).collect())
}

/// Whether one of these patterns of fnmatch(3) matches the name. Sets of characters are not among what is understood.
fn is_like(name: &str, patterns: &[String]) -> bool {
    patterns.iter().any(|pattern| fits(pattern.as_bytes(), name.as_bytes()))
}

fn fits(pattern: &[u8], name: &[u8]) -> bool {
    match (pattern, name) {
        ([], []) => true,
        ([b'*', rest @ ..], _) => {
            fits(rest, name) || name.split_first().is_some_and(|(_, after)| fits(pattern, after))
        }
        ([b'?', rest @ ..], [_, after @ ..]) => fits(rest, after),
        ([first, rest @ ..], [same, after @ ..]) => first == same && fits(rest, after),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_takes_no_letter_for_an_expression() {
        assert_eq!(expression("c++"), "c[+][+]");
        assert_eq!(expression("python3.11-x_y"), "python3[.]11[-]x[_]y");
    }

    #[test]
    fn what_stands_beside_a_version_is_no_part_of_it() {
        // Groups stand between a version and what is installed.
        let text = "core/gcc 14.2.1-1 (base-devel) [installed]\n    The GNU Compiler Collection - C and C++ frontends\n\
            extra/nginx 1.26.2-1 [installed: 1.24.0-1]\n    Lightweight HTTP server\nextra/vim 9.1-1\n    Vi Improved\n";
        let found = read_search(text);
        let versions: Vec<_> = found
            .iter()
            .map(|found| (found.name.as_str(), found.version.as_deref(), found.installed.as_deref()))
            .collect();
        let expected = [
            ("gcc", Some("14.2.1-1"), Some("14.2.1-1")),
            ("nginx", Some("1.26.2-1"), Some("1.24.0-1")),
            ("vim", Some("9.1-1"), None),
        ];
        assert_eq!(versions, expected);
        assert_eq!(found[1].summary, "Lightweight HTTP server");
    }

    #[test]
    fn a_line_may_have_several_values_and_go_on_below() {
        let text = "Name            : nginx\nDepends On      : pcre2  zlib  openssl\nGroups          : None\n\
            URL             : https://nginx.org\nOptional Deps   : a: for this\n                  b: for that\n\n";
        let fields = blocks(text).remove(0);
        assert_eq!(list(&fields, "Depends On"), ["pcre2", "zlib", "openssl"]);
        assert_eq!(
            (self::text(&fields, "Groups"), self::text(&fields, "URL")),
            (String::new(), "https://nginx.org".to_owned())
        );
        assert_eq!(list(&fields, "Optional Deps"), ["a: for this"]);
    }

    /// What pacman 7.1.0 prints of itself on Arch Linux.
    #[test]
    fn pacman_7_describes_a_package_in_the_same_lines() {
        let text = "Name            : pacman\nVersion         : 7.1.0.r9.g54d9411-1\n\
            Description     : A library-based package manager with dependency support\nArchitecture    : x86_64\n\
            URL             : https://www.archlinux.org/pacman/\nLicenses        : GPL-2.0-or-later\nGroups          : None\n\
            Provides        : libalpm.so=16-64\nDepends On      : bash  coreutils  curl  libcurl.so=4-64\n\
            Optional Deps   : base-devel: required to use makepkg [installed]\n\
            \x20                 perl-locale-gettext: translation support in makepkg-template\n\
            Conflicts With  : None\nReplaces        : None\nInstalled Size  : 5.01 MiB\n\
            Install Date    : Wed Jan 28 09:24:34 2026\nInstall Reason  : Installed as a dependency for another package\n\
            Install Script  : No\nValidated By    : Signature\n\n";
        let fields = blocks(text).remove(0);
        assert_eq!(self::text(&fields, "Version"), "7.1.0.r9.g54d9411-1");
        assert_eq!(list(&fields, "Depends On"), ["bash", "coreutils", "curl", "libcurl.so=4-64"]);
        assert_eq!(list(&fields, "Conflicts With"), Vec::<String>::new());
        assert_eq!(bytes(&self::text(&fields, "Installed Size")), Some(5_253_365));
    }

    #[test]
    fn sizes_and_patterns_are_pacmans() {
        assert_eq!(
            (bytes("694.00 B"), bytes("1.50 KiB"), bytes("2.00 MiB")),
            (Some(694), Some(1536), Some(2 << 20))
        );
        assert_eq!((bytes(""), bytes("1.0 kB")), (None, None));
        let patterns = ["linux*".to_owned(), "ba?h".to_owned(), "glibc".to_owned()];
        for (name, expected) in [
            ("linux", true),
            ("linux-lts", true),
            ("bash", true),
            ("glibc", true),
            ("lib", false),
            ("xlinux", false),
        ] {
            assert_eq!(is_like(name, &patterns), expected, "{name}");
        }
    }
}
