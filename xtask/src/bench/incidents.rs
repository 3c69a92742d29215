//! Plays the everyday incidents of `tests/data/incidents.yaml` on a host, by the calls of tools and by the commands of a
//! shell, and compares the number of both and the bytes that a model writes and reads. A client shows a model one of the two
//! forms of an answer, so that both are counted. The questions before changes are counted apart, because a person reads them.

use super::knowledge::{HOST, serve, sh};
use super::lab::Hosts;
use super::{Row, Server};
use crate::build::Built;
use crate::workspace;
use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize)]
struct Incident {
    id: String,
    symptom: String,
    r#break: String,
    found: Vec<String>,
    calls: Vec<Call>,
    shell: Vec<String>,
    mended: String,
    clean: String,
}

#[derive(Deserialize)]
struct Call {
    tool: String,
    arguments: Value,
    fails: Option<String>,
}

/// What was sent and what came back.
#[derive(Default)]
struct Count {
    calls: usize,
    /// The bytes with the answers for programs, and with those for reading.
    bytes: usize,
    bytes_of_text: usize,
    questions: usize,
    bytes_of_questions: usize,
    /// Whether the first answer named the cause.
    is_found: bool,
}

/// Both ways of mending an incident.
struct Played {
    ours: Count,
    shell: Count,
}

/// Gives the figures, or none where there can be no hosts.
pub(super) fn played(built: &Built) -> Result<Vec<Row>> {
    let path = workspace::root().join("tests/data/incidents.yaml");
    let incidents: Vec<Incident> = serde_yaml::from_str(&std::fs::read_to_string(path)?)?;
    let Some(_host) = Hosts::up("debian", &[HOST.to_owned()], built)? else { return Ok(Vec::new()) };
    let mut server = serve()?;
    let (mut rows, mut all) = (Vec::new(), Vec::new());
    for incident in &incidents {
        let ours = incident.played(|| incident.by_tools(&mut server)).with_context(|| incident.id.clone())?;
        let shell = incident.played(|| incident.by_shell()).with_context(|| incident.id.clone())?;
        let played = Played { ours, shell };
        rows.push(played.row(&incident.id));
        all.push(played);
    }
    rows.extend(totals(&all));
    Ok(rows)
}

fn kilobytes(bytes: usize) -> f64 {
    bytes as f64 / 1000.0
}

impl Played {
    fn row(&self, id: &str) -> Row {
        let Self { ours, shell } = self;
        Row {
            what: format!("{id}, {} calls", ours.calls).into(),
            unit: "kB",
            ours: kilobytes(ours.bytes),
            floor: kilobytes(shell.bytes),
            floor_is: format!(
                "{} commands; as text {:.2} kB; questions: {}, {:.2} kB",
                shell.calls,
                kilobytes(ours.bytes_of_text),
                ours.questions,
                kilobytes(ours.bytes_of_questions)
            )
            .into(),
        }
    }
}

fn totals(all: &[Played]) -> [Row; 4] {
    let sum = |of: fn(&Played) -> usize| all.iter().map(of).sum::<usize>();
    let row = |what: &'static str, unit: &'static str, ours: f64, floor: f64, floor_is: &'static str| Row {
        what: what.into(),
        unit,
        ours,
        floor,
        floor_is: floor_is.into(),
    };
    let bytes_of_shell = kilobytes(sum(|played| played.shell.bytes));
    let found = all.iter().filter(|played| played.ours.is_found).count();
    [
        row(
            "all incidents",
            "calls",
            sum(|played| played.ours.calls) as f64,
            sum(|played| played.shell.calls) as f64,
            "the commands of a shell; aim 0.6",
        ),
        row(
            "all incidents, answers for programs",
            "kB",
            kilobytes(sum(|played| played.ours.bytes)),
            bytes_of_shell,
            "the commands of a shell; aim 0.7",
        ),
        row(
            "all incidents, answers for reading",
            "kB",
            kilobytes(sum(|played| played.ours.bytes_of_text)),
            bytes_of_shell,
            "the commands of a shell; aim 0.7",
        ),
        row(
            "causes that the first answer names",
            "",
            found as f64,
            all.len() as f64,
            "all incidents; aim 0.8",
        ),
    ]
}

impl Incident {
    /// Makes the incident, mends it in this way, and removes it.
    fn played(&self, mend: impl FnOnce() -> Result<Count>) -> Result<Count> {
        sh(&format!("set -e\n{}\njournalctl --sync", self.r#break))?;
        let counted = mend();
        // Some services reload after the command that asks them to has ended.
        let wait = format!("for i in $(seq 100); do ( {}\n) && exit 0; sleep 0.1; done; exit 1", self.mended);
        let counted = counted.and_then(|count| sh(&wait).map(|_| count));
        sh(&format!("( {}\n) 2> /dev/null; true", self.clean))?;
        counted
    }

    fn by_tools(&self, server: &mut Server) -> Result<Count> {
        let mut count = Count::default();
        let complaint = json!({"complaint": self.symptom});
        let first = count.call(server, "triage", &complaint)?;
        let first = first["data"]["findings"][0].to_string();
        count.is_found = self.found.iter().all(|text| first.contains(text.as_str()));
        for Call { tool, arguments, fails } in &self.calls {
            let answer = count.call(server, tool, arguments)?;
            ensure!(answer["error_code"].as_str() == fails.as_deref(), "{tool} answers {answer}");
        }
        Ok(count)
    }

    fn by_shell(&self) -> Result<Count> {
        let mut count = Count { calls: self.shell.len(), ..Count::default() };
        for line in &self.shell {
            count.bytes += line.len() + sh(&format!("{{ {line}\n}} 2>&1; true"))?.len();
        }
        Ok(count)
    }
}

impl Count {
    /// Calls a tool, and says yes where somebody is asked. Gives the answer.
    fn call(&mut self, server: &mut Server, tool: &str, arguments: &Value) -> Result<Value> {
        let mut answer = asked(server, tool, arguments)?;
        if answer["structuredContent"]["status"] == "confirmation_required" {
            self.questions += 1;
            self.bytes_of_questions += answer["structuredContent"].to_string().len();
            let mut confirmed = arguments.clone();
            confirmed["confirmed"] = json!(true);
            answer = asked(server, tool, &confirmed)?;
        }
        let sent = arguments.to_string().len();
        self.calls += 1;
        self.bytes += sent + answer["structuredContent"].to_string().len();
        self.bytes_of_text += sent + answer["content"][0]["text"].as_str().map_or(0, str::len);
        Ok(answer["structuredContent"].take())
    }
}

fn asked(server: &mut Server, tool: &str, arguments: &Value) -> Result<Value> {
    server.request("tools/call", json!({"name": tool, "arguments": arguments}))
}
