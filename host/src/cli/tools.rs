//! `linux-sysadmin tools`: lists the tools.

use std::io::Write;
use std::process::ExitCode;

use clap::Args;

use super::stdout::stdout;
use crate::arguments::schema::SchemaOptions;
use crate::dispatcher::Dispatcher;
use crate::server;

#[derive(Args)]
pub(super) struct Tools {
    /// Print the tools as clients get them: an array of MCP tools
    #[arg(long)]
    json: bool,
}

impl Tools {
    pub(super) async fn run(&self, dispatcher: &Dispatcher) -> anyhow::Result<ExitCode> {
        let modules = dispatcher.modules().await;
        let mut output = stdout();
        let options = SchemaOptions { two_step: false, hosts: dispatcher.targets().offers_hosts() };
        if self.json {
            let tools: Vec<_> =
                modules.registry.tools().map(|tool| server::describe_tool(tool, options)).collect();
            let shown =
                if tools.is_empty() { "[]".to_owned() } else { serde_json::to_string_pretty(&tools)? };
            writeln!(output, "{shown}")?;
            return Ok(ExitCode::SUCCESS);
        }
        let width = modules.registry.tools().map(|tool| tool.name.len()).max().unwrap_or(0);
        for tool in modules.registry.tools() {
            writeln!(output, "{:width$}  {}", tool.name, tool.summary)?;
        }
        Ok(ExitCode::SUCCESS)
    }
}
