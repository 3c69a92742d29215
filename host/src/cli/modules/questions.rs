//! Asks the operator about a module's requests, the gravest first, with as few questions as the requests allow.
//!
//! What may amount to full control is asked about one by one. Looks with the rights of the server's own account are one
//! question with a list, and so are files that are read with other rights. What was reviewed isn't asked about.

use std::collections::BTreeMap;
use std::io::Write;

use super::prompt::{Answer, Prompt};
use super::view::{heading, holds, is_root, line};
use crate::cli::text::wrap;
use host_base::{Privilege, Risk};
use host_capability::{Concern, Effect, Request, Requests, by_concern};
use host_components::{Description, InstallError};

/// The indentation of a question about a request.
const INDENT: &str = "     ";
/// The number of tools that a question names.
const MOST_TOOLS: usize = 6;

/// The way in which the operator is asked about a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Way {
    /// It is granted without a question.
    Unasked,
    /// It is a question of its own.
    Alone,
    /// All requests of one group are one question.
    Together(Group),
}

/// Requests that are one question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Group {
    /// Looks with the rights of the server's own account.
    Looks,
    /// Files that are read with other rights.
    Files,
}

impl Group {
    fn name(self) -> &'static str {
        match self {
            Self::Looks => "looks",
            Self::Files => "files",
        }
    }
}

/// A request with its number in the list that the operator has seen.
type Numbered<'a> = (usize, Concern, Request<'a>);

/// Asks about the requests that were not accepted before, and about the whole. The result has those that are accepted;
/// `None` where the operator declines the module.
pub(super) fn ask(
    description: &Description,
    prompt: &Prompt,
    asked: &Requests,
    accepted_before: &Requests,
) -> Result<Option<Requests>, InstallError> {
    let all: Vec<Numbered<'_>> = by_concern(asked)
        .into_iter()
        .enumerate()
        .map(|(number, (concern, request))| (number + 1, concern, request))
        .collect();
    let open: Vec<&Numbered<'_>> =
        all.iter().filter(|(.., request)| !holds(accepted_before, request)).collect();
    let asking = Asking { description, prompt };
    // The answers by the requests' numbers. A group is asked about in the place of its gravest request.
    let mut granted: BTreeMap<usize, bool> = BTreeMap::new();
    for one in &open {
        let (number, concern, request) = one;
        if granted.contains_key(number) {
            continue;
        }
        match way(*concern, request, is_root()) {
            Way::Unasked => {
                granted.insert(*number, true);
            }
            Way::Alone => {
                granted.insert(*number, asking.alone(one)?);
            }
            Way::Together(group) => {
                let is_in_it =
                    |other: &&&Numbered<'_>| way(other.1, &other.2, is_root()) == Way::Together(group);
                let together: Vec<&Numbered<'_>> = open.iter().filter(is_in_it).copied().collect();
                granted.extend(asking.together(group, &together)?);
            }
        }
    }
    let declined = granted.values().filter(|granted| !**granted).count();
    let mut accepted = Requests::default();
    for (number, _, request) in &all {
        if granted.get(number).copied().unwrap_or(true) {
            put(&mut accepted, request);
        }
    }
    let name = &description.name;
    let count = all.len() - declined;
    let without = if declined > 0 { format!(" and without {declined}") } else { String::new() };
    let question = format!("\nPin {name} with {count} of its requests{without}?");
    Ok(prompt.yes(&question)?.then_some(accepted))
}

/// The module that is asked about, and the terminal.
struct Asking<'a> {
    description: &'a Description,
    prompt: &'a Prompt,
}

impl Asking<'_> {
    /// Asks about one request.
    fn alone(&self, (number, concern, request): &Numbered<'_>) -> Result<bool, InstallError> {
        say(&format!(
            "\n{}\n{}\n{}",
            wrap(heading(*concern), "", "  "),
            line(*number, *concern, request, false).trim_end(),
            wrap(&self.without(&[request]), INDENT, INDENT)
        ))?;
        match request {
            Request::AnyProgram(_) => {
                let question = format!("{INDENT}To grant this, type the module's name: ");
                self.prompt.name(&question, &self.description.name)
            }
            _ => self.prompt.yes(&format!("{INDENT}Grant this?")),
        }
    }

    /// Asks about several requests at once, and gives the answer for each number.
    fn together(&self, group: Group, all: &[&Numbered<'_>]) -> Result<Vec<(usize, bool)>, InstallError> {
        if let [only] = all {
            return Ok(vec![(only.0, self.alone(only)?)]);
        }
        let mut text = String::new();
        let mut last = "";
        for (number, concern, request) in all {
            let heading = heading(*concern);
            if heading != last {
                text.push_str(&format!("\n{}\n", wrap(heading, "", "  ")));
                last = heading;
            }
            text.push_str(&line(*number, *concern, request, false));
        }
        let requests: Vec<&Request<'_>> = all.iter().map(|(.., request)| request).collect();
        say(&format!("{}\n{}", text.trim_end(), wrap(&self.without(&requests), INDENT, INDENT)))?;
        let question = format!("{INDENT}Grant all {} {}?", all.len(), group.name());
        let answer = |is_granted: bool| all.iter().map(|one| (one.0, is_granted)).collect();
        match self.prompt.all(&question)? {
            Answer::All => Ok(answer(true)),
            Answer::None => Ok(answer(false)),
            Answer::Each => {
                all.iter().map(|one| self.alone(one).map(|is_granted| (one.0, is_granted))).collect()
            }
        }
    }

    /// Says what fails where these requests are declined.
    fn without(&self, requests: &[&Request<'_>]) -> String {
        let tools = self.description.tools.iter().map(|tool| (tool.name.as_str(), tool.risk));
        without(&tools.collect::<Vec<_>>(), requests)
    }
}

/// The way in which the operator is asked about a request. `is_root` says whether the server's own account is root.
fn way(concern: Concern, request: &Request<'_>, is_root: bool) -> Way {
    match (concern, request) {
        (Concern::Reviewed(_), _) => Way::Unasked,
        (Concern::Look | Concern::LookAsRootAccount, _) => Way::Together(Group::Looks),
        (Concern::Files, Request::Path(files)) if files.privilege != Privilege::Caller => {
            Way::Together(Group::Files)
        }
        // With its own account's rights the server shows only what that account can see, which is everything for root.
        (Concern::Files, _) if is_root => Way::Together(Group::Looks),
        (Concern::Files, _) => Way::Unasked,
        _ => Way::Alone,
    }
}

/// Says which tools fail without these requests. A module doesn't say which of its tools needs what, so all tools are named
/// that may need them: only a tool that changes something needs what only a change and its simulation use.
fn without(tools: &[(&str, Risk)], requests: &[&Request<'_>]) -> String {
    let is_for_changes = |request: &&Request<'_>| match request {
        Request::Command(command) => command.effect != Effect::Read,
        Request::Signals(_) | Request::OwnProgram(_) => true,
        Request::Path(_) | Request::AnyProgram(_) | Request::Tool(_) => false,
    };
    let are_for_changes = requests.iter().all(is_for_changes);
    let may_need = tools.iter().filter(|(_, risk)| !are_for_changes || *risk != Risk::ReadOnly);
    let names: Vec<&str> = may_need.map(|(name, _)| *name).collect();
    let what = if requests.len() == 1 { "this" } else { "one of these" };
    match &names[..] {
        [] => format!("None of its tools says that it changes something, so none needs {what}."),
        [only] => format!("{only} ends with CAPABILITY_DENIED where it needs {what} and you decline."),
        names => {
            let more = match names.len().saturating_sub(MOST_TOOLS) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            let named = names[..names.len().min(MOST_TOOLS)].join(", ");
            format!(
                "If you decline, those of its tools that need {what} end with CAPABILITY_DENIED: {named}{more}."
            )
        }
    }
}

fn put(accepted: &mut Requests, request: &Request<'_>) {
    match *request {
        Request::Command(request) => accepted.commands.push(request.clone()),
        Request::Path(request) => accepted.paths.push(request.clone()),
        Request::AnyProgram(request) => accepted.any_program.push(request.clone()),
        Request::Signals(request) => accepted.signals.push(request.clone()),
        Request::OwnProgram(request) => accepted.own_programs.push(request.clone()),
        Request::Tool(request) => accepted.tools.push(request.clone()),
    }
}

/// Prints what a question is about. Where that isn't possible, nobody is asked.
pub(super) fn say(text: &str) -> Result<(), InstallError> {
    writeln!(std::io::stdout().lock(), "{text}").map_err(|error| InstallError::NotAsked(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use host_capability::{CommandRequest, PathRequest, Place, SignalRequest};

    fn command(pattern: &str, effect: Effect, privilege: Privilege) -> CommandRequest {
        let (pattern, place, risk) = (pattern.to_owned(), Place::Target, Risk::ReadOnly);
        CommandRequest { pattern, effect, privilege, place, risk, reason: String::new() }
    }

    fn files(glob: &str, privilege: Privilege) -> PathRequest {
        let (glob, place) = (glob.to_owned(), Place::Target);
        PathRequest { glob, write: false, privilege, place, reason: String::new() }
    }

    #[test]
    fn looks_as_the_servers_own_account_are_one_question_and_what_changes_or_is_roots_is_asked_alone() {
        let (look, files_together) = (Way::Together(Group::Looks), Way::Together(Group::Files));
        for (request, as_account, as_root) in [
            (command("frobnicate --status", Effect::Read, Privilege::Caller), look, look),
            (command("frobnicate --simulate", Effect::DryRun, Privilege::Caller), look, look),
            (command("uptime", Effect::Read, Privilege::Caller), Way::Unasked, Way::Unasked),
            (command("frobnicate --status", Effect::Read, Privilege::Root), Way::Alone, Way::Alone),
            (
                command("frobnicate --status", Effect::Read, Privilege::User("ada".to_owned())),
                Way::Alone,
                Way::Alone,
            ),
            (command("frobnicate", Effect::Change, Privilege::Caller), Way::Alone, Way::Alone),
            (command("frobnicate -- <arg>", Effect::Read, Privilege::Caller), Way::Alone, Way::Alone),
        ] {
            let requests = Requests { commands: vec![request], ..Requests::default() };
            for (concern, request) in by_concern(&requests) {
                assert_eq!(way(concern, &request, false), as_account, "{request:?}");
                assert_eq!(way(concern, &request, true), as_root, "{request:?}");
            }
        }
        for (request, as_account, as_root) in [
            (files("/etc/*", Privilege::Caller), Way::Unasked, look),
            (files("/etc/*", Privilege::RootIfAvailable), files_together, files_together),
            (files("/etc/shadow", Privilege::Caller), Way::Alone, Way::Alone),
            (PathRequest { write: true, ..files("/etc/x", Privilege::Caller) }, Way::Alone, Way::Alone),
        ] {
            let requests = Requests { paths: vec![request], ..Requests::default() };
            for (concern, request) in by_concern(&requests) {
                assert_eq!(way(concern, &request, false), as_account, "{request:?}");
                assert_eq!(way(concern, &request, true), as_root, "{request:?}");
            }
        }
    }

    #[test]
    fn what_breaks_is_said_of_the_tools_that_may_need_it() {
        let tools = [("x_list", Risk::ReadOnly), ("x_set", Risk::Moderate)];
        let (read, change) =
            (command("a", Effect::Read, Privilege::Caller), command("b", Effect::Change, Privilege::Caller));
        let (read, change) = (Request::Command(&read), Request::Command(&change));
        let signals =
            SignalRequest { privilege: Privilege::Root, place: Place::Target, reason: String::new() };
        for (tools, requests, expected) in [
            (&tools[..], &[&read][..], "need this end with CAPABILITY_DENIED: x_list, x_set."),
            (&tools, &[&change], "x_set ends with CAPABILITY_DENIED where it needs this and you decline."),
            (&tools, &[&Request::Signals(&signals)], "x_set ends with"),
            (&tools, &[&read, &change], "need one of these end with CAPABILITY_DENIED: x_list, x_set."),
            (&tools[..1], &[&change], "None of its tools says that it changes something"),
        ] {
            let said = without(tools, requests);
            assert!(said.contains(expected), "{said}");
        }
        let many = [("x", Risk::ReadOnly); 9];
        assert!(without(&many, &[&read]).ends_with("x, x, x, x, x, x and 3 more."));
    }
}
