//! `linux-sysadmin serve`: MCP over stdio.

use std::process::ExitCode;
use std::sync::Arc;

use crate::component::{Cold, Places};
use crate::config::Loaded;
use crate::pipeline::Pipeline;
use crate::server;
use crate::watch::Watch;

pub(super) async fn run(places: Places, loaded: Loaded) -> anyhow::Result<ExitCode> {
    // Before the first look, so that no change falls between the two.
    let watch = Watch::begin(&places, &loaded.path)
        .inspect_err(
            |error| tracing::error!(%error, "changes of modules are not noticed until the next start"),
        )
        .ok();
    // Whoever waits for an answer to `initialize` doesn't wait for a compiler.
    let pipeline = Arc::new(Pipeline::new(places, loaded, Cold::Later).await);
    server::serve(pipeline, watch).await?;
    Ok(ExitCode::SUCCESS)
}
