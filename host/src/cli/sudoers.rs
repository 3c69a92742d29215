//! `linux-sysadmin modules sudoers`: prints the sudoers fragments of modules, for a person to read and install.

use std::fmt::Write as _;
use std::io::Write;
use std::process::ExitCode;

use clap::Args;

use super::stdout::stdout;
use crate::config::LoadedConfig;
use crate::dispatcher::Dispatcher;
use host_capability::Fragment;
use host_components::{CompileMode, Module, ModuleDirectories};
use host_system_mode::sudoers;

#[derive(Args)]
pub(super) struct Sudoers {
    /// Print the rules of this module only
    name: Option<String>,
    #[command(flatten)]
    target: super::TargetOption,
    /// The account that the server reaches the machine as [default: the one that it does now]
    #[arg(long, value_name = "NAME")]
    account: Option<String>,
}

impl Sudoers {
    pub(super) async fn run(
        self,
        places: ModuleDirectories,
        loaded: LoadedConfig,
    ) -> anyhow::Result<ExitCode> {
        let dispatcher = Dispatcher::new(places, self.target.apply(loaded), CompileMode::Now)?;
        let (loaded, target) = (dispatcher.modules().await, dispatcher.targets().usual());
        let account = match self.account {
            Some(account) => account,
            None => target.facts().await?.user.clone(),
        };
        let is_wanted = |module: &&std::sync::Arc<Module>| match &self.name {
            Some(name) => module.description.name == *name,
            None => true,
        };
        let modules: Vec<_> = loaded.registry.modules().iter().filter(is_wanted).collect();
        if modules.is_empty() {
            let name = self.name.as_deref().unwrap_or("any name");
            eprintln!(
                "error: there is no module named {name}; `linux-sysadmin modules list` shows those that are there"
            );
            return Ok(ExitCode::FAILURE);
        }
        let mut text = String::new();
        for module in modules {
            let fragment = sudoers::fragment(target, module, &account, dispatcher.knowledge()).await?;
            // The fragment of a module that needs nothing is shown only where that module is named.
            if self.name.is_some() || fragment.is_needed {
                let _ = writeln!(text, "{}", shown(&fragment));
            }
        }
        if text.is_empty() {
            text = "# No module needs another account's rights, so there is nothing that sudo must allow.\n"
                .to_owned();
        }
        write!(stdout(), "{}", text.trim_end().to_owned() + "\n")?;
        Ok(ExitCode::SUCCESS)
    }
}

/// The fragment, and as comments the files that it needs beside it.
fn shown(fragment: &Fragment) -> String {
    let mut text = fragment.to_string();
    for environment in &fragment.environments {
        let _ = writeln!(text, "\n# {}, owned by root, mode 0440:", environment.path.display());
        for line in environment.text.lines() {
            let _ = writeln!(text, "#   {line}");
        }
    }
    text
}
