//! `linux-sysadmin modules compile`: compiles the modules for all accounts of the machine. The packages do this when they are
//! installed, so it reads no configuration and needs no home directory.

use std::io::Write as _;
use std::process::ExitCode;

use super::finish;
use crate::cli::stdout::stdout;
use crate::cli::text::wrap;
use host_components::{ModuleDirectories, compile_for_everyone};
use host_text::visible::visible;

/// Compiles the modules in these places. The exit code is 1 where one of them can't be used.
pub(in crate::cli) async fn run(places: ModuleDirectories) -> anyhow::Result<ExitCode> {
    let compiled = match compile_for_everyone(places).await {
        Ok(compiled) => compiled,
        Err(refused) => return finish(Err(refused)),
    };
    let failed = compiled.failed.iter().map(|(name, reason)| {
        let line = wrap(&visible(&format!("{name}: {reason}")), "error: ", "  ");
        format!("{line}\n")
    });
    let failed: String = failed.collect();
    let directory = compiled.directory.display();
    writeln!(stdout(), "{} modules are compiled in {directory}", compiled.modules)?;
    eprint!("{failed}");
    Ok(if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
