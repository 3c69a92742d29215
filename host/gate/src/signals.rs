//! Steps that send signals to processes: what they mean in words, which processes none of them may reach, their risk, and
//! their outcome.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value};

use super::command_log::CommandLog;
use host_base::problem::{COMMAND_KILLED, Category, PRIVILEGE_REQUIRED, Problem};
use host_base::{Command, Output, Privilege};
use host_capability::command_line;
use host_target::{
    Facts, NOTHING_SENT, ProcessId, ProcessSignal, Reach, SeenProcess, SeenProcesses, Target, outcomes,
};
use host_text::redact::excerpt;

/// The names of the signals 1 to 31 on the architectures that Linux servers have.
const NAMES: [&str; 31] = [
    "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2", "PIPE",
    "ALRM", "TERM", "STKFLT", "CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG", "XCPU", "XFSZ",
    "VTALRM", "PROF", "WINCH", "IO", "PWR", "SYS",
];
const KILL: u8 = 9;
const CONT: u8 = 18;
const STOP: u8 = 19;
/// The signal that tells most programs only that their window has another size.
const WINCH: u8 = 28;
/// The first real-time signal. The C library keeps 32 and 33 for itself.
const RTMIN: u8 = 34;
/// The signals that neither end nor stop a process: 0, CHLD, CONT, URG. WINCH isn't one of them, since web servers (nginx,
/// httpd) take it for the order to end their workers.
const HARMLESS: [u8; 4] = [0, 17, CONT, 23];
/// The signals that stop a process: STOP, TSTP, TTIN, TTOU.
const STOPS: [u8; 4] = [STOP, 20, 21, 22];
/// The largest number of processes of one step.
const MOST: usize = 100;
/// The longest time in seconds to wait for their end.
const LONGEST: u32 = 300;
/// The largest process id of Linux.
const LARGEST: u32 = 1 << 22;
/// The number of processes that a preview names.
const SHOWN: usize = 20;
/// The number of characters of a command line that are shown.
const COMMAND: usize = 120;
/// The clock ticks of a second, which Linux shows to programs on every architecture.
const TICKS: u64 = 100;

/// The way that is left where the rights aren't enough. No rule of sudo for single commands allows a signal.
const BY_OTHERS: &str = "Have a person with root's rights do it, or let the service's own unit do it";

/// A step whose processes were looked at.
pub struct PreparedSignal {
    /// The words that call sudo. They are empty where no other rights are taken.
    pub prefix: String,
    /// The command of a shell that says the same. The host sends the signal by a script of its own.
    pub shown: Command,
    /// The processes as they were.
    pub seen: SeenProcesses,
    /// What the step does, as a sentence.
    pub sentence: String,
}

/// The name of a signal with its prefix.
fn name(signal: u8) -> String {
    match signal {
        0 => "signal 0".to_owned(),
        RTMIN => "SIGRTMIN".to_owned(),
        35.. => format!("SIGRTMIN+{}", signal - RTMIN),
        _ => match NAMES.get(usize::from(signal) - 1) {
            Some(name) => format!("SIG{name}"),
            None => format!("signal {signal}"),
        },
    }
}

/// Whether the signal ends a process that says nothing else.
fn ends(signal: u8) -> bool {
    !HARMLESS.contains(&signal) && !STOPS.contains(&signal)
}

/// The words for a mistake in the step. None where there is none.
pub fn mistake(signal: &ProcessSignal) -> Option<String> {
    let ProcessSignal { processes, signal: number, wait_seconds, kill, .. } = signal;
    let mut pids: Vec<u32> = processes.iter().map(|id| id.pid).collect();
    pids.sort_unstable();
    let is_twice = pids.windows(2).any(|two| two[0] == two[1]);
    let strange = pids.iter().find(|pid| **pid < 1 || **pid > LARGEST);
    Some(match strange {
        Some(pid) => format!("the process id {pid}; there are 1 to {LARGEST}"),
        None if processes.is_empty() || processes.len() > MOST => {
            format!("a signal to {} processes; 1 to {MOST} are taken", processes.len())
        }
        None if is_twice => "a signal to one process twice".to_owned(),
        None if *number > 64 || matches!(number, 32 | 33) => format!("the signal {number}"),
        None if *wait_seconds > LONGEST => format!("a wait of {wait_seconds} s; at most {LONGEST}"),
        None if *kill && (*wait_seconds == 0 || !ends(*number) || [KILL, WINCH].contains(number)) => {
            format!("SIGKILL after {wait_seconds} s of {}, which nothing was to end by", name(*number))
        }
        None => return None,
    })
}

impl PreparedSignal {
    /// Looks at the processes of a step, and refuses those that no signal may reach.
    pub async fn of(signal: &ProcessSignal, target: &Target, facts: &Facts) -> Result<Self, Problem> {
        let args = ["-s", name(signal.signal).trim_start_matches("SIG").trim_start_matches("signal "), "--"]
            .map(str::to_owned);
        let pids = signal.processes.iter().map(|id| id.pid.to_string());
        let sending = signal.sending();
        let shown = Command {
            program: "kill".to_owned(),
            args: args.into_iter().chain(pids).collect(),
            ..sending.clone()
        };
        let line = command_line("", &shown);
        let prefix = target.prefix(&sending, facts).await;
        let prefix = prefix.map_err(|problem| {
            problem.needed_for(&format!("`{line}`"), &signal.privilege).remedy(BY_OTHERS)
        })?;
        if !prefix.is_empty() && facts.sudo_limited {
            let message = format!(
                "`{line}` needs a sudo that allows everything, because the host checks each process first"
            );
            return Err(Problem::new(PRIVILEGE_REQUIRED, Category::Privilege, message).remedy(BY_OTHERS));
        }
        let seen = target.look_at_processes(signal).await?;
        for process in &seen.processes {
            if let Some(problem) = refusal(process.reach, process.id.pid, &described(process, &seen, facts)) {
                return Err(problem);
            }
            if let Some(of) = process.thread_of.filter(|of| *of != process.id.pid) {
                let message =
                    format!("{} is a thread of process {of}; a signal is for a process", process.id.pid);
                return Err(Problem::new("NOT_A_PROCESS", Category::Validation, message)
                    .remedy(format!("Name the process: {of}")));
            }
        }
        if seen.processes.iter().all(|process| process.reach == Reach::Gone) {
            let pids: Vec<String> = signal.processes.iter().map(|id| id.pid.to_string()).collect();
            let message = format!("there is no process {} any more", pids.join(", "));
            return Err(Problem::new("PROCESS_NOT_FOUND", Category::NotFound, message));
        }
        let sentence = sentence(signal, &seen, facts);
        Ok(Self { prefix, shown, seen, sentence })
    }
}

/// The problem of a process that no signal may reach.
fn refusal(reach: Reach, pid: u32, what: &str) -> Option<Problem> {
    let denied = |why: &str| Problem::new("PROTECTED_PROCESS", Category::Denied, format!("{what} {why}"));
    Some(match reach {
        Reach::Given | Reach::Descendant | Reach::Gone => return None,
        Reach::Own if pid == 1 => denied("is the first process, on which all others depend"),
        Reach::Own => denied("carries this server's own commands, so a signal to it could end what sends it")
            .remedy("Where it has to end, end it by hand"),
        Reach::Kernel => denied("is a thread of the kernel, which takes no signals"),
        Reach::Other => {
            let message = format!("the number {pid} belongs to another process than the one that was meant");
            Problem::new("PROCESS_REUSED", Category::State, message)
                .remedy("Look at the processes again, and name the one that is meant now")
        }
        Reach::Denied => {
            let message =
                format!("{what} is another account's, and the rights that are taken aren't enough for it");
            Problem::new("PERMISSION_DENIED", Category::Privilege, message).remedy(BY_OTHERS)
        }
    })
}

/// What is said of a process: `4711 `python3 job.py` (alice, started 2026-11-27 10:03:00 UTC)`.
fn described(process: &SeenProcess, seen: &SeenProcesses, facts: &Facts) -> String {
    let pid = process.id.pid;
    if process.uids.is_empty() {
        return format!("process {pid}");
    }
    let command = command_of(process);
    let user = if is_own(process, facts) { facts.user.clone() } else { excerpt(&process.user, COMMAND) };
    let seconds = i64::try_from(process.id.start_ticks / TICKS).unwrap_or_default();
    let start = Timestamp::from_second(seen.boot_unix).ok().filter(|boot| boot.as_second() > 0);
    let start = start.and_then(|boot| boot.checked_add(SignedDuration::from_secs(seconds)).ok());
    let start = start.map(|start| start.strftime(", started %Y-%m-%d %H:%M:%S UTC").to_string());
    let unit = process.service().map(|unit| format!(", of {}", excerpt(unit, COMMAND)));
    let (start, unit) = (start.unwrap_or_default(), unit.unwrap_or_default());
    format!("{pid} `{command}` ({user}{start}{unit})")
}

fn sentence(signal: &ProcessSignal, seen: &SeenProcesses, facts: &Facts) -> String {
    let of = |reach: Reach| seen.processes.iter().filter(move |process| process.reach == reach);
    let given: Vec<String> =
        of(Reach::Given).take(SHOWN).map(|process| described(process, seen, facts)).collect();
    let mut text = format!("Send {} to {}", name(signal.signal), given.join(", "));
    let count = of(Reach::Given).count();
    if count > SHOWN {
        text.push_str(&format!(" and {} more", count - SHOWN));
    }
    match (signal.tree, of(Reach::Descendant).count()) {
        (false, _) => {}
        (true, 0) => text.push_str(" and what they start meanwhile"),
        (true, count) => text.push_str(&format!(" and their descendants, which are {count} now")),
    }
    match (signal.kill, signal.wait_seconds) {
        (true, seconds) => text.push_str(&format!(", then SIGKILL to what is left after {seconds} s")),
        (false, 0) => {}
        (false, seconds) => text.push_str(&format!(", and wait up to {seconds} s for their end")),
    }
    text
}

/// The command line between backticks. One of its own would seem to end it, and what follows would seem to be the host's words.
fn command_of(process: &SeenProcess) -> String {
    excerpt(&process.command, COMMAND).replace('`', "'")
}

/// Whether the process is of the account that the server acts as, with all of its ids, and that account isn't root.
pub fn is_own(process: &SeenProcess, facts: &Facts) -> bool {
    facts.uid != 0 && !process.uids.is_empty() && process.uids.iter().all(|uid| *uid == facts.uid)
}

/// What the signal does to processes that say nothing else, as a verb. None where it does nothing to them.
pub fn does(signal: u8) -> Option<&'static str> {
    match HARMLESS.contains(&signal) {
        true => None,
        false if ends(signal) => Some("can end"),
        false => Some("stops"),
    }
}

/// Adds what the step does to its preview.
pub fn shown(signal: &ProcessSignal, prepared: &PreparedSignal) -> Map<String, Value> {
    let mut shown = Map::from_iter([("signal".to_owned(), prepared.sentence.clone().into())]);
    let descendants = prepared.seen.processes.iter().filter(|process| process.reach == Reach::Descendant);
    let descendants: Vec<Value> = descendants
        .take(SHOWN)
        .map(|process| format!("{} `{}`", process.id.pid, command_of(process)).into())
        .collect();
    if !descendants.is_empty() {
        shown.insert("descendants".to_owned(), descendants.into());
    }
    if let Privilege::User(_) = signal.privilege {
        shown.insert("as".to_owned(), String::from(signal.privilege.clone()).into());
    }
    if let Some(undo) = reverse(signal) {
        shown.insert("undo".to_owned(), vec![Value::from(format!("send {}", name(undo.signal)))].into());
    }
    shown
}

/// The signal that undoes this one.
pub fn reverse(signal: &ProcessSignal) -> Option<ProcessSignal> {
    let undo = match signal.signal {
        STOP => CONT,
        CONT => STOP,
        _ => return None,
    };
    Some(ProcessSignal { signal: undo, wait_seconds: 0, kill: false, ..signal.clone() })
}

/// A short title of the step.
pub fn title(signal: &ProcessSignal) -> String {
    let pids: Vec<String> = signal.processes.iter().map(|id| id.pid.to_string()).collect();
    format!("send {} to {}", name(signal.signal), excerpt(&pids.join(", "), COMMAND))
}

/// Sends the signal. It is not interrupted: it ends by itself, and what it has stopped goes on only then.
pub async fn send(
    signal: &ProcessSignal,
    prepared: &PreparedSignal,
    target: &Target,
    command_log: &CommandLog,
) -> Result<Output, Problem> {
    let number = command_log.push(&prepared.prefix, &prepared.shown);
    let output = target.signal_processes(signal).await?;
    command_log.ended(number, output.exit_code);
    match output.exit_code {
        0 => Ok(output),
        NOTHING_SENT => Err(refused(&output)),
        129..=159 => {
            let message = format!("the host's script was ended while it was to {}", title(signal));
            Err(Problem::new(COMMAND_KILLED, Category::Other, message))
        }
        code => {
            let said = String::from_utf8_lossy(&output.stderr);
            let message =
                format!("{} failed with exit code {code}: {}", title(signal), excerpt(said.trim(), 500));
            Err(Problem::new("COMMAND_FAILED", Category::Other, message))
        }
    }
}

/// The problem of a signal that wasn't sent, because a process changed after the look at it.
fn refused(output: &Output) -> Problem {
    let refused = outcomes(output).into_iter().find_map(|(id, word)| {
        let reach = match word.as_str() {
            "other" => Reach::Other,
            "kernel" => Reach::Kernel,
            "own" => Reach::Own,
            _ => Reach::Denied,
        };
        refusal(reach, id.pid, &format!("process {}", id.pid))
    });
    refused.unwrap_or_else(|| Problem::new("COMMAND_FAILED", Category::Other, "no signal was sent"))
}

/// What distinguishes the step from any other one. A process that starts another program in its own place keeps its number
/// and its start, so its name counts as well. Its command line doesn't: servers write into theirs what they do.
pub fn identity(signal: &ProcessSignal, seen: &SeenProcesses) -> Value {
    let name = |id| seen.processes.iter().find(|process| process.id == id).map(|process| &process.name);
    let one = |id: &ProcessId| serde_json::json!([id.pid, id.start_ticks, name(*id)]);
    let processes: Vec<Value> = signal.processes.iter().map(one).collect();
    serde_json::json!({
        "signal": signal.signal, "processes": processes, "tree": signal.tree, "wait": signal.wait_seconds,
        "kill": signal.kill, "privilege": String::from(signal.privilege.clone()),
    })
}

#[cfg(test)]
pub mod tests;
