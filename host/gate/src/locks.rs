//! Who holds what a plan is about to change: asked before its first step, so that a plan is not stopped half-way by a
//! package manager that is at work, or loses what somebody is typing into a file.
//!
//! Nothing is waited for and nobody is stopped. What can't be looked at counts as free: the programs take their own
//! locks, and say so.

mod parse;

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join3;
use serde_json::{Map, Value};

use host_base::problem::{Category, Problem};
use host_base::{Command, Keep, Output, Privilege};
use host_capability::Access;
use host_target::{Metadata, PathCheck, ReadRequest, Target};
use parse::{Job, Mount};

const TIMEOUT: Duration = Duration::from_secs(10);
/// Of `/proc/locks`, and of everything else that is read.
const MOST_BYTES: u64 = 1 << 20;
/// Processes that are looked at for one resource.
const MOST_HOLDERS: usize = 16;

/// Of dpkg, rpm and apk, as far as they are on the target: the file whose lock is the database's.
const PACKAGE_LOCKS: &[&str] = &[
    "/var/lib/dpkg/lock-frontend",
    "/var/lib/dpkg/lock",
    "/usr/lib/sysimage/rpm/.rpm.lock",
    "/var/lib/rpm/.rpm.lock",
    "/lib/apk/db/lock",
];
/// What dnf and zypper write their number into.
const PACKAGE_PIDS: &[&str] =
    &["/run/dnf.pid", "/run/yum.pid", "/var/lib/dnf/rpmdb_lock.pid", "/run/zypp.pid"];
/// Who may have written it: a number may long be another process's.
const PACKAGE_PROGRAMS: &[&str] =
    &["dnf", "yum", "microdnf", "packagekitd", "python", "platform-python", "zypper"];
/// pacman's: there is one while it works, or where it was cut off, and then it refuses to begin.
const PACKAGE_MARK: &str = "/var/lib/pacman/db.lck";
/// Locks, what began when the machine was started, and what is mounted where.
const KERNELS: &[&str] = &["/proc/locks", "/proc/stat", "/proc/self/mountinfo"];
const LVM_LOCKS: &str = "/run/lock/lvm";
/// Names of processes that have a swap file or a lock file beside what they edit.
const EDITORS: &[&str] =
    &["vi", "gvi", "nvi", "nvim", "nano", "rnano", "emacs", "view", "ex", "rvi", "mg", "vim"];

/// What a plan needs for itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lock {
    /// Of the package managers that there are: dpkg's, rpm's, apk's, pacman's.
    PackageDatabase,
    /// The units that the plan touches: no other job of systemd's may be under way for them.
    Systemd,
    /// The metadata of volume groups.
    Lvm,
    /// A file that is written to; absolute.
    File(String),
    /// Something that only plans hold. One plan at a time runs on a target anyway, so there is nothing to look at.
    Named(String),
}

/// Somebody has it.
#[derive(Debug, Default, PartialEq)]
struct Holder {
    resource: String,
    pid: Option<u32>,
    process: Option<String>,
    user: Option<String>,
    since: Option<String>,
    /// How to see what it is doing.
    look: Option<String>,
}

/// A problem (`RESOURCE_LOCKED`, status `blocked`, with `lock_info`) where somebody holds one of the locks. `affected`
/// names the units that the plan touches.
pub async fn check(target: &Target, locks: &[Lock], affected: &[String]) -> Result<(), Problem> {
    match holder(target, locks, affected).await {
        Some(holder) => Err(problem(holder)),
        None => Ok(()),
    }
}

/// Reads what it is asked to and nothing else, as the caller.
struct Looking<'a> {
    target: &'a Target,
    access: Access,
}

impl Looking<'_> {
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
    Command {
        program: program.to_owned(),
        args: args.iter().map(|arg| (*arg).to_owned()).collect(),
        env: Vec::new(),
        stdin: None,
        privilege: Privilege::Caller,
        timeout: TIMEOUT,
        keep: Keep::Head,
        heard: None,
    }
}

/// What is beside a file that somebody edits.
struct Beside {
    file: String,
    /// Of vim and nano.
    swap: String,
    /// Of emacs: a link.
    link: String,
}

impl Beside {
    fn of(file: &str) -> Option<Self> {
        let (directory, name) = file.rsplit_once('/')?;
        let beside = |prefix: &str, suffix: &str| format!("{directory}/{prefix}{name}{suffix}");
        Some(Self { file: file.to_owned(), swap: beside(".", ".swp"), link: beside(".#", "") })
    }
}

/// The first that is found.
async fn holder(target: &Target, locks: &[Lock], affected: &[String]) -> Option<Holder> {
    if locks.iter().all(|lock| matches!(lock, Lock::Named(_))) {
        return None;
    }
    let access = Access { privilege: Privilege::Caller, verbs: Vec::new() };
    let looking = Looking { target, access };
    let files: Vec<_> = locks
        .iter()
        .filter_map(|lock| if let Lock::File(path) = lock { Some(path.clone()) } else { None })
        .collect();
    let files = real(target, files, &looking.access).await;
    let beside: Vec<_> = files.iter().filter_map(|file| Beside::of(file)).collect();

    // (path, what it is the lock of)
    let mut locked: Vec<(String, String)> = files.iter().map(|file| (file.clone(), file.clone())).collect();
    let mut pid_files: Vec<String> = Vec::new();
    if locks.contains(&Lock::PackageDatabase) {
        let name = |path: &&str| ((*path).to_owned(), format!("package database ({path})"));
        locked.extend(PACKAGE_LOCKS.iter().map(name));
        pid_files.extend(PACKAGE_PIDS.iter().map(|path| (*path).to_owned()));
    }
    if locks.contains(&Lock::Lvm) {
        let directory = LVM_LOCKS.to_owned();
        let names = target.list_dir(directory.clone(), &looking.access, Looking::check(&[directory])).await;
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
    let has_mark = locks.contains(&Lock::PackageDatabase);
    stated.extend(has_mark.then(|| PACKAGE_MARK.to_owned()));
    let mut read: Vec<_> = KERNELS.iter().map(|path| (*path).to_owned()).collect();
    read.extend(pid_files.iter().cloned());
    read.extend(swaps);
    let mut commands: Vec<_> =
        beside.iter().map(|beside| command("readlink", &["--", &beside.link])).collect();
    if locks.contains(&Lock::Systemd) {
        commands.push(command("systemctl", &["is-system-running"]));
        commands.push(command("systemctl", &["list-jobs", "--no-legend", "--plain"]));
    }
    let (stat, contents, outputs) =
        join3(looking.stat(&stated), looking.read(&read, MOST_BYTES), target.run_all(&commands)).await;
    let text = |at: usize| {
        contents.get(at).and_then(|found| found.as_ref().ok()).map(|all| String::from_utf8_lossy(all))
    };
    let said = |at: usize| outputs.get(at).and_then(|output: &Result<Output, Problem>| output.as_ref().ok());

    if locks.contains(&Lock::Systemd) {
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

/// Where links lead, of those that can be followed: whether the module may ask was seen of the same places.
async fn real(target: &Target, files: Vec<String>, access: &Access) -> Vec<String> {
    let resolved = target.resolve(files, access).await;
    resolved.into_iter().filter_map(|resolved| Some(resolved.ok()?.path)).collect()
}

/// Somebody who may have it.
struct Candidate {
    holder: Holder,
    /// It holds nothing unless the process lives, and is one of these.
    only: Option<&'static [&'static str]>,
    /// It may hold another file of this one's number: this one only if it has it open.
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

/// On overlayfs and btrfs `stat` names another device than `/proc/locks` does, which names the one that is mounted, and
/// there several files of one mount may have the same number.
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
        // Reading commands of LVM share a lock for moments; they don't mind a change, nor does it mind them.
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

/// Without those that don't have open what they would have to. Whose open files can't be seen, or who can't be named,
/// stays: its lock is on a file of that number in that mount.
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
    beside: &Beside,
    exists: bool,
    swap: Option<&Result<Vec<u8>, Problem>>,
    link: Option<&str>,
) -> Vec<Candidate> {
    let mut candidates = Vec::new();
    let look = format!("ls -la {}", beside.swap);
    match swap {
        Some(Ok(swap)) => candidates
            .extend(parse::swap_pid(swap).map(|pid| Candidate::living(beside.file.clone(), pid, EDITORS))),
        // It is another account's: whether that one still edits the file isn't to be seen.
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

/// Looks at all processes at once, and takes the first that holds something.
async fn first_living(
    looking: &Looking<'_>,
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
        return Some(holder);
    }
    None
}

fn look_at(pid: u32, name: &str) -> String {
    // The kernel keeps 15 characters of a name.
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
    let Holder { resource, pid, process, user, since, look } = holder;
    let who = match (&process, pid) {
        (Some(process), Some(pid)) => format!("{process} (process {pid})"),
        (Some(process), None) => process.clone(),
        (None, Some(pid)) => format!("process {pid}"),
        (None, None) => "a process that isn't to be seen from here".to_owned(),
    };
    let mut info = Map::new();
    info.insert("resource".to_owned(), Value::from(resource.clone()));
    let members = [
        ("held_by_process", process.map(Value::from)),
        ("held_by_pid", pid.map(Value::from)),
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
