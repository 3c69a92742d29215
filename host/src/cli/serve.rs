//! `linux-sysadmin serve`: MCP over stdio.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::config::Loaded;
use crate::dispatcher::Dispatcher;
use crate::server::{self, KeptList};
use crate::watch::Watch;
use host_components::{Cold, Places};
use host_system_mode::Mode;

/// Descriptors: what calls may hold at once exceeds the usual 1,024.
const DESCRIPTORS: u64 = 65_536;
/// By then a client has had its first answers.
const ANSWERED: Duration = Duration::from_millis(500);

pub(super) async fn run(places: Places, loaded: Loaded) -> anyhow::Result<ExitCode> {
    let mode = host_system_mode::mode();
    tracing::info!(?mode, "whose rights this server has");
    if matches!(mode, Mode::System { .. }) {
        host_system_mode::leave_terminal()
            .context("the terminal of whoever started the server can't be left")?;
    }
    let limit = getrlimit(Resource::Nofile);
    let most = limit.maximum.map_or(DESCRIPTORS, |maximum| maximum.min(DESCRIPTORS));
    if limit.current.is_some_and(|current| current < most)
        && let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: Some(most), ..limit })
    {
        tracing::warn!(%error, "the limit of open files stays as it is");
    }
    let kept = KeptList::begin(&places, &loaded.config.modules);
    // Before the first look, so that no change falls between the two.
    let watch = Watch::begin(&places, &loaded.path)
        .inspect_err(
            |error| tracing::error!(%error, "changes of modules are not noticed until the next start"),
        )
        .ok();
    // Whoever waits for an answer to `initialize` waits neither for the modules nor for a compiler.
    let dispatcher = Arc::new(Dispatcher::new(places, loaded, Cold::Later)?);
    // All that comes of it is a line, for which the log is read: whoever waits for a first answer goes before.
    let (ended, ends) = tokio::sync::oneshot::channel::<()>();
    let telling = tokio::spawn(async move {
        let _ = tokio::time::timeout(ANSWERED, ends).await;
        tokio::task::spawn_blocking(tell_unfinished).await
    });
    server::serve(dispatcher, kept, watch).await?;
    drop(ended);
    telling.await??;
    Ok(ExitCode::SUCCESS)
}

/// A server that was killed in the middle of a change can't tell of it, so the next one does.
fn tell_unfinished() {
    let Some(directory) = host_audit::directory() else { return };
    // What is wrong with the log, the first record that is to be added says.
    let left = host_audit::left_lately(&directory).unwrap_or_default();
    let changes: Vec<&String> = left.iter().map(|change| &change.begun.id).collect();
    if !changes.is_empty() {
        tracing::warn!(
            ?changes,
            "a server ended, or lost its target, in the middle of a change; see `linux-sysadmin audit recover`"
        );
    }
}
