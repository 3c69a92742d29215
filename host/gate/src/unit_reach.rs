//! Follows what starting or stopping units does to others: the units that start along, the units that these stop, and the
//! units that stop along with those. systemd works that out from the dependencies of all of them.

use std::collections::{BTreeMap, BTreeSet};

use host_target::Target;

use super::units;

/// The properties that systemd is asked for. An action is what systemd does with the machine when a unit ends, fails or starts
/// too often.
const PROPERTIES: &str = "Id,Type,ActiveState,StopWhenUnneeded,Requisite,Triggers,Wants,Requires,BindsTo,Upholds,OnSuccess,OnFailure,Conflicts,ConflictedBy,\
    RequiredBy,RequisiteOf,BoundBy,ConsistsOf,PropagatesStopTo,PropagatesReloadTo,\
    StartLimitAction,FailureAction,SuccessAction,JobTimeoutAction,OnSuccessJobMode,OnFailureJobMode,\
    Before,FragmentPath";

/// The dependencies by which a unit starts another one, at once, when its time or an event comes, or when it ends.
const STARTS: [&str; 7] = ["Wants", "Requires", "BindsTo", "Upholds", "Triggers", "OnSuccess", "OnFailure"];
/// The dependencies by which the end of a unit starts another one.
const STARTS_AT_END: [&str; 2] = ["OnSuccess", "OnFailure"];
/// The dependencies by which a unit needs another one. That one may stop where nobody needs it any more.
const NEEDS: [&str; 5] = ["Wants", "Requires", "Requisite", "BindsTo", "Upholds"];
/// The dependencies by which the start of a unit stops another one.
const STOPS: [&str; 2] = ["Conflicts", "ConflictedBy"];
/// The dependencies by which a unit stops when another one does.
const STOPS_ALONG: [&str; 5] = ["RequiredBy", "RequisiteOf", "BoundBy", "ConsistsOf", "PropagatesStopTo"];

/// The number of units that are looked at.
const MOST: usize = 500;

/// The effect of a command of systemctl(1) on the units that it names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnitEffect {
    /// It starts them, now or when the machine starts.
    Start,
    /// It stops them, or may.
    Stop,
    /// It has them read their configuration anew.
    Reload,
}

/// The commands of systemctl(1) that neither start nor stop nor reload the units that they name. Any other may start them.
const NEITHER: [&str; 35] = [
    "cat",
    "clean",
    "daemon-reexec",
    "daemon-reload",
    "edit",
    "freeze",
    "get-default",
    "help",
    "import-environment",
    "is-active",
    "is-enabled",
    "is-failed",
    "is-system-running",
    "list-automounts",
    "list-dependencies",
    "list-jobs",
    "list-machines",
    "list-paths",
    "list-sockets",
    "list-timers",
    "list-unit-files",
    "list-units",
    "log-level",
    "log-target",
    "reset-failed",
    "revert",
    "service-log-level",
    "set-default",
    "set-environment",
    "set-property",
    "show",
    "show-environment",
    "status",
    "thaw",
    "unset-environment",
];

impl UnitEffect {
    /// The effect of a command, its verb, and the units that it names. None for other programs and for commands that do
    /// neither.
    pub fn of_command(argv: &[String]) -> Option<(Self, &str, Vec<&str>)> {
        let (program, words) = argv.split_first()?;
        if program.rsplit('/').next() != Some("systemctl") {
            return None;
        }
        let mut words = words.iter().map(String::as_str).filter(|word| !word.starts_with('-'));
        let verb = words.next()?;
        let effect = match verb {
            verb if NEITHER.contains(&verb) => return None,
            "stop" | "kill" | "mask" | "disable" => Self::Stop,
            "reload" => Self::Reload,
            _ => Self::Start,
        };
        let units: Vec<&str> = words.collect();
        (!units.is_empty()).then_some((effect, verb, units))
    }
}

/// The units that a start or a stop reaches besides those that it names.
#[derive(Debug, Default, PartialEq)]
pub struct Reach {
    /// The units that start and don't run now.
    pub started: BTreeSet<String>,
    /// The units that stop.
    pub stopped: BTreeSet<String>,
    /// The units among these that don't run now.
    idle: BTreeSet<String>,
    /// The units that were named and whose programs have to end before what comes after them starts.
    pub waited_for: BTreeSet<String>,
    /// The units of the administrator's own that start, with what has to wait for each of them.
    pub delays: BTreeMap<String, Vec<String>>,
    /// A unit with an action on the machine, and the action.
    pub acts: Option<(String, String)>,
}

/// The units that are reloaded together with these ones. None where systemd doesn't say.
pub async fn of_reload(target: &Target, units: &[&str]) -> Option<BTreeSet<String>> {
    let mut seen: BTreeSet<String> = units.iter().map(|unit| (*unit).to_owned()).collect();
    let mut next: Vec<String> = seen.iter().cloned().collect();
    while !next.is_empty() {
        let found = ask(target, &next).await?;
        let further: BTreeSet<String> =
            found.iter().flat_map(|unit| names(unit, &["PropagatesReloadTo"])).collect();
        next = further.into_iter().filter(|name| seen.insert(name.clone())).collect();
        if seen.len() > MOST {
            return None;
        }
    }
    units.iter().for_each(|unit| _ = seen.remove(*unit));
    Some(seen)
}

/// The effects on other units of enabling or disabling some, by the sections `[Install]` of their files.
#[derive(Debug, Default, PartialEq)]
pub struct Install {
    /// The units that are enabled and disabled together with these ones.
    pub along: BTreeSet<String>,
    /// The further names that the units get.
    pub aliases: BTreeSet<String>,
    /// The units that fail when these do.
    pub required_by: BTreeSet<String>,
}

/// The effects on other units of enabling or disabling these. None where systemd doesn't show the files.
pub async fn of_install(target: &Target, units: &[&str]) -> Option<Install> {
    let mut install = Install::default();
    let mut seen: BTreeSet<String> = units.iter().map(|unit| (*unit).to_owned()).collect();
    let mut next: Vec<String> = seen.iter().cloned().collect();
    while !next.is_empty() {
        let shown: Vec<_> =
            next.iter().map(|unit| units::query("systemctl", ["cat", "--no-pager", "--", unit])).collect();
        let mut further = BTreeSet::new();
        for answer in target.run_all(&shown).await {
            let output = answer.ok().filter(|output| !output.truncated)?;
            // The plan may be about to make the file.
            let is_absent = || String::from_utf8_lossy(&output.stderr).contains("No files found for ");
            if output.exit_code != 0 && !is_absent() {
                return None;
            }
            let lines = logical_lines(&String::from_utf8_lossy(&output.stdout));
            let (also, aliases, required_by) =
                (listed(&lines, "Also"), listed(&lines, "Alias"), listed(&lines, "RequiredBy"));
            // A specifier may stand for any unit.
            if also.iter().chain(&aliases).chain(&required_by).any(|name| name.contains('%')) {
                return None;
            }
            further.extend(also);
            install.aliases.extend(aliases);
            install.required_by.extend(required_by);
        }
        next = further.into_iter().filter(|name| seen.insert(name.clone())).collect();
        install.along.extend(next.iter().cloned());
        if seen.len() > MOST {
            return None;
        }
    }
    Some(install)
}

/// The lines of unit files, each with those in which it goes on. Comments may stand between them.
fn logical_lines(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut goes_on = false;
    for line in text.lines() {
        if line.trim_start().starts_with(['#', ';']) {
            continue;
        }
        let (part, is_continued) = line.strip_suffix('\\').map_or((line, false), |part| (part, true));
        match lines.last_mut().filter(|_| goes_on) {
            Some(last) => last.push_str(&format!(" {part}")),
            None => lines.push(part.to_owned()),
        }
        goes_on = is_continued;
    }
    lines
}

/// The units in the lines with this key.
fn listed(lines: &[String], key: &str) -> Vec<String> {
    let values =
        lines.iter().filter_map(|line| line.trim().strip_prefix(key)?.trim_start().strip_prefix('='));
    values
        .flat_map(|names| names.split_whitespace().map(|name| name.trim_matches(['"', '\'']).to_owned()))
        .collect()
}

/// One unit's properties, by their names.
type Properties = BTreeMap<String, String>;

/// The effects on other units of starting these. None where systemd doesn't say.
pub async fn of_start(target: &Target, units: &[&str]) -> Option<Reach> {
    follow(target, units, &[]).await
}

/// The effects on other units of stopping these. None where systemd doesn't say.
pub async fn of_stop(target: &Target, units: &[&str]) -> Option<Reach> {
    follow(target, &[], units).await
}

/// Follows all dependencies of units that start and of units that stop, until nothing new is reached.
async fn follow(target: &Target, start: &[&str], stop: &[&str]) -> Option<Reach> {
    let mut reach = Reach::default();
    let (mut starting, mut stopping) = (Queue::new(start), Queue::new(stop));
    // The units that a unit that stops has needed.
    let mut needed = Queue::new(&[]);
    loop {
        let is_named = |unit: &Properties, named: &[&str]| {
            unit.get("Id").is_some_and(|id| {
                named.iter().any(|name| id == name || id.strip_suffix(".service") == Some(name))
            })
        };
        for unit in ask(target, &starting.take()).await? {
            let is_first = is_named(&unit, start);
            // A unit that runs already has started what it wants.
            if !is_first && is_active(&unit) {
                continue;
            }
            reach.note(&unit);
            reach.note_delays(&unit);
            match is_first {
                true if unit.get("Type").is_some_and(|kind| kind == "oneshot") => {
                    reach.waited_for.extend(unit.get("Id").cloned());
                }
                true => {}
                false => reach.started.extend(unit.get("Id").cloned()),
            }
            starting.extend(names(&unit, &STARTS));
            stopping.extend(names(&unit, &STOPS));
        }
        for unit in ask(target, &stopping.take()).await? {
            reach.note(&unit);
            if !is_named(&unit, stop) {
                reach.stopped.extend(unit.get("Id").cloned());
            }
            stopping.extend(names(&unit, &STOPS_ALONG));
            if is_running(&unit) {
                starting.extend(names(&unit, &STARTS_AT_END));
                needed.extend(names(&unit, &NEEDS));
            }
        }
        for unit in ask(target, &needed.take()).await? {
            if unit.get("StopWhenUnneeded").is_some_and(|value| value == "yes") {
                stopping.extend(unit.get("Id").cloned().into_iter());
            }
        }
        if starting.next.is_empty() && stopping.next.is_empty() {
            return Some(reach);
        }
        if starting.seen.len() + stopping.seen.len() > MOST {
            return None;
        }
    }
}

/// Units that are to be looked at, each once.
struct Queue {
    seen: BTreeSet<String>,
    next: Vec<String>,
}

impl Queue {
    fn new(units: &[&str]) -> Self {
        let mut queue = Self { seen: BTreeSet::new(), next: Vec::new() };
        queue.extend(units.iter().map(|unit| (*unit).to_owned()));
        queue
    }

    fn extend(&mut self, units: impl Iterator<Item = String>) {
        self.next.extend(units.filter(|unit| self.seen.insert(unit.clone())));
    }

    fn take(&mut self) -> Vec<String> {
        std::mem::take(&mut self.next)
    }
}

impl Reach {
    fn note_delays(&mut self, unit: &Properties) {
        let is_shipped = unit
            .get("FragmentPath")
            .is_some_and(|path| ["/usr/lib/", "/lib/"].iter().any(|place| path.starts_with(place)));
        // Only a service takes its time to start. Each one comes before the target that wants it.
        if let Some(id) = unit.get("Id").filter(|id| !is_shipped && id.ends_with(".service")) {
            let waiting = names(unit, &["Before"]).filter(|name| !name.ends_with(".target"));
            self.delays.insert(id.clone(), waiting.collect());
        }
    }

    /// The units that run now and stop.
    pub fn stopped_now(&self) -> impl Iterator<Item = &String> {
        self.stopped.difference(&self.idle)
    }

    fn note(&mut self, unit: &Properties) {
        if !is_running(unit) {
            self.idle.extend(unit.get("Id").cloned());
        }
        // Such a start stops everything else.
        let isolates = ["OnSuccess", "OnFailure"].into_iter().find_map(|event| {
            let mode = unit.get(&format!("{event}JobMode"))?;
            let is_harmless = matches!(mode.as_str(), "" | "replace" | "fail");
            let has_units = unit.get(event).is_some_and(|units| !units.is_empty());
            (has_units && !is_harmless).then(|| format!("{event}JobMode={mode}"))
        });
        if let (None, Some(mode)) = (&self.acts, isolates) {
            self.acts = Some((unit.get("Id").cloned().unwrap_or_default(), mode));
        }
        let action =
            unit.iter().find(|(name, value)| name.ends_with("Action") && !matches!(&***value, "" | "none"));
        if let (None, Some((name, value))) = (&self.acts, action) {
            let id = unit.get("Id").cloned().unwrap_or_default();
            self.acts = Some((id, format!("{name}={value}")));
        }
    }
}

fn is_running(unit: &Properties) -> bool {
    !unit.get("ActiveState").is_some_and(|state| matches!(state.as_str(), "inactive" | "failed"))
}

fn is_active(unit: &Properties) -> bool {
    unit.get("ActiveState").is_some_and(|state| state == "active")
}

/// The units that a unit names by these dependencies. A shutdown stops everything anyway.
fn names<'a>(unit: &'a Properties, dependencies: &'a [&str]) -> impl Iterator<Item = String> + 'a {
    let all = dependencies.iter().filter_map(|dependency| unit.get(*dependency));
    all.flat_map(|names| names.split_whitespace())
        .filter(|name| *name != "shutdown.target")
        .map(str::to_owned)
}

/// The properties of each of these units. None where systemd doesn't tell them of each.
async fn ask(target: &Target, units: &[String]) -> Option<Vec<Properties>> {
    if units.is_empty() {
        return Some(Vec::new());
    }
    let units: Vec<&str> = units.iter().map(String::as_str).collect();
    let shown = units::show(target, PROPERTIES, &units).await?;
    let of_block = |block: &str| -> Option<Properties> {
        block
            .lines()
            .map(|line| line.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned())))
            .collect()
    };
    let found: Vec<Properties> = shown.trim().split("\n\n").map(of_block).collect::<Option<_>>()?;
    let is_complete = found.len() == units.len() && found.iter().all(|unit| unit.contains_key("Id"));
    is_complete.then_some(found)
}

#[cfg(test)]
mod tests {
    use host_base::Command;
    use host_target::test_connection::{Fate, TestConnection};

    use super::*;

    /// Units as systemd 252 shows them, without the properties that are empty in all of them.
    fn target() -> Target {
        let of = |unit: &str| match unit {
            "a.service" => "ActiveState=inactive\nWants=b.service z.service",
            "b.service" => "ActiveState=inactive\nConflicts=ssh.service shutdown.target",
            // It has started what it wants, or its start has failed.
            "z.service" => "ActiveState=active\nWants=b.service",
            "c.service" => "ActiveState=active\nRequires=d.target",
            "d.target" => "ActiveState=inactive\nUpholds=e.service\nConflicts=",
            "e.service" => "ActiveState=failed\nConflictedBy=base.service",
            "base.service" => "ActiveState=active\nBoundBy=tunnel.service",
            "tunnel.service" => "ActiveState=active\nConsistsOf=sshd.service base.service",
            "web.service" => "ActiveState=active\nPropagatesReloadTo=proxy.service",
            "proxy.service" => "ActiveState=active\nPropagatesReloadTo=ssh.service web.service",
            "initrd.target" => "ActiveState=inactive\nOnFailure=emergency.target",
            "emergency.target" => "ActiveState=inactive",
            "off.timer" => "ActiveState=inactive\nTriggers=b.service",
            "last.service" => "ActiveState=active\nWants=unneeded.service other.service",
            "unneeded.service" => "ActiveState=active\nStopWhenUnneeded=yes\nPropagatesStopTo=ssh.service",
            "batch.service" => "ActiveState=active\nOnSuccess=b.service",
            "idle-batch.service" => "ActiveState=inactive\nOnSuccess=b.service",
            "isolates.service" => "ActiveState=inactive\nOnSuccess=tiny.target\nOnSuccessJobMode=isolate",
            "early.service" => {
                "ActiveState=inactive\nFragmentPath=/etc/systemd/system/early.service\nBefore=ssh.service multi-user.target"
            }
            "early.path" => {
                "ActiveState=inactive\nFragmentPath=/etc/systemd/system/early.path\nBefore=paths.target"
            }
            "shipped.service" => {
                "ActiveState=inactive\nFragmentPath=/usr/lib/systemd/system/shipped.service\nBefore=ssh.service"
            }
            "critical.service" => "ActiveState=active\nStartLimitAction=reboot-force\nFailureAction=none",
            _ => "ActiveState=active",
        };
        let systemctl = move |command: &Command| {
            let units = &command.args[3..];
            let shown: Vec<String> = units.iter().map(|unit| format!("Id={unit}\n{}\n", of(unit))).collect();
            match units.iter().any(|unit| unit == "mute.service") {
                true => Fate::Says(0, String::new()),
                false => Fate::Says(0, shown.join("\n")),
            }
        };
        Target::over_test_connection(&TestConnection::new(systemctl))
    }

    fn set(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[tokio::test]
    async fn a_start_stops_what_its_units_and_those_that_start_along_conflict_with() {
        let target = target();
        for (unit, stopped) in [
            ("a.service", &["ssh.service"][..]),
            ("b.service", &["ssh.service"]),
            ("z.service", &["ssh.service"]),
            ("c.service", &["base.service", "sshd.service", "tunnel.service"]),
            ("other.service", &[]),
            // What a timer starts when its time comes counts at once.
            ("off.timer", &["ssh.service"]),
        ] {
            assert_eq!(of_start(&target, &[unit]).await.unwrap().stopped, set(stopped), "{unit}");
        }
        let both = of_start(&target, &["other.service", "a.service"]).await.unwrap();
        assert_eq!(both.stopped, set(&["ssh.service"]));
        let started = of_start(&target, &["c.service"]).await.unwrap().started;
        assert_eq!(started, set(&["d.target", "e.service"]));
        // A unit that fails starts what it names for that.
        let started = of_start(&target, &["initrd.target"]).await.unwrap().started;
        assert_eq!(started, set(&["emergency.target"]));
    }

    #[test]
    fn a_command_starts_what_it_names_unless_it_is_known_not_to() {
        for (line, expected) in [
            ("systemctl start -- a.service", Some((UnitEffect::Start, vec!["a.service"]))),
            ("/usr/bin/systemctl enable --now a b", Some((UnitEffect::Start, vec!["a", "b"]))),
            ("systemctl --no-block restart a", Some((UnitEffect::Start, vec!["a"]))),
            ("systemctl isolate a.target", Some((UnitEffect::Start, vec!["a.target"]))),
            ("systemctl soon-to-be-new a", Some((UnitEffect::Start, vec!["a"]))),
            ("systemctl stop a", Some((UnitEffect::Stop, vec!["a"]))),
            ("systemctl mask --now -- a", Some((UnitEffect::Stop, vec!["a"]))),
            ("systemctl kill a", Some((UnitEffect::Stop, vec!["a"]))),
            ("systemctl reload a", Some((UnitEffect::Reload, vec!["a"]))),
            ("systemctl daemon-reload", None),
            ("systemctl show a", None),
            ("systemctl reboot", None),
            ("start a", None),
            ("", None),
        ] {
            let argv: Vec<String> = line.split(' ').map(str::to_owned).collect();
            let found = UnitEffect::of_command(&argv).map(|(effect, _, units)| (effect, units));
            assert_eq!(found, expected, "{line}");
        }
    }

    #[tokio::test]
    async fn what_does_not_run_does_not_stop() {
        let conflicts = |command: &Command| {
            let of = |unit: &String| match unit.as_str() {
                "a.service" => {
                    format!("Id={unit}\nActiveState=inactive\nConflicts=idle.service busy.service\n")
                }
                "idle.service" => format!("Id={unit}\nActiveState=inactive\nRequiredBy=user.service\n"),
                _ => format!("Id={unit}\nActiveState=active\n"),
            };
            Fate::Says(0, command.args[3..].iter().map(of).collect::<Vec<_>>().join("\n"))
        };
        let target = Target::over_test_connection(&TestConnection::new(conflicts));
        let reach = of_start(&target, &["a.service"]).await.unwrap();
        assert_eq!(reach.stopped, set(&["busy.service", "idle.service", "user.service"]));
        assert_eq!(reach.stopped_now().collect::<Vec<_>>(), ["busy.service", "user.service"]);
    }

    #[tokio::test]
    async fn a_stop_stops_what_depends_on_the_unit() {
        let target = target();
        let stopped = of_stop(&target, &["base.service"]).await.unwrap().stopped;
        assert_eq!(stopped, set(&["sshd.service", "tunnel.service"]));
        assert_eq!(of_stop(&target, &[]).await, Some(Reach::default()));
        // What nobody needs any more stops as well.
        let stopped = of_stop(&target, &["last.service"]).await.unwrap().stopped;
        assert_eq!(stopped, set(&["ssh.service", "unneeded.service"]));
        // The end of a unit starts another one, which stops a third.
        let ends = of_stop(&target, &["batch.service"]).await.unwrap();
        assert_eq!((ends.started, ends.stopped), (set(&["b.service"]), set(&["ssh.service"])));
        assert_eq!(of_stop(&target, &["idle-batch.service"]).await.unwrap().stopped, set(&[]));
    }

    #[tokio::test]
    async fn what_a_unit_does_to_the_machine_is_told() {
        let target = target();
        let acts = Some(("critical.service".to_owned(), "StartLimitAction=reboot-force".to_owned()));
        assert_eq!(of_start(&target, &["critical.service"]).await.unwrap().acts, acts);
        assert_eq!(of_stop(&target, &["critical.service"]).await.unwrap().acts, acts);
        assert_eq!(of_start(&target, &["c.service"]).await.unwrap().acts, None);
        let acts = of_start(&target, &["isolates.service"]).await.unwrap().acts;
        assert_eq!(acts, Some(("isolates.service".to_owned(), "OnSuccessJobMode=isolate".to_owned())));
    }

    #[tokio::test]
    async fn what_waits_for_a_unit_of_the_administrators_is_told() {
        let target = target();
        let delays =
            of_start(&target, &["early.service", "early.path", "shipped.service"]).await.unwrap().delays;
        assert_eq!(
            delays.into_iter().collect::<Vec<_>>(),
            [("early.service".to_owned(), vec!["ssh.service".to_owned()])]
        );
    }

    #[tokio::test]
    async fn what_is_enabled_along_is_found_through_all_files() {
        let files = |command: &Command| match command.args.last().map(String::as_str) {
            Some("a.service") => Fate::Says(
                0,
                "# /etc/a\n[Install]\nAlso=b.service \\\n  c.socket\nAlias=default.target\n".to_owned(),
            ),
            Some("c.socket") => Fate::Says(
                0,
                "[Install]\n Also = \"ssh.service\" a.service\nRequiredBy=other.service\n".to_owned(),
            ),
            Some("odd.service") => Fate::Says(1, String::new()),
            Some("any.service") => Fate::Says(0, "[Install]\nAlso=%j.service\n".to_owned()),
            Some("split.service") => Fate::Says(
                0,
                "[Install]\nAlias=x.service \\\n; more\n ssh.service\n# y\nAlso=z.service\n".to_owned(),
            ),
            _ => Fate::Says(0, "[Service]\nExecStart=/bin/true Also=x.service\n".to_owned()),
        };
        let target = Target::over_test_connection(&TestConnection::new(files));
        let found = of_install(&target, &["a.service"]).await.unwrap();
        assert_eq!(found.along, set(&["b.service", "c.socket", "ssh.service"]));
        assert_eq!(found.aliases, set(&["default.target"]));
        assert_eq!(found.required_by, set(&["other.service"]));
        assert_eq!(of_install(&target, &["plain.service"]).await, Some(Install::default()));
        for unknown in ["odd.service", "any.service"] {
            assert_eq!(of_install(&target, &[unknown]).await, None, "{unknown}");
        }
        let split = of_install(&target, &["split.service"]).await.unwrap();
        assert_eq!(split.aliases, set(&["ssh.service", "x.service"]));
        assert_eq!(split.along, set(&["z.service"]));
    }

    #[tokio::test]
    async fn a_reload_goes_on_to_others() {
        let found = of_reload(&target(), &["web.service"]).await;
        assert_eq!(found, Some(set(&["proxy.service", "ssh.service"])));
        assert_eq!(of_reload(&target(), &["mute.service"]).await, None);
    }

    #[tokio::test]
    async fn an_incomplete_answer_is_none() {
        let target = target();
        assert!(of_start(&target, &["mute.service"]).await.is_none());
        assert!(of_stop(&target, &["a.service", "mute.service"]).await.is_none());
        let silent = Target::over_test_connection(&TestConnection::new(|_| Fate::NeverComes));
        assert!(of_start(&silent, &["a.service"]).await.is_none());
    }
}
