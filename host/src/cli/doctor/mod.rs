//! `linux-sysadmin doctor`: looks at everything that the server needs to work, and says how to put right what isn't. It
//! changes nothing. Exit codes: 0 nothing is wrong, though there may be warnings; 1 something is wrong; 2 wrong usage.

mod checks;
mod clients;

use std::io::Write;
use std::process::ExitCode;

use clap::Args;
use serde::Serialize;
use serde_json::json;

use super::TargetOption;
use super::screen::{BAD, GOOD, Screen, WARNING};
use super::stdout::stdout;
use crate::config::{self, Config, LoadedConfig};
use crate::dispatcher::Dispatcher;
use host_components::{CompileMode, ModuleDirectories};
use host_text::visible::{make_visible, one_line};

#[derive(Args)]
pub(super) struct Doctor {
    #[command(flatten)]
    target: TargetOption,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// How serious a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Status {
    /// The thing is as it should be.
    Ok,
    /// The server works, and something of it doesn't.
    Warning,
    /// The server doesn't work, or not safely.
    Error,
}

/// The part of the server that a finding is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Area {
    Configuration,
    Modules,
    Cache,
    Ssh,
    Sudo,
    Clients,
}

impl Area {
    fn name(self) -> &'static str {
        match self {
            Self::Configuration => "configuration",
            Self::Modules => "modules",
            Self::Cache => "cache",
            Self::Ssh => "ssh",
            Self::Sudo => "sudo",
            Self::Clients => "clients",
        }
    }
}

/// One thing that was looked at.
#[derive(Clone, Debug, Serialize)]
struct Finding {
    area: Area,
    status: Status,
    /// What was found.
    found: String,
    /// What to do about it. None where nothing is to be done.
    #[serde(skip_serializing_if = "Option::is_none")]
    remedy: Option<String>,
}

impl Finding {
    fn ok(area: Area, found: impl Into<String>) -> Self {
        Self { area, status: Status::Ok, found: found.into(), remedy: None }
    }

    fn warning(area: Area, found: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { area, status: Status::Warning, found: found.into(), remedy: Some(remedy.into()) }
    }

    fn error(area: Area, found: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { area, status: Status::Error, found: found.into(), remedy: Some(remedy.into()) }
    }
}

impl Doctor {
    pub(super) async fn run(self, places: ModuleDirectories) -> anyhow::Result<ExitCode> {
        let (first, loaded) = match config::load(false) {
            Ok(loaded) => (checks::configuration(&loaded), loaded),
            Err(error) => (checks::wrong_configuration(error.into()), defaults()),
        };
        let mut findings = vec![first];
        let loaded = self.target.apply(loaded);
        findings.extend(checks::modules(places.clone(), &loaded.config.modules).await);
        findings.extend(checks::cache());
        match Dispatcher::new(places, loaded, CompileMode::Later) {
            Ok(dispatcher) => {
                findings.extend(checks::profiles(&dispatcher));
                findings.extend(checks::ssh(dispatcher.targets()).await);
                findings.extend(checks::sudo(dispatcher.targets()).await);
            }
            Err(error) => findings.push(checks::wrong_configuration(error.into())),
        }
        findings.extend(clients::check(&std::env::current_exe()?));
        let text = if self.json { as_json(&findings)? } else { as_text(&findings, Screen::of_stdout()) };
        stdout().write_all(text.as_bytes())?;
        Ok(if is_all_right(&findings) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

/// The configuration by which the rest is looked at where the operator's can't be read.
fn defaults() -> LoadedConfig {
    LoadedConfig { config: Config::default(), path: Default::default(), generated: false }
}

fn is_all_right(findings: &[Finding]) -> bool {
    findings.iter().all(|finding| finding.status != Status::Error)
}

fn as_json(findings: &[Finding]) -> anyhow::Result<String> {
    let mut value = json!({"all_right": is_all_right(findings), "findings": findings});
    make_visible(&mut value);
    Ok(format!("{value:#}\n"))
}

/// The width of a status with the blanks behind it.
const STATUS: usize = 9;

fn as_text(findings: &[Finding], screen: Screen) -> String {
    let then = " ".repeat(STATUS);
    let mut text = String::new();
    for finding in findings {
        let (word, style) = match finding.status {
            Status::Ok => ("ok", GOOD),
            Status::Warning => ("WARNING", WARNING),
            Status::Error => ("ERROR", BAD),
        };
        let line = one_line(&format!("{}: {}", finding.area.name(), finding.found));
        let line = screen.wrap(&line, &format!("{word:STATUS$}"), &then);
        text.push_str(&line.replacen(word, &screen.paint(style, word), 1));
        text.push('\n');
        if let Some(remedy) = &finding.remedy {
            text.push_str(&screen.wrap(&one_line(remedy), &format!("{then}remedy: "), &then));
            text.push('\n');
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings() -> Vec<Finding> {
        vec![
            Finding::ok(Area::Cache, "it is there"),
            Finding::warning(Area::Clients, "no client starts the server\u{1b}[2J", "Register it"),
        ]
    }

    #[test]
    fn a_warning_is_no_error_and_each_remedy_is_said() {
        let mut findings = findings();
        let shown = as_text(&findings, Screen::plain(80));
        assert_eq!(
            shown,
            "ok       cache: it is there\n\
             WARNING  clients: no client starts the server\\u{1b}[2J\n         remedy: Register it\n"
        );
        assert!(is_all_right(&findings));
        findings.push(Finding::error(Area::Modules, "changed", "Add it again"));
        assert!(!is_all_right(&findings));
        let value: serde_json::Value = serde_json::from_str(&as_json(&findings).unwrap()).unwrap();
        assert_eq!(value["all_right"], false);
        assert_eq!(
            value["findings"][2],
            json!({"area": "modules", "status": "error", "found": "changed", "remedy": "Add it again"})
        );
        assert!(value["findings"][0].get("remedy").is_none());
    }
}
