//! The processes that a caller names, as `/proc` shows them, and which of them get no signal.

use linux_sysadmin_sdk::Category;
use linux_sysadmin_sdk::prelude::*;
use linux_sysadmin_sdk::time::rfc3339;

use super::number::Signal;

/// The files that are read.
pub(crate) const FILES: [(&str, &str); 6] = [
    ("/proc/stat", "time of the boot"),
    ("/proc/*/stat", "state and start of a process"),
    ("/proc/*/status", "owner of a process, and whether it is a thread"),
    ("/proc/*/cmdline", "command line of a process, without the secrets in it"),
    ("/proc/*/cgroup", "unit of a process"),
    ("/etc/passwd", "names of the owners"),
];

/// Shows which processes systemd itself watches.
pub(crate) const MAIN_PROCESSES: CommandLine =
    CommandLine::new("systemctl show --property=Id,MainPID,ControlPID -- <unit>...");

/// The flag of a thread of the kernel (PF_KTHREAD).
const KERNEL_THREAD: u64 = 0x0020_0000;
/// The number of characters of a command line that are shown.
const COMMAND: usize = 160;
/// The clock ticks of a second.
const TICKS: u64 = 100;

/// A process as it is shown, with what the tool decides by.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Process {
    pub(crate) pid: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    started: Option<String>,
    pub(crate) command: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    unit: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) user: Option<String>,
    #[serde(skip)]
    pub(crate) start_ticks: u64,
    /// Whether all of its user ids are the same.
    #[serde(skip)]
    pub(crate) has_one_user: bool,
    #[serde(skip)]
    state: char,
    #[serde(skip)]
    parent: u64,
    #[serde(skip)]
    is_kernels: bool,
    /// The process that it is a thread of.
    #[serde(skip)]
    thread_of: u32,
    /// Whether it is the first process of its namespace.
    #[serde(skip)]
    is_first_inside: bool,
    /// The container or the namespace that it runs in.
    #[serde(skip)]
    inside: Option<String>,
}

/// Reads the processes, all at once. None for one that isn't there.
pub(super) fn read(cx: &Context, pids: &[u32]) -> Vec<Option<Process>> {
    let mut paths = vec!["/etc/passwd".to_owned(), "/proc/stat".to_owned()];
    for pid in pids {
        paths.extend(["stat", "status", "cgroup", "cmdline"].map(|file| format!("/proc/{pid}/{file}")));
    }
    let texts = cx.read_all_bytes(&paths).into_iter();
    let mut texts = texts.map(|text| text.ok().map(|bytes| String::from_utf8_lossy(&bytes).into_owned()));
    let mut next = || texts.next().flatten();
    let (passwd, machine) = (next().unwrap_or_default(), next().unwrap_or_default());
    let boot = machine.lines().find_map(|line| line.strip_prefix("btime ")?.trim().parse::<i64>().ok());
    let mut found: Vec<Option<Process>> = pids
        .iter()
        .map(|pid| {
            let (stat, status) = (next(), next());
            let (cgroup, arguments) = (next().unwrap_or_default(), next().unwrap_or_default());
            Process::parse(*pid, &stat?, &status?, &cgroup, &arguments, &passwd, boot)
        })
        .collect();
    let shown = found.iter().flatten().map(|process| process.command.clone()).collect();
    for (process, command) in found.iter_mut().flatten().zip(cx.redacted(shown)) {
        process.command = excerpt(&command);
    }
    found
}

impl Process {
    fn parse(
        pid: u32,
        stat: &str,
        status: &str,
        cgroup: &str,
        arguments: &str,
        passwd: &str,
        boot: Option<i64>,
    ) -> Option<Self> {
        // The name may hold parentheses, so it ends at the last one.
        let (head, rest) = stat.rsplit_once(')')?;
        let name = head.split_once('(')?.1;
        let fields: Vec<&str> = rest.split_whitespace().collect();
        // The fields have the numbers of proc_pid_stat(5); the state, number 3, is the first one after the name.
        let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
        let start_ticks = field(22)?;
        let value = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        let uids: Vec<&str> = value("Uid")?.split_whitespace().collect();
        let user = uids.get(1).map(|uid| name_of(passwd, uid));
        let seconds = i64::try_from(start_ticks / TICKS).ok()?;
        let words = arguments.trim_end_matches('\0').replace(|letter: char| letter.is_control(), " ");
        let container = container(cgroup);
        let pids: Vec<&str> = value("NSpid").map_or(Vec::new(), |pids| pids.split_whitespace().collect());
        let is_inside = pids.len() > 1;
        Some(Self {
            pid,
            started: boot.map(|boot| rfc3339(boot.saturating_add(seconds))),
            command: if words.is_empty() {
                format!("[{}]", name.replace(char::is_control, " "))
            } else {
                words
            },
            unit: unit(cgroup).map(str::to_owned),
            user,
            start_ticks,
            has_one_user: uids.iter().all(|uid| Some(uid) == uids.first()),
            state: fields.first()?.chars().next()?,
            parent: field(4)?,
            is_kernels: field(9)? & KERNEL_THREAD != 0,
            thread_of: value("Tgid")?.trim().parse().ok()?,
            is_first_inside: is_inside && pids.last() == Some(&"1"),
            inside: container.or_else(|| is_inside.then(|| "a PID namespace of its own".to_owned())),
        })
    }

    /// Refuses a process that isn't the one that was meant, or that no signal can end.
    pub(super) fn check(&self, started: Option<&str>) -> Result<()> {
        let Self { pid, command, thread_of, parent, .. } = self;
        if thread_of != pid {
            let message = format!("{pid} is a thread of process {thread_of} ({command}): expected a process");
            return Err(Problem::validation("NOT_A_PROCESS", message)
                .remedy(format!("Name the process: {thread_of}")));
        }
        if let Some(started) = started.filter(|started| !self.began(started)) {
            let now = self.started.as_deref().unwrap_or("another time");
            let shown: String = started.chars().take(40).collect();
            let message = format!(
                "{pid} is another process now: {command}, started {now}; expected one started {shown}"
            );
            return Err(Problem::new("PROCESS_REUSED", Category::State, message)
                .remedy("The process that was meant has ended; proc_list shows those that there are"));
        }
        if self.is_kernels {
            let message = format!("{pid} {command} is a thread of the kernel, which takes no signals");
            return Err(Problem::new("PROTECTED_PROCESS", Category::Denied, message));
        }
        if self.state == 'Z' {
            let message = format!(
                "{pid} {command} has ended already: its parent {parent} hasn't noticed it (a zombie)"
            );
            return Err(Problem::new("PROCESS_ENDED", Category::State, message).remedy(format!(
                "It takes no memory and goes with its parent: see proc_info of {parent}, and restart that"
            )));
        }
        Ok(())
    }

    /// Whether it began at this time. The clock of the boot may differ by a second from one answer to the next.
    fn began(&self, started: &str) -> bool {
        let second = |text: &str| {
            let number = |range: std::ops::Range<usize>| text.get(range)?.parse::<i64>().ok();
            let date = [number(0..4)?, number(5..7)?, number(8..10)?];
            linux_sysadmin_sdk::time::unix(date, [number(11..13)?, number(14..16)?, number(17..19)?])
        };
        let is_utc = started.len() == 20 && started.ends_with('Z');
        let now = self.started.as_deref().and_then(second);
        let meant = second(started).filter(|_| is_utc);
        now.zip(meant).is_some_and(|(now, meant)| now.abs_diff(meant) <= 1)
    }

    /// The service of systemd that it belongs to.
    fn service(&self) -> Option<&str> {
        let unit = self.unit.as_deref()?;
        (unit.ends_with(".service") && !unit.starts_with("user@")).then_some(unit)
    }

    /// Sentences for the person who decides.
    pub(super) fn warnings(&self) -> Vec<String> {
        let Self { pid, .. } = self;
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
        if let Some(process) = processes.iter().find(|process| process.pid == main) {
            let message = format!("{main} {} is the main process of {unit}", process.command);
            let problem = Problem::new("UNIT_PROCESS", Category::State, message);
            return Err(match reloads {
                true => problem.remedy(format!("svc_reload of {unit} has it read its configuration")),
                false => problem.remedy(format!("svc_stop of {unit} ends it; svc_restart starts it anew")),
            });
        }
    }
    Ok(())
}

fn name_of(passwd: &str, uid: &str) -> String {
    let name = passwd.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)? == uid).then_some(name)
    });
    name.unwrap_or(uid).to_owned()
}

/// The path of the control group in which systemd keeps the process.
fn group(cgroup: &str) -> Option<&str> {
    let unified = cgroup.lines().find_map(|line| line.strip_prefix("0::"));
    let named = cgroup.lines().find_map(|line| Some(line.split_once(":name=systemd:")?.1));
    unified.filter(|path| *path != "/").or(named).or(unified)
}

/// The unit of the system's manager: the first part of the path that is no slice.
fn unit(cgroup: &str) -> Option<&str> {
    let part = group(cgroup)?.split('/').find(|part| !part.is_empty() && !part.ends_with(".slice"))?;
    [".service", ".scope"].iter().any(|suffix| part.ends_with(suffix)).then_some(part)
}

/// The container, by the names that their programs give to control groups.
fn container(cgroup: &str) -> Option<String> {
    group(cgroup)?.split('/').find_map(|part| {
        let scope = part.strip_suffix(".scope").unwrap_or(part);
        let named = [
            ("docker-", "docker"),
            ("libpod-", "podman"),
            ("cri-containerd-", "containerd"),
            ("crio-", "cri-o"),
        ]
        .iter()
        .find_map(|(prefix, kind)| Some((*kind, scope.strip_prefix(prefix)?)))
        .filter(|(_, id)| id.len() >= 12 && id.bytes().all(|byte| byte.is_ascii_hexdigit()))
        .map(|(kind, id)| (kind, &id[..12]));
        let lxc = || Some(("lxc", part.strip_prefix("lxc.payload.")?));
        let nspawn = || Some(("nspawn", part.strip_prefix("systemd-nspawn@")?.strip_suffix(".service")?));
        let machine = || Some(("machine", part.strip_prefix("machine-")?.strip_suffix(".scope")?));
        let (kind, name) = named.or_else(lxc).or_else(nspawn).or_else(machine)?;
        Some(format!("the container {name} ({kind})"))
    })
}

fn excerpt(text: &str) -> String {
    match text.char_indices().nth(COMMAND) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
