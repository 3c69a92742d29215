//! To be written.
use std::process::ExitCode;

use clap::Args;

use crate::component::Places;
use crate::config::Loaded;

#[derive(Args)]
pub(super) struct Sudoers {
    /// Only of this module
    name: Option<String>,
}

impl Sudoers {
    pub(super) async fn run(self, _: Places, _: Loaded) -> anyhow::Result<ExitCode> {
        let _ = self.name;
        Ok(ExitCode::SUCCESS)
    }
}
