//! Finds out which names and numbers the rules of sudo name. An account or a group of such a name gets rights as soon as it
//! exists, and a member of such a group as soon as it is one. `sudo -l` tells only of accounts and groups that are there.
//!
//! The names are found as words in the text, whatever the rules say of them, so that nothing hangs on how well the rules are
//! understood: not which hosts they are for, not what an alias holds, not as whom and what they allow.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use host_base::Privilege;
use host_base::problem::{Category, Problem};
use host_capability::{Access, PathRequest, Place, verbs_for};
use host_target::{FileKind, Found, PathCheck, ReadRequest};

use super::{LARGEST, PrivilegeCheck};

/// The files with which the rules begin: sudo's own places, and that of sudo-rs.
const FILES: [&str; 3] = ["/etc/sudoers", "/usr/etc/sudoers", "/etc/sudoers-rs"];
/// The directory in which everybody keeps further rules.
const DIRECTORY: &str = "/etc/sudoers.d";
/// The table that says where the rules are.
const SWITCH: &str = "/etc/nsswitch.conf";

/// The configuration of sudo itself, which may name other rules.
const PLUGINS: &str = "/etc/sudo.conf";

/// The number of files that are read.
const MOST_FILES: usize = 200;

/// The names and numbers in sudo's rules.
#[derive(Debug, Default, PartialEq)]
pub(super) struct SudoNames {
    /// The words in lower case, since sudo tells groups and accounts apart without regard to case. A number is `#7`.
    words: BTreeSet<String>,
}

impl SudoNames {
    /// Whether an account or a group has this name.
    pub fn has_name(&self, name: &str) -> bool {
        self.words.contains(&name.to_lowercase())
    }

    /// Whether an account or a group has this number.
    pub fn has_number(&self, number: u32) -> bool {
        self.words.contains(&format!("#{number}"))
    }

    /// All numbers.
    pub fn numbers(&self) -> impl Iterator<Item = u32> {
        self.words.iter().filter_map(|word| word.strip_prefix('#')?.parse().ok())
    }
}

/// Another file, or the files of a directory, that sudo reads as well.
#[derive(Debug, PartialEq)]
enum Include {
    File(String),
    Directory(String),
    /// The path depends on something, such as the name of the host.
    Unknown,
}

impl PrivilegeCheck<'_> {
    /// The names and numbers in sudo's rules. An error names the part of the rules that the target doesn't show.
    pub(super) async fn sudo_names(&mut self) -> Result<Arc<SudoNames>, String> {
        match &self.sudo_names {
            Some(known) => known.clone(),
            None => {
                let names = self.read_sudo_names().await.map(Arc::new);
                self.sudo_names.insert(names).clone()
            }
        }
    }

    async fn read_sudo_names(&self) -> Result<SudoNames, String> {
        let caller = Access { privilege: Privilege::Caller, verbs: Vec::new() };
        match self.read_one(SWITCH, &caller).await {
            Ok(table) if are_rules_in_files(&table) => {}
            Err(problem) if problem.category == Category::NotFound => {}
            _ => return Err(format!("{SWITCH}, which may name other places of the rules")),
        }
        match self.read_one(PLUGINS, &caller).await {
            Ok(configuration) if has_usual_plugins(&configuration) => {}
            Err(problem) if problem.category == Category::NotFound => {}
            _ => return Err(format!("{PLUGINS}, which may name other rules")),
        }
        let mut names = SudoNames::default();
        let mut next: Vec<String> = Vec::new();
        for file in FILES {
            if !self.is_absent(file).await {
                next.push(file.to_owned());
            }
        }
        let mut seen = BTreeSet::new();
        while let Some(path) = next.pop() {
            if !seen.insert(path.clone()) {
                continue;
            }
            if seen.len() > MOST_FILES {
                return Err(format!("more than {MOST_FILES} files"));
            }
            let text = match self.rules_in(&path).await {
                // sudo ignores an included file that isn't there.
                Err(problem) if problem.category == Category::NotFound => continue,
                text => text.map_err(|_| path.clone())?,
            };
            let (words, includes) = read(&text);
            names.words.extend(words);
            for include in includes {
                match include {
                    Include::File(file) => next.push(beside(&path, &file).ok_or(file)?),
                    Include::Directory(directory) => {
                        let directory = beside(&path, &directory).ok_or(directory)?;
                        next.extend(self.listed(&directory).await.map_err(|_| directory)?);
                    }
                    Include::Unknown => {
                        return Err(format!("a file that {path} includes by a changing name"));
                    }
                }
            }
        }
        Ok(names)
    }

    /// The text of a file of rules. Root's rights are taken only where it isn't empty and the caller can't read it: sudo may not
    /// allow them outside of its usual directory.
    pub(super) async fn rules_in(&self, path: &str) -> Result<String, Problem> {
        if let Ok(Some(Found { kind: FileKind::File, metadata })) = self.found(path).await
            && metadata.size == 0
        {
            return Ok(String::new());
        }
        let caller = Access { privilege: Privilege::Caller, verbs: Vec::new() };
        match self.read_one(path, &caller).await {
            Err(problem) if problem.category == Category::Privilege => {
                self.read_one(path, &rights_on(path)?).await
            }
            text => text,
        }
    }

    async fn read_one(&self, path: &str, access: &Access) -> Result<String, Problem> {
        let all: Arc<PathCheck> = Arc::new(|_, _| Ok(()));
        let request = ReadRequest { path: path.to_owned(), offset: 0, max_bytes: LARGEST };
        let text = self.target.read_all(vec![request], access, all).await.pop();
        let text = text.unwrap_or_else(|| Err(unanswered()))?;
        match (text.len() as u64) < LARGEST {
            true => Ok(String::from_utf8_lossy(&text).into_owned()),
            false => Err(unanswered()),
        }
    }

    /// The files of a directory that sudo reads.
    async fn listed(&self, directory: &str) -> Result<Vec<String>, Problem> {
        let caller = Access { privilege: Privilege::Caller, verbs: Vec::new() };
        let names = match self.names_in(directory, &caller).await {
            Err(problem) if problem.category == Category::Privilege => {
                self.names_in(directory, &rights_on(&format!("{directory}/*"))?).await
            }
            names => names,
        };
        match names {
            Err(problem) if problem.category == Category::NotFound => Ok(Vec::new()),
            names => Ok(names?.into_iter().map(|name| format!("{directory}/{name}")).collect()),
        }
    }

    async fn names_in(&self, directory: &str, access: &Access) -> Result<Vec<String>, Problem> {
        let all: Arc<PathCheck> = Arc::new(|_, _| Ok(()));
        let listed = self.target.list_all(vec![directory.to_owned()], access, all).await.pop();
        listed.unwrap_or_else(|| Err(unanswered()))
    }
}

fn unanswered() -> Problem {
    Problem::new("COMMAND_FAILED", Category::Other, "the target doesn't answer")
}

/// Root's rights to read a file of rules, where they can be had. In the usual directory they are those with which a module
/// reads the rules, so that sudo allows both or neither.
fn rights_on(path: &str) -> Result<Access, Problem> {
    let is_usual = path.strip_prefix(DIRECTORY).is_some_and(|below| below.starts_with('/'));
    let globs =
        if is_usual { vec![format!("{DIRECTORY}/*"), DIRECTORY.to_owned()] } else { vec![path.to_owned()] };
    let mut verbs = Vec::new();
    for glob in globs {
        let request = PathRequest {
            glob,
            write: false,
            privilege: Privilege::Root,
            place: Place::Target,
            reason: String::new(),
        };
        let of_request = verbs_for(&request)
            .map_err(|error| Problem::new("INVALID_PATTERN", Category::Internal, error.to_string()))?;
        verbs.extend(of_request.into_iter().map(Arc::new));
    }
    Ok(Access { privilege: Privilege::RootIfAvailable, verbs })
}

/// The path of an included file, which begins in the directory of the file that includes it.
fn beside(file: &str, included: &str) -> Option<String> {
    let joined = Path::new(file).parent()?.join(included);
    let mut path = PathBuf::new();
    for part in joined.components() {
        match part {
            Component::ParentDir => {
                path.pop();
            }
            part => path.push(part),
        }
    }
    Some(path.to_str()?.to_owned())
}

/// Whether sudo has its rules from files alone, by nsswitch.conf(5).
fn are_rules_in_files(table: &str) -> bool {
    let lines = table.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
    let sources = lines.filter_map(|line| line.strip_prefix("sudoers:"));
    sources.flat_map(str::split_whitespace).all(|source| source == "files")
}

/// Whether sudo decides by its own plugin, and by the rules in their usual place, by sudo.conf(5).
fn has_usual_plugins(configuration: &str) -> bool {
    let plugins = configuration.lines().map(str::trim).filter(|line| line.starts_with("Plugin"));
    plugins.map(|line| line.split_whitespace().collect::<Vec<_>>()).all(|words| {
        matches!(words[..], ["Plugin", "sudoers_policy" | "sudoers_io" | "sudoers_audit", "sudoers.so"])
    })
}

/// The words of the rules in a text that may name an account or a group, and the further files. Each line is read alone and
/// with those in which it goes on, so that it doesn't matter where a comment ends.
fn read(text: &str) -> (BTreeSet<String>, Vec<Include>) {
    let (mut words, mut includes) = (BTreeSet::new(), Vec::new());
    let joined = text.replace("\\\r\n", " ").replace("\\\n", " ");
    for line in text.lines().chain(joined.lines()).map(str::trim) {
        let first = line.split_whitespace().next().unwrap_or_default();
        if let Some(include) = include(line) {
            if !includes.contains(&include) {
                includes.push(include);
            }
            continue;
        }
        match first {
            "Cmnd_Alias" | "Cmd_Alias" | "Host_Alias" | "Runas_Alias" => {}
            _ if first.starts_with("Defaults") => {}
            // A number stands behind the sign of a comment.
            _ if line.starts_with('#')
                && !line[1..].starts_with(|c: char| c == '-' || c.is_ascii_digit()) => {}
            _ => {
                // The accounts and groups stand before the first sign of equality, except in an alias, and except where a
                // quoted name has that sign in it.
                let is_whole = first == "User_Alias" || line.contains(['"', '\\']);
                let users = if is_whole { line } else { line.split('=').next().unwrap_or_default() };
                let is_between = |c: char| c.is_whitespace() || ",=:()!\"'%+;|&".contains(c);
                let found = unescaped(users);
                let found = found.split(is_between).filter(|word| !word.is_empty());
                words.extend(found.map(str::to_lowercase));
            }
        }
    }
    (words, includes)
}

/// The further file or directory that a line names. A blank or a quote stands behind the keyword.
fn include(line: &str) -> Option<Include> {
    let (rest, is_directory) = match (line.strip_prefix(['@', '#'])?, line.starts_with('@')) {
        (rest, _) if rest.starts_with("includedir") => (&rest["includedir".len()..], true),
        (rest, _) if rest.starts_with("include") => (&rest["include".len()..], false),
        _ => return None,
    };
    let is_comment = line.starts_with('#') && !rest.starts_with([' ', '\t', '"', '/']);
    if is_comment && !rest.is_empty() {
        return None;
    }
    Some(match included(rest) {
        Some(path) if is_directory => Include::Directory(path),
        Some(path) => Include::File(path),
        None => Include::Unknown,
    })
}

/// The path that an include names. None where it depends on the host's name.
fn included(rest: &str) -> Option<String> {
    let rest = rest.trim();
    let path = match rest.strip_prefix('"') {
        Some(quoted) => quoted.split('"').next().unwrap_or_default().to_owned(),
        None => {
            let mut is_escaped = false;
            let end = rest.find(|c: char| {
                let ends = c.is_whitespace() && !is_escaped;
                is_escaped = c == '\\' && !is_escaped;
                ends
            });
            rest[..end.unwrap_or(rest.len())].to_owned()
        }
    };
    (!path.is_empty() && !path.contains('%')).then(|| unescaped(&path))
}

/// The text without backslashes, and with the characters that `\x41` stands for.
fn unescaped(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        plain.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let code = rest.strip_prefix('x').and_then(|rest| rest.get(..2));
        if let Some(code) = code.and_then(|code| u8::from_str_radix(code, 16).ok()) {
            plain.push(char::from(code));
            rest = &rest[3..];
        } else if let Some(next) = rest.chars().next() {
            plain.push(next);
            rest = &rest[next.len_utf8()..];
        }
    }
    plain + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    /// sudo 1.9.13 gives the group `esc` or the account 1012 something by each of these.
    #[test]
    fn whatever_gives_a_name_something_names_it() {
        for (text, name) in [
            ("%esc ALL=(ALL) NOPASSWD: ALL\n", "esc"),
            ("\t%ESC\tALL = ALL", "esc"),
            ("%Esc nohost=(ALL) ALL : ALL=(ALL) ALL", "esc"),
            ("bob,!carl,%esc ALL=ALL", "esc"),
            ("%esc,bob db*=/bin/true", "esc"),
            ("\"%esc\" ALL=ALL", "esc"),
            ("\"we=ird\",%esc ALL=ALL", "esc"),
            (r"%e\sc ALL=ALL", "esc"),
            (r"%\x65sc ALL=ALL", "esc"),
            (r"we\=ird,%esc ALL=ALL", "esc"),
            ("User_Alias A = bob : B = carl, %esc\nB ALL=ALL", "esc"),
            ("User_Alias A = \\\n  %esc\nA ALL=ALL", "esc"),
            ("bob,\\\n%esc ALL=ALL", "esc"),
            ("%esc ALL=(alice) /bin/true", "esc"),
            ("%:esc ALL=ALL", "esc"),
            ("# x \\\n%esc db*=(ALL) NOPASSWD: ALL", "esc"),
            ("Defaults !lecture # \\\n%esc ALL=(alice) ALL", "esc"),
            ("bob ALL=ALL # \\\n%esc ALL=(alice) ALL", "esc"),
            ("bob, #1012 ALL=ALL", "#1012"),
            ("#1012 ALL=ALL", "#1012"),
            ("%#1012 ALL=ALL", "#1012"),
        ] {
            assert!(read(text).0.contains(name), "{text}: {:?}", read(text));
        }
        let plain = "# %esc is gone\nDefaults:esc !authenticate\nbob ALL=(esc) /usr/bin/esc\n\
                     Cmnd_Alias ESC = /usr/bin/esc\n\nRunas_Alias A = esc\n";
        let words = read(plain).0;
        assert_eq!(words.iter().map(String::as_str).collect::<Vec<_>>(), ["all", "bob"]);
        assert_eq!(read("").0, BTreeSet::new());
    }

    #[test]
    fn further_files_are_found_however_they_are_written() {
        let file = |path: &str| vec![Include::File(path.to_owned())];
        let directory = |path: &str| vec![Include::Directory(path.to_owned())];
        for (line, expected) in [
            ("@includedir /etc/sudoers.d", directory("/etc/sudoers.d")),
            ("#includedir /etc/sudoers.d", directory("/etc/sudoers.d")),
            ("  @include /srv/rules # more", file("/srv/rules")),
            ("#include \"/srv/my rules\"", file("/srv/my rules")),
            (r"@include /srv/my\ rules", file("/srv/my rules")),
            ("@include ../rules", file("../rules")),
            ("@include\"/srv/rules\"", file("/srv/rules")),
            ("@includedir\"/srv/rules.d\"", directory("/srv/rules.d")),
            ("Defaults !lecture # \\\n@include /srv/rules", file("/srv/rules")),
            ("#includes more", Vec::new()),
            ("@include /etc/sudoers.%h", vec![Include::Unknown]),
            ("@include", vec![Include::Unknown]),
            ("# include /srv/rules", Vec::new()),
        ] {
            assert_eq!(read(line).1, expected, "{line}");
        }
        assert_eq!(beside("/etc/sudoers.d/a", "../rules").as_deref(), Some("/etc/rules"));
        assert_eq!(beside("/etc/sudoers", "/srv/rules").as_deref(), Some("/srv/rules"));
    }

    #[test]
    fn rules_elsewhere_than_in_files_are_unknown() {
        for (table, are_in_files) in [
            ("passwd: files sss\nsudoers: files\n", true),
            ("passwd: files\n", true),
            ("", true),
            ("sudoers: files sss # from the directory\n", false),
            ("sudoers:\tldap\n", false),
            ("#sudoers: ldap\n", true),
        ] {
            assert_eq!(are_rules_in_files(table), are_in_files, "{table}");
        }
    }

    /// The first text is from sudo 1.9.5 of RHEL 9.
    #[test]
    fn other_plugins_and_other_places_of_the_rules_are_unknown() {
        for (text, is_usual) in [
            (
                "Plugin sudoers_policy sudoers.so\nPlugin sudoers_io sudoers.so\nSet disable_coredump true\n",
                true,
            ),
            ("# Plugin other other.so\n", true),
            ("", true),
            ("Plugin sudoers_policy sudoers.so sudoers_file=/etc/other\n", false),
            ("  Plugin my_policy my.so\n", false),
        ] {
            assert_eq!(has_usual_plugins(text), is_usual, "{text}");
        }
    }

    #[test]
    fn names_are_compared_without_regard_to_case_and_numbers_with_their_sign() {
        let names = SudoNames { words: read("%Ops, #1012 ALL=ALL").0 };
        assert!(names.has_name("OPS") && names.has_name("ops") && !names.has_name("op"));
        assert!(names.has_number(1012) && !names.has_number(12) && !names.has_name("1012"));
        assert_eq!(names.numbers().collect::<Vec<_>>(), [1012]);
    }
}
