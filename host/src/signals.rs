//! The signals that ask a process to end. Commands run in process groups of their own, so nobody but us ends them.

use tokio::signal::unix::{SignalKind, signal};

/// Returns when the process is asked to end: Ctrl-C, a service manager, a terminal that is gone.
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
