//! Finds and shows a call that waits for a decision, for `pending`, `approve` and `deny`. Hidden characters in it are made
//! visible.

use std::fmt::{self, Display, Formatter};
use std::str::FromStr;
use std::time::{SystemTime, UNIX_EPOCH};

use super::screen::{Screen, fold, risk_style};
use host_approval::{AskError, ServerCall, Servers, WaitingCall};
use host_text::visible::{one_line, visible};

/// The blanks before each line of a question.
const INDENT: &str = "  ";
/// The mark of a line of contents, such as a diff.
const CONTENTS: &str = "   | ";
/// The beginning of the line of a question that names the risk.
const RISK: &str = "Risk:    ";
/// The column of a question's line in which the value after a label begins.
const VALUES: usize = 9;

/// The number of digits by which a call can be named. A whole id has 16.
const DIGITS: std::ops::RangeInclusive<usize> = 4..=16;

/// The id of a call, or its first digits.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct IdPrefix(String);

impl FromStr for IdPrefix {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is_id = DIGITS.contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        match is_id {
            true => Ok(Self(text.to_ascii_lowercase())),
            false => Err(
                "expected an id as `linux-sysadmin pending` lists it: 16 hexadecimal digits, of which the \
                          first ones are enough, at least 4",
            ),
        }
    }
}

/// The reason why the call can't be shown or decided. The exit code is 1.
#[derive(Debug, thiserror::Error)]
pub(super) enum NotFound {
    #[error(
        "no call whose id begins with {id} waits in the servers of {accounts}: it may have been decided, or have \
         expired; `linux-sysadmin pending` lists the calls that wait"
    )]
    None { id: String, accounts: String },
    #[error("{} calls that wait have an id that begins with {id}: {}", found.len(), found.join(", "))]
    Several { id: String, found: Vec<String> },
    #[error(transparent)]
    Confirmer(#[from] AskError),
}

/// Finds the call that waits, with its plan.
pub(super) async fn find(servers: &Servers, id: &IdPrefix) -> Result<ServerCall, NotFound> {
    let (pending, errors) = servers.pending().await;
    warn(&errors);
    let is_it = |pending: &ServerCall| pending.waiting.id.starts_with(&id.0);
    let mut found: Vec<ServerCall> = pending.into_iter().filter(is_it).collect();
    let none = || NotFound::None { id: id.0.clone(), accounts: servers.accounts().join(" and ") };
    if found.len() > 1 {
        let found = found.iter().map(|pending| one_line(&pending.waiting.id)).collect();
        return Err(NotFound::Several { id: id.0.clone(), found });
    }
    let ServerCall { server, waiting } = found.pop().ok_or_else(none)?;
    let waiting = server.show(&waiting.id).await?.ok_or_else(none)?;
    Ok(ServerCall { server, waiting })
}

/// Prints on stderr why servers could not be asked.
pub(super) fn warn(errors: &[AskError]) {
    for error in errors {
        eprintln!("warning: {}", one_line(&error.to_string()));
    }
}

/// Prints on stderr why the command failed.
pub(super) fn print_error(error: &dyn Display) {
    eprintln!("error: {}", one_line(&error.to_string()));
}

/// Seconds since 1970.
pub(super) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// A duration in its largest unit.
pub(super) fn duration(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min", seconds / 60),
        _ => format!("{} h", seconds / 3600),
    }
}

/// Displays a call with its whole plan. The server has written the question, which names tool, target, client, risk and plan;
/// only the times are added.
pub(super) struct PlanView<'a> {
    pub(super) waiting: &'a WaitingCall,
    /// Seconds since 1970.
    pub(super) now: u64,
    pub(super) screen: Screen,
}

impl Display for PlanView<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let asked = duration(self.now.saturating_sub(self.waiting.asked_unix));
        let time = match self.waiting.expires_unix.saturating_sub(self.now) {
            0 => format!("{asked} ago; has expired"),
            left => format!("{asked} ago; expires in {}", duration(left)),
        };
        // Only the host begins a line of the question. Indented, no line of a plan looks like one of this program.
        for line in visible(&self.waiting.question).lines() {
            writeln!(f, "{}", self.shown(line))?;
        }
        writeln!(f, "  Asked:   {time}")
    }
}

impl PlanView<'_> {
    /// A line of the question at the width of the screen. The risk has its colour.
    fn shown(&self, line: &str) -> String {
        let lines = plan_line(line, self.screen);
        if let ([shown], Some(risk)) = (lines.as_slice(), line.strip_prefix(RISK))
            && !risk.is_empty()
            && let Some(before) = shown.strip_suffix(risk)
        {
            return format!("{before}{}", self.screen.paint(risk_style(self.waiting.risk), risk));
        }
        lines.join("\n")
    }
}

/// A line of a plan, indented, and broken where it is longer than the screen. What goes on is further in than what began, so it
/// can't look like a line of its own.
pub(super) fn plan_line(line: &str, screen: Screen) -> Vec<String> {
    // A tab would take the terminal further than its width says, and the rest of the line to the beginning of the next one.
    let line = line.replace('\t', "    ");
    // Contents stand behind a mark, so that a line of theirs can't look like one of the plan.
    if let Some(contents) = line.strip_prefix(CONTENTS) {
        let before = INDENT.len() + CONTENTS.len();
        let lines = fold(contents, screen.columns() - before, "  ").into_iter().enumerate();
        let begins = |number| if number == 0 { format!("{INDENT}{CONTENTS}") } else { " ".repeat(before) };
        return lines
            .map(|(number, line)| format!("{}{line}", begins(number)).trim_end().to_owned())
            .collect();
    }
    let blanks = line.bytes().take_while(|byte| *byte == b' ').count();
    let has_label = blanks == 0 && line.find(": ").is_some_and(|end| end < VALUES);
    let then = if has_label { VALUES } else { blanks + 4 };
    let shown = format!("{INDENT}{line}");
    fold(shown.trim_end(), screen.columns(), &" ".repeat(INDENT.len() + then))
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::text::risk_name;
    use super::*;
    use host_base::Risk;

    /// A question as the gate writes it, written by hand.
    fn question(risk: &str) -> String {
        format!(
            "May this be done on web1 (web1.example.org), as root?\n\nTool:    web_restart, of module services 0.1.0\n\
             Client:  a client 1.0\nRisk:    {risk}\nBecause: {risk} rather than the tool's own: the service is the resolver \
             of the network, and every other service needs it\nSays:    Restart nginx.service\n\n\
             1. run sudo -n systemctl restart -- nginx.service\n   undo: sudo -n systemctl start -- nginx.service\n\n\
             Undo:    where a step fails, all before it are undone\nPlan:    3f2a90c1d4e5b6a7 (SHA-256 {})\n",
            "ab".repeat(32)
        )
    }

    pub(in crate::cli) fn waiting(risk: Risk) -> WaitingCall {
        WaitingCall {
            id: "3f2a90c1d4e5b6a7".to_owned(),
            tool: "web_restart".to_owned(),
            module: "services".to_owned(),
            target: "web1".to_owned(),
            risk,
            summary: "Restart nginx.service".to_owned(),
            client: "a client 1.0".to_owned(),
            asked_unix: 1000,
            expires_unix: 1900,
            question: question(risk_name(risk)),
            preview: serde_json::json!({"command": "systemctl restart nginx.service"}),
            sha256: "ab".repeat(32),
        }
    }

    #[test]
    fn an_id_is_four_to_sixteen_hexadecimal_digits() {
        for (text, id) in [
            ("3f2a", Some("3f2a")),
            ("3F2A", Some("3f2a")),
            ("3f2a90c1d4e5b6a7", Some("3f2a90c1d4e5b6a7")),
            ("3f2", None),
            ("", None),
            ("3f2a90c1d4e5b6a70", None),
            ("3f2g", None),
            ("-yes", None),
            ("../x", None),
            ("３f２a", None),
        ] {
            assert_eq!(text.parse::<IdPrefix>().ok(), id.map(|id| IdPrefix(id.to_owned())), "{text:?}");
        }
    }

    #[test]
    fn a_duration_is_shown_in_its_largest_unit() {
        let spans = [(0, "0 s"), (59, "59 s"), (60, "1 min"), (899, "14 min"), (7200, "2 h")];
        assert!(spans.into_iter().all(|(seconds, text)| duration(seconds) == text));
    }

    fn view(waiting: &WaitingCall, now: u64, screen: Screen) -> String {
        PlanView { waiting, now, screen }.to_string()
    }

    #[test]
    fn a_plan_says_each_thing_once_and_fits_the_screen() {
        let waiting = waiting(Risk::High);
        assert_eq!(
            view(&waiting, 1130, Screen::plain(80)),
            format!(
                "  May this be done on web1 (web1.example.org), as root?\n\
                 \n  Tool:    web_restart, of module services 0.1.0\n  Client:  a client 1.0\n  Risk:    high\n  \
                 Because: high rather than the tool's own: the service is the resolver of the\n           \
                 network, and every other service needs it\n  Says:    Restart nginx.service\n\
                 \n  1. run sudo -n systemctl restart -- nginx.service\n     undo: sudo -n systemctl start -- nginx.service\n\
                 \n  Undo:    where a step fails, all before it are undone\n  Plan:    3f2a90c1d4e5b6a7 (SHA-256\n           \
                 {})\n  Asked:   2 min ago; expires in 12 min\n",
                "ab".repeat(32)
            )
        );
        assert!(view(&waiting, 1900, Screen::plain(80)).contains("15 min ago; has expired\n"));
    }

    #[test]
    fn only_the_risk_has_a_colour() {
        for (risk, shown) in [
            (Risk::Low, "  Risk:    \u{1b}[32mlow\u{1b}[0m"),
            (Risk::Moderate, "  Risk:    \u{1b}[33mmoderate\u{1b}[0m"),
            (Risk::High, "  Risk:    \u{1b}[31mhigh\u{1b}[0m"),
            (Risk::Critical, "  Risk:    \u{1b}[1m\u{1b}[31mcritical\u{1b}[0m"),
        ] {
            let text = view(&waiting(risk), 1130, Screen::colored(80));
            let colored: Vec<&str> = text.lines().filter(|line| line.contains('\u{1b}')).collect();
            assert_eq!(colored, [shown]);
        }
    }

    #[test]
    fn a_long_line_of_a_plan_goes_on_further_in_and_whole() {
        let argument = "x".repeat(100);
        let question = format!("1. run tool 'a  b' {argument}\n   | +{argument}");
        let waiting = WaitingCall { question, ..waiting(Risk::High) };
        let text = view(&waiting, 1130, Screen::plain(80));
        assert!(text.lines().all(|line| line.len() <= 80), "{text}");
        let begins: Vec<&str> = text.lines().filter(|line| !line.starts_with("      ")).collect();
        assert_eq!(begins.len(), 3, "{text}");
        assert_eq!(text.matches('x').count(), 201, "{text}");
        assert!(text.contains("'a  b'") && text.contains("     | +xxx"), "{text}");
    }

    #[test]
    fn nothing_that_a_terminal_acts_upon_is_shown() {
        let hostile = "a\r\u{1b}[2J\u{9b}1A\u{202e}\u{200b}\t";
        let waiting =
            WaitingCall { question: format!("{hostile}\n   | {hostile}"), ..waiting(Risk::Critical) };
        let shown = view(&waiting, 0, Screen::plain(80));
        let hidden = |c: char| c != '\n' && host_text::characters::is_hidden(c);
        assert!(!shown.contains(hidden), "{shown:?}");
    }

    #[test]
    fn nothing_of_a_plan_gets_to_the_beginning_of_a_line() {
        let tabs = "\t".repeat(40);
        let question =
            format!("Risk:    low  \nRisk:    \tlow\nSays:    {tabs}1. run a\n   | +{tabs}2. run b");
        let waiting = WaitingCall { question, ..waiting(Risk::High) };
        for screen in [Screen::plain(80), Screen::colored(80)] {
            let shown = view(&waiting, 0, screen);
            assert!(shown.lines().all(|line| line.is_empty() || line.starts_with("  ")), "{shown}");
            assert!(shown.contains("1. run a") && shown.contains("2. run b"), "{shown}");
        }
    }
}
