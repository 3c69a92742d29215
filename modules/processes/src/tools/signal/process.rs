//! The processes that a caller names, as `/proc` shows them, and which of them get no signal.

use std::collections::BTreeSet;

use linux_sysadmin_sdk::prelude::*;
use linux_sysadmin_sdk::processes::{self, Found, Stat, cgroup};
use linux_sysadmin_sdk::{Category, time};

use super::number::Signal;

/// Shows the main processes of units.
pub(crate) const MAIN_PROCESSES: CommandLine =
    CommandLine::new("systemctl show --property=Id,MainPID -- <unit>...");

/// The number of characters of a container's id that are shown, as its program shows it.
const ID: usize = 12;

/// A process as it is shown, with what the tool decides by.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Process {
    #[serde(flatten)]
    pub(crate) shown: processes::Process,
    #[serde(skip)]
    pub(crate) stat: Stat,
    /// True where all of its user ids are the same.
    #[serde(skip)]
    pub(crate) has_one_user: bool,
    /// The process that it is a thread of.
    #[serde(skip)]
    thread_of: u64,
    /// True where it is the first process of its namespace.
    #[serde(skip)]
    is_first_inside: bool,
    /// The container or the namespace that it runs in.
    #[serde(skip)]
    inside: Option<String>,
}

/// Reads the processes, all at once. None for one that isn't there.
pub(super) fn read(cx: &Context, pids: &[u32]) -> Vec<Option<Process>> {
    let paths: Vec<_> = pids.iter().map(|pid| format!("/proc/{pid}/stat")).collect();
    let texts = cx.read_all(&paths);
    let stats: Vec<_> = texts.iter().map(|text| Stat::parse(text.as_ref().ok()?)).collect();
    let mut found = processes::look_up(cx, stats.iter().flatten()).into_iter();
    stats.iter().map(|stat| Process::new(stat.as_ref()?, found.next()?)).collect()
}

/// Reads the processes that descend from these, as they are now.
pub(super) fn descendants(cx: &Context, of: &[Process]) -> Vec<Process> {
    let all = processes::all(cx).unwrap_or_default();
    let named: BTreeSet<u32> = of.iter().map(|process| process.shown.pid).collect();
    let mut family = named.clone();
    let mut before = 0;
    while family.len() > before {
        before = family.len();
        let children: Vec<u32> =
            all.iter().filter(|stat| family.contains(&stat.parent)).map(|stat| stat.pid).collect();
        family.extend(children);
    }
    let pids: Vec<u32> = family.difference(&named).copied().collect();
    read(cx, &pids).into_iter().flatten().collect()
}

/// A start as answers show it, in seconds since the epoch.
pub(super) fn second(text: &str) -> Option<i64> {
    let number = |range: std::ops::Range<usize>| text.get(range)?.parse::<i64>().ok();
    let date = [number(0..4)?, number(5..7)?, number(8..10)?];
    let second = time::unix(date, [number(11..13)?, number(14..16)?, number(17..19)?]);
    second.filter(|_| text.len() == 20 && text.ends_with('Z'))
}

impl Process {
    /// None for one that has ended between the two readings.
    fn new(stat: &Stat, found: Found) -> Option<Self> {
        let status = found.status?;
        let mut uids = status.value("Uid")?.split_whitespace();
        let first = uids.next();
        let pids: Vec<_> = status.value("NSpid").unwrap_or_default().split_whitespace().collect();
        let is_inside = pids.len() > 1;
        let container = cgroup::container(&found.cgroup)
            .map(|(kind, id)| format!("the container {} ({kind})", id.get(..ID).unwrap_or(id)));
        Some(Self {
            shown: found.process,
            stat: stat.clone(),
            has_one_user: uids.all(|uid| Some(uid) == first),
            thread_of: status.number("Tgid", 0)?,
            is_first_inside: is_inside && pids.last() == Some(&"1"),
            inside: container.or_else(|| is_inside.then(|| "a PID namespace of its own".to_owned())),
        })
    }

    /// Refuses a process that isn't the one that was meant, or that no signal can end.
    pub(super) fn check(&self, started: Option<&str>) -> Result<()> {
        let Self { shown: processes::Process { pid, command, started: began, .. }, thread_of, .. } = self;
        if *thread_of != u64::from(*pid) {
            let message = format!("{pid} is a thread of process {thread_of} ({command}): expected a process");
            return Err(Problem::validation("NOT_A_PROCESS", message)
                .remedy(format!("Name the process: {thread_of}")));
        }
        if let Some(started) = started.filter(|started| !self.began(started)) {
            let now = began.as_deref().unwrap_or("another time");
            let shown: String = started.chars().take(40).collect();
            let message = format!(
                "{pid} is another process now: {command}, started {now}; expected one started {shown}"
            );
            return Err(Problem::new("PROCESS_REUSED", Category::State, message)
                .remedy("The process that was meant has ended; proc_list shows those that there are"));
        }
        if self.stat.is_kernel_thread {
            let message = format!("{pid} {command} is a thread of the kernel, which takes no signals");
            return Err(Problem::new("PROTECTED_PROCESS", Category::Denied, message));
        }
        if self.stat.is_zombie() {
            let parent = self.stat.parent;
            let message = format!(
                "{pid} {command} has ended already: its parent {parent} hasn't noticed it (a zombie)"
            );
            return Err(Problem::new("PROCESS_ENDED", Category::State, message).remedy(format!(
                "It takes no memory and goes with its parent: see proc_info of {parent}, and restart that"
            )));
        }
        Ok(())
    }

    /// Says whether it began at this time. The clock of the boot may differ by a second from one answer to the next.
    fn began(&self, started: &str) -> bool {
        let now = self.shown.started.as_deref().and_then(second);
        now.zip(second(started)).is_some_and(|(now, meant)| now.abs_diff(meant) <= 1)
    }

    /// The service of systemd that it belongs to.
    fn service(&self) -> Option<&str> {
        let unit = self.shown.unit.as_deref()?;
        (unit.ends_with(".service") && !unit.starts_with("user@")).then_some(unit)
    }

    /// Sentences for the person who decides.
    pub(super) fn warnings(&self) -> Vec<String> {
        let pid = self.shown.pid;
        let unit = self.service().filter(|_| self.inside.is_none());
        let unit = unit.map(|unit| format!("{pid} is a process of {unit}, which may start another one"));
        let inside = self
            .inside
            .as_ref()
            .map(|inside| format!("{pid} runs in {inside}: what watches it there may start another one"));
        let first = self.is_first_inside.then(|| {
            format!("{pid} is the first process there: with its end all of it ends, and SIGTERM ends it only where it says so")
        });
        [unit, inside, first].into_iter().flatten().collect()
    }
}

/// Refuses the main process of a unit: systemd takes its end for a failure, and may start it again.
pub(super) fn check_main(cx: &Context, processes: &[Process], signal: Signal) -> Result<()> {
    let mut units: Vec<&str> = Vec::new();
    for process in processes.iter().filter(|process| process.inside.is_none()) {
        units.extend(process.service().filter(|unit| !units.contains(unit)));
    }
    let reloads = signal == Signal::HUP;
    if units.is_empty() || cx.distro().init_system != "systemd" || !(reloads || signal.is_for_the_end()) {
        return Ok(());
    }
    let output = cx.run(MAIN_PROCESSES.with(units))?.success("systemctl")?;
    for block in String::from_utf8_lossy(&output.stdout).split("\n\n") {
        let value = |name: &str| block.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
        let main = value("MainPID").and_then(|pid| pid.parse::<u32>().ok()).filter(|pid| *pid != 0);
        let (Some(unit), Some(main)) = (value("Id"), main) else { continue };
        if let Some(process) = processes.iter().find(|process| process.shown.pid == main) {
            let message = format!("{main} {} is the main process of {unit}", process.shown.command);
            let problem = Problem::new("UNIT_PROCESS", Category::State, message);
            return Err(match reloads {
                true => problem.remedy(format!("svc_reload of {unit} has it read its configuration")),
                false => problem.remedy(format!("svc_stop of {unit} ends it; svc_restart starts it anew")),
            });
        }
    }
    Ok(())
}
