//! `linux-sysadmin serve`: MCP over stdio.

use std::process::ExitCode;
use std::sync::Arc;

use crate::pipeline::Pipeline;
use crate::server;

pub(super) async fn run(pipeline: Arc<Pipeline>) -> anyhow::Result<ExitCode> {
    server::serve(pipeline).await?;
    Ok(ExitCode::SUCCESS)
}
