//! What is wrong with a unit that no profile knows: its state, how its last run ended, what it wrote, and which of the things
//! that it names are as it says now. What has been repaired since is not blamed.

pub(crate) mod access;
mod log_signs;

use linux_sysadmin_sdk::listening::{self, Socket};
use linux_sysadmin_sdk::processes::command_line;
use linux_sysadmin_sdk::{prelude::*, processes};

use crate::ports::declared::holders;
use crate::profile::recent_errors::{self, RepeatedMessage};
use crate::systemd::exit_status::{exit_code_means, exit_status, has_failed};
use crate::systemd::properties::{self, Properties};
use crate::systemd::{journal, systemctl, unit, unit_name};
use access::{Access, Account};

/// The number of kinds of lines that are told.
const LINES: usize = 10;

/// A unit is restarted again and again from this many restarts on.
const OFTEN: u64 = 3;

/// The part of its memory limit, in percent, from which on a unit is short of memory.
const NEARLY_FULL: u64 = 90;

/// The most units that are looked at for what a unit waits for.
const AROUND: usize = 50;

/// The findings about a unit.
#[derive(Debug, Default, Serialize)]
pub(crate) struct UnitTrouble {
    service: String,
    active_state: String,
    sub_state: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_signal: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    restarts: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    unit_file: Option<String>,
    /// The command that it starts, without secrets.
    #[serde(skip_serializing_if = "Option::is_none")]
    exec_start: Option<String>,
    /// The account that it runs as.
    #[serde(skip_serializing_if = "Option::is_none")]
    user: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    main_process: Option<processes::Process>,
    #[serde(skip_serializing_if = "Option::is_none")]
    memory_mb: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    memory_limit_mb: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tasks: Option<u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    listens: Vec<String>,
    /// The causes that the evidence supports now. Those that the unit can't start without come first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    causes: Vec<Cause>,
    /// What its log blames and what is as it should be by now.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    mended: Vec<String>,
    /// The lines of its journal, the latest kind first. Lines that differ in numbers only are told once.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    last_lines: Vec<RepeatedMessage>,
}

#[derive(Debug, Serialize, PartialEq, Eq)]
struct Cause {
    cause: String,
    evidence: String,
    /// The call that helps.
    next: String,
}

pub(crate) fn grants() -> [CommandGrant; 2] {
    [
        access::STAT
            .read("whether a service reaches the files that its log names, never what is in them")
            .as_root_if_available(),
        access::GROUPS.read("the groups of the account that a service runs as"),
    ]
}

/// Finds out what is wrong with a unit.
pub(crate) fn troubleshoot(unit: &str, cx: &Context) -> Result<Analysis<UnitTrouble>> {
    let [shown, journal, sockets] = cx.run_each([
        systemctl::TROUBLE.with([unit]),
        journal::command(&[unit.to_owned()], false, None),
        listening::command(),
    ]);
    let shown = systemctl::answer(shown)?;
    let units = properties::parse(&shown);
    let [found] = units.as_slice() else { return Err(Problem::unexpected("systemctl show", &shown)) };
    let state = found.text("ActiveState").unwrap_or_default();
    if found.text("LoadState") == Some("not-found") && state == "inactive" {
        return Err(unit::unknown(unit, cx));
    }
    let id = found.text("Id").unwrap_or(unit);
    let printed = journal::printed(&journal);
    let sockets = sockets.map(|output| listening::parse(&output.text())).unwrap_or_default();
    let mut trouble = described(id, found, cx);
    trouble.last_lines = recent_errors::kinds_of_lines(&printed, LINES);
    trouble.listens = own_sockets(id, found, &sockets, cx);

    let mut look = Look { unit: found, service: unit_name::short(id), sockets: &sockets, cx, trouble };
    look.loading();
    look.resources();
    look.dependencies();
    if has_failed(found) || !matches!(state, "active" | "reloading" | "refreshing") {
        let lines = journal::last_output(&printed, id, found.text("InvocationID"));
        look.end_of_the_last_run();
        look.lines(&lines);
    }
    let data = look.trouble;
    Ok(Analysis { summary: summary(&data), severity: severity(&data), data })
}

/// The facts about the unit.
fn described(id: &str, unit: &Properties<'_>, cx: &Context) -> UnitTrouble {
    let (exit_code, exit_signal) = exit_status(unit);
    let pid = unit.number("MainPID").and_then(|pid| u32::try_from(pid).ok()).filter(|pid| *pid > 0);
    let mebibytes = |key: &str| unit.number(key).map(|bytes| bytes >> 20);
    UnitTrouble {
        service: unit_name::short(id).to_owned(),
        active_state: unit.string("ActiveState").unwrap_or_default(),
        sub_state: unit.string("SubState").unwrap_or_default(),
        result: unit.string("Result").filter(|result| result != "success"),
        exit_code,
        exit_signal,
        restarts: unit.number("NRestarts").filter(|count| *count > 0),
        unit_file: unit.string("FragmentPath"),
        exec_start: exec_start(unit),
        user: unit.string("User"),
        main_process: pid
            .and_then(|pid| processes::by_pid(cx, [pid]).remove(&pid))
            .map(|found| found.process),
        memory_mb: mebibytes("MemoryCurrent"),
        memory_limit_mb: mebibytes("MemoryMax"),
        tasks: unit.number("TasksCurrent"),
        ..UnitTrouble::default()
    }
}

/// The command line of a unit, without secrets, of `{ path=/bin/a ; argv[]=/bin/a -b ; ignore_errors=no ; … }`.
pub(crate) fn exec_start(unit: &Properties<'_>) -> Option<String> {
    let (_, rest) = unit.text("ExecStart")?.split_once("argv[]=")?;
    let (line, _) = rest.rsplit_once(" ; ignore_errors=")?;
    command_line::shown(&line.replace(' ', "\0"))
}

/// The program of a unit. Its path stands in the calls that are told, so that it has to be a plain one.
fn program(unit: &Properties<'_>) -> Option<String> {
    let (_, rest) = unit.text("ExecStart")?.split_once("path=")?;
    let (path, _) = rest.split_once(" ; ")?;
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-+@%:".contains(&byte);
    (path.starts_with('/') && path.bytes().all(is_plain)).then(|| path.to_owned())
}

/// The sockets on which processes of the unit listen.
fn own_sockets(id: &str, unit: &Properties<'_>, sockets: &[Socket], cx: &Context) -> Vec<String> {
    if unit.number("MainPID").is_none_or(|pid| pid == 0) {
        return Vec::new();
    }
    let pids = sockets.iter().flat_map(|socket| &socket.processes);
    let found = processes::by_pid(cx, pids.filter_map(|(_, pid)| u32::try_from(*pid).ok()));
    let is_its = |(_, pid): &(String, u64)| {
        let known = u32::try_from(*pid).ok().and_then(|pid| found.get(&pid));
        known.is_some_and(|found| found.process.unit.as_deref() == Some(id))
    };
    let own = sockets.iter().filter(|socket| socket.processes.iter().any(is_its));
    let mut shown: Vec<String> =
        own.map(|socket| format!("{} {}", socket.protocol(), socket.shown())).collect();
    shown.sort();
    shown.dedup();
    shown
}

/// One look at a unit, which collects causes.
struct Look<'a> {
    unit: &'a Properties<'a>,
    service: &'a str,
    sockets: &'a [Socket],
    cx: &'a Context,
    trouble: UnitTrouble,
}

impl Look<'_> {
    fn blame(&mut self, cause: impl Into<String>, evidence: impl Into<String>, next: impl Into<String>) {
        let cause = Cause { cause: cause.into(), evidence: evidence.into(), next: next.into() };
        if !self.trouble.causes.contains(&cause) {
            self.trouble.causes.push(cause);
        }
    }

    /// Tells what is as it should be by now. A service that tries several times says so each time.
    fn mend(&mut self, mended: String) {
        if !self.trouble.mended.contains(&mended) {
            self.trouble.mended.push(mended);
        }
    }

    /// What keeps systemd from starting the unit at all.
    fn loading(&mut self) {
        let service = self.service;
        if let Some(error) = self.unit.load_error() {
            self.blame("its unit file can't be loaded", error, format!("svc_show service={service}"));
        }
        if self.unit.text("LoadState") == Some("masked") {
            self.blame("it is masked", "LoadState=masked", format!("svc_unmask service={service}"));
        }
        for (name, time) in [("ConditionResult", "ConditionTimestamp"), ("AssertResult", "AssertTimestamp")] {
            if self.unit.text(time).is_some() && self.unit.text(name) == Some("no") && !self.runs() {
                let evidence = format!("{name}=no");
                self.blame(
                    "a condition of its unit file isn't met",
                    evidence,
                    format!("svc_show service={service}"),
                );
            }
        }
    }

    fn runs(&self) -> bool {
        matches!(self.unit.text("ActiveState"), Some("active" | "reloading" | "refreshing"))
    }

    fn resources(&mut self) {
        let service = self.service;
        let [used, limit] = ["MemoryCurrent", "MemoryMax"].map(|key| self.unit.number(key));
        let is_short = |(used, limit): &(u64, u64)| *limit > 0 && used / (limit / 100).max(1) >= NEARLY_FULL;
        if let Some((used, limit)) = used.zip(limit).filter(is_short) {
            let evidence = format!("{} MiB of {} MiB", used >> 20, limit >> 20);
            self.blame(
                "its memory is nearly used up",
                evidence,
                format!("svc_set_limits service={service} memory_max=<size>"),
            );
        }
        let [used, limit] = ["TasksCurrent", "TasksMax"].map(|key| self.unit.number(key));
        if let Some((used, limit)) = used.zip(limit).filter(|(used, limit)| used >= limit) {
            let evidence = format!("{used} of {limit} tasks");
            self.blame(
                "it may not start more tasks",
                evidence,
                format!("svc_set_limits service={service} tasks_max=<number>"),
            );
        }
        let restarts = self.unit.number("NRestarts").unwrap_or_default();
        if restarts >= OFTEN && has_failed(self.unit) {
            let evidence = format!("{restarts} restarts");
            self.blame("it is restarted again and again", evidence, format!("svc_logs service={service}"));
        }
    }

    /// The units that it needs and that don't run, and those that it waits for.
    fn dependencies(&mut self) {
        if self.runs() {
            return;
        }
        let names = |keys: &[&str]| -> Vec<String> {
            let names = keys.iter().flat_map(|key| self.unit.words(key));
            let mut names: Vec<String> = names
                .filter(|name| !name.ends_with(".slice") && !name.ends_with(".target"))
                .filter(|name| unit_name::full(name).is_ok_and(|full| full == *name))
                .collect();
            names.sort();
            names.dedup();
            names.truncate(AROUND);
            names
        };
        let needed = names(&["Requires", "Requisite", "BindsTo"]);
        let after = names(&["After"]);
        let mut all: Vec<&String> = needed.iter().chain(&after).collect();
        all.sort();
        all.dedup();
        if all.is_empty() {
            return;
        }
        let shown = systemctl::answer(self.cx.run(systemctl::ACTIVE.with(all))).unwrap_or_default();
        let state = |unit: &Properties<'_>| Some((unit.string("Id")?, unit.string("ActiveState")?));
        let states: Vec<(String, String)> = properties::parse(&shown).iter().filter_map(state).collect();
        for (name, state) in states {
            let short = unit_name::short(&name).to_owned();
            let next = format!("svc_troubleshoot service={short}");
            if needed.contains(&name) && state == "failed" {
                self.blame(format!("it needs {short}, which has failed"), format!("{name} is {state}"), next);
            } else if after.contains(&name) && state == "activating" {
                self.blame(format!("it waits until {short} is up"), format!("{name} is {state}"), next);
            }
        }
    }

    /// How the last run ended, by systemd's own words.
    fn end_of_the_last_run(&mut self) {
        let service = self.service;
        let code = self.trouble.exit_code;
        match code {
            Some(203) => return self.program(),
            Some(217) if Account::find(self.unit.text("User"), self.cx).is_some() => {
                return self.mend("the account that was missing is there now".to_owned());
            }
            _ => {}
        }
        if let Some((code, means)) = code.and_then(|code| Some((code, exit_code_means(code)?))) {
            self.blame(means, format!("exit code {code}"), format!("svc_show service={service}"));
        }
        match self.unit.text("Result") {
            Some("oom-kill") => self.blame(
                "the kernel ended it for lack of memory",
                "Result=oom-kill",
                format!("svc_set_limits service={service} memory_max=<size>"),
            ),
            Some("timeout") => self.blame(
                "it took longer to start or to stop than its unit allows",
                "Result=timeout",
                format!("svc_show service={service}"),
            ),
            Some("watchdog") => self.blame(
                "it didn't answer its watchdog in time",
                "Result=watchdog",
                format!("svc_logs service={service}"),
            ),
            Some("core-dump") => {
                self.blame("it crashed", "Result=core-dump", format!("svc_logs service={service}"))
            }
            _ => {}
        }
    }

    /// systemd couldn't run the program: it isn't there, or the account may not execute it.
    fn program(&mut self) {
        let next = format!("svc_show service={}", self.service);
        let account = Account::find(self.unit.text("User"), self.cx);
        let Some((program, account)) = program(self.unit).zip(account) else {
            return self.blame("its program can't be run", "exit code 203", next);
        };
        match access::check(std::slice::from_ref(&program), &account, self.cx).pop() {
            Some(Access::Missing) => {
                self.blame("its program isn't there", format!("there is no {program}"), next)
            }
            Some(Access::Denied(why)) => self.blame(
                "its account may not run its program",
                why,
                format!("perms_check path={program} user={}", account.name),
            ),
            Some(Access::Readable { can_execute: false, shown, .. }) => {
                self.blame(
                    "its program isn't executable",
                    shown,
                    format!("perms_set path={program} mode=<mode>"),
                );
            }
            Some(Access::Readable { .. }) => {
                self.mend(format!("{program} is there now and can be run"));
            }
            _ => self.blame("its program can't be run", "exit code 203", next),
        }
    }

    /// The lines that it wrote last, each held against what is there now.
    fn lines(&mut self, lines: &[String]) {
        for line in lines {
            for sign in log_signs::signs(line) {
                self.blame(sign.means, line.clone(), sign.next.replace("{service}", self.service));
            }
            self.port_in_use(line);
            self.port_refused(line);
        }
        let named = log_signs::paths(lines);
        let Some(account) = Account::find(self.unit.text("User"), self.cx).filter(|_| !named.is_empty())
        else {
            return;
        };
        let paths: Vec<String> = named.iter().map(|(path, _)| path.clone()).collect();
        for ((path, line), access) in named.into_iter().zip(access::check(&paths, &account, self.cx)) {
            let check = format!("perms_check path={path} user={}", account.name);
            match access {
                Access::Missing => {
                    self.blame(format!("there is no {path}"), line, format!("file_stat path={path}"))
                }
                Access::Denied(why) => self.blame(format!("{} can't use {path}", account.name), why, check),
                Access::Readable { can_write: false, shown, .. }
                    if line.to_lowercase().contains("denied") =>
                {
                    let cause = format!("{} may read {path} and not write to it", account.name);
                    self.blame(cause, shown, check);
                }
                Access::Readable { .. } => {
                    self.mend(format!("{path} is there now, and {} can use it", account.name));
                }
                Access::Unknown => {}
            }
        }
    }

    fn port_in_use(&mut self, line: &str) {
        let Some(port) = log_signs::port_in_use(line) else { return };
        let held: Vec<&Socket> = self.sockets.iter().filter(|socket| socket.port == port).collect();
        if held.is_empty() {
            return self.mend(format!("port {port} is free now"));
        }
        let cause = format!("another program has port {port}");
        self.blame(cause, holders(&held, self.cx), format!("net_connections port={port}"));
    }

    fn port_refused(&mut self, line: &str) {
        let Some(port) = log_signs::port_refused(line) else { return };
        if self.sockets.iter().any(|socket| socket.port == port) {
            return self.mend(format!("something listens on port {port} now"));
        }
        let cause = format!("it needs port {port} of this machine, where nothing listens");
        self.blame(cause, line.to_owned(), format!("svc_port_audit, net_connections port={port}"));
    }
}

fn summary(data: &UnitTrouble) -> String {
    let state = match data.active_state.as_str() {
        "failed" => "has failed".to_owned(),
        state => format!("is {state}"),
    };
    let service = &data.service;
    match (data.causes.as_slice(), data.mended.first()) {
        ([], None) => format!("{service} {state}: no cause is known; last_lines has what it wrote"),
        ([], Some(mended)) => {
            format!("{service} {state}: what its log blames is mended ({mended}); start it again")
        }
        ([first, others @ ..], _) => {
            let more = match others.len() {
                0 => String::new(),
                1 => ", and one other cause is possible".to_owned(),
                count => format!(", and {count} other causes are possible"),
            };
            format!("{service} {state}: {}{more}", first.cause)
        }
    }
}

fn severity(data: &UnitTrouble) -> Severity {
    match (data.active_state.as_str(), data.causes.is_empty()) {
        ("failed" | "activating", false) => Severity::Critical,
        ("failed" | "activating", true) => Severity::High,
        (_, false) | ("inactive", true) => Severity::Warning,
        (_, true) => Severity::Info,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_whose_path_reads_as_several_arguments_is_in_no_call() {
        for (path, expected) in [("/opt/a/run-1.sh", Some("/opt/a/run-1.sh")), ("/opt/a mode=777", None)] {
            let shown =
                format!("Id=a.service\nExecStart={{ path={path} ; argv[]={path} ; ignore_errors=no }}\n");
            let units = properties::parse(&shown);
            assert_eq!(program(&units[0]).as_deref(), expected, "{path}");
        }
    }
}
