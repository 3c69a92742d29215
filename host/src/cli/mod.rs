//! The command line. Exit codes: 0 success, 1 the tool answered an error, 2 usage or configuration.

mod approve;
mod audit;
mod call;
mod completion;
mod deny;
mod doctor;
mod knowledge;
mod modules;
mod pager;
mod pending;
mod pending_call;
mod policy;
mod screen;
mod serve;
mod stdout;
mod sudoers;
mod system;
mod table;
mod text;
mod tool_help;
mod tools;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use anyhow::Context;
use clap::{CommandFactory, Parser, Subcommand};
use clap_complete::engine::ArgValueCompleter;
use tracing_appender::non_blocking::{NonBlocking, NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::filter::{FilterExt, FilterFn};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer, fmt};

use crate::config;
use crate::dispatcher::Dispatcher;
use host_components::{CompileMode, ModuleDirectories};

/// The variable with the filter of `tracing`, such as `info` or `linux_sysadmin=debug`.
const LOG_VARIABLE: &str = "LINUX_SYSADMIN_LOG";

const MODULES_VARIABLE: &str = "LINUX_SYSADMIN_MODULES";

const AFTER_HELP: &str = "\
Environment:
  LINUX_SYSADMIN_CONFIG   Configuration file [default: ~/.config/linux-sysadmin/config.yaml]
  LINUX_SYSADMIN_MODULES  Directory of the components, as --modules
  LINUX_SYSADMIN_LOG      What is logged on stderr: error, warn, info, debug, trace [default: warn]
  NO_COLOR                Where it is not empty, nothing has a colour
  PAGER                   The program that shows long text [default: less]

Exit codes:
  0  success
  1  the tool answered an error
  2  wrong usage or configuration";

/// Linux administration for AI agents: an MCP server whose every tool runs in a sandboxed WebAssembly component.
#[derive(Parser)]
#[command(name = "linux-sysadmin", version, after_help = AFTER_HELP, max_term_width = 100)]
struct Cli {
    /// Directory of the components [default: `modules` beside the program, or `../lib/linux-sysadmin/modules`]
    #[arg(long, global = true, value_name = "DIR", env = MODULES_VARIABLE, hide_env = true)]
    modules: Option<PathBuf>,
    #[command(subcommand)]
    command: Command,
}

/// The option that names the target.
#[derive(clap::Args)]
struct TargetOption {
    /// The machine, as ~/.ssh/config knows it; `localhost` is this one [default: the configuration's ssh.target]
    #[arg(long, value_name = "ALIAS", add = ArgValueCompleter::new(completion::hosts))]
    host: Option<host_openssh::Alias>,
}

impl TargetOption {
    /// Makes the host that the option names the usual target.
    fn apply(&self, mut loaded: config::LoadedConfig) -> config::LoadedConfig {
        if let Some(host) = &self.host {
            loaded.config.ssh.target = Some(host.clone());
        }
        loaded
    }
}

#[derive(Subcommand)]
enum Command {
    /// Serve MCP over stdin and stdout, until the end of input
    Serve(TargetOption),
    /// List the tools by subject, or say everything about one
    Tools(tools::Tools),
    /// Call one tool, precisely as a client would
    Call(call::Call),
    /// See, add, pin, disable, check and write modules
    Modules(modules::Modules),
    /// See, verify and export what was called and changed, and recover what was left half-done
    Audit(audit::Audit),
    /// See the calls that wait for a person's decision; with an ID the whole plan
    Pending(pending::Pending),
    /// See the whole plan of a call that waits, and approve it at this terminal
    Approve(approve::Approve),
    /// Refuse a call that waits
    Deny(deny::Deny),
    /// Run the server as an account of its own, out of reach of whoever uses it
    System(system::System),
    /// Ask the policy's rules about a command, and list them
    Policy(policy::Command),
    /// See which services of this machine have a profile, read profiles, and check one's own
    Knowledge(knowledge::Command),
    /// Look at everything that the server needs, and say how to put right what isn't; nothing is changed
    Doctor(doctor::Doctor),
    /// Print what makes a shell complete tools, their arguments, hosts and units
    Completion(completion::Completion),
    /// Write the manual pages into this directory
    #[command(hide = true)]
    Manuals { directory: PathBuf },
    /// Compile the component on stdin within limits
    #[command(name = host_components::COMPILE, hide = true)]
    CompileComponent { memory_mib: u64, seconds: u64 },
}

/// Runs the command line of this process.
pub fn run() -> ExitCode {
    // This comes before clap, which reads environment variables.
    if let Err(error) = host_system_mode::enforce_clean_environment() {
        eprintln!("error: the environment of the account can't be made: {error}");
        return ExitCode::from(2);
    }
    completion::answer_shell();
    // On a usage error clap ends the process with 2.
    let cli = Cli::plain_serve(std::env::args_os()).unwrap_or_else(Cli::parse);
    let logging = start_logging();
    // A call would be handed between two workers, each of which is woken for it. Guests that compute for long don't need a second
    // one: they leave the worker.
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let outcome = runtime.map_err(anyhow::Error::from).and_then(|runtime| {
        let outcome = runtime.block_on(cli.execute());
        // A read from a terminal can't be interrupted, so the process doesn't wait for it.
        runtime.shutdown_background();
        outcome
    });
    let code = outcome.unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::from(2)
    });
    logging.end();
    code
}

impl Cli {
    /// Recognizes `serve` without further words, as clients start it. Clap's tree of all commands takes longer to build than
    /// the whole rest of the start.
    fn plain_serve(mut words: impl Iterator<Item = OsString>) -> Option<Self> {
        let is_plain = words.nth(1).is_some_and(|word| word == "serve") && words.next().is_none();
        let modules = std::env::var_os(MODULES_VARIABLE);
        // Clap refuses an empty name of a directory.
        (is_plain && modules.as_ref().is_none_or(|named| !named.is_empty())).then(|| Self {
            modules: modules.map(PathBuf::from),
            command: Command::Serve(TargetOption { host: None }),
        })
    }

    async fn execute(self) -> anyhow::Result<ExitCode> {
        if let Command::CompileComponent { memory_mib, seconds } = self.command {
            return host_components::compile(memory_mib, seconds).map(|()| ExitCode::SUCCESS);
        }
        // These commands need no configuration, and work where it is broken.
        match self.command {
            Command::Audit(command) => return command.run().await,
            Command::Pending(command) => return command.run().await,
            Command::Approve(command) => return command.run().await,
            Command::Deny(command) => return command.run().await,
            Command::Completion(command) => return command.run(),
            Command::Manuals { directory } => {
                clap_mangen::generate_to(Self::command(), directory)?;
                return Ok(ExitCode::SUCCESS);
            }
            _ => {}
        }
        if let Command::System(command) = self.command {
            let named = self.modules.map(named_modules).transpose()?;
            return command.run(named, modules_beside).await;
        }
        if matches!(&self.command, Command::Call(command) if command.wants_general_help()) {
            return print_help("call");
        }
        // No account's configuration counts for what all accounts share.
        if matches!(&self.command, Command::Modules(command) if command.is_compile()) {
            return modules::compile(ModuleDirectories::new(modules_directory(self.modules)?)).await;
        }
        if let Command::Doctor(command) = self.command {
            return command.run(ModuleDirectories::new(modules_directory(self.modules)?)).await;
        }
        let loaded = config::load(!matches!(self.command, Command::Tools(_)))?;
        if let Command::Policy(command) = self.command {
            return command.run(&loaded);
        }
        if let Command::Knowledge(command) = self.command {
            return command.run(&loaded).await;
        }
        let places = ModuleDirectories::new(modules_directory(self.modules)?);
        match self.command {
            Command::Serve(target) => serve::run(places, target.apply(loaded)).await,
            Command::Tools(command) => command.run(&Dispatcher::new(places, loaded, CompileMode::Now)?).await,
            Command::Call(command) => {
                let loaded = command.target.apply(loaded);
                command.run(&Arc::new(Dispatcher::new(places, loaded, CompileMode::Now)?)).await
            }
            Command::Modules(command) => command.run(places, loaded).await,
            // These were run above.
            Command::Audit(_)
            | Command::Pending(_)
            | Command::Approve(_)
            | Command::Deny(_)
            | Command::Completion(_)
            | Command::Doctor(_)
            | Command::Manuals { .. }
            | Command::Policy(_)
            | Command::Knowledge(_)
            | Command::System(_)
            | Command::CompileComponent { .. } => Ok(ExitCode::SUCCESS),
        }
    }
}

/// Prints the help of a command that reads `--help` itself.
fn print_help(name: &str) -> anyhow::Result<ExitCode> {
    let mut program = Cli::command();
    // This gives the command its whole name.
    program.build();
    let command = program.find_subcommand_mut(name).context("there is no such command")?;
    // Clap knows how to style it, and where to.
    command.print_help()?;
    Ok(ExitCode::SUCCESS)
}

/// The directory of the components. A directory that is named must exist; without any directory there are no tools.
fn modules_directory(named: Option<PathBuf>) -> anyhow::Result<Option<PathBuf>> {
    match named {
        Some(named) => named_modules(named).map(Some),
        None => Ok(modules_beside(&std::env::current_exe()?)),
    }
}

fn named_modules(named: PathBuf) -> anyhow::Result<PathBuf> {
    anyhow::ensure!(named.is_dir(), "the modules' directory {} is not there", named.display());
    Ok(named)
}

/// The directory that a program finds beside itself.
fn modules_beside(program: &Path) -> Option<PathBuf> {
    let beside = program.parent().unwrap_or(Path::new("/"));
    let candidates = [beside.join("modules"), beside.join("../lib/linux-sysadmin/modules")];
    candidates.into_iter().find(|candidate| candidate.is_dir())
}

/// The thread that writes the log. The first line starts it.
#[derive(Clone, Default)]
struct Logging(Arc<OnceLock<(NonBlocking, Mutex<Option<WorkerGuard>>)>>);

impl Logging {
    fn writer(&self) -> NonBlocking {
        let (writer, _) = self.0.get_or_init(|| {
            // The buffer is allocated at once, so it has fewer lines than the usual 128,000.
            let (writer, guard) = NonBlockingBuilder::default()
                .buffered_lines_limit(1024)
                .lossy(true)
                .finish(std::io::stderr());
            (writer, Mutex::new(Some(guard)))
        });
        writer.clone()
    }

    /// Writes the lines that are left.
    fn end(&self) {
        if let Some((_, guard)) = self.0.get() {
            drop(guard.lock().unwrap_or_else(PoisonError::into_inner).take());
        }
    }
}

/// Logs to stderr, because stdout belongs to the protocol or to the answer. A thread of its own writes the log and drops
/// what it can't write, so a client that never reads the server's stderr doesn't stop the server.
fn start_logging() -> Logging {
    let wanted = EnvFilter::builder()
        .with_default_directive(tracing::level_filters::LevelFilter::WARN.into())
        .with_env_var(LOG_VARIABLE)
        .from_env_lossy();
    // At debug, rmcp logs whole requests with their arguments, and russh what it signs and with which key. rmcp also logs
    // every connection at info.
    let quiet_protocol = FilterFn::new(|metadata| {
        let is_protocol = ["rmcp", "russh"].iter().any(|name| metadata.target().starts_with(name));
        !is_protocol || *metadata.level() <= tracing::Level::WARN
    });
    let logging = Logging::default();
    let of_layer = logging.clone();
    let writer = move || of_layer.writer();
    let layer = fmt::layer().with_writer(writer).with_ansi(false).with_filter(wanted.and(quiet_protocol));
    tracing_subscriber::registry().with(layer).init();
    logging
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use clap::Arg;

    use super::*;

    #[test]
    fn what_clients_start_is_what_clap_would_have_read() {
        let short = |said: &[&str]| Cli::plain_serve(said.iter().map(OsString::from));
        let read = Cli::try_parse_from(["linux-sysadmin", "serve"]).unwrap();
        let is_plain = |cli: &Cli| matches!(&cli.command, Command::Serve(TargetOption { host: None }));
        let plain = short(&["linux-sysadmin", "serve"]).unwrap();
        assert!(is_plain(&plain) && is_plain(&read));
        assert_eq!(plain.modules, read.modules);
        for said in [
            &["x"][..],
            &["x", "tools"],
            &["x", "serve", "--host=web1"],
            &["x", "serve", ""],
            &["x", "--help"],
            &[],
        ] {
            assert!(short(said).is_none(), "{said:?}");
        }
    }

    #[test]
    fn what_advice_says_to_run_is_a_command_of_this_program() {
        let mut commands = 0;
        for step in crate::answers::remediation::all_steps() {
            for quoted in step.split('`').skip(1).step_by(2) {
                let words: Vec<String> = quoted.split(' ').map(|word| word.replace(['{', '}'], "")).collect();
                if words[0] == "linux-sysadmin" {
                    commands += 1;
                    if let Err(error) = Cli::try_parse_from(&words) {
                        panic!("`{quoted}`: {error}");
                    }
                }
            }
        }
        assert!(commands > 10, "{commands}");
    }

    /// The characters around a word that are no part of it.
    const QUOTES: [char; 4] = ['\'', '"', '\\', '…'];

    /// The words behind the program's name in each call of it that a page shows: in a line of a console, or as a code span.
    fn shown_calls(page: &str) -> Vec<Vec<String>> {
        let mut calls = Vec::new();
        let mut is_code = false;
        for line in page.lines() {
            if line.starts_with("```") {
                is_code = !is_code;
                continue;
            }
            let spans: Vec<&str> = match is_code {
                true => line.strip_prefix("$ ").into_iter().collect(),
                false => line.split('`').skip(1).step_by(2).collect(),
            };
            for command in spans.iter().flat_map(|span| span.split(" | ")) {
                let command = command.split(" #").next().unwrap_or_default();
                let words: Vec<&str> =
                    command.split_whitespace().map(|word| word.trim_matches(QUOTES)).collect();
                let is_program = |word: &str| word == "linux-sysadmin" || word.ends_with("/linux-sysadmin");
                // The account and the journal's entries have the program's name as well.
                let is_call = |pair: &[&str]| {
                    is_program(pair[0])
                        && !is_program(pair[1])
                        && !pair[1].is_empty()
                        && pair[1].bytes().all(|byte| byte.is_ascii_lowercase())
                };
                if let Some(program) = words.windows(2).position(is_call) {
                    calls.push(words[program + 1..].iter().map(|word| (*word).to_owned()).collect());
                }
            }
        }
        calls
    }

    /// The first word that is no command or option of the program.
    fn unknown_word(words: &[String]) -> Option<String> {
        let mut command = Cli::command();
        command.build();
        let mut command = &command;
        for word in words {
            // What follows are values, whatever they look like.
            if word == "--" {
                return command.get_positionals().next().is_none().then(|| word.clone());
            }
            if let Some(long) = word.strip_prefix("--") {
                let name = long.split('=').next().unwrap_or_default();
                if !command.get_arguments().any(|argument| argument.get_long() == Some(name)) {
                    return Some(word.clone());
                }
            } else if let Some(below) = command.find_subcommand(word) {
                command = below;
            } else if command.has_subcommands() {
                return Some(word.clone());
            } else if command.get_positionals().any(Arg::is_trailing_var_arg_set) {
                // The rest belongs to another program.
                return None;
            }
        }
        None
    }

    #[test]
    fn every_command_and_option_that_the_documentation_shows_exists() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let mut pages =
            vec![root.join("README.md"), root.join("CONTRIBUTING.md"), root.join("knowledge/README.md")];
        // The pages that a new module begins with.
        pages.extend(["rust", "python"].map(|kind| root.join(format!("sdk/templates/{kind}/README.md"))));
        pages.extend(std::fs::read_dir(root.join("docs")).unwrap().map(|entry| entry.unwrap().path()));
        let mut calls = 0;
        for page in pages.iter().filter(|page| page.extension().is_some_and(|kind| kind == "md")) {
            for words in shown_calls(&std::fs::read_to_string(page).unwrap()) {
                calls += 1;
                assert_eq!(
                    unknown_word(&words),
                    None,
                    "{}: linux-sysadmin {}",
                    page.display(),
                    words.join(" ")
                );
            }
        }
        assert!(calls > 50, "{calls}");
        for (line, unknown) in [
            ("$ linux-sysadmin audit show --everything", Some("--everything")),
            ("$ sudo -u x /usr/local/bin/linux-sysadmin frobnicate # a comment", Some("frobnicate")),
            ("$ linux-sysadmin policy check rm --recursive /srv | less", None),
            ("$ linux-sysadmin call TOOL --args '{}' --modules DIR", None),
            ("$ linux-sysadmin modules record --to DIR -- rpm --query", None),
            ("$ linux-sysadmin modules list -- rpm", Some("--")),
        ] {
            let calls = shown_calls(&format!("```console\n{line}\n```\n"));
            assert_eq!(unknown_word(&calls[0]).as_deref(), unknown, "{line}");
        }
    }

    /// The options of each command, by the words that call it. Those that every command takes are left out.
    fn commands_below(command: &clap::Command, words: &str) -> BTreeMap<String, BTreeSet<String>> {
        let is_shown = |below: &&clap::Command| !below.is_hide_set() && below.get_name() != "help";
        let shown = command.get_subcommands().filter(is_shown);
        if command.has_subcommands() {
            let of = |below: &clap::Command| commands_below(below, &format!("{words} {}", below.get_name()));
            return shown.flat_map(of).collect();
        }
        let options = command.get_arguments().filter(|argument| {
            !argument.is_hide_set() && !argument.is_global_set() && argument.get_id() != "help"
        });
        let longs = options.filter_map(|argument| Some(format!("--{}", argument.get_long()?)));
        BTreeMap::from([(words.to_owned(), longs.collect())])
    }

    #[test]
    fn the_page_of_commands_has_every_command_with_its_options_and_no_others() {
        let mut program = Cli::command().disable_help_subcommand(true);
        program.build();
        let commands = commands_below(&program, "linux-sysadmin");
        let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/commands.md");
        let page = std::fs::read_to_string(page).unwrap();
        let spans =
            |cell: &str| cell.split('`').skip(1).step_by(2).map(str::to_owned).collect::<BTreeSet<String>>();
        let rows = page.lines().filter(|line| line.starts_with("| `linux-sysadmin "));
        let mut documented = BTreeMap::new();
        for row in rows {
            let cells: Vec<&str> = row.split('|').collect();
            let command = cells[1].trim().trim_matches('`').to_owned();
            assert!(documented.insert(command, spans(cells[2])).is_none(), "two rows: {row}");
        }
        for (command, options) in &commands {
            let options: Vec<String> = options.iter().map(|option| format!("`{option}`")).collect();
            let row = format!("| `{command}` | {} | … |", options.join(", "));
            let found = documented.get(command);
            assert_eq!(found, commands.get(command), "docs/commands.md: expected the row {row}");
        }
        let gone: Vec<_> = documented.keys().filter(|command| !commands.contains_key(*command)).collect();
        assert!(gone.is_empty(), "docs/commands.md: these are no commands: {gone:?}");
    }
}
