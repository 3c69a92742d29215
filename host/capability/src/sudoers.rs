//! A module's grants as a sudoers fragment: an account may run by sudo what the grants allow with another
//! account's rights, and nothing else.
//!
//! sudo compares the program and one text: the arguments joined by blanks. So each pattern becomes a regular
//! expression over that text, which is never wider than the pattern and in some places narrower (see
//! [`holes`] and [`paths`]). What can't be said that way isn't granted: the line is a comment with the reason.
//!
//! One thing an expression can't see is where an argument ends. `restart -- nginx` as one argument passes as well as
//! the three; the program then gets something else than it would understand, and not more than is granted.
//!
//! Nor can it count: a pattern takes at most [`MAX_ARGS`](super::pattern::MAX_ARGS) arguments, the expression of a
//! repeated hole any number of the same kind.
//!
//! A variable's value can't be said in sudoers. `env_keep` would let the account choose it, and with many that is
//! root's shell (`DEBIAN_FRONTEND='X; BEGIN{system …}'` is evaluated by debconf). So the values are in a file of
//! root's beside the fragment, and sudo sets them (`env_file`); what the account has set is dropped.

mod arguments;
mod expression;
mod holes;
mod paths;
mod version;

use std::fmt;
use std::path::{Path, PathBuf};

use super::grants::ANY_USER;
use super::hole::HoleType;
use super::pattern::Pattern;
use arguments::{Arguments, arguments};
use host_text::visible;
pub use version::SudoVersion;

/// Where fragments are read from. A name with a dot in it is left out by sudo, so that variables can lie there too.
const DIRECTORY: &str = "/etc/sudoers.d";
/// What is shown of a text that a module wrote, in characters.
const SHOWN: usize = 300;

/// A grant that asks for another account's rights.
#[derive(Debug, Clone)]
pub struct Rule<'a> {
    /// The command line.
    pub pattern: &'a Pattern,
    /// `root` or another account.
    pub run_as: &'a str,
    /// Where the program is on the target, or why it isn't to be had.
    pub program: Result<PathBuf, String>,
    /// For the operator, in the module's words.
    pub reason: &'a str,
    /// Why this line can't be used, as was found out on the target: a directory that others can write to, say.
    pub refused: Option<String>,
}

/// How exactly the expressions keep to the grants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// No path and no account beyond them.
    Grants,
    /// For an account as which nothing but the server runs, whose part it is to leave out secrets, to look where paths
    /// lead and to keep arguments apart: any path that is spelled in one way, any account but root, any text.
    Server,
}

/// A file for `/etc/sudoers.d`, and those that it refers to. [`fmt::Display`] is its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fragment {
    /// Where it is to be, with mode 0440.
    pub path: PathBuf,
    /// What sudo sets for some of the commands.
    pub environments: Vec<Environment>,
    /// Whether the module needs anything of sudo.
    pub is_needed: bool,
    /// How many rules the account may use by it.
    pub usable: usize,
    text: String,
}

/// Variables for a command, in a file that sudo reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Environment {
    /// Where it is to be, with mode 0440.
    pub path: PathBuf,
    /// `NAME=value`, one to a line.
    pub text: String,
}

/// A fragment that can't be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FragmentError {
    /// It would be the name of a file and of aliases.
    #[error("expected a module's name of lower-case letters, digits and dashes, found {0:?}")]
    Module(String),
    /// Not a name, a number, or a word with a meaning of its own in sudoers (`ALL`).
    #[error("expected an account's name that begins with a lower-case letter or `_`, found {0:?}")]
    Account(String),
}

/// Why a grant can't be said in sudoers.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// Of a sudo that has no regular expressions.
    #[error("expected sudo 1.9.10 or later on the target, found {0}: it has no regular expressions")]
    Version(String),
    /// `<path>`
    #[error("expected a path hole with a glob: no expression can leave the secrets out of all paths")]
    AnyPath,
    /// `<path:/srv/**>`
    #[error("expected a glob without `**` in `{0}`: no expression can leave out the secrets at any depth")]
    AnyDepth(String),
    /// `<path:/etc/*>`
    #[error("expected a glob that covers no secret, found `{0}`, which covers some of {1} ({2})")]
    Secret(String, String, &'static str),
    /// `<text>a<text>` where nothing is left.
    #[error("expected holes that what stands between them sets apart")]
    Inseparable,
    /// `x ''`
    #[error("expected more than an empty argument: for sudo that is the same as none")]
    EmptyArgument,
    /// `dd if=<path:/srv/My Files/*>`
    #[error("expected no path with a blank: dd would read what follows the blank as an order of its own")]
    Blank,
    /// Beyond what sudo compiles.
    #[error("expected a shorter pattern: sudo takes at most 1024 bytes as an expression")]
    TooLong,
    /// No plain absolute path, or one that means something else in sudoers.
    #[error("expected a program with a plain absolute path, found {0:?}")]
    Program(PathBuf),
    /// As [`FragmentError::Account`].
    #[error("expected an account's name that begins with a lower-case letter or `_`, found {0:?}")]
    RunAs(String),
    /// A value that the file for variables can't hold as it is.
    #[error("expected a value of letters, digits and `_ . , : / = + @ % -` for the variable {0}")]
    Value(String),
    /// Found out on the target.
    #[error("{0}")]
    Target(String),
}

impl Fragment {
    /// Writes the fragment of a module for an account. Of sudo, what the target has; `None` where that isn't known.
    pub fn new(
        module: &str,
        version: &str,
        account: &str,
        bound: Bound,
        sudo: Option<SudoVersion>,
        rules: &[Rule<'_>],
    ) -> Result<Fragment, FragmentError> {
        let in_a_name = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        if module.is_empty() || module.len() > 64 || !module.bytes().all(in_a_name) {
            return Err(FragmentError::Module(module.to_owned()));
        }
        if !is_plain_account(account) {
            return Err(FragmentError::Account(account.to_owned()));
        }
        let path = Path::new(DIRECTORY).join(format!("linux-sysadmin-{module}"));
        let mut fragment = Fragment {
            path,
            environments: Vec::new(),
            is_needed: !rules.is_empty(),
            usable: 0,
            text: String::new(),
        };
        fragment.heading(module, version, account, bound);
        if rules.is_empty() {
            fragment.comment(
                "None of the grants asks for another account's rights, so there is nothing to allow.",
            );
        }
        for (number, rule) in (1..).zip(rules) {
            fragment.rule(module, account, (bound, sudo), number, rule);
        }
        Ok(fragment)
    }

    fn heading(&mut self, module: &str, version: &str, account: &str, bound: Bound) {
        let path = self.path.display().to_string();
        for line in [
            &format!(
                "The module {module} {} of linux-sysadmin, for the account {account}.",
                excerpt(version)
            ),
            &format!(
                "EVERYTHING that runs as {account} may then run these commands without a password, this module"
            ),
            "or not. They are what the module was granted with another account's rights, and nothing else.",
            "",
            &format!("To be {path}, owned by root, mode 0440, after: visudo -cf FILE"),
            &format!(
                "visudo doesn't read the expressions. To test one, as {account}: sudo -n -l COMMAND ARGUMENTS"
            ),
            "",
            "The expressions match the arguments joined by blanks, so that one argument with blanks in it",
            "passes for several. They are narrower than the grants where they can't be as wide: values are",
            "ASCII and at most some 250 bytes long.",
        ] {
            self.comment(line);
        }
        if bound == Bound::Server {
            for line in [
                "",
                "Paths, accounts and texts are wider than the grants. What they may be is for the server to say, and",
                "nothing else runs as this account, which could become root by these commands in any case.",
            ] {
                self.comment(line);
            }
        }
    }

    fn rule(
        &mut self,
        module: &str,
        account: &str,
        (bound, sudo): (Bound, Option<SudoVersion>),
        number: usize,
        rule: &Rule<'_>,
    ) {
        self.text.push('\n');
        self.comment(&format!("{number}. {}", rule.pattern.text()));
        self.comment(&format!("as {}, since: {}", excerpt(rule.run_as), excerpt(rule.reason)));
        let prepared = match prepared(rule, bound) {
            Ok(prepared) => prepared,
            Err(refusal) => return self.comment(&format!("Not allowed: {refusal}")),
        };
        let environment = self.environment(number, rule.pattern);
        for note in prepared.notes {
            self.comment(note);
        }
        let name = format!("LSA_{}_{number}", module.to_ascii_uppercase().replace('-', "_"));
        let mut lines = vec![format!("Cmnd_Alias {name} = {}", prepared.commands.join(", \\\n    "))];
        if let Some(Environment { path, text }) = &environment {
            let (file, variables) = (path.display(), text.trim_end().replace('\n', " "));
            self.comment(&format!("sudo sets {variables}, from {file} (owned by root, mode 0440)"));
            // A variable that sudo lets through, as it does TZ, would be the account's and not the file's.
            let names = rule.pattern.variables().iter().map(|(name, _)| name);
            let dropped: String =
                names.map(|name| format!(", env_keep-=\"{name}\", env_check-=\"{name}\"")).collect();
            lines.push(format!("Defaults!{name} env_reset, env_file=\"{file}\"{dropped}"));
        }
        // By number as well: there may be other names for root.
        let run_as = if rule.run_as == ANY_USER { "ALL, !root, !#0" } else { rule.run_as };
        lines.push(format!("{account} ALL=({run_as}) NOPASSWD: {name}"));
        if let Some(refusal) = unusable(rule, sudo) {
            self.comment(&format!("Not allowed: {refusal}"));
            lines.iter().for_each(|line| self.comment(&line.replace(" \\\n   ", "")));
            return;
        }
        for line in lines {
            self.text.push_str(&line);
            self.text.push('\n');
        }
        self.usable += 1;
        self.environments.extend(environment);
    }

    fn environment(&self, number: usize, pattern: &Pattern) -> Option<Environment> {
        let text: String =
            pattern.variables().iter().map(|(name, value)| format!("{name}={value}\n")).collect();
        let path = PathBuf::from(format!("{}.{number}.env", self.path.display()));
        (!text.is_empty()).then_some(Environment { path, text })
    }

    /// A line of comment, whatever is in the text: nothing hidden, so no further line, nothing that goes on in the
    /// next one, and a blank before what would be a directive (`#include`) or a user's number (`#0`).
    fn comment(&mut self, text: &str) {
        let text = visible::visible(text).replace(['\n', '\t'], " ");
        self.text.push('#');
        if !text.is_empty() {
            self.text.push(' ');
        }
        self.text.push_str(&text);
        if text.trim_end().ends_with('\\') {
            self.text.push_str(" |");
        }
        self.text.push('\n');
    }
}

impl fmt::Display for Fragment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// What a rule comes to in sudoers.
struct Prepared {
    commands: Vec<String>,
    notes: Vec<&'static str>,
}

/// The rule as commands, if it can be said in sudoers.
fn prepared(rule: &Rule<'_>, bound: Bound) -> Result<Prepared, Refusal> {
    let any = bound == Bound::Server && rule.run_as == ANY_USER;
    if !any && !is_plain_account(rule.run_as) {
        return Err(Refusal::RunAs(excerpt(rule.run_as)));
    }
    let program = rule.program.as_ref().map_err(|reason| Refusal::Target(excerpt(reason)))?;
    let program = plain_program(program).ok_or_else(|| Refusal::Program(program.clone()))?;
    // In the file for variables, `#` begins a comment and quotes are taken off.
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_.,:/=+@%-".contains(&byte);
    if let Some((name, _)) = rule.pattern.variables().iter().find(|(_, value)| !value.bytes().all(plain)) {
        return Err(Refusal::Value(name.clone()));
    }
    let Arguments { texts, notes } = arguments(rule.pattern, bound)?;
    let commands = texts.iter().map(|text| format!("{program} {text}")).collect();
    Ok(Prepared { commands, notes })
}

/// Why a rule that can be said isn't to be used on this target.
fn unusable(rule: &Rule<'_>, sudo: Option<SudoVersion>) -> Option<Refusal> {
    if let Some(reason) = &rule.refused {
        return Some(Refusal::Target(excerpt(reason)));
    }
    let found = match sudo {
        Some(sudo) if sudo.knows_expressions() => return None,
        Some(SudoVersion::Sudo(major, minor, patch)) => format!("{major}.{minor}.{patch}"),
        Some(SudoVersion::Rs) => "sudo-rs".to_owned(),
        None => "one that doesn't say".to_owned(),
    };
    Some(Refusal::Version(found))
}

/// A name that sudoers takes for one: those in capitals are aliases or `ALL`, and `Defaults` begins another line.
fn is_plain_account(name: &str) -> bool {
    HoleType::User.accepts(name) && name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
}

/// No wildcards, nothing to escape, no directory (which would stand for all programs in it), and not `sudoedit`, which
/// sudo knows as a word.
fn plain_program(path: &Path) -> Option<&str> {
    let text = path.to_str()?;
    let is_name = |name: &str| {
        !matches!(name, "" | "." | "..")
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._+-".contains(&byte))
    };
    let plain = text.strip_prefix('/')?.split('/').all(is_name);
    (plain && path.file_name()? != "sudoedit").then_some(text)
}

fn excerpt(text: &str) -> String {
    visible::excerpt(text, SHOWN).replace(['\n', '\t'], " ")
}

#[cfg(test)]
mod tests;
