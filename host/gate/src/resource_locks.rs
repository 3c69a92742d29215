//! Finds out who holds the resources that a plan is about to change. It is asked before the first step, so that a
//! package manager at work doesn't stop a plan half-way, and a plan doesn't overwrite a file that somebody edits.
//!
//! The host waits for nobody and stops nobody. A resource that can't be checked counts as free: the programs take their
//! own locks, and report that.

mod parse;

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join3;
use serde_json::{Map, Value};

use host_base::problem::{Category, Problem};
use host_base::{Command, Output, Privilege};
use host_capability::Access;
use host_target::{Metadata, PathCheck, ReadRequest, Target};
use host_text::redact::excerpt;
use parse::{Job, Mount};

const TIMEOUT: Duration = Duration::from_secs(10);
/// The largest number of bytes that are read of `/proc/locks` and of every other file.
const MOST_BYTES: u64 = 1 << 20;
/// The number of processes that are checked for one resource.
const MOST_HOLDERS: usize = 16;

/// The lock files of the package databases of dpkg, rpm and apk, as far as the target has them.
const PACKAGE_LOCKS: &[&str] = &[
    "/var/lib/dpkg/lock-frontend",
    "/var/lib/dpkg/lock",
    "/usr/lib/sysimage/rpm/.rpm.lock",
    "/var/lib/rpm/.rpm.lock",
    "/lib/apk/db/lock",
];
/// Files that dnf and zypper write their process id into.
const PACKAGE_PIDS: &[&str] =
    &["/run/dnf.pid", "/run/yum.pid", "/var/lib/dnf/rpmdb_lock.pid", "/run/zypp.pid"];
/// The programs that may have written it. The process id may belong to another process by now.
const PACKAGE_PROGRAMS: &[&str] =
    &["dnf", "yum", "microdnf", "packagekitd", "python", "platform-python", "zypper"];
/// pacman's lock file. It exists while pacman works, and after pacman was killed; then pacman refuses to start.
const PACKAGE_MARK: &str = "/var/lib/pacman/db.lck";
/// The kernel's files with locks, with the time of the boot, and with mounts.
const KERNELS: &[&str] = &["/proc/locks", "/proc/stat", "/proc/self/mountinfo"];
const LVM_LOCKS: &str = "/run/lock/lvm";
/// Names of editors that keep a swap file or a lock file beside the edited file.
const EDITORS: &[&str] =
    &["vi", "gvi", "nvi", "nvim", "nano", "rnano", "emacs", "view", "ex", "rvi", "mg", "vim"];

/// A resource that a plan needs for itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResourceLock {
    /// The databases of the target's package managers: dpkg, rpm, apk, pacman.
    PackageDatabase,
    /// The units that the plan changes. No other systemd job may be running for them.
    Systemd,
    /// The metadata of volume groups.
    Lvm,
    /// A file that the plan writes, by its absolute path.
    File(String),
    /// A resource that only plans hold. Only one plan at a time runs on a target, so nothing has to be checked.
    Named(String),
}

/// The holder of a resource.
#[derive(Debug, Default, PartialEq)]
struct Holder {
    resource: String,
    pid: Option<u32>,
    process: Option<String>,
    /// The command line, without secrets.
    command: Option<String>,
    /// The unit of the system's manager.
    unit: Option<String>,
    user: Option<String>,
    since: Option<String>,
    /// Advice on how to see what the process is doing.
    look: Option<String>,
}

/// Reports a problem (`RESOURCE_LOCKED`, status `blocked`, with `lock_info`) where somebody holds one of the locks.
/// `affected` names the units that the plan changes.
pub async fn check(target: &Target, locks: &[ResourceLock], affected: &[String]) -> Result<(), Problem> {
    match holder(target, locks, affected).await {
        Some(holder) => Err(problem(holder)),
        None => Ok(()),
    }
}

/// Reads only the given paths, with the caller's rights.
struct LockReader<'a> {
    target: &'a Target,
    access: Access,
}

impl LockReader<'_> {
    fn check(paths: &[String]) -> Arc<PathCheck> {
        let paths = paths.to_vec();
        let denied = || Problem::new("PATH_DENIED", Category::Denied, "expected a path that was asked for");
        Arc::new(move |asked: &str, _: &str| {
            paths.iter().any(|path| path == asked).then_some(()).ok_or_else(denied)
        })
    }

    async fn read(&self, paths: &[String], bytes: u64) -> Vec<Result<Vec<u8>, Problem>> {
        let request = |path: &String| ReadRequest { path: path.clone(), offset: 0, max_bytes: bytes };
        let requests = paths.iter().map(request).collect();
        self.target.read_all(requests, &self.access, Self::check(paths)).await
    }

    async fn stat(&self, paths: &[String]) -> Vec<Option<Metadata>> {
        let found = self.target.stat_all(paths.to_vec(), &self.access, Self::check(paths)).await;
        found.into_iter().map(|found| found.ok().flatten()).collect()
    }
}

fn command(program: &str, args: &[&str]) -> Command {
    Command::new(program, args.iter().copied(), TIMEOUT)
}

/// The files that editors keep beside an edited file.
struct EditorFiles {
    file: String,
    /// The swap file of vim or the lock file of nano.
    swap: String,
    /// The symbolic link of emacs.
    link: String,
}

impl EditorFiles {
    fn of(file: &str) -> Option<Self> {
        let (directory, name) = file.rsplit_once('/')?;
        let beside = |prefix: &str, suffix: &str| format!("{directory}/{prefix}{name}{suffix}");
        Some(Self { file: file.to_owned(), swap: beside(".", ".swp"), link: beside(".#", "") })
    }
}

/// The first holder that is found.
async fn holder(target: &Target, locks: &[ResourceLock], affected: &[String]) -> Option<Holder> {
    if locks.iter().all(|lock| matches!(lock, ResourceLock::Named(_))) {
        return None;
    }
    let access = Access { privilege: Privilege::Caller, verbs: Vec::new() };
    let looking = LockReader { target, access };
    let files: Vec<_> = locks
        .iter()
        .filter_map(|lock| if let ResourceLock::File(path) = lock { Some(path.clone()) } else { None })
        .collect();
    let files = real(target, files, &looking.access).await;
    let beside: Vec<_> = files.iter().filter_map(|file| EditorFiles::of(file)).collect();

    // Each pair is a path and the resource that the path is the lock of.
    let mut locked: Vec<(String, String)> = files.iter().map(|file| (file.clone(), file.clone())).collect();
    let mut pid_files: Vec<String> = Vec::new();
    if locks.contains(&ResourceLock::PackageDatabase) {
        let name = |path: &&str| ((*path).to_owned(), format!("package database ({path})"));
        locked.extend(PACKAGE_LOCKS.iter().map(name));
        pid_files.extend(PACKAGE_PIDS.iter().map(|path| (*path).to_owned()));
    }
    if locks.contains(&ResourceLock::Lvm) {
        let directory = LVM_LOCKS.to_owned();
        let names =
            target.list_dir(directory.clone(), &looking.access, LockReader::check(&[directory])).await;
        let path = |name: String| format!("{LVM_LOCKS}/{name}");
        locked.extend(
            names
                .unwrap_or_default()
                .into_iter()
                .map(path)
                .map(|path| (path.clone(), format!("LVM ({path})"))),
        );
    }

    let swaps = beside.iter().map(|beside| beside.swap.clone());
    let mut stated: Vec<String> = locked.iter().map(|(path, _)| path.clone()).collect();
    stated.extend(swaps.clone());
    let has_mark = locks.contains(&ResourceLock::PackageDatabase);
    stated.extend(has_mark.then(|| PACKAGE_MARK.to_owned()));
    let mut read: Vec<_> = KERNELS.iter().map(|path| (*path).to_owned()).collect();
    read.extend(pid_files.iter().cloned());
    read.extend(swaps);
    let mut commands: Vec<_> =
        beside.iter().map(|beside| command("readlink", &["--", &beside.link])).collect();
    if locks.contains(&ResourceLock::Systemd) {
        commands.push(command("systemctl", &["is-system-running"]));
        commands.push(command("systemctl", &["list-jobs", "--no-legend", "--plain"]));
    }
    let (stat, contents, outputs) =
        join3(looking.stat(&stated), looking.read(&read, MOST_BYTES), target.run_all(&commands)).await;
    let text = |at: usize| {
        contents.get(at).and_then(|found| found.as_ref().ok()).map(|all| String::from_utf8_lossy(all))
    };
    let said = |at: usize| outputs.get(at).and_then(|output: &Result<Output, Problem>| output.as_ref().ok());

    if locks.contains(&ResourceLock::Systemd) {
        let said = |at: usize| said(beside.len() + at).map(|output| String::from_utf8_lossy(&output.stdout));
        if let Some(holder) = of_systemd(&said(0).unwrap_or_default(), &said(1).unwrap_or_default(), affected)
        {
            return Some(holder);
        }
    }

    let mounts = parse::mounts(&text(2).unwrap_or_default());
    let mut candidates = of_files(&text(0).unwrap_or_default(), &mounts, &locked, &stat);
    let pid_texts =
        pid_files.iter().enumerate().filter_map(|(at, path)| Some((path, text(KERNELS.len() + at)?)));
    candidates.extend(pid_texts.filter_map(|(path, text)| {
        let resource = format!("package database ({path})");
        Some(Candidate::living(resource, text.trim().parse().ok()?, PACKAGE_PROGRAMS))
    }));
    for (at, beside) in beside.iter().enumerate() {
        let swap = contents.get(KERNELS.len() + pid_files.len() + at);
        let exists = stat.get(locked.len() + at).is_some_and(Option::is_some);
        let link = said(at).filter(|output| output.exit_code == 0);
        let link = link.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
        candidates.extend(of_editors(beside, exists, swap, link.as_deref()));
    }
    if has_mark && stat.last().is_some_and(Option::is_some) {
        candidates.push(Candidate::certain(Holder {
            resource: format!("package database ({PACKAGE_MARK})"),
            process: Some(format!("pacman, by its lock file {PACKAGE_MARK}")),
            look: Some("pgrep --list-full pacman; where there is none, it was cut off".to_owned()),
            ..Holder::default()
        }));
    }
    candidates.truncate(MOST_HOLDERS);
    let candidates = confirmed(target, candidates).await;
    let booted = text(1).and_then(|stat| parse::booted(&stat));
    first_living(&looking, candidates, booted).await
}

/// The paths without links, for those that can be resolved. Preparing the plan has checked that the module may reach
/// them.
async fn real(target: &Target, files: Vec<String>, access: &Access) -> Vec<String> {
    let resolved = target.resolve(files, access).await;
    resolved.into_iter().filter_map(|resolved| Some(resolved.ok()?.path)).collect()
}

/// A process that may hold a resource.
struct Candidate {
    holder: Holder,
    /// The program names that the process must have. A process that has ended or has another name holds nothing.
    only: Option<&'static [&'static str]>,
    /// A path that the process must have open. The lock may be on another file with the same inode number.
    must_have_open: Option<String>,
}

impl Candidate {
    fn living(resource: String, pid: u32, only: &'static [&'static str]) -> Self {
        let holder = Holder { resource, pid: Some(pid), ..Holder::default() };
        Self { holder, only: Some(only), must_have_open: None }
    }

    fn certain(holder: Holder) -> Self {
        Self { holder, only: None, must_have_open: None }
    }
}

/// The holders of locks on these files. On overlayfs and btrfs, `stat` names another device than `/proc/locks`, which
/// names the mounted one. There, several files of one mount may have the same inode number.
fn of_files(
    locks: &str,
    mounts: &[Mount],
    locked: &[(String, String)],
    stat: &[Option<Metadata>],
) -> Vec<Candidate> {
    let held = parse::locks(locks);
    let mut candidates = Vec::new();
    for (found, (path, resource)) in stat.iter().zip(locked) {
        let Some(found) = found else { continue };
        let device = parse::device(found.device);
        let mounted = parse::device_of(mounts, path).filter(|mounted| *mounted != device);
        // LVM commands that only read hold a shared lock for a moment. That doesn't affect a change.
        for lock in held.iter().filter(|lock| lock.exclusive || !path.starts_with(LVM_LOCKS)) {
            let is_it = lock.is_on(device, found.inode);
            if is_it || mounted.is_some_and(|mounted| lock.is_on(mounted, found.inode)) {
                let holder = Holder { resource: resource.clone(), pid: lock.pid, ..Holder::default() };
                let must_have_open = (!is_it).then(|| path.clone());
                candidates.push(Candidate { must_have_open, ..Candidate::certain(holder) });
            }
        }
    }
    candidates
}

/// Drops the candidates that don't have the file open. A process whose open files or path can't be seen stays, since
/// its lock is on a file with that number in that mount.
async fn confirmed(target: &Target, candidates: Vec<Candidate>) -> Vec<Candidate> {
    let question = |candidate: &Candidate| {
        let directory = format!("/proc/{}/fd", candidate.holder.pid?);
        let file = candidate.must_have_open.as_deref()?;
        Some(command("find", &["-L", &directory, "-maxdepth", "1", "-samefile", file]))
    };
    let questions: Vec<_> = candidates.iter().map(question).collect();
    let asked: Vec<_> = questions.iter().flatten().cloned().collect();
    let mut answers = target.run_all(&asked).await.into_iter();
    let has_it_open = |question: Option<Command>| {
        let answer = question.and_then(|_| answers.next());
        !matches!(answer, Some(Ok(answer)) if answer.exit_code == 0 && answer.stdout.is_empty())
    };
    let open: Vec<_> = questions.into_iter().map(has_it_open).collect();
    candidates.into_iter().zip(open).filter_map(|(candidate, open)| open.then_some(candidate)).collect()
}

fn of_editors(
    beside: &EditorFiles,
    exists: bool,
    swap: Option<&Result<Vec<u8>, Problem>>,
    link: Option<&str>,
) -> Vec<Candidate> {
    let mut candidates = Vec::new();
    let look = format!("ls -la {}", beside.swap);
    match swap {
        Some(Ok(swap)) => candidates
            .extend(parse::swap_pid(swap).map(|pid| Candidate::living(beside.file.clone(), pid, EDITORS))),
        // The file belongs to another account, and it can't be seen whether that account still edits it.
        _ if exists => candidates.push(Candidate::certain(Holder {
            resource: beside.file.clone(),
            process: Some(format!("an editor, by its swap file {}", beside.swap)),
            look: Some(look),
            ..Holder::default()
        })),
        _ => {}
    }
    candidates.extend(
        link.and_then(parse::emacs_pid).map(|pid| Candidate::living(beside.file.clone(), pid, EDITORS)),
    );
    candidates
}

fn of_systemd(state: &str, jobs: &str, affected: &[String]) -> Option<Holder> {
    if state.trim() == "stopping" {
        let process = Some("systemd, which is shutting the machine down".to_owned());
        let look = Some("systemctl list-jobs".to_owned());
        return Some(Holder {
            resource: "systemd".to_owned(),
            process,
            look,
            pid: Some(1),
            ..Holder::default()
        });
    }
    let is_affected = |job: &Job| {
        affected.iter().any(|unit| *unit == job.unit || job.unit.strip_suffix(".service") == Some(unit))
    };
    let job = parse::jobs(jobs).into_iter().find(is_affected)?;
    Some(Holder {
        resource: job.unit.clone(),
        process: Some(format!("systemd, with job {} ({})", job.id, job.kind)),
        look: Some(format!("systemctl list-jobs -- {}", job.unit)),
        ..Holder::default()
    })
}

/// Looks at all processes at once, and returns the first that holds a resource.
async fn first_living(
    looking: &LockReader<'_>,
    candidates: Vec<Candidate>,
    booted: Option<i64>,
) -> Option<Holder> {
    let pids: Vec<u32> = candidates.iter().filter_map(|candidate| candidate.holder.pid).collect();
    let directories: Vec<_> = pids.iter().map(|pid| format!("/proc/{pid}")).collect();
    let paths: Vec<_> = directories.iter().map(|directory| format!("{directory}/stat")).collect();
    let (stat, contents) = match pids.is_empty() {
        true => Default::default(),
        false => (looking.stat(&directories).await, looking.read(&paths, 4096).await),
    };
    let mut processes = stat.into_iter().zip(contents);
    for Candidate { mut holder, only, must_have_open } in candidates {
        let process = holder.pid.and_then(|_| processes.next());
        let process = process.and_then(|(found, stat)| Some((found?.owner, parse::process(&stat.ok()?)?)));
        let known = process.as_ref().map(|(_, process)| process.name.as_str());
        let is_one = |only: &[&str]| known.is_some_and(|name| only.iter().any(|one| name.starts_with(one)));
        let is_gone = must_have_open.is_some() && holder.pid.is_some() && process.is_none();
        if is_gone || only.is_some_and(|only| !is_one(only)) {
            continue;
        }
        if let Some((owner, process)) = process {
            holder.since = booted.and_then(|booted| process.since(booted));
            holder.user = Some(owner);
            holder.look = holder.look.or_else(|| holder.pid.map(|pid| look_at(pid, &process.name)));
            holder.process = Some(process.name);
        }
        if let Some(pid) = holder.pid {
            (holder.command, holder.unit) = command_and_unit(looking, pid).await;
        }
        return Some(holder);
    }
    None
}

/// The command line of a process, and the unit that it belongs to.
async fn command_and_unit(looking: &LockReader<'_>, pid: u32) -> (Option<String>, Option<String>) {
    let paths = ["cmdline", "cgroup"].map(|name| format!("/proc/{pid}/{name}"));
    let mut texts = looking.read(&paths, 4096).await.into_iter().map(|text| {
        text.ok().map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).filter(|text| !text.is_empty())
    });
    let mut next = || texts.next().flatten();
    let command = next().map(|words| excerpt(words.trim_end_matches('\0').replace('\0', " ").as_str(), 200));
    (command, next().and_then(|cgroup| parse::unit(&cgroup)))
}

fn look_at(pid: u32, name: &str) -> String {
    // The kernel keeps 15 characters of a process's name.
    match name {
        name if name.starts_with("unattended-upgr") => {
            "tail -f /var/log/unattended-upgrades/unattended-upgrades.log".to_owned()
        }
        name if name.starts_with("apt") || name.starts_with("dpkg") => "tail -f /var/log/dpkg.log".to_owned(),
        name if name.starts_with("dnf") => "tail -f /var/log/dnf.log".to_owned(),
        _ => format!("ps -o pid,user,etime,args -p {pid}"),
    }
}

fn problem(holder: Holder) -> Problem {
    let Holder { resource, pid, process, command, unit, user, since, look } = holder;
    let who = match (&process, pid) {
        (Some(process), Some(pid)) => format!("{process} (process {pid})"),
        (Some(process), None) => process.clone(),
        (None, Some(pid)) => format!("process {pid}"),
        (None, None) => "a process that can't be seen from here".to_owned(),
    };
    let mut info = Map::new();
    info.insert("resource".to_owned(), Value::from(resource.clone()));
    let members = [
        ("held_by_process", process.map(Value::from)),
        ("held_by_pid", pid.map(Value::from)),
        ("held_by_command", command.map(Value::from)),
        ("held_by_unit", unit.map(Value::from)),
        ("held_by_user", user.map(Value::from)),
        ("held_since", since.map(Value::from)),
    ];
    info.extend(members.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))));
    let message = format!("{resource} is held by {who}: expected nobody to be using it");
    let mut problem = Problem::new("RESOURCE_LOCKED", Category::Lock, message)
        .detail("lock_info", Value::Object(info))
        .remedy("Wait until it is finished, then apply the plan again.");
    if let Some(look) = look {
        problem = problem.remedy(format!("See how far it is: {look}"));
    }
    match pid {
        Some(pid) if pid > 1 => problem.remedy(format!(
            "If stuck, consider: sudo kill {pid} (verify the process is safe to terminate first)"
        )),
        _ => problem,
    }
}

#[cfg(test)]
mod tests;
