//! The MCP face of the pipeline: tools, their calls, progress and cancellation, over stdio.

mod handler;
mod transport;

use std::sync::Arc;
use std::time::Duration;

use rmcp::ServiceExt;
use rmcp::service::{QuitReason, ServerInitializeError};
use tokio_util::sync::CancellationToken;

use crate::pipeline::Pipeline;

pub use handler::describe_tool;

/// What calls under way get at the end of input: a script that pipes its requests in has its answers by then, and a
/// client that died waits for nothing.
const GRACE: Duration = Duration::from_secs(2);

/// Serves until the end of input.
pub async fn serve(pipeline: Arc<Pipeline>) -> anyhow::Result<()> {
    let tools = pipeline.registry().tools().count();
    tracing::info!(tools, "serving MCP on stdin and stdout");
    let ended = CancellationToken::new();
    let stopping = CancellationToken::new();
    let (input, output) = rmcp::transport::io::stdio_pipes();
    let transport = transport::Lines::new(input, output, ended.clone());
    tokio::spawn({
        let stopping = stopping.clone();
        async move {
            ended.cancelled().await;
            tokio::time::sleep(GRACE).await;
            stopping.cancel();
        }
    });
    let handler = handler::Handler::new(pipeline, stopping);
    match handler.serve(transport).await {
        Ok(service) => match service.waiting().await? {
            QuitReason::JoinError(error) => Err(error.into()),
            _ => Ok(()),
        },
        Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
