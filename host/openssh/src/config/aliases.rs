//! The hosts that the configuration has a name for: each word of a `Host` line that isn't a pattern. Nothing is run for
//! it, so what depends on a `Match` names nobody.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use super::files::{self, words};
use super::tokens::Caller;
use crate::pattern;
use host_base::small_file;

/// So many files are the most that are read.
const MOST_FILES: usize = 1_000;

/// Names of hosts.
#[derive(Debug, Default)]
pub struct Aliases {
    /// As `Host` has them.
    pub names: BTreeSet<String>,
    /// What couldn't be read, a sentence each.
    pub warnings: Vec<String>,
}

/// What the user's configuration and the system's name.
pub fn aliases() -> Aliases {
    let caller = Caller::current();
    read(&[&caller.home.join(".ssh/config"), Path::new(files::SYSTEM)], &caller)
}

fn read(paths: &[&Path], caller: &Caller) -> Aliases {
    let mut reader = Reader { caller, directory: PathBuf::new(), left: MOST_FILES, warnings: Vec::new() };
    let mut names = BTreeSet::new();
    for path in paths {
        reader.directory = path.parent().unwrap_or(Path::new("/")).to_owned();
        names.extend(reader.file(path, 0));
    }
    Aliases { names, warnings: reader.warnings }
}

/// About which hosts a part of a file is.
enum About {
    All,
    Listed(Vec<String>),
    /// A `Match` that somebody would have to be asked for.
    Unknown,
}

impl About {
    fn has(&self, name: &str) -> bool {
        match self {
            Self::All => true,
            Self::Listed(patterns) => pattern::lists(patterns.iter().map(String::as_str), name),
            Self::Unknown => false,
        }
    }
}

struct Reader<'a> {
    caller: &'a Caller,
    directory: PathBuf,
    left: usize,
    warnings: Vec<String>,
}

impl Reader<'_> {
    /// Nothing is in a file that isn't there, and nothing is taken from one that can't be read to its end.
    fn file(&mut self, path: &Path, depth: usize) -> BTreeSet<String> {
        self.names(path, depth).unwrap_or_else(|why| {
            let warning = format!("No host of {} may be named: {why}.", path.display());
            if !self.warnings.contains(&warning) {
                self.warnings.push(warning);
            }
            BTreeSet::new()
        })
    }

    fn names(&mut self, path: &Path, depth: usize) -> Result<BTreeSet<String>, String> {
        self.left = self.left.checked_sub(1).ok_or(format!("there are more than {MOST_FILES} files"))?;
        let text = match small_file::read(path, |found| files::may(found, self.caller)) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(BTreeSet::new()),
            Err(error) => return Err(error.to_string()),
        };
        let mut names = BTreeSet::new();
        let mut about = About::All;
        for (index, line) in text.lines().enumerate() {
            let Some((keyword, rest)) = words::keyword(line) else { continue };
            let keyword = keyword.to_ascii_lowercase();
            if !["host", "match", "include"].contains(&&*keyword) {
                continue;
            }
            let at_line = |why: String| format!("line {}: {why}", index + 1);
            let values = words::split(rest).map_err(|why| at_line(why.to_owned()))?;
            match &*keyword {
                "host" => {
                    let is_alias = |name: &&String| {
                        let listed = pattern::lists(values.iter().map(String::as_str), name);
                        !name.contains(['*', '?', '!']) && listed
                    };
                    names.extend(values.iter().filter(is_alias).cloned());
                    about = About::Listed(values);
                }
                "match" => {
                    let is_all = matches!(&values[..], [all] if all.eq_ignore_ascii_case("all"));
                    about = if is_all { About::All } else { About::Unknown };
                }
                _ if depth >= files::DEEPEST => {
                    return Err(at_line("files are included too deeply".to_owned()));
                }
                _ => {
                    for value in &values {
                        for file in files::included(value, &self.directory, self.caller).map_err(at_line)? {
                            let inside = self.file(&file, depth + 1);
                            names.extend(inside.into_iter().filter(|name| about.has(name)));
                        }
                    }
                }
            }
        }
        Ok(names)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn caller(home: &Path) -> Caller {
        Caller { home: home.to_owned(), ..Caller::current() }
    }

    /// What a configuration of these files names; the first is the user's.
    fn named(files: &[(&str, &str)]) -> (String, Vec<String>) {
        let home = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = home.path().join(".ssh").join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        }
        let user = home.path().join(".ssh/config");
        let found = read(&[&user], &caller(home.path()));
        (found.names.into_iter().collect::<Vec<_>>().join(" "), found.warnings)
    }

    #[test]
    fn each_word_of_a_host_line_is_a_name_but_patterns() {
        for (text, names) in [
            ("Host web\n  HostName 10.0.0.1\nHost db mail\n", "db mail web"),
            ("host=web\r\n\tUser ada\r\n", "web"),
            ("HOST \"web\" 'db' # comment\n", "db web"),
            ("Host *\nHost web-? !x *.example.com db\n", "db"),
            ("Host web !web\n", ""),
            ("# Host web\nUser ada\n", ""),
            ("Match host web\n  User ada\n", ""),
            ("", ""),
        ] {
            assert_eq!(named(&[("config", text)]), (names.to_owned(), vec![]), "{text}");
        }
    }

    #[test]
    fn includes_are_followed_as_far_as_they_are_about_a_host() {
        for (text, names) in [
            ("Include conf.d/*\nHost web\n", "a b web"),
            ("Include ~/.ssh/conf.d/a.conf\n", "a"),
            ("Include conf.d/none*\nHost web\n", "web"),
            ("Host web\nInclude conf.d/*\n", "web"),
            ("Host b\nInclude conf.d/*\n", "b"),
            ("Host *\nInclude conf.d/*\n", "a b"),
            ("Match all\nInclude conf.d/*\n", "a b"),
            ("Match exec true\nInclude conf.d/*\n", ""),
        ] {
            let files = [("config", text), ("conf.d/a.conf", "Host a\n"), ("conf.d/b.conf", "Host b\n")];
            assert_eq!(named(&files), (names.to_owned(), vec![]), "{text}");
        }
    }

    #[test]
    fn a_file_that_cannot_be_read_names_nobody_and_is_told_of() {
        for (text, why) in [
            ("Host web\nHost \"db\n", "line 2: a quote has no end"),
            ("Host web\nInclude %d/x\n", "line 2: tokens and variables"),
            ("Host web\nInclude ~ada/x\n", "another account's home"),
        ] {
            let (names, warnings) = named(&[("config", text)]);
            assert_eq!(names, "", "{text}");
            assert!(warnings[0].contains(why), "{warnings:?}");
        }
        let (names, warnings) = named(&[("config", "Host web\nInclude x\n"), ("x", "Host \"\n")]);
        assert_eq!((&*names, warnings.len()), ("web", 1));
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("config");
        fs::write(&path, "Host web\n").unwrap();
        for mode in [0o620, 0o602] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            let found = read(&[&path], &caller(home.path()));
            assert!(found.names.is_empty() && found.warnings[0].contains("bad owner or permissions"));
        }
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        fs::write(&path, b"Host web\xff\n").unwrap();
        let found = read(&[&path, home.path(), &home.path().join("none")], &caller(home.path()));
        assert!(found.names.is_empty(), "{found:?}");
        assert_eq!(found.warnings.len(), 2, "{found:?}");
    }

    #[test]
    fn files_that_include_themselves_end() {
        let (names, warnings) = named(&[("config", "Host web\nInclude config config\n")]);
        assert_eq!(names, "web");
        assert!(
            warnings.iter().any(|why| why.contains("more than 1000 files") || why.contains("too deeply"))
        );
        assert!(warnings.len() <= 2, "{warnings:?}");
    }
}
