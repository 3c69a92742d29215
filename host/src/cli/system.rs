//! `linux-sysadmin system`: sets system mode up, checks it, and removes it. Exit codes: 0 done or all is right, 1 refused,
//! failed or not right, 2 wrong usage.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Subcommand};
use serde_json::json;

use super::modules::Prompt;
use super::stdout::stdout;
use super::text::wrap;
use host_system_mode::{
    ACCOUNT, Check, InstallRequest, Installation, Removal, ServeRights, Status, Step, StepsFailed, checks,
};
use host_target::{Overrides, Target};
use host_text::visible::visible;

#[derive(Args)]
pub(super) struct System {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Give the server an account of its own, and let a person's clients start it; as root
    Install {
        /// The account that may use it, besides those that may already [default: who called sudo]
        #[arg(long = "for", value_name = "USER", env = "SUDO_USER", hide_env = true)]
        user: Option<String>,
        /// Don't ask
        #[arg(long)]
        yes: bool,
    },
    /// Look at everything that system mode rests on
    Status {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Take away what install put on this machine; as root
    Remove {
        /// Remove the account as well, with its configuration, its keys and its audit log
        #[arg(long)]
        purge: bool,
        /// Don't ask
        #[arg(long)]
        yes: bool,
    },
}

impl System {
    /// Runs the command. `named` is the directory of modules that `--modules` names; `modules_beside` finds the usual one.
    pub(super) async fn run(
        self,
        named: Option<PathBuf>,
        modules_beside: impl Fn(&Path) -> Option<PathBuf>,
    ) -> anyhow::Result<ExitCode> {
        let target = Target::local(Overrides::default());
        let program = std::env::current_exe()?;
        match self.command {
            Command::Install { user, yes } => {
                let is_named = named.is_some();
                let Some(modules) = named.or_else(|| modules_beside(&program)) else {
                    return refused(&format!("there are no modules beside {}", program.display()));
                };
                let modules = modules.canonicalize()?;
                // SUDO_USER is root where root has called sudo.
                let user = user.filter(|user| user != "root");
                let request = InstallRequest {
                    program,
                    modules,
                    named: is_named,
                    user,
                    read_module_config: configured_modules,
                };
                match Installation::plan(&target, request).await {
                    Ok(installation) => install(&target, installation, yes).await,
                    Err(error) => refused(&error.to_string()),
                }
            }
            Command::Status { json } => {
                status(&checks(&target, &program, modules_beside, configured_modules).await, json)
            }
            Command::Remove { purge, yes } => match Removal::plan(purge) {
                Ok(removal) => remove(&target, removal, yes).await,
                Err(error) => refused(&error.to_string()),
            },
        }
    }
}

async fn install(target: &Target, installation: Installation, yes: bool) -> anyhow::Result<ExitCode> {
    let Installation { steps, notes, rights, .. } = &installation;
    if steps.is_empty() {
        let notes = notes_text(notes);
        say(&format!(
            "System mode is set up, and nothing is to be done.\n{notes}\n{}",
            registration(rights)
        ))?;
        return Ok(ExitCode::SUCCESS);
    }
    let users: Vec<&str> = rights.users.iter().map(String::as_str).collect();
    let heading = format!(
        "The server is to run as {ACCOUNT}, an account of its own. Clients of {} may start it, and nothing else.",
        users.join(", ")
    );
    if !confirm(&heading, steps, notes, yes)? {
        return refused("nothing was changed");
    }
    match installation.carry_out(target).await {
        Ok(()) => {
            say(&format!("System mode is set up.\n\n{}", registration(&installation.rights)))?;
            Ok(ExitCode::SUCCESS)
        }
        Err(failed) => report_failure(&failed),
    }
}

async fn remove(target: &Target, removal: Removal, yes: bool) -> anyhow::Result<ExitCode> {
    if removal.steps.is_empty() {
        say(&format!("There is nothing to remove.\n{}", notes_text(&removal.notes)))?;
        return Ok(ExitCode::SUCCESS);
    }
    if !confirm("System mode is taken away.", &removal.steps, &removal.notes, yes)? {
        return refused("nothing was changed");
    }
    match removal.carry_out(target).await {
        Ok(()) => {
            say("System mode is removed.")?;
            Ok(ExitCode::SUCCESS)
        }
        Err(failed) => report_failure(&failed),
    }
}

/// Shows all steps, and asks unless `yes` says that this is not needed.
fn confirm(heading: &str, steps: &[Step], notes: &[String], yes: bool) -> anyhow::Result<bool> {
    say(&shown(heading, steps, notes))?;
    let prompt = Prompt::default();
    if yes {
        return Ok(true);
    }
    if !prompt.is_possible() {
        anyhow::bail!("there is no terminal to ask at; say --yes to do this without asking");
    }
    Ok(prompt.yes("Do this?")?)
}

/// The steps as text. The lines of sudoers files stand there word for word, and each is marked with `|`.
fn shown(heading: &str, steps: &[Step], notes: &[String]) -> String {
    let mut text = wrap(heading, "", "") + "\n\n";
    for (number, step) in (1..).zip(steps) {
        text.push_str(&wrap(&visible(&step.described()), &format!("{number:3}. "), "     "));
        text.push('\n');
        for line in step.allows() {
            text.push_str(&wrap(&visible(line), "     | ", "     |     "));
            text.push('\n');
        }
    }
    text + &notes_text(notes)
}

fn notes_text(notes: &[String]) -> String {
    notes.iter().map(|note| format!("\n{}\n", wrap(&visible(note), "Note: ", "  "))).collect()
}

fn report_failure(failed: &StepsFailed) -> anyhow::Result<ExitCode> {
    let StepsFailed { error, not_undone: left, remaining } = failed;
    let what = match (left.is_empty(), remaining.is_empty()) {
        (_, false) => format!("the steps before stay done, and these remain: {}", remaining.join("; ")),
        (true, true) => "everything that this run had done was undone".to_owned(),
        (false, true) => format!("the steps of this run were undone, except for these: {}", left.join("; ")),
    };
    refused(&format!("{error}; {what}"))
}

fn status(checks: &[Check], json: bool) -> anyhow::Result<ExitCode> {
    let all_right = checks.iter().all(|check| check.status == Status::Ok);
    if json {
        say(&serde_json::to_string_pretty(&json!({"all_right": all_right, "checks": checks}))?)?;
    } else {
        for check in checks {
            let status = match check.status {
                Status::Ok => "ok      ",
                Status::Missing => "MISSING ",
                Status::Wrong => "WRONG   ",
                Status::Unknown => "unknown ",
            };
            let line = visible(&format!("{}: {}", check.name, check.detail)).replace('\n', " ");
            say(&wrap(&line, status, "        "))?;
        }
    }
    Ok(if all_right { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Says how to add the server to clients.
fn registration(rights: &ServeRights) -> String {
    let program = rights.program.display().to_string();
    let args = ["-n", "-u", ACCOUNT, &program, "serve"];
    let json = json!({"mcpServers": {"linux-sysadmin-mcp": {"command": "sudo", "args": args}}});
    format!(
        "Claude Code:\n    claude mcp add linux-sysadmin-mcp -- sudo {}\n\nOther clients (their mcpServers \
         setting):\n    {json}",
        args.join(" ")
    )
}

fn refused(why: &str) -> anyhow::Result<ExitCode> {
    writeln!(io::stderr().lock(), "{}", wrap(&visible(&format!("error: {why}")), "", "  "))?;
    Ok(ExitCode::FAILURE)
}

fn say(text: &str) -> io::Result<()> {
    writeln!(stdout(), "{}", text.trim_end())
}

/// The modules part of the configuration of the account with this home directory.
fn configured_modules(home: &Path) -> Result<host_components::Modules, String> {
    let path = home.join(".config/linux-sysadmin/config.yaml");
    crate::config::load_for_account(home, path)
        .map(|config| config.modules.in_system_mode())
        .map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_sudo_is_to_allow_is_shown_before_anybody_is_asked() {
        let line = format!("{ACCOUNT} ALL=(root) NOPASSWD: {}", "/usr/bin/a, ".repeat(20));
        let step = Step::Write {
            path: "/etc/sudoers.d/linux-sysadmin-a".into(),
            text: format!("# A comment\n{line}\nX\u{1b}[2J\n"),
            mode: 0o440,
            is_sudos: true,
        };
        let shown = shown("What is to be.", &[step], &["more".to_owned()]);
        let marked: Vec<&str> = shown.lines().filter_map(|line| line.strip_prefix("     | ")).collect();
        assert!(marked.len() > 2 && shown.ends_with("\nNote: more\n"), "{shown}");
        assert!(marked.iter().all(|line| line.len() < 120), "{shown}");
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(words(&marked.join(" ")), words(&format!("{line} X\\u{{1b}}[2J")));
    }
}
