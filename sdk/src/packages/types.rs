//! Packages, versions, operations and transactions, in words that all package managers share.

use serde::Serialize;

/// The state of a package in the package database.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// The package is installed completely.
    #[default]
    Installed,
    /// The package is removed, and its configuration files are left.
    ConfigFiles,
    /// Any other state, in the manager's own words, such as `half-configured`.
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
    /// The name, without version and architecture.
    pub name: String,
    /// The version in the manager's own form: `1:2.3-4`.
    pub version: String,
    /// The architecture as the manager calls it: `amd64`, `x86_64`. Empty where the manager's list doesn't say it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub arch: String,
    /// The state; left out of answers where the package is installed completely.
    #[serde(skip_serializing_if = "State::is_whole")]
    pub state: State,
    /// True where a hold, pin or lock keeps the package at its version.
    #[serde(skip_serializing_if = "is_false")]
    pub held: bool,
    /// True where the manager itself protects the package (Essential, Protected). Answers don't show it.
    #[serde(skip)]
    pub essential: bool,
}

/// A package that a search found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Found {
    /// The name of the package.
    pub name: String,
    /// The version that would be installed, where the search knows it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The installed version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub installed: Option<String>,
    /// A description in one line.
    pub summary: String,
}

/// A version that the repositories have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Available {
    /// The version, in the form that `pkg_rollback` takes.
    pub version: String,
    /// The repository, in the manager's words.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub repository: String,
}

/// The details of one package.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Info {
    /// The name of the package.
    pub name: String,
    /// The installed version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub installed: Option<String>,
    /// The version that would be installed; left out where it is already installed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub candidate: Option<String>,
    /// The available versions, the newest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub versions: Vec<Available>,
    /// The architecture, such as `amd64`, `x86_64`, `all` or `noarch`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub arch: String,
    /// A description in one line.
    pub summary: String,
    /// A description in many lines.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// The section or group of the package, such as `web`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub section: String,
    /// The address of the upstream project.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub homepage: String,
    /// The license as the package states it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub license: String,
    /// The size of the download.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub download_bytes: Option<u64>,
    /// The size on disk.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub installed_bytes: Option<u64>,
    /// The dependencies, in the manager's words.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub depends: Vec<String>,
    /// The packages that can't be installed at the same time.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conflicts: Vec<String>,
    /// The state; left out where the package is installed completely, or not at all.
    #[serde(skip_serializing_if = "State::is_whole")]
    pub state: State,
    /// True where the package is kept at its version.
    #[serde(skip_serializing_if = "is_false")]
    pub held: bool,
    /// True where the package is installed only because another one needs it.
    #[serde(skip_serializing_if = "is_false")]
    pub automatic: bool,
    /// True where the manager itself protects the package.
    #[serde(skip_serializing_if = "is_false")]
    pub essential: bool,
    /// The time of the installation, as RFC 3339 or as the manager writes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub installed_at: Option<String>,
}

/// A newer version of an installed package.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Update {
    /// The name of the package.
    pub name: String,
    /// The installed version.
    pub installed: String,
    /// The newer version.
    pub candidate: String,
    /// The repository that has it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub repository: String,
    /// True where the repository marks it as a security update.
    #[serde(skip_serializing_if = "is_false")]
    pub security: bool,
    /// The severity of the worst advisory, such as `Critical` or `Important`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub severity: Option<String>,
    /// The names of the advisories.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub advisories: Vec<String>,
    /// The CVEs that the update fixes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cves: Vec<String>,
    /// True where the package is kept at its version: an update of all packages leaves it out.
    #[serde(skip_serializing_if = "is_false")]
    pub held: bool,
    /// The percentage of machines that get the update so far, where this machine isn't among them yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phased_percent: Option<u8>,
}

/// The available updates, and when the repositories were read.
#[derive(Clone, Debug, Default)]
pub struct Updates {
    /// The updates, one for each package.
    pub items: Vec<Update>,
    /// The time when the repositories were last read, in seconds since the epoch.
    pub refreshed: Option<f64>,
    /// Notes for the caller, one sentence each.
    pub notes: Vec<String>,
}

/// A change of one package that was made or would be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation {
    /// The kind of operation.
    pub verb: Verb,
    /// The name of the package.
    pub name: String,
    /// The version before; empty where there was none, or where it isn't known.
    pub from: String,
    /// The version afterwards; empty where there is none, or where it isn't known.
    pub to: String,
}

/// The kind of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum Verb {
    Install,
    Upgrade,
    Downgrade,
    Reinstall,
    Remove,
    /// Removal with the configuration files.
    Purge,
}

impl Verb {
    /// The verb in the imperative.
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
    /// Makes an operation. `from` and `to` are versions, and empty where the verb has none.
    pub fn new(verb: Verb, name: impl Into<String>, from: impl Into<String>, to: impl Into<String>) -> Self {
        Self { verb, name: name.into(), from: from.into(), to: to.into() }
    }

    pub(super) fn is_removal(&self) -> bool {
        matches!(self.verb, Verb::Remove | Verb::Purge)
    }

    /// The package with its versions: `lab-hello 2.0`, or `lab-hello 1.0 -> 2.0`.
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
    /// The number that the manager gives it, as `dnf history` does.
    pub id: Option<String>,
    /// The time: ISO 8601 where the manager's log has the time zone, otherwise as the log has it.
    pub at: String,
    /// The account that asked for it.
    pub by: Option<String>,
    /// The command line, where it is recorded.
    pub command: Option<String>,
    /// The operations on packages.
    pub operations: Vec<Operation>,
    /// The error with which it ended.
    pub error: Option<String>,
}

/// The result of the manager's own simulation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Simulated {
    /// The operations; empty where there is nothing to do.
    pub operations: Vec<Operation>,
    /// Packages that stay at their version although there is a newer one.
    pub held_back: Vec<String>,
    /// The most that would be downloaded. Packages that were downloaded before are not downloaded again.
    pub download_bytes: Option<u64>,
    /// The additional space on disk; negative where space is freed.
    pub disk_bytes: Option<i64>,
    /// Packages that no other package needs any more.
    pub no_longer_needed: Vec<String>,
    /// Notes for the caller, one sentence each.
    pub notes: Vec<String>,
}

/// The remaining work after packages have changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Aftermath {
    /// Packages that require a reboot; `*` stands for a package whose name isn't known.
    pub reboot_required_by: Vec<String>,
    /// Units that still run replaced files.
    pub services_to_restart: Vec<String>,
    /// Notes on what couldn't be found out, one sentence each.
    pub notes: Vec<String>,
}

/// A request to the package manager. The names are checked with [`check_name`](super::check_name).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// Install these packages at their newest version.
    Install(Vec<String>),
    /// Install these packages, and install again those that are broken, at the version that they have.
    Reinstall(Vec<String>),
    /// Remove these packages, and keep their configuration files.
    Remove(Vec<String>),
    /// Remove these packages with their configuration files.
    Purge(Vec<String>),
    /// Update these packages to their newest version.
    Update(Vec<String>),
    /// Update all packages to their newest version, without removing any.
    UpdateAll,
    /// Read the repositories anew.
    Refresh,
    /// Take this package to exactly this version.
    Version(String, String),
    /// Undo this transaction of the manager's history.
    Undo(String),
}

fn is_false(value: &bool) -> bool {
    !*value
}
