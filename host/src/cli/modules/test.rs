//! `linux-sysadmin modules test`: tests a component in this host, on recordings of real machines. Exit codes: 0 every check
//! passed, 1 one failed, 2 wrong usage or transcripts that can't be read.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;

use crate::cli::stdout::stdout;
use crate::config::Config;
use crate::module_tests;
use host_components::ModuleInstaller;

/// The folders that are looked for where no other one is named.
const USUAL: [&str; 2] = ["tests/transcripts", "transcripts"];

#[derive(Args)]
pub(super) struct Test {
    /// The component
    file: PathBuf,
    /// The folder with a folder of transcripts for each recorded machine [default: tests/transcripts or transcripts, where
    /// there is one]
    #[arg(long, value_name = "DIR")]
    transcripts: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Test {
    pub(super) async fn run(
        self,
        host_modules: Option<PathBuf>,
        config: &Config,
        workshop: &ModuleInstaller,
    ) -> anyhow::Result<ExitCode> {
        let usual = || USUAL.iter().map(PathBuf::from).find(|folder| folder.is_dir());
        let transcripts = self.transcripts.or_else(usual);
        let transcripts = transcripts.as_deref();
        let report = module_tests::run(&self.file, transcripts, host_modules, config, workshop).await?;
        let text = match self.json {
            true => serde_json::to_string_pretty(&report.json())? + "\n",
            false => format!("{}{}", heading(&self.file, transcripts), report.text()),
        };
        stdout().write_all(text.as_bytes())?;
        Ok(if report.has_passed() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

/// Says what is tested, and by which transcripts.
fn heading(file: &Path, transcripts: Option<&Path>) -> String {
    let shown = |path: &Path| host_text::visible::one_line(&path.display().to_string());
    match transcripts {
        Some(transcripts) => format!("{}, by the transcripts in {}\n", shown(file), shown(transcripts)),
        None => format!("{}, without transcripts\n", shown(file)),
    }
}
