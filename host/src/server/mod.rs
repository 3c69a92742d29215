//! The MCP face of the dispatcher: tools, their calls, progress and cancellation, over stdio.

mod asking;
mod changes;
mod handler;
mod list;
mod resources;
mod tasks;
mod transport;

use std::sync::Arc;
use std::time::Duration;

use rmcp::ServiceExt;
use rmcp::service::{QuitReason, ServerInitializeError};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;

use crate::dispatcher::Dispatcher;
use crate::watch::Watch;

pub use handler::describe_tool;
pub use list::KeptList;

/// What calls under way get at the end of input: a script that pipes its requests in has its answers by then, a client
/// that died waits for nothing, and one that follows up with a signal after two seconds finds us gone.
const GRACE: Duration = Duration::from_secs(1);
/// What is left of a call that was stopped: to say so, and to end its processes.
const ENDING: Duration = Duration::from_millis(500);

/// Serves on stdin and stdout until the end of input, or until a signal asks for the end.
pub async fn serve(dispatcher: Arc<Dispatcher>, kept: KeptList, watch: Option<Watch>) -> anyhow::Result<()> {
    if let Some(watch) = watch {
        tokio::spawn(watch.follow(dispatcher.clone()));
    }
    tracing::info!("serving MCP on stdin and stdout");
    let (input, output) = rmcp::transport::io::stdio_pipes();
    serve_over((dispatcher, kept), input, output, crate::signals::asked_to_end()).await
}

async fn serve_over(
    (dispatcher, kept): (Arc<Dispatcher>, KeptList),
    input: impl AsyncRead + Unpin + Send + 'static,
    output: impl AsyncWrite + Unpin + Send + 'static,
    asked_to_end: impl Future<Output = ()> + Send + 'static,
) -> anyhow::Result<()> {
    let ended = CancellationToken::new();
    let stopping = CancellationToken::new();
    let transport = transport::Lines::new(input, output, ended.clone());
    let list = list::List::begin(dispatcher.clone(), kept);
    let handler = handler::Handler::new(dispatcher.clone(), list, ended.clone(), stopping.clone())?;
    let service_end = CancellationToken::new();
    tokio::spawn({
        let service_end = service_end.clone();
        async move {
            tokio::select! {
                () = ended.cancelled() => tokio::time::sleep(GRACE).await,
                () = asked_to_end => ended.cancel(),
            }
            stopping.cancel();
            tokio::time::sleep(ENDING).await;
            service_end.cancel();
        }
    });
    let served = match handler.serve_with_ct(transport, service_end).await {
        Ok(service) => match service.waiting().await {
            Ok(QuitReason::JoinError(error)) => Err(error.into()),
            Ok(_) => Ok(()),
            Err(error) => Err(error.into()),
        },
        Err(ServerInitializeError::ConnectionClosed(_) | ServerInitializeError::Cancelled) => Ok(()),
        Err(error) => Err(error.into()),
    };
    // What has begun is finished or undone, whoever has gone.
    dispatcher.finished().await;
    served
}

#[cfg(test)]
mod tests;
