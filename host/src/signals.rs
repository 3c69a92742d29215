//! Waits for the signals that ask the process to end. Commands run in process groups of their own, so a signal of the terminal
//! doesn't reach them; the host ends them itself.

use tokio::signal::unix::{SignalKind, signal};

/// Returns when a signal asks the process to end: by Ctrl-C, a service manager, or a terminal that is closed.
pub async fn asked_to_end() {
    let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
    let signals = kinds.into_iter().filter_map(|kind| signal(kind).ok());
    let mut waiting: Vec<_> =
        signals.map(|mut signal| Box::pin(async move { signal.recv().await })).collect();
    if waiting.is_empty() {
        return std::future::pending().await;
    }
    futures_util::future::select_all(waiting.drain(..)).await;
}
