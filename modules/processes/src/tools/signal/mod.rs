//! `proc_signal`: ends processes, or sends them a signal.
//!
//! The host itself looks at each process once more and sends the signal to that process only, see `signal-processes` in
//! `wit/confirm.wit`. The tool refuses earlier what it can explain better: a unit's main process, a thread, a zombie.

mod number;
mod outcome;
mod process;

use linux_sysadmin_sdk::prelude::*;
use linux_sysadmin_sdk::{Category, Privilege, ProcessSignal, SignalTarget, text::excerpt};

use schemars::{Schema, SchemaGenerator, json_schema};

use number::Signal;
use outcome::Outcome;
pub(crate) use process::MAIN_PROCESSES;
use process::Process;

/// The most processes of one call.
const MOST: usize = 100;
/// The largest process id of Linux.
const LARGEST: i64 = 1 << 22;
/// The seconds that are waited unless the caller says otherwise.
const WAIT: u32 = 10;
/// The most seconds that are waited.
const LONGEST: u32 = 300;

/// One process or several.
#[derive(Deserialize)]
#[serde(untagged)]
enum Pids {
    One(i64),
    Several(Vec<i64>),
}

/// A name or a number.
#[derive(Deserialize)]
#[serde(untagged)]
enum Given {
    Number(i64),
    Name(String),
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Args {
    /// One process id or several
    #[schemars(schema_with = "pids")]
    pid: Pids,
    /// Its start, as answered
    started: Option<String>,
    /// Default TERM, then KILL
    #[schemars(schema_with = "name_or_number")]
    #[serde(default)]
    signal: Option<Given>,
    /// Until KILL; default 10
    wait_seconds: Option<u32>,
    /// Descendants too
    tree: Option<bool>,
}

/// These schemas are shorter than those of the types.
fn pids(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": ["integer", "array"], "items": {"type": "integer"}})
}

fn name_or_number(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": ["string", "integer"]})
}

/// The order as the caller gave it, checked.
struct Order {
    pids: Vec<u32>,
    started: Option<String>,
    signal: Signal,
    /// True where SIGKILL follows.
    kill: bool,
    wait_seconds: u32,
    tree: bool,
}

pub(crate) fn proc_signal(args: Args, cx: &Context) -> Result<Noted<Outcome>> {
    let order = args.checked()?;
    let found = process::read(cx, &order.pids);
    let mut notes = Vec::new();
    let mut meant = Vec::new();
    for (pid, found) in order.pids.iter().zip(found) {
        match found {
            None => notes.push(format!("{pid} had ended before")),
            Some(process) => {
                process.check(order.started.as_deref())?;
                meant.push(process);
            }
        }
    }
    if meant.is_empty() {
        let pids: Vec<String> = order.pids.iter().map(u32::to_string).collect();
        let message = format!("there is no process {}", pids.join(", "));
        return Err(Problem::not_found("PROCESS_NOT_FOUND", message)
            .remedy("proc_list shows the processes that there are"));
    }
    process::check_main(cx, &meant, order.signal)?;
    let applied = cx.apply(order.plan(&meant, cx)?)?;
    let outcome = Outcome::new(meant, order.signal, &applied);
    notes.extend(outcome.notes(order.kill));
    Ok(Noted { data: outcome, notes })
}

impl Args {
    fn checked(self) -> Result<Order> {
        let given = match self.pid {
            Pids::One(pid) => vec![pid],
            Pids::Several(pids) => pids,
        };
        if given.is_empty() || given.len() > MOST {
            let message = format!("{} processes are named: expected 1 to {MOST}", given.len());
            return Err(Problem::validation("INVALID_PID", message));
        }
        let mut pids: Vec<u32> = Vec::new();
        for pid in given {
            let number = u32::try_from(pid).ok().filter(|_| (1..=LARGEST).contains(&pid));
            let Some(number) = number else {
                let message = format!("{pid} is no process: expected a process id, 1 to {LARGEST}");
                return Err(Problem::validation("INVALID_PID", message)
                    .remedy("Name each process by itself; groups of processes have no numbers here"));
            };
            if number == 1 {
                let message = "1 is the first process, on which all others depend: it gets no signal";
                return Err(Problem::new("PROTECTED_PROCESS", Category::Denied, message));
            }
            if !pids.contains(&number) {
                pids.push(number);
            }
        }
        if self.started.is_some() && pids.len() != 1 {
            let message = "started is of one process: expected one pid with it";
            return Err(Problem::validation("INVALID_START", message));
        }
        if let Some(started) = self.started.as_deref().filter(|started| process::second(started).is_none()) {
            let started = excerpt(started, 40);
            let message = format!(
                "started is {started:?}: expected it as answers show it, such as 2026-01-31T09:30:00Z"
            );
            return Err(Problem::validation("INVALID_START", message));
        }
        let kill = self.signal.is_none();
        let signal = match self.signal {
            None => Signal::TERM,
            Some(Given::Number(number)) => Signal::parse(&number.to_string())?,
            Some(Given::Name(name)) => Signal::parse(&name)?,
        };
        let usual = if signal.is_for_the_end() { WAIT } else { 0 };
        let wait_seconds = self.wait_seconds.unwrap_or(usual);
        let least = u32::from(kill);
        if wait_seconds < least || wait_seconds > LONGEST {
            let message = format!("wait_seconds is {wait_seconds}: expected {least} to {LONGEST}");
            return Err(Problem::validation("INVALID_WAIT", message));
        }
        let tree = self.tree.unwrap_or_default();
        Ok(Order { pids, started: self.started, signal, kill, wait_seconds, tree })
    }
}

impl Order {
    fn plan(&self, meant: &[Process], cx: &Context) -> Result<Change> {
        let account = cx.account()?;
        let is_own = |process: &Process| {
            process.shown.user.as_deref() == Some(account.as_str()) && process.has_one_user
        };
        // A tree is ended as a whole, and a program that sudo runs is root's.
        let is_own_tree = || !self.tree || process::descendants(cx, meant).iter().all(is_own);
        let privilege = match meant.iter().all(is_own) && (account == "root" || is_own_tree()) {
            true => Privilege::Caller,
            false => Privilege::Root,
        };
        let target =
            |process: &Process| SignalTarget { pid: process.stat.pid, start_ticks: process.stat.started };
        let step = Step::signal(ProcessSignal {
            processes: meant.iter().map(target).collect(),
            tree: self.tree,
            signal: self.signal.number(),
            wait_seconds: self.wait_seconds,
            kill: self.kill,
            privilege,
        });
        let names: Vec<String> = meant.iter().map(|process| process.stat.pid.to_string()).collect();
        let names = names.join(", ");
        let summary = match self.kill {
            true => format!("End process {names}"),
            false => format!("Send {} to process {names}", self.signal),
        };
        let change = Change::new(summary).step(step);
        Ok(meant.iter().flat_map(Process::warnings).fold(change, Change::warning))
    }
}
