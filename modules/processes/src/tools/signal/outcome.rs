//! Tells what has become of the processes, as the host's own answer to the step says it.

use std::collections::BTreeMap;

use linux_sysadmin_sdk::prelude::*;

use super::number::Signal;
use super::process::Process;

/// The most descendants that are listed one by one.
const LISTED: usize = 20;

/// The answer of the tool.
#[derive(Serialize)]
pub(crate) struct Outcome {
    /// The change that a dry run would make.
    #[serde(skip_serializing_if = "Option::is_none")]
    would: Option<&'static str>,
    #[serde(serialize_with = "shown")]
    signal: Signal,
    processes: Vec<Signalled>,
    /// The number of descendants by what has become of them.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    descendants: BTreeMap<String, usize>,
    /// The descendants that are still there.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    left: Vec<Left>,
}

/// A process that the caller named.
#[derive(Serialize)]
struct Signalled {
    #[serde(flatten)]
    process: Process,
    #[serde(skip_serializing_if = "Option::is_none")]
    outcome: Option<String>,
    /// The parent of a zombie, or the place in the kernel.
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
}

/// A descendant that is still there.
#[derive(Serialize)]
struct Left {
    pid: u32,
    outcome: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
}

fn shown<S: serde::Serializer>(signal: &Signal, serializer: S) -> std::result::Result<S::Ok, S::Error> {
    serializer.collect_str(signal)
}

impl Outcome {
    pub(super) fn new(meant: Vec<Process>, signal: Signal, applied: &Applied) -> Self {
        let answer =
            applied.outputs.first().map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
        let answer = answer.unwrap_or_default();
        let mut lines: Vec<Left> = answer.lines().filter_map(line).collect();
        let mut processes = Vec::new();
        for process in meant {
            let at = lines.iter().position(|line| line.pid == process.stat.pid);
            let (outcome, detail) =
                at.map(|at| lines.remove(at)).map(|line| (line.outcome, line.detail)).unzip();
            processes.push(Signalled { process, outcome, detail: detail.flatten() });
        }
        let mut descendants: BTreeMap<String, usize> = BTreeMap::new();
        for line in &lines {
            *descendants.entry(line.outcome.clone()).or_default() += 1;
        }
        lines.retain(|line| !matches!(line.outcome.as_str(), "ended" | "killed" | "gone" | "sent"));
        lines.truncate(LISTED);
        let would = applied.dry_run.then_some("signal");
        Self { would, signal, processes, descendants, left: lines }
    }

    /// A sentence for each process that is still there.
    pub(super) fn notes(&self, killed: bool) -> Vec<String> {
        let given = self.processes.iter().filter_map(|signalled| {
            Some((signalled.process.stat.pid, signalled.outcome.as_deref()?, signalled.detail.as_deref()))
        });
        let left = self.left.iter().map(|left| (left.pid, left.outcome.as_str(), left.detail.as_deref()));
        let sentence = |(pid, outcome, detail): (u32, &str, Option<&str>)| {
            let detail = detail.filter(|detail| !matches!(*detail, "" | "0"));
            Some(match outcome {
                "zombie" => format!(
                    "{pid} has ended, but its parent {} hasn't noticed it; it goes when that does or ends",
                    detail.unwrap_or("process")
                ),
                "blocked" => {
                    let place = detail.map(|place| format!(" ({place})")).unwrap_or_default();
                    let how = match killed || self.signal.number() == 9 {
                        true => "no signal reaches it; it ends when that wait does".to_owned(),
                        false => format!("{} doesn't reach it; KILL may", self.signal),
                    };
                    format!("{pid} waits in the kernel{place}, where {how}")
                }
                "stopped" => format!("{pid} is stopped: it takes the signal once it gets CONT"),
                "running" if killed => format!("{pid} is still there after SIGKILL: look at it again"),
                "running" => {
                    format!("{pid} goes on: it ignores {}, or needs longer for its end", self.signal)
                }
                "denied" => format!("{pid} is another account's, and got no signal"),
                _ => return None,
            })
        };
        given.chain(left).filter_map(sentence).collect()
    }
}

/// Reads `PID START WORD [MORE]`.
fn line(line: &str) -> Option<Left> {
    let mut words = line.splitn(4, ' ');
    let pid = words.next()?.parse().ok()?;
    let outcome = words.nth(1)?.to_owned();
    Some(Left { pid, outcome, detail: words.next().map(str::to_owned).filter(|detail| !detail.is_empty()) })
}
