//! Sorts the requests of a module by what an operator should look at first: by the reason to look at them, and then by how
//! far they reach. The host decides the order. The risk that a module states for its own requests only breaks ties.

use std::cmp::Reverse;

use super::hole::HoleType;
use super::path::Glob;
use super::pattern::Pattern;
use super::request::{
    AnyProgramRequest, CommandRequest, Effect, OwnProgramRequest, PathRequest, Requests, SignalRequest,
};
use super::reviewed::review_for;
use host_base::{Privilege, Risk};

/// One request of a module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request<'a> {
    /// A request for a command line.
    Command(&'a CommandRequest),
    /// A request for files.
    Path(&'a PathRequest),
    /// A request for any program.
    AnyProgram(&'a AnyProgramRequest),
    /// A request for signals to processes.
    Signals(&'a SignalRequest),
    /// A request for a program of the module's own.
    OwnProgram(&'a OwnProgramRequest),
    /// A request for another module's tool, by its name.
    Tool(&'a String),
}

/// The reason why an operator should look at a request; the gravest comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Concern {
    /// The module runs any program.
    AnyProgram,
    /// The command takes any arguments at all.
    Anything,
    /// The module puts a program of its own on the target, which root runs.
    OwnProgram,
    /// The module ends or stops processes of its own choice.
    Signals,
    /// The command is to look or to simulate a change, and the module asks for the same command line as a change. Looks and
    /// simulations run without a question.
    SameAsChange,
    /// The command changes something or looks with root's rights, and is not among those that were found to be harmless. Or
    /// plans write the files: the content of files decides what programs do.
    NotReviewed,
    /// The command looks with the rights of the server's own account, that account is root, and nobody has reviewed the
    /// command.
    LookAsRootAccount,
    /// The files hold secrets, for this reason.
    Secret(&'static str),
    /// The module calls another module's tool, which looks with the grants of that module.
    Tool,
    /// The command looks with the rights of an account other than root and the server's own, and nobody has reviewed it.
    LookAsOther,
    /// The command looks with the rights of the server's own account, and nobody has reviewed it.
    Look,
    /// The module reads other files.
    Files,
    /// The command was found to be harmless for any values, for this reason.
    Reviewed(&'static str),
}

/// Sorts all requests, the gravest first. Of requests with the same concern, those come first that reach farther.
pub fn by_concern(requests: &Requests) -> Vec<(Concern, Request<'_>)> {
    by_concern_for(requests, rustix::process::geteuid().is_root())
}

/// Like [`by_concern`]. Where the server's own account is root, its rights are root's.
fn by_concern_for(requests: &Requests, caller_is_root: bool) -> Vec<(Concern, Request<'_>)> {
    let changes: Vec<Pattern> = requests
        .commands
        .iter()
        .filter(|request| request.effect == Effect::Change)
        .filter_map(|request| Pattern::parse(&request.pattern).ok())
        .collect();
    let commands = requests
        .commands
        .iter()
        .map(|request| (concern_of_command(request, &changes, caller_is_root), Request::Command(request)));
    let paths = requests.paths.iter().map(|request| (concern_of_path(request), Request::Path(request)));
    let programs =
        requests.any_program.iter().map(|request| (Concern::AnyProgram, Request::AnyProgram(request)));
    let signals = requests.signals.iter().map(|request| (Concern::Signals, Request::Signals(request)));
    let own = requests.own_programs.iter();
    let own = own.map(|request| (Concern::OwnProgram, Request::OwnProgram(request)));
    let tools = requests.tools.iter().map(|request| (Concern::Tool, Request::Tool(request)));
    let mut all: Vec<_> =
        programs.chain(own).chain(signals).chain(commands).chain(paths).chain(tools).collect();
    all.sort_by_cached_key(|(concern, request)| {
        let reach = reach(request, caller_is_root);
        (without_reason(*concern), Reverse(reach), Reverse(effect(request)), Reverse(risk(request)))
    });
    all
}

/// The concern for sorting: a reason's text says nothing about how grave it is.
fn without_reason(concern: Concern) -> Concern {
    match concern {
        Concern::Secret(_) => Concern::Secret(""),
        Concern::Reviewed(_) => Concern::Reviewed(""),
        concern => concern,
    }
}

fn concern_of_command(request: &CommandRequest, changes: &[Pattern], caller_is_root: bool) -> Concern {
    let Ok(pattern) = Pattern::parse(&request.pattern) else { return Concern::Anything };
    if pattern.holes().any(|hole| *hole == HoleType::Arg) {
        return Concern::Anything;
    }
    if let Some(review) = review_for(request, caller_is_root) {
        return Concern::Reviewed(review.reason());
    }
    if request.effect == Effect::Change {
        return Concern::NotReviewed;
    }
    if changes.iter().any(|change| change.covers(&pattern) || pattern.covers(change)) {
        return Concern::SameAsChange;
    }
    match request.privilege {
        Privilege::Root | Privilege::RootIfAvailable => Concern::NotReviewed,
        Privilege::User(_) => Concern::LookAsOther,
        Privilege::Caller if caller_is_root => Concern::LookAsRootAccount,
        Privilege::Caller => Concern::Look,
    }
}

fn concern_of_path(request: &PathRequest) -> Concern {
    let secret = Glob::parse(&request.glob).ok().and_then(|glob| glob.names_secret());
    match secret {
        Some(reason) => Concern::Secret(reason),
        None if request.write => Concern::NotReviewed,
        None => Concern::Files,
    }
}

/// How far a request reaches. The first member that differs decides which of two requests reaches farther.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Reach {
    rights: Rights,
    /// Whether it takes paths from anywhere on the machine.
    any_path: bool,
    /// Whether it may take code: text or input that a program could execute, or files that plans write.
    code: bool,
    /// Whether it names files that hold secrets.
    secrets: bool,
}

/// The rights of a request, the least first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rights {
    Caller,
    OtherAccount,
    Root,
}

fn reach(request: &Request<'_>, caller_is_root: bool) -> Reach {
    let of = |privilege: &Privilege| match privilege {
        Privilege::Root | Privilege::RootIfAvailable => Rights::Root,
        Privilege::User(_) => Rights::OtherAccount,
        Privilege::Caller if caller_is_root => Rights::Root,
        Privilege::Caller => Rights::Caller,
    };
    let by_rights = |rights| Reach { rights, any_path: false, code: false, secrets: false };
    match request {
        Request::Command(request) => match Pattern::parse(&request.pattern) {
            Ok(pattern) => Reach {
                any_path: pattern.holes().any(takes_any_path),
                code: pattern.stdin() || pattern.holes().any(may_take_code),
                secrets: pattern
                    .holes()
                    .any(|hole| matches!(hole, HoleType::Path(Some(glob)) if glob.names_secret().is_some())),
                rights: of(&request.privilege),
            },
            Err(_) => Reach { rights: of(&request.privilege), any_path: true, code: true, secrets: true },
        },
        Request::Path(request) => {
            let glob = Glob::parse(&request.glob).ok();
            Reach {
                rights: of(&request.privilege),
                any_path: glob.as_ref().is_none_or(is_anywhere),
                code: request.write,
                secrets: glob.is_none_or(|glob| glob.names_secret().is_some()),
            }
        }
        Request::AnyProgram(request) => by_rights(of(&request.privilege)),
        Request::Signals(request) => by_rights(of(&request.privilege)),
        // Root runs a module's own program, and another module's tool may look with root's rights.
        Request::OwnProgram(_) | Request::Tool(_) => by_rights(Rights::Root),
    }
}

fn takes_any_path(hole: &HoleType) -> bool {
    match hole {
        HoleType::Path(glob) => glob.as_ref().is_none_or(is_anywhere),
        HoleType::Arg => true,
        _ => false,
    }
}

/// Whether not even the first directory of the glob is fixed.
fn is_anywhere(glob: &Glob) -> bool {
    glob.components().next().is_some_and(|first| first.contains('*'))
}

fn may_take_code(hole: &HoleType) -> bool {
    matches!(hole, HoleType::Text | HoleType::Arg | HoleType::Url | HoleType::Image)
}

fn effect(request: &Request<'_>) -> Effect {
    match request {
        Request::Command(request) => request.effect,
        Request::Path(request) if !request.write => Effect::Read,
        Request::Tool(_) => Effect::Read,
        _ => Effect::Change,
    }
}

/// The risk that the module states. A request without a risk of its own has the least one.
fn risk(request: &Request<'_>) -> Risk {
    match request {
        Request::Command(request) => request.risk,
        _ => Risk::ReadOnly,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Place;

    fn command(pattern: &str, effect: Effect, privilege: Privilege) -> CommandRequest {
        let (pattern, place, risk) = (pattern.to_owned(), Place::Target, Risk::ReadOnly);
        CommandRequest { pattern, effect, privilege, place, risk, reason: "harmless, really".to_owned() }
    }

    fn path(glob: &str, privilege: Privilege) -> PathRequest {
        let (glob, place) = (glob.to_owned(), Place::Target);
        PathRequest { glob, write: false, privilege, place, reason: String::new() }
    }

    fn written(glob: &str, privilege: Privilege) -> PathRequest {
        PathRequest { write: true, ..path(glob, privilege) }
    }

    #[test]
    fn the_gravest_comes_first() {
        let requests = Requests {
            commands: vec![
                command("uptime", Effect::Read, Privilege::Caller),
                command("cat -- <path:/srv/*>", Effect::Read, Privilege::Caller),
                command("systemctl restart -- <unit>", Effect::Change, Privilege::Root),
                command("visudo -c", Effect::Read, Privilege::Root),
                command("podman exec -- <arg>...", Effect::Change, Privilege::Caller),
            ],
            paths: vec![
                path("/etc/**", Privilege::Caller),
                path("/proc/*/environ", Privilege::Root),
                written("/etc/x/*", Privilege::Root),
                written("/home/*/.x", Privilege::Caller),
                written("/etc/gshadow", Privilege::Root),
            ],
            any_program: vec![AnyProgramRequest {
                privilege: Privilege::Caller,
                place: Place::Target,
                reason: String::new(),
            }],
            signals: vec![SignalRequest {
                privilege: Privilege::Caller,
                place: Place::Target,
                reason: String::new(),
            }],
            own_programs: vec![OwnProgramRequest {
                path: "/usr/local/lib/x".to_owned(),
                sha256: "0".repeat(64),
                reason: String::new(),
            }],
            tools: vec!["others_look".to_owned()],
        };
        let shown: Vec<String> = by_concern_for(&requests, false)
            .iter()
            .map(|(concern, request)| match request {
                Request::Command(request) => format!("{concern:?} {}", request.pattern),
                Request::Path(request) => format!("{concern:?} {}", request.glob),
                Request::Tool(name) => format!("{concern:?} {name}"),
                Request::AnyProgram(_) | Request::Signals(_) | Request::OwnProgram(_) => {
                    format!("{concern:?}")
                }
            })
            .collect();
        assert_eq!(shown[0], "AnyProgram");
        let shown = &shown[1..];
        assert_eq!(shown[0], "Anything podman exec -- <arg>...");
        assert_eq!(shown[1..3], ["OwnProgram", "Signals"]);
        let shown = &shown[2..];
        // A file that is written comes before one that is only read, and before commands: its content may be code.
        assert_eq!(shown[1], "NotReviewed /etc/x/*");
        assert_eq!(shown[2], "NotReviewed systemctl restart -- <unit>");
        assert_eq!(shown[3], "NotReviewed visudo -c");
        assert_eq!(shown[4], "NotReviewed /home/*/.x");
        assert!(shown[5].starts_with("Secret(") && shown[5].ends_with(" /etc/gshadow"), "{}", shown[5]);
        assert!(shown[6].starts_with("Secret(") && shown[6].ends_with(" /proc/*/environ"), "{}", shown[6]);
        assert_eq!(shown[7], "Tool others_look");
        assert_eq!(shown[8], "Look cat -- <path:/srv/*>");
        assert_eq!(shown[9], "Files /etc/**");
        assert!(shown[10].starts_with("Reviewed(") && shown[10].ends_with(" uptime"), "{}", shown[10]);
    }

    /// The concerns and patterns of commands in the order in which they are shown.
    fn order(commands: Vec<CommandRequest>, caller_is_root: bool) -> Vec<String> {
        let requests = Requests { commands, ..Requests::default() };
        let all = by_concern_for(&requests, caller_is_root);
        let shown = all.iter().map(|(concern, request)| match request {
            Request::Command(request) => {
                let concern = format!("{concern:?}");
                format!("{} {}", concern.split('(').next().unwrap(), request.pattern)
            }
            other => panic!("{other:?}"),
        });
        shown.collect()
    }

    #[test]
    fn how_far_a_request_reaches_comes_before_the_risk_that_its_module_states() {
        let stated = |pattern: &str, risk| CommandRequest {
            risk,
            ..command(pattern, Effect::Change, Privilege::Root)
        };
        let commands = vec![
            stated("a <int>", Risk::Critical),
            stated("b -- <path:/etc/shadow>", Risk::High),
            stated("c -- <text>", Risk::Moderate),
            stated("d < stdin", Risk::High),
            stated("e -- <path>", Risk::Low),
            CommandRequest { privilege: Privilege::Caller, ..stated("f -- <path:/**>", Risk::Critical) },
            CommandRequest { privilege: Privilege::User("ada".to_owned()), ..stated("g", Risk::Low) },
            stated("h", Risk::Low),
        ];
        let expected = [
            "e -- <path>",
            "d < stdin",
            "c -- <text>",
            "b -- <path:/etc/shadow>",
            "a <int>",
            "h",
            "g",
            "f -- <path:/**>",
        ];
        assert_eq!(order(commands, false), expected.map(|pattern| format!("NotReviewed {pattern}")));
    }

    #[test]
    fn full_control_is_for_root_and_for_changes() {
        let all = |caller_is_root| {
            order(
                vec![
                    command("a", Effect::Read, Privilege::Caller),
                    command("b", Effect::DryRun, Privilege::Caller),
                    command("c", Effect::Read, Privilege::User("ada".to_owned())),
                    command("d", Effect::Read, Privilege::Root),
                    command("e", Effect::DryRun, Privilege::RootIfAvailable),
                    command("f", Effect::Change, Privilege::Caller),
                    command("uptime", Effect::Read, Privilege::Caller),
                ],
                caller_is_root,
            )
        };
        let others = ["LookAsOther c", "Look b", "Look a", "Reviewed uptime"];
        assert_eq!(all(false)[..3], ["NotReviewed e", "NotReviewed d", "NotReviewed f"]);
        assert_eq!(all(false)[3..], others);
        // With such a server, the account's own rights are root's.
        let looks = ["LookAsRootAccount b", "LookAsRootAccount a", "LookAsOther c", "Reviewed uptime"];
        assert_eq!(all(true)[..3], ["NotReviewed f", "NotReviewed e", "NotReviewed d"]);
        assert_eq!(all(true)[3..], looks);
    }

    #[test]
    fn a_look_with_the_command_line_of_a_change_is_flagged() {
        for (look, change, is_flagged) in [
            ("pacman --sync -- <package>", "pacman --sync -- <package>", true),
            // One of them allows all that the other one allows.
            ("pacman --sync [--print] -- <package>", "pacman --sync -- <package>", true),
            ("pacman --sync -- <package>", "pacman [--noconfirm] --sync -- <package>...", true),
            ("pacman --sync --downloadonly -- <package>", "pacman --sync -- <package>", false),
            ("zypper install -- <package>", "pacman --sync -- <package>", false),
        ] {
            for effect in [Effect::Read, Effect::DryRun] {
                let commands = vec![
                    command(look, effect, Privilege::Caller),
                    command(change, Effect::Change, Privilege::Root),
                ];
                let flagged = order(commands, false)[0] == format!("SameAsChange {look}");
                assert_eq!(flagged, is_flagged, "{look} {change}");
            }
        }
        // A look that was found to be harmless stays so, whatever else the module calls it.
        let commands =
            [Effect::Read, Effect::Change].map(|effect| command("uptime", effect, Privilege::Caller));
        assert_eq!(order(commands.to_vec(), false), ["NotReviewed uptime", "Reviewed uptime"]);
    }
}
