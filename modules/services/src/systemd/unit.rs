//! The state of a unit before a change, and which changes systemd would refuse.

use linux_sysadmin_sdk::{Category, prelude::*};

use super::properties::{self, Properties};
use super::verb::Verb;
use super::{systemctl, unit_name};

/// The number of instances of a template that an error names.
const MOST_INSTANCES: usize = 10;

/// One unit, under its own name and not an alias.
#[derive(Debug, Default)]
pub(crate) struct Unit {
    pub(crate) id: String,
    pub(crate) load_state: String,
    pub(crate) load_error: Option<String>,
    pub(crate) active_state: String,
    pub(crate) sub_state: String,
    /// The unit file's state, as `systemctl list-unit-files` gives it; empty where there is no unit file.
    pub(crate) enabled: String,
    /// A service's type, such as `oneshot`. None for other units.
    pub(crate) service_type: Option<String>,
    pub(crate) can_start: bool,
    pub(crate) can_stop: bool,
    pub(crate) can_reload: bool,
    pub(crate) fragment_path: Option<String>,
    pub(crate) source_path: Option<String>,
    pub(crate) drop_ins: Vec<String>,
    pub(crate) triggered_by: Vec<String>,
    /// Units that can't start without this one.
    pub(crate) needed_by: Vec<String>,
    /// Units that stop and restart with this one.
    pub(super) dependents: Vec<String>,
    /// Units that stop when this one starts.
    pub(super) conflicts: Vec<String>,
}

impl Unit {
    pub(super) fn of(unit: &Properties<'_>) -> Option<Self> {
        let id = unit.string("Id")?;
        let of = |keys: &[&str]| keys.iter().flat_map(|key| unit.words(key)).collect();
        Some(Self {
            load_state: unit.text("LoadState").unwrap_or("loaded").to_owned(),
            load_error: unit.load_error(),
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
            needed_by: of(&["RequiredBy", "RequisiteOf", "BoundBy"]),
            dependents: of(&["RequiredBy", "RequisiteOf", "BoundBy", "ConsistsOf", "PropagatesStopTo"]),
            conflicts: of(&["Conflicts", "ConflictedBy"]),
            id,
        })
    }

    /// A unit whose file the plan will write.
    pub(crate) fn to_be(id: &str) -> Self {
        Self {
            id: id.to_owned(),
            active_state: "inactive".to_owned(),
            enabled: "disabled".to_owned(),
            can_start: true,
            ..Self::default()
        }
    }

    /// The name as answers show it and arguments take it.
    pub(crate) fn short(&self) -> &str {
        unit_name::short(&self.id)
    }

    /// The name of its file.
    pub(crate) fn file_name(&self) -> Option<&str> {
        self.fragment_path.as_deref().and_then(|path| path.rsplit('/').next())
    }

    pub(crate) fn is_active(&self) -> bool {
        matches!(self.active_state.as_str(), "active" | "reloading" | "refreshing")
    }

    /// True also for a unit that is starting or stopping, because a crash loop can be stopped.
    pub(crate) fn is_running(&self) -> bool {
        !matches!(self.active_state.as_str(), "inactive" | "failed")
    }

    pub(crate) fn is_enabled(&self) -> bool {
        self.enabled == "enabled"
    }

    pub(crate) fn is_masked(&self) -> bool {
        self.load_state == "masked" || self.enabled.starts_with("masked")
    }

    /// True where no file defines the unit and it doesn't run.
    pub(crate) fn is_unknown(&self) -> bool {
        self.load_state == "not-found" && !self.is_running()
    }

    /// True for a slice that no file defines and that exists only because another unit names it. systemd's own slices
    /// have no file either, and are not meant.
    pub(crate) fn is_implied_slice(&self) -> bool {
        self.id.ends_with(".slice")
            && !matches!(self.id.as_str(), "-.slice" | "system.slice" | "user.slice" | "machine.slice")
            && self.load_state == "loaded"
            && self.fragment_path.is_none()
            && self.source_path.is_none()
    }

    /// Checks that systemd would neither refuse the verb nor ignore it.
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
                .remedy(format!("See its text: svc_show service={short}"))
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
            .remedy(format!("Only if that is to end: svc_unmask service={}", self.short()))
    }
}

/// A problem that says that the state of the target doesn't allow something.
pub(crate) fn state(code: &str, message: impl Into<String>) -> Problem {
    Problem::new(code, Category::State, message)
}

/// The unit that a caller names. An unknown one is a problem that suggests similar names.
pub(crate) fn known(input: &str, cx: &Context) -> Result<Unit> {
    let name = named(input, cx)?;
    let unit = look(&name, cx)?;
    if unit.is_unknown() {
        return Err(unknown(&name, cx));
    }
    Ok(unit)
}

/// The full name of the unit that a caller names. The problem of a template says which instances are loaded.
pub(crate) fn named(input: &str, cx: &Context) -> Result<String> {
    unit_name::full(input).map_err(|problem| {
        let Some((template, suffix)) = unit_name::template(input) else { return problem };
        let loaded = systemctl::answer(cx.run(systemctl::LOADED_UNITS.command())).unwrap_or_default();
        let mut instances = systemctl::loaded_units(&loaded);
        instances.retain(|unit| unit.starts_with(template) && unit.ends_with(suffix));
        instances.truncate(MOST_INSTANCES);
        match instances.is_empty() {
            true => problem,
            false => {
                problem.remedy(format!("Loaded instances: {}", unit_name::shorts(&instances).join(", ")))
            }
        }
    })
}

/// The unit of a full name, known or unknown.
pub(crate) fn look(name: &str, cx: &Context) -> Result<Unit> {
    read(&systemctl::answer(cx.run(systemctl::STATE.with([name])))?)
}

/// The unit of a full name, and the output of another command about it. Both commands run at the same time.
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
    // The name must be safe as an argument of later commands.
    unit.filter(|unit| unit_name::full(&unit.id).is_ok_and(|full| full == unit.id))
        .ok_or_else(|| Problem::unexpected("systemctl show", shown))
}

/// The problem that there is no such unit. It looks for the reason and for similar names by fast commands only.
pub(crate) fn unknown(unit: &str, cx: &Context) -> Problem {
    let [file, loaded] = cx.run_each([systemctl::UNIT_FILE.with([unit]), systemctl::LOADED_UNITS.command()]);
    let files = systemctl::answer(file).and_then(|text| systemctl::unit_files(&text)).unwrap_or_default();
    if files.iter().any(|file| file.name == unit && file.state == "bad") {
        let message = format!(
            "systemd has no unit {unit}: its unit file is there but can't be read (state bad; a dangling symlink?)"
        );
        return Problem::not_found("UNIT_NOT_FOUND", message)
            .remedy(format!("Repair or remove {unit} in the unit path, such as /etc/systemd/system"));
    }
    let loaded = systemctl::answer(loaded).unwrap_or_default();
    let similar = unit_name::similar(unit, &systemctl::loaded_units(&loaded));
    let mut problem = Problem::not_found("UNIT_NOT_FOUND", format!("there is no unit {unit}"));
    if !similar.is_empty() {
        problem = problem.remedy(format!("Similar units: {}", similar.join(", ")));
    }
    problem.remedy("List what there is: svc_list for services, timer_list for timers; filter narrows them")
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
