//! `linux-sysadmin pending`: the calls that wait for a person's decision. Exit codes: 0 shown, 1 there is no such call, or a
//! server could not be asked, 2 wrong usage.

use std::fmt::Write as _;
use std::io::{self, Write};
use std::process::ExitCode;

use clap::Args;
use serde::Serialize;
use textwrap::core::display_width;

use super::pending_call::{self, IdPrefix, PlanView, duration, find, now};
use super::stdout::stdout;
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
/// The number of blanks between two cells.
const GAP: usize = 2;

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
                    (PlanView { waiting: &found.waiting, now: now() }.to_string(), ExitCode::SUCCESS)
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
                    (false, false) => table(&all, now(), terminal_width()),
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

/// The width of the terminal; `None` where the output goes elsewhere.
fn terminal_width() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
    Some(usize::from(size.ws_col)).filter(|columns| *columns > 0)
}

/// The table with one line for each call. No line is longer than `width`, if that is 80 or more.
fn table(all: &[WaitingCall], now: u64, width: Option<usize>) -> String {
    let column = |head: &str, cell: &dyn Fn(&WaitingCall) -> String| -> Vec<String> {
        std::iter::once(head.to_owned()).chain(all.iter().map(cell)).collect()
    };
    let mut columns = vec![
        column("ID", &|waiting| cut(one_line(&waiting.id), MAX_NAME)),
        column("AGE", &|waiting| duration(now.saturating_sub(waiting.asked_unix))),
        column("LEFT", &|waiting| duration(waiting.expires_unix.saturating_sub(now))),
        column("RISK", &|waiting| risk_name(waiting.risk).to_owned()),
    ];
    let left = |columns: &[Vec<String>]| {
        let taken: usize = columns.iter().map(|column| widest(column) + GAP).sum();
        width.map_or(usize::MAX, |width| width.saturating_sub(taken))
    };
    // The first name leaves room for the second, and both leave room for the summary.
    let most = left(&columns).saturating_sub(MIN_NAME + MIN_SUMMARY + 2 * GAP);
    let most = most.clamp(MIN_NAME, MAX_NAME);
    columns.push(column("TARGET", &|waiting| cut(one_line(&waiting.target), most)));
    let most = left(&columns).saturating_sub(MIN_SUMMARY + GAP).clamp(MIN_NAME, MAX_NAME);
    columns.push(column("TOOL", &|waiting| cut(one_line(&waiting.tool), most)));
    let most = left(&columns).max(MIN_SUMMARY);
    let summaries = column("SUMMARY", &|waiting| cut(one_line(&waiting.summary), most));

    let widths: Vec<usize> = columns.iter().map(|column| widest(column)).collect();
    let mut table = String::new();
    for (row, summary) in summaries.iter().enumerate() {
        for (column, width) in columns.iter().zip(&widths) {
            // The formatter counts characters, and some are two columns wide.
            let cell = &column[row];
            let blanks = (width + GAP).saturating_sub(display_width(cell));
            let _ = write!(table, "{cell}{}", " ".repeat(blanks));
        }
        let _ = writeln!(table, "{summary}");
    }
    table
}

fn widest(column: &[String]) -> usize {
    column.iter().map(|cell| display_width(cell)).max().unwrap_or_default()
}

/// Cuts the text to this number of columns. An ellipsis says that there is more.
fn cut(text: String, max_width: usize) -> String {
    if display_width(&text) <= max_width {
        return text;
    }
    let mut shown = String::new();
    for character in text.chars() {
        if display_width(&shown) + display_width(character.encode_utf8(&mut [0; 4])) >= max_width {
            break;
        }
        shown.push(character);
    }
    shown + "…"
}

#[cfg(test)]
mod tests {
    use super::super::pending_call::tests::waiting;
    use super::*;
    use host_base::Risk;

    #[test]
    fn a_table_has_a_line_for_each_call() {
        let critical = WaitingCall { target: "local".to_owned(), ..waiting(Risk::Critical) };
        assert_eq!(
            table(&[waiting(Risk::High), critical], 1130, None),
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
            let table = table(std::slice::from_ref(&long), 1130, Some(width));
            assert_eq!(table.lines().count(), 2, "{table}");
            assert!(table.lines().all(|line| display_width(line) <= width), "{width}: {table}");
            assert!(table.lines().all(|line| !line.contains('\x1b')) && table.ends_with("…\n"), "{table}");
        }
        // However narrow the terminal is, the beginning of the summary is shown.
        assert!(table(&[long], 1130, Some(10)).contains("one\\ntwo"));
    }

    #[test]
    fn what_is_cut_says_so() {
        for (text, most, shown) in [
            ("short", 5, "short"),
            ("longer", 5, "long…"),
            ("日本語", 6, "日本語"),
            ("日本語", 5, "日本…"),
            ("日本語", 4, "日…"),
        ] {
            assert_eq!(cut(text.to_owned(), most), shown);
        }
    }
}
