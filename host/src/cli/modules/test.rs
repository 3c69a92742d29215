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

/// The number of folders above a component in which they are looked for: `target/wasm32-wasip2/release` and that of the crate.
const ABOVE: usize = 4;

#[derive(Args)]
pub(super) struct Test {
    /// The component
    file: PathBuf,
    /// The folder with a folder of transcripts for each recorded machine [default: tests/transcripts or transcripts here, or
    /// in a folder above the component]
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
        let transcripts = self.transcripts.or_else(|| usual(&self.file));
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

/// The transcripts of the folder where this runs, or of the nearest folder above the component: cargo puts a component three
/// folders below its crate.
fn usual(file: &Path) -> Option<PathBuf> {
    let file = file.canonicalize().ok();
    let above = file.iter().flat_map(|file| file.ancestors().skip(1).take(ABOVE));
    let places = std::iter::once(Path::new("")).chain(above);
    places.flat_map(|place| USUAL.map(|folder| place.join(folder))).find(|folder| folder.is_dir())
}

/// Says what is tested, and by which transcripts.
fn heading(file: &Path, transcripts: Option<&Path>) -> String {
    let shown = |path: &Path| host_text::visible::one_line(&path.display().to_string());
    match transcripts {
        Some(transcripts) => format!("{}, by the transcripts in {}\n", shown(file), shown(transcripts)),
        None => format!(
            "{}, without transcripts, so that no call of a tool is tested: expected {} here or above it, or --transcripts DIR\n",
            shown(file),
            USUAL[0]
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transcripts_are_found_in_the_crate_of_a_component_and_not_farther_above() {
        let home = tempfile::tempdir().unwrap();
        let home = home.path().canonicalize().unwrap();
        let component = home.join("a/b/c/target/wasm32-wasip2/release/x.wasm");
        std::fs::create_dir_all(component.parent().unwrap()).unwrap();
        std::fs::write(&component, "").unwrap();
        std::fs::create_dir_all(home.join("a/b/tests/transcripts")).unwrap();
        assert_eq!(usual(&component), None);
        std::fs::create_dir_all(home.join("a/b/c/transcripts")).unwrap();
        assert_eq!(usual(&component), Some(home.join("a/b/c/transcripts")));
        std::fs::create_dir_all(home.join("a/b/c/tests/transcripts")).unwrap();
        assert_eq!(usual(&component), Some(home.join("a/b/c/tests/transcripts")));
        assert_eq!(usual(&home.join("none.wasm")), None);
    }
}
