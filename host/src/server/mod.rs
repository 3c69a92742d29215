//! The MCP server over stdio: tools, calls, progress, cancellation, tasks, resources and prompts.

mod elicitation;
mod file_watch;
mod handler;
mod list_changes;
mod prompts;
mod resources;
mod stdio;
mod tasks;
mod tool_list;
mod transport;

use std::sync::Arc;
use std::time::Duration;

use rmcp::ServiceExt;
use rmcp::service::{QuitReason, ServerInitializeError};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;

use crate::dispatcher::Dispatcher;

pub use file_watch::FileWatch;
pub use handler::describe_tool;
pub use tool_list::ListReader;

/// The time that running calls have after the end of input. A script that pipes its requests in has its answers by then, and
/// a client that sends a signal after two seconds finds the server gone.
const GRACE: Duration = Duration::from_secs(1);
/// The time that cancelled calls have to answer and to end their processes.
const CANCEL_TIME: Duration = Duration::from_millis(500);

/// Serves on stdin and stdout until the end of input, or until a signal asks for the end.
pub async fn serve(
    dispatcher: Arc<Dispatcher>,
    list: ListReader,
    watch: Option<FileWatch>,
) -> anyhow::Result<()> {
    if let Some(watch) = watch {
        tokio::spawn(watch.follow(dispatcher.clone()));
    }
    tracing::info!("serving MCP on stdin and stdout");
    let (input, output) = stdio::open();
    serve_over((dispatcher, list), input, output, crate::signals::asked_to_end()).await
}

async fn serve_over(
    (dispatcher, list): (Arc<Dispatcher>, ListReader),
    input: impl AsyncRead + Unpin + Send + 'static,
    output: impl AsyncWrite + Unpin + Send + 'static,
    asked_to_end: impl Future<Output = ()> + Send + 'static,
) -> anyhow::Result<()> {
    let ended = CancellationToken::new();
    let stopping = CancellationToken::new();
    let transport = transport::LineTransport::new(input, output, ended.clone());
    let list = tool_list::ToolList::start(dispatcher.clone(), list);
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
            tokio::time::sleep(CANCEL_TIME).await;
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
    // A change that has begun is finished or undone, even where the client has gone.
    dispatcher.shut_down().await;
    served
}

#[cfg(test)]
mod tests;
