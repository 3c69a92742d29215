//! `svc_set_limits`: limits on what a unit may take, in a drop-in of the program's own. systemd applies those of the control
//! group when it reads the file, and the others at the next start.

use std::collections::BTreeMap;

use linux_sysadmin_sdk::prelude::*;

use crate::changes::outcome::{self, Outcome};
use crate::changes::plan;
use crate::systemd::properties::{self, Properties};
use crate::systemd::systemctl;
use crate::systemd::unit::{self, Unit};
use crate::systemd::verb::Verb;
use crate::unit_files::limits::{self, Amount, InEffect, LIMITS};
use crate::unit_files::planned_file;
use crate::unit_files::syntax::{self, Setting};

/// The name of the drop-in. systemd reads drop-ins in the order of their names, so that an administrator's later one counts
/// more.
const FILE: &str = "50-linux-sysadmin.conf";
/// The file that tells how much memory the machine has.
pub(crate) const MEMORY: &str = "/proc/meminfo";

#[derive(Deserialize, JsonSchema)]
pub(crate) struct LimitArgs {
    /// Unit, as ssh.socket
    service: String,
    /// As 2G, 10% or infinity
    memory_max: Option<Amount>,
    /// Slowed above this
    memory_high: Option<Amount>,
    /// As 150%
    cpu_quota: Option<Amount>,
    /// 1 to 10000, default 100
    cpu_weight: Option<Amount>,
    /// 1 to 10000
    io_weight: Option<Amount>,
    /// Number of tasks
    tasks_max: Option<Amount>,
    /// Open files; needs a restart
    limit_nofile: Option<Amount>,
    /// Unset all others
    #[serde(default)]
    reset: bool,
    /// Restart it, if it runs
    #[serde(default)]
    restart: bool,
}

#[derive(Debug, Serialize)]
pub(crate) struct Limited {
    #[serde(flatten)]
    outcome: Outcome,
    path: String,
    /// The limits in effect, in a dry run the present ones.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    limits: BTreeMap<&'static str, InEffect>,
}

impl LimitArgs {
    fn value(&self, key: &str) -> Option<&Amount> {
        match key {
            "MemoryMax" => self.memory_max.as_ref(),
            "MemoryHigh" => self.memory_high.as_ref(),
            "CPUQuota" => self.cpu_quota.as_ref(),
            "CPUWeight" => self.cpu_weight.as_ref(),
            "IOWeight" => self.io_weight.as_ref(),
            "TasksMax" => self.tasks_max.as_ref(),
            "LimitNOFILE" => self.limit_nofile.as_ref(),
            _ => None,
        }
    }

    /// The settings that change, those without a value being removed.
    fn settings(&self, unit: &str) -> Result<Vec<Setting>> {
        let section = limits::section(unit)?;
        let given = |limit: &&limits::Limit| self.reset || self.value(limit.key).is_some();
        let settings: Vec<Setting> = LIMITS
            .iter()
            .filter(given)
            .map(|limit| limits::setting(section, limit, self.value(limit.key)))
            .collect::<Result<_>>()?;
        if settings.is_empty() {
            let message = format!("nothing is to be changed of {unit}: expected a limit, or reset");
            return Err(Problem::validation("NOTHING_TO_CHANGE", message));
        }
        Ok(settings)
    }
}

pub(crate) fn svc_set_limits(args: LimitArgs, cx: &Context) -> Result<Noted<Limited>> {
    let name = unit::named(&args.service, cx)?;
    args.settings(&name)?;
    let (unit, shown) = unit::look_and(&name, systemctl::TEXT, cx)?;
    if unit.is_unknown() {
        return Err(unit::unknown(&name, cx));
    }
    if unit.is_masked() {
        return Err(unit.masked());
    }
    let settings = args.settings(&unit.id)?;
    let before = properties::parse(&shown);
    let before = before.first().ok_or_else(|| Problem::unexpected("systemctl show", &shown))?;
    let drop_in = DropIn::read(&unit, cx)?;
    let settings: Vec<Setting> = settings
        .into_iter()
        .filter(|setting| !setting.values.is_empty() || drop_in.sets(setting.key))
        .collect();
    let text = drop_in.with(&settings)?;
    let verbs: &[Verb] = if args.restart && unit.is_running() { &[Verb::Restart] } else { &[] };
    for verb in verbs {
        unit.check(*verb)?;
    }
    let later = later(&unit, &settings, cx);
    let mut notes: Vec<String> = later.iter().map(|(_, sentence)| sentence.clone()).collect();
    let is_last = |setting: &&Setting| !later.iter().any(|(key, _)| key == setting.key);
    if drop_in.text == text && verbs.is_empty() {
        notes.insert(0, "its limits are set so already: nothing was written".to_owned());
        let data = Limited::of(Outcome::unchanged(&unit), &drop_in, &settings, before);
        return Ok(Noted { data, notes });
    }
    let restart = if verbs.is_empty() { "" } else { " and restart it" };
    let change = Change::new(format!("Set limits of {}{restart}", unit.id)).lock(Lock::Systemd);
    let mut steps = drop_in.steps(&text);
    steps.push(Step::run(systemctl::daemon_reload()).uninterruptible());
    let restarts_at = steps.len();
    let change = steps.into_iter().fold(change, Change::step);
    let change = change.after_undo(systemctl::daemon_reload());
    // Where it doesn't come up with the new limits, it runs again with the former ones.
    let change = verbs.iter().fold(change, |change, verb| {
        change.step(plan::step(&unit, *verb)).after_undo(Verb::Start.command(&unit.id))
    });
    let change = notes.iter().cloned().fold(change, Change::warning);
    let change = too_low(&settings, before, || machine_memory(cx))
        .into_iter()
        .fold(change, |change, warning| change.warning(warning).risk(Risk::High));
    let (change, along) = plan::with_consequences(change, &unit, verbs, cx)?;
    let applied = cx.apply(change).map_err(|failure| {
        let restarts: Vec<_> = verbs.iter().map(|verb| (restarts_at, &unit, *verb)).collect();
        planned_file::failed(failure, &restarts, cx)
    })?;
    let mut outcome = Outcome::unchanged(&unit);
    if applied.dry_run {
        outcome.would = Some(format!("set limits{restart}"));
    } else if !verbs.is_empty() {
        let after = outcome::after(&unit, verbs, &applied, cx);
        outcome = after.data;
        notes.extend(after.notes);
    }
    outcome.along = along;
    if applied.dry_run {
        return Ok(Noted { data: Limited::of(outcome, &drop_in, &settings, before), notes });
    }
    let shown = systemctl::answer(cx.run(systemctl::TEXT.with([unit.id.as_str()]))).unwrap_or_default();
    let after = properties::parse(&shown).into_iter().next().unwrap_or_default();
    let counted: Vec<&Setting> = settings.iter().filter(is_last).collect();
    notes.extend(not_in_effect(&counted, &after));
    if verbs.is_empty()
        && unit.is_running()
        && counted.iter().any(|setting| setting.key == "LimitNOFILE")
        && drop_in.changes(&text, "LimitNOFILE")
    {
        notes.push(format!("LimitNOFILE holds from its next start on: svc_restart service={}", unit.short()));
    }
    Ok(Noted { data: Limited::of(outcome, &drop_in, &settings, &after), notes })
}

impl Limited {
    fn of(outcome: Outcome, drop_in: &DropIn, settings: &[Setting], shown: &Properties<'_>) -> Self {
        let is_set = |key: &str| settings.iter().any(|setting| setting.key == key);
        let mut limits = limits::in_effect(shown, None, is_set);
        limits.retain(|key, _| is_set(key));
        Self { outcome, path: drop_in.path.clone(), limits }
    }
}

/// The drop-in of the program's own.
struct DropIn {
    directory: String,
    path: String,
    has_directory: bool,
    text: String,
}

impl DropIn {
    fn read(unit: &Unit, cx: &Context) -> Result<Self> {
        let directory = format!("/etc/systemd/system/{}.d", unit.id);
        let path = format!("{directory}/{FILE}");
        let mut found = cx.stat_all(&[&directory, &path]).into_iter();
        let mut exists = || -> Result<bool> { Ok(found.next().transpose()?.flatten().is_some()) };
        let (has_directory, is_there) = (exists()?, exists()?);
        // A missing file is read too: the host then refuses the plan where somebody has made one meanwhile.
        let read = cx.read(&path);
        let text = if is_there { read? } else { String::new() };
        Ok(Self { directory, path, has_directory, text })
    }

    /// The text with changed settings. Empty where none is left.
    fn with(&self, settings: &[Setting]) -> Result<String> {
        let text = syntax::edit(&self.text, settings).map_err(|problem| {
            let remedy = format!("Take that line out first: file_patch path={}", self.path);
            Problem { remediation: vec![remedy], ..problem }
        })?;
        Ok(if syntax::assignments(&text).is_empty() { String::new() } else { text })
    }

    fn sets(&self, key: &str) -> bool {
        syntax::assignments(&self.text).iter().any(|assignment| assignment.key == key)
    }

    fn changes(&self, text: &str, key: &str) -> bool {
        let of = |text: &str| -> Vec<String> {
            let found = syntax::assignments(text).into_iter();
            found.filter(|assignment| assignment.key == key).map(|assignment| assignment.value).collect()
        };
        of(&self.text) != of(text)
    }

    /// The steps that write the text, or that remove the file where there is none. The directory stays: others may use it.
    fn steps(&self, text: &str) -> Vec<Step> {
        let mut steps = Vec::new();
        if text == self.text {
            return steps;
        }
        if text.is_empty() {
            steps.push(Step::remove(&self.path));
            return steps;
        }
        if !self.has_directory {
            steps.push(Step::make_directory(&self.directory, 0o755));
        }
        steps.push(Step::write(&self.path, text.as_bytes()));
        steps
    }
}

/// The keys that drop-ins set which are read after the program's own, each with a sentence that says so.
fn later(unit: &Unit, settings: &[Setting], cx: &Context) -> Vec<(String, String)> {
    let name = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
    let later: Vec<&String> = unit.drop_ins.iter().filter(|path| name(path).as_str() > FILE).collect();
    let mut said = Vec::new();
    for (path, text) in later.iter().zip(cx.read_all(&later)) {
        for found in syntax::assignments(&text.unwrap_or_default()) {
            let same = |setting: &Setting| {
                setting.key == found.key && setting.section == found.section && !setting.values.is_empty()
            };
            if settings.iter().any(same) {
                let (line, key, value) = (found.line, found.key, found.value);
                let sentence = format!("{path}:{line} is read later and counts: {key}={value}");
                said.push((key, sentence));
            }
        }
    }
    said
}

/// The memory of the machine in bytes, of which systemd takes a percentage.
fn machine_memory(cx: &Context) -> Option<u64> {
    let text = cx.read(MEMORY).ok()?;
    let total = text.lines().find_map(|line| line.strip_prefix("MemTotal:")?.trim().strip_suffix(" kB"))?;
    total.parse::<u64>().ok()?.checked_mul(1024)
}

/// Sentences on limits that are lower than what the unit takes now.
fn too_low(settings: &[Setting], unit: &Properties<'_>, memory: impl Fn() -> Option<u64>) -> Vec<String> {
    let too_low = |setting: &Setting| {
        let value = setting.values.first()?;
        let used = limits::used(setting.key, unit, None)?;
        let is_share = setting.key.starts_with("Memory") && value.ends_with('%');
        let limit = match is_share {
            true => limits::share(value, memory()?),
            false => limits::amount(setting.key, value),
        };
        let limit = limit.filter(|limit| *limit < used)?;
        let effect = match setting.key {
            "MemoryMax" => "the kernel kills its processes where it can't take the memory back",
            "MemoryHigh" => "the kernel slows it down until it takes less",
            _ => "it can't start further processes and threads",
        };
        Some(format!("{} {value} ({limit}) is below what it takes now ({used}): {effect}", setting.key))
    };
    settings.iter().filter_map(too_low).collect()
}

/// Sentences on settings of which systemd tells another value than the one that was written.
fn not_in_effect(settings: &[&Setting], unit: &Properties<'_>) -> Vec<String> {
    let differs = |setting: &&Setting| {
        let value = setting.values.first()?;
        let holds = limits::holds(setting.key, value, unit)?;
        let now = limits::in_words(setting.key, unit);
        (!holds).then(|| format!("{} is {now} all the same, not {value}", setting.key))
    };
    settings.iter().filter_map(differs).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_below_the_present_use_is_warned_of_with_both_numbers() {
        let shown = "MemoryCurrent=50541363\nTasksCurrent=33";
        let units = properties::parse(shown);
        let of = |key, value: &str| {
            too_low(&[Setting::new("Service", key, vec![value.to_owned()])], &units[0], || Some(1 << 32))
        };
        assert_eq!(
            of("MemoryMax", "32M"),
            [
                "MemoryMax 32M (33554432) is below what it takes now (50541363): the kernel kills its processes where it can't \
              take the memory back"
            ]
        );
        assert_eq!(
            of("TasksMax", "32"),
            [
                "TasksMax 32 (32) is below what it takes now (33): it can't start further processes and threads"
            ]
        );
        assert_eq!(
            of("MemoryHigh", "1%"),
            [
                "MemoryHigh 1% (42949672) is below what it takes now (50541363): the kernel slows it down until it takes less"
            ]
        );
        for (key, value) in
            [("MemoryMax", "64M"), ("MemoryMax", "infinity"), ("MemoryMax", "10%"), ("CPUQuota", "1%")]
        {
            assert!(of(key, value).is_empty(), "{key} {value}");
        }
    }
}
