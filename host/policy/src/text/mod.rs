//! Finds code in text: command lines that another program runs, often as root, because they stand in a file or come on its
//! standard input. Units and crontabs are such files.
//!
//! A file's path decides which reader reads it. The reader finds the command lines, with the quoting of the program that runs
//! them. Every other setting counts as power, unless it is known to be harmless. All other text below the system's
//! directories is unreadable, and so is the input of an unknown program. Power and unreadable text are not harmless, and
//! neither is a command line for root that no list knows.

mod authorized_keys;
mod compose;
mod crontab;
mod format;
mod fstab;
mod harmless;
mod programs;
mod ssh;
mod stdin;
mod sudoers;
mod sysctl;
mod unit;
mod words;
mod yaml;

pub use format::{has_reader, home_owner_of_file, home_owner_of_path, is_drop_in_directory, is_system_path};
pub use harmless::{
    is_data as is_data_path, is_own as is_own_path, named_commands, named_programs, objection,
};
pub use stdin::{code_on_known_stdin, code_on_stdin, new_code_on_stdin};
pub use unit::{BEFORE_TRIGGERS, DELAY, DYNAMIC_USER_PREFIX, HAND_OVER, InstanceForm, InstanceUse, TRIGGER};

use std::fmt::Display;

use format::Format;

use host_base::Risk;
use host_text::visible::excerpt;

/// The code that is found in a text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Code {
    /// The commands that would run, in the order of the text.
    pub lines: Vec<CommandLine>,
    /// The settings that give power without being commands, as a sentence each: `sets LD_PRELOAD for what runs as root, line 4`.
    pub power: Vec<String>,
    /// The settings that give power only where their account is as good as root.
    pub account_power: Vec<AccountPower>,
    /// The reason why the text can't be read, such as `a script`. It may run more than `lines` has.
    pub unreadable: Option<String>,
    /// What a text changes, each with its own risk, the gravest first. Its reader has left out what the former text has as well.
    pub effects: Vec<(Risk, String)>,
    /// Files that root reads for a command with an ordinary account's rights, each with its position in the text.
    pub files: Vec<(String, String)>,
    /// Groups that commands of an account get besides the account's own ones.
    pub groups: Vec<AccountGroup>,
    /// The actions that happen to other units together with this one.
    pub unit_actions: Vec<UnitAction>,
    /// The ports that a socket unit listens on.
    pub ports: Vec<u16>,
    /// The times at which a timer starts its unit. `None` for other texts.
    pub schedule: Option<Schedule>,
}

/// The times at which a job runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// Whether the job runs at least once in about a month, whatever else is so on the machine.
    pub is_regular: bool,
    /// The settings that decide about the times.
    pub settings: String,
}

impl Schedule {
    /// Whether a job that had the other schedule may no longer run with this one.
    pub fn may_end(&self, former: &Self) -> bool {
        !self.is_regular && self.settings != former.settings
    }
}

/// A setting that gives power where this account is as good as root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccountPower {
    /// The account that the commands run as.
    pub account: String,
    /// The effect of the setting, as a sentence of [`Code::power`].
    pub sentence: String,
}

/// A group that commands of an account get. Only the target knows whether it is the account's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccountGroup {
    /// The account, by name or number.
    pub account: String,
    /// The group, by name or number.
    pub group: String,
    /// The position in the text.
    pub at: String,
}

/// An action that happens to another unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnitAction {
    /// A verb of systemctl, [`HAND_OVER`], [`TRIGGER`] or [`DELAY`].
    pub verb: &'static str,
    /// The unit's name.
    pub unit: String,
    /// The position in the text.
    pub at: String,
}

/// One command that would run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandLine {
    /// The program and its arguments. What only the program that reads the text knows (`%i` of a template, `$MAINPID`) stays
    /// as it is written.
    pub argv: Vec<String>,
    /// The position in the text, such as `ExecStart, line 7`.
    pub at: String,
    /// The text for the shell, where a shell runs the command.
    pub shell: Option<String>,
    /// The account that the command runs as; `None` for root.
    pub user: Option<String>,
    /// The directory in which relative paths begin, where the text names it.
    pub directory: Option<String>,
    /// The times at which cron runs the command. `None` where cron doesn't.
    pub schedule: Option<Schedule>,
}

/// The number of sentences about power. One is enough for a decision, and a hostile text could have thousands.
const MAX_SENTENCES: usize = 20;
/// The number of sentences that count only for some accounts. An honest unit may set many variables.
const MAX_ACCOUNT_SENTENCES: usize = 500;
/// The number of bytes of the largest text that is read. No honest text comes near it.
const MAX_BYTES: usize = 1 << 20;
/// The number of characters of the text that a sentence shows.
const MAX_EXCERPT: usize = 120;

/// The code in a file with these contents. `None` where no program takes code from a file at this path.
pub fn code_in_file(path: &str, contents: &[u8]) -> Option<Code> {
    new_code_in_file(path, contents, None)
}

/// The code in a file, without the jobs of a crontab that the former contents have under the same variables.
fn new_code_in_file(path: &str, contents: &[u8], former: Option<&[u8]>) -> Option<Code> {
    let path = format::normalize(path);
    let format = if path == format::FSTAB {
        Format::Fstab
    } else if contents.starts_with(b"#!") {
        Format::Opaque("a script")
    } else if contents.starts_with(b"\x7fELF") {
        Format::Opaque("a program")
    } else if harmless::is_data(&path) && commands_terminals(contents) {
        Format::Opaque("a text with control characters, which the terminals that show it obey")
    } else {
        format::of_path(&path)?
    };
    Some(read(&format, &path, contents, former))
}

/// True for contents with other control characters than those that end lines and indent them.
fn commands_terminals(contents: &[u8]) -> bool {
    let is_command = |character: char| character.is_control() && !['\t', '\n', '\r'].contains(&character);
    String::from_utf8_lossy(contents).contains(is_command)
}

/// The code in a unit file, together with its drop-ins.
pub fn code_in_unit(path: &str, contents: &[u8], drop_ins: &[Vec<u8>]) -> Option<Code> {
    new_code_in_unit(path, contents, drop_ins, None)
}

/// The code in a unit file or another file, without the jobs of a crontab that the former contents have under the same variables.
pub fn new_code_in_unit(
    path: &str,
    contents: &[u8],
    drop_ins: &[Vec<u8>],
    former: Option<&[u8]>,
) -> Option<Code> {
    let path = format::normalize(path);
    let texts: Option<Vec<&str>> = drop_ins.iter().map(|text| decoded(text).ok()).collect();
    match (format::of_path(&path), decoded(contents), texts) {
        (Some(Format::Unit), Ok(text), Some(drop_ins)) => Some(unit::read(&path, text, &drop_ins)),
        (Some(Format::Unit), Ok(_), None) => Some(Code::unreadable("a drop-in that is no text")),
        _ => new_code_in_file(&path, contents, former),
    }
}

/// The uses of the instance's name in a template together with its drop-ins. `None` where one of them is no text.
pub fn instance_uses(path: &str, contents: &[u8], drop_ins: &[Vec<u8>]) -> Option<Vec<InstanceUse>> {
    let drop_ins: Option<Vec<&str>> = drop_ins.iter().map(|text| decoded(text).ok()).collect();
    Some(unit::instance_uses(path, decoded(contents).ok()?, &drop_ins?))
}

fn read(format: &Format, path: &str, contents: &[u8], former: Option<&[u8]>) -> Code {
    if let Format::Opaque(what) = format {
        return Code::unreadable(*what);
    }
    let text = match decoded(contents) {
        Ok(text) => text,
        Err(what) if *format == Format::Fstab => return fstab::unreadable(&what),
        Err(what) => return Code::unreadable(what),
    };
    let former = match former.map(decoded).transpose() {
        Ok(former) => former,
        Err(what) if *format == Format::Fstab => {
            return fstab::unreadable(&format!("the former text is {what}"));
        }
        Err(_) => None,
    };
    match format {
        Format::Unit => unit::read(path, text, &[]),
        Format::SystemCrontab => crontab::read_new(text, former, &crontab::Form::System),
        Format::Crontab(user) => crontab::read_new(text, former, &crontab::Form::Account(user.clone())),
        Format::Anacrontab => crontab::read(text, &crontab::Form::Anacron),
        Format::Sudoers => sudoers::read(text),
        Format::Sysctl => sysctl::read(text, former),
        Format::Fstab => fstab::read(text, former),
        Format::Compose => compose::read(text),
        Format::Ssh(user) => ssh::read(text, user.as_deref()),
        Format::AuthorizedKeys(user) => authorized_keys::read(text, user.as_deref()),
        Format::Opaque(what) => Code::unreadable(*what),
    }
}

/// Decodes the bytes as text, or says why they are none.
fn decoded(contents: &[u8]) -> Result<&str, String> {
    if contents.len() > MAX_BYTES {
        return Err(format!("larger than {MAX_BYTES} bytes"));
    }
    // None of the formats has a NUL in it, and programs treat one in different ways.
    match std::str::from_utf8(contents) {
        Ok(text) if !text.contains('\0') => Ok(text.strip_prefix('\u{feff}').unwrap_or(text)),
        Ok(_) => Err("text with a NUL in it".to_owned()),
        Err(_) => Err("not UTF-8".to_owned()),
    }
}

impl Code {
    /// The code with this account for every command that names none.
    pub fn with_default_user(mut self, account: Option<&str>) -> Self {
        for line in self.lines.iter_mut().filter(|line| line.user.is_none()) {
            line.user = account.map(str::to_owned);
        }
        self
    }

    fn unreadable(what: impl Into<String>) -> Self {
        Self { unreadable: Some(what.into()), ..Self::default() }
    }

    /// Notes that the text can't be read. The first reason is kept.
    fn cannot_read(&mut self, why: impl Into<String>) {
        self.unreadable.get_or_insert_with(|| why.into());
    }

    /// Adds a command that runs without a shell.
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
            schedule: None,
        });
    }

    /// Adds a command that a shell runs.
    fn shell(&mut self, text: &str, at: impl Display, user: Option<&str>) {
        if text.trim().is_empty() {
            return;
        }
        self.run(["sh", "-c", text].map(str::to_owned).into(), at, user);
    }

    /// Adds a file that root reads for another account.
    fn add_file(&mut self, path: &str, at: impl Display) {
        self.files.push((path.to_owned(), at.to_string()));
    }

    /// Adds an action on another unit.
    fn add_unit_action(&mut self, verb: &'static str, unit: &str, at: impl Display) {
        self.unit_actions.push(UnitAction { verb, unit: unit.to_owned(), at: at.to_string() });
    }

    /// Adds a sentence about a setting that gives power.
    fn add_power(&mut self, sentence: impl Display) {
        match self.power.len() < MAX_SENTENCES {
            true => self.power.push(sentence.to_string()),
            // Whoever compares a text with its former version needs every sentence.
            false => self.cannot_read("it gives more than can be listed"),
        }
    }

    /// Adds a sentence about a setting that gives power to commands of this account; `None` is root.
    fn add_power_of(&mut self, account: Option<&str>, sentence: impl Display) {
        let Some(account) = account else { return self.add_power(sentence) };
        match self.account_power.len() < MAX_ACCOUNT_SENTENCES {
            true => self
                .account_power
                .push(AccountPower { account: account.to_owned(), sentence: sentence.to_string() }),
            false => self.cannot_read("it gives more than can be listed"),
        }
    }

    /// Adds the code of another text.
    fn add(&mut self, other: Self) {
        self.lines.extend(other.lines);
        self.files.extend(other.files);
        self.groups.extend(other.groups);
        self.unit_actions.extend(other.unit_actions);
        self.ports.extend(other.ports);
        self.effects.extend(other.effects);
        other.power.into_iter().for_each(|sentence| self.add_power(sentence));
        for power in other.account_power {
            self.add_power_of(Some(&power.account), power.sentence);
        }
        if let Some(why) = other.unreadable {
            self.cannot_read(why);
        }
    }
}

/// An excerpt of the text for a sentence.
fn shown(text: &str) -> String {
    excerpt(text, MAX_EXCERPT)
}

#[cfg(test)]
mod tests;
