//! The looks at what has a name: services, hosts and accounts of the complaint, and what the first round found.

use linux_sysadmin_sdk::knowledge::Profile;
use serde_json::{Value, json};

use crate::call::Form;
use crate::finding::Kind;
use crate::looks::{HOLDER, HOST, KEYS, LOCK, Planned, RESOLVERS, TROUBLE, UNIT, USER, WAY};
use crate::names::WHOLE;
use crate::notebook::{Notebook, Unit};

/// The most calls of each kind.
const TROUBLES: usize = 2;
const FAILED: usize = 4;
const MEANT: usize = 2;
const ACCOUNTS: usize = 2;

/// The file that each package manager keeps open while it works.
const LOCKS: [(&str, &str); 2] = [("apt", "/var/lib/dpkg/lock-frontend"), ("dnf", "/var/lib/rpm/.rpm.lock")];

/// The calls that the complaint alone gives rise to.
pub(crate) fn first(notebook: &Notebook<'_>) -> Vec<Planned> {
    let complaint = &notebook.complaint;
    let mut planned = Vec::new();
    for host in &complaint.hosts {
        planned.push(Planned::new(&HOST, json!({"test": "dns", "target": host}), host));
    }
    if let Some(host) = complaint.hosts.first() {
        planned.push(Planned::new(&WAY, json!({"target": host}), host));
    } else if Form::Host.value(&notebook.hostname).is_some() {
        let arguments = json!({"test": "dns", "target": notebook.hostname});
        planned.push(Planned::new(&RESOLVERS, arguments, &notebook.hostname));
    }
    planned.extend(troubles(notebook));
    let lock = LOCKS.iter().find(|(manager, _)| *manager == notebook.package_manager);
    if let Some((_, file)) = lock.filter(|_| complaint.is_about(Kind::Packages)) {
        planned.push(Planned::new(&LOCK, json!({"file": file, "limit": 3}), *file));
    }
    planned
}

/// The profiles that the complaint means, with the symptom that its words name.
fn troubles(notebook: &Notebook<'_>) -> Vec<Planned> {
    let mut meant: Vec<(u32, &Profile, Option<&str>)> = notebook
        .profiles
        .iter()
        .filter_map(|profile| {
            let symptom = symptom(profile, notebook);
            let is_meant = is_meant(profile, notebook);
            let rank = u32::from(symptom.is_some()) * 2 + u32::from(is_meant);
            // A symptom of one word is that of many services.
            let is_enough = is_meant || symptom.is_some_and(|symptom| symptom.matches('-').count() > 0);
            is_enough.then_some((rank, profile, symptom))
        })
        .collect();
    meant.sort_by_key(|(rank, profile, _)| (std::cmp::Reverse(*rank), &profile.id));
    let call = |(_, profile, symptom): (u32, &Profile, Option<&str>)| match symptom {
        Some(symptom) => {
            let arguments = json!({"service": profile.id, "symptom": symptom});
            Planned::new(&TROUBLE, arguments, format!("{} {symptom}", profile.id))
        }
        None => Planned::new(&TROUBLE, json!({"service": profile.id}), &profile.id),
    };
    meant
        .into_iter()
        .filter(|(_, profile, _)| !profile.symptoms.is_empty())
        .take(TROUBLES)
        .map(call)
        .collect()
}

/// The symptom whose words the complaint has: `bad-gateway`.
fn symptom<'a>(profile: &'a Profile, notebook: &Notebook<'_>) -> Option<&'a str> {
    let symptoms = profile.symptoms.iter().map(|symptom| symptom.id.as_str());
    symptoms.max_by_key(|id| notebook.complaint.names(id)).filter(|id| notebook.complaint.names(id) == WHOLE)
}

/// Whether the complaint names a service, by its name, a unit's, or a word for its category.
fn is_meant(profile: &Profile, notebook: &Notebook<'_>) -> bool {
    let complaint = &notebook.complaint;
    let (categories, units) = complaint.services();
    let is_unit = |name: &str| {
        let name = name.trim_end_matches(".service");
        complaint.names(name) == WHOLE || units.contains(&name)
    };
    complaint.names(&profile.id) == WHOLE
        || categories.contains(&profile.category.as_str())
        || profile.units.iter().filter(|unit| unit.main).any(|unit| is_unit(&unit.name))
}

/// The calls that the answers of the first round give rise to.
pub(crate) fn second(notebook: &Notebook<'_>) -> Vec<Planned> {
    let mut planned = accounts(notebook);
    planned.extend(units(notebook));
    // Where all that listens was asked for, the holder is known.
    if let Some((unit, port)) = notebook.taken.first().filter(|_| notebook.listeners.is_empty()) {
        planned.push(Planned::new(&HOLDER, json!({"port": port, "state": "listening"}), unit));
    }
    let is_of_network = notebook.complaint.kinds.is_empty()
        || [Kind::Network, Kind::Dns].into_iter().any(|kind| notebook.complaint.is_about(kind));
    if let Some(gateway) = notebook.gateway.as_ref().filter(|_| is_of_network) {
        planned.push(Planned::new(&WAY, json!({"target": gateway}), gateway));
    }
    planned
}

/// The accounts that the complaint names, or else those that weren't let in.
fn accounts(notebook: &Notebook<'_>) -> Vec<Planned> {
    if !notebook.complaint.is_about(Kind::Login) {
        return Vec::new();
    }
    let is_named = |user: &&String| notebook.complaint.words.contains(&user.to_lowercase());
    let mut users: Vec<&String> = notebook.accounts.keys().filter(is_named).take(ACCOUNTS).collect();
    if users.is_empty() {
        users.extend(notebook.refused.iter().filter(|user| notebook.accounts.contains_key(*user)).take(1));
    }
    let mut planned = Vec::new();
    for user in users.into_iter().filter(|user| Form::User.value(user).is_some()) {
        planned.push(Planned::new(&USER, json!({"user": user}), user));
        let home = notebook.accounts.get(user).map(String::as_str).unwrap_or_default();
        if let Some(path) = Form::Path.value(&format!("{home}/.ssh/authorized_keys")) {
            planned.push(Planned::new(&KEYS, json!({"path": path}), user));
        }
    }
    planned
}

/// The units that are failing, those first that the complaint names; and those that it names and that run.
fn units(notebook: &Notebook<'_>) -> Vec<Planned> {
    let complaint = &notebook.complaint;
    let (categories, named) = complaint.services();
    let main: Vec<&str> = notebook
        .profiles
        .iter()
        .filter(|profile| {
            categories.contains(&profile.category.as_str())
                || Notebook::kind_of(profile).is_some_and(|kind| complaint.is_about(kind))
        })
        .filter_map(|profile| profile.main_unit())
        .map(|unit| unit.name.trim_end_matches(".service"))
        .collect();
    let share = |unit: &Unit| match complaint.names(&unit.name) {
        share
            if share < WHOLE
                && (named.contains(&unit.name.as_str()) || main.contains(&unit.name.as_str())) =>
        {
            WHOLE - 1
        }
        share => share,
    };
    let may_fail = |unit: &&Unit| unit.is_failing() || (unit.restarts > 2 && unit.active != "inactive");
    let mut failing: Vec<&Unit> = notebook.units.iter().filter(may_fail).collect();
    failing.sort_by_key(|unit| (std::cmp::Reverse(share(unit)), !unit.is_failing(), &unit.name));
    failing.truncate(FAILED);
    let mut meant: Vec<&Unit> = notebook
        .units
        .iter()
        .filter(|unit| share(unit) >= WHOLE - 1 && !failing.iter().any(|known| known.name == unit.name))
        .collect();
    // What is only installed is seldom the trouble.
    meant.sort_by_key(|unit| {
        (std::cmp::Reverse(share(unit)), unit.active == "inactive" && unit.enabled != "enabled")
    });
    meant.truncate(MEANT);
    let call = |unit: &Unit| {
        let service: Value = Form::Unit.value(&unit.name)?;
        Some(Planned::new(&UNIT, json!({"service": service}), &unit.name))
    };
    failing.into_iter().chain(meant).filter_map(call).collect()
}
