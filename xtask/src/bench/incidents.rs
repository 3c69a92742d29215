//! Plays the everyday incidents of `tests/data/incidents.yaml` on a host, by the calls of tools and by the commands of a
//! shell, and compares the bytes that a model writes and reads. The questions before changes are counted apart, because a
//! person reads them.

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
    r#break: String,
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
    bytes: usize,
    questions: usize,
    bytes_of_questions: usize,
}

/// Gives the figures, or none where there can be no hosts.
pub(super) fn played(built: &Built) -> Result<Vec<Row>> {
    let path = workspace::root().join("tests/data/incidents.yaml");
    let incidents: Vec<Incident> = serde_yaml::from_str(&std::fs::read_to_string(path)?)?;
    let Some(_host) = Hosts::up("debian", &[HOST.to_owned()], built)? else { return Ok(Vec::new()) };
    let mut server = serve()?;
    incidents.iter().map(|incident| incident.row(&mut server).with_context(|| incident.id.clone())).collect()
}

impl Incident {
    fn row(&self, server: &mut Server) -> Result<Row> {
        let ours = self.played(|| self.by_tools(server))?;
        let shell = self.played(|| self.by_shell())?;
        let kilobytes = |bytes: usize| bytes as f64 / 1000.0;
        Ok(Row {
            what: format!("{}, {} calls", self.id, self.calls.len()).into(),
            unit: "kB",
            ours: kilobytes(ours.bytes),
            floor: kilobytes(shell.bytes),
            floor_is: format!(
                "{} commands; questions: {}, {:.2} kB",
                self.shell.len(),
                ours.questions,
                kilobytes(ours.bytes_of_questions)
            )
            .into(),
        })
    }

    /// Makes the incident, mends it in this way, and removes it.
    fn played(&self, mend: impl FnOnce() -> Result<Count>) -> Result<Count> {
        sh(&format!("set -e\n{}", self.r#break))?;
        let counted = mend();
        // Some services reload after the command that asks them to has ended.
        let wait = format!("for i in $(seq 100); do ( {}\n) && exit 0; sleep 0.1; done; exit 1", self.mended);
        let counted = counted.and_then(|count| sh(&wait).map(|_| count));
        sh(&format!("( {}\n) 2> /dev/null; true", self.clean))?;
        counted
    }

    fn by_tools(&self, server: &mut Server) -> Result<Count> {
        let mut count = Count::default();
        let mut call = |tool: &str, arguments: &Value| -> Result<Value> {
            let params = json!({"name": tool, "arguments": arguments});
            Ok(server.request("tools/call", params)?["structuredContent"].take())
        };
        for Call { tool, arguments, fails } in &self.calls {
            let mut answer = call(tool, arguments)?;
            if answer["status"] == "confirmation_required" {
                count.questions += 1;
                count.bytes_of_questions += answer.to_string().len();
                let mut confirmed = arguments.clone();
                confirmed["confirmed"] = json!(true);
                answer = call(tool, &confirmed)?;
            }
            count.bytes += arguments.to_string().len() + answer.to_string().len();
            ensure!(answer["error_code"].as_str() == fails.as_deref(), "{tool} answers {answer}");
        }
        Ok(count)
    }

    fn by_shell(&self) -> Result<Count> {
        let mut count = Count::default();
        for line in &self.shell {
            count.bytes += line.len() + sh(&format!("{{ {line}\n}} 2>&1; true"))?.len();
        }
        Ok(count)
    }
}
