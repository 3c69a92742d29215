//! `linux-sysadmin knowledge`: lists, shows and checks the profiles of services.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};

use super::stdout::stdout;
use crate::config::LoadedConfig;
use host_knowledge::LazyKnowledge;
use host_policy::Policy;
use host_text::visible::visible;

#[derive(Args)]
pub(super) struct Command {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// List the profiles that hold, and what is wrong with those that don't
    List,
    /// Show a profile, by its id or the name of a unit
    Show {
        /// The service's name, such as nginx or nginx.service
        name: String,
    },
    /// Say whether profiles would hold in the place of those that have their ids
    Check {
        /// Files, as they would be in ~/.config/linux-sysadmin/knowledge
        #[arg(required = true)]
        files: Vec<PathBuf>,
    },
}

impl Command {
    pub(super) fn run(self, loaded: &LoadedConfig) -> anyhow::Result<ExitCode> {
        let policy = Policy::load(&loaded.config.policy)?;
        let lazy = LazyKnowledge::new(&loaded.config.knowledge, &loaded.path, policy);
        let (text, is_right) = match self.action {
            Action::List => list(&lazy),
            Action::Show { name } => match lazy.get().find_anywhere(&name) {
                Some(known) => (known.yaml(), true),
                None => anyhow::bail!(
                    "there is no profile {}: `knowledge list` has those that hold",
                    visible(&name)
                ),
            },
            Action::Check { files } => check(&lazy, files),
        };
        stdout().write_all(text.as_bytes())?;
        Ok(if is_right { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

fn list(lazy: &LazyKnowledge) -> (String, bool) {
    let knowledge = lazy.get();
    let line = |known: &host_knowledge::LoadedProfile| {
        let file = known.path.as_ref().map(|path| format!("  {}", path.display())).unwrap_or_default();
        format!("{:<20} {}{file}\n", known.profile.id, visible(&known.profile.name))
    };
    let profiles = knowledge.all().iter().map(line);
    let warnings = knowledge.warnings().iter().map(|warning| format!("{}\n", visible(warning)));
    (profiles.chain(warnings).collect(), knowledge.warnings().is_empty())
}

fn check(lazy: &LazyKnowledge, files: Vec<PathBuf>) -> (String, bool) {
    let (mut text, mut is_right) = (String::new(), true);
    for (path, checked) in lazy.check(files) {
        is_right &= checked.is_ok();
        let said = checked.map_or_else(|warning| warning, |()| format!("{}: it holds", path.display()));
        text.push_str(&format!("{}\n", visible(&said)));
    }
    (text, is_right)
}
