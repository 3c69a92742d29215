//! Text that becomes root's code: the command lines that somebody else runs because they stand in a file or come on a
//! program's standard input. A unit or a crontab is written at little risk and runs as root.
//!
//! A text that tools write every day has a reader, which its path decides: it finds the command lines, with the quoting of the
//! program that runs them, and takes everything beside them for power unless it is known to be harmless. Any other text
//! below the system's directories is unreadable, and so is what a program that isn't known here is given to read. Power and
//! what can't be read count as not harmless, and so does a command line of root's that no list knows.

mod authorized_keys;
mod compose;
mod crontab;
mod harmless;
mod place;
mod programs;
mod ssh;
mod stdin;
mod sudoers;
mod unit;
mod words;
mod yaml;

pub use harmless::objection;
pub use place::{home_at, home_of, is_read, is_system as is_the_systems};
pub use stdin::{of_known_stdin, of_stdin};
pub use unit::{DYNAMIC, HANDS_OVER};

use std::fmt::Display;

use place::Kind;

use host_text::visible::excerpt;

/// What is found in a text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Code {
    /// What would run, in the text's order.
    pub lines: Vec<CommandLine>,
    /// What gives power and isn't a command: a sentence each, as `sets LD_PRELOAD for what runs as root, line 4`.
    pub power: Vec<String>,
    /// Why not all that would run is known, as `a script`.
    pub unreadable: Option<String>,
    /// Files that what runs is given and that everybody may know, with where they stand.
    pub files: Vec<(String, String)>,
    /// What is done to other units along with it.
    pub acts: Vec<Act>,
    /// Ports that it listens on.
    pub ports: Vec<u16>,
}

/// What is done to a unit by the way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Act {
    /// As systemctl calls it, or [`HANDS_OVER`].
    pub verb: &'static str,
    /// The unit's name.
    pub unit: String,
    /// Where it stands.
    pub at: String,
}

/// One command that would run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandLine {
    /// The program first. What only the reading program knows (`%i` of a template, `$MAINPID`) stays as written.
    pub argv: Vec<String>,
    /// Where it stands, as `ExecStart, line 7`.
    pub at: String,
    /// The text, where a shell would read it.
    pub shell: Option<String>,
    /// Whose rights it runs with, where they aren't root's.
    pub user: Option<String>,
    /// Where its relative paths begin, where the text says that.
    pub directory: Option<String>,
}

/// Most sentences: one is enough for a decision, and a hostile text could have thousands.
const SENTENCES: usize = 20;
/// The largest text that is looked into: no honest one comes near.
const LARGEST: usize = 1 << 20;
/// Characters of the text that a sentence shows.
const SHOWN: usize = 120;

/// What would run because a file has these contents. None: nobody takes code from a file at such a place.
pub fn of_file(path: &str, contents: &[u8]) -> Option<Code> {
    let path = place::normal(path);
    let kind = if contents.starts_with(b"#!") {
        Kind::Opaque("a script")
    } else if contents.starts_with(b"\x7fELF") {
        Kind::Opaque("a program")
    } else {
        place::kind(&path)?
    };
    Some(read(&kind, &path, contents))
}

/// The same of a unit file, together with the texts of the drop-ins that apply to it.
pub fn of_unit(path: &str, contents: &[u8], drop_ins: &[Vec<u8>]) -> Option<Code> {
    let path = place::normal(path);
    let texts: Option<Vec<&str>> = drop_ins.iter().map(|text| decoded(text).ok()).collect();
    match (place::kind(&path), decoded(contents), texts) {
        (Some(Kind::Unit), Ok(text), Some(drop_ins)) => Some(unit::read(&path, text, &drop_ins)),
        (Some(Kind::Unit), Ok(_), None) => Some(Code::unreadable("a drop-in that is no text")),
        _ => of_file(&path, contents),
    }
}

fn read(kind: &Kind, path: &str, contents: &[u8]) -> Code {
    if let Kind::Opaque(what) = kind {
        return Code::unreadable(*what);
    }
    let text = match decoded(contents) {
        Ok(text) => text,
        Err(what) => return Code::unreadable(what),
    };
    match kind {
        Kind::Unit => unit::read(path, text, &[]),
        Kind::SystemCrontab => crontab::read(text, &crontab::Form::System),
        Kind::Crontab(user) => crontab::read(text, &crontab::Form::Of(user.clone())),
        Kind::Anacrontab => crontab::read(text, &crontab::Form::Anacron),
        Kind::Sudoers => sudoers::read(text),
        Kind::Compose => compose::read(text),
        Kind::Ssh(user) => ssh::read(text, user.as_deref()),
        Kind::AuthorizedKeys(user) => authorized_keys::read(text, user.as_deref()),
        Kind::Opaque(what) => Code::unreadable(*what),
    }
}

/// The text that bytes are, or why they are none.
fn decoded(contents: &[u8]) -> Result<&str, String> {
    if contents.len() > LARGEST {
        return Err(format!("larger than {LARGEST} bytes"));
    }
    // No format here has a NUL in it, and programs differ in what they take it for.
    match std::str::from_utf8(contents) {
        Ok(text) if !text.contains('\0') => Ok(text.strip_prefix('\u{feff}').unwrap_or(text)),
        Ok(_) => Err("text with a NUL in it".to_owned()),
        Err(_) => Err("not UTF-8".to_owned()),
    }
}

impl Code {
    /// The code with this account for every line that names none.
    pub fn of(mut self, account: Option<&str>) -> Self {
        for line in self.lines.iter_mut().filter(|line| line.user.is_none()) {
            line.user = account.map(str::to_owned);
        }
        self
    }

    fn unreadable(what: impl Into<String>) -> Self {
        Self { unreadable: Some(what.into()), ..Self::default() }
    }

    /// The first reason stays.
    fn cannot_read(&mut self, why: impl Into<String>) {
        self.unreadable.get_or_insert_with(|| why.into());
    }

    /// A program that is run without a shell.
    fn run(&mut self, argv: Vec<String>, at: impl Display, user: Option<&str>) {
        if argv.is_empty() {
            return;
        }
        let shell = programs::shell_text(&argv).map(str::to_owned);
        self.lines.push(CommandLine {
            argv,
            at: at.to_string(),
            shell,
            user: user.map(str::to_owned),
            directory: None,
        });
    }

    /// A line that a shell reads.
    fn shell(&mut self, text: &str, at: impl Display, user: Option<&str>) {
        if text.trim().is_empty() {
            return;
        }
        self.run(["sh", "-c", text].map(str::to_owned).into(), at, user);
    }

    /// A file that is read as root, for somebody else.
    fn reads(&mut self, path: &str, at: impl Display) {
        self.files.push((path.to_owned(), at.to_string()));
    }

    /// What is done to another unit as well.
    fn acts(&mut self, verb: &'static str, unit: &str, at: impl Display) {
        self.acts.push(Act { verb, unit: unit.to_owned(), at: at.to_string() });
    }

    /// Power that isn't a command.
    fn gives(&mut self, sentence: impl Display) {
        match self.power.len() < SENTENCES {
            true => self.power.push(sentence.to_string()),
            // A sentence that isn't listed can't be told from one that was there before.
            false => self.cannot_read("it gives more than can be listed"),
        }
    }

    /// All that another text has as well.
    fn add(&mut self, other: Self) {
        self.lines.extend(other.lines);
        self.files.extend(other.files);
        self.acts.extend(other.acts);
        self.ports.extend(other.ports);
        other.power.into_iter().for_each(|sentence| self.gives(sentence));
        if let Some(why) = other.unreadable {
            self.cannot_read(why);
        }
    }
}

/// A part of the text in a sentence.
fn shown(text: &str) -> String {
    excerpt(text, SHOWN)
}

#[cfg(test)]
mod tests;
