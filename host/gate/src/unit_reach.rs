//! Follows what starting or stopping units does to others: the units that start along, the units that these stop, and the
//! units that stop along with those. systemd works that out from the dependencies of all of them.

use std::collections::{BTreeMap, BTreeSet};

use host_target::Target;

use super::units;

/// The properties that systemd is asked for. An action is what systemd does with the machine when a unit ends, fails or starts
/// too often.
const PROPERTIES: &str = "Id,Names,Type,LoadState,ActiveState,Accept,StopWhenUnneeded,Requisite,Triggers,Wants,Requires,BindsTo,Upholds,OnSuccess,OnFailure,Conflicts,ConflictedBy,\
    RequiredBy,RequisiteOf,BoundBy,ConsistsOf,PropagatesStopTo,PropagatesReloadTo,\
    StartLimitAction,FailureAction,SuccessAction,JobTimeoutAction,OnSuccessJobMode,OnFailureJobMode,\
    Before,FragmentPath,DropInPaths";

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

/// An event in a unit's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum UnitEvent {
    Starts,
    Stops,
    /// It stops and starts again.
    Restarts,
    Reloads,
}

impl UnitEvent {
    /// Whether systemd runs the commands of this key, now or when the unit ends.
    pub fn runs(self, key: &str) -> bool {
        match self {
            Self::Starts | Self::Restarts => !key.starts_with("ExecReload"),
            Self::Stops => key.starts_with("ExecStop"),
            Self::Reloads => key.starts_with("ExecReload"),
        }
    }
}

/// Units of the administrator's own, with what happens to each.
pub type OwnUnits = BTreeSet<(String, UnitEvent)>;

/// The time at which units start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// They start at once, and what runs now decides what happens.
    Now,
    /// They start at another time, and by then anything may run.
    Later,
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
    /// The units among these that don't exist.
    absent: BTreeSet<String>,
    /// The units that were named and whose programs have to end before what comes after them starts.
    pub waited_for: BTreeSet<String>,
    /// The units of the administrator's own that start, with what has to wait for each of them.
    pub delays: BTreeMap<String, Vec<String>>,
    /// The services and sockets of the administrator's own, with what happens to each.
    pub own: OwnUnits,
    /// A unit with an action on the machine, and the action.
    pub acts: Option<(String, String)>,
}

/// The units that are reloaded together with these ones, and what of all of them is the administrator's own. None where systemd
/// doesn't say.
pub async fn of_reload(target: &Target, units: &[&str]) -> Option<(BTreeSet<String>, OwnUnits)> {
    let mut reach = Reach::default();
    let mut queue = Queue::new(units);
    while !queue.next.is_empty() {
        for unit in ask(target, &queue.take()).await? {
            reach.note_own(&unit, UnitEvent::Reloads);
            queue.extend(names(&unit, &["PropagatesReloadTo"]));
        }
        if queue.seen.len() > MOST {
            return None;
        }
    }
    units.iter().for_each(|unit| _ = queue.seen.remove(*unit));
    Some((queue.seen, reach.own))
}

/// The units that these timers start, where the timer or the unit is the administrator's own. None where systemd doesn't say.
pub async fn started_by(target: &Target, timers: &[&str]) -> Option<BTreeSet<String>> {
    let timers: Vec<String> = timers.iter().map(|timer| (*timer).to_owned()).collect();
    let mut started = BTreeSet::new();
    for timer in ask(target, &timers).await? {
        let units: Vec<String> = names(&timer, &["Triggers"]).collect();
        let units = ask(target, &units).await?;
        let own = units.iter().filter(|unit| is_own(&timer) || is_own(unit));
        started.extend(own.filter_map(|unit| unit.get("Id").cloned()));
    }
    Some(started)
}

/// One unit's properties, by their names.
type Properties = BTreeMap<String, String>;

/// The effects on other units of starting these. None where systemd doesn't say.
pub async fn of_start(target: &Target, units: &[&str], when: When) -> Option<Reach> {
    follow(target, units, &[], when).await
}

/// The effects on other units of stopping these. None where systemd doesn't say.
pub async fn of_stop(target: &Target, units: &[&str], when: When) -> Option<Reach> {
    follow(target, &[], units, when).await
}

/// Follows all dependencies of units that start and of units that stop, until nothing new is reached.
async fn follow(target: &Target, start: &[&str], stop: &[&str], when: When) -> Option<Reach> {
    let is_later = when == When::Later;
    let mut reach = Reach::default();
    let (mut starting, mut stopping) = (Queue::new(start), Queue::new(stop));
    // The units that a unit that stops, or that ends by itself, has needed.
    let mut needed = Queue::new(&[]);
    // The units that start, by their own names.
    let mut begun = BTreeSet::new();
    loop {
        for unit in ask(target, &starting.take()).await? {
            let is_first = is_named(&unit, start);
            // A unit that runs already has started what it wants. Units of packages run whenever they are wanted.
            if !is_first && is_active(&unit) && !(is_later && is_own(&unit)) {
                continue;
            }
            reach.note(&unit);
            reach.note_delays(&unit);
            reach.note_own(&unit, UnitEvent::Starts);
            match is_first {
                true if unit.get("Type").is_some_and(|kind| kind == "oneshot") => {
                    reach.waited_for.extend(unit.get("Id").cloned());
                }
                true => {}
                false => reach.started.extend(unit.get("Id").cloned()),
            }
            begun.extend(unit.get("Id").cloned());
            starting.extend(names(&unit, &STARTS));
            starting.extend(instance_of_socket(&unit).into_iter());
            stopping.extend(names(&unit, &STOPS));
            // It may end by itself at any time.
            stopping.extend(unneeded(&unit).into_iter());
            needed.extend(names(&unit, &NEEDS));
        }
        for unit in ask(target, &stopping.take()).await? {
            reach.note(&unit);
            let is_first = is_named(&unit, stop);
            if !is_first {
                reach.stopped.extend(unit.get("Id").cloned());
            }
            stopping.extend(names(&unit, &STOPS_ALONG));
            let runs = is_running(&unit) || is_later;
            if runs || is_first {
                reach.note_own(&unit, UnitEvent::Stops);
            }
            if runs {
                starting.extend(names(&unit, &STARTS_AT_END));
                needed.extend(names(&unit, &NEEDS));
            }
        }
        for unit in ask(target, &needed.take()).await? {
            stopping.extend(unneeded(&unit).into_iter());
        }
        if starting.next.is_empty() && stopping.next.is_empty() && needed.next.is_empty() {
            reach.idle.retain(|unit| !begun.contains(unit));
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
    /// Notes what has to wait for a unit. The units of packages have their places in the start of the machine from their authors.
    fn note_delays(&mut self, unit: &Properties) {
        let Some(id) = unit.get("Id").filter(|_| is_own(unit)) else { return };
        // Units of these kinds come before their target and take no time to start.
        let usual = match id.rsplit_once('.') {
            Some((_, "socket")) => "sockets.target",
            Some((_, "path")) => "paths.target",
            Some((_, "slice")) => "slices.target",
            Some((_, "automount")) => "local-fs.target",
            _ => "",
        };
        let waiting = names(unit, &["Before"]).filter(|name| name != usual && !units::is_late(name));
        self.delays.insert(id.clone(), waiting.collect());
    }

    /// Notes what happens to a unit that runs commands, where the unit is the administrator's own.
    fn note_own(&mut self, unit: &Properties, event: UnitEvent) {
        let runs_commands = |id: &&String| id.ends_with(".service") || id.ends_with(".socket");
        if let Some(id) = unit.get("Id").filter(runs_commands).filter(|_| is_own(unit)) {
            self.own.insert((id.clone(), event));
        }
    }

    /// The units that stop at this time: those that run now, or all those that exist.
    pub fn stopped(&self, when: When) -> impl Iterator<Item = &String> {
        self.stopped.difference(match when {
            When::Now => &self.idle,
            When::Later => &self.absent,
        })
    }

    fn note(&mut self, unit: &Properties) {
        if !is_running(unit) {
            self.idle.extend(unit.get("Id").cloned());
            if !is_there(unit) {
                self.absent.extend(unit.get("Id").cloned());
            }
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

/// Whether one of these is a name of the unit. A service may be named without its kind.
fn is_named(unit: &Properties, named: &[&str]) -> bool {
    names(unit, &["Id", "Names"])
        .any(|name| named.iter().any(|given| name == *given || name.strip_suffix(".service") == Some(given)))
}

/// Whether systemd could start the unit.
fn is_there(unit: &Properties) -> bool {
    !unit.get("LoadState").is_some_and(|state| matches!(state.as_str(), "not-found" | "masked"))
}

/// Whether a file of the unit, or a drop-in, comes from no package.
fn is_own(unit: &Properties) -> bool {
    let files = ["FragmentPath", "DropInPaths"].into_iter().filter_map(|property| unit.get(property));
    let is_shipped = |path: &str| ["/usr/lib/", "/lib/"].iter().any(|place| path.starts_with(place));
    is_there(unit) && files.flat_map(|paths| paths.split_whitespace()).any(|path| !is_shipped(path))
}

/// The unit itself, where systemd stops it as soon as nobody needs it any more.
fn unneeded(unit: &Properties) -> Option<String> {
    let is_it = unit.get("StopWhenUnneeded").is_some_and(|value| value == "yes");
    unit.get("Id").filter(|_| is_it).cloned()
}

/// An instance of the template that a socket starts for each connection, see `Accept=` in systemd.socket(5).
fn instance_of_socket(unit: &Properties) -> Option<String> {
    let socket = unit.get("Id")?.strip_suffix(".socket")?;
    let accepts = unit.get("Accept").is_some_and(|value| value == "yes");
    accepts.then(|| format!("{}@0.service", socket.split('@').next().unwrap_or(socket)))
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
            "proxy.service" => {
                "ActiveState=active\nFragmentPath=/etc/systemd/system/proxy.service\nPropagatesReloadTo=ssh.service web.service"
            }
            "initrd.target" => "ActiveState=inactive\nOnFailure=emergency.target",
            "emergency.target" => "ActiveState=inactive",
            "off.timer" => "ActiveState=inactive\nTriggers=b.service",
            "last.service" => "ActiveState=active\nWants=unneeded.service other.service",
            "unneeded.service" => "ActiveState=active\nStopWhenUnneeded=yes\nPropagatesStopTo=ssh.service",
            "ends.service" => "ActiveState=inactive\nWants=idle-unneeded.service",
            "idle-unneeded.service" => {
                "ActiveState=inactive\nStopWhenUnneeded=yes\nPropagatesStopTo=ssh.service"
            }
            "accepts@x.socket" => "ActiveState=inactive\nAccept=yes",
            "accepts@0.service" => "ActiveState=inactive\nConflicts=ssh.service",
            "turns.service" => {
                "ActiveState=inactive\nFragmentPath=/lib/systemd/system/turns.service\nConflicts=a.service absent.service"
            }
            "absent.service" => "ActiveState=inactive\nLoadState=not-found",
            "rests.service" => "ActiveState=inactive\nWants=unneeded.service",
            "runs.service" => "ActiveState=active\nDropInPaths=/lib/x /etc/x\nWants=b.service",
            "wants.service" => "ActiveState=inactive\nWants=runs.service z.service",
            "batch.service" => "ActiveState=active\nOnSuccess=b.service",
            "idle-batch.service" => "ActiveState=inactive\nOnSuccess=b.service",
            "isolates.service" => "ActiveState=inactive\nOnSuccess=tiny.target\nOnSuccessJobMode=isolate",
            "alias.service" => "ActiveState=active\nNames=alias.service y.service\nWants=b.service",
            "early.service" => {
                "ActiveState=inactive\nFragmentPath=/etc/systemd/system/early.service\nBefore=ssh.service multi-user.target"
            }
            "early.path" => {
                "ActiveState=inactive\nFragmentPath=/etc/systemd/system/early.path\nBefore=paths.target other.target"
            }
            "shipped.service" => {
                "ActiveState=inactive\nFragmentPath=/usr/lib/systemd/system/shipped.service\nBefore=ssh.service"
            }
            "critical.service" => "ActiveState=active\nStartLimitAction=reboot-force\nFailureAction=none",
            _ => "ActiveState=active",
        };
        let systemctl = move |command: &Command| {
            let units = &command.args[3..];
            let id =
                |unit: &str| if unit == "alias.service" { "y.service".to_owned() } else { unit.to_owned() };
            let shown: Vec<String> =
                units.iter().map(|unit| format!("Id={}\n{}\n", id(unit), of(unit))).collect();
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
            ("alias.service", &["ssh.service"]),
            ("c.service", &["base.service", "sshd.service", "tunnel.service"]),
            ("other.service", &[]),
            // What a timer starts when its time comes counts at once.
            ("off.timer", &["ssh.service"]),
        ] {
            assert_eq!(of_start(&target, &[unit], When::Now).await.unwrap().stopped, set(stopped), "{unit}");
        }
        let both = of_start(&target, &["other.service", "a.service"], When::Now).await.unwrap();
        assert_eq!(both.stopped, set(&["ssh.service"]));
        let started = of_start(&target, &["c.service"], When::Now).await.unwrap().started;
        assert_eq!(started, set(&["d.target", "e.service"]));
        // A unit that fails starts what it names for that.
        let started = of_start(&target, &["initrd.target"], When::Now).await.unwrap().started;
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
        let reach = of_start(&target, &["a.service"], When::Now).await.unwrap();
        assert_eq!(reach.stopped, set(&["busy.service", "idle.service", "user.service"]));
        assert_eq!(reach.stopped(When::Now).collect::<Vec<_>>(), ["busy.service", "user.service"]);
    }

    #[tokio::test]
    async fn a_stop_stops_what_depends_on_the_unit() {
        let target = target();
        let stopped = of_stop(&target, &["base.service"], When::Now).await.unwrap().stopped;
        assert_eq!(stopped, set(&["sshd.service", "tunnel.service"]));
        assert_eq!(of_stop(&target, &[], When::Now).await, Some(Reach::default()));
        // What nobody needs any more stops as well.
        let stopped = of_stop(&target, &["last.service"], When::Now).await.unwrap().stopped;
        assert_eq!(stopped, set(&["ssh.service", "unneeded.service"]));
        // The end of a unit starts another one, which stops a third.
        let ends = of_stop(&target, &["batch.service"], When::Now).await.unwrap();
        assert_eq!((ends.started, ends.stopped), (set(&["b.service"]), set(&["ssh.service"])));
        assert_eq!(of_stop(&target, &["idle-batch.service"], When::Now).await.unwrap().stopped, set(&[]));
    }

    #[tokio::test]
    async fn a_start_stops_what_nobody_needs_once_the_unit_ends() {
        let target = target();
        for (unit, stopped) in [
            ("ends.service", &["idle-unneeded.service", "ssh.service"][..]),
            ("idle-unneeded.service", &["idle-unneeded.service", "ssh.service"]),
            ("accepts@x.socket", &["ssh.service"]),
        ] {
            let reach = of_start(&target, &[unit], When::Now).await.unwrap();
            assert_eq!(Vec::from_iter(reach.stopped(When::Now)), stopped, "{unit}");
        }
    }

    #[tokio::test]
    async fn what_does_not_run_now_may_run_later() {
        let target = target();
        let reach = of_start(&target, &["turns.service"], When::Later).await.unwrap();
        assert_eq!(Vec::from_iter(reach.stopped(When::Now)), Vec::<&str>::new());
        assert_eq!(Vec::from_iter(reach.stopped(When::Later)), ["a.service"]);
        for (when, expected) in [(When::Now, &[][..]), (When::Later, &["ssh.service", "unneeded.service"])] {
            let stopped = of_stop(&target, &["rests.service"], when).await.unwrap().stopped;
            assert_eq!(stopped, set(expected), "{when:?}");
        }
        // A unit of a package that runs already runs whenever it is wanted.
        for (when, expected) in [(When::Now, &[][..]), (When::Later, &["b.service", "runs.service"])] {
            let started = of_start(&target, &["wants.service"], when).await.unwrap().started;
            assert_eq!(started, set(expected), "{when:?}");
        }
    }

    #[tokio::test]
    async fn what_a_unit_does_to_the_machine_is_told() {
        let target = target();
        let acts = Some(("critical.service".to_owned(), "StartLimitAction=reboot-force".to_owned()));
        assert_eq!(of_start(&target, &["critical.service"], When::Now).await.unwrap().acts, acts);
        assert_eq!(of_stop(&target, &["critical.service"], When::Now).await.unwrap().acts, acts);
        assert_eq!(of_start(&target, &["c.service"], When::Now).await.unwrap().acts, None);
        let acts = of_start(&target, &["isolates.service"], When::Now).await.unwrap().acts;
        assert_eq!(acts, Some(("isolates.service".to_owned(), "OnSuccessJobMode=isolate".to_owned())));
    }

    #[tokio::test]
    async fn what_waits_for_a_unit_of_the_administrators_is_told() {
        let target = target();
        let delays = of_start(&target, &["early.service", "early.path", "shipped.service"], When::Now)
            .await
            .unwrap()
            .delays;
        assert_eq!(
            delays.into_iter().collect::<Vec<_>>(),
            [
                ("early.path".to_owned(), vec!["other.target".to_owned()]),
                ("early.service".to_owned(), vec!["ssh.service".to_owned()])
            ]
        );
    }

    #[tokio::test]
    async fn a_reload_goes_on_to_others() {
        let (along, own) = of_reload(&target(), &["web.service"]).await.unwrap();
        assert_eq!(along, set(&["proxy.service", "ssh.service"]));
        assert_eq!(Vec::from_iter(own), [("proxy.service".to_owned(), UnitEvent::Reloads)]);
        assert_eq!(of_reload(&target(), &["mute.service"]).await, None);
    }

    #[tokio::test]
    async fn an_incomplete_answer_is_none() {
        let target = target();
        assert!(of_start(&target, &["mute.service"], When::Now).await.is_none());
        assert!(of_stop(&target, &["a.service", "mute.service"], When::Now).await.is_none());
        let silent = Target::over_test_connection(&TestConnection::new(|_| Fate::NeverComes));
        assert!(of_start(&silent, &["a.service"], When::Now).await.is_none());
    }
}
