//! The rules of sudo (sudoers(5)): their files, and the rights that they give. A module that reads them needs grants for
//! the paths [`MAIN`], [`DIRECTORY`] and the files in that directory.

pub mod parse;
pub mod rights;

use crate::{Category, Context, Privilege, Result};

use parse::{Entry, Line};
use rights::{PlacedRule, Rules};

/// The main file.
pub const MAIN: &str = "/etc/sudoers";
/// The directory of further files.
pub const DIRECTORY: &str = "/etc/sudoers.d";

/// A file of sudo with its parsed lines.
#[derive(Clone, Debug)]
pub struct File {
    /// The path of the file.
    pub path: String,
    /// The lines in order.
    pub lines: Vec<Line>,
}

impl File {
    fn new(path: String, contents: &[u8]) -> Self {
        Self { path, lines: parse::lines(contents) }
    }
}

/// The files that sudo reads.
#[derive(Clone, Debug)]
pub struct Sudoers {
    main: File,
    /// The files of the directory, sorted by name as sudo reads them.
    others: Vec<File>,
    host: String,
    /// Notes on what isn't known of the files, or may be misleading.
    pub notes: Vec<String>,
}

impl Sudoers {
    /// Reads the files of sudo. `None` where sudo isn't installed.
    pub fn read(privilege: Privilege, cx: &Context) -> Result<Option<Self>> {
        let host = cx.distro().hostname;
        let cx = cx.files_as(privilege);
        let main = match cx.read_bytes(MAIN) {
            Ok(main) => File::new(MAIN.to_owned(), &main),
            Err(problem) if problem.category == Category::NotFound => return Ok(None),
            Err(problem) => return Err(problem),
        };
        let names = match cx.list_dir(DIRECTORY) {
            Err(problem) if problem.category == Category::NotFound => Vec::new(),
            names => names?,
        };
        let mut new = Self { main, others: Vec::new(), host, notes: Vec::new() };
        let (names, passed_over): (Vec<_>, Vec<_>) = names.into_iter().partition(|name| is_read(name));
        let paths: Vec<_> = names.into_iter().map(|name| format!("{DIRECTORY}/{name}")).collect();
        for (contents, path) in cx.read_all_bytes(&paths).into_iter().zip(paths) {
            match contents {
                Ok(contents) => new.others.push(File::new(path, &contents)),
                Err(problem) => new.notes.push(format!("{path} wasn't read: {}", problem.message)),
            }
        }
        if !passed_over.is_empty() {
            let names = passed_over.join(", ");
            new.notes.push(format!("in {DIRECTORY}, sudo passes over these for their names: {names}"));
        }
        if !new.includes_directory() && !new.others.is_empty() {
            new.notes.push(format!("{MAIN} doesn't include {DIRECTORY}: sudo reads none of its files"));
        }
        let mut elsewhere = Vec::new();
        new.each_line(|file, line| match &line.entry {
            Entry::Include(path) | Entry::IncludeDirectory(path) if !is_directory(&line.entry) => {
                elsewhere.push(format!("{} includes {path}, which wasn't read", file.path));
            }
            _ => {}
        });
        new.notes.extend(elsewhere);
        Ok(Some(new))
    }

    /// Whether sudo reads the files of the directory.
    pub fn includes_directory(&self) -> bool {
        self.main.lines.iter().any(|line| is_directory(&line.entry))
    }

    /// The same rules with other contents of one file of the directory.
    pub fn with(&self, path: &str, contents: &[u8]) -> Self {
        let mut after = self.clone();
        after.others.retain(|file| file.path != path);
        after.others.push(File::new(path.to_owned(), contents));
        after.others.sort_by(|a, b| a.path.cmp(&b.path));
        after
    }

    /// All rules, in the order in which sudo reads them.
    pub fn rules(&self) -> Rules {
        let mut rules = Rules::on(&self.host);
        self.each_line(|file, line| match &line.entry {
            Entry::Rules(found) => rules.rules.extend(found.iter().map(|rule| PlacedRule {
                file: file.path.clone(),
                line: line.number,
                comment: line.comment.clone(),
                rule: rule.clone(),
            })),
            Entry::Aliases(found) => rules.add_aliases(found),
            Entry::Defaults(text) => rules.asks_nobody |= asks_nobody(text),
            _ => {}
        });
        rules
    }

    /// Calls `seen` for each line, in the order in which sudo reads them.
    pub fn each_line<'a>(&'a self, mut seen: impl FnMut(&'a File, &'a Line)) {
        for line in &self.main.lines {
            seen(&self.main, line);
            if is_directory(&line.entry) {
                for file in &self.others {
                    file.lines.iter().for_each(|line| seen(file, line));
                }
            }
        }
    }
}

fn is_directory(entry: &Entry) -> bool {
    matches!(entry, Entry::IncludeDirectory(path) if path.trim_end_matches('/') == DIRECTORY)
}

/// Whether the defaults let everybody run commands without a password, unless a rule says otherwise.
fn asks_nobody(defaults: &str) -> bool {
    let settings = defaults.strip_prefix("Defaults").unwrap_or_default();
    settings.starts_with([' ', '\t'])
        && settings.split([',', ' ', '\t']).any(|setting| setting == "!authenticate")
}

/// Whether sudo reads a file of this name. It skips names with a dot, or with `~` at their end (sudoers(5)).
pub fn is_read(name: &str) -> bool {
    !name.contains('.') && !name.ends_with('~')
}

#[cfg(test)]
mod tests;
