//! A unit as it is before a change: what may be done with it, and what would go along.

use std::collections::BTreeSet;

use linux_sysadmin_sdk::{Category, prelude::*};

use crate::power::Verb;
use crate::properties::{self, Properties};
use crate::{name, status, systemctl};

/// How many units are followed to find what stops along.
const MOST_FOLLOWED: usize = 256;

/// In the stop of every unit's way, and never running on a machine that answers.
const ALWAYS_IN_CONFLICT: [&str; 2] = ["shutdown.target", "umount.target"];

/// One unit, by its own name: an alias could hide another.
#[derive(Debug, Default)]
pub(crate) struct Unit {
    pub(crate) id: String,
    pub(crate) load_state: String,
    pub(crate) load_error: Option<String>,
    pub(crate) active_state: String,
    pub(crate) sub_state: String,
    /// The unit file's state, as `systemctl list-unit-files` gives it; empty where there is no unit file.
    pub(crate) enabled: String,
    /// Of a service.
    pub(crate) service_type: Option<String>,
    pub(crate) can_start: bool,
    pub(crate) can_stop: bool,
    pub(crate) can_reload: bool,
    pub(crate) fragment_path: Option<String>,
    pub(crate) source_path: Option<String>,
    pub(crate) drop_ins: Vec<String>,
    pub(crate) triggered_by: Vec<String>,
    /// Stop and restart with it.
    dependents: Vec<String>,
    /// Stop when it starts.
    conflicts: Vec<String>,
}

impl Unit {
    fn of(unit: &Properties<'_>) -> Option<Self> {
        let id = unit.string("Id")?;
        let of = |keys: &[&str]| keys.iter().flat_map(|key| unit.words(key)).collect();
        Some(Self {
            load_state: unit.text("LoadState").unwrap_or("loaded").to_owned(),
            load_error: unit.text("LoadError").and_then(status::load_error),
            active_state: unit.string("ActiveState")?,
            sub_state: unit.string("SubState").unwrap_or_default(),
            enabled: unit.string("UnitFileState").unwrap_or_default(),
            service_type: unit.string("Type").filter(|_| id.ends_with(".service")),
            can_start: unit.yes("CanStart"),
            can_stop: unit.yes("CanStop"),
            can_reload: unit.yes("CanReload"),
            fragment_path: unit.string("FragmentPath"),
            source_path: unit.string("SourcePath"),
            drop_ins: unit.words("DropInPaths"),
            triggered_by: unit.words("TriggeredBy"),
            dependents: of(&["RequiredBy", "RequisiteOf", "BoundBy", "ConsistsOf", "PropagatesStopTo"]),
            conflicts: of(&["Conflicts", "ConflictedBy"]),
            id,
        })
    }

    /// One whose file the plan is yet to write.
    pub(crate) fn to_be(id: &str) -> Self {
        Self {
            id: id.to_owned(),
            active_state: "inactive".to_owned(),
            enabled: "disabled".to_owned(),
            can_start: true,
            ..Self::default()
        }
    }

    /// As it is said in replies and taken as an argument.
    pub(crate) fn short(&self) -> &str {
        name::short(&self.id)
    }

    pub(crate) fn is_active(&self) -> bool {
        matches!(self.active_state.as_str(), "active" | "reloading" | "refreshing")
    }

    /// On its way counts: a crash loop can be stopped.
    pub(crate) fn is_running(&self) -> bool {
        !matches!(self.active_state.as_str(), "inactive" | "failed")
    }

    pub(crate) fn is_enabled(&self) -> bool {
        self.enabled == "enabled"
    }

    pub(crate) fn is_masked(&self) -> bool {
        self.load_state == "masked" || self.enabled.starts_with("masked")
    }

    /// Nothing defines it and nothing of it runs.
    pub(crate) fn is_unknown(&self) -> bool {
        self.load_state == "not-found" && !self.is_running()
    }

    /// A slice that no file defines, which is there because a unit names it: all but systemd's own.
    pub(crate) fn is_implied_slice(&self) -> bool {
        self.id.ends_with(".slice")
            && !matches!(self.id.as_str(), "-.slice" | "system.slice" | "user.slice" | "machine.slice")
            && self.load_state == "loaded"
            && self.fragment_path.is_none()
            && self.source_path.is_none()
    }

    /// Why the verb can't be done with it, where systemd would refuse or do nothing.
    pub(crate) fn check(&self, verb: Verb) -> Result<()> {
        let short = self.short();
        if self.is_masked() && !matches!(verb, Verb::Stop | Verb::Disable) {
            return Err(self.masked());
        }
        let is_loaded = !matches!(self.load_state.as_str(), "not-found" | "bad-setting" | "error");
        if !is_loaded && matches!(verb, Verb::Start | Verb::Restart | Verb::Enable) {
            let why = self.load_error.as_deref().unwrap_or("its unit file is gone or can't be read");
            let message = format!("{} can't be loaded ({}): {why}", self.id, self.load_state);
            return Err(state("UNIT_NOT_LOADED", message)
                .remedy(format!("On the target: systemd-analyze verify -- {}", self.id)));
        }
        let starts = matches!(verb, Verb::Start | Verb::Restart);
        if starts && !self.can_start {
            let message = format!(
                "{} can't be started by itself: it sets RefuseManualStart=yes, or its type is started by other means",
                self.id
            );
            return Err(state("UNIT_REFUSES_START", message)
                .remedy(format!("See which units start it: svc_status service={short}")));
        }
        let stops = verb == Verb::Stop || (verb == Verb::Restart && self.is_running());
        if stops && !self.can_stop {
            let message = format!(
                "{} can't be stopped by itself: it sets RefuseManualStop=yes, or it is part of the running system",
                self.id
            );
            return Err(state("UNIT_REFUSES_STOP", message));
        }
        if verb == Verb::Reload && !self.can_reload {
            return Err(state("RELOAD_NOT_SUPPORTED", format!("{} has no way to reload", self.id))
                .remedy(format!("Restart it instead, which interrupts it: svc_restart service={short}")));
        }
        if verb == Verb::Reload && !self.is_active() {
            let message = format!(
                "{} is {} ({}): there is nothing to reload",
                self.id, self.active_state, self.sub_state
            );
            return Err(
                state("SERVICE_NOT_ACTIVE", message).remedy(format!("Start it: svc_start service={short}"))
            );
        }
        Ok(())
    }

    pub(crate) fn masked(&self) -> Problem {
        state("UNIT_MASKED", format!("{} is masked: it was made impossible to start on purpose", self.id))
            .remedy(format!("Only if that is to end, on the target: systemctl unmask -- {}", self.id))
    }
}

/// The target's state doesn't allow it.
pub(crate) fn state(code: &str, message: impl Into<String>) -> Problem {
    Problem::new(code, Category::State, message)
}

/// The unit that a caller's name stands for; an unknown one is a problem that suggests others.
pub(crate) fn known(input: &str, cx: &Context) -> Result<Unit> {
    let name = name::full(input)?;
    let unit = look(&name, cx)?;
    if unit.is_unknown() {
        return Err(status::unknown(&name, cx));
    }
    Ok(unit)
}

/// The unit of a full name, known or not.
pub(crate) fn look(name: &str, cx: &Context) -> Result<Unit> {
    read(&systemctl::answer(cx.run(systemctl::STATE.with([name])))?)
}

/// The same, and what else is asked of it at the same time.
pub(crate) fn look_and(name: &str, also: CommandLine, cx: &Context) -> Result<(Unit, String)> {
    let mut answers = cx.run_all(vec![systemctl::STATE.with([name]), also.with([name])]).into_iter();
    let mut answer = || {
        systemctl::answer(answers.next().unwrap_or_else(|| Err(Problem::unexpected("systemctl show", ""))))
    };
    let (shown, also) = (answer()?, answer()?);
    Ok((read(&shown)?, also))
}

fn read(shown: &str) -> Result<Unit> {
    let units = properties::parse(shown);
    let unit = match units.as_slice() {
        [unit] => Unit::of(unit),
        _ => None,
    };
    // Its name becomes an argument.
    unit.filter(|unit| name::full(&unit.id).is_ok_and(|full| full == unit.id))
        .ok_or_else(|| Problem::unexpected("systemctl show", shown))
}

/// Units that run and that go with it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Along {
    pub(crate) units: Vec<String>,
    /// There were too many to follow them all.
    pub(crate) is_cut: bool,
}

/// What stops with the unit or restarts with it: those that require it, and those that require these.
pub(crate) fn stopping_with(unit: &Unit, cx: &Context) -> Result<Along> {
    follow(&unit.id, unit.dependents.clone(), cx)
}

/// What stops when the unit starts.
pub(crate) fn stopping_for(unit: &Unit, cx: &Context) -> Result<Along> {
    follow(&unit.id, unit.conflicts.clone(), cx)
}

fn follow(id: &str, first: Vec<String>, cx: &Context) -> Result<Along> {
    let mut known: BTreeSet<String> = ALWAYS_IN_CONFLICT.map(str::to_owned).into();
    known.insert(id.to_owned());
    let (mut along, mut next, mut room) = (Along::default(), first, MOST_FOLLOWED);
    while !along.is_cut {
        // What isn't a name is no argument; that is `-.mount`, which stops with nothing.
        next.retain(|name| name::full(name).is_ok_and(|full| full == *name) && known.insert(name.clone()));
        along.is_cut = next.len() > room;
        next.truncate(room);
        room -= next.len();
        if next.is_empty() {
            break;
        }
        let shown = systemctl::answer(cx.run(systemctl::STATE.with(&next)))?;
        let units: Vec<Unit> = properties::parse_units(&shown)?.iter().filter_map(Unit::of).collect();
        if units.len() != next.len() {
            return Err(Problem::unexpected("systemctl show", &shown));
        }
        next = units.iter().flat_map(|unit| unit.dependents.clone()).collect();
        along.units.extend(units.into_iter().filter(Unit::is_running).map(|unit| unit.id));
    }
    along.units.sort();
    along.units.dedup();
    along.units.retain(|unit| unit != id);
    Ok(along)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unit(text: &str) -> Unit {
        let text = format!("Id=a.service\nActiveState=active\nSubState=running\n{text}");
        Unit::of(&properties::parse(&text)[0]).unwrap_or_default()
    }

    #[test]
    fn what_systemd_would_refuse_is_refused_with_the_reason() {
        let can = "CanStart=yes\nCanStop=yes\nCanReload=yes\n";
        let table = [
            (Verb::Start, "CanStart=no", "UNIT_REFUSES_START"),
            (Verb::Restart, "CanStart=no\nCanStop=yes", "UNIT_REFUSES_START"),
            (Verb::Stop, "CanStop=no", "UNIT_REFUSES_STOP"),
            (Verb::Restart, "CanStart=yes\nCanStop=no", "UNIT_REFUSES_STOP"),
            (Verb::Reload, "CanReload=no", "RELOAD_NOT_SUPPORTED"),
            (Verb::Reload, "CanReload=yes\nActiveState=inactive", ""),
            (Verb::Start, "CanStart=yes\nLoadState=masked", "UNIT_MASKED"),
            (Verb::Enable, "UnitFileState=masked-runtime", "UNIT_MASKED"),
            (Verb::Start, "CanStart=yes\nLoadState=bad-setting", "UNIT_NOT_LOADED"),
            (Verb::Start, "CanStart=yes\nLoadState=not-found", "UNIT_NOT_LOADED"),
            (Verb::Stop, "CanStop=yes\nLoadState=not-found", ""),
            (Verb::Stop, "CanStop=yes\nLoadState=masked", ""),
            (Verb::Disable, "LoadState=masked", ""),
        ];
        for (verb, text, expected) in table {
            let code = unit(text).check(verb).err().map(|problem| problem.code).unwrap_or_default();
            assert_eq!(code, expected, "{verb:?} {text}");
        }
        for verb in [Verb::Start, Verb::Stop, Verb::Restart, Verb::Reload, Verb::Enable, Verb::Disable] {
            assert_eq!(unit(can).check(verb), Ok(()), "{verb:?}");
        }
    }

    #[test]
    fn a_reload_of_what_is_not_active_says_how_to_start_it() {
        let unit = Unit { active_state: "failed".into(), ..unit("CanReload=yes") };
        let problem = unit.check(Verb::Reload).err().unwrap_or_else(|| Problem::validation("", ""));
        assert_eq!(problem.code, "SERVICE_NOT_ACTIVE");
        assert_eq!(problem.remediation, ["Start it: svc_start service=a"]);
    }
}
