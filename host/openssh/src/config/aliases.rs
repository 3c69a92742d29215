//! The hosts that the configuration has a name for: each word of a `Host` line that isn't a pattern. Nothing is run
//! for it, and so names that depend on a `Match` are left out.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use super::files;
use super::tokens::LocalUser;
use host_base::trusted_file;
use host_ssh_syntax::{directive, matches_list};

/// The most files that are read.
const MOST_FILES: usize = 1_000;

/// The names of hosts.
#[derive(Debug, Default)]
pub struct HostAliases {
    /// The names in `Host` lines.
    pub names: BTreeSet<String>,
    /// A sentence about each file that couldn't be read.
    pub warnings: Vec<String>,
}

/// Returns the names in the user's configuration and the system's.
pub fn aliases() -> HostAliases {
    let local_user = LocalUser::current();
    read(&[&local_user.home.join(".ssh/config"), Path::new(files::SYSTEM)], &local_user)
}

fn read(paths: &[&Path], local_user: &LocalUser) -> HostAliases {
    let mut reader = Reader { local_user, directory: PathBuf::new(), left: MOST_FILES, warnings: Vec::new() };
    let mut names = BTreeSet::new();
    for path in paths {
        reader.directory = path.parent().unwrap_or(Path::new("/")).to_owned();
        names.extend(reader.file(path, 0));
    }
    HostAliases { names, warnings: reader.warnings }
}

/// The hosts that a part of a file is about.
enum HostBlock {
    All,
    Listed(Vec<String>),
    /// A `Match` whose hosts can't be told without running something.
    Unknown,
}

impl HostBlock {
    fn has(&self, name: &str) -> bool {
        match self {
            Self::All => true,
            Self::Listed(patterns) => matches_list(patterns.iter().map(String::as_str), name),
            Self::Unknown => false,
        }
    }
}

struct Reader<'a> {
    local_user: &'a LocalUser,
    directory: PathBuf,
    left: usize,
    warnings: Vec<String>,
}

impl Reader<'_> {
    /// Returns the names in a file. There are none in a missing file, and none in one that can't be read to its end.
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
        let text = match trusted_file::read(path, |found| files::check_owner(found, self.local_user)) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(BTreeSet::new()),
            Err(error) => return Err(error.to_string()),
        };
        let mut names = BTreeSet::new();
        let mut about = HostBlock::All;
        for (index, line) in text.lines().enumerate() {
            let Some((keyword, rest)) = directive(line) else { continue };
            let keyword = keyword.to_ascii_lowercase();
            if !["host", "match", "include"].contains(&&*keyword) {
                continue;
            }
            let at_line = |why: String| format!("line {}: {why}", index + 1);
            let values = files::word_texts(rest).map_err(|why| at_line(why.to_owned()))?;
            match &*keyword {
                "host" => {
                    let is_alias = |name: &&String| {
                        let listed = matches_list(values.iter().map(String::as_str), name);
                        !name.contains(['*', '?', '!']) && listed
                    };
                    names.extend(values.iter().filter(is_alias).cloned());
                    about = HostBlock::Listed(values);
                }
                "match" => {
                    let is_all = matches!(&values[..], [all] if all.eq_ignore_ascii_case("all"));
                    about = if is_all { HostBlock::All } else { HostBlock::Unknown };
                }
                _ if depth >= files::DEEPEST => {
                    return Err(at_line("files are included too deeply".to_owned()));
                }
                _ => {
                    for value in &values {
                        for file in
                            files::included(value, &self.directory, self.local_user).map_err(at_line)?
                        {
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

    fn local_user(home: &Path) -> LocalUser {
        LocalUser { home: home.to_owned(), ..LocalUser::current() }
    }

    /// Returns the names in a configuration of these files. The first is the user's.
    fn named(files: &[(&str, &str)]) -> (String, Vec<String>) {
        let home = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = home.path().join(".ssh").join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        }
        let user = home.path().join(".ssh/config");
        let found = read(&[&user], &local_user(home.path()));
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
            let found = read(&[&path], &local_user(home.path()));
            assert!(found.names.is_empty() && found.warnings[0].contains("bad owner or permissions"));
        }
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        fs::write(&path, b"Host web\xff\n").unwrap();
        let found = read(&[&path, home.path(), &home.path().join("none")], &local_user(home.path()));
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
