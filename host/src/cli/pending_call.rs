//! Finds and shows a call that waits for a decision, for `pending`, `approve` and `deny`. Hidden characters in it are made
//! visible.

use std::fmt::{self, Display, Formatter};
use std::str::FromStr;
use std::time::{SystemTime, UNIX_EPOCH};

use super::text::risk_name;
use host_approval::{AskError, ServerCall, Servers, WaitingCall};
use host_text::visible::{one_line, visible};

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

/// Displays a call with its whole plan.
pub(super) struct PlanView<'a> {
    pub(super) waiting: &'a WaitingCall,
    /// Seconds since 1970.
    pub(super) now: u64,
}

impl Display for PlanView<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let WaitingCall { id, tool, module, target, summary, client, sha256, .. } = self.waiting;
        let asked = duration(self.now.saturating_sub(self.waiting.asked_unix));
        let time = match self.waiting.expires_unix.saturating_sub(self.now) {
            0 => format!("{asked} ago; has expired"),
            left => format!("{asked} ago; expires in {}", duration(left)),
        };
        for (name, value) in [
            ("call", id),
            ("tool", &format!("{tool}, of the module {module}")),
            ("target", target),
            ("risk", &risk_name(self.waiting.risk).to_owned()),
            ("client", client),
            ("summary", summary),
            ("asked", &time),
            ("plan", &format!("sha256 {sha256}")),
        ] {
            writeln!(f, "{name:8} {}", one_line(value))?;
        }
        writeln!(f)?;
        // Indented, so that no line of a plan looks like one of this program.
        for line in visible(&self.waiting.question).lines() {
            writeln!(f, "{}", format!("  {line}").trim_end())?;
        }
        Ok(())
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use host_base::Risk;

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
            question: "Restart nginx.service on web1.\n\n1. systemctl restart nginx.service".to_owned(),
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

    #[test]
    fn a_call_is_shown_with_its_plan_indented() {
        let waiting = waiting(Risk::High);
        assert_eq!(
            PlanView { waiting: &waiting, now: 1130 }.to_string(),
            format!(
                "call     3f2a90c1d4e5b6a7\n\
                 tool     web_restart, of the module services\n\
                 target   web1\n\
                 risk     high\n\
                 client   a client 1.0\n\
                 summary  Restart nginx.service\n\
                 asked    2 min ago; expires in 12 min\n\
                 plan     sha256 {}\n\
                 \n  Restart nginx.service on web1.\n\n  1. systemctl restart nginx.service\n",
                "ab".repeat(32)
            )
        );
        assert!(PlanView { waiting: &waiting, now: 1900 }.to_string().contains("15 min ago; has expired\n"));
    }

    #[test]
    fn nothing_that_a_terminal_acts_upon_is_shown() {
        let hostile = "a\nrisk     low\r\u{1b}[2J\u{9b}1A\u{202e}\u{200b}\t";
        let waiting = WaitingCall {
            id: hostile.to_owned(),
            tool: hostile.to_owned(),
            module: hostile.to_owned(),
            target: hostile.to_owned(),
            summary: hostile.to_owned(),
            client: hostile.to_owned(),
            question: hostile.to_owned(),
            sha256: hostile.to_owned(),
            ..waiting(Risk::Critical)
        };
        let shown = PlanView { waiting: &waiting, now: 0 }.to_string();
        let hidden = |c: char| !matches!(c, '\n' | '\t') && host_text::characters::is_hidden(c);
        assert!(!shown.contains(hidden), "{shown:?}");
        let risks: Vec<&str> = shown.lines().filter(|line| line.starts_with("risk")).collect();
        assert_eq!(risks, ["risk     critical"]);
    }
}
