//! `linux-sysadmin tools`: which tools there are.

use std::io::Write;
use std::process::ExitCode;

use clap::Args;

use super::out::out;
use crate::dispatcher::Dispatcher;
use crate::schema::Shown;
use crate::server;

#[derive(Args)]
pub(super) struct Tools {
    /// As clients get it: an array of MCP tools
    #[arg(long)]
    json: bool,
}

impl Tools {
    pub(super) async fn run(&self, dispatcher: &Dispatcher) -> anyhow::Result<ExitCode> {
        let live = dispatcher.live().await;
        let mut output = out();
        let offered = Shown { two_step: false, hosts: dispatcher.targets().offers_hosts() };
        if self.json {
            let tools: Vec<_> =
                live.registry.tools().map(|tool| server::describe_tool(tool, offered)).collect();
            let shown =
                if tools.is_empty() { "[]".to_owned() } else { serde_json::to_string_pretty(&tools)? };
            writeln!(output, "{shown}")?;
            return Ok(ExitCode::SUCCESS);
        }
        let width = live.registry.tools().map(|tool| tool.name.len()).max().unwrap_or(0);
        for tool in live.registry.tools() {
            writeln!(output, "{:width$}  {}", tool.name, tool.summary)?;
        }
        Ok(ExitCode::SUCCESS)
    }
}
