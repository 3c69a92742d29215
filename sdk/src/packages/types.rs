//! What a package manager says, in the words that all of them share.

use serde::Serialize;

/// How far a package is installed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// Whole.
    #[default]
    Installed,
    /// Removed, its configuration files left.
    ConfigFiles,
    /// Neither: in the manager's own words, as `half-configured`.
    #[serde(untagged)]
    Broken(String),
}

impl State {
    fn is_whole(&self) -> bool {
        *self == Self::Installed
    }
}

/// A package of the package database.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Installed {
    /// Without version and architecture.
    pub name: String,
    /// In the manager's own form: `1:2.3-4`.
    pub version: String,
    /// As the manager calls it: `amd64`, `x86_64`.
    pub arch: String,
    /// How far; left out where it is whole.
    #[serde(skip_serializing_if = "State::is_whole")]
    pub state: State,
    /// Kept at its version by a hold, pin or lock.
    #[serde(skip_serializing_if = "is_false")]
    pub held: bool,
    /// Whether the manager itself guards it (Essential, Protected); isn't shown.
    #[serde(skip)]
    pub essential: bool,
}

/// A package that a search found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Found {
    /// Its name.
    pub name: String,
    /// The version that would be installed, where the search tells.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The version that is installed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub installed: Option<String>,
    /// In one line.
    pub summary: String,
}

/// A version that can be had.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Available {
    /// As `pkg_rollback` takes it.
    pub version: String,
    /// Where from, in the manager's words.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub repository: String,
}

/// Everything about one package.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Info {
    /// Its name.
    pub name: String,
    /// The version that is installed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub installed: Option<String>,
    /// The version that would be installed; left out where it is the installed one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub candidate: Option<String>,
    /// What can be had, the newest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub versions: Vec<Available>,
    /// `amd64`, `x86_64`, `all`, `noarch`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub arch: String,
    /// In one line.
    pub summary: String,
    /// In many.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// What it belongs to, as `web`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub section: String,
    /// Address of its makers' site.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub homepage: String,
    /// As the package says it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub license: String,
    /// What is downloaded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub download_bytes: Option<u64>,
    /// What it takes on disk.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub installed_bytes: Option<u64>,
    /// What it needs, in the manager's words.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub depends: Vec<String>,
    /// What it can't be installed beside.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conflicts: Vec<String>,
    /// How far it is installed; left out where it is whole, or not at all.
    #[serde(skip_serializing_if = "State::is_whole")]
    pub state: State,
    /// Kept at its version.
    #[serde(skip_serializing_if = "is_false")]
    pub held: bool,
    /// Installed only because another package needs it.
    #[serde(skip_serializing_if = "is_false")]
    pub automatic: bool,
    /// The manager itself guards it.
    #[serde(skip_serializing_if = "is_false")]
    pub essential: bool,
    /// Seconds since the epoch, or as the manager writes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub installed_at: Option<String>,
}

/// A newer version that is to be had.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Update {
    /// Its name.
    pub name: String,
    /// What is installed.
    pub installed: String,
    /// What there is.
    pub candidate: String,
    /// Where from.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub repository: String,
    /// Whether it mends a weakness, as far as the repository says so.
    #[serde(skip_serializing_if = "is_false")]
    pub security: bool,
    /// `Critical`, `Important` …, of the worst advisory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub severity: Option<String>,
    /// Names of advisories.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub advisories: Vec<String>,
    /// What the advisories mend.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cves: Vec<String>,
    /// Kept at its version: an update of everything leaves it.
    #[serde(skip_serializing_if = "is_false")]
    pub held: bool,
    /// Rolled out to so many percent of machines, and not yet to this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phased_percent: Option<u8>,
}

/// What there is to update, and how old that knowledge is.
#[derive(Clone, Debug, Default)]
pub struct Updates {
    /// One for each package.
    pub items: Vec<Update>,
    /// When the repositories were read last, in seconds since the epoch.
    pub refreshed: Option<f64>,
    /// What the caller should know besides.
    pub notes: Vec<String>,
}

/// What has become of one package, or would.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation {
    /// What it is.
    pub verb: Verb,
    /// Of the package.
    pub name: String,
    /// The version before; empty where there was none, or it isn't known.
    pub from: String,
    /// The version afterwards, likewise.
    pub to: String,
}

/// What becomes of a package.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum Verb {
    Install,
    Upgrade,
    Downgrade,
    Reinstall,
    Remove,
    /// With its configuration files.
    Purge,
}

impl Verb {
    /// In the imperative.
    pub fn name(self) -> &'static str {
        match self {
            Self::Install => "install",
            Self::Upgrade => "upgrade",
            Self::Downgrade => "downgrade",
            Self::Reinstall => "reinstall",
            Self::Remove => "remove",
            Self::Purge => "purge",
        }
    }
}

impl Operation {
    /// `from` and `to` as the verb has them.
    pub fn new(verb: Verb, name: impl Into<String>, from: impl Into<String>, to: impl Into<String>) -> Self {
        Self { verb, name: name.into(), from: from.into(), to: to.into() }
    }

    pub(super) fn is_removal(&self) -> bool {
        matches!(self.verb, Verb::Remove | Verb::Purge)
    }

    /// `lab-hello 2.0`, or `lab-hello 1.0 -> 2.0`.
    pub fn versions(&self) -> String {
        match (self.from.as_str(), self.to.as_str()) {
            ("", "") => self.name.clone(),
            (version, "") | ("", version) => format!("{} {version}", self.name),
            (from, to) if from == to => format!("{} {to}", self.name),
            (from, to) => format!("{} {from} -> {to}", self.name),
        }
    }
}

/// One run of the package manager.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Transaction {
    /// As `dnf history` numbers it.
    pub id: Option<String>,
    /// ISO 8601 where the manager's log says it with its zone, else as it stands there.
    pub at: String,
    /// Who asked for it.
    pub by: Option<String>,
    /// The command line, where it is on record.
    pub command: Option<String>,
    /// What was done.
    pub operations: Vec<Operation>,
    /// What went wrong.
    pub error: Option<String>,
}

/// What the manager's own simulation says would happen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Simulated {
    /// Nothing where nothing would.
    pub operations: Vec<Operation>,
    /// Packages that stay at their version though there is a newer one.
    pub held_back: Vec<String>,
    /// At most: what was downloaded before isn't again.
    pub download_bytes: Option<u64>,
    /// More space taken, or less.
    pub disk_bytes: Option<i64>,
    /// Packages that nothing needs any more.
    pub no_longer_needed: Vec<String>,
    /// What the caller should know besides.
    pub notes: Vec<String>,
}

/// What is left to do once packages have changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Aftermath {
    /// Packages that want the machine to be rebooted; one that isn't named is `*`.
    pub reboot_required_by: Vec<String>,
    /// Units that still run what was replaced.
    pub services_to_restart: Vec<String>,
    /// What couldn't be found out.
    pub notes: Vec<String>,
}

/// What is asked of the manager. Names are those of packages, checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// These, at their newest version.
    Install(Vec<String>),
    /// These, some of which are there and broken: those once more, at the version that they have.
    Reinstall(Vec<String>),
    /// These, their configuration files kept.
    Remove(Vec<String>),
    /// These, with their configuration files.
    Purge(Vec<String>),
    /// These to their newest version.
    Update(Vec<String>),
    /// Everything to its newest version; nothing is removed for it.
    UpdateAll,
    /// Reads the repositories anew.
    Refresh,
    /// This package to exactly this version.
    Version(String, String),
    /// Takes a transaction of the manager's history back.
    Undo(String),
}

fn is_false(value: &bool) -> bool {
    !*value
}
