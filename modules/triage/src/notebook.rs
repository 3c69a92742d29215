//! What the looks have found so far: findings, facts that several findings need, and what could not be looked at.

use std::collections::{BTreeMap, BTreeSet};

use linux_sysadmin_sdk::knowledge::Profile;
use linux_sysadmin_sdk::{prelude::*, text};
use serde_json::Value;

use crate::complaint::Complaint;
use crate::envelope::Envelope;
use crate::finding::{Finding, Kind};
use crate::looks::Planned;
use crate::read::units;
use crate::signs::Meaning;
use crate::words::WORDS;

/// The longest reason for a look that failed, in characters.
const REASON: usize = 100;

/// A service as `svc_list` shows it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Unit {
    pub(crate) name: String,
    pub(crate) active: String,
    pub(crate) sub: String,
    pub(crate) enabled: String,
    /// How its last run failed, in systemd's words.
    pub(crate) result: Option<String>,
    pub(crate) exit_code: Option<u64>,
    pub(crate) restarts: u64,
    /// The command line that it starts, as `svc_status` shows it.
    pub(crate) command: Option<String>,
    /// True once `svc_status` has been read.
    pub(crate) is_told: bool,
}

impl Unit {
    /// Whether something is wrong with it now.
    pub(crate) fn is_failing(&self) -> bool {
        self.active == "failed" || self.sub == "auto-restart" || self.active == "maintenance"
    }
}

/// A process that listens.
#[derive(Clone, Debug, Default)]
pub(crate) struct Listener {
    pub(crate) unit: Option<String>,
    /// The process in a few words: its command, number, unit, account and start.
    pub(crate) shown: String,
    pub(crate) ports: BTreeSet<u16>,
    /// The sockets as they are shown: `tcp 127.0.0.1:8018`.
    pub(crate) sockets: Vec<String>,
}

/// Something that changed on the machine.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    pub(crate) at: i64,
    pub(crate) what: String,
    /// The file that was edited.
    pub(crate) path: Option<String>,
    /// The packages that were installed, updated or removed.
    pub(crate) packages: Vec<String>,
    pub(crate) call: Option<crate::call::Call>,
}

pub(crate) struct Notebook<'a> {
    pub(crate) complaint: Complaint,
    pub(crate) profiles: &'a [Profile],
    pub(crate) package_manager: String,
    pub(crate) hostname: String,
    pub(crate) now: i64,
    /// Whether the machine's own time is UTC.
    pub(crate) is_utc: bool,
    pub(crate) findings: Vec<Finding>,
    pub(crate) units: Vec<Unit>,
    pub(crate) listeners: Vec<Listener>,
    pub(crate) changes: Vec<Change>,
    /// What systemd-tmpfiles said lately, with what it means.
    pub(crate) tmpfiles: Vec<Meaning>,
    /// What lines of units mean, with the units.
    pub(crate) meanings: Vec<(String, Meaning)>,
    /// The name servers of resolv.conf.
    pub(crate) servers: Vec<String>,
    /// The next hop of the default route.
    pub(crate) gateway: Option<String>,
    /// The accounts with their homes.
    pub(crate) accounts: BTreeMap<String, String>,
    /// The accounts that weren't let in.
    pub(crate) refused: Vec<String>,
    /// The port of each service that another process has.
    pub(crate) taken: Vec<(String, u16)>,
    /// The number of findings that were added, those about one unit counted each.
    added: usize,
    /// The looks that were answered, with the number of findings that each gave.
    looked: BTreeMap<&'static str, usize>,
    /// The reasons for what could not be looked at, each with the looks.
    unseen: BTreeMap<String, BTreeSet<&'static str>>,
}

impl<'a> Notebook<'a> {
    pub(crate) fn new(complaint: Complaint, profiles: &'a [Profile], cx: &Context) -> Self {
        let distro = cx.distro();
        let zone = distro.extra.iter().find(|(name, _)| name == "timezone");
        Self {
            complaint,
            profiles,
            package_manager: distro.package_manager,
            hostname: distro.hostname,
            now: cx.now() as i64,
            is_utc: zone.is_some_and(|(_, zone)| zone == "UTC" || zone == "Etc/UTC"),
            findings: Vec::new(),
            units: Vec::new(),
            listeners: Vec::new(),
            changes: Vec::new(),
            tmpfiles: Vec::new(),
            meanings: Vec::new(),
            servers: Vec::new(),
            gateway: None,
            accounts: BTreeMap::new(),
            refused: Vec::new(),
            taken: Vec::new(),
            added: 0,
            looked: BTreeMap::new(),
            unseen: BTreeMap::new(),
        }
    }

    /// Has an answer read by its look.
    pub(crate) fn read(&mut self, planned: &Planned, result: Result<Value>) {
        let look = planned.look;
        let envelope = match result.and_then(succeeded) {
            Ok(envelope) => envelope,
            Err(problem) => {
                if !look.failed.is_some_and(|failed| failed(&problem, &planned.subject, self)) {
                    self.unseen(look.what, &problem.message);
                }
                return;
            }
        };
        let before = self.added;
        (look.read)(Envelope(&envelope), &planned.subject, self);
        *self.looked.entry(look.what).or_default() += self.added - before;
    }

    pub(crate) fn unseen(&mut self, what: &'static str, why: &str) {
        let why = text::excerpt(&crate::envelope::short(why), REASON);
        self.unseen.entry(why).or_default().insert(what);
    }

    /// What could not be looked at, with the reasons.
    pub(crate) fn all_unseen(&self) -> Vec<String> {
        let shown = |(why, whats): (&String, &BTreeSet<&str>)| {
            format!("{}: {why}", whats.iter().copied().collect::<Vec<_>>().join(", "))
        };
        self.unseen.iter().map(shown).collect()
    }

    /// The looks that found nothing, in one line.
    pub(crate) fn fine(&self) -> String {
        let is_seen = |what: &str| !self.unseen.values().any(|whats| whats.contains(what));
        let fine = self.looked.iter().filter(|(what, found)| **found == 0 && is_seen(what));
        fine.map(|(what, _)| *what).collect::<Vec<_>>().join(", ")
    }

    /// Adds a finding. One about a unit that has a finding already completes that one.
    pub(crate) fn add(&mut self, finding: Finding) {
        self.added += 1;
        let same = finding
            .unit
            .as_ref()
            .and_then(|unit| self.findings.iter_mut().find(|known| known.unit.as_ref() == Some(unit)));
        let Some(known) = same else { return self.findings.push(finding) };
        let is_better =
            finding.cause.is_some() && (known.cause.is_none() || finding.is_exact && !known.is_exact);
        if is_better {
            known.evidence.splice(0..0, finding.evidence);
            known.cause = finding.cause;
            known.is_exact = finding.is_exact;
            known.call = finding.call.or(known.call.take());
        } else {
            known.evidence.extend(finding.evidence);
        }
        known.severity = known.severity.max(finding.severity);
        known.since = known.since.or(finding.since);
        known.weight = known.weight.max(finding.weight);
        known.names.extend(finding.names);
        known.fits.extend(finding.fits);
    }

    /// The profile that has this unit.
    pub(crate) fn profile_of(&self, unit: &str) -> Option<&'a Profile> {
        let full = linux_sysadmin_sdk::units::with_type(unit);
        self.profiles.iter().find(|profile| profile.unit(&full).is_some() || profile.id == unit)
    }

    /// The kinds of complaint that trouble with a service of this profile fits.
    pub(crate) fn kind_of(profile: &Profile) -> Option<Kind> {
        WORDS.categories.get(&profile.category).copied()
    }

    /// Tells the failed units that nobody has looked at any further.
    pub(crate) fn close_units(&mut self) {
        let left: Vec<Unit> =
            self.units.iter().filter(|unit| unit.is_failing() && !unit.is_told).cloned().collect();
        for unit in left {
            let finding = units::in_short(&unit, self);
            self.add(finding);
            *self.looked.entry("units").or_default() += 1;
        }
    }
}

/// The envelope of a call that succeeded. The host tells a failure as a problem; an envelope with an error is one as well.
fn succeeded(envelope: Value) -> Result<Value> {
    if envelope["status"].as_str().is_none_or(|status| status == "success") {
        return Ok(envelope);
    }
    let text = |name: &str| envelope[name].as_str().map(str::to_owned);
    let code = text("error_code").unwrap_or_else(|| "NO_ANSWER".to_owned());
    let message =
        text("message").or_else(|| text("error")).unwrap_or_else(|| "the tool didn't answer".to_owned());
    Err(Problem::new(&code, linux_sysadmin_sdk::Category::Other, message))
}
