//! `proc_list`: the processes of a machine, those with the most memory first, or as a tree.
//!
//! All of `/proc/PID/stat` is read at once. The other files are read of the processes in the answer only, unless a filter
//! needs them of all.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use linux_sysadmin_sdk::processes::{self, Found, Stat, cgroup};
use linux_sysadmin_sdk::{accounts, listening, prelude::*, units};

use crate::{links, state};

/// The most uses of a file that are told of one process.
const NAMED: usize = 3;

/// Shows the name under which systemd keeps a unit, which may have others: `sshd` is `ssh` on Debian.
pub(crate) const UNIT_ID: CommandLine =
    CommandLine::new("systemctl show --property=Id --property=LoadState -- <unit>");

/// The deepest indentation of a tree. Processes below it stand at the same depth.
const DEEPEST: usize = 24;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct ListArgs {
    /// Name of the program
    name: Option<String>,
    /// Account
    user: Option<String>,
    /// Its unit
    service: Option<String>,
    /// Port in use
    port: Option<i64>,
    /// File or directory in use
    file: Option<String>,
    /// As ps has it: R, D, Z, T
    state: Option<String>,
    /// Parents above children
    tree: Option<bool>,
    /// Kernel threads too
    kernel_threads: Option<bool>,
}

/// An item: a process, or a line of a tree.
#[derive(Serialize)]
#[serde(untagged)]
pub(crate) enum Item {
    Process(Shown),
    Line(String),
}

#[derive(Serialize)]
pub(crate) struct Shown {
    #[serde(flatten)]
    process: processes::Process,
    /// The resident memory, with shared memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    memory_mb: Option<f64>,
    /// The state as in ps(1), left out for the ordinary ones: R and S, and I of kernel threads.
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<char>,
    /// The uses that it makes of the file or port that was asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    has: Vec<String>,
}

pub(crate) fn list(args: ListArgs, cx: &Context) -> Result<Listing<Item>> {
    let mut notes = Vec::new();
    let mut wanted = Wanted::of(args, cx, &mut notes)?;
    let all = processes::all(cx)?;
    if all.is_empty() {
        return Err(processes::none());
    }
    notes.extend(processes::hidden(&all));
    let mut matching: Vec<&Stat> = all.iter().filter(|stat| wanted.matches(stat)).collect();
    let mut looked_up = BTreeMap::new();
    if wanted.needs_look_up() {
        looked_up = look_up(cx, &matching);
        let found = |wanted: &Wanted| -> Vec<&Stat> {
            let is_wanted = |stat: &&Stat| {
                looked_up.get(&stat.pid).is_some_and(|found| wanted.matches_found(stat, found))
            };
            matching.iter().copied().filter(is_wanted).collect()
        };
        let mut those = found(&wanted);
        if those.is_empty()
            && let Some(note) = wanted.unit_instead(cx)
        {
            notes.push(note);
            those = found(&wanted);
        }
        matching = those;
    }
    if let Some(unit) = wanted.unit.as_ref().filter(|_| matching.is_empty()) {
        notes.push(format!("no such process belongs to {unit}; svc_status tells its state"));
    }
    // Lines of a tree that has filters show how the processes descend from the first one.
    let order = if wanted.tree { tree(&all, &matching) } else { by_memory(matching) };
    let total = order.len() as u64;
    // A filter of the host may match a command line, and therefore needs the command lines of all.
    let most = cx.limit().filter(|_| cx.filter().is_none()).map_or(order.len(), |limit| limit as usize);
    let order = &order[..most.min(order.len())];
    let missing: Vec<&Stat> =
        order.iter().map(|(_, stat)| *stat).filter(|stat| !looked_up.contains_key(&stat.pid)).collect();
    if !missing.is_empty() {
        looked_up.extend(look_up(cx, &missing));
    }
    let mut items = Vec::with_capacity(order.len());
    for (depth, stat) in order {
        let Some(found) = looked_up.remove(&stat.pid) else { continue };
        let has = wanted.has(stat.pid);
        items.push(if wanted.tree {
            Item::Line(line(*depth, found.process, &has))
        } else {
            shown(stat, found, has)
        });
    }
    if wanted.tree && !items.is_empty() {
        notes.push("each line is PID, start, user, unit and command, below its parent".to_owned());
    }
    Ok(Listing { items, total: cx.filter().is_none().then_some(total), notes })
}

fn look_up(cx: &Context, stats: &[&Stat]) -> BTreeMap<u32, Found> {
    let found = processes::look_up(cx, stats.iter().copied());
    found.into_iter().map(|found| (found.process.pid, found)).collect()
}

/// The properties of the processes that are asked for.
struct Wanted {
    name: Option<String>,
    uid: Option<u64>,
    unit: Option<String>,
    states: Vec<char>,
    kernel_threads: bool,
    tree: bool,
    /// The sockets that each process has on the port. None where no port was asked for.
    of_port: Option<BTreeMap<u32, Vec<String>>>,
    /// The same of the file.
    of_file: Option<BTreeMap<u32, Vec<String>>>,
}

impl Wanted {
    /// Checks the arguments, and finds out who has the file or the port.
    fn of(args: ListArgs, cx: &Context, notes: &mut Vec<String>) -> Result<Self> {
        let port = args.port.map(port).transpose()?;
        for (argument, value) in [("name", &args.name), ("service", &args.service)] {
            if value.as_ref().is_some_and(|value| value.trim().is_empty()) {
                let message = format!("{argument} is empty: expected a {argument}, or no such argument");
                return Err(Problem::validation("INVALID_ARGUMENTS", message));
            }
        }
        let states = args.state.as_deref().map(state::letters).transpose()?.unwrap_or_default();
        Ok(Self {
            name: args.name.map(|name| name.trim().to_lowercase()),
            uid: args.user.map(|user| uid(&user, cx)).transpose()?,
            unit: args.service.map(|unit| units::with_type(unit.trim())),
            // Threads of the kernel are asked for by a state that they have while something is wrong, or that only they have.
            kernel_threads: args.kernel_threads == Some(true)
                || states.iter().any(|state| matches!(state, 'D' | 'I')),
            states,
            tree: args.tree == Some(true),
            of_port: port.map(|port| of_port(port, cx, notes)).transpose()?,
            of_file: args.file.map(|file| of_file(&file, cx, notes)).transpose()?,
        })
    }

    fn matches(&self, stat: &Stat) -> bool {
        let has = |of: &Option<BTreeMap<u32, _>>| of.as_ref().is_none_or(|of| of.contains_key(&stat.pid));
        (self.kernel_threads || !stat.is_kernel_thread)
            && (self.states.is_empty() || self.states.contains(&stat.state))
            && has(&self.of_port)
            && has(&self.of_file)
    }

    fn needs_look_up(&self) -> bool {
        self.name.is_some() || self.uid.is_some() || self.unit.is_some()
    }

    fn matches_found(&self, stat: &Stat, found: &Found) -> bool {
        let uid = found.status.as_ref().and_then(|status| status.number("Uid", 1));
        self.name.as_ref().is_none_or(|name| is_named(name, stat, &found.arguments))
            && (self.uid.is_none() || self.uid == uid)
            && self.unit.as_ref().is_none_or(|unit| cgroup::is_below(&found.cgroup, unit))
    }

    /// Takes the unit's own name in place of one of its others. None where it has no other name; else a note.
    fn unit_instead(&mut self, cx: &Context) -> Option<String> {
        let asked = self.unit.as_mut().filter(|_| cx.distro().init_system == "systemd")?;
        let output = cx.run(UNIT_ID.with([asked.as_str()])).ok()?;
        let text = output.text();
        let value = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
        if value("LoadState") == Some("not-found") {
            return Some(format!("systemd knows no unit {asked}"));
        }
        let id = value("Id").filter(|id| !id.is_empty() && id != asked)?;
        let note = format!("{asked} is another name of {id}");
        id.clone_into(asked);
        Some(note)
    }

    /// The uses that the process makes of the port and the file.
    fn has(&self, pid: u32) -> Vec<String> {
        let of = [&self.of_port, &self.of_file].into_iter().flatten().filter_map(|of| of.get(&pid));
        of.flat_map(|all| {
            let more = all.len().saturating_sub(NAMED);
            let named = all.iter().take(NAMED).cloned();
            named.chain((more > 0).then(|| format!("and {more} more")))
        })
        .collect()
    }
}

/// Says whether a text is part of the program's name: the one that the kernel has, which is cut after 15 bytes, or the last
/// part of the first two words of the command line, the second of which may be a script.
fn is_named(name: &str, stat: &Stat, arguments: &str) -> bool {
    let last_part = |word: &str| word.rsplit('/').next().unwrap_or(word).to_lowercase();
    let mut words = arguments.split('\0').take(2).filter(|word| !word.starts_with('-'));
    stat.name.to_lowercase().contains(name) || words.any(|word| last_part(word).contains(name))
}

/// The number of an account, which may also be given as such: the account of a container has no name.
fn uid(user: &str, cx: &Context) -> Result<u64> {
    if let Ok(uid) = user.parse::<u32>() {
        return Ok(uid.into());
    }
    accounts::find(user, cx).map(|user| user.uid.into())
}

fn port(asked: i64) -> Result<u16> {
    let port = u16::try_from(asked).ok().filter(|port| *port > 0);
    port.ok_or_else(|| {
        Problem::validation("INVALID_ARGUMENTS", format!("port is {asked}: expected 1 to 65535"))
    })
}

fn of_port(port: u16, cx: &Context, notes: &mut Vec<String>) -> Result<BTreeMap<u32, Vec<String>>> {
    let output = cx.run(listening::command())?.success("ss")?;
    let sockets = listening::parse(&output.text());
    let on_it: Vec<_> = sockets.iter().filter(|socket| socket.port == port).collect();
    if on_it.is_empty() {
        let note = format!(
            "nothing listens on port {port} in the machine's own network; proc_info shows the ports of a container's process"
        );
        notes.push(note);
    }
    let mut of_port: BTreeMap<u32, Vec<String>> = BTreeMap::new();
    for socket in on_it {
        let shown = format!("{} {}", socket.protocol(), socket.shown());
        if socket.processes.is_empty() {
            let note = format!("{shown} belongs to the kernel, or to a process that only root can see");
            if !notes.contains(&note) {
                notes.push(note);
            }
        }
        for (_, pid) in &socket.processes {
            let all = of_port.entry(u32::try_from(*pid).unwrap_or_default()).or_default();
            if !all.contains(&shown) {
                all.push(shown.clone());
            }
        }
    }
    Ok(of_port)
}

fn of_file(file: &str, cx: &Context, notes: &mut Vec<String>) -> Result<BTreeMap<u32, Vec<String>>> {
    let users = links::users(file, cx)?;
    if users.is_partial {
        notes.push("only root can see which files processes of other accounts have open".to_owned());
    }
    if users.is_cut {
        let note =
            "more files are open there than can be told: processes may be missing here; name a deeper path";
        notes.push(note.to_owned());
    }
    Ok(users.by_pid)
}

/// The processes with the most memory first.
fn by_memory(mut stats: Vec<&Stat>) -> Vec<(usize, &Stat)> {
    stats.sort_by_key(|stat| (Reverse(stat.resident), stat.pid));
    stats.into_iter().map(|stat| (0, stat)).collect()
}

/// These processes and those from which they descend, each with its depth and behind its parent.
fn tree<'a>(all: &'a [Stat], matching: &[&'a Stat]) -> Vec<(usize, &'a Stat)> {
    let by_pid: BTreeMap<u32, &Stat> = all.iter().map(|stat| (stat.pid, stat)).collect();
    let mut kept: BTreeSet<u32> = BTreeSet::new();
    for stat in matching {
        let mut next = Some(stat.pid);
        while let Some(stat) = next.and_then(|pid| by_pid.get(&pid)) {
            next = kept.insert(stat.pid).then_some(stat.parent);
        }
    }
    let mut children: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    // The highest number is put first, since the last one is taken from the list.
    let mut left: Vec<(usize, u32)> = Vec::new();
    for pid in kept.iter().rev() {
        let parent = by_pid[pid].parent;
        if parent != *pid && kept.contains(&parent) {
            children.entry(parent).or_default().push(*pid);
        } else {
            left.push((0, *pid));
        }
    }
    let mut order = Vec::with_capacity(kept.len());
    while let Some((depth, pid)) = left.pop() {
        order.push((depth, by_pid[&pid]));
        left.extend(children.remove(&pid).unwrap_or_default().into_iter().map(|child| (depth + 1, child)));
    }
    order
}

fn shown(stat: &Stat, found: Found, has: Vec<String>) -> Item {
    let memory = found.status.as_ref().and_then(|status| status.number("VmRSS", 0));
    Item::Process(Shown {
        process: found.process,
        memory_mb: memory.map(|kib| (kib as f64 / 102.4).round() / 10.0),
        state: (!matches!(stat.state, 'R' | 'S' | 'I')).then_some(stat.state),
        has,
    })
}

fn line(depth: usize, process: processes::Process, has: &[String]) -> String {
    let [started, user, unit] =
        [process.started, process.user, process.unit].map(|text| text.unwrap_or_else(|| "-".to_owned()));
    let indent = "  ".repeat(depth.min(DEEPEST));
    let mut line = format!("{indent}{} {started} {user} {unit} {}", process.pid, process.command);
    if !has.is_empty() {
        line.push_str(&format!(" ({})", has.join(", ")));
    }
    line
}
