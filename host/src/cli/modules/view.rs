//! Describes a module and its requests for the operator who decides about it, with the gravest requests first, 80 columns
//! wide.
//!
//! Text that a third party wrote stands in quotes on one line, and has no character that a terminal acts upon.

use std::fmt::{self, Display, Formatter, Write as _};

use crate::cli::text::{risk_name, wrap};
use host_base::Privilege;
use host_capability::{
    AnyProgramRequest, CommandRequest, Concern, Effect, OwnProgramRequest, PathRequest, Pattern, Place,
    Request, Requests, SignalRequest, by_concern,
};
use host_components::{Aliases, Description, Examined, Module, Origin};
use host_policy::{Policy, RefusedGrant, refused_grants};
use host_text::visible::visible;

/// The number of characters of a word in a third party's text. A longer one is divided.
const MAX_WORD: usize = 40;

/// Displays a module, or a component that could become one.
pub(super) struct ModuleView<'a> {
    description: &'a Description,
    sha256: &'a str,
    size: u64,
    file: String,
    /// The module's origin; `None` where it is not installed.
    origin: Option<Origin>,
    /// The requests that were accepted; `None` where it is not installed.
    granted: Option<Requests>,
    conflicts: Vec<String>,
    replaces: Vec<String>,
    /// The grants that the policy doesn't let run, as text.
    refusals: String,
    used: bool,
}

impl<'a> ModuleView<'a> {
    pub(super) fn of_module(module: &'a Module) -> Self {
        Self {
            description: &module.description,
            sha256: &module.sha256,
            size: module.size(),
            file: module.path().display().to_string(),
            origin: Some(module.origin),
            granted: Some(module.granted()),
            conflicts: Vec::new(),
            replaces: module.replaced().to_vec(),
            refusals: String::new(),
            used: true,
        }
    }

    pub(super) fn of_file(examined: &'a Examined) -> Self {
        Self {
            description: examined.description(),
            sha256: examined.sha256(),
            size: examined.size,
            file: examined.shown_source(),
            origin: None,
            granted: None,
            conflicts: examined.conflicts.iter().map(ToString::to_string).collect(),
            replaces: Vec::new(),
            refusals: String::new(),
            used: true,
        }
    }
}

impl ModuleView<'_> {
    /// The module with the grants among its requests that the policy doesn't let run.
    pub(super) fn held_against(self, policy: &Policy) -> Self {
        Self { refusals: refusals(policy, &self.description.requests), ..self }
    }

    /// A module that is installed and not used now.
    pub(super) fn of_unused(self, origin: Origin, granted: Requests) -> Self {
        Self { origin: Some(origin), granted: Some(granted), conflicts: Vec::new(), used: false, ..self }
    }
}

impl Display for ModuleView<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Description { name, version, summary, license, homepage, serves, tools, imports, .. } =
            self.description;
        let whose = self.origin.map_or("not installed".to_owned(), |origin| match origin {
            Origin::Host => "comes with the host".to_owned(),
            Origin::System => "a third party's, added by root for everyone".to_owned(),
            Origin::User => "a third party's, added by this account".to_owned(),
        });
        let used = if self.used { "" } else { "; NOT USED now, see `modules list`" };
        writeln!(f, "{name} {version}: {whose}{used}")?;
        writeln!(f, "{}", wrap(&quoted(summary), "  ", "  "))?;
        let mut fact =
            |name: &str, value: &str| writeln!(f, "{}", wrap(value, &format!("  {name:<9}"), "           "));
        fact(if self.file.contains("://") { "source" } else { "file" }, &visible(&self.file))?;
        fact("size", &format!("{} bytes", grouped(self.size)))?;
        fact("sha256", self.sha256)?;
        fact("license", &license.as_deref().map_or("it doesn't say".to_owned(), quoted))?;
        if let Some(homepage) = homepage {
            fact("homepage", &quoted(homepage))?;
        }
        let conditions: Vec<String> = serves
            .iter()
            .map(|condition| format!("{} is {}", condition.fact, condition.any_of.join(" or ")))
            .collect();
        let serves = if conditions.is_empty() { "every target".to_owned() } else { conditions.join(", ") };
        fact("serves", &format!("targets: {serves}").replace("targets: every", "every"))?;
        for conflict in &self.conflicts {
            writeln!(f, "\n{}", wrap(conflict, "CONFLICT: ", "  "))?;
        }
        for replaced in &self.replaces {
            let what = format!("{replaced}, a tool of the modules that come with the host");
            writeln!(f, "\n{}", wrap(&what, "TAKES THE PLACE OF ", "  "))?;
        }
        requests(f, &self.description.requests, (self.granted.as_ref(), self.origin))?;
        f.write_str(&self.refusals)?;
        writeln!(f, "\nTools, each with the risk that the module itself states")?;
        let width = tools.iter().map(|tool| tool.name.len()).max().unwrap_or(0);
        for tool in tools {
            let head = format!("  {:width$}  {:<9}  ", tool.name, risk_name(tool.risk));
            let indent = " ".repeat(head.len());
            writeln!(f, "{}", wrap(&quoted(&tool.summary), &head, &indent))?;
            if let Some(older) = older_names(&tool.aliases) {
                writeln!(f, "{}", wrap(&older, &indent, &indent))?;
            }
        }
        writeln!(f, "\nImports, besides an empty WASI")?;
        let ours: Vec<&str> =
            imports.iter().filter_map(|import| import.strip_prefix("sysadmin:module/")).collect();
        let ours = if ours.is_empty() { "none".to_owned() } else { ours.join(", ") };
        writeln!(f, "{}", wrap(&ours, "  ", "  "))
    }
}

/// The older names that a tool understands. They have only characters that need no quotes.
fn older_names(aliases: &Aliases) -> Option<String> {
    let names = aliases.tool.iter().map(|alias| format!("answers to {alias}"));
    let arguments = aliases.arguments.iter().map(|(alias, name)| format!("takes {alias} as {name}"));
    let values = aliases.values.iter().flat_map(|(argument, values)| {
        values.iter().map(move |(alias, value)| format!("takes {alias} as {value}, in {argument}"))
    });
    let all: Vec<String> = names.chain(arguments).chain(values).collect();
    (!all.is_empty()).then(|| all.join("; "))
}

/// The grants among the requests that the policy doesn't let run, under two headings and each with the reason; empty where
/// there are none.
pub(super) fn refusals(policy: &Policy, asked: &Requests) -> String {
    let refused = refused_grants(policy, asked);
    let mut text = String::new();
    for (is_always, heading) in [
        (true, "NEVER RUNS: the policy refuses these, whatever is granted"),
        (false, "RUNS IN PART: the policy refuses some command lines of these, whatever is granted"),
    ] {
        let mut of_them = refused.iter().filter(|refused| refused.is_always == is_always).peekable();
        if of_them.peek().is_some() {
            let _ = writeln!(text, "\n{}", wrap(heading, "", "  "));
        }
        for RefusedGrant { pattern, effect, reason, .. } in of_them {
            let what = format!("{}, {}", visible(pattern), purpose(*effect));
            let _ = writeln!(text, "{}", wrap(&what, "  ", "      "));
            let _ = writeln!(text, "{}", wrap(&visible(reason), "      ", "      "));
        }
    }
    text
}

/// The purpose of a command in words.
fn purpose(effect: Effect) -> &'static str {
    match effect {
        Effect::Read => "to look",
        Effect::DryRun => "to simulate a change",
        Effect::Change => "to change something",
    }
}

/// All requests, numbered, under a heading for each concern.
fn requests(
    f: &mut Formatter<'_>,
    asked: &Requests,
    (granted, origin): (Option<&Requests>, Option<Origin>),
) -> fmt::Result {
    let all = by_concern(asked);
    if all.is_empty() {
        return writeln!(f, "\nIt asks for nothing: it can run no command and read no file.");
    }
    let mut heading = "";
    for (number, (concern, request)) in all.iter().enumerate() {
        let its_heading = match (concern, origin) {
            (Concern::Files, Some(Origin::Host)) => FILES_OF_HOST,
            (concern, _) => self::heading(*concern),
        };
        if its_heading != heading {
            heading = its_heading;
            writeln!(f, "\n{}", wrap(heading, "", "  "))?;
        }
        let denied = granted.is_some_and(|granted| !holds(granted, request));
        write!(f, "{}", line(number + 1, *concern, request, denied))?;
    }
    Ok(())
}

/// Whether this request was accepted, whatever its reason was then.
pub(super) fn holds(granted: &Requests, request: &Request<'_>) -> bool {
    granted.ask_for(request)
}

/// The heading of files that the host's own modules read. Their contents are not looked through: they lose their secrets in
/// the answer.
const FILES_OF_HOST: &str = "Files that it reads; those known to hold secrets are left out of every wildcard";

pub(super) fn heading(concern: Concern) -> &'static str {
    match concern {
        Concern::AnyProgram => {
            "FULL CONTROL: runs any program with any arguments. The policy decides which of them you are asked about"
        }
        Concern::Anything => {
            "DANGER: runs these with arguments of its own choice, which is full control of whatever they control"
        }
        Concern::OwnProgram => {
            "ITS OWN PROGRAM: puts a program on the machine that root runs, in units and crontabs too, and nobody is asked what it does"
        }
        Concern::Signals => {
            "ENDS PROCESSES: sends signals to processes of its own choice, which can end or stop any that it reaches"
        }
        Concern::SameAsChange => {
            "A CHANGE BY ANOTHER NAME: it asks for each of these as a change too. As a look or a simulation it runs without a question"
        }
        Concern::NotReviewed => "NOT REVIEWED: each of these may amount to full control of the machine",
        Concern::LookAsRootAccount => {
            "NOT REVIEWED, and the server's own account is ROOT: each of these may amount to full control of the machine"
        }
        Concern::LookAsOther => {
            "NOT REVIEWED, to look as other accounts: each of these may show or do whatever the account may"
        }
        Concern::Look => {
            "NOT REVIEWED, to look as the server's own account: each of these may show or do whatever that account may"
        }
        Concern::Secret(_) => "SECRETS: reads these files, or writes them too where it says so",
        Concern::Tool => {
            "OTHER MODULES' TOOLS: looks by these with all grants of the modules that have them, and gets their answers"
        }
        Concern::Files => {
            "Files that it reads. Those known by their paths to hold secrets are left out of every wildcard. In the others that only a wildcard covers, private keys, passwords and tokens that are recognized are hidden"
        }
        Concern::Reviewed(_) => "Commands reviewed as harmless, whatever they are given",
    }
}

/// Describes one request. The module's own reason stands in the last line, where the request has one.
pub(super) fn line(number: usize, concern: Concern, request: &Request<'_>, denied: bool) -> String {
    let head = format!("{number:>3}. ");
    let indent = " ".repeat(head.len());
    let (what, text, reason) = match request {
        Request::Command(CommandRequest { pattern, effect, privilege, risk: least, reason, .. }) => {
            let does = match effect {
                Effect::Read | Effect::DryRun => purpose(*effect).to_owned(),
                Effect::Change => {
                    format!("{} (the module calls the risk {})", purpose(*effect), risk_name(*least))
                }
            };
            // No hole limits what a command gets on its standard input.
            let stdin = match Pattern::parse(pattern).is_ok_and(|pattern| pattern.stdin()) {
                true => ", with any standard input it likes",
                false => "",
            };
            (format!("{}, {does}{stdin}", account(privilege)), pattern.as_str(), Some(reason))
        }
        Request::AnyProgram(AnyProgramRequest { privilege, reason, .. }) => {
            (format!("{}, to look and to change anything", account(privilege)), "any program", Some(reason))
        }
        Request::Signals(SignalRequest { privilege, reason, .. }) => {
            let whose = match privilege {
                Privilege::Root => "any process",
                _ => "any process of this account",
            };
            (format!("{}, to end, to stop and to continue", account(privilege)), whose, Some(reason))
        }
        Request::OwnProgram(OwnProgramRequest { path, sha256, reason }) => {
            (format!("as ROOT, with the SHA-256 {sha256}"), path.as_str(), Some(reason))
        }
        // The contract has no reason for such a request: the tool's own name says what it is for.
        Request::Tool(tool) => {
            ("with the rights of the module that has it, to look".to_owned(), tool.as_str(), None)
        }
        Request::Path(PathRequest { glob, write, privilege, place, reason }) => {
            let does = match write {
                true => "to WRITE and read",
                false => "to read",
            };
            let whose = match place {
                Place::Controller => "by itself, on the machine that the server runs on".to_owned(),
                Place::Target => account(privilege),
            };
            let what = match concern {
                Concern::Secret(why) => format!("{whose}, {does}: {why}"),
                _ => format!("{whose}, {does}"),
            };
            (what, glob.as_str(), Some(reason))
        }
    };
    let denied = if denied { "NOT GRANTED: " } else { "" };
    let verdict = match concern {
        Concern::Reviewed(why) => format!("reviewed: {why}\n"),
        _ => String::new(),
    };
    let below = format!("{indent}  ");
    let reason = reason.map(|reason| {
        let reason = if reason.is_empty() { "no reason given".to_owned() } else { quoted(reason) };
        format!("{}\n", wrap(&format!("it says: {reason}"), &below, &below))
    });
    format!(
        "{}\n{}\n{}{}",
        wrap(&format!("{denied}{what}"), &head, &indent),
        // Words stay whole, so that they can be compared and copied.
        wrap(&visible(text), &below, &format!("{indent}    ")),
        if verdict.is_empty() { verdict } else { wrap(&verdict, &below, &below) },
        reason.unwrap_or_default(),
    )
}

fn account(privilege: &Privilege) -> String {
    match privilege {
        Privilege::Caller if is_root() => {
            "as the server's own account, which is ROOT where the server runs as this command does".to_owned()
        }
        Privilege::Caller => "as the server's own account".to_owned(),
        Privilege::Root => "as ROOT".to_owned(),
        Privilege::RootIfAvailable => "as ROOT where that can be had".to_owned(),
        Privilege::User(name) => format!("as {}", visible(name)),
    }
}

/// Whether the account that runs this command, and a server that it starts, is root.
pub(super) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Puts a third party's text on one line and in quotes that it can't close, with hidden characters made visible. A word that
/// would fill a line is divided, so that no line consists of its text alone.
pub(super) fn quoted(text: &str) -> String {
    let text = text.replace('\\', "\\\\").replace('"', "\\\"");
    let text = visible(&text);
    let mut shown = String::new();
    for word in text.split_whitespace() {
        for (at, character) in word.chars().enumerate() {
            if at % MAX_WORD == 0 && !shown.is_empty() {
                shown.push(' ');
            }
            shown.push(character);
        }
    }
    format!("\"{shown}\"")
}

/// The number with its digits in groups, such as 1,234,567.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut shown = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            shown.push(',');
        }
        shown.push(digit);
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_third_partys_text_stays_within_its_quotes_and_its_line() {
        assert_eq!(
            quoted("harmless\n\nREVIEWED: by us\r\x1b[2J"),
            "\"harmless REVIEWED: by us\\u{d}\\u{1b}[2J\""
        );
    }

    #[test]
    fn whether_files_are_written_is_said_at_once_and_within_the_line() {
        let path = |glob: &str, write, privilege| PathRequest {
            glob: glob.to_owned(),
            write,
            privilege,
            place: Place::Target,
            reason: "units ".repeat(30),
        };
        let requests = Requests {
            commands: Vec::new(),
            any_program: Vec::new(),
            signals: vec![SignalRequest {
                privilege: Privilege::Root,
                place: Place::Target,
                reason: "hung workers ".repeat(20),
            }],
            own_programs: vec![OwnProgramRequest {
                path: "/usr/local/lib/linux-sysadmin/copy".to_owned(),
                sha256: "0123".repeat(16),
                reason: "copies ".repeat(20),
            }],
            tools: vec!["others_look".to_owned()],
            paths: vec![
                path("/etc/systemd/system/*", true, Privilege::Root),
                path("/etc/hosts", false, Privilege::Root),
                path("/etc/gshadow", true, Privilege::Root),
                path("/home/*/.x", true, Privilege::User("ada".into())),
            ],
        };
        let shown: Vec<(&str, String)> = by_concern(&requests)
            .iter()
            .map(|(concern, request)| (heading(*concern), line(1, *concern, request, false)))
            .collect();
        for ((heading, line), (its_heading, first)) in shown.iter().zip([
            (
                "ITS OWN PROGRAM",
                "  1. as ROOT, with the SHA-256\n     0123012301230123012301230123012301230123012301230123012301230123\n       \
                 /usr/local/lib/linux-sysadmin/copy\n",
            ),
            ("ENDS PROCESSES", "  1. as ROOT, to end, to stop and to continue\n       any process\n"),
            ("NOT REVIEWED", "  1. as ROOT, to WRITE and read\n       /etc/systemd/system/*\n"),
            ("NOT REVIEWED", "  1. as ada, to WRITE and read\n       /home/*/.x\n"),
            ("SECRETS", "  1. as ROOT, to WRITE and read: password hashes\n       /etc/gshadow\n"),
            (
                "OTHER MODULES' TOOLS",
                "  1. with the rights of the module that has it, to look\n       others_look\n",
            ),
            ("Files that it reads", "  1. as ROOT, to read\n       /etc/hosts\n"),
        ]) {
            assert!(heading.starts_with(its_heading) && line.starts_with(first), "{heading}\n{line}");
            assert!(line.lines().all(|line| line.len() <= 80), "{line}");
        }
        assert_eq!(shown.len(), 7);
    }

    #[test]
    fn bytes_are_grouped() {
        for (number, shown) in [(0, "0"), (999, "999"), (1000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(grouped(number), shown);
        }
    }
}
