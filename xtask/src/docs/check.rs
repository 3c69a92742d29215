//! Checks the book, `README.md`, `CONTRIBUTING.md` and the pages of some folders: every link leads to a file or a heading that
//! is there, every file of this workspace that a page names is there, and the summary lists every page of the book once.

use super::markdown::Page;
use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Component, Path, PathBuf};

/// The folder of the book.
pub(super) const BOOK: &str = "docs";
/// The page from which mdBook takes the order of pages.
const SUMMARY: &str = "docs/SUMMARY.md";
/// The files outside the book that are checked as well.
const OUTSIDE: [&str; 5] =
    ["README.md", "CONTRIBUTING.md", "knowledge/README.md", "sdk/README.md", "sdk/python/README.md"];
/// The folders whose files pages name in code spans.
const FOLDERS: [&str; 10] =
    ["docs/", "fuzz/", "host/", "knowledge/", "modules/", "plugin/", "sdk/", "tests/", "wit/", "xtask/"];

/// Returns all faults, each with file and line.
pub(super) fn wrong(root: &Path) -> Result<Vec<String>> {
    let pages = read(root)?;
    let mut wrong = Vec::new();
    for (file, page) in &pages {
        wrong.extend(
            page.unclosed.iter().map(|line| format!("{file}:{line}: a code span has to end in its line")),
        );
        for (line, link) in &page.links {
            if let Some(reason) = wrong_link(root, &pages, file, link) {
                wrong.push(format!("{file}:{line}: {link}: {reason}"));
            }
        }
        for (line, code) in &page.code {
            if names_file(code) && !root.join(code).exists() {
                wrong.push(format!("{file}:{line}: {code} is not there"));
            }
        }
    }
    wrong.extend(wrong_summary(&pages));
    Ok(wrong)
}

/// All pages, by their path from the workspace's root.
fn read(root: &Path) -> Result<BTreeMap<String, Page>> {
    let mut files: Vec<String> = OUTSIDE.map(str::to_owned).to_vec();
    for entry in fs::read_dir(root.join(BOOK)).with_context(|| format!("cannot read {BOOK}"))? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name.ends_with(".md") {
            files.push(format!("{BOOK}/{name}"));
        }
    }
    let page = |file: String| {
        let text = fs::read_to_string(root.join(&file)).with_context(|| format!("cannot read {file}"))?;
        Ok((file, Page::read(&text)))
    };
    files.into_iter().map(page).collect()
}

/// Says why a link leads nowhere, where it does. Links to other sites aren't followed.
fn wrong_link(root: &Path, pages: &BTreeMap<String, Page>, from: &str, link: &str) -> Option<&'static str> {
    if link.starts_with("https://") {
        return None;
    }
    let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
    let to = match path {
        "" => Some(PathBuf::from(from)),
        _ => normal(&Path::new(from).with_file_name("").join(path)),
    };
    let Some(to) = to.filter(|to| root.join(to).exists()) else { return Some("it is not there") };
    let to = to.to_string_lossy().into_owned();
    let in_book = |file: &str| Path::new(file).starts_with(BOOK);
    if in_book(from) && !in_book(&to) {
        return Some("it is outside the book, which has only its own pages");
    }
    let has_anchor = || pages.get(&to).is_some_and(|page| page.anchors.contains(anchor));
    (!anchor.is_empty() && !has_anchor()).then_some("no heading has this anchor")
}

/// The path without `..`, or none where it leaves the workspace.
fn normal(path: &Path) -> Option<PathBuf> {
    let mut normal = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => normal.pop().then_some(())?,
            Component::Normal(name) => normal.push(name),
            Component::CurDir => {}
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(normal)
}

/// Whether a code span is the path of a file of this workspace, and not a pattern or an example.
fn names_file(code: &str) -> bool {
    let is_plain = |character: char| character.is_ascii_alphanumeric() || "-_./".contains(character);
    let has_placeholder = code.split(['/', '.']).any(|word| {
        word.len() > 1 && word.chars().all(|character| character.is_ascii_uppercase()) && word != "README"
    });
    FOLDERS.iter().any(|folder| code.starts_with(folder)) && code.chars().all(is_plain) && !has_placeholder
}

fn wrong_summary(pages: &BTreeMap<String, Page>) -> Vec<String> {
    let Some(summary) = pages.get(SUMMARY) else { return vec![format!("{SUMMARY} is not there")] };
    let listed = |file: &str| {
        let name = file.strip_prefix(BOOK).and_then(|name| name.strip_prefix('/')).unwrap_or(file);
        summary.links.iter().filter(|(_, link)| link == name).count()
    };
    let book = pages.keys().filter(|file| Path::new(file).starts_with(BOOK) && *file != SUMMARY);
    book.filter(|file| listed(file) != 1)
        .map(|file| format!("{SUMMARY}: {file} is listed {} times, expected once", listed(file)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_link_of_the_documentation_resolves_and_the_summary_lists_every_page() {
        let wrong = wrong(crate::workspace::root()).expect("the pages can be read");
        assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
    }

    /// Checks a workspace that has these pages beside a whole book.
    fn found(pages: &[(&str, &str)]) -> Vec<String> {
        let root = tempfile::tempdir().expect("a directory");
        let whole = [
            ("README.md", "[the book](docs/a.md#a)"),
            ("CONTRIBUTING.md", "`xtask/src/main.rs` `modules/NAME/src/lib.rs`"),
            ("knowledge/README.md", ""),
            ("sdk/README.md", ""),
            ("sdk/python/README.md", ""),
            ("xtask/src/main.rs", ""),
            ("docs/SUMMARY.md", "[A](a.md)"),
            ("docs/a.md", "# A\n[itself](#a) [elsewhere](https://example.org/x)"),
        ];
        for (file, text) in whole.iter().chain(pages) {
            let path = root.path().join(file);
            fs::create_dir_all(path.parent().expect("a parent")).expect("made");
            fs::write(path, text).expect("written");
        }
        wrong(root.path()).expect("the pages can be read")
    }

    #[test]
    fn what_is_wrong_is_named_with_its_file() {
        assert_eq!(found(&[]), Vec::<String>::new());
        for (file, text, expected) in [
            ("README.md", "[x](docs/b.md)", "README.md:1: docs/b.md: it is not there"),
            ("README.md", "\n[x](docs/a.md#b)", "README.md:2: docs/a.md#b: no heading has this anchor"),
            ("README.md", "[x](../../a.md)", "../../a.md: it is not there"),
            ("docs/a.md", "# A\n[x](../README.md)", "docs/a.md:2: ../README.md: it is outside the book"),
            ("CONTRIBUTING.md", "`xtask/src/none.rs`", "CONTRIBUTING.md:1: xtask/src/none.rs is not there"),
            ("README.md", "`x", "README.md:1: a code span has to end in its line"),
            ("docs/b.md", "", "docs/SUMMARY.md: docs/b.md is listed 0 times"),
            ("docs/SUMMARY.md", "[A](a.md) [A](a.md)", "docs/SUMMARY.md: docs/a.md is listed 2 times"),
        ] {
            let found = found(&[(file, text)]);
            assert!(found.len() == 1 && found[0].contains(expected), "{file} {text:?}: {found:?}");
        }
    }
}
