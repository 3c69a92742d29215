//! `linux-sysadmin serve`: MCP over stdio.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::config::LoadedConfig;
use crate::dispatcher::Dispatcher;
use crate::server::{self, FileWatch, ListReader};
use host_components::{CompileMode, ModuleDirectories};
use host_system_mode::Mode;

/// The limit of open files. All calls together may hold more than the usual 1,024.
const DESCRIPTORS: u64 = 65_536;
/// The time that the first answers to a client may take.
const FIRST_ANSWERS: Duration = Duration::from_millis(500);

pub(super) async fn run(places: ModuleDirectories, loaded: LoadedConfig) -> anyhow::Result<ExitCode> {
    let mode = host_system_mode::mode();
    tracing::info!(?mode, "the mode of this server");
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
    let list = ListReader::start(&places, &loaded.config.modules);
    // The watch starts before the modules are read, so that no change in between is missed.
    let watch = FileWatch::start(&places, &loaded.path)
        .inspect_err(
            |error| tracing::error!(%error, "changes of modules are not noticed until the next start"),
        )
        .ok();
    // A client that waits for the answer to `initialize` must wait neither for the modules nor for a compiler.
    let dispatcher = Arc::new(Dispatcher::new(places, loaded, CompileMode::Later)?);
    // The log is read for no more than a warning, so the first answers to the client come first.
    let (ended, ends) = tokio::sync::oneshot::channel::<()>();
    let warning = tokio::spawn(async move {
        let _ = tokio::time::timeout(FIRST_ANSWERS, ends).await;
        tokio::task::spawn_blocking(warn_of_unfinished_changes).await
    });
    server::serve(dispatcher, list, watch).await?;
    drop(ended);
    warning.await??;
    Ok(ExitCode::SUCCESS)
}

/// Warns of changes that an earlier server left unfinished, because it was killed in the middle.
fn warn_of_unfinished_changes() {
    let Some(directory) = host_audit::directory() else { return };
    // A damaged log is reported when the first record is added.
    let left = host_audit::recent_leftovers(&directory).unwrap_or_default();
    let changes: Vec<&String> = left.iter().map(|change| &change.begun.id).collect();
    if !changes.is_empty() {
        tracing::warn!(
            ?changes,
            "a server ended, or lost its target, in the middle of a change; see `linux-sysadmin audit recover`"
        );
    }
}
