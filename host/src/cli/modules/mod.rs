//! `linux-sysadmin modules`: what an operator does with modules. Exit codes: 0 done, 1 refused or a mismatch, 2 wrong
//! usage or configuration.

mod add;
mod changes;
mod compile;
mod dev;
mod fetch;
mod list;
mod new;
mod prompt;
mod publish;
mod questions;
mod record;
mod test;
mod update;
mod view;

use std::fmt::Display;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Subcommand};

use super::stdout::stdout;
use super::text::wrap;
use crate::config::LoadedConfig;
pub(super) use compile::run as compile;
use fetch::Component;
use host_components::Disabled;
use host_components::{CompileMode, InstallError, ModuleDirectories, ModuleInstaller, Origin, module_names};
use host_distribution::Source;
use host_policy::Policy;
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
    /// List the modules, those that aren't used with the reason, what was declined, and what doesn't serve this machine
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Show what a module is and what it asks for, the gravest first
    Inspect {
        /// A component's file, its reference on a registry, or the name of a module that is there
        #[arg(value_name = "FILE|ADDRESS|NAME")]
        module: String,
    },
    /// Show what a component asks for, ask, and pin its bytes
    Add(add::Add),
    /// Show what a new version asks for beyond what was accepted, ask, and pin its bytes
    Update(update::Update),
    /// Copy the pinned component of a third party's module to a file, to add it on a machine without a network
    Export {
        /// The module's name
        name: String,
        /// The new file [default: NAME-VERSION.wasm]
        file: Option<PathBuf>,
    },
    /// Publish a component on a registry
    Publish(publish::Publish),
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
    /// Test a component in this host, on recordings of real machines
    Test(test::Test),
    /// Record what a command prints on a machine, for the tests of a module
    Record(record::Record),
    /// Compile the modules for every account of this machine, as root; the packages do that when they are installed
    Compile,
    /// Print what sudo must allow the modules, and nothing beyond it
    Sudoers(super::sudoers::Sudoers),
    /// Make the folder of a new module, which builds, tests and loads as it is
    New(new::New),
    /// Build a module and add it, and do so again whenever a file of its folder changes
    Dev(dev::Dev),
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
            Command::Record(command) => return command.run(loaded).await,
            Command::Dev(command) => return command.run(places, loaded).await,
            Command::Compile => return compile::run(places).await,
            Command::New(command) => return finish(command.run(&module_names(&places))),
            _ => {}
        }
        let host_modules = places.host.clone();
        // Adding a module needs all others compiled, to find every conflict. Looking at modules needs no compiler.
        let cold = match self.command {
            Command::Add(_) | Command::Update(_) => CompileMode::Now,
            _ => CompileMode::Later,
        };
        // A policy that can't be read keeps nobody from disabling a module.
        let configured = match self.command {
            Command::Add(_) | Command::Update(_) | Command::Inspect { .. } => {
                Policy::load(&loaded.config.policy)?
            }
            _ => None,
        };
        let policy = || configured.as_deref().unwrap_or_else(|| Policy::builtin());
        let workshop = ModuleInstaller::open(places, config, cold).await;
        let mut output = stdout();
        let done = match self.command {
            Command::List { json } => {
                let here = list::facts_of_this_machine(&loaded.config).await;
                match json {
                    true => Ok(writeln!(output, "{}", list::json(&workshop, here.as_deref())?)?),
                    false => Ok(write!(output, "{}", list::table(&workshop, here.as_deref()))?),
                }
            }
            Command::Inspect { module } => match inspect(&workshop, &module, policy()).await {
                Ok(shown) => Ok(write!(output, "{shown}")?),
                Err(error) => Err(error),
            },
            Command::Add(command) => {
                return finish(command.add(&workshop, &Prompt::default(), policy()).await);
            }
            Command::Update(command) => {
                return finish(command.update(&workshop, &Prompt::default(), policy()).await);
            }
            Command::Export { name, file } => return finish(export(&workshop, &name, file)),
            Command::Publish(command) => return finish(command.run(&workshop).await?),
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
            Command::Test(command) => {
                return command.run(host_modules, &loaded.config, &workshop).await;
            }
            // These were run above.
            Command::Sudoers(_)
            | Command::Record(_)
            | Command::Compile
            | Command::Dev(_)
            | Command::New(_) => Ok(()),
        };
        finish(done.map(|()| None))
    }
}

/// The origin of the modules that the command changes.
fn scope(system: bool) -> Origin {
    if system { Origin::System } else { Origin::User }
}

/// Shows a component's file or one on a registry, or a module that is there. A name has no dot and no slash, so it can't be
/// taken for a file.
async fn inspect(workshop: &ModuleInstaller, wanted: &str, policy: &Policy) -> Result<String, InstallError> {
    if let Some(module) = workshop.registry.modules().iter().find(|module| module.description.name == wanted)
    {
        return Ok(ModuleView::of_module(module).held_against(policy).to_string());
    }
    let installed = workshop.installed_file(wanted)?;
    if !wanted.contains(['/', '.']) && installed.is_none() {
        return Err(InstallError::Unknown(wanted.to_owned()));
    }
    let source = match &installed {
        Some(file) => Source::File(file.clone()),
        None => fetch::source_of(Path::new(wanted))?,
    };
    if let Source::Web(address) = &source {
        let reason = "only `modules add --sha256 HEX` takes an address on the web, and asks before it adds";
        return Err(InstallError::Elsewhere { address: address.to_string(), reason: reason.to_owned() });
    }
    let component = Component::fetch(&source, None)?;
    let examined = component.examine(workshop, installed.is_some()).await?;
    workshop.forget(&examined);
    let view = ModuleView::of_file(&examined).held_against(policy);
    Ok(match workshop.entry(wanted)? {
        Some((origin, entry)) if installed.is_some() => view.of_unused(origin, entry.grants).to_string(),
        _ => view.to_string(),
    })
}

/// Copies a module's component to a file, and says how another machine takes exactly these bytes.
fn export(
    workshop: &ModuleInstaller,
    name: &str,
    file: Option<PathBuf>,
) -> Result<Option<String>, InstallError> {
    let file = match (file, workshop.entry(name)?) {
        (Some(file), _) => file,
        (None, Some((_, entry))) => PathBuf::from(format!("{name}-{}.wasm", entry.version)),
        (None, None) => PathBuf::from(format!("{name}.wasm")),
    };
    let entry = workshop.export(name, &file)?;
    let shown = file.display();
    let add = format!("linux-sysadmin modules add {shown} --sha256 {}", entry.sha256);
    Ok(Some(format!("{name} {} is in {shown}; on the other machine:\n{add}", entry.version)))
}

/// Puts a message on one line. It may quote what a third party wrote.
fn one_line(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    visible(&words.join(" ")).into_owned()
}

/// Prints the result, or on stderr why the command was refused.
fn finish(done: Result<Option<String>, impl Display>) -> anyhow::Result<ExitCode> {
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
