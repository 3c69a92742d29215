//! Plays the everyday incidents of `tests/data/incidents.yaml` on a host, by the calls of tools and by the commands of a shell,
//! and compares the bytes that a model writes and reads. A call that asks for a confirmation counts twice, because a client
//! that confirms in two steps repeats it.

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
        let (calls, ours) = self.plays(|| self.by_tools(server))?;
        let (commands, floor) = self.plays(|| self.by_shell())?;
        Ok(Row {
            what: self.id.clone().into(),
            unit: "kB",
            ours: ours as f64 / 1000.0,
            floor: floor as f64 / 1000.0,
            floor_is: format!("{calls} calls beside {commands} commands in a shell").into(),
        })
    }

    /// Makes the incident, has it mended, and removes it.
    fn plays(&self, mend: impl FnOnce() -> Result<(usize, usize)>) -> Result<(usize, usize)> {
        sh(&format!("set -e\n{}", self.r#break))?;
        let counted = mend();
        // Some services reload after the command that asks them to has ended.
        let wait = format!("for i in $(seq 100); do ( {} ) && exit 0; sleep 0.1; done; exit 1", self.mended);
        let mended = counted.and_then(|counted| sh(&wait).map(|_| counted));
        sh(&format!("{}\ntrue", self.clean))?;
        mended
    }

    /// The number of calls, and the bytes of their arguments and answers.
    fn by_tools(&self, server: &mut Server) -> Result<(usize, usize)> {
        let (mut calls, mut bytes) = (0, 0);
        for Call { tool, arguments, fails } in &self.calls {
            let mut arguments = arguments.clone();
            let mut answer = Value::Null;
            for _ in 0..2 {
                let params = json!({"name": tool, "arguments": arguments});
                answer = server.request("tools/call", params)?["structuredContent"].take();
                calls += 1;
                bytes += arguments.to_string().len() + answer.to_string().len();
                if answer["status"] != "confirmation_required" {
                    break;
                }
                arguments["confirmed"] = json!(true);
            }
            ensure!(answer["error_code"].as_str() == fails.as_deref(), "{tool} answers {answer}");
        }
        Ok((calls, bytes))
    }

    /// The number of commands, and the bytes of their lines and output.
    fn by_shell(&self) -> Result<(usize, usize)> {
        let mut bytes = 0;
        for line in &self.shell {
            bytes += line.len() + sh(&format!("{{ {line}\n}} 2>&1; true"))?.len();
        }
        Ok((self.shell.len(), bytes))
    }
}
