//! Runs pipelines on a machine behind SSH, as the host does. `pipelines ALIAS` reads an array of them as JSON, and prints
//! an array with the outputs or the problem of each.

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use host_base::{Command, Privilege};
use host_target::{ConnectionSettings, Destination, Overrides, ServiceFiles, Target};
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize)]
struct Pipeline {
    /// Whether it changes something.
    #[serde(default)]
    acts: bool,
    commands: Vec<Stage>,
}

#[derive(Deserialize)]
struct Stage {
    argv: Vec<String>,
    #[serde(default)]
    env: Vec<(String, String)>,
    stdin: Option<String>,
    #[serde(default)]
    root: bool,
    seconds: Option<u64>,
}

impl Stage {
    fn command(self) -> Result<Command> {
        let mut argv = self.argv.into_iter();
        let program = argv.next().context("a program")?;
        let mut command = Command::new(program, argv, Duration::from_secs(self.seconds.unwrap_or(30)));
        command.env = self.env;
        command.stdin = self.stdin.map(String::into_bytes);
        if self.root {
            command.privilege = Privilege::Root;
        }
        Ok(command)
    }
}

async fn answer(target: &Target, pipeline: Pipeline) -> Result<Value> {
    let commands: Vec<Command> = pipeline.commands.into_iter().map(Stage::command).collect::<Result<_>>()?;
    let outputs = match pipeline.acts {
        true => target.act_pipeline(&commands).await,
        false => target.run_pipeline(&commands).await,
    };
    Ok(match outputs {
        Ok(outputs) => outputs
            .into_iter()
            .map(|output| {
                json!({
                    "exit_code": output.exit_code,
                    "stdout": hex::encode(output.stdout),
                    "stderr": String::from_utf8_lossy(&output.stderr),
                    "stdout_bytes": output.stdout_bytes,
                })
            })
            .collect(),
        Err(problem) => {
            json!({"code": problem.code, "message": problem.message, "details": *problem.details})
        }
    })
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let alias = std::env::args().nth(1).context("an alias")?;
    let pipelines: Vec<Pipeline> = serde_json::from_reader(std::io::stdin())?;
    let settings = ConnectionSettings {
        keepalive_interval: None,
        keepalive_max_missed: 3,
        reconnects: true,
        attempts: 1,
        keys: Arc::default(),
        service_files: ServiceFiles::default(),
    };
    let target = Target::remote(Destination::of_alias(alias), settings, Overrides::default());
    let mut answers = Vec::new();
    for pipeline in pipelines {
        answers.push(answer(&target, pipeline).await?);
    }
    writeln!(std::io::stdout(), "{}", Value::from(answers))?;
    target.close().await;
    Ok(())
}
