//! Completes command lines in a shell: names of tools, their arguments and values, hosts and units.
//!
//! The shell starts the program with the words that are typed so far. Nothing is asked of another machine, and no component is
//! compiled, because a person waits for it.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;
use clap::{Args, Command, CommandFactory};
use clap_complete::CompleteEnv;
use clap_complete::engine::CompletionCandidate;
use clap_complete::env::{self, EnvCompleter, Fish, Shells, Zsh};
use serde_json::{Map, Value};

use super::stdout::stdout;
use super::tool_help::values_of;
use crate::arguments::schema::{SchemaOptions, client_schema};
use crate::config;
use crate::dispatcher::{Dispatcher, LoadedModules};
use host_components::host_arguments::HOST;
use host_components::{CompileMode, ModuleDirectories};
use host_text::characters::is_hidden;
use host_text::visible::one_line;

/// The variable by which a shell asks for completions.
const VARIABLE: &str = "LINUX_SYSADMIN_COMPLETE";
/// The variable with the number of the word that is completed, where the shell says it.
const INDEX: &str = "_CLAP_COMPLETE_INDEX";

/// The options of the program and of `call` that take a value of their own.
const VALUED: [&str; 3] = ["--host", "--args", "--modules"];
/// The arguments whose values are units.
const UNIT_ARGUMENTS: [&str; 6] = ["service", "services", "unit", "units", "timer", "timers"];
/// The directories of unit files, systemd.unit(5).
const UNIT_DIRECTORIES: [&str; 5] = [
    "/etc/systemd/system",
    "/run/systemd/system",
    "/usr/local/lib/systemd/system",
    "/usr/lib/systemd/system",
    "/lib/systemd/system",
];

const AFTER_HELP: &str = "\
bash  echo 'source <(linux-sysadmin completion bash)' >> ~/.bashrc
zsh   echo 'source <(linux-sysadmin completion zsh)' >> ~/.zshrc
fish  echo 'linux-sysadmin completion fish | source' >> ~/.config/fish/config.fish";

#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Completion {
    /// The shell
    #[arg(value_parser = ["bash", "fish", "zsh"])]
    shell: String,
}

impl Completion {
    /// Prints what makes the shell ask this program.
    pub(super) fn run(&self) -> anyhow::Result<ExitCode> {
        let program = std::env::current_exe()?;
        let program = program.to_str().context("the program's path isn't UTF-8")?;
        let shells = shells();
        let shell = shells.completer(&self.shell).context("there is no such shell")?;
        let command = super::Cli::command();
        let mut script = Vec::new();
        shell.write_registration(VARIABLE, command.get_name(), command.get_name(), program, &mut script)?;
        stdout().write_all(&script)?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Answers a shell that asks for completions, and ends the process. Does nothing in every other process.
pub(super) fn answer_shell() {
    // Clap's tree of all commands takes long to build, so it isn't built for nothing.
    if std::env::var_os(VARIABLE).is_some() {
        CompleteEnv::with_factory(super::Cli::command).var(VARIABLE).shells(shells()).complete();
    }
}

fn shells() -> Shells<'static> {
    Shells(&[&Bash, &Fish, &Zsh])
}

/// bash(1), which breaks words at `=`: it gives `KEY=VALUE` as three words, and replaces only the last one.
struct Bash;

impl EnvCompleter for Bash {
    fn name(&self) -> &'static str {
        env::Bash.name()
    }

    fn is(&self, name: &str) -> bool {
        env::Bash.is(name)
    }

    fn write_registration(
        &self,
        variable: &str,
        name: &str,
        program: &str,
        completer: &str,
        script: &mut dyn Write,
    ) -> io::Result<()> {
        // Behind `=`, bash completes an empty word, and the script would put that in the place of the `=`.
        const WORD: &str = "words[COMP_CWORD]=\"$2\"";
        let mut text = Vec::new();
        env::Bash.write_registration(variable, name, program, completer, &mut text)?;
        let kept = format!("[[ \"${{words[COMP_CWORD]}}\" == \"=\" ]] || {WORD}");
        script.write_all(String::from_utf8_lossy(&text).replace(WORD, &kept).as_bytes())
    }

    fn write_complete(
        &self,
        command: &mut Command,
        words: Vec<OsString>,
        directory: Option<&Path>,
        answer: &mut dyn Write,
    ) -> io::Result<()> {
        let at = index(words.len());
        let replaced = words.get(at).filter(|word| *word != "=").map_or(0, |word| word.len());
        let (joined, at) = join(words, at);
        let kept = joined.get(at).map_or(0, |word| word.len()).saturating_sub(replaced);
        let separator = std::env::var("_CLAP_IFS").unwrap_or_else(|_| "\n".to_owned());
        let candidates = clap_complete::engine::complete(command, joined, at, directory)?;
        let values = candidates.iter().map(|candidate| candidate.get_value().to_string_lossy().into_owned());
        let values: Vec<String> = values.filter_map(|value| value.get(kept..).map(str::to_owned)).collect();
        answer.write_all(values.join(&separator).as_bytes())
    }
}

/// The number of the word that is completed; the last one, where the shell doesn't say it.
fn index(words: usize) -> usize {
    let index = std::env::var(INDEX).ok().and_then(|index| index.parse().ok());
    index.unwrap_or(words.saturating_sub(1))
}

/// Puts the words together again that were broken at `=`, and says which of them is the one at `index`.
fn join(words: Vec<OsString>, index: usize) -> (Vec<OsString>, usize) {
    let (mut joined, mut at, mut is_open): (Vec<OsString>, _, _) = (Vec::new(), 0, false);
    for (number, word) in words.into_iter().enumerate() {
        let is_equals = word == "=";
        match joined.last_mut() {
            Some(last) if is_equals || is_open => last.push(word),
            _ => joined.push(word),
        }
        is_open = is_equals;
        if number == index {
            at = joined.len() - 1;
        }
    }
    (joined, at)
}

/// The names of tools.
pub(super) fn tools(current: &OsStr) -> Vec<CompletionCandidate> {
    let tools = with_modules(|_, modules| {
        let tools = modules.registry.tools();
        tools.map(|tool| (tool.name.clone(), tool.summary.clone())).collect::<Vec<_>>()
    });
    let tools = tools.unwrap_or_default().into_iter();
    tools.filter_map(|(name, summary)| candidate(current, &name, Some(&summary))).collect()
}

/// The hosts and groups that calls may name.
pub(super) fn hosts(current: &OsStr) -> Vec<CompletionCandidate> {
    all_hosts().iter().filter_map(|name| candidate(current, name, None)).collect()
}

/// The arguments of the tool that is called, and their values behind `=`.
pub(super) fn arguments(current: &OsStr) -> Vec<CompletionCandidate> {
    let words: Vec<OsString> = std::env::args_os().skip_while(|word| word != "--").skip(1).collect();
    let at = index(words.len());
    let (words, at) = join(words, at);
    let before: Vec<&str> = words.iter().take(at).filter_map(|word| word.to_str()).collect();
    let (Some(current), Some(typed)) = (current.to_str(), Typed::read(&before)) else { return Vec::new() };
    let properties = with_modules(|dispatcher, modules| {
        let options = SchemaOptions { two_step: false, hosts: dispatcher.targets().offers_hosts() };
        let mut schema = client_schema(modules.registry.tool(typed.tool)?, options);
        match schema.remove("properties") {
            Some(Value::Object(properties)) => Some(properties),
            _ => None,
        }
    });
    let Some(properties) = properties.flatten() else { return Vec::new() };
    typed.complete(current, &properties, all_hosts, || units(&UNIT_DIRECTORIES))
}

/// The part of a call that is typed before the word that is completed.
struct Typed<'a> {
    tool: &'a str,
    /// The words behind the tool.
    behind: Vec<&'a str>,
    /// True where the call names a host.
    names_host: bool,
}

impl<'a> Typed<'a> {
    fn read(before: &[&'a str]) -> Option<Self> {
        let call = before.iter().position(|word| *word == "call")?;
        let mut words = before[call + 1..].iter().copied();
        let (mut tool, mut behind, mut names_host) = (None, Vec::new(), false);
        while let Some(word) = words.next() {
            names_host |= ["--host", "host="].iter().any(|host| word.starts_with(host));
            if word.starts_with("--") {
                if VALUED.contains(&word) {
                    words.next();
                }
            } else if tool.is_none() {
                tool = Some(word);
            } else {
                behind.push(word);
            }
        }
        Some(Self { tool: tool?, behind, names_host })
    }

    fn complete(
        &self,
        current: &str,
        properties: &Map<String, Value>,
        hosts: impl Fn() -> BTreeSet<String>,
        units: impl Fn() -> BTreeSet<String>,
    ) -> Vec<CompletionCandidate> {
        let Some((key, value)) = current.split_once('=') else { return self.keys(current, properties) };
        let Some(property) = properties.get(key) else { return Vec::new() };
        let values: BTreeSet<String> = match key {
            HOST => hosts(),
            key if UNIT_ARGUMENTS.contains(&key) && !self.names_host => units(),
            _ => values(property).into_iter().collect(),
        };
        let fitting = values.iter().filter(|known| known.starts_with(value));
        fitting.filter_map(|known| candidate(OsStr::new(""), &format!("{key}={known}"), None)).collect()
    }

    /// The arguments that are not given yet. A list may be given again.
    fn keys(&self, current: &str, properties: &Map<String, Value>) -> Vec<CompletionCandidate> {
        let is_given = |name: &str| {
            self.behind.iter().any(|word| word.split('=').next() == Some(name))
                && properties.get(name).is_some_and(|property| property.get("type") != Some(&"array".into()))
        };
        let free = properties.iter().filter(|(name, _)| !is_given(name));
        free.filter_map(|(name, property)| {
            let description = property.get("description").and_then(Value::as_str);
            candidate(OsStr::new(current), &format!("{name}="), description)
        })
        .collect()
    }
}

/// The values that a schema lists.
fn values(property: &Value) -> Vec<String> {
    let property = property.get("items").unwrap_or(property);
    match property.get("type").and_then(Value::as_str) {
        Some("boolean") => vec!["true".to_owned(), "false".to_owned()],
        _ => values_of(property).unwrap_or_default(),
    }
}

/// A candidate that begins as the word that is typed. What a terminal wouldn't show as it is, is none.
fn candidate(current: &OsStr, value: &str, help: Option<&str>) -> Option<CompletionCandidate> {
    let begins = current.to_str().is_some_and(|current| value.starts_with(current));
    (begins && !value.chars().any(is_hidden)).then(|| {
        let help = help.filter(|help| !help.is_empty()).map(|help| one_line(help).into());
        CompletionCandidate::new(value).help(help)
    })
}

fn all_hosts() -> BTreeSet<String> {
    let names = with_modules(|dispatcher, _| dispatcher.targets().names()).unwrap_or_default();
    names
        .into_iter()
        .flat_map(|(group, hosts)| [vec![group], hosts].concat())
        .filter(|name| !name.is_empty())
        .collect()
}

/// The units that have a file on this machine. A service is named without its suffix, and a template is no unit.
fn units(directories: &[&str]) -> BTreeSet<String> {
    const KINDS: [&str; 6] = [".service", ".timer", ".socket", ".target", ".path", ".mount"];
    let files =
        directories.iter().filter_map(|directory| std::fs::read_dir(directory).ok()).flatten().flatten();
    files
        .filter_map(|file| {
            let name = file.file_name().into_string().ok()?;
            let is_unit = KINDS.iter().any(|kind| name.ends_with(kind)) && !name.contains("@.");
            is_unit.then(|| name.strip_suffix(".service").unwrap_or(&name).to_owned())
        })
        .collect()
}

/// Gives the modules to `use_them`. Where the configuration is wrong, there are no completions, and the command itself says why.
fn with_modules<T>(use_them: impl FnOnce(&Dispatcher, &LoadedModules) -> T) -> Option<T> {
    let named = std::env::var_os(super::MODULES_VARIABLE).map(Into::into);
    let places = ModuleDirectories::new(super::modules_directory(named).ok()?);
    let loaded = config::load(false).ok()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().ok()?;
    runtime.block_on(async {
        let dispatcher = Dispatcher::new(places, loaded, CompileMode::Later).ok()?;
        let modules = dispatcher.modules().await;
        Some(use_them(&dispatcher, &modules))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn shown(before: &[&str], current: &str) -> Vec<String> {
        let properties = json!({
            "service": {"type": "string"}, "now": {"type": "boolean"}, "how": {"enum": ["gently", "at-once"]},
            "kinds": {"type": "array", "items": {"enum": ["a", "b"]}}, "host": {"type": ["string", "array"]},
        });
        let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>();
        let typed = Typed::read(before).unwrap();
        assert_eq!(typed.tool, "web_restart", "{before:?}");
        let candidates = typed.complete(
            current,
            properties.as_object().unwrap(),
            || set(&["web1", "web2", "db1", "x\u{1b}"]),
            || set(&["nginx", "cron", "fstrim.timer"]),
        );
        candidates.iter().map(|candidate| candidate.get_value().to_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn arguments_and_their_values_are_completed_in_each_shell() {
        let call = ["linux-sysadmin", "call", "web_restart"];
        for (more, current, expected) in [
            (&[][..], "", &["service=", "now=", "how=", "kinds=", "host="][..]),
            (&[], "h", &["how=", "host="]),
            (&["service=nginx", "kinds=a"], "", &["now=", "how=", "kinds=", "host="]),
            (&[], "how=", &["how=at-once", "how=gently"]),
            (&[], "how=g", &["how=gently"]),
            (&[], "now=", &["now=false", "now=true"]),
            (&[], "kinds=", &["kinds=a", "kinds=b"]),
            (&[], "host=web", &["host=web1", "host=web2"]),
            (&[], "service=n", &["service=nginx"]),
            (&[], "nothing=", &[]),
            (&["service=nginx"], "now=t", &["now=true"]),
            // What another machine has is not known here.
            (&["host=web1"], "service=", &[]),
            (&["--host", "web1"], "service=", &[]),
        ] {
            assert_eq!(shown(&[&call[..], more].concat(), current), expected, "{more:?} {current:?}");
        }
        for before in [
            &["x", "call", "--host", "web1", "web_restart"][..],
            &["x", "--modules=d", "call", "--host=web1", "web_restart"],
        ] {
            assert_eq!(shown(before, "k"), ["kinds="], "{before:?}");
        }
        assert!(
            Typed::read(&["x", "tools"]).is_none() && Typed::read(&["x", "call", "--host", "web1"]).is_none()
        );
    }

    #[test]
    fn words_that_bash_has_broken_are_put_together() {
        for (words, index, joined, at) in [
            (&["call", "t", "a", "=", "b"][..], 4, &["call", "t", "a=b"][..], 2),
            (&["call", "t", "a", "="], 3, &["call", "t", "a="], 2),
            (&["call", "t", "a", "=", "b", "=", "c", ""], 7, &["call", "t", "a=b=c", ""], 3),
            (&["call", "--host", "=", "web1", "t", "x"], 5, &["call", "--host=web1", "t", "x"], 3),
            (&["call", "t", "a=b", "c"], 1, &["call", "t", "a=b", "c"], 1),
            (&["="], 0, &["="], 0),
        ] {
            let found = join(words.iter().map(OsString::from).collect(), index);
            assert_eq!(found, (joined.iter().map(OsString::from).collect(), at), "{words:?}");
        }
    }

    #[test]
    fn a_unit_has_a_file_and_is_no_template() {
        let directory = tempfile::tempdir().unwrap();
        for name in [
            "nginx.service",
            "getty@.service",
            "getty@tty1.service",
            "fstrim.timer",
            "notes.txt",
            "a.service.d",
        ] {
            std::fs::write(directory.path().join(name), "").unwrap();
        }
        let found = units(&[directory.path().to_str().unwrap(), "/nonexistent"]);
        assert_eq!(found.into_iter().collect::<Vec<_>>(), ["fstrim.timer", "getty@tty1", "nginx"]);
    }
}
