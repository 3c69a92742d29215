//! Text that becomes root's code: the command lines that somebody else runs because they stand in a file or come on a
//! program's standard input. A unit, a crontab or a compose file is written at little risk and runs as root.
//!
//! Which file is read how follows from its path, as the programs find it. A line is what the program that reads the text
//! would run, with the program's own quoting; in doubt the reading is the one that finds more. What can't be read is said
//! to be unreadable, and what gives power without being a command is said in a sentence: both count as not harmless.

mod assignments;
mod authorized_keys;
mod compose;
mod crontab;
mod git;
mod logrotate;
mod modules;
mod place;
mod programs;
mod ssh;
mod stdin;
mod sudoers;
mod udev;
mod unit;
mod words;
mod yaml;

pub use stdin::of_stdin;

use std::fmt::Display;

use place::Kind;

use crate::visible::excerpt;

/// What is found in a text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Code {
    /// What would run, in the text's order.
    pub lines: Vec<CommandLine>,
    /// What gives power and isn't a command: a sentence each, as `sets LD_PRELOAD for what runs as root, line 4`.
    pub power: Vec<String>,
    /// Why not all that would run is known, as `a script`.
    pub unreadable: Option<String>,
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

fn read(kind: &Kind, path: &str, contents: &[u8]) -> Code {
    if let Kind::Opaque(what) = kind {
        return Code::unreadable(*what);
    }
    if contents.len() > LARGEST {
        return Code::unreadable(format!("larger than {LARGEST} bytes"));
    }
    // No format here has a NUL in it, and programs differ in what they take it for.
    let text = match std::str::from_utf8(contents) {
        Ok(text) if !text.contains('\0') => text,
        Ok(_) => return Code::unreadable("text with a NUL in it"),
        Err(_) => return Code::unreadable("not UTF-8"),
    };
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    match kind {
        Kind::Unit => unit::read(path, text),
        Kind::SystemdConf => unit::read_conf(path, text),
        Kind::SystemCrontab => crontab::read(text, &crontab::Form::System),
        Kind::Crontab(user) => crontab::read(text, &crontab::Form::Of(user.clone())),
        Kind::Anacrontab => crontab::read(text, &crontab::Form::Anacron),
        Kind::Sudoers => sudoers::read(text),
        Kind::Compose => compose::read(text),
        Kind::Ssh(user) => ssh::read(text, user.as_deref()),
        Kind::AuthorizedKeys(user) => authorized_keys::read(text, user.as_deref()),
        Kind::Udev => udev::read(text),
        Kind::Logrotate => logrotate::read(text),
        Kind::Sysctl => modules::sysctl(text),
        Kind::Modprobe => modules::modprobe(text),
        Kind::Pam { one_service } => modules::pam(text, *one_service),
        Kind::Assignments => assignments::read(text),
        Kind::Git(user) => git::read(text, user.as_deref()),
        Kind::Opaque(what) => Code::unreadable(*what),
    }
}

impl Code {
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
        if user.is_none()
            && let Some(program) = programs::loose(&argv)
        {
            self.gives(format_args!(
                "runs {program} as root, where others than root may put another one, {at}"
            ));
        }
        let shell = programs::shell_text(&argv).map(str::to_owned);
        self.lines.push(CommandLine { argv, at: at.to_string(), shell, user: user.map(str::to_owned) });
    }

    /// A line that a shell reads.
    fn shell(&mut self, text: &str, at: impl Display, user: Option<&str>) {
        if text.trim().is_empty() {
            return;
        }
        self.run(["sh", "-c", text].map(str::to_owned).into(), at, user);
    }

    /// Power that isn't a command.
    fn gives(&mut self, sentence: impl Display) {
        if self.power.len() < SENTENCES {
            self.power.push(sentence.to_string());
        }
    }

    /// All that another text has as well.
    fn add(&mut self, other: Self) {
        self.lines.extend(other.lines);
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
