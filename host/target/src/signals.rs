//! Signals to processes. One script of the host's own looks at processes and sends signals, here and over SSH, because a
//! process number means another process as soon as the first one has ended.
//!
//! The script reads a process's start time and sends the signal at once: a process that ended and whose number was given
//! to another one in the microseconds between would be mistaken for the other one. Linux gives numbers in turn, so that
//! takes a whole round of them. The script refuses the first process, threads of the kernel, and its own ancestors, which
//! are the server, or sshd, and whatever started them.

use std::time::Duration;

use crate::Target;
use host_base::problem::{Category, Problem};
use host_base::{Command, Output, Privilege};

const SCRIPT: &str = include_str!("signals/signals.sh");
/// The time for looking at processes. Tens of thousands of them take as long, and a process whose memory is locked lets a
/// look at its command line wait.
const LOOKING: Duration = Duration::from_secs(45);
/// Ends each word of a command line in the script's answer.
const WORD_END: char = '\u{1f}';
/// The exit code of the script where it sent no signal.
pub const NOTHING_SENT: i32 = 3;

/// A process. The start tells it from a later one that got the same number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessId {
    /// The process id.
    pub pid: u32,
    /// The start in clock ticks since boot, as in field 22 of `/proc/PID/stat`.
    pub start_ticks: u64,
}

/// A signal to processes.
#[derive(Clone, Debug, PartialEq)]
pub struct ProcessSignal {
    /// The processes.
    pub processes: Vec<ProcessId>,
    /// Whether their descendants get it as well.
    pub tree: bool,
    /// The number of the signal.
    pub signal: u8,
    /// The time in seconds to wait for their end.
    pub wait_seconds: u32,
    /// Whether SIGKILL ends what is left after that time.
    pub kill: bool,
    /// The account whose rights are taken.
    pub privilege: Privilege,
}

/// What a signal may do to a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// The process was named, and gets the signal.
    Given,
    /// The process descends from a named one, and gets the signal.
    Descendant,
    /// There is no such process any more.
    Gone,
    /// Another process has the number now.
    Other,
    /// It is a thread of the kernel.
    Kernel,
    /// It is the first process, or one that carries the host's own commands.
    Own,
    /// The rights aren't enough.
    Denied,
}

/// A process as the target shows it. The texts may hold anything.
#[derive(Clone, Debug, PartialEq)]
pub struct SeenProcess {
    /// The process.
    pub id: ProcessId,
    /// What a signal may do to it.
    pub reach: Reach,
    /// The real, effective, saved and file system user ids.
    pub uids: Vec<u32>,
    /// The name of the real user id, or the number; empty where there are too many processes to describe all.
    pub user: String,
    /// The process that it is a thread of. A process is its own.
    pub thread_of: Option<u32>,
    /// The control group.
    pub cgroup: String,
    /// The name, which another program gets where the process starts one in its own place.
    pub name: String,
    /// The command line, or the name in brackets.
    pub command: String,
}

impl SeenProcess {
    /// The service of the system that it belongs to. The services of a user's own manager are that user's processes.
    pub fn service(&self) -> Option<&str> {
        let unit =
            self.cgroup.split('/').find(|name| name.ends_with(".service") || name.ends_with(".scope"))?;
        (unit.ends_with(".service") && !unit.starts_with("user@")).then_some(unit)
    }
}

/// Processes at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SeenProcesses {
    /// The time of the boot in seconds since the epoch; 0 where the target doesn't say.
    pub boot_unix: i64,
    /// The named processes in the given order, and then their descendants.
    pub processes: Vec<SeenProcess>,
}

impl ProcessSignal {
    fn command(&self, mode: &str) -> Command {
        let (signal, wait) = (self.signal.to_string(), self.wait_seconds.to_string());
        let bit = |set: bool| if set { "1" } else { "0" };
        let words = ["-c", SCRIPT, "sh", mode, &signal, &wait, bit(self.kill), bit(self.tree)];
        let processes = self.processes.iter().map(|id| format!("{}:{}", id.pid, id.start_ticks));
        let args = words.into_iter().map(str::to_owned).chain(processes);
        // The script ends by itself. Where it were killed in its middle, processes could stay stopped.
        let timeout = if mode == "look" { LOOKING } else { Duration::MAX };
        Command { privilege: self.privilege.clone(), ..Command::new("sh", args, timeout) }
    }

    /// The command that sends the signal.
    pub fn sending(&self) -> Command {
        self.command("act")
    }
}

impl Target {
    /// Looks at the processes that the signal would reach, and sends none.
    pub async fn look_at_processes(&self, signal: &ProcessSignal) -> Result<SeenProcesses, Problem> {
        let answer = self.run_all(&[signal.command("look")]).await.pop();
        let output = answer.unwrap_or_else(|| Err(unreadable("nothing")))?;
        read(&output)
    }

    /// Sends the signal, and waits as it says. The output has a line for each process, see [`outcomes`].
    pub async fn signal_processes(&self, signal: &ProcessSignal) -> Result<Output, Problem> {
        self.act(&signal.sending()).await
    }
}

/// The lines `PID START WORD [MORE]` of an answer.
pub fn outcomes(output: &Output) -> Vec<(ProcessId, String)> {
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines().filter_map(line).map(|(id, word)| (id, word.to_owned())).collect()
}

fn line(line: &str) -> Option<(ProcessId, &str)> {
    let (pid, rest) = line.split_once(' ')?;
    let (start, word) = rest.split_once(' ')?;
    Some((ProcessId { pid: pid.parse().ok()?, start_ticks: start.parse().ok()? }, word))
}

fn read(output: &Output) -> Result<SeenProcesses, Problem> {
    let text = String::from_utf8_lossy(&output.stdout);
    if output.exit_code != 0 || output.truncated {
        return Err(unreadable(&format!(
            "exit code {}: {}",
            output.exit_code,
            String::from_utf8_lossy(&output.stderr)
        )));
    }
    let mut seen = SeenProcesses::default();
    for text in text.lines() {
        if let Some(boot) = text.strip_prefix("boot ") {
            seen.boot_unix = boot.parse().unwrap_or_default();
        } else if let Some(member) = text.strip_prefix(' ') {
            let process = seen.processes.last_mut().ok_or_else(|| unreadable(text))?;
            process.add(member.split_once(' ').unwrap_or((member, "")));
        } else {
            let (id, word) = line(text).ok_or_else(|| unreadable(text))?;
            let reach = match word {
                "given" => Reach::Given,
                "descendant" => Reach::Descendant,
                "gone" => Reach::Gone,
                "other" => Reach::Other,
                "kernel" => Reach::Kernel,
                "own" => Reach::Own,
                "denied" => Reach::Denied,
                _ => return Err(unreadable(text)),
            };
            seen.processes.push(SeenProcess {
                id,
                reach,
                uids: Vec::new(),
                user: String::new(),
                thread_of: None,
                cgroup: String::new(),
                name: String::new(),
                command: String::new(),
            });
        }
    }
    Ok(seen)
}

impl SeenProcess {
    fn add(&mut self, (name, value): (&str, &str)) {
        let value = value.trim();
        match name {
            "uids" => self.uids = value.split(' ').filter_map(|uid| uid.parse().ok()).collect(),
            "user" => self.user = value.to_owned(),
            "thread-of" => self.thread_of = value.parse().ok(),
            "cgroup" => self.cgroup = value.to_owned(),
            "name" => self.name = value.to_owned(),
            "command" => self.command = command_line(value),
            _ => {}
        }
    }
}

/// The words of a command line as one text, quoted as for a shell, since the words are read as a shell's where secrets are
/// looked for. A single word is what the process says of itself, and stays.
fn command_line(words: &str) -> String {
    let words = words.trim_end_matches(WORD_END);
    if !words.contains(WORD_END) {
        return words.to_owned();
    }
    let is_plain = |c: char| !c.is_ascii() || c.is_ascii_alphanumeric() || "-_=+,.:/@%^".contains(c);
    let quoted = |word: &str| match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    };
    words.split(WORD_END).map(quoted).collect::<Vec<_>>().join(" ")
}

fn unreadable(said: &str) -> Problem {
    let said = host_text::redact::excerpt(said, 300);
    let message = format!("looking at the processes gave an answer that can't be read: {said}");
    Problem::new("UNEXPECTED_OUTPUT", Category::Other, message)
}

#[cfg(test)]
mod tests;
