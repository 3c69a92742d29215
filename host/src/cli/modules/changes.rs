//! What a new version of a module changes, for the operator who decides about it. Old and new lines stand together.

use crate::cli::text::{risk_name, wrap};
use host_capability::{Concern, Request, Requests, by_concern};
use host_components::{Description, Tool};
use host_text::visible::visible;

use super::view::{heading, line, quoted};

/// The part of two texts that must be alike where one takes the place of the other.
const ALIKE: f64 = 0.6;
/// The number of characters that are compared.
const COMPARED: usize = 256;

/// What has to be said before everything else: a step back, or other bytes under the name of the same version. Versions that
/// can't be compared are none of both.
pub(super) fn version_notice(old: &str, new: &str) -> Option<String> {
    if old == new {
        return Some(format!(
            "SAME VERSION, OTHER BYTES: both call themselves {new}. An author who changes something gives it another version"
        ));
    }
    let parsed = |text: &str| semver::Version::parse(text).ok();
    let is_older = parsed(new)?.cmp_precedence(&parsed(old)?).is_lt();
    is_older.then(|| format!("DOWNGRADE: {new} is older than {old}, which is installed"))
}

/// Lists what the new version requests and has beyond the old one, the gravest first, and then what it no longer has.
pub(super) fn differences(old_tools: &[Tool], granted: &Requests, new: &Description) -> String {
    let mut text = String::new();
    let mut section = |heading: &str, lines: Vec<String>| {
        if !lines.is_empty() {
            text.push_str(&format!("\n{heading}\n{}", lines.concat()));
        }
    };
    let asked: &Requests = &new.requests;
    let changes = Changes::of(granted, asked);
    section(
        "WIDER: it asks for what was not granted before",
        changes.wider.iter().map(Wider::text).collect(),
    );
    section("Tools", tools(old_tools, &new.tools));
    let narrower = changes.narrower.iter().enumerate();
    let narrower = narrower.map(|(at, (concern, request))| line(at + 1, *concern, request, false));
    section("No longer asked for", narrower.collect());
    let reworded = changes.reworded.iter().map(|(old, new)| other_words(old, new));
    section("Asked for as before, in other words", reworded.collect());
    match text.is_empty() {
        true => "\nIt asks for nothing new, and its tools are the same.".to_owned(),
        false => text.trim_end().to_owned(),
    }
}

/// The differences between what was granted and what is asked for.
struct Changes<'a> {
    wider: Vec<Wider<'a>>,
    narrower: Vec<(Concern, Request<'a>)>,
    /// The same requests with an old and a new reason.
    reworded: Vec<(Request<'a>, Request<'a>)>,
}

/// A request that was not granted before.
struct Wider<'a> {
    /// Its place among all requests.
    number: usize,
    concern: Concern,
    request: Request<'a>,
    /// The request that it takes the place of.
    before: Option<(Concern, Request<'a>)>,
}

impl<'a> Changes<'a> {
    fn of(granted: &'a Requests, asked: &'a Requests) -> Self {
        let old = by_concern(granted);
        let mut gone: Vec<_> = old.iter().filter(|(_, request)| !asked.ask_for(request)).copied().collect();
        let (mut wider, mut reworded) = (Vec::new(), Vec::new());
        for (at, (concern, request)) in by_concern(asked).into_iter().enumerate() {
            let same: Vec<_> = old.iter().filter(|(_, old)| old.asks_the_same(&request)).collect();
            match same.first() {
                Some((_, old)) if same.iter().all(|(_, old)| old.reason() != request.reason()) => {
                    reworded.push((*old, request));
                }
                Some(_) => {}
                None => {
                    let before = closest(&request, &gone).map(|index| gone.remove(index));
                    wider.push(Wider { number: at + 1, concern, request, before });
                }
            }
        }
        Self { wider, narrower: gone, reworded }
    }
}

impl Wider<'_> {
    fn text(&self) -> String {
        let heading = wrap(heading(self.concern), "  ", "    ");
        let now = line(self.number, self.concern, &self.request, false);
        match &self.before {
            None => format!("{heading}\n{now}"),
            Some((concern, request)) => {
                let before = line(self.number, *concern, request, false);
                format!("{heading}\n  before\n{before}  now\n{now}")
            }
        }
    }
}

/// The request that a new one takes the place of: the most similar one of the same kind.
fn closest(new: &Request<'_>, gone: &[(Concern, Request<'_>)]) -> Option<usize> {
    let alike = gone.iter().enumerate().map(|(index, (_, old))| (likeness(old, new), index));
    let best =
        alike.filter(|(likeness, _)| *likeness >= ALIKE).max_by(|one, other| one.0.total_cmp(&other.0));
    best.map(|(_, index)| index)
}

/// How much alike two requests are, from 0 to 1. Commands of different programs are not alike.
fn likeness(old: &Request<'_>, new: &Request<'_>) -> f64 {
    if std::mem::discriminant(old) != std::mem::discriminant(new) {
        return 0.0;
    }
    let (Some(old_text), Some(new_text)) = (old.text(), new.text()) else { return 1.0 };
    let program = |text: &str| text.split_whitespace().next().map(str::to_owned);
    if matches!(old, Request::Command(_)) && program(old_text) != program(new_text) {
        return 0.0;
    }
    let part = |text: &str| text.chars().take(COMPARED).collect::<String>();
    strsim::normalized_levenshtein(&part(old_text), &part(new_text))
}

/// A request with its old reason and its new one.
fn other_words(old: &Request<'_>, new: &Request<'_>) -> String {
    let what = match new {
        Request::AnyProgram(_) => "any program",
        Request::Signals(_) => "signals to processes",
        _ => new.text().unwrap_or_default(),
    };
    let words = |when: &str, request: &Request<'_>| {
        let reason = quoted(request.reason().unwrap_or_default());
        wrap(&reason, &format!("    {when:<7}"), "           ")
    };
    let what = wrap(&visible(what), "  ", "    ");
    format!("{what}\n{}\n{}\n", words("before", old), words("now", new))
}

/// The tools that are new, different, or gone.
fn tools(old: &[Tool], new: &[Tool]) -> Vec<String> {
    let changed = new.iter().filter_map(|tool| {
        let before = old.iter().find(|before| before.name == tool.name);
        match before {
            None => Some(format!("  new       {} ({})\n", tool.name, risk_name(tool.risk))),
            Some(before) if before.risk != tool.risk => Some(format!(
                "  risk      {}: {} -> {}\n",
                tool.name,
                risk_name(before.risk),
                risk_name(tool.risk)
            )),
            Some(before) if before.input_schema != tool.input_schema || before.shape != tool.shape => {
                Some(format!("  changed   {}: other arguments or another answer\n", tool.name))
            }
            Some(before) if before.aliases != tool.aliases => {
                Some(format!("  aliases   {}: other older names are understood\n", tool.name))
            }
            Some(_) => None,
        }
    });
    let gone = old.iter().filter(|before| !new.iter().any(|tool| tool.name == before.name));
    changed.chain(gone.map(|before| format!("  gone      {}\n", before.name))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use host_base::{Privilege, Risk};
    use host_capability::{CommandRequest, Effect, PathRequest, Place};

    fn command(pattern: &str, privilege: Privilege, reason: &str) -> CommandRequest {
        CommandRequest {
            pattern: pattern.to_owned(),
            effect: Effect::Change,
            privilege,
            place: Place::Target,
            risk: Risk::Moderate,
            reason: reason.to_owned(),
        }
    }

    fn path(glob: &str, write: bool) -> PathRequest {
        let (privilege, place, reason) = (Privilege::Root, Place::Target, "to see".to_owned());
        PathRequest { glob: glob.to_owned(), write, privilege, place, reason }
    }

    #[test]
    fn a_step_back_and_other_bytes_of_the_same_version_are_said() {
        for (old, new, word) in [
            ("1.10.0", "1.9.0", "DOWNGRADE: 1.9.0 is older than 1.10.0"),
            ("1.0.0", "1.0.0-rc.1", "DOWNGRADE"),
            ("1.0.0", "1.0.0", "SAME VERSION, OTHER BYTES"),
            ("1-a", "1-a", "SAME VERSION, OTHER BYTES"),
        ] {
            assert!(version_notice(old, new).is_some_and(|notice| notice.starts_with(word)), "{old} {new}");
        }
        for (old, new) in [("1.9.0", "1.10.0"), ("1.0.0-rc.1", "1.0.0"), ("2", "1"), ("1.0.0+a", "1.0.0+b")] {
            assert_eq!(version_notice(old, new), None, "{old} {new}");
        }
    }

    #[test]
    fn a_changed_request_stands_beside_the_one_before_and_a_reworded_one_is_not_wider() {
        let granted = Requests {
            commands: vec![
                command("systemctl restart -- <unit>", Privilege::Caller, "to restart"),
                command("uptime", Privilege::Caller, "to look"),
                command("sync", Privilege::Root, "to write"),
            ],
            paths: vec![path("/etc/pacman.d/*", false)],
            ..Requests::default()
        };
        let asked = Requests {
            commands: vec![
                command("systemctl restart -- <unit>", Privilege::Root, "to restart"),
                command("uptime", Privilege::Caller, "to see who is there"),
                command("systemd-run -- <arg>...", Privilege::Root, "to run"),
            ],
            paths: vec![path("/etc/pacman.d/**", false)],
            ..Requests::default()
        };
        let changes = Changes::of(&granted, &asked);
        let wider = |text: &str| {
            let found = changes.wider.iter().find(|wider| wider.request.text() == Some(text));
            found.unwrap_or_else(|| panic!("{text} is not wider"))
        };
        assert_eq!(changes.wider.len(), 3);
        let before = wider("systemctl restart -- <unit>").before.as_ref().unwrap().1;
        assert!(matches!(before, Request::Command(request) if request.privilege == Privilege::Caller));
        let text = wider("systemctl restart -- <unit>").text();
        let at = |word: &str| text.find(word).unwrap_or_else(|| panic!("{word} is not in: {text}"));
        assert!(at("before\n") < at("as the server's own account") && at("now\n") < at("as ROOT"));
        assert_eq!(wider("/etc/pacman.d/**").before.as_ref().unwrap().1.text(), Some("/etc/pacman.d/*"));
        assert!(wider("systemd-run -- <arg>...").before.is_none());
        let narrower: Vec<_> = changes.narrower.iter().filter_map(|(_, request)| request.text()).collect();
        assert_eq!(narrower, ["sync"]);
        let [(old, new)] = changes.reworded[..] else { panic!("one is reworded") };
        let text = other_words(&old, &new);
        assert_eq!(text, "  uptime\n    before \"to look\"\n    now    \"to see who is there\"\n");
    }

    #[test]
    fn the_same_requests_are_no_change() {
        let requests = Requests {
            commands: vec![command("uptime", Privilege::Caller, "to look")],
            ..Requests::default()
        };
        let changes = Changes::of(&requests, &requests);
        assert!(changes.wider.is_empty() && changes.narrower.is_empty() && changes.reworded.is_empty());
    }
}
