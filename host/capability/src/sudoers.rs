//! Writes a module's grants as a sudoers fragment: an account may run by sudo what the grants allow with another account's
//! rights, and nothing else.
//!
//! sudo compares the program and one text: the arguments joined by blanks. Each pattern becomes a regular expression over
//! that text, which is never wider than the pattern and in some places narrower (see [`holes`] and [`paths`]). A grant that
//! can't be expressed in this way becomes a comment with the reason. The expressions of a program are united into as few as
//! possible, because sudo parses all of its files at each command.
//!
//! An expression can't see where an argument ends. `restart -- nginx` as one argument passes as well as the three arguments
//! do. The program then gets an argument that it doesn't understand, and not more than is granted.
//!
//! An expression can't count either: a pattern takes at most [`MAX_ARGS`](super::pattern::MAX_ARGS) arguments, and the
//! expression of a repeated hole takes any number of the same kind.
//!
//! sudoers can't express the value of a variable. `env_keep` would let the account choose the value, and with many
//! variables that gives it root's shell (debconf evaluates `DEBIAN_FRONTEND='X; BEGIN{system …}'`). Therefore the values
//! lie in a file of root's beside the fragment, from which sudo sets them (`env_file`). What the account has set is dropped.

mod arguments;
mod expression;
mod holes;
mod paths;
mod version;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use super::grants::ANY_USER;
use super::hole::HoleType;
use super::pattern::Pattern;
use arguments::{Arguments, arguments};
use host_text::visible;
pub use version::SudoVersion;

/// The directory from which sudo reads fragments. It ignores names with a dot, so the files with variables can lie
/// there as well.
const DIRECTORY: &str = "/etc/sudoers.d";
/// The end of a fragment without rules.
const NOTHING: &str =
    "# None of the grants asks for another account's rights, so there is nothing to allow.\n";
/// The greatest length of a quotation from a module, in characters.
const MAX_QUOTED: usize = 300;

/// A grant that needs another account's rights.
#[derive(Debug, Clone)]
pub struct SudoersRule<'a> {
    /// The command line.
    pub pattern: &'a Pattern,
    /// The account whose rights the command takes: `root` or another one.
    pub run_as: &'a str,
    /// The path of the program on the target, or why there is none.
    pub program: Result<PathBuf, String>,
    /// The reason in the module's words, for the operator.
    pub reason: &'a str,
    /// The reason why this target can't use the line, such as a directory that others can write to.
    pub refused: Option<String>,
}

/// The exactness with which the expressions follow the grants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exactness {
    /// The expressions allow no path and no account beyond the grants.
    Grants,
    /// The account is one as which only the server runs. The expressions match any path that is spelled in one way, any
    /// account except root, and any text. The server itself leaves out secrets, checks where paths lead, and keeps
    /// arguments apart.
    Server,
}

/// A file for `/etc/sudoers.d`, and the files that it refers to. [`fmt::Display`] gives its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fragment {
    /// The path at which the file has to lie, with mode 0440.
    pub path: PathBuf,
    /// The variables that sudo sets for some of the commands.
    pub environments: Vec<Environment>,
    /// Whether the module needs sudo at all.
    pub is_needed: bool,
    /// The number of rules that the account can use.
    pub usable: usize,
    text: String,
}

/// The variables of a command, in a file that sudo reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Environment {
    /// The path at which the file has to lie, with mode 0440.
    pub path: PathBuf,
    /// One `NAME=value` per line.
    pub text: String,
}

/// The reason why a fragment can't be written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FragmentError {
    /// The module's name is not plain. It becomes the name of a file and of aliases.
    #[error("expected a module's name of lower-case letters, digits and dashes, found {0:?}")]
    Module(String),
    /// The account is not a plain name: it is a number, or a word with a meaning of its own in sudoers (`ALL`).
    #[error("expected an account's name that begins with a lower-case letter or `_`, found {0:?}")]
    Account(String),
}

/// The reason why a grant can't be expressed in sudoers.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The target's sudo has no regular expressions.
    #[error("expected sudo 1.9.10 or later on the target, found {0}: it has no regular expressions")]
    Version(String),
    /// The pattern has `<path>` without a glob.
    #[error("expected a path hole with a glob: no expression can leave the secrets out of all paths")]
    AnyPath,
    /// The pattern has a glob of any depth, such as `<path:/srv/**>`.
    #[error("expected a glob without `**` in `{0}`: no expression can leave out the secrets at any depth")]
    AnyDepth(String),
    /// The pattern has a glob that covers secrets, such as `<path:/etc/*>`.
    #[error("expected a glob that covers no secret, found `{0}`, which covers some of {1} ({2})")]
    Secret(String, String, &'static str),
    /// Several holes share an argument, and no value of a hole is without the separator.
    #[error("expected holes that what stands between them sets apart")]
    Inseparable,
    /// The pattern has an empty argument, such as `x ''`.
    #[error("expected more than an empty argument: for sudo that is the same as none")]
    EmptyArgument,
    /// A path of dd can hold a blank, such as `dd if=<path:/srv/My Files/*>`.
    #[error("expected no path with a blank: dd would read what follows the blank as an order of its own")]
    Blank,
    /// The expression is longer than sudo compiles.
    #[error("expected a shorter pattern: sudo takes at most 1024 bytes as an expression")]
    TooLong,
    /// The program's path is not absolute and plain, or means something else in sudoers.
    #[error("expected a program with a plain absolute path, found {0:?}")]
    Program(PathBuf),
    /// The account is not a plain name, as for [`FragmentError::Account`].
    #[error("expected an account's name that begins with a lower-case letter or `_`, found {0:?}")]
    RunAs(String),
    /// The file of variables can't hold the value as it is.
    #[error("expected a value of letters, digits and `_ . , : / = + @ % -` for the variable {0}")]
    Value(String),
    /// The target itself has a problem, which this text describes.
    #[error("{0}")]
    Target(String),
}

impl Fragment {
    /// Writes the fragment of a module for an account. `sudo` is the target's version; `None` where it isn't known.
    pub fn new(
        module: &str,
        version: &str,
        account: &str,
        exactness: Exactness,
        sudo: Option<SudoVersion>,
        rules: &[SudoersRule<'_>],
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
        fragment.heading(module, version, account, exactness);
        let mut allowed = Allowed::new();
        for (number, rule) in (1..).zip(rules) {
            fragment.rule(module, account, (exactness, sudo), number, rule, &mut allowed);
        }
        fragment.allow(module, account, &allowed);
        Ok(fragment)
    }

    /// The text without what is there for people only, since sudo parses comments too at each command.
    pub fn for_sudo(&self) -> String {
        let heading = self.text.lines().take_while(|line| line.starts_with('#'));
        let rules = self.text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
        let name = self.path.file_name().map_or_else(Default::default, |name| name.to_string_lossy());
        let module = name.strip_prefix("linux-sysadmin-").unwrap_or(&name);
        let more = format!("#\n# What each of the rules is for: linux-sysadmin modules sudoers {module}");
        let lines: Vec<&str> = heading.chain([more.as_str()]).chain(rules).collect();
        lines.join("\n") + "\n"
    }

    /// Says of a grant that no expression can hold it, and why.
    pub fn without(&mut self, what: &str, run_as: &str, reason: &str, why: &str) {
        self.is_needed = true;
        self.text.push('\n');
        self.comment(what);
        self.comment(&format!("as {}, since: {}", excerpt(run_as), excerpt(reason)));
        self.comment(&format!("Not allowed: {why}"));
    }

    fn heading(&mut self, module: &str, version: &str, account: &str, exactness: Exactness) {
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
        if exactness == Exactness::Server {
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
        (exactness, sudo): (Exactness, Option<SudoVersion>),
        number: usize,
        rule: &SudoersRule<'_>,
        allowed: &mut Allowed,
    ) {
        self.text.push('\n');
        self.comment(&format!("{number}. {}", rule.pattern.text()));
        self.comment(&format!("as {}, since: {}", excerpt(rule.run_as), excerpt(rule.reason)));
        let prepared = match prepared(rule, exactness) {
            Ok(prepared) => prepared,
            Err(refusal) => return self.comment(&format!("Not allowed: {refusal}")),
        };
        let environment = self.environment(number, rule.pattern);
        for note in &prepared.arguments.notes {
            self.comment(note);
        }
        // The number is excluded as well, because root may have other names.
        let run_as = if rule.run_as == ANY_USER { "ALL, !root, !#0" } else { rule.run_as };
        let refusal = unusable(rule, sudo);
        if refusal.is_none() {
            self.usable += 1;
            if environment.is_none() {
                let programs = allowed.entry(run_as.to_owned()).or_default();
                programs.entry(prepared.program).or_default().extend(prepared.arguments);
                return;
            }
        }
        let name = format!("{}_{number}", alias(module));
        let mut lines = vec![format!("Cmnd_Alias {name} = {}", listed(&prepared.commands()))];
        if let Some(Environment { path, text }) = &environment {
            let (file, variables) = (path.display(), text.trim_end().replace('\n', " "));
            self.comment(&format!("sudo sets {variables}, from {file} (owned by root, mode 0440)"));
            // A variable that sudo lets through, as it does TZ, would be the account's and not the file's.
            let names = rule.pattern.variables().iter().map(|(name, _)| name);
            let dropped: String =
                names.map(|name| format!(", env_keep-=\"{name}\", env_check-=\"{name}\"")).collect();
            lines.push(format!("Defaults!{name} env_reset, env_file=\"{file}\"{dropped}"));
        }
        lines.push(format!("{account} ALL=({run_as}) NOPASSWD: {name}"));
        if let Some(refusal) = refusal {
            self.comment(&format!("Not allowed: {refusal}"));
            lines.iter().for_each(|line| self.comment(&line.replace(" \\\n   ", "")));
            return;
        }
        for line in lines {
            self.text.push_str(&line);
            self.text.push('\n');
        }
        self.environments.extend(environment);
    }

    /// Writes the rules without variables, those of an account together. sudo reads all rules at each command, so that a
    /// command takes the longer the more of them there are.
    fn allow(&mut self, module: &str, account: &str, allowed: &Allowed) {
        for (number, (run_as, programs)) in (1..).zip(allowed) {
            let commands = programs.iter().flat_map(|(program, arguments)| commands(program, arguments));
            let name = format!("{}_AS_{number}", alias(module));
            self.text.push('\n');
            self.comment("All of the above that has no variables, in as few expressions as sudo can take.");
            self.text.push_str(&format!(
                "Cmnd_Alias {name} = {}\n{account} ALL=({run_as}) NOPASSWD: {name}\n",
                listed(&commands.collect::<Vec<_>>())
            ));
        }
    }

    fn environment(&self, number: usize, pattern: &Pattern) -> Option<Environment> {
        let text: String =
            pattern.variables().iter().map(|(name, value)| format!("{name}={value}\n")).collect();
        let path = PathBuf::from(format!("{}.{number}.env", self.path.display()));
        (!text.is_empty()).then_some(Environment { path, text })
    }

    /// Writes a comment line from any text. Hidden characters are made visible, so the comment stays one line and can't
    /// be continued. A blank separates `#` from text that would make a directive (`#include`) or a user's number
    /// (`#0`).
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
        f.write_str(&self.text)?;
        match self.is_needed {
            true => Ok(()),
            false => f.write_str(NOTHING),
        }
    }
}

/// The commands that are allowed: the accounts as which they run, their programs, and the arguments of each.
type Allowed = BTreeMap<String, BTreeMap<String, Arguments>>;

/// A rule as sudoers expresses it.
struct Prepared {
    program: String,
    arguments: Arguments,
}

impl Prepared {
    fn commands(&self) -> Vec<String> {
        commands(&self.program, &self.arguments).collect()
    }
}

fn commands<'a>(program: &'a str, arguments: &Arguments) -> impl Iterator<Item = String> + 'a {
    arguments.texts().into_iter().map(move |text| format!("{program} {text}"))
}

/// Commands as a list in sudoers, one in each line.
fn listed(commands: &[String]) -> String {
    commands.join(", \\\n    ")
}

/// Returns the text that the aliases of a module begin with.
fn alias(module: &str) -> String {
    format!("LSA_{}", module.to_ascii_uppercase().replace('-', "_"))
}

/// Translates a rule into sudoers commands, where that is possible.
fn prepared(rule: &SudoersRule<'_>, exactness: Exactness) -> Result<Prepared, Refusal> {
    let any = exactness == Exactness::Server && rule.run_as == ANY_USER;
    if !any && !is_plain_account(rule.run_as) {
        return Err(Refusal::RunAs(excerpt(rule.run_as)));
    }
    let program = rule.program.as_ref().map_err(|reason| Refusal::Target(excerpt(reason)))?;
    let program = plain_program(program).ok_or_else(|| Refusal::Program(program.clone()))?;
    // In the file of variables, `#` begins a comment and quotes are removed.
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_.,:/=+@%-".contains(&byte);
    if let Some((name, _)) = rule.pattern.variables().iter().find(|(_, value)| !value.bytes().all(plain)) {
        return Err(Refusal::Value(name.clone()));
    }
    Ok(Prepared { program: program.to_owned(), arguments: arguments(rule.pattern, exactness)? })
}

/// The reason why this target can't use a rule, although sudoers can express it.
fn unusable(rule: &SudoersRule<'_>, sudo: Option<SudoVersion>) -> Option<Refusal> {
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

/// Whether sudoers reads this as an account's name. Names in capitals are aliases or `ALL`, and `Defaults` begins
/// another kind of line.
fn is_plain_account(name: &str) -> bool {
    HoleType::User.accepts(name) && name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
}

/// The text of a program's path, if it needs no escaping in sudoers. It has no wildcards, is not a directory, which
/// would stand for all programs in it, and is not `sudoedit`, which sudo knows as a word.
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
    visible::excerpt(text, MAX_QUOTED).replace(['\n', '\t'], " ")
}

#[cfg(test)]
mod tests;
