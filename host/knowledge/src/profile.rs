//! A profile, as far as the host uses it. `knowledge/README.md` documents every field. Every profile was checked against
//! `knowledge/schema.json` before it is read into these types.

use serde::Deserialize;

use host_base::Risk;

/// The knowledge of one service.
#[derive(Clone, Debug, Deserialize)]
pub struct Profile {
    /// The id, such as `nginx`.
    pub id: String,
    /// The name as people write it.
    pub name: String,
    /// One or two sentences on the service.
    pub summary: String,
    /// The category, such as `web`.
    pub category: String,
    /// The differences between versions of the service.
    pub version_notes: Option<String>,
    /// The systemd units.
    pub units: Vec<Unit>,
    /// The processes of the service.
    #[serde(default)]
    pub processes: Vec<Process>,
    /// The configuration files.
    pub config: Vec<Config>,
    /// The service's own checkers of its configuration.
    #[serde(default)]
    pub validate: Vec<Validator>,
    /// The paths with data.
    #[serde(default)]
    pub data: Vec<Data>,
    /// The logs.
    pub logs: Vec<Log>,
    /// The log messages that matter.
    #[serde(default)]
    pub log_patterns: Vec<LogPattern>,
    /// The ports on which it listens.
    pub ports: Vec<Port>,
    /// The roles that it fills.
    pub provides: Vec<Provides>,
    /// The roles that it needs.
    #[serde(default)]
    pub requires: Vec<Requires>,
    /// The services and people that depend on it.
    #[serde(default)]
    pub required_by: Vec<RequiredBy>,
    /// The other services that it affects or is affected by.
    #[serde(default)]
    pub interactions: Vec<Interaction>,
    /// The health checks.
    pub health: Vec<HealthCheck>,
    /// The rules that raise the risk of a change.
    #[serde(default)]
    pub risk: Vec<RiskRule>,
    /// The data to back up.
    #[serde(default)]
    pub backup: Vec<Backup>,
    /// The files that modules may never read.
    #[serde(default)]
    pub secrets: Vec<Secret>,
    /// The symptoms of known faults, with their causes.
    pub troubleshooting: Vec<Symptom>,
}

/// The families of distributions for which an entry holds. None means all.
pub type Family = Option<Vec<String>>;

/// A yes or no, which is no where the profile doesn't say it.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(transparent)]
pub struct Flag(pub bool);

/// A systemd unit.
#[derive(Clone, Debug, Deserialize)]
pub struct Unit {
    /// The name with its suffix.
    pub name: String,
    /// The families for which the entry holds.
    pub family: Family,
    /// The task of the unit.
    pub what: Option<String>,
    /// Whether the unit is the service itself.
    #[serde(default)]
    pub main: Flag,
    /// Other names of the unit.
    #[serde(default)]
    pub aliases: Vec<String>,
    /// Whether `systemctl reload` works.
    #[serde(default)]
    pub reload: Flag,
    /// Whether the unit may be missing.
    #[serde(default)]
    pub optional: Flag,
}

/// A process of the service.
#[derive(Clone, Debug, Deserialize)]
pub struct Process {
    /// The name as in `/proc/PID/comm`, at most 15 characters.
    pub name: String,
    /// The families for which the entry holds.
    pub family: Family,
}

/// A configuration file or directory.
#[derive(Clone, Debug, Deserialize)]
pub struct Config {
    /// An absolute path, which may be a glob.
    pub path: String,
    /// The purpose of the file.
    pub what: String,
    /// The families for which the entry holds.
    pub family: Family,
    /// Whether the file shows that the service is configured.
    #[serde(default)]
    pub main: Flag,
    /// Whether the file may be missing.
    #[serde(default)]
    pub optional: Flag,
    /// Whether a program writes the file.
    #[serde(default)]
    pub generated: Flag,
    /// The action after which an edit takes effect.
    pub apply: Option<Apply>,
    /// The command for [`Apply::Command`].
    pub apply_argv: Option<Vec<String>>,
}

/// A checker of the service's configuration.
#[derive(Clone, Debug, Deserialize)]
pub struct Validator {
    /// The command that checks what is on disk.
    pub argv: Vec<String>,
    /// The subject that the command checks.
    pub what: String,
    /// The families for which the entry holds.
    pub family: Family,
    /// Whether the command needs root's rights.
    #[serde(default)]
    pub root: Flag,
    /// The command that checks another file; `{}` stands for its path.
    pub candidate: Option<Vec<String>>,
    /// The configuration files that the command checks.
    #[serde(default)]
    pub covers: Vec<String>,
    /// The exit code for a correct configuration.
    pub expect_exit: Option<i32>,
    /// A text in the output for a correct configuration.
    pub expect_contains: Option<String>,
    /// An expression that matches the output for a correct configuration.
    pub expect_matches: Option<String>,
    /// An expression that doesn't match the output for a correct configuration.
    pub expect_lacks: Option<String>,
    /// An expression that reads one error.
    pub error: Option<String>,
}

/// A path with data.
#[derive(Clone, Debug, Deserialize)]
pub struct Data {
    /// An absolute path, which may be a glob.
    pub path: String,
    /// A description of the data.
    pub what: String,
    /// The families for which the entry holds.
    pub family: Family,
    /// Whether the path may be missing.
    #[serde(default)]
    pub optional: Flag,
}

/// A log of the service. One of `journal`, `path` and `identifier` is given.
#[derive(Clone, Debug, Deserialize)]
pub struct Log {
    /// The unit whose journal is the log.
    pub journal: Option<String>,
    /// The file, which may be a glob.
    pub path: Option<String>,
    /// The SYSLOG_IDENTIFIER of the journal entries.
    pub identifier: Option<String>,
    /// A description of the log's contents.
    pub what: Option<String>,
    /// The families for which the entry holds.
    pub family: Family,
    /// Whether the log may be missing.
    #[serde(default)]
    pub optional: Flag,
    /// Whether reading the log needs root's rights.
    #[serde(default)]
    pub root: Flag,
    /// The format of its lines.
    pub format: LogFormat,
    /// An expression that reads a line.
    pub line: Option<String>,
    /// The strftime format of the time in a line.
    pub time: Option<String>,
    /// An example of a line.
    pub sample: Option<String>,
}

/// A log message that matters.
#[derive(Clone, Debug, Deserialize)]
pub struct LogPattern {
    /// An expression that finds the message.
    pub matches: String,
    /// The severity of the message.
    pub severity: Severity,
    /// The meaning of the message.
    pub means: String,
    /// An example of the message.
    pub sample: String,
    /// The id of a symptom that the message belongs to.
    pub symptom: Option<String>,
}

/// A port, or a range of ports.
#[derive(Clone, Debug, Deserialize)]
pub struct Port {
    /// The first port.
    pub port: u16,
    /// The last port.
    pub to: Option<u16>,
    /// TCP or UDP.
    pub protocol: Protocol,
    /// The part of the network that should reach the port.
    pub scope: Scope,
    /// The purpose of the port.
    pub what: String,
    /// The families for which the entry holds.
    pub family: Family,
    /// Whether the port may be missing.
    #[serde(default)]
    pub optional: Flag,
    /// The setting that determines the port.
    pub set_by: Option<String>,
}

/// A role that the service fills.
#[derive(Clone, Debug, Deserialize)]
pub struct Provides {
    /// The role.
    pub role: String,
}

/// A role that the service needs.
#[derive(Clone, Debug, Deserialize)]
pub struct Requires {
    /// The role.
    pub role: String,
    /// The purpose for which the service needs the role.
    pub why: String,
    /// The consequence when no service fills the role.
    pub if_down: String,
    /// The profiles that usually fill the role.
    #[serde(default)]
    pub typical: Vec<String>,
    /// Whether the service runs without it.
    #[serde(default)]
    pub optional: Flag,
}

/// A service or a group of people that depends on the service.
#[derive(Clone, Debug, Deserialize)]
pub struct RequiredBy {
    /// A role, or somebody outside the machine.
    pub role: String,
    /// The purpose for which they need the service.
    pub why: String,
    /// The consequence for them when the service is down.
    pub if_down: String,
}

/// Another service that this one affects or is affected by.
#[derive(Clone, Debug, Deserialize)]
pub struct Interaction {
    /// The id of the other service's profile.
    pub with: String,
    /// The way in which the two affect each other.
    pub kind: InteractionKind,
    /// The advice about the two.
    pub what: String,
}

/// A command that shows whether the service is healthy.
#[derive(Clone, Debug, Deserialize)]
pub struct HealthCheck {
    /// The id, one word.
    pub id: String,
    /// The condition that holds for a healthy service.
    pub what: String,
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// The families for which the entry holds.
    pub family: Family,
    /// Whether the command needs root's rights.
    #[serde(default)]
    pub root: Flag,
    /// The exit code for a healthy service.
    pub expect_exit: Option<i32>,
    /// A text in the output for a healthy service.
    pub expect_contains: Option<String>,
    /// An expression that matches the output for a healthy service.
    pub expect_matches: Option<String>,
    /// An expression that doesn't match the output for a healthy service.
    pub expect_lacks: Option<String>,
    /// An expression that matches output from which nothing can be concluded.
    pub unknown_matches: Option<String>,
    /// The meaning of an expectation that doesn't hold.
    pub sick: String,
    /// The severity of such a fault.
    #[serde(default)]
    pub severity: Severity,
}

/// A rule that raises the risk of a change.
#[derive(Clone, Debug, Deserialize)]
pub struct RiskRule {
    /// The changes to which the rule applies.
    pub when: When,
    /// The families for which the entry holds.
    pub family: Family,
    /// The least risk of such a change.
    pub level: Risk,
    /// The reason, for the person who is asked.
    pub reason: String,
}

/// A path or a command by which data are backed up.
#[derive(Clone, Debug, Deserialize)]
pub struct Backup {
    /// The path to copy.
    pub path: Option<String>,
    /// The command that writes a copy to its standard output.
    pub argv: Option<Vec<String>>,
    /// The families for which the entry holds.
    pub family: Family,
}

/// Files that modules may never read.
#[derive(Clone, Debug, Deserialize)]
pub struct Secret {
    /// An absolute path, which may be a glob.
    pub path: String,
}

/// A fault that a person can notice, and the way to its cause.
#[derive(Clone, Debug, Deserialize)]
pub struct Symptom {
    /// The id, one word.
    pub id: String,
    /// The symptom that a user or an administrator notices.
    pub symptom: String,
    /// The commands that tell the causes apart.
    #[serde(default)]
    pub checks: Vec<Diagnosis>,
    /// The possible causes.
    pub causes: Vec<Cause>,
}

/// A command, and what its output can mean.
#[derive(Clone, Debug, Deserialize)]
pub struct Diagnosis {
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// The families for which the entry holds.
    pub family: Family,
    /// Whether the command needs root's rights.
    #[serde(default)]
    pub root: Flag,
    /// The findings. Each one that holds counts.
    pub results: Vec<Finding>,
}

/// The meaning of an output. It applies where every condition that is given holds.
#[derive(Clone, Debug, Deserialize)]
pub struct Finding {
    /// The exit code has this value.
    pub if_exit: Option<i32>,
    /// The exit code has another value than this.
    pub if_exit_not: Option<i32>,
    /// The output contains this text.
    pub if_contains: Option<String>,
    /// This expression matches somewhere in the output.
    pub if_matches: Option<String>,
    /// This expression matches nowhere in the output.
    pub if_lacks: Option<String>,
    /// The id of the cause that the finding points to.
    pub cause: Option<String>,
    /// The meaning of the output.
    pub means: String,
}

/// A possible cause of a symptom.
#[derive(Clone, Debug, Deserialize)]
pub struct Cause {
    /// The id, one word.
    pub id: String,
    /// The cause of the symptom.
    pub cause: String,
    /// The remedy for the cause.
    pub fix: String,
}

/// The changes to which a risk rule applies.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum When {
    /// The step does something to a unit.
    Unit {
        /// The verbs, as systemctl names them.
        verb: Vec<String>,
        /// The names of the units.
        unit: Vec<String>,
    },
    /// A file is written or removed.
    Edit {
        /// The globs of the files.
        edit: Vec<String>,
    },
    /// A program runs.
    Command {
        /// The program's name.
        command: String,
        /// Operands, one of which the command must have, unless there are none here.
        #[serde(default)]
        subcommand_any: Vec<String>,
        /// Options, one of which the command must have, unless there are none here.
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
    /// The action after which an edit takes effect.
    Apply { Reload, Restart, AtOnce, Command, }
    /// The format of a log's lines.
    LogFormat { Journal, Syslog, Common, Json, Logfmt, Plain, Other, Binary, }
    /// The transport protocol of a port.
    Protocol { Tcp, Udp, }
    /// The part of the network that should reach a port.
    Scope { Public, Lan, Local, }
    /// The way in which two services affect each other.
    InteractionKind { Conflicts, Uses, UsedBy, Order, Shares, }
}

/// The severity of a finding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// The finding is worth a look.
    Warning,
    /// A part of the service doesn't work.
    #[default]
    Error,
    /// The service doesn't work.
    Critical,
}

/// Whether an entry holds on machines of this family.
pub fn holds_on(entry: &Family, family: &str) -> bool {
    entry.as_ref().is_none_or(|families| families.iter().any(|known| known == family))
}
