//! `linux-sysadmin deny`: refuses a call that waits. Exit codes: 0 refused, 1 it was not, 2 wrong usage.

use std::io::Write;
use std::process::ExitCode;

use clap::Args;

use super::pending_call::{self, IdPrefix, find};
use super::stdout::stdout;
use host_approval::Servers;
use host_text::visible::one_line;

#[derive(Args)]
pub(super) struct Deny {
    /// The call, as `linux-sysadmin pending` lists it; the first 4 digits are enough, where no other call has them
    id: IdPrefix,
}

impl Deny {
    pub(super) async fn run(self) -> anyhow::Result<ExitCode> {
        let found = match find(&Servers::within_reach(), &self.id).await {
            Ok(found) => found,
            Err(error) => {
                pending_call::print_error(&error);
                return Ok(ExitCode::FAILURE);
            }
        };
        if let Err(error) = found.server.decide(&found.waiting, false).await {
            pending_call::print_error(&error);
            return Ok(ExitCode::FAILURE);
        }
        let summary = one_line(&found.waiting.summary);
        writeln!(stdout(), "denied: {summary}; nothing is changed, and the client is told so")?;
        Ok(ExitCode::SUCCESS)
    }
}
