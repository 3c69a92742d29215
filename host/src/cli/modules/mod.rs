//! `linux-sysadmin modules`: what an operator does with modules. Exit codes: 0 done, 1 refused or a mismatch, 2 wrong
//! usage or configuration.

mod add;
mod compile;
mod list;
mod prompt;
mod view;

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};

use super::stdout::stdout;
use super::text::wrap;
use crate::config::LoadedConfig;
pub(super) use compile::run as compile;
use host_components::Disabled;
use host_components::{CompileMode, InstallError, ModuleDirectories, ModuleInstaller, Origin};
use host_text::visible::visible;
pub(super) use prompt::Prompt;
use view::ModuleView;

#[derive(Args)]
pub(super) struct Modules {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// List the modules, those that aren't used with the reason
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Show what a module is and what it asks for, the gravest first
    Inspect {
        /// A component's file, or the name of a module that is there
        #[arg(value_name = "FILE|NAME")]
        module: String,
    },
    /// Show what a component asks for, ask, and pin its bytes
    Add(add::Add),
    /// Show what a new version asks for beyond what was accepted, ask, and pin its bytes
    Update(add::Update),
    /// Load a module again that was disabled
    Enable(Switch),
    /// Never load a module, or whatever has these bytes; a running server drops it within a second
    Disable(Switch),
    /// Take a third party's module away
    Remove {
        /// Its name
        name: String,
    },
    /// Hold every component's bytes against its pin
    Verify {
        /// Compile each anew as well, and compare that with what is kept
        #[arg(long)]
        compiled: bool,
    },
    /// Compile the modules for every account of this machine, as root; the packages do that when they are installed
    Compile,
    /// Print what sudo must allow the modules, and nothing beyond it
    Sudoers(super::sudoers::Sudoers),
}

#[derive(Args)]
struct Switch {
    /// A module's name, or `sha256:` and the SHA-256 of a component
    #[arg(value_name = "NAME|sha256:HEX", value_parser = |text: &str| Disabled::try_from(text.to_owned()))]
    wanted: Disabled,
    /// Change it for every account of this machine, as root
    #[arg(long)]
    system: bool,
}

impl Modules {
    /// Whether this compiles the modules for all accounts, for which no account's configuration counts.
    pub(super) fn is_compile(&self) -> bool {
        matches!(self.command, Command::Compile)
    }

    pub(super) async fn run(
        self,
        places: ModuleDirectories,
        loaded: LoadedConfig,
    ) -> anyhow::Result<ExitCode> {
        let config = &loaded.config.modules;
        match self.command {
            Command::Sudoers(command) => return command.run(places, loaded).await,
            Command::Compile => return compile::run(places).await,
            _ => {}
        }
        // Adding a module needs all others compiled, to find every conflict. Looking at modules needs no compiler.
        let cold = match self.command {
            Command::Add(_) | Command::Update(_) => CompileMode::Now,
            _ => CompileMode::Later,
        };
        let workshop = ModuleInstaller::open(places, config, cold).await;
        let mut output = stdout();
        let done = match self.command {
            Command::List { json: true } => Ok(writeln!(output, "{}", list::json(&workshop)?)?),
            Command::List { json: false } => Ok(write!(output, "{}", list::table(&workshop))?),
            Command::Inspect { module } => match inspect(&workshop, &module).await {
                Ok(shown) => Ok(write!(output, "{shown}")?),
                Err(error) => Err(error),
            },
            Command::Add(command) => return finish(command.run(&workshop, &Prompt::default()).await?),
            Command::Update(command) => return finish(command.run(&workshop, &Prompt::default()).await?),
            Command::Enable(Switch { wanted, system }) => {
                return finish(
                    workshop.enable(&wanted, scope(system)).map(|()| Some(format!("{wanted} is enabled"))),
                );
            }
            Command::Disable(Switch { wanted, system }) => {
                return finish(
                    workshop.disable(&wanted, scope(system)).map(|()| Some(format!("{wanted} is disabled"))),
                );
            }
            Command::Remove { name } => {
                return finish(workshop.remove(&name).map(|()| Some(format!("{name} is removed"))));
            }
            Command::Verify { compiled } => {
                let all = if compiled { workshop.verify_compiled().await } else { workshop.verify() };
                let (text, all_right) = list::verification(&all);
                write!(output, "{text}")?;
                return Ok(if all_right { ExitCode::SUCCESS } else { ExitCode::FAILURE });
            }
            // These were run above.
            Command::Sudoers(_) | Command::Compile => Ok(()),
        };
        finish(done.map(|()| None))
    }
}

/// The origin of the modules that the command changes.
fn scope(system: bool) -> Origin {
    if system { Origin::System } else { Origin::User }
}

/// Shows a component's file, or a module that is there. A name has no dot and no slash, so it can't be taken for a file.
async fn inspect(workshop: &ModuleInstaller, wanted: &str) -> Result<String, InstallError> {
    if let Some(module) = workshop.registry.modules().iter().find(|module| module.description.name == wanted)
    {
        return Ok(ModuleView::of_module(module).to_string());
    }
    let path = PathBuf::from(wanted);
    let installed = workshop.installed_file(wanted)?;
    if !wanted.contains(['/', '.']) && installed.is_none() {
        return Err(InstallError::Unknown(wanted.to_owned()));
    }
    let examined = workshop.examine(installed.as_deref().unwrap_or(&path), installed.is_some()).await?;
    workshop.forget(&examined);
    let view = ModuleView::of_file(&examined);
    Ok(match workshop.entry(wanted)? {
        Some((origin, entry)) if installed.is_some() => view.of_unused(origin, entry.grants).to_string(),
        _ => view.to_string(),
    })
}

/// Puts a message on one line. It may quote what a third party wrote.
fn one_line(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    visible(&words.join(" ")).into_owned()
}

/// Prints the result, or on stderr why the command was refused.
fn finish(done: Result<Option<String>, InstallError>) -> anyhow::Result<ExitCode> {
    match done {
        Ok(said) => {
            if let Some(said) = said {
                writeln!(stdout(), "{said}")?;
            }
            Ok(ExitCode::SUCCESS)
        }
        Err(refused) => {
            writeln!(io::stderr().lock(), "{}", wrap(&one_line(&format!("error: {refused}")), "", "  "))?;
            Ok(ExitCode::FAILURE)
        }
    }
}
