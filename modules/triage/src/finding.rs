//! A finding: something that is wrong, with the evidence, the likeliest cause, since when, and the call that goes on from there.

use linux_sysadmin_sdk::prelude::*;

use crate::call::Call;
use crate::signs::Meaning;

/// The kind of a finding, and of a complaint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    Service,
    Slow,
    Disk,
    Network,
    Dns,
    Login,
    Packages,
    Mail,
    Schedule,
    Time,
    Certificate,
    Container,
    /// What changed lately. No complaint is of this kind.
    Change,
}

impl Kind {
    pub(crate) const ALL: [Self; 13] = [
        Self::Service,
        Self::Slow,
        Self::Disk,
        Self::Network,
        Self::Dns,
        Self::Login,
        Self::Packages,
        Self::Mail,
        Self::Schedule,
        Self::Time,
        Self::Certificate,
        Self::Container,
        Self::Change,
    ];

    /// The kind of this name, as a complaint may consist of it alone.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| *kind != Self::Change && kind.name() == name)
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Service => "service",
            Self::Slow => "slow",
            Self::Disk => "disk",
            Self::Network => "network",
            Self::Dns => "dns",
            Self::Login => "login",
            Self::Packages => "packages",
            Self::Mail => "mail",
            Self::Schedule => "schedule",
            Self::Time => "time",
            Self::Certificate => "certificate",
            Self::Container => "container",
            Self::Change => "change",
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Finding {
    pub(crate) kind: Kind,
    /// Other kinds of complaint that it fits as well.
    pub(crate) fits: Vec<Kind>,
    pub(crate) severity: Severity,
    pub(crate) what: String,
    /// Lines and values that say so, the most telling first.
    pub(crate) evidence: Vec<String>,
    pub(crate) cause: Option<String>,
    /// True where a line of the machine itself names the cause. Otherwise it is the usual one.
    pub(crate) is_exact: bool,
    /// Seconds since the epoch.
    pub(crate) since: Option<i64>,
    pub(crate) call: Option<Call>,
    /// The unit that it is about, without `.service`. Findings about one unit become one.
    pub(crate) unit: Option<String>,
    /// Names that a complaint may have for it, and paths that a change of it has in its own path.
    pub(crate) names: Vec<String>,
    /// What an answer to the complaint's own words adds to its rank.
    pub(crate) weight: u32,
}

impl Finding {
    pub(crate) fn new(kind: Kind, severity: Severity, what: impl Into<String>) -> Self {
        Self {
            kind,
            fits: Vec::new(),
            severity,
            what: what.into(),
            evidence: Vec::new(),
            cause: None,
            is_exact: false,
            since: None,
            call: None,
            unit: None,
            names: Vec::new(),
            weight: 0,
        }
    }

    pub(crate) fn fits(mut self, kinds: &[Kind]) -> Self {
        self.fits.extend(kinds);
        self
    }

    pub(crate) fn evidence(mut self, line: impl Into<String>) -> Self {
        let line = line.into();
        if !line.is_empty() {
            self.evidence.push(line);
        }
        self
    }

    pub(crate) fn cause(mut self, cause: impl Into<String>) -> Self {
        self.cause = Some(cause.into());
        self
    }

    /// Sets the cause and the call as a line of the machine means them.
    pub(crate) fn meaning(mut self, meaning: Meaning) -> Self {
        self.evidence.insert(0, meaning.line);
        self.cause = Some(meaning.cause);
        self.is_exact = true;
        self.call = meaning.call.or(self.call);
        self
    }

    pub(crate) fn since(mut self, since: Option<i64>) -> Self {
        self.since = since;
        self
    }

    /// Sets the first of these calls whose arguments have the form that they must have.
    pub(crate) fn call(mut self, calls: impl IntoIterator<Item = Option<Call>>) -> Self {
        self.call = calls.into_iter().flatten().next();
        self
    }

    pub(crate) fn name(mut self, name: impl Into<String>) -> Self {
        self.names.push(name.into());
        self
    }

    pub(crate) fn unit(mut self, unit: &str) -> Self {
        self.unit = Some(unit.to_owned());
        self.name(unit)
    }

    pub(crate) fn weight(mut self, weight: u32) -> Self {
        self.weight += weight;
        self
    }

    /// Whether a complaint of this kind may be about it.
    pub(crate) fn is_of(&self, kind: Kind) -> bool {
        self.kind == kind || self.fits.contains(&kind)
    }
}
