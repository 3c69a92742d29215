//! The units before a restart and after it.

use std::collections::{BTreeMap, HashMap};

use linux_sysadmin_sdk::{DurationCategory, Output, prelude::*};

/// Shows the units that are in memory. One that isn't there any more has stopped without an error.
pub(crate) const STATES: CommandLine = CommandLine::new(concat!(
    "systemctl show --property=Id,ActiveState,SubState,Result,UnitFileState,WantedBy,RequiredBy,TriggeredBy -- ",
    "'*.service' '*.socket' '*.mount' '*.timer'"
));

/// The names that sshd's units have.
const SSH: [&str; 4] = ["ssh.service", "sshd.service", "ssh.socket", "sshd.socket"];

/// The units that are in memory, by name.
#[derive(Default)]
pub(crate) struct Units(BTreeMap<String, Unit>);

#[derive(Default)]
struct Unit {
    active: String,
    sub: String,
    result: String,
    /// True where it starts at boot, as `systemctl is-enabled` says it.
    enabled: String,
    /// True where another unit starts it.
    is_wanted: bool,
}

/// A unit that ran before the restart, and doesn't run after it.
#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct NotUp {
    unit: String,
    /// `failed`, `inactive`, `activating`, or `gone` where the unit isn't there any more.
    state: String,
    /// Why it failed, such as `exit-code`.
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<String>,
}

impl NotUp {
    /// The call that says why the unit failed. A unit that nothing starts needs no reason.
    pub(crate) fn advice(&self) -> Option<String> {
        (self.state == "failed").then(|| format!("svc_troubleshoot service={} says why", self.unit))
    }
}

pub(crate) fn states() -> Command {
    STATES.command().duration(DurationCategory::Quick)
}

impl Units {
    /// Reads the output of [`STATES`]. Without systemd, there are none.
    pub(crate) fn read(output: Result<Output>) -> Self {
        let text = output.map(|output| output.text().into_owned()).unwrap_or_default();
        let unit = |block: &str| {
            let values: HashMap<_, _> = block.lines().filter_map(|line| line.split_once('=')).collect();
            let value = |key: &str| values.get(key).copied().unwrap_or_default().to_owned();
            let is_wanted =
                ["WantedBy", "RequiredBy", "TriggeredBy"].into_iter().any(|key| !value(key).is_empty());
            let unit = Unit {
                active: value("ActiveState"),
                sub: value("SubState"),
                result: value("Result"),
                enabled: value("UnitFileState"),
                is_wanted,
            };
            (value("Id"), unit)
        };
        Self(text.split("\n\n").map(unit).filter(|(name, _)| !name.is_empty()).collect())
    }

    fn ssh(&self) -> impl Iterator<Item = &Unit> {
        SSH.iter().filter_map(|name| self.0.get(*name)).filter(|unit| unit.active == "active")
    }

    pub(crate) fn has_ssh(&self) -> bool {
        self.ssh().next().is_some()
    }

    pub(crate) fn ssh_starts_at_boot(&self) -> bool {
        self.ssh().any(|unit| unit.enabled != "disabled" || unit.is_wanted)
    }

    /// The services that run and that neither start at boot nor are started by another unit.
    pub(crate) fn not_started_at_boot(&self) -> Vec<&str> {
        let is_lost = |(name, unit): &(&String, &Unit)| {
            name.ends_with(".service")
                && !SSH.contains(&name.as_str())
                && unit.runs()
                && unit.enabled == "disabled"
                && !unit.is_wanted
        };
        self.0.iter().filter(is_lost).map(|(name, _)| name.as_str()).collect()
    }

    /// The units of `before` that ran and don't run now, and those that have failed only now.
    pub(crate) fn not_up(&self, before: &Self) -> Vec<NotUp> {
        let failed_before = |name: &String| before.0.get(name).is_some_and(|unit| unit.active == "failed");
        let ran = before.0.iter().filter(|(name, unit)| unit.runs() && !is_of_a_session(name, unit));
        let missing = ran.filter_map(|(name, _)| match self.0.get(name) {
            Some(unit) if unit.active == "active" => None,
            now => Some((name, now)),
        });
        let failed = self.0.iter().filter(|(name, unit)| unit.active == "failed" && !failed_before(name));
        let all: BTreeMap<_, _> = missing.chain(failed.map(|(name, unit)| (name, Some(unit)))).collect();
        let not_up = |(name, unit): (&String, Option<&Unit>)| NotUp {
            unit: name.clone(),
            state: unit.map_or("gone", |unit| &unit.active).to_owned(),
            result: unit.filter(|unit| unit.active == "failed").map(|unit| unit.result.clone()),
        };
        all.into_iter().map(not_up).collect()
    }
}

impl Unit {
    /// Says whether it is up for good, unlike a service that has done its work.
    fn runs(&self) -> bool {
        self.active == "active" && self.sub != "exited"
    }
}

/// Says whether the unit belongs to a login or was made by a program while it ran, so that a restart ends it for good.
fn is_of_a_session(name: &str, unit: &Unit) -> bool {
    unit.enabled == "transient"
        || ["user@", "user-runtime-dir@", "run-user-"].iter().any(|prefix| name.starts_with(prefix))
}
