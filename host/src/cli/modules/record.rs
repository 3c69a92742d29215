//! `linux-sysadmin modules record`: runs a command as the host runs it, and writes down what it printed, for the tests of a
//! module. Exit codes: 0 recorded, 1 not recorded, 2 wrong usage or configuration.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use clap::Args;

use crate::cli::TargetOption;
use crate::cli::stdout::stdout;
use crate::config::LoadedConfig;
use crate::module_tests::transcripts::{COMMANDS, MACHINE, MachineFile};
use crate::targets::Targets;
use host_base::problem::Problem;
use host_base::{Command, Output, Privilege};
use host_policy::{Level, Policy, command_words, split_variables};
use host_target::recorded::transcript::{self, RecordedCommand};
use host_target::{Facts, ServiceFiles, Target};
use host_text::redact::redact;
use host_text::visible::one_line;

/// The time that a command may take. A package manager may have to read its repositories.
const TIMEOUT: Duration = Duration::from_secs(600);

#[derive(Args)]
pub(super) struct Record {
    #[command(flatten)]
    target: TargetOption,
    /// The folder of one machine's transcripts that gets it, with the facts about the machine; without it, it is printed
    #[arg(long, value_name = "DIR")]
    to: Option<PathBuf>,
    /// The file in that folder, without its ending
    #[arg(long, value_name = "NAME", default_value = "commands", value_parser = file_name)]
    file: String,
    /// Run it with root's rights
    #[arg(long)]
    root: bool,
    /// Run it although it changes the machine
    #[arg(long)]
    changes: bool,
    /// The command with its arguments, and variables such as LANG=C before it, which a transcript doesn't hold; options of
    /// this program stand before both
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "CMD")]
    argv: Vec<String>,
}

/// Reads the name of a file, which can't lead to another folder.
fn file_name(text: &str) -> Result<String, String> {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    match !text.is_empty() && text.bytes().all(fits) {
        true => Ok(text.to_owned()),
        false => Err("expected a name of letters, digits, - and _".to_owned()),
    }
}

impl Record {
    pub(super) async fn run(self, loaded: LoadedConfig) -> anyhow::Result<ExitCode> {
        let loaded = self.target.apply(loaded);
        let policy = Policy::load(&loaded.config.policy)?;
        if let Err(reason) = self.check(policy.as_deref().unwrap_or_else(|| Policy::builtin())) {
            return Ok(refused(&reason));
        }
        let targets = Targets::new(&loaded.config, ServiceFiles::default())?;
        let target = targets.usual();
        let facts = match target.facts().await {
            Ok(facts) => (*facts).clone(),
            Err(problem) => return Ok(refused(&problem.message)),
        };
        let recorded = match self.output(target).await {
            Ok(output) => recorded(self.words(), output),
            Err(problem) => match (&self.to, problem.code.as_str()) {
                (Some(folder), "PROGRAM_NOT_FOUND") => {
                    self.note_missing(folder, &facts)?;
                    targets.close().await;
                    return Ok(ExitCode::SUCCESS);
                }
                _ => Err(problem.message),
            },
        };
        targets.close().await;
        let text = match recorded {
            Ok(text) => text,
            Err(reason) => return Ok(refused(&reason)),
        };
        match &self.to {
            None => stdout().write_all(text.as_bytes())?,
            Some(folder) => {
                let file = folder.join(format!("{}.{COMMANDS}", self.file));
                write_machine(folder, &facts, None)?;
                append(&file, &text)?;
                writeln!(stdout(), "recorded in {}", one_line(&file.display().to_string()))?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Refuses what can't be recorded, and what would change a machine without being meant to.
    fn check(&self, policy: &Policy) -> Result<(), String> {
        if self.words().is_empty() {
            return Err("expected a command behind the variables".to_owned());
        }
        let line = transcript::line(&self.argv)?;
        if matches!(redact(&line), Cow::Owned(_)) {
            return Err("the command line holds a secret, which a transcript would show".to_owned());
        }
        let verdict = policy.verdict(&command_words(&self.command()));
        if verdict.level == Level::Block {
            return Err(format!("the policy forbids it: it {}", verdict.reason_with_rule()));
        }
        if verdict.changes() && !self.changes {
            return Err(format!("it {}; `--changes` runs it all the same", verdict.reason_with_rule()));
        }
        Ok(())
    }

    /// The program and its arguments, without the variables before them.
    fn words(&self) -> &[String] {
        split_variables(&self.argv).1
    }

    fn command(&self) -> Command {
        let (env, words) = split_variables(&self.argv);
        let (program, args) =
            words.split_first().map_or(("", &[][..]), |(first, rest)| (first.as_str(), rest));
        let privilege = if self.root { Privilege::Root } else { Privilege::Caller };
        Command { env, privilege, ..Command::new(program, args.iter().cloned(), TIMEOUT) }
    }

    /// Runs the command.
    async fn output(&self, target: &Target) -> Result<Output, Problem> {
        let command = self.command();
        match self.changes {
            true => target.act(&command).await,
            false => {
                let mut outputs = target.run_all(std::slice::from_ref(&command)).await;
                outputs.pop().unwrap_or_else(|| Ok(Output::default()))
            }
        }
    }

    /// Notes that the machine doesn't have the program.
    fn note_missing(&self, folder: &Path, facts: &Facts) -> anyhow::Result<()> {
        let program = self.words().first().cloned().unwrap_or_default();
        write_machine(folder, facts, Some(program.clone()))?;
        writeln!(stdout(), "recorded that the machine has no {}", one_line(&program))?;
        Ok(())
    }
}

/// The transcript of a command. Secrets are taken out of what it printed, because transcripts are published.
fn recorded(argv: &[String], output: Output) -> Result<String, String> {
    if output.truncated {
        return Err(
            "it printed more than the host keeps, so that a transcript would hold only a part".to_owned()
        );
    }
    let mut command =
        RecordedCommand { argv: argv.to_vec(), exit_code: output.exit_code, ..RecordedCommand::default() };
    for (kept, printed) in [(&mut command.stdout, output.stdout), (&mut command.stderr, output.stderr)] {
        *kept = match String::from_utf8(printed) {
            Ok(text) => redact(&text).into_owned().into_bytes(),
            Err(error) => error.into_bytes(),
        };
    }
    transcript::write(&command)
}

/// Writes the facts about the machine where they aren't there yet, and adds a program that is missing.
fn write_machine(folder: &Path, facts: &Facts, missing: Option<String>) -> anyhow::Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("{} can't be made", folder.display()))?;
    let path = folder.join(MACHINE);
    let wrong = || format!("{} can't be read", path.display());
    let known: Option<MachineFile> = match path.exists() {
        true => {
            let text = fs::read_to_string(&path).with_context(wrong)?;
            Some(serde_yaml::from_str(&text).with_context(wrong)?)
        }
        false => None,
    };
    if known.is_some() && missing.is_none() {
        return Ok(());
    }
    let mut machine = known.unwrap_or_else(|| MachineFile {
        // The name of a machine is nobody else's business.
        facts: Facts { hostname: "recorded".to_owned(), ..facts.clone() },
        missing_programs: BTreeSet::new(),
    });
    machine.missing_programs.extend(missing);
    let text = serde_yaml::to_string(&machine)?;
    fs::write(&path, text).with_context(|| format!("{} can't be written", path.display()))
}

fn append(path: &Path, text: &str) -> anyhow::Result<()> {
    let wrong = || format!("{} can't be written", path.display());
    let mut file = OpenOptions::new().create(true).append(true).open(path).with_context(wrong)?;
    file.write_all(text.as_bytes()).with_context(wrong)
}

fn refused(reason: &str) -> ExitCode {
    eprintln!("error: not recorded: {}", one_line(reason));
    ExitCode::FAILURE
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        record: Record,
    }

    fn record(words: &[&str]) -> Record {
        Line::try_parse_from([&["record"], words].concat()).unwrap().record
    }

    fn output(stdout: &[u8]) -> Output {
        Output { stdout: stdout.to_vec(), ..Output::default() }
    }

    #[test]
    fn a_command_stands_as_it_would_be_run() {
        for words in [&["--", "a", "--b"][..], &["a", "--b"], &["--root", "--to", "x", "--", "a", "--b"]] {
            assert_eq!(record(words).argv, ["a", "--b"], "{words:?}");
        }
        for words in [&[][..], &["--"], &["--to", "x"], &["--file", "../x", "--", "a"]] {
            assert!(Line::try_parse_from([&["record"], words].concat()).is_err(), "{words:?}");
        }
    }

    #[test]
    fn variables_before_a_command_are_set_and_are_no_part_of_what_is_recorded() {
        let record = record(&["--", "LANG=C", "ZYPP_LOCK_TIMEOUT=20", "zypper", "search", "A=b"]);
        let command = record.command();
        assert_eq!(command.program, "zypper");
        assert_eq!(command.args, ["search", "A=b"]);
        let env = [("LANG", "C"), ("ZYPP_LOCK_TIMEOUT", "20")];
        assert_eq!(command.env, env.map(|(name, value)| (name.to_owned(), value.to_owned())));
        let text = recorded(record.words(), output(b"x\n")).unwrap();
        assert!(text.starts_with("$ zypper search A=b\n"), "{text}");
    }

    #[test]
    fn what_changes_the_machine_runs_only_where_that_is_said_and_what_is_forbidden_never() {
        let check = |words: &[&str]| record(words).check(Policy::builtin());
        assert!(check(&["--", "uname", "-r"]).is_ok());
        let refusal = check(&["--", "rm", "-rf", "/srv/app"]).unwrap_err();
        assert!(refusal.contains("--changes"), "{refusal}");
        assert!(check(&["--changes", "--", "rm", "-rf", "/srv/app"]).is_ok());
        let forbidden = check(&["--changes", "--", "rm", "-rf", "/"]).unwrap_err();
        assert!(forbidden.contains("forbids"), "{forbidden}");
        assert!(check(&["--", "uname", "it's"]).unwrap_err().contains("single quotes"));
        // A variable can make a look run other code.
        assert!(check(&["--", "LANG=C", "uname", "-r"]).is_ok());
        assert!(check(&["--", "LD_PRELOAD=/srv/x.so", "uname", "-r"]).unwrap_err().contains("--changes"));
        assert!(check(&["--", "LANG=C"]).unwrap_err().contains("expected a command"));
    }

    #[test]
    fn a_transcript_holds_no_secret_and_nothing_that_it_would_read_otherwise() {
        let argv = ["a".to_owned()];
        assert_eq!(recorded(&argv, output(b"one\n")).unwrap(), "$ a\n[exit 0]\none\n");
        let secret = recorded(&argv, output(b"a\npassword = hunter2\nb\n")).unwrap();
        assert!(!secret.contains("hunter2"), "{secret}");
        let cut = Output { truncated: true, ..output(b"x") };
        for (output, why) in
            [(cut, "more than"), (output(b"\xff"), "UTF-8"), (output(b"x\n$ b\n"), "its own")]
        {
            let error = recorded(&argv, output).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    fn the_facts_are_written_once_without_the_machines_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("arch");
        let facts = Facts { hostname: "web1".to_owned(), family: "arch".to_owned(), ..Facts::default() };
        let read = || fs::read_to_string(path.join(MACHINE)).unwrap();
        write_machine(&path, &facts, None).unwrap();
        let first = read();
        assert!(first.contains("family: arch") && !first.contains("web1"), "{first}");
        write_machine(&path, &Facts::default(), None).unwrap();
        assert_eq!(read(), first);
        write_machine(&path, &Facts::default(), Some("expac".to_owned())).unwrap();
        let machine: MachineFile = serde_yaml::from_str(&read()).unwrap();
        assert!(machine.facts.family == "arch" && machine.missing_programs.contains("expac"));
    }
}
