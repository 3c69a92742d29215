//! `linux-sysadmin tools`: lists the tools by subject, or says everything about one.

use std::collections::{BTreeMap, btree_map::Entry};
use std::io::Write;
use std::process::ExitCode;

use clap::Args;
use clap_complete::engine::ArgValueCompleter;

use super::completion;
use super::screen::{HEADING, Screen, WARNING};
use super::stdout::stdout;
use super::tool_help;
use crate::arguments::schema::SchemaOptions;
use crate::dispatcher::Dispatcher;
use crate::server;
use host_base::Risk;
use host_components::{Registry, Tool};
use host_text::visible::one_line;

/// The mark of a tool that changes something.
const MARK: &str = "*";
/// The room beside the names below which the summaries are not put there.
const LEAST_SUMMARY: usize = 20;

#[derive(Args)]
pub(super) struct Tools {
    /// Say everything about this tool: its arguments with types and defaults, its risk, and an example
    #[arg(add = ArgValueCompleter::new(completion::tools))]
    name: Option<String>,
    /// Print the tools as clients get them: an array of MCP tools
    #[arg(long)]
    json: bool,
}

impl Tools {
    pub(super) async fn run(&self, dispatcher: &Dispatcher) -> anyhow::Result<ExitCode> {
        let modules = dispatcher.modules().await;
        let registry = &modules.registry;
        let text = match (&self.name, self.json) {
            (name, true) => {
                let options = SchemaOptions { two_step: false, hosts: dispatcher.targets().offers_hosts() };
                let one = name.as_ref().map(|name| tool_help::find(registry, name)).transpose()?;
                let is_wanted = |tool: &&Tool| one.is_none_or(|one| one.name == tool.name);
                let tools = registry.tools().filter(is_wanted);
                let tools: Vec<_> = tools.map(|tool| server::describe_tool(tool, options)).collect();
                match tools.is_empty() {
                    true => "[]\n".to_owned(),
                    false => serde_json::to_string_pretty(&tools)? + "\n",
                }
            }
            (Some(name), false) => tool_help::text(dispatcher, name, Screen::of_stdout()).await?,
            (None, false) => list(registry, Screen::of_stdout()),
        };
        stdout().write_all(text.as_bytes())?;
        Ok(ExitCode::SUCCESS)
    }
}

/// The tools, by the subject that their module names.
fn list(registry: &Registry, screen: Screen) -> String {
    let mut subjects: BTreeMap<&str, BTreeMap<&str, &Tool>> = BTreeMap::new();
    for module in registry.modules() {
        let subject = subjects.entry(&module.description.domain).or_default();
        for tool in &module.description.tools {
            if let Entry::Vacant(free) = subject.entry(&tool.name) {
                free.insert(tool);
            }
        }
    }
    grouped(&subjects, screen)
}

fn grouped(subjects: &BTreeMap<&str, BTreeMap<&str, &Tool>>, screen: Screen) -> String {
    let all = || subjects.values().flat_map(BTreeMap::values);
    let width = all().map(|tool| tool.name.len()).max().unwrap_or_default();
    let then = " ".repeat(width + 6);
    let mut text = String::new();
    for (subject, tools) in subjects.iter().filter(|(_, tools)| !tools.is_empty()) {
        text.push_str(&format!("{}\n", screen.paint(HEADING, &one_line(subject))));
        for tool in tools.values() {
            let mark = if tool.risk > Risk::ReadOnly { MARK } else { " " };
            let before = format!("  {:width$} {mark}  ", tool.name);
            let summary = one_line(&tool.summary);
            // In a pipe each tool has one line, for programs that search lines.
            let wrapped = match screen.room() {
                usize::MAX => format!("{before}{summary}"),
                room if room < then.len() + LEAST_SUMMARY => {
                    screen.wrap(&format!("{} {mark}  {summary}", tool.name), "  ", "      ")
                }
                _ => screen.wrap(&summary, &before, &then),
            };
            let marked = wrapped.replacen(MARK, &screen.paint(WARNING, MARK), usize::from(mark == MARK));
            text.push_str(&format!("{marked}\n"));
        }
        text.push('\n');
    }
    if all().any(|tool| tool.risk > Risk::ReadOnly) {
        let note = "changes something; `linux-sysadmin tools NAME` says everything about a tool";
        let note = screen.wrap(note, &format!("{MARK} "), "  ");
        text.push_str(&format!("{}\n", note.replacen(MARK, &screen.paint(WARNING, MARK), 1)));
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tool(name: &str, summary: &str, risk: &str) -> Tool {
        let tool = json!({
            "name": name, "summary": summary, "risk": risk, "shape": "single", "duration": "quick", "aliases": {},
            "first": false, "input_schema": {"type": "object"},
        });
        serde_json::from_value(tool).unwrap()
    }

    #[test]
    fn tools_stand_by_subject_and_what_changes_something_has_a_mark() {
        let tools = [
            tool(
                "web_list",
                "All sites and their states, those first that have failed, with their ports and requests",
                "read-only",
            ),
            tool("web_restart", "Restart a site", "moderate"),
            tool("mail_queue", "Mails that wait", "read-only"),
        ];
        let mut subjects: BTreeMap<&str, BTreeMap<&str, &Tool>> = BTreeMap::new();
        for (name, own) in [("web", vec!["web_list", "web_restart"]), ("mail", vec!["mail_queue"])] {
            let own = tools.iter().filter(|tool| own.contains(&tool.name.as_str()));
            subjects.insert(name, own.map(|tool| (tool.name.as_str(), tool)).collect());
        }
        assert_eq!(
            grouped(&subjects, Screen::plain(80)),
            "mail\n  mail_queue     Mails that wait\n\nweb\n  \
             web_list       All sites and their states, those first that have failed, with\n                 \
             their ports and requests\n  \
             web_restart *  Restart a site\n\n\
             * changes something; `linux-sysadmin tools NAME` says everything about a tool\n"
        );
        let narrow = grouped(&subjects, Screen::plain(24));
        assert!(narrow.lines().all(|line| line.chars().count() <= 24), "{narrow}");
        assert!(narrow.contains("\n  web_restart *  Restart\n      a site\n"), "{narrow}");
        let piped = grouped(&subjects, Screen::pipe());
        assert!(piped.contains("that have failed, with their ports and requests\n"), "{piped}");
        let colored = grouped(&subjects, Screen::colored(80));
        assert!(colored.contains("  web_restart \u{1b}[33m*\u{1b}[0m  Restart"), "{colored:?}");
        assert!(colored.starts_with("\u{1b}[1mmail\u{1b}[0m\n"), "{colored:?}");
    }
}
