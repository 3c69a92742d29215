//! `proc_info`: what one process is, uses and waits for.

use std::collections::{BTreeMap, BTreeSet};

use linux_sysadmin_sdk::processes::links::{DELETED, Link, is_partial, parse};
use linux_sysadmin_sdk::processes::{self, Process, Stat, Status, cgroup, command_line, replaced_files};
use linux_sysadmin_sdk::{Output, Privilege, prelude::*};

use crate::{limits, links, sockets};

/// The greatest number that Linux gives a process on machines of 64 bits, see proc_sys_kernel(5).
const GREATEST_PID: i64 = 1 << 22;

/// The longest command line, in characters.
const LONGEST_COMMAND: usize = 1000;

/// So many open files are named.
const NAMED_FILES: usize = 10;

/// The kernel's table of sockets may be large. What listens comes first in it.
const TABLE_BYTES: u64 = 1 << 20;

/// The most bytes that are read of other files.
const FILE_BYTES: u64 = 64 << 10;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct InfoArgs {
    /// Process id
    pid: i64,
}

#[derive(Serialize)]
pub(crate) struct Info {
    #[serde(flatten)]
    process: Process,
    /// The real user, where it isn't the effective one.
    #[serde(skip_serializing_if = "Option::is_none")]
    real_user: Option<String>,
    /// The state as the kernel names it.
    state: String,
    /// The meaning of the state, where it isn't an ordinary one.
    #[serde(skip_serializing_if = "Option::is_none")]
    meaning: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    executable: Option<String>,
    /// The word for what became of the program's file, where it was deleted or replaced.
    #[serde(skip_serializing_if = "Option::is_none")]
    executable_is: Option<&'static str>,
    /// The programs and libraries on which it runs and which an update has replaced: it needs a restart.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    replaced: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cwd: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    root: Option<String>,
    /// The path of the control group, left out where it is that of a service of the system.
    #[serde(skip_serializing_if = "Option::is_none")]
    cgroup: Option<String>,
    /// The program that made the container, and the container's id or name.
    #[serde(skip_serializing_if = "Option::is_none")]
    container: Option<String>,
    /// Namespaces in which it isn't together with PID 1.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    own_namespaces: Vec<String>,
    /// Its number in its own PID namespace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pid_inside: Option<u64>,
    threads: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    memory_mb: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    swap_mb: Option<f64>,
    cpu_seconds: f64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    limits: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    open_files: Option<usize>,
    /// Regular files, devices and directories among them, each with its descriptor.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    files: Vec<String>,
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    listens: BTreeSet<String>,
    #[serde(skip_serializing_if = "is_zero")]
    connections: usize,
    #[serde(skip_serializing_if = "is_zero")]
    children: usize,
    /// From the parent up to the child of PID 1, from which all descend.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    parents: Vec<Process>,
    /// The call that helps further.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// The files that this tool reads besides those of [`processes::grants`].
pub(crate) fn grants() -> Vec<PathGrant> {
    let tables = sockets::TABLES
        .map(|table| PathGrant::read(&format!("/proc/*/net/{table}"), "ports and connections of a process"));
    let mut grants = Vec::from(tables);
    grants.push(PathGrant::read("/proc/*/limits", "limits of a process"));
    for file in ["/proc/*/wchan", "/proc/*/stack"] {
        grants.push(PathGrant::read(file, "where in the kernel a process waits").as_root_if_available());
    }
    grants
}

pub(crate) fn info(args: InfoArgs, cx: &Context) -> Result<Noted<Info>> {
    if !(1..=GREATEST_PID).contains(&args.pid) {
        let message = format!("pid is {}: expected 1 to {GREATEST_PID}", args.pid);
        return Err(Problem::validation("INVALID_ARGUMENTS", message));
    }
    let asked = u32::try_from(args.pid).unwrap_or_default();
    let mut notes = Vec::new();
    let mut paths = processes::stat_paths(cx)?;
    // A thread isn't listed, and its status says whose it is.
    paths.push(format!("/proc/{asked}/status"));
    let mut texts = cx.read_all(&paths);
    let status = texts.pop().and_then(Result::ok).map(Status::new);
    let all: BTreeMap<u32, Stat> = texts
        .iter()
        .filter_map(|text| Stat::parse(text.as_ref().ok()?))
        .map(|stat| (stat.pid, stat))
        .collect();
    let pid =
        status.as_ref().and_then(|status| status.number("Tgid", 0)).and_then(|pid| u32::try_from(pid).ok());
    let Some(stat) = pid.and_then(|pid| all.get(&pid)) else { return Err(gone(asked, &all)) };
    if stat.pid != asked {
        let thread = status.as_ref().and_then(|status| status.value("Name")).unwrap_or_default();
        notes.push(format!("{asked} is a thread ({thread}) of PID {}, which this is about", stat.pid));
    }
    let parents = parents(stat, &all);
    let mut found = processes::look_up(cx, std::iter::once(stat).chain(parents)).into_iter();
    let Some(this) = found.next() else { return Err(gone(asked, &all)) };
    let Some(status) = this.status else { return Err(gone(asked, &all)) };

    let mut files = tables_and_limits(stat.pid, cx);
    let limits = files.pop().unwrap_or_default();
    let [found_links, maps] =
        cx.run_each([links::of_one(stat.pid), replaced_files::command(stat.pid.into())]);
    let found_links = found_links?;
    let links = Links::of(stat.pid, &found_links);
    if !links.are_known && !stat.is_zombie() && !stat.is_kernel_thread {
        notes.push("only root can see the program, open files and namespaces of this process".to_owned());
    }
    if found_links.truncated {
        notes.push("it has more open files than are counted here, and maybe more sockets".to_owned());
    }
    let sockets = sockets::of(&links.sockets, &files, is_big_endian(cx));
    let maps = maps.map(|output| output.text().into_owned()).unwrap_or_default();
    let replaced = replaced_files::of(&maps);
    let own_namespaces = links.own_namespaces();
    let executable = links.executable.as_deref();
    let executable_is =
        executable.and_then(|path| lost(path, own_namespaces.contains(&"mnt".to_owned()), cx));
    let command = command_line::shown_up_to(&this.arguments, LONGEST_COMMAND);
    let process = Process { command: command.unwrap_or(this.process.command), ..this.process };
    let next = next(&process, &replaced);
    let mib = |name| status.number(name, 0).map(|kib| (kib as f64 / 102.4).round() / 10.0);
    let inside = status.value("NSpid").and_then(|all| all.split_whitespace().nth_back(0)?.parse().ok());
    let open = links.are_known.then_some(links.open);
    let data = Info {
        real_user: real_user(&status, cx),
        state: status.value("State").map_or_else(|| stat.state.to_string(), str::to_owned),
        meaning: meaning(stat, &status, all.get(&stat.parent), cx),
        executable_is,
        executable: executable.map(|path| path.trim_end_matches(DELETED).to_owned()),
        replaced,
        cwd: links.cwd.filter(|cwd| cwd != "/"),
        root: links.root.filter(|root| root != "/"),
        cgroup: cgroup::path(&this.cgroup).filter(|path| !is_usual(path, &process)).map(str::to_owned),
        container: cgroup::container(&this.cgroup).map(|(kind, id)| format!("{kind} {id}")),
        own_namespaces,
        pid_inside: inside.filter(|inside| *inside != u64::from(stat.pid)),
        threads: stat.threads,
        memory_mb: mib("VmRSS"),
        swap_mb: mib("VmSwap").filter(|swap| *swap > 0.0),
        cpu_seconds: stat.ticks as f64 / processes::TICKS_PER_SECOND as f64,
        limits: limits::remarkable(&limits, open),
        open_files: open,
        files: links.files,
        listens: sockets.listening,
        connections: sockets.connections,
        children: all.values().filter(|other| other.parent == stat.pid).count(),
        parents: found.map(|found| found.process).collect(),
        next,
        process,
    };
    Ok(Noted { data, notes })
}

fn gone(pid: u32, all: &BTreeMap<u32, Stat>) -> Problem {
    let message = format!("there is no process {pid}: it has ended, or there never was one");
    let problem = Problem::not_found("PROCESS_NOT_FOUND", message);
    match processes::hidden(all.values()) {
        Some(hidden) => problem.remedy(hidden),
        None => problem.remedy("Call proc_list with the program's name for its present PID"),
    }
}

/// The parent, its parent and so on, up to the child of PID 1.
fn parents<'a>(stat: &Stat, all: &'a BTreeMap<u32, Stat>) -> Vec<&'a Stat> {
    let mut parents: Vec<&Stat> = Vec::new();
    let mut next = stat.parent;
    while let Some(parent) = all.get(&next) {
        // Numbers that were given anew between two readings could make a circle.
        if parent.pid == 1 || parent.pid == stat.pid || parents.iter().any(|known| known.pid == parent.pid) {
            break;
        }
        parents.push(parent);
        next = parent.parent;
    }
    parents
}

/// The tables of sockets, and the limits as the last one. What can't be read is empty.
fn tables_and_limits(pid: u32, cx: &Context) -> Vec<String> {
    let tables = sockets::TABLES.iter().map(|table| (format!("/proc/{pid}/net/{table}"), 0, TABLE_BYTES));
    let parts: Vec<_> = tables.chain([(format!("/proc/{pid}/limits"), 0, FILE_BYTES)]).collect();
    let text = |bytes: Result<Vec<u8>>| String::from_utf8_lossy(&bytes.unwrap_or_default()).into_owned();
    cx.read_parts(&parts).into_iter().map(text).collect()
}

fn is_big_endian(cx: &Context) -> bool {
    matches!(cx.distro().architecture.as_str(), "s390x" | "ppc64" | "ppc" | "mips" | "mips64")
}

/// The links of a process, by what they lead to.
#[derive(Default)]
struct Links {
    executable: Option<String>,
    cwd: Option<String>,
    root: Option<String>,
    /// The namespaces of the process and of PID 1.
    namespaces: BTreeSet<(String, String)>,
    of_the_first: BTreeSet<(String, String)>,
    /// The number of open files, with sockets and pipes.
    open: usize,
    files: Vec<String>,
    /// The inodes of the sockets.
    sockets: BTreeSet<u64>,
    /// True where the rights sufficed.
    are_known: bool,
}

impl Links {
    fn of(pid: u32, output: &Output) -> Self {
        let are_known = !is_partial(output, &format!("/proc/{pid}/fd"));
        let mut links = Self { are_known, ..Self::default() };
        let mut files: BTreeMap<String, Vec<u32>> = BTreeMap::new();
        for Link { pid: of, name, target } in parse(output) {
            // PID 1 is listed with its namespaces a second time where it is the process itself.
            match name.split_once('/') {
                Some(("ns", kind)) => {
                    let all = if of == 1 { &mut links.of_the_first } else { &mut links.namespaces };
                    all.insert((kind.to_owned(), target));
                }
                Some(("fd", number)) if of == pid => {
                    links.open += 1;
                    if let Some(inode) =
                        target.strip_prefix("socket:[").and_then(|rest| rest.strip_suffix(']'))
                    {
                        links.sockets.extend(inode.parse::<u64>());
                    } else if target.starts_with('/') && target != "/dev/null" {
                        files.entry(target).or_default().extend(number.parse::<u32>());
                    }
                }
                None if name == "exe" => links.executable = Some(target),
                None if name == "cwd" => links.cwd = Some(target),
                None if name == "root" => links.root = Some(target),
                _ => {}
            }
        }
        let mut files: Vec<(u32, String)> = files
            .into_iter()
            .map(|(path, mut numbers)| {
                numbers.sort_unstable();
                let all = numbers.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
                (numbers.first().copied().unwrap_or_default(), format!("{all} {path}"))
            })
            .collect();
        files.sort();
        let more = files.len().saturating_sub(NAMED_FILES);
        links.files = files.into_iter().take(NAMED_FILES).map(|(_, file)| file).collect();
        links.files.extend((more > 0).then(|| format!("and {more} more")));
        links
    }

    /// The kinds of namespaces that differ from those of PID 1.
    fn own_namespaces(&self) -> Vec<String> {
        if self.of_the_first.is_empty() {
            return Vec::new();
        }
        let own = self.namespaces.difference(&self.of_the_first).map(|(kind, _)| kind);
        own.filter(|kind| !kind.ends_with("_for_children")).cloned().collect()
    }
}

/// Says whether the control group is the one that the unit tells.
fn is_usual(path: &str, process: &Process) -> bool {
    let unit = process.unit.as_deref().unwrap_or_default();
    path == "/" || path.strip_prefix("/system.slice/").or(path.strip_prefix('/')) == Some(unit)
}

/// Says what became of the file of a program that runs. `elsewhere` says that the path is one of another mount namespace.
fn lost(path: &str, elsewhere: bool, cx: &Context) -> Option<&'static str> {
    let path = path.strip_suffix(DELETED)?;
    let is_there = !elsewhere && links::is_there(path, cx);
    Some(if is_there { "replaced" } else { "deleted" })
}

fn real_user(status: &Status, cx: &Context) -> Option<String> {
    let (real, effective) = (status.number("Uid", 0)?, status.number("Uid", 1)?);
    (real != effective)
        .then(|| processes::Users::parse(&cx.read("/etc/passwd").unwrap_or_default()).name(real))
}

/// The meaning of a state that isn't an ordinary one, and what ends it.
fn meaning(stat: &Stat, status: &Status, parent: Option<&Stat>, cx: &Context) -> Option<String> {
    Some(match stat.state {
        'Z' if !stat.is_zombie() => {
            let others = stat.threads - 1;
            format!(
                "its first thread has ended, and it goes on with {others} more: /proc shows its files and command no longer"
            )
        }
        'Z' => {
            let parent = parent.map_or_else(
                || "its parent".to_owned(),
                |parent| format!("PID {} ({})", parent.pid, parent.name),
            );
            format!("it has ended, and {parent} doesn't reap it; it goes when that process reaps it or ends")
        }
        'D' => {
            let place = waits_in(stat.pid, cx).map_or_else(String::new, |place| format!(" in {place}"));
            format!("it waits in the kernel{place}, and no signal ends it before that is over")
        }
        'T' => "it was stopped by a signal, and SIGCONT continues it".to_owned(),
        't' => match status.number("TracerPid", 0) {
            Some(tracer) if tracer > 0 => format!("PID {tracer} traces it and has stopped it"),
            _ => "it is traced, and was stopped for that".to_owned(),
        },
        _ => return None,
    })
}

/// The functions of the kernel in which a process waits, the innermost first. Only root sees more than one.
fn waits_in(pid: u32, cx: &Context) -> Option<String> {
    let root = cx.files_as(Privilege::RootIfAvailable);
    let [wchan, stack] = ["wchan", "stack"].map(|file| format!("/proc/{pid}/{file}"));
    let mut texts = root.read_all(&[wchan, stack]).into_iter().map(Result::unwrap_or_default);
    let wchan = texts.next().filter(|text| !matches!(text.trim(), "" | "0"));
    let stack = texts.next().unwrap_or_default();
    // A line is `[<0>] nfs_wait_bit_killable+0x1d/0x80 [nfs]`.
    let function = |line: &str| Some(line.split_once("] ")?.1.split(['+', ' ']).next()?.to_owned());
    let functions: Vec<String> = stack.lines().filter_map(function).take(3).collect();
    let by_stack = (!functions.is_empty()).then(|| functions.join(" of "));
    by_stack.or(wchan.map(|text| text.trim().to_owned()))
}

/// The call that helps further with a process of a service.
fn next(process: &Process, replaced: &[String]) -> Option<String> {
    let unit =
        process.unit.as_deref().filter(|unit| unit.ends_with(".service") && !unit.starts_with("user@"))?;
    let tool = if replaced.is_empty() { "svc_status" } else { "svc_restart" };
    Some(format!("{tool} {{\"service\": \"{unit}\"}}"))
}
