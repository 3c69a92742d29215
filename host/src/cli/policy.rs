//! `linux-sysadmin policy`: checks a command against the rules, and lists the rules.

use std::io::Write;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::{Args, Subcommand};
use serde_json::json;

use super::screen::{Screen, risk_style};
use super::stdout::stdout;
use super::text::risk_name;
use crate::config::LoadedConfig;
use host_policy::{Policy, Verdict, split_variables};
use host_text::visible::{make_visible, one_line, visible};

/// The width of the names of a verdict's parts.
const NAME: usize = 13;

#[derive(Args)]
pub(super) struct Command {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Say what the rules say of a command; nothing is run
    Check {
        /// Print JSON
        #[arg(long)]
        json: bool,
        /// Measure how long a verdict takes, over so many of them
        #[arg(long, value_name = "TIMES", hide = true)]
        bench: Option<u32>,
        /// The command with its arguments, and variables such as LANG=C before it; options of this program stand before both
        #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGV")]
        argv: Vec<String>,
    },
    /// List the rules that hold
    List,
}

impl Command {
    pub(super) fn run(self, loaded: &LoadedConfig) -> anyhow::Result<ExitCode> {
        let started = Instant::now();
        let policy = Policy::load(&loaded.config.policy)?;
        let policy = policy.as_deref().unwrap_or_else(|| Policy::builtin());
        let reading = started.elapsed();
        let text = match self.action {
            Action::Check { bench: Some(times), argv, .. } => measured(policy, &argv, times, reading),
            Action::Check { json: true, argv, .. } => as_json(&judged(policy, &argv))?,
            Action::Check { argv, .. } => as_text(&judged(policy, &argv), Screen::of_stdout()),
            Action::List => policy.rules().map(|rule| format!("{}\n", visible(&rule))).collect(),
        };
        // The exit code is 0 whatever the verdict says.
        stdout().write_all(text.as_bytes())?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Judges a command as it is typed: variables before the program are what env(1) sets.
fn judged(policy: &Policy, argv: &[String]) -> Verdict {
    match split_variables(argv).0.is_empty() {
        true => policy.verdict(argv),
        false => policy.verdict(&[&["env".to_owned()], argv].concat()),
    }
}

fn as_json(verdict: &Verdict) -> anyhow::Result<String> {
    let mut value = serde_json::to_value(verdict)?;
    make_visible(&mut value);
    Ok(format!("{value:#}\n"))
}

fn as_text(verdict: &Verdict, screen: Screen) -> String {
    let level = serde_json::to_value(verdict.level).unwrap_or_default();
    let list = |words: &[String]| if words.is_empty() { "none".to_owned() } else { words.join(", ") };
    let risk = verdict
        .risk
        .map_or_else(|| "none of its own".to_owned(), |risk| screen.paint(risk_style(risk), risk_name(risk)));
    let reason = if verdict.reason.is_empty() { "no rule is met" } else { &verdict.reason };
    let lines = [
        ("level", one_line(level.as_str().unwrap_or_default())),
        ("risk", risk),
        ("score", verdict.risk_score.to_string()),
        ("capabilities", one_line(&list(&verdict.capabilities))),
        ("rules", one_line(&list(&verdict.matched_rules))),
        ("reason", one_line(reason)),
    ];
    let line = |(name, value): &(&str, String)| {
        let then = " ".repeat(NAME + 1);
        format!("{}\n", screen.wrap(value, &format!("{name:NAME$} "), &then))
    };
    lines.iter().map(line).collect()
}

/// Nanoseconds for one verdict, and for reading the rules, as JSON for the benchmark.
fn measured(policy: &Policy, argv: &[String], times: u32, reading: Duration) -> String {
    // The first verdict loads what is known of programs.
    policy.verdict(argv);
    let started = Instant::now();
    for _ in 0..times {
        std::hint::black_box(policy.verdict(std::hint::black_box(argv)));
    }
    let verdict = started.elapsed() / times.max(1);
    let value = json!({"verdict_ns": verdict.as_nanos() as u64, "reading_ns": reading.as_nanos() as u64});
    format!("{value}\n")
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use host_policy::Level;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        command: Command,
    }

    #[test]
    fn a_command_stands_as_it_would_be_run() {
        for (words, json, argv) in [
            (&["rm", "-rf", "/"][..], false, &["rm", "-rf", "/"][..]),
            (&["--", "rm", "-rf", "/"], false, &["rm", "-rf", "/"]),
            (
                &["--json", "systemctl", "--no-block", "stop", "sshd"],
                true,
                &["systemctl", "--no-block", "stop", "sshd"],
            ),
            (&["--json", "--", "lsblk", "--json"], true, &["lsblk", "--json"]),
            // An option behind the command is the command's own.
            (&["lsblk", "--json"], false, &["lsblk", "--json"]),
            (&["sh", "-c", "a", "--", "b"], false, &["sh", "-c", "a", "--", "b"]),
            (&["--", "--json"], false, &["--json"]),
        ] {
            let line = Line::try_parse_from([&["policy", "check"], words].concat()).unwrap();
            let Action::Check { json: is_json, argv: read, .. } = line.command.action else {
                panic!("{words:?}")
            };
            assert_eq!(
                (is_json, read.as_slice()),
                (json, argv.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>().as_slice()),
                "{words:?}"
            );
        }
        for words in [&["policy", "check"][..], &["policy", "check", "--json"], &["policy", "check", "--"]] {
            assert!(Line::try_parse_from(words).is_err(), "{words:?}");
        }
    }

    #[test]
    fn variables_before_a_command_are_judged_with_it() {
        let judged = |line: &str| {
            let argv: Vec<String> = line.split(' ').map(str::to_owned).collect();
            super::judged(Policy::builtin(), &argv)
        };
        for (line, level) in [
            ("ZYPP_LOCK_TIMEOUT=20 zypper locks", Level::Safe),
            ("LANG=C LC_ALL=C ls -l", Level::Safe),
            ("LD_PRELOAD=/srv/x.so ls", Level::Confirm),
            ("A=b rm -rf /", Level::Block),
            ("9A=b ls", Level::Confirm),
        ] {
            assert_eq!(judged(line).level, level, "{line}");
        }
    }

    #[test]
    fn a_verdict_fits_the_screen_and_its_risk_has_a_colour() {
        let verdict = Policy::builtin().verdict(&["rm", "-rf", "/"].map(str::to_owned));
        let shown = as_text(&verdict, Screen::plain(40));
        assert!(shown.lines().all(|line| line.chars().count() <= 40), "{shown}");
        assert!(shown.contains("\nrisk          critical\n"), "{shown}");
        let colored = as_text(&verdict, Screen::colored(80));
        assert!(colored.contains("\nrisk          \u{1b}[1m\u{1b}[31mcritical\u{1b}[0m\n"), "{colored:?}");
    }
}
