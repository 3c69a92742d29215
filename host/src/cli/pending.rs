//! `linux-sysadmin pending`: the calls that wait for a person's decision. Exit codes: 0 shown, 1 there is no such call, or a
//! server could not be asked, 2 wrong usage.

use std::io::Write;
use std::process::ExitCode;

use clap::Args;
use serde::Serialize;

use super::pending_call::{self, IdPrefix, PlanView, duration, find, now};
use super::screen::{Screen, cut, risk_style};
use super::stdout::stdout;
use super::table::{Cell, Column, Table};
use super::text::risk_name;
use host_approval::{Servers, WaitingCall};
use host_base::account::Account;
use host_text::visible::{make_visible, one_line};

// Each paragraph a line: it is wrapped as wide as the terminal is.
const AFTER_HELP: &str = "\
A call that has to be confirmed waits in its server until a person decides about it with `linux-sysadmin approve` or \
`linux-sysadmin deny`, for 15 minutes at most. This shows the calls that wait in the servers of this account, and as \
root also the calls that wait in those of system mode.";

/// The width of a name in the table, in columns of the terminal.
const MAX_NAME: usize = 24;
/// The width of a name and of a summary, however narrow the terminal is.
const MIN_NAME: usize = 8;
const MIN_SUMMARY: usize = 16;

#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Pending {
    /// Show this call with its whole plan; the first 4 digits are enough, where no other call has them
    id: Option<IdPrefix>,
    /// Print JSON: the calls without their plans, or the one with its plan
    #[arg(long)]
    json: bool,
}

impl Pending {
    pub(super) async fn run(self) -> anyhow::Result<ExitCode> {
        let servers = Servers::within_reach();
        let (text, code) = match &self.id {
            Some(id) => match find(&servers, id).await {
                Ok(found) if self.json => (json(&found.waiting)?, ExitCode::SUCCESS),
                Ok(found) => {
                    let view = PlanView { waiting: &found.waiting, now: now(), screen: Screen::of_stdout() };
                    (view.to_string(), ExitCode::SUCCESS)
                }
                Err(error) => {
                    pending_call::print_error(&error);
                    return Ok(ExitCode::FAILURE);
                }
            },
            None => {
                let (pending, errors) = servers.pending().await;
                pending_call::warn(&errors);
                let all: Vec<WaitingCall> = pending.into_iter().map(|pending| pending.waiting).collect();
                let text = match (self.json, all.is_empty()) {
                    (true, _) => json(&all)?,
                    (false, true) => nothing(&servers),
                    (false, false) => table(&all, now(), Screen::of_stdout()),
                };
                (text, if errors.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
            }
        };
        stdout().write_all(text.as_bytes())?;
        Ok(code)
    }
}

fn json(what: &impl Serialize) -> anyhow::Result<String> {
    let mut value = serde_json::to_value(what)?;
    make_visible(&mut value);
    Ok(serde_json::to_string_pretty(&value)? + "\n")
}

fn nothing(servers: &Servers) -> String {
    let mut text =
        format!("nothing waits in the servers of {}\n", one_line(&servers.accounts().join(" and ")));
    let is_elsewhere =
        !rustix::process::geteuid().is_root() && Account::named(host_system_mode::ACCOUNT).is_some();
    if is_elsewhere {
        text.push_str("only root sees the calls that wait in system mode: sudo linux-sysadmin pending\n");
    }
    text
}

/// The table with one line for each call.
fn table(all: &[WaitingCall], now: u64, screen: Screen) -> String {
    let mut table = Table::new([
        Column::whole("ID"),
        Column::whole("AGE"),
        Column::whole("LEFT"),
        Column::whole("RISK"),
        Column::cut("TARGET", MIN_NAME),
        Column::cut("TOOL", MIN_NAME),
        Column::cut("SUMMARY", MIN_SUMMARY),
    ]);
    let name = |text: &str| Cell::from(cut(&one_line(text), MAX_NAME));
    for waiting in all {
        table.row([
            name(&waiting.id),
            duration(now.saturating_sub(waiting.asked_unix)).into(),
            duration(waiting.expires_unix.saturating_sub(now)).into(),
            Cell::styled(risk_name(waiting.risk), risk_style(waiting.risk)),
            name(&waiting.target),
            name(&waiting.tool),
            one_line(&waiting.summary).into(),
        ]);
    }
    table.text(screen, 0)
}

#[cfg(test)]
mod tests {
    use super::super::pending_call::tests::waiting;
    use super::*;
    use host_base::Risk;
    use textwrap::core::display_width;

    #[test]
    fn a_table_has_a_line_for_each_call() {
        let critical = WaitingCall { target: "local".to_owned(), ..waiting(Risk::Critical) };
        assert_eq!(
            table(&[waiting(Risk::High), critical], 1130, Screen::pipe()),
            "ID                AGE    LEFT    RISK      TARGET  TOOL         SUMMARY\n\
             3f2a90c1d4e5b6a7  2 min  12 min  high      web1    web_restart  Restart nginx.service\n\
             3f2a90c1d4e5b6a7  2 min  12 min  critical  local   web_restart  Restart nginx.service\n"
        );
    }

    #[test]
    fn a_line_is_no_longer_than_the_terminal_and_stays_one() {
        let long = WaitingCall {
            target: "t".repeat(100),
            tool: "日".repeat(100),
            summary: "one\ntwo\x1b[2J ".repeat(20),
            ..waiting(Risk::Critical)
        };
        for width in [80, 100, 120, 160] {
            let table = table(std::slice::from_ref(&long), 1130, Screen::plain(width));
            assert_eq!(table.lines().count(), 2, "{table}");
            assert!(table.lines().all(|line| display_width(line) <= width), "{width}: {table}");
            assert!(table.lines().all(|line| !line.contains('\x1b')) && table.ends_with("…\n"), "{table}");
        }
        // However narrow the terminal is, the beginning of the summary is shown.
        assert!(table(&[long], 1130, Screen::plain(10)).contains("one\\ntwo"));
    }

    #[test]
    fn the_risk_has_a_colour_and_nothing_else() {
        let shown = table(&[waiting(Risk::Critical)], 1130, Screen::colored(120));
        let row = shown.lines().nth(1).unwrap();
        assert!(row.contains("  \u{1b}[1m\u{1b}[31mcritical\u{1b}[0m  web1  "), "{row:?}");
        assert_eq!(row.matches('\u{1b}').count(), 3, "{row:?}");
    }
}
