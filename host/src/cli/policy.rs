//! `linux-sysadmin policy`: checks a command against the rules, and lists the rules.

use std::io::Write;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::{Args, Subcommand};
use serde_json::json;

use super::stdout::stdout;
use crate::config::LoadedConfig;
use host_policy::{Policy, Verdict};
use host_text::visible::{make_visible, visible};

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
        /// The command with its arguments, behind `--`
        #[arg(required = true, last = true, value_name = "ARGV")]
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
            Action::Check { json: true, argv, .. } => as_json(&policy.verdict(&argv))?,
            Action::Check { argv, .. } => as_text(&policy.verdict(&argv)),
            Action::List => policy.rules().map(|rule| format!("{}\n", visible(&rule))).collect(),
        };
        // The exit code is 0 whatever the verdict says.
        stdout().write_all(text.as_bytes())?;
        Ok(ExitCode::SUCCESS)
    }
}

fn as_json(verdict: &Verdict) -> anyhow::Result<String> {
    let mut value = serde_json::to_value(verdict)?;
    make_visible(&mut value);
    Ok(format!("{value:#}\n"))
}

fn as_text(verdict: &Verdict) -> String {
    let level = serde_json::to_value(verdict.level).unwrap_or_default();
    let risk = serde_json::to_value(verdict.risk).unwrap_or_default();
    let list = |words: &[String]| if words.is_empty() { "none".to_owned() } else { words.join(", ") };
    let lines = [
        ("level", level.as_str().unwrap_or_default().to_owned()),
        ("risk", risk.as_str().unwrap_or("none of its own").to_owned()),
        ("score", verdict.risk_score.to_string()),
        ("capabilities", list(&verdict.capabilities)),
        ("rules", list(&verdict.matched_rules)),
        (
            "reason",
            if verdict.reason.is_empty() { "no rule is met".to_owned() } else { verdict.reason.clone() },
        ),
    ];
    lines.iter().map(|(name, value)| format!("{name:<13} {}\n", visible(value))).collect()
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
