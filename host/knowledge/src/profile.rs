//! A profile, as far as the host goes by it. `knowledge/README.md` documents every field; nothing else than
//! `knowledge/schema.json` says can be in one, since each was held against it.

use serde::Deserialize;

use host_base::Risk;

/// What is known of one service.
#[derive(Clone, Debug, Deserialize)]
pub struct Profile {
    /// As `nginx`.
    pub id: String,
    /// As people write it.
    pub name: String,
    /// One or two sentences.
    pub summary: String,
    /// As `web`.
    pub category: String,
    /// What differs between versions.
    pub version_notes: Option<String>,
    /// Of systemd.
    pub units: Vec<Unit>,
    /// What runs.
    #[serde(default)]
    pub processes: Vec<Process>,
    /// Its configuration.
    pub config: Vec<Config>,
    /// Its own checkers.
    #[serde(default)]
    pub validate: Vec<Validate>,
    /// Where its data is.
    #[serde(default)]
    pub data: Vec<Data>,
    /// Where its logs are.
    pub logs: Vec<Log>,
    /// Messages that matter.
    #[serde(default)]
    pub log_patterns: Vec<LogPattern>,
    /// What it listens on.
    pub ports: Vec<Port>,
    /// Roles that it fills.
    pub provides: Vec<Provides>,
    /// Roles that it needs.
    #[serde(default)]
    pub requires: Vec<Requires>,
    /// Who depends on it.
    #[serde(default)]
    pub required_by: Vec<RequiredBy>,
    /// Other services to think of.
    #[serde(default)]
    pub interactions: Vec<Interaction>,
    /// What tells sick from well.
    pub health: Vec<Health>,
    /// What makes a change graver.
    #[serde(default)]
    pub risk: Vec<Graver>,
    /// What to copy.
    #[serde(default)]
    pub backup: Vec<Backup>,
    /// What is never read out.
    #[serde(default)]
    pub secrets: Vec<Secret>,
    /// What doesn't work, and why.
    pub troubleshooting: Vec<Trouble>,
}

/// Families for which an entry holds; none: all.
pub type Family = Option<Vec<String>>;

/// False where it isn't said.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(transparent)]
pub struct Flag(pub bool);

/// A unit.
#[derive(Clone, Debug, Deserialize)]
pub struct Unit {
    /// With its suffix.
    pub name: String,
    /// Where.
    pub family: Family,
    /// What it does.
    pub what: Option<String>,
    /// Whether it is the service.
    #[serde(default)]
    pub main: Flag,
    /// Other names.
    #[serde(default)]
    pub aliases: Vec<String>,
    /// Whether it can be reloaded.
    #[serde(default)]
    pub reload: Flag,
    /// Whether it may be missing.
    #[serde(default)]
    pub optional: Flag,
}

/// A process.
#[derive(Clone, Debug, Deserialize)]
pub struct Process {
    /// 15 characters at most.
    pub name: String,
    /// Where.
    pub family: Family,
}

/// A file or directory of its configuration.
#[derive(Clone, Debug, Deserialize)]
pub struct Config {
    /// Absolute, may be a glob.
    pub path: String,
    /// What it is.
    pub what: String,
    /// Where.
    pub family: Family,
    /// Whether it shows that the service is configured.
    #[serde(default)]
    pub main: Flag,
    /// Whether it may be missing.
    #[serde(default)]
    pub optional: Flag,
    /// Whether a program writes it.
    #[serde(default)]
    pub generated: Flag,
    /// What an edit needs.
    pub apply: Option<Apply>,
    /// Of `command`.
    pub apply_argv: Option<Vec<String>>,
}

/// A checker.
#[derive(Clone, Debug, Deserialize)]
pub struct Validate {
    /// For what is on disk.
    pub argv: Vec<String>,
    /// What it checks.
    pub what: String,
    /// Where.
    pub family: Family,
    /// Whether it needs root's rights.
    #[serde(default)]
    pub root: Flag,
    /// For another file.
    pub candidate: Option<Vec<String>>,
    /// Which files.
    #[serde(default)]
    pub covers: Vec<String>,
    /// Exit code.
    pub expect_exit: Option<i32>,
    /// Text.
    pub expect_contains: Option<String>,
    /// Expression.
    pub expect_matches: Option<String>,
    /// Expression.
    pub expect_lacks: Option<String>,
    /// Reads one error.
    pub error: Option<String>,
}

/// Where data is.
#[derive(Clone, Debug, Deserialize)]
pub struct Data {
    /// Absolute, may be a glob.
    pub path: String,
    /// What it is.
    pub what: String,
    /// Where.
    pub family: Family,
    /// Whether it may be missing.
    #[serde(default)]
    pub optional: Flag,
}

/// A log.
#[derive(Clone, Debug, Deserialize)]
pub struct Log {
    /// A unit.
    pub journal: Option<String>,
    /// A file.
    pub path: Option<String>,
    /// SYSLOG_IDENTIFIER.
    pub identifier: Option<String>,
    /// What is in it.
    pub what: Option<String>,
    /// Where.
    pub family: Family,
    /// Whether it may be missing.
    #[serde(default)]
    pub optional: Flag,
    /// Whether it needs root's rights.
    #[serde(default)]
    pub root: Flag,
    /// How its lines look.
    pub format: LogFormat,
    /// Reads a line.
    pub line: Option<String>,
    /// strftime.
    pub time: Option<String>,
    /// A line.
    pub sample: Option<String>,
}

/// A message that matters.
#[derive(Clone, Debug, Deserialize)]
pub struct LogPattern {
    /// Expression.
    pub matches: String,
    /// How bad it is.
    pub severity: Severity,
    /// What it says.
    pub means: String,
    /// A message.
    pub sample: String,
    /// Id of a trouble.
    pub symptom: Option<String>,
}

/// A port.
#[derive(Clone, Debug, Deserialize)]
pub struct Port {
    /// The first.
    pub port: u16,
    /// The last.
    pub to: Option<u16>,
    /// TCP or UDP.
    pub protocol: Protocol,
    /// Who should reach it.
    pub scope: Scope,
    /// What for.
    pub what: String,
    /// Where.
    pub family: Family,
    /// Whether it may be missing.
    #[serde(default)]
    pub optional: Flag,
    /// The setting.
    pub set_by: Option<String>,
}

/// A role that it fills.
#[derive(Clone, Debug, Deserialize)]
pub struct Provides {
    /// The role.
    pub role: String,
}

/// A role that it needs.
#[derive(Clone, Debug, Deserialize)]
pub struct Requires {
    /// The role.
    pub role: String,
    /// What for.
    pub why: String,
    /// What happens without.
    pub if_down: String,
    /// Profiles that usually fill it.
    #[serde(default)]
    pub typical: Vec<String>,
    /// Whether it runs without.
    #[serde(default)]
    pub optional: Flag,
}

/// Who depends on it.
#[derive(Clone, Debug, Deserialize)]
pub struct RequiredBy {
    /// A role.
    pub role: String,
    /// What for.
    pub why: String,
    /// What happens without.
    pub if_down: String,
}

/// Another service.
#[derive(Clone, Debug, Deserialize)]
pub struct Interaction {
    /// A profile.
    pub with: String,
    /// How they get on.
    pub kind: InteractionKind,
    /// What there is to know.
    pub what: String,
}

/// Tells sick from well.
#[derive(Clone, Debug, Deserialize)]
pub struct Health {
    /// One word.
    pub id: String,
    /// What holds.
    pub what: String,
    /// Program and arguments.
    pub argv: Vec<String>,
    /// Where.
    pub family: Family,
    /// Whether it needs root's rights.
    #[serde(default)]
    pub root: Flag,
    /// Exit code.
    pub expect_exit: Option<i32>,
    /// Text.
    pub expect_contains: Option<String>,
    /// Expression.
    pub expect_matches: Option<String>,
    /// Expression.
    pub expect_lacks: Option<String>,
    /// It can't tell.
    pub unknown_matches: Option<String>,
    /// What it means.
    pub sick: String,
    /// How bad that is.
    #[serde(default)]
    pub severity: Severity,
}

/// What makes a change graver.
#[derive(Clone, Debug, Deserialize)]
pub struct Graver {
    /// Which change.
    pub when: When,
    /// Where.
    pub family: Family,
    /// At least.
    pub level: Risk,
    /// For the person who is asked.
    pub reason: String,
}

/// What to copy.
#[derive(Clone, Debug, Deserialize)]
pub struct Backup {
    /// A path.
    pub path: Option<String>,
    /// Or a command.
    pub argv: Option<Vec<String>>,
    /// Where.
    pub family: Family,
}

/// What is never read out.
#[derive(Clone, Debug, Deserialize)]
pub struct Secret {
    /// Absolute, may be a glob.
    pub path: String,
}

/// What doesn't work.
#[derive(Clone, Debug, Deserialize)]
pub struct Trouble {
    /// One word.
    pub id: String,
    /// What somebody sees.
    pub symptom: String,
    /// What to ask.
    #[serde(default)]
    pub checks: Vec<Check>,
    /// Why it may be.
    pub causes: Vec<Cause>,
}

/// A command, and what its outputs say.
#[derive(Clone, Debug, Deserialize)]
pub struct Check {
    /// Program and arguments.
    pub argv: Vec<String>,
    /// Where.
    pub family: Family,
    /// Whether it needs root's rights.
    #[serde(default)]
    pub root: Flag,
    /// Each that holds counts.
    pub results: Vec<Finding>,
}

/// What an output says.
#[derive(Clone, Debug, Deserialize)]
pub struct Finding {
    /// Exit code.
    pub if_exit: Option<i32>,
    /// Another exit code.
    pub if_exit_not: Option<i32>,
    /// Text.
    pub if_contains: Option<String>,
    /// Expression.
    pub if_matches: Option<String>,
    /// Expression.
    pub if_lacks: Option<String>,
    /// Id of a cause.
    pub cause: Option<String>,
    /// What it means.
    pub means: String,
}

/// Why something doesn't work.
#[derive(Clone, Debug, Deserialize)]
pub struct Cause {
    /// One word.
    pub id: String,
    /// What it is.
    pub cause: String,
    /// What to do.
    pub fix: String,
}

/// Which change is graver.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum When {
    /// Something is done to a unit.
    Unit {
        /// As systemctl calls it.
        verb: Vec<String>,
        /// Any of them.
        unit: Vec<String>,
    },
    /// A file is written or removed.
    Edit {
        /// Any of these.
        edit: Vec<String>,
    },
    /// A program is run.
    Command {
        /// Its name.
        command: String,
        /// Any of these among its operands.
        #[serde(default)]
        subcommand_any: Vec<String>,
        /// Any of these among its arguments.
        #[serde(default)]
        options_any: Vec<String>,
    },
}

macro_rules! words {
    ($($(#[$doc:meta])* $name:ident { $($(#[$of:meta])* $word:ident,)* })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
        #[serde(rename_all = "kebab-case")]
        #[allow(missing_docs)]
        pub enum $name { $($(#[$of])* $word,)* }
    )*};
}

words! {
    /// What an edit needs.
    Apply { Reload, Restart, AtOnce, Command, }
    /// How lines look.
    LogFormat { Journal, Syslog, Common, Json, Logfmt, Plain, Other, Binary, }
    /// Of a port.
    Protocol { Tcp, Udp, }
    /// Who should reach it.
    Scope { Public, Lan, Local, }
    /// How two get on.
    InteractionKind { Conflicts, Uses, UsedBy, Order, Shares, }
}

/// How bad it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// Worth a look.
    Warning,
    /// Part of it doesn't work.
    #[default]
    Error,
    /// It doesn't work.
    Critical,
}

/// Whether an entry holds on machines of this family.
pub fn holds_on(entry: &Family, family: &str) -> bool {
    entry.as_ref().is_none_or(|families| families.iter().any(|known| known == family))
}
